"validity.calibration against ppi_py, statsmodels, scikit-learn, by hand, and on simulated documents."
import importlib.util
import math, re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.api as sm
from sklearn.isotonic import IsotonicRegression

from factlib.core.records import Absence, BadInput
from factlib.validity.calibration import METHODS, calibrated_difference, calibrated_mean, drift, judge_bias
from factlib.validity.calibration import labels_needed

close = lambda a, b: math.isclose(a, b, rel_tol=1e-10, abs_tol=1e-10)
spec = importlib.util.spec_from_file_location('calibrated', Path(__file__).parents[2]/'benchmarks'/'calibration.py')
benchmark = importlib.util.module_from_spec(spec)
spec.loader.exec_module(benchmark)


# Without groups: ppi_py 0.2.3, `ppi_mean_pointestimate(y, f, u)` and `(y, f, u, w=w, w_unlabeled=v)`, lam=None (tuned).

def pilot(seed, kind, n=40, more=260):
    "(labels, the judge's scores of these, its scores of others, weights of both)."
    r = np.random.default_rng(seed)
    y = r.normal(3, 1, n + more)
    f = .8*y + r.normal(.5, .7, n + more)
    if kind == 'two labels':
        y = (y > 3)*1.
        f = np.where(r.random(n + more) < .85, y, 1 - y)
    if kind == 'contrary': f = -f
    w = r.uniform(.5, 2, n + more)
    return y[:n], f[:n], f[n:], w[:n], w[n:]


PPI_PY = {(0, 'scores'): (2.970554366508599, 2.9381122369985984),
          (0, 'two labels'): (0.4650262408824053, 0.4641868276891389),
          (0, 'contrary'): (2.9395557006829702, 2.907643972598952),
          (1, 'scores'): (3.0100305604434245, 3.008759136585744),
          (1, 'two labels'): (0.5467147687071785, 0.49330592127618034),
          (1, 'contrary'): (3.002801187074279, 2.9693989719509326),
          (2, 'scores'): (2.943587587786915, 2.888005615583285),
          (2, 'two labels'): (0.5346091215165119, 0.5179495730539165),
          (2, 'contrary'): (3.0036393648071806, 2.907356472709707)}


@pytest.mark.parametrize('seed, kind', PPI_PY)
def test_point_is_ppi_pys(seed, kind):
    y, f, u, w, v = pilot(seed, kind)
    judge, labels = [*f, *u], [*y, *[None]*len(u)]
    plain, weighted = calibrated_mean(judge, labels), calibrated_mean(judge, labels, weights=[*w, *v])
    assert close(plain.estimate, PPI_PY[seed, kind][0]) and close(weighted.estimate, PPI_PY[seed, kind][1])
    assert plain.low < plain.estimate < plain.high and '40 labels' in plain.note
    if kind == 'contrary': # c is 0: the judge is not used
        assert plain.estimate == calibrated_mean(judge, labels, method='labels').estimate == pytest.approx(np.mean(y))
    order = np.random.default_rng(seed).permutation(len(judge))
    again = calibrated_mean(np.array(judge)[order], np.array(labels, dtype=float)[order])
    assert np.allclose([again.estimate, *again.ci], [plain.estimate, *plain.ci], atol=1e-10)


def test_interval_of_ppi_py():
    """ppi_mean_ci(y, f, u, alpha=.05) of seed 0 gives [2.7595927, 3.1815159]: 1.96 errors of n (not n - 1), c as if it
    were known. Ours is a little wider, by t and with c left out as well."""
    y, f, u, _, _ = pilot(0, 'scores')
    r = calibrated_mean([*f, *u], [*y, *[None]*len(u)])
    assert r.low < 2.7595927 and r.high > 3.1815159 and r.high - r.low < 1.1*(3.1815159 - 2.7595927)


def test_labels_alone_are_a_t_test():
    "With method 'labels', and everything labelled, it is the mean with the interval of any textbook."
    y = np.random.default_rng(0).normal(2, 1, 30)
    for method in ('ppi', 'labels'):
        r = calibrated_mean(np.random.default_rng(1).normal(size=30), y, method=method)
        assert close(r.estimate, y.mean())
        assert np.allclose(r.ci, scipy.stats.t.interval(.95, 29, y.mean(), scipy.stats.sem(y)))
    # documents of equal size: t of their means
    documents = np.repeat(range(6), 5)
    means = y.reshape(6, 5).mean(1)
    r = calibrated_mean(y, y, documents)
    assert np.allclose(r.ci, scipy.stats.t.interval(.95, 5, means.mean(), scipy.stats.sem(means)))
    assert (r.n, r.asked, r.groups) == (30, 30, 6)


