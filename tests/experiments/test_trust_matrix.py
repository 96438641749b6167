"The matrix as a user runs it: twice, the second time from what was kept; and what the page opens with."
import json

import pandas as pd
import pytest

from command import factlib, factlib_inside
from factlib.report.tables import read_table
from factlib.runs.execute import MINUTES, find_experiment, main_job, needs_of, why_not
from same_numbers import KEY, disagreements, numbers

@pytest.mark.slow
def test_it_runs_and_runs_again_from_what_was_kept(tmp_path):
    out, options = tmp_path/'out'/'trust_matrix', ('-p', 'dataset', 'holmes_order written_dialogues', '-p', 'n', 6,
                                                   '-p', 'evaluators', 'length,rouge1,rougeL,order_path,word_support')
    first = factlib('run', 'trust_matrix', *options, '--out', out, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    matrix = pd.read_csv(out/'tables'/'matrix.csv').set_index(['benchmark', 'evaluator'])
    # the same words in another order
    assert len(matrix) == 10
    assert matrix.higher['holmes_order', 'length'] == matrix.higher['holmes_order', 'rouge1'] == .5
    assert matrix.higher['holmes_order', 'order_path'] > .5 and set(matrix.loc['holmes_order'].groups) == {6}
    # the small matrix draws the same texts, and has the same numbers of them
    small = factlib_inside('run', 'small_matrix', *options[:6], '--out', tmp_path/'out'/'small_matrix', cwd=tmp_path)
    assert small.returncode == 0, small.stderr
    tables = [(read_table(tmp_path/'out'/name/'tables'/'matrix.csv'), name) for name in ('trust_matrix', 'small_matrix')]
    found = pd.concat([numbers(table, name) for table, name in tables])
    assert disagreements(found) == [] and found.duplicated(KEY).sum() == 10
    before = (out/'tables'/'matrix.csv').read_bytes()
    result, kept = json.loads((out/'result.json').read_text()), {p: p.stat().st_mtime_ns
                                                                 for p in (out/'kept').iterdir()}
    assert len(kept) == 10
    assert result['evaluators']['order_path']['asked'] == matrix.loc['holmes_order'].asked.iloc[0]*7//5 + len(
        pd.read_parquet(out/'judgements.parquet').query("benchmark == 'written_dialogues' and evaluator == 'length'"))
    alarms = pd.read_csv(out/'tables'/'false_alarms.csv')
    assert set(alarms.control) == {'flashback', 'parallel'}
    assert {'figures/matrix.png', 'figures/trust_cost.png', 'tables/advice.csv'} <= set(result['files'])
    assert any(f['text'].startswith('Order: ') and f['cell'] == 'trust-advice' for f in result['findings'])
    assert all(s['caption'] for s in result['shown'])
    again = factlib_inside('run', 'trust_matrix', *options, '--out', out, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert {p: p.stat().st_mtime_ns for p in (out/'kept').iterdir()} == kept
    assert (out/'tables'/'matrix.csv').read_bytes() == before
    page = (tmp_path/'out'/'index.html').read_text(encoding='utf-8')
    assert page.index('<dl>') < page.index(result['question']) < page.index('<figure>') < page.index('<section')
    assert page.index('<section') < page.index('Order: ')

def test_it_is_no_part_of_the_main_job():
    assert needs_of(find_experiment('trust_matrix')) == [MINUTES] and 'by name' in why_not([MINUTES])
    assert 'trust_matrix' in main_job()

def test_wrong_parameters_are_one_sentence(tmp_path):
    done = factlib_inside('run', 'trust_matrix', '-p', 'dataset', 'no_such', '--out', tmp_path/'out', cwd=tmp_path)
    assert done.returncode == 2 and "There is no benchmark 'no_such'" in done.stderr
    assert not (tmp_path/'out'/'result.json').exists()

@pytest.mark.slow
def test_where_nothing_is_here_or_nothing_can_be_scored(tmp_path, monkeypatch):
    monkeypatch.setenv('FACTLIB_DATA', '')
    done = factlib_inside('run', 'trust_matrix', '-p', 'dataset', 'hanna', '-p',
                          'evaluators', 'length', '--out', tmp_path/'out', cwd=tmp_path)
    assert done.returncode == 2 and 'set FACTLIB_DATA' in done.stderr
