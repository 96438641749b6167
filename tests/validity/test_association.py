"validity.association against scipy, statsmodels and enumeration."
import itertools, math

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.api as sm

from factlib.core.records import BadInput
from factlib.validity.association import COEFFICIENTS, correlation_test, kendall, partial, pearson, spearman
from factlib.validity.intervals import interval

THREE = dict(pearson=pearson, spearman=spearman, kendall=kendall)
SCIPY = dict(pearson=scipy.stats.pearsonr, spearman=scipy.stats.spearmanr, kendall=scipy.stats.kendalltau)
close = lambda a, b: math.isclose(a, b, rel_tol=1e-10, abs_tol=1e-10)


def columns(seed, n=40, k=2, missing=.15):
    "k related columns of 5-point scores with gaps."
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n)
    return [[None if rng.random() < missing else float(v)
             for v in np.clip(np.round(3 + common + rng.normal(size=n)), 1, 5)] for _ in range(k)]


def tandem(*cols): return np.array([row for row in zip(*cols) if None not in row], float).T


@pytest.mark.parametrize('kind', THREE)
@pytest.mark.parametrize('seed', range(8))
def test_is_scipys(kind, seed):
    x, y = columns(seed, n=[6, 15, 40, 200][seed % 4])
    a, b = tandem(x, y)
    r, s = THREE[kind](x, y), SCIPY[kind](a, b)
    assert close(r.estimate, s.statistic) and (r.n, r.asked) == (len(a), len(x))
    # With ties no p below this can come from the n! orders of n items (Kendall's knows its ties).
    orders = max(math.prod(math.factorial(k) for k in np.unique(c, return_counts=True)[1]) for c in (a, b))
    p = s.pvalue if kind == 'kendall' else max(s.pvalue, min(1, 2*orders/math.factorial(len(a))))
    assert close(r.p, p) if (p < .05) == (not r.ci[0] <= 0 <= r.ci[1]) else p < .05 <= r.p < .1
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 20))
    assert close(THREE[kind](x, y).p, SCIPY[kind](x, y).pvalue)      # without ties: Kendall's exact p


def test_intervals():
    x, y = columns(1, 100, missing=0)
    assert np.allclose(pearson(x, y, level=.9).ci, scipy.stats.pearsonr(x, y).confidence_interval(.9), atol=1e-10)
    rho, tau = spearman(x, y), kendall(x, y)
    half = lambda r: (np.arctanh(r.ci[1]) - np.arctanh(r.ci[0]))/2/1.959963984540054
    assert close(half(rho)**2, (1 + rho.estimate**2/2)/97) and close(half(tau)**2, .437/96)
    # Items left out one by one, which know nothing of z, come out close.
    for kind in THREE:
        assert np.allclose(THREE[kind](x, y).ci, THREE[kind](x, y, groups=range(100)).ci, atol=.06)


@pytest.mark.parametrize('kind', THREE)
def test_invariance(kind):
    x, y = tandem(*columns(2))
    r = THREE[kind](x, y).estimate
    for a, b in ((x*1e99, y), (x*1e-300, y*1e-310), (-x, -y), (y, x)):
        assert math.isclose(THREE[kind](a, b).estimate, r, rel_tol=1e-10)
    assert math.isclose(THREE[kind](x + 1e9, y).estimate, r, rel_tol=1e-10)      # whole numbers survive the offset
    assert math.isclose(THREE[kind](-x, y).estimate, -r, rel_tol=1e-10)


@pytest.mark.parametrize('kind', THREE)
def test_undefined(kind):
    f = THREE[kind]
    for x, y in (([], []), ([1], [2]), ([1, None], [2, 3]), ([1, 1, 1], [1, 2, 3]), ([1, 2], [.1, .1])):
        r = f(x, y)
        assert r.estimate is None and r.p is None and r.ci is None and r.note
        assert f(x, y, groups=range(len(x))).estimate is None
        assert f(x, y, groups=range(len(x)), per_group=True).estimate is None
    assert f([1, 2, 3, 4], [2, 4, 6, 8]).estimate == pytest.approx(1, abs=1e-15)
    assert f([1, 2, 3, 4, 5], [2, 4, 6, 8, 10]).ci is None
    assert f([1, 2], [3, 4]).estimate == pytest.approx(1, abs=1e-15)
    for bad in (lambda: f([1, 2], [1]), lambda: f([1, 2], [1, 2], per_group=True),
                lambda: f([1, 2], [1, 2], level=2), lambda: f(['a'], [1])):
        with pytest.raises(BadInput): bad()


