"validity.detection against scikit-learn, brute force and enumeration."
import itertools, math, warnings

import numpy as np
import pytest
import scipy.stats
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, roc_auc_score
from statsmodels.stats.proportion import proportion_confint

from factlib.core.records import BadInput
from factlib.validity.bounds import bounds_mean
from factlib.validity.detection import accuracy, auc, auc_ci, auc_test, balanced_accuracy, bounds_auc, macro_f1
from factlib.validity.detection import mean_auc_test, right

close = lambda a, b: math.isclose(a, b, rel_tol=0, abs_tol=1e-10)


def ties_and_gaps(rng, n, missing=.2):
    "Scores from 1 to 5 by halves, some missing."
    return [None if rng.random() < missing else v for v in rng.integers(2, 11, n)/2]


def known(x): return np.array([v for v in x if v is not None], float)


@pytest.mark.parametrize('seed', range(20))
def test_auc_is_sklearns(seed):
    rng = np.random.default_rng(seed)
    pos, neg = ties_and_gaps(rng, 30), ties_and_gaps(rng, 50)
    x, y = known(pos), known(neg)
    r = auc(pos, neg)
    assert close(r.estimate, roc_auc_score([1]*len(x) + [0]*len(y), np.r_[x, y]))
    assert (r.n, r.asked) == (len(x) + len(y), 80)
    assert close(auc_ci(pos, neg).estimate, r.estimate)
    assert close(auc_ci(pos, neg, 'cluster', range(80)).estimate, r.estimate)


def test_auc_of_offsets_and_extremes():
    pos, neg = [2, 3, 3, 9], [1, 3, 4]
    expected = auc(pos, neg).estimate
    assert auc(np.array(pos)*5e-324,
               np.array(neg)*5e-324).estimate == expected == auc(np.array(pos) + 1e9, np.array(neg) + 1e9).estimate
    assert auc(neg, pos).estimate == pytest.approx(1 - expected) and auc([1], [1]).estimate == .5


def components(pos, neg):
    "Structural components by the definition, O(n^2)."
    wins = np.array([[(p > n) + (p == n)/2 for n in neg] for p in pos])
    return wins.mean(1), wins.mean(0)


@pytest.mark.parametrize('seed', range(10))
def test_delong_by_definition(seed):
    rng = np.random.default_rng(seed)
    pos, neg = ties_and_gaps(rng, 15), ties_and_gaps(rng, 25)
    v10, v01 = components(known(pos), known(neg))
    se = math.sqrt(np.var(v10, ddof=1)/len(v10) + np.var(v01, ddof=1)/len(v01))
    r = auc_ci(pos, neg, 'delong', level=.9)
    assert close(r.statistic, (v10.mean() - .5)/se) and close(r.p, 2*scipy.stats.norm.sf(abs(r.statistic)))
    assert close(r.ci[0], max(0, v10.mean() - scipy.stats.norm.ppf(.95)*se))
    assert close(r.ci[1], min(1, v10.mean() + scipy.stats.norm.ppf(.95)*se))


@pytest.mark.parametrize('seed', range(10))
def test_delong_test_by_definition(seed):
    rng = np.random.default_rng(seed)
    pos_a, pos_b, neg_a, neg_b = (ties_and_gaps(rng, n, .1) for n in (20, 20, 30, 30))
    pos = np.array([(a, b) for a, b in zip(pos_a, pos_b) if a is not None and b is not None], float)
    neg = np.array([(a, b) for a, b in zip(neg_a, neg_b) if a is not None and b is not None], float)
    a10, a01 = components(pos[:, 0], neg[:, 0])
    b10, b01 = components(pos[:, 1], neg[:, 1])
    s10, s01 = np.cov(a10, b10), np.cov(a01, b01)      # the paper's matrices S10 and S01
    contrast = np.array([1, -1])
    se = math.sqrt(contrast @ (s10/len(pos) + s01/len(neg)) @ contrast)
    r = auc_test(pos_a, neg_a, pos_b, neg_b)
    assert close(r.estimate, a10.mean() - b10.mean()) and close(r.statistic, r.estimate/se)
    assert (r.n, r.asked) == (len(pos) + len(neg), 50)
    swapped = auc_test(pos_b, neg_b, pos_a, neg_a)
    assert close(swapped.estimate, -r.estimate) and close(swapped.p, r.p)


