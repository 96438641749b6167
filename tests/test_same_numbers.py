"One number everywhere: no two tables give the same evaluator, benchmark and metric two numbers without saying why."
import re

import pandas as pd
import pytest

from factlib.metaeval.matrix import matrix_columns, small_matrix, trust_matrix
from factlib.metaeval.truth import together
from explained import counted, estimates
from same_numbers import KEY, disagreements, found_in, numbers, tables_of, unsaid

ROW = dict(evaluator='dovescore', benchmark='holmes_order', estimand='mean of four', draw='12 groups, seed 0',
           scored=60, groups=12, auc=.79)

def compared(*rows):
    return disagreements(pd.concat([numbers(pd.DataFrame([row]), f'table {i}') for i, row in enumerate(rows)]))

def test_a_planted_difference_is_found():
    assert compared(ROW, ROW) == [] and compared(ROW, ROW | dict(auc=.79 + 1e-12)) == []
    said, = compared(ROW, ROW | dict(auc=.84))
    assert said == ('dovescore on holmes_order (mean of four, 12 groups, seed 0, 60 scored): table 0: auc 0.7900; '
                    'table 1: auc 0.8400')
    assert len(compared(ROW, ROW | dict(part='value', auc=.84))) == 1 # it is meant where no part is named

@pytest.mark.parametrize('explaining', [dict(draw='6 groups, seed 0'), dict(estimand='within groups'), dict(scored=59),
                                        dict(part='S_EO'), dict(difficulty='easy'),
                                        dict(variant='paraphrase'), dict(evaluator='rougeL'), dict(benchmark='holmes')],
                         ids=lambda column: next(iter(column)))
def test_a_column_explains_a_difference(explaining):
    assert compared(ROW, ROW | explaining | dict(auc=.64)) == []

def test_the_same_statistic_is_known_under_its_several_columns():
    "The matrices say it in two columns, correlations in one each, accuracies in percent or as shares."
    said = {k: ROW[k] for k in ('evaluator', 'benchmark', 'draw', 'scored', 'groups')}
    small = said | dict(estimate=.3, estimand=together('kendall'))
    assert len(compared(small, said | dict(own=.4, statistic='kendall'))) == 1
    assert len(compared(small, said | dict(kendall=.4, spearman=.5, estimand='all texts together'))) == 1
    assert compared(small, said | dict(kendall=.4, estimand='within each group, then the mean')) == []
    assert len(compared(said | dict(accuracy=80.), said | dict(accuracy=.9))) == 1
    assert compared(said | dict(accuracy=80.), said | dict(accuracy=.8)) == []

def test_a_table_that_does_not_say_enough_is_told_so():
    bare = pd.DataFrame([dict(evaluator='dovescore', auc=.79)])
    assert unsaid(bare) == ['benchmark', 'draw', 'scored', 'groups', 'estimand'] and unsaid(pd.DataFrame([ROW])) == []
    assert unsaid(pd.DataFrame([dict(evaluator='dovescore', asked=3)])) == [] # no number of its quality

def test_the_two_matrices_have_one_number():
    "The small matrix's statistic is the big one's own, on labels, scores, and with controls about."
    from factlib.benchmarks.base import load
    from factlib.evaluators.base import evaluate, get
    benchmarks = [load('holmes_order', n=3), load('written_dialogues', n=6)]
    assert any(e.variant == 'flashback' for e in benchmarks[0])
    judged = pd.concat([evaluate(get(name), b.examples, progress=False).assign(benchmark=b.name) for b in benchmarks
                        for name in ('length', 'rougeL', 'word_support')], ignore_index=True)
    small, big = small_matrix(judged, benchmarks), trust_matrix(judged, matrix_columns(judged, benchmarks)[0])
    found = pd.concat([numbers(t.assign(draw='one'), name) for name, t in (('small', small), ('big', big))])
    assert disagreements(found) == [] and found.duplicated(KEY).sum() == 6

# Every estimate has an interval, a bound, or a word why not

def test_an_estimate_without_interval_and_reason_is_found():
    nothing = float('nan')
    table = pd.DataFrame(dict(auc=[.8, .9, .7, nothing], ci_low=[.7, nothing, nothing, nothing],
                              ci_high=[.9, nothing, nothing, nothing], note=['', '', 'one group', '']))
    assert estimates(table) == [('auc', 'ci_low', 'ci_high')] and counted(table) == (3, ['row 1: auc 0.9'])
    bound = pd.DataFrame({'kappa': [1.], 'kappa, low': [.4], 'kappa, high': [None], 'worst_low': [0.],
                          'worst_high': [1.]})
    assert counted(bound) == (1, []) and counted(bound.assign(**{'kappa, low': None})) == (1, ['row 0: kappa 1.0'])

@pytest.mark.slow
def test_all_estimates_of_the_main_job_have_an_interval_or_a_reason(reproduced):
    tables = tables_of(reproduced)
    if (name := 'trutheval/section_4') in tables: # what power a test has is computed, not estimated
        tables[name] = tables[name][~tables[name].statistic.str.startswith('power')]
    found = {name: counted(table) for name, table in tables.items()}
    assert {name: lacks for name, (_, lacks) in found.items() if lacks} == {}
    assert sum(n for n, _ in found.values()) > 1000

# Of tables that are not in these terms, why not
OTHERWISE = {'vista/claim_labels': 'of claims, not of turns', 'trutheval/uniformity': 'of losses, one a question'}

@pytest.mark.slow
def test_all_tables_of_the_main_job_have_one_number(reproduced):
    """Each says what it estimates, of which draw and how many items; where two say the same, the number is the same. What
    the paper prints (`table_3`, `section_5.3`) has the paper's columns."""
    tables = {name: table for name, table in tables_of(reproduced).items()
              if not re.search(r'/(table|section|figure)_[0-9A-Z]', name) and name not in OTHERWISE}
    assert {name: lacks for name, table in tables.items() if (lacks := unsaid(table))} == {}
    found = pd.concat([numbers(table, name) for name, table in tables.items()])
    assert disagreements(found) == []
    assert set(found['where'].str.split('/').str[0]) >= {'small_matrix', 'montagelie', 'vista'}
    assert found.draw.ne('').all()
