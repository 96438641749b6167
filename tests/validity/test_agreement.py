"validity.agreement against krippendorff, scikit-learn, statsmodels and brute force."
import itertools, math, warnings

import krippendorff
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa

from factlib.core.records import BadInput
from factlib.validity.agreement import ICC_FORMS, LEVELS, ac1, alpha, claim_overlap, icc, kappa, same_claim
from factlib.validity.intervals import jackknife_interval

close = lambda a, b: math.isclose(a, b, rel_tol=1e-10, abs_tol=1e-10)


def table(seed, units=25, annotators=4, missing=.3, values=5):
    "Annotators who partly agree, with gaps; some units have one value or none."
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, values, units)
    return [[None if rng.random() < missing else float(np.clip(t + rng.integers(-1, 2), 0, values - 1))
             for _ in range(annotators)] for t in truth]


@pytest.mark.parametrize('level', LEVELS)
@pytest.mark.parametrize('seed', range(10))
def test_alpha_is_krippendorffs(level, seed):
    t = table(seed, annotators=2 + seed % 4, missing=.1*(seed % 5))
    r = alpha(t, level)
    x = np.array([[np.nan if v is None else v for v in row] for row in t])
    assert close(r.estimate, krippendorff.alpha(reliability_data=x.T, level_of_measurement=level))
    assert r.n == sum(sum(v is not None for v in row) > 1 for row in t) and r.asked == 25
    assert alpha(x, level) == r == alpha(pd.DataFrame(x), level)


def test_alpha_published():
    "Krippendorff's (2011) worked example: 4 observers, 12 units, and his four values."
    nan = None
    observers = [[1, 2, 3, 3, 2, 1, 4, 1, 2, nan, nan, nan], [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nan, 3],
                 [nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nan], [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nan]]
    for level, value in dict(nominal=.743, ordinal=.815, interval=.849, ratio=.797).items():
        assert round(alpha(list(zip(*observers)), level).estimate, 3) == value


def test_alpha_of_words_scales_and_units():
    t = table(1)
    words = [[None if v is None else 'abcde'[int(v)] for v in row] for row in t]
    assert alpha(words).estimate == alpha(t).estimate
    scaled = lambda a, b: [[None if v is None else a*v + b for v in row] for row in t]
    assert close(alpha(scaled(1e-200, 0), 'interval').estimate,
                 alpha(t, 'interval').estimate)
    assert close(alpha(scaled(1e90, 0), 'ratio').estimate, alpha(t, 'ratio').estimate)
    assert math.isclose(alpha(scaled(1, 1e9), 'interval').estimate,
                        alpha(t, 'interval').estimate, rel_tol=1e-6)
    r = alpha(t, 'interval')
    assert r.ci[0] < r.estimate < r.ci[1] and alpha(t, 'interval', groups=range(25)).ci == r.ci
    assert np.ptp(alpha(t*4, 'interval', groups=list(range(25))*4).ci) > 1.5*np.ptp(alpha(t*4, 'interval').ci)


@pytest.mark.parametrize('level', LEVELS)
def test_alpha_undefined(level):
    for t in ([], [[]], [[1, None]], [[None, None]], [[1, 1], [1, 1]], [[0, 0], [0, None]], [[1], [2]]):
        r = alpha(t, level)
        assert r.estimate is None and r.note and r.ci is None
    assert alpha([[1, 2]], level).ci is None      # one unit: nothing to resample


@pytest.mark.parametrize('bad', [lambda: alpha([[1, 2], [3]]), lambda: alpha('ab'), lambda: alpha([1, 2]),
                                 lambda: alpha([['a', 'b']], 'interval'), lambda: alpha([[1, -2]], 'ratio'),
                                 lambda: alpha([[1, 2]], 'metric'), lambda: alpha(None), lambda: alpha([[1, [2]]]),
                                 lambda: kappa([1], [1, 2]), lambda: kappa([1, 2], [1, 2], 'cubic'),
                                 lambda: kappa(['a', 'b'], ['a', 'b'], 'linear'),
                                 lambda: kappa(['a'], ['b'], labels=['a']), lambda: kappa('ab', 'ab'),
                                 lambda: claim_overlap('ab', ['a']), lambda: claim_overlap([1], [2]),
                                 lambda: claim_overlap(['a'], ['a'], match=lambda x, y: .7),
                                 lambda: claim_overlap(['a'], ['a'], threshold='x')])
def test_bad_input(bad):
    with pytest.raises(BadInput): bad()


