"validity.base against explicit loops, enumeration and statsmodels."
import itertools, json, math

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from statsmodels.stats.multitest import multipletests

from factlib.core.records import Absence, BadInput
from factlib.validity.base import Result, benjamini_hochberg, benjamini_yekutieli, complete, corrected, critical_t
from factlib.validity.base import encode, group_codes, holm, is_constant, numbers
from factlib.validity.resampling import bootstrap, flips, resamples, sign_flip
from factlib.validity.bounds import bounds_mean, bounds_paired


@pytest.mark.parametrize('bad', [dict(estimate=math.nan), dict(estimate=1, p=math.inf),
                                 dict(estimate=1, ci=(0, math.nan)), dict(estimate=1, ci=(2, 1)),
                                 dict(estimate=1, p=1.1), dict(estimate=1, n=3, asked=2), dict(estimate=1, ci=(1,))])
def test_result_refuses(bad):
    with pytest.raises(BadInput): Result(**bad)


def test_result_travels():
    r = Result(np.float64(1.5), p=np.float32(.5), ci=(np.float64(1), np.float64(2)), n=3)
    assert json.loads(json.dumps(r.to_dict()))['ci'] == [1, 2] and r.asked == 3
    assert str(Result(None, note='no items')) == 'undefined, n = 0/0 (no items)'
    assert 'z = 2' in str(Result(1, 2)) and 't(4) = 2' in str(Result(1, 2, df=4))
    assert 'in 7 groups' in str(Result(1, groups=7))
    with pytest.raises(BadInput): float(Result(None))


def test_a_bound_is_said_in_words():
    assert str(Result(1, ci=(.5, 1), n=3, kind='bound')) == '1 (at least 0.5, one-sided), n = 3/3'
    assert str(Result(0, ci=(0, .5), n=3, kind='bound')) == '0 (at most 0.5, one-sided), n = 3/3'
    assert '0 [-0.5, 0.5]' in str(Result(0, ci=(-.5, .5), kind='bound')) # both sides
    assert '1 [0.5, 1]' in str(Result(1, ci=(.5, 1))) and not Result(1, ci=(.5, 1), kind='t').one_sided
    with pytest.raises(BadInput, match='kind'): Result(1, kind='z')


@pytest.mark.parametrize('bad', ['12', {1: 2}, {1, 2}, 3, None, [[1]],
                                 np.ones((2, 2)), pd.DataFrame({'a': [1]}), ['1'], [1j], [np.complex64(1)], [math.inf],
                                 [10**400], [1e101], iter([1]), [object()], [pd.Timestamp(0)]])
def test_numbers_refuses(bad):
    with pytest.raises(BadInput): numbers(bad)


@pytest.mark.parametrize('x', [[1, None, 2], (1, math.nan, 2), np.array([1, np.nan, 2]),
                               pd.Series([1, pd.NA, 2], dtype='Int64'), pd.Series([1, None, 2]),
                               [1, Absence.looped, 2], [1, pd.NaT, 2], [True, None, 2]])
def test_numbers_missing(x): assert np.array_equal(numbers(x), [1, np.nan, 2], equal_nan=True)


def test_complete_drops_in_tandem():
    (a, b), codes, asked = complete([None, 2, 3, 4], [1, 2, None, 4], groups=[('x', 1), 'y', 'y', 'z'])
    assert a.tolist() == b.tolist() == [2, 4] and codes.tolist() == [0, 1] and asked == 4
    with pytest.raises(BadInput): complete([1], [1, 2])
    with pytest.raises(BadInput): complete([1, 2], groups=['a'])
    with pytest.raises(BadInput): complete([1, 2], groups=['a', math.nan])
    with pytest.raises(BadInput): group_codes([['a'], ['b']], 2)
    with pytest.raises(BadInput): encode(['a', 'b'], labels=['a'])


@pytest.mark.parametrize('x,constant', [([], True), ([3], True), ([0, 0], True), ([.1 + .2, .3], True),
                                        ([1e9, 1e9 + .01], False), ([0, 5e-324], False), ([-1, 1], False)])
def test_is_constant(x, constant): assert is_constant(np.array(x, float)) is constant


def test_bootstrap_equals_a_plain_loop():
    rng = np.random.default_rng(1)
    x, groups = rng.normal(size=60), rng.integers(0, 12, 60)
    got = bootstrap(np.median, x, groups=groups, n_resamples=300, seed=5, method='percentile')
    # The same draws by hand: groups in order of appearance, as many as there are, with replacement; the rows of each in
    # their order.
    names, draw, medians = list(dict.fromkeys(groups)), np.random.default_rng(5), []
    for _ in range(300):
        chosen = draw.integers(0, len(names), len(names))
        medians.append(np.median(np.concatenate([x[groups == names[g]] for g in chosen])))
    # The interval is what p does not reject: twice the smaller tail, the data counted as one more draw.
    tail = lambda v: min(sum(m <= v + 1e-12 for m in medians), sum(m >= v - 1e-12 for m in medians))
    held = [v for v in medians if 2*(tail(v) + 1)/301 >= .05]
    assert got.estimate == np.median(x) and np.allclose(got.ci, (min(held), max(held)), rtol=0, atol=1e-12)
    assert np.allclose(got.ci, np.quantile(medians, [.025, .975]), rtol=0, atol=.1)
    assert got.groups == len(names) and got.n == 60


