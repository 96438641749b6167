"Sheets for annotators: who gets what, blinding, reading, percentages and agreement against hand counts and oracles."
import json
import re
from itertools import product

import krippendorff
import pytest
import scipy.stats
from sklearn.metrics import cohen_kappa_score

from factlib.papers.montagelie.sheets import Answers, CRITERIA, annotation_agreement, annotation_sheets
from factlib.papers.montagelie.sheets import annotation_table, read_sheets, save_sheets
from factlib.core.records import BadInput, Example
from factlib.report.published import published

LEVELS = ('true', 'easy', 'medium', 'hard', 'extreme')

def instances(n, variants=('original', 'paraphrase'), sources=None):
    return [Example(f'item-{i}/{v}/{d}', source=f'Source {i}.', target=f'Text {i}, {v}, {d}.',
                    group=f'source-{i % (sources or n)}', variant=v, level=d)
            for i, v, d in product(range(n), variants, LEVELS)]

def filled(sheets, answer=lambda row, criterion, known: 'yes'):
    "The rows with answers; `known` is the key's entry."
    key = {k['id']: k for k in sheets.key}
    return [row | dict(answers={c: answer(row, c, key[row['id']]) for c in row['answers']}) for row in sheets.rows]

def read(tmp_path, rows, key, **more):
    (tmp_path/'s.jsonl').write_text(''.join((row if isinstance(row, str) else json.dumps(row)) + '\n' for row in rows),
                                    encoding='utf-8')
    return read_sheets([tmp_path/'s.jsonl'], key, **more)

# Who judges what

def test_the_paper_s_design():
    sheets = annotation_sheets(instances(60))
    dealt = [k for k in sheets.key if not k['shared']]
    assert sum(k['kind'] == 'lie' for k in dealt) == sum(k['kind'] == 'paraphrase' for k in dealt) == 200
    assert len({k['item'] for k in dealt}) == 50
    for a in 'AB':
        assert len({k['item'] for k in dealt if k['annotators'] == [a]}) == 25
        assert sum(r['annotator'] == a for r in sheets.rows) == 8*(25 + 5)
    assert {tuple(k['annotators']) for k in sheets.key if k['shared']} == {('A', 'B')}
    assert len({k['item'] for k in sheets.key if k['shared']}) == 5
    assert {(k['kind'], k['level']) for k in sheets.key} == set(product(CRITERIA, LEVELS[1:]))
    assert len({k['id'] for k in sheets.key}) == len(sheets.key) == 440

def test_each_row_shows_the_two_texts_that_are_compared():
    sheets = annotation_sheets(instances(4), instances=3, shared=1)
    key = {k['id']: k for k in sheets.key}
    for row in sheets.rows:
        k = key[row['id']]
        i, variant, level = re.fullmatch(r'item-(\d)/(\w+)/(\w+)', k['example_id']).groups()
        assert row['second'] == f'Text {i}, {variant}, {level}.'
        assert row['first'] == (f'Text {i}, original, true.' if k['kind'] == 'lie' else f'Text {i}, original, {level}.')
        assert variant == ('original' if k['kind'] == 'lie' else 'paraphrase') and level == k['level']
        assert row['questions'] == CRITERIA[k['kind']] and row['answers'] == dict.fromkeys(CRITERIA[k['kind']])

def test_nothing_but_the_texts_tells_the_difficulty():
    examples = [Example(e.id, source=e.source, target='A text.', group=e.group, variant=e.variant, level=e.level)
                for e in instances(20)]
    sheets = annotation_sheets(examples, instances=20, shared=0)
    level = {k['id']: k['level'] for k in sheets.key}
    assert {json.dumps({n: v for n, v in r.items() if n not in ('id', 'annotator')})
            for r in sheets.rows} == {json.dumps(dict(first='A text.', second='A text.', questions=q,
                                                      answers=dict.fromkeys(q))) for q in CRITERIA.values()}
    for d in LEVELS[1:]: # neither first nor last on the sheets, nor by id
        places = [i for i, r in enumerate(sheets.rows) if level[r['id']] == d]
        assert len(places) == 40 and 60 < sum(places)/40 < 100
        assert 60 < sum(i for i, name in enumerate(sorted(level)) if level[name] == d)/40 < 100

