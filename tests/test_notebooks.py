"Every library notebook runs from top to bottom: its examples are tests. (Experiments are run by test_experiments.py, through papermill.)"
import os
from pathlib import Path

import pytest

NBS = Path(__file__).resolve().parent.parent/'nbs'
LIBRARY = sorted(p for p in NBS.rglob('*.ipynb') if 'experiments' not in p.parts and not p.name.startswith(('.', '_')) and '.ipynb_checkpoints' not in p.parts)

@pytest.mark.parametrize('notebook', LIBRARY, ids=[str(p.relative_to(NBS).with_suffix('')) for p in LIBRARY])
def test_notebook(notebook, monkeypatch):
    from nbdev.test import test_nb as run_notebook
    monkeypatch.delenv('FACTLIB_DATA', raising=False) # the examples do without real data
    passed, seconds = run_notebook(notebook, basepath=NBS.parent)
    assert passed, f'{notebook.name} failed; the error is in the captured output'
