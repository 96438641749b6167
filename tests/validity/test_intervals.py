"""The engine of validity.intervals against scipy's t, Clopper and Pearson's bound, Wilson's interval as statsmodels has
it, and statistics computed again without each group."""
import math

import numpy as np
import pytest
import scipy.stats
from sklearn.metrics import roc_auc_score
from statsmodels.stats.proportion import proportion_confint

from factlib.core.records import BadInput
from factlib.validity.agreement import kappa
from factlib.validity.association import COEFFICIENTS, correlation_test, pearson
from factlib.validity.detection import auc_ci, aucs_without, balanced_accuracy, macro_f1
from factlib.validity.intervals import interval, left_out, t_df
from factlib.validity.paired import dz, effect_size
from factlib.validity.resampling import bootstrap

close = lambda a, b: math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize('n', [2, 3, 10, 80])
def test_a_mean_of_items_is_students_t(n):
    x = np.random.default_rng(n).normal(1, 2, n)
    r, s = interval(np.mean, x, null=.3, level=.9), scipy.stats.ttest_1samp(x, .3)
    assert np.allclose(r.ci, s.confidence_interval(.9)) and close(r.p, s.pvalue) and close(r.statistic, s.statistic)
    assert close(r.df, n - 1) and r.kind == 't' and r.groups is None


def test_equal_groups_are_students_t_of_their_means():
    x = np.random.default_rng(0).normal(1, 2, (7, 5))
    r = interval(np.mean, x.ravel(), groups=np.repeat(range(7), 5), null=0)
    s = scipy.stats.ttest_1samp(x.mean(1), 0)
    assert np.allclose(r.ci, s.confidence_interval()) and close(r.p, s.pvalue) and r.groups == 7 and close(r.df, 6)


@pytest.mark.parametrize('hits, n', [(1, 4), (5, 11), (29, 30), (40, 100)])
def test_a_share_is_wilsons(hits, n):
    """The jackknife's variance of a share is u(1 - u)/(n - 1): Wilson's interval of n - 1 items of the same share,
    with t for z. Of thousands of items it is Wilson's own."""
    r = interval(np.mean, [1]*hits + [0]*(n - hits), limits=(0, 1), null=.5)
    t, u = scipy.stats.t.isf(.025, n - 1), hits/n
    assert np.allclose(r.ci, proportion_confint(u*(n - 1), n - 1, 2*scipy.stats.norm.sf(t), 'wilson'))
    assert close(r.p, 2*scipy.stats.t.sf(abs(u - .5)/math.sqrt(.25/(n - 1)), n - 1))
    many = interval(np.mean, [1]*hits*50 + [0]*(n - hits)*50, limits=(0, 1))
    wilson = scipy.stats.binomtest(hits*50, n*50).proportion_ci(method='wilson')
    assert np.allclose(many.ci, wilson, atol=.02/math.sqrt(n*50))


@pytest.mark.parametrize('groups', [2, 6, 12, 60])
def test_the_bound_is_clopper_and_pearsons(groups):
    codes = np.repeat(range(groups), 3)
    none, every = (interval(np.mean, [v]*3*groups, groups=codes, limits=(0, 1), null=.5) for v in (0, 1))
    test = scipy.stats.binomtest(groups, groups, .5, alternative='greater')
    assert close(every.low, test.proportion_ci(.95).low) and every.high == 1 and close(every.p, test.pvalue)
    assert np.allclose(none.ci, (0, 1 - every.low)) and close(none.p, every.p)
    assert every.one_sided and none.one_sided and every.kind == 'bound' and every.df is None
    # In between, both sides: 2.5 % each, of what is left to the limit.
    middle = interval(np.mean, [.2]*3*groups, groups=codes, limits=(0, 1), null=.9)
    q = 1 - scipy.stats.binomtest(groups, groups).proportion_ci(.95).low
    assert np.allclose(middle.ci, (.2 - .2*q, .2 + .8*q)) and not middle.one_sided
    assert close(middle.p, min(1, 2*scipy.stats.binom.pmf(0, groups, (.9 - .2)/(1 - .2))))


