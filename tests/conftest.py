"""What all tests share: an option, the order they run in, the main job's outputs, and a garbage collector that need not
look at what was imported."""
import gc
import json
import os
import signal
from itertools import count
from pathlib import Path

import pytest

from command import factlib

# as a shell starts what runs in the background
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN: signal.signal(signal.SIGINT, signal.default_int_handler)

def pytest_addoption(parser):
    parser.addoption('--room', default='',
                     help='only this room, such as evaluators/claims/dovescore, where a test looks at all of them; '
                          '`make quick` gives it')

def _ask_more(items, examples):
    """FACTLIB_EXAMPLES=20000 gives each random test so many examples, whatever it asks for itself: `pytest -k ... -n
    0`, now and then."""
    from hypothesis import settings
    for test in {getattr(item, 'obj', None) for item in items}:
        own = getattr(test, '_hypothesis_internal_use_settings', None)
        if own is not None: test._hypothesis_internal_use_settings = settings(own, max_examples=examples, deadline=None)

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """What reads real data is slow. Slow ones first, and before them what waits for the main job: with `--dist
    worksteal` the first worker begins with them, and the second steals what lies behind. Within these, tests stay side
    by side, so that what a file makes once is made by one worker; but a minute's work isn't left for the end, when
    nobody can share it."""
    for item in items:
        if any('FACTLIB_DATA' in mark.kwargs.get('reason', '') for mark in item.iter_markers('skipif')):
            item.add_marker(pytest.mark.slow)
        if 'reproduced' in item.fixturenames: item.add_marker(pytest.mark.slow)
    if examples := os.environ.get('FACTLIB_EXAMPLES'): _ask_more(items, int(examples))
    items.sort(key=lambda item: ('reproduced' not in item.fixturenames, item.get_closest_marker('slow') is None,
                                 not item.name.startswith('test_documentation')))

def _settle():
    "What is there stays, so the collector need not look at it again."
    gc.collect()
    gc.freeze()

def pytest_collection_finish(): _settle()

def pytest_unconfigure():
    "Each shell of a notebook has the garbage collected once more when the process ends."
    gc.freeze()

_ENDED = count(1)

@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    "Caches fill while tests run."
    if next(_ENDED) % 200 == 0: _settle()

@pytest.fixture(scope='session')
def reproduced(tmp_path_factory):
    """The folder that `factlib reproduce` fills, with real data where FACTLIB_DATA names them: made once, by the worker
    that comes first; another one waits."""
    import fcntl
    home = tmp_path_factory.getbasetemp()
    if os.environ.get('PYTEST_XDIST_WORKER'): home = home.parent
    out, log = home/'reproduced', home/'reproduced.json'
    with open(home/'reproduced.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not log.exists():
            done = factlib('reproduce', out, cwd=home, data=os.environ.get('FACTLIB_DATA'))
            log.write_text(json.dumps(dict(code=done.returncode, stdout=done.stdout, stderr=done.stderr[-5000:])))
    said = json.loads(log.read_text())
    assert said['code'] == 0, said['stderr']
    return out
