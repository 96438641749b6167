"""What the intervals and tests over groups of `factlib.validity` keep of what they promise, on simulated data whose
truth is known. `make bench` runs it (a quarter of an hour on two idle cores), `--quick` in a minute.

The grid: each line of `LINES` (a statistic of data of one kind) with 6, 10, 20, 30 and 60 groups, that are equally
large (4 items), log-normal in size, or of which one holds half of all items; items share nothing or .3 of their
variance with their group. Besides, with log-normal sizes and .3: scores on four levels, scores whose items have t3
tails, and a fifth of the scores missing. Sizes are the same in all simulations of a cell.

The truth is a closed form where there is one, else the statistic of a million independent items (of 40,000 groups, for
statistics within groups) with a seed of their own, computed by numpy and scipy; the column `truth_by` says which.

- given: share of simulations with an interval or bound; bounds: with a one-sided bound, where nothing varies
- cover: share of the given that hold the truth (of `noninferiority` its low end only: that is its promise);
  bound_cover: of the one-sided bounds only. These are at a limit by chance, so no .95 is promised of them alone
- error: binomial error of cover
- width, width_95: length over that of the ideal interval, 2*1.96 standard deviations of the estimates; median, 95th
  percentile; as given, bounds included
- alarm: where there is nothing to find: share with p < .05, or without p an interval beside it
- ms: processor time of a call

A cell whose cover or alarms lie beside in the first round is simulated again, longer and with other seeds, and only
this second round counts: so the listed cells are not those that had bad luck."""
import argparse
import csv
import math
import multiprocessing
import os
import time
import warnings
import zlib
from functools import lru_cache
from functools import partial as Call
from typing import Any, Callable, NamedTuple

import numpy as np
import scipy

from factlib.metaeval.pairwise import dz_difference
from factlib.validity import agreement, association, detection, paired, resampling

GROUPS, SIZES, SHARED = (6, 10, 20, 30, 60), ('equal', 'log-normal', 'one half'), (0, .3)
SCORES = ('normal', 'four levels', 't3', 'missing')
LOW, HIGH, ALARMS = .93, .97, .07 # What cover should lie between, and alarms below
POPULATION, POPULATION_SEED = 1_000_000, 20_261_125


class Data(NamedTuple):
    "How the data of a cell are made."
    groups: int
    sizes: str = 'equal'
    shared: float = 0
    scores: str = 'normal'

    def codes(self) -> np.ndarray:
        "The group of each item."
        if self.sizes == 'one half': sizes = [4*(self.groups - 1)] + [4]*(self.groups - 1)
        elif self.sizes == 'equal': sizes = [4]*self.groups
        else:
            places = scipy.stats.norm.ppf((np.arange(self.groups) + .5)/self.groups)
            sizes = np.maximum(2, np.round(4*np.exp(.8*places))).astype(int)
        return np.repeat(np.arange(self.groups), sizes)


class Draw:
    "The columns of one simulation. Items in the same group have the same code."

    def __init__(self, rng, codes, data):
        self.rng, self.codes, self.data = rng, codes, data
        self.n, self.groups = len(codes), codes.max() + 1

    def latent(self):
        "Mean 0, variance 1, of which the group shares a part; t3: the items' own part has three degrees of freedom."
        own = self.rng.standard_t(3, self.n)/math.sqrt(3) if self.data.scores == 't3' else self.rng.normal(size=self.n)
        group = self.rng.normal(size=self.groups)[self.codes]
        return math.sqrt(self.data.shared)*group + math.sqrt(1 - self.data.shared)*own

    def related(self, x, rho):
        "Another column, that correlates with `x` within and between groups."
        return rho*x + np.sqrt(1 - np.square(rho))*self.latent()

    def scored(self, x):
        "The scores as an evaluator gives them: as they are, on four levels, or with every fifth missing."
        if self.data.scores == 'four levels': return np.digitize(x, (-1, 0, 1)) - 1.5
        return np.where(self.rng.random(self.n) < .2, np.nan, x) if self.data.scores == 'missing' else x

    def is_positive(self): return np.arange(self.n) % 2 == 0

    def evaluators(self, *areas):
        """Scores of evaluators with these AUCs; what they think of an item correlates by 1/2.

        Groups shift positives and negatives each by itself, so that every two items have the same chance."""
        sides, positive = [], self.is_positive()
        for _ in range(2):
            common = self.latent()
            sides.append([math.sqrt(.5)*(common + self.latent()) for _ in areas])
        skill = [math.sqrt(2)*scipy.stats.norm.ppf(area) for area in areas]
        return [self.scored(np.where(positive, p + s, n)) for p, n, s in zip(*sides, skill)]

    def happens(self, share):
        "Which items something happens to; groups differ in how often."
        return self.latent() < scipy.stats.norm.ppf(share)


