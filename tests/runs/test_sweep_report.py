"""All cells of a sweep together: whoever judged them, whenever; and what is said where they can't be shown."""
import io
import json
import re
import shlex
import shutil
from contextlib import contextmanager, redirect_stderr
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import pytest
from papermill.engines import papermill_engines

from factlib.core.files import shipped
from factlib.llm.stub import StubServer
from factlib.runs.execute import run_cell
from factlib.runs.grid import load_grid
from factlib.runs.sweep import Executor, run_sweep
from factlib.runs.sweep_report import exit_code, gather_cells, summary_lines
from factlib.runs.workers import arrive
from command import factlib_inside, shell_engine
from sweeps import grid, judging, notebook, statuses

KEY = 'sk-the-real-key'

def answer(request):
    "A score by the number of the text: 1 or 4; `keen` gives 2 or 5; `shy` refuses every third."
    i = int(re.findall(r'It is \w+ (\d), \d', '\n'.join(m['content'] for m in request['messages']))[-1])
    if request['model'] == 'shy' and i % 3 == 0: return 'I can\'t help with that.'
    return str(1 + i % 2*3 + (request['model'] == 'keen'))

@pytest.fixture
def asked(tmp_path, monkeypatch):
    "A server, in a folder with an experiment that asks it; `write(models, ...)` is a grid of two data sets and seeds."
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv('FACTLIB_CACHE', raising=False)
    monkeypatch.setenv('OPENAI_API_KEY', KEY)
    judging(tmp_path)
    with StubServer(answer, key=KEY) as server:
        def write(models, more=(), **axes):
            said = dict(experiment='judging.ipynb', parameters=dict(base_url=server.base_url),
                        grid=dict(model=models) | (axes or dict(dataset=['a', 'b'], seed=[0, 1])))
            return grid(tmp_path, said | dict(more))
        server.write = write
        yield server

def swept(file, **options):
    "A sweep in this process, its cells too."
    with redirect_stderr(io.StringIO()), patch.dict(papermill_engines._engines, {None: shell_engine()}):
        return run_sweep(load_grid(file), Path('swept'), **dict(together=gather_cells) | options)

def command(*arguments): return factlib_inside(*arguments, cwd=Path.cwd())

def shown(): return pd.read_csv('swept/all/tables/scores.csv').set_index(['benchmark', 'evaluator'])

def check_shown():
    """The table of all, by other code on what each cell has judged: a row for each model, data set and seed, with its
    own n; and each judgement once."""
    table, judged = shown(), pd.read_parquet('swept/all/judgements.parquet')
    rows = {}
    for name, status in statuses(Path('swept')).items():
        if status not in ('done', 'kept'): continue
        cell = pd.read_parquet(Path('swept')/name/'judgements.parquet')
        for (evaluator, dataset, seed), own in cell.groupby(['evaluator', 'benchmark', 'seed']):
            rows[f'{dataset}, seed {seed}', evaluator] = len(own), own.value.count(), own.value.mean()
    assert {key: tuple(row) for key, row in table[['size', 'count', 'mean']].iterrows()} == rows
    assert len(judged) == 6*len(table)
    assert not judged.duplicated(['benchmark', 'seed', 'evaluator', 'example_id']).any()

