"""The command: what it prints, and how it ends; and a server that is killed at any moment of somebody's work, a disk
that is full, a store that is read-only or held by somebody else: what the page took as saved is there, once."""
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from annotators import ROWS, Person, compare_rows, fact_rows
from command import ROOT, environment, factlib_inside

from factlib.apps.annotate import Store, serve
from factlib.apps.annotate_forms import make_form
from factlib.core.records import BadInput


def write(path, rows):
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
    return path

class Command:
    "`factlib annotate` in a process of its own: the addresses that it prints."
    def __init__(self, *arguments, files=None):
        code = 'from factlib.cli import main; main()'
        if files: code = f'import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files})); {code}'
        self.process = subprocess.Popen([sys.executable, '-c', code, 'annotate', *map(str, arguments)], text=True,
                                        env=environment(None) | dict(PYTHONUNBUFFERED='1'), cwd=ROOT,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.urls = {}
        for line in self.process.stdout:
            name, address = line.split()
            self.urls[name] = address
            if name == 'overview': break
        assert self.urls, self.process.stderr.read()

    def __enter__(self): return self
    def __exit__(self, *error): self.end()

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(20)
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode

def test_a_line_for_each_person(tmp_path):
    data = write(tmp_path/'rows.jsonl', compare_rows())
    with Command('compare', data, '--store', tmp_path/'a.db', '--annotators', 'Ann,Bob') as command:
        assert list(command.urls) == ['Ann', 'Bob', 'overview']
        assert all(re.fullmatch(r'http://127\.0\.0\.1:\d+/\w+/\?token=[\w-]{22,}', a) for a in command.urls.values())
        with Person(command.urls['Bob']) as bob: assert bob.send('choice=both').status_code == 200
        with Person(command.urls['overview']) as owner: assert 'Progress' in owner.page.text
        assert command.end() == 0
    with Store(tmp_path/'a.db') as store: assert list(store.answers().annotator) == ['Bob']

@pytest.mark.parametrize('arguments, said', [
    (('rank', 'rows.jsonl'), 'no form'), (('compare', 'none.jsonl'), 'no file'),
    (('compare', 'empty.jsonl'), 'hold no row'),
    (('compare', 'broken.jsonl'), 'Line 1 of broken.jsonl is no JSON'), (('compare', 'twice.jsonl'), 'again in row 2'),
    (('facts', 'rows.jsonl'), "no 'claim'"), (('compare', 'rows.jsonl', '--quota', 'level=7:1'), 'there are 0'),
    (('compare', 'rows.jsonl', '--quota', 'level'), '--quota takes'),
    (('compare', 'rows.jsonl', '--quota', 'level=0:1,0:2'), 'names 0 twice'),
    (('compare', 'rows.jsonl', '--shared', '9'), '9 groups'),
    (('compare', 'rows.jsonl', '--annotators', 'A,A'), 'different names'), (('compare', '.'), 'The form for results'),
    (('compare', 'rows.jsonl', '--port', '70000'), 'port'), (('facts', '.'), 'holds no judgements'),
    (('compare', 'rows.jsonl', '--labels', 'fables'), 'no option'),
    (('compare', 'rows.jsonl', '--base', '/proxy/{port}/'), '--base is an address'),
    (('compare', 'rows.jsonl', '--export', 'out'), 'There is no store'),
    (('compare', 'rows.jsonl', '--draw', '2'), 'by chance')])
def test_bad_input_is_one_sentence(tmp_path, arguments, said):
    write(tmp_path/'rows.jsonl', compare_rows())
    write(tmp_path/'twice.jsonl', compare_rows(1)*2)
    (tmp_path/'empty.jsonl').write_text('')
    (tmp_path/'broken.jsonl').write_text('{')
    before = sorted(os.listdir(tmp_path))
    done = factlib_inside('annotate', *arguments, '--store', tmp_path/'a.db', cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count('\n') == 1 and not done.stdout
    assert sorted(os.listdir(tmp_path)) == before

def test_a_taken_port(tmp_path):
    write(tmp_path/'rows.jsonl', compare_rows())
    with serve('compare', compare_rows(), tmp_path/'b.db') as served:
        port = served.server.access.port
        done = factlib_inside('annotate', 'compare', 'rows.jsonl', '--store', 'a.db', '--port', port, cwd=tmp_path)
    assert done.returncode == 2 and 'give another one' in done.stderr and not (tmp_path/'a.db').exists()

def test_other_machines_are_warned_of(tmp_path):
    data = write(tmp_path/'rows.jsonl', compare_rows())
    command = Command('compare', data, '--store', tmp_path/'a.db', '--host', '0.0.0.0')
    with Person(re.sub('//[^:]*:', '//127.0.0.1:', command.urls['A'])) as person: assert person.item == 'q0'
    command.process.send_signal(signal.SIGTERM)
    assert 'HTTP is not private' in command.process.communicate(timeout=20)[1]

class Proxy(BaseHTTPRequestHandler):
    "What jupyter-server-proxy does: /user/me/proxy/PORT/PATH is /PATH at that port; the browser's Host stays."
    def hand_on(self):
        port, path = re.fullmatch(r'/user/me/proxy/(\d+)(/.*)', self.path).groups()
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        there = HTTPConnection('127.0.0.1', int(port), timeout=60)
        there.request(self.command, path, body or None, dict(self.headers))
        answer = there.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ('transfer-encoding', 'content-length'): self.send_header(name, value)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        there.close()
    do_GET = do_POST = hand_on
    def log_message(self, *said): pass

def test_behind_a_proxy(tmp_path):
    "Addresses are those of the proxy, answers are saved, and the cookies go to the pages of their person alone."
    data, proxy = write(tmp_path/'rows.jsonl', fact_rows()), ThreadingHTTPServer(('127.0.0.1', 0), Proxy)
    threading.Thread(target=proxy.serve_forever, kwargs=dict(poll_interval=.02), daemon=True).start()
    base = f'http://127.0.0.1:{proxy.server_port}/user/me/proxy/{{port}}/'
    try:
        with Command('facts', data, '--store', tmp_path/'a.db', '--annotators', 'Ann,Bob', '--base', base) as command:
            start = re.escape(base).replace(r'\{port\}', r'\d+')
            assert all(re.match(start + r'\w+/\?token=', address) for address in command.urls.values())
            for name, door in (('Ann', '1'), ('Bob', '2')):
                with Person(command.urls[name]) as person:
                    assert str(person.response.url) == person.base and person.item == 'f0'
                    paths = [cookie.path for cookie in person.http.cookies.jar]
                    assert len(paths) == 1 and re.fullmatch(rf'/user/me/proxy/\d+/{door}_[0-9a-f]{{16}}', paths[0])
                    assert person.send('label=supported').status_code == 200 and person.item == 'f1'
                    assert person.undo().status_code == 200 and person.item == 'f0'
                    assert person.send('label=unsupported').status_code == 200
                    sheet = person.http.get(person.base + 'files/annotate.css')
                    assert sheet.headers['content-type'].startswith('text/css')
            with Person(command.urls['overview']) as owner: assert 'Progress' in owner.page.text
    finally:
        proxy.shutdown()
        proxy.server_close()
    with Store(tmp_path/'a.db') as store:
        assert [(r['annotator'], r['value']) for r in store.rows() if r['field'] == 'label'] == [
            ('Ann', 'unsupported'), ('Bob', 'unsupported')]

@pytest.mark.slow
def test_killed_at_ten_moments(tmp_path):
    "Each time the server is started again, the work goes on where the page left it, and nothing is there twice."
    data = write(tmp_path/'rows.jsonl', fact_rows(2000)) # more than are answered
    store, rng = tmp_path/'a.db', random.Random(7)
    taken: dict = {}
    for _ in range(10):
        command = Command('facts', data, '--store', store)
        with Person(command.urls['A']) as person:
            if taken: assert int(person.item[1:]) >= len(taken) # at most one that was stored and not told
            threading.Timer(rng.uniform(.05, .5), command.process.kill).start()
            try:
                for n in range(1000):
                    item, label = person.item, 'label=' + rng.choice(['supported', 'unsupported'])
                    assert person.send(label, marks='1', reason=f'{item} because').status_code == 200
                    taken[item] = label.split('=')[1]
            except httpx.TransportError: pass
        command.end(signal.SIGKILL)
        with Store(store) as kept:
            given, history = kept.given('A'), kept.history()
        assert all(given[item]['label'] == label for item, label in taken.items())
        assert len(given) - len(taken) in (0, 1) and not history.duplicated(['item', 'field']).any()
        taken = {item: own['label'] for item, own in given.items()}
    assert len(taken) > 10

def test_a_full_disk(tmp_path):
    "SQLite itself finds no room: nothing is lost, and the same press is stored once there is some."
    with serve('facts', fact_rows(), tmp_path/'a.db') as served, Person(served.urls['A']) as person:
        person.send('label=supported')
        db = served.store.file.connect()
        db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")
        fields = person.fields('label=unsupported', marks='1', reason='x'*19_000)
        said = person.http.post(person.base + 'answer', data=fields)
        assert said.status_code == 503 and 'Not saved: the disk is full' in said.text
        assert len(served.store.answers()) == 1
        db.execute('PRAGMA max_page_count = 100000')
        for _ in range(2): assert person.http.post(person.base + 'answer', data=fields).status_code == 200
        assert len(served.store.answers()) == 3

def test_a_store_that_somebody_holds(tmp_path):
    with serve('facts', fact_rows(), tmp_path/'a.db') as served, Person(served.urls['A']) as person:
        served.store.file.connect().execute('PRAGMA busy_timeout = 100')
        other = sqlite3.connect(tmp_path/'a.db', isolation_level=None)
        other.execute('BEGIN EXCLUSIVE')
        fields = person.fields('label=supported')
        said = person.http.post(person.base + 'answer', data=fields)
        assert said.status_code == 503 and 'another program holds the store' in said.text
        other.execute('ROLLBACK')
        other.close()
        assert person.http.post(person.base + 'answer', data=fields).status_code == 200
        assert len(served.store.answers()) == 1

def test_a_store_that_may_only_be_read(tmp_path):
    with serve('facts', fact_rows(), tmp_path/'a.db') as served, Person(served.urls['A']) as person:
        person.send('label=supported')
        served.store.file.connect().execute('PRAGMA query_only = 1') # root may write whatever its mode says
        said = person.send('label=supported')
        assert said.status_code == 503 and 'may only be read' in said.text

def test_where_no_store_can_be(tmp_path):
    (tmp_path/'file').write_text('')
    for place in (tmp_path/'file'/'a.db', '/proc/none/a.db', tmp_path):
        write(tmp_path/'rows.jsonl', compare_rows())
        done = factlib_inside('annotate', 'compare', 'rows.jsonl', '--store', place, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.count('\n') == 1, done.stderr

def test_two_people_at_once(tmp_path):
    "Twenty answers a second from each of four; none is lost, none is twice."
    people = ('A', 'B', 'C', 'D')
    with serve('compare', compare_rows(25), tmp_path/'a.db', people) as served:
        def work(address):
            with Person(address) as person:
                while person.item: assert person.send('choice=both').status_code == 200
        threads = [threading.Thread(target=work, args=[address]) for address in served.urls.values()]
        for thread in threads: thread.start()
        for thread in threads: thread.join(120)
        assert len(served.store.answers()) == len(served.store.history()) == 100

def test_each_form_from_a_file(tmp_path):
    for form, make in ROWS.items():
        with Command(form, write(tmp_path/f'{form}.jsonl', make()), '--store', tmp_path/f'{form}.db') as command:
            with Person(command.urls['A']) as person: assert person.item

# Who may read, and what is saved at once

def modes(folder): return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}

@pytest.fixture
def open_umask():
    "A process that would make files for everybody."
    before = os.umask(0)
    yield
    os.umask(before)

def test_a_store_is_its_owners_alone(tmp_path, open_umask):
    "The file, its log and index, a folder made for it, and what is exported."
    with serve('facts', fact_rows(), tmp_path/'new'/'a.db') as served, Person(served.urls['A']) as person:
        person.send('label=supported')
        assert modes(tmp_path/'new') == {'a.db': 0o600, 'a.db-wal': 0o600, 'a.db-shm': 0o600}
        assert (tmp_path/'new').stat().st_mode & 0o777 == 0o700
        paths = served.store.export(tmp_path/'out')
        assert paths and all(path.stat().st_mode & 0o777 == 0o600 for path in paths)
        assert (tmp_path/'out').stat().st_mode & 0o777 == 0o700

@pytest.mark.parametrize('mode', [0o644, 0o660, 0o604])
def test_an_open_store_is_closed_and_that_is_said(tmp_path, mode, recwarn):
    with serve('facts', fact_rows(), tmp_path/'a.db') as served, Person(served.urls['A']) as person:
        person.send('label=supported')
        for path in tmp_path.iterdir(): path.chmod(mode)
        with Store(tmp_path/'a.db') as other: assert len(other.answers()) == 1
        assert set(modes(tmp_path).values()) == {0o600}
    said, = [str(w.message) for w in recwarn]
    assert f'{mode:04o}' in said and '0600' in said
    (tmp_path/'notes.txt').write_text('mine')
    (tmp_path/'notes.txt').chmod(mode)
    with pytest.raises(BadInput, match='no store'): Store(tmp_path/'notes.txt')
    assert modes(tmp_path)['notes.txt'] == mode # no store, none of our business

@pytest.mark.skipif(not hasattr(os, 'geteuid') or os.geteuid(), reason='needs another account')
@pytest.mark.parametrize('end', ['-wal', '-shm', '-journal'])
@pytest.mark.parametrize('before', [False, True])
def test_a_log_of_another_account_is_refused(tmp_path, end, before):
    "SQLite would write texts into it."
    if before: serve('facts', fact_rows(), tmp_path/'a.db').close()
    (tmp_path/f'a.db{end}').touch()
    os.chown(tmp_path/f'a.db{end}', 65534, 65534)
    with pytest.raises(BadInput, match='not its owner'): serve('facts', fact_rows(), tmp_path/'a.db')
    assert not (tmp_path/f'a.db{end}').stat().st_size

def together(n, work):
    "Call a function with 0 to n - 1 in threads that begin at once. What each gives."
    barrier, given = threading.Barrier(n), [None]*n
    def run(i):
        barrier.wait(20)
        given[i] = work(i)
    threads = [threading.Thread(target=run, args=[i]) for i in range(n)]
    for thread in threads: thread.start()
    for thread in threads: thread.join(60)
    return given

def test_claims_added_at_once_all_stand(tmp_path):
    "Twenty from several tabs, of two servers at one store; then twenty edits of twenty claims, and twenty deletions."
    rows = ROWS['claims'](1)
    with (serve('claims', rows, tmp_path/'a.db') as one, serve('claims', rows, tmp_path/'a.db') as two,
          Person(one.urls['A']) as here, Person(two.urls['A']) as there):
        item = rows[0]['id']
        def claims(): return one.store.given('A').get(item, {}).get('claims', [])
        def press(i, choice, **more):
            person = (here, there)[i % 2]
            fields = person.fields(choice, press=f'press-{choice[0]}-{i:04}', item=item, script='1', **more)
            cookies = dict(person.http.cookies)
            return [httpx.post(person.base + 'answer', data=fields, cookies=cookies, timeout=60).status_code
                    for _ in range(2)] # sent again, as after a lost reply
        assert together(20, lambda i: press(i, 'add=add', new=f'Claim number {i}.')) == [[200, 200]]*20
        added = {c['text']: c['id'] for c in claims() if 'number' in c['text']}
        assert len(claims()) == 22 and sorted(added) == sorted(f'Claim number {i}.' for i in range(20))
        ids = [added[f'Claim number {i}.'] for i in range(20)]
        def edit(i): return press(i, f'edit:{ids[i]}=edit', **{f'text:{ids[i]}': f'Other {i}.'})
        assert together(20, edit) == [[200, 200]]*20
        assert sorted(c['text'] for c in claims() if 'Other' in c['text']) == sorted(f'Other {i}.' for i in range(20))
        ids = [c['id'] for c in claims()][2:]
        assert together(20, lambda i: press(i, f'delete:{ids[i]}=delete')) == [[200, 200]]*20
        assert [c['text'] for c in claims()] == rows[0]['claims'] and len(one.store.history()) == 60

def test_servers_that_begin_a_store_at_once(tmp_path):
    "One makes it; an empty file, left by one that was killed meanwhile, is taken; none removes what another serves."
    (tmp_path/'a.db').touch(mode=0o600)
    form = make_form('facts')
    items = form.items(fact_rows())
    def begin(i):
        store = Store(tmp_path/'a.db').begin('facts', {}, items, 0, dict(A=[item['id'] for item in items]))
        store.save('A', 'f0', dict(comment=str(i)), f'press-{i}')
        return store
    stores = together(8, begin)
    assert sum(store.file.is_new for store in stores) == 1 and len(stores[0].history()) == 8
    maker = next(store for store in stores if store.file.is_new)
    other = next(store for store in stores if not store.file.is_new)
    maker.file.remove() # others have it open
    assert (tmp_path/'a.db').exists() and len(other.history()) == 8
    for store in stores: store.close()

def test_a_dispute_is_settled_once(tmp_path):
    with Store(tmp_path/'a.db') as store:
        items = make_form('facts').items(fact_rows(1))
        store.begin('facts', {}, items, 0, dict(A=['f0']))
        def settle(i):
            try: store.decide('f0', 'label', ('supported', 'unsupported')[i % 2], 'So.', f'press-{i}')
            except BadInput as e: return str(e)
        told = together(6, settle)
        decided, = store.decisions()
        assert [t is None for t in told] == [('supported', 'unsupported')[i % 2] == decided['label'] for i in range(6)]

FLOOD = """
import socket, sys
lines = []
for i in range(200):
    line = socket.create_connection(('127.0.0.1', int(sys.argv[1])), timeout=20)
    try: line.sendall(sys.argv[2].encode())
    except OSError: pass # it was turned away
    lines.append(line)
print('open', flush=True)
sys.stdin.readline()
"""

@pytest.mark.parametrize('said', [
    'GET /1/ HTTP/1.1\\r\\nX: ', 'POST /x HTTP/1.1\\r\\nContent-Length: 9\\r\\n\\r\\n',
    'x\\r\\n\\r\\n'])
def test_strangers_who_open_all_connections(tmp_path, said):
    """With 128 files for the server: a page still comes, answers are saved, and the log stays small. Then thirty
    browsers with six connections each are served as well."""
    data, said = write(tmp_path/'rows.jsonl', fact_rows(50)), said.encode().decode('unicode_escape')
    with Command('facts', data, '--store', tmp_path/'a.db', files=128) as command:
        port = httpx.URL(command.urls['A']).port
        flood = subprocess.Popen([sys.executable, '-c', FLOOD, str(port), said], stdin=subprocess.PIPE, text=True,
                                 stdout=subprocess.PIPE)
        with flood:
            assert flood.stdout.readline() == 'open\n'
            with Person(command.urls['A']) as person:
                for i in range(5): assert person.send('label=supported').status_code == 200
                assert person.item == 'f5'
            flood.stdin.write('\n')
        with Person(command.urls['A']) as person:
            cookies = dict(person.http.cookies)
            browsers = [httpx.Client(cookies=cookies, timeout=60, verify=False, trust_env=False) for _ in range(180)]
            def ask(browser):
                try: return browser.get(person.base).status_code
                except httpx.TransportError: return browser.get(person.base).status_code # as browsers do
            answers, again = (together(30, lambda i: [ask(browsers[6*i + j]) for j in range(6)]) for _ in range(2))
            for browser in browsers: browser.close()
        assert answers == again == [[200]*6]*30
        command.process.send_signal(signal.SIGTERM)
        assert len(command.process.communicate(timeout=20)[1]) < 5000