def stories(n):
    rng = np.random.default_rng(2)
    return rng.integers(1, 6, n).astype(float), rng.integers(1, 5, 4*n).astype(
        float), np.arange(n), np.repeat(np.arange(n), 4)


def sklearns(pos, neg): return roc_auc_score([1]*len(pos) + [0]*len(neg), np.r_[pos, neg])


@pytest.mark.parametrize('n', [12, 50])
def test_clustered_is_a_jackknife_by_brute_force(n):
    pos, neg, groups_pos, groups_neg = stories(n)
    r = auc_ci(pos, neg, 'cluster', (groups_pos, groups_neg))
    u = sklearns(pos, neg)
    without = np.array([sklearns(pos[groups_pos != g], neg[groups_neg != g]) for g in range(n)])
    variance, df = (n - 1)/n*np.sum((without - u)**2), n - 1
    # The ends are the true values v that lie t of their own errors off: (u - v)^2 = t^2 v(1 - v)/n*.
    n_star, t = u*(1 - u)/variance, scipy.stats.t.isf(.025, df)
    ends = np.sort(np.roots([1 + t*t/n_star, -2*u - t*t/n_star, u*u]))
    assert np.allclose(r.ci, ends, atol=1e-10) and r.groups == n and close(r.df, df) and r.kind == 't'
    assert close(r.statistic, (u - .5)/math.sqrt(.25/n_star)) and close(r.p, 2*scipy.stats.t.sf(abs(r.statistic), df))


def test_cluster_of_independent_items_is_like_delong():
    rng = np.random.default_rng(0)
    pos, neg = rng.normal(.5, 1, 150), rng.normal(0, 1, 150)
    a, b = auc_ci(pos, neg), auc_ci(pos, neg, 'cluster', range(300))
    assert np.allclose(a.ci, b.ci, atol=.012)
    other = pos + rng.normal(size=150), neg + rng.normal(size=150)
    a, b = auc_test(pos, neg, *other), auc_test(pos, neg, *other, groups=range(300))
    assert a.estimate == pytest.approx(b.estimate, abs=1e-12) and np.allclose(a.ci, b.ci, atol=.012)


def test_cluster_coverage_of_duplicates():
    "Every item five times: DeLong believes in five times the evidence, the groups do not."
    rng = np.random.default_rng(0)
    pos, neg = np.repeat(rng.normal(.5, 1, 40), 5), np.repeat(rng.normal(0, 1, 40), 5)
    clustered = auc_ci(pos, neg, 'cluster', np.repeat(np.arange(80), 5))
    honest = auc_ci(pos[::5], neg[::5])
    assert np.ptp(clustered.ci) == pytest.approx(np.ptp(honest.ci), rel=.15)
    assert np.ptp(auc_ci(pos, neg).ci) < .6*np.ptp(honest.ci)


@pytest.mark.parametrize('seed', range(4))
def test_mean_auc_test_by_brute_force(seed):
    "With ties; groups of two positives, of which some lack a set. Each group is left out by hand."
    rng = np.random.default_rng(seed)
    draw, sets = lambda n, plus=0: rng.integers(0, 5, n) + plus, []
    for n in (10, 6):
        groups = np.arange(n)//2
        sets.append((draw(n, 1), draw(n), draw(n), draw(n), groups, groups))
    def mean(left_out):
        kept = [(s[4] != left_out, s) for s in sets]
        return np.mean([sklearns(s[0][k], s[1][k]) - sklearns(s[2][k], s[3][k]) for k, s in kept])
    r, d = mean_auc_test(sets), mean(None)
    shares = np.array([4, 4, 4, 2, 2])/16                   # of positives, and of negatives
    df = math.sqrt(4*(1/np.sum(shares**2) - 1))
    variance = 4/5*sum((mean(g) - d)**2 for g in range(5))/4 # of (d + 1)/2
    u, t = (d + 1)/2, scipy.stats.t.isf(.025, df)
    n_star = u*(1 - u)/variance
    assert close(r.estimate, d) and (r.n, r.groups) == (32, 5) and close(r.df, df)
    assert np.allclose(r.ci, 2*np.sort(np.roots([1 + t*t/n_star, -2*u - t*t/n_star, u*u])) - 1, atol=1e-10)
    assert close(r.p, 2*scipy.stats.t.sf(abs(u - .5)/math.sqrt(.25/n_star), df))

