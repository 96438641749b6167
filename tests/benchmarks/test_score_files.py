"Files of scores: forms, roles, scales, odd values, damaged files, what other tools write, real ones."
import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from factlib.benchmarks.score_files import ScoreFile, read_scores
from factlib.benchmarks.score_logs import known_table, zipped_samples
from factlib.benchmarks.score_tables import ENDINGS, file_kind
from factlib.core.records import BadInput, Example
from factlib.evaluators.base import evaluate, get

DATA = os.environ.get('FACTLIB_DATA', '')
real = pytest.mark.skipif(not DATA, reason='FACTLIB_DATA is not set')
MADE = Path(__file__).parent/'score_files'

def written(folder, name, content):
    path = Path(folder)/name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path

def numbers(scores, name):
    "A column with None where there is nothing."
    return [None if x != x else x for x in scores.frame[name]]

# Forms: one table of two rows, in every form

ROWS = [dict(id='007', gpt4=4.5, human=4), dict(id='008', gpt4=2, human=None)]
FORMS = {
    'plain.csv': 'id,gpt4,human\n007,4.5,4\n008,2,\n',
    'bom.csv': b'\xef\xbb\xbfid,gpt4,human\n007,4.5,4\n008,2,\n',
    'semicolons.csv': 'id;gpt4;human\n007;4,5;4\n008;2;\n',
    'lines.csv': 'id,gpt4,human\r\n"007",4.5,4\r\n"008",2,\r\n',
    'tabs.tsv': 'id\tgpt4\thuman\n007\t4.5\t4\n008\t2\t\n',
    'tabs.txt': 'id\tgpt4\thuman\n007\t4.5\t4\n008\t2\t\n',
    'list.json': json.dumps(ROWS),
    'below.json': json.dumps(dict(about='us', rows=ROWS)),
    'columns.json': json.dumps({name: [row[name] for row in ROWS] for name in ROWS[0]}),
    'frame.json': json.dumps({name: {str(i): row[name] for i, row in enumerate(ROWS)} for name in ROWS[0]}),
    'rows.jsonl': '\n'.join(map(json.dumps, ROWS)),
    'rows.ndjson': '\n'.join(map(json.dumps, ROWS)) + '\n',
    'named_json.json': '\n'.join(map(json.dumps, ROWS)),
    'noending': 'id,gpt4,human\n007,4.5,4\n008,2,\n',
}

@pytest.mark.parametrize('name', FORMS)
def test_every_form_of_a_table(name, tmp_path):
    scores = read_scores(written(tmp_path, name, FORMS[name]))
    assert (scores.name, scores.judges, scores.humans) == (name, ('gpt4',), ('human',))
    assert scores.frame['item'].tolist() == ['007', '008'] and scores.frame['row'].tolist() == [1, 2]
    assert numbers(scores, 'gpt4') == [4.5, 2] and numbers(scores, 'human') == [4, None]
    commas = [['gpt4', '4,5', 1, '4.5']] if name == 'semicolons.csv' else []
    assert scores.odd.values.tolist() == [['human', '', 1, 'missing'], *commas]

def test_parquet_and_frames(tmp_path):
    frame = pd.DataFrame(ROWS)
    frame.to_parquet(tmp_path/'rows.parquet')
    for given in (tmp_path/'rows.parquet', frame, str(tmp_path/'rows.parquet')):
        scores = read_scores(given)
        assert numbers(scores, 'gpt4') == [4.5, 2] and numbers(scores, 'human') == [4, None]
    assert read_scores(frame).name == 'frame' and list(frame.columns) == ['id', 'gpt4', 'human'] # as it was

def test_nested_columns_have_paths(tmp_path):
    rows = [dict(meta=dict(score=i % 3, by=dict(human=i % 2))) for i in range(6)]
    path = written(tmp_path, 'nested.json', json.dumps(rows))
    scores = read_scores(path, judge='meta.score')
    assert scores.humans == ('meta.by.human',) and numbers(scores, 'meta.score') == [0, 1, 2, 0, 1, 2]
    pd.DataFrame(rows).to_parquet(tmp_path/'nested.parquet')
    assert numbers(read_scores(tmp_path/'nested.parquet', judge='meta.score'), 'meta.by.human') == [0, 1, 0, 1, 0, 1]
    with pytest.raises(BadInput, match=r"--judge: there is no column 'meta.mark'"): read_scores(path, judge='meta.mark')

