"""A folder takes another's place whole or not at all: a real child process is killed, or finds the disk full, at each
of its renames."""
import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import pytest

from factlib.core import folders
from factlib.core.files import write_atomic
from factlib.core.folders import Part, check_place, drop_failed, failed_folder, private_folder, recover, tidy
from factlib.core.folders import whole_folder
from factlib.core.records import BadInput

fork = pytest.mark.skipif(not hasattr(os, 'fork'),
                          reason='the child is a fork of this process, which has imported everything')
LEFT_ALONE = {'answers.sqlite', 'answers.sqlite-wal', 'answers.sqlite-shm', 'notes/mine.txt'}

def contents(folder):
    "Path -> bytes of what belongs to the result."
    return {p: (folder/p).read_bytes() for p in (f.relative_to(folder).as_posix()
                                                 for f in folder.rglob('*') if f.is_file()) if p not in LEFT_ALONE}

def arm(at, how, portable):
    "From here on the rename number `at` of this process doesn't happen: it is killed, or told that the disk is full."
    count = [0]
    def trap(real):
        def renamed(*arguments, **options):
            count[0] += 1
            if count[0] == at and how == 'kill': os.kill(os.getpid(), signal.SIGKILL)
            # it stays full
            if count[0] >= at and how == 'full':
                raise OSError(errno.ENOSPC, 'No space left on device', str(arguments[0]))
            return real(*arguments, **options)
        return renamed
    os.rename, os.replace = trap(os.rename), trap(os.replace)
    swap = folders._swap
    def full_swap(a, b):
        try: return trapped(a, b)
        except OSError: return False
    trapped = trap(swap)
    folders._swap = (lambda a, b: False) if portable else full_swap

def child(work, at, how, portable=False):
    "How a child ended that does the work: 'killed', 'sentence' or 'done'."
    pid = os.fork()
    if not pid:
        code = 9
        try:
            arm(at, how, portable)
            null = os.open(os.devnull, os.O_WRONLY)
            for stream in (1, 2): os.dup2(null, stream)
            work()
            code = 0
        except (BadInput, RuntimeError) as e: code = 3 if str(e).endswith('.') and '\n' not in str(e) else 8
        except OSError: code = 4
        finally: os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {-signal.SIGKILL: 'killed', 3: 'sentence', 4: 'raw', 0: 'done'}.get(code, f'code {code}')

def drill(tmp_path, folder_of, old, new, how, portable=False, check=lambda folder: None, most=80, raw=()):
    "Which result is there after each point of `new`; `old` and `new` write one into the folder they are given."
    def fresh(n):
        folder = folder_of(tmp_path/f'{how}-{portable}-{n}')
        folder.parent.mkdir(parents=True, exist_ok=True)
        old(folder)
        write_atomic(folder/'answers.sqlite', b'paid')
        write_atomic(folder/'notes/mine.txt', 'mine')
        return folder
    reference = fresh('reference')
    before = contents(reference)
    new(reference)
    after, seen = contents(reference), []
    assert before.keys() != after.keys()
    def state(folder):
        found = contents(folder)
        same = lambda whole: found.keys() == whole.keys() and all(
            found[p] == whole[p] for p in whole if not p.endswith(('.parquet', 'result.json', '.ipynb', '.html')))
        assert same(before) or same(after), f'a mixture: {sorted(found)}'
        return 'old' if same(before) else 'new'
    for at in range(1, most):
        folder = fresh(at)
        ended = child(lambda: new(folder), at, how, portable)
        assert ended in ('killed', 'done') if how == 'kill' else ended in ('sentence', 'done', *raw), (at, ended)
        if portable and not folder.exists(): pass # for a moment, where two folders can't be exchanged in one step
        else: state(folder)
        check(folder.parent)
        tidy(folder) # the next start
        seen.append(state(folder))
        assert (folder/'answers.sqlite').read_bytes() == b'paid' and (folder/'notes/mine.txt').read_text() == 'mine'
        names = set(os.listdir(folder.parent)) - {folder.name, 'index.html'}
        assert names <= {f'{folder.name}.failed',
                         f'{folder.name}.failed.ipynb'} or all(n.startswith('.index')
                                                               for n in names - {f'{folder.name}.failed',
                                                                                 f'{folder.name}.failed.ipynb'}), names
        if ended == 'done' and seen[-1] == 'new' and at > 3: break
    else: raise AssertionError('it never ended')
    assert 'old' in seen and 'new' in seen
    return seen

