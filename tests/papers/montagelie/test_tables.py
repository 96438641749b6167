"The audit of MontageLie's print, by hand."
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from factlib.core.records import BadInput
from factlib.papers.montagelie.tables import best_cells, claims, hanley_mcneil, headline, montagelie_audit
from factlib.papers.montagelie.tables import nearest_share, table_3
from factlib.report.published import published

def test_the_print():
    tables = published('montagelie')
    assert {name: len(t.cells) for name, t in tables.items()} == {'1': 9, '2': 20,
                                                                  '3': 85, '4': 15, '3.2.2': 5, '4.3': 1, '5.3': 1}
    assert [tables['4'].cells[f'DoveScore|{d}'] for d in ('easy', 'medium', 'hard',
                                                          'extreme', 'mean')] == [69.06, 68.27, 65.80, 57.87, 65.25]
    assert table_3().loc[('coarse', 'qwen-3-32b')].tolist() == [65.80, 65.80, 63.13, 59.24, 63.49]
    assert tables['3.2.2'].decimals == 1

def test_audit():
    found = montagelie_audit().set_index(['table', 'cell'])
    assert found.status.value_counts().to_dict() == {'no_data': 80, 'agrees': 52, 'recipe_only': 4}
    assert found.by_definition['4', 'coarse|mean'] == pytest.approx((68.77 + 66.39 + 63.17 + 59.24)/4)
    assert found.by_recipe['4', 'coarse|mean'] == 64.23
    assert found.by_definition['4', 'fine|mean'] == pytest.approx((56.54 + 56.89 + 56.82 + 56.30)/4)
    assert found.by_recipe['4', 'fine|mean'] == 56.63
    assert found.by_definition['1', 'instances|all'] == 1303
    assert found.by_definition['4.3', 'gpt-4o-mini minus FactScore'] == pytest.approx(13.78)
    assert found.note['3.2.2', 'agreement|coherence'] and not found.note['3.2.2', 'agreement|structural variation']
    assert best_cells()['coarse|extreme'].definition == 59.24

def test_shares():
    assert nearest_share(33, 3) == pytest.approx(100/3) and nearest_share(0, 7) == 0 and nearest_share(100, 7) == 100
    with pytest.raises(BadInput): nearest_share(50, 0)

def test_claims():
    assert claims().against.tolist() == ['gpt-4o-mini easy: 68.77', '', 'qwen-3-1.7b medium: 51.21', 'extreme: -1.37']

def test_error_of_an_auc_by_simulation():
    """Exponential scores: the spread of AUCs of many samples, for one set of lies and for the mean of four sets with
    the same positives."""
    rng, n = np.random.default_rng(0), 60
    def one(sets):
        pos = rng.exponential(2, n)
        return np.mean([roc_auc_score([1]*n + [0]*n, np.r_[pos, rng.exponential(1, n)]) for _ in range(sets)])
    for sets in (1, 4):
        spread = np.std([one(sets) for _ in range(300)])
        assert hanley_mcneil(2/3, n, n, sets) == pytest.approx(spread, rel=.13) # P(2 Exp > Exp) = 2/3
    assert hanley_mcneil(2/3, n, n, 4) < hanley_mcneil(2/3, n, n)

def test_headline():
    first = headline().iloc[0]
    assert first.points == pytest.approx(1.02) and 1.0 < first.error_high < 1.1
    assert .85 < first.error_low < first.error_high
    with pytest.raises(BadInput): hanley_mcneil(1, 3, 3)