@pytest.mark.parametrize('weights', [None, 'linear', 'quadratic'])
@pytest.mark.parametrize('seed', range(8))
def test_kappa_is_sklearns(weights, seed):
    a, b = zip(*table(seed, 60, 2, .15, 4))
    pairs = [(x, y) for x, y in zip(a, b) if x is not None and y is not None]
    x, y = zip(*pairs)
    r = kappa(a, b, weights, method='asymptotic')
    assert close(r.estimate, cohen_kappa_score(x, y, weights=weights)) and (r.n, r.asked) == (len(pairs), 60)
    order = sorted(set(x + y))
    cells = np.array([[pairs.count((i, j)) for j in order] for i in order])
    s = cohens_kappa(cells, wt=weights)
    assert np.allclose(r.ci, (s.kappa_low, min(1, s.kappa_upp)), atol=1e-9) and close(r.p, s.pvalue_two_sided)
    grouped = kappa(a, b, weights, groups=range(60))
    assert np.allclose(kappa(a, b, weights).ci, grouped.ci, atol=.03)
    assert close(grouped.estimate, r.estimate) and np.allclose(grouped.ci, r.ci, atol=.08)
    words = lambda v: [None if i is None else 'dcba'[int(i)] for i in v]
    assert close(kappa(words(a), words(b), weights, labels='d c b a'.split()).estimate,
                 cohen_kappa_score(x, y, weights=weights, labels=[0, 1, 2, 3]))


def test_kappa_of_a_rare_label_is_not_worse_than_chance():
    "Six items of 60 are labelled by each, never the same: kappa is -1/9, as happens by chance in half of such tables."
    a, b = [1]*6 + [0]*54, [0]*6 + [1]*6 + [0]*48
    r = kappa(a, b)
    assert close(r.estimate, (48/60 - .82)/.18) and r.low < 0 < r.high and r.p > .05


def test_kappa_edges():
    assert kappa([], []).estimate is None and kappa([None], [1]).estimate is None
    assert kappa(['a'], ['a']).estimate is None
    r = kappa([1, 2, 2], [1, 2, 2], method='asymptotic')
    assert r.estimate == 1 and r.ci is None and r.note
    r = kappa([1, 2, 2, 1], [1, 2, 2, 1])
    assert r.kind == 'bound' and r.high == 1 and close(r.low, 2*.05**(1/4) - 1) # on a scale two wide
    assert 'one and the same' in kappa(['a', 'a'], ['a', 'a']).note
    assert kappa([1, 2], [2, 1]).estimate == -1
    # 5 is one category from 2, unless the categories between them are named.
    assert kappa([1, 2, 5], [1, 5, 5], 'linear').estimate != kappa([1, 2, 5],
                                                                   [1, 5, 5], 'linear', labels=[1, 2, 3, 4, 5]).estimate


@pytest.mark.parametrize('seed', range(12))
def test_largest_matching(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 6, 2)
    fits = rng.random((n, m)) < .4
    r = claim_overlap(range(n), range(m), match=lambda x, y: fits[x, y])
    short, long = (fits, m) if n <= m else (fits.T, n)
    best = max(sum(short[i, j] for i, j in enumerate(columns))
               for columns in itertools.permutations(range(long), len(short)))
    assert r.matched == best == len(r.pairs) and all(fits[i, j] for i, j in r.pairs)
    assert len({i for i, _ in r.pairs}) == len({j for _, j in r.pairs}) == best
    assert close(r.jaccard, best/(n + m - best)) and close(r.precision, best/n) and close(r.recall, best/m)
    if best: assert close(r.f1, 2*r.precision*r.recall/(r.precision + r.recall))
    other = claim_overlap(range(n), range(m), match=lambda x, y: .8 if fits[x, y] else .2, threshold=.5)
    assert other.matched == best


def test_claims():
    assert same_claim('  The FOX ran.', 'the fox, ran') and not same_claim('The fox ran', 'The fox runs')
    assert same_claim('Straße', 'STRASSE') and not same_claim('+', '-')
    likeness = lambda x, y: 1. if x == y else .95
    # of two largest matchings the one with twins
    assert claim_overlap(['a', 'b'], ['b', 'a'], likeness, .9).pairs == ((0, 1), (1, 0))
    empty, half = claim_overlap([], []), claim_overlap([], ['a'])
    assert empty.jaccard is empty.precision is empty.recall is empty.f1 is None and empty.note
    assert (half.jaccard, half.precision, half.recall, half.f1) == (0, None, 0, 0) and half.note == 'no claims in a'
    assert claim_overlap(['a', 'a'], ['a', 'a']).jaccard == 1 and claim_overlap(['a', 'a'], ['a']).jaccard == .5
    assert claim_overlap(['a'], ['b'], match=lambda x, y: None, threshold=.1).matched == 0

