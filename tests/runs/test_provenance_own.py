"""What lies beside a result, or in it, and was put there by another account, a link or a second name is named in a
sentence: records, answers that came, a ledger, times of requests, a cache that nobody named."""
import json
import os
import sqlite3
from contextlib import chdir
from pathlib import Path

import pytest

from factlib.core.records import BadInput
from factlib.llm.cache import Cache, default_cache
from factlib.llm.gateway import Arrived
from factlib.llm.limits import Gate
from factlib.runs.costs import kernel_spending, spending
from factlib.runs.grid import load_grid
from factlib.runs.provenance import run_if_changed
from factlib.runs.sweep import check_owner
from sweeps import grid, notebook

ROOT = hasattr(os, 'geteuid') and os.geteuid() == 0
KINDS = ['another account', 'a link', 'a second name']

def plant(path, kind):
    "Make a file look as if it had been put there from outside."
    if kind == 'another account':
        if not ROOT: pytest.skip('needs another account')
        os.chown(path, 65534, 65534)
    else:
        beside = path.with_name(f'precious-{path.name}')
        path.rename(beside)
        (path.symlink_to if kind == 'a link' else path.hardlink_to)(beside)

def arrived(path):
    made = Arrived(path)
    made.put('key', 'an earlier life', b'an answer')
    made.close()

def spend(place):
    with spending(place, say=str): pass

def judged(place, key='sk-0123456789'):
    own = notebook(place.parent/'own.ipynb', 'base_url:str = "http://127.0.0.1:9/v1"\nout:str = ""', '1')
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv('OPENAI_API_KEY', key)
        environment.delenv('FACTLIB_GATE', raising=False)
        with kernel_spending(place, own, {}, say=str): pass

def swept(place):
    grid(place.parent, dict(experiment='own.ipynb', grid=dict(x=[1, 2])))
    notebook(place.parent/'own.ipynb', 'x:int = 1\nout:str = ""', '1')
    with chdir(place.parent): check_owner(place, load_grid(Path('grid.yaml')))

def kept(place):
    notebook(place.parent/'own.ipynb', 'x:int = 1\nout:str = ""', '1')
    return run_if_changed(place.parent/'own.ipynb', dict(x=1), place, progress=False)

RECORD = json.dumps(dict(status='done', parameters=dict(x=1)))
READERS = dict( # the file, what makes it, what reads it
    arrived=('a.sqlite', arrived, arrived),
    beside_a_result=('.out.arrived.sqlite', arrived, lambda path: judged(path.with_name('out'))),
    ledger=('out/spent.jsonl', lambda path: path.write_text(json.dumps(['m', dict(requests=9)]) + '\n'),
            lambda path: spend(path.parent)),
    times=('out/x.times', lambda path: path.write_bytes(bytes(16)),
           lambda path: Gate(2, 2, path)),
    cache=('out/answers.sqlite', lambda path: Cache(path).close(), default_cache),
    record=('.kept/out.json', lambda path: path.write_text(RECORD), lambda path: kept(path.parent.parent/'out')),
    sweep=('out/.sweep/sweep.json', lambda path: path.write_text('{}'), lambda path: swept(path.parents[1])),
    cell=('out/.sweep/cells/a.json', lambda path: path.write_text(RECORD), lambda path: swept(path.parents[2])),
    spent_of_a_sweep=('out/.sweep/spent.jsonl', lambda path: path.write_text(''),
                      lambda path: swept(path.parents[1])))

def made_state(reader, folder, monkeypatch):
    "A file of state as we make it, and the function that reads it."
    monkeypatch.delenv('FACTLIB_CACHE', raising=False)
    name, make, read = READERS[reader]
    path = folder/name
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)
    return path, read

@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('reader', READERS)
def test_state_from_outside_is_named(reader, kind, tmp_path, monkeypatch):
    path, read = made_state(reader, tmp_path, monkeypatch)
    plant(path, kind)
    before = path.read_bytes()
    if reader == 'cache' and kind == 'a link': # one may have it on another disk
        default_cache(path).close()
        return
    with pytest.raises(BadInput, match='of ours belongs: see who made it, then remove it') as told: read(path)
    assert str(path) in str(told.value) and path.read_bytes() == before

@pytest.mark.parametrize('end', ['-wal', '-shm', '-journal'])
@pytest.mark.parametrize('reader', ['arrived', 'beside_a_result', 'cache'])
def test_so_is_what_lies_beside_a_database(reader, end, tmp_path, monkeypatch):
    path, read = made_state(reader, tmp_path, monkeypatch)
    for kind in KINDS:
        if kind == 'another account' and not ROOT: continue
        beside = Path(f'{path}{end}')
        beside.write_bytes(b'')
        plant(beside, kind)
        with pytest.raises(BadInput, match=f'{end}.* of ours belongs'): read(path)
        beside.unlink()
        beside.with_name(f'precious-{beside.name}').unlink(missing_ok=True)

@pytest.mark.skipif(not ROOT, reason='needs another account')
@pytest.mark.parametrize('name', ['.kept', 'out/.sweep', 'out/.sweep/cells', 'out/.sweep/paces'])
def test_a_folder_of_records_of_another_account_is_named(name, tmp_path, monkeypatch):
    "It may put anything there between our look and our reading."
    monkeypatch.delenv('FACTLIB_CACHE', raising=False)
    folder, read = tmp_path/name, kept if name == '.kept' else swept
    folder.mkdir(parents=True)
    os.chown(folder, 65534, 65534)
    with pytest.raises(BadInput, match='is a folder of another account where a folder of records'): read(tmp_path/'out')
    os.chown(folder, 0, 0)
    if name != '.kept': return
    folder.rmdir()
    (tmp_path/'elsewhere').mkdir()
    folder.symlink_to(tmp_path/'elsewhere')
    with pytest.raises(BadInput, match='is a link where a folder of records'): read(tmp_path/'out')

@pytest.mark.skipif(not ROOT, reason='needs another account')
def test_a_cache_that_one_names_may_be_anybodys(tmp_path, monkeypatch):
    Cache(tmp_path/'team.sqlite').close()
    os.chown(tmp_path/'team.sqlite', 65534, 65534)
    monkeypatch.setenv('FACTLIB_CACHE', str(tmp_path/'team.sqlite'))
    default_cache(tmp_path/'answers.sqlite').close()

def test_answers_of_our_own_are_taken(tmp_path):
    arrived(tmp_path/'a.sqlite')
    again = Arrived(tmp_path/'a.sqlite')
    assert again.take('key', 'this life') == b'an answer'
    again.close()
    assert sqlite3.connect(tmp_path/'a.sqlite').execute('SELECT count(*) FROM arrived').fetchone() == (1,)
