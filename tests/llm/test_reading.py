"A prompt that the server cut has no score, at any size of context; odd but honest counts take none away."
import base64
import json
import random
import warnings

import pytest

from factlib.core.records import Absence, Example
from factlib.evaluators.base import evaluate
from factlib.evaluators.judge import FluencyCoherence
from factlib.llm.chat import Chat
from factlib.llm.reading import Readings, cut_prompts
from factlib.llm.stub import StubServer

WORDS = ('mara planted the pear tree behind mill in spring it bore white flowers her brother tom built a fence around '
         'garden and river was cold while dog slept under bridge').split()
REPLY = json.dumps(dict(reason='Fine.', fluency=4, coherence=3))

@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ('OPENAI_API_KEY', 'OPENAI_BASE_URL', 'FACTLIB_CACHE'): monkeypatch.delenv(name, raising=False)

def story(seed, length):
    "Sentences of some length in characters."
    chance, sentences, n = random.Random(seed), [], 0
    while n < length:
        words = ' '.join(chance.choice(WORDS) for _ in range(chance.randint(6, 16)))
        sentences.append(words.capitalize() + '.')
        n += len(sentences[-1]) + 1
    return ' '.join(sentences)

def prompt_of(request): return '\n'.join(message['content'] for message in request['messages'])
def tokens_of(text): return int(len(text)/4.3)

CUTS = { # context, reply limit, tokens of a prompt, its length -> tokens that are read
    'to the context': lambda context, limit, tokens, n: min(tokens, context),
    'to what the reply leaves': lambda context, limit, tokens, n: min(tokens, context - limit),
    'to half of the context': lambda context, limit, tokens, n: tokens if tokens <= context else context//2,
    'to a count just below': lambda context, limit, tokens, n: tokens if tokens <= context else context - n % 23,
}

class Context:
    "A rule for a `StubServer` with a context, which cuts longer prompts silently."
    def __init__(self, context, how='to the context'): self.context, self.how, self.cut = context, CUTS[how], 0

    def __call__(self, request):
        text = prompt_of(request)
        tokens = tokens_of(text)
        read = self.how(self.context, request['max_tokens'], tokens, len(text))
        self.cut += read < tokens
        return dict(content=REPLY, usage=dict(prompt_tokens=read, completion_tokens=9, total_tokens=read + 9))

def examples(context, shares=(.3, .6, 1.35, 2, 2.7, 3.5)):
    "Texts that take such shares of the context beside a template of some 2,500 characters."
    lengths = [max(int(4.3*context*share) - 2500, 100) for share in shares]
    return [Example(str(i), target=story(i, n)) for i, n in enumerate(lengths)]

def judged(chat, texts): return evaluate(FluencyCoherence(chat, max_tokens=500), texts, progress=False)

@pytest.mark.parametrize('how', CUTS)
@pytest.mark.parametrize('context', [2048, 16_384])
def test_a_cut_prompt_has_no_score_at_any_size_of_context(how, context):
    rule = Context(context, how)
    with StubServer(rule) as server, warnings.catch_warnings():
        warnings.simplefilter('ignore')
        chat = Chat('m', server.base_url, mode='off')
        frame = judged(chat, examples(context))
    assert frame.absence.tolist() == [None]*2 + ['too_long']*4, frame.prompt_tokens.tolist()
    assert frame.value.notna().tolist() == [True]*2 + [False]*4 and set(frame.fluency_absence[2:]) == {'too_long'}
    assert all('The server cut the prompt' in e['detail'] for e in frame.evidence[2:])
    read = 1 - frame.unread_bytes/frame.prompt_bytes
    assert all(read[:2] == 1) and all(read[2:] < .8)
    assert chat.profile.cuts and .45*context <= chat.profile.context <= context

@pytest.mark.parametrize('context', [512, 1024])
def test_a_context_that_the_template_nearly_fills(context):
    "The template alone takes some 500 tokens, so all texts are cut where the context is 512."
    lengths = (200, 900, 4000, 9000, 20_000)
    with StubServer(Context(context)) as server, warnings.catch_warnings():
        warnings.simplefilter('ignore')
        frame = judged(Chat('m', server.base_url, mode='off'), [Example(str(n), target=story(n, n)) for n in lengths])
        cut = [tokens_of(prompt_of(r)) > context for r in server.requests]
    assert (frame.absence == 'too_long').sum() == sum(cut) >= 3

def test_one_long_text_among_short_ones_is_seen_by_its_few_tokens():
    with StubServer(Context(4096)) as server, warnings.catch_warnings():
        warnings.simplefilter('ignore')
        frame = judged(Chat('m', server.base_url, mode='off'), examples(4096, (.3, .4, .5, .6, 2.5)))
    assert frame.absence.tolist() == [None]*4 + ['too_long']
    assert .35 < frame.evidence[4]['share_read'] < .45 # 1 / 2.5

def test_a_rerun_does_not_score_a_cut_prompt_from_the_cache_and_a_larger_context_heals_it(tmp_path):
    texts, rule = examples(4096), Context(4096)
    def chat(mode='live'): return Chat('m', server.base_url, endpoint='e', cache=tmp_path/'a.sqlite', mode=mode)
    with StubServer(rule) as server, warnings.catch_warnings():
        warnings.simplefilter('ignore')
        assert (judged(chat(), texts).absence == 'too_long').sum() == 4
        asked = len(server.requests)
        # without the others there is nothing to compare it with
        again = judged(chat(), texts[:3])
        assert again.absence.tolist() == [None, None, 'too_long'] and len(server.requests) == asked + 1
        replayed = judged(chat('replay'), texts)
        assert replayed.absence.tolist() == [None]*2 + ['too_long']*4
        rule.context = 131_072
        asked = len(server.requests)
        healed = judged(chat(), texts)
        assert healed.absence.isna().all() and len(server.requests) == asked + 4 and not healed.unread_bytes.any()
        assert judged(chat('replay'), texts).absence.isna().all()

