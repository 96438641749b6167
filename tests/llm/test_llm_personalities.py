"""Eight judges at servers of every temper: the same score as from an able one, for a few requests more.
Where no judge can be had, one true sentence says why."""
import asyncio
import json
import re
from types import SimpleNamespace

import pytest

from factlib.core.loop import run_sync
from factlib.core.records import Example
from factlib.evaluators.base import evaluate
from factlib.llm.chat import Chat
from factlib.llm.stub import StubServer
from factlib.runs.judging import judges_for
from llm.personalities import PERSONALITIES, brain, schema_in

JUDGES = ('faithfulness', 'consistency', 'factscore', 'dovescore', 'vista', 'narrativefactscore',
          'factual_correctness', 'judgememo_report_only')
EXAMPLE = Example(id='e', source='Anna met Ben in Rome. They had coffee.', target='Anna met Ben. They had tea.',
                  reference='Anna met Ben in Rome.',
                  question='Whom did Anna meet?', group='g')
SCORE = dict(type='object', properties=dict(score=dict(type='integer', minimum=1, maximum=5)), required=['score'],
             additionalProperties=False)
CHATTY = [name for name, chosen in PERSONALITIES.items() if chosen.can_chat]
SILENT = [name for name, chosen in PERSONALITIES.items() if not chosen.can_chat]

@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ('OPENAI_API_KEY', 'OPENAI_BASE_URL', 'FACTLIB_CACHE'): monkeypatch.delenv(name, raising=False)

@pytest.fixture(scope='module')
def server():
    "One server, which takes on a personality after the other."
    with StubServer(brain) as server: yield server

def meet(server, name):
    "Give the server a personality, anew. What it is asked from now on, what of it was refused, and its base URL."
    chosen, seen = PERSONALITIES[name], SimpleNamespace(requests=[], refused=0)
    rule = chosen.rule(brain)
    def watched(request):
        seen.requests.append(request)
        reply = rule(request)
        seen.refused += isinstance(reply, dict) and 'status' in reply
        return reply
    server.rule, server.elsewhere = watched, chosen.elsewhere
    seen.chosen, seen.base_url = chosen, chosen.address(server)
    return seen

def judged(seen, judge):
    "A judge's row on the example. One request at a time, so that what is to be learnt is heard once."
    chat = Chat('m', seen.base_url, concurrency=1, longest_wait=.01)
    return evaluate(judges_for(judge, chat=chat)[0], [EXAMPLE], progress=False).iloc[0]

COSTS = ('evidence', 'requests', 'cached', 'prompt_tokens', 'completion_tokens', 'seconds', 'uncounted', 'profile')

def score(row): return {name: row[name] for name in row.index if name not in COSTS}

@pytest.fixture(scope='module')
def able(server):
    "Judge -> score and number of requests, at the server that can do all."
    known = {}
    def of(judge):
        if judge not in known:
            seen = meet(server, 'able')
            known[judge] = score(judged(seen, judge)), len(seen.requests)
        return known[judge]
    return of

def check_kept(seen):
    "What a caller asks for is still sent though something else had to change: in the last request as in the first."
    for name in seen.chosen.kept: assert seen.requests[-1].get(name) == seen.requests[0][name], name

# --- the brain

def test_the_brain_finds_a_schema_in_words():
    form = f'one JSON value that fits this JSON schema:\n{json.dumps(SCORE, indent=1)}\nand with nothing else.'
    words = f'Judge {{"score": 3}}.\n\nAnswer with {form}'
    assert schema_in(words) == SCORE and schema_in('No {schema} here: {"score": 3}') is None
    in_words = dict(messages=[dict(role='user', content=words)])
    as_field = dict(messages=[dict(role='user', content='Judge.')],
                    response_format=dict(type='json_schema', json_schema=dict(schema=SCORE)))
    assert brain(in_words) == brain(as_field) == '{"score": 3}'

