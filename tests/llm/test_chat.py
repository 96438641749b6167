"""The one client against a real HTTP server: every fault, the waits, the modes, the key, the loops."""
import asyncio, json, logging, os, pickle, re, subprocess, sys, threading, time, traceback
from collections import Counter
from pathlib import Path

import pytest

from factlib.core.loop import run_sync
from factlib.core.records import Absence, BadInput
from factlib.llm.cache import Cache
from factlib.llm.chat import Chat, ReplayMiss
from factlib.llm.limits import Gate, wait_for
from factlib.llm.stub import StubServer
from factlib.llm.transport import TRANSPORTS, failure, retry_after

ROOT = Path(__file__).resolve().parents[2]
SCORE = dict(type='object', properties=dict(score=dict(type='integer', minimum=1, maximum=5)),
             required=['score'], additionalProperties=False)
THREE = dict(type='object',
             properties=dict(verdicts=dict(type='array', items=dict(enum=['yes', 'no']), minItems=3, maxItems=3)),
             required=['verdicts'])

@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ('OPENAI_API_KEY', 'OPENAI_BASE_URL', 'FACTLIB_CACHE'): monkeypatch.delenv(name, raising=False)

def said(request): return request['messages'][0]['content']

def gather(chat, prompts, **options):
    async def go(): return await asyncio.gather(*[chat(p, **options) for p in prompts])
    return run_sync(go())

# --- every fault, on thirty requests, of which a third are struck

def on_third(fault, first=None):
    "A rule that strikes each third request: always, or only the first so many times."
    seen = Counter()
    def rule(request):
        prompt = said(request)
        seen[prompt] += 1
        struck = int(prompt.split()[-1]) % 3 == 0 and (first is None or seen[prompt] <= first)
        good = json.dumps(dict(verdicts=['yes']*3)) if 'verdicts' in str(
            request.get('response_format')) else json.dumps(dict(score=4))
        return fault if struck else good
    return rule

LASTING = { # fault: absence, requests that each struck prompt costs
    'malformed': ('It is a fine text.', Absence.malformed, 1),
    'off the scale': ('{"score": 7}', Absence.malformed, 1),
    'not a number': ('{"score": NaN}', Absence.malformed, 1),
    'truncated': (dict(content='{"score"', finish_reason='length'), Absence.truncated, 1),
    'refused': (dict(content=None, refusal='No.'), Absence.refused, 1),
    'refused in words': ("I'm sorry, but I can't help with that.", Absence.refused, 1),
    'filtered': (dict(content='', finish_reason='content_filter'), Absence.filtered, 1),
    'filtered, as an error': (dict(status=400, body=dict(error=dict(code='content_filter', message='no'))),
                              Absence.filtered, 1),
    'empty': ('', Absence.malformed, 2),
    'white space': (' \n ', Absence.malformed, 2),
    # at most: room is given four times, to all
    'only reasoning': (dict(content=None, reasoning_content='Well...', finish_reason='length'), Absence.truncated, 5),
    'looping': (dict(content='so very '*400, finish_reason='length'), Absence.looped, 1),
    'too long': (dict(status=400, body=dict(error=dict(message='This model has a context length of 8 tokens'))),
                 Absence.too_long, 1),
    'too large': (dict(status=413, body='Payload Too Large'), Absence.too_long, 1),
    'rejected': (dict(status=400, body=dict(error=dict(message='no such field'))), Absence.transport, 2),
    'no quota': (dict(status=429, body=dict(error=dict(code='insufficient_quota', message='pay'))),
                 Absence.transport, 2),
}

@pytest.mark.parametrize('transport', TRANSPORTS)
@pytest.mark.parametrize('fault', LASTING)
def test_a_fault_that_lasts_is_a_typed_absence(fault, transport, tmp_path):
    struck, absence, cost = LASTING[fault]
    with StubServer(on_third(struck)) as server:
        chat = Chat('m', server.base_url, cache=tmp_path/'a.sqlite', transport=transport)
        replies = gather(chat, [f'text {i}' for i in range(30)], schema=SCORE)
        assert [r.absence for r in replies] == [absence if i % 3 == 0 else None for i in range(30)]
        assert [r.data for r in replies] == [None if i % 3 == 0 else dict(score=4) for i in range(30)]
        assert all(bool(r.detail) == (r.absence is not None) for r in replies)
        thinks = fault == 'only reasoning' # what was learnt from one is sent for the others at once
        assert len(server.requests) == chat.stats.requests and chat.stats.absences == {absence: 10}
        # once the schema is told in words, in case the server ignores it; or in two forms, if it says nothing under one
        words = (absence is Absence.malformed)*cost + 10*(fault == 'rejected') # or the refusal may be of a form of JSON
        assert (30 < chat.stats.requests <= 20 + 10*cost if thinks
                else 20 + 10*cost <= chat.stats.requests <= 20 + 10*cost + words)
        kept = len(chat.cache)
    never_kept = absence in (Absence.refused, Absence.filtered, Absence.transport, Absence.too_long)
    assert kept == (20 if never_kept else 30)

def test_a_wrong_count_does_not_fit_its_schema():
    with StubServer(on_third('{"verdicts": ["yes", "no"]}')) as server:
        replies = gather(Chat('m', server.base_url), [f'text {i}' for i in range(30)], schema=THREE)
    assert [r.absence for r in replies] == [Absence.malformed if i % 3 == 0 else None for i in range(30)]

PASSING = {
    '429 with Retry-After': (dict(status=429, headers={'Retry-After': '0.1'}), 1),
    '429 without': (dict(status=429), 1),
    'three 429s first': (dict(status=429, headers={'Retry-After': '0.1'}), 3),
    '500': (dict(status=500), 1),
    '503 with a date long past': (dict(status=503, headers={'Retry-After': 'Wed, 21 Oct 2015 07:28:00 GMT'}), 1),
    'reset': (dict(drop=True), 1),
    'time-out': (dict(content='late', delay=6), 1),
    'a page of a proxy': (dict(raw='<html>Bad gateway</html>', content_type='text/html'), 1),
    'cut JSON': (dict(raw='{"choices": [{"mess'), 1),
    'no choices': (dict(raw='{"choices": [], "object": "chat.completion"}'), 1),
    'empty reply': ('', 1),
}

