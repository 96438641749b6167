"validity.paired against scipy, statsmodels and enumeration."
import itertools, math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import statsmodels.api as sm
from statsmodels.stats.contingency_tables import mcnemar as sm_mcnemar
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import ttost_paired

from factlib.core.records import BadInput
from factlib.validity.intervals import interval
from factlib.validity.resampling import bootstrap
from factlib.validity.paired import examples_needed, effect_size, equivalence, mcnemar, mcnemar_pairs, noninferiority
from factlib.validity.paired import paired_t, permutation_test, position_test, power, sample_size

ALTERNATIVES = ['two-sided', 'greater', 'less']
close = lambda a, b: math.isclose(a, b, rel_tol=1e-10, abs_tol=1e-10)


def differences(seed, n=40, missing=.15):
    rng = np.random.default_rng(seed)
    return [None if rng.random() < missing else v for v in rng.integers(-4, 6, n)/2]


def known(d): return np.array([v for v in d if v is not None], float)


@pytest.mark.parametrize('alternative', ALTERNATIVES)
@pytest.mark.parametrize('seed', range(6))
def test_t_is_scipys(seed, alternative):
    d = differences(seed)
    r, s = paired_t(d, alternative, level=.9), scipy.stats.ttest_1samp(known(d), 0, alternative=alternative)
    assert close(r.statistic, s.statistic) and close(r.p, s.pvalue) and r.df == s.df
    assert np.allclose(r.ci, scipy.stats.ttest_1samp(known(d), 0).confidence_interval(.9), atol=1e-10)
    single = paired_t(d, alternative, groups=range(len(d)), level=.9)
    assert close(single.statistic, r.statistic) and close(single.p, r.p) and single.df == r.df


def statsmodels_t(d, groups):
    return sm.OLS(d, np.ones(len(d))).fit(cov_type='cluster', cov_kwds=dict(groups=groups), use_t=True)


@pytest.mark.parametrize('seed', range(6))
def test_clustered_t_is_statsmodels(seed):
    d, groups = known(differences(seed, missing=0)), np.random.default_rng(seed).permutation(np.repeat(np.arange(8), 5))
    fit, r = statsmodels_t(d, groups), paired_t(d, groups=groups)
    assert close(r.statistic, fit.tvalues[0]) and close(r.p, fit.pvalues[0])
    assert np.allclose(r.ci, fit.conf_int()[0], atol=1e-10)
    assert r.groups == 8 == r.df + 1 and close(r.effective, 8)


@pytest.mark.parametrize('seed', range(6))
def test_uneven_groups_flip(seed):
    "t is statsmodels', but p is scipy's exact one of the groups' sums."
    d, groups = differences(seed), np.random.default_rng(seed).integers(0, 9, 40)
    keep = np.array([v is not None for v in d])
    r, codes = paired_t(d, groups=groups), groups[keep]
    sums = np.array([known(d)[codes == g].sum() for g in set(codes)])
    oracle = scipy.stats.permutation_test((sums,), np.mean, permutation_type='samples', n_resamples=9999)
    assert close(r.statistic, statsmodels_t(known(d), codes).tvalues[0]) and close(r.p, oracle.pvalue)
    sizes = [np.sum(codes == g) for g in set(codes)]
    effective = sum(sizes)**2/sum(n*n for n in sizes)
    assert close(r.df, math.sqrt((len(sizes) - 1)*(effective - 1))) and close(r.effective, effective)
    assert r.kind == 'flips'
    less, greater = (paired_t(d, how, groups).p for how in ('less', 'greater'))
    assert close(less + greater, 1) and close(2*min(less, greater), r.p)
    # The interval is where the same flips of d - value don't reject.
    p_of = lambda value: scipy.stats.permutation_test(
        (np.array([(known(d)[codes == g] - value).sum() for g in set(codes)]),),
        np.mean, permutation_type='samples', n_resamples=9999).pvalue
    for end, out in zip(r.ci, (-1, 1)): assert p_of(end - out*1e-6) >= .05 > p_of(end + out*1e-6)


