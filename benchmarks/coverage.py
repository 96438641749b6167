"""What the intervals and tests of `factlib.validity` keep of what they promise, on simulated data whose truth is known; `make bench` runs it, `--quick` with fewer simulations.

For each statistic, by kind of data, balance and number of groups: how often its 95 % interval covers the truth (`cover`, among the simulations that get one), how often there is one (`given`), how
often p < .05 where nothing is to be found (`alarm`); `old` is the percentile bootstrap of groups with p by inverting it, for t the cluster-robust t with groups - 1 degrees of freedom. Groups are
equal (4 items) or one holds half of all. A share of n simulations has a binomial error of sqrt(share (1 - share)/n): .015 at .95 with 200."""
import argparse, functools, math, multiprocessing, os, warnings
import numpy as np, scipy

GROUPS, BALANCES, DRAWS = (4, 6, 8, 10, 15, 20, 30, 40), ('equal', 'half'), 999

def sizes(groups, balance):
    "Items a group."
    return np.array([4*(groups - 1) if balance == 'half' and not g else 4 for g in range(groups)])

def codes_of(groups, balance): return np.repeat(np.arange(groups), sizes(groups, balance))

def noise(rng, codes, shared=.6):
    "Standard normal items that share a part of their luck with their group."
    return math.sqrt(shared)*rng.normal(size=codes.max() + 1)[codes] + math.sqrt(1 - shared)*rng.normal(size=len(codes))

def lognormal(rng, codes):
    "Log-normal (sigma 1) group effects around 0, and a little noise."
    return (rng.lognormal(size=codes.max() + 1) - math.exp(.5))[codes] + .3*rng.normal(size=len(codes))

def right_wrong(rng, codes, share=.75, spread=4):
    "Zeros and ones; each group has a share of its own, a Beta with this mean."
    return (rng.random(len(codes)) < rng.beta(spread*share, spread*(1 - share), codes.max() + 1)[codes]).astype(float)

def pair(rng, codes, rho):
    "Two columns with this correlation within and between groups."
    x, y = noise(rng, codes), noise(rng, codes)
    return x, rho*x + math.sqrt(1 - rho*rho)*y

def texts(rng, codes, area):
    "A positive for every three negatives; groups shift both sides, each by itself, so that every pair of texts has the same chance."
    is_pos = np.arange(len(codes)) % 4 == 0
    score = np.where(is_pos, noise(rng, codes, .3), noise(rng, codes, .3)) + is_pos*math.sqrt(2)*scipy.stats.norm.ppf(area)
    return score, is_pos

# How it was: all statistics below are smooth functions of sums over groups, so that a percentile bootstrap is a product of matrices.
def percentile(draws, null):
    "The percentile interval and the p that inverts it, as they were."
    draws = draws[np.isfinite(draws)]
    if not len(draws) or np.ptp(draws) == 0: return None, None
    tail = min(np.sum(draws <= null), np.sum(draws >= null))
    return tuple(np.quantile(draws, [.025, .975])), min(1., 2*(tail + 1)/(len(draws) + 1))

@functools.lru_cache
def counts(groups): return np.random.default_rng(0).multinomial(groups, np.ones(groups)/groups, DRAWS).astype(float)

def sums(codes, *columns): return counts(codes.max() + 1) @ np.stack([np.bincount(codes, c) for c in columns], 1)

def old_mean(x, codes, null):
    total, n = sums(codes, x, np.ones(len(x))).T
    return percentile(total/n, null)

def old_dz(x, codes, null):
    total, squares, n = sums(codes, x, x*x, np.ones(len(x))).T
    return percentile(total/n/np.sqrt((squares - total**2/n)/(n - 1)), null)

def old_pearson(x, y, codes, null):
    n, sx, sy, xx, yy, xy = sums(codes, np.ones(len(x)), x, y, x*x, y*y, x*y).T
    return percentile((xy - sx*sy/n)/np.sqrt((xx - sx*sx/n)*(yy - sy*sy/n)), null)

def wins(score, is_pos, codes):
    "How many pairs of a positive of one group and a negative of another are in the right order, group by group."
    ahead = (score[is_pos][:, None] > score[~is_pos]) + .5*(score[is_pos][:, None] == score[~is_pos])
    member = np.eye(codes.max() + 1)[codes]
    return member[is_pos].T @ ahead @ member[~is_pos]

def old_auc(scores, is_pos, codes, null):
    "Of one column of scores, or the difference of two."
    drawn, (pos, neg) = counts(codes.max() + 1), sums(codes, is_pos, ~is_pos).T
    with np.errstate(all='ignore'): areas = [np.sum(drawn @ wins(s, is_pos, codes)*drawn, axis=1)/pos/neg for s in scores]
    return percentile(areas[0] if len(areas) == 1 else areas[0] - areas[1], null)

