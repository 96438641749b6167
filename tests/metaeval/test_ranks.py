"Who is shown to be better than whom: by hand, against a simulation's classes, and with labels that say nothing."
import numpy as np
import pandas as pd
import pytest
import scipy.stats

from factlib.core.records import BadInput, Example
from factlib.metaeval.pairwise import contest
from factlib.metaeval.ranks import against_floors, over_benchmarks, rank_intervals, rank_words
from factlib.validity.base import corrected

def made(*rows):
    return pd.DataFrame(rows, columns=['first', 'second', 'difference', 'p'])

def test_rank_intervals_by_hand():
    """Five in a row; a beats c, d and e, b beats e, c beats e. So a: nobody above, three below; b: none, one; c: one,
    one; d: one, none; e: three, none."""
    tests = made(('a', 'b', .1, .5), ('a', 'c', .2, .002), ('a', 'd', .3, .003), ('e', 'a', -.5, .001),
                 ('b', 'c', .1, .3), ('b', 'd', .2, .011), ('b', 'e', .4, .005), ('c', 'd', .1, .2), ('c', 'e', .3, .004),
                 ('d', 'e', .2, .012)) # by Holm 10, 9, 8, 7, 6 times the five smallest are below .05, 5 times .011 is not
    table = rank_intervals(tests, dict(e=.2, a=.9, b=.8, c=.7, d=.6)).set_index('evaluator')
    assert table[['rank_low', 'rank_high']].T.to_dict('list') == dict(a=[1, 2], b=[1, 4], c=[2, 4], d=[2, 5], e=[4, 5])
    assert set(table.of) == {5}
    # down the list: c begins a class, as a is shown to be better; then e, as c is
    assert table.place.to_dict() == dict(a=1, b=1, c=2, d=2, e=3)
    assert rank_intervals(tests, dict(e=.2, a=.9, b=.8, c=.7, d=.6), level=.015).rank_high.tolist() == [4, 5, 5, 5, 5]

def test_who_nobody_is_shown_to_be_better_than_comes_first():
    "b has the lower score, from few texts, and nobody beats it; c has the higher and is beaten by a."
    table = rank_intervals(made(('a', 'c', .1, .01), ('a', 'b', .4, .3), ('b', 'c', -.3, .4)), dict(a=.9, c=.8, b=.5))
    assert table.evaluator.tolist() == ['a', 'b', 'c'] and table.rank_low.tolist() == [1, 1, 2]

def test_without_a_test_everybody_is_anywhere():
    table = rank_intervals(made(), dict(a=1., b=0.))
    assert table[['rank_low', 'rank_high']].values.tolist() == [[1, 2]]*2 and set(table.place) == {1}
    assert rank_words(1, 2, 2) == 'rank 1 to 2 of 2'
    with pytest.raises(BadInput, match="lacks the columns 'second'"): rank_intervals(pd.DataFrame(dict(first=[1])), {})

def test_the_groups_of_several_benchmarks_together():
    "The mean of three differences, its error and Satterthwaite's degrees of freedom, from the groups themselves."
    rng = np.random.default_rng(0)
    strata = [rng.normal(.2, s, n) for s, n in ((.1, 6), (.3, 12), (.2, 30))]
    rows = [dict(first='a', second='b', difference=d.mean(), error=scipy.stats.sem(d), df=len(d) - 1., groups=len(d),
                 p=.5, ci_low=-1., ci_high=1.) for d in strata]
    rows[1] |= dict(first='b', second='a', difference=-rows[1]['difference']) # the same, named the other way
    row, = over_benchmarks(pd.DataFrame(rows)).itertuples()
    variances = np.array([d.var(ddof=1)/len(d) for d in strata])
    df = variances.sum()**2/np.sum(variances**2/(np.array([6, 12, 30]) - 1))
    mean, error = np.mean([d.mean() for d in strata]), np.sqrt(variances.sum())/3
    assert (row.difference, row.p) == (pytest.approx(mean), pytest.approx(2*scipy.stats.t.sf(mean/error, df)))
    half = scipy.stats.t.isf(.025, df)*error
    assert (row.ci_low, row.ci_high, row.benchmarks, row.groups) == (
        pytest.approx(mean - half), pytest.approx(mean + half), 3, 48)

def test_one_group_tells_nothing_and_no_difference_is_none():
    one = pd.DataFrame([dict(first='a', second='b', difference=1., error=None, df=None, groups=1, p=None,
                             ci_low=None, ci_high=None)])
    assert over_benchmarks(one).empty
    same = pd.DataFrame([dict(first='a', second='b', difference=0., error=0., df=5., groups=6, p=1., ci_low=0.,
                              ci_high=0.)]*2)
    assert over_benchmarks(same)[['difference', 'p', 'q']].values.tolist() == [[0, 1, 1]]