def test_what_is_known_beforehand_counts():
    with StubServer(Context(4096)) as server:
        known = Chat('m', server.base_url, mode='off', profile=dict(context=4096, cuts=True))
        reply = known.ask(story(1, 40_000), max_tokens=100)
        assert reply.absence is Absence.too_long and server.requests[0]['max_tokens'] == 100
        assert known.ask(story(2, 900)).absence is None

# --- odd but honest

def chinese(seed, n):
    chance = random.Random(seed)
    return ''.join(chr(chance.randrange(0x4e00, 0x5fff)) for _ in range(n))

def honest(texts, count, **more):
    "The cuts that are seen in prompts with such counts."
    readings = Readings()
    for i, text in enumerate(texts): readings.add(str(i), text, count(i, text), 2048, **more)
    readings.look()
    return readings.cuts

STORIES = [story(i, 2000 + 3000*i) for i in range(8)]

def test_counts_that_are_odd_but_honest_take_no_score_away():
    def by_four(i, text): return len(text)//4
    assert not honest(STORIES, by_four) and not honest(STORIES*3, by_four) # equal prompts
    assert not honest(STORIES, lambda i, text: 0)                          # nothing is counted
    assert not honest(STORIES, lambda i, text: 1) and not honest(STORIES, lambda i, text: 120)
    assert not honest(STORIES, lambda i, text: -(-len(text)//4//128)*128)  # rounded up
    assert not honest([s[:1500 + 40*i] for i, s in enumerate(STORIES)], lambda i, text: -(-len(text)//4//256)*256)
    # a template of the server's own
    assert not honest([story(i, 300 + 2000*i) for i in range(6)], lambda i, text: 400 + len(text)//4)

def test_scripts_are_not_held_against_each_other():
    english = [(story(i, 4000), 1000) for i in range(3)]
    mixed = [*english, (chinese(1, 1000), 1000), (base64.b64encode(random.Random(1).randbytes(1500)).decode(), 1000),
             ('def f(x):\n    return {x: [y for y in range(x)]}\n'*40, 1000), (STORIES[5].upper(), 9000)]
    assert not honest([text for text, _ in mixed], lambda i, text: mixed[i][1])
    # damaged words take twice the tokens
    texts = [story(i, 3000 + 500*i) for i in range(6)]
    assert not honest(texts, lambda i, text: len(text)//(4 if i % 2 else 2))

def test_a_beginning_that_the_server_had_in_store_and_does_not_count():
    "Each source is asked about several times. Only what is new is counted, as older servers do."
    sources = [story(i, 20_000 + 9000*i) for i in range(3)]
    prompts = [f'{source}\n\nQuestion {q}: {story(q, 1200)}' for source in sources for q in range(4)]
    assert not honest(prompts, lambda i, text: len(text)//4 if i % 4 == 0 else 300)
    assert not honest(prompts, lambda i, text: len(text)//4 if i % 4 == 0 else 280 + i)
    # said to be apart
    assert not honest(sources, lambda i, text: 300, apart=True)

def test_runs_and_white_space_take_few_tokens():
    texts = [f'{STORIES[i]}\n' + '-'*4000*i + ' '*9000*i for i in range(6)]
    assert not honest(texts, lambda i, text: len(STORIES[i])//4 + 2*i)

def test_two_long_prompts_that_agree_by_chance():
    texts = [story(i, n) for i, n in enumerate((3000, 5000, 9000, 9100))]
    counts = [700, 1160, 2093, 2093] # 4.3 characters to a token, and 1 % of chance
    assert not honest(texts, lambda i, text: counts[i])

def test_the_evidence_may_be_refuted():
    "Two agree, but a longer one is read whole."
    texts = [story(i, n) for i, n in enumerate((3000, 9000, 12_000, 15_000))]
    readings = Readings()
    for i, tokens in enumerate((700, 2000, 2000)): readings.add(str(i), texts[i], tokens, 2048)
    readings.look()
    assert set(readings.cuts) == {'1', '2'}
    readings.add('3', texts[3], 3500, 2048)
    readings.look()
    assert not readings.cuts

def test_no_readings_no_cuts():
    assert cut_prompts([]) == ({}, {}) and Readings().context is None

def test_usage_says_the_bytes_of_a_prompt(tmp_path):
    with StubServer(lambda request: 'ok') as server:
        chat = Chat('m', server.base_url, cache=tmp_path/'a.sqlite')
        for _ in range(2): # sent, and from the cache
            assert chat.ask('Größe: 5').usage.prompt_bytes == 10 # two letters of two bytes
        images = [dict(role='user', content=[dict(type='text', text='x')])]
        assert chat.ask(images).usage.prompt_bytes == 0

def test_an_older_record_of_usage_is_read():
    from factlib.core.records import Usage
    assert Usage.from_dict(dict(requests=1, prompt_tokens=5)).prompt_bytes == 0
    assert (Usage(prompt_bytes=3) + Usage(prompt_bytes=4, unread_bytes=2)) == Usage(prompt_bytes=7, unread_bytes=2)
    assert json.dumps(Usage().to_dict())