# ---- what writes folders

def experiment(name, folder):
    from factlib.report.results import Experiment
    import pandas as pd
    run = Experiment('demo', name, 'Which one?', dict(out=str(folder)))
    run.table(pd.DataFrame(dict(x=[name])), name, name, cell='')
    run.table(pd.DataFrame(dict(x=[name])), 'both', name, cell='')
    run.file(f'memories/{name}.json', name)
    run.finish()

def built(name, folder):
    from factlib.benchmarks.base import Benchmark
    from factlib.benchmarks.coflueval import Built, save
    from factlib.core.records import Example
    save(Built(Benchmark(name, [Example(name, target=name, group=name, meta=dict(tokens=1))], 'none', ''),
               {}, dict(name=name)), folder, 'jsonl' if name == 'one' else 'parquet')

def imported(name, folder):
    from factlib.papers.judgememo.importer import _staged
    with _staged(folder) as made:
        for file in ('vanilla.parquet', 'CARD.md', f'{name}.csv') if name == 'two' else ('vanilla.parquet', 'CARD.md'):
            write_atomic(made/file, name)

@fork
@pytest.mark.parametrize('portable', [False, True])
@pytest.mark.parametrize('how', ['kill', 'full'])
@pytest.mark.parametrize('write', [experiment, built, imported])
def test_the_old_result_or_the_new_one(write, how, portable, tmp_path):
    from factlib.report.page import build_page
    def check(outputs): # the page shows what is whole
        if write is experiment:
            page = build_page(outputs).read_text(encoding='utf-8')
            assert ('<h2>one</h2>' in page) != ('<h2>two</h2>' in page) and 'Not shown' not in page
    # `save` is no command: an OSError is one
    seen = drill(tmp_path, lambda home: home/'result', lambda f: write('one', f),
                 lambda f: write('two', f), how, portable, check, raw=('raw',) if write is built else ())
    assert len(seen) >= 6

NOTEBOOK = '''from factlib.report.results import Experiment
import pandas as pd
run = Experiment('demo', name, 'Which one?', dict(out=out))
run.table(pd.DataFrame(dict(x=[name])), name, name, cell='')
result = run.finish()'''

def notebook(path):
    import nbformat
    cell = nbformat.v4.new_code_cell
    nb = nbformat.v4.new_notebook(cells=[cell("out: str = ''\nname: str = 'one'", metadata=dict(tags=['parameters'])),
                                         cell(NOTEBOOK)],
                                  metadata=dict(kernelspec=dict(name='python3',
                                                                display_name='Python', language='python')))
    nbformat.write(nb, path)
    return path

def executed(path, name, out):
    from command import shell_engine
    from papermill.engines import papermill_engines
    from factlib.runs.execute import execute
    papermill_engines._engines[None] = shell_engine()
    execute(path, dict(name=name), out, progress=False)

@fork
@pytest.mark.slow
@pytest.mark.parametrize('how', ['kill', 'full'])
def test_run(how, tmp_path, monkeypatch):
    "By `factlib run`: the notebook and its page belong to the result."
    from papermill.engines import papermill_engines
    monkeypatch.setitem(papermill_engines._engines, None, papermill_engines._engines[None])
    path = notebook(tmp_path/'mine.ipynb')
    seen = drill(tmp_path, lambda home: home/'o'/'result', lambda f: executed(path, 'one', f),
                 lambda f: executed(path, 'two', f), how)
    assert len(seen) >= 9

