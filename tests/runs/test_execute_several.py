"Experiments that run at the same time: order, failures, keys, a Ctrl-C, a killed process."
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from factlib.runs.execute import run_all

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != 'posix', reason='signals are sent')]

RESULT = '''import pandas as pd
from factlib.report.results import Experiment
run = Experiment('demo', {name!r}, 'Which one?', dict(out=out))
run.table(pd.DataFrame(dict(x=[1])), 'table', 'table', cell='')
run.finding('Found by {name}.', '')
result = run.finish()'''
WAIT = '''import os, pathlib, time
pathlib.Path({mark!r}).write_text(str(os.getpid()))
time.sleep({seconds})'''

def notebook(folder, name, *sources):
    import nbformat
    cell = nbformat.v4.new_code_cell
    cells = [cell("out: str = ''", metadata=dict(tags=['parameters'])), *map(cell, sources)]
    nb = nbformat.v4.new_notebook(cells=cells, metadata=dict(kernelspec=dict(
        name='python3', display_name='Python', language='python')))
    nbformat.write(nb, folder/f'{name}.ipynb')
    return folder/f'{name}.ipynb'

def experiment(folder, name, before='', seconds=0):
    waiting = WAIT.format(mark=str(folder/f'{name}.began'), seconds=seconds)
    return notebook(folder, name, waiting, before, RESULT.format(name=name))

def test_they_run_at_the_same_time_and_are_told_in_order(tmp_path):
    "The first ends last; the second fails; the third ends first. What one is told by its environment is its own."
    there = f'assert pathlib.Path({str(tmp_path/"third.began")!r}).exists(), "alone"'
    books = dict(first=experiment(tmp_path, 'first', there, 6), second=experiment(tmp_path, 'second', '1/0'),
                 third=experiment(tmp_path, 'third'))
    said = []
    failed, absent = run_all(tmp_path/'out', books, said.append, workers=2)
    assert [line for line in said if line.startswith('\n')] == ['\nfirst', '\nsecond', '\nthird']
    assert list(failed) == ['second'] and 'ZeroDivisionError' in failed['second'] and not absent
    assert said[1:2] == ['- Found by first.'] and said[-1] == '- Found by third.'
    assert sum(line.startswith('FAILED: second failed with ZeroDivisionError') for line in said) == 1
    for name in ('first', 'third'):
        assert json.loads((tmp_path/'out'/name/'result.json').read_text())['findings'][0]['text'] == f'Found by {name}.'
    assert sorted(p.name for p in (tmp_path/'out').iterdir()) == ['first', 'second.failed.ipynb', 'third']