def test_five_uneven_groups_are_the_engines():
    "Of 2^5 flips two are more than 5 %, so the interval is that of t."
    d, groups = [1., 2, 2, 4, 3, 7], list('abcdee')
    r, engine = paired_t(d, groups=groups), interval(np.mean, d, groups=groups, null=0)
    assert (r.ci, r.p, r.statistic, r.df, r.kind) == (engine.ci, engine.p, engine.statistic, engine.df, 't')
    assert 'flips' not in r.definition and permutation_test(d, groups=groups).p == 2/32
    assert close(paired_t(d, 'greater', groups).p, engine.p/2) and close(paired_t(d, 'less', groups).p, 1 - engine.p/2)


def test_many_uneven_groups_flip_near_t():
    rng = np.random.default_rng(0)
    groups, d = np.sort(rng.integers(0, 80, 400)), rng.normal(size=400)
    r, engine = paired_t(d, groups=groups), interval(np.mean, d, groups=groups, null=0)
    assert r.kind == 'flips' and abs(r.p - engine.p) < .02 and np.allclose(r.ci, engine.ci, atol=.02)


def test_t_with_an_offset():
    # Means of 1e9 with a spread of 1 keep about 7 digits of the spread in floating point; the t is good to that.
    base = np.array([1., 2., 4., 8.])
    assert math.isclose(paired_t(base + 1e9).statistic*(base.std(ddof=1)/2)/1e9, 1 + base.mean()/1e9, rel_tol=1e-6)
    tiny = paired_t([1e-120, 2e-120, 4e-120, 8e-120])
    assert math.isclose(tiny.statistic, paired_t(base).statistic, rel_tol=1e-12)


@pytest.mark.parametrize('d', [[], [None], [3], [0, 0], [.1, .1, .1], [.3 - .2, .4 - .3], [1e9, 1e9], [5e-324, 1e-323]])
def test_t_undefined(d):
    for r in (paired_t(d), effect_size(d), noninferiority(d, 1), noninferiority(d, 1, 'bootstrap'), equivalence(d, 1)):
        assert r.statistic is None and r.p is None and r.ci is None and r.note


def test_groups_that_cancel():
    assert paired_t([-1, 1, -2, 2], groups=list('aabb')).statistic is None
    assert paired_t([1, 2], groups=list('aa')).note.startswith('only one group')


def test_a_constant_difference_has_a_bound_where_the_scale_is_known():
    """Four documents fall by 1 of at most 4. At 2.5 % a share 1 - .025^(1/4) of all documents may do anything else.

    p of 0 is twice the chance of four such documents if every other one went to +1, as far beyond 0 on the other side:
    then half of them fall, and (1/2)^4 is the chance."""
    q = 1 - .025**(1/4)
    two, less, greater = (paired_t([-1]*4, how, limits=(-4, 4)) for how in ('two-sided', 'less', 'greater'))
    assert two.ci == pytest.approx((-1 - 2*q, -1 + 2*q)) and two.kind == 'bound' and two.statistic is None
    assert two.p == pytest.approx(2*.5**4) and less.p == pytest.approx(.5**4) and greater.p == pytest.approx(1 - .5**4)
    one_end = paired_t([-4]*4, 'less', limits=(-4, 4)) # only one side can be wrong
    assert one_end.p == paired_t([-4]*4, limits=(-4, 4)).p == pytest.approx(.5**4)
    assert paired_t([-4]*4, 'greater', limits=(-4, 4)).p == pytest.approx(1 - .5**4)
    assert paired_t([-1]*4).ci is None and paired_t([-1], limits=(-4, 4)).ci is None # and nothing is known of others
    assert paired_t([1, 2, 4], limits=(-4, 4)) == paired_t([1, 2, 4])
    by_group = paired_t([-1]*8, groups=list('aabbccdd'), limits=(-4, 4))
    assert by_group.ci == pytest.approx(two.ci) and by_group.groups == 4
    with pytest.raises(BadInput, match='within its limits'): paired_t([-5]*4, limits=(-4, 4))

@pytest.mark.parametrize('b,c', itertools.product([0, 1, 2, 7, 30], repeat=2))
def test_mcnemar_is_scipys(b, c):
    r = mcnemar(b, c)
    assert close(r.p, sm_mcnemar([[5, b], [c, 5]], exact=True).pvalue if b + c else 1)
    if b + c:
        assert close(r.p, scipy.stats.binomtest(min(b, c), b + c).pvalue) and r.estimate == b/(b + c)
        assert np.allclose(r.ci, scipy.stats.binomtest(b, b + c).proportion_ci(.95, 'exact'), atol=1e-10)


