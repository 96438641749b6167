"""Files of scores as they come: formats, roles, scales, other tools' exports, and thirty that are damaged or odd."""
import csv, io, json, os, zipfile
from pathlib import Path

import pandas as pd
import pytest

from factlib.trust.scores import read_criteria, read_scores
from factlib.trust.verdicts import Comparisons
from factlib.core.records import BadInput

EXPORTS = Path(__file__).parent/'exports'
TABLE = 'id,doc,gpt4,human\na,x,1,2\nb,x,2,2\nc,y,5,4\nd,y,4,5\n'


@pytest.fixture
def written(tmp_path):
    "Writes a file, and gives its path."
    def write(content, name='mine.csv'):
        path = tmp_path/name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path
    return write


def refusal(path, **options):
    "The sentence that a file is refused with."
    with pytest.raises(BadInput) as error: read_scores(path, **options)
    assert '\n' not in str(error.value)
    return str(error.value)


def values(scores, name): return [None if x != x else x for x in scores.frame[name]]


# --- formats ---

ROWS = [dict(id='a', doc='x', gpt4=1, human=2), dict(id='b', doc='x', gpt4=2, human=2),
        dict(id='c', doc='y', gpt4=5, human=4), dict(id='d', doc='y', gpt4=4, human=5)]


def as_parquet(rows):
    content = io.BytesIO()
    pd.DataFrame(rows).to_parquet(content)
    return content.getvalue()


@pytest.mark.parametrize('name, content', {
    'a.csv': TABLE, 'bom.csv': '\ufeff' + TABLE, 'windows.csv': TABLE.replace('\n', '\r\n'),
    'semicolons.csv': TABLE.replace(',', ';'), 'tabs.tsv': TABLE.replace(',', '\t'), 'called.txt': TABLE,
    'quoted.csv': TABLE.replace('a,x', '"a","x"'), 'list.json': json.dumps(ROWS),
    'under_a_key.json': json.dumps(dict(about='us', rows=ROWS)),
    'columns.json': json.dumps({c: [row[c] for row in ROWS] for c in ROWS[0]}),
    'pandas.json': pd.DataFrame(ROWS).to_json(), 'lines.jsonl': '\n'.join(map(json.dumps, ROWS)),
    'lines.json': '\n'.join(map(json.dumps, ROWS)), 'a.parquet': as_parquet(ROWS),
    'no_ending': as_parquet(ROWS)}.items())
def test_one_table_in_every_format(written, name, content):
    scores = read_scores(written(content, name))
    assert (scores.judges, scores.humans, scores.clustered) == (('gpt4',), ('human',), 'doc')
    assert values(scores, 'gpt4') == [1, 2, 5, 4] and values(scores, 'human') == [2, 2, 4, 5]
    assert list(scores.frame.item) == ['a', 'b', 'c', 'd'] and list(scores.frame.row) == [1, 2, 3, 4]
    assert scores.odd.empty and str(scores.scale) == 'number, 1 to 5'


def test_a_frame_is_read_and_left_alone():
    frame = pd.DataFrame(ROWS, index=list('wxyz'))
    before = frame.copy()
    scores = read_scores(frame, group='doc')
    pd.testing.assert_frame_equal(frame, before)
    assert scores.name == 'frame' and scores.group_given and list(scores.frame.group) == ['x', 'x', 'y', 'y']
    assert isinstance(scores.frame.index, pd.RangeIndex)


def test_nested_columns_are_reached_by_path(written):
    rows = [dict(id=i, meta=dict(score=i/4, by=dict(person=i % 2))) for i in range(4)]
    scores = read_scores(written(json.dumps(rows), 'a.json'), judge='meta.score', human='meta.by.person')
    assert values(scores, 'meta.score') == [0, .25, .5, .75] and values(scores, 'meta.by.person') == [0, 1, 0, 1]
    nested = read_scores(written(as_parquet(rows), 'a.parquet'), judge='meta.score', human='meta.by.person')
    pd.testing.assert_frame_equal(nested.frame, scores.frame)


# --- one row a rating ---

RATINGS = 'item,rater,rating\na,ann,4\na,gpt-4o,5\nb,ann,2\nb,bob,1\nb,gpt-4o,refused\n'


def test_ratings_become_columns(written):
    scores = read_scores(written(RATINGS))
    assert (scores.judges, scores.humans) == (('gpt-4o',), ('ann', 'bob'))
    assert values(scores, 'gpt-4o') == [5, None]
    assert values(scores, 'ann') == [4, 2] and values(scores, 'bob') == [None, 1]
    assert scores.odd.values.tolist() == [['gpt-4o', 'refused', 1, 'missing']]


def test_a_flag_names_raters(written):
    path = written('item,grader,score\na,x,1\na,y,2\nb,x,3\nb,y,4\n')
    assert "--judge 'x'" in refusal(path)
    scores = read_scores(path, judge='y')
    assert (scores.judges, scores.humans, values(scores, 'y')) == (('y',), ('x',), [2, 4])
    assert "there is no column 'z'" in refusal(path, judge='z')


def test_a_label_beside_ratings_is_one_column(written):
    rows = 'id,judge,score,truth\n' + ''.join(f'{i},{j},{s},{t}\n' for i, t in (('a', 'yes'), ('b', 'no'))
                                              for j, s in (('gpt', .5), ('claude', .25)))
    scores = read_scores(written(rows))
    assert (scores.judges, scores.humans) == (('gpt', 'claude'), ('truth',))
    assert len(scores.frame) == 2 and values(scores, 'truth') == [1, 0]