@fork
@pytest.mark.slow
def test_reproduce(tmp_path, monkeypatch):
    "All experiments and the page, killed on the way: each result is whole, and the page that is there was whole too."
    from papermill.engines import papermill_engines
    from factlib.report.page import build_page
    from factlib.runs.execute import run_all
    monkeypatch.setitem(papermill_engines._engines, None, papermill_engines._engines[None])
    from command import shell_engine
    path = notebook(tmp_path/'mine.ipynb')
    def reproduce(folder):
        papermill_engines._engines[None] = shell_engine()
        failed, _ = run_all(folder.parent, dict(other=path, result=path), say=lambda line: None)
        if failed: raise RuntimeError('; '.join(failed.values()))
        build_page(folder.parent)
    def old(folder): experiment('two', folder)
    def check(outputs):
        page = outputs/'index.html'
        assert not page.exists() or page.read_text(encoding='utf-8').endswith('</html>')
    pids = []
    for at in (2, 9, 14, 17, 19, 21, 22, 30):
        home = tmp_path/f'{at}'
        old(home/'result')
        pids.append(child(lambda: reproduce(home/'result'), at, 'kill'))
        check(home)
        page = build_page(home).read_text(encoding='utf-8') # the next start
        assert 'Not shown' not in page and ('<h2>two</h2>' in page or page.count('<h2>one (') == 2), page
        for result in home.glob('*/result.json'):
            assert set(json.loads(result.read_text())['sha256']) <= {p.relative_to(result.parent).as_posix()
                                                                     for p in result.parent.rglob('*')}
    assert 'killed' in pids

# ---- failed, killed, parallel

def test_a_failed_run_is_kept_under_a_name_that_says_so(tmp_path):
    for name in ('one', 'two'):
        part = Part(tmp_path/'r')
        write_atomic(part.begin()/f'{name}.csv', name)
        assert part.give_up() == tmp_path/'r.failed' and [p.name for p in tmp_path.iterdir()] == ['r.failed']
    assert sorted(p.name for p in (tmp_path/'r.failed').iterdir()) == ['two.csv', 'unfinished.json']
    drop_failed(tmp_path/'r')
    assert not list(tmp_path.iterdir())

def test_somebody_elses_folder_of_that_name_stays(tmp_path):
    write_atomic(tmp_path/'r.failed'/'mine.txt', 'mine')
    part = Part(tmp_path/'r')
    write_atomic(part.begin()/'a.csv', 'x')
    kept = part.give_up()
    drop_failed(tmp_path/'r')
    assert kept.name.startswith('r.failed-') and (kept/'a.csv').is_file()
    assert (tmp_path/'r.failed'/'mine.txt').read_text() == 'mine'

SLEEPER = '''import sys, time
from pathlib import Path
from factlib.core.folders import Part
part = Part(Path(sys.argv[1]))
(part.begin()/'a.csv').write_text('paid')
print('ready', flush=True)
sys.stdin.readline()
if sys.argv[2] == 'raise': raise KeyboardInterrupt
part.take_place()
'''

def sleeper(folder, then):
    process = subprocess.Popen([sys.executable, '-c', SLEEPER, str(folder), then],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout.readline() == 'ready\n'
    return process

def test_an_interrupted_process_names_what_it_made_by_itself(tmp_path):
    process = sleeper(tmp_path/'r', 'raise')
    process.communicate('\n', timeout=60)
    assert process.returncode and [p.name for p in tmp_path.iterdir()] == ['r.failed']
    assert (tmp_path/'r.failed'/'a.csv').read_text() == 'paid'

def test_a_running_one_is_left_alone_a_killed_one_is_named(tmp_path):
    one = sleeper(tmp_path/'r', 'end')
    tidy(tmp_path/'r')
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith('.part')]
    with whole_folder(tmp_path/'r') as part: write_atomic(part/'b.csv', 'b') # another run ends meanwhile
    one.communicate('\n', timeout=60)
    assert one.returncode == 0 and (tmp_path/'r'/'a.csv').read_text() == 'paid' # and the last one stands
    two = sleeper(tmp_path/'r', 'end')
    two.kill()
    two.wait()
    tidy(tmp_path/'r')
    assert sorted(p.name for p in tmp_path.iterdir()) == ['r', 'r.failed']

