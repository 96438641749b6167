"Findings of NarrativeFactScore on made-up tables: where the opposite holds they say the opposite."
import numpy as np
import pandas as pd
import pytest

from factlib.core.records import Example
from factlib.papers.narrativefactscore.findings import (correction_findings, correlation_finding, falsehood_finding,
                                                        gain_findings, gap_findings, graph_findings,
                                                        own_falsehood_finding, people_findings)
from factlib.papers.narrativefactscore.tables import ablation_table, changes_table, graph_effects, measured
from sentences import joined, says

def changes(low, high, q):
    "All sentences false against harmless edits, for one evaluator and for one that never changes."
    return pd.DataFrame([dict(before='harmless', after='false all', measure=m,
                              delta=(lo + hi)/2, ci_low=lo, ci_high=hi, q=p, family=2)
                         for m, lo, hi, p in (('factscore', low, high, q), ('rouge1', -1., 1., 1.))])

@pytest.mark.parametrize('low, high, q, words',
                         [(-9., -3., .01,
                           '1 of 2 evaluators score summaries with all sentences false lower than those with as many '
                           'harmless edits (factscore −6.00 [−9.00, −3.00]), 0 higher (none): points of 100, '
                           'two-sided, Benjamini-Hochberg over 2 tests.'),
                          (3., 9., .01, 'edits (none), 1 higher (factscore 6.00 [3.00, 9.00])'),
                          (-9., -3., .2,
                           'None of 2 evaluators is shown to score summaries with all sentences false lower than those '
                           'with as many harmless edits, or higher (two-sided, Benjamini-Hochberg over 2 tests).')])
def test_whether_falsehoods_cost_more_than_edits(low, high, q, words):
    says(falsehood_finding(changes(low, high, q)), words)

@pytest.mark.parametrize('low, high, q, words', [
    (3., 9., .01, 'narrativefactscore, m is misled: it scores summaries with all sentences false higher than '
                  'those with as many harmless edits (6.0 [3.0, 9.0] points of 100, Benjamini-Hochberg over 2 tests).'),
    (-9., -3., .01, 'narrativefactscore, m scores summaries with all sentences false lower than those with as '
                    'many harmless edits (−6.0 [−9.0, −3.0] points of 100, Benjamini-Hochberg over 2 tests).'),
    (-1., 3., .4, 'narrativefactscore, m is not shown to tell summaries with all sentences false from those '
                  'with as many harmless edits (1.0 [−1.0, 3.0] points of 100, Benjamini-Hochberg over 2 tests, q 0.4')])
def test_the_papers_evaluator_comes_first(low, high, q, words):
    table = changes(low, high, q)
    assert own_falsehood_finding(table) == '' # of factscore and rouge1
    table.loc[0, 'measure'] = 'narrativefactscore, m'
    assert own_falsehood_finding(table).startswith(words)
    alone = pd.DataFrame([dict(before='original', after=a, measure='narrativefactscore, m', delta=d,
                               ci_low=d - 1, ci_high=d + 1) for a, d in (('harmless', -15.6), ('false all', -6.8))])
    assert 'true summary' not in own_falsehood_finding(table)
    says(own_falsehood_finding(pd.concat([alone, table])), words, 'changes by −6.8 [−7.8, −5.8] points when all its '
         'sentences are made false, by −15.6 [−16.6, −14.6] when it is edited harmlessly.')
    assert own_falsehood_finding(table.iloc[:0]) == ''

@pytest.mark.parametrize('f1s, words',
    # of 70, 72 and 74 the mean 72 has se 2/3^.5; .72 as a share of 1512 with t = 4.3027 (df 2) it is Wilson's
    [([70., 72., 74.], 'F1 of 72.0 [66.8, 76.7] % (by'),
     ([72.]*3, 'F1 of 72.0 [21.1, 91.8] % (by'), # all the same: q = 1 - .025^(1/3) = .7076 of the way to either end
     ([72.], 'F1 of 72.0 % (only one story, so nothing is known of others) (by')])
