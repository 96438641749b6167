"Labels of turns and claims, by hand and against scikit-learn and statsmodels."
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, f1_score
from statsmodels.stats.contingency_tables import mcnemar as oracle

from factlib.core.records import BadInput, Example
from factlib.metaeval.labels import (DIFFERENCES, accuracies, claim_scores, claim_set_agreement,
                                     claim_units, consensus, difference_counts, judged_claims, label_alpha,
    label_differences, label_shares, matched_claims, pair_tests, read_annotations,
                                     same_meaning, turn_label, with_truth, with_verdicts)

def turns(evaluator, verdicts, truth, groups=None, **more):
    n = len(verdicts)
    return pd.DataFrame(dict(evaluator=evaluator, example_id=[f't{i}' for i in range(n)],
                             group=groups or [f'g{i}' for i in range(n)], truth=truth, verdict=verdicts) | more)

def random_labels(seed, n=60):
    rng = np.random.default_rng(seed)
    draw = lambda: list(rng.choice(['supported', 'unsupported'], n))
    return draw(), draw(), draw(), [f'g{i}' for i in rng.integers(0, 15, n)]

# Verdicts

def test_readings():
    frame = pd.DataFrame(dict(evaluator=['a', 'a', 'b', 'b', 'b'], example_id=list('vwvwx'),
                              value=[.9, 1, .5, .49999, None], part=[1, 0, None, None, None]))
    table = with_verdicts(frame, dict(a=('part', 1), b=('value', .5), never=('nothing', 1)))
    assert table.verdict.tolist() == ['supported', 'unsupported', 'supported', 'unsupported', None]
    with pytest.raises(BadInput, match="'b' calls a turn supported"): with_verdicts(frame, dict(a=('part', 1)))
    with pytest.raises(BadInput, match="'other'"): with_verdicts(frame, dict(a=('other', 1), b=('value', 1)))

def test_equal_row_numbers_do_not_mix_evaluators():
    one, two = pd.DataFrame(dict(evaluator='a', example_id=['v'],
                                 value=[1.])), pd.DataFrame(dict(evaluator='b', example_id=['v'], value=[0.]))
    assert with_verdicts(pd.concat([one, two]),
                         dict(a=('value', 1), b=('value', 1))).verdict.tolist() == ['supported', 'unsupported']

def test_truth_comes_from_the_examples():
    examples = [Example('x', target='t', truth='supported', meta=dict(label='full')), Example('y', target='t')]
    table = with_truth(pd.DataFrame(dict(example_id=['y', 'x', 'x'])), examples, label='label')
    assert table.truth.tolist() == [None, 'supported', 'supported'] and table.label.tolist() == [None, 'full', 'full']
    with pytest.raises(BadInput, match="'z', which is not among"):
        with_truth(pd.DataFrame(dict(example_id=['z'])), examples)

@pytest.mark.parametrize('seed', range(3))
def test_accuracy_and_mcnemar_against_others(seed):
    truth, a, b, groups = random_labels(seed)
    frame = pd.concat([turns('a', a, truth, groups), turns('b', b, truth, groups)])
    rows = accuracies(frame).set_index('evaluator')
    for name, verdicts in (('a', a), ('b', b)):
        assert rows.accuracy[name] == pytest.approx(accuracy_score(truth, verdicts))
        assert rows.ci_low[name] <= rows.accuracy[name] <= rows.ci_high[name]
    row, = pair_tests(frame, n_flips=200).itertuples()
    right = [np.array(x) == np.array(truth) for x in (a, b)]
    assert (row.b, row.c) == ((right[0] & ~right[1]).sum(), (~right[0] & right[1]).sum())
    table = [[(right[0] & right[1]).sum(), row.b], [row.c, (~right[0] & ~right[1]).sum()]]
    assert row.p == pytest.approx(oracle(table, exact=True).pvalue)
    assert row.difference == pytest.approx((row.b - row.c)/60) and row.p_holm == row.p
    shuffled = frame.sample(frac=1, random_state=seed)
    again, = pair_tests(pd.concat([shuffled[shuffled.evaluator == 'a'], shuffled[shuffled.evaluator == 'b']]),
                        n_flips=200).itertuples()
    assert (again.b, again.c, again.p) == (row.b, row.c, row.p)

def test_flips_take_dialogues_as_one():
    "One dialogue of eight turns, all right for one evaluator only: McNemar sees eight, the flips one."
    frame = pd.concat([turns('a', ['supported']*8, ['supported']*8, ['g']*8),
                       turns('b', ['unsupported']*8, ['supported']*8, ['g']*8)])
    row, = pair_tests(frame).itertuples()
    assert row.p == 2/2**8 and row.p_groups == 1 and row.difference == 1

