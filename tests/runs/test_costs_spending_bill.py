"What a provider bills and what our ledger says, after kills: six of them here; `python tests/bill.py 100` does more."
import pytest

import bill

@pytest.mark.slow
def test_the_ledger_holds_the_bill_after_kills(tmp_path):
    rows = bill.trials(6, tmp_path, seed=1)
    assert {row['command'] for row in rows} == set(bill.KINDS) and sum(row['kills'] for row in rows) == 6
    assert all(row['sent'] for row in rows) and any(row['answered'] for row in rows)