def test_the_bound_of_uneven_groups_is_that_of_as_many_equal_ones():
    codes = [0]*3 + [1, 2, 3]                                  # 1/(1/4 + 3/36) = 3
    assert close(interval(np.mean, [1]*6, groups=codes, limits=(0, 1)).low, .05**(1/3))
    assert close(t_df(np.array([3, 1, 1, 1])/6), math.sqrt(3*2))


def test_of_the_side_in_few_groups_twice_their_number_less_one_are_the_degrees_of_freedom():
    "Positives in 3 of 26 groups: sqrt(25*2) is 7.1, 2*(3 - 1) is 4. In 3 of 6: sqrt(5*2) is 3.2, and less than 4."
    rng = np.random.default_rng(0)
    for groups, df in ((26, 4.), (6, math.sqrt(10))):
        r = auc_ci(rng.normal(1, 1, 6), rng.normal(0, 1, 2*groups), 'cluster', ([0, 0, 1, 1, 2, 2], [*range(groups)]*2))
        assert r.kind == 't' and close(r.df, df)


def brute(stat, columns, codes):
    return np.array([stat(*(c[codes != g] for c in columns)) for g in range(codes.max() + 1)])


@pytest.mark.parametrize('seed', range(6))
def test_effects_by_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat(range(9), rng.integers(1, 6, 9))
    a, b = rng.normal(.5, 1, len(codes)), rng.normal(.2, 1, len(codes))
    plain = lambda x: x.mean()/x.std(ddof=1)
    share = np.bincount(codes)/len(codes)
    df = math.sqrt(8*(1/np.sum(share**2) - 1))
    for r, stat, columns in ((effect_size(a, groups=codes), plain, [a]),
                             (interval(lambda x, y: dz(x) - dz(y), a, b, groups=codes, null=0),
                              lambda x, y: plain(x) - plain(y), [a, b])):
        estimate = stat(*columns)
        se = math.sqrt(8/9*np.sum((brute(stat, columns, codes) - estimate)**2))
        assert np.allclose(r.ci, scipy.stats.t.interval(.95, df, estimate, se)) and close(r.df, df)
        assert close(r.p, 2*scipy.stats.t.sf(abs(estimate)/se, df))


@pytest.mark.parametrize('seed', range(30))
def test_aucs_in_closed_form_are_sklearns(seed):
    "Uneven groups, ties, groups with one side only."
    rng = np.random.default_rng(seed)
    n, groups = rng.integers(5, 40), rng.integers(2, 8)
    codes, is_pos = rng.integers(0, groups, n), rng.integers(0, 2, n).astype(float)
    levels = rng.integers(0, [3, 50][seed % 2], n).astype(float)
    got = aucs_without(levels, is_pos, codes, groups)
    for g, value in enumerate(got):
        kept = is_pos[codes != g]
        if 0 < kept.sum() < len(kept): assert close(value, roc_auc_score(kept, levels[codes != g]))
        else: assert math.isnan(value)


def test_auc_by_hand():
    """Three stories, a true and a false text each: 3 and 1, 2 and 2, 4 and 0. Of nine pairs 2 is tied with 2, all else
    is won: 17/18. Without the second story all four are won; without either of the others 3.5 of 4."""
    r = auc_ci([3, 2, 4], [1, 2, 0], 'cluster', (list('uvw'),)*2)
    without = np.array([3.5/4, 1, 3.5/4])
    levels, is_pos = np.array([3., 2, 4, 1, 2, 0]), np.array([1, 1, 1, 0, 0, 0])
    assert np.allclose(aucs_without(levels, is_pos, np.array([0, 1, 2]*2), 3), without)
    u, t = 17/18, 4.302652729911275                            # t of any table for two degrees of freedom
    # Newcombe's variance of 3 and 3 with a tie of two; the groups are off by -5/72, 4/72 and -5/72, and 30*(2u - 1)^2 of them are asked for
    model = (1 - 6/210)*u*(1 - u)*(1 + 2*((1 - u)/(2 - u) + u/(1 + u)))/9
    weight = 1 - (25 + 16 + 25)**2/(25**2 + 16**2 + 25**2)/(30*(2*u - 1)**2)
    n = u*(1 - u)/((1 - weight)*2/3*np.sum((without - u)**2) + weight*model)
    middle, half = (u + t*t/(2*n))/(1 + t*t/n), t*math.sqrt(u*(1 - u)/n + t*t/(4*n*n))/(1 + t*t/n)
    assert r.estimate == u and np.allclose(r.ci, (middle - half, middle + half))


