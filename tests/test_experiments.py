"The experiments as a user runs them: papermill, the command line, bad input, the page in a browser."
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import recordings
from command import factlib, factlib_inside, files
from factlib.report.tables import read_table

ROOT = Path(__file__).resolve().parent.parent
EXPERIMENTS = sorted((ROOT/'nbs'/'experiments').glob('*.ipynb'))

@pytest.mark.parametrize('notebook', EXPERIMENTS, ids=[p.stem for p in EXPERIMENTS])
def test_all_experiments_have_the_same_leading_parameters(notebook):
    import papermill
    from factlib.runs.parameters import LEADING
    found = papermill.inspect_notebook(str(notebook))
    assert list(found)[:len(LEADING)] == list(LEADING) and all(p['help'] for p in found.values())
    assert {name: found[name]['inferred_type_name']
            for name in LEADING} == {name: kind.__name__ for name, kind in LEADING.items()}

@pytest.fixture(scope='module')
def sweep(tmp_path_factory):
    "The quick sweep on three stories, by the command line, from a folder that is not the checkout."
    here = tmp_path_factory.mktemp('sweep')
    done = factlib('run', 'quick_sweep', '-p', 'n', 3, '--out', here/'out'/'quick_sweep', cwd=here)
    assert done.returncode == 0, done.stderr
    return here/'out'

def test_sweep_writes_what_it_says(sweep):
    out = sweep/'quick_sweep'
    result = json.loads((out/'result.json').read_text())
    assert sorted(result['files'] + ['result.json', 'notebook.ipynb', 'notebook.html']) == files(out)
    book, page = ((out/name).read_text(encoding='utf-8') for name in ('notebook.ipynb', 'notebook.html'))
    for finding in result['findings']: # each links to its cell, as JupyterLab and as a browser understand it
        assert f'(notebook.ipynb#cell-id={finding["cell"]})' in book and f'href="#cell-id={finding["cell"]}"' in page
        assert f'id="cell-id={finding["cell"]}"' in page
    assert '(result.json)' in book and '(../index.html)' in book and 'href="../index.html"' in page
    assert result['parameters']['n'] == 3
    assert set(result['evaluators']) == {'out_of_vocabulary', 'adjacent_similarity', 'length', 'random'}
    assert all(e['asked'] == e['scored'] == 3*2*4 for e in result['evaluators'].values())
    tests = read_table(out/'tables'/'tests.csv')
    assert len(tests) == 4*3*2 and set(tests.scored) == {3}

def test_sweep_numbers_come_from_the_texts(sweep):
    "One delta recomputed from scratch: the share of known words in the first story with and without typos."
    from factlib.benchmarks.samples import background_text, quick_sweep
    from factlib.text.words import WORD, normalise, vocabulary_of
    known = vocabulary_of([background_text()], min_count=2)
    def share(text):
        words = [w for w in WORD.findall(text) if w == w.lower() and w != w.upper()]
        return sum(normalise(w) in known for w in words)/len(words)
    texts = {e.id: e.target for e in quick_sweep(3)[0]}
    deltas = [share(texts[f'holmes-{i:02}/full/41']) - share(texts[f'holmes-{i:02}/full/gold']) for i in (1, 2, 3)]
    tests = read_table(sweep/'quick_sweep'/'tables'/'tests.csv').set_index(['evaluator', 'level', 'variant'])
    assert tests.loc[('out_of_vocabulary', 'full', '41'), 'mean'] == pytest.approx(sum(deltas)/3, abs=1e-12)

def test_sweep_again_gives_the_same_tables_and_leaves_no_old_file(sweep, tmp_path):
    copy = tmp_path/'quick_sweep'
    shutil.copytree(sweep/'quick_sweep', copy)
    old = json.loads((copy/'result.json').read_text())
    (copy/'tables'/'stale.csv').write_text('x')
    (copy/'mine.txt').write_text('kept')
    (copy/'result.json').write_text(json.dumps(old | dict(files=old['files'] + ['tables/stale.csv'])))
    judged = pd.read_parquet(copy/'judgements.parquet')
    timed = {'judgements.parquet', 'index.html'} # they say how long it took
    before = {f: (copy/f).read_bytes() for f in old['files'] if f not in timed}
    done = factlib_inside('run', 'quick_sweep', '-p', 'n', 3, '--out', copy, cwd=tmp_path, whole=True)
    assert done.returncode == 0, done.stderr
    assert {f: (copy/f).read_bytes() for f in before} == before # tables and figures, byte for byte
    # it took another time
    assert set(old['files']) - set(before) == timed
    assert pd.read_parquet(copy/'judgements.parquet').drop(columns='seconds').equals(judged.drop(columns='seconds'))
    assert not (copy/'tables'/'stale.csv').exists() and (copy/'mine.txt').read_text() == 'kept'