def test_mcnemar_pairs():
    rng = np.random.default_rng(0)
    a, b = ([None if v == 2 else v for v in rng.choice([0, 1, 2], 50, p=[.3, .5, .2])] for _ in range(2))
    pairs = [(x, y) for x, y in zip(a, b) if x is not None and y is not None]
    expected = mcnemar(sum(x > y for x, y in pairs), sum(x < y for x, y in pairs))
    r = mcnemar_pairs(a, b)
    assert (r.p, r.estimate, r.ci, r.n) == (expected.p, expected.estimate, expected.ci, expected.n) and r.asked == 50
    assert f'{50 - len(pairs)} of 50' in r.note


@pytest.mark.parametrize('alternative', ALTERNATIVES)
@pytest.mark.parametrize('seed', range(4))
def test_permutation_enumerates(seed, alternative):
    "Exact, with ties, missing values and groups, against integer arithmetic."
    d = differences(seed, 12)
    groups = list('abcdef')*2
    doubled = [round(2*v) for v in d if v is not None]
    labels = [g for v, g in zip(d, groups) if v is not None]
    def expected(labels):
        units = sorted(set(labels))
        sums = [sum(v for v, g in zip(doubled, labels) if g == u) for u in units]
        totals = [sum(s*v for s, v in zip(signs, sums)) for signs in itertools.product([1, -1], repeat=len(units))]
        seen = sum(sums)
        hit = dict(greater=lambda t: t >= seen,
                   less=lambda t: t <= seen).get(alternative, lambda t: abs(t) >= abs(seen))
        return sum(map(hit, totals))/len(totals)
    assert permutation_test(d, alternative=alternative).p == expected(range(len(doubled)))
    assert permutation_test(d, groups, alternative=alternative).p == expected(labels)
    assert permutation_test(d, range(12), alternative=alternative).p == permutation_test(d, alternative=alternative).p


def test_permutation_sampled():
    d = known(differences(1, 60))
    s = scipy.stats.permutation_test((d,), np.mean, permutation_type='samples',
                                     n_resamples=9999, rng=np.random.default_rng(0))
    r = permutation_test(d)
    assert math.isclose(r.p, s.pvalue, rel_tol=.5) and r.p*10_000 == pytest.approx(round(r.p*10_000))
    assert r == permutation_test(d, groups=None)
    assert permutation_test(np.ones(60), n_resamples=99).p == 1/100 and permutation_test([0, 0, 0]).p == 1
    assert permutation_test(d).p == permutation_test(d, groups=range(len(d))).p      # the same flips


@pytest.mark.parametrize('seed', range(6))
@pytest.mark.parametrize('margin', [.1, .5, 2])
def test_noninferiority_and_tost(seed, margin):
    d = differences(seed)
    r, s = noninferiority(d, margin, level=.9), scipy.stats.ttest_1samp(known(d), -margin, alternative='greater')
    assert close(r.statistic, s.statistic) and close(r.p, s.pvalue) and (r.p < .1) == (r.ci[0] > -margin)
    assert close(r.ci[0], s.confidence_interval(.9).low)
    e, (p, _, _) = equivalence(d, margin), ttost_paired(known(d), np.zeros(len(known(d))), -margin, margin)
    assert close(e.p, p) and (e.p < .05) == (-margin < e.ci[0] and e.ci[1] < margin)


def test_noninferiority_bootstrap():
    d, groups = differences(3, 80), list(range(20))*4
    for g in (None, groups):
        r = noninferiority(d, .3, 'bootstrap', level=.9, groups=g, n_resamples=2000)
        drawn = bootstrap(np.mean, d, groups=g, level=.8, n_resamples=2000, method='percentile')
        assert r.ci == drawn.ci and r.asked == 80
        assert r.p == pytest.approx(noninferiority(d, .3, level=.9, groups=g).p, abs=.03)
        assert all((q.p < .1) == (q.low > -m) for m in np.linspace(.01, 1, 40)
                   for q in [noninferiority(d, m, 'bootstrap', level=.9, groups=g, n_resamples=399)])
    assert noninferiority(range(5, 15), .1, 'bootstrap', n_resamples=99).p == 1/100
    assert noninferiority([5, 6, 7], .1, 'bootstrap', n_resamples=99).p is None