def test_the_same_item_rated_twice_has_two_rows(written):
    scores = read_scores(written(RATINGS + 'a,gpt-4o,3\n'))
    assert list(scores.frame.item) == ['a', 'b', 'a'] and values(scores, 'gpt-4o') == [5, None, 3]
    assert list(scores.frame.row) == [1, 3, 6] and values(scores, 'ann') == [4, 2, None]
    assert any('judged again' in line for line in scores.said)


def test_both_orders_of_a_pair_are_two_rows(written):
    rows = 'id,judge,position,verdict,human\na,gpt,AB,A,A\na,gpt,BA,tie,A\nb,gpt,AB,B,A\nb,gpt,BA,B,A\n'
    scores = read_scores(written(rows))
    assert isinstance(scores, Comparisons) and len(scores.frame) == 2
    assert scores.judges['gpt'].tolist() == [1, 0] and scores.swapped['gpt'].tolist() == [.5, 0] and scores.humans['human'].tolist() == [1, 1]


def test_an_item_of_several_systems_is_both(written):
    rows = 'id,system,judge,human\n' + ''.join(f'q{i},{s},{i},{i}\n' for i in range(3) for s in 'ab')
    scores = read_scores(written(rows))
    assert list(scores.frame.item) == ['q0/a', 'q0/b', 'q1/a', 'q1/b', 'q2/a', 'q2/b'] and scores.clustered == 'id'


def test_each_criterion_is_read_by_itself(written):
    long = 'id,rater,criterion,score\na,ann,style,1\na,ann,facts,2\na,gpt,style,3\na,gpt,facts,4\n'
    found = read_criteria(written(long))
    assert {name: (values(f, 'ann'), values(f, 'gpt')) for name, f in found.items()} == dict(style=([1], [3]), facts=([2], [4]))
    assert "--criterion 'style'" in refusal(written(long)) and values(read_scores(written(long), criterion='facts'), 'gpt') == [4]
    assert list(read_scores(written(long), item='id,criterion').frame.item) == ['a/style', 'a/facts']
    wide = 'gpt_style,gpt_facts,human_style,human_facts\n1,2,1,2\n2,1,2,1\n'
    assert {name: (f.judges, f.humans) for name, f in read_criteria(written(wide)).items()} == dict(
        style=(('gpt_style',), ('human_style',)), facts=(('gpt_facts',), ('human_facts',)))
    assert read_scores(written(wide), judge='gpt_facts', human='human_facts').humans == ('human_facts',)
    assert "'tone'" in refusal(written(wide), criterion='tone')


# --- roles ---

def test_roles_are_said_with_their_flags(written):
    rows = 'id,document,summary,model,gpt4,gpt4_cost,human_1,human_2,human_mean\n' + ''.join(
        f'{i},The fox {i//4} ran over it.,The fox ran {i}.,{"xy"[i % 2]},{i % 5},.1,{i % 3},{i % 4},2\n'
        for i in range(40))
    scores = read_scores(written(rows))
    roles = scores.roles.set_index('column').role.to_dict()
    assert roles == dict(id='item', document='source', summary='text', model='system', gpt4='judge', human_1='human',
                         human_2='human', human_mean='left out', gpt4_cost='cost')
    assert scores.costs.frame.gpt4.tolist() == [.1]*40
    assert scores.clustered == 'document' and not scores.group_given
    for flag in ('--judge', '--human', '--item', '--system', '--text', '--source'):
        assert any(f'{flag} changes it' in line for line in scores.said), flag
    assert list(read_scores(written(rows), group='document', text='').frame) == [
        'item', 'row', 'group', 'system', 'source', 'gpt4', 'human_1', 'human_2']


@pytest.mark.parametrize('header, flags', {
    'evaluator_1,gpt4': ['--judge', '--human'], 'annotation_gpt4,human': ['--judge', '--human'],
    'a,b': ['--judge', '--human'], 'human,fluency': ['--judge'], 'gpt4,stars': ['--human']}.items())
def test_what_could_be_two_things_names_its_flag(written, header, flags):
    said = refusal(written(f'{header}\n1,2\n2,1\n3,3\n'))
    assert all(flag in said for flag in flags)


def test_a_long_header_is_cut_and_counted(written):
    names = [f'c{i}' for i in range(10_000)]
    said = refusal(written(','.join(names) + '\n' + ','.join(['1']*10_000) + '\n'))
    assert "'c0'" in said and 'and 9,970 more' in said and len(said) < 2000


def test_columns_that_were_taken_by_name_can_be_given_instead(written):
    scores = read_scores(written(TABLE), judge='human', human='gpt4')
    assert (scores.judges, scores.humans) == (('human',), ('gpt4',))
    assert 'as a judge and as a person' in refusal(written(TABLE), judge='gpt4', human='gpt4')
    assert "there is no column 'gpt5'" in refusal(written(TABLE), judge='gpt5')


def test_a_minus_turns_one_column_and_higher_all():
    frame = pd.DataFrame(dict(judge=[1, 2, 5], human=[5, 4, 1]))
    assert values(read_scores(frame, judge='judge', human='-human'), 'human') == [1, 2, 5]
    turned = read_scores(frame, higher='worse')
    assert values(turned, 'judge') == [5, 4, 1] and values(turned, 'human') == [1, 2, 5]
    labels = pd.DataFrame(dict(judge=['low', 'high'], human=['high', 'medium']))
    turned = read_scores(labels, higher='worse')
    assert turned.scale.labels == ('high', 'medium', 'low') and values(turned, 'judge') == [2, 0]


