"""How fast texts are damaged: words per second of CPU time of all fifteen manipulations, with the parse at hand and without, beside the original code; then the whole of CoFluEval-LC and -SC on two processes.

    python benchmarks/manipulations.py            all of it; uses $FACTLIB_DATA/judgememo/documents.parquet, else the twelve sample stories
    python benchmarks/manipulations.py --quick    only the words per second

The original's figures were taken on two cores with spaCy 3.8, the texts 2,156 and 11,756 words long on average; those of [32] and [42] while two or three jobs competed. Ours depend on the machine too: compare orders of magnitude."""
import argparse, resource, time

LIMIT = 360 # seconds for the whole benchmark of 65 documents
ORIGINAL = {'41': (.004, .030), '17': (.006, .034), '24': (.001, .003), '32': (3.5, 9.9), '42': (1.6, 8.6), '43': (2.5, 5.9)} # seconds a document, at 2,000 tokens and whole

def documents():
    "The thesis's documents where they are, else the sample stories."
    from factlib.benchmarks.gutenberg import thesis_documents
    from factlib.benchmarks.samples import stories
    from factlib.core.records import BadInput
    try: return thesis_documents()
    except BadInput as e:
        print(f'{e} So these are the twelve sample stories.')
        return stories()

def seconds(function, repeats=3):
    "CPU time of the shortest of some runs; other programs on the machine hardly change it."
    def once():
        start = time.process_time()
        function()
        return time.process_time() - start
    return min(once() for _ in range(repeats))

def speeds(docs, parsed):
    "Prints a row for each kind."
    from factlib.text.vectors import load_spacy
    from factlib.text.parse import parse
    from factlib.benchmarks.coflueval import donors_of
    from factlib.perturb.base import MANIPULATIONS
    from factlib.perturb.quality import manipulate
    load_spacy()
    texts = {d.id: d.text for d in docs}
    chosen = docs[:parsed]
    words = sum(len(d.text.split()) for d in chosen)
    parses = {}
    parsing = seconds(lambda: parses.update({d.id: parse(d.text) for d in chosen}), 1)
    print(f'\n{len(chosen)} documents, {words:,} words; spaCy parses {words/parsing:,.0f} words a second, once for all kinds\n\n{"":30} {"words/CPU second":>16} {"with parsing":>13} {"original":>10}')
    for kind in MANIPULATIONS.values():
        def all_documents():
            for d in chosen:
                given = dict(doc=parses[d.id]) if 'doc' in kind.takes else {}
                if 'donors' in kind.takes: given['donors'] = donors_of(d.id, texts)
                manipulate(d.text, kind.id, seed=d.id, **given)
        once = seconds(all_documents)
        needs = 'model' in kind.takes # parses by itself if no parse is given
        original = f'{11756/ORIGINAL[kind.id][1]:>10,.0f}' if kind.id in ORIGINAL else f'{"":>10}'
        print(f'[{kind.id}] {kind.name:25} {words/once:>16,.0f} {words/(once + parsing) if needs else words/once:>13,.0f} {original}')

def whole(docs, workers):
    "Prints how long the benchmark takes. Gives whether that is within the limit."
    from factlib.benchmarks.coflueval import build
    cpu = lambda: sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    start, before = time.perf_counter(), cpu()
    built = build(docs, workers=workers)
    took, worked = time.perf_counter() - start, cpu() - before
    words = sum(e.meta['tokens'] for e in built.benchmark if e.variant == 'gold')
    print(f'\nSix manipulations of {len(docs)} documents at 2 lengths ({words/1e6:.2f} million words) on {workers} processes: {took:.0f} s ({worked:.0f} s of CPU time) for {len(built.benchmark)} examples, {len(built.benchmark.refused)} refused. '
          f'Limit for 65 documents: {LIMIT} s.')
    return took <= LIMIT

if __name__ == '__main__':
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument('--quick', action='store_true', help='only the words per second')
    asked.add_argument('--parsed', type=int, default=6, help='so many documents for the words per second (default 6)')
    asked.add_argument('--workers', type=int, default=2, help='processes for the whole benchmark (default 2)')
    asked.add_argument('--documents', type=int, help='only the first so many documents')
    asked = asked.parse_args()
    docs = documents()[:asked.documents]
    speeds(docs, asked.parsed)
    if not asked.quick and not whole(docs, asked.workers): raise SystemExit('Too slow.')