# Definitions of our own, for the truth where there is no closed form.
def area_of(score, positive):
    ranks, n = scipy.stats.rankdata(score), positive.sum()
    return (ranks[positive].sum() - n*(n + 1)/2)/n/(len(score) - n)

def taus_of(x, y, codes):
    "Kendall's tau-b of each group, NaN without variation."
    found, sizes = [], np.bincount(codes)
    order, starts = np.argsort(codes, kind='stable'), np.cumsum(sizes) - sizes
    for n in np.unique(sizes):
        rows = order[starts[sizes == n][:, None] + np.arange(n)]
        a, b = (np.sign(v[rows][:, :, None] - v[rows][:, None, :]) for v in (x, y))
        with np.errstate(all='ignore'): found.append((a*b).sum((1, 2))/np.sqrt((a*a).sum((1, 2))*(b*b).sum((1, 2))))
    return np.concatenate(found)

def partial_of(x, y, z):
    xy, xz, yz = (scipy.stats.pearsonr(*two).statistic for two in ((x, y), (x, z), (y, z)))
    return (xy - xz*yz)/math.sqrt((1 - xz*xz)*(1 - yz*yz))

def squared_agreement(a, b, same_means):
    "1 - observed over expected squared distance: alpha of intervals, or kappa with each annotator's own values."
    both = np.concatenate([a, b])
    expected = 2*both.var() if same_means else a.var() + b.var() + (a.mean() - b.mean())**2
    return 1 - np.mean((a - b)**2)/expected


# The statistics: each gives the call that a user would make, so that the call alone is timed.
def auc(draw, area):
    (x,), positive, codes = draw.evaluators(area), draw.is_positive(), draw.codes
    return Call(detection.auc_ci, x[positive], x[~positive], 'cluster', (codes[positive], codes[~positive]))

def auc_value(draw, area): return area_of(draw.evaluators(area)[0], draw.is_positive())

def auc_apart(draw, area):
    "Each group has positives only, or negatives only."
    x, positive = draw.latent(), draw.codes % 2 == 0
    x = draw.scored(x + positive*math.sqrt(2)*scipy.stats.norm.ppf(area))
    codes = draw.codes[positive], draw.codes[~positive]
    return Call(detection.auc_ci, x[positive], x[~positive], 'cluster', codes)

