"The command as a shell starts it: folders with odd names, and Ctrl-C."
import os, signal, subprocess, sys, time
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from factlib.cli import app

ROOT = Path(__file__).resolve().parents[1]

def start(*arguments, cwd, **env):
    return subprocess.Popen([sys.executable, '-c', 'from factlib.cli import main\nmain()', *arguments],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, cwd=cwd, env=os.environ | dict(PYTHONPATH=str(ROOT)) | env, start_new_session=True)

@pytest.mark.slow
@pytest.mark.parametrize('folder', ['o/{x}', 'o/{{%s}} {'])
def test_a_folder_may_have_any_name(folder, tmp_path):
    done = start('run', 'quick_sweep', '-p', 'n', '1', '--out', folder, '--no-page', cwd=tmp_path)
    out, err = done.communicate(timeout=120)
    assert done.returncode == 0 and 'Traceback' not in err, err
    assert (tmp_path/folder/'notebook.ipynb').is_file() and (tmp_path/folder/'result.json').is_file()
    assert [p.name for p in (tmp_path/'o').iterdir()] == [Path(folder).name]

def kernels(pid):
    "Processes that this one has started and that run as kernels; those that have ended meanwhile are left out."
    def is_kernel(process):
        try: return process.is_running() and 'ipykernel_launcher' in process.cmdline()
        except psutil.NoSuchProcess: return False # or a zombie, which is one
    return [p for p in psutil.Process(pid).children() if is_kernel(p)]

@pytest.mark.slow
@pytest.mark.parametrize('sign', ['', '"status": "completed"'], ids=['a kernel starts', 'cells are run'])
def test_an_interrupted_run_ends_with_130_and_leaves_nothing_half(sign, tmp_path):
    """nbclient leaves a kernel to itself that hasn't answered yet, and without the folder of its sockets it waits for
    ever."""
    aside = tmp_path/'aside' # where the notebook is while it runs
    aside.mkdir()
    child = start('run', 'quick_sweep', '--out', 'o/a', '--no-page', cwd=tmp_path, TMPDIR=str(aside))
    end = time.monotonic() + 120
    while time.monotonic() < end and child.poll() is None:
        ours = kernels(child.pid)
        if ours and any(sign in part.read_text() for part in aside.glob('factlib-*/.a-*.part/notebook.ipynb')): break
        time.sleep(.02)
    assert ours and child.poll() is None
    os.killpg(child.pid, signal.SIGINT) # as a terminal does it: to all of them
    out, err = child.communicate(timeout=120)
    said = [line for line in err.replace('\r', '\n').splitlines() if line and not line.startswith('Executing:')]
    assert child.returncode == 130 and 'Interrupted.' in said and str(ROOT/'factlib') not in err, err
    assert sign or said == ['Interrupted.'], err # a kernel that runs may complain of its own
    assert not list(tmp_path.glob('o/.a-*.part')) and not list(aside.glob('factlib-*'))
    assert not [kernel for kernel in ours if kernel.is_running()]

def test_a_price_table_in_another_encoding_is_a_sentence(tmp_path):
    (tmp_path/'p.csv').write_bytes('model,input,output\nm,1,2\n'.encode('utf-16'))
    done = CliRunner().invoke(app, ['cost', 'live_judge', '-p', 'model',
                                    'm', '-p', 'n', '1', '-p', 'prices', str(tmp_path/'p.csv')])
    assert type(done.exception).__name__ == 'BadInput' and 'UTF-8' in str(done.exception)

@pytest.mark.parametrize('width', [80, 110])
def test_the_list_of_commands_is_not_cut_off(width):
    shown = CliRunner().invoke(app, ['--help'], terminal_width=width).stdout
    listed = shown.split('Commands:')[1].strip().splitlines()
    assert len(listed) == len(app.commands)
    assert all(line.endswith(('.', '?')) and not line.endswith('...') for line in listed)
