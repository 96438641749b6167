"Findings about a rule or a final call on made-up tables: where the opposite holds they say the opposite."
import pandas as pd
import pytest

from factlib.papers.judgememo.memories import label_finding, quote_finding, rule_finding, rule_test_finding
from sentences import says

@pytest.mark.parametrize('low, high, q, words', [
    (.1, .5, .04, ['is "mean" in 2 of 3 and "worst" in 0 of 1 configurations of 2 models; worse (below 0) is no rule.',
                   'The final call, 10% of the requests, is not shown to be worth them: no rule over the section '
                   'scores is shown to be worse. Corrected over rules, judges and lengths (Benjamini-Hochberg over '
                   '4 tests) a rule is better than '
                   'the final call in 1 and worse in 0 ("mean" by LI base on whole documents, q 0.040); the least '
                   'other q is 0.200.']),
    (-.5, -.1, .04,
     ['is "mean" in 0 of 3 and "worst" in 0 of 1 configurations of 2 models; worse (below 0) is "mean" in 2 of 3.',
      'The final call is shown to be worth asking for in 1 of 4 comparisons with a rule. Corrected',
      'in 0 and worse in 1 ("mean" by LI base on whole documents, q 0.040); the least']),
    (.1, .5, .12, ['is "mean" in 2 of 3', 'in 0 and worse in 0; the least other q is 0.120.']),
    (-.1, .5, 1., ['is "mean" in 0 of 3', 'worse (below 0) is no rule', 'in 0 and worse in 0'])])
def test_whether_a_rule_is_better(low, high, q, words):
    solid = pd.DataFrame(dict(evaluator=['LI base', 'LI context', 'Q base', 'LI base'],
                              rule=['mean']*3 + ['worst'], level='full',
                              gain=[(low + high)/2, .1, (low + high)/2, 0.], gain_low=[low, -.2, low, -.1],
                              gain_high=[high, .4, high, .1], q=[q, .2, .3, 1.], family=4))
    says([rule_finding(solid), rule_test_finding(solid, .1)], *words)

def test_labels_and_quotations_beside_chance():
    known = pd.DataFrame(dict(evaluator=['Q', 'Q', 'LI'], level='full',
                              manipulation=['[17]', '[43]', '[43]'], errors=[10, 100, 50],
                              documents=[30, 7, 30], labelled=1., by_place=1., lift=[0., .6, 0.],
                              quoted=[.5, .1, .2], quoted_low=[.4, .05, .1], quoted_by_chance=[.3, .02, .15]))
    says(label_finding(known), 'In 1 of 3 combinations', 'over 50 points less often ([43])')
    says(quote_finding(known), 'above chance in 2 of 3')

@pytest.mark.parametrize('low, words', [(.3, 'more often than chance would (interval above chance in 2 of 2'),
                                        (.1, 'is not shown in most cases (interval above chance in 0 of 2')])
def test_whether_notes_quote_the_faults(low, words):
    places = pd.DataFrame(dict(evaluator='Q', level='full', manipulation=['[17]', '[43]'], errors=10, documents=30,
                               labelled=1., by_place=1., lift=0., quoted=.4, quoted_low=low, quoted_by_chance=.2))
    says(quote_finding(places), words)
