"""What a type checker and an editor see of the library, as its users have it; and what the checker says of the library
itself."""
import subprocess
import sys
from importlib import import_module
from inspect import getattr_static
from pathlib import Path

import jedi
import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT/'tests'/'a_users_script.py'

def test_the_library_and_a_users_script(tmp_path):
    """`mypy`, as pyproject.toml sets it, finds nothing in the library; where it can't be right, the line says why it is
    passed over. In a user's script there is no error; with an attribute that isn't there, and a number for a text, it
    has these two. All in one run, since the script's takes as long as the library's."""
    wrong = tmp_path/'wrong.py'
    wrong.write_text(SCRIPT.read_text(encoding='utf-8') + 'chat.no_such_method()\nname = 3\n', encoding='utf-8')
    done = subprocess.run([sys.executable, '-m', 'mypy', '--cache-dir', ROOT/'.mypy_cache', 'factlib', SCRIPT, wrong],
                          cwd=ROOT, capture_output=True, text=True)
    assert done.stdout, done.stderr
    *said, counted = done.stdout.splitlines()
    errors = [line for line in said if ': error: ' in line]
    assert ['[attr-defined]' in errors[0], '[assignment]' in errors[1], len(errors)] == [True, True, 2], errors
    assert all('/wrong.py:' in error for error in errors) # an earlier run's, where its cache is still good
    assert counted.startswith('Found 2 errors in 1 file (checked ')

PUBLIC = ('llm.chat.Chat', 'llm.cache.Cache', 'evaluators.vista.vista.Vista', 'evaluators.claims.dovescore.DoveScore',
          'evaluators.memo.judgememo.JudgeMemo', 'evaluators.memo.memory.Memory',
          'evaluators.narrative.network.Graph', 'report.results.Experiment')

def methods(cls):
    "Public methods and properties that a class has when it runs, those of its bases in factlib among them."
    names = {name for base in cls.__mro__ if base.__module__.startswith('factlib')
             for name in vars(base) if not name.startswith('_')}
    return {name for name in names if callable(getattr(cls, name)) or isinstance(getattr_static(cls, name), property)}

@pytest.mark.parametrize('path', PUBLIC)
def test_an_editor_sees_all_methods(path):
    """Behind the dot of an object, jedi, which JupyterLab completes with, offers every one: it reads the source and
    runs nothing."""
    room, name = f'factlib.{path}'.rsplit('.', 1)
    there = methods(getattr(import_module(room), name))
    offered = {found.name for found in jedi.Script(f'from {room} import {name}\ndef f(x: {name}):\n    x.',
                                                   project=jedi.Project(ROOT)).complete(3, 6)}
    assert len(there) > 1 and not there - offered