def old_t(x, codes):
    off, n = np.bincount(codes, x - x.mean()), codes.max() + 1
    se = math.sqrt(off @ off*n/(n - 1))/len(x)
    half = scipy.stats.t.isf(.025, n - 1)*se
    return (x.mean() - half, x.mean() + half), 2*scipy.stats.t.sf(abs(x.mean())/se, n - 1)

# Each case: (simulate once) -> truth, result, how it was (ci, p) or None, is the tested null true?
def mean(rng, codes, make):
    from factlib.validity.resampling import bootstrap
    x = make(rng, codes)
    return 0, bootstrap(np.mean, x, groups=codes, n_resamples=DRAWS, null=0), old_mean(x, codes, 0)

def t(rng, codes, make):
    from factlib.validity.paired import paired_t
    x = make(rng, codes)
    return 0, paired_t(x, groups=codes), old_t(x, codes)

def flips(rng, codes, make):
    from factlib.validity.paired import permutation_test
    return None, permutation_test(make(rng, codes), groups=codes, n_resamples=DRAWS), None

def not_worse(rng, codes, make):
    "One-sided: the alarm is a p < .05 although the difference is the margin. `cover` is of the 90 % interval's low end."
    from factlib.validity.paired import noninferiority
    x = make(rng, codes)
    r = noninferiority(x - 1, 1, 'bootstrap', groups=codes, n_resamples=DRAWS)
    return -1, r, None

def effect(rng, codes, make):
    from factlib.validity.paired import effect_size
    x = make(rng, codes) + .5
    return .5, effect_size(x, groups=codes, n_resamples=DRAWS), old_dz(x, codes, 0)

def correct(rng, codes):
    from factlib.validity.detection import accuracy
    x = right_wrong(rng, codes)
    return .75, accuracy(list(x), [1.]*len(x), groups=codes, n_resamples=DRAWS), old_mean(x, codes, .75)

def classes(rng, codes, name):
    "Verdicts right in 3 of 4 cases in each of two equally frequent classes: both measures are .75."
    from factlib.validity import detection
    truth = np.arange(len(codes)) % 2
    verdicts = np.where(right_wrong(rng, codes) > .5, truth, 1 - truth)
    return .75, getattr(detection, name)(list(verdicts), list(truth), groups=codes, n_resamples=DRAWS), None

def area(rng, codes, true):
    from factlib.validity.detection import auc_ci
    score, is_pos = texts(rng, codes, true)
    groups = codes[is_pos], codes[~is_pos]
    return true, auc_ci(score[is_pos], score[~is_pos], 'cluster', groups, n_resamples=DRAWS), old_auc([score], is_pos, codes, .5)

def areas(rng, codes, name):
    "Two evaluators, equally good."
    from factlib.validity.detection import auc_test, mean_auc_test
    (a, is_pos), (b, _) = texts(rng, codes, .8), texts(rng, codes, .8)
    sides = a[is_pos], a[~is_pos], b[is_pos], b[~is_pos]
    groups = codes[is_pos], codes[~is_pos]
    r = auc_test(*sides, groups, n_resamples=DRAWS) if name == 'one' else mean_auc_test([(*sides, *groups)], n_resamples=DRAWS, n_flips=DRAWS)
    return 0, r, old_auc([a, b], is_pos, codes, 0)

def correlation(rng, codes, name, rho):
    from factlib.validity import association
    x, y = pair(rng, codes, rho)
    true = {'pearson': rho, 'spearman': 6/math.pi*math.asin(rho/2), 'kendall': 2/math.pi*math.asin(rho)}[name]
    return true, getattr(association, name)(x, y, groups=codes, n_resamples=DRAWS), old_pearson(x, y, codes, 0) if name == 'pearson' else None

def within(rng, codes, rho):
    "Kendall's tau within each group, of items without anything shared."
    from factlib.validity.association import kendall
    x, y = rng.normal(size=(2, len(codes)))
    y = rho*x + math.sqrt(1 - rho*rho)*y
    return 2/math.pi*math.asin(rho), kendall(x, y, codes, per_group=True, n_resamples=DRAWS), None

def controlled(rng, codes):
    from factlib.validity.association import partial
    length = noise(rng, codes)
    x, y = noise(rng, codes) + length, noise(rng, codes) + length
    return 0, partial(x, y, length, groups=codes, n_resamples=DRAWS), None

def compared(rng, codes, per_group):
    from factlib.validity.association import correlation_test
    y = noise(rng, codes)
    a, b = y + noise(rng, codes), y + noise(rng, codes)
    return 0, correlation_test(a, b, y, groups=codes, n_resamples=199, per_group=per_group, kind='kendall' if per_group else 'pearson'), None

def agreeing(rng, codes, name):
    "Two annotators who toss a coin for what they are not sure of: both measures are .5. Which items those are, the group shares."
    from factlib.validity.agreement import alpha, kappa
    a, sure = rng.integers(0, 2, len(codes)), right_wrong(rng, codes, .5, 3) > .5
    b = np.where(sure, a, rng.integers(0, 2, len(codes)))
    return .5, alpha(np.stack([a, b], 1), groups=codes, n_resamples=DRAWS) if name == 'alpha' else kappa(list(a), list(b), groups=codes, n_resamples=DRAWS), None

