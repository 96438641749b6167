"""No half of a result looks whole: a real child process is killed, or finds the disk full, at each of its renames. What
lies beside a folder, or is a link in it, is neither believed nor followed."""
import errno
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import pytest

from factlib.core.files import JOURNAL, OpenFolder, write_atomic
from factlib.core.folders import Part, at_work, check_place, drop_failed, failed_folder, private_folder, tidy
from factlib.core.folders import whole_folder
from factlib.core.ledger import Ledger
from factlib.core.records import BadInput

fork = pytest.mark.skipif(not hasattr(os, 'fork'),
                          reason='the child is a fork of this process, which has imported everything')
LEFT_ALONE = {'answers.sqlite', 'answers.sqlite-wal', 'answers.sqlite-shm', 'notes/mine.txt'}

def contents(folder):
    "Path -> bytes of what belongs to the result."
    return {p: (folder/p).read_bytes() for p in (f.relative_to(folder).as_posix()
                                                 for f in folder.rglob('*') if f.is_file()) if p not in LEFT_ALONE}

def arm(at, how):
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

def child(work, at, how):
    "How a child ended that does the work: 'killed', 'sentence' or 'done'."
    pid = os.fork()
    if not pid:
        code = 9
        try:
            arm(at, how)
            null = os.open(os.devnull, os.O_WRONLY)
            for stream in (1, 2): os.dup2(null, stream)
            work()
            code = 0
        except (BadInput, RuntimeError) as e: code = 3 if str(e).endswith('.') and '\n' not in str(e) else 8
        except OSError: code = 4
        finally: os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {-signal.SIGKILL: 'killed', 3: 'sentence', 4: 'raw', 0: 'done'}.get(code, f'code {code}')

def drill(tmp_path, folder_of, old, new, how, check=lambda folder: None, most=80, raw=()):
    """Which result is there after each point of `new`: the old one, the new one, or none that looks whole; the next run
    makes it the new one. `old` and `new` write one into the folder they are given."""
    def fresh(n):
        folder = folder_of(tmp_path/f'{how}-{n}')
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
        broken_off = found.pop(JOURNAL, None) is not None
        same = lambda whole: found.keys() == whole.keys() and all(
            found[p] == whole[p] for p in whole if not p.endswith(('.parquet', 'result.json', '.ipynb', '.html')))
        if broken_off and not found.keys() & {'result.json', 'manifest.json'}: return 'none'
        assert same(before) or same(after), f'a mixture: {sorted(found)}'
        return 'old' if same(before) else 'new'
    for at in range(1, most):
        folder = fresh(at)
        ended = child(lambda: new(folder), at, how)
        assert ended in ('killed', 'done') if how == 'kill' else ended in ('sentence', 'done', *raw), (at, ended)
        check(folder.parent)
        seen.append(state(folder))
        tidy(folder) # the next start
        assert (folder/'answers.sqlite').read_bytes() == b'paid' and (folder/'notes/mine.txt').read_text() == 'mine'
        names = {folder.name, 'index.html', f'{folder.name}.failed', f'{folder.name}.failed.ipynb'}
        for left in set(os.listdir(folder.parent)) - names: # killed before it was marked as ours
            inside = os.listdir(folder.parent/left) if left.endswith('.part') else []
            assert left.startswith('.') and all(name.startswith('.unfinished.json.') for name in inside), (left, inside)
        new(folder)
        assert state(folder) == 'new' and not (folder/JOURNAL).exists()
        assert (folder/'answers.sqlite').read_bytes() == b'paid' and (folder/'notes/mine.txt').read_text() == 'mine'
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
            made.write(file, name)