def test_perfect_rank_order_is_not_certainty():
    "The t approximation would say p = 0; of 3! orders two agree this well."
    assert close(spearman([1, 2, 3], [1, 5, 6]).p, 2/6) and close(spearman([1, 2, 3, 4], [9, 7, 2, 1]).p, 2/24)


@pytest.mark.parametrize('kind', THREE)
def test_pooled_by_groups(kind):
    x, y = columns(3, 60)
    groups = list(range(12))*5
    r = THREE[kind](x, y, groups=groups)
    oracle = interval(lambda a, b: SCIPY[kind](a, b).statistic, x, y, groups=groups, limits=(-1, 1))
    assert np.allclose(r.ci, oracle.ci, atol=1e-10) and -1 < r.low < r.high < 1
    assert close(r.estimate, THREE[kind](x, y).estimate) and r.groups == 12


@pytest.mark.parametrize('kind', THREE)
def test_per_group(kind):
    x, y = columns(5, 100)
    x[:5] = [3.]*5                                      # one group without variation
    groups = np.repeat(range(20), 5)
    values = []
    for g in range(20):
        a, b = tandem(*[[c[i] for i in range(100) if groups[i] == g] for c in (x, y)])
        if len(a) > 1 and np.ptp(a) and np.ptp(b): values.append(SCIPY[kind](a, b).statistic)
    r = THREE[kind](x, y, groups=groups, per_group=True)
    assert close(r.estimate, np.mean(values)) and r.note.startswith(f'{20 - len(values)} of 20 groups')
    assert len(values) < 20
    # The mean's standard error and t are scipy's; within -1 and 1 the ends are where the score of a true value is t.
    u, df = (np.mean(values) + 1)/2, len(values) - 1
    n, t = u*(1 - u)/(scipy.stats.sem(values)/2)**2, scipy.stats.t.isf(.025, df)
    for end in r.ci:
        v = (end + 1)/2
        assert abs(u - v)/math.sqrt(v*(1 - v)/n) == pytest.approx(t)
    assert close(r.p, 2*scipy.stats.t.sf(abs(u - .5)/math.sqrt(.25/n), df))


def test_per_group_all_alike():
    r = kendall([3, 2, 1]*4, [0, 1, 2]*4, groups=np.repeat(range(4), 3), per_group=True)
    # If more than 1 - .05^(1/4) of all questions were ordered the other way, four in a row would be a surprise.
    assert r.estimate == -1 and r.kind == 'bound' and r.one_sided
    assert np.allclose(r.ci, (-1, -1 + 2*(1 - .05**.25))) and close(r.p, .5**4)


@pytest.mark.parametrize('k', [1, 2, 3])
@pytest.mark.parametrize('seed', range(4))
def test_partial_is_regression(seed, k):
    "The t of a coefficient in a multiple regression is the t of the partial correlation."
    x, y, *controls = columns(seed, 60, 2 + k)
    a, b, *c = tandem(x, y, *controls)
    fit = sm.OLS(b, sm.add_constant(np.column_stack([a, *c]))).fit()
    r = partial(x, y, controls if k > 1 else controls[0])
    assert math.isclose(r.statistic, fit.tvalues[1], rel_tol=1e-9) and math.isclose(r.p, fit.pvalues[1], rel_tol=1e-8)
    assert r.df == fit.df_resid
    assert close(r.estimate, r.statistic/math.sqrt(r.statistic**2 + r.df))
    assert partial(x, y, pd.DataFrame({i: v for i, v in enumerate(controls)}, dtype=float)) == partial(x, y, controls)
    # redundant controls
    assert partial(x, y, [v for v in controls]*2).estimate == pytest.approx(r.estimate, abs=1e-10)
    huge = [[None if v is None else 1e9 + 1e3*v for v in column] for column in controls]
    assert partial(x, y, huge).estimate == pytest.approx(r.estimate, abs=1e-9)