def test_how_many_stories_allow_an_interval_is_said_by_the_engine(f1s, words):
    stories = [f's{i}' for i in range(len(f1s))]
    people = pd.DataFrame([dict(graph='m', story=s, people=2, found=2, characters=3, joined=0) for s in stories])
    near = pd.DataFrame([dict(graph='m', story=s, own=True, f1=f1) for s, f1 in zip(stories, f1s)])
    says(people_findings(people, near), words)

def test_each_pair_of_kinds_is_a_family_of_its_own():
    """Falls in the ratio of 1 to 6 on six stories, for each question.

    Under Benjamini and Hochberg the largest p stays as it is, and no other is above it: of equal ones all stay."""
    edits = {'original': 0, 'harmless': 1, 'false 1': 2, 'false 4': 3, 'false all': 4}
    rows = [dict(dataset='holmes_false', evaluator=e, variant=v,
                 level=v.split()[-1], group=f's{i}', example_id=f's{i}/{v}', value=(50 - k*(i + 1))/100)
            for e in ('factscore', 'rouge1') for i in range(6) for v, k in edits.items()]
    scores = measured(pd.DataFrame(rows), {e: (e, 'value') for e in ('factscore', 'rouge1')})
    pairs = [('original', after) for after in list(edits)[1:]] + [('harmless', 'false all')]
    found = changes_table(scores, pairs, family='pair')
    assert found.q.tolist() == pytest.approx(found.p.tolist()) and set(found.family) == {2}
    whole = changes_table(scores, pairs) # the table as one family
    assert whole.q.max() == pytest.approx(whole.p.max()) and set(whole.family) == {10}

def graph_finding(whole, form, books=12, same=False):
    "The findings of the table of correlations, for scores that follow the truth with these errors."
    chance = np.random.default_rng(0)
    rows = [(b, i, chance.normal()) for b in range(books) for i in range(5)]
    def judged(name, error):
        return [dict(dataset='s', evaluator=name, example_id=f'{b}-{i}', group=f'b{b}',
                     truth=truth, value=truth + error*chance.normal(), absence=None) for b, i, truth in rows]
    frame = pd.DataFrame([r for name, error in (('narrativefactscore', whole), ('narrativefactscore_text', form))
                          for r in judged(name, error)])
    if same:
        frame.loc[frame.evaluator == 'narrativefactscore_text',
                  'value'] = list(frame.value[frame.evaluator == 'narrativefactscore'])
    return joined(graph_findings(ablation_table(frame, 'narrativefactscore'), frame))

@pytest.mark.parametrize('whole, form, words', [(.1, 3., 'it helps.'), (3., .1, 'it costs agreement.'),
                                                (1., 1., 'that it helps is not shown.')])
def test_whether_the_graph_helps(whole, form, words):
    says(graph_finding(whole, form), '(narrativefactscore against narrativefactscore_text; 60 of 60 scores change); '
         + words)

def test_a_graph_that_changes_no_score_says_nothing():
    text = graph_finding(1., 0., same=True)
    says(text, 's: the graph changes none of 60 scores (narrativefactscore against narrativefactscore_text), so '
               'whether it helps can\'t be told here.')
    assert 'rho with people' not in text

@pytest.mark.parametrize('gain, words', [(-20., 'it helps.'), (20., 'it misleads.'),
                                         (0., 'that it helps is not shown.')])
def test_whether_the_graph_brings_false_and_harmless_apart(gain, words):
    """Ten stories; without a graph the false summary is 10 below the harmless one, with it further by the gain and some
    scatter whose mean is 0. Where one form has no score nothing is said of it."""
    rows = []
    for i in range(10):
        for form, false in (('', 70 + gain + (i % 2*2 - 1)), ('_text', 70.)):
            about = dict(dataset='s', group=f's{i}', measure=f'narrativefactscore{form}, m')
            rows += [about | dict(variant='harmless', example_id=f's{i}/h', x=80.),
                     about | dict(variant='false all', example_id=f's{i}/f', x=false)]
    rows[1]['x'] = np.nan # the first false summary, with the graph
    added = graph_effects(pd.DataFrame(rows))
    assert len(added) == 20 and added.x.isna().sum() == 1
    gaps = changes_table(added, [('harmless', 'false all')], family='pair')
    assert gaps.delta.tolist() == pytest.approx([gain + 1/9]) # nine stories, five of them 1 above
    says(joined(gap_findings(gaps, added)), f's: the graph changes 9 of 19 scores', f'points (m), where below 0 helps; {words}')

