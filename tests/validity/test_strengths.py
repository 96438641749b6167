"Bradley-Terry strengths: by hand, by a logistic regression of another package, with reasons where there is none."
import math

import numpy as np
import pytest

from factlib.core.records import BadInput
from factlib.validity.strengths import bradley_terry, fit_strengths

def games(rng, systems=4, n=300):
    "Labels, who won (ties among them), groups."
    pairs = np.array([rng.permutation(systems)[:2] for _ in range(n)])
    strengths = np.linspace(1, -1, systems)
    p = 1/(1 + np.exp(-(strengths[pairs[:, 0]] - strengths[pairs[:, 1]])))
    won = np.where(rng.random(n) < .1, .5, (rng.random(n) < p)*1.)
    return *np.array(list('ABCDEFGH'))[pairs].T.tolist(), won, np.arange(n)//5

def test_two_things_by_hand():
    r = bradley_terry(['A']*8, ['B']*8, [1, 1, 1, 1, 1, .5, .5, 0])
    assert np.allclose(r.estimates, [math.log(6/2)/2, -math.log(6/2)/2]) # 6 of 8 points
    assert r.comparisons == dict(A=8, B=8) and r.results['A'].low < r.results['A'].estimate < r.results['A'].high

def test_the_same_as_a_logistic_regression_without_intercept():
    sm = pytest.importorskip('statsmodels.api')
    first, second, won, _ = games(np.random.default_rng(1))
    names = sorted(set(first) | set(second))
    x = np.array([[(a == name)*1. - (b == name) for name in names[1:]] for a, b in zip(first, second)])
    fitted = sm.GLM(won, x, family=sm.families.Binomial()).fit() # .5 is half a win in its likelihood, too
    theirs = np.concatenate([[0], fitted.params])
    r = bradley_terry(first, second, won)
    ours = [r.results[name].estimate for name in names]
    assert np.allclose(ours, theirs - theirs.mean(), atol=1e-6)

def test_the_interval_leaves_out_each_group():
    first, second, won, groups = games(np.random.default_rng(2), 3, 60)
    r = bradley_terry(first, second, won, groups=groups)
    place = r.names.index('A')
    without = []
    for g in np.unique(groups):
        keep = groups != g
        part = bradley_terry(*(np.array(x)[keep].tolist() for x in (first, second)), won[keep])
        without.append(part.results['A'].estimate)
    assert np.allclose(r.without[:, place], without, atol=1e-8)
    n = len(without)
    error = math.sqrt((n - 1)/n*np.sum((np.array(without) - r.results['A'].estimate)**2))
    from scipy.stats import t
    assert math.isclose(r.results['A'].high - r.results['A'].estimate, t.isf(.025, n - 1)*error, rel_tol=1e-6)

def test_reasons_where_there_is_no_strength():
    circle = [('A', 'B', 1), ('B', 'C', 1), ('C', 'A', 1)]*2
    r = bradley_terry(*zip(*circle, ('W', 'A', 1), ('L', 'A', 0), ('X', 'Y', 1)))
    assert np.allclose([r.results[x].estimate for x in 'ABC'], 0, atol=1e-8)
    notes = {x: r.results[x].note for x in 'WLX'}
    assert 'won all' in notes['W'] and 'lost all' in notes['L'] and 'never compared' in notes['X']
    assert all(r.results[x].estimate is None for x in 'WLXY')
    none = bradley_terry(['A', 'A'], ['B', 'C'], [1, 1])
    assert all(x.estimate is None and x.note for x in none.results.values())

def test_no_interval_where_a_single_group_joins_them():
    r = bradley_terry(['A', 'A', 'A'], ['B', 'B', 'B'], [1, 1, 0])
    assert r.results['A'].estimate and r.results['A'].ci is None and 'without 1 of the 3 groups' in r.results['A'].note
    alone = bradley_terry(['A', 'A'], ['B', 'B'], [1, 0], groups=['g', 'g'])
    assert alone.results['A'].estimate == pytest.approx(0) and 'only one group' in alone.results['A'].note

def test_a_tie_is_half_a_win_and_itself_is_no_opponent():
    r = bradley_terry(['A', 'A', 'A'], ['B', 'B', 'A'], [.5, .5, 1])
    assert np.allclose(r.estimates, 0) and r.comparisons['A'] == 2
    with pytest.raises(BadInput, match='tied'): bradley_terry(['A'], ['B'], [.3])

def test_many_tables_at_a_time_and_far_apart():
    wins = np.array([[[0, 999.], [1, 0]], [[0, 5.], [0, 0]], [[0, 2.], [2, 0]]])
    found = fit_strengths(wins)
    assert math.isclose(found[0, 0], math.log(999)/2, rel_tol=1e-8) and np.isnan(found[1]).all()
    assert np.allclose(found[2], 0)
