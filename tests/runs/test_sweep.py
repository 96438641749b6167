"Sweeps in one process: real kernels, a real server, and what goes wrong."
import io
import json
import os
import re
import time
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import pytest

from factlib.core.records import BadInput
from factlib.llm.cache import Cache
from factlib.llm.stub import StubServer
from factlib.runs.provenance import Provenance, why_stale
from factlib.runs.execute import CellOutcome
from factlib.runs.grid import load_grid
from factlib.runs.sweep import Executor, keep_record, plan, read_record, run_sweep
from command import factlib_inside
from sweeps import asking, ended, grid, interrupt, notebook, rows, started, statuses, sweep

def swept(path, out):
    with redirect_stderr(io.StringIO()): return run_sweep(load_grid(path), out)

@pytest.fixture
def mine(tmp_path, monkeypatch):
    "A folder with a notebook that loads a module of the user's and a file of data; it is the working folder."
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv('FACTLIB_CACHE', raising=False)
    (tmp_path/'my_module.py').write_text('def twice(x): return 2*x')
    (tmp_path/'data.csv').write_text('1')
    return notebook(tmp_path/'own.ipynb', 'x:int = 1\ndata:str = ""',
                    'import sys; sys.path.insert(0, ".")\nfrom my_module import twice\nfrom factlib.core.files import '
                    'digest',
                    'text = open(data).read() if data else ""',
                    'if x == 9: raise ValueError("nine")\nif x == 8: import os; os._exit(3)\nprint(twice(x), text)')

def check_refused(tmp_path, file, out):
    "Another sweep can't use the folder, nor a folder of something else; nothing in them changes."
    notebook(tmp_path/'other.ipynb', 'data:str = ""', '1')
    (tmp_path/'full').mkdir()
    (tmp_path/'full'/'mine.txt').touch()
    other = grid(tmp_path, dict(experiment='other.ipynb', grid=dict(data=['', 'data.csv'])), 'other.yaml')
    before = {p: p.read_bytes() for p in out.rglob('*') if p.is_file()}
    with pytest.raises(BadInput, match='belongs to another sweep'): swept(other, out)
    with pytest.raises(BadInput, match='something else than a sweep'): swept(other, tmp_path/'full')
    assert before == {p: p.read_bytes() for p in out.rglob('*') if p.is_file()}
    assert len(list((tmp_path/'full').iterdir())) == 1

def test_only_what_changed_runs_again(mine, tmp_path):
    "New, kept, data changed, module changed, notebook changed, parameter changed, failed; each for the reason it has."
    out, file = tmp_path/'out', grid(tmp_path, dict(experiment='own.ipynb', grid=dict(data=['', 'data.csv'])))
    assert set(plan(load_grid(file), out).values()) == {'It has not run yet.'} and not out.exists()
    summary = swept(file, out)
    assert (summary['done'], summary['kept'], summary['failed']) == (2, 0, 0)
    plain, with_data = read_record(out, next(n for n in statuses(out) if 'data.csv' not in n)), 'data=data.csv'
    assert {'my_module', 'factlib.core.files', 'factlib.core.records'} <= set(plain.modules)
    assert 'json' not in plain.modules
    assert not set(plan(load_grid(file), out).values()) - {''}
    (tmp_path/'data.csv').write_text('2')
    assert plan(load_grid(file), out)[with_data] == 'data.csv has changed.'
    assert list(plan(load_grid(file), out).values()).count('') == 1
    assert (swept(file, out)['done'], swept(file, out)['kept']) == (1, 2)
    html = (out/'index.html').read_text()
    assert f'href="./{with_data.replace("=", "%3D")}/notebook.html"' in html
    record, as_it_was = read_record(out, with_data), read_record(out, with_data)
    record.modules['factlib.core.files'][1] = '0'*64 # as if it had been another then
    keep_record(out, with_data, record)
    grown = grid(tmp_path, dict(experiment='own.ipynb', grid=dict(data=['', 'data.csv', 'own.ipynb'])), 'grown.yaml')
    assert sorted(plan(load_grid(grown), out).values()) == ['', 'It has not run yet.',
                                                            'factlib.core.files has changed.']
    assert plan(load_grid(grown), out)[with_data] == 'factlib.core.files has changed.'
    assert list(plan(load_grid(file), out).values()).count('') == 1
    keep_record(out, with_data, as_it_was)
    check_refused(tmp_path, file, out)
    (tmp_path/'my_module.py').write_text('def twice(x): return x + x')
    assert set(plan(load_grid(file), out).values()) == {'my_module has changed.'}
    cells = json.loads(mine.read_text())
    cells['cells'][1]['outputs'] = [] # to have run it changes nothing
    mine.write_text(json.dumps(cells, indent=2))
    assert set(plan(load_grid(file), out).values()) == {'my_module has changed.'}
    cells['cells'][1]['source'] += '\n'
    mine.write_text(json.dumps(cells))
    assert set(plan(load_grid(file), out).values()) == {'The notebook has changed.'}

