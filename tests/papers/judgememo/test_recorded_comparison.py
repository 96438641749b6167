"Recorded judges beside offline evaluators and under another set-up, on made-up tables."
import pandas as pd
import pytest

from factlib.papers.judgememo.recorded_comparison import (combination_findings, contest_finding, distance_changes,
                                                          fooled_findings, least_effect_finding, length_changes,
                                                          length_control_findings, offline_lengths_findings,
                                                          surprisal_findings, two_lengths_finding)
from factlib.perturb.quality import TASKS
from sentences import joined, says

@pytest.mark.parametrize('memo, mean', [(-.5, .5), (-1.5, -.5)])
def test_the_change_is_of_the_same_document(memo, mean):
    """Vanilla loses 1 point less in the long text of each document, JudgeMemo .5 less or 1.5 less, and a tenth more or
    less by turns."""
    def scores(gap):
        rows = [('2000', 0.), ('full', -gap)]
        return pd.DataFrame([dict(evaluator='LI', variant=v, metric='coherence',
                                  level=level, group=f'd{i}',
                                  value=4. + (v == '17')*(drop - .5 + (i % 2 - .5)/5*(level == 'full')*(gap != -1)))
                             for i in range(4) for level, drop in rows for v in ('gold', '17')])
    row = length_changes(scores(-1), scores(memo), ['LI']).iloc[0]
    assert row.scored == 4 and round(row['mean'], 9) == mean and (row.ci_low < mean < row.ci_high)
    assert length_changes(scores(-1), scores(memo), []).empty

def test_distances_have_no_sign():
    "Under a single prompt a fault costs 1 point less or more in the long text, under JudgeMemo half a point."
    def scores(gap):
        texts = [*TASKS.items(), ('gold', 'fluency'), ('gold', 'coherence')]
        return pd.DataFrame([dict(evaluator='LI', variant=v, metric=m, level=level, group=f'd{i}',
                                  value=4. - (v != 'gold')*(1 + (-1)**i*gap*(level == 'full')))
                             for i in range(4) for level in ('2000', 'full') for v, m in texts])
    gaps, changes = distance_changes(scores(1.), scores(.5), ['LI'])
    assert gaps.vanilla.tolist() == [1.]*6 and gaps.judgememo.tolist() == [.5]*6 and gaps.change.tolist() == [-.5]*6
    assert list(gaps.variant) == list(TASKS) and len(changes) == 24 and set(changes.change) == {-.5}
    empty, none = distance_changes(scores(1.), scores(.5), [])
    assert empty.empty and none.empty and list(none) == ['group', 'change', 'evaluator', 'variant']

def separated(low, high, judge='counter'):
    against = pd.DataFrame([dict(against='LI, single prompt', variant='41',
                                 judge=judge, dz=-2., opponent='LI', dz_opponent=-1.,
                                 difference=(low + high)/2, ci_low=low, ci_high=high, n=20)])
    return contest_finding(against, 'LI, single prompt', 20)

@pytest.mark.parametrize('low, high, words',
                         [(-3., -1.,
                           'more consistently in 1 of 1 comparisons ([41] typos), less consistently in 0; in 0 '
                           'nothing'),
                          (1., 3.,
                           'more consistently in 0 of 1 comparisons (none), less consistently in 1; in 0 nothing'),
                          (-1., 3.,
                           'more consistently in 0 of 1 comparisons (none), less consistently in 0; in 1 nothing is '
                           'shown')])
def test_who_separates_more_consistently(low, high, words):
    text = separated(low, high)
    assert words in text and 'combination' not in text

def test_combinations_that_were_fitted_here_are_counted():
    assert 'in 1 of 1 comparisons ([41] typos; 1 of them by a combination fitted on this benchmark), less' in separated(
        -3., -1., 'combination, fault unseen')
    assert 'fitted' not in separated(1., 3., 'combination') # it separates less consistently

def test_who_is_fooled_and_what_the_length_gives_away():
    tests = pd.DataFrame([dict(evaluator=e, variant='41', fault='typos', effect=effect, p_holm=p, family=6)
                          for e, effect, p in (('counter', .8, .01), ('surer', -2., .01), ('open', .8, .2),
                                               ('length', -.7, .01))])
    judges = ['counter', 'surer', 'open']
    fooled = joined(fooled_findings(tests, judges))
    assert fooled.endswith('spoilt (Holm over 6 tests): counter by [41] typos (d_z +0.8).')
    assert fooled_findings(tests[1:], judges) == []
    says(length_control_findings(tests), 'changes with [41] typos (d_z -0.7) (Holm over 6 tests): there')
    assert length_control_findings(tests.assign(p_holm=1.)) == []

def test_surprisal_so_far():
    row = dict(evaluator='surprisal', variant='41', fault='typos', effect=-2., effect_low=-4.1, effect_high=.1,
               scored=3)
    says(surprisal_findings(pd.DataFrame([row, row | dict(variant='17', effect_low=None, effect_high=None)])),
         '[41] typos d_z -2.0 [-4.1, 0.1] on 3 documents; [17] typos d_z -2.0 (no interval)')
    assert surprisal_findings(pd.DataFrame([row | dict(effect=None)])) == []

def test_what_two_lengths_show():
    def at_two_lengths(effect, p_holm):
        lengths = pd.DataFrame([dict(evaluator=e, variant='17', fault='f', p=p_holm, p_holm=p_holm, family=2,
                                     effect=effect, dz_short=1., dz_long=1. + effect) for e in ('LI', 'rouge1')])
        return joined([two_lengths_finding(lengths, {'LI'}, 'recorded language models', 8),
                       two_lengths_finding(lengths, {'rouge1'}, 'offline evaluators', 8), least_effect_finding(8),
                       *offline_lengths_findings(lengths, {'rouge1'})])
    says(at_two_lengths(-.8, .01), 'recorded language models: corrected (Holm over 2 tests, two-sided)',
         'in 1 of 1 tests, in 1 of them because', 'rouge1 on [17] f (1.0 and 0.2)')
    says(at_two_lengths(.8, .01), 'in 1 of 1 tests, in 0 of them because')
    text = at_two_lengths(-.8, .2)
    says(text, 'in 0 of 1 tests.', 'd_z 1.2 with a power of 80 %', 'smaller differences may be there')
    assert 'The offline ones' not in text

def test_texts_that_a_fit_leaves_out():
    fits = pd.DataFrame(dict(metric=['fluency', 'coherence', 'coherence'], document=list('abc'), left_out=[0, 2, 5],
                             not_known=['', '', '17']))
    says(combination_findings(fits, 20), 'Combination for coherence: 2 of 20 fits leave out 2 to 5 spoilt texts',
         'so the fit does not know it: [17] for c.')
    assert combination_findings(fits[:1], 20) == [] and len(combination_findings(fits[:2], 20)) == 1
