"""The server lets its owner in and nobody else: token, cookie, Host, origin, key of forms; and what a request brings
arrives as it was."""
import os
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import psutil
import pytest

from factlib.apps.server import HEADERS, MOST_BYTES, Access, Response, Route, Server, TerminalLog, download, go_to
from factlib.core.records import BadInput

CHANGES = []

def start(request): return Response(f'<p>{request.form_key}</p>')

def change(request):
    CHANGES.append(request.form.get('what'))
    return go_to('/')

def size(request):
    name, content = request.files['file']
    return Response(f'{name} {len(content)} {content[:4]!r} {request.form["note"]}')

def bad(request): raise BadInput('Give <another> one.')

def broken(request): return 1/0

def slow(request):
    time.sleep(1)
    return Response('slept')

def echo(request): return Response(repr((request.query, request.form_key)))

ROUTES = [Route('/', get=start), Route('/change', post=change), Route('/size', post=size), Route('/bad', get=bad),
          Route('/broken', get=broken), Route('/slow', get=slow), Route('/echo', get=echo),
          Route('/say/(?P<word>[a-z]+)', get=lambda request, word: Response(word))]

@pytest.fixture(scope='module')
def server():
    with Server(ROUTES) as running: yield running

@pytest.fixture
def stranger(server):
    with httpx.Client(base_url=server.address.split('?')[0]) as client: yield client

@pytest.fixture
def owner(server, stranger):
    assert stranger.get(server.address).status_code == 302
    return stranger

def test_token_then_cookie(server, stranger):
    assert stranger.get('/').status_code == 403 and 'terminal' in stranger.get('/').text
    for wrong in ('', 'x', server.access.token[:-1], server.access.token + 'x', server.access.token.upper()):
        assert stranger.get('/', params=dict(token=wrong)).status_code == 403
    entered = stranger.get(server.address)
    assert entered.status_code == 302 and entered.headers['location'] == './' and 'token' not in entered.text
    cookie = entered.headers['set-cookie']
    assert 'HttpOnly' in cookie and 'SameSite=Lax' in cookie and cookie.startswith(server.access.cookie)
    assert stranger.get('/').status_code == 200

def test_a_wrong_or_foreign_cookie_is_none(server, stranger):
    for name, value in ((server.access.cookie, 'x'), (server.access.cookie, server.access.token),
                        ('factlib-1', server.access.open_session()),
                        (server.access.cookie, '\xe9'.encode('latin1').decode('latin1'))):
        assert stranger.get('/', headers={'Cookie': f'{name}={value}'.encode('latin1')}).status_code == 403

@pytest.mark.parametrize('host', ['evil.example', 'evil.example:{port}',
                                  '127.0.0.1', '127.0.0.1:1', '127.0.0.1.evil.example:{port}',
                                  '[::2]:{port}', '0.0.0.0:{port}', '127.0.0.1:{port}@evil.example', ''])
def test_other_hosts(server, owner, host):
    "DNS rebinding: the browser sends the cookie of its own host, never ours; even with ours nothing is shown."
    assert owner.get('/', headers=dict(Host=host.format(port=server.access.port))).status_code in (400, 403)
    named = owner.get('/', params=dict(token=server.access.token),
                      headers=dict(Host=host.format(port=server.access.port)))
    assert named.status_code in (400, 403) and 'set-cookie' not in named.headers

def test_localhost_is_ours(server, owner):
    assert owner.get('/', headers=dict(Host=f'localhost:{server.access.port}')).status_code == 200

def test_forms_bring_their_key(server, owner):
    CHANGES.clear()
    for form in ({}, dict(form_key=''), dict(form_key='x'), dict(form_key=server.access.token)):
        assert owner.post('/change', data=form | dict(what='no')).status_code == 403
    # addresses are logged and shared
    assert owner.post('/change?form_key=' + server.access.form_key, data=dict(what='no')).status_code == 403
    done = owner.post('/change', data=dict(what='yes', form_key=server.access.form_key))
    assert done.headers['location'] == server.access.path
    assert owner.post('/change', data=dict(what='header'),
                      headers={'X-Form-Key': server.access.form_key}).status_code == 303
    assert CHANGES == ['yes', 'header']

@pytest.mark.parametrize('origin', ['https://evil.example', 'null', 'http://127.0.0.1:1', 'http://localhost'])
def test_other_origins(server, owner, origin):
    CHANGES.clear()
    assert owner.post('/change', data=dict(form_key=server.access.form_key),
                      headers=dict(Origin=origin)).status_code == 403
    assert not CHANGES