# --- scales ---

@pytest.mark.parametrize('judge, human, kind, codes', [
    (['yes', 'no', 'yes'], ['supported', 'unsupported', 'supported'], 'binary', [1, 0, 1]),
    (['1', '0', '1'], ['pass', 'fail', 'fail'], 'binary', [1, 0, 1]),
    (['FULL', 'NO_COVERAGE', 'PARTIAL'], ['fully', 'not covered', 'partially'], 'ordered', [2, 0, 1]),
    (['poor', 'Good', 'excellent'], ['poor', 'fair', 'good'], 'ordered', [0, 2, 3]),
    (['red', 'blue', 'green'], ['red', 'green', 'red'], 'nominal', None),
    (['1', '7', '12'], ['2', '7', '9'], 'number', [1, 7, 12])])
def test_scales(judge, human, kind, codes):
    frame = pd.DataFrame(dict(judge=judge*2, human=human*2))
    scores = read_scores(frame)
    assert scores.scale.kind == kind
    if codes: assert values(scores, 'judge')[:3] == codes
    for name, given in dict(judge=judge, human=human).items(): # equal codes are equal labels
        labels = scores.scales[name].labels
        if kind == 'nominal': assert [labels[int(x)] for x in values(scores, name)[:3]] == given


def test_two_labels_whose_order_nobody_knows(written):
    path = written('judge,human\nmellow,harsh\nharsh,harsh\nmellow,mellow\n')
    assert '--order' in refusal(path)
    scores = read_scores(path, order='harsh < mellow')
    assert scores.scale.labels == ('harsh', 'mellow') and values(scores, 'judge') == [1, 0, 1]
    assert "lacks the label 'harsh'" in refusal(path, order='mellow < other')


def test_a_count_is_told_by_its_name():
    frame = pd.DataFrame(dict(judge_n_errors=[3, 0, 12], human_n_errors=[2, 0, 9]))
    scores = read_scores(frame, higher='worse')
    assert scores.scale.kind == 'count' and values(scores, 'human_n_errors') == [10, 12, 3] # of 0 to 12: 12 - x


# --- cells ---

def test_odd_cells_are_counted_and_shown(written):
    cells = ['1', ' 2', 'N/A', '', 'NaN', '8/10', '9', '10', '3', 'refused', 'see note', '7', '6', '5', '4', '4', '4',
             '4', '4', 'inf']
    rows = [f'{cell},{i % 5}' for i, cell in enumerate(cells)]
    scores = read_scores(written('\n'.join(['judge,human', *rows, ''])))
    odd = {(row.value, row.taken_for): row.n for row in scores.odd.itertuples()}
    missing = {('N/A', 'missing'): 1, ('', 'missing'): 1, ('NaN', 'missing'): 1, ('refused', 'missing'): 1,
               ('see note', 'missing'): 1, ('inf', 'missing'): 1}
    assert odd == missing | {('8/10', '8'): 1}
    assert values(scores, 'judge') == [1, 2, None, None, None, 8, 9, 10, 3, None, None, 7, 6, 5, 4, 4, 4, 4, 4, None]
    assert scores.scales['judge'].high == 10
    assert scores.odd.n.sum() - 1 == scores.frame.judge.isna().sum()


@pytest.mark.parametrize('cells, comma, numbers', [
    (['7,5', '8,25', '9'], ',', [7.5, 8.25, 9]), (['0,125', '0,5', '1'], ',', [.125, .5, 1]),
    (['1,500', '2,250', '3'], ';', [1.5, 2.25, 3]), (['85 %', '90%', '7.5 %'], ',', [85, 90, 7.5]),
    (['4/5', '8/10', '1/2'], ',', [.8, .8, .5]), (['8/10', '9/10', '3 out of 10'], ',', [8, 9, 3]),
    (['.8', '8/10', '.7'], ',', [.8, None, .7])])
def test_numbers_in_other_ways_of_writing(written, cells, comma, numbers):
    rows = [f'"{cell}"{comma}{i}' for i, cell in enumerate(cells)]
    scores = read_scores(written('\n'.join([f'judge{comma}human', *rows, ''])))
    assert values(scores, 'judge') == numbers


def test_what_a_cell_means_is_the_owners_to_say(written):
    table = lambda cells: written('judge,human\n' + '\n'.join(f'"{c}",{i}' for i, c in enumerate(cells)) + '\n')
    assert 'thousand' in refusal(table(['1,500', '2,000', '3,250']))
    assert 'mixes' in refusal(table(['1', '2', 'good', 'bad', '3']), judge='judge')


def test_numbers_as_texts_and_truths_in_json(written):
    rows = [dict(gpt='4', human=True), dict(gpt=3, human=False), dict(gpt=None, human=True),
            dict(gpt=[2], human=None)]
    scores = read_scores(written(json.dumps(rows), 'a.json'))
    assert values(scores, 'gpt') == [4, 3, None, 2] and values(scores, 'human') == [1, 0, 1, None]


# --- damaged and odd files: a table or one sentence ---

def zipped(*names):
    content = io.BytesIO()
    with zipfile.ZipFile(content, 'w') as archive:
        for name in names: archive.writestr(name, '{"a": [}')
    return content.getvalue()


