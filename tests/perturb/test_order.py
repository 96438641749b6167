"Permutations with exact inversion counts: against brute force, over all reachable counts, and for evenness."
import itertools
import math
from collections import Counter

import numpy as np
import pytest
import scipy
from hypothesis import given, settings, strategies as st

from factlib.core.records import BadInput
from factlib.perturb.order import BANDS, band_inversions, count_permutations, inversions, montage, most_inversions
from factlib.perturb.order import permutation, shuffle_degree
from factlib.perturb.base import Refusal

def naive(order): return sum(a > b for a, b in itertools.combinations(order, 2))

def test_by_hand():
    assert inversions([1, 3, 0, 2]) == 3 # (1,0), (3,0), (3,2)
    assert shuffle_degree([1, 3, 0, 2]) == 3/6
    assert shuffle_degree([4, 3, 2, 1, 0]) == 1 and shuffle_degree(range(5)) == 0
    assert shuffle_degree([0, 1, 2, 4, 3]) == 1/10
    assert inversions([]) == inversions([0]) == 0
    assert inversions(np.array([1, 0])) == 1

@settings(max_examples=100, deadline=None)
@given(st.permutations(range(12)))
def test_against_all_pairs(order): assert inversions(order) == naive(order)

def test_against_kendall():
    order = np.random.default_rng(0).permutation(500)
    tau = scipy.stats.kendalltau(range(500), order).statistic
    assert math.isclose(shuffle_degree(order), (1 - tau)/2)

@pytest.mark.parametrize('order', [[0, 2], [1, 2], [0, 0], [-1, 0], [0.0, 1.0], '01', 3])
def test_no_permutation(order):
    with pytest.raises(BadInput): inversions(order)

@pytest.mark.parametrize('n', [0, 1])
def test_no_order_of_less_than_two(n):
    with pytest.raises(BadInput, match='at least two'): shuffle_degree(range(n))

@pytest.mark.parametrize('method', ['paper', 'uniform'])
def test_exact_counts_over_all_reachable(method):
    "Every n up to 20 and n = 60; every count there."
    rng = np.random.default_rng(1)
    for n in [*range(1, 21), 60]:
        for k in range(most_inversions(n) + 1):
            order = permutation(n, k, rng, method)
            assert inversions(order) == k and len(order) == n

@pytest.mark.parametrize('method', ['paper', 'uniform'])
def test_exact_counts_at_200(method):
    rng = np.random.default_rng(2)
    for k in range(0, most_inversions(200) + 1, 5): assert inversions(permutation(200, k, rng, method)) == k
    assert permutation(200, 19_900, rng, method) == list(range(200))[::-1]

def test_counts_of_permutations_against_brute_force():
    for n in range(1, 8):
        counted = Counter(naive(p) for p in itertools.permutations(range(n)))
        assert [count_permutations(n, k)
                for k in range(-1, most_inversions(n) + 2)] == [counted[k] for k in range(-1, most_inversions(n) + 2)]
    assert sum(count_permutations(40, k) for k in range(781)) == math.factorial(40)

@pytest.mark.parametrize('k', [3, 7, 10])
def test_uniform_is_even(k):
    """Chi-square over all permutations of 6 with k inversions; the paper's sampler fails the same test, so the test can
    fail."""
    rng = np.random.default_rng(3)
    there = count_permutations(6, k)
    def p(method):
        drawn = Counter(tuple(permutation(6, k, rng, method)) for _ in range(40*there))
        return scipy.stats.chisquare([*drawn.values(), *[0]*(there - len(drawn))]).pvalue
    assert p('uniform') > .001 > 1e-6 > p('paper')

def test_uniform_reaches_every_one():
    rng = np.random.default_rng(4)
    for n in (1, 2, 3, 4):
        for k in range(most_inversions(n) + 1):
            there = {p for p in itertools.permutations(range(n)) if naive(p) == k}
            assert {tuple(permutation(n, k, rng, 'uniform')) for _ in range(60*len(there))} == there

def sequential(n, k, rng):
    "Algorithm 1 as it stands, one draw at a time."
    code = [n - 1 - i for i in range(n)]
    while sum(code) > k:
        i = int(rng.integers(n))
        if code[i]: code[i] -= 1
    left = list(range(n))
    return tuple(left.pop(e) for e in code)

def test_the_paper_s_method_is_algorithm_1():
    rng = np.random.default_rng(5)
    ours, theirs = (Counter(draw() for _ in range(4000))
                    for draw in (lambda: tuple(permutation(5, 4, rng)), lambda: sequential(5, 4, rng)))
    keys = sorted(set(ours) | set(theirs))
    assert scipy.stats.chi2_contingency([[ours[x] for x in keys], [theirs[x] for x in keys]]).pvalue > .001

def test_the_seed_decides():
    for method in ('paper', 'uniform'):
        a, b = ([permutation(20, 60, np.random.default_rng(9), method)] for _ in 'ab')
        assert a == b and a != [permutation(20, 60, np.random.default_rng(10), method)]

@pytest.mark.parametrize('arguments, message', [
    ((3, 4, np.random.default_rng(0)), '0 to 3'), ((3, -1, np.random.default_rng(0)), '0 to 3'),
    ((0, 0, np.random.default_rng(0)), 'whole number from 1'),
    ((3, 1.5, np.random.default_rng(0)), 'whole number'), ((True, 0, np.random.default_rng(0)), 'whole number'),
    ((3, 1, 7), 'Generator'),
    ((3, 1, np.random.default_rng(0), 'best'), 'no method'),
    ((251, 1, np.random.default_rng(0), 'uniform'), 'up to 250')])
def test_bad_arguments(arguments, message):
    with pytest.raises(BadInput, match=message): permutation(*arguments)

def test_bands_hold_what_they_should():
    assert not any(band_inversions(n, d) for n in (0, 1) for d in BANDS)
    for n in range(2, 60):
        for difficulty, (low, high) in BANDS.items():
            inside = [k for k in range(most_inversions(n) + 1)
                      if low*most_inversions(n) <= 100*k <= high*most_inversions(n)]
            assert list(band_inversions(n, difficulty)) == inside

def test_montage_is_in_its_band_or_refuses():
    rng, refused = np.random.default_rng(6), set()
    for n in range(30):
        for difficulty, (low, high) in BANDS.items():
            order = montage(n, difficulty, rng)
            if isinstance(order, Refusal): refused.add((n, difficulty, order.asked))
            else: assert low/100 - 1e-12 <= shuffle_degree(order) <= high/100 + 1e-12
    # fewer than two have no false order at all
    assert refused == {(n, d, enough) for n in (0, 1)
                       for d, enough in dict(easy=4, medium=5, hard=3,
                                             extreme=5).items()} | {(2, 'easy', 4),
                                                                    (2, 'medium', 5),
                                                                    (2, 'hard', 3),
                                                                    (2, 'extreme', 5),
                                                                    (3, 'easy', 4), (3, 'medium', 5), (3, 'extreme', 5),
                                                                    (4, 'medium', 5), (4, 'extreme', 5)}
    with pytest.raises(BadInput, match='no difficulty'): montage(9, 'impossible', rng)