def test_the_draw_is_the_seed_s():
    one, same, other = (annotation_sheets(examples, 10, shared=2, seed=s)
                        for examples, s in ((instances(30), 0), (instances(30)[::-1], 0), (instances(30), 1)))
    assert one == same and [k['item'] for k in one.key] != [k['item'] for k in other.key]
    assert [r['id'] for r in one.rows if r['annotator'] == 'A'
            and r['id'] in {k['id'] for k in one.key if k['shared']}] != [r['id'] for r in one.rows
                                                                          if r['annotator'] == 'B'
                                                                          and r['id'] in {
                                                                              k['id'] for k in one.key if k['shared']}]

def test_one_instance_a_source_and_only_complete_ones():
    with pytest.raises(BadInput,
                       match='11 instances are asked for .10 dealt, 1 shared., and the examples have 10 sources'):
        annotation_sheets(instances(20, sources=10), 10, shared=1)
    assert len({k['group'] for k in annotation_sheets(instances(20, sources=10), 10, shared=0).key}) == 10
    gap = [e for e in instances(3) if e.id != 'item-1/paraphrase/hard']
    assert {k['item'] for k in annotation_sheets(gap, 2, shared=0).key} == {'item-0', 'item-2'}
    plain = annotation_sheets(instances(3, ('original', 'flashback')), 3, shared=0)
    assert {k['kind'] for k in plain.key} == {'lie'} and len(plain.key) == 12

@pytest.mark.parametrize('bad, why', [(dict(annotators=()), 'different names'),
                                      (dict(annotators=('A', 'A')), 'different names'),
                                      (dict(annotators=('../x',)), 'different names'),
                                      (dict(instances=0), 'instances must be a whole number from 1, not 0'),
                                      (dict(shared=-1), 'shared must be a whole number from 0, not -1')])
def test_designs_that_make_no_sense(bad, why):
    with pytest.raises(BadInput, match=why): annotation_sheets(instances(3), **dict(instances=2, shared=0) | bad)

# Files

def test_sheets_come_back_from_files_as_they_went(tmp_path):
    sheets = annotation_sheets(instances(5), 3, ('A', 'B', 'C-3'), shared=2)
    paths = save_sheets(sheets, tmp_path/'new')
    assert [p.name for p in paths] == ['sheet_A.jsonl', 'sheet_B.jsonl', 'sheet_C-3.jsonl', 'key.jsonl']
    assert [json.loads(line) for p in paths[:3] for line in p.read_text().splitlines()] == sheets.rows
    empty = read_sheets(paths[:3], paths[3])
    assert len(empty.frame) == sum(len(r['answers']) for r in sheets.rows) and empty.frame.answer.isna().all()
    assert not empty.faults
    with pytest.raises(BadInput, match='may hold answers'): save_sheets(sheets, tmp_path/'new')
    assert 'level' not in paths[0].read_text() and 'item-' not in paths[0].read_text()

FAULTS = {'{': 'the line is no JSON', '[1]': 'must be a JSON object, not a list',
          'id': "the id 'nobody' is not in the key", 'who': "was not given to the annotator 'Z'",
          'list': 'has no answers', 'asked': "has an answer to 'beauty', which was not asked about a",
          'maybe': "the answer 'maybe' is not allowed", 'number': 'the answer 1 is not allowed',
          'twice': "by 'A' is there twice"}

def spoilt(kind, row):
    c = next(iter(row['answers']))
    return {'id': row | dict(id='nobody'), 'who': row | dict(annotator='Z'), 'list': row | dict(answers=['yes']),
            'asked': row | dict(answers=dict(beauty='yes')), 'maybe': row | dict(answers={c: 'maybe'}),
            'number': row | dict(answers={c: 1}), 'twice': row}.get(kind, kind)

