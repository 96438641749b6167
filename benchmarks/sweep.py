"""What a sweep costs beside what it runs; `make bench` runs it, `--quick` with a tenth or less of each.

- cells: 40 notebooks of 2 s on two workers, over half the sum of what papermill says they took (the start of the cluster aside), and the same command again with nothing to do
- waiting: cells that wait for a server of 50 ms, one worker over two
- gateway: processor time of a request that is handed on
- merge: a cache of 10^6 answers put together from those of 8 workers
- table: a sweep whose 10,000 cells are all kept: plan, `cells.csv`, page
- evaluate: 200,000 examples through one `evaluate`

Seconds are of the clock, memory is the most that the process has had (VmHWM)."""
import argparse, asyncio, csv, io, json, os, re, resource, sys, tempfile, time
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

from factlib.core.loop import run_sync
from factlib.llm.cache import Cache, request_key
from factlib.llm.chat import Chat
from factlib.llm.gateway import Gateway
from factlib.llm.stub import StubServer
from factlib.runs.provenance import digests_of, provenance
from factlib.runs.workers import local_workers
from factlib.runs.grid import load_grid
from factlib.runs.sweep import HIDDEN, here, keep_record, run_sweep

def most_memory():
    "MB."
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss/1024

def said(what, **figures): print(f'{what:34}', *(f'{name} {value:,.3g}' if isinstance(value, float) else f'{name} {value:,}' for name, value in figures.items()), sep='  ', flush=True)

@contextmanager
def folder():
    "An empty working folder."
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try: yield Path(name)
        finally: os.chdir(before)

def notebook(path, *sources):
    "A notebook whose first cell holds its parameters."
    cells = [dict(cell_type='code', id=f'c-{i}', metadata=dict(tags=['parameters'] if not i else []), source=s, outputs=[], execution_count=None) for i, s in enumerate(sources)]
    path.write_text(json.dumps(dict(cells=cells, metadata=dict(kernelspec=dict(name='python3', display_name='python3', language='python')), nbformat=4, nbformat_minor=5)))

def swept(said, workers):
    "A sweep, timed from when its workers are there."
    Path('grid.json').write_text(json.dumps(said))
    started = []
    @contextmanager
    def timed(n):
        begun = time.monotonic()
        with workers(n) as executor:
            if executor.run.__name__ == '<lambda>':
                import psutil
                while len(psutil.Process().children(recursive=True)) < 2: time.sleep(.05)
            started.append(time.monotonic() - begun)
            yield executor
    begun = time.monotonic()
    with redirect_stderr(io.StringIO()): summary = run_sweep(load_grid('grid.json'), 'out', timed)
    return summary, time.monotonic() - begun, sum(started)

def durations(out):
    "Seconds that papermill gives for the runs of a folder."
    return sum(json.loads(p.read_text())['metadata']['papermill']['duration'] for p in Path(out).glob('*/notebook.ipynb'))

def cells(n, seconds=2):
    with folder() as where:
        notebook(where/'own.ipynb', 'x:int = 0', f'import time\nbegun = time.process_time()\nwhile time.process_time() - begun < {seconds}: pass')
        grid = dict(experiment='own.ipynb', grid=dict(x=list(range(n))))
        summary, took, start = swept(grid, local_workers(2))
        half = durations('out')/2
        said(f'{n} cells of {seconds} s of processor', seconds=took, cluster=start, half_of_papermill=half, ratio=(took - start)/half, done=summary['done'])
        summary, took, _ = swept(grid, local_workers(2))
        said('nothing changed', seconds=took, kept=summary['kept'])

def waiting(n, asked):
    times = {}
    for workers in (1, 2):
        with folder() as where, StubServer(lambda request: 'Yes.', delay=.05) as server:
            notebook(where/'own.ipynb', f'x:int = 0\nurl:str = {server.base_url!r}', f'from factlib.llm.chat import Chat\nchat = Chat("m", url, mode="off")\nfor i in range({asked}): await chat(f"{{x}} {{i}}")')
            summary, took, start = swept(dict(experiment='own.ipynb', grid=dict(x=list(range(n)))), local_workers(workers) if workers > 1 else here)
            times[workers] = took - start
    said(f'{n} cells, {asked} answers of 50 ms', one=times[1], two=times[2], ratio=times[1]/times[2])