def test_own_origin(server, owner):
    assert owner.post('/change', data=dict(form_key=server.access.form_key),
                      headers=dict(Origin=f'http://127.0.0.1:{server.access.port}')).status_code == 303

def test_a_token_in_an_address_changes_nothing(server, stranger):
    CHANGES.clear()
    assert stranger.post('/change', params=dict(token=server.access.token),
                         data=dict(form_key=server.access.form_key)).status_code == 403
    assert not CHANGES

def test_other_methods(server, owner):
    for method in ('PUT', 'DELETE', 'OPTIONS', 'HEAD', 'PATCH', 'TRACE'):
        assert owner.request(method, '/').status_code in (403, 404, 405)

def test_every_answer_has_the_headers(server, owner):
    answers = [owner.get(path) for path in ('/', '/bad', '/broken', '/none', '/files/app.js',
                                            '/files/none')] + [owner.get('/', headers=dict(Host='x')), owner.put('/')]
    for answer in answers:
        for name, value in HEADERS.items(): assert answer.headers[name] == value, (answer.url, name)
    policy = dict(rule.split(' ', 1) for rule in HEADERS['Content-Security-Policy'].split('; '))
    assert policy['default-src'] == "'none'" and policy['script-src'] == "'self'"
    assert policy['frame-ancestors'] == "'none'" and 'unsafe-eval' not in str(policy)

def test_errors_are_pages(owner, capfd):
    assert owner.get('/bad').status_code == 400 and 'Give &lt;another&gt; one.' in owner.get('/bad').text
    assert owner.get('/broken').status_code == 500 and 'ZeroDivisionError' not in owner.get('/broken').text
    assert owner.get('/<script>').status_code == 404 and '<script>alert' not in owner.get('/<script>alert').text
    assert 'ZeroDivisionError' in capfd.readouterr().err

def test_routes(server, owner):
    "The whole path has to fit, under the method that the route has; a stranger is not even told whether it does."
    assert owner.get('/say/hi').text == 'hi'
    elsewhere = ['/say/HI', '/say/hi/x', '/say/', '/say/h%69', '/say/hi%0a', '/SAY/hi', '//say/hi', '/change', '/files']
    for path in elsewhere: assert owner.get(path).status_code == 404, path
    own = dict(form_key=server.access.form_key)
    assert owner.post('/say/hi', data=own).status_code == owner.post('/none', data=own).status_code == 404
    with httpx.Client(base_url=owner.base_url) as stranger:
        for path in ['/say/hi', '/files/app.css', *elsewhere]: assert stranger.get(path).status_code == 403, path

def test_files_are_ours_only(owner):
    assert owner.get('/files/app.css').headers['content-type'].startswith('text/css')
    for name in ('kit.html.jinja', '../pyproject.toml', '..%2f..%2fsettings.ini', '%2e%2e/x', ''):
        assert owner.get(f'/files/{name}').status_code == 404

def test_an_upload_of_three_megabytes(server, owner):
    content = b'\x00\xff\r\n' + b'word ' * 600_000
    answered = owner.post('/size', data=dict(form_key=server.access.form_key, note='שלום'),
                          files=dict(file=('a b.txt', content)))
    assert answered.text == f"a b.txt {len(content)} b'\\x00\\xff\\r\\n' שלום"

def test_too_large_a_request_is_cut_off(server, owner):
    with socket.create_connection(('127.0.0.1', server.access.port)) as line:
        lines = [f'POST {server.access.path}size HTTP/1.1',
                 f'Host: 127.0.0.1:{server.access.port}', f'Content-Length: {MOST_BYTES + 1}']
        line.sendall('\r\n'.join([*lines, '', '']).encode())
        line.settimeout(5)
        assert b' 4' in line.recv(100)[:12] # before it was sent
    assert owner.get('/').status_code == 200

def test_odd_queries(owner):
    for query in ('?a=%ff', '?a=%00', '?=', '?a=1&a=2', '?' + 'x'*5000):
        assert owner.get('/echo' + query).status_code == 200
    assert owner.get('/echo?a=1&a=2').text.startswith("({'a': '2'}")