NORMAL = noise
CASES = {  # (statistic, data) -> (function, arguments, is what p tests true)
    ('bootstrap: mean', 'normal'): (mean, (NORMAL,), True), ('bootstrap: mean', 'lognormal'): (mean, (lognormal,), True),
    ('paired_t', 'normal'): (t, (NORMAL,), True), ('paired_t', 'lognormal'): (t, (lognormal,), True),
    ('permutation_test', 'normal'): (flips, (NORMAL,), True), ('permutation_test', 'lognormal'): (flips, (lognormal,), True),
    ('noninferiority, bootstrap', 'normal'): (not_worse, (NORMAL,), True), ('effect_size', 'normal'): (effect, (NORMAL,), False),
    ('accuracy', 'binary .75'): (correct, (), False),
    ('balanced_accuracy', 'binary .75'): (classes, ('balanced_accuracy',), False), ('macro_f1', 'binary .75'): (classes, ('macro_f1',), False),
    ('auc_ci', 'AUC .5'): (area, (.5,), True), ('auc_ci', 'AUC .8'): (area, (.8,), False), ('auc_ci', 'AUC .95'): (area, (.95,), False),
    ('auc_test', 'AUC .8 twice'): (areas, ('one',), True), ('mean_auc_test', 'AUC .8 twice'): (areas, ('mean',), True),
    ('pearson', 'r 0'): (correlation, ('pearson', 0), True), ('pearson', 'r .6'): (correlation, ('pearson', .6), False), ('pearson', 'r .9'): (correlation, ('pearson', .9), False),
    ('spearman', 'r .6'): (correlation, ('spearman', .6), False), ('kendall', 'r .6'): (correlation, ('kendall', .6), False),
    ('kendall per_group', 'r 0'): (within, (0,), True), ('kendall per_group', 'r .6'): (within, (.6,), False),
    ('partial', 'r 0'): (controlled, (), True), ('correlation_test', 'equal'): (compared, (False,), True),
    ('correlation_test per_group', 'equal'): (compared, (True,), True),
    ('alpha', 'binary .5'): (agreeing, ('alpha',), False), ('kappa', 'binary .5'): (agreeing, ('kappa',), False)}

def cover(ci, true): return None if ci is None or true is None else bool(ci[0] <= true <= ci[1])

def share(values):
    "Of what is known; None if nothing is."
    known = [v for v in values if v is not None]
    return sum(known)/len(known) if known else None

def cell(job):
    "One line: a case with so many groups, simulated n times."
    (name, data), groups, balance, n, seed = job
    simulate, arguments, is_null = CASES[name, data]
    codes, rows = codes_of(groups, balance), []
    for i in range(n):
        rng = np.random.default_rng([seed, groups, BALANCES.index(balance), i])
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            true, r, old = simulate(rng, codes, *arguments)
        was = old or (None, None)
        rows.append((cover(r.ci, true), r.p, cover(was[0], true), was[1], bool(old)))
    tested = is_null and any(row[1] is not None for row in rows)
    return dict(statistic=name, data=data, balance=balance, groups=groups, given=share([row[0] is not None for row in rows]),
                cover=share([row[0] for row in rows]), alarm=share([row[1] is not None and row[1] < .05 for row in rows]) if tested else None,
                old_cover=share([row[2] for row in rows]), old_alarm=share([row[3] is not None and row[3] < .05 for row in rows if row[4]]) if is_null else None)

def table(n, groups=GROUPS, cases=CASES, seed=0, processes=None):
    "All lines, in the order of CASES."
    jobs = [(case, g, balance, n, seed) for case in cases for balance in BALANCES for g in groups]
    if processes == 1: return list(map(cell, jobs))
    with multiprocessing.get_context('spawn').Pool(processes or min(2, os.cpu_count() or 1)) as pool: return list(pool.imap(cell, jobs))

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--n', type=int, default=200, help='simulations a line')
    parser.add_argument('--quick', action='store_true', help='60 simulations a line, of 6, 8, 15 and 30 groups')
    options = parser.parse_args()
    n, groups = (60, (6, 8, 15, 30)) if options.quick else (options.n, GROUPS)
    shown = lambda x: '     .' if x is None else f'{x:6.3f}'
    print(f'{n} simulations a line; a share of .95 is known to +-{2*math.sqrt(.95*.05/n):.3f}, one of .05 likewise (two binomial errors)')
    print(f'{"statistic":27} {"data":13} {"balance":7} groups | given  cover  alarm | old: cover alarm')
    for row in table(n, groups):
        print(f'{row["statistic"]:27} {row["data"]:13} {row["balance"]:7} {row["groups"]:6} |' + ' '.join(shown(row[k]) for k in ('given', 'cover', 'alarm')) +
              ' | ' + ' '.join(shown(row[k]) for k in ('old_cover', 'old_alarm')), flush=True)

if __name__ == '__main__': main()