def test_a_pair_without_a_turn_in_common_is_no_test():
    "Of a, b and c only a and b meet, and agree: one test with p = 1. The others are not counted with it."
    frame = pd.concat([turns('a', ['supported']*3, ['supported']*3), turns('b', ['supported']*3, ['supported']*3),
                       turns('c', ['supported']*3, ['supported']*3).assign(example_id=list('xyz'))])
    tests = pair_tests(frame)
    assert tests.p.tolist() == pytest.approx([1, np.nan, np.nan], nan_ok=True)
    assert tests.scored.tolist() == [3, 0, 0] and set(tests.family) == {1} and tests.p_holm[0] == 1

def test_missing_verdicts_are_counted_and_bounded():
    frame = turns('a', ['supported', None, float('nan'), 'unsupported'],
                  ['supported', 'supported', 'unsupported', 'supported'])
    row, = accuracies(frame).itertuples()
    assert (row.turns, row.scored, row.accuracy, row.worst, row.best) == (4, 2, .5, .25, .75)
    both = pd.concat([frame, turns('b', ['supported']*4, frame.truth)])
    pair, = pair_tests(both).itertuples()
    # b is right on t1, wrong on t2
    assert (pair.turns, pair.scored, pair.difference) == (4, 2, -.5) and (pair.worst, pair.best) == (-.5, 0)

def test_unlabelled_turns_are_left_out_and_counted():
    row, = accuracies(turns('a', ['supported']*3, ['supported', None, float('nan')])).itertuples()
    assert (row.turns, row.no_label, row.accuracy) == (1, 2, 1)
    nothing, = accuracies(turns('a', ['supported'], [None])).itertuples()
    assert nothing.turns == 0 and pd.isna(nothing.accuracy) and pd.isna(nothing.majority)
    with pytest.raises(BadInput, match="labelled 'maybe'"): accuracies(turns('a', ['supported'], ['maybe']))

def test_parts():
    frame = turns('a', ['supported']*4, ['supported', 'unsupported', 'supported', 'supported'],
                  label=['x', 'x', 'y', None])
    assert accuracies(frame, by=['label']).accuracy.tolist() == [.5, 1, 1]
    with pytest.raises(BadInput, match="two verdicts on 't0'"): accuracies(pd.concat([frame, frame]))
    twice = pd.concat([frame.assign(dataset='one'), frame.assign(dataset='two')])
    assert len(accuracies(twice, by=['dataset'])) == 2
    with pytest.raises(BadInput, match="'source'"): accuracies(frame, by=['source'])

def test_holm_within_families():
    truth = ['supported']*10
    parts = [turns('a', truth, truth, dataset=d)
             for d in 'xy'] + [turns('b', ['unsupported']*6 + truth[:4], truth, dataset=d)
                               for d in 'xy'] + [turns('c', truth[:9] + ['unsupported'], truth, dataset='x')]
    tests = pair_tests(pd.concat(parts), by=['dataset'], family=['dataset'])
    assert tests.groupby('dataset').size().to_dict() == dict(x=3, y=1)
    one = tests[tests.dataset == 'y'].iloc[0]
    assert one.p == one.p_holm == 2/2**6 and tests[tests.dataset == 'x'].p_holm.iloc[0] == pytest.approx(3*2/2**6)
    assert len(pair_tests(pd.concat(parts), by=['dataset'], against='a')) == 3

# Claims

def claim_rows(*claims):
    return pd.DataFrame([dict(evaluator='v', example_id=t, group=t[0], claim=c, category=k) for t, c, k in claims])

GOLD = claim_rows(('a1', 'It snowed.', 'verified'), ('a1', 'Eva skates.', 'contradicted'),
                  ('b1', 'It rained.', 'verified'), ('c1', 'No idea.', 'abstention'))

def test_given_claims_against_scikit_learn():
    own = GOLD.assign(category=['verified', 'verified', 'verified', 'abstention'])
    row, = claim_scores(own, GOLD).itertuples()
    assert row.accuracy == accuracy_score(GOLD.category, own.category) == .75
    assert row.macro_f1 == pytest.approx(f1_score(GOLD.category, own.category, average='macro', zero_division=0))
    assert (row.set_f1, row.worst, row.best, row.majority) == (1, .75, .75, .5)
    assert row.majority_f1 == pytest.approx((2*.5/1.5)/3)

