"One process at a place, and what it says it spent: real commands and a real server."
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from factlib.core.folders import at_work
from factlib.core.ledger import Spent, read_spent
from factlib.core.records import BadInput
from factlib.llm.stub import StubServer
from factlib.runs.execute import find_experiment
from factlib.runs.costs import endpoints_of, kernel_spending, spending
from command import ROOT, factlib, factlib_inside
from sweeps import asking, notebook

FAITHFUL = json.dumps(dict(reason='It says so.', verdict='faithful'))

def begun(*arguments, cwd):
    "The command in a process of its own."
    env = {k: v for k, v in os.environ.items() if k != 'FACTLIB_CACHE'} | {'PYTHONPATH': str(ROOT)}
    return subprocess.Popen([sys.executable, '-c', 'from factlib.cli import main; main()', *map(str, arguments)],
                            cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

@pytest.fixture
def mine(tmp_path, monkeypatch):
    "A file of 30 texts, and the arguments that judge it by a model."
    monkeypatch.delenv('FACTLIB_CACHE', raising=False)
    rows = [dict(response=f'The fox ran {i} miles.', context=f'A fox ran {i} miles.') for i in range(30)]
    (tmp_path/'mine.jsonl').write_text('\n'.join(map(json.dumps, rows)))
    (tmp_path/'prices.csv').write_text('model,input,output,currency\nm,1000,2000,EUR\n')
    def command(server, *more):
        return ['evaluate', 'mine.jsonl', '--with', 'faithfulness', '--out',
                'out', '--no-page', '--model', 'm', '--base-url', server.base_url, '--prices', 'prices.csv', *more]
    return command

@pytest.mark.slow
def test_the_second_in_a_folder_is_refused_and_a_kill_lets_go(mine, tmp_path):
    """Two at once asked 60 for 30. Now the second says who works there, code 2; after a kill the next one takes over
    and ends."""
    with StubServer(lambda request: dict(content=FAITHFUL, delay=.3)) as server:
        first = begun(*mine(server, '--concurrency', '2'), cwd=tmp_path)
        while not server.requests and first.poll() is None: time.sleep(.02)
        second = factlib_inside(*mine(server), cwd=tmp_path)
        assert second.returncode == 2 and f'process {first.pid} on' in second.stderr and second.stderr.count('\n') == 1
        first.send_signal(signal.SIGKILL)
        first.communicate()
        third = factlib_inside(*mine(server), cwd=tmp_path)
        assert third.returncode == 0, third.stderr
        sent = len(server.requests)
    assert sent <= 30 + 2 and not list(tmp_path.glob('.*.lock'))
    spent, said = read_spent(tmp_path/'out'/'spent.jsonl'), json.loads(
        (tmp_path/'out'/'result.json').read_text())['spent']
    # what is written down before it is sent may never leave: at most the two in flight
    assert sent <= spent.requests <= sent + 2 and spent.requests == said['requests']
    assert spent.answered + spent.unanswered == spent.requests
    assert said == spent.to_dict()

def test_the_end_says_what_was_spent(mine, tmp_path):
    """Prompts of 300 tokens at 1,000 a million and replies of 10 at 2,000 are .32 each; the same again asks nothing,
    and keeps all."""
    with StubServer(lambda request: dict(content=FAITHFUL,
                                         usage=dict(prompt_tokens=300, completion_tokens=10))) as server:
        told = [factlib_inside(*mine(server), cwd=tmp_path).stdout for _ in range(2)]
    assert 'Asked: 30 requests, 30 answered; 9,300 tokens, 9.6 EUR. Kept from before: 0 answers.' in told[0]
    assert 'Asked: 0 requests, 0 answered; 0 tokens, 0 EUR. Kept from before: 30 answers.' in told[1]
    said = json.loads((tmp_path/'out'/'result.json').read_text())['spent']
    assert (said['requests'], said['kept'], said['prompt_tokens'], said['money']) == (30, 30, 9000, 9.6)
    assert (tmp_path/'out').stat().st_mode & 0o777 == 0o700 # the ledger and the cache were there before the results

def test_without_a_model_nothing_is_said(mine, tmp_path):
    told = factlib_inside('evaluate', 'mine.jsonl', '--with', 'rouge1', '--out', 'out', '--no-page', cwd=tmp_path)
    assert 'Asked' not in told.stdout and not (tmp_path/'out'/'spent.jsonl').exists()
    assert 'spent' not in json.loads((tmp_path/'out'/'result.json').read_text())

def test_a_lock_is_never_opened_through_a_link(tmp_path):
    (tmp_path/'precious').write_text('mine')
    (tmp_path/'.out.lock').symlink_to(tmp_path/'precious')
    with pytest.raises(BadInput, match='is a link where a lock of ours belongs'): at_work(tmp_path/'out').__enter__()
    assert (tmp_path/'precious').read_text() == 'mine'

def test_of_many_exactly_one_works_at_a_time(tmp_path):
    "Eight processes take turns at one place; each finds nobody else's mark there, and none is refused for ever."
    working = '''
import sys, time
from pathlib import Path
from factlib.core.folders import at_work
from factlib.core.records import BadInput
place, done = Path(sys.argv[1]), 0
while done < 20:
    try:
        with at_work(place):
            mark = place.with_name('mark')
            mark.touch(exist_ok=False)
            time.sleep(.001)
            mark.unlink()
            done += 1
    except BadInput as e: assert 'Another process is at work' in str(e), e
'''
    all_of_them = [subprocess.Popen([sys.executable, '-c', working, str(tmp_path/'out')],
                                    stderr=subprocess.PIPE, text=True) for _ in range(8)]
    for process in all_of_them: assert process.communicate(timeout=120)[1] == ''
    assert [p.name for p in tmp_path.iterdir()] == []

# Where the key is

KEY = 'sk-the-real-key-of-a-test'
CHILD = [sys.executable, '-c', 'import os; print(dict(os.environ))']

def test_what_a_command_starts_has_no_key(tmp_path, monkeypatch):
    """Before, all that `evaluate` started inherited it. The command itself gets it, and the environment is what it was
    afterwards."""
    monkeypatch.setenv('OPENAI_API_KEY', KEY)
    monkeypatch.delenv('FACTLIB_GATE', raising=False)
    with spending(tmp_path/'out') as key:
        assert key == KEY and KEY not in subprocess.run(CHILD, capture_output=True, text=True).stdout
    assert os.environ['OPENAI_API_KEY'] == KEY

def test_in_a_cell_of_a_sweep_the_token_stays_where_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv('FACTLIB_GATE', 'http://127.0.0.1:1')
    monkeypatch.setenv('OPENAI_API_KEY', 'token-of-a-cell-0123456789')
    for begun in (spending(tmp_path/'out'), kernel_spending(tmp_path/'out', find_experiment('live_judge'), {})):
        with begun:
            assert (os.environ['FACTLIB_GATE'],
                    os.environ['OPENAI_API_KEY']) == ('http://127.0.0.1:1', 'token-of-a-cell-0123456789')

def test_the_endpoints_of_a_notebook(tmp_path, monkeypatch):
    "By default, as given, several; what says nothing is OPENAI_BASE_URL's, what is odd is none."
    monkeypatch.setenv('OPENAI_BASE_URL', 'http://127.0.0.1:7/v1')
    own = notebook(tmp_path/'own.ipynb', 'base_url:str = "http://127.0.0.1:8/v1"\nother_base_url:str = ""\nx:int = 1')
    values = [{}, dict(base_url='https://a.example/v1/'), dict(other_base_url='odd'),
              dict(base_url=None, other_base_url='http://b.example/v1', x=2)]
    assert endpoints_of(own, values) == [['http://127.0.0.1:7/v1', 'http://127.0.0.1:8/v1'],
                                         ['http://127.0.0.1:7/v1', 'https://a.example/v1'],
                                         ['http://127.0.0.1:8/v1'], ['http://b.example/v1']]
    assert endpoints_of(notebook(tmp_path/'none.ipynb', 'x:int = 1'), [{}]) == [['http://127.0.0.1:7/v1']]

LOOKING = """import json, os
from pathlib import Path
from factlib.llm.chat import Chat
places, process = [os.environ.copy()], os.getpid()
while process not in (0, 1, upto): # this kernel and all that have started it
    for file in ('environ', 'cmdline'):
        try: places.append(Path(f'/proc/{process}/{file}').read_bytes())
        except OSError: pass # sealed
    process = int(Path(f'/proc/{process}/status').read_text().split('PPid:')[1].split()[0])
replies = [await Chat('m', url, mode='off').__call__('a question') for url in (base_url, evil)]
Path(notes).write_text(json.dumps(dict(texts=[r.text for r in replies], why=replies[1].detail, seen=str(places))))"""

@pytest.mark.slow
def test_a_kernel_has_no_key_and_asks_whom_its_parameters_name(tmp_path, monkeypatch):
    """Before, `run` gave a notebook the key by its environment. What the notebook asked for is in the ledger all the
    same."""
    monkeypatch.setenv('OPENAI_API_KEY', KEY)
    monkeypatch.delenv('FACTLIB_CACHE', raising=False)
    with StubServer(lambda request: 'Yes.', key=KEY) as server, StubServer(lambda request: 'Evil.') as evil:
        notebook(tmp_path/'own.ipynb',
                 f'base_url:str = ""\nevil:str = {evil.base_url!r}\nnotes:str = {str(tmp_path/"notes")!r}\nupto:int = '
                 f'{os.getpid()}', LOOKING)
        ran = factlib('run', 'own.ipynb', '-p', 'base_url', server.base_url, '--out', 'out', '--no-page', cwd=tmp_path)
        assert ran.returncode == 0 and len(server.requests) == 1 and not evil.requests, ran
    said = json.loads((tmp_path/'notes').read_text())
    assert said['texts'] == ['Yes.', ''] and 'none of the endpoints that this cell names' in said['why']
    assert KEY not in said['seen']
    assert read_spent(tmp_path/'out'/'spent.jsonl') == Spent(1, 1, prompt_tokens=2, completion_tokens=1)
    assert '1 requests, 1 answered' in ran.stdout
    for file in tmp_path.rglob('*'): assert not file.is_file() or KEY.encode() not in file.read_bytes(), file

@pytest.mark.slow
def test_what_a_kernel_had_asked_when_it_died_is_kept(tmp_path, monkeypatch):
    """Eight under way when it is killed: the command waits for them, and the same command again gets them; nothing is
    sent twice."""
    monkeypatch.setenv('OPENAI_API_KEY', KEY)
    monkeypatch.delenv('FACTLIB_CACHE', raising=False)
    def rule(request):
        if len(server.requests) == 8 and not killed.is_set():
            killed.set()
            os.kill(int((tmp_path/'kernel').read_text()), signal.SIGKILL)
        return dict(content='Yes.', delay=.5)
    killed = threading.Event()
    with StubServer(rule, key=KEY) as server:
        said = json.loads(asking(tmp_path, server.base_url).read_text())
        said['cells'][1][
            'source'] = f'import os; open({str(tmp_path/"kernel")!r}, "w").write(str(os.getpid()))\n' + said[
                'cells'][1]['source']
        (tmp_path/'asking.ipynb').write_text(json.dumps(said))
        first, again = (factlib('run', 'asking.ipynb', '-p', 'n', 8, '--out', 'out', '--no-page', cwd=tmp_path)
                        for _ in range(2))
    assert first.returncode == 1 and 'its kernel died' in first.stderr, first
    assert '8 requests, 8 answered' in first.stdout, first
    assert again.returncode == 0 and len(server.requests) == 8 and (
        tmp_path/'out'/'table.csv').read_text() == 'Yes.\n'*7 + 'Yes.', again
    assert read_spent(tmp_path/'out'/'spent.jsonl').kept == 8 and not list(tmp_path.glob('.out*'))