def test_each_entry_of_a_list_is_a_row():
    rows = [dict(text='A fox ran.', marks=[dict(human='yes', gpt='no'), dict(human='no', gpt='no')]),
            dict(text='It hid.', marks=[])]
    scores = read_scores(pd.DataFrame(rows), human='marks.human', judge='marks.gpt')
    assert numbers(scores, 'marks.human') == [1, 0, None] and numbers(scores, 'marks.gpt') == [0, 0, None]
    assert scores.frame['row'].tolist() == [1, 2, 3] # the text whose list is empty stays

# One row a rating

def test_ratings_become_columns(tmp_path):
    text = ('item,rater,score,doc\na,ann,4,x\na,gpt-4o,5,x\nb,ann,2,x\nb,bob,N/A,x\nc,bob,3,x\n'
            'b,gpt-4o,1,x\nb,gpt-4o,3,x\n')
    scores = read_scores(written(tmp_path, 'long.csv', text))
    assert (scores.judges, scores.humans) == (('gpt-4o',), ('ann', 'bob'))
    assert scores.frame[['item', 'row']].values.tolist() == [['a', 1], ['b', 3], ['c', 5], ['b', 7]]
    assert numbers(scores, 'gpt-4o') == [5, 1, None, 3] and numbers(scores, 'ann') == [4, 2, None, None] # b twice
    assert scores.odd.values.tolist() == [['bob', 'N/A', 1, 'missing']] # where nobody was asked, nothing is missing
    assert "Each row is a rating: 'rater' says who rated, 'score' what." in scores.said

def test_raters_that_could_be_either_are_asked_for():
    frame = pd.DataFrame(dict(item=['a', 'a', 'b', 'b'], grader=['x', 'y', 'x', 'y'], grade=[1, 2, 2, 3]))
    with pytest.raises(BadInput, match="rater 'x' of 'grader' could be a judge or a person.*--judge 'x'"):
        read_scores(frame)
    scores = read_scores(frame, judge='y')
    assert (scores.judges, scores.humans) == (('y',), ('x',))
    both = frame.assign(judge=frame['grader'])
    with pytest.raises(BadInput, match='could say who rated'): read_scores(both)
    with pytest.raises(BadInput, match='--item COLUMN'): read_scores(frame.drop(columns='item'), judge='y')
    with pytest.raises(BadInput, match='no column .z.'): read_scores(frame, judge='z')

def test_ratings_by_several_criteria_are_asked_for():
    frame = pd.DataFrame(dict(item=list('aaaa'), annotator_id=['1', '1', '2', '2'], criterion=['fluent', 'true']*2,
                              rating=[1, 2, 3, 4]))
    with pytest.raises(BadInput, match="by 'criterion'"): read_scores(frame, judge='1')
    scores = read_scores(frame, judge='1', item='item,criterion')
    assert scores.frame['item'].tolist() == ['a/fluent', 'a/true'] and numbers(scores, '2') == [3, 4]

# Roles

def table(**columns):
    "Four rows with an id each."
    return pd.DataFrame(dict(id=list('abcd')) | columns)

def test_roles_are_said_with_their_flags():
    frame = table(model=['m', 'n']*2, response=[f'A fox ran home, {i}.' for i in range(4)],
                  document=['A fox ran to its den.']*4, judge=[1, 2, 3, 4], expert_1=[1, 2, 3, 3],
                  expert_2=[1, 1, 2, 3], expert_mean=[1, 1.5, 2.5, 3], created_at=['2024-01-02']*4)
    scores = read_scores(frame)
    roles = {column: role for column, role in scores.roles[['column', 'role']].values}
    assert roles == dict(id='item', model='system', response='text', document='source', created_at='time',
                         expert_1='human', expert_2='human', judge='judge', expert_mean='left out')
    assert 'judge: judge (its name and values; --judge changes it).' in scores.said
    assert 'system: model (its name; --system changes it).' in scores.said
    lines = [line for line in scores.said if '(--' in line or ' changes it).' in line]
    assert len(lines) == 8 # each role that was taken has its line
    assert list(scores.frame.columns[:6]) == ['item', 'row', 'system', 'text', 'source', 'time']