def test_slow_pages_let_others_through(owner, server):
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(owner.get, '/slow', timeout=20)
        time.sleep(.1)
        with httpx.Client(base_url=str(owner.base_url), cookies=dict(owner.cookies)) as other:
            assert other.get('/').status_code == 200 and not waiting.done()
        assert waiting.result().text == 'slept'

def test_it_is_not_reached_from_other_addresses(server):
    "Bound to loopback alone: the machine's other addresses answer nobody."
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(('192.0.2.1', 9)) # nothing is sent
            mine = probe.getsockname()[0]
        except OSError: pytest.skip('this machine has no other address')
    if mine.startswith('127.'): pytest.skip('this machine has no other address')
    with pytest.raises(OSError): socket.create_connection((mine, server.access.port), timeout=2).close()

def test_two_servers_have_two_cookies():
    with Server(ROUTES) as one, Server(ROUTES) as other, httpx.Client() as browser:
        for server in (one, other): browser.get(server.address)
        assert all(browser.get(s.address.split('?')[0]).status_code == 200 for s in (one, other))
    before = threading.active_count()
    assert not [t for t in threading.enumerate() if t.name == 'factlib-pages' and not t.is_alive()] and before

def test_a_taken_port_and_a_port_again():
    with Server(ROUTES) as one:
        with pytest.raises(BadInput, match='give another one'): Server(ROUTES, one.access.port).__enter__()
        port = one.access.port
    with Server(ROUTES, port) as again: assert again.access.port == port

def test_started_and_closed_without_a_block():
    "As a notebook does it; what was closed is closed, and its port is free."
    server = Server(ROUTES)
    server.close()
    with pytest.raises(RuntimeError): server.address
    server.start()
    with httpx.Client() as browser: assert browser.get(server.address, follow_redirects=True).status_code == 200
    server.close()
    server.close()
    with pytest.raises(httpx.ConnectError): httpx.get(server.address)
    with Server(ROUTES, server.access.port): pass

def test_file_names_in_headers_are_tame():
    for name in ('a\r\nSet-Cookie: x', '"', '../../x', 'שלום', '', 'a"; filename="b.exe'):
        header = download('', name).headers['Content-Disposition']
        assert header.count('"') == 2 and not set(header) & set('\r\n/\\')

def test_without_tornado():
    "A clear sentence, with the command that helps; importing needs nothing."
    code = ("import sys\nsys.modules['tornado'] = None\nfrom factlib.apps.server import Server\nfrom "
            "factlib.core.records import BadInput\ntry: Server([]).__enter__()\nexcept BadInput as e: print(e)")
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert "pip install 'factlib[annotate]'" in done.stdout, done.stderr

def test_importing_is_light():
    code = ('import sys, factlib.apps.server, factlib.apps.store\nprint([m for m in ("tornado", "jinja2", "pandas", '
            '"numpy", "networkx") if m in sys.modules])')
    assert subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout.strip() == '[]'

def sent(server, lines, body=b''):
    "What the server answers to bytes; empty if it ends the connection first."
    with socket.create_connection(('127.0.0.1', server.access.port)) as connection:
        connection.settimeout(20)
        said = b''
        try:
            connection.sendall('\r\n'.join([*lines, '', '']).encode())
            connection.sendall(body)
            while piece := connection.recv(65536): said += piece
        except OSError: pass # it was ended while we were sending
        return said.decode()

def test_bodies_of_strangers_are_not_read(server):
    "Before, 20 connections without a cookie, of 60 MB each, took 1.2 GB."
    huge, rss = b'x'*60_000_000, lambda: psutil.Process().memory_info().rss
    ours = f'Host: 127.0.0.1:{server.access.port}'
    ways = [[f'{method} {server.access.path}change HTTP/1.1', host, 'Content-Length: 60000000']
            for method in ('POST', 'GET') for host in (ours, 'Host: evil.example')]
    begun = most = rss()
    with ThreadPoolExecutor(20) as threads:
        told = [threads.submit(sent, server, ways[i % 4], huge) for i in range(20)]
        while not all(t.done() for t in told): most = max(most, rss())
    assert all(t.result() == '' or t.result().startswith('HTTP/1.1 403') for t in told) and most - begun < 200e6
    assert sent(server, [*ways[0][:2], 'Content-Length: 5'], b'what=').startswith('HTTP/1.1 403')