@fork
def test_many_at_once(tmp_path):
    """Eight processes exchange the same folder again and again, and one more writes to a database in it all the time:
    no mixture, and no row is lost."""
    folder, ends = tmp_path/'r', []
    with whole_folder(folder) as part: write_atomic(part/'a.csv', 'x'), write_atomic(part/'b.csv', 'x')
    from factlib.llm.cache import Cache, request_key
    def ask(i): return dict(model='m', messages=[dict(role='user', content=str(i))])
    for who in range(5):
        pid = os.fork()
        if pid:
            ends.append(pid)
            continue
        code = 1
        try:
            if who == 4:
                cache = Cache(folder/'answers.sqlite')
                for i in range(150): cache.put(request_key(ask(i)), ask(i), dict(text=str(i))), time.sleep(.002)
                cache.close()
            for i in range(25 if who < 4 else 0):
                with whole_folder(folder, ('a.csv', 'b.csv')) as part:
                    for name in 'ab': write_atomic(part/f'{name}.csv', f'{who} {i}')
            code = 0
        except Exception: traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in ends] == [0]*5
    recover(folder)
    assert (folder/'a.csv').read_text() == (folder/'b.csv').read_text()
    assert [p.name for p in tmp_path.iterdir()] == ['r']
    with Cache(folder/'answers.sqlite') as cache: assert len(cache) == 150
    assert {p.name for p in folder.iterdir()} <= {'a.csv', 'b.csv', 'answers.sqlite',
                                                  'answers.sqlite-wal', 'answers.sqlite-shm'}

@fork
@pytest.mark.parametrize('name', ['answers.sqlite', 'answers', 'sub/answers.db'])
def test_a_cache_that_is_closed_and_opened_meanwhile(tmp_path, name):
    "Who closes a database last writes its journal into it and removes that: an older one must not come back beside it."
    from factlib.llm.cache import Cache, request_key
    folder, ends = tmp_path/'r', []
    with whole_folder(folder) as part: write_atomic(part/'a.csv', 'x')
    def ask(i): return dict(model='m', messages=[dict(role='user', content=str(i))])
    for who in range(4):
        pid = os.fork()
        if pid:
            ends.append(pid)
            continue
        code = 1
        try:
            for i in range(60):
                if who:
                    with whole_folder(folder, ('a.csv',)) as part: write_atomic(part/'a.csv', f'{who} {i}')
                else:
                    with Cache(folder/name) as cache: cache.put(request_key(ask(i)), ask(i), dict(text=str(i)))
            code = 0
        except Exception: traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in ends] == [0]*4
    with Cache(folder/name) as cache: assert len(cache) == 60
    assert {p.name for p in folder.iterdir()} == {'a.csv', name.split('/')[0]}

@fork
def test_an_exchange_that_was_killed_leaves_no_old_journal(tmp_path):
    "It had given the database's files second names. When another process goes on with it, these are out of date."
    from factlib.llm.cache import Cache, request_key
    folder = tmp_path/'r'
    with whole_folder(folder) as part: write_atomic(part/'a.csv', 'x')
    def ask(i): return dict(model='m', messages=[dict(role='user', content=str(i)*50)])
    def child(work):
        pid = os.fork()
        if pid: return os.waitpid(pid, 0)
        try: work()
        finally: os._exit(0)
    def put(cache, numbers):
        for i in numbers: cache.put(request_key(ask(i)), ask(i), dict(text=str(i)))
    def killed():
        folders._swap = lambda a, b: os.kill(os.getpid(), signal.SIGKILL)
        with whole_folder(folder, ('a.csv',)) as part: write_atomic(part/'a.csv', 'y')
    def writes():
        cache = Cache(folder/'answers.sqlite')
        put(cache, range(20, 60))
        child(lambda: recover(folder))
        put(cache, range(60, 100))
        os.kill(os.getpid(), signal.SIGKILL)
    with Cache(folder/'answers.sqlite') as first:
        put(first, range(20))
        child(killed)
    child(writes)
    with Cache(folder/'answers.sqlite') as cache: assert len(list(cache)) == 100 and not cache.corrupt
    assert (folder/'a.csv').read_text() == 'y'

