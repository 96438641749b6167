"Exit codes of `factlib trust --gate`: 0 all yes, 1 some no, 3 some not yet, 2 bad input."
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from command import factlib

from factlib.cli import app

def scores(kind, n=200):
    rng = np.random.default_rng(3)
    people = rng.integers(1, 6, n)
    judge = dict(good=np.clip(people + rng.integers(-1, 2, n)*(rng.random(n) < .3), 1, 5), noise=rng.integers(1, 6, n),
                 few=people)[kind]
    frame = pd.DataFrame(dict(id=range(n), human_score=people, gpt4_score=judge))
    return frame if kind != 'few' else frame.iloc[:8]

@pytest.mark.parametrize('kind, code', [('good', 0), ('noise', 1), ('few', 3)])
def test_the_exit_code_of_a_gate(kind, code, tmp_path):
    scores(kind).to_csv(tmp_path/'scores.csv', index=False)
    args = ['trust', str(tmp_path/'scores.csv'), '--use', 'filter', '--out', str(tmp_path/'out')]
    found = CliRunner().invoke(app, [*args, '--gate', '--json'])
    assert found.exit_code == code, found.output
    told = json.loads(found.stdout)
    assert told['gate'] == code and len(told['decisions']) == 1 and told['gate_said']
    assert CliRunner().invoke(app, [*args]).exit_code == 0 # without it as before

def test_bad_input_is_2(tmp_path):
    (tmp_path/'scores.csv').write_text('id,colour\n1,red\n2,blue\n')
    found = factlib('trust', 'scores.csv', '--gate', '--out', 'out', cwd=tmp_path)
    assert found.returncode == 2 and '--judge COLUMN' in found.stderr and not (tmp_path/'out').exists()
