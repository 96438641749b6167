"What all tests share: the order they run in, what is made once for a whole session, and where an empty garbage collector saves minutes."
import gc

import pytest

SLOWEST_FIRST = 'reproduced' # a fixture that takes minutes to make

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """The slowest first: with `--dist worksteal` the first worker begins with them, and the second steals what lies behind.

    Tests of one fixture stay side by side, so that it is made once or, at the place where a worker stole, twice."""
    items.sort(key=lambda item: (SLOWEST_FIRST not in getattr(item, 'fixturenames', ()), item.get_closest_marker('slow') is None))

def pytest_collection_finish():
    "What was imported up to here stays: the collector need not look at it again. (statsmodels collects at each correction of p-values: 0.2 s with all packages loaded.)"
    gc.collect()
    gc.freeze()
