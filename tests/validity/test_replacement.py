"validity.replacement by hand, and against a second implementation from the definition."
import importlib.util
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from factlib.core.records import Absence, BadInput
from factlib.validity.replacement import COLUMNS, alt_test

close = lambda a, b: math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
spec = importlib.util.spec_from_file_location('passing', Path(__file__).parents[2]/'benchmarks'/'calibration.py')
benchmark = importlib.util.module_from_spec(spec)
spec.loader.exec_module(benchmark)


# The definition once more, item by item, with nothing of the library.

def nearness(value, others, score):
    if score == 'accuracy': return sum(value == o for o in others)/len(others)
    if score == 'neg_rmse': return -math.sqrt(sum((value - o)**2 for o in others)/len(others))
    if score == 'jaccard':
        shared = [len(set(value) & set(o))/len(set(value) | set(o)) if value or o else 1 for o in others]
        return sum(shared)/len(others)
    return score(value, others)


def one_sided(d, labels, epsilon):
    "p of mean d >= epsilon: the t-test, over groups by leaving each out."
    if len(set(d)) == 1: return 0. if d[0] < epsilon else 1.
    if labels is None: return scipy.stats.ttest_1samp(d, epsilon, alternative='less').pvalue
    names = sorted(set(labels))
    without = [sum(x for x, g in zip(d, labels) if g != name)/sum(g != name for g in labels) for name in names]
    mean, count = sum(d)/len(d), len(names)
    error = math.sqrt((count - 1)/count*sum((x - mean)**2 for x in without))
    effective = 1/sum((labels.count(name)/len(labels))**2 for name in names)
    return scipy.stats.t.cdf((mean - epsilon)/error, math.sqrt((count - 1)*(effective - 1)))


def by_definition(judge, humans, score, epsilon, q, groups=None, min_humans=2, min_items=30):
    "(winning rate, advantage, {annotator: (mean f, mean g, p)})."
    found = {}
    for h, own in humans.items():
        f, g, labels = [], [], []
        for item, value in own.items():
            others = [humans[k][item] for k in humans if k != h and item in humans[k]]
            if item not in judge or len(others) + 1 < min_humans: continue
            a, b = nearness(judge[item], others, score), nearness(value, others, score)
            f.append(a >= b - 1e-12)
            g.append(b >= a - 1e-12)
            labels.append(None if groups is None else groups[item])
        if len(f) < min_items: continue
        d = [int(y) - int(x) for x, y in zip(f, g)]
        found[h] = (sum(f)/len(f), sum(g)/len(g), one_sided(d, None if groups is None else labels, epsilon))
    m = len(found)
    if not m: return None, None, found
    # Benjamini & Yekutieli: reject the k smallest for the largest k with p_(k) <= k q/(m (1 + 1/2 + ... + 1/m))
    ps = sorted(p for _, _, p in found.values())
    fit = [k for k in range(1, m + 1) if ps[k - 1] <= k*q/(m*sum(1/i for i in range(1, m + 1)))]
    return (max(fit) if fit else 0)/m, sum(x for x, _, _ in found.values())/m, found


def study(seed, kind, people=4, items=60, gaps=.2):
    "A judge and people who err now and then, with gaps."
    rng = np.random.default_rng(seed)
    def said(truth, wrong):
        if kind == 'accuracy': return 'abc'[rng.integers(3)] if rng.random() < wrong else truth
        if kind == 'jaccard': return [x for x in 'abcd' if (x in truth) != (rng.random() < wrong)]
        return round(truth + float(rng.normal(0, 2*wrong)), 1)
    draw = dict(accuracy=lambda: 'abc'[rng.integers(3)], jaccard=lambda: [x for x in 'abcd' if rng.random() < .5],
                neg_rmse=lambda: float(rng.integers(1, 6)))[kind]
    truth = {i: draw() for i in range(items)}
    humans = {f'h{k}': {i: said(t, .25) for i, t in truth.items() if rng.random() > gaps} for k in range(people)}
    return {i: said(t, .2) for i, t in truth.items()}, humans, {i: f'd{i//5}' if i > 15 else 'large' for i in truth}


