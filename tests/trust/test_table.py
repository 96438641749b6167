"Several files side by side, and files of one table in other dress: packed, in Excel, without a header, as lists."
import gzip, io, json, zipfile

import openpyxl, pandas as pd, pytest

from factlib.core.records import BadInput
from factlib.trust.scores import read_scores
from factlib.trust.table import join_tables, read_table
from factlib.trust.trust import trust

N = 12
JUDGE = [i % 5 + 1 for i in range(N)]
PEOPLE = [i*3 % 5 + 1 for i in range(N)]
HEAD = ['id', 'answer', 'human', 'gpt4']
ROWS = [[f'q{i}', f'The fox number {i} ran home.', h, j] for i, (h, j) in enumerate(zip(PEOPLE, JUDGE))]
CSV = '\n'.join(','.join(map(str, row)) for row in [HEAD, *ROWS]) + '\n'


@pytest.fixture
def written(tmp_path):
    "Writes a file, and gives its path."
    def write(name, content):
        path = tmp_path/name
        if isinstance(content, dict):
            frame = pd.DataFrame(content)
            if name.endswith('.xlsx'): frame.to_excel(path, index=False)
            elif name.endswith('.jsonl'): frame.to_json(path, orient='records', lines=True)
            elif name.endswith('.parquet'): frame.to_parquet(path)
            else: frame.to_csv(path, index=False)
        else: path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path
    return write


def refusal(call, *args, **options):
    with pytest.raises(BadInput) as error: call(*args, **options)
    assert '\n' not in str(error.value)
    return str(error.value)


def joined(*paths, on='id'): return join_tables([read_table(path) for path in paths], on)


def workbook(**sheets):
    book, content = openpyxl.Workbook(), io.BytesIO()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows: sheet.append(row)
    book.save(content)
    return content.getvalue()


def zipped(members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, 'w') as archive:
        for name, part in members.items(): archive.writestr(name, part)
    return content.getvalue()


def plain(path, **options):
    "Whether a file is read as the table that all of these hold."
    scores = read_scores(path, **options)
    assert (scores.judges, scores.humans) == (('gpt4',), ('human',))
    assert scores.frame.gpt4.tolist() == JUDGE and scores.frame.human.tolist() == PEOPLE
    return scores


# --- several files ---

@pytest.mark.parametrize('name, ids, said', [
    ('people.csv', [str(i) for i in range(N)], False), ('people.csv', [f'{i}.0' for i in range(N)], True),
    ('people.xlsx', list(range(N)), True), ('people.parquet', [float(i) for i in range(N)], True), ('people.jsonl', [f' {i}' for i in range(N)], True)])
def test_ids_written_in_two_ways_are_one(written, name, ids, said):
    left = written('judge.csv', dict(gpt4=JUDGE, id=range(N)))
    table = joined(left, written(name, dict(human=PEOPLE, id=ids)))
    assert [int(float(x)) for x in table.frame.human] == PEOPLE and len(table.frame) == N
    assert any('written in two ways are one' in line for line in table.said) == said


def test_rows_of_the_left_file_are_kept_and_both_sides_counted(written):
    left = written('urteile.csv', dict(Nr=range(10), gpt4=JUDGE[:10]))
    right = written('gutachten.csv', dict(Nummer=range(4, 12), Gutachterin=PEOPLE[4:]))
    table = joined(left, right, on='Nr=Nummer')
    assert len(table.frame) == 10 and table.frame.Gutachterin.isna().tolist() == [True]*4 + [False]*6
    assert any('6 of 10 rows have a match; 4 have none, and 2 rows of ' in line for line in table.said)


def test_several_rows_of_an_item_in_the_first_file_are_all_kept(written):
    left = written('runs.csv', dict(id=[*range(N), 0, 1], gpt4=[*JUDGE, 1, 2]))
    table = joined(left, written('p.csv', dict(id=range(N), human=PEOPLE)))
    assert [int(x) for x in table.frame.human] == [*PEOPLE, *PEOPLE[:2]]


@pytest.mark.parametrize('ids', [[*map(str, range(N)), '3'], [*map(str, range(N)), '3.0'], [*range(N), 3]])
def test_a_key_that_comes_twice_is_refused(written, ids):
    left, right = written('a.csv', dict(id=range(N), gpt4=JUDGE)), written('b.csv', dict(id=ids, human=[*PEOPLE, 1]))
    said = refusal(joined, left, right)
    assert "'b.csv'" in said and "'3' more than once" in said and 'keep one of them' in said


def test_ids_that_are_missing_match_nothing(written):
    left = written('a.csv', dict(id=[None, *range(1, N)], gpt4=JUDGE))
    table = joined(left, written('b.csv', dict(id=[None, None, *range(2, N)], human=PEOPLE)))
    assert table.frame.human.isna().tolist() == [True]*2 + [False]*(N - 2)
    assert any(f'10 of {N} rows have a match; 2 have none, and 2 rows of' in line for line in table.said)


