"A column of few values as what a judge may know instead of the text, and decisions within its values."
import numpy as np
import pandas as pd
import pytest

from factlib.core.records import BadInput
from factlib.trust.scores import read_scores
from factlib.trust.trust import trust
from factlib.trust.decision import NOT_YET, YES

N = 120

def points(seed):
    return np.random.default_rng(seed).integers(1, 6, N)

@pytest.mark.parametrize('name, values', [
    ('Sprache', ['de', 'en', 'fi']), ('has_context', [True, False]), ('domain', ['legal', 'health']),
    ('pais', ['es', 'mx']), ('is_long', ['yes', 'no']), ('source_dataset', ['cnn', 'xsum', 'qags']),
    ('level', [1, 2, 3])])
def test_a_column_of_few_values_is_a_stratum_and_no_group(name, values):
    people = points(1)
    found = read_scores(pd.DataFrame({name: np.resize(values, N), 'gpt_score': people, 'human_score': points(2)}))
    assert found.strata == (name,) and not found.clustered and found.frame[name].nunique() == len(values)

@pytest.mark.parametrize('name', ['dataset', 'Sprache', 'has_history'])
def test_a_judge_that_knows_the_column_alone_gets_no_yes(name):
    "People give 1 or 2 in the one part and 4 or 5 in the other; the judge tells the parts, and nothing in them."
    rng = np.random.default_rng(0)
    part = np.arange(N) % 2
    people, judge = (3*part + rng.integers(1, 3, N) for _ in range(2))
    found = trust(pd.DataFrame({name: np.where(part == 1, 'one', 'two'), 'human': people, 'gpt': judge}), use='filter')
    assert found.decisions.decision[0] == NOT_YET and name in found.decisions.why[0]
    assert found.decisions.estimate[0] > .9 # pooled it would be one

def test_decisions_for_each_value():
    people = points(1)
    part = np.arange(N) % 2
    swapped = np.array([0, 1, 2, 3, 5, 4])[people] # knows good from bad, and is no copy
    judge = np.where(part == 1, swapped, points(2)) # of the one part alone
    frame = pd.DataFrame(dict(gpt=judge, region=np.where(part == 1, 'nord', 'süd'), human=people))
    found = trust(frame, use='filter', by='region')
    table = found.tables['strata']
    assert set(table.value) == {'nord', 'süd'} and set(table.stratum) == {'region'}
    nord, south = (table[table.value == v].iloc[0] for v in ('nord', 'süd'))
    assert nord.estimate == 1 and nord.n == south.n == N//2
    assert south.estimate < .7
    with pytest.raises(BadInput, match='--by'): trust(frame, by='land')
