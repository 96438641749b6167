"One gate for many processes: real processes whose chats go through a gateway to a real server that counts."
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from factlib.core.ledger import Spent, read_spent
from factlib.core.loop import run_sync
from factlib.core.records import BadInput
from factlib.llm.cache import Cache, SharedCache, request_key
from factlib.llm.gateway import Account, Arrived, Budget, Gateway, gated_url
from factlib.llm.chat import Chat
from factlib.llm.limits import Gate
from factlib.llm.stub import StubServer
from raw_server import RawServer, completion, http

ASKING = '''
import asyncio, sys
from factlib.llm.chat import Chat
base_url, name, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
chat = Chat('m', base_url, concurrency=16)
async def all(): return await asyncio.gather(*[chat(f'{name} {i}') for i in range(n)])
replies = asyncio.run(all())
print(*[str(r.absence) for r in replies])
'''

def worker(gateway, server, name, n, **environment):
    "A process that asks n things at once, and knows a token in the place of the key."
    env = {k: v for k, v in os.environ.items() if k not in ('FACTLIB_CACHE', 'OPENAI_API_KEY')} | environment
    env |= dict(FACTLIB_GATE=gateway.url, OPENAI_API_KEY=gateway.open())
    return subprocess.Popen([sys.executable, '-c', ASKING, server.base_url, name, str(n)],
                            env=env, stdout=subprocess.PIPE, text=True)

def told(processes): return [p.communicate(timeout=60)[0].split() for p in processes]

def by_the_minute(most, minute, clock=time.monotonic):
    "A rule that refuses what exceeds so many requests within so many seconds, as a strict server does."
    begun, refused = [], []
    def rule(request):
        now = clock()
        if len([t for t in begun if now - t < minute]) >= most:
            refused.append(now)
            return dict(status=429, headers={'retry-after-ms': '200'})
        begun.append(now)
        return 'Yes.'
    rule.begun, rule.refused = begun, refused
    return rule

@pytest.mark.slow
def test_four_workers_keep_to_one_gate_and_one_rate():
    "Never more at a time than allowed, never more in a stretch than allowed, no answer lost, nothing refused."
    rule = by_the_minute(10, 1.)
    with StubServer(rule, delay=.05) as server, Gateway([server.base_url], concurrency=4, per_minute=10) as gateway:
        gateway._gate(server.base_url).minute = 1.2 # of a server whose minute is a second
        absences = told([worker(gateway, server, name, 8) for name in 'abcd'])
    assert absences == [['None']*8]*4 and len(server.requests) == 32 and not rule.refused
    assert server.most_in_flight <= 4

def test_a_gate_learns_for_all_and_none_is_lost():
    "The server allows less than we were told: 429 hold everybody back, and all get their answers."
    rule = by_the_minute(6, .5)
    with StubServer(rule) as server, Gateway([server.base_url], concurrency=8) as gateway:
        absences = told([worker(gateway, server, name, 8) for name in 'ab'])
    assert absences == [['None']*8]*2 and rule.refused and len(rule.begun) == 16

def test_workers_have_no_key_and_keep_the_endpoints_name(tmp_path):
    "The server gets the key, workers only a token; the cache's keys are those of a chat without a gateway."
    with StubServer(lambda request: 'Yes.',
                    key='sk-the-real-key') as server, Gateway([server.base_url], api_key='sk-the-real-key') as gateway:
        absences, = told([worker(gateway, server, 'a', 2, FACTLIB_CACHE=str(tmp_path/'answers.sqlite'))])
        with Cache(tmp_path/'answers.sqlite') as cache:
            straight = Chat('m', server.base_url, api_key='sk-the-real-key', cache=cache)
            assert absences == ['None', 'None'] and straight.ask('a 1').cached and len(server.requests) == 2
    assert b'sk-the-real-key' not in (tmp_path/'answers.sqlite').read_bytes()

@pytest.mark.parametrize('status', [401, 200])
def test_a_key_that_the_server_quotes_does_not_reach_a_worker(status):
    key, body = 'sk-the-real-key', {'error': {'message': 'Incorrect key: sk-the-real-key'}}
    def rule(request):
        return dict(content=f'Your key is {key}.') if status == 200 else dict(status=status,
                                                                              body=body, headers={'Location': key})
    with StubServer(rule, key=key) as server, Gateway([server.base_url], api_key=key) as gateway:
        request = urllib.request.Request(gated_url(gateway.url, server.base_url, 9) + '/chat/completions',
                                         b'{"model": "m", "messages": []}',
                                         {'Authorization': f'Bearer {gateway.open()}'})
        try: answer = urllib.request.urlopen(request, timeout=20)
        except urllib.error.HTTPError as e: answer = e
        said = answer.read() + str(answer.headers).encode()
        assert answer.status == status and b'***' in said and key.encode() not in said

