"""What `coverage.py` has no cells for, each beside its alternative: an AUC near 1 and with a rare class, kappa of
independent items, the mean of these very items, and the ranks of nine judges. `python benchmarks/coverage_cells.py`
prints the tables of coverage.md (some ten minutes on one core)."""
import argparse
import itertools
import math
import warnings
import zlib

import numpy as np
import pandas as pd
import scipy

from factlib.metaeval.ranks import rank_intervals
from factlib.validity.agreement import kappa
from factlib.validity.base import benjamini_hochberg
from factlib.validity.calibration import calibrated_mean
from factlib.validity.detection import aucs_without, as_levels, auc_ci, level_auc
from factlib.validity.intervals import interval

SHARED = .3 # Of the variance, within groups of four


def seeded(*cell): return np.random.default_rng(zlib.crc32(repr(cell).encode()))

def latent(rng, codes, shared):
    "Scores of mean 0 and variance 1, of which the group shares a part."
    return math.sqrt(shared)*rng.normal(size=codes.max() + 1)[codes] + math.sqrt(1 - shared)*rng.normal(size=len(codes))

def covers(r, true): return r.ci is not None and r.low - 1e-12 <= true <= r.high + 1e-12

def bare_engine(scores, good, codes):
    "The engine as it was: no model near the limit."
    without = lambda columns, c: aucs_without(columns[0], columns[1], c, c.max() + 1)
    return interval(level_auc, as_levels(scores), good, groups=codes, limits=(0, 1), null=.5, sides=1, without=without)

def auc_grid(draws):
    "Good texts and bad ones are normal or, heavier to the left, exponential; groups shift both sides apart."
    for scores, grouped, n, rare, area in itertools.product(('normal', 'exponential'), (False, True), (60, 200),
                                                            (.1, .5), (.7, .92, .97)):
        rng, codes = seeded(scores, grouped, n, rare, area), np.arange(n)//4 if grouped else np.arange(n)
        found = []
        for _ in range(draws):
            good = np.isin(np.arange(n), rng.choice(n, round(rare*n), replace=False))
            up, down = (latent(rng, codes, SHARED*grouped) for _ in range(2))
            if scores == 'normal': x = np.where(good, up + math.sqrt(2)*scipy.stats.norm.ppf(area), down)
            else: x = np.where(good, -np.log(scipy.stats.norm.sf(up))*area/(1 - area), -np.log(scipy.stats.norm.sf(down)))
            groups = (codes[good], codes[~good]) if grouped else None
            found.append([auc_ci(x[good], x[~good], 'delong'), bare_engine(x, good.astype(float), codes),
                          auc_ci(x[good], x[~good], groups=groups)])
        row = dict(scores=scores, groups=n//4 if grouped else 'none', n=n, rare=f'{100*rare:.0f} %', AUC=area)
        for name, results in zip(('DeLong', 'before', 'after'), zip(*found)):
            width = np.median([r.high - r.low for r in results if r.ci is not None])
            row |= {name: f'{np.mean([covers(r, area) for r in results]):.3f}', f'{name}, width': f'{width:.3f}'}
        yield row

def kappa_grid(draws):
    "Two people who agree more than chance by `true`, and both say yes to a share of the items."
    for n, share, true in itertools.product((30, 60, 200), (.5, .1), (0., .5, .9)):
        rng, found = seeded('kappa', n, share, true), []
        for _ in range(draws):
            a, b = (rng.random((2, n)) < share).astype(float)
            b = np.where(rng.random(n) < true, a, b)
            found.append([kappa(a, b, method=method) for method in ('asymptotic', 'cluster')])
        yield dict(n=n, yes=f'{100*share:.0f} %', kappa=true) | {
            name: f'{np.mean([covers(r, true) for r in results]):.3f}'
            for name, results in zip(('asymptotic', 'engine'), zip(*found))}

def mean_grid(draws):
    "The same 200 items in all draws; labels are drawn anew."
    for labels, quality, grouped in itertools.product((30, 100, 160), (.5, .9), (False, True)):
        rng = seeded('mean', labels, quality, grouped)
        codes = np.arange(200)//4 if grouped else np.arange(200)
        people = latent(rng, codes, SHARED*grouped)
        judge = quality*people + math.sqrt(1 - quality**2)*rng.normal(size=200)
        found = []
        for _ in range(draws):
            told = np.where(np.isin(np.arange(200), rng.choice(200, labels, replace=False)), people, np.nan)
            found.append([calibrated_mean(judge, told, codes if grouped else None, these_items=these)
                          for these in (False, True)])
        row = dict(labels=labels, correlation=quality, groups=50 if grouped else 'none')
        for name, results in zip(('items like these', 'these items'), zip(*found)):
            row |= {name: f'{np.mean([covers(r, people.mean()) for r in results]):.3f}',
                    f'{name}, width': f'{np.median([r.high - r.low for r in results]):.3f}'}
        yield row

def ranks_grid(draws):
    "Nine judges whose true means are equal, in three classes, or in steps; 24 groups score each."
    first, second = map(list, zip(*itertools.combinations(range(9), 2)))
    for true in ('equal', 'three classes', 'steps'):
        means = dict(equal=np.zeros(9), steps=np.arange(9)*.25)[true] if true != 'three classes' else \
            np.repeat([0, .6, 1.2], 3)
        rng, joint, shown, names = seeded('ranks', true), np.zeros(2), np.zeros(2), [f'judge {i}' for i in range(9)]
        best, last = (means > means[:, None]).sum(1) + 1, (means >= means[:, None]).sum(1)
        for _ in range(draws):
            x = means + rng.normal(size=(24, 9))
            d = x[:, first] - x[:, second]
            tests = pd.DataFrame(dict(first=[names[i] for i in first], second=[names[i] for i in second],
                                      difference=d.mean(0), p=scipy.stats.ttest_1samp(d, 0).pvalue))
            false_rate = benjamini_hochberg(tests.p.tolist())
            for k, used in enumerate((tests.assign(p=np.where(np.array(false_rate) < .05, 0., 1.)), tests)):
                found = rank_intervals(used, dict(zip(names, x.mean(0)))).set_index('evaluator').loc[names]
                # where true means are equal, each order of them has to be possible
                joint[k] += np.all((found.rank_low <= best) & (last <= found.rank_high))
                shown[k] += np.mean(found.rank_high - found.rank_low + 1)
        yield dict(judges=true) | {f'{name}, {what}': f'{value:.3f}' if what == 'all hold' else f'{value:.1f}'
                                   for what, values in (('all hold', joint/draws), ('ranks left', shown/draws))
                                   for name, value in zip(('Benjamini-Hochberg', 'Holm'), values)}

def printed(title, rows):
    "Rows as a table of Markdown, each as it comes."
    print(f'\n{title}\n', flush=True)
    for i, row in enumerate(rows):
        if not i: print(f'| {" | ".join(row)} |\n{"|---"*len(row)}|')
        print(f'| {" | ".join(map(str, row.values()))} |', flush=True)

GRIDS = dict(auc=auc_grid, kappa=kappa_grid, mean=mean_grid, ranks=ranks_grid)

if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('grids', nargs='*', default=list(GRIDS), help='all by default')
    parser.add_argument('--draws', type=int, default=1000, help='Number of data sets a cell.')
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    for name in args.grids: printed(f'{name}: {GRIDS[name].__doc__}', GRIDS[name](args.draws))
