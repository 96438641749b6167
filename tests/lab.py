"A real JupyterLab for tests, in a browser: on a copy of the checkout, with settings of its own."
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
needs_lab = pytest.mark.skipif(importlib.util.find_spec('jupyterlab') is None, reason='JupyterLab is not installed')
needs_git = pytest.mark.skipif(not shutil.which('git') or not (ROOT/'.git').exists(), reason='this is no git checkout')

def git(root, *arguments):
    who = ('-c', 'user.name=test', '-c', 'user.email=test@localhost', '-c', 'commit.gpgsign=false')
    return subprocess.run(['git', *who, *arguments], cwd=root, capture_output=True, text=True, check=True).stdout

def checkout(root):
    "A repository with the files of this one as they are now, committed or not."
    for name in git(ROOT, 'ls-files', '-co', '--exclude-standard', '-z').split('\0'):
        if not (ROOT/name).is_file(): continue
        (root/name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT/name, root/name)
    git(root, 'init', '-q')
    git(root, 'add', '-A')
    git(root, 'commit', '-qm', 'all')

@contextmanager
def server(root, home):
    "JupyterLab, started in a folder: what it says of itself (`url`, `token`)."
    home.mkdir()
    places = {f'JUPYTER_{name}_DIR': str(home/name) for name in ('CONFIG', 'RUNTIME', 'DATA')}
    places |= {f'JUPYTERLAB_{name}_DIR': str(home/name)
               for name in ('SETTINGS', 'WORKSPACES')} | dict(PYTHONPATH=str(root), OPENAI_API_KEY='none')
    command = [sys.executable, '-m', 'jupyterlab', '--no-browser', '--allow-root',
               '--ServerApp.port=0', '--LabApp.expose_app_in_browser=True']
    with open(home/'log', 'wb') as log:
        process = subprocess.Popen(command, cwd=root, env={k: v for k, v in os.environ.items() if k != 'FACTLIB_CACHE'}
                                   | places, stdout=log, stderr=log)
    try:
        end = time.monotonic() + 120
        while not (said := list((home/'RUNTIME').glob('jpserver-*.json'))) or not said[0].stat().st_size:
            assert process.poll() is None and time.monotonic() < end, (home/'log').read_text()
            time.sleep(.1)
        yield json.loads(said[0].read_text())
    finally:
        process.terminate() # which ends the kernels, too
        try: process.wait(30)
        except subprocess.TimeoutExpired: process.kill()

class Lab:
    "What a user does in JupyterLab, by the commands behind its menus."
    HERE = 'const panel = window.jupyterapp?.shell?.currentWidget, book = panel?.content;'

    def __init__(self, driver, said):
        self.driver, self.said = driver, said
        driver.implicitly_wait(0)

    def script(self, code, *arguments): return self.driver.execute_script(self.HERE + code, *arguments)

    def until(self, code, *arguments, seconds=120):
        from selenium.webdriver.support.ui import WebDriverWait
        return WebDriverWait(self.driver, seconds, .2).until(lambda _: self.script(code, *arguments), code)

    def open(self, path):
        "A notebook whose kernel is ready."
        self.driver.get(f'{self.said["url"]}lab/tree/{path}?token={self.said["token"]}&reset')
        self.until('return panel?.context?.isReady && panel.context.path === arguments[0] && '
                   'panel.sessionContext?.session?.kernel?.connectionStatus === "connected"', path)

    def edit(self, cell, old, new):
        done = self.script(
            "const c = [...book.model.sharedModel.cells].find(c => c.id === arguments[0]); const s = c.getSource(); "
            "c.setSource(s.replace(arguments[1], arguments[2])); return s.includes(arguments[1])", cell, old, new)
        assert done, (cell, old)

    def run_all(self):
        self.script("window.ended = null; jupyterapp.commands.execute('runmenu:run-all').then(() => window.ended = "
                    "'yes', e => window.ended = String(e))")

    def ended(self): return self.until('return window.ended')

    def outputs(self):
        "Cell id -> its outputs."
        return {c['id']: c['outputs'] for c in self.script('return book.model.toJSON().cells')
                if c['cell_type'] == 'code'}

    def show(self, cell):
        "Scroll to a cell, until all its outputs are drawn."
        self.script('const i = book.widgets.findIndex(w => w.model.id === arguments[0]); book.activeCellIndex = i; '
                    'book.scrollToItem(i, "center")', cell)
        self.until('const w = book.widgets.find(w => w.model.id === arguments[0]); return w.node.isConnected && '
                   'w.node.querySelectorAll(".jp-OutputArea-output").length >= w.model.outputs.length', cell)

    def links(self, cell):
        """Elements in a cell's output, as soon as JupyterLab listens to all of them, which it does before it completes
        their addresses."""
        links = ('const w = book.widgets.find(w => w.model.id === arguments[0]); const links = '
                 '[...w.node.querySelectorAll(".jp-RenderedMarkdown.jp-OutputArea-output a")]; ')
        return self.until(
            links + 'return links.length && links.every(a => a.getAttribute("href").includes("/files/")) && links',
            cell)

    def follow(self, cell, to):
        """Click the first link of a cell's output, until the cell that it leads to is in sight: cells are drawn while
        JupyterLab scrolls, so that the first click may end beside it."""
        from selenium.common.exceptions import TimeoutException
        for attempt in range(4):
            self.show(cell)
            self.script('arguments[0].click()', self.links(cell)[0])
            try:
                return self.until(
                    'const r = book.widgets.find(w => w.model.id === arguments[0]).node.getBoundingClientRect(); '
                    'return r.height > 0 && r.top < innerHeight && r.bottom > 0', to, seconds=30)
            except TimeoutException: pass
        raise AssertionError(f'The first link of {cell} does not lead to {to}.')

    def errors(self):
        return [(cell, o['ename'], o['evalue']) for cell, outputs in self.outputs().items()
                for o in outputs if o['output_type'] == 'error']