def test_groups_by_definition():
    "Half-labelled documents: c by trying all, the mean of the judge over all texts."
    rng = np.random.default_rng(4)
    documents = np.repeat(range(12), [1, 2, 3, 4, 5, 6, 3, 3, 3, 3, 3, 3])
    y = rng.normal(0, 1, 12)[documents] + rng.normal(0, 1, len(documents))
    judge = y + 1 + rng.normal(0, .8, len(y))
    labels = [v if rng.random() < .5 else None for v in y]
    some = np.array([v is not None for v in labels])
    places = np.array([np.nan if v is None else v for v in labels], float)
    names, everything = np.unique(documents), np.ones(len(judge), dtype=bool)
    estimate = lambda keep, c: c*judge[keep].mean() + (places - c*judge)[keep & some].mean()
    spread = lambda c: sum((estimate(documents != d, c) - estimate(everything, c))**2 for d in names)
    c = min(np.linspace(0, 1, 1001), key=spread)
    r = calibrated_mean(judge, labels, [f'd{d}' for d in documents])
    assert 0 < c < 1 and abs(float(re.search(r'c = ([.0-9]+)', r.definition)[1]) - c) < 2e-3
    assert abs(r.estimate - estimate(everything, c)) < 1e-3
    # The error: without each document, c being the least there as well (moves of the others, as they were).
    base, shift = places[some].mean(), judge.mean() - judge[some].mean()
    off = lambda d: (places[some & (documents != d)].mean() - base,
                     judge[documents != d].mean() - judge[some & (documents != d)].mean() - shift)
    moves = np.array([off(d) for d in names])
    fit = lambda m: float(np.clip(-(m[:, 0] @ m[:, 1])/(m[:, 1] @ m[:, 1]), 0, 1))
    without = [estimate(documents != d, fit(np.delete(moves, i, axis=0))) for i, d in enumerate(names)]
    exact = base + fit(moves)*shift
    error = math.sqrt(11/12*np.sum((np.array(without) - exact)**2))
    assert close(r.estimate, exact) and close((r.high - r.low)/2, error*scipy.stats.t.isf(.025, r.df))


def test_isotonic_leaves_the_group_out():
    "What stands for the judge's score in a document is scikit-learn's curve of the other documents' labels."
    rng = np.random.default_rng(5)
    documents, judge = np.repeat(range(20), 4), rng.integers(1, 6, 80).astype(float)
    truth = np.sqrt(judge) + rng.normal(0, .3, 80)
    labels = np.where(rng.random(80) < .4, truth, np.nan)
    some = ~np.isnan(labels)
    curve = np.empty(80)
    for d in range(20):
        fitted = some & (documents != d)
        ours = IsotonicRegression(out_of_bounds='clip').fit(judge[fitted], labels[fitted])
        curve[documents == d] = ours.predict(judge[documents == d])
    r, same = calibrated_mean(judge, labels, documents, 'isotonic'), calibrated_mean(curve, labels, documents)
    assert close(r.estimate, same.estimate) and np.allclose(r.ci, same.ci)


def test_rogan_gladen_by_hand():
    """50 texts to which the judge says yes 26 times. Of 20 labelled ones it finds 9 of 10 and passes 8 of 10:
    (.52 + .8 - 1)/(.9 + .8 - 1)."""
    judge = [1]*9 + [0] + [1]*2 + [0]*8 + [1]*15 + [0]*15
    labels = [1]*10 + [0]*10 + [None]*30
    r = calibrated_mean(judge, labels, method='rogan_gladen')
    assert close(r.estimate, .32/.7) and 0 < r.low < r.estimate < r.high < 1
    # Everything labelled: the labels' own share, whatever the judge is.
    r = calibrated_mean(judge[:20], labels[:20], method='rogan_gladen')
    assert close(r.estimate, .5)
    for judge, labels, why in (([1, 0, 1, 0], [0, 1, 1, 0], 'no better than chance'), ([1, 1], [1, 1], 'all alike')):
        r = calibrated_mean(judge, labels, method='rogan_gladen')
        assert r.estimate is None and r.ci is None and why in r.note
    with pytest.raises(BadInput, match='two labels'): calibrated_mean([.5, 1], [0, 1], method='rogan_gladen')


