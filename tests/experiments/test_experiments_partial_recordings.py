"""Every experiment that reads the thesis's recordings, on an import of a part of the repository: results, or one
sentence."""
import json
import tarfile
from pathlib import Path

import pandas as pd
import pytest
from command import factlib_inside
from factlib.core.files import data_home
from factlib.papers.judgememo.importer import import_recordings
from factlib.runs.execute import experiments, needs_of

CLONE = (data_home() or Path('nowhere'))/'judgememo_clone/clone_cut.tar.gz'
READERS = [name for name, notebook in experiments().items()
           if any(need.startswith('judgememo/') for need in needs_of(notebook))]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CLONE.is_file(),
                                                   reason='FACTLIB_DATA has no cut of the repository')]

@pytest.fixture(scope='module')
def part(tmp_path_factory):
    folder = tmp_path_factory.mktemp('part')
    with tarfile.open(CLONE) as archive: archive.extractall(folder/'clone', filter='data')
    import_recordings(folder/'clone/JudgeMemo', folder/'data')
    return folder/'data'

@pytest.fixture(scope='module')
def no_gold(part, tmp_path_factory):
    "The same without any judgement of an untouched long text."
    folder = tmp_path_factory.mktemp('no_gold')/'judgememo'
    folder.mkdir()
    for path in (part/'judgememo').glob('*.parquet'):
        table = pd.read_parquet(path)
        if path.stem.startswith('responses'): table = table[~((table.variant == 'gold') & (table.length == 'full'))]
        table.to_parquet(folder/path.name)
    return folder.parent

def check(name, data, out, *more):
    done = factlib_inside('run', name, '--no-page', '--out', out, *more, cwd=out.parent, data=data)
    assert 'Traceback' not in done.stderr
    if done.returncode == 0:
        result = json.loads((out/'result.json').read_text(encoding='utf-8'))
        assert result['findings'] and not any(' nan' in f['text'] for f in result['findings']), result['findings']
    else:
        last = done.stderr.strip().splitlines()[-1]
        assert done.returncode == 2 and last.startswith('Error: ') and not out.exists(), done.stderr[-2000:]

def test_who_reads_them(): assert len(READERS) >= 10

# What is missing is missing for each evaluator alike: the two that take seconds are run by the main job.
LIGHT = dict(offline_against_recorded=['-p', 'tagger', 'false', '-p', 'embeddings', 'false'])

@pytest.mark.parametrize('name', READERS)
def test_a_part_of_the_repository(name, part, tmp_path): check(name, part, tmp_path/'out', *LIGHT.get(name, []))

@pytest.mark.parametrize('name', READERS)
def test_without_an_untouched_long_text(name, no_gold, tmp_path):
    check(name, no_gold, tmp_path/'out', *LIGHT.get(name, []))
