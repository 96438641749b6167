"A result is kept only if parameters, notebook, data, code and the result itself are what they were."
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner

from factlib.cli import app
from factlib.runs.provenance import run_if_changed

KERNEL = dict(name='python3', display_name='Python', language='python')

def write(path, *sources):
    cells = [nbformat.v4.new_code_cell(s, metadata=dict(tags=['parameters'] if not i else []))
             for i, s in enumerate(sources)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=dict(kernelspec=KERNEL)), path)

@pytest.fixture
def own(tmp_path, monkeypatch):
    "An experiment of one's own that reads a file and uses a module of one's own, run once."
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path/'data'))
    (tmp_path/'data').mkdir()
    (tmp_path/'data'/'a.txt').write_text('1')
    (tmp_path/'mine.jsonl').write_text('{"target": "A fox."}\n')
    (tmp_path/'helping.py').write_text('def twice(x): return 2*x\n')
    write(tmp_path/'own.ipynb', "x:int = 1\ndataset:str = 'mine.jsonl'\nout:str = 'result'",
          'import sys\nsys.path.insert(0, ".")\nimport helping\nfrom pathlib import '
          'Path\nPath(out).mkdir(exist_ok=True)\n(Path(out)/"y.txt").write_text(str(helping.twice(x)))')
    assert run() == 'It has not run yet.' and (tmp_path/'result'/'y.txt').read_text() == '2'
    return tmp_path

def run(**values):
    return run_if_changed(Path('own.ipynb'), dict(dataset='mine.jsonl') | values, Path('result'), progress=False)

def change(folder, what):
    if what == 'notebook':
        write(folder/'own.ipynb', "x:int = 1\ndataset:str = ''\nout:str = ''",
              'from pathlib import Path\nPath(out).mkdir(exist_ok=True)\n(Path(out)/"y.txt").write_text("7")')
    if what == 'dataset': (folder/'mine.jsonl').write_text('{"target": "A wolf."}\n')
    if what == 'data folder': (folder/'data'/'a.txt').write_text('2')
    if what == 'module': (folder/'helping.py').write_text('def twice(x): return 3*x\n')
    if what == 'result': (folder/'result'/'notebook.ipynb').write_text('{}')
    if what == 'no result': (folder/'result'/'notebook.ipynb').unlink()
    if what == 'record': (folder/'.kept'/'result.json').write_text('{"status": 3}')

def test_nothing_changed(own):
    before = (own/'result'/'notebook.ipynb').stat().st_mtime_ns
    assert run() == run() == '' and (own/'result'/'notebook.ipynb').stat().st_mtime_ns == before

@pytest.mark.parametrize('what, why', [('notebook', 'The notebook has changed.'),
                                       ('dataset', 'mine.jsonl has changed.'),
                                       ('data folder', 'FACTLIB_DATA has changed.'),
    ('module', 'helping has changed.'), ('result', 'Its results are not whole.'),
                                       ('no result', 'Its results are not whole.'), ('record', 'It')])
def test_what_has_changed_is_said_and_run_again(own, what, why):
    change(own, what)
    assert run().startswith(why) and run() == ''
    assert (own/'result'/'y.txt').read_text() == dict(notebook='7', module='3').get(what, '2')

def test_a_module_of_the_same_size_and_second(own, monkeypatch):
    "Python would take the bytecode of the old one for its own, and the old result would stand for the new module."
    monkeypatch.delenv('PYTHONDONTWRITEBYTECODE', raising=False)
    module = own/'helping.py'
    os.utime(module, (10**9, 10**9))
    assert run(x=2) and list((own/'__pycache__').glob('helping.*.pyc'))
    change(own, 'module')
    os.utime(module, (10**9, 10**9))
    stale = subprocess.run([sys.executable, '-c', 'import helping; print(helping.twice(1))'], cwd=own,
                           capture_output=True, text=True, check=True).stdout
    assert stale.strip() == '2' # which is what is prevented
    assert run(x=2) == 'helping has changed.' and (own/'result'/'y.txt').read_text() == '6'
    assert run(x=2) == ''
    change(own, 'dataset') # a result that was kept doesn't keep what its module was from being looked at again
    module.write_text('def twice(x): return 4*x\n')
    assert run(x=2) != '' and (own/'result'/'y.txt').read_text() == '8'

def test_another_value_and_a_data_folder_that_is_gone(own, monkeypatch):
    assert run(x=2) == 'The parameter x has changed.' and (own/'result'/'y.txt').read_text() == '4'
    monkeypatch.setenv('FACTLIB_DATA', '')
    assert run(x=2) == 'FACTLIB_DATA has changed.' and run(x=2) == ''

def test_a_run_that_fails_is_not_kept(own):
    write(own/'own.ipynb', "x:int = 1\ndataset:str = ''\nout:str = ''", '1/0')
    for _ in range(2):
        with pytest.raises(RuntimeError, match='ZeroDivisionError'): run()
    assert (own/'result'/'y.txt').read_text() == '2' # the old result is still there

def test_by_the_command(own):
    asked = ['run', 'own.ipynb', '--out', 'result', '--if-changed', '-p', 'dataset', 'mine.jsonl']
    kept = CliRunner().invoke(app, asked)
    assert kept.exit_code == 0 and 'Nothing has changed, so the results are kept.' in kept.output
    assert 'Results in' in kept.output
    again = CliRunner().invoke(app, [*asked, '-p', 'x', '5'])
    assert again.exit_code == 0 and 'kept' not in again.output and (own/'result'/'y.txt').read_text() == '10'
