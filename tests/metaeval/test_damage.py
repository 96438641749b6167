"What tests of damage say in sentences, on made-up tables: where the opposite holds they say the opposite."
import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

from factlib.metaeval.damage import (effectiveness, floors_finding, judges_finding, length_alone_finding,
                                     length_gaps, lengths_finding, notice_finding, target_deltas)
from sentences import joined, says

def live(mean, p_holm):
    "A delta of one fault, and one that can't be tested."
    return pd.DataFrame([dict(manipulation='[41] typos', metric='fluency',
                              mean=mean, ci_low=mean - .5, ci_high=mean + .5, p_holm=p_holm, family=1),
                         dict(manipulation='[24] x', metric='fluency',
                              mean=0., ci_low=None, ci_high=None, p_holm=None, family=1)])

def test_too_few_texts():
    says(notice_finding(live(0., None)[1:], 'M'), 'cannot be told')
    says(judges_finding(live(0., None)[1:].assign(evaluator='a'), ['a', 'b']), 'whether a or b notices anything cannot')

@pytest.mark.parametrize('mean, p_holm, words',
                         [(-1., .01,
                           'lower in 1 of 2 combinations of manipulation and metric ([41] typos, fluency (−1.00 '
                           '[−1.50, −0.50])), higher in 0 (none); in 0 no'),
                          (1., .01,
                           'lower in 0 of 2 combinations of manipulation and metric (none), higher in 1 ([41] typos'),
                          (-1., .2,
                           '(none), higher in 0 (none); in 1 no difference is shown, and 1 have too few texts for a '
                           'test (points, two-sided, Holm over 1 test)')])
def test_whether_the_model_notices(mean, p_holm, words):
    says(notice_finding(live(mean, p_holm), 'M'), words)

@pytest.mark.parametrize('mean, p_holm, words',
                         [(-1., .01, 'scores lower with vanilla in 1 of 2 (higher in 0)'),
                          (1., .01, 'scores lower with vanilla in 0 of 2 (higher in 1)'),
                          (-1., .2,
                           'scores lower with vanilla in 0 of 2 (higher in 0); in the others no difference is shown '
                           '(two-sided, Holm over 1 test). These counts do not')])
def test_which_way_notices(mean, p_holm, words):
    tests = live(mean, p_holm).assign(evaluator='vanilla')
    says(judges_finding(tests, ['vanilla']), words)
    text = lengths_finding(tests, ['vanilla'])
    assert ('less by vanilla in 1 of 2' in text) == (mean < 0 and p_holm < .05)
    assert ('(more in 1)' in text) == (mean > 0)

# The quick sweep

@pytest.mark.parametrize('p_holm, gives', [(.01, True), (.2, False)])
def test_what_a_control_gives_away(p_holm, gives):
    tests = pd.DataFrame([dict(evaluator='length', manipulation='[24] anachronisms',
                               level='full', effect=14.6, mean=14.6, p_holm=p_holm, family=1, scored=12)])
    assert ('alone tells spoilt from untouched versions for [24] ana' in length_alone_finding(tests)) == gives
    assert floors_finding(tests, ['out_of_vocabulary']) == ''

@pytest.mark.parametrize('effect, p_holm, words',
                         [(-2., .01,
                           'notices [24] anachronisms (in 2,000 tokens, whole); not shown for [41] typos (the score '
                           'falls, Holm over 3 tests)'),
                          (2., .01, 'notices nothing; not shown for [24] anachronisms and [41] typos'),
                          (-2., .06, 'notices nothing; not shown for [24] anachronisms and [41] typos')])
def test_what_a_floor_notices(effect, p_holm, words):
    floor = dict(evaluator='out_of_vocabulary', manipulation='[24] anachronisms',
                 level='2000', effect=effect, mean=effect, p_holm=p_holm, family=3, scored=12)
    tests = pd.DataFrame([floor, floor | dict(level='full', evaluator='adjacent_similarity'),
                          floor | dict(manipulation='[41] typos', effect=1., mean=1.)])
    says(floors_finding(tests, ['out_of_vocabulary', 'adjacent_similarity']), words)

# Deltas on the metric that was meant to fall

def test_gaps_are_of_the_metric_that_was_meant_to_fall():
    "Typos cost a document 1 point of fluency in the short text and 3 in full, and of coherence nothing."
    rows = [dict(evaluator='LI', group='d', variant=v, level=level, metric=m,
                 value=5. - cost*(v == '41' and m == 'fluency'))
            for level, cost in (('2000', 1), ('full', 3)) for v in ('gold', '41') for m in ('fluency', 'coherence')]
    table = pd.DataFrame(rows)
    assert target_deltas(table).delta.tolist() == [-1, -3]
    assert length_gaps(table).to_dict() == {('LI', '41', 'd'): -1 - -3}
    assert length_gaps(table[table.level == '2000']).isna().tolist() == [True]

def test_the_metric_that_was_meant_is_a_family_of_its_own():
    "Two faults of two judges on two metrics: four tests are on the metric meant, and Holm is over these four."
    rng = np.random.default_rng(0)
    rows = [dict(evaluator=e, group=str(g), variant=v, level='2000', metric=m, value=float(rng.normal()))
            for e in 'ab' for g in range(8) for v in ('gold', '41', '17') for m in ('fluency', 'coherence')]
    tests = effectiveness(pd.DataFrame(rows), None)
    for target, own in tests.groupby('target'):
        assert len(own) == 4 and set(own.family) == {4}
        assert own.p_holm.tolist() == pytest.approx(multipletests(own.p, method='holm')[1].tolist())