@fork
@pytest.mark.parametrize('how', ['kill', 'full'])
@pytest.mark.parametrize('write', [experiment, built, imported])
def test_the_old_result_or_the_new_one_or_none(write, how, tmp_path):
    from factlib.core.files import data_file
    from factlib.report.page import build_page
    def check(outputs): # the page shows what is whole, and tables that are no whole are not read
        half = (outputs/'result'/JOURNAL).exists()
        if write is experiment:
            if not (outputs/'result/result.json').exists():
                with pytest.raises(BadInput, match='no results'): build_page(outputs)
                return
            page = build_page(outputs).read_text(encoding='utf-8')
            assert ('<h2>one</h2>' in page) != ('<h2>two</h2>' in page) and 'Not shown' not in page
        if write is imported and half:
            with pytest.raises(BadInput, match='broken off'): data_file('result/CARD.md', outputs)
    # `save` is no command: an OSError is one
    seen = drill(tmp_path, lambda home: home/'result', lambda f: write('one', f),
                 lambda f: write('two', f), how, check, raw=('raw',) if write is built else ())
    assert len(seen) >= 6 and 'none' in seen

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
@pytest.mark.parametrize('at', [1, 2, 3, 4])
@pytest.mark.parametrize('writer', ['ended', 'goes on', 'was killed'])
def test_a_cache_in_a_folder_whose_exchange_was_killed(writer, at, tmp_path):
    "It is not touched, whoever has it open."
    from factlib.llm.cache import Cache, request_key
    folder = tmp_path/'r'
    with whole_folder(folder) as part: part.write('a.csv', 'x')
    def ask(i): return dict(model='m', messages=[dict(role='user', content=str(i)*50)])
    def put(cache, numbers):
        for i in numbers: cache.put(request_key(ask(i)), ask(i), dict(text=str(i)))
    def exchange():
        with whole_folder(folder, ('a.csv',)) as part: part.write('b.csv', 'y')
    def write_and_die():
        put(Cache(folder/'answers.sqlite'), range(20, 40))
        arm(at, 'kill')
        exchange()
        os.kill(os.getpid(), signal.SIGKILL)
    with Cache(folder/'answers.sqlite') as cache: put(cache, range(20))
    waiting = Cache(folder/'answers.sqlite') if writer == 'goes on' else None
    assert child(write_and_die if writer == 'was killed' else exchange, at, 'kill') in ('killed', 'done')
    if waiting is not None: put(waiting, range(20, 40))
    with Cache(folder/'answers.sqlite') as cache:
        put(cache, range(40, 60))
        if waiting is not None: waiting.close()
    exchange()
    with Cache(folder/'answers.sqlite') as cache: there = {row[2]['text'] for row in cache}
    assert there == {str(i) for i in range(60) if writer != 'ended' or not 20 <= i < 40}
    assert {p.name for p in folder.iterdir()} == {'b.csv', 'answers.sqlite'}

def test_a_file_that_is_only_called_like_a_journal_goes_along(tmp_path):
    folder = tmp_path/'r'
    with whole_folder(folder) as part: write_atomic(part/'report', 'x')
    for name in ('report-journal', 'diary-wal'): (folder/name).write_text('Monday')
    with whole_folder(folder, ('report',)) as part: write_atomic(part/'report', 'y')
    assert {p.name: p.read_text() for p in folder.iterdir()} == {'report': 'y',
                                                                 'report-journal': 'Monday', 'diary-wal': 'Monday'}

# ---- what others laid there

def everything(folder):
    "Each path, without those that a run may change: kind and content."
    content = lambda p: os.readlink(p) if p.is_symlink() else p.read_bytes() if p.is_file() else ''
    return {p.relative_to(folder).as_posix(): content(p) for p in sorted(folder.rglob('*')) if 'x' not in p.parts and not p.name.startswith('index')}

