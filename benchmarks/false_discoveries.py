"""What the matrix finds where there is nothing to find: the labels of its benchmarks are permuted within groups, and
everything that it then claims is false. `make bench` runs it, `--quick` with 20 runs of three benchmarks.

A group keeps its labels (or scores), but its texts exchange them; groups of the same size exchange theirs, too, so that
a benchmark whose groups hold one label each is relabelled as well. Evaluators keep their scores: offline ones that are
not slow, and recorded ones, as in the experiment trust_matrix. In each run all comparisons are made anew.

A family is what is corrected together, by Benjamini and Hochberg: the pairs of evaluators of a benchmark (its rank
intervals), and those of its evaluators that beat every floor; likewise over all benchmarks of a question. Where nothing
is to be found, each family may claim something in one run of twenty. A matrix of many families does so more often: the
last line says how often. `--cells` are the intervals of small_matrix, one a cell and not corrected: one in twenty may
exclude chance."""
import argparse
import math
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from factlib.benchmarks.base import BENCHMARKS, benchmarks_here
from factlib.benchmarks.rated_verdicts import RECORDED as RATED
from factlib.core.records import BadInput
from factlib.evaluators.base import evaluate
from factlib.evaluators.judgement_cache import JudgementCache
from factlib.metaeval import matrix
from factlib.metaeval.pairwise import contest, is_control
from factlib.papers.judgememo.recorded_comparison import recorded_judgements as thesis
from factlib.papers.judgememo.recordings import main_setups
from factlib.papers.trutheval.recordings import recorded_judgements, recorded_scores
from factlib.runs.judging import judges_for

RECORDED = { # Benchmark -> its examples -> what recorded judges said of them
    'coflueval_recorded': lambda examples: thesis(main_setups(), examples),
    'trutheval': lambda examples: recorded_judgements(recorded_scores(), examples),
    **RATED}
QUICK = ['holmes_order', 'storysumm', 'hanna']

def relabelled(examples, rng, controls=False):
    "The examples with each other's truths. What has no truth stays as it is, and so do controls, unless they count."
    known = [i for i, e in enumerate(examples) if e.truth is not None and (controls or not is_control(e))]
    groups = defaultdict(list)
    for i in known: groups[examples[i].group].append(i)
    by_size = defaultdict(list)
    for members in groups.values(): by_size[len(members)].append(members)
    truths = {}
    for alike in by_size.values():
        for members, giver in zip(alike, rng.permutation(len(alike))):
            for i, j in zip(members, rng.permutation(alike[giver])): truths[i] = examples[j].truth
    return [replace(e, truth=truths[i]) if i in truths else e for i, e in enumerate(examples)]

def recorded_frames(benchmarks):
    "What recorded judges said."
    for b in benchmarks:
        if b.name not in RECORDED: continue
        try: frame = RECORDED[b.name](b.examples)
        except BadInput as e: print(f'No recorded judges of {b.name}: {e}')
        else: yield frame.assign(benchmark=b.name, evaluator=frame.evaluator + ' (recorded)')

def judged(benchmarks, folder):
    "All judgements, of offline and of recorded judges."
    import pandas as pd
    cache, frames = JudgementCache(folder), []
    for b in benchmarks:
        for judge in judges_for('offline'):
            frame = evaluate(judge, list(b), cache=cache, progress=False)
            frames.append(frame.assign(benchmark=b.name, evaluator=judge.name))
    return pd.concat([*frames, *recorded_frames(benchmarks)], ignore_index=True)

def false_findings(columns, rng):
    "Family -> (claims, tests) on relabelled texts."
    from factlib.metaeval.ranks import against_floors, over_benchmarks
    anew = []
    for column in columns:
        examples = relabelled(column.benchmark.examples, rng)
        b = replace(column.benchmark, examples=examples)
        anew.append(column._replace(benchmark=b, contest=contest(examples, b.good)))
    tests, found = matrix.matrix_pairs(anew), {}
    families = list(tests.groupby('benchmark', sort=False))
    for question, own in tests.groupby('question', sort=False):
        if own.benchmark.nunique() > 1: families.append((f'all of {question}', over_benchmarks(own)))
    for name, own in families:
        beaten = against_floors(own, matrix.FLOORS)
        found[name, 'pairs'] = int((own.q < .05).sum()), int(own.q.notna().sum())
        found[name, 'floors'] = int((beaten.q_floor < .05).sum()), len(beaten)
    return found

