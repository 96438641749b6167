"Recorded judges beside offline evaluators and under another set-up, on made-up tables."
import pandas as pd
import pytest

from factlib.papers.judgememo.recorded_comparison import (contest_finding, distance_changes, fooled_findings,
                                                          length_changes, length_control_findings, surprisal_findings,
                                                          two_lengths_finding)
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
        lengths = pd.DataFrame([dict(evaluator=e, p=p_holm, p_holm=p_holm, family=2, effect=effect)
                                for e in ('LI', 'rouge1')])
        return two_lengths_finding(lengths, {'recorded language models': {'LI'}, 'offline evaluators': {'rouge1'}}, 8)
    says(at_two_lengths(-.8, .01), 'Eq 5.3 on 8 documents: corrected (Holm over 2 tests, two-sided)',
         'in 1 of 1 tests of recorded language models (the whole text is penalised less in 1) and 1 of 1 tests of '
         'offline evaluators (the')
    says(at_two_lengths(.8, .01), 'models (the whole text is penalised less in 0) and')
    says(at_two_lengths(-.8, .2), 'in 0 of 1 tests of recorded language models and 0 of 1 tests of offline evaluators.',
         'd_z 1.2 with a power of 80 %', 'smaller differences may be there')
