"""Arguments in the wrong order, defaults, one group: what a first user meets."""
import itertools

import numpy as np
import pytest
import scipy

from factlib.core.records import BadInput
from factlib.validity.agreement import kappa
from factlib.validity.calibration import calibrated_mean
from factlib.validity.detection import auc, auc_ci, auc_test, bounds_auc
from factlib.validity.replacement import alt_test


@pytest.mark.parametrize('ask', [auc, auc_ci, bounds_auc, lambda a, b: auc_test(a, b, a, b)])
def test_labels_and_booleans_are_no_scores(ask):
    labels, scores = np.array([1, 0, 1, 0, 1]), np.array([.9, .2, .7, .1, .5])
    for a, b in ((labels, scores), (scores, labels.tolist()), (labels.astype(float), scores)):
        with pytest.raises(BadInput, match=r'auc_ci\(scores\[labels == 1\], scores\[labels == 0\]\)'): ask(a, b)
    for a, b in ((labels == 1, scores), ([.4, True], [.2])):
        with pytest.raises(BadInput, match=r'auc_ci\(scores\[is_good\], scores\[~is_good\]\)'): ask(a, b)
    assert ask([1, 0, 1, 1], [0, .5, 0, 0]).estimate is not None # a judge with three values


def test_defaults_are_the_engine():
    rng = np.random.default_rng(1)
    x, y = rng.normal(1.5, 1, 40), rng.normal(size=40)
    assert auc_ci(x, y).kind == 't' and auc_ci(x, y, 'delong').kind == ''
    assert auc_ci(x, y).ci == auc_ci(x, y, groups=(range(40), range(40, 80))).ci
    assert auc_ci([3, 4, 5, 6], [1, 2]).kind == 'bound'
    a, b = [0, 1]*10, [0, 1]*9 + [1, 1]
    assert kappa(a, b).kind == 't' and kappa(a, b, method='asymptotic').kind == ''
    for wrong in (lambda: kappa(a, b, groups=a, method='asymptotic'), lambda: auc_ci(x, y, 'delong', groups=range(80))):
        with pytest.raises(BadInput): wrong()


def test_one_group_says_nothing_of_a_judge():
    same = dict.fromkeys(range(40), 1)
    test = alt_test(same, dict(a=same, b=same, c=same), groups=dict.fromkeys(range(40), 'only'))
    assert test.winning_rate is None and test.passes is None and test.advantage.estimate is None
    assert set(test.annotators.skipped) == {'only one group'} and 'only one group' in repr(test)
    assert alt_test(same, dict(a=same, b=same, c=same), groups={i: i % 20 for i in range(40)}).passes


@pytest.mark.parametrize('method', ['labels', 'ppi'])
def test_the_mean_of_these_items_by_all_draws(method):
    "Over every sample of 5 of 9 items the squared error that is promised is the one that occurs (c = 0 for labels)."
    y, judge = np.array([1., 4, 2, 8, 5, 7, 1, 3, 6]), np.arange(9.)
    promised, errors = [], []
    for own in itertools.combinations(range(9), 5):
        r = calibrated_mean(judge, [y[i] if i in own else None for i in range(9)], method=method, these_items=True)
        promised.append(((r.high - r.low)/2/scipy.stats.t.isf(.025, r.df))**2)
        errors.append((r.estimate - y.mean())**2)
    if method == 'labels': assert np.mean(promised) == pytest.approx(np.mean(errors))
    else: assert np.mean(promised) > .5*np.mean(errors)


def test_these_items_refuse_what_they_cannot():
    for options in (dict(weights=[1, 2, 3]), dict(method='rogan_gladen')):
        with pytest.raises(BadInput, match='these_items'):
            calibrated_mean([1, 0, 1], [1, 0, None], these_items=True, **options)
