"Files that are written whole, with the rights they should have; tables that people saved in some way."
import os, stat
from pathlib import Path

import pytest

from factlib.benchmarks.gutenberg import read_metadata
from factlib.core.files import atomic_path, open_lock, read_csv, write_atomic
from factlib.core.records import BadInput
from factlib.llm.costs import price_table

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

TABLES = {'UTF-16': 'model,input,output,id\nm,1,2,3\n'.encode('utf-16'), 'UTF-16 without a mark': 'model,input,output,id\nm,1,2,3\n'.encode('utf-16-le'), 'Latin-1': 'model,input,output,id\nmé,1,2,3\n'.encode('latin-1'),
          'a mark never closed': b'model,input,output,id\nm,"' + b'1,2,3\n'*40_000, 'a picture': b'\x89PNG\r\n\x1a\n' + bytes(range(256))}

@pytest.mark.parametrize('table', TABLES)
def test_tables_that_cannot_be_read_are_sentences(table, tmp_path):
    (tmp_path/'t.csv').write_bytes(TABLES[table])
    for read in (price_table, read_metadata):
        with pytest.raises(BadInput) as e: read(tmp_path/'t.csv')
        assert str(e.value).endswith('.') and '\n' not in str(e.value) and 't.csv' in str(e.value)
    if table in ('UTF-16', 'Latin-1'): assert 'UTF-8' in str(e.value)

def test_a_folder_is_no_table(tmp_path):
    with pytest.raises(BadInput): read_csv(tmp_path, 'The table')

def test_a_lock_is_never_opened_through_a_link(tmp_path):
    "Before, a link in a lock's place emptied or made the file that it leads to; a pipe would have been waited for without end."
    (tmp_path/'precious').write_text('mine')
    for name, make in dict(link=lambda p: p.symlink_to(tmp_path/'precious'), broken=lambda p: p.symlink_to(tmp_path/'new'), folder=Path.mkdir, pipe=os.mkfifo).items():
        make(tmp_path/name)
        with pytest.raises(BadInput, match='where a lock of ours belongs|a lock of ours belongs there'): open_lock(tmp_path/name)
    assert (tmp_path/'precious').read_text() == 'mine' and not (tmp_path/'new').exists()
    open_lock(tmp_path/'lock').close()
    assert stat.S_IMODE((tmp_path/'lock').stat().st_mode) == 0o600