@pytest.mark.parametrize('columns, message', [
    (dict(a=[1, 2, 3, 4], b=[1, 2, 3, 4]), "No column looks like a judge or a person .'a', 'b' could be."),
    (dict(gpt_human=[1, 2, 3, 4], gpt4=[1, 2, 3, 4]), "'gpt_human' could be a judge or a person"),
    (dict(gpt4=[1, 2, 3, 4]), 'without people nothing shows whether a judge is right'),
    (dict(human=[1, 2, 3, 4]), "no column looks like a judge: say which is, as --judge COLUMN"),
    (dict(gpt_tone=[1]*4, gpt_wit=[1]*4, human_tone=[1]*4, human_wit=[1]*4), 'speak of several criteria .(tone|wit), '),
])
def test_what_could_be_two_things_is_one_sentence(columns, message):
    with pytest.raises(BadInput, match=message) as error: read_scores(table(**columns))
    assert '\n' not in str(error.value) and '--' in str(error.value)

def test_flags_win_and_are_checked():
    frame = table(x=[1, 2, 3, 4], y=[4, 3, 2, 1], doc=['p', 'p', 'q', 'q'])
    scores = read_scores(frame, judge='x', human=['y'], group='doc', item='')
    assert scores.frame['item'].tolist() == ['1', '2', '3', '4'] and scores.group_given and not scores.clustered
    assert scores.roles['why'].tolist() == ['given']*3
    for wrong, message in ((dict(judge='x', human='x'), 'given as a judge and as a person'),
                           (dict(judge='x', human='y', group='z'), '--group: there is no column'),
                           (dict(judge='x', human='y', system='x,y'), '--system takes one column'),
                           (dict(judge='x', human='pet'), "which is better can't be told"),
                           (dict(judge='x', human='y', higher='more'), 'higher')):
        with pytest.raises(BadInput, match=message): read_scores(frame.assign(pet=['hen', 'cat']*2), **wrong)

def test_columns_taken_for_nothing_are_said():
    frame = table(gpt4=[1, 2, 3, 4], human=[1, 2, 3, 4], quality=[3, 2, 3, 1], note=['so', 'la', 'ti', 'do'])
    scores = read_scores(frame)
    assert [line for line in scores.said if line.startswith('Taken for nothing')] == [
        "Taken for nothing, though they could hold scores: 'quality' (--judge or --human takes them)."]

def test_names_of_other_columns_are_kept_apart():
    scores = read_scores(table(text=[1, 2, 3, 4], human=[1, 2, 3, 4]), judge='text')
    assert scores.judges == ('text (scores)',) and numbers(scores, 'text (scores)') == [1, 2, 3, 4]

# Scales and odd values

@pytest.mark.parametrize('cells, order, scale, codes', [
    (['yes', 'no', ' YES ', 'no'], None, ('binary', ('no', 'yes')), [1, 0, 1, 0]),
    (['true', 'false', 'true', ''], None, ('binary', ('false', 'true')), [1, 0, 1, None]),
    ([True, False, None, True], None, ('binary', ('False', 'True')), [1, 0, None, 1]),
    (['0', '1', '1', '0'], None, ('binary', ('0', '1')), [0, 1, 1, 0]),
    (['poor', 'fair', 'good', 'poor'], None, ('ordered', ('poor', 'fair', 'good')), [0, 1, 2, 0]),
    (['C', 'I', 'P', 'C'], None, ('ordered', ('I', 'P', 'C')), [2, 0, 1, 2]),
    (['cat', 'dog', 'hen', 'cat'], None, ('nominal', None), None),
    (['cat', 'dog', 'hen', 'cat'], 'hen < dog = cat', ('binary', ('hen', 'dog')), [1, 1, 0, 1]),
    (['meh', 'wow', 'meh', 'wow'], 'meh < wow', ('binary', ('meh', 'wow')), [0, 1, 0, 1]),
    (['Output (a)', 'model_b', 'tie', '[[A]]'], None, ('pair', ('B', 'tie', 'A')), [1, 0, .5, 1]),
    (['3', '4.5', 'N/A', '5'], None, ('number', ()), [3, 4.5, None, 5]),
    (['8/10', '9/10', '10/10', '7'], None, ('number', ()), [8, 9, 10, 7]),
    (['4/5', '1/2', '1/4', '1/1'], None, ('number', ()), [.8, .5, .25, 1]),
    (['85 %', '9%', '100%', ''], None, ('number', ()), [85, 9, 100, None]),
    (['7,5', '6,25', '8', '9'], None, ('number', ()), [7.5, 6.25, 8, 9]),
    (['1', 'refused', 'NaN', '1e3'], None, ('number', ()), [1, None, None, 1000]),
    (['1', 'inf', '#DIV/0!', '2'], None, ('number', ()), [1, None, None, 2]),
])
def test_scales_and_codes(cells, order, scale, codes):
    scores = read_scores(pd.DataFrame(dict(human=cells, judge=cells)), order=order)
    kind, labels = scale
    assert scores.scale.kind == kind and (labels is None or scores.scale.labels == labels)
    assert scores.scales == dict(human=scores.scale, judge=scores.scale) or kind == 'number'
    if codes is not None: assert numbers(scores, 'human') == numbers(scores, 'judge') == codes