def planted(kind, home, outside):
    "What another account, or an archive, puts beside the folder `x`."
    if kind == 'notes of an exchange':
        (home/'.x-aaaaaaaa.old').mkdir()
        (home/'.x-aaaaaaaa.old/tables').symlink_to(outside)
        write_atomic(home/'.x-bbbbbbbb.old/tables/mine.csv', 'evil')
        for token in ('aaaaaaaa', 'bbbbbbbb'): write_atomic(home/f'.x-{token}.exchange', '{"new": 0, "leave": []}')
    elif kind == 'a folder as if it were being filled': # by its name, and by the mark of another one
        with whole_folder(home/'other') as part: write_atomic(home/'.x-cccccccc.part/unfinished.json',
                                                              (part/'unfinished.json').read_bytes())
        write_atomic(home/'.x-cccccccc.part/result.json', '{}')
        (home/'.x-dddddddd.part').symlink_to(outside)
    elif kind == 'a folder that failed, which is a link':
        (home/'x.failed').symlink_to(outside)
        write_atomic(outside/'unfinished.json', json.dumps(dict(files=['mine.csv'])))
    else: # a folder that failed, which lists what it has not made
        files = dict(files=['mine.csv', 'sub/mine.csv', '../outside/mine.csv', str(outside/'mine.csv')])
        write_atomic(home/'x.failed/unfinished.json', json.dumps(files))
        write_atomic(home/'x.failed/mine.csv', 'mine')
        (home/'x.failed/sub').symlink_to(outside)

@pytest.mark.parametrize('kind', ['notes of an exchange', 'a folder as if it were being filled',
                                  'a folder that failed, which is a link', 'a folder that failed and lists'])
def test_what_lies_beside_a_folder_is_not_believed(kind, tmp_path):
    from factlib.llm.cache import Cache
    from factlib.report.page import build_page
    home, outside = tmp_path/'home', tmp_path/'outside'
    write_atomic(outside/'mine.csv', 'mine')
    experiment('one', home/'x')
    planted(kind, home, outside)
    before = everything(tmp_path)
    build_page(home)
    with Cache(home/'x/deep/down/here/answers.sqlite'): pass
    tidy(home/'x')
    drop_failed(home/'x')
    experiment('two', home/'x')
    part = Part(home/'x')
    part.begin().write('a.csv', 'x')
    kept = part.give_up()
    shutil.rmtree(kept)
    assert kept.name.startswith('x.failed') and everything(tmp_path) == before

@pytest.mark.parametrize('where, to', [('tables', '../../outside'), ('memories', '/tmp'), ('tables', '.')])
def test_nothing_is_written_through_a_link_in_a_folder(where, to, tmp_path):
    "Not by force either; the old result stays."
    from factlib.core.ownership import replacing
    folder, outside = tmp_path/'home/x', tmp_path/'outside'
    write_atomic(outside/'one.csv', 'mine')
    experiment('one', folder)
    shutil.rmtree(folder/where)
    (folder/where).symlink_to(outside if to == '../../outside' else to)
    before = everything(tmp_path), (folder/'result.json').read_bytes()
    for force in (False, True):
        with replacing(force), pytest.raises(BadInput, match=where): experiment('two', folder)
    assert (everything(tmp_path), (folder/'result.json').read_bytes()) == before
    assert {p.name for p in (tmp_path/'home').iterdir()} <= {'x'}

@pytest.mark.skipif(not hasattr(os, 'mkfifo'), reason='POSIX')
@pytest.mark.parametrize('kind', ['link', 'second name', 'pipe'])
@pytest.mark.parametrize('name', ['result.json', 'index.html', 'tables/one.csv'])
def test_files_of_other_kinds_in_a_folder_that_was_sent(kind, name, tmp_path):
    "What `result.json` lists there may be anything: the file that it leads to stays, and nobody waits for a pipe."
    folder = tmp_path/'x'
    write_atomic(tmp_path/'outside', 'mine')
    experiment('one', folder)
    (folder/name).unlink()
    if kind == 'link': (folder/name).symlink_to(tmp_path/'outside')
    if kind == 'second name': os.link(tmp_path/'outside', folder/name)
    if kind == 'pipe': os.mkfifo(folder/name)
    try: experiment('two', folder)
    except BadInput as e: assert Path(name).name in str(e)
    assert (tmp_path/'outside').read_text() == 'mine'

