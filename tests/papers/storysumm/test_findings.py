"Findings of StorySumm on made-up tables: where the opposite holds they say the opposite."
import pandas as pd
import pytest

from factlib.papers.storysumm.findings import floor_finding, guess_finding, held_finding, verdict_finding
from sentences import says

def held(*intervals):
    "The finding from partial correlations with these intervals."
    names = ['rouge1', 'word_support', 'FABLES (recorded)']
    table = pd.DataFrame([dict(evaluator=e, partial=(low + high)/2, ci_low=low, ci_high=high)
                          for e, (low, high) in zip(names, intervals)])
    return held_finding(table)

@pytest.mark.parametrize('low, high, words',
                         [(.2, .4, '1 of 3 evaluators still agree with people (interval above 0, one by one): FABLES '
                                   '(recorded) 0.30 [0.20, 0.40]. For 2'),
                          (-.4, -.2,
                           '0 of 3 evaluators still agree with people (interval above 0, one by one): none; against '
                           'people go FABLES'),
                          (-.2, .4,
                           '0 of 3 evaluators still agree with people (interval above 0, one by one): none. For 3 no '
                           'agreement beyond length is shown (the interval includes 0).')])
def test_who_agrees_with_people_beyond_length(low, high, words):
    says(held((-.3, .1), (-.1, .4), (low, high)), words)

@pytest.mark.parametrize('low, high, words', [(.1, .5, 'better than chance'), (-.5, -.1, 'worse than chance'),
                                              (-.1, .5, 'not shown to be better than chance')])
def test_agreement_beyond_chance(low, high, words):
    results = pd.DataFrame([{'on': 'test', 'evaluator': 'UniEval', 'kappa': (low + high)/2,
                             'kappa, low': low, 'kappa, high': high}])
    says(verdict_finding(results, pd.DataFrame(dict(status=['agrees']))), f'], {words}.')

def test_what_needs_no_reading():
    row = dict(spearman=.4, spearman_low=.3, spearman_high=.5, kendall=.32, kendall_low=.2, kendall_high=.4, scored=96)
    says(floor_finding(pd.DataFrame([row | dict(evaluator='length')])),
         'rho 0.40 [0.30, 0.50] with people\'s judgements (Kendall\'s tau 0.32 [0.20, 0.40]; 96 summaries)')
    floors = pd.DataFrame([row | dict(evaluator=f'left-out means of {of}', read=read, spearman=rho)
                           for of, read, rho in (('group and model', 'over all', .45),
                                                 ('model', 'within a book', .35))])
    says(guess_finding(floors, (.47, .33)), 'has rho 0.45 [0.30, 0.50], tau 0.32', 'printed: 0.47 and 0.33',
         'the model alone has rho 0.35')