def test_nobody_else_gets_through():
    with StubServer(lambda request: 'Yes.') as server, Gateway([server.base_url]) as gateway:
        url, token = gateway.url, gateway.open()
        os.environ['FACTLIB_GATE'] = url
        try:
            stranger = Chat('m', server.base_url, api_key='ours', mode='off').ask('a')
            os.environ['OPENAI_API_KEY'] = token
            known = Chat('m', server.base_url, mode='off').ask('a')
        finally:
            del os.environ['FACTLIB_GATE'], os.environ['OPENAI_API_KEY']
    assert '401' in stranger.detail and known.text == 'Yes.' and len(server.requests) == 1

@pytest.fixture
def gated(monkeypatch):
    "A function that makes this process a worker of a gateway; gives its account."
    def join(gateway):
        monkeypatch.setenv('FACTLIB_GATE', gateway.url)
        monkeypatch.setenv('OPENAI_API_KEY', gateway.open())
        return gateway.accounts[os.environ['OPENAI_API_KEY']]
    return join

def asked(chat, prompts):
    async def all(): return await asyncio.gather(*[chat(p) for p in prompts])
    return run_sync(all())

@pytest.mark.parametrize('limit, sent', [(dict(requests=10), 10), (dict(requests=0), 0),
                                         (dict(tokens=40), 0), (dict(money=.006, prices=dict(m=(1000, 0, 'EUR'))), 0),
                                         (dict(tokens=10**6), 20)])
def test_a_budget_is_kept(limit, sent, gated):
    """A prompt of 1 token and a reply of 1, in a body of some 90 bytes: 90 reserved tokens fit into neither 40 tokens
    nor, at 1,000 a million, into .006."""
    with StubServer(lambda request: 'Yes.') as server, Gateway([server.base_url],
                                                               concurrency=1, budget=Budget(**limit)) as gateway:
        account = gated(gateway)
        chat = Chat('m', server.base_url, mode='off', request=dict(max_tokens=1))
        replies = asked(chat, map(str, range(20)))
    assert len(server.requests) == sent == account.requests and sum(r.text == 'Yes.' for r in replies) == sent
    assert ('is reached' in account.refused) == (sent < 20) and account.refused == gateway.stopped

def test_what_was_spent_outlives_the_process_and_a_raised_limit_goes_on(tmp_path, gated):
    file = tmp_path/'spent.jsonl'
    for limit, sent in ((10, 10), (10, 10), (25, 25), (None, 30)):
        with StubServer(lambda request: 'Yes.') as server, Gateway([server.base_url],
                                                                   budget=Budget(requests=limit, file=file)) as gateway:
            gated(gateway)
            asked(Chat('m', server.base_url, cache=tmp_path/'answers.sqlite', endpoint='ours'), map(str, range(30)))
        assert read_spent(file).requests == read_spent(file).answered == sent and read_spent(file).reserved_tokens == 0
    with Cache(tmp_path/'answers.sqlite') as cache: assert len(cache) == 30 # each was asked once

def test_without_an_answer_a_limit_holds_too(gated):
    """The server answers after the time-out: what was reserved stays, so a limit of five reservations is five requests,
    and not 120."""
    with StubServer(lambda request: 'Yes.', delay=3) as server, Gateway([server.base_url]) as gateway:
        gated(gateway)
        Chat('m', server.base_url, mode='off', timeout=.3, attempts=1).ask('00')
        one = gateway.budget.spent.reserved_tokens
        assert 2048 + 2 < one < 2048 + 300 and gateway.budget.spent.unanswered == 1 # its bytes, and the reply's limit
    with StubServer(lambda request: 'Yes.', delay=3) as server, Gateway([server.base_url],
                                                                        budget=Budget(tokens=5*one)) as gateway:
        account = gated(gateway)
        chat = Chat('m', server.base_url, mode='off', timeout=.3, attempts=3, longest_wait=.1)
        asked(chat, [f'{i:02}' for i in range(40)])
        assert len(server.requests) == 5 and 'The limit of' in account.refused
        assert gateway.budget.spent.reserved_tokens == 5*one and gateway.budget.spent.unanswered == 5

def test_what_may_fit_later_waits(gated):
    """A limit of one reservation and a little, eight at once: each waits until the one before has taken less than was
    reserved; all are answered."""
    with StubServer(lambda request: 'Yes.',
                    delay=.02) as server, Gateway([server.base_url], budget=Budget(tokens=2048 + 400)) as gateway:
        account = gated(gateway)
        replies = asked(Chat('m', server.base_url, mode='off'), map(str, range(8)))
        assert [r.text for r in replies] == ['Yes.']*8 and account.refused == '' and server.most_in_flight == 1

