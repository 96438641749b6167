"""Every library notebook runs from top to bottom: its examples are tests. (Experiments are run by test_experiments.py,
through papermill, and the book's chapters by book/test_book.py.)"""
from pathlib import Path
from unittest.mock import patch

import pytest

NBS = Path(__file__).resolve().parent.parent/'nbs'
LIBRARY = sorted(p for p in NBS.rglob('*.ipynb') if not {'experiments', 'book'} & set(p.relative_to(NBS).parts)
                 and not p.name.startswith(('.', '_')) and '.ipynb_checkpoints' not in p.parts)

@pytest.mark.parametrize('notebook', LIBRARY, ids=[str(p.relative_to(NBS).with_suffix('')) for p in LIBRARY])
def test_notebook(notebook, monkeypatch):
    from nbdev.test import test_nb as run_notebook
    from factlib.benchmarks.base import BENCHMARKS
    from factlib.evaluators.base import EVALUATORS
    from factlib.perturb.base import MANIPULATIONS
    monkeypatch.setenv('FACTLIB_DATA', '') # the examples do without real data
    # a notebook defines its module's classes once more, and registers those; the tests after it are to meet the
    # module's
    with patch.dict(EVALUATORS), patch.dict(BENCHMARKS), patch.dict(MANIPULATIONS):
        passed, seconds = run_notebook(notebook, basepath=NBS.parent)
    assert passed, f'{notebook.name} failed; the error is in the captured output'