def test_slow_senders_are_cut(monkeypatch):
    "Before, a body was waited for without end. Who has the cookie is cut as well."
    monkeypatch.setattr('factlib.apps.server._SLOW', .5)
    with Server(ROUTES) as quick:
        lines = [f'POST {quick.access.path}change HTTP/1.1', f'Host: 127.0.0.1:{quick.access.port}',
                 f'Cookie: {quick.access.cookie}={quick.access.open_session()}', 'Content-Length: 50']
        assert sent(quick, lines, b'what=') == ''
        with socket.create_connection(('127.0.0.1', quick.access.port)) as silent:
            silent.settimeout(20)
            assert silent.recv(100) == b''

# Sessions

def test_a_session_is_no_token_and_ends(server, monkeypatch):
    "Its cookie goes to the pages of its own site alone, opens no other, and ends after a day without a request."
    with httpx.Client(base_url=server.address.split('?')[0]) as one, Server(ROUTES) as other:
        one.get(server.address)
        session, = one.cookies.values()
        cookie, = one.cookies.jar
        assert session != server.access.token
        assert cookie.path == server.access.path.rstrip('/') and len(cookie.path) > 16
        for path in ('/', '/1/', '/1/x', other.access.path): # of another port
            request = one.build_request('GET', f'http://127.0.0.1:{other.access.port}{path}')
            assert 'cookie' not in request.headers
        there = f'{other.access.cookie}={session}'
        assert httpx.get(other.address.split('?')[0], headers=dict(Cookie=there)).status_code == 403
        one.get(server.address)
        assert list(one.cookies.values()) == [session] # the same browser goes on with its session
        monkeypatch.setattr('factlib.apps.server._SESSION', 0.)
        assert one.get('/').status_code == 403
        monkeypatch.undo()
        assert one.get('/').status_code == 403
        assert one.get(server.address).status_code == 302 and one.get('/').status_code == 200

def test_sessions_are_bounded():
    access = Access()
    kept = [access.open_session() for _ in range(1001)]
    assert not access.is_session(kept[0]) and access.is_session(kept[1]) and access.is_session(kept[-1])

def test_a_ticket_lets_one_browser_in_once(server, monkeypatch):
    page = server.address.split('?')[0]
    def enter(browser, ticket): return browser.get(page, params=dict(ticket=ticket)).status_code
    with httpx.Client() as one, httpx.Client() as other:
        ticket = server.access.open_ticket()
        assert enter(other, 'x') == 403 and enter(one, ticket) == 302 and one.get(page).status_code == 200
        assert enter(other, ticket) == 403 and other.get(page).status_code == 403
        assert enter(one, ticket) == 302 # a notebook that is loaded again in the same browser
        monkeypatch.setattr('factlib.apps.server._TICKET', -1.)
        assert enter(other, server.access.open_ticket()) == 403

@pytest.mark.skipif(not hasattr(os, 'geteuid') or os.geteuid() or not shutil.which('setpriv'), reason='needs accounts')
@pytest.mark.parametrize('host', ['127.0.0.1', '::1'])
def test_a_ticket_is_for_its_own_account(host):
    with Server(ROUTES, host=host) as server:
        ticket = server.access.open_ticket()
        code = ('import http.client, sys; line = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2])); '
                'line.request("GET", sys.argv[3]); print(line.getresponse().status)')
        ask = [sys._base_executable, '-c', code, host, str(server.access.port), f'{server.access.path}?ticket={ticket}']
        other = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '/usr/bin/python3', *ask[1:]]
        assert subprocess.run(other, capture_output=True, text=True).stdout == '403\n'
        assert subprocess.run(ask, capture_output=True, text=True).stdout == '302\n'

def test_a_log_is_bounded(capsys):
    log = TerminalLog(3)
    for i in range(1000): log(f'Line {i}.')
    assert capsys.readouterr().err.splitlines() == ['Line 0.', 'Line 1.', 'Line 2.',
                                                    'More lines of this minute are left out.']

def test_no_open_files_are_waited_for(server, owner, capfd):
    "Something else in the process has them all: said once a second, and then it goes on."
    before, held = resource.getrlimit(resource.RLIMIT_NOFILE), []
    line = socket.socket()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir('/dev/fd')) + 20, before[1]))
        with suppress(OSError):
            while True: held.append(open(os.devnull))
        line.connect(('127.0.0.1', server.access.port))
        time.sleep(.3)
    finally:
        for file in held: file.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        line.close()
    assert owner.get('/', timeout=20).status_code == 200
    assert 0 < capfd.readouterr().err.count('can\'t be taken') < 5
