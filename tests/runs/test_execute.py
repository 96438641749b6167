"""A kernel that dies before it answers, as one does whose port another process has taken; and who else can speak to
one. (One that starts at once is in many tests.)"""
import json
import os
import shutil
import sys
import tempfile

import nbformat
import pytest

from command import factlib
from factlib.runs.execute import execute
from sweeps import notebook

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

KNOCKING = """import json, os, subprocess, sys
from pathlib import Path
from ipykernel.connect import get_connection_file
file = get_connection_file()
info = json.loads(Path(file).read_text())
knock = 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])'
ways = [[sys.executable, '-c', knock, f'{info["ip"]}-{info[name]}'] for name in ('shell_port', 'iopub_port', 'control_port', 'stdin_port', 'hb_port')]
def failed(way, *before):
    done = subprocess.run([*before, *way], capture_output=True, text=True, cwd='/')
    return done.stderr.strip().splitlines()[-1] if done.returncode else ''
nobody = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
said = dict(transport=info['transport'], ours=[failed(way) for way in ways], theirs=[failed(way, *nobody) for way in [*ways, ['cat', file]]])
Path(notes).write_text(json.dumps(said))"""

@pytest.mark.skipif(os.name != 'posix' or os.geteuid() != 0 or shutil.which('setpriv') is None,
                    reason='another account needs root')
def test_no_other_account_speaks_to_a_kernel_or_hears_it(tmp_path):
    """Before, a kernel spoke by TCP: messages are signed, so nobody ran code there, but everybody on the machine could
    hear what it printed."""
    execute(notebook(tmp_path/'own.ipynb', f'notes:str = {str(tmp_path/"notes")!r}', KNOCKING),
            {}, tmp_path/'out', progress=False)
    said = json.loads((tmp_path/'notes').read_text())
    assert said['transport'] == 'ipc' and said['ours'] == ['']*5
    assert all('ermission denied' in why for why in said['theirs']) and len(said['theirs']) == 6

def test_where_the_way_to_a_socket_is_too_long_it_is_tcp(tmp_path, monkeypatch):
    "A socket's path has some 100 bytes."
    (long := tmp_path/('x'*100)).mkdir()
    monkeypatch.setattr(tempfile, 'tempdir', str(long))
    execute(notebook(tmp_path/'own.ipynb', f'notes:str = {str(tmp_path/"notes")!r}',
                     KNOCKING.partition('knock')[0] + "Path(notes).write_text(info['transport'])"),
            {}, tmp_path/'out', progress=False)
    assert (tmp_path/'notes').read_text() == 'tcp' and not os.listdir(long)