@pytest.mark.parametrize('kind', FAULTS)
def test_each_bad_row_is_named(tmp_path, kind):
    sheets = annotation_sheets(instances(2), 2, ('A',), shared=0)
    rows = filled(sheets)
    rows = [*rows[:-1], rows[-1], spoilt(kind, rows[-1])] if kind == 'twice' else [*rows[:-1], spoilt(kind, rows[-1])]
    found = read(tmp_path, rows, sheets.key, strict=False)
    assert len(found.faults) == 1 and found.faults[0].startswith(f's.jsonl, line {len(rows)}: ')
    assert FAULTS[kind] in found.faults[0]
    assert found.frame.answer.isna().sum() == (0 if kind == 'twice' else len(sheets.rows[-1]['answers']))
    with pytest.raises(BadInput, match=re.escape(FAULTS[kind])): read(tmp_path, rows, sheets.key)

def test_all_bad_rows_are_named_at_once(tmp_path):
    sheets = annotation_sheets(instances(2), 2, ('A',), shared=0)
    with pytest.raises(BadInput, match=r'(?s)3 rows can.t be used.*line 1: .*line 2: .*line 3: '):
        read(tmp_path, ['{', '[]', '{}'], sheets.key)

@pytest.mark.parametrize('said, answer', [('yes', 1), (' NO ', 0), (True, 1),
                                          (False, 0), (None, None), ('', None), ('  ', None)])
def test_answers(tmp_path, said, answer):
    sheets = annotation_sheets(instances(1), 1, ('A',), shared=0)
    assert set(read(tmp_path, filled(sheets, lambda *_: said), sheets.key).frame.answer) == {answer}

def test_a_row_that_never_came_back_is_missing(tmp_path):
    sheets = annotation_sheets(instances(4), 4, shared=0)
    rows = [r for r in filled(sheets) if r['annotator'] == 'A'] # B gave nothing back
    table = annotation_table(read(tmp_path, rows, sheets.key))
    assert set(zip(table.asked[table.level != 'all'], table.answered[table.level != 'all'])) == {(4, 2)}
    assert set(table.percent) == {100}
    nothing = annotation_table(read(tmp_path, [], sheets.key))
    assert set(nothing.answered) == {0} and nothing[['percent', 'ci_low']].isna().all(axis=None)

def test_files_that_are_none(tmp_path):
    with pytest.raises(BadInput, match='There is no file'): read_sheets([tmp_path/'none.jsonl'], [])
    with pytest.raises(BadInput, match='no key of sheets'): read_sheets([], [3])
    (tmp_path/'l.jsonl').write_bytes(b'\xff')
    with pytest.raises(BadInput, match='not UTF-8'): read_sheets(tmp_path/'l.jsonl', [])

# Percentages

def by_number(no):
    "Answers no where the instance's number and the criterion say so."
    return lambda row, c, k: 'no' if int(k['item'].split('-')[1]) in no.get((k['level'], c), ()) else 'yes'

def test_percentages_by_hand(tmp_path):
    sheets = annotation_sheets(instances(10), 10, shared=0)
    no = {('easy', 'coherence'): (1, 2, 3), ('hard', 'semantic shift'): (0,),
          ('extreme', 'semantic fidelity'): range(10)}
    table = annotation_table(read(tmp_path, filled(sheets, by_number(no)), sheets.key)).set_index('cell')
    expected = {cell: 100 for cell in published('montagelie')['2'].cells} | {'easy|coherence': 70,
                                                                             'hard|semantic shift': 90,
                                                                             'extreme|semantic fidelity': 0}
    assert {c: table.percent[c] for c in expected} == expected and len(table) == 25 and set(table.asked[:20]) == {10}
    assert table.percent['all|coherence'] == 100*37/40 and table.percent['all|semantic fidelity'] == 75
    for cell, yes in (('easy|coherence', 7), ('hard|semantic shift', 9),
                      ('extreme|semantic fidelity', 0), ('easy|semantic shift', 10)):
        ci = scipy.stats.binomtest(yes, 10).proportion_ci(method='wilson')
        assert (table.ci_low[cell], table.ci_high[cell]) == pytest.approx((100*ci.low, 100*ci.high))
    assert table.ci_low['all|coherence'] < 92.5 < table.ci_high['all|coherence']
    # Each source has one no of four: ten sources that agree, each side 2.5 % of (1 - q)^10.
    assert table.ci_low['all|semantic fidelity'] == pytest.approx(75*.025**.1)
    assert table.ci_high['all|semantic fidelity'] == pytest.approx(100 - 25*.025**.1)