@pytest.mark.parametrize('bad', [lambda: noninferiority([1, 2], 0), lambda: noninferiority([1, 2], -1),
                                 lambda: noninferiority([1, 2], math.inf), lambda: noninferiority([1, 2], None),
                                 lambda: noninferiority([1, 2], 1, level=.4), lambda: noninferiority([1, 2], 1, 'z'),
                                 lambda: equivalence([1, 2], 0), lambda: paired_t([1, 2], 'larger'),
                                 lambda: mcnemar(-1, 2), lambda: mcnemar(1.5, 2), lambda: mcnemar('1', 2),
                                 lambda: mcnemar_pairs([2], [1]), lambda: power(.5, 1), lambda: power(math.nan, 9),
                                 lambda: power(.5, 9, alpha=0), lambda: sample_size(0),
                                 lambda: sample_size(.5, 1), lambda: sample_size(-.5, alternative='greater'),
                                 lambda: effect_size([1, 2], 'd'), lambda: permutation_test([1, 2], n_resamples=0),
                                 lambda: paired_t([1, 2], groups=['a'])])
def test_bad_input(bad):
    with pytest.raises(BadInput): bad()


@pytest.mark.parametrize('effect,n', itertools.product([-.8, -.1, 0, .1, .5, 1.2], [2, 5, 20, 80]))
@pytest.mark.parametrize('alternative,side', [('two-sided', 'two-sided'), ('greater', 'larger'), ('less', 'smaller')])
def test_power_is_statsmodels(effect, n, alternative, side):
    oracle = TTestPower().power(effect, n, .05, alternative=side)
    if math.isnan(oracle): assert alternative == 'less' and effect == 1.2 and n == 80      # where it underflows to NaN
    assert close(power(effect, n, alternative=alternative).estimate, 0 if math.isnan(oracle) else oracle)


def test_power_by_simulation():
    d = np.random.default_rng(0).normal(.5, 1, (4000, 20))
    rejected = np.mean(scipy.stats.ttest_1samp(d, 0, axis=1).pvalue < .05)
    assert rejected == pytest.approx(power(.5, 20).estimate, abs=.03)


def test_power_far_out():
    for effect, n in itertools.product([100, 20, 10, 5, -3], [2, 3, 5, 10, 100, 10**7]):
        for alternative in ALTERNATIVES: assert 0 <= power(effect, n, alternative=alternative).estimate <= 1
    assert power(100, 100).estimate == 1 and power(100, 100, alternative='less').estimate == 0


@pytest.mark.parametrize('effect', [.05, .2, .5, .8, 3, 50])
@pytest.mark.parametrize('alternative', ['two-sided', 'greater'])
def test_sample_size(effect, alternative):
    n = sample_size(effect, .9, alternative=alternative)
    assert power(effect, n, alternative=alternative).estimate >= .9
    assert (n == 2 or power(effect, n - 1, alternative=alternative).estimate < .9)
    if effect <= .8:
        assert n == math.ceil(TTestPower().solve_power(effect, None, .05, .9,
                                                       {'two-sided': 'two-sided', 'greater': 'larger'}[alternative]))
    assert sample_size(-effect, .9, alternative='two-sided' if alternative == 'two-sided' else 'less') == n


@pytest.mark.parametrize('seed', range(5))
def test_effect_size(seed):
    d = known(differences(seed))
    r, g = effect_size(d), effect_size(d, 'gz')
    df, t = len(d) - 1, scipy.stats.ttest_1samp(d, 0).statistic
    assert close(r.estimate, d.mean()/d.std(ddof=1))
    assert [scipy.stats.nct.cdf(t, df, end*math.sqrt(len(d))) for end in r.ci] == pytest.approx([.975, .025], abs=1e-9)
    factor = scipy.special.gamma(df/2)/(math.sqrt(df/2)*scipy.special.gamma((df - 1)/2))
    assert g.estimate == pytest.approx(factor*r.estimate) and g.ci == pytest.approx([factor*end for end in r.ci])
    clustered = effect_size(d, groups=range(len(d)))
    assert close(clustered.estimate, r.estimate) and np.allclose(clustered.ci, r.ci, atol=.2)


