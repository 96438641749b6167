"""Whatever the numbers, every statistic gives a Result without NaN and infinity (Result itself refuses them), or says
what is wrong with the input."""
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from factlib.core.records import BadInput
from factlib.validity import agreement as ag, association as ass, base, bounds, detection as det, paired as pa
from factlib.validity import resampling

number = st.one_of(st.none(), st.just(float('nan')), st.integers(1, 5), st.floats(), st.floats(0, 1),
                   st.sampled_from([0, -0., 1e9, 1e9 + 1e-3, 1e9 + 1, 5e-324, 1e-310,
                                    1e-200, -1e-160, 1e99, -1e100, 1e100, .1, .1 + .2, .3, True, np.float32(.1)]))
tame = st.one_of(st.none(), st.integers(1, 3),
                 st.sampled_from([1e9, 1e9 + 1e-4, 1e100, -1e100, 5e-324, 1e-160, .3, .1 + .2]))
group = st.integers(0, 3)
rows = st.one_of(*(st.lists(st.tuples(v, v, v, group), max_size=9) for v in (number, tame)),
                 st.tuples(tame, tame, tame).flatmap(
lambda v: st.lists(st.tuples(*map(st.just, v), group), max_size=5)))
few = dict(n_resamples=8)

CALLS = {
    'paired_t': lambda x, y, z, g: [pa.paired_t(x, a, h) for a in base.ALTERNATIVES for h in (None, g)],
    'permutation_test': lambda x, y, z, g: [pa.permutation_test(x, h, n) for h in (None, g) for n in (1, 20)],
    'noninferiority': lambda x, y, z, g: [pa.noninferiority(x, m, how, groups=h, **few) for m in (1e-300, .1, 1e100)
                                          for how in ('t', 'bootstrap') for h in (None, g)],
    'equivalence': lambda x, y, z, g: [pa.equivalence(x, m, groups=h) for m in (1e-300, .1, 1e100) for h in (None, g)],
    'effect_size': lambda x, y, z, g: [pa.effect_size(x, k, groups=h) for k in ('dz', 'gz') for h in (None, g)],
    'mcnemar_pairs': lambda x, y, z, g: [pa.mcnemar_pairs(x, y), pa.mcnemar_pairs(det.right(x, y), det.right(x, z))],
    'auc': lambda x, y, z, g: [det.auc(x, y), det.auc_ci(x, z), det.auc_ci(x, y, 'cluster', (g, g)),
                               det.bounds_auc(x, y), det.bounds_auc(x, z, -1e100, 1e100)],
    'auc_test': lambda x, y, z, g: [det.auc_test(x, y, z, x, h) for h in (None, g + g)],
    'classes': lambda x, y, z, g: [f(x, y, h) for f in (det.accuracy, det.balanced_accuracy, det.macro_f1)
                                   for h in (None, g)],
    'correlations': lambda x, y, z, g: [f(x, y, h, w) for f in (ass.pearson, ass.spearman, ass.kendall)
                                        for h, w in ((None, False), (g, False), (g, True))],
    'partial': lambda x, y, z, g: [ass.partial(x, y, c, h) for c in (z, [z, x], [z, g]) for h in (None, g)],
    'correlation_test': lambda x, y, z, g: [ass.correlation_test(x, y, z, h, m, k, **few) for h, m, k in (
        (None, 'permutation', 'pearson'), (g, 'permutation', 'spearman'),
        (g, 'permutation', 'kendall'), (None, 'williams', 'pearson'))],
    'alpha': lambda x, y, z, g: [ag.alpha(list(zip(x, y, z)), level) for level in ag.LEVELS[:3]] + [
        ag.alpha([[None if v is None else abs(v) for v in row] for row in zip(x, y, z)], 'ratio', g)],
    'kappa': lambda x, y, z, g: [ag.kappa(x, y, w, groups=h) for w in ag.WEIGHTS for h in (None, g)],
    'bounds': lambda x, y, z, g: [bounds.bounds_mean(x, -1e100, 1e100), bounds.bounds_paired(x, y, -1e100, 1e100)],
    'bootstrap': lambda x, y, z, g: [resampling.bootstrap(np.mean, x, groups=h, method=m, null=0, **few)
                                     for h in (None, g) for m in ('percentile', 'bca')],
}


@pytest.mark.parametrize('name', CALLS)
@settings(deadline=None, max_examples=50, derandomize=True, suppress_health_check=list(HealthCheck))
@given(rows)
def test_never_nan(name, rows):
    columns = [list(c) for c in zip(*rows)] or [[], [], [], []]
    with warnings.catch_warnings():
        warnings.simplefilter('error')      # a warning from numpy or scipy is a NaN that was about to happen
        try: results = CALLS[name](*columns)
        except BadInput as e:
            message = str(e)
            # Only these, of numbers that are no scores, or not 0 and 1: any sentence about a Result would be a bug of
            # ours.
            assert ('None for what is missing' in message or 'columns of 0 and 1' in message
                    or 'do not lie within' in message or 'is outside the scale' in message
                    or 'Weighted kappa needs' in message or 'scores are booleans' in message)
            return
    for r in results:
        assert isinstance(r, base.Result) and (r.estimate is not None or r.note) and 0 <= r.n <= r.asked and str(r)
        if name not in ('bounds',) and r.estimate is not None and r.ci is None and r.p is None:
            assert r.note or name == 'auc'