def test_counts_and_verdicts_are_told_by_their_names():
    frame = table(judge_errors=[0, 3, 12, 1], human_errors=[1, 3, 10, 0])
    assert read_scores(frame).scale.kind == 'count'
    scores = read_scores(table(gpt_winner=['1', '2', 'tie', '1'], human_winner=[1, 2, 1, 1]))
    assert scores.scale.kind == 'pair' and numbers(scores, 'gpt_winner') == [1, 0, .5, 1]
    assert numbers(scores, 'human_winner') == [1, 0, 1, 1]

def test_odd_values_are_counted_and_none_is_turned():
    frame = pd.DataFrame(dict(human=['1', '2', '3', '4', '5', '5', '4', '3', '2', '8/10', 'so-so', None],
                              judge=['1', '2', 'N/A', 'N/A', '5', '', '4', '3', 'refused', '1', '2', '3']))
    scores = read_scores(frame)
    odd = {(c, v): (n, taken) for c, v, n, taken in scores.odd.values}
    assert odd == {('human', '8/10'): (1, '8'), ('human', 'so-so'): (1, 'missing'), ('human', ''): (1, 'missing'),
                   ('judge', 'N/A'): (2, 'missing'), ('judge', ''): (1, 'missing'),
                   ('judge', 'refused'): (1, 'missing')}
    assert numbers(scores, 'human') == [1, 2, 3, 4, 5, 5, 4, 3, 2, 8, None, None]
    assert any("'so-so'" in line and 'missing' in line for line in scores.said)

@pytest.mark.parametrize('cells, message', [
    (['1', '2', 'good', 'bad'], 'mixes 2 numbers with 2 words'),
    (['1,500', '2,000', '1,250', '3,100'], 'could be a thousand or a decimal comma'),
    (['cat', 'dog', 'cat', 'dog'], "--order 'dog < cat'|--order 'cat < dog'"),
    (['N/A', '', 'nan', None], 'holds no score'),
])
def test_what_only_the_owner_knows_is_asked(cells, message):
    frame = table(x=cells, y=['1', '2', '3', '4'])
    with pytest.raises(BadInput, match=message): read_scores(frame, human='x', judge='y')

def test_scales_that_differ_are_said():
    scores = read_scores(table(gpt4=[.1, .5, .9, 1.], human=[1, 3, 4, 5]))
    assert scores.scale.low == 1 and scores.scale.high == 5 and scores.scales['gpt4'].high == 1
    assert any(line.startswith('Scales differ') for line in scores.said)
    same = read_scores(table(gpt4=[1, 2, 3, 4], human=[1, 3, 4, 5]))
    assert (same.scale.low, same.scale.high) == (1, 5) and not any('Scales differ' in line for line in same.said)

def test_turned_round():
    frame = table(judge_errors=[0, 1, 4, 2], human=[5, 4, 1, 2])
    assert any("'judge_errors' sounds as if more were worse" in line for line in read_scores(frame).said)
    scores = read_scores(frame, judge='-judge_errors')
    assert numbers(scores, 'judge_errors') == [4, 3, 0, 2] and numbers(scores, 'human') == [5, 4, 1, 2]
    assert not any('sounds as if' in line for line in scores.said)
    both = read_scores(frame, higher='worse')
    assert numbers(both, 'judge_errors') == [5, 4, 1, 3] and numbers(both, 'human') == [0, 1, 4, 3] # both on 0 to 5
    labels = read_scores(table(gpt=['yes', 'no', 'no', 'yes'], human=['yes', 'yes', 'no', 'no']), higher='worse')
    assert labels.scale.labels == ('yes', 'no') and numbers(labels, 'gpt') == [0, 1, 1, 0]

# Items, repeats and groups

