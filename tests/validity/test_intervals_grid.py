"The grid that measures intervals (benchmarks/coverage.py) measures rightly: truths, sizes and counts by hand."
import importlib.util
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy

spec = importlib.util.spec_from_file_location('coverage_grid', Path(__file__).parents[2]/'benchmarks'/'coverage.py')
grid = importlib.util.module_from_spec(spec)
spec.loader.exec_module(grid)


def test_sizes():
    "Half of 40 items is 20; log-normal sizes are 4 exp(.8 z) at z = -+1.383, -+.674, -+.210."
    assert list(np.bincount(grid.Data(6).codes())) == [4]*6
    assert list(np.bincount(grid.Data(6, 'one half').codes())) == [20, 4, 4, 4, 4, 4]
    assert list(np.bincount(grid.Data(6, 'log-normal').codes())) == [2, 2, 3, 5, 7, 12]


@pytest.mark.parametrize('line', [line for line in grid.LINES if line.value and line.exact],
                         ids=lambda line: line.full_name)
@pytest.mark.parametrize('shared', grid.SHARED)
def test_closed_forms(line, shared):
    "Our own definitions on 100,000 items give the closed forms: errors there are below .004."
    codes = np.arange(100_000)
    data = grid.Data(10, 'equal', shared)
    if line.within: codes = np.repeat(np.arange(20_000), 5)
    draw = grid.Draw(np.random.default_rng(5), codes, data)
    assert line.value(draw, *line.arguments) == pytest.approx(grid.truth(line, data)[0], abs=.015)


def test_own_taus_are_scipys():
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(7), [2, 3, 3, 5, 5, 9, 2])
    x, y = rng.integers(0, 4, (2, len(codes))).astype(float)
    ours = grid.taus_of(x, y, codes)
    theirs = [scipy.stats.kendalltau(x[codes == g], y[codes == g]).statistic for g in range(7)]
    np.testing.assert_allclose(np.sort(ours), np.sort(theirs), atol=1e-12)


def once(low, high, p=None, is_bound=False, estimate=0.):
    return grid.Once(estimate, None if low is None else (low, high), p, is_bound, 2.)


def test_figures_of_a_cell_by_hand():
    """Of five simulations four have an interval; the truth 0 lies in three of these, and in one of two bounds.

    Estimates -1, 1, -1, 1, 0 have the deviation sqrt(4/5); the widths are 2, 2, 3 and 1."""
    line = grid.Line('made', 'up', None, (), 0, 0)
    found = [once(-1, 1, .5, estimate=-1.), once(-1, 1, .04, estimate=1.), once(0, 3, is_bound=True, estimate=-1.),
             once(.5, 1.5, is_bound=True, estimate=1.), once(None, None)]
    row = grid.measured(line, grid.Data(6), 0, found)
    assert (row['given'], row['bounds'], row['cover'], row['bound_cover']) == (.8, .4, .75, .5)
    assert row['error'] == pytest.approx(math.sqrt(.75*.25/4))
    assert row['width'] == pytest.approx(2/(2*1.959964*math.sqrt(.8)), rel=1e-6)
    assert row['alarm'] == pytest.approx(2/5) # p = .04, and the bound from .5 on
    assert row['ms'] == 2


def test_a_known_interval_keeps_what_is_known_of_it():
    "A mean of 24 normal values +-1.96/sqrt(24) holds the truth in .95, +-1/sqrt(24) in .683: errors are .005, .010."
    for half, share in ((1.959964, .95), (1., .6827)):
        def ask(draw):
            m = draw.latent().mean()
            ci = m - half/math.sqrt(24), m + half/math.sqrt(24)
            return lambda: SimpleNamespace(estimate=m, ci=ci, p=None, kind='t')
        line = grid.Line('mean', 'known error', ask, (), 0, 0)
        row = grid.measured(line, grid.Data(6), 0, grid.simulate(line, grid.Data(6), 2000, 3))
        assert row['cover'] == pytest.approx(share, abs=.04) and row['alarm'] == pytest.approx(1 - share, abs=.04)
        assert row['width'] == pytest.approx(half/1.959964, rel=.06)


def test_a_cell_depends_on_the_seed_only():
    job = 'mean, 0', grid.Data(6, 'log-normal', .3), 0, 'closed form', 5, 0
    first, again, other = (grid.cell((*job, seed)) for seed in (1, 1, 2))
    assert first | dict(ms=0) == again | dict(ms=0)
    assert first['width'] != other['width']


def test_tables_are_read_as_they_were_written(tmp_path):
    rows = [grid.cell(('accuracy, .75', grid.Data(6), .75, 'closed form', 3, 0, 1))]
    grid.write(rows, tmp_path/'x.csv')
    read = grid.read(tmp_path/'x.csv')
    assert read[0]['alarm'] is None and read[0]['groups'] == 6 and read[0]['cover'] == pytest.approx(rows[0]['cover'])


# A cell may cover .93 and alarm .07: of 250 simulations .93 - 3.3 binomial errors of sqrt(.93*.07/250) = .0161 is .877,
# .07 + 3.3 errors .123; by chance one such cell of two thousand lies beyond. Log-normal group effects are where no
# method keeps 95 %: .82 - 3.3 errors of .0243 is .74.
@pytest.mark.slow
@pytest.mark.parametrize('name', ['mean, 0', 'mean, skewed groups', 't-test, 0', 'accuracy, .75', 'AUC, .5', 'AUC, .8',
                                  'AUC, positives in 3 groups, .8',
                                  'AUC difference, 0', 'mean AUC difference, 0', 'd_z, .8', 'd_z difference, 0',
                                  'Kendall within, .33', 'Pearson, .6', 'partial, 0', 'alpha, labels, .5'])
@pytest.mark.parametrize('sizes', ['log-normal', 'one half'])
def test_promises_are_kept(name, sizes):
    line = next(line for line in grid.LINES if line.full_name == name)
    for groups in (8, 20):
        data = grid.Data(groups, sizes, .3)
        row = grid.cell((name, data, *grid.truth(line, data), 250, 0, 11))
        assert row['given'] == 1, row
        assert row['cover'] >= (.74 if line.hopeless else .877), row
        if row['alarm'] is not None and not line.hopeless: assert row['alarm'] <= .123, row