def test_shared_instances_are_not_in_the_table(tmp_path):
    sheets = annotation_sheets(instances(6), 4, shared=2)
    table = annotation_table(read(tmp_path, filled(sheets, lambda row, c, k: 'no' if k['shared'] else 'yes'),
                                  sheets.key))
    assert set(table.percent) == {100} and set(table.asked[table.level != 'all']) == {4}
    with pytest.raises(BadInput, match='All instances are shared'):
        annotation_table(Answers(read(tmp_path, [], [k for k in sheets.key if k['shared']]).frame, []))

# Agreement

def test_agreement_by_hand_and_by_others(tmp_path):
    sheets = annotation_sheets(instances(6), 1, shared=5)
    rule = lambda row, c, k: 'yes' if row['annotator'] == 'A' and (k['level'] != 'hard' or c != 'coherence') or row[
        'annotator'] == 'B' and k['level'] != 'easy' else 'no'
    answers = read(tmp_path, filled(sheets, rule), sheets.key)
    agreed = annotation_agreement(answers).set_index('criterion')
    assert set(agreed.cell) == set(published('montagelie')['3.2.2'].cells)
    # B denies the easy ones, A the coherence of the hard ones
    assert agreed.percent['semantic shift'] == 75 and agreed.percent['coherence'] == 50
    assert set(agreed.texts) == set(agreed.pairs) == {20}
    a, b = [1]*20, [0]*5 + [1]*15
    c = [1]*10 + [0]*5 + [1]*5
    for criterion, x in (('semantic shift', a), ('coherence', c)):
        assert agreed.kappa[criterion] == pytest.approx(cohen_kappa_score(x, b))
        assert agreed.alpha[criterion] == pytest.approx(krippendorff.alpha([x, b], level_of_measurement='nominal'))

def test_three_annotators_with_gaps(tmp_path):
    sheets = annotation_sheets(instances(3), 1, ('A', 'B', 'C'), shared=2)
    rule = lambda row, c, k: {'A': 'yes', 'B': 'no' if k['level'] == 'easy' else 'yes',
                              'C': None if k['level'] == 'hard' else 'yes'}[row['annotator']]
    agreed = annotation_agreement(read(tmp_path, filled(sheets, rule), sheets.key)).set_index('criterion')
    # two instances: easy 1 of 3 pairs agrees, medium and extreme 3 of 3, hard 1 of 1
    assert agreed.pairs['coherence'] == 2*10 and agreed.percent['coherence'] == pytest.approx(100*8/10)
    assert agreed.kappa.isna().all()
    table = [[1, 1, 1, 1]*2, [0, 1, 1, 1]*2, [1, 1, None, 1]*2]
    assert agreed.alpha['coherence'] == pytest.approx(krippendorff.alpha(
        [[float('nan') if x is None else x for x in row] for row in table], level_of_measurement='nominal'))

def test_who_always_says_yes_agrees_by_percent_alone(tmp_path):
    sheets = annotation_sheets(instances(3), 1, shared=2)
    agreed = annotation_agreement(read(tmp_path, filled(sheets), sheets.key))
    assert set(agreed.percent) == {100} and agreed.alpha.isna().all()
    assert agreed.note.str.contains('all values are the same').all()
    alone = annotation_sheets(instances(3), 3, shared=0)
    with pytest.raises(BadInput, match='No instance is shared'):
        annotation_agreement(read(tmp_path, filled(alone), alone.key))
