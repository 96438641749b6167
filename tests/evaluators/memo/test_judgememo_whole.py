"A memory that lost a section, a text without a sentence, and a plan near the context's end."
from dataclasses import replace

import pytest

from factlib.core.loop import run_sync
from factlib.core.records import BadInput, Example
from factlib.evaluators.memo.judgememo import JudgeMemo
from factlib.evaluators.memo.scan import scan
from factlib.llm.chat import Chat
from factlib.llm.costs import dry_run
from factlib.llm.stub import StubServer
from factlib.text.spans import token_counter

STORY = ' '.join(f'The fox went to house number {i} and found nobody there.' for i in range(60))

def rule(request):
    return '{"reason": "x", "fluency": 4, "coherence": 4}' if '<report>' in request[
        'messages'][-1]['content'] else 'FINAL Fluency Score: 4\nFINAL Coherence Score: 4'

def judge(server, *args, **options):
    return JudgeMemo(Chat('m', server.base_url, api_key='none', mode='off'), *args, **options)

@pytest.mark.parametrize('lost', [0, 1, -1])
def test_a_section_that_was_deleted_is_missed(lost):
    text = Example('a', target=STORY)
    with StubServer(rule) as server:
        for mode in ('aggregate', 'report_only'):
            reader = judge(server, mode, size=120)
            memory, _ = run_sync(reader.read(text))
            assert len(memory.notes) > 3
            assert run_sync(reader.conclude(text, memory)).value is not None
            notes = list(memory.notes)
            del notes[lost]
            with pytest.raises(BadInput, match='lacks section'):
                run_sync(reader.conclude(text, replace(memory, notes=tuple(notes))))

@pytest.mark.parametrize('text', ['fox hen ' * 30_000, 'x' * 200_000, '狐' * 60_000], ids=['words', 'letters', 'signs'])
def test_no_sentence_is_no_section_of_any_size(text):
    count = token_counter('characters')
    pieces = scan(text, 2000, counter='characters')
    assert all(count(p.of(text)) <= 2000 for p in pieces)
    assert ''.join(p.of(text) for p in pieces).replace(' ', '') == text.replace(' ', '')
    assert len(scan('fox ' * 2000, 2000, counter='characters')) == 1 # four times the size: a long sentence

@pytest.mark.parametrize('context', range(2300, 3700, 200))
def test_never_more_is_sent_than_planned(context):
    text = Example('a', target=STORY)
    with StubServer(rule) as server:
        for mode in ('report_only', 'report_summary'):
            reader, before = judge(server, mode, size=60, context=context), len(server.requests)
            planned = dry_run(reader, [text]).total.requests
            run_sync(reader.judge(text))
            assert len(server.requests) - before <= planned

def test_llamas_tokens():
    try: import llama_models.llama3.tokenizer # noqa: F401
    except ImportError:
        with pytest.raises(BadInput, match='pip install llama-models'): token_counter('llama3')
    else: assert token_counter('llama3')('A fox went home.') == 5
