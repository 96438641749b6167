"Files from outside, damaged, huge in memory or written in another way: read right, or one sentence."
import io, json, os, random, struct, subprocess, sys, zipfile, zlib

import pandas as pd, pyarrow as pa, pyarrow.parquet as pq, pytest

from factlib.apps.annotate_forms import make_form
from factlib.apps.annotate_forms import read_rows as annotate_rows
from factlib.benchmarks.base import load
from factlib.benchmarks.own_files import read_examples, read_rows
from factlib.trust.table import ScoreTable, read_table
from factlib.core.files import MOST_CELLS, need_json_size, parse_json, printable, reading
from factlib.core.records import BadInput
from factlib.runs.judging import GivenJudgements

ROWS = [dict(id=str(i), response=f'The fox {i} ran.', context='A fox.', gpt4=i % 5 + 1, human_a=i*3 % 5 + 1)
        for i in range(12)]

def samples(n=12):
    for i in range(n):
        yield dict(id=i, epoch=1, input='q', output=dict(model='m', completion=f'The fox {i}.'),
                   scores=dict(gpt4=dict(value=i % 5)), metadata=dict(human_a=i % 4))

def packed(members, method=zipfile.ZIP_DEFLATED):
    made = io.BytesIO()
    with zipfile.ZipFile(made, 'w', method) as archive:
        for name, content in members: archive.writestr(name, content)
    return made.getvalue()

def zstandard(members):
    "A zip file whose members are packed by Zstandard, which Python's `zipfile` can't write."
    body, heads = b'', b''
    for name, content in members:
        name, content = name.encode(), content.encode()
        small, crc, at = pa.compress(content, codec='zstd', asbytes=True), zlib.crc32(content), len(body)
        body += struct.pack('<IHHHHHIIIHH', 0x04034b50, 63, 0, 93, 0, 0, crc, len(small), len(content), len(name), 0)
        body += name + small
        heads += struct.pack('<IHHHHHHIIIHHHHHII', 0x02014b50, 63, 63, 0, 93, 0, 0, crc, len(small), len(content),
                             len(name), 0, 0, 0, 0, 0, at) + name
    n = len(members)
    return body + heads + struct.pack('<IHHHHIIH', 0x06054b50, 0, 0, n, n, len(heads), len(body), 0)

def parquet(rows):
    made = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(pd.DataFrame(rows)), made)
    return made.getvalue()

LOG = [(f'samples/{s["id"]}_epoch_1.json', json.dumps(s)) for s in samples()]
LINES = '\n'.join(map(json.dumps, ROWS)).encode()
WHOLE = {'log.eval': packed(LOG), 'zstd.eval': zstandard(LOG), 'rows.json': json.dumps(ROWS).encode(),
         'rows.jsonl': LINES,
         'log.json': json.dumps(dict(version=2, eval=dict(task='t'), samples=list(samples()))).encode(),
         'rows.csv': pd.DataFrame(ROWS).to_csv(index=False).encode(),
         'rows.tsv': pd.DataFrame(ROWS).to_csv(index=False, sep='\t').encode(), 'rows.parquet': parquet(ROWS)}

def damaged(whole, draw):
    "The bytes of a file after one accident."
    content = bytearray(whole)
    how = draw.choice(('flip', 'flip', 'flip', 'cut', 'gap', 'twice', 'swap', 'noise'))
    a, b = sorted(draw.sample(range(len(content)), 2))
    if how == 'flip':
        for _ in range(draw.randint(1, 6)): content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    elif how == 'cut': del content[a:]
    elif how == 'gap': del content[a:b]
    elif how == 'twice': content[a:a] = content[a:b]
    elif how == 'swap': content[a:a + 4], content[b:b + 4] = content[b:b + 4], content[a:a + 4]
    else: content[a:a + 8] = draw.randbytes(8)
    return bytes(content)

def reads(read, path):
    "Whether it is read; else it must be one sentence, for a reason that damage explains."
    try: read(path)
    except BadInput as e:
        assert str(e).endswith(('.', ')', '?')) and '\n' not in str(e) and e.__cause__ is None, repr(e)
        return False
    return True