def broken_off(folder, at):
    """An exchange that dies: before the folders are swapped, after it, between the two renames where they can't be, or
    when a database was moved and its journal not yet."""
    real = folders._swap
    def killed(): os.kill(os.getpid(), signal.SIGKILL)
    def swapped(a, b): return killed() if at == 'before' else (real(a, b), killed()) if at == 'after' else False
    folders._swap = swapped
    def and_then(moved, end):
        def once(a, b):
            moved(a, b)
            if str(b).endswith(end): killed()
        return once
    if at == 'between': os.rename = and_then(os.rename, '.old')
    if at == 'carrying': os.replace = and_then(os.replace, '.sqlite')
    with whole_folder(folder, ('a.csv',)) as part: write_atomic(part/'a.csv', 'y')

@fork
@pytest.mark.parametrize('at, links', [('before', True), ('after', True), ('between', True),
                                       ('before', False), ('after', False), ('between', False), ('carrying', False)])
@pytest.mark.parametrize('writer', ['ended', 'goes on', 'was killed'])
def test_a_cache_in_a_folder_whose_exchange_was_killed(writer, at, links, tmp_path, monkeypatch):
    """Who opens it next ends the exchange, or else a new and empty one would be made; also where a file can't have a
    second name."""
    from factlib.llm.cache import Cache, request_key
    if not links: monkeypatch.delattr(os, 'link')
    folder = tmp_path/'r'
    with whole_folder(folder) as part: write_atomic(part/'a.csv', 'x')
    def ask(i): return dict(model='m', messages=[dict(role='user', content=str(i)*50)])
    def put(cache, numbers):
        for i in numbers: cache.put(request_key(ask(i)), ask(i), dict(text=str(i)))
    def killed(work):
        pid = os.fork()
        if not pid:
            try: work()
            finally: os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    def exchange(): killed(lambda: broken_off(folder, at))
    def write_and_die():
        put(Cache(folder/'answers.sqlite'), range(20, 40))
        exchange()
        os.kill(os.getpid(), signal.SIGKILL)
    with Cache(folder/'answers.sqlite') as cache: put(cache, range(20))
    waiting = Cache(folder/'answers.sqlite') if writer == 'goes on' else None
    killed(write_and_die) if writer == 'was killed' else exchange()
    if waiting is not None: put(waiting, range(20, 40))
    with Cache(folder/'answers.sqlite') as cache:
        put(cache, range(40, 60))
        if waiting is not None: waiting.close()
    with Cache(folder/'answers.sqlite') as cache: there = {row[2]['text'] for row in cache}
    assert there == {str(i) for i in range(60) if writer != 'ended' or not 20 <= i < 40}
    assert [p.name for p in tmp_path.iterdir()] == ['r'] and (folder/'a.csv').read_text() == 'y'
    assert {p.name for p in folder.iterdir()} == {'a.csv', 'answers.sqlite'}

def test_a_file_that_is_only_called_like_a_journal_goes_along(tmp_path):
    folder = tmp_path/'r'
    with whole_folder(folder) as part: write_atomic(part/'report', 'x')
    for name in ('report-journal', 'diary-wal'): (folder/name).write_text('Monday')
    with whole_folder(folder, ('report',)) as part: write_atomic(part/'report', 'y')
    assert {p.name: p.read_text() for p in folder.iterdir()} == {'report': 'y',
                                                                 'report-journal': 'Monday', 'diary-wal': 'Monday'}

