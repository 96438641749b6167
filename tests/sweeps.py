"Small notebooks to be swept, and the command in a process of its own; for the tests of `runs`."
import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from factlib.runs.execute import find_experiment
from nbformat import v4

ROOT = Path(__file__).resolve().parent.parent
KERNEL = dict(kernelspec=dict(name='python3', display_name='python3', language='python'))

def notebook(path, parameters, *cells):
    "A notebook with one cell of parameters and others."
    first = v4.new_code_cell(parameters, metadata=dict(tags=['parameters']))
    path.write_text(json.dumps(v4.new_notebook(cells=[first, *map(v4.new_code_cell, cells)], metadata=KERNEL)),
                    encoding='utf-8')
    return path

# Asks `n` things at once, as an experiment does; the answers go into a table in its own folder.
ASKING = """import asyncio, json, os
from pathlib import Path
from factlib.llm.chat import Chat
from factlib.runs.parameters import cache_of
chat = Chat('m', base_url, concurrency=concurrency, cache=cache_of(dict(out=out)), endpoint='ours')
replies = await asyncio.gather(*[chat(f'{name} {i}') for i in range(n)])
Path(os.environ['FACTLIB_PART'], 'table.csv').write_text('\\n'.join(r.text or str(r.absence) for r in replies))
print(chat.stats)"""

def asking(folder, url):
    "A notebook that asks a server."
    return notebook(folder/'asking.ipynb',
                    f'base_url:str = {url!r}\nname:str = "a"\nn:int = 5\nconcurrency:int = 8\nout:str = "out"', ASKING)

# Judges small texts, or shows what was judged, without a key; its table has a row for each evaluator and draw.
JUDGING = ["""import os
import pandas as pd
from factlib.benchmarks.base import Benchmark
from factlib.core.records import Example
from factlib.evaluators.base import get
from factlib.report.results import Experiment
from factlib.runs.judging import evaluate_in, evaluate_models, given_judgements
from factlib.runs.parameters import check_parameters
parameters = check_parameters(globals(), pack=str, judgements=str)
run = Experiment('judging', 'Judging', 'How long?', parameters, given := given_judgements(parameters))
assert not (given and 'OPENAI_API_KEY' in os.environ)
texts = [Example(f'{dataset}-{i}', source=f'{dataset} {i}, {seed}.', target=f'It is {dataset} {i}, {seed}.',
                 truth='true' if i % 2 else 'false') for i in range(6)]
benchmarks = given.benchmarks() if given else [Benchmark(dataset, texts, 'label', '', (), 'true', 'facts')]
by_name = {b.name: b for b in benchmarks}""", """options = dict(pack=pack) if pack else {}
frames = [evaluate_in(get('length'), by_name, run)]
frames += [asked.frame for asked in evaluate_models('consistency', by_name, run, **options)]
rows = pd.concat(frames).groupby(['benchmark', 'evaluator'], sort=False).value.agg(['size', 'count', 'mean'])
run.table(rows.reset_index(), 'scores', 'Scores.', cell='x')
run.finish()"""]

def judging(folder):
    "The experiment that these cells are."
    parameters = ("model:str = ''\nbase_url:str = ''\ndataset:str = 'a'\nn:int = 0\nseed:int = 0\nout:str = 'out'\n"
                  "pack:str = ''\njudgements:str = ''")
    return notebook(folder/'judging.ipynb', parameters, *JUDGING)

def part_of(experiment, cells, folder):
    "Some of an experiment's cells, since all tables and figures take minutes. A source may stand in for a cell's."
    folder.mkdir(exist_ok=True)
    whole = json.loads(find_experiment(experiment).read_text(encoding='utf-8'))
    by_id = {cell['id']: cell for cell in whole['cells']}
    whole['cells'] = [by_id[name] | (dict(source=source) if source else {}) for name, source in cells.items()]
    (folder/f'{experiment}.ipynb').write_text(json.dumps(whole), encoding='utf-8')
    return folder/f'{experiment}.ipynb'

FEW = """from factlib.evaluators.base import get
from factlib.runs.judging import evaluate_in, add_expected
frames = [evaluate_in(get(name), by_name, run) for name in ('length', 'order_path')]"""
# of the experiment montagelie
JUDGES = {'montage-parameters': '', 'montage-check': '', 'montage-here': '', 'montage-judge': FEW, 'montage-models': ''}
TABLES = dict.fromkeys(['montage-auc', 'montage-printed-tables'], '')
END = {'montage-finish': ''}

def grid(folder, said, name='grid.yaml'):
    "The file of a grid."
    (folder/name).write_text(json.dumps(said), encoding='utf-8')
    return folder/name

def started(*arguments, cwd, **environment):
    "The command `factlib sweep`, begun."
    env = {k: v for k, v in os.environ.items()
           if k not in ('FACTLIB_DATA', 'FACTLIB_CACHE', 'OPENAI_API_KEY')} | {'PYTHONPATH': str(ROOT)} | environment
    return subprocess.Popen([sys.executable, '-c', 'from factlib.cli import main; main()',
                             'sweep', *map(str, arguments)], cwd=cwd, env=env, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)

def ended(process, timeout=300):
    "Exit code, the object of the last line of the output, and what stderr said."
    out, err = process.communicate(timeout=timeout)
    last = out.strip().splitlines()[-1] if out.strip() else ''
    return process.returncode, json.loads(last) if last.startswith('{') else {}, err

def sweep(*arguments, cwd, **environment): return ended(started(*arguments, '--json', cwd=cwd, **environment))

def rows(out):
    "The rows of cells.csv, by cell."
    with open(out/'cells.csv', encoding='utf-8', newline='') as f:
        return {row['cell']: row for row in csv.DictReader(f)}

def statuses(out): return {name: row['status'] for name, row in rows(out).items()}

def interrupt(process): os.killpg(process.pid, signal.SIGINT)