@pytest.mark.parametrize('name', WHOLE)
def test_a_damaged_file_is_read_or_is_one_sentence(tmp_path, name):
    "Of 180 damaged logs 84 were tracebacks."
    draw, path = random.Random(name), tmp_path/name
    path.write_bytes(WHOLE[name])
    assert isinstance(read_table(path), ScoreTable) and len(read_table(path).frame) == 12
    for _ in range(60):
        path.write_bytes(damaged(WHOLE[name], draw))
        reads(read_table, path)
        if path.suffix in ('.jsonl', '.csv', '.parquet'):
            reads(read_examples, path)
            reads(load, path)
        if path.suffix in ('.jsonl', '.parquet'): reads(annotate_rows, path)

@pytest.mark.parametrize('at, value', [(24, 10), (24, 0x7fffffff), (20, 0x7fffffff), (42, 0x7ffffff0), (16, 0)])
def test_a_log_that_lies_about_its_members(tmp_path, at, value):
    "Sizes, places and checks in the directory of an archive are anybody's."
    for name in ('log.eval', 'zstd.eval'):
        content = bytearray(WHOLE[name])
        head = content.find(b'PK\x01\x02')
        content[head + at:head + at + 4] = struct.pack('<I', value)
        (tmp_path/name).write_bytes(content)
        assert not reads(read_table, tmp_path/name) or at == 20 # what is packed ends by itself

