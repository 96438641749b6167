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


def write(path, rows):
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
    return path

class Command:
    "`factlib annotate` in a process of its own: the addresses that it prints."
    def __init__(self, *arguments):
        code = 'from factlib.cli import main; main()'
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