TURNS = [dict(role='user', content='Hi.'), dict(role='assistant', content='Hello.')]
CHAT = '\n'.join(json.dumps(dict(id=i, messages=TURNS)) for i in range(3))
REFUSED = {
    'utf16.csv': (TABLE.encode('utf-16'), 'UTF-16'),
    'latin.csv': ('gpt,human\n1,2\ncaf\xe9,1\n'.encode('latin-1'), 'UTF-8'),
    'empty.csv': ('', 'empty'),
    'header.csv': ('gpt,human\n', 'no rows'),
    'blank.csv': ('\n\n\n', 'empty'),
    'sheet.xlsx': (zipped('xl/workbook.xml'), "can't be read"),
    'sheet.csv': (zipped('xl/workbook.xml'), "can't be read"),
    'old.xls': (b'\xd0\xcf\x11\xe0' + b'\0'*99, 'Excel'),
    'some.zip': (zipped('readme.md'), 'archive'),
    'log.eval': (zipped('samples/1.json'), "can't be read"),
    'cut.eval': (zipped('samples/1.json')[:40], 'archive'),
    'binary.csv': (bytes(range(256)), 'no text'),
    'page.csv': ('<!doctype html><table>', 'HTML'),
    'cut.json': (json.dumps(ROWS)[:-5], "can't be read"),
    'number.json': ('3', 'no list'),
    'words.json': ('hello', "can't be read"),
    'cut.jsonl': (json.dumps(ROWS[0]) + '\n{"id": ', 'Line 2'),
    'cut.parquet': (as_parquet(ROWS)[:-9], 'parquet'),
    'deep.json': ('['*100_000, "can't be read"),
    'mixed.json': (json.dumps([ROWS[0], 3]), 'Row 2'),
    'two_lists.json': (json.dumps(dict(a=ROWS, b=ROWS)), 'several lists'),
    'key_twice.json': ('[{"human": 1, "human": 2}]', 'twice'),
    'column_twice.csv': ('gpt,human,human\n1,2,3\n', 'two columns'),
    'wide.csv': ('gpt,human\n1,2,3\n1,2,3\n', 'more cells'),
    'ragged.csv': ('gpt,human\n1,2\n1,2,3\n', "can't be read"),
    'quote.csv': ('gpt,human\n"1,2\n', 'quotation'),
    'chat.jsonl': (CHAT, 'No column'),
    'prose.txt': ('A fox ran.\nIt hid.\nIt came back.\n', 'No column'),
    'texts.csv': ('gpt,human\nA fox ran home.,It hid well.\nA hen ran off.,It ran too.\n', 'No column'),
    'no_scores.csv': ('gpt,human\n,\n,\n', 'No column'),
    'no_rater.csv': ('id,rater,score\na,,1\nb,ann,2\n', 'who rated'),
    'no_item.csv': ('rater,score\nann,1\ngpt,2\n', '--item'),
    'huge.csv': ('x'*300_000, 'holds no rows')}


@pytest.mark.parametrize('name', REFUSED)
def test_a_file_that_cant_be_used_is_one_sentence(written, name):
    content, said = REFUSED[name]
    path = written(content, name)
    assert said in refusal(path) and path.parent.joinpath(name).exists() and len(list(path.parent.iterdir())) == 1


def test_no_file_and_a_folder(tmp_path):
    assert 'no file' in refusal(tmp_path/'gone.csv') and 'folder' in refusal(tmp_path)


N = 12
MANY = ','.join(f'x{i}' for i in range(9998))
ODD = {
    'duplicate ids': ('id,gpt,human\n' + 'a,1,2\n'*N, dict(rows=N, items=1)),
    'one rater': ('id,rater,score\n' + ''.join(f'{i},gpt,{i}\n{i},ann,{i}\n' for i in range(N)), dict(rows=N)),
    'no overlap': ('id,rater,score\n' + ''.join(f'{i},{"gpt" if i % 2 else "ann"},{i}\n' for i in range(N)),
                   dict(rows=N)),
    'one group': ('group,gpt,human\n' + ''.join(f'g,{i},{i}\n' for i in range(N)), dict(rows=N, groups=1)),
    'constant judge': ('gpt,human\n' + ''.join(f'3,{i % 5}\n' for i in range(N)), dict(rows=N)),
    'two rows': ('gpt,human\n1,2\n2,1\n', dict(rows=2)),
    'one row': ('gpt,human\n1,2\n', dict(rows=1)),
    'short rows': ('gpt,human\n1,2\n1\n2,2\n', dict(rows=3)),
    'empty rows': ('gpt,human\n1,2\n,\n2,2\n', dict(rows=3)),
    'no ids': ('id,gpt,human\na,1,2\n,1,2\n,2,1\n', dict(rows=3)),
    'index of pandas': (',gpt,human\n0,1,2\n1,2,2\n', dict(rows=2)),
    '10,000 columns': (f'gpt,human,{MANY}\n' + '1,2' + ',7'*9998 + '\n', dict(rows=1)),
    'formulas': ('id,gpt,human\n=1+1,1,2\n<b>x</b>,2,1\n', dict(rows=2)),
    'other scripts': ('id,gpt,human\n\u0627\u0644\u0641,1,2\n\u72d0\u72f8,2,1\n\U0001f98a,1,1\n', dict(rows=3)),
    'a judge without a score': ('gpt,claude,human\n' + '1,refused,2\n'*N, dict(rows=N)),
    'a judge called row': ('item,row,human\n' + 'a,1,2\nb,2,1\n', dict(rows=2, judge='row'))}


@pytest.mark.parametrize('name', ODD)
def test_an_odd_file_is_a_table(written, name):
    content, facts = ODD[name]
    scores = read_scores(written(content), judge=facts.get('judge'))
    frame = scores.frame
    assert len(frame) == facts['rows'] and len(set(frame.item)) == facts.get('items', facts['rows'])
    assert facts.get('groups') == (frame.group.nunique() if 'group' in frame else None)
    assert frame[list(scores.judges)].notna().any().any() and frame[list(scores.humans)].notna().any().any()
    assert not set(scores.judges) & {'item', 'row', 'group', 'system', 'text', 'source', 'time', 'position'}
    assert all('\n' not in line for line in scores.said)