def test_mean_auc_test_of_one_set_is_auc_test():
    rng = np.random.default_rng(0)
    pos_a, neg_a, pos_b, neg_b = (list(rng.normal(size=20) + x) for x in (1, 0, .5, 0))
    pos_a[3] = None
    groups = [i//2 for i in range(20)]
    one = mean_auc_test([(pos_a, neg_a, pos_b, neg_b, groups, groups)])
    assert one == auc_test(pos_a, neg_a, pos_b, neg_b, (groups, groups)) and (one.n, one.asked) == (39, 40)

@pytest.mark.parametrize('make', ['flat against random', 'equal', 'skewed'])
def test_mean_auc_test_keeps_its_level(make):
    """Equal mean AUCs, from scores that are alike or not at all: of 200 tests at 5 % no more than a binomial allows
    (99.9 %: 21) are significant."""
    def scores(rng, n=12):
        if make == 'flat against random': return np.zeros((5, n)), rng.normal(size=(5, n))
        # AUC 3/4 both
        if make == 'skewed':
            return rng.exponential(1, (5, n))*np.array([3, 1, 1, 1, 1])[
                :, None], rng.normal(size=(5, n)) + np.array([.674*2**.5, 0, 0, 0, 0])[:, None]
        shared, shift = rng.normal(size=(5, n))*1.5, np.array([1, 0, 0, 0, 0])[:, None]
        return shared + rng.normal(size=(5, n)) + shift, shared + rng.normal(size=(5, n)) + shift
    hits = 0
    for seed in range(200):
        a, b = scores(np.random.default_rng(seed))
        hits += mean_auc_test([(a[0], a[k], b[0], b[k], range(12), range(12)) for k in range(1, 5)]).p <= .05
    assert hits <= scipy.stats.binom.ppf(.999, 200, .05)

def test_mean_auc_test_bad_input():
    for sets, says in (([], 'no set'), ([([1], [2], [1, 2], [2], 'a', 'b')], 'same positives'),
                       ([([1], [2], [1], [2], 'a', 'bc')], 'each of these a group')):
        with pytest.raises(BadInput, match=says): mean_auc_test(sets)
    assert mean_auc_test([([1, None], [None], [1, 2], [2], 'ab', 'b')]).p is None

def test_auc_undefined():
    for r in (auc([], [1]), auc([None], [1]), auc_ci([], []), auc_ci([1], [None]), auc_test([1], [None], [1], [2])):
        assert r.estimate is None and r.note
    assert auc_ci([1], [2, 3], 'delong').ci is None
    assert auc_ci([4, 5], [1, 2], 'delong').note.startswith('no spread')
    assert auc_ci([1], [2, 3]).note.startswith('undefined without 1 of the 3 items')
    assert auc_ci([4, 5], [1, 2], 'cluster', [1, 2, 3, 4]).note
    assert auc_test([3, 2], [1, 2], [3, 2], [1, 2]).p is None


@pytest.mark.parametrize('bad', [lambda: auc_ci([1], [2], 'delong', ['a', 'b']),
                                 lambda: auc_ci([1], [2], groups=['a']), lambda: auc_ci([1], [2], 'bootstrap'),
                                 lambda: auc_ci([1, 2], [2], 'cluster', ['a', 'b']),
                                 lambda: auc_ci([1, 2], [2], 'cluster', (['a', 'b'], ['a', 'b'])),
                                 lambda: auc_test([1], [2], [1, 2], [2]),
                                 lambda: auc(['a'], [1]), lambda: auc(None, [1]), lambda: auc_ci([1], [2], level=95),
                                 lambda: bounds_auc([9], [1], 1, 5), lambda: right([1], []),
                                 lambda: accuracy([[1]], [1]), lambda: macro_f1([1, 2], [1])])
def test_bad_input(bad):
    with pytest.raises(BadInput): bad()


def test_bounds_by_trying_everything():
    pos, neg, scale = [3, None, 5], [2, None, 4, None], [1, 2, 3, 4, 5]
    fills = lambda x: itertools.product(*[[v] if v is not None else scale for v in x])
    values = [auc(p, n).estimate for p in fills(pos) for n in fills(neg)]
    r = bounds_auc(pos, neg, 1, 5)
    assert r.ci == pytest.approx((min(values), max(values))) and r.estimate == auc(pos, neg).estimate
    open_scale = bounds_auc(pos, neg)
    scale = [-9, 1, 2, 3, 4, 5, 99]
    values = [auc(p, n).estimate for p in fills(pos) for n in fills(neg)]
    assert open_scale.ci == pytest.approx((min(values), max(values)))
    assert bounds_auc([None], [None]).ci == (0, 1) and bounds_auc([], [1]).ci is None


@pytest.mark.parametrize('seed', range(10))
def test_classes_are_sklearns(seed):
    rng = np.random.default_rng(seed)
    pick = lambda n, options, missing: [None if rng.random() < missing else str(v) for v in rng.choice(options, n)]
    predicted, truth = pick(60, list('abcd'), .2), pick(60, list('abc'), .1)
    p, t = zip(*[(p, t) for p, t in zip(predicted, truth) if p is not None and t is not None])
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        expected = accuracy_score(t, p), balanced_accuracy_score(t, p), f1_score(t, p, average='macro')
    for f, e in zip((accuracy, balanced_accuracy, macro_f1), expected):
        r = f(predicted, truth, groups=np.repeat(range(20), 3))
        assert close(r.estimate, e) and (r.n, r.asked) == (len(p), 60) and r.ci[0] < e < r.ci[1]
        assert close(f(predicted, truth).estimate, e)
    r = accuracy(predicted, truth, level=.9)
    assert np.allclose(r.ci, proportion_confint(sum(a == b for a, b in zip(p, t)), len(p), .1, 'wilson'), atol=1e-12)


def test_accuracy_edges():
    assert accuracy(['a']*5, ['a']*5).ci[1] == 1 and accuracy([None], ['a']).estimate is None
    assert accuracy([], []).note == 'no items'
    assert balanced_accuracy([None], ['a']).estimate is None and macro_f1([], []).estimate is None
    # A class that only occurs where the verdict is missing is not a class.
    assert macro_f1(['a', None], ['a', 'b']).estimate == 1
    assert 'resamples' in balanced_accuracy(['a', 'a', 'b'], ['a', 'a', 'b'], method='percentile').note
    assert 'undefined without 1 of the 3 items' in balanced_accuracy(['a', 'a', 'b'], ['a', 'a', 'b']).note
    assert bounds_mean(right(['a', None, 'b'], ['a', 'a', 'a']), 0, 1).ci == (1/3, 2/3)

def test_a_set_nobody_scored_leaves_no_mean():
    "The mean over two sets is asked for; that over the one which is left is something else."
    groups = [1, 2, 3, 4]
    scored = ([1, 2, 3, 4], [0, 0, 1, 3], [1, 1, 1, 1], [0, 1, 1, 0], groups, groups)
    r = mean_auc_test([scored, ([None]*4, [None]*4, *scored[2:])])
    assert r.estimate is None and r.note and mean_auc_test([scored, scored]).estimate is not None