def test_what_kind_of_failure_costs_what(gated):
    "Some refusals cost nothing, nor does a server that isn't there; whatever else fails may, as may a content filter."
    ways = dict(refused=dict(status=400, body={}), busy=dict(status=429, body={}),
                moved=dict(status=302, headers=dict(location='x'), body={}),
                broken=dict(status=500, body={}), cut=dict(drop=True),
                late=dict(status=408, body={}), conflict=dict(status=409, body={}), gone=dict(status=499, body={}),
                filtered=dict(status=400, body=dict(error=dict(message='no', code='content_filter'))),
                flagged=dict(status=400, body=dict(error=dict(message='It was flagged by our safety system'))),
                nokey=dict(status=401, body={}), field=dict(status=422, body=dict(detail='seed: unknown field')),
                ok='Yes.', uncounted=dict(content='Yes.', usage={}))
    def rule(request): return ways[request['messages'][0]['content']]
    seen = {}
    with StubServer(rule) as server, Gateway([server.base_url, 'http://127.0.0.1:1/v1']) as gateway:
        gated(gateway)
        for name in (*ways, 'nowhere'):
            before = gateway.budget.spent
            url = 'http://127.0.0.1:1/v1' if name == 'nowhere' else server.base_url
            Chat('m', url, mode='off', attempts=1).ask(name)
            seen[name] = gateway.budget.spent - before
    nothing = {'refused', 'busy', 'nowhere', 'ok', 'nokey', 'field'}
    assert {n for n, s in seen.items() if s.reserved_tokens == 0} == nothing
    assert {n: s.requests for n, s in seen.items()} == dict.fromkeys(ways, 1) | dict(nowhere=0)
    assert {n: s.unsent for n, s in seen.items() if s.unsent} == dict(nowhere=1)
    assert {n for n, s in seen.items() if s.unanswered} == {*ways} - nothing - {'uncounted'}
    assert {n for n, s in seen.items() if s.answered} == {'ok', 'uncounted'}
    assert seen['ok'].tokens == 2 and seen['uncounted'].uncounted == 1 and seen['uncounted'].tokens == 0

def test_an_answer_whose_asker_was_killed_is_kept(tmp_path):
    """16 under way, the worker killed; another life of the cell gets the 16 answers, and nothing is sent a second time.
    A life that asks again gets a new answer."""
    place = tmp_path/'.sweep'/'arrived.sqlite'
    with StubServer(lambda request: 'Yes.', delay=.5) as server:
        with Gateway([server.base_url], arrived=Arrived(place)) as gateway:
            killed = worker(gateway, server, 'a', 16)
            while len(server.requests) < 16: time.sleep(.01)
            killed.kill()
            killed.communicate()
        assert gateway.budget.spent.answered == 16 # it waited for them
        with Gateway([server.base_url], arrived=Arrived(place)) as gateway:
            assert told([worker(gateway, server, 'a', 16)]) == [['None']*16] and len(server.requests) == 16
            assert gateway.budget.spent.requests == 0 and gateway.budget.ledger.flush() is None
            assert gateway.budget.spent.kept == 16
            gateway.arrived.drop(list(gateway.accounts.values())[0].lives) # it has ended by itself
        with Gateway([server.base_url], arrived=Arrived(place)) as gateway:
            assert told([worker(gateway, server, 'a', 16)]) == [['None']*16] and len(server.requests) == 32
    everything = b''.join(p.read_bytes() for p in tmp_path.rglob('*') if p.is_file())
    assert b'factlib_key' not in everything and not any('factlib_key' in r for r in server.requests)

def test_what_a_server_does_wrong_is_seen_as_without_a_gateway(gated):
    "Redirections aren't followed, errors keep their status, an answer that is none is none, no answer is no answer."
    ways = dict(moved=dict(status=302, headers={'location': 'http://elsewhere/'}, body={}),
                refused=dict(status=400, body=dict(error=dict(message='no'))),
                long=dict(status=400, body=dict(error=dict(message='maximum context length'))),
                raw=dict(raw='<html>'), drop=dict(drop=True), ok='Yes.')
    def rule(request): return ways[request['messages'][0]['content']]
    with StubServer(rule) as server, Gateway([server.base_url]) as gateway:
        chat = lambda: Chat('m', server.base_url, mode='off', attempts=1)
        straight = {name: chat().ask(name) for name in ways}
        gated(gateway)
        through = {name: chat().ask(name) for name in ways}
    assert {n: (r.absence, r.text) for n, r in straight.items()} == {n: (r.absence, r.text) for n, r in through.items()}
    for name in ('moved', 'refused', 'long'): assert straight[name].detail == through[name].detail

BILLED = { # what a server says of 1,010 tokens, none of them a thousand in completion_tokens
    'in the total': dict(prompt_tokens=10, completion_tokens=9, total_tokens=1010),
    'missing': dict(prompt_tokens=10, total_tokens=1010), 'a text': dict(prompt_tokens='10', completion_tokens='1000'),
    'a float': dict(prompt_tokens=10., completion_tokens=1000.), 'null': dict(prompt_tokens=10, completion_tokens=None),
    'thoughts': dict(prompt_tokens=10, completion_tokens=9, completion_tokens_details=dict(reasoning_tokens=991)),
    'other names': dict(input_tokens=10, output_tokens=1000), 'true': dict(prompt_tokens=10, completion_tokens=True),
    'a list': [10, 1000], 'prompt alone': dict(prompt_tokens=10), 'nothing': None}