def test_repeats_and_ids_that_name_no_item():
    again = read_scores(pd.DataFrame(dict(id=['a', 'a', 'b'], gpt4=[1, 2, 3], human=[1, 2, 2])))
    assert again.frame['item'].tolist() == ['a', 'a', 'b']
    assert any(line.startswith('1 rows are of an item that has another row') for line in again.said)
    scored = dict(gpt4=[1, 2, 3], human=[1, 2, 2])
    systems = read_scores(pd.DataFrame(dict(id=['a', 'a', 'b'], system=['x', 'y', 'x']) | scored))
    assert systems.frame['item'].tolist() == ['a/x', 'a/y', 'b/x'] and systems.clustered == 'id'
    texts = dict(id=['a', 'a', 'b'], remark=['The fox ran home.', 'The hen hid well.', 'It rained all day.'])
    questions = read_scores(pd.DataFrame(texts | scored))
    assert questions.frame['item'].tolist() == ['1', '2', '3'] and questions.clustered == 'id'
    lacking = read_scores(pd.DataFrame(dict(id=['a', None, None]) | scored))
    assert lacking.frame['item'].tolist() == ['a', 'row 2', 'row 3']

def test_groups_are_proposed_and_never_taken():
    n = 60
    frame = pd.DataFrame(dict(topic=['p', 'q']*30, doc_id=[str(i//3) for i in range(n)],
                              question=[f'Q{i//2}' for i in range(n)], gpt4=np.arange(n) % 5,
                              human=np.arange(n) % 4))
    scores = read_scores(frame)
    assert scores.clustered == 'doc_id' and not scores.group_given and 'group' not in scores.frame
    line = next(line for line in scores.said if line.startswith('Rows are not independent'))
    assert "'doc_id' repeats (20 different in 60 rows" in line and "--group 'doc_id'" in line
    given = read_scores(frame, group='topic,question')
    assert given.frame['group'][0] == 'p/Q0' and given.group_given and given.clustered == ''
    alone = frame.drop(columns=['topic', 'doc_id']).assign(question=[f'Q{i}' for i in range(n)])
    assert read_scores(alone).clustered == ''

# Damaged and odd files: each a `ScoreFile`, or one sentence

def xlsx(path):
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('[Content_Types].xml', '<Types/>')
        archive.writestr('xl/workbook.xml', '<workbook/>')
    return path.read_bytes()

WIDE = ','.join(f'c{i}' for i in range(10_000))
CHAT = '\n'.join(json.dumps(dict(messages=[dict(role='user', content='Hi.'), dict(role='assistant', content='Yes.')]))
                 for _ in range(3))
ODD = {
    'empty.csv': (b'', 'is empty'),
    'bom_only.csv': (b'\xef\xbb\xbf\n', 'is empty'),
    'header_only.csv': ('id,gpt4,human\n', 'holds no rows'),
    'two_rows.csv': ('gpt4,human\n1,2\n2,1\n', 2),
    'one_row.csv': ('gpt4,human\n1,2\n', 1),
    'one_column.csv': ('human\n1\n2\n', 'no column looks like a judge'),
    'twice.csv': ('gpt4,human,human\n1,2,3\n', 'two columns .human.'),
    'long_rows.csv': ('gpt4,human\n1,2\n1,2,3\n', "can't be read"),
    'quote.csv': ('gpt4,human\n"1,2\n', "can't be read|holds no rows"),
    'latin.csv': (b'gpt4,human,name\n1,2,caf\xe9\n', 'not in UTF-8'),
    'utf16.csv': ('gpt4,human\n1,2\n'.encode('utf-16'), 'UTF-16'),
    'nul.csv': (b'gpt4,human\n1,\x002\n', 'no text'),
    'page.csv': ('<html><table></table></html>', 'HTML or XML'),
    'same_ids.csv': ('id,gpt4,human\na,1,2\na,2,1\na,2,2\n', 3),
    'ties.csv': ('gpt4,human\n3,3\n3,3\n3,3\n', 3),
    'one_group.csv': ('doc_id,gpt4,human\nx,3,3\nx,2,3\nx,1,3\n', 3),
    'one_rater.csv': ('item,rater,score\na,ann,1\nb,ann,2\n', 'no column looks like a judge|No rater|--judge'),
    'apart.csv': ('item,rater,score\na,ann,1\nb,gpt4,2\n', 2),
    'wide.csv': (f'{WIDE},gpt4,human\n' + ','.join(['1']*10_002) + '\n' + ','.join(['2']*10_002) + '\n', 2),
    'only_missing.csv': ('gpt4,human\nN/A,1\n,2\n', 'holds no score|No column|no column looks like'),
    'formula.csv': ('gpt4,human\n=1+1,2\n3,4\n', '=1\\+1|mixes|no column looks'),
    'hostile.csv': ('gpt4,human,text\n1,2,<script>alert(1)</script>\n2,1,"\u202e\u0000a b"\n'.replace('\u0000', ''), 2),
    'chat.jsonl': (CHAT, 'No column looks like a judge or a person'),
    'broken.json': ('[{"gpt4": 1,]', "can't be read"),
    'number.json': ('3', 'no list of objects'),
    'lists.json': (json.dumps(dict(a=[dict(x=1)], b=[dict(y=1)])), 'several lists'),
    'deep.json': ('['*100_000, "can't be read"),
    'mixed.json': ('[{"gpt4": 1, "human": 2}, 3]', 'Row 2 of'),
    'same_key.json': ('[{"gpt4": 1, "gpt4": 2}]', "can't be read"),
    'line.jsonl': ('{"gpt4": 1, "human": 2}\n{"gpt4": 1,\n', 'Line 2'),
    'short.parquet': (b'PAR1', 'not a readable parquet'),
    'old.xls': (b'\xd0\xcf\x11\xe0', 'old Excel'),
    'packed.csv.gz': (b'\x1f\x8b\x08', 'gzip'),
    'paper.pdf': (b'%PDF-1.7', 'PDF'),
    'short.eval': (b'PK\x03\x04', 'damaged zip'),
    'notes.md': ('gpt4,human\n1,2\n', 'its name must end in .csv'),
    'script.py': ('print(1)\n', 'its name must end in .csv'),
}

@pytest.mark.parametrize('name', ODD)
def test_odd_files(name, tmp_path):
    content, expected = ODD[name]
    path = written(tmp_path, name, content)
    if isinstance(expected, int):
        scores = read_scores(path)
        assert isinstance(scores, ScoreFile) and len(scores.frame) == expected
        assert (scores.judges, scores.humans)[0] == ('gpt4',)
    else:
        with pytest.raises(BadInput, match=expected) as error: read_scores(path)
        assert '\n' not in str(error.value) and str(error.value).endswith(('.', '?')) and len(str(error.value)) < 1500
    assert [p.name for p in tmp_path.iterdir()] == [name] # nothing is left behind

def test_spreadsheets_folders_and_other_zips(tmp_path):
    for name in ('sheet.xlsx', 'sheet.csv'):
        xlsx(tmp_path/name)
        with pytest.raises(BadInput, match='spreadsheet.*CSV'): read_scores(tmp_path/name)
    with zipfile.ZipFile(tmp_path/'x.zip', 'w') as archive: archive.writestr('a.csv', 'gpt4,human\n1,2\n')
    with pytest.raises(BadInput, match='compressed .zip.'): read_scores(tmp_path/'x.zip')
    with pytest.raises(BadInput, match='is a folder'): read_scores(tmp_path)
    with pytest.raises(BadInput, match='There is no file'): read_scores(tmp_path/'none.csv')
    assert all(file_kind(written(tmp_path, f'a{ending}', 'a,b\n1,2\n')) for ending in ENDINGS[:4])

def test_frames_without_rows_or_names():
    with pytest.raises(BadInput, match='holds no rows'): read_scores(pd.DataFrame(dict(gpt4=[], human=[])))
    with pytest.raises(BadInput, match='two columns'): read_scores(pd.DataFrame([[1, 2]], columns=['human', 'human']))
    scores = read_scores(pd.DataFrame({0: [1, 2], 1: [2, 1]}, index=['x', 'y']), judge='0', human='1')
    assert numbers(scores, '0') == [1, 2] and scores.frame.index.tolist() == [0, 1]

# What other tools write: made by running them, see score_files/README.md

RIGHT = [1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 0, 0] # by the stub's rule, in the order of the twelve questions
SAID = [1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1]  # by a person

def test_ragas():
    scores = read_scores(MADE/'ragas_experiment.csv')
    assert (scores.judges, scores.humans) == (('faithfulness',), ('human_label',))
    order = scores.frame['item'].astype(int) - 1 # rows lie in the order in which they were done
    assert numbers(scores, 'human_label') == [SAID[i] for i in order]
    assert numbers(scores, 'faithfulness') == [RIGHT[i] for i in order]
    lines = read_scores(MADE/'ragas_experiment.jsonl', judge='correctness,faithfulness')
    assert numbers(lines, 'correctness') == numbers(lines, 'faithfulness') and lines.humans == ('human_label',)
    with pytest.raises(BadInput, match="There are judges .'faithfulness'.*without people"):
        read_scores(MADE/'ragas_evaluate.csv')
    export = pd.read_csv(MADE/'ragas_evaluate.csv')
    labelled = read_scores(export.assign(human=SAID))
    assert numbers(labelled, 'faithfulness') == RIGHT and labelled.frame['text'][0] == 'The miller did.'
    assert numbers(read_scores(export.assign(mine=SAID), human='mine'), 'mine') == SAID # the one flag

def test_deepeval():
    scores = read_scores(MADE/'deepeval_run.json')
    assert (scores.judges, scores.humans) == (('Faithfulness', 'Correctness [GEval]'), ('metadata.human_label',))
    assert numbers(scores, 'Faithfulness') == RIGHT and numbers(scores, 'metadata.human_label') == SAID
    assert numbers(scores, 'Correctness [GEval]') == [.9 if x else .2 for x in RIGHT]
    assert scores.frame['item'][1] == 'place 2' and scores.frame['source'][0] == 'The miller opened the gate at dawn.'

def test_inspect():
    scores = read_scores(MADE/'inspect_log.json')
    assert (scores.judges, scores.humans) == (('model_graded_qa', 'includes'), ('metadata.human',))
    graded = dict(zip(scores.frame['item'], scores.frame['model_graded_qa']))
    assert graded['place-10'] == 1 # P
    assert [graded[f'place-{i}']/2 for i in range(1, 13) if i != 10] == RIGHT[:9] + RIGHT[10:]
    people = read_scores(MADE/'inspect_people.eval')
    assert people.humans == ('human_grade',) and people.scale.labels == ('I', 'P', 'C')
    said = {item: x for item, x in zip(people.frame['item'], people.frame['human_grade'])}
    assert [said[f'place-{i}']/2 for i in range(1, 13)] == SAID
    epochs = read_scores(MADE/'inspect_epochs.eval')
    assert len(epochs.frame) == 24 and epochs.frame['group'].nunique() == 12 and epochs.group_given
    assert epochs.frame['item'].is_unique and 'place-1/2' in set(epochs.frame['item'])

def test_logs_that_are_damaged(tmp_path):
    path = tmp_path/'log.eval'
    shutil.copy(MADE/'inspect_people.eval', path)
    whole = path.read_bytes()
    assert len(zipped_samples(path)) == 12
    middle = whole.index(b'samples/') + 100
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1:])
    with pytest.raises(BadInput, match='damaged zip'): read_scores(path)
    for log, message in ((dict(eval={}, samples=[dict(id='1')]), 'has no scores'),
                         (dict(eval={}, plan={}), 'holds no samples'),
                         (dict(testCases=[dict(name='a')]), 'has no metrics'),
                         (dict(eval={}, samples=[3]), 'no JSON objects')):
        with pytest.raises(BadInput, match=message): read_scores(written(tmp_path, 'log.json', json.dumps(log)))