def test_what_is_missing():
    r = calibrated_mean([1, 2, None, Absence.refused, 4], [1, None, 3, None, 5])
    assert (r.n, r.asked) == (3, 5) and '2 labels' in r.note and '2 without a judgement' in r.note
    for method in METHODS:
        r = calibrated_mean([1, 0], [None, None], method=method)
        assert r.estimate is None and 'no labels' in r.note
    r = calibrated_mean([1, 2, 3], [1, 2, None], ['a', 'a', 'b'])
    assert r.estimate is not None and r.ci is None and 'only one group has labels' in r.note
    assert calibrated_mean([1, 2, 3], [1, 2, None], ['a', 'a', 'b'], method='isotonic').estimate is None
    assert calibrated_mean([], []).estimate is None
    for judge, labels, options, why in (([1], [1, 2], {}, 'labels'), ([1, 2], [1, 2], dict(weights=[1, 0]), 'weight'),
                                        ([1, 2], [1, 2], dict(method='mean'), 'method'),
                                        ([1, 2], [1, 2], dict(limits=(5, 1)), 'limits'),
                                        (['a'], [1], {}, 'numbers'), ([1, 2], [1, 2], dict(groups=['a']), 'group')):
        with pytest.raises(BadInput, match=why): calibrated_mean(judge, labels, **options)


def test_scores_outside_the_labelled_range():
    judge, labels = [*np.linspace(1, 3, 40), *[2]*55, *[5]*5], [*np.linspace(1, 3, 40), *[None]*60]
    assert '5 % of scores lie outside' in calibrated_mean(judge, labels).note
    assert 'outside' not in calibrated_mean([*judge, 2.], [*labels, None]).note


def test_nothing_seen_is_not_nothing():
    "Forty labels, all as the judge says: 1 - .025**(1/40) of the others may be off, and the interval is so much wider."
    rng = np.random.default_rng(0)
    judge = (rng.random(400) < .7).astype(int)
    labels = [v if i < 40 else None for i, v in enumerate(judge)]
    q = 1 - .025**(1/40)
    for method in ('ppi', 'rogan_gladen'):
        r = calibrated_mean(judge, labels, method=method)
        assert abs(r.estimate - judge.mean()) < .02 and r.high - r.low > 1.7*q and 'never part' in r.note
    # All labels alike: a bound, no certainty.
    r = calibrated_mean(judge, [1 if i < 40 else None for i in range(400)])
    assert r.estimate == 1 and r.kind == 'bound' and close(r.low, .05**(1/40))


def test_weights():
    "A text that counts twice is a text given twice, in its document."
    rng = np.random.default_rng(3)
    documents, judge = np.repeat(range(10), 3), rng.normal(size=30)
    labels = np.where(rng.random(30) < .6, judge + rng.normal(0, .5, 30), np.nan)
    weights = rng.integers(1, 3, 30)
    twice = lambda x: np.repeat(x, weights)
    for method in ('ppi', 'isotonic', 'labels'):
        r = calibrated_mean(judge, labels, documents, method, weights)
        again = calibrated_mean(twice(judge), twice(labels), twice(documents), method)
        assert close(r.estimate, again.estimate)
        share = lambda d: np.bincount(d)/len(d)
        if np.allclose(share(documents), share(twice(documents))): assert np.allclose(r.ci, again.ci)
    two = (judge > 0)*1
    r = calibrated_mean(two, np.where(np.isnan(labels), np.nan, labels > 0), documents, 'rogan_gladen', weights)
    again = calibrated_mean(twice(two), twice(np.where(np.isnan(labels), np.nan, labels > 0)), twice(documents),
                            'rogan_gladen')
    assert close(r.estimate, again.estimate)


def test_coverage():
    "200 draws of the study in benchmarks/calibration.py: a share of .95 has a binomial error of .015."
    found = benchmark.covered(200, 11)
    cover, width = ({key: values[i] for key, values in found.items()} for i in (0, 1))
    assert all(.91 <= cover[method, True] <= .99 for method in ('ppi', 'isotonic', 'labels'))
    assert cover['ppi', False] <= .91 and cover['ppi', False] < cover['ppi', True] - .03
    assert width['ppi', True] < .85*width['labels', True] and width['isotonic', True] < width['labels', True]