@pytest.mark.filterwarnings('ignore:.*does not say how many tokens')
@pytest.mark.parametrize('way', ['gateway', 'sdk', 'lean'])
@pytest.mark.parametrize('name', BILLED)
def test_the_ledger_is_never_below_the_bill(name, way, gated, monkeypatch, tmp_path):
    "A reply of 1,000 tokens, in a limit of 2,000: whatever the server says, as much is counted or stays reserved."
    monkeypatch.setenv('FACTLIB_LEDGER', str(tmp_path/'spent.jsonl'))
    body = json.loads(completion('ok')) | dict(usage=BILLED[name])
    with StubServer(lambda request: dict(raw=json.dumps(body))) as server, Gateway([server.base_url]) as gateway:
        if way == 'gateway': gated(gateway)
        chat = Chat('m', server.base_url, mode='off', transport='sdk' if way == 'gateway' else way)
        reply = chat.ask('a', max_tokens=2000)
        spent = gateway.budget.spent if way == 'gateway' else read_spent(tmp_path/'spent.jsonl')
    assert reply.text == 'ok' and len(server.requests) == spent.requests == spent.answered == 1
    counted = name in ('in the total', 'missing', 'a text', 'a float', 'thoughts', 'other names')
    assert spent.tokens == chat.stats.tokens == 1010 if counted else spent.reserved_tokens >= 2000 + len('a')
    assert bool(spent.reserved_tokens) == bool(spent.uncounted) == bool(reply.usage.uncounted) == (not counted)
    assert chat.stats.reserved_tokens == 0 if counted else chat.stats.reserved_tokens >= 2001

def test_a_model_that_takes_more_than_its_limit_gets_more_reserved(gated):
    "Replies of 1,000 tokens whose limit is 64, in a budget of 8,000: one at a time, seven of at most 1,100 fit."
    usage = dict(prompt_tokens=10, completion_tokens=9, total_tokens=1010)
    with StubServer(lambda request: dict(content='ok', usage=usage)) as server, Gateway(
        [server.base_url], concurrency=1, budget=Budget(tokens=8000)) as gateway:
        gated(gateway)
        asked(Chat('m', server.base_url, mode='off', request=dict(max_tokens=64)), map(str, range(12)))
        assert len(server.requests) == 7 and gateway.budget.spent.tokens == 7*1010 <= 8000

@pytest.mark.parametrize('way', ['nobody', 'no host', 'no TLS'])
def test_a_failure_on_the_way_has_its_kind_behind_a_gateway(way, gated):
    "As without one: 40 texts, and it stops after few attempts, none of which was sent; no status of ours is shown."
    with StubServer(lambda request: 'Yes.') as server:
        url = {'nobody': 'http://127.0.0.1:1/v1', 'no host': 'http://nowhere.invalid/v1',
               'no TLS': server.base_url.replace('http:', 'https:')}[way]
        chats = {}
        with Gateway([url]) as gateway:
            for name in ('straight', 'through'):
                chats[name] = chat = Chat('m', url, mode='off', longest_wait=.02)
                replies = asked(chat, map(str, range(40)))
                assert all('This chat asks no more' in r.detail and 'HTTP 50' not in r.detail for r in replies)
                assert chat.stats.requests == chat.stats.reserved_tokens == chat.stats.unanswered == 0
                chats[name] = {r.detail for r in replies}
                gated(gateway)
            spent = gateway.budget.spent
        assert chats['straight'] == chats['through'] and not server.requests
        assert 0 < spent.unsent <= 3*40 and spent == Spent(unsent=spent.unsent)

QUOTED = dict(unicode=r'\u002b', capital=r'\u002B', twice=r'\\u002b', hex=r'\\x2b', page='&#43;', address='%2B',
              plain='+')

