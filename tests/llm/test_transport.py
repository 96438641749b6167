"""Both ways to a server that does all that no server should: no error of a library leaves them, nothing of the key,
nobody is followed, no body is without end."""
import asyncio, gzip, json, re, subprocess, threading, traceback, tracemalloc, zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from factlib.core.loop import run_sync
from factlib.core.records import Absence, BadInput, Example
from factlib.evaluators.base import EvaluationError, Evaluator, evaluate
from factlib.llm.cache import request_text
from factlib.llm.gateway import Gateway, most_tokens
from factlib.llm.chat import Chat, _Exchange, _one_form
from factlib.llm.keys import server_certificate
from factlib.llm.stub import StubServer
from factlib.llm.transport import TRANSPORTS, Failure, request_json
from raw_server import RawServer, completion, http

KEY = 'sk-this-is-a-very-secret-key-0123456789'
GOOD = completion().encode()
HEAD = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'

@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ('OPENAI_API_KEY', 'OPENAI_BASE_URL', 'FACTLIB_CACHE',
                 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'):
        for n in (name, name.lower()): monkeypatch.delenv(n, raising=False)

def odd(**choice):
    return http(completion(choices=[dict(index=0, finish_reason='stop', message=dict(role='assistant', content='ok'))
                                    | choice]))

NO_HTTP = {
    'garbage': b'\x00\xffgarbage\r\n\r\n', 'no version': b'200 OK\r\n\r\n',
    'status -1': b'HTTP/1.1 -1 X\r\nContent-Length: 0\r\n\r\n',
    'status 9999': b'HTTP/1.1 9999 X\r\nContent-Length: 0\r\n\r\n',
    'negative length': HEAD + b'Content-Length: -5\r\n\r\n' + GOOD,
    'two lengths': HEAD + b'Content-Length: 5\r\nContent-Length: 9\r\n\r\n' + GOOD,
    'odd length': HEAD + b'Content-Length: 1e3\r\n\r\n' + GOOD,
    'huge length': HEAD + b'Content-Length: ' + b'9'*5000 + b'\r\n\r\n' + GOOD,
    'bad chunk': HEAD + b'Transfer-Encoding: chunked\r\n\r\nzz\r\n' + GOOD,
    'negative chunk': HEAD + b'Transfer-Encoding: chunked\r\n\r\n-5\r\n' + GOOD,
    'chunks and a length': HEAD + b'Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n'
    + b'%x\r\n%s\r\n0\r\n\r\n' % (len(GOOD), GOOD), 'long header': HEAD + b'X: ' + b'a'*9000 + b'\r\n\r\n' + GOOD,
    'many headers': HEAD + b''.join(b'X-%d: 1\r\n' % i for i in range(5000)) + b'\r\n' + GOOD,
    'NUL': HEAD + b'X: a\x00b\r\n\r\n' + GOOD, 'no colon': HEAD + b'nonsense\r\n\r\n' + GOOD,
    'CR in a header': HEAD + b'X: a\rb\r\n\r\n' + GOOD,
    'SSH': b'SSH-2.0-OpenSSH_9.2\r\n', 'TLS': b'\x15\x03\x03\x00\x02\x02\x28',
    'HTTP/2': b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'the key in a header': HEAD + f'X: {"a"*9000}{KEY}\r\n\r\n'.encode(),
    'the key as a status': f'HTTP/1.1 {KEY}\r\n\r\n'.encode()}
LOST = {'empty': b'', 'half a head': b'HTTP/1.1 200', 'short body': HEAD + b'Content-Length: 5000\r\n\r\n' + GOOD,
        'cut chunk': HEAD + b'Transfer-Encoding: chunked\r\n\r\n5\r\nab'}
NO_ANSWER = {
    'status 999': b'HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n',
    'status 000': b'HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n',
    '101': b'HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n' + GOOD,
    '204': b'HTTP/1.1 204 X\r\n\r\n', '304': b'HTTP/1.1 304 X\r\n\r\n',
    'no gzip': http(GOOD, 'Content-Encoding: gzip'),
    'cut gzip': http(gzip.compress(GOOD)[:-12], 'Content-Encoding: gzip'),
    'no deflate': http(GOOD, 'Content-Encoding: deflate'), 'no UTF-8': http(b'{"choices": "\xff\xfe"}'),
    'an event stream': HEAD + b'\r\ndata: ' + GOOD,
    'a field of pydantic': http(b'{"_fields_set": 5, "choices": [{"message": {"content": "ok"}}]}'),
    'a date of no calendar': http(b'x', 'Retry-After: Wed, 99 Oct 99999 99:99:99 GMT', status='503 X'),
    'odd error': http(b'{"error": {"message": null, "code": [1]}}', 'Retry-After: \xb2', status='503 X'),
    'the key in an error': http(f'{{"error": {{"message": "{KEY}"}}}}', status='400 X'),
    'the key as an address': http(b'', f'Location: http://x/{KEY}', status='302 X')}
ANY = {
    'bare line feeds': b'HTTP/1.1 200 OK\n\n' + GOOD,
    'a thousand continues': b'HTTP/1.1 100 Continue\r\n\r\n'*1000 + http(GOOD),
    'br': http(GOOD, 'Content-Encoding: br'), 'zstd': http(GOOD, 'Content-Encoding: zstd'),
    'unknown packing': http(GOOD, 'Content-Encoding: lzma'),
    'packed 500 times': http(GOOD, 'Content-Encoding: ' + ', '.join(['gzip']*500)),
    'UTF-16, it says': http(GOOD, 'Content-Type: application/json; charset=utf-16'),
    'odd charset': http(GOOD, 'Content-Type: application/json; charset=\xff'),
    'odd cookie': http(GOOD, 'Set-Cookie: a=\x01b; Max-Age=9e999'),
    'text/plain': http(GOOD, 'Content-Type: text/plain'),
    'fields of Python': http(
        b'{"model_extra": 5, "self": 1, "__class__": 3, "choices": [{"message": {"content": "ok"}}]}'),
    'a reason that is none': odd(finish_reason=dict(a=1)),
    'reasoning that is none': odd(message=dict(role='assistant', content='ok', reasoning_content=dict(a=1))),
    'usage in a list': http(completion(usage=[1])),
    'usage of true': http(completion(usage=dict(prompt_tokens=True, completion_tokens='5')))}

def shown(error):
    """All that an error shows, frames' variables included, but for the frames of this file and of pytest, which have
    the key as a constant."""
    blocks = re.split(r'(?m)^(?=  File )',
                      ''.join(traceback.TracebackException.from_exception(error, capture_locals=True).format()))
    return repr(error) + repr(vars(error)) + ''.join(block for block in blocks if 'factlib/' in block.split('\n')[0]
                                                     or not block.startswith('  File'))

async def sent(transport, base_url):
    "What a transport does with a request: the completion, or what it raises."
    there = TRANSPORTS[transport](base_url, SimpleNamespace(value=KEY))
    try: return await there.send(dict(model='m', messages=[dict(role='user', content='x')]), 5)
    except BaseException as e: return e
    finally: await there.close()

@pytest.mark.filterwarnings('ignore:.*does not say how many tokens')
@pytest.mark.parametrize('transport', TRANSPORTS)
@pytest.mark.parametrize('behaviour', [*NO_HTTP, *LOST, *NO_ANSWER, *ANY])
def test_whatever_a_server_does_is_an_answer_or_a_failure(behaviour, transport):
    answer = (NO_HTTP | LOST | NO_ANSWER | ANY)[behaviour]
    with RawServer(answer) as server:
        outcome = run_sync(sent(transport, server.base_url))
        reply = Chat('m', server.base_url, api_key=KEY, attempts=1, timeout=5, transport=transport).ask('x')
    assert KEY not in repr(reply) and all(f'Bearer {KEY}'.encode() in head for head, _ in server.asked)
    if behaviour in ANY:
        assert type(outcome) is Failure or outcome.choices[0].message.content == 'ok'
        return
    assert type(outcome) is Failure and outcome.__cause__ is None and outcome.__context__ is None
    if 'the key in an error' != behaviour != 'the key as an address': assert KEY not in shown(outcome)
    if behaviour in NO_HTTP: assert outcome.kind == 'garbled'
    if behaviour in LOST: assert outcome.kind == 'connection'
    assert reply.absence is Absence.transport and reply.detail and reply.text == ''

def test_a_kept_failure_shows_no_key():
    for transport in TRANSPORTS:
        with RawServer(NO_ANSWER['the key in an error']) as server:
            chat = Chat('m', server.base_url, api_key=KEY, transport=transport)
            now = run_sync(clock())
            exchange = _Exchange(chat, request := _one_form(chat, 'x'), request_text(request))
            exchange.sent, exchange.end = now, now + 9
            failed = run_sync(exchange.attempt(chat.profile, chat.profile.body(request)))
            assert failed.kind == 'rejected' and failed.__traceback__ is None and KEY not in shown(failed)

async def clock(): return asyncio.get_running_loop().time()

# --- an evaluation goes on, and its errors hold nothing

class Asks(Evaluator):
    name, signature = 'asks', 'asks|v:1'
    def __init__(self, chat): self.chat = chat
    async def judge(self, example):
        reply = await self.chat(example.target)
        return self.absent(example, reply.absence) if reply.absence else self.judgement(example, len(reply.text))

@pytest.mark.parametrize('transport', TRANSPORTS)
def test_one_answer_in_twelve_that_is_no_http_ends_no_evaluation(transport, tmp_path):
    twelve = lambda body: b'nonsense\r\n\r\n' if b'text 7' in body else http(completion())
    with RawServer(twelve) as server, pytest.warns(UserWarning):
        frame = evaluate(Asks(Chat('m', server.base_url, attempts=2, longest_wait=.01, transport=transport)),
                         [Example(id=f'{i}', target=f'text {i}.') for i in range(12)], progress=False)
    assert list(frame.value) == [2.0 if i != 7 else None for i in range(12)] and frame.absence[7] == 'transport'

def test_kept_errors_hold_no_frames():
    class Broken(Asks):
        async def judge(self, example):
            key, many = KEY, ['x'*100_000]
            try: return 1/0
            except ZeroDivisionError as e: raise ValueError('broken') from e
    with pytest.raises(EvaluationError) as e:
        evaluate(Broken(None), [Example(id=f'{i}', target='x') for i in range(5)], progress=False)
    for error in e.value.errors.values():
        assert type(error) is ValueError and error.__traceback__ is error.__cause__.__traceback__ is None
        assert 'in judge' in error.__notes__[0] and KEY not in shown(error)

# --- redirections

@pytest.mark.parametrize('transport', TRANSPORTS)
@pytest.mark.parametrize('status', [301, 302, 303, 307, 308])
def test_nobody_is_followed(status, transport):
    with StubServer(lambda request: 'a stranger speaks') as stranger, StubServer(
        lambda request: dict(status=status, headers=dict(Location=stranger.base_url + '/chat/completions'))) as server:
        chat = Chat('m', server.base_url, api_key=KEY, transport=transport)
        replies = [chat.ask(f'secret text {i}') for i in range(5)]
        assert {r.absence for r in replies} == {Absence.transport}
        assert all(stranger.base_url in r.detail and str(status) in r.detail for r in replies)
        # then it asks no more
        assert stranger.requests == [] and stranger.connections == 0 and len(server.requests) == 2
        assert 'base_url' in replies[-1].detail

@pytest.mark.parametrize('transport', TRANSPORTS)
@pytest.mark.parametrize('location', ['//elsewhere', '/v2', 'ftp://elsewhere/x',
                                      'http://[', 'javascript:alert(1)', 'a'*8000, '\xff\xfe', '', 'http://u:p@h/'])
def test_odd_addresses_are_not_followed_either(location, transport):
    with RawServer(http(b'', f'Location: {location}', status='307 X')) as server:
        reply = Chat('m', server.base_url, attempts=1, transport=transport).ask('x')
        assert reply.absence is Absence.transport and 'not followed' in reply.detail and len(reply.detail) < 700
        assert len(server.asked) == 1

# --- bodies without end

def bomb(megabytes):
    "A gzip of so many MB of zeros, around a completion that would be fine."
    packer = zlib.compressobj(9, wbits=31)
    parts = [packer.compress(GOOD)] + [packer.compress(b' '*10**6) for _ in range(megabytes)]
    return b''.join(parts) + packer.flush()

@pytest.mark.parametrize('transport', TRANSPORTS)
@pytest.mark.parametrize('packed', ['gzip', 'gzip, gzip', 'not packed', 'in chunks'])
def test_an_answer_has_at_most_32_megabytes(packed, transport):
    raw = bomb(100)
    answer = {'gzip': lambda: http(raw, 'Content-Encoding: gzip'),
              'gzip, gzip': lambda: http(gzip.compress(raw), 'Content-Encoding: gzip, gzip'),
              'not packed': lambda: [HEAD + b'Content-Length: 100000000\r\n\r\n', *[b' '*10**6]*100],
              'in chunks': lambda: [HEAD + b'Transfer-Encoding: chunked\r\n\r\n',
                                    *[b'%x\r\n%s\r\n' % (10**6, b' '*10**6)]*100]}[packed]()
    with RawServer(answer) as server:
        tracemalloc.start()
        outcome = run_sync(sent(transport, server.base_url))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert outcome.kind == 'garbled' and peak < 130_000_000, peak
    # lean doesn't unpack twice
    if packed != 'gzip, gzip' or transport == 'sdk': assert str(outcome) == 'the answer is larger than 32 MB'

@pytest.mark.parametrize('transport', TRANSPORTS)
def test_an_answer_of_thirty_megabytes_is_read(transport):
    with RawServer(http(gzip.compress(completion('x'*30_000_000).encode(), 1), 'Content-Encoding: gzip')) as server:
        assert len(run_sync(sent(transport, server.base_url)).choices[0].message.content) == 30_000_000

@pytest.mark.parametrize('transport', TRANSPORTS)
def test_of_an_error_only_the_beginning_is_read(transport):
    "300 MB that an error's pattern has to be sought in: the connection is closed after the first 64 kB."
    written = []
    def endless():
        yield b'HTTP/1.1 400 X\r\nContent-Length: 300000000\r\n\r\nthe prompt '
        for i in range(300):
            written.append(i)
            yield b'prompt '*142_857
    with RawServer(lambda body: endless()) as server:
        reply = Chat('m', server.base_url, attempts=1, transport=transport).ask('x')
        assert reply.absence is Absence.transport and reply.detail.startswith('HTTP 400: the prompt prompt')
        assert len(reply.detail) < 600
    assert len(written) < 100

@pytest.mark.slow
@pytest.mark.parametrize('transport', TRANSPORTS)
def test_gigabytes_in_half_a_megabyte(transport):
    raw = bomb(1800)
    assert len(raw) < 2_000_000
    with RawServer(http(raw, 'Content-Encoding: gzip')) as server:
        reply = Chat('m', server.base_url, attempts=3, longest_wait=.01, transport=transport).ask('x')
        assert reply.absence is Absence.transport and 'larger than 32 MB' in reply.detail and len(server.asked) == 3

# --- numbers, addresses, passwords

@pytest.mark.filterwarnings('ignore:.*does not say how many tokens')
@pytest.mark.parametrize('transport', TRANSPORTS)
@pytest.mark.parametrize('n', [2**63, 2**63 - 1, 10**400, -1, 0.5])
def test_a_count_that_is_none_is_uncounted(n, transport, tmp_path):
    with RawServer(http(completion(usage=dict(prompt_tokens=n, completion_tokens=n, total_tokens=5)))) as server:
        examples = [Example(id=f'{i}', target=f'text {i}') for i in range(3)]
        for _ in range(2): # the second time from the cache
            chat = Chat('m', server.base_url, cache=tmp_path/'a.sqlite', transport=transport)
            frame = evaluate(Asks(chat), examples, progress=False)
            assert list(frame.value) == [2, 2, 2] and chat.stats.uncounted + chat.stats.cached == 3
            assert chat.stats.tokens == 0

def test_a_count_that_an_older_cache_holds_is_uncounted_too(tmp_path):
    chat = Chat('m', 'http://127.0.0.1:9/v1', cache=tmp_path/'a.sqlite', mode='replay')
    request = _one_form(chat, 'x')
    for n, usage in enumerate([dict(prompt_tokens=2**63, completion_tokens=2**70), None, dict(prompt_tokens='5')]):
        chat.cache.put(chat.key('x'), request, dict(text='ok', finish_reason='stop', usage=usage), replace=True)
        assert chat.ask('x').usage.prompt_tokens == 0 and chat.ask('x').usage.uncounted == 1

@pytest.mark.parametrize('url', ['http://127.0.0.1:9\n/v1', 'http://127.0.0.1:9/v 1',
                                 'http://127.0.0.1 :9/v1', 'http://127.0.0.1:9/\tv1',
                                 'http://127.0.0.1:9/v1\x00', 'http://127.0.0.1:9/\u200bv1',
                                 'http://127.0.0.1:9/\ud800', b'http://127.0.0.1:9/v1', 5])
def test_an_address_with_a_space_or_a_line_break_is_none(url):
    with pytest.raises(BadInput, match='base_url'): Chat('m', url)

def test_an_address_loses_the_spaces_around_it(monkeypatch):
    with StubServer(lambda request: 'ok') as server:
        monkeypatch.setenv('OPENAI_BASE_URL', f' {server.base_url}\n')
        for transport in TRANSPORTS:
            assert Chat('m', transport=transport).ask('x').text == 'ok' and Chat('m').endpoint == server.base_url

@pytest.mark.parametrize('transport', TRANSPORTS)
def test_a_password_file_is_not_read(transport, monkeypatch, tmp_path):
    (tmp_path/'.netrc').write_text(
        'machine elsewhere.invalid login me password guess\ndefault login me password guess\n')
    (tmp_path/'.netrc').chmod(0o600)
    monkeypatch.setenv('HOME', str(tmp_path))
    monkeypatch.setenv('NETRC', str(tmp_path/'.netrc'))
    with RawServer(http(completion())) as proxy:
        monkeypatch.setenv('http_proxy', f'http://{proxy.host}')
        key = f'{KEY}-{transport}'
        assert Chat('m', 'http://elsewhere.invalid/v1', api_key=key, attempts=1,
                    transport=transport).ask('x').text == 'ok'
    head, _ = proxy.asked[0]
    assert head.startswith(b'POST http://elsewhere.invalid/') and f'Bearer {key}'.encode() in head
    assert b'Basic' not in head

@pytest.mark.parametrize('transport', TRANSPORTS)
@pytest.mark.parametrize('name, proxy', [('http_proxy', 'gopher://['), ('ALL_PROXY', 'socks5h://127.0.0.1:1080'),
                                         ('HTTP_PROXY', 'socks4://me:secret@host'), ('all_proxy', 'http://host:port'),
                                         ('all_proxy', 'http://')])
def test_a_proxy_that_is_none_is_a_sentence(name, proxy, transport, monkeypatch):
    "Before anything is sent. To a replay, to this machine, and to a host of NO_PROXY it is of no matter."
    monkeypatch.setenv(name, proxy)
    def chat(url, **more): return Chat('m', url, api_key=KEY, attempts=1, transport=transport, **more)
    with pytest.raises(BadInput, match=rf'^{name.upper()} names .*NO_PROXY\.$') as told:
        chat('http://elsewhere.invalid/v1')
    assert 'secret' not in str(told.value)
    assert chat('http://127.0.0.1:1/v1').ask('x').absence is Absence.transport
    monkeypatch.setenv('NO_PROXY', 'other.invalid,.invalid')
    assert 'no host of that name' in chat('http://elsewhere.invalid/v1').ask('x').detail

@pytest.mark.parametrize('transport', [*TRANSPORTS, 'gateway'])
@pytest.mark.parametrize('variables', [dict(ALL_PROXY='http://{}'), dict(all_proxy='{}'), dict(HTTP_PROXY='http://{}/'),
                                       dict(http_proxy='http://{}', ALL_PROXY='http://127.0.0.1:1')])
def test_a_proxy_of_the_environment_is_asked(variables, transport, monkeypatch):
    "The same with and without a gateway; another value of a variable counts from the next chat on."
    with RawServer(http(completion('by proxy'))) as proxy:
        for name, value in variables.items(): monkeypatch.setenv(name, value.format(proxy.host))
        url = 'http://llm.corp.invalid:8000/v1'
        with Gateway([url]) as gateway:
            if transport == 'gateway':
                monkeypatch.setenv('FACTLIB_GATE', gateway.url)
                monkeypatch.setenv('OPENAI_API_KEY', gateway.open())
            kind = 'sdk' if transport == 'gateway' else transport
            def ask(): return Chat('m', url, attempts=1, mode='off', transport=kind).ask('x')
            assert ask().text == 'by proxy'
            for name in variables: monkeypatch.delenv(name)
            assert 'no host of that name' in ask().detail
    assert len(proxy.asked) == 1 and proxy.asked[0][0].startswith(f'POST {url}/chat/completions '.encode())

@pytest.mark.parametrize('transport', TRANSPORTS)
def test_a_proxy_that_gives_no_tunnel_is_a_failure_on_the_way(transport, monkeypatch):
    with RawServer(http('who are you?', status='407 Proxy Authentication Required')) as proxy:
        monkeypatch.setenv('HTTPS_PROXY', f'http://{proxy.host}')
        chat = Chat('m', 'https://llm.corp.invalid/v1', attempts=1, mode='off', transport=transport)
        assert 'the proxy refuses (HTTP 407)' in chat.ask('x').detail and chat.stats.requests == 0
        monkeypatch.setenv('HTTPS_PROXY', 'http://127.0.0.1:1')
        chat = Chat('m', 'https://llm.corp.invalid/v1', attempts=1, mode='off', transport=transport)
        assert 'to the proxy failed' in chat.ask('x').detail and chat.stats.requests == 0

@pytest.fixture(scope='module')
def encrypted():
    "A server on this machine whose certificate nobody knows: its address and the certificate."
    pytest.importorskip('cryptography')
    public, context = server_certificate('127.0.0.1')
    class Answer(BaseHTTPRequestHandler):
        def log_message(self, *said): pass
        def do_POST(self):
            self.rfile.read(int(self.headers['Content-Length']))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(completion('trusted').encode())
    server = ThreadingHTTPServer(('127.0.0.1', 0), Answer)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f'https://127.0.0.1:{server.server_address[1]}/v1', public
    server.shutdown()
    server.server_close()

@pytest.mark.parametrize('transport', [*TRANSPORTS, 'gateway'])
def test_certificates_of_the_environment_count_on_this_machine_too(encrypted, transport, monkeypatch, tmp_path):
    "By file and by folder, the same with and without a gateway; an unknown one is a failure on the way."
    for name in ('SSL_CERT_FILE', 'SSL_CERT_DIR'): monkeypatch.delenv(name, raising=False)
    url, public = encrypted
    (tmp_path/'own.pem').write_text(public)
    hashed = ['openssl', 'x509', '-hash', '-noout', '-in', str(tmp_path/'own.pem')]
    named = subprocess.run(hashed, capture_output=True, text=True).stdout.strip()
    (tmp_path/'all').mkdir()
    (tmp_path/'all'/f'{named}.0').write_text(public)
    with Gateway([url]) as gateway:
        if transport == 'gateway':
            monkeypatch.setenv('FACTLIB_GATE', gateway.url)
            monkeypatch.setenv('OPENAI_API_KEY', gateway.open())
        kind = 'sdk' if transport == 'gateway' else transport
        def ask(): return Chat('m', url, attempts=1, mode='off', transport=kind).ask('x')
        assert 'its certificate is not trusted' in ask().detail
        for name, value in dict(SSL_CERT_FILE=tmp_path/'own.pem', SSL_CERT_DIR=tmp_path/'all').items():
            monkeypatch.setenv(name, str(value))
            assert ask().text == 'trusted', name
            monkeypatch.delenv(name)

@pytest.mark.parametrize('name, value', [
    ('SSL_CERT_FILE', 'absent'), ('SSL_CERT_FILE', 'empty'), ('SSL_CERT_FILE', 'notes'), ('SSL_CERT_FILE', 'folder'),
    ('SSL_CERT_DIR', 'absent'), ('SSL_CERT_DIR', 'notes')])
def test_certificates_that_are_none_are_a_sentence(name, value, monkeypatch, tmp_path):
    (tmp_path/'folder').mkdir()
    (tmp_path/'empty').touch()
    (tmp_path/'notes').write_text('-----BEGIN CERTIFICATE-----\nnone\n')
    monkeypatch.setenv(name, str(tmp_path/value))
    for url in ('https://127.0.0.1:1/v1', 'https://llm.corp.invalid/v1'):
        sentence = rf"^{name} names '.*{value}', which can't be read \(.*\): name a .*\.$"
        with pytest.raises(BadInput, match=sentence): Chat('m', url)
    assert Chat('m', 'http://127.0.0.1:1/v1').ask('x').absence is Absence.transport # no certificate is asked for

@pytest.mark.parametrize('transport', TRANSPORTS)
def test_a_query_of_the_address_goes_with_each_request(transport, tmp_path):
    "As Azure's api-version; the cache keeps answers of another version apart."
    query = 'api-version=2025-04-01-preview&deployment=a%20b'
    with RawServer(http(completion())) as server:
        address = f'http://{server.host}/openai'
        def chat(end): return Chat('m', address + end, cache=tmp_path/'a.sqlite', transport=transport)
        for end in (f'/?{query}', f'/chat/completions?{query}', f'?{query}'): assert chat(end).ask('x').text == 'ok'
        assert chat(f'?{query}').endpoint == f'{address}?{query}' and len(server.asked) == 1
        assert chat('?').ask('x').text == chat('').ask('y').text == 'ok'
    paths = [head.split(b' ')[1].decode() for head, _ in server.asked]
    assert paths == [f'/openai/chat/completions?{query}', *['/openai/chat/completions']*2]

@pytest.mark.parametrize('query', [
    'api-key=7', 'key=7', 'code=7', 'sig=7', 'access_token=7', 'subscription-key=7', 'api-version=1&%6bey=7',
    'v=sk-0123456789', 'sk-0123456789', 'a=1;token=7', 'PASSWORD=7'])
def test_an_address_with_a_key_in_its_query_is_refused(query):
    with pytest.raises(BadInput, match='a key in its query.*OPENAI_API_KEY') as told:
        Chat('m', f'https://host/v1?{query}')
    assert '7' not in str(told.value) and '0123' not in str(told.value)

@pytest.mark.parametrize('text', ['plain "words"\n', 'naïve 好 🙂', '\x00\x1f\x7f', '\\u0041', ''])
def test_what_is_reserved_is_what_is_sent(text):
    body = dict(model='m', messages=[dict(role='user', content=text)], stop=['a', text], top_p=.5)
    data = request_json(body)
    assert json.loads(data) == body and most_tokens(body, len(data)) == most_tokens(body)

@pytest.mark.filterwarnings('ignore:.*does not say how many tokens')
def test_half_a_character_in_a_field_is_sent_as_an_escape():
    with RawServer(http(completion())) as server:
        chat = Chat('m', f'http://{server.host}/v1', api_key=KEY, attempts=1, transport='lean')
        assert chat.ask('x', stop='\ud800').text == 'ok'
    assert json.loads(server.asked[0][1])['stop'] == '\ud800'

@pytest.mark.parametrize('kind', TRANSPORTS)
def test_a_failure_says_whether_anything_was_sent(kind):
    """Where there was no connection nobody can send a bill; where there was one, whatever became of it, somebody may.
    Before, that was read off the words of the message."""
    def failed(url, timeout=20.):
        async def one():
            transport = TRANSPORTS[kind](url, SimpleNamespace(value=KEY))
            try: await transport.send(dict(model='m', messages=[]), timeout)
            except Failure as e: return e
            finally: await transport.close()
        return run_sync(one())
    ways = iter([dict(drop=True), dict(delay=2), dict(raw='<html>'), dict(status=500, body={}),
                 dict(status=400, body={})])
    with StubServer(lambda request: next(ways)) as server:
        sent = [failed(server.base_url, timeout) for timeout in (20., .5, 20., 20., 20.)]
        # nobody listens; no such name; no common encryption
        unsent = [failed(url) for url in ('http://127.0.0.1:1/v1', 'http://nowhere.invalid/v1',
                                          server.base_url.replace('http:', 'https:'))]
        assert len(server.requests) == 5
    assert [e.sent for e in sent] == [True]*5 and [e.sent for e in unsent] == [False]*3
    assert {e.kind for e in unsent} == {'connection'}