def scores(seed, groups=10):
    rng = np.random.default_rng(seed)
    codes = np.repeat(range(groups), rng.integers(1, 5, groups))
    return rng.integers(0, 6, len(codes)) + 1., rng.integers(0, 6, len(codes)) + 0., codes


@pytest.mark.parametrize('seed', range(5))
def test_what_must_not_matter(seed):
    "The order of items, the names of groups, the unit of scores; and what turns the sign turns the interval."
    pos, neg, codes = scores(seed)
    ask = lambda p, n, g: auc_ci(p, n, 'cluster', (g, g))
    r, mixed = ask(pos, neg, codes), np.random.default_rng(seed).permutation(len(codes))
    names = [('story', int(g)*7 % 11) for g in codes]
    for other in (ask(pos[mixed], neg[mixed], codes[mixed]), ask(pos, neg, names),
                  ask(np.exp(pos), np.exp(neg), codes)):
        assert np.allclose(other.ci, r.ci) and close(other.p, r.p)
    turned = ask(-pos, -neg, codes)
    assert np.allclose(turned.ci, (1 - r.high, 1 - r.low)) and close(turned.p, r.p)
    d = interval(np.mean, pos - neg, groups=codes, limits=(-6, 6), null=0)
    back = interval(np.mean, neg - pos, groups=codes, limits=(-6, 6), null=0)
    assert np.allclose(back.ci, (-d.high, -d.low)) and close(back.p, d.p)
    x, y = pos + .1*neg, neg + pos
    a, b = correlation_test(x, y, neg, codes), correlation_test(y, x, neg, codes)
    assert np.allclose(a.ci, (-b.high, -b.low)) and close(a.p, b.p)
    size, huge = effect_size(pos - neg, groups=codes), effect_size(1e90*(pos - neg), groups=codes)
    assert np.allclose(size.ci, huge.ci) and np.allclose(size.ci, effect_size((pos - neg)*1e-90, groups=codes).ci)


def test_nothing_is_drawn():
    pos, neg, codes = scores(1)
    verdicts, labels = (pos > 3).tolist(), (neg > 2).tolist()
    for call in (lambda **o: bootstrap(np.mean, pos, groups=codes, null=3, **o),
                 lambda **o: correlation_test(pos, neg, pos + .1*neg, codes, **o),
                 lambda **o: macro_f1(verdicts, labels, codes, **o)):
        r = call()
        assert r == call(seed=7, n_resamples=3) and r.kind == 't' and r.low < r.estimate < r.high


def test_what_rests_on_one_group():
    "All positives in one group: nothing is known of others, whether or not all pairs are in order."
    pos, neg, groups = [8., 9], list(range(6)), ([0, 0], range(6))
    perfect = auc_ci(pos, neg, 'cluster', groups)
    assert perfect.estimate == 1 and np.allclose(perfect.ci, (.05, 1)) and perfect.p == .5
    r = auc_ci([8, 3], neg, 'cluster', groups)
    assert r.kind == 't' and r.high - r.low > .85 and r.note.startswith('undefined without 1 of the 6 groups')
    # Of a class that one item has, and of an effect that one item makes.
    assert balanced_accuracy(list('aaab'), list('aaab')).low == pytest.approx(.05)
    alone = effect_size([0, 0, 0, 0, 5], groups=range(5))
    assert alone.low < 0 < alone.high and 'undefined without 1' in alone.note
    # Positives in two of six groups: a bound of two groups.
    assert close(auc_ci([8, 9], neg, 'cluster', ([0, 1], range(6))).low, .05**(1/2))