def test_ones_own_texts_by_plain_papermill(tmp_path):
    folder = tmp_path/'texts'
    folder.mkdir()
    story = 'The fox went down to the river in the evening and looked for the hen for a long time.'
    for name in ('one', 'two', 'three'):
        (folder/f'{name}.txt').write_text('\n\n'.join(f'{story} It was day {i} of {name}.' for i in range(60)),
                                          encoding='utf-8')
    command = [sys.executable, '-m', 'papermill', str(ROOT/'nbs'/'experiments'/'quick_sweep.ipynb'),
               str(tmp_path/'done.ipynb'), '-p', 'dataset', str(folder),
               '-p', 'n', '0', '-p', 'out', str(tmp_path/'out'),
               '--no-progress-bar']
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | {'PYTHONPATH': str(ROOT)},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    texts = read_table(tmp_path/'out'/'tables'/'texts.csv')
    assert set(texts.texts) == {3}

def test_the_notebooks_on_ones_own_texts(tmp_path):
    """Both experiments on a folder of short texts, where much is refused: they end with results and say what could not
    be made."""
    texts = tmp_path/'texts'
    texts.mkdir()
    for who in ('Ann', 'Bob'):
        (texts/f'{who}.txt').write_text(
            '\n\n'.join((f'On day {i} {who} went to London with the lamp and stayed there, and nobody said anything '
                         f'about it.') for i in range(40)), encoding='utf-8')
    for name, more in {'judgememo_taxonomy': (), 'screening': ('-p', 'kinds', '11 41', '-p',
                                                               'lengths', '300 5000', '-p', 'doses', '1 2')}.items():
        done = factlib_inside('run', name, '-p', 'dataset', texts, *more,
                              '--no-page', '--out', tmp_path/name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    read = lambda name: json.loads((tmp_path/name/'result.json').read_text())
    said = [f['text'] for f in read('screening')['findings']]
    assert any(s.startswith('out_of_vocabulary (fluency): the score falls in over nine of ten texts for ')
               and ' of 2 kinds (' in s and '[41] from dose 1' in s for s in said)
    assert '2 of 12 examples could not be made.' in said
    assert {'tables/table_A.3.csv', 'figures/places.png', 'tables/illustrations.csv', 'figures/figure_3.2.png',
            'tables/table_3.7.csv'} <= set(read('judgememo_taxonomy')['files'])

# The second with a command and a kernel in processes of their own, as a user meets it; the others inside this one.
BAD = [(factlib_inside, ['-p', 'sead', '1'], "no parameter 'sead'"),
       (factlib, ['-p', 'n', '-1'], "n is -1, but it can't be negative"),
       (factlib_inside, ['-p', 'n', 'three'], 'of type int'),
       (factlib_inside, ['-p', 'dataset', 'no-such-folder'], 'There is no file or folder')]

@pytest.mark.parametrize('command, arguments, words', BAD, ids=[a[1] + '=' + a[2] for _, a, _ in BAD])
def test_bad_input_is_one_sentence_and_exit_2(command, arguments, words, tmp_path):
    done = command('run', 'quick_sweep', *arguments, '--out', tmp_path/'out'/'x', cwd=tmp_path)
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith('Error: ') and words in last and 'Traceback' not in done.stderr
    assert files(tmp_path) == []

def test_an_empty_document(tmp_path):
    (tmp_path/'texts').mkdir()
    (tmp_path/'texts'/'a.txt').write_bytes(b' \n')
    done = factlib_inside('run', 'quick_sweep', '-p', 'dataset', tmp_path/'texts',
                          '-p', 'n', 0, '--out', tmp_path/'out', cwd=tmp_path)
    assert done.returncode == 2 and 'left out 1 (empty)' in done.stderr.splitlines()[-1]
    assert files(tmp_path) == ['texts/a.txt']

def test_recordings_without_a_column(tmp_path):
    rows = [('LI', length, v, d, 4, 4) for length in ('2000', 'full') for v in ('gold', '43') for d in 'ab']
    home = recordings.write(tmp_path/'data', vanilla=rows, judgememo=rows)
    path = home/'judgememo'/'responses_judgememo.parquet'
    pd.read_parquet(path).drop(columns='overlap').to_parquet(path)
    done = factlib_inside('run', 'judgememo', '--out', tmp_path/'out'/'x', cwd=tmp_path, data=home)
    assert done.returncode == 2 and "lacks the column 'overlap'" in done.stderr.splitlines()[-1]
    assert not (tmp_path/'out'/'x').exists()

def test_no_recordings(tmp_path):
    done = factlib_inside('run', 'judgememo', '--out', tmp_path/'x', cwd=tmp_path)
    assert done.returncode == 2 and 'set FACTLIB_DATA' in done.stderr.splitlines()[-1]
    assert files(tmp_path) == []

def test_an_out_that_is_no_folder(tmp_path):
    (tmp_path/'taken').write_text('x')
    for out in ('taken', 'taken/x'):
        done = factlib_inside('run', 'quick_sweep', '--out', tmp_path/out, cwd=tmp_path)
        assert done.returncode == 2 and 'name a' in done.stderr.splitlines()[-1] and files(tmp_path) == ['taken']
    assert factlib_inside('reproduce', tmp_path/'taken', cwd=tmp_path).returncode == 2

def test_failed_runs_leave_the_old_result_and_show_the_notebook(tmp_path):
    import nbformat
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("out: str = ''", metadata=dict(tags=['parameters'])),
                                         nbformat.v4.new_code_cell('1/0')],
                                  metadata=dict(kernelspec=dict(name='python3',
                                                                display_name='Python', language='python')))
    failing = nb.cells.pop()
    nbformat.write(nb, tmp_path/'mine.ipynb')
    assert factlib('run', tmp_path/'mine.ipynb', '--out', tmp_path/'out', cwd=tmp_path).returncode == 0
    before = {name: (tmp_path/name).read_bytes() for name in files(tmp_path)}
    nb.cells.append(failing)
    nbformat.write(nb, tmp_path/'mine.ipynb')
    done = factlib('run', tmp_path/'mine.ipynb', '--out', tmp_path/'out', cwd=tmp_path)
    assert done.returncode == 1 and 'ZeroDivisionError' in done.stderr and 'out.failed.ipynb' in done.stderr
    assert set(files(tmp_path)) == {*before, 'out.failed.ipynb'} and any(name.startswith('out/') for name in before)
    assert all((tmp_path/name).read_bytes() == was for name, was in before.items() if name.startswith('out/'))

