"Files that are written whole, with the rights they should have; tables that people saved in some way."
import csv, io, os, stat, subprocess, sys
from pathlib import Path

import pandas as pd, pyarrow as pa, pyarrow.parquet as pq, pytest

from factlib.benchmarks.answer_writer import question_pairs
from factlib.benchmarks.gutenberg import read_metadata
from factlib.benchmarks.own_files import read_rows
from factlib.core.files import atomic_path, open_lock, parse_json, read_csv, read_parquet, write_atomic
from factlib.core.records import BadInput
from factlib.llm.costs import price_table
from factlib.metaeval.labels import read_annotations
from factlib.runs.grid import GridCell
from factlib.runs.sweep import CellRow, cells_csv

def test_a_file_gets_the_rights_of_any_new_file(tmp_path):
    for mask in (0o022, 0o027, 0o077, 0):
        before = os.umask(mask)
        try: write_atomic(tmp_path/f'{mask}.txt', 'x')
        finally: os.umask(before)
        assert stat.S_IMODE((tmp_path/f'{mask}.txt').stat().st_mode) == 0o666 & ~mask

def test_nobody_touches_the_umask(tmp_path, monkeypatch):
    "It is the whole process's: for as long as it is another one, other threads' files are open to everybody."
    touched = []
    monkeypatch.setattr(os, 'umask', lambda mask, set=os.umask: touched.append(mask) or set(mask))
    write_atomic(tmp_path/'a.txt', 'x')
    assert touched == []

def test_writing_that_fails_leaves_nothing(tmp_path):
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            with atomic_path(tmp_path/'a.txt'): 1/0
    assert list(tmp_path.iterdir()) == []

TABLES = {'UTF-16': 'model,input,output,id\nm,1,2,3\n'.encode('utf-16'),
          'UTF-16 without a mark': 'model,input,output,id\nm,1,2,3\n'.encode('utf-16-le'),
          'Latin-1': 'model,input,output,id\nmé,1,2,3\n'.encode('latin-1'),
          'a mark never closed': b'model,input,output,id\nm,"' + b'1,2,3\n'*40_000,
          'a picture': b'\x89PNG\r\n\x1a\n' + bytes(range(256))}

@pytest.mark.parametrize('table', TABLES)
def test_tables_that_cannot_be_read_are_sentences(table, tmp_path):
    (tmp_path/'t.csv').write_bytes(TABLES[table])
    for read in (price_table, read_metadata):
        with pytest.raises(BadInput) as e: read(tmp_path/'t.csv')
        assert str(e.value).endswith('.') and '\n' not in str(e.value) and 't.csv' in str(e.value)
    if table in ('UTF-16', 'Latin-1'): assert 'UTF-8' in str(e.value)

def test_a_folder_is_no_table(tmp_path):
    with pytest.raises(BadInput): read_csv(tmp_path, 'The table')

def test_what_survives_a_power_cut_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    "Before, nothing was ever synced, so after a power cut a file could have its name and no content."
    done = []
    def sync(handle, real=os.fsync): done.append(('sync', os.path.realpath(f'/proc/self/fd/{handle}'))) or real(handle)
    def replace(a, b, real=os.replace, **places): done.append(('name', os.path.basename(b))) or real(a, b, **places)
    monkeypatch.setattr(os, 'fsync', sync)
    monkeypatch.setattr(os, 'replace', replace)
    path = tmp_path/'new'/'newer'/'a.json'
    write_atomic(path, '1', durable=True)
    (first, file), *rest = done
    assert first == 'sync' and file.startswith(f'{path.parent}/.a.json.') and rest[0] == ('name', 'a.json')
    assert rest[1:] == [('sync', str(p)) for p in (path.parent, path.parent.parent, tmp_path)]
    done.clear()
    write_atomic(path, '2')
    assert done == [('name', 'a.json')]

def test_a_key_that_is_there_twice_is_named():
    "Before, the last value won and nobody heard of the first one. A hundred thousand keys take no square of the time."
    for text in ('{"a": 1, "b": 2, "a": 1}', '[{"c": {"a": 1, "a": 2}}]'):
        with pytest.raises(ValueError, match="the key 'a' is there twice"): parse_json(text)
    many = ', '.join(f'"{i}": 0' for i in range(100_000))
    assert len(parse_json(f'{{{many}}}')) == 100_000
    with pytest.raises(ValueError, match="'99999' is there twice"): parse_json(f'{{{many}, "99999": 0}}')