def test_a_sample_without_a_score_is_counted(tmp_path):
    samples = [dict(id=str(i), epoch=1, input='Who?', output=dict(completion='He.'), metadata=dict(human='C'),
                    scores=dict(graded=dict(value=value))) for i, value in enumerate('CINC')]
    samples[3]['scores'] = None
    scores = read_scores(written(tmp_path, 'log.json', json.dumps(dict(eval={}, samples=samples))))
    assert numbers(scores, 'graded') == [1, 0, None, None] # N: no answer, which is no 0
    assert '1 of 4 samples have no score.' in scores.said
    assert ['graded', 'N/A', 1, 'missing'] in scores.odd.values.tolist()

def test_every_eval_ever():
    scores = read_scores(MADE/'every_eval_ever.jsonl')
    assert (scores.judges, scores.humans) == (('evaluation.score',), ('metadata.human_label',))
    assert scores.frame['item'].tolist()[:2] == ['places_words/place-1', 'places_judge/place-1']
    assert numbers(scores, 'evaluation.score') == [1, 1, 0, .25, 1, 1, 0, .25, 1, 1, 0, .25]
    assert scores.frame['system'].unique().tolist() == ['own/stub'] and scores.frame['text'][2] == 'She carried a goat.'

def test_judgements_of_factlib(tmp_path):
    examples = [Example(id=i, source='The fox ran home.', target=t, truth=truth, group='g')
                for i, t, truth in (('a', 'The fox ran home.', 'true'), ('b', 'A hen hid.', 'lie'), ('c', '', 'lie'))]
    frames = [evaluate(get(name), examples, progress=False) for name in ('rouge1', 'length')]
    frame = pd.concat(frames, ignore_index=True)
    frame = frame.assign(benchmark='own', model='', truth=[json.dumps(e.truth) for e in examples]*2,
                         text_hash=['1', '2', '3']*2)
    frame['evidence'] = '{}'
    frame.to_parquet(tmp_path/'judgements.parquet')
    scores = read_scores(tmp_path/'judgements.parquet')
    assert (scores.judges, scores.humans) == (('rouge1', 'length'), ('truth',)) and 'system' not in scores.frame
    assert numbers(scores, 'truth') == [1, 0, 0] and numbers(scores, 'rouge1') == [1, 0, None]
    assert numbers(scores, 'length')[:2] == [4, 3] and scores.frame['group'].tolist() == ['g']*3
    assert scores.odd.iloc[0].tolist() == ['rouge1', 'inapplicable', 1, 'missing']
    texts = pd.DataFrame(dict(benchmark='own', id=['a', 'b', 'c'], text_hash=['1', '2', '3'],
                              target=[e.target for e in examples], source=[e.source for e in examples]))
    texts.to_parquet(tmp_path/'examples.parquet')
    assert read_scores(tmp_path/'judgements.parquet').frame['text'].tolist() == ['The fox ran home.', 'A hen hid.', '']
    assert known_table(pd.DataFrame(dict(a=[1])))[1] == ''