def test_kappa_ignores_categories_of_dropped_items():
    """The 3 stands only beside a missing label, so the weights go from 1 over 2 to 4, as for scikit-learn on the
    complete pairs."""
    a, b = [1, 2, 4, 4, 2, 3], [1, 4, 4, 2, 2, None]
    assert kappa(a, b, weights='linear').estimate == pytest.approx(cohen_kappa_score(a[:5], b[:5], weights='linear'),
                                                                   abs=1e-12) == .5
    assert kappa(a, b, weights='linear').asked == 6 and kappa(a, b, weights='linear').n == 5


SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
# The paper's six coefficients, and intervals by pingouin 0.6.1, `intraclass_corr(long table)`.
PINGOUIN = {'ICC(1,1)': (.17, (-.13, .72)), 'ICC(2,1)': (.29, (.02, .76)), 'ICC(3,1)': (.71, (.34, .95)),
            'ICC(1,k)': (.44, (-.88, .91)), 'ICC(2,k)': (.62, (.07, .93)), 'ICC(3,k)': (.91, (.68, .99))}


@pytest.mark.parametrize('form', ICC_FORMS)
def test_icc_published(form):
    r, (value, ends) = icc(SHROUT_FLEISS, form), PINGOUIN[form]
    assert round(r.estimate, 2) == value and tuple(round(x, 2) for x in r.ci) == ends and (r.n, r.asked) == (6, 6)
    # pingouin's F of forms 1 and 3, one-sided: .1648 and .000135
    assert r.p == pytest.approx(2*(.1647688083 if '(1' in form else .0001345665), rel=1e-6)
    gap = icc([*SHROUT_FLEISS, [1, 2, None, 4]], form)
    assert gap.estimate == r.estimate and (gap.n, gap.asked) == (6, 7) and 'missing value left out: 1' in gap.note
    far = icc([[1e9 + 3*v for v in row] for row in SHROUT_FLEISS], form)
    assert math.isclose(far.estimate, r.estimate, rel_tol=1e-6)


def icc_from_anova(x, form):
    "From statsmodels' sums of squares, by the paper's formulas."
    import statsmodels.formula.api as smf
    from statsmodels.stats.anova import anova_lm
    n, k = x.shape
    long = pd.DataFrame([(i, j, x[i, j]) for i in range(n) for j in range(k)], columns=['row', 'rater', 'value'])
    squares = anova_lm(smf.ols('value ~ C(row) + C(rater)', long).fit())['sum_sq']
    b, j, e = squares['C(row)']/(n - 1), squares['C(rater)']/(k - 1), squares['Residual']/((n - 1)*(k - 1))
    w = (squares['C(rater)'] + squares['Residual'])/(n*(k - 1))
    return {'ICC(1,1)': (b - w)/(b + (k - 1)*w), 'ICC(2,1)': (b - e)/(b + (k - 1)*e + k*(j - e)/n),
            'ICC(3,1)': (b - e)/(b + (k - 1)*e), 'ICC(1,k)': (b - w)/b, 'ICC(2,k)': (b - e)/(b + (j - e)/n),
            'ICC(3,k)': (b - e)/b}[form]


@pytest.mark.parametrize('form', ICC_FORMS)
def test_icc_over_groups(form):
    "Groups of rows left out, each with its own analysis of variance."
    rng = np.random.default_rng(3)
    groups = np.repeat(range(6), [2, 3, 4, 3, 2, 4])
    x = rng.normal(0, 2, 18)[:, None] + rng.normal(0, 1, 3) + rng.normal(size=(18, 3))
    r = icc(x, form, groups=groups)
    without = np.array([icc_from_anova(x[groups != g], form) for g in range(6)])
    whole = icc_from_anova(x, form)
    assert close(r.estimate, whole) and r.groups == 6
    assert math.isclose(r.statistic, whole/math.sqrt(5/6*np.sum((without - whole)**2)), rel_tol=1e-9) and r.high <= 1


