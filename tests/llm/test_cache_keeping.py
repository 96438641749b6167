"""Answers that can't be kept: a full disk, a lock that lasts. What is paid is given, nothing more is sent, and the
event loop goes on."""
import asyncio, contextlib, os, sqlite3, subprocess, sys, threading, time, warnings
from pathlib import Path

import pytest

from factlib.core.loop import run_sync
from factlib.core.records import Absence
from factlib.llm.cache import Cache, CacheWriter, request_key
from factlib.llm.chat import Chat
from factlib.llm.stub import StubServer
from factlib.llm.transport import TRANSPORTS

ROOT = Path(__file__).resolve().parents[2]

@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ('OPENAI_API_KEY', 'OPENAI_BASE_URL', 'FACTLIB_CACHE'): monkeypatch.delenv(name, raising=False)

async def ask_all(chat, prompts):
    "All replies, and how often the event loop came round meanwhile."
    rounds, going = 0, True
    async def count():
        nonlocal rounds
        while going:
            rounds += 1
            await asyncio.sleep(.01)
    counting = asyncio.ensure_future(count())
    replies = await asyncio.gather(*[chat(p) for p in prompts])
    going = False
    await counting
    return replies, rounds

def ask(chat, n=120):
    "Replies, rounds of the loop, and the warnings about keeping."
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        replies, rounds = run_sync(ask_all(chat, [f'text {i} ' + 'x'*300 for i in range(n)]))
    return replies, rounds, [str(w.message) for w in said if 'kept' in str(w.message)]

def checked(chat, replies, said, server, why):
    "Every answer that was paid for is given; one sentence; what wasn't sent says why."
    given = [r for r in replies if r.absence is None]
    assert len(given) == len(server.requests) == len(chat.cache) + chat.stats.unkept
    assert chat.stats.unkept <= chat.concurrency
    assert all(r.absence is Absence.transport and why in r.detail and 'asks no more' in r.detail
               for r in replies if r.absence)
    assert len(given) < len(replies)
    assert len(said) == 1 and why in said[0]

@pytest.mark.parametrize('transport', TRANSPORTS)
def test_a_full_disk(transport, tmp_path):
    with StubServer(lambda request: 'y'*2000) as server:
        chat = Chat('m', server.base_url, cache=tmp_path/'a.sqlite', transport=transport, concurrency=8)
        chat.cache._file.db.execute('PRAGMA max_page_count=30') # SQLite's own full disk
        replies, _, said = ask(chat)
        checked(chat, replies, said, server, 'disk is full')
        paid = len(server.requests)
        assert 10 < len(chat.cache) < 120 and chat.ask('one more').absence is Absence.transport
        assert len(server.requests) == paid
        chat.cache.close() # forgets the limit: there is room again
        again = Chat('m', server.base_url, cache=tmp_path/'a.sqlite', transport=transport)
        replies, _, said = ask(again)
        assert all(r.text == 'y'*2000 for r in replies) and not said
        assert len(server.requests) - paid == 120 - again.stats.cached and len(again.cache) == 120

@contextlib.contextmanager
def locked(path):
    "Another process writes, and doesn't end."
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute('BEGIN IMMEDIATE')
        yield db

@pytest.mark.parametrize('transport', TRANSPORTS)
def test_a_lock_that_lasts(transport, tmp_path, monkeypatch):
    monkeypatch.setattr('factlib.llm.cache_file._PATIENCE', 1)
    with StubServer(lambda request: 'ok') as server:
        Chat('m', server.base_url, transport=transport, mode='off').ask('x') # imported and connected
        server.requests.clear()
        chat = Chat('m', server.base_url, cache=tmp_path/'a.sqlite', transport=transport, concurrency=6)
        with locked(chat.cache.path):
            replies, rounds, said = ask(chat)
            checked(chat, replies, said, server, 'locked by another process')
            assert len(server.requests) == 6 and len(chat.cache) == 0 and rounds > 20 # of a hundred