# Real files, against what their cards say

@real
def test_summhay():
    scores = read_scores(Path(DATA)/'summhay/eval_benchmark_data.json')
    assert len(scores.frame) == 1419 and scores.humans == ('annotation.coverage',) and scores.clustered == 'subtopic_id'
    printed = {'predictions_prompted_gemini-1.5-pro': .751, 'predictions_9fs_gpt-4o': .719,
               'predictions_prompted_gpt-4o': .716, 'predictions_prompted_claude3-opus': .677,
               'predictions_prompted_claude3-haiku': .498, 'predictions_prompted_gpt3.5': .495}
    assert set(scores.judges) == {f'{name}.coverage' for name in printed}
    for name, r in printed.items():
        assert scores.frame[f'{name}.coverage'].corr(scores.frame['annotation.coverage']) == pytest.approx(r, abs=.0005)
    assert scores.scale.kind == 'ordered' and len(scores.scale.labels) == 3

@real
def test_hanna():
    path = Path(DATA)/'hanna/hanna_metric_scores_llm.csv'
    scores = read_scores(path, judge='BLEU Ξ§', human='Relevance', group='place')
    assert len(scores.frame) == 1056 and scores.frame[['group', 'system']].nunique().tolist() == [96, 11]
    written_by_models = scores.frame[scores.frame['system'] != 'Human']
    assert written_by_models['BLEU Ξ§'].corr(written_by_models['Relevance']) == pytest.approx(.1124, abs=.00005)
    with pytest.raises(BadInput, match='--judge'): read_scores(path)