def test_resamples_are_uniform_over_groups():
    codes = np.array([0, 0, 0, 1, 2, 2])
    counts = np.mean([np.bincount(rows, minlength=6) for rows in resamples(6, codes, 4000)], axis=0)
    assert np.allclose(counts, 1, atol=.06)     # 4 standard errors of about .014


def test_groups_of_one_are_items():
    x = [3, 1, None, 4, 1, 5]
    for method in ('percentile', 'bca'):
        a, b = bootstrap(np.mean, x, method=method), bootstrap(np.mean, x, groups=range(6), method=method)
        assert a.ci == b.ci and (a.groups, b.groups) == (None, 5)


def test_bca_against_scipy():
    x = np.random.default_rng(0).lognormal(size=40)
    ours = bootstrap(np.mean, x, method='bca', n_resamples=10_000)
    scipys = scipy.stats.bootstrap((x,), np.mean, method='BCa', n_resamples=10_000,
                                   rng=np.random.default_rng(1)).confidence_interval
    assert np.allclose(ours.ci, scipys, atol=.03)
    assert not np.allclose(ours.ci, bootstrap(np.mean, x, n_resamples=10_000, method='percentile').ci, atol=.03)


def test_cluster_coverage():
    """100 studies of 30 documents: 95% intervals for documents cover, those for items do not. 88 is 3.2 binomial errors
    below 95."""
    rng, covered = np.random.default_rng(7), {True: 0, False: 0}
    documents = np.repeat(np.arange(30), 5)
    for _ in range(100):
        x = rng.normal(size=30)[documents] + .5*rng.normal(size=150)
        for clustered in covered:
            low, high = bootstrap(np.mean, x, groups=documents if clustered else None).ci
            covered[clustered] += low <= 0 <= high
    assert 88 <= covered[True] <= 100 and covered[False] < 75


def test_bootstrap_says_what_it_lacks():
    share = lambda x: x[x > 0].mean() if (x > 0).any() else None
    assert bootstrap(share, [0, 0]).estimate is None
    mostly = bootstrap(share, [0, 0, 0, 1, 2], n_resamples=5000, method='percentile')
    undefined = int(mostly.note.split()[2])
    assert 'left out' in mostly.note and .8*(3/5)**5 < undefined/5000 < 1.25*(3/5)**5
    # 6 of 27 draws
    assert bootstrap(lambda x: share(x) if len(set(x)) == 3 else None,
                     [0, 1, 2], n_resamples=500, method='percentile').ci is None
    for method in ('auto', 'percentile', 'bca'):
        assert bootstrap(np.mean, [1, 2], groups=['a', 'a'], method=method).note.startswith('only one group')
        assert bootstrap(np.mean, [], method=method).note == 'no items'
        assert bootstrap(np.mean, [2, 2, 2], method=method).ci is None


def test_bootstrap_p():
    x = np.random.default_rng(0).normal(.1, 1, 100)
    r = bootstrap(np.mean, x, null=0, n_resamples=5000, method='percentile')
    assert bootstrap(np.mean, [1, 2, 3], null=0, method='percentile').p is None      # three items can't show anything
    assert .01 < r.p == pytest.approx(scipy.stats.ttest_1samp(x, 0).pvalue, abs=.015)
    assert bootstrap(np.mean, x + 9, null=0, n_resamples=99, method='percentile').p == 2/100


@pytest.mark.parametrize('options', [dict(level=1), dict(level=0), dict(n_resamples=-1),
                                     dict(n_resamples=1.5), dict(seed=-1), dict(method='basic')])
def test_bootstrap_options(options):
    with pytest.raises(BadInput): bootstrap(np.mean, [1, 2, 3], **options)


@pytest.mark.parametrize('alternative', ['two-sided', 'greater', 'less'])
@pytest.mark.parametrize('seed', range(5))
def test_sign_flip_enumerates(alternative, seed):
    sums = np.random.default_rng(seed).integers(-3, 4, 7)/10     # tenths: ties that floating point would break
    totals = [sum(s*round(10*v) for s, v in zip(signs, sums)) for signs in itertools.product([1, -1], repeat=7)]
    seen = round(10*sums.sum())
    extreme = sum(dict(greater=t >= seen, less=t <= seen)[alternative]
                  if alternative != 'two-sided' else abs(t) >= abs(seen) for t in totals)
    assert sign_flip(sums, alternative=alternative) == (extreme/128, True)