# --- lists in rows ---

def test_lists_are_matched_by_the_id_they_share(written):
    marks = lambda key, order, values: [{'part_id': i, key: v} for i, v in zip(order, values)]
    rows = [dict(doc=f'd{i}', people=marks('human', 'xy', ['yes', 'no']), judged=marks('gpt', 'yx', ['no', 'yes']))
            for i in range(3)]
    scores = read_scores(written(json.dumps(rows), 'a.json'))
    assert values(scores, 'judged.gpt') == values(scores, 'people.human') == [1, 0]*3 and scores.clustered == 'doc'
    rows[1]['judged'][0]['part_id'] = 'z'
    assert 'Row 2' in refusal(written(json.dumps(rows), 'a.json'), judge='judged.gpt', human='people.human')


def test_columns_of_lists_of_numbers(written):
    table = pd.DataFrame(dict(system=['a', 'b'], bleu=['[0.1, 0.2]', '[0.3, 0.4]'], human_1=['[1, 2]', '[3, null]']))
    scores = read_scores(written(table.to_csv(index=False)))
    assert values(scores, 'bleu') == [.1, .2, .3, .4] and values(scores, 'human_1') == [1, 2, 3, None]
    assert list(scores.frame.system) == ['a', 'a', 'b', 'b']


# --- other tools ---

def told(human, judges, scores):
    "Whether what was read is what the file says."
    assert values(scores, scores.humans[0]) == [float(x == 'yes') for x in human]
    for name, said in judges.items(): assert values(scores, name) == said, name


def test_ragas_tables_need_no_flag():
    with open(EXPORTS/'ragas.csv', encoding='utf-8', newline='') as file: rows = list(csv.DictReader(file))
    for name in ('ragas.csv', 'ragas.jsonl'):
        scores = read_scores(EXPORTS/name)
        told([r['human'] for r in rows], dict(faithfulness=[float(r['faithfulness']) for r in rows]), scores)
        assert list(scores.frame.text) == [r['response'] for r in rows] and scores.clustered == 'user_input'
        assert scores.frame.source[0] == 'The fox ran over the bridge at dawn and hid under the old mill.'


def test_a_deepeval_run_needs_no_flag():
    scores = read_scores(EXPORTS/'deepeval.json')
    cases = json.loads((EXPORTS/'deepeval.json').read_text())['testCases']
    names = [m['name'] for m in cases[0]['metricsData']]
    said = {f'scores.{n}': [m['score'] for case in cases for m in case['metricsData'] if m['name'] == n] for n in names}
    told([case['metadata']['human'] for case in cases], said, scores)
    assert scores.judges == tuple(said) and set(scores.frame.system) == {'alpha', 'beta'}
    assert list(scores.frame.item) == [case['name'] for case in cases]


def test_inspect_logs_need_no_flag():
    samples = json.loads((EXPORTS/'inspect.json').read_text())['samples']
    letters = dict(C=1., I=0.)
    said = {f'scores.{n}': [letters[s['scores'][n]['value']] for s in samples] for n in ('model_graded_qa', 'includes')}
    scores = read_scores(EXPORTS/'inspect.json')
    told([s['metadata']['human'] for s in samples], said, scores)
    assert list(scores.frame.text) == [s['output']['completion'] for s in samples]
    whole = read_scores(EXPORTS/'inspect.eval') # compressed with Zstandard, 24 samples
    assert len(whole.frame) == 24 and whole.frame['metadata.human'].sum() == 16
    both = whole.frame.set_index('item').loc[scores.frame.item]
    assert both[list(said)].values.tolist() == scores.frame[list(said)].values.tolist()


def test_letters_of_inspect(written):
    sample = lambda i, letter: dict(id=i, scores=dict(graded=dict(value=letter)), metadata=dict(human=i % 3))
    log = dict(eval={}, samples=[sample(i, letter) for i, letter in enumerate('CPIN')])
    scores = read_scores(written(json.dumps(log), 'log.json'))
    assert values(scores, 'scores.graded') == [2, 1, 0, None]
    assert scores.odd.values.tolist() == [['scores.graded', 'no answer', 1, 'missing']]


def instance(i, model, name, score, **more):
    "A row with all that the schema 0.2.1 asks for; in `metadata` every value is a text."
    return dict(
        schema_version='0.2.1', evaluation_id='e/x/1', model_id=f'org/{model}', evaluation_name=name, sample_id=f's{i}',
        sample_hash='ab', interaction_type='single_turn', messages=None, error=None, metadata=dict(human=str(i % 2)),
        input=dict(raw=f'Where did fox {i} hide?', formatted=None, reference=['In the mill.'], choices=None),
        output=dict(raw=['In the mill.'], reasoning_trace=[]),
        answer_attribution=[dict(turn_idx=0, source='output.raw', extracted_value='mill', extraction_method='llm_judge',
                                 is_terminal=True)],
        evaluation=dict(score=score, is_correct=score > .15, num_turns=None, tool_calls_count=None),
        token_usage=dict(input_tokens=790 + i, output_tokens=2, total_tokens=792 + i), performance=None) | more

def as_lines(rows): return '\n'.join(map(json.dumps, rows))