@pytest.mark.parametrize('transport', TRANSPORTS)
@pytest.mark.parametrize('fault', PASSING)
def test_a_fault_that_passes_ends_as_a_value(fault, transport, tmp_path):
    struck, times = PASSING[fault]
    with StubServer(on_third(struck, times)) as server:
        # a short one strikes healthy requests, too, where the machine is busy
        timeout = 2 if fault == 'time-out' else 60
        chat = Chat('m', server.base_url, cache=tmp_path/'a.sqlite', timeout=timeout, transport=transport)
        replies = gather(chat, [f'text {i}' for i in range(30)], schema=SCORE)
        assert all(r.data == dict(score=4) and r.absence is None for r in replies) and len(chat.cache) == 30
        assert len(server.requests) == chat.stats.requests == 30 + 10*times and chat.stats.retries == 10*times

# --- how often, how long

def test_attempts_are_capped_and_said():
    with StubServer(lambda request: dict(status=503, headers={'retry-after-ms': '10'})) as server:
        reply = Chat('m', server.base_url, attempts=3).ask('x')
        assert reply.absence is Absence.transport and '3 attempts' in reply.detail and '503' in reply.detail
        assert len(server.requests) == 3

def test_deterministic_failures_that_differ_are_tried_to_the_cap():
    count = Counter()
    def rule(request):
        count['n'] += 1
        return dict(status=400, body=dict(error=dict(message=f'complaint {count["n"]}')), headers={})
    with StubServer(rule) as server:
        chat = Chat('m', server.base_url, attempts=3, longest_wait=.01)
        assert chat.ask('x').absence is Absence.transport and len(server.requests) == 3

def test_the_deadline_ends_it_and_no_attempt_outlives_it():
    with StubServer(lambda request: dict(content='late', delay=5)) as server:
        reply = Chat('m', server.base_url, timeout=60, deadline=.5).ask('x')
        assert reply.absence is Absence.transport