def auc_scarce(draw, area):
    "Every group has negatives, three of them positives."
    (x,), codes = draw.evaluators(area), draw.codes
    positive, negative = draw.is_positive() & (codes % ((draw.groups + 2)//3) == 0), ~draw.is_positive()
    return Call(detection.auc_ci, x[positive], x[negative], 'cluster', (codes[positive], codes[negative]))

def auc_difference(draw, *areas):
    (a, b), positive, codes = draw.evaluators(*areas), draw.is_positive(), draw.codes
    groups = codes[positive], codes[~positive]
    return Call(detection.auc_test, a[positive], a[~positive], b[positive], b[~positive], groups)

def auc_difference_value(draw, *areas):
    a, b = draw.evaluators(*areas)
    return area_of(a, draw.is_positive()) - area_of(b, draw.is_positive())

def mean_auc_difference(draw, *areas):
    "Two sets of texts about the same documents."
    positive, codes, sets = draw.is_positive(), draw.codes, []
    for _ in range(2):
        a, b = draw.evaluators(*areas)
        sets.append((a[positive], a[~positive], b[positive], b[~positive], codes[positive], codes[~positive]))
    return Call(detection.mean_auc_test, sets)

def verdicts(draw, share, name):
    "Right so often, in each of two equally frequent classes."
    truth = np.arange(draw.n) % 2
    said = list(np.where(draw.happens(share), truth, 1 - truth))
    if draw.data.scores == 'missing': said = [v if x > .2 else None for x, v in zip(draw.rng.random(draw.n), said)]
    return Call(getattr(detection, name), said, list(truth), groups=draw.codes)

def shifted(draw, mean): return draw.scored(draw.latent() + mean)

def mean(draw, true): return Call(resampling.bootstrap, np.mean, shifted(draw, true), groups=draw.codes, null=0)
def t_test(draw, true): return Call(paired.paired_t, shifted(draw, true), groups=draw.codes)
def sign_flips(draw, true): return Call(paired.permutation_test, shifted(draw, true), groups=draw.codes)
def not_worse(draw, true): return Call(paired.noninferiority, shifted(draw, true), -true, groups=draw.codes)

def skewed(draw, true):
    "Groups differ log-normally (sigma 1), around `true`."
    group = true + draw.rng.lognormal(size=draw.groups) - math.exp(.5)
    return Call(resampling.bootstrap, np.mean, group[draw.codes] + .3*draw.latent(), groups=draw.codes, null=true)

def effect(draw, true): return Call(paired.effect_size, shifted(draw, true), groups=draw.codes)
def standardised(x): return x.mean()/x.std()
def effect_value(draw, true): return standardised(shifted(draw, true))

def effects(draw, *true):
    x = draw.latent()
    return [draw.scored(v + d) for v, d in zip((x, draw.related(x, .5)), true)]

def effect_difference(draw, *true): return Call(dz_difference, *effects(draw, *true), groups=list(draw.codes))

def effect_difference_value(draw, *true):
    a, b = effects(draw, *true)
    return standardised(a) - standardised(b)

def two(draw, rho):
    x = draw.latent()
    return draw.scored(x), draw.scored(draw.related(x, rho))

def correlation(draw, rho, kind): return Call(getattr(association, kind), *two(draw, rho), groups=draw.codes)

def correlation_value(draw, rho, kind):
    of = dict(pearson=scipy.stats.pearsonr, spearman=scipy.stats.spearmanr, kendall=scipy.stats.kendalltau)
    return of[kind](*two(draw, rho)).statistic

def pairs_within(draw, rho):
    "Groups differ in how closely x and y go together, by .3 up and down, if items share something with their group."
    up = np.arange(draw.groups) % 2 if draw.data.shared else .5
    slope = rho + .6*(up - .5) if draw.data.shared else np.full(draw.groups, rho)
    x, noise = draw.rng.normal(size=(2, draw.n))
    if draw.data.scores == 't3': x, noise = draw.rng.standard_t(3, size=(2, draw.n))
    own = slope[draw.codes]
    return draw.scored(x), draw.scored(own*x + np.sqrt(1 - own*own)*noise)

def within(draw, rho): return Call(association.kendall, *pairs_within(draw, rho), groups=draw.codes, per_group=True)
def within_value(draw, rho): return np.nanmean(taus_of(*pairs_within(draw, rho), draw.codes))

def given_length(draw, rho):
    length, x = draw.latent(), draw.latent()
    return draw.scored(x + length), draw.scored(draw.related(x, rho) + length), length

def partial(draw, rho): return Call(association.partial, *given_length(draw, rho), groups=draw.codes)
def partial_value(draw, rho): return partial_of(*given_length(draw, rho))

def noisy(draw, *noises):
    "Two evaluators who see the truth through noise of these sizes, and the truth."
    y = draw.latent()
    return *(draw.scored(y + s*draw.latent()) for s in noises), y

def two_correlations(draw, *noises): return Call(association.correlation_test, *noisy(draw, *noises), groups=draw.codes)

def two_within(draw, *noises):
    return Call(association.correlation_test, *noisy(draw, *noises), groups=draw.codes, kind='kendall', per_group=True)

def two_correlations_value(draw, *noises):
    a, b, y = noisy(draw, *noises)
    return scipy.stats.pearsonr(a, y).statistic - scipy.stats.pearsonr(b, y).statistic

def labels(draw, agreement):
    "Two annotators who toss a coin each, but are of one mind for so many items that this is their agreement."
    a, b = draw.rng.integers(0, 2, (2, draw.n)).astype(float)
    b = np.where(draw.happens(agreement), a, b)
    return draw.scored(a), draw.scored(b)

def ratings(draw, agreement):
    "Two annotators who see the same through noise."
    seen = draw.latent()
    return [draw.scored(math.sqrt(agreement)*seen + math.sqrt(1 - agreement)*draw.rng.normal(size=draw.n))
            for _ in range(2)]

def alpha(draw, agreement_): return Call(agreement.alpha, np.stack(labels(draw, agreement_), 1), groups=draw.codes)
def kappa(draw, agreement_): return Call(agreement.kappa, *map(list, labels(draw, agreement_)), groups=draw.codes)

def alpha_of_ratings(draw, agreement_):
    return Call(agreement.alpha, np.stack(ratings(draw, agreement_), 1), 'interval', groups=draw.codes)

def weighted_kappa(draw, agreement_):
    return Call(agreement.kappa, *ratings(draw, agreement_), 'quadratic', (-1.5, -.5, .5, 1.5), groups=draw.codes)


class Line(NamedTuple):
    "A statistic of data of one kind."
    name: str
    data: str                    # What is true, in words
    ask: Callable                # (Draw, *arguments) -> the call that gives the Result
    arguments: tuple
    true: Any                    # The closed form, or a function of `shared` that gives it
    null: float | None = None    # What p tests; alarms are counted where it is true
    value: Callable | None = None # (Draw, *arguments) -> the statistic of very many items, without a closed form
    exact: tuple = ('normal', 'missing') # The kinds of scores for which `true` holds
    scores: tuple = SCORES       # The kinds of scores that the line can have
    within: bool = False         # Whether `value` depends on the groups' sizes
    hopeless: str = ''           # Why no method can be expected to keep its promise

    @property
    def full_name(self): return f'{self.name}, {self.data}'


def tau(rho): return 2/math.pi*math.asin(rho)
def split_tau(shared): return (tau(.2) + tau(.8))/2 if shared else tau(.5)

EVEN, ALL = ('normal', 'missing'), SCORES # `ALL` in `exact`: by symmetry
T3 = ('normal', 'missing', 't3') # In `exact`: only means, variances and correlations matter
LIMIT = 'close to the limit: with few groups most simulations are without a mistake'

LINES = [
    Line('AUC', '.5', auc, (.5,), .5, .5, exact=ALL),
    Line('AUC', '.8', auc, (.8,), .8, .5, auc_value),
    Line('AUC', '.97', auc, (.97,), .97, .5, auc_value, hopeless=LIMIT),
    Line('AUC, a class a group', '.8', auc_apart, (.8,), .8, .5, scores=EVEN),
    Line('AUC, positives in 3 groups', '.8', auc_scarce, (.8,), .8, .5, scores=EVEN),
    Line('AUC difference', '0', auc_difference, (.8, .8), 0, 0, exact=ALL),
    Line('AUC difference', '.2', auc_difference, (.9, .7), .2, 0, auc_difference_value),
    Line('AUC difference', '.995 - .97', auc_difference, (.995, .97), .025, 0, auc_difference_value, hopeless=LIMIT),
    Line('mean AUC difference', '0', mean_auc_difference, (.8, .8), 0, 0, exact=ALL),
    Line('accuracy', '.75', verdicts, (.75, 'accuracy'), .75, scores=EVEN),
    Line('accuracy', '.95', verdicts, (.95, 'accuracy'), .95, scores=EVEN, hopeless=LIMIT),
    Line('balanced accuracy', '.75', verdicts, (.75, 'balanced_accuracy'), .75, scores=EVEN),
    Line('macro-F1', '.75', verdicts, (.75, 'macro_f1'), .75, scores=EVEN),
    Line('mean', '0', mean, (0,), 0, 0, exact=ALL),
    Line('mean', 'skewed groups', skewed, (0,), 0, 0, scores=('normal',), hopeless='log-normal group effects'),
    Line('t-test', '0', t_test, (0,), 0, 0, exact=ALL),
    Line('sign flips', '0', sign_flips, (0,), 0, 0, scores=EVEN),
    Line('non-inferiority', 'at the margin', not_worse, (-.5,), -.5, -.5, exact=T3, scores=T3),
    Line('d_z', '0', effect, (0,), 0, 0, exact=ALL),
    Line('d_z', '.8', effect, (.8,), .8, 0, effect_value, T3),
    Line('d_z difference', '0', effect_difference, (.8, .8), 0, 0, exact=ALL),
    Line('d_z difference', '1', effect_difference, (1.5, .5), 1, 0, effect_difference_value, T3),
    Line('Kendall', '0', correlation, (0, 'kendall'), 0, 0, exact=ALL),
    Line('Kendall', '.41', correlation, (.6, 'kendall'), tau(.6), 0, correlation_value),
    Line('Kendall within', '0', within, (0,), 0, 0, exact=ALL),
    Line('Kendall within', '.33', within, (.5,), split_tau, 0, within_value, within=True),
    Line('Pearson', '0', correlation, (0, 'pearson'), 0, 0, exact=ALL),
    Line('Pearson', '.6', correlation, (.6, 'pearson'), .6, 0, correlation_value, T3),
    Line('Pearson', '.9', correlation, (.9, 'pearson'), .9, 0, correlation_value, T3),
    Line('Spearman', '.58', correlation, (.6, 'spearman'), 6/math.pi*math.asin(.3), 0, correlation_value),
    Line('partial', '0', partial, (0,), 0, 0, partial_value, T3),
    Line('partial', '.6', partial, (.6,), .6, 0, partial_value, T3),
    Line('correlation difference', '0', two_correlations, (1, 1), 0, 0, exact=ALL),
    Line('correlation difference', '.26', two_correlations, (1, 2), .5**.5 - .2**.5, 0, two_correlations_value, T3),
    Line('difference of Kendall within', '0', two_within, (1, 1), 0, 0, exact=ALL),
    Line('alpha, labels', '.5', alpha, (.5,), .5, scores=EVEN),
    Line('alpha, ratings', '.5', alpha_of_ratings, (.5,), .5, exact=T3, scores=SCORES,
         value=lambda draw, a: squared_agreement(*ratings(draw, a), same_means=True)),
    Line('kappa', '.5', kappa, (.5,), .5, scores=EVEN),
    Line('kappa, quadratic', 'ratings', weighted_kappa, (.5,), None, exact=(), scores=('four levels',),
         value=lambda draw, a: squared_agreement(*ratings(draw, a), same_means=False)),
]


def truth(line, data):
    "(what is true, closed form or simulation)."
    if data.scores in line.exact: return line.true(data.shared) if callable(line.true) else line.true, 'closed form'
    return simulated_truth(line.full_name, data if line.within else data._replace(groups=0, sizes='')), 'simulation'

@lru_cache(None)
def simulated_truth(name, data):
    "The statistic of a million items, each a group of its own; within groups of 40,000 groups of the same sizes."
    line = next(line for line in LINES if line.full_name == name)
    codes = np.arange(POPULATION)
    if line.within:
        codes, copies = data.codes(), 40_000//data.groups
        codes = (codes + data.groups*np.arange(copies)[:, None]).ravel()
    return float(line.value(Draw(np.random.default_rng(POPULATION_SEED), codes, data), *line.arguments))


class Once(NamedTuple):
    "What came of one simulation."
    estimate: float | None
    ci: tuple | None
    p: float | None
    is_bound: bool # One-sided
    ms: float

def simulate(line, data, n, seed):
    "n simulations of a cell; the random numbers depend on the cell and the seed only."
    rng = np.random.default_rng([seed, zlib.crc32(repr((line.full_name, tuple(data))).encode())])
    codes, found = data.codes(), []
    for _ in range(n):
        call = line.ask(Draw(rng, codes, data), *line.arguments)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            start = time.process_time()
            r = call()
            ms = 1000*(time.process_time() - start)
        found.append(Once(r.estimate, r.ci, r.p, getattr(r, 'kind', '') == 'bound', ms))
    return found

def share(values): return sum(values)/len(values) if len(values) else None

def measured(line, data, true, found):
    "The figures of a cell."
    known = [x for x in found if x.ci is not None]
    one_sided = line.name == 'non-inferiority' # which promises that the truth is not below the interval
    holds = lambda x: x.ci[0] <= true + 1e-12 and (one_sided or true - 1e-12 <= x.ci[1])
    bounds = [x for x in known if x.is_bound]
    estimates = np.array([x.estimate for x in found if x.estimate is not None])
    ideal = 2*scipy.stats.norm.isf(.05 if one_sided else .025)*estimates.std() if len(estimates) else 0
    widths = [(x.ci[1] - x.ci[0])/ideal for x in known if ideal > 0]
    tested = [x for x in found if x.p is not None or x.ci is not None] if line.null == true else []
    beside = lambda x: not x.ci[0] <= line.null <= x.ci[1]
    cover = share([holds(x) for x in known])
    return dict(n=len(found), given=len(known)/len(found), bounds=len(bounds)/len(found), cover=cover,
                error=None if cover is None else math.sqrt(cover*(1 - cover)/len(known)),
                bound_cover=share([holds(x) for x in bounds]),
                width=float(np.median(widths)) if widths else None,
                width_95=float(np.quantile(widths, .95)) if widths else None,
                alarm=sum(x.p < .05 if x.p is not None else beside(x) for x in tested)/len(found) if tested else None,
                ms=float(np.mean([x.ms for x in found])))

def is_doubtful(row):
    "Whether the cell seems not to keep its promise. Hopeless ones are not asked again."
    if row['hopeless']: return False
    beside = row['cover'] is not None and not LOW <= row['cover'] <= HIGH
    return beside or row['alarm'] is not None and row['alarm'] > ALARMS

def cell(job):
    "A row of the table."
    name, data, true, by, n, again, seed = job
    line = next(line for line in LINES if line.full_name == name)
    row = dict(statistic=line.name, data=line.data, **data._asdict(), true=true, truth_by=by, hopeless=line.hopeless)
    row |= measured(line, data, true, simulate(line, data, n, seed))
    if again and is_doubtful(row): row |= measured(line, data, true, simulate(line, data, again, seed + 1))
    return row

def cells(line, groups=GROUPS):
    "The `Data` of a line: all sizes and shares; other kinds of scores with unequal sizes and something shared."
    first, *others = line.scores
    crossed = [Data(g, sizes, shared, first) for sizes in SIZES for shared in SHARED for g in groups]
    return crossed + [Data(g, 'log-normal', .3, scores) for scores in others for g in groups]

def table(lines=LINES, groups=GROUPS, n=250, again=1000, seed=1, jobs=1):
    "All rows, line after line. The truths are found beforehand, once for all."
    todo = [(line.full_name, data, *truth(line, data), n, again, seed) for line in lines
            for data in cells(line, groups)]
    if jobs == 1:
        yield from map(cell, todo)
        return
    with multiprocessing.get_context('spawn').Pool(jobs) as pool: yield from pool.imap(cell, todo)


# What is shown.
def shown(x, digits=3): return '.' if x is None else f'{x:.{digits}f}' if isinstance(x, float) else str(x)

def printed(rows):
    "Rows of equal keys in columns."
    lines = [list(rows[0])] + [[shown(x) for x in row.values()] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines)]
    print('\n'.join('  '.join(text.ljust(w) for text, w in zip(line, widths)).rstrip() for line in lines))

def summary(rows):
    "A row a line of the grid: over its cells."
    for name in dict.fromkeys((row['statistic'], row['data']) for row in rows):
        own = [row for row in rows if (row['statistic'], row['data']) == name]
        known = lambda key: [row[key] for row in own if row[key] is not None]
        mean = lambda key: float(np.mean(known(key))) if known(key) else None
        ends = lambda key, end: end(known(key)) if known(key) else None
        yield dict(statistic=name[0], data=name[1], cells=len(own), cover=mean('cover'), least=ends('cover', min),
                   most=ends('cover', max), given=mean('given'), bounds=mean('bounds'), width=mean('width'),
                   width_95=mean('width_95'), alarm=mean('alarm'), most_alarms=ends('alarm', max), ms=mean('ms'))

def full_name(row): return f'{row["statistic"]}, {row["data"]}'
def place(row): return ', '.join(str(row[key]) for key in ('statistic', 'data', *Data._fields))

def verdict(rows):
    "Which cells do not keep the promise, by name."
    judged = [row for row in rows if not row['hopeless']]
    far = lambda share, end, n: abs(share - end) > 2*math.sqrt(end*(1 - end)/n) # by more than two binomial errors
    for what, key, end, beside in ((f'cover below {LOW}', 'cover', LOW, lambda x: x < LOW),
                                   (f'cover above {HIGH}', 'cover', HIGH, lambda x: x > HIGH),
                                   (f'alarms above {ALARMS}', 'alarm', ALARMS, lambda x: x > ALARMS),
                                   ('some without interval or bound', 'given', 1, lambda x: 0 < x < 1)):
        known = [row for row in judged if row[key] is not None]
        found = sorted((row for row in known if beside(row[key])), key=lambda row: row[key])
        sure = [row for row in found if far(row[key], end, row['n'])]
        print(f'\n{what}: {len(found)} of {len(known)} cells that are not hopeless, '
              f'{len(sure)} of them by more than chance (*)')
        for row in found:
            print(f'{"*" if row in sure else " "} {place(row)}: cover {shown(row["cover"])} +-{shown(row["error"])}, '
                  f'given {shown(row["given"])}, alarm {shown(row["alarm"])}, n {row["n"]}')
    hopeless = [row for row in rows if row['hopeless'] and row['cover'] is not None]
    short = sum(row['cover'] < LOW for row in hopeless)
    print(f'\nhopeless by choice: {len(hopeless)} cells, {short} of them below {LOW}')

def read(path):
    "Rows from a CSV."
    def value(text):
        try: return float(text) if '.' in text or 'e' in text else int(text)
        except ValueError: return text or None
    words = ('statistic', 'data', 'sizes', 'scores', 'truth_by', 'hopeless')
    with open(path, encoding='utf-8', newline='') as file:
        return [{key: text if key in words else value(text) for key, text in row.items()}
                for row in csv.DictReader(file)]

def write(rows, path):
    "A CSV of rows, each written as it comes; the rows."
    written: list = []
    with open(path, 'w', encoding='utf-8', newline='') as file:
        for row in rows:
            writer = csv.DictWriter(file, list(row), lineterminator='\n')
            if not written: writer.writeheader()
            writer.writerow({key: f'{x:.4g}' if isinstance(x, float) else x for key, x in row.items()})
            file.flush()
            written.append(row)
    return written

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true', help='100 simulations, 6 and 20 groups, no second round')
    parser.add_argument('--statistic', nargs='+', default=[''], help='only lines that begin so: AUC, "Kendall, 0"; '
                        'then all cells are shown')
    parser.add_argument('--n', type=int, help='simulations a cell in the first round; 250')
    parser.add_argument('--again', type=int, help='in the second round, of doubtful cells; 1000')
    parser.add_argument('--groups', type=int, nargs='+', help='how many (even numbers)')
    parser.add_argument('--seed', type=int, default=1, help='of the first round; the second has the next')
    parser.add_argument('--jobs', type=int, default=min(2, os.cpu_count() or 1), help='processes')
    parser.add_argument('--out', help='a CSV with all cells')
    parser.add_argument('--show', nargs='+', default=[], metavar='CSV', help='simulate nothing, show these; of several '
                        'only the cells that all have')
    options = parser.parse_args()
    usual = dict(n=100, again=0, groups=(6, 20)) if options.quick else dict(n=250, again=1000, groups=GROUPS)
    for name, value in usual.items():
        if getattr(options, name) is None: setattr(options, name, value)
    lines = [line for line in LINES if line.full_name.startswith(tuple(options.statistic))]
    if not lines: parser.error(f'there are only {"; ".join(line.full_name for line in LINES)}')
    tables = {path: read(path) for path in options.show}
    if not tables:
        print(f'{options.n} simulations a cell: a share of .95 has a binomial error of '
              f'{math.sqrt(.95*.05/options.n):.3f}' + (f'; {options.again} of doubtful cells: '
              f'{math.sqrt(.95*.05/options.again):.3f}' if options.again else ''), flush=True)
        rows = table(lines, options.groups, options.n, options.again, options.seed, options.jobs)
        tables = {'': write(rows, options.out) if options.out else list(rows)}
    common = set.intersection(*(set(map(place, rows)) for rows in tables.values()))
    for path, rows in tables.items():
        print(path)
        rows = [row for row in rows if place(row) in common and full_name(row).startswith(tuple(options.statistic))]
        if options.statistic != ['']: printed([{k: v for k, v in row.items() if k != 'hopeless'} for row in rows])
        printed(list(summary(rows)))
        verdict(rows)


if __name__ == '__main__': main()
