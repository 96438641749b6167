"""State that another account, a link or a second name put in the place of ours is named in a sentence, and neither
believed nor written to."""
import json
import os
from pathlib import Path

import pytest

from factlib.core.files import OpenFolder, need_own, open_lock, open_own
from factlib.core.folders import need_own_database, own_mark, set_mark
from factlib.core.ledger import Ledger, read_spent
from factlib.core.ownership import RECORD, is_ours, write_own
from factlib.core.records import BadInput

ROOT = hasattr(os, 'geteuid') and os.geteuid() == 0
OTHERS = ['another account', 'a link', 'a second name', 'a folder', 'a pipe']

def plant(path, kind, content):
    "Put something in the place of a file of state; what it leads to lies beside it."
    if kind == 'another account' and not ROOT: pytest.skip('needs another account')
    beside = path.with_name(f'precious-{path.name}')
    if kind == 'a folder': return path.mkdir()
    if kind == 'a pipe': return os.mkfifo(path)
    place = path if kind == 'another account' else beside
    place.write_bytes(content)
    if kind == 'another account': os.chown(place, 65534, 65534)
    if kind == 'a link': path.symlink_to(beside)
    if kind == 'a second name': os.link(beside, path)

def left(folder):
    "Bytes of the files in a folder."
    return {p.name: p.read_bytes() for p in sorted(Path(folder).iterdir()) if p.is_file()}

SPENT = json.dumps(['m', dict(requests=3)]).encode() + b'\n'
USES = dict(
    need_own=lambda path: need_own(path, 'a record'),
    open_own=lambda path: open_own(path, os.O_RDWR | os.O_CREAT, 'a record'),
    lock=open_lock, read_spent=read_spent, ledger=Ledger,
    database=need_own_database,
    beside_a_database=lambda path: need_own_database(Path(str(path).removesuffix('-wal'))))

@pytest.mark.parametrize('kind', OTHERS)
@pytest.mark.parametrize('use', USES)
def test_what_is_not_ours_is_named_and_stays(use, kind, tmp_path):
    path = tmp_path/('b-wal' if use == 'beside_a_database' else 'b')
    plant(path, kind, SPENT)
    before = left(tmp_path) if kind != 'a pipe' else {}
    with pytest.raises(BadInput, match=r"b(-wal)?' is .* of ours belongs: see who made it, then remove it\.$"):
        USES[use](path)
    assert left(tmp_path) == before

@pytest.mark.parametrize('use', USES)
def test_what_is_ours_or_not_there_is_taken(use, tmp_path):
    for path in (tmp_path/'new-wal', tmp_path/'old-wal'):
        if path.name == 'old-wal': path.write_bytes(SPENT)
        made = USES[use](path)
        if use == 'open_own': os.close(made)
        if use in ('lock', 'ledger'): made.close()
        if use == 'read_spent': assert made.requests == (3 if path.name == 'old-wal' else 0)

def test_a_line_is_not_written_to_a_ledger_that_was_exchanged_meanwhile(tmp_path):
    ledger = Ledger(tmp_path/'spent.jsonl')
    (tmp_path/'bashrc').write_text('mine')
    os.link(tmp_path/'bashrc', tmp_path/'spent.jsonl')
    with pytest.raises(OSError, match='another name besides'): ledger.enter('m', requests=1)
    assert (tmp_path/'bashrc').read_text() == 'mine'

def test_a_database_may_be_a_link_of_ours_to_a_file_of_ours(tmp_path):
    (tmp_path/'disk').mkdir()
    (tmp_path/'disk'/'real').write_bytes(b'')
    (tmp_path/'link').symlink_to(tmp_path/'disk'/'real')
    need_own_database(tmp_path/'link', links=True)
    with pytest.raises(BadInput, match='a link'): need_own_database(tmp_path/'link')
    if not ROOT: return
    os.chown(tmp_path/'disk'/'real', 65534, 65534) # our link, another account's answers
    with pytest.raises(BadInput, match='another account'): need_own_database(tmp_path/'link', links=True)
    os.chown(tmp_path/'disk'/'real', 0, 0)
    os.chown(tmp_path/'link', 65534, 65534, follow_symlinks=False) # another account's link: it may lead elsewhere soon
    with pytest.raises(BadInput, match='a link'): need_own_database(tmp_path/'link', links=True)

@pytest.mark.skipif(not ROOT, reason='needs another account')
def test_the_mark_and_the_record_of_another_account_say_nothing(tmp_path):
    (tmp_path/'part').mkdir()
    with OpenFolder(tmp_path/'part') as part:
        set_mark(part, ['a'])
        assert own_mark(part)['files'] == ['a']
        os.chown(tmp_path/'part'/'unfinished.json', 65534, 65534)
        assert own_mark(part) == {}
    write_own(tmp_path/'mine.json', '{}')
    assert is_ours(tmp_path/'mine.json')
    os.chown(tmp_path/RECORD, 65534, 65534)
    assert not is_ours(tmp_path/'mine.json')

@pytest.mark.skipif(not ROOT, reason='needs another account')
def test_a_folder_of_records_is_ours(tmp_path):
    (tmp_path/'kept').mkdir()
    need_own(tmp_path/'kept', 'a folder of records', folder=True)
    (tmp_path/'link').symlink_to(tmp_path/'kept')
    for name in ('link', 'file'):
        if name == 'file': (tmp_path/name).write_text('')
        with pytest.raises(BadInput, match='a link|no folder'): need_own(tmp_path/name, 'a folder', folder=True)
    os.chown(tmp_path/'kept', 65534, 65534)
    with pytest.raises(BadInput, match='a folder of another account'): need_own(tmp_path/'kept', 'it', folder=True)