@pytest.mark.slow
def test_a_failed_cell_keeps_its_notebook_and_stops_nobody(mine, tmp_path):
    out, file = tmp_path/'out', grid(tmp_path, dict(experiment='own.ipynb', grid=dict(x=[9, 1])))
    code, said, _ = sweep(file, '--out', out, cwd=tmp_path)
    assert code == 1 and (said['done'], said['failed']) == (1, 1) and statuses(out) == {'x=9': 'failed', 'x=1': 'done'}
    assert 'ValueError: nine' in rows(out)['x=9']['why'] and 'Traceback' in (out/'x=9.failed.ipynb').read_text()
    assert 'href="./x%3D9.failed.ipynb"' in (out/'index.html').read_text()
    said = swept(file, out)
    assert (said['kept'], said['failed']) == (1, 1) # the same again runs what isn't kept

# Two evaluators that asked a model, of which one gave no score, for the reason that is given
SILENT = """from factlib.report.results import Experiment
run = Experiment('silent', '', '', dict(out=out, n=0, seed=0))
run.asked('one, m', 4, 0, 'one', dict(requests=4), why=why)
run.asked('other, m', 4, scored, 'other', dict(requests=4), why='refused in 4 of 4' if not scored else '')
run.finish()"""

def test_a_model_that_refused_one_evaluator_all_has_been_judged(tmp_path):
    "But not one that scored nothing at all, nor one that was out of reach."
    notebook(tmp_path/'silent.ipynb', "why:str = ''\nscored:int = 0\nout:str = 'out'", SILENT)
    made = [dict(why='refused in 4 of 4', scored=3), dict(why='refused in 4 of 4', scored=0),
            dict(why='transport in 4 of 4', scored=3)]
    done = factlib_inside('sweep', grid(tmp_path, dict(experiment='silent.ipynb', include=made)), '--out', 'out',
                          cwd=tmp_path)
    assert done.returncode == 1 and list(statuses(tmp_path/'out').values()) == ['done', 'failed', 'failed']
    assert all(row['why'].startswith('Nothing could be scored. one, m')
               for row in rows(tmp_path/'out').values() if row['status'] == 'failed')

@pytest.mark.slow
def test_a_kernel_that_dies_leaves_its_notebook(mine, tmp_path):
    file, out = grid(tmp_path, dict(experiment='own.ipynb', grid=dict(x=[8]))), tmp_path/'out'
    assert swept(file, out)['failed'] == 1 and 'its kernel died' in rows(out)['x=8']['why']
    assert 'os._exit(3)' in (out/'x=8.failed.ipynb').read_text()
    assert 'href="./x%3D8.failed.ipynb"' in (out/'index.html').read_text()