def test_instance_rows_of_every_eval_ever(written):
    names = ("brevity", "truth")
    rows = [instance(i, m, n, (i + k)/10) for i in range(3) for m in "xy" for k, n in enumerate(names)]
    scores = read_scores(written(as_lines(rows), 'a_samples.jsonl'))
    assert (scores.judges, scores.humans) == (('brevity', 'truth'), ('metadata.human',))
    assert len(scores.frame) == 6 and values(scores, 'truth') == [.1, .1, .2, .2, .3, .3]
    assert set(scores.frame.system) == {'org/x', 'org/y'} and scores.frame.text[0] == 'In the mill.'
    assert scores.costs is None # tokens are those of the model that is evaluated

def test_what_every_eval_ever_calls_correct_is_nobodys_word(written):
    rows = [instance(i, 'x', 'truth', i/10, metadata=None) for i in range(6)]
    assert 'No column looks like a person' in refusal(written(as_lines(rows), 'a_samples.jsonl'))
    told = [row | dict(metadata=dict(human=str(i % 2))) for i, row in enumerate(rows)]
    scores = read_scores(written(as_lines(told), 'b_samples.jsonl'))
    assert scores.humans == ('metadata.human',) and any('is made of the score' in line for line in scores.said)

def test_a_conversation_of_every_eval_ever(written):
    said = [dict(turn_idx=0, role='user', content='Where?'),
            dict(turn_idx=1, role='assistant', content='In the mill, I think.')]
    more = dict(output=None, messages=said, interaction_type='multi_turn')
    rows = [instance(i, 'x', 'truth', i/10, **more) for i in range(6)]
    assert read_scores(written(as_lines(rows), 'a_samples.jsonl')).frame.text.tolist() == ['In the mill, I think.']*6

def test_tokens_of_a_text_are_not_what_a_rating_costs(written):
    rows = [dict(item=f'{i}', rater=r, rating=i % 3, tokens=10 + i) for i in range(4) for r in ('ann', 'gpt4', 'opus')]
    scores = read_scores(pd.DataFrame(rows))
    assert scores.costs is None and any("'tokens': the same for all raters" in line for line in scores.said)
    assert read_scores(pd.DataFrame(rows), cost='tokens').costs.frame.gpt4.tolist() == [10, 11, 12, 13]


