"One process at a place, and what it says it spent: real commands and a real server."
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from factlib.core.folders import at_work
from factlib.core.ledger import read_spent
from factlib.core.records import BadInput
from factlib.llm.stub import StubServer
from command import ROOT, factlib_inside

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
    assert spent.requests == sent == said['requests'] and spent.answered + spent.unanswered == sent
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