@pytest.mark.parametrize('n, shift', [(3, 2), (12, .5), (30, .4), (30, 2), (30, 10)])
def test_effects_below_0_have_the_interval_of_their_mirror_image(n, shift):
    d = np.random.default_rng(n).normal(size=n) + shift
    up, down = effect_size(d), effect_size(-d)
    assert down.ci == (-up.high, -up.low) and down.low < down.estimate < down.high
    t = scipy.stats.ttest_1samp(-d, 0).statistic
    assert [scipy.stats.nct.cdf(t, n - 1, end*math.sqrt(n)) for end in down.ci] == pytest.approx([.975, .025], abs=1e-9)


@pytest.mark.parametrize('n', [2, 5, 20, 65, 500])
@pytest.mark.parametrize('effect', [.01, .5, .925, 1.3, 2.1, 5])
def test_every_effect_of_usual_size_has_an_interval(n, effect):
    # The distribution function of the noncentral t by its definition: a normal over a chi, integrated.
    d = np.random.default_rng(n).normal(size=n)
    d = (d - d.mean())/d.std(ddof=1) - effect
    r, df = effect_size(d), n - 1
    chi = scipy.stats.chi(df, scale=1/math.sqrt(df))
    below = lambda nc: scipy.integrate.quad(lambda s: scipy.stats.norm.cdf(-effect*math.sqrt(n)*s - nc)*chi.pdf(s),
                                            *chi.ppf([1e-15, 1 - 1e-15]), limit=200, epsabs=1e-10)[0]
    assert r.estimate == pytest.approx(-effect) and r.low < -effect < r.high
    assert [below(end*math.sqrt(n)) for end in r.ci] == pytest.approx([.975, .025], abs=1e-6)


def test_effect_size_edges():
    assert effect_size([1, 2], 'gz').estimate is None and effect_size([1e9, 1e9 + 1, 1e9 + 3]).ci is None
    # From 100 and 101 with one degree of freedom nearly anything follows: between chi-square bounds of the sd.
    low, high = effect_size([100, 101]).ci
    assert low == pytest.approx(142.1*math.sqrt(scipy.stats.chi2.ppf(.025, 1)), rel=.02)
    assert high == pytest.approx(142.1*math.sqrt(scipy.stats.chi2.ppf(.975, 1)), rel=.02)

# Examples needed

@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize('margin', [None, .2])
def test_examples_needed_is_statsmodels(seed, margin):
    from statsmodels.stats.power import TTestPower
    d = np.random.default_rng(seed).normal(.3, 1, 50)
    effect = (d.mean() + (margin or 0))/d.std(ddof=1)
    oracle = TTestPower().solve_power(effect, power=.8, alpha=.05,
                                      alternative='two-sided' if margin is None else 'larger')
    assert examples_needed(list(d) + [None], margin=margin) == int(np.ceil(oracle))

def test_examples_needed_with_groups():
    "Copies are no news; what differs within a group is."
    d = np.random.default_rng(0).normal(.3, 1, 40)
    assert examples_needed(np.repeat(d, 3), groups=np.repeat(np.arange(40), 3)) == 3*examples_needed(d)
    assert examples_needed(d, groups=range(40)) == examples_needed(d)

@pytest.mark.parametrize('d', [[], [1.], [1., 1, 1], [1., -1], 'abc'], ids=str)
def test_examples_needed_of_nothing(d):
    with pytest.raises(BadInput): examples_needed(d)

@pytest.mark.parametrize('off', [4e-13, 1e-12, 3e-12])
@pytest.mark.parametrize('alternative', ['two-sided', 'greater', 'less'])
def test_groups_that_differ_by_little_more_than_rounding(off, alternative):
    r = paired_t([1, 1, 1, 1 + off], alternative, [0, 0, 1, 2])
    assert 0 <= r.p <= 1 and r.ci[0] <= 1 <= r.ci[1]
    assert equivalence([1, 1, 1, 1 + off], 2, groups=[0, 0, 1, 2]).p <= 1 and noninferiority(
        [1, 1, 1, 1 + off], 2, groups=[0, 0, 1, 2]).p <= 1