def test_a_table_that_is_gone_is_made_again(tmp_path):
    "What a result vouches for has to be there, and to be as it was."
    from factlib.runs.provenance import digests_of
    (tmp_path/'tables').mkdir()
    (tmp_path/'tables'/'a.csv').write_text('1')
    sha256 = '6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b' # of the text '1'
    (tmp_path/'result.json').write_text(json.dumps(dict(sha256={'tables/a.csv': sha256})))
    record = Provenance('done', modules=dict(a=['a.py', 'x']), result=digests_of(tmp_path))
    assert list(record.result) == ['result.json']
    (tmp_path/'tables'/'a.csv').unlink()
    assert why_stale(record, Provenance('done'), tmp_path) == 'Its results are not whole.'

def test_no_cell_of_the_file_in_the_help_fails(tmp_path, monkeypatch):
    from factlib.cli import _SWEEP, _SWEEP_MORE
    from factlib.runs.sweep_report import dry_run
    monkeypatch.delenv('FACTLIB_CACHE', raising=False)
    (tmp_path/'grid.yaml').write_text(_SWEEP.partition('\b\n')[2])
    with redirect_stderr(io.StringIO()): lines, totals = dry_run(load_grid(tmp_path/'grid.yaml'), tmp_path/'out')
    # but the last, of all together
    assert totals['run'] == 4 and not [line for line in lines if 'It asks for' not in line][1:], lines
    (tmp_path/'grid.yaml').write_text(re.search(r'  experiment: montagelie\n.*?(?=\n\n)', _SWEEP_MORE, re.DOTALL)[0])
    assert len(load_grid(tmp_path/'grid.yaml').cells) == 3*2*2

@pytest.mark.slow
def test_a_budget_stops_a_sweep_and_a_higher_one_goes_on(tmp_path, monkeypatch):
    "Three cells of 6 requests, 10 allowed: 10 are sent, code 3; then no limit: 18 in all, none twice."
    key = 'sk-the-real-key'
    with StubServer(lambda request: request['messages'][0]['content'], key=key) as server:
        asking(tmp_path, server.base_url)
        said = dict(experiment='asking.ipynb', parameters=dict(n=6, concurrency=4), grid=dict(name=['a', 'b', 'c']))
        out, sent = tmp_path/'out', lambda: [r['messages'][0]['content'] for r in server.requests]
        for limit, most, code in ((10, 10, 3), (None, 18, 0)):
            file = grid(tmp_path, said | (dict(limits=dict(requests=limit)) if limit else {}), f'{limit}.yaml')
            ended_with, told, err = sweep(file, '--out', out, cwd=tmp_path, OPENAI_API_KEY=key)
            assert ended_with == code, err
            assert len(sent()) == most == len(set(sent()))
            if limit:
                assert statuses(out) == {'name=a': 'done', 'name=b': 'stopped', 'name=c': 'stopped'}
                assert 'limit of 10 requests' in rows(out)['name=c']['why']
    assert rows(out)['name=b']['why'] == ''
    assert (out/'name=b'/'table.csv').read_text().splitlines() == [f'b {i}' for i in range(6)]
    # b: 4 of them in the sweep before
    assert not list(out.glob('*.failed*')) and [int(r['requests']) for r in rows(out).values()] == [6, 6, 6]
    assert told['spent']['requests'] == 8 and told['spent_in_all']['requests'] == told['spent_in_all']['answered'] == 18
    assert 'Asked: 8 requests, 8 answered' in told['said']
    assert sum(int(r['tokens']) for r in rows(out).values()) == told['spent_in_all'][
        'prompt_tokens'] + told['spent_in_all']['completion_tokens']
    with Cache(out/'answers.sqlite') as cache: assert len(cache) == 18
    everything = b''.join(p.read_bytes() for p in out.rglob('*') if p.is_file())
    assert key.encode() not in everything

@pytest.mark.parametrize('said, told', [(dict(experiment='own.ipynb', gird={}), "Did you mean 'grid'?"),
                                        (dict(experiment='own.ipynb', grid=dict(y=[1])),
                                         "has no parameter 'y'; it has x, data."),
                                        (dict(experiment='own.ipynb', parameters=dict(data='gone.csv')),
                                         "names 'gone.csv', and there is no such file")])
