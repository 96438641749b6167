"Jobs: found again, cancelled at once, never two at one thing, and what a killed process leaves."
import asyncio
import errno
import json
import os
import subprocess
import sys
import threading
import time

import pytest

from factlib.apps.store import PageJobs, Store
from factlib.core.records import BadInput

def ended(jobs, id, seconds=10):
    limit = time.monotonic() + seconds
    while not jobs.get(id).ended:
        assert time.monotonic() < limit
        time.sleep(.01)
    return jobs.get(id)

@pytest.fixture
def store(tmp_path):
    with Store(tmp_path) as opened: yield opened

async def slow(running, about, seconds=30):
    running.watch(10, lambda: 3, 'waiting')
    await asyncio.sleep(seconds)
    return lambda: None

def test_a_job_is_found_again(store):
    jobs = PageJobs(store, dict(slow=slow))
    job = jobs.start('slow', 'a', seconds=.05)
    done = ended(jobs, job.id)
    assert (done.state, done.options, done.done, done.total) == ('done', dict(seconds=.05), 3, 10)
    assert vars(PageJobs(store, {}).get(job.id)) == vars(done)

def test_what_is_cancelled_keeps_nothing(store):
    begun, go_on, kept = threading.Event(), threading.Event(), []
    async def stubborn(running, about): # computes, so it can't be stopped in the middle
        begun.set()
        go_on.wait(10)
        return lambda: kept.append(about)
    jobs = PageJobs(store, dict(stubborn=stubborn))
    job = jobs.start('stubborn', 'a')
    assert begun.wait(10) and jobs.cancel(job.id).state == 'cancelled'
    again = jobs.start('stubborn', 'a') # the thing is free at once
    go_on.set()
    assert ended(jobs, again.id).state == 'done' and jobs.get(job.id).state == 'cancelled'
    time.sleep(.1)
    assert kept == ['a']

def test_cancel_reaches_what_is_awaited(store):
    heard = threading.Event()
    async def awaits(running, about):
        try: await asyncio.sleep(60)
        finally: heard.set()
    jobs = PageJobs(store, dict(awaits=awaits))
    job = jobs.start('awaits', 'a')
    time.sleep(.1)
    jobs.cancel(job.id)
    assert heard.wait(5)

def test_one_job_at_one_thing(store):
    jobs = PageJobs(store, dict(slow=slow))
    outcomes = []
    def click():
        try: outcomes.append(jobs.start('slow', 'a').id)
        except BadInput: outcomes.append(None)
    threads = [threading.Thread(target=click) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert len([o for o in outcomes if o]) == 1
    other = jobs.start('slow', 'b')
    assert jobs.get(other.id).state == 'running' and len(jobs.of('a')) == 1
    jobs.close()
    assert {j.state for j in jobs.of('a') + jobs.of('b')} == {'interrupted'}

def test_failures_are_sentences(store, capsys):
    async def refuses(running, about): raise BadInput('Choose another text.')
    async def breaks(running, about): raise ZeroDivisionError('secret')
    async def keeps_badly(running, about): return lambda: 1/0
    jobs = PageJobs(store, dict(refuses=refuses, breaks=breaks, keeps_badly=keeps_badly))
    assert ended(jobs, jobs.start('refuses', 'a').id).error == 'Choose another text.'
    broken = ended(jobs, jobs.start('breaks', 'a').id)
    assert broken.state == 'failed' and 'ZeroDivisionError' in broken.error and 'secret' not in broken.error
    assert 'secret' in capsys.readouterr().err
    assert ended(jobs, jobs.start('keeps_badly', 'a').id).state == 'failed'
    assert ended(jobs, jobs.start('unknown', 'a').id).state == 'failed'

def test_the_order_of_jobs(store):
    jobs = PageJobs(store, dict(slow=slow))
    ids = [ended(jobs, jobs.start('slow', 'a', seconds=0).id).id for _ in range(3)]
    assert [j.id for j in jobs.of('a')] == ids[::-1]

@pytest.mark.parametrize('id', ['', '../x', 'A', None, 'none'])
def test_unknown_jobs(store, id):
    with pytest.raises(BadInput): PageJobs(store, {}).get(id)

KILLED = '''
import asyncio, sys, time
from factlib.apps.store import PageJobs, Store
async def slow(running, about, step):
    running.watch(5, lambda: 2, 'half way')
    await asyncio.sleep(60)
jobs = PageJobs(Store(sys.argv[1]), dict(slow=slow))
print(jobs.start('slow', 'a', step=7).id, flush=True)
time.sleep(60)'''

@pytest.mark.slow
def test_kill_9(tmp_path):
    process = subprocess.Popen([sys.executable, '-c', KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try: id = process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert json.loads((tmp_path/'jobs'/f'{id}.json').read_text())['state'] == 'running'
    with Store(tmp_path) as store:
        async def quick(running, about, step): return lambda: store.write('kept.json', [about, step])
        jobs = PageJobs(store, dict(slow=quick))
        assert jobs.get(id).state == 'interrupted' and store.read('kept.json') is None # nothing begins by itself
        assert ended(jobs, jobs.again(id).id).state == 'done' and store.read('kept.json') == ['a', 7]

def fill_disk(monkeypatch):
    "From now on the disk is full, as the system says it when a file is to be on it."
    def full(running): raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(os, 'fsync', full)

def test_a_full_disk_locks_nothing(store, monkeypatch):
    "Before, a job counted as under way before it was written down: on a full disk its text was locked until a restart."
    jobs = PageJobs(store, dict(slow=slow))
    with monkeypatch.context() as patch:
        fill_disk(patch)
        for _ in range(2):
            with pytest.raises(BadInput, match='The disk is full.*make room'): jobs.start('slow', 'a', seconds=0)
    assert jobs.of('a') == [] and ended(jobs, jobs.start('slow', 'a', seconds=0).id).state == 'done'

def test_a_disk_that_gets_full_while_a_job_runs(store, monkeypatch):
    """Before, the end could not be written, so the job was 'under way' for ever. Now the page hears why; the next
    server, that it was interrupted."""
    begun, go_on = threading.Event(), threading.Event()
    async def keeps(running, about):
        begun.set()
        go_on.wait(10)
        return lambda: store.write('kept.json', 1)
    jobs = PageJobs(store, dict(keeps=keeps))
    job = jobs.start('keeps', 'a')
    assert begun.wait(10)
    with monkeypatch.context() as patch:
        fill_disk(patch)
        go_on.set()
        failed = ended(jobs, job.id)
        assert failed.state == 'failed' and 'The disk is full' in failed.error and jobs.of('a') == [failed]
    assert PageJobs(store, {}).get(job.id).state == 'interrupted' and ended(jobs, jobs.again(job.id).id).state == 'done'

@pytest.mark.parametrize('content', ['', '{', '[]', '{"id": 1}', '\0'*40])
def test_a_damaged_note_is_one_job_that_is_not_read(content, store):
    "Before, one emptied file, as a power cut leaves it, kept the server from starting."
    whole = ended(jobs := PageJobs(store, dict(slow=slow)), jobs.start('slow', 'a', seconds=0).id)
    store.path('jobs/b1.json').write_text(content)
    jobs = PageJobs(store, {})
    assert [job.id for job in jobs.of('a')] == [whole.id]
    fault, = jobs.faults()
    assert 'b1.json' in fault and 'put back a copy' in fault