def started(folder, books, **environment):
    "A process that runs them two at a time, as a shell starts it: with its own group."
    script = folder/'go.py'
    script.write_text(f'''import sys
from pathlib import Path
from factlib.runs.execute import run_all
if __name__ == '__main__':
    books = {{name: Path(path) for name, path in {({n: str(p) for n, p in books.items()})!r}.items()}}
    try: failed, _ = run_all(Path('out'), books, lambda line: print(line, flush=True), workers=2)
    except KeyboardInterrupt: sys.exit(130)
    print('FAILED', *failed.values(), sep='\\n')''')
    return subprocess.Popen([sys.executable, script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env=os.environ | dict(PYTHONPATH=str(ROOT)) | environment,
                            start_new_session=True)

def until(so, seconds=120):
    end = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < end
        time.sleep(.05)

def gone(pid):
    try: return Path(f'/proc/{pid}/stat').read_text().rsplit(') ', 1)[1][0] == 'Z'
    except FileNotFoundError: return True

def kernel(path): return int(path.read_text())

@pytest.mark.parametrize('send', [lambda child: os.killpg(child.pid, signal.SIGINT),
                                  lambda child: child.send_signal(signal.SIGINT)], ids=['terminal', 'kill'])
def test_a_ctrl_c_ends_all_and_keeps_what_is_done(send, tmp_path):
    books = dict(quick=experiment(tmp_path, 'quick'), slow=experiment(tmp_path, 'slow', seconds=300),
                 slower=experiment(tmp_path, 'slower', seconds=300), last=experiment(tmp_path, 'last'))
    child = started(tmp_path, books)
    marks = [tmp_path/'slow.began', tmp_path/'slower.began']
    until(lambda: all(m.exists() and m.read_text() for m in marks))
    send(child)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130 and str(ROOT/'factlib') not in err, err # a busy kernel may complain of its own
    assert 'Found by quick.' in out and (tmp_path/'out'/'quick'/'result.json').exists()
    assert not (tmp_path/'last.began').exists(), 'the next one was begun'
    until(lambda: all(gone(kernel(m)) for m in marks), 30)
    left = {p.name for p in (tmp_path/'out').iterdir()}
    assert not [name for name in left if name.endswith('.part')] and 'quick' in left and 'slow' not in left

def parent(pid): return int(Path(f'/proc/{pid}/stat').read_text().rsplit(') ', 1)[1].split()[1])

def test_a_warning_is_a_sentence(tmp_path):
    "Somebody has changed a table by hand: it is kept beside the new one, and said without a line of code."
    books = {name: experiment(tmp_path, name) for name in ('a', 'b')}
    assert started(tmp_path, books).wait(120) == 0
    (tmp_path/'out'/'a'/'tables'/'table.csv').write_text('mine')
    child = started(tmp_path, books)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0 and out.split('FAILED')[1].strip() == '', out
    assert 'was changed since factlib made it: what you had there is now' in err and 'Warning' not in err, err
    assert [p.read_text() for p in (tmp_path/'out'/'a'/'tables').glob('table.csv.*')] == ['mine']

def children(pid): return [int(p.name) for p in Path('/proc').glob('[0-9]*') if not gone(p.name) and parent(p.name) == pid]

@pytest.mark.skipif(not Path('/proc/self/stat').exists(), reason='processes are looked up in /proc')
def test_a_killed_run_leaves_no_process(tmp_path):
    books = {name: experiment(tmp_path, name, seconds=300) for name in ('a', 'b')}
    child = started(tmp_path, books)
    marks = [tmp_path/'a.began', tmp_path/'b.began']
    until(lambda: all(m.exists() and m.read_text() for m in marks))
    workers = children(child.pid)
    assert len(workers) >= 2
    child.kill()
    child.communicate(timeout=60)
    until(lambda: all(map(gone, [*workers, *map(kernel, marks)])), 60)
    again = []
    books = {name: experiment(tmp_path, name) for name in ('a', 'b')}
    assert run_all(tmp_path/'out', books, again.append)[0] == {} and 'Found by' in again[1]

@pytest.mark.skipif(not Path('/proc/self/stat').exists(), reason='processes are looked up in /proc')
def test_a_process_that_dies_takes_only_its_own_experiment(tmp_path):
    "As when there is no memory left: the one beside it and the next ones are run all the same."
    books = dict(a=experiment(tmp_path, 'a', seconds=300), b=experiment(tmp_path, 'b', seconds=5),
                 c=experiment(tmp_path, 'c'), d=experiment(tmp_path, 'd'))
    child = started(tmp_path, books)
    marks = [tmp_path/'a.began', tmp_path/'b.began']
    until(lambda: all(m.exists() and m.read_text() for m in marks))
    os.kill(parent(kernel(marks[0])), signal.SIGKILL)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0 and 'Traceback' not in err, err
    assert out.split('FAILED\n')[1].splitlines() == ['The process that ran it died, as when there is no memory left.']
    assert all(f'Found by {name}.' in out for name in 'bcd')
    until(lambda: gone(kernel(marks[0])), 60)

def test_the_key_is_in_none_of_their_processes(tmp_path):
    "`factlib reproduce` takes it out of the environment before it starts any."
    look = '''assert "OPENAI_API_KEY" not in os.environ and not os.environ.get("COPY")
for process in os.getpid(), os.getppid():
    assert b"not-a-" + b"key" not in pathlib.Path(f"/proc/{process}/environ").read_bytes()'''
    books = {name: experiment(tmp_path, name, look) for name in ('a', 'b')}
    from factlib.llm.keys import key_taken
    before = dict(os.environ)
    os.environ.update(OPENAI_API_KEY='not-a-key-but-as-long', COPY='with not-a-key-but-as-long in it')
    try:
        with key_taken(): failed, _ = run_all(tmp_path/'out', books, lambda line: None, workers=2)
    finally:
        os.environ.clear()
        os.environ.update(before)
    assert failed == {}

@pytest.mark.skipif(not Path('/proc/self/stat').exists(), reason='processes are looked up in /proc')
def test_a_process_that_dies_while_it_starts_takes_only_its_own_experiment(tmp_path):
    "It has not read what it is to do: the other end of its pipe says so in another way."
    books = {name: experiment(tmp_path, name) for name in 'abc'}
    child = started(tmp_path, books)
    starting = lambda: [pid for pid in children(child.pid) if b'spawn_main' in Path(f'/proc/{pid}/cmdline').read_bytes()]
    until(starting)
    os.kill(starting()[0], signal.SIGKILL)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0 and 'Traceback' not in err, err
    assert out.split('FAILED\n')[1].splitlines() == ['The process that ran it died, as when there is no memory left.']
    assert len(list(tmp_path.glob('out/*/result.json'))) == 2

@pytest.mark.parametrize('workers', [1, 2])
def test_whatever_is_wrong_with_one_the_others_go_on(workers, tmp_path):
    "Such as a kernel that is not installed, which jupyter says in an error of its own."
    books = {name: experiment(tmp_path, name) for name in ('a', 'b')}
    (tmp_path/'out'/'a').mkdir(parents=True)
    broken = json.loads(books['a'].read_text())
    broken['cells'].append(dict(cell_type='code', id='c', metadata={}, outputs=[], execution_count=None,
                                source="import os; open(os.path.join(os.environ['FACTLIB_PART'], 'result.json'), 'w')"
                                       ".write('{}')"))
    books['a'].write_text(json.dumps(broken))
    said = []
    failed, _ = run_all(tmp_path/'out', books, said.append, workers=workers)
    assert list(failed) == ['a'] and failed['a'].startswith('KeyError: '), failed
    assert said[-1] == '- Found by b.'

def test_what_has_ended_is_told_if_a_run_is_broken_off(tmp_path):
    "The first is under way when the second is done and the third has failed."
    books = dict(first=experiment(tmp_path, 'first', seconds=300), second=experiment(tmp_path, 'second'),
                 third=experiment(tmp_path, 'third', '1/0'), fourth=experiment(tmp_path, 'fourth', seconds=300))
    child = started(tmp_path, books)
    until((tmp_path/'fourth.began').exists)
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130 and str(ROOT/'factlib') not in err, err # a busy kernel may complain of its own
    assert 'Found by second.' in out and 'FAILED: third failed with ZeroDivisionError' in out
    assert out.index('second') < out.index('third') and 'first' not in out and 'fourth' not in out