def test_our_own_judgements(written):
    rows = [dict(benchmark='b', example_id=f'e{i}', evaluator=e, value=None if i == 3 else i/4 + k/8,
                 absence='refused' if i == 3 else None, group=f'g{i//2}',
                 truth=json.dumps('supported' if i % 2 else 'unsupported'), meta='{}', model='')
            for i in range(4) for k, e in enumerate(('rouge1', 'length'))]
    scores = read_scores(written(as_parquet(rows), 'judgements.parquet'))
    assert (scores.judges, scores.humans, scores.group_given) == (('rouge1', 'length'), ('truth',), True)
    assert values(scores, 'rouge1') == [0, .25, .5, None] and values(scores, 'truth') == [0, 1, 0, 1]
    assert [row for row in scores.odd.values.tolist()] == [[j, 'refused', 1, 'missing'] for j in scores.judges]
    people = [row | dict(meta=json.dumps(dict(raters=dict(ann=i//2, bob=None if i > 1 else 2))))
              for i, row in enumerate(rows)]
    scores = read_scores(pd.DataFrame(people))
    assert scores.humans == ('raters.ann', 'raters.bob') and values(scores, 'raters.ann') == [0, 1, 2, 3]
    assert values(scores, 'raters.bob') == [2, None, None, None]
    assert 'raters.bob' not in set(scores.odd.column) # nobody asked him
    assert 'benchmarks' in refusal(pd.DataFrame([*rows, rows[0] | dict(benchmark='c')]))

def test_texts_beside_our_own_judgements(written):
    rows = [dict(benchmark='b', example_id=f'e{i}', evaluator='rouge1', value=i/4, absence=None, group=f'g{i}',
                 truth=json.dumps(i % 2)) for i in range(4)]
    path = written(as_parquet(rows), 'judgements.parquet')
    texts = [dict(benchmark='b', id=f'e{i}', source='S.', target=f'Text {i}.') for i in range(4)]
    written(as_parquet(texts), 'examples.parquet')
    assert read_scores(path).frame.text.tolist() == [f'Text {i}.' for i in range(4)]
    written(as_parquet([dict(other=1)]), 'examples.parquet')
    scores = read_scores(path)
    assert 'text' not in scores.frame and values(scores, 'rouge1') == [0, .25, .5, .75]
    assert [s for s in scores.said if 'texts beside' in s and "lacks the columns 'benchmark'" in s]
    written(as_parquet(texts), 'examples.parquet')
    path = written(as_parquet([{k: x for k, x in row.items() if k != 'benchmark'} for row in rows]),
                   'judgements.parquet') # of whose texts these are, nothing is known
    assert 'text' not in read_scores(path).frame


# --- real files ---

DATA = Path(os.environ.get('FACTLIB_DATA', ''))
real = pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'), reason='FACTLIB_DATA is not set')


@real
def test_summhay_without_a_flag():
    "The card's six correlations, from the file as it was published."
    scores = read_scores(DATA/'summhay'/'eval_benchmark_data.json')
    card = {'prompted_gemini-1.5-pro': .751, '9fs_gpt-4o': .719, 'prompted_gpt-4o': .716, 'prompted_claude3-opus': .677,
            'prompted_claude3-haiku': .498, 'prompted_gpt3.5': .495}
    assert set(scores.judges) == {f'predictions_{name}.coverage' for name in card} and len(scores.frame) == 1419
    assert scores.scale.labels == ('not_covered', 'partially_covered', 'fully_covered')
    person = scores.frame[scores.humans[0]]
    assert {n: round(scores.frame[f'predictions_{n}.coverage'].corr(person), 3) for n in card} == card
    assert scores.clustered == 'subtopic_id'
    assert read_scores(DATA/'summhay'/'eval_benchmark_data.json', group='subtopic_id').frame.group.nunique() == 29


@real
def test_hanna_with_three_flags():
    path = DATA/'hanna'/'hanna_metric_scores_llm.csv'
    assert 'several criteria' in refusal(path)
    people = [f'Human {k} RE' for k in (1, 2, 3)]
    with open(path, encoding='utf-8') as file: bleu = next(n for n in next(csv.reader(file)) if n.startswith('BLEU'))
    scores = read_scores(path, judge=[bleu], human=people, system='Model', group='place')
    machines = scores.frame[scores.frame.system != 'Human']
    assert len(scores.frame) == 1056 and scores.frame.group.nunique() == 96
    assert machines[bleu].corr(machines[people].mean(axis=1)) == pytest.approx(.1124, abs=5e-5) # the card's


@real
@pytest.mark.parametrize('model, agreeing, right', [('GPT-4', 95, 93), ('ChatGPT', 71, 67)])
def test_llmbar_in_both_orders(model, agreeing, right):
    first, swapped = (f'results.swap = {order}.winner' for order in (False, True))
    path = DATA/'llmbar'/'Natural'/'evaluators'/model/'Vanilla'/'result.json'
    found = read_scores(path, judge=[first, swapped], human='label')
    one, other, label = *found.judges.values(), *found.swapped.values(), found.humans['label']
    assert (one == other).sum() == agreeing and ((one == other) & (one == label)).sum() == right


@real
def test_faithbench_trutheval_ttcw_and_storysumm():
    marks = read_scores(DATA/'faithbench'/'batch_1.json', judge='metadata.gpt_4o', human='annotations.label',
                        item='sample_id')
    samples = json.loads((DATA/'faithbench'/'batch_1.json').read_text(encoding='utf-8'))['samples']
    assert len(marks.frame) == sum(max(1, len(s['annotations'])) for s in samples) and marks.clustered == 'source'
    assert marks.frame['annotations.label'].isna().sum() == sum(not s['annotations'] for s in samples)
    levels = read_scores(DATA/'trutheval'/'recorded_scores.parquet', human='-level', item='id,level')
    assert levels.judges == ('llm_plus_nli', 'ragas_factual_correctness') and len(levels.frame) == 1000
    assert any(sentence.startswith('500 rows are of an item that has another row') for sentence in levels.said)
    assert '--item' in refusal(DATA/'ttcw'/'ttcw_annotations.json')
    experts = pd.DataFrame(json.loads((DATA/'ttcw'/'ttcw_annotations.json').read_text(encoding='utf-8')))
    experts['id'] = 'story_' + experts.story_id + '_test' + experts.ttcw_idx.astype(str)
    replies = pd.read_json(DATA/'ttcw'/'annotations_gpt4.jsonl', lines=True)
    experts['gpt4'] = experts.id.map(replies.set_index('id').response.str.extract(r'^(Yes|No)')[0])
    scores = read_scores(experts[['id', 'story_idx', 'expert_idx', 'binary_verdict', 'gpt4']], group='story_idx')
    assert (scores.judges, len(scores.humans), len(scores.frame)) == (('gpt4',), 11, 672)
    assert scores.frame.group.nunique() == 12 and scores.frame[list(scores.humans)].notna().sum().sum() == 2016
    assert int(scores.frame[list(scores.humans)].sum().sum()) == 762 # Yes, as the card has it
    summaries = pd.read_parquet(DATA/'storysumm'/'summaries.parquet').rename(columns=dict(label='human'))
    judged = pd.read_parquet(DATA/'storysumm'/'recorded_predictions.parquet')[['evaluator', 'id', 'label']]
    told = read_scores(judged.dropna().merge(summaries[['id', 'story_id', 'human']], on='id'))
    assert told.clustered == 'story_id' and len(told.judges) == judged.dropna().evaluator.nunique()
    assert told.humans == ('human',) and len(told.frame) == 96 and told.frame.human.sum() == 36


# --- endings, judges alone, what is taken for nothing ---

@pytest.mark.parametrize('name', ['notes.md', 'script.py', 'page.yaml'])
def test_a_text_that_is_no_table_is_refused_by_its_ending(written, name):
    said = refusal(written(TABLE, name))
    assert name in said and '.csv, .tsv, .tab, .txt, .json, .jsonl, .ndjson, .parquet, .eval' in said


def test_lines_may_end_in_ndjson(written):
    assert values(read_scores(written('\n'.join(map(json.dumps, ROWS)), 'a.ndjson')), 'human') == [2, 2, 4, 5]


def test_judges_alone_are_said_to_show_nothing_of_right_and_wrong(written):
    said = refusal(written('id,gpt4,claude\na,1,2\nb,2,2\n'))
    assert 'No column looks like a person' in said and "'gpt4', 'claude'" in said and 'not whether one is right' in said
    assert '--human COLUMN' in said and "people's scores of some rows" in said
    alike = read_scores(written('id,gpt4,claude\na,1,2\nb,2,2\n'), human='claude')
    assert (alike.judges, alike.humans) == (('gpt4',), ('claude',))
    assert refusal(written('id,human\na,1\nb,2\n')).startswith('No column looks like a judge: ')


def test_columns_taken_for_nothing_are_said(written):
    table = 'id,gpt4,human,quality,note\na,1,2,3,so\nb,2,2,4,la\nc,1,1,5,ti\n'
    line = "Taken for nothing, though they could hold scores: 'quality' (--judge or --human takes them)."
    assert line in read_scores(written(table)).said
    assert line not in read_scores(written(table), judge='gpt4', human='human').said # chosen, not forgotten
    assert 'quality' in read_scores(written(table), judge='quality').judges


def test_a_judge_that_refuses_often_is_still_a_judge(written):
    cells = ['refused']*6 + [f'0.{i}37' for i in range(1, 10)]
    table = 'judge,human\n' + ''.join(f'{cell},{i % 5}\n' for i, cell in enumerate(cells))
    scores = read_scores(written(table))
    assert scores.judges == ('judge',) and scores.frame.judge.isna().sum() == 6
    assert scores.odd.values.tolist() == [['judge', 'refused', 6, 'missing']]


# --- other tools: people's letters, people as scorers, and damaged logs ---

RIGHT = [1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 0, 0] # by the stub's rule, in the order of the twelve questions
SAID = [1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1]  # by a person


def test_people_may_use_inspects_letters():
    scores = read_scores(EXPORTS/'inspect_letters.json')
    assert scores.humans == ('metadata.human',) and scores.scale.kind == 'ordered'
    graded = dict(zip(scores.frame['item'], scores.frame['scores.model_graded_qa']))
    assert graded.pop('place-10') == 1 # partially correct
    assert graded == {f'place-{i}': 2*x for i, x in enumerate(RIGHT, 1) if i != 10}
    said = dict(zip(scores.frame['item'], scores.frame['metadata.human']))
    assert said == {f'place-{i}': 2*x for i, x in enumerate(SAID, 1)}


def test_a_person_may_be_a_scorer_of_inspect():
    scores = read_scores(EXPORTS/'inspect_people.eval')
    assert scores.judges == ('scores.model_graded_qa', 'scores.includes') and scores.humans == ('scores.human_grade',)
    said = dict(zip(scores.frame['item'], scores.frame['scores.human_grade']))
    assert said == {f'place-{i}': 2*x for i, x in enumerate(SAID, 1)}


def test_an_experiment_of_ragas():
    scores = read_scores(EXPORTS/'ragas_experiment.csv')
    places = scores.frame['item'].astype(int) - 1 # rows lie in the order in which they were done
    assert (scores.judges, scores.humans) == (('faithfulness',), ('human_label',))
    assert values(scores, 'faithfulness') == [RIGHT[i] for i in places]
    assert values(scores, 'human_label') == [SAID[i] for i in places]
    assert any("Taken for nothing, though they could hold scores: 'correctness'" in line for line in scores.said)


def test_a_byte_turned_in_a_zipped_log_is_noticed(written):
    whole = (EXPORTS/'inspect_people.eval').read_bytes()
    place = whole.index(b'samples/') + 100
    assert 'damaged' in refusal(written(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1:], 'log.eval'))


@pytest.mark.parametrize('log, said', [
    (dict(eval={}, samples=[]), 'holds no scores'),
    (dict(eval={}, samples=[dict(id='1')]), 'holds no scores'),
    (dict(eval={}, samples=[dict(id='1', scores=3, output='x', input=5)]), 'holds no scores'),
    (dict(eval={}, samples=[3]), 'no JSON object'),
    (dict(eval={}, plan={}), 'has no samples'),
    (dict(testCases=[dict(name='a', metricsData=3)]), 'holds no scores'),
    (dict(testCases=[3]), 'no JSON object')])
def test_logs_of_an_odd_form(written, log, said):
    assert said in refusal(written(json.dumps(log), 'log.json'))


@pytest.mark.parametrize('one,other', [('gpt4_ab', 'gpt4_ba'), ('gpt4_first', 'gpt4_swapped'),
                                       ('gpt4', 'gpt4_swapped')])
def test_two_columns_of_both_orders_are_one_judge(one, other):
    frame = pd.DataFrame({one: ['A', 'B', 'tie', 'A'], other: ['B', 'B', 'tie', 'A'], 'human': ['A', 'B', 'A', 'tie']})
    found = read_scores(frame)
    assert isinstance(found, Comparisons) and len(found.judges) == len(found.swapped) == 1
    line = next(line for line in found.said if 'both orders' in line)
    assert one in line and other in line
    assert len(read_scores(frame.rename(columns={other: 'opus'})).judges) == 2


def test_a_strangers_file_in_german(written):
    rows = 'Nr;Dokument;Antwort;Quelle;Modell;GPT-Note;Prüferin Anna;Prüfer Ben;Kosten GPT-Note\n' + ''.join(
        f'{i};Text {i//4};Der Fuchs lief {i}.;Der Fuchs lief {i} Mal.;{"AB"[i % 2]};{"k. A." if i == 7 else i % 5};'
        f'{i % 4};{i % 3};0,00{i % 9 + 1}\n' for i in range(40))
    scores = read_scores(written('\ufeff' + rows))
    assert (scores.judges, scores.humans) == (('GPT-Note',), ('Prüferin Anna', 'Prüfer Ben'))
    assert scores.clustered == 'Dokument' and {'system', 'text', 'source'} <= set(scores.frame)
    assert scores.costs.frame['GPT-Note'][:2].tolist() == [.001, .002]
    assert values(scores, 'GPT-Note')[7] is None and any('k. A.' in line for line in scores.said)