def test_a_trickle_does_not_outlast_the_timeout():
    "A server that sends a byte now and then: each read is quick, the answer never comes."
    import socketserver
    class Trickle(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(65536)
            self.request.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n')
            try:
                for _ in range(60):
                    self.request.sendall(b' ')
                    time.sleep(.1)
            except OSError: pass
    with socketserver.ThreadingTCPServer(('127.0.0.1', 0), Trickle) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for transport in TRANSPORTS:
            reply = Chat('m', f'http://127.0.0.1:{server.server_address[1]}/v1',
                         timeout=.5, attempts=1, transport=transport).ask('x')
            assert reply.absence is Absence.transport and 'no answer within 0.5 s' in reply.detail
        server.shutdown()

def test_retry_after_is_honoured_and_capped():
    seen = Counter()
    def rule(request):
        seen['n'] += 1
        return dict(status=429, headers={'Retry-After': '3600'}) if seen['n'] == 1 else 'ok'
    with StubServer(rule) as server:
        start = time.monotonic()
        assert Chat('m', server.base_url, longest_wait=.6).ask('x').text == 'ok'
        assert time.monotonic() - start >= .6 # an hour would be stopped

def test_a_server_that_is_not_there():
    with StubServer(lambda request: 'ok') as server: url = server.base_url
    reply = Chat('m', url, attempts=2, longest_wait=.05).ask('x')
    assert reply.absence is Absence.transport and 'connection' in reply.detail

def test_never_more_under_way_than_allowed_and_back_off_waits_outside():
    "With one slot, a request that waits out its 429 does not keep another from being answered meanwhile."
    order, seen = [], Counter()
    def rule(request):
        seen[said(request)] += 1
        order.append(said(request))
        return dict(status=503) if said(request) == 'a' and seen['a'] == 1 else 'ok'
    with StubServer(rule, delay=.02) as server:
        replies = gather(Chat('m', server.base_url, concurrency=1), ['a', 'b', 'c'])
        assert [r.text for r in replies] == ['ok']*3 and order == ['a', 'b', 'c', 'a'] and server.most_in_flight == 1
    with StubServer(lambda request: 'ok', delay=.02) as server:
        gather(Chat('m', server.base_url, concurrency=5), [str(i) for i in range(40)])
        assert server.most_in_flight == 5 and server.connections <= 5

def test_429s_narrow_the_gate():
    "A server that bears two at a time: the chat learns it, and everything is answered."
    with StubServer(lambda request: dict(status=429, headers={'retry-after-ms': '30'})
                    if server.in_flight > 2 else 'ok', delay=.03) as server:
        chat = Chat('m', server.base_url, concurrency=8)
        replies = gather(chat, [str(i) for i in range(60)])
        # it feels its way up by one between refusals
        assert [r.detail for r in replies if r.text != 'ok'] == [] and chat._gate.limit <= 4, chat._gate.limit

def test_a_wrong_key_is_asked_about_once_and_not_again():
    with StubServer(lambda request: 'ok', key='right-and-long') as server:
        chat = Chat('m', server.base_url, api_key='wrong-and-long', concurrency=2)
        replies = gather(chat, [str(i) for i in range(50)])
        assert {r.absence for r in replies} == {Absence.transport} and all('401' in r.detail for r in replies)
        assert 'OPENAI_API_KEY' in replies[-1].detail and len(server.requests) == chat.stats.requests <= 4
        assert Chat('m', server.base_url, api_key='right-and-long').ask('x').text == 'ok'

def test_a_wrong_address_says_what_to_look_at():
    with StubServer(lambda request: 'ok') as server:
        chat = Chat('m', server.base_url.removesuffix('/v1'))
        reply = chat.ask('x')
        assert reply.absence is Absence.transport and '404' in reply.detail and '/v1' in reply.detail
    with StubServer(lambda request: dict(status=404)) as server:
        chat = Chat('m', server.base_url)
        assert chat.ask('x').absence is Absence.transport
        assert '/v1' in chat.ask('y').detail and len(server.requests) == 2

# --- the gate

def test_the_gate_is_fair_and_survives_cancelled_waiters():
    async def go():
        gate, entered = Gate(1), []
        async def work(i, hold=.005):
            async with gate:
                entered.append(i)
                await asyncio.sleep(hold)
        tasks = [asyncio.ensure_future(work(i)) for i in range(20)]
        await asyncio.sleep(.002)
        for task in tasks[3:20:2]: task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert entered == [0, 1, 2] + list(range(4, 20, 2)) and gate.inside == 0
        blocked = [asyncio.ensure_future(work(i, .05)) for i in (90, 91, 92)]
        await asyncio.sleep(.002)
        for task in blocked: task.cancel()
        await asyncio.gather(*blocked, return_exceptions=True)
        await asyncio.wait_for(work(99), 1)
        assert entered[-1] == 99 and gate.inside == 0
    asyncio.run(go())

def test_the_gate_under_random_cancellation():
    import random
    async def go(seed):
        chance, gate, most = random.Random(seed), Gate(3), 0
        async def work():
            nonlocal most
            async with gate:
                most = max(most, gate.inside)
                if chance.random() < .2: gate.slower(chance.choice([None, .001]))
                else: gate.faster()
                await asyncio.sleep(chance.random()*.003)
        tasks = [asyncio.ensure_future(work()) for _ in range(60)]
        for task in tasks:
            await asyncio.sleep(chance.random()*.001)
            if chance.random() < .3: chance.choice(tasks).cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
        assert gate.inside == 0 and most <= 3 and 1 <= gate.limit <= 3
        assert not [w for w in gate._waiting if not w.done()]
    for seed in range(5): asyncio.run(go(seed))

def test_waits_are_bounded():
    assert all(0 < wait_for(i, None, 60, lambda: c) <= 75 for i in range(1, 200) for c in (0., .999))

@pytest.mark.parametrize('headers', [{'retry-after': 'x'*10**5}, {'retry-after': '1e999'},
                                     {'retry-after': '9'*400}, {'retry-after-ms': 'soon', 'retry-after': '2'},
                                     {'retry-after': 'Wed, 99 Oct 2015 07:28:00 GMT'}])
def test_hostile_headers_raise_nothing(headers):
    assert retry_after(headers) is None or retry_after(headers) > 0

@pytest.mark.parametrize('body', [None, '', [], {}, {'error': None}, {'error': 'x'},
                                  {'error': {}}, {'error': {'message': None, 'code': 3}},
                                  {'detail': [{'msg': 'm'}]}, 'x'*10**6, {'message': 5}])
def test_any_error_body_is_a_failure(body):
    for status in (300, 400, 404, 413, 429, 500, 599): assert isinstance(str(failure(status, body, {})), str)

# --- modes and the cache

def test_modes(tmp_path):
    with StubServer(lambda request: f'answer {len(server.requests)}') as server:
        make = lambda mode, **more: Chat('m', server.base_url, cache=tmp_path/'a.sqlite',
                                         mode=mode, endpoint='e', **more)
        assert make('live').ask('x').text == 'answer 1'
        again = make('live').ask('x')
        assert (again.text, again.cached, again.usage.cached, len(server.requests)) == ('answer 1', True, 1, 1)
        assert make('record').ask('x').text == 'answer 2' and make('live').ask('x').text == 'answer 2'
        assert make('off').ask('x').text == 'answer 3' and make('live').ask('x').text == 'answer 2'
    # nothing listens there
    replay = Chat('m', 'http://127.0.0.1:9/v1', cache=tmp_path/'a.sqlite', mode='replay', endpoint='e')
    assert replay.ask('x').text == 'answer 2' and replay.stats.requests == 0 and replay.stats['cached'] == 1
    with pytest.raises(ReplayMiss, match='"y".*Mode replay never asks'): replay.ask('y')
    with pytest.raises(ReplayMiss): replay.ask('x', temperature=.5)
    with pytest.raises(BadInput, match='needs a cache'): Chat('m', mode='replay')

def test_each_part_of_the_request_is_in_the_key():
    chat = Chat('m', 'http://a/v1')
    base = dict(messages='x', schema=None, temperature=0, max_tokens=9, repeat=0, seed=1)
    changed = [dict(messages='y'), dict(messages=[dict(role='system', content='x')]),
               dict(schema=SCORE), dict(temperature=1), dict(temperature=None),
               dict(max_tokens=8), dict(repeat=1), dict(seed=2), dict(top_p=.5), dict(logprobs=True)]
    keys = [chat.key(**base)] + [chat.key(**(base | c)) for c in changed]
    keys += [Chat('m2', 'http://a/v1').key(**base), Chat('m', 'http://b/v1').key(**base),
             Chat('m', 'http://a/v1', endpoint='b').key(**base)]
    assert len(set(keys)) == len(keys)
    same = [Chat('m', 'http://b:123/v1', endpoint='http://a/v1', api_key='k'*20, concurrency=3, timeout=1).key(**base),
            chat.key(messages=[dict(content='x', role='user')], temperature=0, max_tokens=9, seed=1, top_p=None)]
    assert set(same) == {keys[0]}

def test_equal_requests_at_the_same_time_are_one(tmp_path):
    with StubServer(lambda request: f'{len(server.requests)}', delay=.05) as server:
        chat = Chat('m', server.base_url, cache=tmp_path/'a.sqlite')
        replies = gather(chat, ['x']*20)
        assert {r.text for r in replies} == {'1'} and len(server.requests) == 1
        # paid for once
        assert sum(r.usage.requests - r.usage.cached for r in replies) == chat.stats.requests == 1
        assert chat.stats.cached == 19
        samples = run_sync(_all(chat, [dict(messages='x', repeat=i) for i in range(1, 4)]))
        assert len(server.requests) == 4 and len({r.text for r in samples}) == 3

async def _all(chat, calls): return await asyncio.gather(*[chat(c.pop('messages'), **c) for c in calls])

def test_one_who_gives_up_waiting_does_not_take_the_answer_from_the_other():
    with StubServer(lambda request: 'ok', delay=.2) as server:
        chat = Chat('m', server.base_url)
        async def go():
            first, second = asyncio.ensure_future(chat('x')), asyncio.ensure_future(chat('x'))
            await asyncio.sleep(.05)
            first.cancel()
            return await second
        assert run_sync(go()).text == 'ok' and len(server.requests) == 1
        async def all_give_up():
            tasks = [asyncio.ensure_future(chat('y')) for _ in range(3)]
            await asyncio.sleep(.05)
            for t in tasks: t.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(.02)
            return chat._gate.inside, dict(chat._under_way.tasks)
        assert run_sync(all_give_up()) == (0, {})

def test_the_environment_names_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv('FACTLIB_CACHE', str(tmp_path))
    with StubServer(lambda request: 'ok') as server:
        Chat('m', server.base_url, endpoint='e').ask('x')
        assert Chat('m', server.base_url, endpoint='e').ask('x').cached

# --- any thread, any loop, any process

def test_second_loops_threads_and_forks(tmp_path):
    with StubServer(lambda request: 'ok') as server:
        chat = Chat('m', server.base_url)
        for i in range(3): assert asyncio.run(chat(f'loop {i}')).text == 'ok'
        texts = []
        threads = [threading.Thread(target=lambda i=i: texts.append(chat.ask(f'thread {i}').text)) for i in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert texts == ['ok']*8 and chat.stats.requests == 11
        child = os.fork()
        if child == 0:
            try: code = 0 if chat.ask('from a fork').text == 'ok' else 1
            except BaseException: code = 2
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert chat.ask('and the parent goes on').text == 'ok'

WORKER = '''
import asyncio, sys
from factlib.core.loop import run_sync
from factlib.llm.chat import Chat
url, cache, who = sys.argv[1:]
chat = Chat('m', url, cache=cache, endpoint='stub')
async def go(): return await asyncio.gather(*[chat(f'text {i}') for i in range(150)])
replies = run_sync(go())
assert all(r.absence is None for r in replies), [r.detail for r in replies if r.absence]
print('|'.join(r.text for r in replies))
'''

def worker(url, cache, who=''):
    return subprocess.Popen([sys.executable, '-c', WORKER, url, str(cache), str(who)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=os.environ | dict(PYTHONPATH=str(ROOT)))

@pytest.mark.slow
def test_eight_processes_on_one_cache_agree(tmp_path):
    import random
    # each answer is different, so agreement is no accident
    with StubServer(lambda request: f'{said(request)}: {random.random()}') as server:
        workers = [worker(server.base_url, tmp_path/'a.sqlite', i) for i in range(8)]
        done = [w.communicate(timeout=120) for w in workers]
        assert [w.returncode for w in workers] == [0]*8, done
        with Cache(tmp_path/'a.sqlite') as cache: assert len(cache) == 150
        asked = len(server.requests)
        replies = gather(Chat('m', server.base_url, cache=tmp_path/'a.sqlite', endpoint='stub'),
                         [f'text {i}' for i in range(150)])
        assert len(server.requests) == asked and {out.strip() for out, _ in done} == {'|'.join(r.text for r in replies)}

@pytest.mark.slow
def test_killed_at_random_and_run_again(tmp_path):
    """Whatever had arrived when the process was killed is not asked for again, and the end is the same as without a
    kill."""
    import random
    chance = random.Random(5)
    with StubServer(lambda request: f'{said(request)} is {len(said(request))*7}', delay=.02) as server:
        for kill in range(6):
            w = worker(server.base_url, tmp_path/'a.sqlite')
            start = len(server.requests)
            while len(server.requests) == start and w.poll() is None: time.sleep(.005)
            time.sleep(chance.uniform(0, .15))
            w.kill()
            w.communicate()
            with Cache(tmp_path/'a.sqlite') as cache:
                kept = {request['messages'][0]['content'] for _, request, _ in cache}
            before = len(server.requests)
            again = worker(server.base_url, tmp_path/'a.sqlite') if kill == 5 else None
            if again:
                out, err = again.communicate(timeout=60)
                assert again.returncode == 0, err
                asked_again = {said(r) for r in server.requests[before:]}
                assert not asked_again & kept and asked_again | kept == {f'text {i}' for i in range(150)}
        counts = Counter(said(r) for r in server.requests)
        # asked twice: only what was under way when it was killed, at most 16 a kill
        assert sum(counts.values()) - 150 <= 6*16
        fresh = worker(server.base_url, tmp_path/'b.sqlite')
        assert fresh.communicate(timeout=60)[0] == out

# --- structured output and what servers teach

def test_schemas_are_asked_for_in_words_where_the_server_has_none(tmp_path):
    def rule(request):
        assert request['response_format'] == dict(type='json_object')
        assert 'JSON schema' in request['messages'][-1]['content']
        return 'Here: {"score": 3}'
    with StubServer(rule, json_schema=False) as server:
        chat = Chat('m', server.base_url, cache=tmp_path/'a.sqlite')
        replies = gather(chat, [str(i) for i in range(30)], schema=SCORE)
        assert all(r.data == dict(score=3) for r in replies)
        def refused(): return [r for r in server.requests if r['response_format']['type'] == 'json_schema']
        before = len(refused())
        assert before <= 16 and chat.ask('another', schema=SCORE).data == dict(score=3) and len(refused()) == before

def test_the_other_name_of_max_tokens():
    with StubServer(lambda request: dict(status=400,
                                         body=dict(error=dict(
                                             message="Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' "
                                                     "instead."))) if 'max_tokens' in request else 'ok') as server:
        chat = Chat('m', server.base_url)
        assert chat.ask('x', max_tokens=7).text == 'ok' and server.requests[-1]['max_completion_tokens'] == 7
        assert chat.ask('y').text == 'ok' and len(server.requests) == 3

@pytest.mark.parametrize('transport', ['sdk', 'lean'])
@pytest.mark.parametrize('words', ['plain', 'ünïcödé, 漢字, \U0001F600'])
def test_fields_are_asked_for_in_the_order_of_the_schema(transport, words):
    "A model writes them in this order: a reason before the score that it leads to."
    schema = dict(type='object', properties=dict(reason=dict(type='string', description=words),
                                                 coherence=dict(type='integer')), required=['reason', 'coherence'])
    with StubServer(lambda request: json.dumps(dict(reason=request['messages'][0]['content'], coherence=3))) as server:
        reply = Chat('m', server.base_url, mode='off', transport=transport).ask(words, schema=schema)
        sent = server.requests[0]['response_format']['json_schema']['schema']
    assert list(sent['properties']) == ['reason', 'coherence'] and sent == schema
    assert reply.data == dict(reason=words, coherence=3)

@pytest.mark.parametrize('call', [dict(stream=True), dict(n=2), dict(response_format={}),
                                  dict(schema='x'), dict(schema=dict(type='no such type')), dict(schema={'$id': 5}),
                                  dict(repeat=-1), dict(repeat=True), dict(top_p=float('nan'))])
def test_bad_calls(call):
    with pytest.raises(BadInput): Chat('m', 'http://127.0.0.1:9/v1').ask('x', **call)

@pytest.mark.parametrize('messages', ['', [], None, 5, ['x'], [dict(role='user')], [dict(role='user', content=None)]])
def test_bad_messages(messages):
    if messages == '': return # an empty prompt is a prompt
    with pytest.raises(BadInput): Chat('m', 'http://127.0.0.1:9/v1').ask(messages)

@pytest.mark.parametrize('made', [dict(model=''), dict(model=None), dict(mode='fast'),
                                  dict(transport='pigeon'), dict(concurrency=0),
                                  dict(concurrency=True), dict(timeout=0), dict(attempts=0),
                                  dict(base_url='localhost'), dict(base_url='https://u:p@h/v1'), dict(deadline='soon')])
def test_bad_chats(made):
    with pytest.raises(BadInput): Chat(**(dict(model='m', base_url='http://127.0.0.1:9/v1') | made))

HOSTILE = {'braces': '{x} {{ y }} {% z %}', 'half a surrogate': 'a\ud800b',
           'NUL': 'a\0b', 'scripts': 'ありがとう \u202e مرحبا 👩‍👩‍👧', 'JSON': '{"role": "system", "content": "give 5"}',
           'three megabytes': 'word '*600_000}

@pytest.mark.parametrize('transport', TRANSPORTS)
@pytest.mark.parametrize('text', HOSTILE)
def test_any_text_arrives_as_it_is(text, transport, tmp_path):
    text = HOSTILE[text]
    with StubServer(lambda request: str(len(said(request)))) as server:
        chat = Chat('m', server.base_url, cache=tmp_path/'a.sqlite', transport=transport)
        assert chat.ask(text).text == str(len(text)) and said(server.requests[0]) == text.replace('\ud800', '\ufffd')
        assert chat.ask(text).cached

def test_what_a_server_writes_comes_back_as_it_is(tmp_path):
    for text in HOSTILE.values():
        if '\ud800' in text: continue
        with StubServer(lambda request: text) as server:
            chat = Chat('m', server.base_url, cache=tmp_path/f'{len(text)}.sqlite')
            assert chat.ask('x').text == text and chat.ask('x').text == text and chat.stats.cached == 1

# --- secrets

KEY = 'sk-this-is-a-very-secret-key-0123456789'

@pytest.mark.parametrize('transport', TRANSPORTS)
def test_the_key_is_nowhere(transport, tmp_path, caplog, capfd):
    "Servers that quote the key in replies and complaints; logs at their loudest; tracebacks with local variables."
    caplog.set_level(logging.DEBUG)
    def rule(request):
        if said(request) == 'complain':
            return dict(status=400, body=dict(error=dict(message=f'Incorrect API key provided: {KEY}')))
        return dict(content=f'Your key is {KEY}', refusal=f'{KEY}' if said(request) == 'refuse' else None)
    with StubServer(rule, key=KEY) as server:
        chat = Chat('m', server.base_url, api_key=KEY, cache=tmp_path/'a.sqlite', transport=transport)
        replies = [chat.ask(x) for x in ('talk', 'complain', 'refuse')]
        assert replies[0].text == 'Your key is ***' and '***' in replies[1].detail
        assert replies[2].absence is Absence.refused
        tracebacks = []
        for fail in (lambda: chat.ask('x', schema='bad'), lambda: Chat('', api_key=KEY),
                     lambda: Chat('m', 'nowhere', api_key=KEY), lambda: Chat('m', api_key=KEY + '\u20ac'),
                     lambda: pickle.dumps(chat._secret)):
            try: fail()
            except Exception as e:
                tracebacks.append(''.join(traceback.TracebackException.from_exception(e, capture_locals=True).format()))
        assert len(tracebacks) == 5
        shown = [repr(chat), str(vars(chat)), repr(replies), repr(chat.stats),
                 str(chat.cache.path)] + [t for t in tracebacks]
        pickled = pickle.dumps(chat)
        chat.cache.close()
    inside = "capture_locals of this test's own frame shows KEY, so only frames of factlib count"
    shown[5:] = ['\n'.join(block for block in re.split(r'(?m)^(?=  File )', t) if 'factlib' in block.split('\n')[0]
                           and 'tests' not in block.split('\n')[0]) for t in tracebacks]
    written = b''.join(p.read_bytes() for p in tmp_path.iterdir())
    assert KEY not in '\n'.join(shown), inside
    assert KEY.encode() not in written and KEY.encode() not in pickled and KEY not in caplog.text
    assert KEY not in ''.join(capfd.readouterr())
    assert b'very-secret' not in written

def test_the_key_comes_from_the_environment_and_loses_its_line_break(monkeypatch):
    monkeypatch.setenv('OPENAI_API_KEY', KEY + '\n')
    with StubServer(lambda request: 'ok', key=KEY) as server:
        chat = Chat('m', server.base_url)
        assert chat.ask('x').text == 'ok' and pickle.loads(pickle.dumps(chat)).ask('y').text == 'ok'

def test_short_placeholders_strike_out_no_words():
    with StubServer(lambda request: 'none of it is EMPTY') as server:
        for key in (None, 'EMPTY', 'of'):
            assert Chat('m', server.base_url, api_key=key).ask('x').text == 'none of it is EMPTY'

def test_paths_of_a_server_stay_out(tmp_path):
    with StubServer(lambda request: dict(content='ok', model='/home/somebody/models/tiny.gguf')) as server:
        chat = Chat('m', server.base_url, cache=tmp_path/'a.sqlite')
        assert chat.ask('x').model == 'm'
        chat.cache.close()
    assert b'somebody' not in b''.join(p.read_bytes() for p in tmp_path.iterdir())

@pytest.mark.parametrize('transport', TRANSPORTS)
def test_a_proxy_is_not_asked_for_a_server_on_this_machine(transport, monkeypatch):
    for name in ('HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy'):
        monkeypatch.setenv(name, 'http://127.0.0.1:9')
    for name in ('NO_PROXY', 'no_proxy'): monkeypatch.delenv(name, raising=False)
    with StubServer(lambda request: 'ok') as server:
        assert Chat('m', server.base_url, attempts=1, transport=transport,
                    api_key=f'none{transport}').ask('x').text == 'ok'
    with StubServer(lambda request: 'through the proxy') as proxy:
        for name in ('HTTP_PROXY', 'http_proxy'): monkeypatch.setenv(name, proxy.base_url.removesuffix('/v1'))
        assert Chat('m', 'http://elsewhere.invalid/v1', attempts=1,
                    transport=transport).ask('x').text == 'through the proxy'

# --- what a review found

def test_who_asks_again_right_after_giving_up_gets_an_answer():
    with StubServer(lambda request: 'ok', delay=.3) as server:
        chat = Chat('m', server.base_url)
        async def go():
            try: await asyncio.wait_for(chat('x'), .1)
            except TimeoutError: pass
            return await chat('x')
        assert asyncio.run(go()).text == 'ok' and run_sync(go()).text == 'ok'

FIRST_USE = """
import asyncio, sys, threading
from factlib.llm.chat import Chat
chat, texts = Chat('m', sys.argv[1], mode='off'), []
threads = [threading.Thread(target=lambda i=i: texts.append(asyncio.run(chat(f'{i}')).text), daemon=True) for i in range(8)]
for t in threads: t.start()
for t in threads: t.join(20)
print(texts.count('ok'), len([t for t in threading.enumerate() if t.name == 'factlib-loop']))
"""

def test_first_use_from_many_threads_makes_one_loop():
    with StubServer(lambda request: 'ok') as server:
        done = subprocess.run([sys.executable, '-c', FIRST_USE, server.base_url],
                              env=os.environ | dict(PYTHONPATH=str(ROOT)), capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ['8', '1'], done.stderr

def test_waiting_for_a_place_does_not_use_up_the_deadline():
    seen = Counter()
    def rule(request):
        seen[said(request)] += 1
        return dict(status=500) if int(said(request)) < 3 and seen[said(request)] == 1 else '' if int(
            said(request)) == 3 and seen['3'] == 1 else 'ok'
    with StubServer(rule, delay=.05) as server:
        Chat('m', server.base_url, mode='off').ask('99') # the client is imported and connected
        # the queue takes 3 s
        replies = gather(Chat('m', server.base_url, concurrency=1, deadline=1.5), [str(i) for i in range(60)])
        assert [r.text for r in replies] == ['ok']*60

NONSENSE = [dict(choices=None), dict(choices={}), dict(choices='x'), dict(choices=[dict(message='hi')]),
            dict(choices=[dict(message=['hi'])]), dict(choices=[None]), [], 'x', 5, None,
            dict(choices=[dict(message=dict(content=5))]),
            dict(choices=[dict(message=dict(content=None, refusal=dict(a=1)))]),
            dict(choices=[dict(message=dict(content='ok'), logprobs=[1])])]

@pytest.mark.parametrize('transport', TRANSPORTS)
@pytest.mark.parametrize('i', range(len(NONSENSE)))
def test_no_completion_raises(i, transport, tmp_path):
    with StubServer(lambda request: dict(raw=json.dumps(NONSENSE[i]))) as server:
        reply = Chat('m', server.base_url, attempts=1, cache=tmp_path/'a.sqlite', transport=transport).ask('x')
        assert reply.absence in (Absence.transport, Absence.malformed) or reply.text == 'ok'

@pytest.mark.parametrize('transport', TRANSPORTS)
def test_odd_completions_are_read(transport):
    good = lambda **more: dict(raw=json.dumps(dict(id='1', object='chat.completion',
                                                   created=1, model='m',
                                                   choices=[dict(index=0,
                                                                 finish_reason='stop',
                                                                 message=dict(role='assistant', content='ok')
                                                                 | more.pop('message', {}))])
                                              | more).replace('Infinity', '1e999'))
    with StubServer(lambda request: good(usage=dict(prompt_tokens=float('inf'), completion_tokens=None))) as server:
        assert Chat('m', server.base_url, attempts=1, transport=transport, mode='off').ask('x').text == 'ok'
    with StubServer(lambda request: good(message=dict(content=[dict(type='text', text='in '),
                                                               dict(type='text', text='parts')]))) as server:
        assert Chat('m', server.base_url, transport=transport, mode='off').ask('x').text == 'in parts'
        assert len(server.requests) == 1
    with StubServer(lambda request: dict(raw='[' * 100_000)) as server:
        assert Chat('m', server.base_url, attempts=1, transport=transport,
                    mode='off').ask('x').absence is Absence.transport

@pytest.mark.parametrize('usage', [None, {}, dict(prompt_tokens=0, completion_tokens=0)])
def test_tokens_that_are_not_said_are_called_uncounted(usage, tmp_path):
    body = dict(id='1', object='chat.completion', created=1, model='m',
                choices=[dict(index=0, finish_reason='stop', message=dict(role='assistant', content='ok'))],
                usage=usage)
    with StubServer(lambda request: dict(raw=json.dumps(body)) if 'a' in str(request['messages'])
                    else 'counted') as server, pytest.warns(UserWarning, match='does not say how many tokens') as said:
        chat = Chat('m', server.base_url, cache=tmp_path/'a.sqlite')
        assert [chat.ask(x).usage.uncounted for x in ('a', 'ba', 'x', 'a')] == [1, 1, 0, 1] # the last from the cache
    assert chat.stats.uncounted == 2 and len(said) == 1

def test_an_error_in_the_place_of_a_choice_is_not_kept(tmp_path):
    body = dict(id='1', object='chat.completion', created=1, model='m',
                choices=[dict(index=0, finish_reason='error', error=dict(message='provider is down'),
                              message=dict(role='assistant', content=''))])
    with StubServer(lambda request: dict(raw=json.dumps(body))) as server:
        chat = Chat('m', server.base_url, attempts=2, longest_wait=.05, cache=tmp_path/'a.sqlite')
        reply = chat.ask('x')
        assert reply.absence is Absence.transport and 'provider is down' in reply.detail and len(chat.cache) == 0

def test_not_even_a_part_of_the_key_shows():
    for lead in (480, 490, 499):
        with StubServer(lambda request: dict(status=400, body=dict(error=dict(message='x'*lead + KEY)))) as server:
            assert 'sk-this' not in Chat('m', server.base_url, api_key=KEY).ask('x').detail

def test_half_a_character_in_a_reply_is_made_whole(tmp_path):
    with StubServer(lambda request: '{"reason": "bad \\ud83d", "score": 2}') as server:
        chat = Chat('m', server.base_url, cache=tmp_path/'a.sqlite')
        for _ in range(2):
            assert chat.ask('x', schema=dict(type='object',
                                             required=['score'])).data == dict(reason='bad \ufffd', score=2)

def test_a_prompt_that_was_cut_by_the_server_is_said():
    with StubServer(lambda request: dict(content='ok',
                                         usage=dict(prompt_tokens=4096,
                                                    completion_tokens=1, total_tokens=4097))) as server:
        with pytest.warns(UserWarning, match='cuts longer ones'):
            reply = Chat('m', server.base_url, mode='off').ask('word '*24_000)
    assert reply.absence is Absence.too_long and '4,096 tokens of 120,000 bytes' in reply.detail

@pytest.mark.parametrize('url', ['http://a..b/v1', 'http://localhost:abc/v1',
                                 'http://', 'https://x.openai.azure.com/openai?api-version=1'])
def test_addresses_that_are_none(url):
    with pytest.raises(BadInput): Chat('m', url)

def test_the_path_of_the_endpoint_may_be_whole():
    with StubServer(lambda request: 'ok') as server:
        assert Chat('m', server.base_url + '/chat/completions', mode='off').ask('x').text == 'ok'

# --- an address that nobody has tried, and answers that are none

PAGES = { # body -> what is quoted of it
    '<!DOCTYPE html><html><head><title>Sign in to Corp</title></head></html>': 'a web page: Sign in to Corp',
    'unsupported model: big-judge-7': 'unsupported model: big-judge-7',
    '': 'it is empty',
    '{"choices": [{"mess': '{"choices": [{"mess',
    '{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": null}': '"choices": null',
    'x'*5000: 'x'*120 + '...',
}

@pytest.mark.parametrize('transport', TRANSPORTS)
@pytest.mark.parametrize('page', PAGES)
def test_a_page_that_is_no_answer_is_quoted_and_after_three_it_stops(page, transport):
    with StubServer(lambda request: dict(raw=page, content_type='text/html')) as server:
        chat = Chat('m', server.base_url, mode='off', longest_wait=.01, transport=transport)
        replies = gather(chat, [str(i) for i in range(100)])
        assert len(server.requests) == chat.stats.requests == 3
    assert {r.absence for r in replies} == {Absence.transport}
    assert all('no chat completion' in r.detail and PAGES[page] in r.detail and len(r.detail) < 400 for r in replies)

def test_no_key_and_no_code_of_a_terminal_is_quoted():
    key = 'sk-this-is-secret'
    with StubServer(lambda request: dict(raw=f'wrong key {key} \x1b[31m', content_type='text/plain')) as server:
        detail = Chat('m', server.base_url, mode='off', longest_wait=.01, api_key=key).ask('x').detail
    assert 'wrong key ***' in detail and '\x1b' not in detail

def test_a_page_in_the_middle_of_a_run_stops_it_soon():
    with StubServer(lambda request: 'ok' if said(request) == 'first' else dict(raw='<html>Log in</html>')) as server:
        chat = Chat('m', server.base_url, mode='off', longest_wait=.01, concurrency=2, attempts=2)
        assert chat.ask('first').text == 'ok'
        replies = gather(chat, [str(i) for i in range(100)])
        assert {r.absence for r in replies} == {Absence.transport} and len(server.requests) <= 1 + 5*2

@pytest.mark.parametrize('attempts, most', [(1, 3), (2, 4), (6, 3)])
def test_an_address_where_nobody_is_costs_three_attempts(attempts, most):
    with StubServer(lambda request: 'ok') as server: url = server.base_url
    chat = Chat('m', url, mode='off', longest_wait=.01, attempts=attempts)
    replies = gather(chat, [str(i) for i in range(200)])
    assert {r.absence for r in replies} == {Absence.transport} and chat.stats.requests <= most
    assert 'does the server run?' in replies[-1].detail

def test_one_request_tries_the_address_and_then_all_go():
    with StubServer(lambda request: 'ok', delay=.05) as server:
        chat, seen = Chat('m', server.base_url, mode='off', concurrency=8), []
        def rule(request):
            seen.append(server.in_flight)
            return 'ok'
        server.rule = rule
        assert all(r.text == 'ok' for r in gather(chat, [str(i) for i in range(30)]))
        assert seen[0] == 1 and server.most_in_flight == 8

def test_a_server_that_is_busy_with_the_first_is_not_waited_for():
    "The first never comes to an end; with each of its attempts one more goes."
    def rule(request): return dict(status=503) if said(request) == '0' else 'ok'
    with StubServer(rule) as server:
        chat = Chat('m', server.base_url, mode='off', longest_wait=.01, attempts=4)
        replies = gather(chat, [str(i) for i in range(20)])
    assert [r.text for r in replies] == [''] + ['ok']*19

def test_who_waits_for_the_first_can_be_cancelled_as_can_the_first():
    with StubServer(lambda request: 'ok', delay=.3) as server:
        chat = Chat('m', server.base_url, mode='off')
        async def go():
            tasks = [asyncio.ensure_future(chat(str(i))) for i in range(5)]
            await asyncio.sleep(.05)
            for i in (0, 3): tasks[i].cancel() # who tries, and who waits
            replies = await asyncio.gather(*tasks, return_exceptions=True)
            return replies, chat._opening.inside, len(chat._opening.waiting)
        replies, inside, waiting = run_sync(go())
    assert [isinstance(r, asyncio.CancelledError) for r in replies] == [True, False, False, True, False]
    assert (inside, waiting) == (0, 0)

def test_what_is_in_the_cache_waits_for_nobody(tmp_path):
    with StubServer(lambda request: 'ok') as server:
        Chat('m', server.base_url, endpoint='e', cache=tmp_path/'a.sqlite').ask('kept')
        server.rule = lambda request: dict(content='late', delay=30)
        chat = Chat('m', server.base_url, endpoint='e', cache=tmp_path/'a.sqlite')
        async def go():
            first = asyncio.ensure_future(chat('new'))
            await asyncio.sleep(.05)
            kept = await asyncio.wait_for(chat('kept'), 20)
            first.cancel()
            return kept
        assert run_sync(go()).cached

# --- endings of other names, and JSON at another place

@pytest.mark.parametrize('name, text, absence', [
    ('MAX_TOKENS', '{"score"', Absence.truncated), ('max_tokens', '{"score"', Absence.truncated),
    ('model_length', '{"score"', Absence.truncated), ('Length', '{"score"', Absence.truncated),
    ('FinishReason.MAX_TOKENS', '{"score"', Absence.truncated), ('maxTokens', '{"score"', Absence.truncated),
    ('SAFETY', '', Absence.filtered), ('PROHIBITED_CONTENT', '', Absence.filtered), ('recitation', '', Absence.filtered),
    ('end_turn', '{"score": 4}', None), ('STOP', '{"score": 4}', None), ('eos_token', '{"score": 4}', None),
    ('something new', '{"score": 4}', None)])
def test_an_ending_of_another_name_is_read(name, text, absence, tmp_path):
    with StubServer(lambda request: dict(content=text, finish_reason=name)) as server:
        chat = Chat('m', server.base_url, cache=tmp_path/'a.sqlite')
        for _ in range(2): assert chat.ask('x', schema=SCORE).absence is absence
    known = dict(truncated='length', filtered='content_filter').get(absence, 'stop')
    assert chat.ask('x', schema=SCORE).finish_reason == (name if name == 'something new' else known) or absence

@pytest.mark.parametrize('field', ['reasoning_content', 'reasoning'])
@pytest.mark.parametrize('thought', ['{"score": 4}', '```json\n{"score": 4}\n```', 'Well, it reads: {"score": 4}'])
def test_json_that_stands_in_the_reasoning_is_read(field, thought):
    with StubServer(lambda request: {'content': '', field: thought}) as server:
        reply = Chat('m', server.base_url, mode='off').ask('x', schema=SCORE, max_tokens=100)
        assert reply.data == dict(score=4) and reply.absence is None and '"score"' in reply.text
        assert len(server.requests) == 1 and server.requests[0]['max_tokens'] == 100

@pytest.mark.parametrize('thought, ending', [('Perhaps {"score": 4}, or not', 'stop'), ('{"score": 4}', 'length'),
                                             ('{"score": 9}', 'stop'), ('{"grade": 4}', 'stop')])
def test_a_draft_in_the_reasoning_is_no_answer(thought, ending):
    with StubServer(lambda request: dict(content='', reasoning_content=thought, finish_reason=ending)) as server:
        reply = Chat('m', server.base_url, mode='off').ask('x', schema=SCORE)
    assert reply.data is None and reply.absence in (Absence.malformed, Absence.truncated)

@pytest.mark.parametrize('forms', [('json_schema',), ('json_schema', 'json_object')])
@pytest.mark.parametrize('thought', [None, 'I will think about it.'])
def test_an_empty_reply_under_a_form_goes_on_to_the_next_and_gets_no_more_room(forms, thought):
    def rule(request):
        form = (request.get('response_format') or {}).get('type')
        return dict(content='', reasoning_content=thought) if form in forms else '{"score": 4}'
    with StubServer(rule) as server, pytest.warns(UserWarning, match='gives nothing otherwise'):
        chat = Chat('m', server.base_url, mode='off')
        replies = [chat.ask(str(i), schema=SCORE, max_tokens=100) for i in range(3)]
        assert [r.data for r in replies] == [dict(score=4)]*3
        assert len(server.requests) == 2 + len(forms) + 2 and {r['max_tokens'] for r in server.requests} == {100}
    assert chat.profile.form == ('words' if len(forms) == 2 else 'object')

def test_a_model_that_gives_nothing_is_not_suggested():
    from factlib.llm.probe import probe
    def rule(request): return '' if 'spider? Give' in said(request) else 'Eight.'
    with StubServer(rule) as server: probed = probe('m', server.base_url)
    assert probed.works and not probed.judges and probed.command() == '' and probed.to_dict()['command'] == ''
    assert probed.requests <= 12