@pytest.mark.parametrize('method', [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_log_packed_otherwise_is_refused(tmp_path, method):
    (tmp_path/'l.eval').write_bytes(packed(LOG, method))
    with pytest.raises(BadInput, match='packed in a way'): read_table(tmp_path/'l.eval')

def test_what_damage_does_not_explain_stays_as_the_cause():
    for error, cause in ((TypeError('x'), TypeError), (AttributeError('y'), AttributeError),
                         (ValueError('z'), type(None))):
        with pytest.raises(BadInput, match="'a.json' can't be read: ") as e:
            with reading('a.json'): raise error
        assert type(e.value.__cause__) is cause
    with pytest.raises(ImportError):
        with reading('a.json'): import no_such_package  # noqa: F401

ODD = { # name: content, what is said ('' : it is read)
    'empty.csv': (b'', 'is empty'), 'bom.csv': (b'\xef\xbb\xbf', 'is empty'),
    'utf16.csv': (WHOLE['rows.csv'].decode().encode('utf-16'), 'UTF-16'),
    'utf16le.csv': (WHOLE['rows.csv'].decode().encode('utf-16-le'), 'no text'),
    'sig.csv': (b'\xef\xbb\xbf' + WHOLE['rows.csv'], ''), 'crlf.csv': (WHOLE['rows.csv'].replace(b'\n', b'\r\n'), ''),
    'mixed.csv': (WHOLE['rows.csv'].replace(b'\n', b'\r\n', 4), ''),
    'half.csv': (WHOLE['rows.csv'] + 'x,\u4e2d'.encode()[:-1], 'UTF-8'), 'nul.csv': (b'a,b\n\0,1\n', 'no text'),
    'quote.csv': (b'a,b\n"x,1\n', 'quotation mark'), 'twice.csv': (b'a,b,a\n1,2,3\n', "two columns 'a'"),
    'twice.json': (b'[{"a": 1, "b": 2, "a": 3}]', "'a' is there twice"),
    'nan.json': (b'[{"gpt4": NaN, "human_a": 1}, {"gpt4": 2, "human_a": 2}]', ''),
    'far.json': (b'[{"gpt4": 1e999, "human_a": 1}]', 'too large to compute with'),
    'digits.json': (b'[{"gpt4": 1, "time": 1' + b'0'*400 + b'}]', '401 digits'),
    'digits.jsonl': (b'{"gpt4": -1' + b'0'*5000 + b'}\n{"gpt4": 1}', '5001 digits'),
    'id.json': (b'[{"id": "1' + b'0'*400 + b'", "gpt4": 1}]', ''),
    'deep.json': (b'[{"a": ' + b'['*500 + b']'*500 + b'}]', 'levels deep'),
    'deeper.jsonl': (b'{"a": ' + b'{"b": '*100_000, 'levels deep'),
    'surrogate.jsonl': (b'{"gpt4": 1, "t": "\\ud800"}\n{"gpt4": 2, "t": "\\ud83e\\udd8a"}', ''),
    'wide.csv': (','.join('c'*300 + str(i) for i in range(500)).encode() + b'\n' + b'1,'*499 + b'1\n', ''),
    'line.csv': (b'x'*17_000_000, 'first line has more than'),
    'rows.xyz': (WHOLE['rows.csv'], 'must end in')}

@pytest.mark.parametrize('name', ODD)
def test_an_odd_file_is_read_right_or_is_one_sentence(tmp_path, name):
    content, said = ODD[name]
    (tmp_path/name).write_bytes(content)
    if said:
        with pytest.raises(BadInput, match=said): read_table(tmp_path/name)
    else: assert len(read_table(tmp_path/name).frame) >= 1

def test_half_a_character_becomes_one_that_files_take(tmp_path):
    (tmp_path/'h.jsonl').write_text('{"target": "The fox.", "truth": "\\ud800", '
                                    '"meta": {"a\\udfff": ["\\ud83e\\udd8a"]}}')
    example = read_examples(tmp_path/'h.jsonl')[0][0]
    assert example.truth == '\ufffd' and example.meta == {'a\ufffd': ['\U0001f98a']}

@pytest.mark.parametrize('notes', [b'[]', b'{"columns": 5}', b'{', b'\xff'])
def test_notes_of_pandas_in_a_parquet_file_may_be_anything(tmp_path, notes):
    table = pa.Table.from_pandas(pd.DataFrame(ROWS)).replace_schema_metadata({b'pandas': notes})
    pq.write_table(table, tmp_path/'n.parquet')
    assert list(read_table(tmp_path/'n.parquet').frame.gpt4) == [row['gpt4'] for row in ROWS]

@pytest.mark.parametrize('row, said', [(dict(claims='Fox'), "'claims' that are no list"), (dict(claims=5), 'no list'),
                                       (dict(claims={'a': 1}), 'no list'),
                                       (dict(history='Hello'), "'history' that is no list"),
                                       (dict(claims=[['Fox']]), 'no text')])
def test_what_must_be_a_list_is_no_text(row, said):
    "Before, the claim \"Fox\" became F, o, x."
    with pytest.raises(BadInput, match=said):
        make_form('claims').items([dict(id='1', target='The fox ran.', claims=['The fox ran.']) | row])

def test_each_value_of_a_list_of_scores_is_read(tmp_path):
    "Scores of Inspect may be lists and objects, with NaN where a sample has none."
    nan = float('nan')
    log = [s | dict(scores=dict(judge=dict(value=[nan, s['id'] % 2]), other=dict(value=dict(a=nan, b=[1, 'C']))))
           for s in samples()]
    (tmp_path/'l.json').write_text(json.dumps(dict(eval={}, samples=log)))
    frame = read_table(tmp_path/'l.json').frame
    assert list(frame['scores.judge.2']) == [i % 2 for i in range(12)] and frame['scores.judge.1'].isna().all()
    assert frame['scores.other.a'].isna().all() and set(frame['scores.other.b.2']) == {'correct'}
    log = [s | dict(scores=dict(j=list(range(999)))) for s in log]
    (tmp_path/'l.json').write_text(json.dumps(dict(eval={}, samples=log)))
    with pytest.raises(BadInput, match="score 'j' of 999 values"): read_table(tmp_path/'l.json')

def test_judgements_of_a_run_are_read_like_any_other_file(tmp_path):
    path = tmp_path/'judgements.parquet'
    pq.write_table(pa.table(dict(a=pa.nulls(MOST_CELLS + 1))), path)
    with pytest.raises(BadInput, match='cells'): GivenJudgements([path])
    columns = ('example_id', 'evaluator', 'value', 'absence', 'benchmark', 'model', 'signature', 'evidence',
               'evaluator_name', 'part', 'seed', 'n', 'split', 'meta', 'text_hash')
    for cell in (1, [1], 'x', {'a': 1}):
        pq.write_table(pa.table({name: [cell, cell] for name in columns}), path)
        examples = pa.table({name: [cell, cell] for name in (*columns, 'id', 'parts')})
        pq.write_table(examples, tmp_path/'examples.parquet')
        with pytest.raises(BadInput, match="can't be read"): GivenJudgements([path])

def test_json_is_weighed_before_it_is_taken_apart(monkeypatch):
    "With a smaller limit here: what weighs 20 MB in memory is refused, though its text has 2 MB."
    monkeypatch.setattr('factlib.core.files.MOST_TABLE', 20_000_000)
    for text in ('{},'*500_000, '[],'*500_000, '\n'*1_500_000):
        with pytest.raises(ValueError, match='objects'): need_json_size(text)
    assert parse_json('"' + '{'*1_500_000 + '"') # braces of a text

BOMBS = '''
import json, resource, sys, zipfile
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from pathlib import Path
from factlib.benchmarks.own_files import read_rows
from factlib.trust.table import read_table
folder = Path(sys.argv[1])
n = 41_000_000
lists = pa.ListArray.from_arrays(pa.array([0, n], pa.int32()), pa.nulls(n))
pq.write_table(pa.table(dict(t=lists)), folder/'list.parquet')
pq.write_table(pa.table(dict(a=pa.nulls(n//2), b=pa.nulls(n//2 + 0), c=pa.nulls(n//2))), folder/'nulls.parquet')
pq.write_table(pa.table(dict(gpt4=np.zeros(n, np.int8))), folder/'bytes.parquet', compression='zstd')
texts = pa.DictionaryArray.from_arrays(pa.array([0]*200, pa.int32()), pa.array(['x'*12_000_000]))
pq.write_table(pa.table(dict(t=texts)), folder/'texts.parquet', store_schema=False, compression='zstd')
with zipfile.ZipFile(folder/'objects.eval', 'w', zipfile.ZIP_DEFLATED, compresslevel=6) as z:
    with z.open('samples/1.json', 'w') as f:
        f.write(b'{"id":1,"events":[')
        for _ in range(23): f.write(b'{},'*1_000_000)
        f.write(b'{}]}')
(folder/'names.jsonl').write_text(''.join('{"a%d":1}\\n' % i for i in range(7000)))
(folder/'short.csv').write_text(','.join(map(str, range(9000))) + '\\n' + '1\\n'*5000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sorted(folder.iterdir()):
    try: read_table(path); said = 'read'
    except Exception as e: said = f'{type(e).__name__} {e}'
    print(path.name, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, said, sep='|')
'''

def test_small_files_take_no_large_memory(tmp_path):
    "Before, 518 bytes of parquet took more than 5.6 GB, and a log of 117 kB took 3.4 GB. What is refused takes 0.6 GB."
    done = subprocess.run([sys.executable, '-c', BOMBS, tmp_path], capture_output=True, text=True, check=True)
    lines = [line.split('|', 2) for line in done.stdout.splitlines()]
    assert len(lines) == 7
    for name, kilobytes, said in lines:
        assert said.startswith('BadInput') and int(kilobytes) < 600_000, (name, kilobytes, said)

@pytest.mark.parametrize('name', [b'caf\xe9', b'\xff\xfe', b'a\x80b', b'esc\x1b[2J'])
def test_a_name_that_is_no_text_is_shown_escaped(tmp_path, name):
    path = tmp_path/os.fsdecode(name + b'.csv')
    path.write_bytes(WHOLE['rows.csv'])
    benchmark = load(path)
    assert benchmark.name.isprintable() and len(benchmark.examples) == 12
    with pytest.raises(BadInput) as e: read_table(path.with_name(f'{path.name}.none'))
    assert printable(str(e.value)).isprintable() and printable(str(e.value)).encode()
    parquet_path = path.with_suffix('.parquet')
    parquet_path.write_bytes(WHOLE['rows.parquet'])
    assert len(read_rows(parquet_path)) == len(read_table(parquet_path).frame) == 12