def test_a_journal_goes_only_where_its_database_goes(tmp_path):
    "An old journal beside a database that is newer would undo what the database holds."
    old, new = tmp_path/'old', tmp_path/'new'
    for folder in (old, new): folder.mkdir()
    (old/'same.sqlite').write_text('s'), os.link(old/'same.sqlite',
                                                 new/'same.sqlite'), (old/'same.sqlite-wal').write_text('out of date')
    (old/'moved.sqlite').write_text('m'), (old/'moved.sqlite-wal').write_text('its own')
    (old/'left.sqlite-journal').write_text('of a database that is left'), (new/'left.sqlite').write_text('the new one')
    (old/'broken.sqlite-wal').write_text('of one that was moved before'), (
        new/'broken.sqlite').write_text('moved before')
    folders._carry(old, new, ['left.sqlite'], 'token')
    assert sorted(p.name for p in new.iterdir()) == ['broken.sqlite', 'broken.sqlite-wal',
                                                     'left.sqlite', 'moved.sqlite', 'moved.sqlite-wal', 'same.sqlite']

def test_a_file_that_its_owner_removes_meanwhile_stops_no_exchange(tmp_path, monkeypatch):
    """As a database's journal does when it is closed: it was listed, and is gone from the old folder, or from the new
    one."""
    old, new = tmp_path/'old', tmp_path/'new'
    for folder in (old, new): folder.mkdir()
    (old/'a.csv').write_text('a'), (old/'b.wal').write_text('b'), (new/'b.wal').write_text('new')
    listed = folders._carried
    def vanish(*given):
        names = list(listed(*given)) + ['gone.wal']
        (new/'b.wal').unlink()
        return names
    monkeypatch.setattr(folders, '_carried', vanish)
    folders._carry(old, new, (), 'token')
    assert {p.name: p.read_text() for p in new.iterdir()} == {'a.csv': 'a', 'b.wal': 'b'} and not list(old.iterdir())

# ---- places

def test_places_that_cannot_be_exchanged_are_sentences(tmp_path, monkeypatch):
    (tmp_path/'file').touch()
    (tmp_path/'in').mkdir()
    monkeypatch.chdir(tmp_path/'in')
    for place in ('.', '..', tmp_path, tmp_path/'in', tmp_path/'file', tmp_path/'file'/'x', '/'):
        with pytest.raises(BadInput) as e: check_place(place)
        assert str(e.value).endswith('.')
    assert check_place('x') == Path('x')

@pytest.mark.skipif(os.name != 'posix', reason='links and rights of POSIX')
def test_links_and_rights_stay(tmp_path):
    "A folder that is a link to another disk stays one, and who may read it stays the same."
    (tmp_path/'disk'/'r').mkdir(parents=True, mode=0o750)
    (tmp_path/'disk'/'r').chmod(0o750)
    (tmp_path/'r').symlink_to(tmp_path/'disk'/'r')
    (tmp_path/'disk'/'r'/'own').symlink_to('/nowhere')
    with whole_folder(tmp_path/'r') as part: write_atomic(part/'a.csv', 'x')
    assert (tmp_path/'r').is_symlink() and (tmp_path/'r'/'a.csv').read_text() == 'x'
    assert (tmp_path/'r'/'own').is_symlink()
    assert (tmp_path/'disk'/'r').stat().st_mode & 0o777 == 0o750
    assert [p.name for p in (tmp_path/'disk').iterdir()] == ['r']

# ---- experiments as people run them

def demo(out, name='demo'):
    from factlib.report.results import Experiment
    return Experiment(name, name, 'Does it end?', dict(out=str(out)))

@fork
def test_a_disk_that_is_really_full(tmp_path):
    "No file may be larger than 4 kB: a sentence, the old result, and what had been made."
    resource = pytest.importorskip('resource')
    experiment('one', tmp_path/'r')
    before = contents(tmp_path/'r')
    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        run = demo(tmp_path/'r')
        try:
            run.file('small', 'x')
            run.file('large', 'x'*10**5)
        finally: run.results.part.give_up()
    assert child(full, 0, 'none') == 'sentence'
    assert contents(tmp_path/'r') == before and sorted(contents(tmp_path/'r.failed')) == ['small', 'unfinished.json']

