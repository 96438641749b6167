"""German, Arabic and Chinese folders through `factlib build` and through every experiment that takes one: results
without English damage, or one sentence."""
import json
import re
import sys
from pathlib import Path

import pandas as pd
import pytest
from command import factlib_inside
from factlib.benchmarks.coflueval import load_built
from factlib.llm.stub import StubServer
from factlib.runs.execute import experiments
from obliging_server import obliging

sys.path.insert(0, str(Path(__file__).resolve().parent.parent/'perturb'))
from test_quality_languages import BY_MODEL, ENGLISH_RULES, TEXTS

TAKES_FOLDER = [name for name, notebook in experiments().items()
                if re.search(r'dataset: str = [^#]*#[^\\n]*older', notebook.read_text(encoding='utf-8'))]

@pytest.fixture(params=TEXTS)
def folder(request, tmp_path):
    (tmp_path/'texts').mkdir()
    for name in 'ab': (tmp_path/f'texts/{name}.txt').write_text(f'{TEXTS[request.param]}\n\n{name}', encoding='utf-8')
    return tmp_path/'texts'

def test_who_takes_a_folder():
    assert set(TAKES_FOLDER) >= {'judgememo_live', 'live_judge', 'quick_sweep', 'screening', 'judgememo_taxonomy'}

def test_build_with_all_kinds(folder):
    out = folder.parent/'built'
    done = factlib_inside('build', folder, '--out', out, '--language',
                          '', '--kinds', 'all', '--lengths', 'full', '--workers', '1', cwd=folder.parent)
    assert done.returncode == 0 and 'Traceback' not in done.stderr, done.stderr
    examples = load_built(out).benchmark.examples
    assert {'gold'} < {e.variant for e in examples} and not {e.variant for e in examples} & (ENGLISH_RULES | BY_MODEL)
    assert 'not made' in done.stdout and 'language' in done.stdout
    letters = set(''.join(p.read_text(encoding='utf-8') for p in folder.iterdir()))
    assert all(set(e.target) <= letters for e in examples if e.variant != '41')

@pytest.mark.slow
@pytest.mark.parametrize('name', TAKES_FOLDER)
def test_experiments(folder, name):
    out, cwd = folder.parent/'out', folder.parent
    with StubServer(obliging) as server:
        asks = ['-p', 'model', 'stub', '-p', 'base_url',
                server.base_url] if name in ('judgememo_live', 'live_judge') else []
        few = dict(live_judge=['-p', 'length', '0'],
                   judgememo_live=['-p', 'judges', 'vanilla', '-p', 'lengths', 'full'],
                   screening=['-p', 'lengths', 'full', '-p', 'doses', '1']).get(name, [])
        done = factlib_inside('run', name, '--no-page', '-p', 'dataset',
                              folder, '-p', 'n', '0', *asks, *few, '--out', out, cwd=cwd)
    assert 'Traceback' not in done.stderr
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1]
        assert done.returncode == 2 and last.startswith('Error: ') and last.count('. ') <= 1, done.stderr[-2000:]
        return
    assert json.loads((out/'result.json').read_text(encoding='utf-8'))['findings']
    scored = out/'judgements.parquet'
    if scored.exists(): assert not set(pd.read_parquet(scored).variant) & (ENGLISH_RULES | BY_MODEL)
