"""Few groups, or one that holds most of the items: what the intervals say, what they don't, that p never contradicts
them, and (slow) how often they are right."""
import math, warnings

import numpy as np
import pytest
import scipy
from hypothesis import HealthCheck, given, settings, strategies as st

from factlib.validity.agreement import alpha, kappa
from factlib.validity.association import correlation_test, kendall, partial, pearson, spearman
from factlib.validity.base import BadInput
from factlib.validity.detection import auc_ci, auc_test, mean_auc_test
from factlib.validity.paired import effect_size, equivalence, noninferiority, paired_t, permutation_test
from factlib.validity.resampling import bootstrap, flip_interval


@pytest.mark.parametrize('seed', range(4))
def test_flip_interval_by_enumeration(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, 8)
    sums = rng.normal(size=8)*np.sqrt(sizes)
    mean, share = sums.sum()/sizes.sum(), sizes/sizes.sum()
    ci, p, exact = flip_interval(mean, sums/sizes.sum() - share*mean, share, .95)
    signs = 1 - 2*(np.arange(256)[:, None] >> np.arange(8) & 1)
    def plain(value):
        return np.mean(np.abs(signs @ (sums - value*sizes)) >= abs(np.sum(sums - value*sizes))*(1 - 1e-12))
    assert exact and p == plain(0)
    for end, out in zip(ci, (-1, 1)): assert plain(end - out*1e-9) >= .05 > plain(end + out*1e-9)


def test_one_slip_and_none():
    "The jump: an AUC of 1 on eight groups has the exact bound, with a slip the score interval of what varies."
    pos, neg, groups = np.arange(10., 18), np.arange(8.), range(8)
    r = auc_ci(pos, neg, 'cluster', (groups, groups))
    assert r.one_sided and np.allclose(r.ci, (.05**(1/8), 1)) and r.p == pytest.approx(.5**8)
    assert 'every group says the same; at least 0.844 if groups not seen are at 0.5' == r.note # 1 - .312/2
    neg[0] = 10.5                                              # of 64 pairs 1 is wrong, in two stories
    r = auc_ci(pos, neg, 'cluster', (groups, groups))
    assert r.estimate == 63/64 and r.kind == 't' and .05**(1/8) < r.low < .8 and 63/64 < r.high < 1
    assert bootstrap(np.mean, [1, 2, 3, 4, 5, 6, 7, 1e6]).low < 0 # one item is the whole spread


@pytest.mark.parametrize('groups', [2, 3, 4, 5, 6])
def test_few_groups_have_intervals_and_p(groups):
    rng = np.random.default_rng(0)
    codes = np.repeat(range(groups), 4)
    x, y = rng.normal(9, 1, 4*groups), rng.normal(size=4*groups)
    half = (codes[::2],)*2
    for null, r in ((0, bootstrap(np.mean, x, groups=codes, null=0)), (0, pearson(x, y, codes)),
                    (.5, auc_ci(x[::2], y[::2], 'cluster', half)),
                    (0, auc_test(x[::2], y[::2], y[::2], x[::2], half)), (0, partial(x, x + y, y, codes)),
                    (0, kendall(x, x + y, codes, per_group=True))):
        assert r.ci is not None and (r.p < .05) == (not r.low <= null <= r.high), r.definition
    assert (noninferiority(x, 1, 'bootstrap', groups=codes).p is None) == (groups < 6)
    uneven = paired_t(x[1:], groups=codes[1:])
    assert (uneven.kind == 'flips') == (groups == 6) and (uneven.p < .05) == (uneven.low > 0)


def test_limits():
    r = bootstrap(np.mean, [1, 1, 1, 1, 0, 1, 1, 0], limits=(0, 1))
    assert 0 < r.low < .75 < r.high < 1 and 'within 0 to 1' in r.definition
    for bad in ((1, 0), (0,), (0, 0), (0, math.inf), (.8, 1)):
        with pytest.raises(BadInput): bootstrap(np.mean, [1, 1, 0, 0], limits=bad)


def test_p_is_never_less_than_permutations_allow():
    assert pearson([1, 2, 3], [2, 4, 6]).p == pytest.approx(2/6)
    assert pearson([1, 2, 3], [1, 2, 3 + 1e-9]).p == pytest.approx(2/6)
    assert pearson(range(7), range(7)).p == pytest.approx(2/math.factorial(7))
    for n in (4, 5, 8):
        length, up = np.arange(n), np.arange(n)**2
        r = partial(up, up + 2*length, length)
        assert abs(r.estimate) == pytest.approx(1) and r.p == pytest.approx(2/math.factorial(n - 1))
    rng = np.random.default_rng(0)
    for _ in range(40):            # against all orders, ties and all
        x, y = rng.integers(0, 3, (2, 6)).astype(float)
        if np.ptp(x) and np.ptp(y):
            assert pearson(x, y).p >= .5*scipy.stats.permutation_test((x,), lambda a: abs(np.corrcoef(a, y)[0, 1]),
                                                                      permutation_type='pairings',
                                                                      alternative='greater',
                                                                      n_resamples=math.inf).pvalue*.999 or pearson(
                                                                          x, y).p > .01
    assert 0 < pearson(range(300), range(300)).p < 1e-100


def pairwise_alpha(x, distance):
    "Krippendorff's definition, pair by pair."
    units = [[v for v in row if not np.isnan(v)] for row in x]
    units = [u for u in units if len(u) > 1]
    values = [v for u in units for v in u]
    observed = sum(distance(a, b)/(len(u) - 1) for u in units for i, a in enumerate(u)
                   for j, b in enumerate(u) if i != j)
    expected = sum(distance(a, b) for i, a in enumerate(values) for j, b in enumerate(values)
                   if i != j)/(len(values) - 1)
    return 1 - observed/expected