def test_all_cells_together_stopped_gone_on_and_grown(asked):
    "Three models, two data sets, two seeds; one refuses a third. Stopped by a limit, gone on with, grown."
    first = swept(asked.write(['m', 'shy', 'keen'], dict(limits=dict(requests=20))))
    assert first['limit'] and first['done'] == 2 and first['shown'] == 'swept/all/index.html'
    assert list(shown().index.get_level_values('benchmark').unique()) == ['a, seed 0', 'a, seed 1'] # what there is
    done = command('sweep', asked.write(['m', 'shy', 'keen']), '--out', 'swept')
    assert done.returncode == 0 and 'All cells together: swept/all/index.html' in done.stdout
    check_shown()
    table = shown()
    assert len(table) == 16 # two data sets, two seeds; three models and an evaluator that asks none
    assert tuple(table.loc['b, seed 1', 'consistency, shy'][['size', 'count']]) == (6, 4)
    means = table['mean']['a, seed 0']
    assert (means['consistency, keen'], means['consistency, m']) == (3.5, 2.5)
    assert 'href="./all/index.html"' in Path('swept/index.html').read_text()
    made = Path('swept/all/result.json').stat().st_mtime_ns
    same = swept(asked.write(['m', 'shy', 'keen']))
    assert same['kept'] == 12 and same['shown'] and Path('swept/all/result.json').stat().st_mtime_ns == made
    late = dict(include=[dict(model='late', dataset='b', seed=1)])
    grown = swept(asked.write(['m', 'shy', 'keen'], late))
    assert (grown['kept'], grown['done']) == (12, 1)
    check_shown()
    assert len(shown()) == 17
    requests = len(asked.requests)
    assert requests == len({json.dumps(request, sort_keys=True) for request in asked.requests}) # nothing twice
    again = command('gather', 'swept', '--trust-notebook')
    assert again.returncode == 0 and again.stdout.endswith('Page: swept/all/index.html\n')
    assert 'Scores: ' in again.stdout and len(asked.requests) == requests
    fewer = swept(asked.write(['shy', 'm'], dataset=['b'], seed=[1])) # a smaller grid shows its own cells
    assert fewer['kept'] == 2 and list(shown().index) == [('b', 'length'), ('b', 'consistency, shy'),
                                                          ('b', 'consistency, m')]

@contextmanager
def elsewhere(cells):
    "Workers in folders of their own: they bring the notebook along, and what they made comes back as an archive."
    def run(jobs, stop):
        for job in jobs:
            files = {'judging.ipynb': Path(job.notebook).read_bytes()}
            packed = replace(job, notebook='judging.ipynb', files=files)
            outcome = run_cell(packed)
            arrive(outcome.archive, Path(job.out))
            yield job, outcome
    yield Executor(run)