def test_difference_is_within_the_texts():
    "Everything labelled: the paired t-test. A judge who is off by the same on both changes nothing."
    rng = np.random.default_rng(6)
    a, b = rng.normal(.3, 1, 30), rng.normal(0, 1, 30)
    r, t = calibrated_difference(a + 1, a, b + 1, b), scipy.stats.ttest_rel(a, b)
    assert close(r.estimate, np.mean(a - b)) and close(r.p, t.pvalue) and np.allclose(r.ci, t.confidence_interval())
    some = np.arange(300) % 6 == 0
    document = np.repeat(range(60), 5)
    shared = rng.normal(0, 2, 60)[document] # hard documents are hard for both
    a, b = shared + .5 + rng.normal(0, .5, 300), shared + rng.normal(0, .5, 300)
    hidden = lambda x: np.where(some, x, np.nan)
    judged = [x + rng.normal(0, .5, 300) for x in (a, b)]
    r = calibrated_difference(judged[0], hidden(a), judged[1], hidden(b), document)
    alone = calibrated_difference(judged[0], hidden(a), judged[1], hidden(b), document, method='labels')
    assert r.low < .5 < r.high and r.high - r.low < alone.high - alone.low and r.groups == 60
    one = calibrated_mean(judged[0], hidden(a), document)
    assert r.high - r.low < .5*(one.high - one.low) # the documents' differences fall out
    swapped = calibrated_difference(judged[1], hidden(b), judged[0], hidden(a), document)
    assert close(swapped.estimate, -r.estimate) and np.allclose(swapped.ci, [-r.high, -r.low])


def test_difference_of_other_labels():
    "a's and b's labels lie on other texts; missing ones are said."
    rng = np.random.default_rng(7)
    y = rng.normal(size=200)
    a, b = np.where(np.arange(200) < 30, y, np.nan), np.where(np.arange(200) >= 170, y, np.nan)
    r = calibrated_difference(y, a, y + .1, b)
    assert r.low < 0 < r.high and r.asked == 200 and 'a: 30 labels' in r.note
    assert 'b: no labels' in calibrated_difference(y, a, y, [None]*200).note
    assert calibrated_difference([None, *y], [None, *a], [1, *y], [None, *b]).n == 200
    with pytest.raises(BadInput, match='of a'): calibrated_difference(y, a, y[:5], b[:5])
    with pytest.raises(BadInput, match='method'): calibrated_difference(y, a, y, b, method='rogan_gladen')


@pytest.mark.parametrize('grouped', [False, True])
def test_labels_needed(grouped):
    "So many labels, drawn anew, give the width that was wanted, within a sixth on average."
    rng = np.random.default_rng(8)
    document = np.repeat(range(200), 5)
    y = .6*rng.normal(size=200)[document]*grouped + rng.normal(size=1000)
    f = y + .5 + rng.normal(0, .8, 1000)
    def drawn(n): return np.where(np.isin(np.arange(1000), rng.choice(1000, n, replace=False)), y, np.nan)
    groups, wanted = document if grouped else None, .35
    needed = np.mean([float(labels_needed(f, drawn(80), wanted, groups)) for _ in range(12)])
    width = np.mean([(r := calibrated_mean(f, drawn(round(needed)), groups)).high - r.low for _ in range(12)])
    assert abs(width - wanted) < wanted/6 and 40 < needed < 1000
    more = labels_needed(f, drawn(80), .01, groups)
    assert float(more) == more.asked > 1000 and 'it takes about' in more.note
    assert more.groups > 200 if grouped else more.groups is None
    fewer = labels_needed(f, drawn(400), .9, groups)
    assert float(fewer) < 400 and 'more labels than that' in fewer.note


@pytest.mark.parametrize('method, wanted', [('labels', .4), ('ppi', .35)])
def test_labels_needed_reach_the_width_in_four_of_five_draws(method, wanted):
    rng, reached = np.random.default_rng(0), []
    for _ in range(120):
        y = rng.normal(size=1000)
        f = y + .5 + rng.normal(0, .8, 1000)
        def drawn(n): return np.where(np.isin(np.arange(1000), rng.choice(1000, n, replace=False)), y, np.nan)
        r = calibrated_mean(f, drawn(int(float(labels_needed(f, drawn(40), wanted, method=method)))), method=method)
        reached.append(r.high - r.low <= wanted)
    assert .67 < np.mean(reached) < .93 # .8, with three errors of 120 draws to either side