@pytest.mark.parametrize('form', [*QUOTED, 'in events', 'UTF-16'])
@pytest.mark.parametrize('status', [200, 400])
def test_a_key_that_is_quoted_otherwise_does_not_reach_a_worker(form, status):
    "Escaped in JSON or a page, as a whole, parted among the events of a stream, in another encoding."
    key, begun = 'sk-the+real/key-0123', dict(id='x', model='m')
    other = ''.join(QUOTED.get(form, '+') if c == '+' else r'\/' if c == '/' and form == 'unicode' else
                    fr'\u{ord(c):04x}' if form == 'capital' else c for c in key)
    answer = completion('KEY') if status == 200 else json.dumps(dict(error=dict(message='bad KEY')))
    said = http(answer.replace('KEY', other), status=f'{status} X')
    if form == 'UTF-16': said = http(answer.replace('KEY', key).encode('utf-16'), status=f'{status} X')
    if form == 'in events':
        parts = [dict(delta=dict(content=key[:9])), dict(delta=dict(content=key[9:])),
                 dict(delta={}, finish_reason='stop')]
        said = ''.join(f'data: {json.dumps(begun | dict(choices=[part]))}\n\n' for part in parts)
        said = http(said, status=f'{status} X')
    with RawServer(said) as server, Gateway([server.base_url], api_key=key) as gateway:
        told = raw(gateway, *asks(gateway, gateway.open(), server.base_url))
    head, _, body = told.partition('\r\n\r\n')
    assert f' {status} ' in head.splitlines()[0] and other not in told and key not in told
    seen = json.loads(body) if body[:1] == '{' else body
    assert key not in str(seen) and ('***' in body or (form, status) == ('in events', 400))

def test_the_rate_outlives_a_kill(tmp_path):
    "Two a minute: who comes after a kill, at the same endpoint, waits; at another one nobody waits."
    def let_in(gate, n):
        async def enter():
            for _ in range(n):
                async with gate: pass
            return n
        try: return run_sync(asyncio.wait_for(enter(), .3))
        except TimeoutError: return None
    def at(url, most=2): return Gateway([url], per_minute=most, paces=tmp_path/'.sweep'/'paces')._gate(url)
    assert let_in(at('http://127.0.0.1:1/v1'), 1) == let_in(at('http://127.0.0.1:1/v1'), 1) == 1
    assert let_in(at('http://127.0.0.1:1/v1'), 1) is None and let_in(at('http://127.0.0.1:2/v1'), 2) == 2
    assert let_in(at('http://127.0.0.1:1/v1', 3), 2) is None and let_in(at('http://127.0.0.1:1/v1', 9), 6) == 6
    for file in (tmp_path/'.sweep'/'paces').iterdir(): file.write_bytes(file.read_bytes() + b'torn')
    assert let_in(at('http://127.0.0.1:1/v1', 9), 1) is None
    later = at('http://127.0.0.1:2/v1')
    later.minute = 0. # a minute has passed
    assert let_in(later, 2) == 2
    assert {p.stat().st_mode & 0o777 for p in (tmp_path/'.sweep'/'paces').iterdir()} == {0o600}

def test_the_query_of_an_endpoint_goes_with_each_request_through_a_gateway(gated):
    with RawServer(http(completion())) as server, Gateway([f'{server.base_url}?api-version=7']) as gateway:
        gated(gateway)
        assert Chat('m', f'{server.base_url}?api-version=7', mode='off').ask('x').text == 'ok'
        assert 'none of the endpoints' in Chat('m', server.base_url, mode='off').ask('x').detail
    assert [head.split(b' ')[1] for head, _ in server.asked] == [b'/v1/chat/completions?api-version=7']

def test_the_wait_for_a_place_is_no_timeout(gated):
    """One place, six requests of 0.2 s, and 0.5 s for an answer: the last waits a second, and gets its answer. One that
    takes too long is given up."""
    def rule(request): return dict(content='Yes.', delay=2 if request['messages'][0]['content'] == 'slow' else .2)
    with StubServer(rule) as server, Gateway([server.base_url], concurrency=1) as gateway:
        gated(gateway)
        replies = asked(Chat('m', server.base_url, mode='off', timeout=.5, deadline=.6, attempts=1), map(str, range(6)))
        assert [r.text for r in replies] == ['Yes.']*6
        slow = Chat('m', server.base_url, mode='off', timeout=.5, attempts=1).ask('slow').detail
        assert 'no answer within 0.5 s' in slow and '504' not in slow

def test_a_killed_worker_leaves_nothing_in_the_queue(gated):
    "It had 16 requests on their way, and one place; what waited is not sent any more."
    with StubServer(lambda request: 'Yes.', delay=.2) as server, Gateway([server.base_url], concurrency=1) as gateway:
        killed = worker(gateway, server, 'a', 16)
        while not server.requests: time.sleep(.01)
        killed.kill()
        killed.communicate()
        gated(gateway)
        assert Chat('m', server.base_url, mode='off').ask('mine').text == 'Yes.' # behind all of the queue
        assert len(server.requests) <= 4

def test_a_cache_without_a_disk_in_common(tmp_path):
    "Two workers, one after the other, keep their answers in the sweeper's cache."
    with Cache(tmp_path/'answers.sqlite') as cache, StubServer(lambda request: 'Yes.') as server, Gateway(
        [server.base_url], cache=cache) as gateway:
        for _ in range(2): assert told([worker(gateway, server, 'a', 5, FACTLIB_CACHE=gateway.url)]) == [['None']*5]
        assert len(server.requests) == 5 == len(cache)

