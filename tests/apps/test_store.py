"The store survives its process, two clicks at once, and what people do to files by hand."
import json
import os
import subprocess
import sys

import pytest

from factlib.apps.store import Store, changing
from factlib.core.ownership import replacing
from factlib.core.records import BadInput

def test_whatever_json_holds_comes_back(tmp_path):
    with Store(tmp_path) as store:
        for value in ('\ud800', '\x00\x1b\u202e', 'שלום', [], {}, None, 1.5, dict(a=[1, dict(b='\udfff')])):
            store.write('a/b.json', value)
            assert store.read('a/b.json') == value

def test_only_one_server(tmp_path):
    with Store(tmp_path), pytest.raises(BadInput, match='Another server'): Store(tmp_path)
    Store(tmp_path).close() # the lock went with the first one

def test_the_lock_goes_with_a_killed_process(tmp_path):
    code = ('import sys, time\nfrom factlib.apps.store import Store\nstore = Store(sys.argv[1])\nprint("open", '
            'flush=True)\ntime.sleep(60)')
    process = subprocess.Popen([sys.executable, '-c', code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == 'open\n'
        with pytest.raises(BadInput): Store(tmp_path)
        process.kill()
        process.wait()
        with Store(tmp_path) as store: assert store.names('texts') == []
    finally:
        process.kill()
        process.stdout.close()

def test_an_error_within_a_change_leaves_the_file(tmp_path):
    with Store(tmp_path) as store:
        store.write('a.json', [1])
        with pytest.raises(ZeroDivisionError):
            with changing(store, 'a.json', []) as value:
                value.append(2)
                1/0
        assert store.read('a.json') == [1] and json.loads((tmp_path/'a.json').read_text()) == [1]

@pytest.mark.parametrize('name', ['..', '../x', 'a/../b', '/x', 'a/',
                                  '', 'a b', 'A', 'a.b.c', '.lock', 'a\n', 'a\x00', None, 7, 'a/./b', 'é'])
def test_names_that_lead_elsewhere(tmp_path, name):
    with Store(tmp_path) as store, pytest.raises(BadInput): store.read(name)

def test_damaged_files_are_named(tmp_path):
    with Store(tmp_path) as store:
        (tmp_path/'a.json').write_bytes(b'\xff\xfe{')
        with pytest.raises(BadInput, match='a.json'): store.read('a.json')
        (tmp_path/'a.json').write_text('['*100_000)
        with pytest.raises(BadInput, match='damaged'): store.read('a.json')

def test_a_folder_that_is_none(tmp_path):
    (tmp_path/'file').write_text('x')
    with pytest.raises(BadInput, match='name another one'): Store(tmp_path/'file'/'inside')

def test_it_is_its_owners_alone(tmp_path, recwarn):
    "Whatever the umask; a folder that others could open is closed, and that is said; with --force it stays."
    before = os.umask(0)
    try:
        with Store(tmp_path/'a'/'b') as store:
            store.write('texts/x/about.json', 1)
            store.write_text('texts/x/text.txt', 'SECRET')
        found = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path/'a').rglob('*')}
        assert found == {'b': 0o700, '.lock': 0o600, 'texts': 0o700, 'x': 0o700, 'about.json': 0o600, 'text.txt': 0o600}
        assert not recwarn
        (tmp_path/'a'/'b').chmod(0o755)
        with Store(tmp_path/'a'/'b') as store: assert store.read('texts/x/about.json') == 1
        said, = [str(w.message) for w in recwarn]
        assert '0755' in said and (tmp_path/'a'/'b').stat().st_mode & 0o777 == 0o700
        (tmp_path/'mine').mkdir(mode=0o755)
        (tmp_path/'mine'/'notes.txt').write_text('mine')
        with replacing(), Store(tmp_path/'mine') as store: store.write('a.json', 1)
        assert (tmp_path/'mine').stat().st_mode & 0o777 == 0o755
        assert (tmp_path/'mine'/'a.json').stat().st_mode & 0o777 == 0o600
    finally: os.umask(before)