def test_where_there_is_no_interval_it_is_said_why():
    for r, why in ((interval(np.mean, []), 'no items'), (interval(dz, [1, 1]), 'undefined on these data'),
                   (interval(np.mean, [1, 2], groups=[0, 0]), 'only one group'),
                   (interval(np.mean, [2, 2, 2]), 'neither limits nor a null'),
                   (interval(np.mean, [2, 2, 2], null=2), 'neither limits nor a null')):
        assert r.ci is None and why in r.note
    assert interval(np.mean, [2, 2, 2], null=2).p == 1


@pytest.mark.parametrize('groups', [3, 6, 11])
@pytest.mark.parametrize('limits', [None, (-5, 5)])
def test_differences_that_are_all_alike_have_the_p_of_sign_flips(groups, limits):
    r = interval(np.mean, [2.]*groups, limits=limits, null=0)
    flips = scipy.stats.permutation_test(([2.]*groups,), np.mean, permutation_type='samples', n_resamples=9999)
    assert close(r.p, flips.pvalue) and (r.p < .05) == (r.low > 0) and r.kind == 'bound'
    # At worst a share q of groups is as far on the other side, and as far beyond: 2 - 4q, 2 + 4q, or 5 at most.
    q = 1 - scipy.stats.binomtest(groups, groups).proportion_ci(.95).low
    assert np.allclose(r.ci, (2 - 4*q, 2 + q*(3 if limits else 4)))
    same = interval(np.mean, [0.]*groups, limits=(-1, 1), null=0)
    assert np.allclose(same.ci, (-q, q)) and same.p == 1


@pytest.mark.parametrize('bad', [lambda: interval(np.mean, [1, 2], limits=(1, 0)),
                                 lambda: interval(np.mean, [1], [1, 2]),
                                 lambda: interval(np.mean, [1, 2], level=95), lambda: interval(np.mean, ['a']),
                                 lambda: interval(np.mean, [1, 2], groups=[1]), lambda: interval(np.mean, [math.inf]),
                                 lambda: interval(np.sum, [1, 1], limits=(0, 1)),
                                 lambda: interval(np.mean, [1, 2], groups=[1, None])])
def test_bad_input(bad):
    with pytest.raises(BadInput): bad()


def test_rounding_is_no_variation_and_a_large_offset_is_no_constant():
    assert interval(np.mean, [.3 - .2, .4 - .3], limits=(0, 1)).kind == 'bound'
    assert interval(np.median, [.1 + .2, .3, .3], limits=(0, 1)).kind == 'bound'
    x = np.random.default_rng(0).normal(0, .01, 400)
    shifted, plain = interval(np.mean, x + 1e6), interval(np.mean, x)
    assert shifted.kind == 't' and np.allclose(np.subtract(shifted.ci, 1e6), plain.ci, atol=1e-8)
    assert np.allclose(left_out(np.mean, [x]), brute(lambda v: v.mean(), [x], np.arange(400)), atol=1e-15)
    assert interval(np.mean, x*1e-200).kind == 't'

def test_what_p_tests_is_a_number():
    for null in (math.nan, math.inf, 'x'):
        with pytest.raises(BadInput, match='null'): interval(np.mean, [1, 2, 3], null=null)
    with pytest.raises(BadInput, match='limits'): interval(np.mean, [1, 2, 3], limits=.5)

def test_rounding_is_measured_against_the_limits():
    "A mean may come out a rounding error above its limit; of numbers near 1e-12 the same step is no rounding error."
    far = lambda x: x.max() + .125
    assert interval(far, [1e15]*3, groups=range(3), limits=(0, 1e15)).kind == 'bound'
    with pytest.raises(BadInput, match='not within its limits'): interval(np.mean, [5e-10]*3, limits=(0, 1e-12))

@pytest.mark.parametrize('size', [1e-300, 1e-12, 1, 1e15])
def test_a_bound_to_both_sides_is_no_bound_to_one(size):
    "Six groups all say 1, far from any limit: others may be off by twice the distance to the 0 that is tested."
    r = interval(np.mean, [size]*6, groups=range(6), null=0)
    q = 1 - .025**(1/6)
    assert np.allclose(r.ci, (size*(1 - 2*q), size*(1 + 2*q)), rtol=1e-9, atol=0) and not r.one_sided
    assert 'at least' not in str(r) and 'at most' not in str(r)
    top = interval(np.mean, [size]*6, groups=range(6), limits=(0, size))
    assert top.one_sided and 'at least' in str(top)