def false_cells(judgements, benchmarks, rng):
    "Benchmark -> cells of small_matrix on relabelled texts: (whose interval excludes chance, all, without one)."
    anew = [replace(b, examples=relabelled(b.examples, rng, controls=True)) for b in benchmarks] # as true as any there
    table = matrix.small_matrix(judgements, anew)
    table = table[table.estimate.notna()]
    chance = table.statistic.str.startswith('AUC')*.5
    beside = (table.ci_low > chance) | (table.ci_high < chance)
    return {name: (int(beside[table.benchmark == name].sum()), int((table.benchmark == name).sum()),
                   int(table[table.benchmark == name].ci_low.isna().sum())) for name in table.benchmark.unique()}

def share(n, runs): return f'{n/runs:.3f} +-{math.sqrt(max(n/runs*(1 - n/runs), .05*.95)/runs):.3f}'

def show_families(found, runs):
    print(f'{"family":32} {"who":7} tests  runs with a claim  claims a run')
    for (name, who), counts in found.items():
        claims, tests = zip(*counts)
        if not max(tests): continue
        print(f'{name:32} {who:7} {max(tests):5}  {share(sum(n > 0 for n in claims), runs):17}  {np.mean(claims):.3f}')
    claimed = {family: np.array([n > 0 for n, _ in counts]) for family, counts in found.items() if max(counts)[1]}
    print(f'{np.mean(list(claimed.values())):.4f} of {len(claimed)} families in {runs} runs claim something')
    print(f'{share(sum(np.any(list(claimed.values()), axis=0)), runs)} of the runs, in one family at least')

def show_cells(found, runs):
    print(f'{"benchmark":28} cells  without an interval  excludes chance')
    found['all'] = [x for counts in list(found.values()) for x in counts]
    for name, counts in found.items():
        beside, cells, none = np.sum(counts, axis=0)
        print(f'{name:28} {cells/runs:5.1f}  {none/cells:19.3f}  {beside/max(cells - none, 1):14.3f}')

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true', help=f'20 runs of {", ".join(QUICK)}')
    parser.add_argument('--runs', type=int, help='relabellings; 200')
    parser.add_argument('--benchmarks', nargs='+', help='names; all that are here, but the slow ones')
    parser.add_argument('--groups', type=int, default=24, help='so many groups of each benchmark; 0: all')
    parser.add_argument('--cells', action='store_true', help='the intervals of small_matrix instead of the matrix')
    parser.add_argument('--kept', help='folder of kept judgements, as of the experiment; without: judged anew')
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    runs = options.runs or (20 if options.quick else 200)
    names = options.benchmarks or (QUICK if options.quick else [name for name in BENCHMARKS if name != 'coflueval'])
    benchmarks, absent = benchmarks_here(names, options.groups or None, 0)
    for name, why in absent.items(): print(f'Not here: {name}. {why}')
    with TemporaryDirectory() as temporary: judgements = judged(benchmarks, Path(options.kept or temporary))
    columns, left_out = matrix.matrix_columns(judgements, benchmarks)
    for name, why in left_out.items(): print(f'No column: {name}. {why}')
    rng, start, found = np.random.default_rng(options.seed), time.process_time(), defaultdict(list)
    for _ in range(runs):
        made = false_cells(judgements, benchmarks, rng) if options.cells else false_findings(columns, rng)
        for family, counts in made.items(): found[family].append(counts)
    (show_cells if options.cells else show_families)(found, runs)
    print(f'{runs} runs, {(time.process_time() - start)/runs:.2f} s of processor time each')


if __name__ == '__main__': main()