def test_flips():
    exact, blocks = flips(3, 8)
    assert exact and {tuple(r) for b in blocks for r in b} == set(itertools.product([False, True], repeat=3))
    exact, blocks = flips(3000, 1500)
    blocks = list(blocks)
    assert not exact and len(blocks) > 1 and sum(map(len, blocks)) == 1500
    assert sign_flip(np.ones(60), n_resamples=99) == (1/100, False)      # the data count themselves
    approximate, full = sign_flip(np.arange(1., 11), 1000)[0], sign_flip(np.arange(1., 11), 1024)[0]
    assert approximate != full and math.isclose(approximate, full, abs_tol=.01)


def test_bounds_by_trying_everything():
    ends = lambda x: [[v] if v is not None else [1, 3, 5] for v in x]
    a, b = [2, None, 4, None], [1, 3, None, None]
    means = [np.mean(np.subtract(x, y)) for x in itertools.product(*ends(a)) for y in itertools.product(*ends(b))]
    assert bounds_paired(a, b, 1, 5).ci == (min(means), max(means)) and bounds_paired(a, b, 1, 5).estimate == 1
    means = [np.mean(x) for x in itertools.product(*ends(a))]
    assert bounds_mean(a, 1, 5).ci == (min(means), max(means))
    assert bounds_mean([None], 0, 1).ci == (0, 1) and bounds_mean([None], 0, 1).estimate is None
    assert bounds_mean([], 0, 1).ci is None
    for bad in (lambda: bounds_mean([6], 1, 5), lambda: bounds_mean([1], 5, 1),
                lambda: bounds_paired([1], [1, 2], 1, 5)):
        with pytest.raises(BadInput): bad()


@pytest.mark.parametrize('seed', range(8))
def test_holm(seed):
    rng = np.random.default_rng(seed)
    ps = [None if rng.random() < .3 else v for v in rng.integers(0, 12, 2*seed)/100]
    known, got = [p for p in ps if p is not None], holm(ps)
    assert [p is None for p in got] == [p is None for p in ps]
    # By the definition: the i-th smallest of m times m - i, made monotone, cut at 1.
    steps = np.minimum(1, np.maximum.accumulate([p*(len(known) - i) for i, p in enumerate(sorted(known))]))
    assert np.allclose(sorted(p for p in got if p is not None), steps, atol=1e-12)


def test_critical_t():
    # Table values: t(10) .975 = 2.228, t(29) .95 = 1.699, t(64) .95 = 1.669.
    assert round(critical_t(10), 3) == 2.228 and round(critical_t(29, alternative='greater'), 3) == 1.699
    assert round(critical_t(64, alternative='less'), 3) == -1.669
    for bad in (lambda: critical_t(0), lambda: critical_t(5, 1), lambda: critical_t(5, alternative='larger'),
                lambda: holm([2])):
        with pytest.raises(BadInput): bad()


def test_benjamini_yekutieli_by_scipy():
    ps = np.random.default_rng(1).random(12)**2
    got = benjamini_yekutieli([*ps, None])
    assert np.allclose(got[:-1], scipy.stats.false_discovery_control(ps, method='by')) and got[-1] is None


def test_benjamini_hochberg_by_scipy():
    ps = np.random.default_rng(0).uniform(0, .2, 20)
    got = benjamini_hochberg([None, *ps])
    assert got[0] is None and got[1:] == pytest.approx(scipy.stats.false_discovery_control(ps))
    with pytest.raises(BadInput, match='between 0 and 1'): benjamini_hochberg([2])

def test_corrected_tables_by_hand_and_by_statsmodels():
    """Benjamini and Hochberg of .01, .02, .04: 3 x .01, 3/2 x .02, .04. Holm of the same: 3 x .01, 2 x .02, .04. Two
    families: each for itself, and what has no p is no test."""
    table = pd.DataFrame(dict(benchmark=list('aabba'), p=[.04, .01, .5, None, .02]), index=[9, 7, 5, 3, 1])
    found = corrected(table, ['benchmark'])
    assert found.q.tolist()[:3] == pytest.approx([.04, .03, .5]) and found.q.iloc[4] == pytest.approx(.03)
    assert pd.isna(found.q.iloc[3]) and found.family.tolist() == [3, 3, 1, 1, 3]
    assert list(found.index) == [9, 7, 5, 3, 1]
    by_holm = corrected(table, ['benchmark'], name='p_holm', method=holm)
    assert by_holm.p_holm.iloc[[0, 1, 4]].tolist() == pytest.approx([.04, .03, .04]) # never below the one before
    rng = np.random.default_rng(0)
    many = pd.DataFrame(dict(part=rng.integers(0, 4, 60), p=rng.uniform(size=60)**2))
    for method, name in ((benjamini_hochberg, 'fdr_bh'), (holm, 'holm')):
        ours = corrected(many, ['part'], method=method)
        for _, own in ours.groupby('part'):
            assert np.allclose(own.q, multipletests(own.p, method=name)[1]) and set(own.family) == {len(own)}
    assert corrected(table[:0]).columns.tolist() == ['benchmark', 'p', 'q', 'family']
