"""StorySumm's printed results: the measures by hand and by scikit-learn's formulas, and all 84 cells from the recorded
verdicts."""
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from factlib.benchmarks.narrative import storysumm_examples, storysumm_recorded
from factlib.core.files import data_home
from factlib.core.records import BadInput
from factlib.evaluators.base import evaluate
from factlib.papers.storysumm.tables import (EVALUATORS, TABLES, RecordedVerdict, comparable, printed_table,
                                             results_table, storysumm_audit, tuned_threshold)
from factlib.papers.storysumm.tables import verdicts
from factlib.report.published import published

@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=30), st.integers(2, 60))
@settings(max_examples=100, deadline=None)
def test_the_threshold_is_the_first_of_the_best(pairs, steps):
    values, labels = [x for x, _ in pairs], [int(y) for _, y in pairs]
    if len(set(labels)) < 2:
        with pytest.raises(BadInput): tuned_threshold(values, labels, steps)
        return
    def balanced(t):
        hits = [[(x >= t) == y for x, y in pairs if y == which] for which in (True, False)]
        return sum(sum(h)/len(h) for h in hits)/2
    found, grid = tuned_threshold(values, labels, steps), np.linspace(0, 1, steps)
    best = max(balanced(t) for t in grid)
    assert abs(balanced(found) - best) < 1e-12 and found == next(t for t in grid if abs(balanced(t) - best) < 1e-12)

def recorded():
    "Eight summaries, four of val; `p` gives probabilities, `v` verdicts."
    faithful = [1, 1, 0, 0, 1, 1, 0, 0]
    frame = pd.DataFrame(dict(example_id=range(8), group=list('aabbccdd'), faithful=faithful,
                              difficulty=[None, None, 'easy', 'hard']*2, split=['val']*4 + ['test']*4))
    p = frame.assign(evaluator='p', value=[.9, .8, .8, .1, .9, .2, .8, .1], verdict=None)
    return pd.concat([p, frame.assign(evaluator='v', value=1., verdict=[1, 1, 1, 0, 1, 0, 1, 0])], ignore_index=True)

def test_results_by_hand():
    "The threshold is .1 or more (>=): above .1, 3 of 4 are right, and from .80 on none better; it is applied by >."
    table = results_table(recorded(), dict(P='p', V='v')).set_index(['evaluator', 'on'])
    v = table.loc[('V', 'all')] # 5 called faithful, 3 of them are; 3 of 4 faithful ones found
    assert (v['% faithful'], v.precision, v.recall, v['% easy'], v['% hard'],
            v['balanced accuracy']) == (62.5, .6, .75, 0, 100, 62.5)
    assert abs(v.kappa - (5/8 - .5)/.5) < 1e-12 and v.summaries == 8 and np.isnan(v.threshold)
    own = verdicts(recorded())
    own = own[own.evaluator == 'p']
    t = own.threshold.iloc[0]
    assert t > .8 and list(own.called) == [1, 0, 0, 0, 1, 0, 0,
                                           0] or .1 < t <= .8 and list(own.called) == [int(x > t) for x in own.value]
    assert list(table.loc['P'].index) == ['val', 'test']

def test_bad_tables():
    with pytest.raises(BadInput, match='lacks'): verdicts(recorded().drop(columns='split'))
    with pytest.raises(BadInput, match='both kinds'): verdicts(recorded().assign(faithful=1))
    assert results_table(recorded(), {}).empty and len(results_table(recorded())) == 0 # nobody of these names

def test_without_data_every_cell_says_so():
    audit = storysumm_audit()
    assert len(audit) == 84 and set(audit.status) == {'no_data'} and audit.by_definition.isna().all()
    assert audit.note.str.contains('factlib fetch storysumm').all()
    assert audit.published.notna().all() and sum(len(published('storysumm')[t].cells) for t in TABLES) == 84

def test_print_is_as_it_was_given():
    cells = {k: v for t in published('storysumm').values() for k, v in t.cells.items()}
    assert cells['UniEval|val|kappa'] == .25 and cells['AlignScore|test|kappa'] == -.07
    assert cells['MiniCheck|all|balanced accuracy'] == 50.8 and cells['Claude-3 CoT|all|% faithful'] == 90
    assert {k.split('|')[0] for k in cells} == set(EVALUATORS)

@pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'), reason='FACTLIB_DATA is not set: StorySumm is not here')
def test_all_84_cells_agree():
    results = results_table(storysumm_recorded(data_home()))
    audit = storysumm_audit(results)
    assert list(audit.status) == ['agrees']*84
    tuned = results.dropna(subset='threshold').set_index('evaluator').threshold
    assert abs(tuned['UniEval'] - .8792).max() < 5e-5 and abs(tuned['AlignScore'] - .7852).max() < 5e-5
    from sklearn.metrics import cohen_kappa_score, balanced_accuracy_score
    for name, own in verdicts(storysumm_recorded()).groupby('evaluator'):
        if own.threshold.notna().any(): continue
        row = results.set_index('evaluator').loc[next(p for p, r in EVALUATORS.items() if r == name)]
        assert abs(row.kappa - cohen_kappa_score(own.faithful, own.called)) < 1e-9
        assert abs(row['balanced accuracy'] - 100*balanced_accuracy_score(own.faithful, own.called)) < 1e-9

@pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'), reason='FACTLIB_DATA is not set: StorySumm is not here')
def test_verdicts_that_were_kept_give_the_same_table():
    "As judgements of evaluators that look them up; a model's scores stand behind, with a threshold of their own."
    released, examples = storysumm_recorded(), storysumm_examples()
    kept = [evaluate(RecordedVerdict(released[released.evaluator == name]), examples, progress=False).assign(
        evaluator=f'{printed} (recorded)') for printed, name in EVALUATORS.items()]
    told = [sum(e.meta['sentence_labels'])/len(e.meta['sentence_labels']) for e in examples] # as if it knew
    told[0] = None # but for one
    mine = kept[0].assign(evaluator='factscore, m', value=told, evidence=[{}]*len(examples))
    again = comparable(pd.concat([*kept, mine]), examples)
    names = {name: f'{name} (recorded)' for name in EVALUATORS} | {'factscore, m': 'factscore, m'}
    results = results_table(again, names)
    pd.testing.assert_frame_equal(results[results.evaluator != 'factscore, m'],
                                  results_table(released), check_dtype=False)
    table = printed_table('agreement', results)
    printed = table[table.published.notna()]
    assert len(printed) == 36 and (printed.published - printed.here).abs().max() <= .005 + 1e-9
    assert table[table.evaluator == 'factscore, m'].groupby('on').summaries.first().sum() == 95