@pytest.mark.parametrize('seed', range(4))
def test_alpha_is_the_definition(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, (12, 5)).astype(float)
    x[rng.random(x.shape) < .25] = np.nan
    table = [[None if np.isnan(v) else v for v in row] for row in x]
    for level, distance in (('nominal', lambda a, b: a != b), ('interval', lambda a, b: (a - b)**2),
                            ('ratio', lambda a, b: ((a - b)/(a + b))**2 if a + b else 0)):
        assert alpha(table, level).estimate == pytest.approx(pairwise_alpha(x, distance), abs=1e-12)


def test_alpha_of_thousands_of_annotators():
    "By pairs of annotators this would be 8 million passes over the units."
    x = np.random.default_rng(0).integers(0, 3, (4, 4000))
    for level in ('nominal', 'ordinal', 'interval', 'ratio'): assert abs(alpha(x, level).estimate) < .01


columns = st.integers(0, 2**32 - 1).flatmap(lambda seed: st.tuples(st.just(seed),
                                                                   st.integers(2, 14), st.integers(1, 4), st.booleans(),
                                                                   st.sampled_from([0, .3, .6, 1, 2]), st.booleans()))


@settings(deadline=None, max_examples=120, derandomize=True, suppress_health_check=list(HealthCheck))
@given(columns)
def test_interval_and_p_never_contradict(drawn):
    seed, groups, size, uneven, effect, rounded = drawn
    rng = np.random.default_rng(seed)
    codes = np.repeat(range(groups), [size*(4 if uneven and not g else 1) for g in range(groups)])
    shape = (3, len(codes))
    x, y, z = rng.normal(size=shape) + .7*rng.normal(size=(3, groups))[:, codes]
    y = y + effect*x
    if rounded: x, y, z = np.round([x, y, z])
    labels, other = (x > 0).tolist(), (y > 0).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        results = [(0, r) for g in (None, codes) for r in (
            bootstrap(np.mean, x + effect/2, groups=g, null=0), paired_t(x + effect/2, groups=g),
            pearson(x, y, g), spearman(x, y, g), kendall(x, y, g),
            partial(x, y, z, g), correlation_test(x, z, y, g), kappa(labels, other, groups=g))]
        results += [(0, kendall(x, y, codes, per_group=True)), (0, pearson(x, y, codes, per_group=True)),
                    (0, correlation_test(x, z, y, codes, kind='kendall', per_group=True)),
                    (0, correlation_test(x, z, y, method='williams')),
                    (.5, auc_ci(x + effect, y)), (.5, auc_ci(x + effect, y, 'cluster', (codes, codes))),
                    (0, auc_test(x + effect, y, z, x)), (0, auc_test(x + effect, y, z, x, (codes, codes))),
                    (0, mean_auc_test([(x + effect, y, z, x, codes, codes)]))]
    for null, r in results:
        if r.ci is not None and r.p is not None:
            assert (r.p < .05) == (not r.ci[0] <= null <= r.ci[1]), (null, r, r.definition)
    for r, holds in ((noninferiority(x, .5, groups=codes), lambda r: r.low > -.5),
                     (noninferiority(x, .5, 'bootstrap', groups=codes, n_resamples=199), lambda r: r.low > -.5),
                     (equivalence(x, .5, groups=codes), lambda r: -.5 < r.low and r.high < .5)):
        if r.ci is not None and r.p is not None: assert (r.p < .05) == holds(r), (r, r.definition)


# Of 400 simulations: .95 - 3.3 binomial errors of sqrt(.95*.05/400) = .0109 is .914, .05 + 3.3 errors .086.
LOW, HIGH = .914, .086


def simulated(rng, codes, name):
    "(truth, null that is true or None, result) of one study; items of a group share a third of their variance."
    def noise(): return rng.normal(size=codes.max() + 1)[codes]*3**-.5 + rng.normal(size=len(codes))*(2/3)**.5
    up = 2**.5*scipy.stats.norm.ppf(.8)
    if name == 'mean': return 0, True, bootstrap(np.mean, noise(), groups=codes, null=0)
    if name == 'd_z': return .5, False, effect_size(noise() + .5, groups=codes)
    if name == 'tau': return 0, True, kendall(noise(), noise(), codes, per_group=True)
    if name == 'r': return 0, True, pearson(noise(), noise(), codes)
    if name == 'AUC': return .8, False, auc_ci(noise() + up, noise(), 'cluster', (codes, codes))
    if name == 'chance': return .5, True, auc_ci(noise(), noise(), 'cluster', (codes, codes))
    pos, neg = noise() + up, noise()
    return 0, True, auc_test(pos, neg, noise() + up, noise(), (codes, codes))


@pytest.mark.slow
@pytest.mark.parametrize('balance', ['equal', 'half'])
@pytest.mark.parametrize('name', ['mean', 'd_z', 'tau', 'r', 'AUC', 'chance', 'AUC difference'])
def test_promises_are_kept(name, balance):
    "How often the truth is held, and a difference is found where there is none; `benchmarks/coverage.py` has the grid."
    for groups in (8, 15):
        sizes = [4*(groups - 1) if balance == 'half' and not g else 4 for g in range(groups)]
        codes, held, alarms = np.repeat(range(groups), sizes), 0, 0
        for seed in range(400):
            truth, is_null, r = simulated(np.random.default_rng((seed, groups)), codes, name)
            held, alarms = held + (r.low <= truth <= r.high), alarms + (is_null and r.p < .05)
        assert held/400 >= LOW and alarms/400 <= HIGH, (name, balance, groups, held/400, alarms/400)