def test_bad_input_is_one_sentence_and_leaves_nothing(said, told, mine, tmp_path):
    before = sorted(p.name for p in tmp_path.iterdir())
    grid(tmp_path, said)
    ended = factlib_inside('sweep', 'grid.yaml', '--out', 'out', cwd=tmp_path)
    assert ended.returncode == 2 and told in ended.stderr and ended.stderr.count('\n') == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*before, 'grid.yaml'])

@pytest.mark.slow
def test_interrupted_it_goes_on_where_it_was(tmp_path, monkeypatch):
    """Ctrl-C in the second of two cells: code 130, the first is kept, nobody takes the second for finished; no two at
    once; then the rest."""
    notebook(tmp_path/'own.ipynb', 'x:int = 1',
             'import time\nfrom pathlib import Path\nPath(f"begun{x}").touch()\nif x == 1 and not Path("go").exists(): '
             'time.sleep(600)')
    file, out = grid(tmp_path, dict(experiment='own.ipynb', grid=dict(x=[0, 1]))), tmp_path/'out'
    process = started(file, '--out', out, cwd=tmp_path)
    while not (tmp_path/'begun1').exists() and process.poll() is None: time.sleep(.05)
    code, _, err = sweep(file, '--out', out, cwd=tmp_path)
    assert code == 2 and 'Another process is at work' in err
    interrupt(process)
    code, _, err = ended(process, 60)
    assert code == 130 and statuses(out) == {'x=0': 'done', 'x=1': 'stopped'}
    (tmp_path/'go').touch()
    monkeypatch.chdir(tmp_path)
    said = swept(file, out)
    assert (said['kept'], said['done']) == (1, 1)

@pytest.mark.slow
def test_a_full_disk_in_mid_cell(tmp_path, monkeypatch):
    "The kernel meets ENOSPC where its results are written: that cell failed in one sentence."
    notebook(tmp_path/'own.ipynb', 'x:int = 1\nout:str = "out"',
             'from factlib.report.results import Experiment\nimport errno, pandas as pd\n'
             'from factlib.core.files import OpenFolder\n'
             'def full(self, path, *_, **__): raise OSError(errno.ENOSPC, "No space left on device", str(path))\n'
             'if x == 1: OpenFolder.write = full',
             'run = Experiment("own", "t", "q", dict(out=out))\nrun.table(pd.DataFrame(dict(a=[x])), "a", "c", '
             '"i")\nrun.finish()')
    file, out = grid(tmp_path, dict(experiment=str(tmp_path/'own.ipynb'), grid=dict(x=[1]))), tmp_path/'out'
    summary = swept(file, out)
    assert summary['failed'] == 1 and 'No space left on device' in rows(out)['x=1']['why']
    assert 'make room' in rows(out)['x=1']['why']
    assert not (out/'x=1').exists()

def test_a_full_disk_for_the_sweep_itself(mine, tmp_path, monkeypatch):
    "What was done before is kept, and the error is the system's."
    import errno
    import factlib.runs.sweep as room
    file, out = grid(tmp_path, dict(experiment='own.ipynb', grid=dict(x=[1, 2]))), tmp_path/'out'
    real, calls = room.keep_record, []
    def full(out, name, record):
        calls.append(name)
        if len(calls) == 2: raise OSError(errno.ENOSPC, 'No space left on device')
        return real(out, name, record)
    monkeypatch.setattr(room, 'keep_record', full)
    @contextmanager
    def quick(cells): # workers that say they have failed: what counts here is what the sweep writes
        yield Executor(lambda jobs, stop: ((job, CellOutcome('It broke.')) for job in jobs))
    with pytest.raises(OSError, match='No space left'), redirect_stderr(io.StringIO()):
        run_sweep(load_grid(file), out, quick)
    monkeypatch.setattr(room, 'keep_record', real)
    assert list(plan(load_grid(file), out).values()) == ['It failed before.', 'It has not run yet.']
    assert statuses(out) == {'x=1': 'failed', 'x=2': 'stopped'}