def test_commands_teach():
    shown = factlib('--help', cwd=ROOT)
    assert shown.returncode == 0
    assert all(word in shown.stdout for word in ('list', 'run', 'page', 'reproduce', 'FACTLIB_DATA'))
    assert 'quick_sweep' in factlib_inside('list', cwd=ROOT).stdout
    assert 'Another seed' in factlib_inside('list', 'quick_sweep', cwd=ROOT).stdout
    wrong = factlib_inside('run', 'no_such', cwd=ROOT)
    assert wrong.returncode == 2 and 'quick_sweep' in wrong.stderr
    assert factlib_inside('page', 'no-such-folder', cwd=ROOT).returncode == 2

# The main job, run once for all that look at it

def test_every_experiment_that_can_run_here_does(reproduced):
    "And those that can't are named on the page, with what they lack."
    from factlib.papers.coverage import unmade
    from factlib.runs.execute import main_job, needs_of, why_not
    here = {name for name, notebook in main_job().items() if not why_not(needs_of(notebook))}
    assert {p.parent.name for p in reproduced.glob('*/result.json')} == here >= {
        'quick_sweep', 'judgememo_taxonomy', 'screening', 'small_matrix', 'montagelie'}
    page = (reproduced/'index.html').read_text(encoding='utf-8')
    assert all(f'<section id="{name}">' in page for name in here) and all(name in page for name in main_job())
    for name in here:
        result = json.loads((reproduced/name/'result.json').read_text())
        assert result['findings'] and not any('nan' in f['text'].split() for f in result['findings']), name
        assert sorted([*result['files'], 'result.json', 'notebook.ipynb', 'notebook.html']) == files(reproduced/name)
    assert [said for name in here for said in unmade(name, reproduced/name)] == []

CHROME = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')

@pytest.mark.skipif(not CHROME or not shutil.which('chromedriver'), reason='no Chromium with ChromeDriver is installed')
def test_the_page_in_a_browser(sweep):
    """The page works from the disk: pictures drawn, nothing asked of the network, links leading to the cell that they
    name."""
    from selenium import webdriver
    options = webdriver.ChromeOptions()
    options.binary_location = CHROME
    for a in ('--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run',
              '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-quic'):
        options.add_argument(a)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which('chromedriver')))
    try:
        driver.get((sweep/'index.html').as_uri())
        # two figures, one of them folded away; a page of one experiment has no other on top
        assert driver.execute_script(
            'return [...document.images].every(i => i.complete && i.naturalWidth > 300) && document.images.length') == 2
        assert driver.execute_script('return document.querySelectorAll("details img").length') == 1
        assert driver.execute_script(
            "return performance.getEntriesByType('resource').filter(r => !r.name.startsWith('data:')).length") == 0
        assert driver.execute_script('return document.documentElement.scrollWidth <= window.innerWidth')
        links = driver.execute_script(
            'return [...document.querySelectorAll("a")].map(a => a.href).filter(h => h.includes("#cell-id="))')
        assert len(links) >= 6
        for link in dict.fromkeys(links):
            driver.get(link)
            assert driver.execute_script(
                'return document.getElementById(decodeURIComponent(location.hash.slice(1))) !== null'), link
    finally: driver.quit()