def test_a_rate_is_never_exceeded_in_any_stretch():
    """100 at once through a gate of 20 in half a second: any 21 in a row take at least .4 s, for the time is taken here
    after the gate has taken its own, and a busy machine may do something else between."""
    gate, begun = Gate(50, per_minute=20), []
    gate.minute = .5
    async def work():
        async with gate: begun.append(asyncio.get_running_loop().time())
    async def all(): await asyncio.gather(*[work() for _ in range(100)])
    run_sync(all())
    assert len(begun) == 100 and min(b - a for a, b in zip(begun, begun[20:])) >= .4 and gate.inside == 0

def test_who_is_cancelled_while_it_waits_for_the_rate_gives_its_place_back():
    async def all():
        gate = Gate(1, per_minute=1)
        async with gate: pass
        async def late():
            async with gate: pass
        task = asyncio.ensure_future(late())
        await asyncio.sleep(.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return gate.inside
    assert run_sync(all()) == 0

def test_chat_has_a_rate_of_its_own():
    with StubServer(lambda request: 'Yes.') as server:
        chat = Chat('m', server.base_url, mode='off', per_minute=3)
        chat._gate.minute = .3
        begun = time.monotonic()
        asked(chat, map(str, range(7)))
        assert time.monotonic() - begun >= .6 and chat.per_minute == 3

def test_a_ledger_that_is_damaged_is_said(tmp_path):
    (tmp_path/'spent.jsonl').write_text('{"requests": 3}\n')
    with pytest.raises(Exception, match='move it away to begin from 0'): Budget(file=tmp_path/'spent.jsonl')
    assert Spent(prompt_tokens=2, completion_tokens=3).tokens == 5 and Account().refused == ''

# Attacks by who holds a token, and by who holds none

def raw(gateway, lines, body=b'', wait=5.):
    "What a gateway answers to bytes; None if it says nothing and leaves the connection open for so long."
    at = urlsplit(gateway.url)
    with socket.create_connection((at.hostname, at.port)) as connection:
        connection.settimeout(wait)
        connection.sendall('\r\n'.join([*lines, '', '']).encode())
        said = b''
        try:
            connection.sendall(body)
            while piece := connection.recv(65536): said += piece
        except TimeoutError: return None
        except OSError: pass # it was cut while we were sending
        return said.decode()

def asks(gateway, token, target, body=b'{"model": "m", "messages": []}', *more):
    "The lines of a request by which a token's holder asks an address."
    path = urlsplit(gated_url(gateway.url, target, 5)).path + '/chat/completions'
    return [f'POST {path} HTTP/1.1', 'Host: gate', f'Authorization: Bearer {token}',
            f'Content-Length: {len(body)}', 'Connection: close', *more], body

def test_the_key_goes_to_no_other_address():
    "Before, it went to any server that a token's holder named."
    evil_ways = ('http://127.0.0.1:{port}/v1/../v1', 'http://user@127.0.0.1:{port}/v1',
                 'http://localhost:{port}/v1', 'http://127.0.0.1:{port}/', 'http://127.0.0.1:{port}/v1?x=1')
    with StubServer(lambda request: 'Yes.', key='sk-real') as server, StubServer(lambda request: 'Yes.') as evil:
        port = urlsplit(server.base_url).port
        with Gateway([server.base_url], api_key='sk-real') as gateway:
            token = gateway.open()
            for target in (evil.base_url, *(way.format(port=port) for way in evil_ways),
                           'file:///etc/passwd', 'http://[', ''):
                assert raw(gateway, *asks(gateway, token, target)).startswith(('HTTP/1.1 403', 'HTTP/1.1 404')), target
            for same in (server.base_url, server.base_url + '/', server.base_url.replace('http:', 'HTTP:')):
                assert raw(gateway, *asks(gateway, token, same)).startswith('HTTP/1.1 200'), same
        assert len(server.requests) == 3 and not evil.requests

def test_a_token_asks_its_own_cells_endpoints_only():
    "Before, each cell could ask the endpoints of all others: two cells of one grid, each with a server of its own."
    with StubServer(lambda request: 'Yes.',
                    key='sk-real') as mine, StubServer(lambda request: 'Yes.', key='sk-real') as other:
        with Gateway([mine.base_url, other.base_url], api_key='sk-real') as gateway:
            a, b, none = (gateway.open(name, endpoints)
                          for name, endpoints in dict(a=[mine.base_url], b=[other.base_url + '/'], none=[]).items())
            # a cell can't open what the gateway doesn't know
            unknown = gateway.open('unknown', ['http://127.0.0.1:1/v1'])
            told = {(who, to): raw(gateway, *asks(gateway, token, url))[9:12]
                    for who, token in dict(a=a, b=b, none=none, unknown=unknown).items()
                    for to, url in dict(mine=mine.base_url, other=other.base_url,
                                        nowhere='http://127.0.0.1:1/v1').items()}
        assert {pair for pair, status in told.items() if status == '200'} == {('a', 'mine'), ('b', 'other')}
        assert {status for pair, status in told.items()} == {'200', '403'}
        assert len(mine.requests) == len(other.requests) == 1

def test_who_lies_about_its_process_takes_nothing_from_others(tmp_path):
    """A process says its own number. Before, a cell that gave another one's made the gateway drop what that one had
    paid for."""
    body = lambda life: b'{"model": "m", "messages": [], "factlib_key": "' + b'0'*64 + life + b'"}'
    with StubServer(lambda request: 'Yes.') as server, Gateway([server.base_url],
                                                               arrived=Arrived(tmp_path/'arrived.sqlite')) as gateway:
        honest, liar, later = (gateway.open(name) for name in ('honest', 'liar', 'honest'))
        assert raw(gateway, *asks(gateway, honest, server.base_url, body(b'a'*16))).startswith('HTTP/1.1 200')
        lie = body(b'a'*16).replace(b'"m"', b'"n"')
        assert raw(gateway, *asks(gateway, liar, server.base_url, lie)).startswith('HTTP/1.1 200')
        gateway.arrived.drop(gateway.accounts[liar].lives) # as when a cell has ended
        assert raw(gateway, *asks(gateway, later, server.base_url, body(b'b'*16))).startswith('HTTP/1.1 200')
        assert [r['model'] for r in server.requests] == ['m', 'n'] and gateway.accounts[later].requests == 0

def test_a_chat_is_told_which_endpoint_isnt_named(gated):
    with StubServer(lambda request: 'Yes.') as server, Gateway(['https://elsewhere.example/v1']) as gateway:
        gated(gateway)
        reply = Chat('m', server.base_url, mode='off').ask('a')
    assert 'none of the endpoints that this cell names' in reply.detail and not server.requests

def test_a_token_ends_with_its_cell():
    "Before, it opened the gateway until the sweep's end. What still waits when the cell ends isn't sent."
    with StubServer(lambda request: dict(content='Yes.',
                                         delay=.5)) as server, Gateway([server.base_url], concurrency=1) as gateway:
        first, second, token = gateway.open(), gateway.open(), gateway.open()
        with ThreadPoolExecutor() as threads:
            running = threads.submit(raw, gateway, *asks(gateway, first, server.base_url))
            while not server.requests: time.sleep(.01)
            waiting = threads.submit(raw, gateway, *asks(gateway, token, server.base_url))
            while not gateway._gate(server.base_url)._waiting: time.sleep(.01)
            gateway.end(token)
            assert running.result().startswith('HTTP/1.1 200') and waiting.result().startswith('HTTP/1.1 401')
        assert raw(gateway, *asks(gateway, token, server.base_url)).startswith('HTTP/1.1 401')
        assert raw(gateway, [f'GET /account HTTP/1.1', 'Host: gate',
                             f'Authorization: Bearer {token}']).startswith('HTTP/1.1 401')
        assert raw(gateway, *asks(gateway, second, server.base_url)).startswith('HTTP/1.1 200')
        assert len(server.requests) == 2

def test_what_waits_for_the_budget_when_its_cell_ends_is_not_sent():
    "It has its place at the gate, and no room yet; when there is room, nobody is there to get it. It stops no sweep."
    body = json.dumps(dict(model='m', max_tokens=100, messages=[dict(role='user', content='a')])).encode()
    with StubServer(lambda request: dict(content='Yes.', delay=.5)) as server, Gateway(
        [server.base_url], budget=Budget(tokens=len(body) + 110)) as gateway:
        first, second = gateway.open(), gateway.open()
        with ThreadPoolExecutor() as threads:
            running = threads.submit(raw, gateway, *asks(gateway, first, server.base_url, body))
            while not server.requests: time.sleep(.01)
            waiting = threads.submit(raw, gateway, *asks(gateway, second, server.base_url, body))
            while len(gateway._under_way) < 2: time.sleep(.01)
            gateway.end(second)
            assert running.result().startswith('HTTP/1.1 200') and waiting.result().startswith('HTTP/1.1 401')
        assert len(server.requests) == 1 and gateway.stopped == ''

def test_an_answer_outlives_the_token_by_which_it_was_asked(tmp_path):
    """The cell was killed, its token has ended while 8 were under way; a later process with another token gets the 8.
    Under an address that isn't named nobody does."""
    with StubServer(lambda request: 'Yes.', delay=.5) as server, Gateway([server.base_url],
                                                                         arrived=Arrived(
                                                                             tmp_path/'arrived.sqlite')) as gateway:
        killed = worker(gateway, server, 'a', 8)
        while len(server.requests) < 8: time.sleep(.01)
        killed.kill()
        killed.communicate()
        token, = gateway.accounts
        gateway.end(token)
        while gateway._under_way: time.sleep(.01)
        assert told([worker(gateway, server, 'a', 8)]) == [['None']*8] and len(server.requests) == 8
        assert gateway.budget.spent.answered == 8 and token not in gateway.accounts
        gateway.endpoints.clear()
        assert 'None' not in told([worker(gateway, server, 'a', 8)])[0] and len(server.requests) == 8

def test_a_kept_answer_is_never_replaced(tmp_path, gated):
    "Before, `replace: true` turned 'honest' into 'evil'. Other answers are still added."
    asked, other = dict(model='m', i=1), dict(model='m', i=2)
    with Cache(tmp_path/'answers.sqlite') as cache, Gateway([], cache=cache) as gateway:
        cache.put(request_key(asked), asked, dict(text='honest'))
        gated(gateway)
        token = os.environ['OPENAI_API_KEY']
        for replace, status in ((True, 403), (1, 403), (False, 200)):
            body = json.dumps(dict(rows=[(request_key(asked), asked, dict(text='evil'))], replace=replace)).encode()
            lines = ['POST /answers HTTP/1.1', 'Host: gate', f'Authorization: Bearer {token}',
                     f'Content-Length: {len(body)}', 'Connection: close']
            assert raw(gateway, lines, body).startswith(f'HTTP/1.1 {status}')
        shared = SharedCache(gateway.url)
        rows = [(request_key(asked), asked, dict(text='evil')), (request_key(other), other, dict(text='x'*6_000_000))]
        # in two requests: one would be too large
        assert [a['text'][:6] for a in shared.put_all(rows*2)] == ['honest', 'xxxxxx']*2
        with pytest.raises(BadInput, match='needs a cache of its own'): shared.put_all(rows, replace=True)
        shared.close()
        assert cache.get(request_key(asked)) == dict(text='honest') and len(cache) == 2

def test_bodies_that_are_too_large_or_nobodys_are_cut():
    "Before, 300 MB were read into memory, also of somebody without a token."
    with StubServer(lambda request: 'Yes.') as server, Gateway([server.base_url]) as gateway:
        token, large = gateway.open(), b'x'*1_000_000
        lines, _ = asks(gateway, token, server.base_url, b'')
        said = [line for line in lines if not line.startswith('Content-Length')]
        assert raw(gateway, [*said, 'Content-Length: 300000000'], large).startswith('HTTP/1.1 413')
        pieces = b''.join(b'%x\r\n' % len(large) + large + b'\r\n' for _ in range(30))
        assert not (raw(gateway, [*said, 'Transfer-Encoding: chunked'], pieces)
                    or 'HTTP/1.1 413').startswith('HTTP/1.1 200')
        nobody = [line.replace(token, 'x'*32) for line in said]
        huge, rss = b'x'*60_000_000, lambda: psutil.Process().memory_info().rss
        begun = most = rss()
        with ThreadPoolExecutor(20) as threads:
            told = [threads.submit(raw, gateway, [*nobody, 'Content-Length: 60000000'], huge) for _ in range(20)]
            while not all(t.done() for t in told): most = max(most, rss())
        assert all(t.result() == '' or t.result().startswith('HTTP/1.1 401') for t in told) and not server.requests
        assert most - begun < 200e6
        assert raw(gateway, *asks(gateway, token, server.base_url)).startswith('HTTP/1.1 200')

def test_slow_senders_are_cut(monkeypatch):
    """Before, they were waited for without end: one that says nothing, one that stops in its headers, one in its body;
    nobody else is stopped by them."""
    monkeypatch.setattr('factlib.llm.gateway._SLOW', .5)
    with StubServer(lambda request: 'Yes.') as server, Gateway([server.base_url]) as gateway:
        token = gateway.open()
        lines, body = asks(gateway, token, server.base_url)
        assert raw(gateway, lines, body[:5]).startswith('HTTP/1.1 408')
        at = urlsplit(gateway.url)
        for begun in (b'', b'POST / HTTP/1.1\r\nHost: ga'):
            with socket.create_connection((at.hostname, at.port)) as silent:
                silent.settimeout(10)
                silent.sendall(begun)
                try: assert silent.recv(100) == b''
                except ConnectionResetError: pass
        with socket.create_connection((at.hostname, at.port)) as broken:
            broken.sendall('\r\n'.join([*lines, '', '']).encode() + body[:5])
        assert raw(gateway, *asks(gateway, token, server.base_url)).startswith('HTTP/1.1 200') and not gateway.stopped

def test_a_key_isnt_sent_in_the_clear():
    "Before, it went over plain HTTP wherever the grid said."
    with pytest.raises(BadInput, match='http://node7:8000/v1 over plain HTTP.*--insecure'):
        Gateway(['http://node7:8000/v1'], api_key='sk-real')
    assert Gateway(['http://node7:8000/v1']).endpoints
    assert Gateway(['http://node7:8000/v1'], api_key='sk-real', insecure=True).endpoints
    assert Gateway(['http://127.0.0.1:8000/v1', 'https://node7/v1'], api_key='sk-real').endpoints