def packed(path, rows, size):
    "A parquet file that holds one text many times, and once on the disk."
    texts = pa.DictionaryArray.from_arrays(pa.array([0]*rows, pa.int32()), pa.array(['x'*size]))
    pq.write_table(pa.table(dict(target=texts)), path, store_schema=False)
    return path

def test_a_parquet_file_that_is_larger_than_the_memory_is_a_sentence(tmp_path):
    "Before, all of it was read at once: here 47 KB of parquet stand for 20 GB. What is refused takes less than 500 MB."
    bomb = packed(tmp_path/'bomb.parquet', 20_000, 1_000_000)
    assert bomb.stat().st_size < 100_000
    code = """import resource, sys
import pandas, pyarrow.parquet, pyarrow.compute
from factlib.benchmarks.own_files import read_rows
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try: read_rows(sys.argv[1])
except Exception as e: print(type(e).__name__, e, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, sep='|')"""
    run = subprocess.run([sys.executable, '-c', code, bomb], capture_output=True, text=True, check=True)
    kind, said, kilobytes = run.stdout.strip().split('|')
    assert kind == 'BadInput' and 'more than the 2.1 GB' in said and int(kilobytes) < 500_000

def test_parquet_is_read_as_pandas_reads_it(tmp_path):
    frame = pa.table(dict(a=['x', None, ''], b=pa.array([b'x', None, b'']),
                          c=pa.array(['x', None, 'y'], pa.large_string()),
                          d=pa.array(['x', None, 'x']).dictionary_encode(),
                          e=[[1], [], None], f=[1, None, 2], g=[{'k': 'v'}, None, {'k': 'w'}]))
    for table in (frame, frame.slice(0, 0),
                  pa.Table.from_pandas(pd.DataFrame(dict(a=['p'], b=[1]), index=pd.Index(['i'], name='n')))):
        pq.write_table(table, tmp_path/'t.parquet')
        for columns in (None, ['a', 'b'], ['b']):
            pd.testing.assert_frame_equal(read_parquet(tmp_path/'t.parquet', columns),
                                          pd.read_parquet(tmp_path/'t.parquet', columns=columns))
    whole = packed(tmp_path/'t.parquet', 1000, 1000)
    assert len(read_parquet(whole, most=1_000_000)) == 1000
    with pytest.raises(BadInput, match='more than'): read_parquet(whole, most=999_999)

@pytest.mark.parametrize('read', [read_rows, question_pairs, lambda path: read_annotations(path.read_text())])
def test_who_reads_lines_of_json_names_line_and_key(read, tmp_path):
    "Before, the last of two labels was taken, and the first one was lost in silence."
    row = ('{"id": "a", "target": "x", "question": "q", "ground_truth": "g", "annotator": 1, "conversation": 1, '
           '"turn": 1')
    (tmp_path/'f.jsonl').write_text(f'{row}}}\n{row}, "turn": 2}}\n')
    with pytest.raises(BadInput, match=r"(?i)line 2\b.*'turn' is there twice"): read(tmp_path/'f.jsonl')

def test_no_spreadsheet_runs_a_cell_of_a_sweep(tmp_path):
    "Before, a parameter or a reason that begins with = stood in cells.csv as it was."
    row = CellRow(GridCell('=x', dict(m='=1+1', n=-3.5), dict(m='=1+1', n=-3.5)), why='@SUM(A1)')
    line, = csv.DictReader(io.StringIO(cells_csv([row])))
    assert (line['cell'], line['m'], line['n'], line['why']) == ("'=x", "'=1+1", '-3.5', "'@SUM(A1)")
def test_a_lock_is_never_opened_through_a_link(tmp_path):
    """Before, a link in a lock's place emptied or made the file that it leads to; a pipe would have been waited for
    without end."""
    (tmp_path/'precious').write_text('mine')
    for name, make in dict(link=lambda p: p.symlink_to(tmp_path/'precious'),
                           broken=lambda p: p.symlink_to(tmp_path/'new'), folder=Path.mkdir, pipe=os.mkfifo).items():
        make(tmp_path/name)
        with pytest.raises(BadInput, match='where a lock of ours belongs'):
            open_lock(tmp_path/name)
    assert (tmp_path/'precious').read_text() == 'mine' and not (tmp_path/'new').exists()
    open_lock(tmp_path/'lock').close()
    assert stat.S_IMODE((tmp_path/'lock').stat().st_mode) == 0o600