def test_correlations_are_those_of_the_table():
    row = dict(dataset='s', scored=9, spearman_low=-.1, spearman_high=.4)
    table = pd.DataFrame([row | dict(evaluator=e, spearman=rho)
                          for e, rho in (('narrativefactscore, m', .16), ('length', .41), ('rouge1', .2))])
    text = correlation_finding(table)
    says(text, 's, Spearman\'s rho with people\'s judgements: 0.16 [−0.10, 0.40] (narrativefactscore, m)', '(length)')
    assert 'rouge1' not in text
    assert text.endswith('. None of them is shown to agree.')
    table.loc[1, 'spearman_low'] = .2
    assert correlation_finding(table).endswith('. Only length is shown to agree.')
    assert correlation_finding(table.assign(spearman_low=.1)).endswith('(length).')

def test_how_much_of_the_false_is_gone_after_correction():
    "Of two false edits a model's last version has none, one or both; a summary that nobody made false counts for nothing."
    spoilt = dict(s=[Example('a', target='', meta=dict(edits=[dict(after='Eva flew.'), dict(after='Max hid.')]))])
    def corrected(model, *texts, example='a'):
        drafts = [dict(text=text) for text in ('Eva flew. Max hid.', *texts)]
        return dict(asked_model=model, benchmark='s', example_id=example, evidence=dict(drafts=drafts))
    made = [corrected('none', 'Eva flew. Max hid.'), corrected('half', '', 'Max hid. Eva skated.'), corrected('all', ''),
            corrected('all', 'Max hid.', example='another')]
    assert correction_findings(pd.DataFrame(made), spoilt) == [
        f'{model}: of 2 false edits in 1 summaries {gone} are gone after correction ({percent} %).'
        for model, gone, percent in (('none', 0, 0), ('half', 1, 50), ('all', 2, 100))]

MANY = ['M', 'N', 'O', 'P', 'Q', 'R', 'S']

def test_of_many_models_the_range_is_told():
    "By hand: of 10 people 2 to 8 are found; F1 of 40 to 46; rho from -.3 to .3; points from 1 to 7, of which 4 are sure."
    people = pd.DataFrame([dict(graph=f'graph, {m}', story='s', people=10, found=2 + i, characters=20, joined=2)
                           for i, m in enumerate(MANY)] + [dict(graph='naive graph, M', story='s', people=10, found=9,
                                                                characters=9, joined=0)])
    near = pd.DataFrame([dict(graph=f'graph, {m}', story='s', own=own, f1=(40. if own else 20.) + i)
                         for i, m in enumerate(MANY) for own in (True, False)])
    naive, models = people_findings(people, near)
    says(naive, 'naive graph, M: 9 of 10 people')
    says(models, 'graph of 7 models: 20 to 80 % of the people are found, 10 % of the characters hold two people; '
                 'relations match those of their own story with a mean F1 of 40.0 to 46.0 %, those of another story '
                 'with 20.0 to 26.0 %.')
    rows = [dict(dataset='s', scored=9, evaluator=f'narrativefactscore, {m}', spearman=(i - 3)/10, spearman_low=-1.,
                 spearman_high=1.) for i, m in enumerate(MANY)]
    length = dict(dataset='s', scored=9, evaluator='length', spearman=.4, spearman_low=.1, spearman_high=.6)
    says(correlation_finding(pd.DataFrame([length, *rows])), '0.40 [0.10, 0.60] (length) and -0.30 to 0.30 (7 forms with')
    gains = pd.DataFrame([dict(model=m, dataset='s', measure='NFS', after=after, delta=1. + i, ci_low=i - 2.5,
                               ci_high=9., compared=4) for i, m in enumerate(MANY) for after in ('2nd round', '3rd round')])
    told, = gain_findings(gains)
    says(told, 's: from the first summaries to the 3rd round, in points: NFS +1.0 to +7.0 (shown to gain: 4 of 7 models)')
    assert len(gain_findings(gains[gains.model.isin(['M', 'N'])])) == 2
