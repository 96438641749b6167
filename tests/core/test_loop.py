"Coroutines that cross to the background loop: what they give, how they end, and what they leave behind."
import asyncio, threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from factlib.core.loop import background_loop, on_background, run_sync

async def double(x):
    await asyncio.sleep(0)
    return 2*x, threading.current_thread().name

def test_many_at_once_each_get_their_own():
    async def ask(): return await asyncio.gather(*[on_background(double(x)) for x in range(500)])
    assert asyncio.run(ask()) == [(2*x, 'factlib-loop') for x in range(500)]

def test_callers_on_several_threads():
    async def ask(n): return await asyncio.gather(*[on_background(double(n + x)) for x in range(100)])
    with ThreadPoolExecutor(8) as threads: got = list(threads.map(lambda n: asyncio.run(ask(n)), range(0, 800, 100)))
    assert [x for part in got for x, _ in part] == [2*x for x in range(800)]

def test_an_error_is_its_callers_alone():
    class Falsy(Exception):
        def __bool__(self): return False
    async def fail(): raise Falsy('as it was')
    async def ask():
        return await asyncio.gather(on_background(fail()), on_background(double(1)), return_exceptions=True)
    error, (two, _) = asyncio.run(ask())
    assert type(error) is Falsy and str(error) == 'as it was' and two == 2

def test_what_is_cancelled_there_is_cancelled_here():
    async def end(): asyncio.current_task().cancel(); await asyncio.sleep(1)
    with pytest.raises(asyncio.CancelledError): asyncio.run(on_background(end()))

def test_who_stops_waiting_stops_it():
    begun, ended = threading.Event(), threading.Event()
    async def wait():
        begun.set()
        try: await asyncio.sleep(60)
        finally: ended.set()
    async def ask():
        task = asyncio.ensure_future(on_background(wait()))
        while not begun.is_set(): await asyncio.sleep(.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError): await task
    asyncio.run(ask())
    assert ended.wait(30)

def test_context_variables_go_with_it():
    name = ContextVar('name', default='nobody')
    async def who():
        was = name.get()
        name.set('changed there')
        return was
    async def ask(mine):
        name.set(mine)
        return await on_background(who()), name.get()
    async def all_of_them(): return await asyncio.gather(ask('a'), ask('b'))
    assert asyncio.run(all_of_them()) == [('a', 'a'), ('b', 'b')]

def test_already_there_nothing_crosses():
    async def where(): return asyncio.get_running_loop()
    assert run_sync(on_background(where())) is background_loop()