@real
def test_llmbar():
    both = 'results.swap = False.winner,results.swap = True.winner'
    for name, agrees, right in (('GPT-4', 95, 93), ('ChatGPT', 71, 67)):
        path = Path(DATA)/f'llmbar/Natural/evaluators/{name}/Vanilla/result.json'
        scores = read_scores(path, judge=both, human='label')
        first, second = (scores.frame[name] for name in scores.judges)
        assert scores.scale.kind == 'pair' and (first == second).sum() == agrees
        assert ((first == second) & (first == scores.frame['label'])).sum() == right

@real
@pytest.mark.parametrize('name, options, rows', [
    ('faithbench/batch_1.json', dict(human='metadata.hhemv1', judge='metadata.gpt_4o'), 50),
    ('storysumm/summaries.parquet', dict(human='human_score', judge='label'), 96),
    ('trutheval/human_preferences.parquet', dict(judge='evaluator_1', human='evaluator_2'), 100),
    ('trutheval/recorded_scores.parquet', dict(human='-level', item='id,level'), 500),
    ('ttcw/ttcw_annotations.json', dict(item='story_id,ttcw_idx'), None),
    ('judgememo/responses_vanilla.parquet', {}, None),
])
def test_other_real_files(name, options, rows):
    "Each is read, or says in a sentence what to say."
    try: scores = read_scores(Path(DATA)/name, **options)
    except BadInput as error:
        assert rows is None and '--' in str(error) and '\n' not in str(error)
        return
    assert rows is not None and len(scores.frame) == rows