def test_a_lock_that_passes_loses_nothing(tmp_path):
    with StubServer(lambda request: 'ok') as server:
        chat = Chat('m', server.base_url, cache=tmp_path/'a.sqlite', concurrency=6)
        held, free = threading.Event(), threading.Event()
        def hold():
            with locked(chat.cache.path):
                held.set()
                free.wait(30)
        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(30)
        threading.Timer(.4, free.set).start()
        replies, rounds, said = ask(chat, 40)
        thread.join(30)
        assert all(r.text == 'ok' for r in replies) and len(chat.cache) == 40 and chat.stats.unkept == 0 and not said
        assert rounds > 5

def test_who_reads_does_not_wait_for_who_writes(tmp_path):
    cache = Cache(tmp_path/'a.sqlite')
    row = request_key(dict(i=1)), dict(i=1), dict(text='ok')
    cache.put(*row)
    outcome = []
    def write():
        try: outcome.append(cache.put_all([(request_key(dict(i=2)), dict(i=2), dict(text='late'))]))
        except Exception as e: outcome.append(e)
    with locked(cache.path) as db:
        thread = threading.Thread(target=write)
        thread.start()
        time.sleep(.1) # it waits
        for _ in range(100): assert cache.get(row[0]) == dict(text='ok') and outcome == []
        db.execute('ROLLBACK')
        thread.join(30)
    assert outcome == [[dict(text='late')]] and len(cache) == 2

def test_one_row_that_cannot_be_kept_takes_no_other_with_it(tmp_path):
    async def go():
        writer = CacheWriter(Cache(tmp_path/'a.sqlite'))
        rows = [(request_key(dict(i=i)), dict(i=i), dict(text=f'{i}', bad=float('nan') if i == 3 else 0.))
                for i in range(8)]
        return writer, await asyncio.gather(*[writer.put(*row) for row in rows])
    writer, results = run_sync(go())
    assert [why is None for _, why in results] == [i != 3 for i in range(8)]
    assert [a['text'] for a, _ in results] == [f'{i}' for i in range(8)]
    assert len(writer.cache) == 7 and writer.fault.__traceback__ is None

def test_who_stops_waiting_does_not_stop_the_writing(tmp_path):
    async def go():
        writer = CacheWriter(Cache(tmp_path/'a.sqlite'))
        waiting = [asyncio.ensure_future(writer.put(request_key(dict(i=i)), dict(i=i), dict(text=f'{i}')))
                   for i in range(20)]
        await asyncio.sleep(0)
        for w in waiting[::2]: w.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return len(writer.cache), writer._task
    assert run_sync(go()) == (20, None)

FULL = """
import resource, signal, sys, warnings
from factlib.core.loop import run_sync
from factlib.llm.chat import Chat
sys.path.insert(0, sys.argv[3])
from test_cache_keeping import ask
chat = Chat('m', sys.argv[1], cache=sys.argv[2], concurrency=8)
if sys.argv[4] == 'limit':
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
replies, _, said = ask(chat)
print(sum(r.absence is None for r in replies), len(chat.cache), chat.stats.unkept, len(said))
"""

@pytest.mark.slow
@pytest.mark.parametrize('how', ['limit', 'disk'])
def test_a_disk_that_is_really_full(how, tmp_path):
    "A limit on the size of files, and a file system of 300 kB where one can be mounted."
    if how == 'disk':
        (tmp_path/'disk').mkdir()
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=300k', 'tmpfs', str(tmp_path/'disk')],
                          capture_output=True).returncode:
            pytest.skip('no file system can be mounted here')
    folder = tmp_path/'disk' if how == 'disk' else tmp_path
    try:
        with StubServer(lambda request: 'y'*2000) as server:
            done = subprocess.run([sys.executable, '-c', FULL, server.base_url,
                                   str(folder/'a.sqlite'), str(Path(__file__).parent), how],
                                  env=os.environ | dict(PYTHONPATH=str(ROOT)),
                                  capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            given, kept, unkept, said = map(int, done.stdout.split())
            assert given == len(server.requests) == kept + unkept and 0 < unkept <= 8 and given < 120 and said == 1
    finally:
        if how == 'disk': subprocess.run(['umount', str(tmp_path/'disk')])
