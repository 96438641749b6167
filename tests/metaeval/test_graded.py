"Graded verdicts: thresholds by brute force, areas against scipy, and what can't be judged."
import numpy as np
import pandas as pd
import pytest
import scipy.stats

from factlib.core.records import BadInput
from factlib.metaeval.graded import best_threshold, graded_aucs

def right(degrees, labels, least):
    return sum((x >= least) == (label == 'supported') for x, label in zip(degrees, labels) if x is not None and label)

def test_no_other_threshold_is_right_more_often():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(2, 12))
        degrees = [None if rng.random() < .1 else float(x) for x in rng.integers(0, 5, n)/4]
        labels = [None if rng.random() < .1 else str(rng.choice(['supported', 'unsupported'])) for _ in range(n)]
        known = {label for x, label in zip(degrees, labels) if x is not None and label}
        if len(known) < 2:
            with pytest.raises(BadInput, match='A threshold needs turns'): best_threshold(degrees, labels)
            continue
        least = best_threshold(degrees, labels)
        assert least in degrees
        assert right(degrees, labels, least) == max(right(degrees, labels, x)
                                                    for x, label in zip(degrees, labels) if x is not None and label)

def test_of_equals_the_middle_one():
    # .1 and .9 have two right; the lower of an even number
    assert best_threshold([.1, .5, .9], ['supported', 'unsupported', 'supported']) == .1
    assert best_threshold([0, 0, 0], ['supported', 'supported', 'unsupported']) == 0

def frame(seed=0, n=60):
    rng = np.random.default_rng(seed)
    truth = rng.choice(['supported', 'unsupported'], n)
    rows = [dict(dataset=d, evaluator=e, example_id=f'{d}{i}', group=f'{d}{i//3}',
                 truth=truth[i], degree=float(rng.normal((truth[i] == 'supported')*shift)))
            for d in 'ab' for e, shift in (('floor', .5), ('better', 2)) for i in range(n)]
    return pd.DataFrame(rows)

def test_areas_are_those_of_mann_and_whitney():
    judged = frame()
    table = graded_aucs(judged, dict(floor='degree', better='degree'), against='floor')
    for row in table.itertuples():
        part = judged[(judged.dataset == row.dataset) & (judged.evaluator == row.evaluator)]
        good, other = (part.degree[part.truth == label] for label in ('supported', 'unsupported'))
        assert row.auc == pytest.approx(scipy.stats.mannwhitneyu(good, other).statistic/len(good)/len(other))
        assert row.ci_low < row.auc < row.ci_high and row.groups == 20 and row.turns == row.scored == 60
    areas = table.set_index(['dataset', 'evaluator']).auc
    for row in table[table.evaluator == 'better'].itertuples():
        assert row.difference == pytest.approx(row.auc - areas[row.dataset, 'floor'])
        assert row.q >= row.p and row.family == 1
    assert table[table.evaluator == 'floor'].difference.isna().all()

def test_a_missing_degree_leaves_both_and_is_counted():
    judged = frame()
    judged.loc[(judged.evaluator == 'better') & (judged.example_id == 'a0'), 'degree'] = None
    table = graded_aucs(judged, dict(floor='degree', better='degree'),
                        against='floor').set_index(['dataset', 'evaluator'])
    assert table.scored['a', 'better'] == 59 and table.scored['a', 'floor'] == 60
    left = judged[(judged.dataset == 'a') & (judged.example_id != 'a0')]
    again = graded_aucs(left, dict(floor='degree', better='degree'), against='floor').set_index('evaluator')
    assert table.difference['a', 'better'] == again.difference['better']