def gateway(n):
    with StubServer(lambda request: 'Yes.') as server, Gateway([server.base_url], concurrency=16) as gate:
        os.environ.update(FACTLIB_GATE=gate.url, OPENAI_API_KEY=gate.open())
        chat = Chat('m', server.base_url, mode='off', transport='lean')
        del os.environ['FACTLIB_GATE'], os.environ['OPENAI_API_KEY']
        straight = Chat('m', server.base_url, mode='off', transport='lean')
        async def all(c, name): await asyncio.gather(*[c(f'{name} {i}') for i in range(n)])
        cpu = {}
        for name, c in (('warm', straight), ('straight', straight), ('through', chat)):
            begun = time.process_time()
            run_sync(all(c, name))
            cpu[name] = 1000*(time.process_time() - begun)/n
    said(f'{n} requests handed on', ms_of_processor_each=cpu['through'] - cpu['straight'])

def merge(n, workers=8):
    with folder() as where:
        answer = dict(text='A sentence or two of an answer, as a judge gives it, with a verdict at the end: 3. ' * 2, finish_reason='stop', model='m', seconds=1.25, usage=dict(prompt_tokens=1500, completion_tokens=40))
        begun = time.monotonic()
        for w in range(workers):
            with Cache(where/f'{w}.sqlite') as cache:
                for lot in range(0, n//workers, 1000):
                    requests = [dict(endpoint='http://h/v1', model='m', messages=[dict(role='user', content=f'worker {w}, question {lot + i}')], repeat=0) for i in range(1000)]
                    cache.put_all([(request_key(r), r, answer) for r in requests])
        said(f'{n:,} answers put into {workers} caches', seconds=time.monotonic() - begun)
        with Cache(where/'all.sqlite') as whole:
            begun = time.monotonic()
            for w in range(workers): whole.merge(where/f'{w}.sqlite')
            took, size = time.monotonic() - begun, len(whole)
        said('merged', seconds=took, a_second=size/took, rows=size, MB=(where/'all.sqlite').stat().st_size/1e6, memory_MB=most_memory())

def table(n):
    with folder() as where:
        notebook(where/'own.ipynb', 'x:int = 0', 'x')
        (where/'grid.json').write_text(json.dumps(dict(experiment='own.ipynb', grid=dict(x=list(range(n))))))
        grid = load_grid('grid.json')
        modules = {'factlib.core.records': [sys.modules['factlib.core.records'].__file__, __import__('hashlib').sha256(Path(sys.modules['factlib.core.records'].__file__).read_bytes()).hexdigest()]}
        for cell in grid.cells:
            (where/'out'/cell.name).mkdir(parents=True)
            (where/'out'/cell.name/'notebook.ipynb').write_text(cell.name)
            record = provenance(grid.notebook, cell.parameters)
            record.status, record.modules, record.result, record.seconds = 'done', modules, digests_of(where/'out'/cell.name), 2.5
            keep_record(where/'out', cell.name, record)
        (where/'out'/HIDDEN/'sweep.json').write_text(json.dumps(dict(experiment='own', cells=[c.name for c in grid.cells])))
        begun = time.monotonic()
        summary = run_sweep(load_grid('grid.json'), 'out')
        took = time.monotonic() - begun
        with open('out/cells.csv', newline='') as f: rows = sum(1 for _ in csv.DictReader(f))
        said(f'{n:,} cells kept', seconds=took, kept=summary['kept'], rows=rows, csv_MB=os.path.getsize('out/cells.csv')/1e6, page_MB=os.path.getsize('out/index.html')/1e6, memory_MB=most_memory())

def examples(n):
    from factlib.core.records import Example
    from factlib.evaluators.base import EVALUATORS, evaluate
    judge, before = EVALUATORS['length'](), most_memory()
    many = [Example(id=str(i), target=f'The sentence number {i} is here.', source='A source.', group=str(i//10)) for i in range(n)]
    begun = time.monotonic()
    frame = evaluate(judge, many, progress=False)
    said(f'{n:,} examples in one evaluate', minutes=(time.monotonic() - begun)/60, scored=int(frame.value.notna().sum()), memory_MB=most_memory(), before_MB=before)

if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true', help='a tenth or less of each')
    parser.add_argument('--only', default='', help='cells, waiting, gateway, merge, table or evaluate')
    options = parser.parse_args()
    small = options.quick
    parts = dict(gateway=lambda: gateway(200 if small else 2000), merge=lambda: merge(16_000 if small else 1_000_000), table=lambda: table(200 if small else 10_000),
                 evaluate=lambda: examples(5_000 if small else 200_000), waiting=lambda: waiting(4, 40) if small else waiting(6, 200), cells=lambda: cells(4 if small else 40))
    for name, part in parts.items():
        if options.only in ('', name): part()