def test_cells_are_run_again_and_in_any_order(tmp_path):
    "As in JupyterLab: from the first cell again before the last, the last one twice, and one in the middle after it."
    run = demo(tmp_path/'r')
    run.file('first', '1')
    run = demo(tmp_path/'r') # what this variable held is given up
    assert (tmp_path/'r.failed'/'first').read_text() == '1' and not (tmp_path/'r').exists()
    run.file('second', '2')
    assert run.finish() == run.finish() and sorted(contents(tmp_path/'r')) == ['index.html', 'result.json', 'second']
    assert [p.name for p in tmp_path.iterdir()] == ['r']
    for again in ('second', 'third'):
        with pytest.raises(BadInput): run.file(again, '')
    for n in range(3): # and all of it again
        run = demo(tmp_path/'r')
        run.file(f'again-{n}', '')
        run.finish()
    assert sorted(contents(tmp_path/'r')) == ['again-2', 'index.html', 'result.json']
    assert [p.name for p in tmp_path.iterdir()] == ['r']

def test_two_runs_of_one_experiment_at_once(tmp_path):
    one, two = demo(tmp_path/'r', 'one'), demo(tmp_path/'r', 'two')
    for run in (one, two, one, two): run.file(f'{run.name}-{len(run.files)}', run.name)
    for run in (one, two):
        run.finish()
        assert set(contents(tmp_path/'r')) == {f'{run.name}-0', f'{run.name}-1', 'index.html', 'result.json'}
        assert json.loads((tmp_path/'r'/'result.json').read_text())['name'] == run.name

@pytest.mark.slow
def test_a_notebook_that_fails_keeps_its_tables(tmp_path):
    """With a kernel of its own: the old result stays, the tables are in NAME.failed, and the sentence says so; the next
    success removes them."""
    from command import factlib
    path = notebook(tmp_path/'mine.ipynb')
    assert factlib('run', path, '--out', tmp_path/'o'/'r', '--no-page', cwd=tmp_path).returncode == 0
    before = contents(tmp_path/'o'/'r')
    assert {'notebook.ipynb', 'notebook.html'} <= set(json.loads(before['result.json'])['sha256'])
    text = path.read_text()
    for broken in (text.replace('result = run.finish()', '1/0'), text.replace('result = run.finish()', 'pass')):
        (tmp_path/'broken.ipynb').write_text(broken)
        done = factlib('run', tmp_path/'broken.ipynb', '--out', tmp_path/'o'/'r', '--no-page', cwd=tmp_path)
        assert done.returncode == 1 and 'Traceback' not in done.stderr and f'What it had made is in {tmp_path}/o/r.failed.' in done.stderr.replace('/private', ''), done.stderr
        assert contents(tmp_path/'o'/'r') == before
        assert {'tables/one.csv', 'tables/one.html'} <= set(contents(tmp_path/'o'/'r.failed'))
    assert factlib('run', path, '--out', tmp_path/'o'/'r', '--no-page', cwd=tmp_path).returncode == 0
    assert [p.name for p in (tmp_path/'o').iterdir()] == ['r']

def test_new_results_are_their_owners_alone(tmp_path):
    """Before, they were as open as the umask said. What is there keeps its mode, also when new results take its place;
    data are as open as other files."""
    modes, before = [], os.umask(0o022)
    try:
        for opened in (None, 0o750):
            if opened: (tmp_path/'r').chmod(opened)
            part = Part(tmp_path/'r')
            write_atomic(part.begin()/'a.csv', 'x')
            modes.append(part.path.stat().st_mode & 0o777)
            part.take_place()
            modes.append((tmp_path/'r').stat().st_mode & 0o777)
        with whole_folder(tmp_path/'data') as data: write_atomic(data/'a.csv', 'x')
        private_folder(tmp_path/'new'/'inside')
    finally: os.umask(before)
    assert modes == [0o700, 0o700, 0o700, 0o750] and (tmp_path/'data').stat().st_mode & 0o777 == 0o755
    assert {(tmp_path/name).stat().st_mode & 0o777 for name in ('new', 'new/inside')} == {0o700}
