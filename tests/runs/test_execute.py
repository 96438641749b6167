"""A kernel that dies before it answers, as one does whose port another process has taken. (One that starts at once is
in many tests.)"""
import json
import sys

import nbformat
import pytest

from command import factlib

def kernel(home, deaths):
    "A kernel called python3 that dies at its first starts."
    log, folder = home/'starts', home/'jupyter'/'kernels'/'python3'
    folder.mkdir(parents=True)
    (home/'kernel.py').write_text(f'''import os, sys
with open({str(log)!r}, 'a') as file: file.write('x')
if os.path.getsize({str(log)!r}) <= {deaths}: sys.exit(1)
os.execv(sys.executable, [sys.executable, '-m', 'ipykernel_launcher', *sys.argv[1:]])''')
    (folder/'kernel.json').write_text(
        json.dumps(dict(argv=[sys.executable, str(home/'kernel.py'), '-f', '{connection_file}'],
                        display_name='Python 3', language='python')))
    return log

@pytest.mark.parametrize('deaths, starts, code', [(1, 2, 0), (9, 3, 1)])
def test_a_kernel_that_does_not_start(deaths, starts, code, tmp_path, monkeypatch):
    log = kernel(tmp_path, deaths)
    monkeypatch.setenv('JUPYTER_PATH', str(tmp_path/'jupyter'))
    cells = [nbformat.v4.new_code_cell('x:int = 1', metadata=dict(tags=['parameters'])),
             nbformat.v4.new_code_cell('print(x + 1)')]
    nbformat.write(nbformat.v4.new_notebook(cells=cells,
                                            metadata=dict(kernelspec=dict(name='python3', display_name='Python 3',
                                                                          language='python'))), tmp_path/'own.ipynb')
    done = factlib('run', tmp_path/'own.ipynb', '-p', 'x', 41, '--out', tmp_path/'out', '--no-page', cwd=tmp_path)
    assert (done.returncode, len(log.read_text())) == (code, starts)
    if code:
        assert 'own can\'t be run: its kernel did not start, in 3 attempts.' in done.stderr
        assert not (tmp_path/'out').exists()
    else: assert '42' in (tmp_path/'out'/'notebook.ipynb').read_text()