def test_partial_edges():
    assert partial([1, 2, 3, 5], [2, 1, 4, 3],
                   [7, 7, 7, 7]).estimate == pytest.approx(pearson([1, 2, 3, 5], [2, 1, 4, 3]).estimate)
    assert partial([1, 2, 3], [2, 1, 3], [1, 1, 2]).estimate is None         # one degree of freedom: always -1 or 1
    assert partial([1, 2, 3, 4], [2, 1, 4, 4], [3, 5, 7, 9]).estimate is None         # x is a line in the control
    assert partial([], [], []).estimate is None
    for bad in (lambda: partial([1, 2], [1, 2], [1]), lambda: partial([1, 2], [1, 2], 'ab'),
                lambda: partial([1], [1], [[1], ['a']])):
        with pytest.raises(BadInput): bad()
    x, y, z = columns(0, 60, 3)
    grouped = partial(x, y, z, groups=range(60))
    assert grouped.estimate == pytest.approx(partial(x, y, z).estimate)
    assert np.allclose(grouped.ci, partial(x, y, z).ci, atol=.12)


@pytest.mark.parametrize('kind', THREE)
@pytest.mark.parametrize('grouped', [False, True])
def test_swaps_enumerated(kind, grouped):
    x1, x2, y = tandem(*columns(8, 8, 3, 0))
    groups = np.array([0, 0, 1, 2, 2, 3, 3, 4]) if grouped else np.arange(8)
    ranked = (lambda v: scipy.stats.rankdata(v)) if kind == 'spearman' else (lambda v: v)
    z1, z2 = scipy.stats.zscore(ranked(x1)), scipy.stats.zscore(ranked(x2))
    delta = lambda a, b: SCIPY[kind](a, y).statistic - SCIPY[kind](b, y).statistic
    seen, hits, total = abs(delta(z1, z2)), 0, 0
    for swap in itertools.product([False, True], repeat=groups.max() + 1):
        mask = np.array(swap)[groups]
        hits += abs(delta(np.where(mask, z2, z1), np.where(mask, z1, z2))) >= seen - 1e-9
        total += 1
    r = correlation_test(x1, x2, y, groups if grouped else None, 'permutation', kind, n_resamples=300)
    assert r.p == hits/total


def test_swaps_sampled():
    x1, x2, y = columns(1, 60, 3)
    swaps = dict(method='permutation', n_resamples=499)
    r = correlation_test(x1, x2, y, **swaps)
    assert r == correlation_test(x1, x2, y, **swaps) and correlation_test(x2, x1, y, **swaps).p == r.p
    assert r.p == correlation_test(x1, x2, y, groups=range(60), **swaps).p
    for method in ('williams', 't'): assert r.p == pytest.approx(correlation_test(x1, x2, y, method=method).p, abs=.05)
    scaled = correlation_test([None if v is None else 100*v for v in x1], x2, y, **swaps)
    assert scaled.p == r.p and scaled.estimate == pytest.approx(r.estimate)


def test_level_of_the_tests():
    "Two equally noisy views of the truth: p below .1 about one time in ten."
    rng, rejected = np.random.default_rng(0), dict(t=0, permutation=0, williams=0)
    for _ in range(80):
        y = rng.normal(size=25)
        x1, x2 = y + rng.normal(size=25), y + rng.normal(size=25)
        for method in rejected: rejected[method] += correlation_test(x1, x2, y, method=method, n_resamples=40).p < .1
    assert all(1 <= n <= 17 for n in rejected.values())


def by_hand(r12, r13, r23, n):
    "Williams' t as Steiger (1980) and the R package psych print it."
    k = 1 - r12**2 - r13**2 - r23**2 + 2*r12*r13*r23
    return (r12 - r13)*math.sqrt((n - 1)*(1 + r23)/(2*k*(n - 1)/(n - 3) + (r12 + r13)**2/4*(1 - r23)**3))


def test_williams():
    assert round(by_hand(.5, .4, .1, 103), 2) == .89      # Steiger's worked case
    x1, x2, y = columns(4, 50, 3)
    a, b, c = tandem(x1, x2, y)
    R = np.corrcoef([a, b, c])
    r = correlation_test(x1, x2, y, method='williams', n_resamples=20)
    assert close(r.statistic, by_hand(R[0, 2], R[1, 2], R[0, 1], len(a))) and r.df == len(a) - 3 and r.n == len(a)
    assert r.asked == 50
    assert close(r.p, 2*scipy.stats.t.sf(abs(r.statistic), r.df))