def test_a_benchmark_of_hardly_more_than_one_group_says_little_and_no_less():
    """Its groups all say .4, but one holds nearly all texts: p = 1. Then its error is 1, the most that one in -1..1 can
    have, and not some multiple of .4 that would drown the other benchmark, which has .2 with an error of .05."""
    rows = [dict(first='a', second='b', difference=.4, error=0., df=1., groups=2, p=1., ci_low=-1., ci_high=1.),
            dict(first='a', second='b', difference=.2, error=.05, df=20., groups=21, p=.001, ci_low=.1, ci_high=.3)]
    row, = over_benchmarks(pd.DataFrame(rows)).itertuples()
    error = np.sqrt(1 + .05**2)/2
    df = (1 + .05**2)**2/(1 + .05**4/20)
    assert row.difference == pytest.approx(.3) and row.p == pytest.approx(2*scipy.stats.t.sf(.3/error, df))

def test_the_hardest_floor_counts():
    """x is .3 and .1 ahead (two-sided .01 and .2, so .005 and .1), y behind one of them by .1 at .2 (so .9). Benjamini
    and Hochberg of .1 and .9: .2 and .9."""
    tests = pd.DataFrame([('x', 'f', .3, .01), ('g', 'x', -.1, .2), ('f', 'y', .1, .2), ('y', 'g', .4, .001),
                          ('f', 'g', .2, .01), ('x', 'y', .1, .3)], columns=['first', 'second', 'difference', 'p'])
    table = against_floors(tests, ('f', 'g')).set_index('evaluator')
    assert table.hardest_floor.to_dict() == dict(x='g', y='f') and table.over_floor.to_dict() == dict(x=.1, y=-.1)
    assert table.p_floor.tolist() == pytest.approx([.1, .9]) and table.q_floor.tolist() == pytest.approx([.2, .9])
    assert against_floors(tests, ()).empty

def test_labels_that_say_nothing_give_few_findings():
    """Labels are drawn anew within groups, so no evaluator is better than another. In 200 draws of eight evaluators a
    pair is called different in about 5 %: 18 or more have a chance below 1 %."""
    rng, found = np.random.default_rng(3), 0
    for _ in range(200):
        examples = [Example(f'{g}/{i}', target='x', truth=float(t), group=str(g))
                    for g in range(16) for i, t in enumerate(rng.permutation([0, 0, 1, 1]))]
        common = rng.normal(size=64) # evaluators agree in part
        values = {f'e{k}': {e.id: x for e, x in zip(examples, common + rng.normal(size=64))} for k in range(8)}
        found += (corrected(contest(examples).all_pairs(values)).q < .05).any()
    assert found <= 17, found

def test_all_of_thousands_of_groups_on_several_benchmarks():
    "Each of 2,000 groups says the same on both: 2^-1999 is 0 in the machine, and so is p; it is not 1."
    texts = [Example(f'{v}{g}', target='x', truth=v, group=str(g)) for g in range(2000) for v in ('bad', 'good')]
    right = {e.id: float(e.truth == 'good') for e in texts}
    tests = contest(texts, 'good').all_pairs(dict(right=right, wrong={i: -x for i, x in right.items()}))
    row, = over_benchmarks(pd.concat([tests.assign(benchmark=b) for b in 'xy'])).itertuples()
    assert row.difference == 1 and row.p < 1e-100 and row.ci_low == 1

def test_who_was_tested_has_a_score():
    for pair in (('a', 'z'), ('z', 'a')):
        with pytest.raises(BadInput, match="'z' was tested, but has no score"):
            rank_intervals(made((*pair, .5, .01)), dict(a=.5, b=.4))

@pytest.mark.parametrize('seed', range(8))
def test_of_one_benchmark_interval_and_p_are_its_own(seed):
    "Else a Wilson interval's p would stand beside a plain interval, and one could say what the other does not."
    rng = np.random.default_rng(seed)
    texts = [Example(f'{v}{g}', target='x', truth=v, group=str(g)) for g in range(11) for v in ('bad', 'good')]
    tests = contest(texts, 'good').all_pairs({k: {e.id: float(rng.integers(0, 3)) for e in texts} for k in 'abc'})
    names = ['first', 'second', 'difference', 'ci_low', 'ci_high', 'p']
    pd.testing.assert_frame_equal(over_benchmarks(tests)[names], tests[names])