@pytest.mark.parametrize('kind', ['accuracy', 'neg_rmse', 'jaccard'])
@pytest.mark.parametrize('seed', range(6))
@pytest.mark.parametrize('grouped', [False, True])
def test_second_implementation(kind, seed, grouped):
    judge, humans, groups = study(seed, kind, people=2 + seed % 4)
    options = dict(epsilon=[.2, .1, 0.][seed % 3], q=[.05, .2][seed % 2], groups=groups if grouped else None,
                   min_humans=2 + (seed % 4 == 3), min_items=20)
    r = alt_test(judge, humans, kind, **options)
    rate, advantage, found = by_definition(judge, humans, kind, **options)
    tested = r.annotators[r.annotators.skipped == ''].set_index('annotator')
    assert set(tested.index) == set(found) and found
    for name, (f, g, p) in found.items():
        row = tested.loc[name]
        assert close(row.advantage, f) and close(row.own, g) and close(row.p, p) and close(row.difference, g - f)
    assert r.winning_rate == rate and close(r.advantage.estimate, advantage) and r.passes == (rate >= .5)
    assert r.advantage.low < advantage < r.advantage.high and (r.advantage.groups is not None) == grouped


def test_by_hand():
    """Six items, three people. Against ann the others are bob and cid: where these two part, both ann and the judge
    agree with one of them, so it is a tie."""
    ann = dict(zip('uvwxyz', [1, 1, 1, 0, 0, 1]))
    bob = dict(zip('uvwxyz', [1, 1, 0, 0, 0, 0]))
    cid = dict(zip('uvwxyz', [1, 0, 0, 0, 1, 0]))
    judge = dict(zip('uvwxyz', [1, 1, 0, 1, 0, 0]))
    r = alt_test(judge, dict(ann=ann, bob=bob, cid=cid), min_items=6)
    rows = r.annotators.set_index('annotator')
    # ann: u tie, v bob 1 cid 0 tie, w judge alone right, x ann alone right, y tie (bob 0, cid 1), z judge alone right
    assert (rows.loc['ann', 'advantage'], rows.loc['ann', 'own']) == (5/6, 4/6)
    # bob (others ann, cid): u tie, v tie, w tie, x bob, y tie, z tie
    assert (rows.loc['bob', 'advantage'], rows.loc['bob', 'own']) == (5/6, 1)
    # cid (others ann, bob): v judge, x cid, y judge; u tie, w both say 0, z both say 0
    assert (rows.loc['cid', 'advantage'], rows.loc['cid', 'own']) == (5/6, 4/6)
    assert close(r.advantage.estimate, 5/6)
    # ann: g - f = 0 0 -1 1 0 -1, mean -1/6, variance (3 - 1/6)/5
    t = (-1/6 - .2)/math.sqrt((3 - 1/6)/5/6)
    assert close(rows.loc['ann', 'statistic'], t) and close(rows.loc['ann', 'p'], scipy.stats.t.cdf(t, 5))
    ps = sorted(rows.p)
    assert close(min(rows.q), min(p*3*(11/6)/k for k, p in enumerate(ps, 1)))
    assert r.winning_rate == 0 and r.passes is False


def test_numbers_by_hand():
    "The others say 2 and 4: 3 is 1 off, 5 is sqrt(5) off. A tie that rounding would break stays a tie."
    humans = dict(a={0: 5., 1: .3}, b={0: 2., 1: .2}, c={0: 4., 1: .2})
    row = alt_test({0: 3., 1: .1}, humans, 'neg_rmse', min_items=2).annotators.iloc[0]
    assert (row.advantage, row.own) == (1, .5)
    assert (.3 - .2)**2 != (.2 - .1)**2


def test_a_function():
    "Distance to the nearest of the others, as a score of one's own."
    nearest = lambda value, others: -min(abs(value - o) for o in others)
    judge, humans, groups = study(3, 'neg_rmse')
    for own in (None, groups):
        r, (rate, advantage, _) = (run(judge, humans, nearest, .2, .05, own) for run in (alt_test, by_definition))
        assert r.winning_rate == rate and close(r.advantage.estimate, advantage)
    with pytest.raises(BadInput, match='no number'): alt_test(judge, humans, lambda v, o: None)