def test_comparison_edges():
    same = [1, 2, 3, 5, 4]
    assert correlation_test(same, same, [2, 1, 3, 4, 5]).p == 1
    for method in ('t', 'permutation', 'williams'):
        assert correlation_test([1, 1, 1], [1, 2, 3], [1, 2, 3], method=method).estimate is None
        assert correlation_test([], [], [], method=method).estimate is None
    assert correlation_test([1, 2, 3], [3, 1, 2], [1, 3, 2], method='williams').p is None
    for bad in (dict(method='williams', groups=[1, 2, 3]), dict(method='williams', kind='kendall'),
                dict(method='z'), dict(kind='tau'), dict(n_resamples=0), dict(groups=[1])):
        with pytest.raises(BadInput): correlation_test([1, 2, 3], [3, 1, 2], [1, 3, 2], **bad)

# Coefficients within groups

def judged_questions(seed, n=30):
    "Five answers to each question, scored by two judges with ties."
    rng = np.random.default_rng(seed)
    y = np.tile(np.arange(5.), n)
    a, b = (np.round(-y + rng.normal(0, s, 5*n)) for s in (1, 2))
    a[:5] = 3 # a judge that says the same of all
    return a, b, y, np.repeat(np.arange(n), 5)

@pytest.mark.parametrize('seed', range(3))
def test_difference_within_groups_is_that_of_scipys_taus(seed):
    a, b, y, groups = judged_questions(seed)
    tau = lambda x, g: scipy.stats.kendalltau(x[groups == g], y[groups == g]).statistic
    d = np.array([tau(a, g) - tau(b, g) for g in range(30)])
    known = d[~np.isnan(d)]
    r = correlation_test(a, b, y, groups, kind='kendall', per_group=True)
    assert r.estimate == pytest.approx(known.mean(), abs=1e-12) and r.groups == len(known) < 30
    assert 'lack a coefficient' in r.note
    # p is of the score, which differs a little from t of the mean.
    assert r.p == pytest.approx(scipy.stats.ttest_1samp(known, 0).pvalue, abs=.02)
    flips = correlation_test(a, b, y, groups, 'permutation', 'kendall', per_group=True, n_resamples=9999)
    oracle = scipy.stats.permutation_test((known,), np.mean, permutation_type='samples',
                                          n_resamples=9999, rng=np.random.default_rng(1)).pvalue
    assert abs(flips.p - oracle) < .02 and 'sign flips' in flips.definition
    half = scipy.stats.t.isf(.025, len(known) - 1)*scipy.stats.sem(known)
    assert abs(r.ci[0] - known.mean() + half) < .02 and abs(r.ci[1] - known.mean() - half) < .02

def test_undefined_groups_dropped_or_zero():
    a, _, y, groups = judged_questions(0)
    taus = np.array([scipy.stats.kendalltau(a[groups == g], y[groups == g]).statistic for g in range(30)])
    dropped, zero = (kendall(a, y, groups, True, undefined=u) for u in ('drop', 'zero'))
    assert np.isnan(taus).sum() >= 1
    assert dropped.estimate == pytest.approx(np.nanmean(taus), abs=1e-12)
    assert zero.estimate == pytest.approx(np.nan_to_num(taus).mean(), abs=1e-12)
    assert 'counted as 0' in zero.definition and not zero.note
    both = correlation_test(a, a, y, groups, kind='kendall', per_group=True, undefined='zero')
    assert both.estimate == 0 and both.p == 1

def test_nothing_to_order_is_left_out_in_any_case():
    "One item, or a truth that does not vary."
    r = kendall([1, 2, 3, 4, 4], [0, 1, 5, 5, 0], list('aabbc'), True, undefined='zero')
    assert r.estimate == 1 and r.note.startswith('2 of 3 groups')

def test_within_groups_bad_input():
    for call in (lambda: correlation_test([1, 2], [2, 1], [1, 2], per_group=True),
                 lambda: kendall([1, 2], [1, 2], undefined='zero'),
                 lambda: kendall([1, 2], [1, 2], [0, 0], True, undefined='nan'),
                 lambda: correlation_test([1, 2], [2, 1], [1, 2], [0, 0], undefined='zero')):
        with pytest.raises(BadInput): call()
    nothing = correlation_test([1, 1], [1, 2], [1, 2], [0, 0], per_group=True)
    assert nothing.estimate is None and nothing.p is None
