"VISTA's tables, of made-up judgements that were worked out by hand."
import pandas as pd
import pytest

from factlib.core.records import BadInput
from factlib.papers.vista.tables import ablation_table, accuracy_table, claims_table, consensus_table, differences_table
from factlib.papers.vista.tables import overlap_table, pairs_table, two_labels_table, verdicts

TURNS = [f'{d}/{i}' for d in 'abcde' for i in range(4)]
TRUTH = ['supported', 'unsupported']*10

def judged(evaluator, value, dataset='one', model='m', **parts):
    return pd.DataFrame(dict(evaluator=evaluator, example_id=TURNS, group=[t[0] for t in TURNS],
                             truth=TRUTH, dataset=dataset, model=model, value=value) | parts)

RIGHT, ALWAYS = [1, 0]*10, [1]*20

def test_what_each_value_means():
    frame = pd.concat([judged('vista', 1., supported=RIGHT), judged('factscore', [1, .99]*10),
                       judged('faithfulness', RIGHT), judged('floor', [.9, .1]*10)])
    table = verdicts(frame, thresholds=dict(floor=.5))
    assert table.verdict.tolist() == TRUTH*4
    graded = verdicts(judged('offline', .1, support=[.9, .1]*10), thresholds=dict(offline=('support', .5)))
    assert graded.verdict.tolist() == TRUTH
    with pytest.raises(BadInput, match='no reading of'): verdicts(frame, like=dict(floor='nobody'))
    with pytest.raises(BadInput, match="'floor'"): verdicts(frame)

def test_pairs_and_accuracies():
    table = verdicts(pd.concat([judged(name, values, dataset, supported=values) for dataset in ('one', 'two')
                                for name, values in (('vista', RIGHT), ('factscore', ALWAYS))]))
    pairs = pairs_table(table)
    assert pairs[['dataset', 'first', 'second', 'delta', 'b',
                  'c']].values.tolist() == [[d, 'vista', 'factscore', 50, 10, 0] for d in ('one', 'two')]
    # five dialogues
    assert pairs.p.tolist() == pairs.p_holm.tolist() == [2/2**10]*2 and pairs.p_groups.tolist() == [2/2**5]*2
    assert accuracy_table(table).above.tolist() == [''] * 4
    assert accuracy_table(table, p='p').above.tolist() == ['factscore', '']*2
    assert accuracy_table(table).accuracy.tolist() == [100, 50]*2

def test_an_evaluator_without_a_model_has_rows():
    table = verdicts(judged('floor', RIGHT, model=None), thresholds=dict(floor=1))
    assert len(accuracy_table(table)) == 1 and accuracy_table(table).accuracy[0] == 100

def test_ablations_come_behind_the_whole():
    table = verdicts(pd.concat([judged('zero-shot', 1, supported=ALWAYS), judged('vista', 1, supported=RIGHT)]),
                     like={'zero-shot': 'vista'})
    rows = ablation_table(table)
    assert rows.setting.tolist() == ['vista', 'zero-shot'] and rows.accuracy.tolist() == [100, 50]
    assert rows.delta[1] == 50 and pd.isna(rows.p[0])
    with pytest.raises(BadInput, match="no verdicts of 'vista'"): ablation_table(table[table.evaluator != 'vista'])

def test_two_sets_of_labels():
    "People call the first turn unsupported; the last is theirs to decide, and they can't."
    claims = pd.DataFrame(dict(example_id=TURNS, group=[t[0] for t in TURNS],
                               claim='c', category=['abstention', *['lacking_evidence', 'verified']*9, None]))
    table = verdicts(judged('vista', 1, supported=RIGHT))
    rows = two_labels_table(table, claims).set_index('labels')
    assert rows.turns.tolist() == [20, 19] and rows.accuracy.tolist() == [1, 18/19]
    assert differences_table(pd.DataFrame(dict(example_id=TURNS, label=TRUTH)),
                             claims)['count'].tolist() == [9, 9, 0, 1, 0, 0, 0, 1]
    own = claims.assign(evaluator='vista', category=['verified']*20)
    row, = claims_table(table, own, claims).itertuples()
    assert row.turn_accuracy == 18/19 and (row.claims, row.scored) == (20, 19) and row.accuracy == 9/19

def test_annotations():
    rows = [(a, c, t) for c in 'xy' for a, t in (('A', 'v'), ('B', 'v'), ('C', 'l'))]
    frame = pd.DataFrame([dict(annotator=a, conversation=c, turn=0, claim='It snowed.', label=label)
                          for a, c, label in rows])
    assert overlap_table(frame).pair.tolist() == ['A-B', 'A-C', 'B-C', 'mean']
    assert overlap_table(frame).jaccard.tolist() == [1]*4
    table, alpha, left = consensus_table(frame)
    assert table.values.tolist()[0][:3] == ['v', 2, 100] and left.empty and alpha.n == 2
    # observed: in each unit 4 ordered pairs over 2; expected (36 - 16 - 4)/(6*5)
    assert alpha.estimate == pytest.approx(1 - (4/6)/(16/30))