def test_what_workers_elsewhere_made_counts_and_nothing_of_the_users_is_lost(asked):
    "A file of the user's where `all` belongs: the cells are kept, the end says it; moved away, `gather` does it."
    file = asked.write(['m', 'keen'], dataset=['a'], seed=[0])
    with patch('factlib.runs.sweep_report.run_cell', side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        swept(file, workers=elsewhere) # ended while they were shown
    assert set(statuses(Path('swept')).values()) == {'done'} and not Path('swept/all').exists()
    mine = Path('swept/all/index.html')
    mine.parent.mkdir()
    mine.write_text('mine')
    ended = swept(file)
    lines = summary_lines(ended, Path('swept'))
    assert ended['kept'] == 2 and ended['show_failed'] and exit_code(ended) == 1 and mine.read_text() == 'mine'
    (command_line,) = re.findall('`(factlib gather .*?)` tries again', '\n'.join(lines))
    refused = command(*shlex.split(command_line)[1:])
    assert refused.returncode == 1 and 'index.html' in refused.stderr and mine.read_text() == 'mine'
    shutil.rmtree(mine.parent)
    assert command(*shlex.split(command_line)[1:]).returncode == 0
    assert list(shown()['mean']['a']) == [shown()['mean']['a', 'length'], 2.5, 3.5]

def test_another_prompt_is_told_apart_and_all_is_copied(asked):
    "Judgements by two prompts are two rows. `--to` has all of them together, and a user's file there is left alone."
    Path('pack').mkdir()
    text = shipped('data/prompts/consistency.jinja').read_text(encoding='utf-8')
    Path('pack/consistency.jinja').write_text(text.replace('Style does not count', 'Style counts'))
    file = asked.write(['m'], pack=['', 'pack'])
    Path('copies/all').mkdir(parents=True)
    Path('copies/all/mine.txt').touch()
    refused = command('sweep', file, '--out', 'swept', '--to', 'copies')
    assert refused.returncode == 2 and 'copies/all/mine.txt is there' in refused.stderr and not asked.requests
    Path('copies/all/mine.txt').unlink()
    done = command('sweep', file, '--out', 'swept', '--to', 'copies')
    assert done.returncode == 0, done.stderr
    labels = [label for _, label in shown().index]
    assert len(labels) == 3 and all(re.fullmatch(r'consistency, m \[prompt:consistency/1/\w+\]', x) for x in labels[1:])
    assert 'was not judged in the same way everywhere' in Path('swept/all/result.json').read_text()
    for name in ('index.html', 'all/tables/scores.csv', 'all/result.json'):
        assert Path('copies', name).read_bytes() == Path('swept', name).read_bytes()

def test_who_cant_show_says_so(tmp_path, monkeypatch):
    "An experiment without the parameter, a sweep without judgements, a folder that is none."
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv('FACTLIB_CACHE', raising=False)
    notebook(tmp_path/'plain.ipynb', 'x:int = 1', 'x')
    file = grid(tmp_path, dict(experiment='plain.ipynb', grid=dict(x=[1])))
    done = command('sweep', file, '--out', 'swept')
    assert done.returncode == 0 and 'plain shows each cell by itself: it has no parameter judgements' in done.stdout
    for folder, why in (('swept', 'plain shows each cell by itself'), ('nowhere', 'is no folder of a sweep')):
        told = command('gather', folder, '--trust-notebook')
        assert told.returncode == 2 and why in told.stderr and told.stderr.count('\n') == 1
    assert not Path('swept/all').exists() and not Path('nowhere').exists()
    notebook(tmp_path/'plain.ipynb', 'x:int = 1\njudgements:str = ""', 'x')
    ended = swept(file)
    assert 'No finished cell' in ended['not_shown'] and exit_code(ended) == 0
    Path('my sweep').mkdir()
    over = run_sweep(load_grid(file), Path('my sweep'), deadline=1e-9, together=gather_cells)
    assert exit_code(over) == 3 and not over['shown']
    assert "`factlib gather 'my sweep' --trust-notebook` does that" in '\n'.join(summary_lines(over, Path('my sweep')))

SENT = """import pathlib
pathlib.Path('ran').touch()"""

def sent(folder, **said):
    "A folder of a finished sweep that somebody else made, with a notebook in it."
    (folder/'.sweep').mkdir(parents=True)
    (folder/'a').mkdir()
    notebook(folder/'.sweep/asking.ipynb', "judgements:str = ''\nout:str = 'x'", SENT)
    (folder/'.sweep/sweep.json').write_text(json.dumps(dict(cells=['a']) | said))
    (folder/'cells.csv').write_text('cell,status\na,done\n')
    pd.DataFrame(dict(x=[1])).to_parquet(folder/'a/judgements.parquet')

@pytest.mark.parametrize('said', [
    dict(experiment='quick_sweep', notebook='swept/.sweep/asking.ipynb'),
    dict(experiment='asking', notebook='swept/.sweep/asking.ipynb', sha256='0'*64),
    dict(experiment='swept/.sweep/asking.ipynb'),
    dict(experiment=['swept/.sweep/asking.ipynb'], notebook=dict(a=1)),
    dict(experiment='../swept/.sweep/asking', notebook='/nowhere.ipynb')])
def test_a_folder_that_was_sent_names_no_code(said, tmp_path, monkeypatch):
    "Also not by a relative path, by the name of an experiment of ours, or in the place of a name."
    monkeypatch.chdir(tmp_path)
    sent(tmp_path/'swept', **said)
    told = command('gather', 'swept')
    assert told.returncode == 2 and '--trust-notebook' in told.stderr and told.stderr.count('\n') == 1
    assert not Path('ran').exists() and not Path('swept/all').exists()

def test_a_notebook_that_is_trusted_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sent(tmp_path/'swept', experiment='asking', notebook='swept/.sweep/asking.ipynb')
    with patch.dict(papermill_engines._engines, {None: shell_engine()}): command('gather', 'swept', '--trust-notebook')
    assert Path('ran').exists()

def test_an_experiment_of_ours_is_taken_by_name_and_digest(tmp_path):
    from factlib.core.records import BadInput
    from factlib.runs.execute import experiments
    from factlib.runs.provenance import notebook_digest
    from factlib.runs.sweep import sweep_notebook
    ours = experiments()['live_judge']
    digest = notebook_digest(ours)[0]
    elsewhere = dict(notebook='/nowhere.ipynb')
    same_ones = [dict(sha256=digest), elsewhere | dict(sha256=digest), elsewhere, dict(notebook=str(ours))]
    for n, said in enumerate([*same_ones, elsewhere | dict(sha256='0'*64)]):
        sent(tmp_path/str(n), experiment='live_judge', **said)
        if said in same_ones: assert sweep_notebook(tmp_path/str(n)) == ours
        else:
            with pytest.raises(BadInput, match='trust'): sweep_notebook(tmp_path/str(n))
