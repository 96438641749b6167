"""The command line for tests: in a process of its own, as a user types it, or inside this one, which saves two
processes and their imports."""
import io
import json
import os
import subprocess
import sys
from contextlib import chdir, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent

def environment(data):
    "This process's, with `data` as the data folder or with none, whatever `make data` brought."
    return os.environ | {'FACTLIB_DATA': str(data or ''), 'PYTHONPATH': str(ROOT)}

def factlib(*arguments, cwd, data=None):
    "The command `factlib` in a process of its own; an experiment's kernel is one more."
    return subprocess.run([sys.executable, '-c', 'from factlib.cli import main; main()', *map(str, arguments)],
                          cwd=cwd, env=environment(data), capture_output=True, text=True)

@contextmanager
def in_short():
    """Within it a figure is drawn as SVG, and not once more as PNG: of that it has a pixel. The page of a notebook is
    empty."""
    from factlib.core.files import write_atomic
    from factlib.core.ownership import GENERATOR
    from factlib.report import page, results
    from factlib.report.figures import style
    draw = style.figure_bytes

    @cache
    def pixel():
        from matplotlib.figure import Figure
        return draw(Figure(figsize=(.1, .1)), 'png', 10)

    def once(fig, kind, dpi=None): return draw(fig, kind, dpi) if kind == 'svg' else pixel()
    def empty(notebook, html): return write_atomic(html, f'<head>{GENERATOR}</head>')
    with (patch.object(style, 'figure_bytes', once), patch.object(results, 'figure_bytes', once),
          patch.object(page, 'notebook_html', empty)): yield

def factlib_inside(*arguments, cwd, data=None, whole=False):
    """The same with the same answer, within this process: the cells of an experiment are run by papermill in a shell
    here, as nbdev runs those of the library. Only a `whole` run has PNGs and a notebook's page that can be looked at."""
    from factlib.cli import main
    from papermill.engines import papermill_engines
    stdout, stderr, code = io.StringIO(), io.StringIO(), 0
    with (chdir(cwd), patch.dict(os.environ, environment(data), clear=True),
          patch.object(sys, 'argv', ['factlib', *map(str, arguments)]),
          patch.dict(papermill_engines._engines, {None: shell_engine()}),
          nullcontext() if whole else in_short(),
          redirect_stdout(stdout), redirect_stderr(stderr)):
        try: main()
        except SystemExit as e: code = e.code or 0
    return subprocess.CompletedProcess(arguments, code, stdout.getvalue(), stderr.getvalue())

def run_cell(shell, cell):
    "Run a cell of code in a shell and keep what it shows as its outputs. What it raised, or None."
    import nbformat
    shown = [dict(output) for output in shell.run(cell.source)]
    cell.outputs = [nbformat.from_dict(o) for o in shown if o.get('data', True)] # empty: it showed itself
    return shell.exc

def shell_engine():
    "An engine for papermill whose cells run in this process. What they define stays in a shell of their own."
    from execnb.shell import CaptureShell
    from factlib.core.modules import LOADED, loaded_modules
    from papermill.engines import Engine

    class ShellEngine(Engine):
        @classmethod
        def execute_managed_notebook(cls, manager, kernel_name, **options):
            shell = CaptureShell()
            manager.output_path = None # which is written at the end, and need not be before and after each cell
            if LOADED in os.environ: Path(os.environ[LOADED]).write_text(json.dumps(loaded_modules()))
            try:
                for i, cell in enumerate(manager.nb.cells):
                    manager.cell_start(cell, i)
                    if cell.cell_type == 'code' and cell.source.strip():
                        raised = run_cell(shell, cell)
                        if raised is not None:
                            manager.cell_exception(cell, i, exception=raised)
                            return
                    manager.cell_complete(cell, i)
            finally: shell.close()

    return ShellEngine

def files(folder): return sorted(str(p.relative_to(folder)) for p in folder.rglob('*') if p.is_file())
