"Experiments in JupyterLab, as users run them: all cells of the notebook in its own folder, in a browser."
import json
import re

import pytest

from browser import browser, needs_browser
from lab import Lab, checkout, git, needs_git, needs_lab, server
from factlib.llm.stub import StubServer

pytestmark = [pytest.mark.slow, needs_browser, needs_lab, needs_git]

@pytest.fixture(scope='module')
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp('checkout')
    checkout(root)
    return root

@pytest.fixture(scope='module')
def lab(root, tmp_path_factory):
    with server(root, tmp_path_factory.mktemp('lab')/'home') as said, browser(1400) as driver: yield Lab(driver, said)

def markdown(outputs):
    return [''.join(o['data']['text/markdown']) for o in outputs if 'text/markdown' in o.get('data', {})]

def test_findings_links_and_a_clean_checkout(lab, root):
    path = 'nbs/experiments/quick_sweep.ipynb'
    lab.open(path)
    lab.edit('sweep-parameters', 'n: int = 12', 'n: int = 2')
    lab.run_all()
    assert lab.ended() == 'yes' and not lab.errors()
    outputs = lab.outputs()
    result = json.loads((root/'outputs'/'quick_sweep'/'result.json').read_text(encoding='utf-8'))
    found = markdown(outputs['sweep-findings'])
    assert len(found) == len(result['findings']) >= 1
    cells = [re.search(r'\(quick_sweep\.ipynb#cell-id=([\w-]+)\)$', text)[1] for text in found]
    assert cells == [f['cell'] for f in result['findings']] and set(cells) <= set(outputs)

    lab.show('sweep-findings')
    lab.until('const w = book.widgets.find(w => w.model.id === "sweep-findings"); return '
              'w.node.querySelectorAll(".jp-RenderedMarkdown.jp-OutputArea-output a").length === arguments[0]',
              len(found))
    shown = lab.script(
        'const w = book.widgets.find(w => w.model.id === "sweep-findings"); return '
        '[...w.node.querySelectorAll(".jp-RenderedMarkdown.jp-OutputArea-output")]'
                       '.map(n => [n.innerText.trim(), getComputedStyle(n.querySelector("p")).wordBreak])')
    assert shown == [[f['text'] + ' [cell]', 'normal'] for f in result['findings']] # as it was said, words whole
    lab.follow('sweep-findings', cells[0])

    lab.show('sweep-finish')
    count = len(lab.links('sweep-finish'))
    assert count == len({s['file'] for s in result['shown']}) + 2 # result.json and the page
    for i, expected in ((0, 'outputs/quick_sweep/result.json'), (1, 'outputs/quick_sweep/tables/texts.csv'),
                        (count - 1, 'outputs/index.html')):
        lab.script('arguments[0].click()', lab.links('sweep-finish')[i])
        lab.until('return panel?.context?.isReady && panel.context.path === arguments[0]', expected)
        assert len(lab.driver.window_handles) == 1 and (root/expected).is_file()
        lab.script('jupyterapp.shell.activateById([...jupyterapp.shell.widgets("main")].find(w => w.context?.path === '
                   'arguments[0]).id)', path)
        lab.until('return panel?.context?.path === arguments[0]', path)
    page = (root/'outputs'/'index.html').read_text(encoding='utf-8')
    assert result['title'] in page and 'notebook.html' not in page # which only `factlib run` makes

    lab.script('window.saved = false; panel.context.save().then(() => window.saved = true)')
    lab.until('return window.saved')
    assert git(root, 'status', '--porcelain').split('\n') == [f' M {path}', ''] # JupyterLab saved what the user ran
    assert all(name.startswith('outputs/') or '.ipynb_checkpoints' in name
               or '__pycache__' in name for name in git(root, 'ls-files', '-o').splitlines())

def test_interrupted_and_run_again_asks_nothing_twice(lab, root):
    "But what was under way when it was interrupted."
    def slowly(request): return dict(content=json.dumps(dict(reason='by rule', fluency=4, coherence=3)), delay=.7)
    with StubServer(slowly) as stub:
        lab.open('nbs/experiments/live_judge.ipynb')
        for old, new in (("model: str = ''", "model: str = 'rule'"),
                         ("base_url: str = ''", f"base_url: str = '{stub.base_url}'"),
                         ('n: int = 2', 'n: int = 4'), ('concurrency: int = 16', 'concurrency: int = 2')):
            lab.edit('live-parameters', old, new)
        lab.run_all()
        bar = lab.until(
            'const t = book.widgets.find(w => w.model.id === "live-judge").model.outputs.toJSON().map(o => '
            '[o.text].flat().join("")).join(""); return /[1-9]\\/12/.test(t) && t')
        assert 'fluency_coherence' in bar and 'Warning' not in bar
        lab.script('jupyterapp.commands.execute("kernelmenu:interrupt")')
        lab.ended()
        assert [(cell, name) for cell, name, _ in lab.errors()] == [('live-judge', 'KeyboardInterrupt')]
        first = len(stub.requests)
        assert first < 12
        lab.run_all()
        assert lab.ended() == 'yes' and not lab.errors()
        different = {json.dumps(request, sort_keys=True) for request in stub.requests}
    assert len(different) == 12 and len(stub.requests) <= 12 + 2 # two were under way
    result = json.loads((root/'outputs'/'live_judge'/'result.json').read_text(encoding='utf-8'))
    assert result['evaluators']['rule']['scored'] == 12 and result['evaluators']['rule']['usage']['cached'] >= first - 2