def test_a_record_that_cant_be_read_is_none(tmp_path):
    keep_record(tmp_path, 'a', Provenance('done'))
    (tmp_path/'.sweep'/'cells'/'a.json').write_text('{"status": 1, "odd": 2}')
    assert read_record(tmp_path, 'a') is None

def test_what_a_dry_run_says_of_a_model(tmp_path):
    "The cost is that of `factlib cost`; nothing is written, nobody is asked."
    with StubServer(lambda request: '3') as server:
        file = grid(tmp_path, dict(experiment='live_judge', parameters=dict(model='m', base_url=server.base_url, n=2),
                                   grid=dict(seed=[0, 1])))
        ended = factlib_inside('sweep', file, '--out', tmp_path/'out', '--dry-run', '--json', cwd=tmp_path)
        said = json.loads(ended.stdout.splitlines()[-1])
        assert said['run'] == 2 and said['requests'] > 0 and not server.requests and not (
            tmp_path/'out').exists(), ended.stderr

def stuck(folder):
    """A notebook whose cell x=2 is never done, as long as the file `block` is there; and the grid of x = 1, 2, 3. It
    sleeps, so that other tests have the processor."""
    (folder/'block').touch()
    notebook(folder/'stuck.ipynb', 'x:int = 1',
             'import os, time\nwhile x == 2 and os.path.exists("block"): time.sleep(.05)', 'print(x)')
    return grid(folder, dict(experiment='stuck.ipynb', grid=dict(x=[1, 2, 3])))

@pytest.mark.slow
@pytest.mark.parametrize('workers', [1, 2])
def test_a_cell_that_takes_too_long_has_failed_and_the_sweep_goes_on(workers, tmp_path, monkeypatch):
    "Before, a cell that never ends held its sweep for ever."
    file, out = stuck(tmp_path), tmp_path/'out'
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv('FACTLIB_CACHE', raising=False)
    code, said, _ = sweep(file, '--out', out, '--cell-time', '0.5m', '--workers', workers, cwd=tmp_path)
    assert code == 1 and statuses(out) == {'x=1': 'done', 'x=2': 'failed', 'x=3': 'done'} and not said['limit']
    why = rows(out)['x=2']['why']
    assert why.startswith('It took longer than the 30 s that --cell-time allows. stuck was stopped.')
    assert 'x=2.failed.ipynb' in why
    assert (out/'x=2.failed.ipynb').is_file()
    (tmp_path/'block').unlink()
    assert swept(file, out)['done'] == 1 and statuses(out) == {'x=1': 'kept', 'x=2': 'done', 'x=3': 'kept'}

@pytest.mark.slow
def test_at_the_deadline_what_runs_is_stopped_and_nothing_begins(tmp_path, monkeypatch):
    "Before, there was none. The same command goes on."
    file, out = stuck(tmp_path), tmp_path/'out'
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv('FACTLIB_CACHE', raising=False)
    code, said, _ = sweep(file, '--out', out, '--deadline', '40', '--cell-time', '1h', cwd=tmp_path)
    assert code == 3 and said['limit'] == 'The deadline has passed.' and (said['done'], said['stopped']) == (1, 2)
    assert statuses(out) == {'x=1': 'done', 'x=2': 'stopped', 'x=3': 'stopped'}
    assert not (out/'x=2.failed.ipynb').exists()
    assert rows(out)['x=2']['why'] == 'The deadline has passed while it ran.'
    assert rows(out)['x=3']['why'] == 'The deadline has passed.'
    (tmp_path/'block').unlink()
    summary = swept(file, out)
    assert (summary['kept'], summary['done'], summary['stopped'], summary['limit']) == (1, 2, 0, '')

@pytest.mark.parametrize('given', ['0', '-1', 'soon', '1w', 'nan', ''])
def test_a_time_that_is_none_is_a_sentence(given, tmp_path):
    code, _, err = sweep('gone.yaml', '--out', tmp_path/'out', '--cell-time', given, cwd=tmp_path)
    assert code == 2 and 'is no time: give seconds, or a number with s, m, h or d, such as 90m.' in err