@pytest.mark.skipif(os.name != 'posix', reason='handles of folders')
def test_a_folder_that_is_exchanged_for_a_link_while_it_is_filled(tmp_path):
    "As another account can in a folder that everybody may write to: what is written stays in the one that was begun."
    home, outside = tmp_path/'home', tmp_path/'outside'
    for folder in (home, outside): folder.mkdir()
    part = Part(home/'x')
    begun = part.begin()
    os.rename(part.path, home/'taken')
    part.path.symlink_to(outside)
    begun.write('tables/a.csv', 'x')
    assert (home/'taken/tables/a.csv').read_text() == 'x' and not list(outside.iterdir())
    part.drop()
    assert not list(outside.iterdir()) and part.path.is_symlink()

@pytest.mark.skipif(os.name != 'posix', reason='handles of folders')
def test_a_place_that_is_a_link_by_the_time_it_is_taken(tmp_path):
    home, outside = tmp_path/'home', tmp_path/'outside'
    write_atomic(outside/'a.csv', 'mine')
    home.mkdir()
    part = Part(home/'x')
    part.begin().write('a.csv', 'x')
    (home/'x').symlink_to(outside)
    with pytest.raises(BadInput, match='link'): part.take_place()
    assert (outside/'a.csv').read_text() == 'mine' and (home/'x.failed/a.csv').read_text() == 'x'

@pytest.mark.skipif(os.name != 'posix', reason='locks of POSIX')
@pytest.mark.parametrize('kind', ['second name', 'text', 'link', 'folder'])
def test_a_file_in_the_place_of_a_lock_is_not_emptied(kind, tmp_path):
    write_atomic(tmp_path/'outside', 'mine')
    lock = tmp_path/'.x.lock'
    if kind == 'second name': os.link(tmp_path/'outside', lock)
    if kind == 'text': lock.write_text('poetry, and prose')
    if kind == 'link': lock.symlink_to(tmp_path/'outside')
    if kind == 'folder': lock.mkdir()
    before = everything(tmp_path)
    with pytest.raises(BadInput, match='lock'), at_work(tmp_path/'x'): pass
    assert everything(tmp_path) == before
    if kind != 'text': return
    lock.write_text('factlib run, process 7 on host, since 2026-01-02 03:04:05') # which was killed
    with at_work(tmp_path/'x'): assert f'process {os.getpid()} ' in lock.read_text()
    assert not lock.exists()

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

@fork
@pytest.mark.parametrize('write, file', [
    (lambda place: write_atomic(place/'table.csv', 'x'*10**5), 'table.csv'),
    (lambda place: at_work(place/'sweep').__enter__(), '.sweep.lock'),
    (lambda place: Ledger(place/'spent.jsonl').enter('a', requests=1), 'spent.jsonl'),
    (lambda place: demo(place/'r').finish(), '.part')])
def test_a_full_disk_is_told_with_a_files_name(write, file, tmp_path):
    resource = pytest.importorskip('resource')
    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)) # no byte goes into any file
        try: write(tmp_path)
        except (OSError, BadInput, RuntimeError) as e:
            if file in f'{e} {getattr(e, "filename", "")}': raise BadInput('Told.') from None
            raise ValueError(str(e)) from None
    assert child(full, 0, 'none') == 'sentence'
    assert not list(tmp_path.rglob('.table.csv.*'))

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
    assert (tmp_path/'r/a.csv').stat().st_mode & 0o777 == 0o600

def test_all_files_of_a_result_are_their_owners_alone_unless_shared(tmp_path):
    "A file that is replaced gives the new one its mode, as a folder does."
    before = os.umask(0o022)
    try:
        experiment('one', tmp_path/'r')
        modes = {p.stat().st_mode & 0o777 for p in (tmp_path/'r').rglob('*') if p.is_file()}
        folders = {p.stat().st_mode & 0o777 for p in [tmp_path/'r', *(tmp_path/'r').rglob('*')] if p.is_dir()}
        (tmp_path/'r/index.html').chmod(0o644)
        experiment('two', tmp_path/'r')
    finally: os.umask(before)
    assert modes == {0o600} and folders == {0o700}
    assert (tmp_path/'r/index.html').stat().st_mode & 0o777 == 0o644
    assert (tmp_path/'r/tables/both.csv').stat().st_mode & 0o777 == 0o600