def test_position_ten_against_none():
    "100 pairs, ten won twice by the first place: 2/2**10 = .00195."
    first, swapped = ['A']*55 + ['B']*35 + ['A']*10, ['A']*55 + ['B']*35 + ['B']*10
    r = position_test(first, swapped)
    assert (r.same, r.by_first, r.by_second, r.half, r.missing, r.right) == (90, 10, 0, 0, 0, None)
    assert round(r.first_place.p, 5) == .00195 and r.first_place.estimate == 1 and r.first_place.n == 10
    assert r.consistency.estimate == .9 and .82 < r.consistency.low < r.consistency.high < .95
    # The other way round, and by groups of which each pair is one: sign flips of ten groups are the same coin.
    back = position_test(swapped, first)
    assert back.by_second == 10 and back.first_place.estimate == 0 and back.first_place.p == r.first_place.p
    grouped = position_test(first, swapped, groups=range(100))
    assert close(grouped.first_place.p, r.first_place.p) and grouped.first_place.groups == 10
    assert close(grouped.first_place.low, r.first_place.low) # and the bound is Clopper & Pearson's
    # All in two documents: nothing is shown.
    two = position_test(first, swapped, groups=[i % 45 for i in range(90)] + [0]*5 + [1]*5)
    assert two.first_place.p == .5 and two.consistency.groups == 45


def test_position_ties_and_gaps():
    first = ['A', 'a ', 'tie', 'A', 'B', None, 'A', 'B']
    swapped = ['A', 'tie', 'TIE', 'B', 'A', 'A', None, 'B']
    r = position_test(first, swapped, truth=['A', 'A', 'tie', 'A', 'B', 'A', 'A', 'A'])
    # alike: A, tie, B; half: A with a tie; by the first place: A then B; by the second: B then A
    assert (r.same, r.half, r.by_first, r.by_second, r.missing, r.right) == (3, 1, 1, 1, 2, 2)
    assert r.consistency.estimate == .5 and (r.consistency.n, r.consistency.asked) == (6, 8) and r.first_place.p == 1
    assert position_test([1, 1, .5, 1, 0, None, True, 0.], swapped) == position_test(first, swapped)
    assert position_test(['1', '2'], ['1', '1'], texts=('1', '2')).by_second == 1
    none = position_test(['A'], ['A'], groups=['g'])
    assert none.first_place.estimate is None and none.first_place.p == 1 and none.consistency.estimate == 1
    for bad in (dict(first=['C'], swapped=['A']), dict(first=['A'], swapped=['A', 'B']), dict(first=[2], swapped=[1]),
                dict(first=['A'], swapped=['A'], groups=[]), dict(first=['A'], swapped=['A'], truth=[])):
        with pytest.raises(BadInput): position_test(**bad)


@pytest.mark.parametrize('model, consistent, right', [('GPT-4', 95, 93), ('ChatGPT', 71, 67)])
def test_position_on_llmbar(model, consistent, right):
    "LLMBar's recorded judges on Natural, both orders of 100 pairs (Zeng et al. 2024)."
    from factlib.benchmarks.base import load
    from factlib.benchmarks.rated_pairs import llmbar_recorded
    from factlib.core.files import data_home
    if data_home() is None or not (data_home()/f'llmbar/Natural/evaluators/{model}').is_dir():
        pytest.skip('needs llmbar in FACTLIB_DATA')
    examples = load('llmbar', split='Natural').examples
    said = llmbar_recorded(examples)
    ones = said[(said.evaluator == model) & said.example_id.str.endswith('/1')]
    truth = {e.id: float(e.truth == 'better') for e in examples}
    winners = list(ones['first']), list(ones['swapped'])
    r = position_test(*winners, truth=[truth[i] for i in ones.example_id], groups=list(ones.group))
    assert (r.same, r.right, r.same + r.by_first + r.by_second + r.half + r.missing) == (consistent, right, 100)
    assert r.consistency.estimate == r.same/(100 - r.missing)