@pytest.mark.parametrize('seed', range(5))
def test_without_groups_the_error_is_nearly_delongs(seed):
    """Without one positive the AUC is off by (AUC - its component)/(m - 1), so the jackknife's squared error is
    (N - 1)/N (S10/(m - 1) + S01/(n - 1)), where DeLong has S10/m + S01/n."""
    rng = np.random.default_rng(seed)
    pos, neg = rng.integers(1, 6, 12), rng.integers(0, 5, 19)
    wins = np.array([[(a > b) + (a == b)/2 for b in neg] for a in pos])
    squared = 30/31*(wins.mean(1).var(ddof=1)/11 + wins.mean(0).var(ddof=1)/18)
    u, r = wins.mean(), auc_ci(pos, neg, 'cluster', range(31))
    t = scipy.stats.t.isf(.025, r.df)
    roots = np.roots([1 + t*t*squared/(u*(1 - u)), -2*u - t*t*squared/(u*(1 - u)), u*u]) # (u - v)^2 = t^2 v(1 - v)/n
    assert np.allclose(r.ci, sorted(roots), atol=1e-9)

# ---- closed forms of what is left without each group

def grouped(seed, n=60):
    "Two columns that go together, in groups of unequal size."
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, x + rng.normal(size=n), np.sort(rng.integers(0, n//4, n))

def hard_columns():
    "Columns where subtracting sums would lose the digits: (x, y, groups)."
    x, y, codes = grouped(9)
    yield np.where(codes == codes[0], 1e9*x, x), y, codes # one group holds all that varies
    yield np.where(codes == codes[0], x, 3.), y, codes # nothing varies without it
    yield 1e12 + x, y - 1e9, codes
    yield 1e-120*x, 1e90*y, codes
    yield np.round(x), np.round(y), np.zeros(len(x), int) + (np.arange(len(x)) > 1) # two groups, one of two items

@pytest.mark.parametrize('x, y, codes', [*map(grouped, range(5)), *hard_columns()])
def test_closed_forms_are_what_leaving_out_gives(x, y, codes):
    "The statistic is computed from scratch without each group, by the function that serves all items."
    labels = [np.digitize(c, np.quantile(c, [.2, .5, .9])) for c in (x, y)]
    weighted = lambda how: lambda a, b: kappa(list(a), list(b), how, labels=[0., 1., 2., 3.]).estimate
    gz = lambda d: effect_size(d, 'gz').estimate
    fast_and_slow = [(pearson(x, y, groups=codes),
                      interval(COEFFICIENTS['pearson'], x, y, groups=codes, limits=(-1, 1), null=0)),
                     (effect_size(x, groups=codes), interval(dz, x, groups=codes, null=0)),
                     (effect_size(x, 'gz', groups=codes), interval(gz, x, groups=codes, null=0))]
    fast_and_slow += [(kappa(*labels, how, labels=[0, 1, 2, 3], groups=codes),
                       interval(weighted(how), *labels, groups=codes, limits=(-1, 1), null=0))
                      for how in (None, 'linear', 'quadratic')]
    for fast, slow in fast_and_slow:
        told = lambda r: [r.estimate, r.p, r.statistic, r.df, *(r.ci or ())]
        for a, b in zip(told(fast), told(slow), strict=True): assert a == pytest.approx(b, rel=1e-8, abs=1e-12)
        assert (fast.kind, fast.note, fast.effective) == (slow.kind, slow.note, slow.effective)

def test_thousands_of_groups_have_the_interval_of_the_slow_way():
    x, y, codes = grouped(1, 4000)
    slow = interval(COEFFICIENTS['pearson'], x, y, groups=codes, limits=(-1, 1), null=0.)
    fast = pearson(x, y, groups=codes)
    assert fast.ci == pytest.approx(slow.ci, rel=1e-12) and fast.p == pytest.approx(slow.p, rel=1e-9)