def test_every_personality_says_what_it_is():
    assert len(PERSONALITIES) >= 35
    for chosen in PERSONALITIES.values():
        assert chosen.about and chosen.source and bool(chosen.sentence) != chosen.can_chat

# --- who can chat

@pytest.mark.parametrize('judge', JUDGES)
@pytest.mark.parametrize('name', CHATTY)
def test_a_judge_gives_the_score_that_an_able_server_gives(server, able, name, judge):
    expected, requests = able(judge)
    assert expected['absence'] is None and expected['value'] is not None
    seen = meet(server, name)
    row = judged(seen, judge)
    assert score(row) == expected, row.evidence
    assert len(seen.requests) <= requests + (6 if seen.chosen.thinks else 3)

def ask_all(chat, prompts, **options):
    async def go(): return await asyncio.gather(*[chat(messages(prompt), schema=SCORE, max_tokens=4096,
                                                       **options) for prompt in prompts])
    return run_sync(go())

def messages(prompt): return [dict(role='system', content='You judge texts.'), dict(role='user', content=prompt)]

@pytest.mark.parametrize('name', [name for name in CHATTY if PERSONALITIES[name].fields])
def test_a_field_that_a_server_lacks_is_done_without(server, name):
    seen = meet(server, name)
    options = dict(max_tokens=4096) | dict(seen.chosen.fields)
    reply = Chat('m', seen.base_url, longest_wait=.01).ask(messages('Score it.'), schema=SCORE, **options)
    assert reply.data == dict(score=3), reply.detail
    assert len(seen.requests) <= 4
    check_kept(seen)

def test_nothing_is_learnt_from_one_odd_refusal(server):
    "A refusal that the very same request doesn't meet again says nothing of the server."
    seen = meet(server, 'one_odd_refusal')
    chat = Chat('m', seen.base_url, longest_wait=.01)
    assert all(chat.ask(messages(f'Score text {i}.'), schema=SCORE).data == dict(score=3) for i in range(6))
    assert len(seen.requests) <= 9 and all(request['temperature'] == 0 for request in seen.requests[-4:])

CROWDED = ('able', 'gpt5', 'claude_without_temperature', 'gemma_on_vllm', 'output_of_openai', 'context_of_vllm',
           'deepseek', 'mistral_fields', 'stream_only', 'long_thought')

@pytest.mark.parametrize('name', CROWDED)
def test_256_requests_at_once_learn_each_thing_once(server, name):
    "All that are under way when it is first heard may hear it themselves; who comes later never does."
    seen = meet(server, name)
    chat = Chat('m', seen.base_url, concurrency=256, transport='lean', longest_wait=.01)
    fields = {name: value for name, value in seen.chosen.fields}
    replies = ask_all(chat, [f'Score text {i}.' for i in range(256)], **fields)
    assert [r.data for r in replies] == [dict(score=3)]*256, next(r.detail for r in replies if r.absence)
    assert len(seen.requests) <= 256*(1 + seen.chosen.things) + 8
    heard, refused = len(seen.requests), seen.refused
    replies = ask_all(chat, [f'Score text {i}.' for i in range(256, 512)], **fields)
    assert [r.data for r in replies] == [dict(score=3)]*256
    assert (len(seen.requests) - heard, seen.refused - refused) == (256, 0)

# --- who can't

@pytest.mark.parametrize('name', SILENT)
def test_no_judge_can_be_had_and_one_sentence_says_why(server, name):
    seen = meet(server, name)
    row = judged(seen, 'consistency')
    assert row.value is None or row.value != row.value
    assert row.absence is not None
    reply = Chat('m', seen.base_url, longest_wait=.01).ask(messages('Score it.'), schema=SCORE)
    assert reply.absence is not None and reply.data is None
    assert re.search(seen.chosen.sentence, reply.detail), reply.detail
    assert '\n' not in reply.detail and len(reply.detail) < 700
    assert re.search(seen.chosen.sentence, str(row.evidence)), row.evidence