def test_no_spread():
    "Judge and people alike: g - f is 0 everywhere, below .2 and not below 0."
    truth = {i: i % 2 for i in range(40)}
    people = dict(a=truth, b=truth, c=truth)
    r = alt_test(truth, people)
    assert list(r.annotators.p) == [0, 0, 0] and r.winning_rate == 1 and r.passes and r.advantage.estimate == 1
    assert r.advantage.one_sided # at least something, not exactly 1
    assert alt_test(truth, people, groups={i: i//4 for i in truth}).passes
    r = alt_test(truth, people, epsilon=0)
    assert list(r.annotators.p) == [1, 1, 1] and r.passes is False
    r = alt_test({i: 1 - v for i, v in truth.items()}, people)
    assert list(r.annotators.p) == [1, 1, 1] and r.advantage.estimate == 0


def test_what_is_left_out_is_counted():
    truth = {i: i % 3 for i in range(50)}
    few = {i: truth[i] for i in range(10)}
    alone = {f'x{i}': 1 for i in range(7)}
    humans = dict(a=truth | alone, b=truth, few=few)
    judge = truth | {f'y{i}': 1 for i in range(4)} | {f'x{i}': 1 for i in range(7)}
    r = alt_test(judge, humans)
    assert (r.items, r.scored, r.skipped_items, r.skipped_annotators) == (50, 50, 11, 1)
    rows = r.annotators.set_index('annotator')
    few = rows.loc['few']
    assert '30 are needed' in few.skipped and pd.isna(few.p) and pd.isna(few.wins) and few.n == 10
    assert r.advantage.n == 100 and 'too few people' in r.note and 'too few items' in r.note
    # three people an item: only the ten that all rated
    r = alt_test(judge, humans, min_humans=3, min_items=10)
    assert (r.items, r.skipped_items) == (10, 51) and list(r.annotators.n) == [10, 10, 10]


def test_absences():
    "A judge that answers ten of a hundred items, well: nothing on complete cases, and its silence is no pass."
    truth = {i: i % 2 for i in range(100)}
    humans = dict(a=truth, b=truth | {0: 1}, c=truth | {3: 0})
    silent = {i: v if i < 10 else Absence.refused for i, v in truth.items()}
    r = alt_test(silent, humans)
    assert (r.items, r.scored) == (100, 10) and r.winning_rate is None and r.passes is None
    assert r.advantage.estimate is None and 'nobody could be tested' in repr(r)
    assert r.lost.winning_rate == 0 and r.won.winning_rate == 1 and r.passes_at_worst is False
    assert close(r.lost.advantage.estimate, .1) and close(r.won.advantage.estimate, 1)
    assert 'lost where the judge has no value' in r.lost.definition
    # It is silent on the items it would get wrong.
    wrong = {i: 1 - v if i % 2 else v for i, v in truth.items()}
    chosen = {i: v for i, v in wrong.items() if i % 2 == 0}
    r = alt_test(chosen, humans)
    assert r.passes and not r.passes_at_worst and r.lost.scored == 50
    complete = alt_test(truth, humans)
    assert complete.lost is None and complete.won is None and complete.passes_at_worst
    assert alt_test(truth | {5: None, 7: float('nan')}, humans).scored == 98


def test_one_group():
    truth = {i: i % 2 for i in range(40)}
    r = alt_test(truth | {0: 1}, dict(a=truth | {5: 0}, b=truth, c=truth), groups=dict.fromkeys(truth, 'd'))
    assert set(r.annotators.skipped) >= {'only one group'}


def test_bad_input():
    truth = {i: 'yes' for i in range(40)}
    with pytest.raises(BadInput, match='two kinds'): alt_test(dict.fromkeys(truth, 1), dict(a=truth, b=truth))
    with pytest.raises(BadInput, match='score is'): alt_test(truth, dict(a=truth, b=truth), 'f1')
    with pytest.raises(BadInput, match='must be numbers'): alt_test(truth, dict(a=truth, b=truth), 'neg_rmse')
    with pytest.raises(BadInput, match='set or a list'): alt_test(truth, dict(a=truth, b=truth), 'jaccard')
    with pytest.raises(BadInput, match='has no group'): alt_test(truth, dict(a=truth, b=truth), groups={0: 'a'})
    with pytest.raises(BadInput, match='min_humans'): alt_test(truth, dict(a=truth, b=truth), min_humans=1)
    with pytest.raises(BadInput, match='epsilon'): alt_test(truth, dict(a=truth, b=truth), epsilon=-.1)
    with pytest.raises(BadInput, match='item -> value'): alt_test(list(truth), dict(a=truth, b=truth))
    with pytest.raises(BadInput, match='annotator -> item'): alt_test(truth, [truth])
    r = alt_test({}, {})
    assert r.passes is None and r.items == 0 and list(r.annotators.columns) == list(COLUMNS)
    assert alt_test(truth, dict(a=truth)).skipped_items == 40 # one person has nobody to be held against


def test_groups_on_correlated_data():
    "At the border (mean difference .2) few may pass. Without groups more do; where the judge is good, both do."
    by_groups, by_items = benchmark.passes(150, 1, .35)
    assert by_groups <= .07 and by_items >= by_groups + .07
    assert benchmark.passes(20, 2, .02)[0] >= .9
