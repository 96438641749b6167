"Names that rooms had before they were merged."
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import factlib
from factlib.core.moved import GONE, MOVED, STILL_PUBLIC

PACKAGE = Path(factlib.__file__).parent

@pytest.mark.parametrize('old', sorted(MOVED.keys() - {name.removeprefix('factlib.') for name in STILL_PUBLIC}))
def test_an_old_name_gives_the_room_itself_and_says_where_it_is_now(old):
    "One module, whichever name is used first: else there were two registries."
    sys.modules.pop(f'factlib.{old}', None)
    new = importlib.import_module(f'factlib.{MOVED[old]}')
    with pytest.warns(FutureWarning, match=f'factlib.{MOVED[old]}'):
        assert importlib.import_module(f'factlib.{old}') is new
    assert new.__name__ == new.__spec__.name == f'factlib.{MOVED[old]}'

@pytest.mark.parametrize('old', sorted(STILL_PUBLIC))
def test_an_address_that_is_promised_answers_without_a_warning(old):
    code = f'import {old} as found; print(found.__name__)'
    run = subprocess.run([sys.executable, '-W', 'error', '-c', code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f'factlib.{MOVED[old.removeprefix("factlib.")]}'

def test_an_old_name_that_is_used_first_gives_the_same_class():
    code = ('from factlib.runs.judges import judges_for as old; from factlib.runs.judging import judges_for; '
            'from factlib.evaluators.claims.vista import Vista as before; from factlib.evaluators.vista.vista import Vista; '
            'print(old is judges_for and before is Vista)')
    run = subprocess.run([sys.executable, '-W', 'ignore', '-c', code], capture_output=True, text=True, check=True)
    assert run.stdout == 'True\n'

def test_an_old_name_is_no_room_and_leads_straight_to_one():
    "A file would hide the entry; and who follows an entry to another old name is warned of a name that is gone, too."
    files = {path.relative_to(PACKAGE).with_suffix('').as_posix().replace('/', '.') for path in PACKAGE.rglob('*.py')}
    assert not files & (MOVED.keys() | GONE.keys())
    assert set(MOVED.values()) <= files

@pytest.mark.parametrize('old', sorted(GONE))
def test_a_room_that_is_gone_says_why_and_names_what_can_be_had(old):
    with pytest.raises(ModuleNotFoundError, match=f'factlib.{old} is gone. .*asks a model.*word_support'):
        importlib.import_module(f'factlib.{old}')
    assert f'factlib.{old}' not in sys.modules and old not in MOVED

def test_a_name_that_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError, match='factlib.runs.nothing'): importlib.import_module('factlib.runs.nothing')