@pytest.mark.parametrize('grouped', [False, True])
def test_labels_needed_of_a_draw_by_doubt(grouped):
    "So many labels, drawn with chances in the same proportions, give the width that was wanted, within a sixth."
    rng = np.random.default_rng(12)
    document, unsure = np.repeat(range(200), 5), rng.choice([.3, 1, 3], 1000)
    y = .6*rng.normal(size=200)[document]*grouped + rng.normal(size=1000)
    f = y + .5 + rng.normal(0, .5, 1000)*unsure
    groups, wanted = document if grouped else None, .35
    def drawn(n):
        chance = np.minimum(.9, n*unsure/unsure.sum())
        own = rng.random(1000) < chance
        return np.where(own, y, np.nan), np.where(own, 1/chance, 1/(1 - chance))
    found = [float(labels_needed(f, labels, wanted, groups, weights=w)) for labels, w in map(drawn, [100]*24)]
    results = [calibrated_mean(f, labels, groups, weights=w) for labels, w in map(drawn, [np.mean(found)]*24)]
    assert abs(np.mean([r.high - r.low for r in results]) - wanted) < wanted/6 and 40 < np.mean(found) < 600


def test_labels_needed_with_weights_that_are_all_alike():
    rng = np.random.default_rng(13)
    f, y = rng.normal(size=(2, 60))
    y[20:] = np.nan
    for groups in (None, np.arange(60) % 20):
        assert labels_needed(f, y, .7, groups, weights=[3]*60) == labels_needed(f, y, .7, groups)


def test_labels_needed_of_labels_alone():
    "Independent labels with s = 1, nothing from the judge, endless texts: (2*1.96/width)**2."
    labels = [*np.tile([1., -1.], 50)*math.sqrt(.99), *[None]*99_900]
    needed = lambda **power: float(labels_needed(np.zeros(100_000), labels, .1, **power))
    assert abs(needed(power=.5) - (2*1.96/.1)**2) < 25
    # in four of five draws the variance of the next is at most 1.14 times that of these: a table of F with 1,700 and 99
    assert abs(needed() - 1.14*(2*1.96/.1)**2) < 30
    r = labels_needed([1, 2, 3], [1, None, None], .1)
    assert r.estimate is None and 'at least three' in r.note
    with pytest.raises(BadInput, match='positive'): labels_needed([1], [1], 0)


def test_bias_is_a_regression():
    "The slopes of statsmodels, and a jackknife by refitting."
    rng = np.random.default_rng(9)
    document = np.repeat(range(25), 4)
    length, own, y = rng.normal(100, 30, 100), (rng.random(100) < .3)*1., rng.normal(size=100)
    f = y + .01*length - .4*own + rng.normal(size=25)[document] + rng.normal(size=100)
    labels = [v if i % 7 else None for i, v in enumerate(y)]
    some = np.array([v is not None for v in labels])
    for held in (False, True):
        r = judge_bias(f, labels, dict(length=length, own=own), document, hold_label=held)
        x = np.column_stack([length, own] + [y]*held)
        fit = lambda keep: sm.OLS((f - y)[keep], sm.add_constant(x[keep])).fit().params[1:]
        names = ['length', 'own'] + ['label']*held
        assert list(r) == ['mean', *names]
        whole = fit(some)
        without = np.array([fit(some & (document != d)) for d in range(25)])
        errors = np.sqrt(24/25*np.sum((without - whole)**2, axis=0))
        for i, name in enumerate(names):
            assert close(r[name].estimate, whole[i]) and (r[name].n, r[name].asked, r[name].groups) == (85, 100, 25)
            assert math.isclose(r[name].statistic, whole[i]/errors[i], rel_tol=1e-9) and 2 < r[name].df <= 24
        assert math.isclose(r['mean'].estimate, np.mean((f - y)[some]), rel_tol=1e-9)
    # With the people's score held, the slope of the error is that of the judge's score.
    assert close(r['length'].estimate, sm.OLS(f[some], sm.add_constant(x[some])).fit().params[1])


