"The command line in a process of its own, for tests."
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

def factlib(*arguments, cwd, data=None):
    env = {k: v for k, v in os.environ.items() if k != 'FACTLIB_DATA'} | ({'FACTLIB_DATA': str(data)} if data else {})
    return subprocess.run([sys.executable, '-c', 'from factlib.cli import main; main()', *map(str, arguments)], cwd=cwd, env=env | {'PYTHONPATH': str(ROOT)}, capture_output=True, text=True)

def files(folder): return sorted(str(p.relative_to(folder)) for p in folder.rglob('*') if p.is_file())