def test_icc_edges():
    for form in ICC_FORMS:
        r = icc([[1, 1], [2, 2], [5, 5]], form)
        assert r.estimate == 1 and r.one_sided # at least something, not certainly 1
        assert icc([[2, 2], [2, 2]], form).estimate is None and icc([[1, None]], form).estimate is None
    assert icc([[1, 2], [2, 3], [5, 6]], 'ICC(3,1)').estimate == 1 and icc([[1, 2], [2, 3], [5, 6]]).estimate < 1
    assert icc([[1, 9], [9, 1]], 'ICC(1,1)').estimate == -1
    with pytest.raises(BadInput, match='ICC'): icc(SHROUT_FLEISS, 'ICC1')
    with pytest.raises(BadInput, match='two raters'): icc([[1], [2]])
    with pytest.raises(BadInput, match='must be numbers'): icc([['a', 'b']])


def test_ac1_is_irrcacs():
    "irrCAC 0.4.4, `CAC(pd.DataFrame(dict(a=a, b=b))).gwet()`: .7561 and .72093."
    assert round(ac1(['yes']*9 + ['no'], ['yes']*8 + ['no', 'yes']).estimate, 4) == .7561
    r = ac1('a b c a b c a a b b c c a b c a'.split(), 'a b c a b b a a b b a c a b c b'.split())
    assert round(r.estimate, 5) == .72093 and r.low < .72093 < r.high and r.p < .01
    assert r.kind == 't'


def test_ac1_edges():
    "Where kappa sees chance only, AC1 stays with the agreement; missing labels go, unused categories count."
    a, b = [1]*48 + [0, 1], [1]*48 + [1, 0]
    assert kappa(a, b).estimate < 0 and ac1(a, b).estimate > .95
    assert ac1(['a', 'a'], ['a', 'a']).estimate == 1 and ac1(['a', 'a'], ['a', 'a']).one_sided
    gap = ac1([*a, None, 1], [*b, 1, None])
    assert gap.estimate == ac1(a, b).estimate and (gap.n, gap.asked) == (50, 52)
    assert ac1(a, b, labels=[0, 1, 2]).estimate > ac1(a, b).estimate
    assert ac1([None], ['x']).estimate is None
    with pytest.raises(BadInput, match='not among'): ac1(a, b, labels=[1])


def test_ac1_over_groups():
    "Leaving out each group, by computing AC1 again."
    rng = np.random.default_rng(4)
    groups = np.repeat(range(8), 5)
    a = rng.integers(0, 3, 40)
    b = np.where(rng.random(40) < .7, a, rng.integers(0, 3, 40))
    r, whole = ac1(a, b, groups=groups), ac1(a, b).estimate
    def by_hand(a, b):
        used = [np.mean([np.mean(a == c), np.mean(b == c)]) for c in range(3)]
        chance = sum(p*(1 - p) for p in used)/2
        return (np.mean(a == b) - chance)/(1 - chance)
    without = np.array([by_hand(a[groups != g], b[groups != g]) for g in range(8)])
    assert close(whole, by_hand(a, b)) and close(r.estimate, whole)
    assert np.allclose(r.ci, jackknife_interval(whole, without, np.full(8, 1/8), (-1, 1), 0)['ci'])

@pytest.mark.parametrize('form', ['ICC(1,1)', 'ICC(2,1)', 'ICC(3,1)'])
@pytest.mark.parametrize('table', [[[1, 5], [5, 1], [3, 3]], [[1, 2, 3], [3, 2, 1], [2, 2, 2]], [[1, 5], [5, 1], [3, 4],
                                   [4, 2]], [[1, 4], [2, 5], [3, 1], [4, 2]], [[1, 5], [5, 1]]])
def test_no_icc_is_below_the_least_of_k_raters(table, form):
    "k numbers can't be less alike than -1/(k - 1) (Fisher); the interval holds the estimate and has a width."
    r, least = icc(table, form), -1/(len(table[0]) - 1)
    assert least - 1e-12 <= r.ci[0] <= r.estimate + 1e-12 and r.estimate <= r.ci[1] <= 1
    assert r.ci[1] - r.ci[0] > .1

def test_where_raters_do_not_differ_icc_2_is_icc_3():
    """By hand: rows add up to 6, 6, 7, 6 and raters to 13, 12; 25**2/8 = 78.125. Rows 157/2 - 78.125 = 0.375, raters
    313/4 - 78.125 = 0.125, all 97 - 78.125 = 18.875, the rest 18.375. B = 0.125, J = 0.125, E = 6.125; J is below E."""
    assert icc([[1, 5], [5, 1], [3, 4], [4, 2]], 'ICC(2,1)').estimate == pytest.approx((.125 - 6.125)/(.125 + 6.125))