def test_own_claims_are_matched_once():
    own = claim_rows(('a1', 'it snowed', 'verified'), ('a1', 'It snowed!', 'contradicted'),
                     ('a1', 'More.', 'verified'), ('d1', 'A turn that nobody labelled.', 'verified'))
    matched = matched_claims(own, GOLD)
    assert matched.matched.sum() == 1 and matched.verdict.tolist()[2:] == [None, None]
    row, = claim_scores(own, GOLD).itertuples()
    assert (row.own, row.matched, row.claims, row.scored) == (3, 1, 4, 1) and row.set_f1 == 2/7
    assert (row.worst, row.best) in ((.25, 1), (0, .75))

def test_a_claim_without_a_category_is_missing():
    row, = claim_scores(GOLD.assign(category=[None, 'contradicted', 'verified', float('nan')]),
                        GOLD).itertuples()
    assert (row.matched, row.scored, row.accuracy, row.worst, row.best) == (4, 2, 1, .5, 1)

def test_nothing_matched():
    row, = claim_scores(claim_rows(('a1', 'Other.', 'verified')), GOLD).itertuples()
    assert row.matched == 0 and pd.isna(row.accuracy) and (row.worst, row.best) == (0, 1)

def test_claims_in_evidence():
    frame = pd.DataFrame(dict(evaluator='v', example_id=['x', 'y', 'z'],
                              group='g',
                              evidence=[dict(claims=[dict(text='A.', category='verified',
                                                          by='memory', presupposed=True)]), {}, None]))
    assert judged_claims(frame).values.tolist() == [['v', 'x', 'g', 'A.', 'verified', 'memory', True]]

@pytest.mark.slow
def test_meaning():
    assert same_meaning('A!', ' a ') == 1
    assert same_meaning('The lake froze over.',
                        'The lake was frozen over.') > same_meaning('The lake froze over.', 'Cats purr.')

# Annotators

def annotations(*rows):
    return read_annotations('\n'.join(json.dumps(dict(annotator=a, conversation=c, turn=t, claim=claim, label=label))
                                      for a, c, t, claim, label in rows))

ROWS = annotations(('A1', 'x', 0, 'One.', 'v'), ('A1', 'x', 0, 'Two.', 'v'),
                   ('A1', 'y', 0, 'Three.', 'l'), ('A2', 'x', 0, 'two', 'l'), ('A2', 'x', 0, 'Four.', 'o'),
    ('A2', 'y', 0, None, None), ('A3', 'x', 0, 'One', 'v'), ('A3', 'x', 0, 'TWO', 'o'))

def test_set_agreement_by_hand():
    "A1-A2: turn x 1 of 2 and 2, turn y 0 of 1 and 0. A3 saw turn x alone."
    table = claim_set_agreement(ROWS).set_index(['first', 'second'])
    assert table.loc[('A1', 'A2'), ['turns', 'matched', 'n_first', 'n_second']].tolist() == [2, 1, 3, 2]
    assert table.jaccard['A1', 'A2'] == 1/4 and table.f1['A1', 'A2'] == 2/5
    assert table.turns['A1', 'A3'] == 1 and table.jaccard['A1', 'A3'] == 1 and table.jaccard['A2', 'A3'] == 1/3
    for row in table.itertuples(): assert row.f1 == pytest.approx(2*row.jaccard/(1 + row.jaccard))

def test_units_and_consensus():
    units = claim_units(ROWS)
    assert units.claim.tolist() == ['One.', 'Two.', 'Four.', 'Three.']
    assert units.loc[1, ['A1', 'A2', 'A3']].tolist() == ['v', 'l', 'o']
    agreed = consensus(units)
    assert agreed.outcome.tolist() == ['all', 'tie', 'too few', 'too few'] and agreed.votes.tolist() == [2, 3, 1, 1]
    final = consensus(units, least=1, decided={('x', 0, 1): 'l'})
    assert final.label.tolist() == ['v', 'l', 'o', 'l']
    assert final.outcome.tolist() == ['all', 'adjudicated', 'all', 'all']
    assert label_shares(final).values.tolist()[0][:3] == ['l', 2, .5]
    with pytest.raises(BadInput, match='no tie'): consensus(units, decided={('x', 0, 0): 'v'})
    # Units v/v and v/l/o. Values v, v, v, l, o: observed 2*3/2 = 3 over 5; expected (25 - 9 - 1 - 1)/(5*4).
    assert label_alpha(units).estimate == pytest.approx(1 - (3/5)/(14/20))