def test_bias_of_one_yes_and_no():
    "A single column of 0 and 1, items independent: the difference of two means."
    rng = np.random.default_rng(10)
    own = np.repeat([0, 1], [30, 20])
    f = rng.normal(size=50) + own
    r = judge_bias(f, np.zeros(50), own)['covariate']
    assert close(r.estimate, f[own == 1].mean() - f[own == 0].mean()) and r.low < 1 < r.high
    welch = scipy.stats.ttest_ind(f[own == 1], f[own == 0], equal_var=False)
    assert abs(r.statistic - welch.statistic) < .1
    mean = judge_bias(f, np.zeros(50))
    interval = scipy.stats.t.interval(.95, 49, f.mean(), scipy.stats.sem(f))
    assert list(mean) == ['mean'] and np.allclose(mean['mean'].ci, interval)


def test_bias_without_a_slope():
    rng = np.random.default_rng(11)
    x, f = rng.normal(size=30), rng.normal(size=30)
    fine = rng.normal(size=30)
    r = judge_bias(f, np.zeros(30), dict(x=x, twice=2*x + 3, still=np.full(30, 7.), fine=fine))
    assert r['twice'].estimate is None and r['still'].estimate is None and 'does not vary' in r['still'].note
    assert r['x'].estimate is not None and r['fine'].ci and list(r) == ['mean', 'x', 'twice', 'still', 'fine']
    alone = judge_bias(f, np.zeros(30), pd.DataFrame(dict(x=x, fine=fine))) # as if the others had not been given
    assert all(close(r[name].estimate, alone[name].estimate) for name in alone)
    few = judge_bias([1, 2, 3], [1, 1, 1], dict(a=[1, 2, 4], b=[1, 0, 1]))
    assert few['b'].estimate is None and 'too few' in few['b'].note
    assert judge_bias([1, None], [None, 1], dict(a=[1, 2]))['a'].estimate is None
    with pytest.raises(BadInput, match='"mean"'): judge_bias(f, f, dict(mean=x))
    with pytest.raises(BadInput, match='only one group'): judge_bias(f, f, x, ['d']*30)
    with pytest.raises(BadInput, match='differ in length'): judge_bias(f, f, x[:3])


def test_bias_false_alarms():
    "200 honest judges whose noise lies in documents, on a covariate of documents: about one in twenty has p < .05."
    rng, alarms = np.random.default_rng(12), []
    document = np.repeat(range(20), 5)
    for _ in range(200):
        y, of_document = rng.normal(size=100), rng.normal(size=20)[document]
        f = y + rng.normal(size=20)[document] + rng.normal(size=100)
        alarms.append([judge_bias(f, y, of_document, groups)['covariate'].p < .05 for groups in (document, None)])
    by_groups, by_items = np.mean(alarms, axis=0)
    assert by_groups <= .09 and by_items >= .15


def test_drift():
    rng = np.random.default_rng(13)
    y = rng.normal(size=80)
    f = y + rng.normal(0, .3, 80)
    # The same texts twice: a paired t-test, with and without labels.
    later = f + .2 + rng.normal(0, .2, 80)
    for labels in (None, y, [None]*80):
        r = drift(f, later, labels)
        t = scipy.stats.ttest_rel(later, f)
        assert close(r.estimate, np.mean(later - f)) and close(r.p, t.pvalue)
        assert np.allclose(r.ci, t.confidence_interval())
    # Other texts, which are better: the judge's mean rises, its error does not.
    early, late = [*f[:40], *[None]*40], [*[None]*40, *(f[40:] + 1)]
    better = [*y[:40], *(y[40:] + 1)]
    r, blind = drift(early, late, better), drift(early, late)
    assert r.low < 0 < r.high and blind.low > 0 and 'change of the texts' in blind.note
    error = (f - y)
    assert close(r.estimate, error[40:].mean() - error[:40].mean())
    welch = scipy.stats.ttest_ind(error[40:], error[:40], equal_var=False)
    assert abs(r.statistic - welch.statistic) < .1
    r = drift(early, late, [None if i % 5 == 0 else v for i, v in enumerate(better)], np.repeat(range(16), 5))
    assert (r.n, r.asked, r.groups) == (64, 80, 16) and '16 items without a label' in r.note
    assert drift(early, [None]*80, y).estimate is None
    assert drift([1, 2], [2, 4], groups=['a', 'a']).ci is None
    with pytest.raises(BadInput, match='differ in length'): drift([1], [1, 2])
