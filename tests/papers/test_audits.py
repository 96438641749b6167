"All audits in one frame say what the papers' own experiments say."
import json
import os
from pathlib import Path

import pytest

from factlib.papers.audits import AUDITS, all_audits
from factlib.report.audit import STATUSES

real = pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'), reason='FACTLIB_DATA is not set')
EXPERIMENTS = Path(__file__).resolve().parent.parent.parent/'nbs'/'experiments'

@pytest.fixture(scope='module')
def audits(): return all_audits()

def said(experiment, words):
    "The sentence of a stored notebook that holds some words."
    cells = json.loads((EXPERIMENTS/f'{experiment}.ipynb').read_text(encoding='utf-8'))['cells']
    texts = [''.join(o.get('data', {}).get('text/plain', '')) for c in cells for o in c.get('outputs', [])]
    return next(text for text in texts if words in text)

@real
def test_each_paper_is_there_once(audits):
    assert list(dict.fromkeys(audits.paper)) == list(AUDITS) and set(audits.status) <= set(STATUSES)
    assert not audits.duplicated(['paper', 'table', 'cell']).any()

@real
def test_counts_are_those_of_the_experiments(audits):
    known = audits[audits.status != 'no_data']
    count = lambda paper, tables, status: int((known.status[(known.paper == paper) & known.table.isin(tables)]
                                               == status).sum())
    pictures = ['heatmaps', '3.4', 'A.4', 'A.5']
    assert f"{count('JudgeMemo', pictures, 'agrees')} are what the definition gives" in said(
        'judgememo_matrix_analysis', 'printed numbers')
    answers = known[known.paper == 'trutheval'].status.value_counts()
    assert (f"{answers['agrees']} are what their definition gives, {answers['recipe_only']} what another rule gives, "
            f"{answers['differs']} differ") in said('trutheval', 'printed numbers')
