"""A new evaluator and a new benchmark are one notebook each: nothing else is touched, and they stand in the small
matrix."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

EVALUATOR = '''
@register
class Exclamations(Evaluator):
    "Counts exclamation marks."
    name, offline, signature = 'exclamations', True, 'exclamations|v:1'
    def judge(self, example:Example)->Judgement: return self.judgement(example, example.target.count('!'))
'''

BENCHMARK = '''
@benchmark('Two warnings and two remarks', good='warning', needs=())
def warnings(split=None, n=None, seed=0):
    texts = dict(a=('Stop! Now!', 'warning'), b=('Fire!', 'warning'), c=('It rained.', 'remark'), d=('A fox.', 'remark'))
    examples = [Example(id, target=text, truth=truth, group=id) for id, (text, truth) in texts.items()]
    return Benchmark('warnings', examples, 'label', 'Made up for a test.')
'''

def notebook(module, imports, code):
    cells = [('title', 'markdown', f'# {module}\n\n> A toy.'), ('exp', 'code', f'#| default_exp {module}'),
             ('imports', 'code', f'#| export\n{imports}'), ('code', 'code', f'#| export\n{code.strip()}')]
    made = [dict(cell_type=kind, id=f'toy-{id}', metadata={}, source=source)
            | (dict(outputs=[], execution_count=None) if kind == 'code' else {}) for id, kind, source in cells]
    return json.dumps(dict(cells=made, metadata={}, nbformat=4, nbformat_minor=5))

@pytest.mark.slow
def test_a_toy_evaluator_and_a_toy_benchmark_join_the_small_matrix(tmp_path):
    for name in ('nbs', 'factlib', 'data'):
        shutil.copytree(ROOT/name, tmp_path/name, ignore=shutil.ignore_patterns('__pycache__', '.ipynb_checkpoints'))
    for name in ('pyproject.toml', 'settings.ini', 'setup.py', 'README.md'): shutil.copy2(ROOT/name, tmp_path/name)
    (tmp_path/'nbs'/'evaluators'/'exclamations.ipynb').write_text(notebook('evaluators.exclamations',
                                                                           'from factlib.core.records import Example, '
                                                                           'Judgement\nfrom factlib.evaluators.base '
                                                                           'import Evaluator, register', EVALUATOR))
    (tmp_path/'nbs'/'benchmarks'/'warnings.ipynb').write_text(notebook('benchmarks.warnings',
                                                                       'from factlib.benchmarks.base import Benchmark, '
                                                                       'benchmark\nfrom factlib.core.records import '
                                                                       'Example', BENCHMARK))
    env = {k: v for k, v in os.environ.items() if k != 'FACTLIB_DATA'} | {'PYTHONPATH': str(tmp_path)}
    run = lambda *command: subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    exported = run('nbdev-export')
    assert exported.returncode == 0, exported.stderr
    done = run(sys.executable, '-c', 'from factlib.cli import main; main()',
               'run', 'small_matrix', '-p', 'dataset', 'warnings', '--no-page', '--out', 'out')
    assert done.returncode == 0, done.stderr[-2000:]
    import pandas as pd
    matrix = pd.read_csv(tmp_path/'out'/'tables'/'matrix.csv').set_index(['benchmark', 'evaluator'])
    assert matrix.loc[('warnings', 'exclamations'), 'estimate'] == 1
    assert matrix.loc[('warnings', 'exclamations'), 'statistic'] == "AUC of 'warning'"
    assert matrix.loc[('warnings', 'exclamations'), 'asked'] == 4
