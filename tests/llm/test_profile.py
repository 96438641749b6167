"What an endpoint can't do: learnt from its errors, tried, adopted only if the changed request succeeds, said once."
import asyncio
import json
import warnings

import pytest

from factlib.core.loop import run_sync
from factlib.core.records import Absence, BadInput
from factlib.llm.chat import Chat
from factlib.llm.profile import Profile
from factlib.llm.stub import StubServer

def refuse(message, status=400, **more):
    return dict(status=status, body=dict(error=dict(message=message, type='invalid_request_error') | more))

def strict(request):
    "A reasoning model: it has one temperature, and another name for the limit."
    if 'max_tokens' in request:
        return refuse(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", param='max_tokens')
    if request.get('temperature', 1) != 1:
        return refuse(
            "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is "
            "supported.", param='temperature')
    return 'ok'

def all_at_once(chat, prompts, **options):
    async def go(): return await asyncio.gather(*[chat(p, **options) for p in prompts])
    return run_sync(go())

def test_two_fields_are_learnt_once_at_256_in_flight_and_said_once():
    with StubServer(strict) as server, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        chat = Chat('o9', server.base_url, concurrency=256, mode='off')
        replies = all_at_once(chat, [str(i) for i in range(256)])
        first = len(server.requests)
        assert all(r.text == 'ok' and r.usage.profile
                   == dict(fields=dict(temperature=None), limit='max_completion_tokens') for r in replies)
        assert first <= 256 + 256 + 1 # each refused once; the one that learns, once more
        assert chat.ask('later').text == 'ok' and len(server.requests) == first + 1
    told = [str(w.message) for w in said if w.category is UserWarning] # not what the collector finds of earlier tests
    assert told == ['asked with max_completion_tokens: o9 has no max_tokens.',
                    'asked without temperature: o9 accepts only its default.']

def test_what_is_learnt_changes_neither_key_nor_signature(tmp_path):
    with StubServer(strict) as server:
        chat = Chat('o9', server.base_url, cache=tmp_path/'a.sqlite', endpoint='e')
        before = chat.key('x'), chat.describe()
        with pytest.warns(UserWarning): assert chat.ask('x').text == 'ok'
        assert (chat.key('x'), chat.describe()) == before == (Chat('o9', endpoint='e').key('x'),
                                                              dict(model='o9', endpoint='e'))
        again = Chat('o9', server.base_url, cache=tmp_path/'a.sqlite', endpoint='e').ask('x')
        # beside the answer
        assert again.cached
        assert again.usage.profile == dict(fields=dict(temperature=None), limit='max_completion_tokens')
        known = Chat('o9', server.base_url, mode='off', endpoint='e', profile=again.usage.profile)
        sent = len(server.requests)
        assert known.ask('y').text == 'ok' and len(server.requests) == sent + 1
        assert known.describe()['profile'] == again.usage.profile
        assert known.key('x') == before[0]

@pytest.mark.parametrize('refusals', [1, 3])
def test_an_odd_error_teaches_nothing(refusals):
    "The same request passes the second time; or without the field that was named the request fails as well."
    def rule(request): return refuse("Invalid value for 'temperature'.") if len(server.requests) <= refusals else 'ok'
    with StubServer(rule) as server, warnings.catch_warnings():
        warnings.simplefilter('error')
        chat = Chat('m', server.base_url, mode='off', longest_wait=.01)
        reply = chat.ask('x')
        assert chat.profile == Profile() and (reply.text == 'ok' or 'temperature' in reply.detail)
        assert chat.ask('y').text == 'ok' and server.requests[-1]['temperature'] == 0

def test_the_limit_is_what_the_context_leaves():
    "vLLM's words. The prompt's tokens are words here; a prompt that leaves nothing is too long."
    def rule(request):
        words, limit = sum(len(m['content'].split()) for m in request['messages']), request['max_tokens']
        if words + limit > 4096:
            return refuse(
                f"This model's maximum context length is 4096 tokens. However, you requested {words + limit} tokens "
                f"({words} in the messages, {limit} in the completion). Please reduce the length of the messages or "
                f"completion.")
        return str(limit)
    with StubServer(rule) as server:
        chat = Chat('m', server.base_url, mode='off')
        with pytest.warns(UserWarning, match='room for 4,096 tokens in all'):
            assert chat.ask('word '*283, max_tokens=4096).text == str(4096 - 283)
        assert chat.ask('word', max_tokens=100).text == '100' and len(server.requests) == 3
        assert int(chat.ask('word '*3000, max_tokens=4096).text) >= 64 and len(server.requests) <= 5
        too_long = chat.ask('word '*4090, max_tokens=4096)
        assert too_long.absence is Absence.too_long and '4096' in too_long.detail

@pytest.mark.parametrize('words, most', [
    ('max_tokens is too large: 4096. This model supports at most 1024 completion tokens, whereas you provided 4096.',
     1024),
    ('max_tokens: 4096 > 1024, which is the maximum allowed number of output tokens for the-model', 1024),
    ('`max_tokens` must be less than or equal to `1024`, the maximum value for `max_tokens` is less than the '
     '`context_window` for this model', 1024),
    ('Invalid max_tokens value, the valid range of max_tokens is [1, 1024]', 1024),
    ('Unable to submit request because it has a maxOutputTokens value of 4096 but the supported range is from 1 '
     '(inclusive) to 1025 (exclusive).', 1024)])
def test_the_most_that_a_model_writes(words, most):
    with StubServer(lambda request: refuse(words) if request['max_tokens'] > most
                    else str(request['max_tokens'])) as server:
        chat = Chat('m', server.base_url, mode='off')
        with pytest.warns(UserWarning, match='at most 1,024 tokens'):
            assert chat.ask('x', max_tokens=4096).text == '1024'
        assert chat.ask('y', max_tokens=2048).text == '1024' and chat.ask('z', max_tokens=9).text == '9'
        assert len(server.requests) == 4

def thinking(needs):
    "A model whose thoughts take so many tokens of the limit."
    def rule(request):
        limit = request.get('max_tokens', 10**6)
        if limit <= needs: return dict(content='', reasoning_content='Hm. '*9, finish_reason='length')
        return dict(content='ok', reasoning_content='Hm.')
    return rule

@pytest.mark.parametrize('needs, requests, room',
                         [(3000, 2, 4096), (5000, 3, 8192), (9000, 4, 16384), (20_000, 5, 32768), (10**7, 5, 32768)])
def test_a_model_that_thinks_gets_room(needs, requests, room):
    with StubServer(thinking(needs)) as server:
        chat = Chat('m', server.base_url, mode='off')
        with pytest.warns(UserWarning, match='thinks before it answers'): reply = chat.ask('x', max_tokens=2048)
        assert len(server.requests) == requests and chat.profile.room == room and chat.profile.thinks
        assert reply.text == 'ok' if needs < 10**7 else reply.absence is Absence.truncated and 'thought' in reply.detail
        assert chat.ask('y').absence == reply.absence and len(server.requests) == requests + 1 # at once, with room

def test_a_limit_that_the_user_fixed_is_not_raised():
    with StubServer(thinking(3000)) as server:
        reply = Chat('m', server.base_url, mode='off', request=dict(max_tokens=1000)).ask('x', max_tokens=2048)
        assert reply.absence is Absence.truncated and [r['max_tokens'] for r in server.requests] == [1000]

def test_a_reply_in_pieces():
    def rule(request):
        if not request.get('stream'):
            return refuse(
                'This model only support stream mode, please enable the stream parameter to access the model. ')
        pieces = [dict(delta=dict(role='assistant', content='')), dict(delta=dict(reasoning_content='Hm.')),
                  *[dict(delta=dict(content=c)) for c in 'Fine: é.'], dict(delta={}, finish_reason='stop')]
        chunks = [dict(id='1', model='m', created=1, object='chat.completion.chunk', choices=[dict(index=0) | piece])
                  for piece in pieces]
        chunks.append(dict(id='1', choices=[], usage=dict(prompt_tokens=3, completion_tokens=8, total_tokens=11)))
        return dict(raw=''.join(f'data: {json.dumps(c, ensure_ascii=False)}\n\n' for c in chunks) + 'data: [DONE]\n\n',
                    content_type='text/event-stream')
    with StubServer(rule) as server:
        for transport in ('sdk', 'lean'):
            chat = Chat('m', server.base_url, mode='off', transport=transport)
            with pytest.warns(UserWarning, match='in pieces'): reply = chat.ask('x')
            assert (reply.text, reply.reasoning, reply.finish_reason,
                    reply.usage.completion_tokens) == ('Fine: é.', 'Hm.', 'stop', 8)

def test_a_tool_that_nobody_offered_is_malformed():
    call = dict(id='1', type='function', function=dict(name='search', arguments='{}'))
    body = dict(id='1', object='chat.completion', created=1, model='m',
                usage=dict(prompt_tokens=1, completion_tokens=1, total_tokens=2),
                choices=[dict(index=0, finish_reason='tool_calls',
                              message=dict(role='assistant', content=None, tool_calls=[call]))])
    with StubServer(lambda request: dict(raw=json.dumps(body))) as server:
        reply = Chat('m', server.base_url, mode='off').ask('x')
        # once may be a slip
        assert reply.absence is Absence.malformed and "'search'" in reply.detail and len(server.requests) == 2

# --- stopping early

@pytest.mark.parametrize('concurrency', [1, 16])
def test_requests_that_are_all_refused_alike_stop_a_run(concurrency):
    with StubServer(
        lambda request: refuse(f'There is nothing of this sort (request {len(server.requests):08x}).')) as server:
        replies = all_at_once(Chat('m', server.base_url, concurrency=concurrency, mode='off', longest_wait=.05),
                              [str(i) for i in range(200)])
        assert {r.absence for r in replies} == {Absence.transport} and len(server.requests) <= 3*concurrency + 6
        assert 'requests all failed alike' in replies[-1].detail

def test_one_answer_among_refusals_and_the_run_goes_on():
    "Errors come back sooner than answers: those that are awaited count before all is given up."
    def rule(request):
        return dict(content='ok',
                    delay=.5) if request['messages'][0]['content'] == '15' else refuse('There is nothing of this sort.')
    with StubServer(rule) as server:
        replies = all_at_once(Chat('m', server.base_url, concurrency=16, mode='off', longest_wait=.05),
                              [str(i) for i in range(40)])
        assert [r.text for r in replies if r.text] == ['ok'] and len(server.requests) == 39*2 + 1
        assert all('twice' in r.detail for r in replies if not r.text)

def test_nobody_at_that_address_is_said_soon():
    with StubServer(lambda request: 'ok') as server: url = server.base_url
    chat = Chat('m', url, mode='off', longest_wait=.05)
    replies = all_at_once(chat, [str(i) for i in range(200)])
    # within two seconds instead of fifty
    assert {r.absence for r in replies} == {Absence.transport} and chat.stats.requests <= 2*200 + 16
    assert 'does the server run?' in replies[-1].detail

def test_a_key_that_is_missing_is_said_before_anything_is_sent(monkeypatch):
    for name in ('OPENAI_API_KEY', 'OPENAI_BASE_URL', 'FACTLIB_CACHE', 'FACTLIB_GATE'):
        monkeypatch.delenv(name, raising=False)
    for url in (None, 'https://openrouter.ai/api/v1', 'https://mine.openai.azure.com/openai/v1'):
        chat = Chat('m', url, mode='off')
        reply = chat.ask('x')
        assert reply.absence is Absence.transport and 'OPENAI_API_KEY' in reply.detail and chat.stats.requests == 0

@pytest.mark.parametrize('url, instead', [
    ('https://mine.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2024-06-01',
     'https://mine.openai.azure.com/openai/v1'),
    ('https://mine.openai.azure.com', 'https://mine.openai.azure.com/openai/v1'),
    ('https://api.anthropic.com/v1/messages', 'https://api.anthropic.com/v1'),
    ('https://api.anthropic.com', 'https://api.anthropic.com/v1'),
    ('https://generativelanguage.googleapis.com/v1beta/models/gemini:generateContent?key=abc',
     'https://generativelanguage.googleapis.com/v1beta/openai'),
    ('http://localhost:11434/api/chat', 'http://localhost:11434/v1')])
def test_addresses_of_another_protocol_name_the_right_one(url, instead):
    with pytest.raises(BadInput, match='another protocol') as said: Chat('m', url)
    assert f'give {instead} as base_url' in str(said.value) and 'abc' not in str(said.value)
    assert Chat('m', instead).base_url == instead

@pytest.mark.parametrize('words, field', [
    ('temperature参数非法。请检查文档。', 'temperature'), ('Der Parameter "temperature" wird nicht unterstützt.', 'temperature'),
    ('max_tokens参数超出范围，取值范围为[1, 1024]', 'max_tokens'), ('不支持 system 角色', 'system'),
    ("Die Rolle 'system' gibt es hier nicht.", 'system')])
def test_a_refusal_in_another_language_teaches_by_the_name_in_it(words, field):
    def refused(request):
        if field == 'system': return request['messages'][0]['role'] == 'system'
        return request.get(field, -1) > 1024 if field == 'max_tokens' else field in request
    with StubServer(lambda request: refuse(words) if refused(request) else 'ok') as server, pytest.warns(UserWarning):
        chat = Chat('m', server.base_url, mode='off', longest_wait=.01)
        turns = [dict(role='system', content='Be strict.'), dict(role='user', content='x')]
        assert chat.ask(turns).text == 'ok' and len(server.requests) <= 3
        assert chat.ask(turns).text == 'ok' and not refused(server.requests[-1])

def test_a_lesson_that_did_not_help_is_not_kept():
    "The complaint lists fields that are taken, and quotes the text that is judged; only one thing is refused."
    said = ("Supported parameters are: temperature, top_p, max_tokens. 'seed' is not supported. You wrote: 'only a "
            "stream'")
    with StubServer(lambda request: refuse(said) if 'seed' in request
                    else 'ok') as server, pytest.warns(UserWarning) as warned:
        chat = Chat('m', server.base_url, mode='off')
        assert chat.ask('only a stream', seed=7).text == 'ok'
    assert chat.profile == Profile(fields=dict(seed=None))
    assert [str(w.message) for w in warned] == ['asked without seed: m does not take it.']

def test_a_complaint_can_be_written_to_a_file():
    "Half characters and the codes that colour a terminal are struck out."
    with StubServer(lambda request: refuse('no \ud83d \x1b[31m')) as server:
        detail = Chat('m', server.base_url, mode='off', longest_wait=.01).ask('x').detail
    assert detail.encode() and '\x1b' not in detail and 'no \ufffd' in detail

def test_a_key_is_no_field_of_a_request():
    with pytest.raises(BadInput, match='OPENAI_API_KEY'): Chat('m', mode='off', request=dict(api_key='sk-12345678'))

def test_only_a_router_that_says_so_has_nobody():
    def detail(message):
        with StubServer(lambda request: refuse(message, 404)) as server:
            return Chat('m', server.base_url, mode='off', longest_wait=.01).ask('x').detail
    assert 'router' in detail('No endpoints found for m.')
    assert '/v1' in detail('Unexpected endpoint or method. (POST /chat/completions)')

@pytest.mark.parametrize('words', [
    'Request contains an invalid argument.', "Function calling with a response mime type: 'application/json' is unsupported",
    "Invalid JSON payload received. Unknown name \"additionalProperties\" at 'generation_config.response_schema'.",
    'The response schema is too complex for this model.', 'JSON mode is not enabled for this model', 'No.'])
@pytest.mark.parametrize('as_list', [True, False])
def test_forms_that_are_all_refused_in_one_sentence_are_done_without(words, as_list):
    "Twice the same ends a request, but not the learning of what an endpoint can't do."
    schema = dict(type='object', properties=dict(score=dict(type='integer')), required=['score'])
    error = dict(error=dict(code=400, message=words, status='INVALID_ARGUMENT'))
    refused = dict(status=400, body=[error] if as_list else error)
    with StubServer(lambda r: refused if 'response_format' in r else '{"score": 3}') as server:
        chat = Chat('m', server.base_url, mode='off', longest_wait=.01)
        with pytest.warns(UserWarning, match='a schema in words'): replies = all_at_once(chat, 'abcdef', schema=schema)
        assert [r.data for r in replies] == [dict(score=3)]*6 and len(server.requests) <= 6 + 4