def test_units_do_not_depend_on_the_order_of_lines():
    units = claim_units(ROWS)
    for seed in range(5):
        shuffled = claim_units(ROWS.sample(frac=1, random_state=seed))
        votes = lambda frame: sorted(tuple(sorted((a, row[a]) for a in ('A1', 'A2', 'A3') if row[a] is not None))
                                     for row in frame.to_dict('records'))
        assert votes(shuffled) == votes(units)

@pytest.mark.parametrize('line, why', [('{', 'Line 2 of the annotations is not JSON'), ('[1]', "no 'annotator'"),
                                       ('{"annotator": "A", "conversation": "x", "turn": []}', "no 'turn'"),
    ('{"annotator": "A", "conversation": "x", "turn": 0, "claim": "c"}', 'claim without a label'),
                                       ('{"annotator": "A", "conversation": "x", "turn": 0, "claim": 7, "label": "v"}',
                                        'no text')])
def test_broken_lines(line, why):
    good = json.dumps(dict(annotator=0, conversation='x', turn=0, claim='c', label='v'))
    with pytest.raises(BadInput, match=why): read_annotations(f'{good}\n{line}\n')
    with pytest.raises(BadInput, match='Line 4 '): read_annotations(f'{good}\n\n \n{line}\n') # as an editor counts
    with pytest.raises(BadInput, match='no line'): read_annotations('\n \n')
    assert read_annotations(good).annotator.tolist() == [0]

# Differences

def sets(*turns):
    "(turn, original label, categories, by, disfluent) as two label sets."
    a = pd.DataFrame([dict(example_id=t, label=label, group=t[0], disfluent=d) for t, label, _, _, d in turns])
    return a, pd.DataFrame([dict(example_id=t, category=k, by=by) for t, _, kinds, by, _ in turns for k in kinds])

def test_each_kind_as_in_appendix_c():
    a, b = sets(('t1', 'supported', ['verified'], None, False), ('t2', 'unsupported', ['contradicted'], None, False),
                ('t3', 'supported', ['verified', 'lacking_evidence', 'abstention'], None, False),
        ('t4', 'supported', ['out_of_scope'], None, False), ('t5', 'unsupported', ['verified']*3, 'memory', False),
                ('t6', 'unsupported', ['verified'], 'reference', True),
        ('t7', 'unsupported', ['verified'], 'reference', False), ('t8', None, ['verified'], None, False),
                ('t9', 'supported', [], None, True))
    found = label_differences(a, b)
    assert [d[0] for d in found.difference] == ['1', '2', '3', '4', '5', '6', '7', 'u', 'u']
    assert found.second[2] == 'unsupported' and found.second[8] is None
    counts = difference_counts(found)
    assert counts.difference.tolist() == list(DIFFERENCES) and counts['count'].tolist() == [1]*7 + [2]
    assert counts.share.tolist()[:7] == [1/7]*7 and pd.isna(counts.share[7])

def test_a_referent_in_the_dialogue_is_context():
    """The paper's example: the document verifies all claims, the dialogue says whom they are of. Nobody can tell, so it
    is marked."""
    a = pd.DataFrame(dict(example_id=['t'], label=['unsupported']))
    b = pd.DataFrame(dict(example_id=['t']*3, category=['verified']*3, by=['reference']*3, context=[True, False, None]))
    assert label_differences(a, b).difference[0].startswith('5')
    assert label_differences(a, b.drop(columns='context')).difference[0].startswith('7')

def test_claims_without_a_category():
    assert turn_label(['verified', None]) is None and turn_label([None, 'abstention']) == 'unsupported'
    assert turn_label([float('nan')]) is None
    a, b = sets(('t1', 'supported', ['abstention', None], None, False),
                ('t2', 'supported', ['contradicted', None], None, False),
                ('t3', 'unsupported', ['abstention', None], None, False))
    # the missing one could be a hallucination; no matter; they agree
    assert [d[0] for d in label_differences(a, b).difference] == ['u', '3', '2']

def test_turns_of_either_set_are_there():
    a, b = pd.DataFrame(dict(example_id=['x'],
                             label=['supported'])), pd.DataFrame(dict(example_id=['y'], category=['verified']))
    assert label_differences(a, b)[['example_id',
                                    'difference']].values.tolist() == [['x', 'undecided'], ['y', 'undecided']]
    with pytest.raises(BadInput, match="'x' twice"): label_differences(pd.concat([a, a]), b)
    with pytest.raises(BadInput, match="'good'"): label_differences(a.assign(label='good'), b)