def test_names_of_files_say_whose_scores_they_hold(written):
    left, right = written('gpt-4o.csv', dict(id=range(N), score=JUDGE)), written('humans.xlsx', dict(rating=PEOPLE, id=range(N)))
    found = trust([left, right], on='id')
    assert (found.file.judges, found.file.humans) == (('gpt-4o.score',), ('humans.rating',))
    assert any("'humans.rating', since the name of the file" in line for line in found.file.said)


def test_a_key_of_two_columns(written):
    both = dict(id=[i//2 for i in range(N)], system=['a', 'b']*6)
    table = joined(written('a.csv', both | dict(gpt4=JUDGE)), written('b.csv', {k: v[::-1] for k, v in (both | dict(human=PEOPLE)).items()}), on='id,system')
    assert [int(x) for x in table.frame.human] == PEOPLE


@pytest.mark.parametrize('ids, on, said', [([1000 + i for i in range(N)], 'id', "'0' beside '1000'"), ([f'{i:03}' for i in range(N)], 'id', "write ids in both files alike"),
                                           (range(N), 'nr', "'a.csv' has no column 'nr'")])
def test_files_that_do_not_fit_are_refused(written, ids, on, said):
    assert said in refusal(joined, written('a.csv', dict(id=range(N), gpt4=JUDGE)), written('b.csv', dict(id=ids, human=PEOPLE)), on=on)


def test_several_files_need_a_key(written):
    path = written('a.csv', CSV)
    assert '--on' in refusal(trust, [path, path])


# --- Excel and packed files ---

def test_excel_in_its_forms(written):
    assert any("Sheet 'Data'" in line for line in plain(written('a.xlsx', workbook(Data=[HEAD, *ROWS]))).said)
    plain(written('b.xlsx', workbook(Sheet1=[HEAD, *ROWS], Sheet2=[])))
    plain(written('c.xlsx', workbook(S=[['Results of June'], [], HEAD, *ROWS]))) # a title above the table
    plain(written('d.xlsx', workbook(S=[[None, *row] for row in [HEAD, *ROWS]])))
    several = written('e.xlsx', workbook(Info=[['About', 'us']], Daten=[HEAD, *ROWS]))
    said = refusal(read_scores, several)
    assert '--sheet' in said and "'Daten'" in said and "'daten'" in refusal(read_scores, several, sheet='daten')
    plain(several, sheet='Daten')


def test_excel_without_a_header(written):
    path = written('a.xlsx', workbook(S=ROWS))
    scores = read_scores(path, human='column 3', judge='column 4')
    assert scores.frame['column 3'].tolist() == PEOPLE and any('has no header' in line for line in scores.said)


@pytest.mark.parametrize('name, content', {
    'a.csv.gz': gzip.compress(CSV.encode()), 'b.gz': gzip.compress(CSV.encode()), 'c': gzip.compress(CSV.encode()),
    'd.xlsx.gz': gzip.compress(workbook(S=[HEAD, *ROWS])), 'e.zip': zipped({'data/scores.csv': CSV, '__MACOSX/data/._scores.csv': 'x', 'README.md': 'hello'}),
    'f.zip': zipped({'scores.csv': CSV, 'README.txt': 'hello'}), 'g.zip': zipped({'a.xlsx': workbook(S=[HEAD, *ROWS])}),
    'h.jsonl.gz': gzip.compress('\n'.join(json.dumps(dict(zip(HEAD, row))) for row in ROWS).encode())}.items())
def test_packed_files(written, name, content): plain(written(name, content))


# --- no header ---

@pytest.mark.parametrize('mark, ending', [(',', 'csv'), ('\t', 'tsv'), (';', 'csv'), (' ', 'txt')])
def test_a_file_without_a_header_is_said(written, mark, ending):
    lines = '\n'.join(mark.join(map(str, (f'q{i}', 0, h, j))) for i, (h, j) in enumerate(zip(PEOPLE, JUDGE)))
    path = written(f'qrels.{ending}', lines) # its first line holds a number twice
    assert 'The first line holds data' in refusal(read_scores, path)
    scores = read_scores(path, judge='column 4', human='column 3')
    assert scores.frame['column 4'].tolist() == JUDGE and scores.frame['column 3'].tolist() == PEOPLE


def test_labels_without_a_header_need_the_flag(written):
    path = written('labels.csv', 'q0,yes,yes\n' + ''.join(f'q{i},{"yes" if i % 2 else "no"},{"yes" if i % 3 else "no"}\n' for i in range(1, N)))
    assert "two columns 'yes'" in refusal(read_scores, path)
    scores = read_scores(path, header=False, judge='column 2', human='column 3')
    assert scores.frame['column 2'].tolist() == [1, *(i % 2 for i in range(1, N))] and len(scores.frame) == N


# --- lists in JSON ---

@pytest.mark.parametrize('value', [
    dict(pair_index=[[f'q{i}', f'd{i}'] for i in range(N)], human_scores=PEOPLE, per_judge_scores=dict(gpt4=JUDGE)),
    dict(meta=dict(name='x', n=N), ids=list(range(N)), judges={'gpt-4o': JUDGE}, annotations=dict(expert=PEOPLE)),
    dict(gpt4=JUDGE, human=PEOPLE), [['gpt4', 'human'], *map(list, zip(JUDGE, PEOPLE))],
    json.loads(pd.DataFrame(dict(human=PEOPLE, gpt4=JUDGE)).to_json(orient='split')),
    {'human': {f'd{i}': x for i, x in enumerate(PEOPLE)}, 'gpt4': {f'd{i}': x for i, x in enumerate(JUDGE)}},
    {f'd{i}': dict(human=h, gpt4=j) for i, (h, j) in enumerate(zip(PEOPLE, JUDGE))}, [dict(human=PEOPLE, judge=JUDGE)]])
def test_lists_beside_each_other_are_rows(written, value):
    scores = read_scores(written('lists.json', json.dumps(value)))
    (judge,), (human,) = scores.judges, scores.humans
    assert scores.frame[judge].tolist() == JUDGE and scores.frame[human].tolist() == PEOPLE


# --- damaged and odd files that no other test has ---

WHOLE = gzip.compress(CSV.encode())
BOOK = workbook(S=[HEAD, *ROWS])
PACKED = zipped({'a.csv': CSV})
DAMAGED = {
    'cut.csv.gz': (WHOLE[:-20], "can't be read"), 'turned.csv.gz': (WHOLE[:60] + bytes([WHOLE[60] ^ 255]) + WHOLE[61:], "can't be read"),
    'head.gz': (WHOLE[:12], "can't be read"), 'twice.csv.gz': (gzip.compress(WHOLE), 'packed twice'), 'nothing.csv.gz': (gzip.compress(b''), 'empty'),
    'binary.gz': (gzip.compress(bytes(range(256))), 'no text'), 'page.csv.gz': (gzip.compress(b'<html>'), 'HTML'),
    'cut.zip': (PACKED[:-30], 'damaged archive'), 'two.zip': (zipped({'a.csv': CSV, 'b.csv': CSV}), '2 tables'), 'inner.zip': (zipped({'a.zip': PACKED}), 'archive'),
    'image.zip': (zipped({'a.png': b'\x89PNG'}), 'archive'), 'empty.zip': (zipped({}), 'archive'), 'no_rows.zip': (zipped({'a.csv': 'gpt4,human\n'}), 'no rows'),
    'folder.zip': (zipped({'data/': ''}), 'archive'),
    'cut.xlsx': (BOOK[:len(BOOK)//2], 'damaged archive'), 'no_sheet.xlsx': (workbook(S=[]), 'no sheet holds anything'),
    'head.xlsx': (workbook(S=[HEAD]), 'no rows'), 'twice.xlsx': (workbook(S=[['gpt4', 'human', 'human'], [1, 2, 3]]), "two columns 'human'"),
    'sheets.xlsx': (workbook(A=[HEAD, *ROWS], B=[HEAD, *ROWS]), '--sheet'), 'words.xlsx': (workbook(S=[['a', 'b'], ['Hello there.', 'You.']]), 'No column'),
    'lengths.json': (json.dumps(dict(human=PEOPLE, gpt4=JUDGE[:-1])), "'human' has 12, 'gpt4' has 11"), 'null.json': ('null', 'no list'),
    'text.json': ('"gpt4"', 'no list'), 'empty.json': ('[]', 'no list'), 'nothing.json': ('{}', 'no list'), 'nested.json': (json.dumps([[PEOPLE]]), 'no list'),
    'nan.json': ('{"human": [NaN, Infinity], "gpt4": [NaN, NaN]}', 'No '), 'comma.json': ('[{"human": 1, "gpt4": 2},]', "can't be read"),
    'lines.json': ('{"human": 1}\n{"human": 2\n', 'Line 2'), 'list.jsonl': ('[1, 2]\n[3, 4]\n', 'Line 1'), 'blank.jsonl': ('\n\n', 'empty'),
    'numbers.txt': ('1 2 3\n4 5 6\n7 8 9\n', 'No column'), 'ragged.txt': ('q0 1 2\nq1 1\nq2 2 2\n', 'No column'),
    'head.tsv': ('gpt4\thuman\n', 'no rows'), 'nul.csv': ('gpt4,human\n1,\0\n', 'no text'),
    'spaces.csv': ('   \n \n', 'empty'), 'model.onnx': (b'\x08\x01', 'its name must end in'), 'lone.csv': ('human\n1\n2\n', 'No column looks like a judge'),
    'no_person.parquet': (None, 'No column looks like a person')}


@pytest.mark.parametrize('name', DAMAGED)
def test_a_damaged_or_odd_file_is_one_sentence(written, name):
    content, said = DAMAGED[name]
    path = written(name, dict(gpt4=JUDGE) if content is None else content)
    told = refusal(read_scores, path)
    assert said in told and 'Traceback' not in told and told.rstrip().endswith(('.', ')', '?'))
    assert [p.name for p in path.parent.iterdir()] == [name]
