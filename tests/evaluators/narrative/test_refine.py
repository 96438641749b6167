"Summaries and their refinement against a server that answers by rule, and TextRank against networkx."
import math
import random

import numpy as np
import pytest

from narrative_server import prompt, rule, spoiled, task

from factlib.core.loop import run_sync
from factlib.core.records import BadInput, Example
from factlib.evaluators.narrative.narrativefactscore import NarrativeFactScore
from factlib.evaluators.narrative.refine import Refinement, refine
from factlib.evaluators.narrative.summarise import Summariser, ranks, sentence_ties, summarise, textrank
from factlib.text.spans import sentences
from factlib.text.words import stems
from factlib.llm.chat import Chat
from factlib.llm.costs import dry_run
from factlib.llm.stub import StubServer
from factlib.text.edits import revert_edits

TALE = ("Bob, Ann's brother, has a ship. They live in Hull, and nobody else does.\n\n"
        'At the harbour Ann met Cy. Bob was late. Ann was glad to see Bob.\n\nIt rained.')
TRUE = 'Bob was late.'
FALSE = ['Cy met Bob.', 'Bob met Ann in Hull.', 'Cy has a ship.', 'A dragon came.']

def chat_to(server): return Chat('stub', server.base_url, api_key='none', endpoint='test', mode='off')

def test_three_rounds_by_hand():
    "Every round leaves out the first faulty sentence: 1/5, 1/4, 1/3, 1/2."
    example = Example('it', source=TALE, target=' '.join([TRUE, *FALSE]))
    with StubServer(rule) as server:
        chat = chat_to(server)
        refinement = Refinement(NarrativeFactScore(chat, graph=None, size=20), chat)
        planned = dry_run(refinement, [example]).total.requests
        versions = run_sync(refinement(example))
    assert [v.judgement.value for v in versions] == [1/5, 1/4, 1/3, 1/2]
    assert versions[0].text == example.target and versions[0].edits == () and versions[3].text == f'{TRUE} {FALSE[3]}'
    for before, after in zip(versions, versions[1:]): assert revert_edits(after.text, after.edits) == before.text
    assert len(server.requests) <= planned
    first = next(prompt(r) for r in server.requests if task(r) == 'revise')
    assert '- Cy met Bob. (reason: Not told: Cy met Bob.)' in first and 'At the harbour Ann met Cy.' in first
    assert '- Bob was late.' not in first

def test_requests_are_the_plan_where_every_round_is_needed():
    example = Example('it', source=TALE, target='Cy was glad.')
    friends = iter(['Dora', 'Ann', 'Bob'])
    with StubServer(spoiled(revise=lambda request, reply: f'Cy was glad to see {next(friends)}.')) as server:
        chat = chat_to(server)
        refinement = Refinement(NarrativeFactScore(chat, size=20), chat)
        planned = dry_run(refinement, [example]).total.requests
        versions = run_sync(refinement(example))
    assert len(versions) == 4 and len(server.requests) == planned == 9 + 2 + 3*(1 + 2) # the graph once

def test_it_stops_when_the_judge_is_content():
    example = Example('it', source=TALE, target=f'{TRUE} {FALSE[0]}')
    with StubServer(rule) as server:
        chat = chat_to(server)
        judge = NarrativeFactScore(chat, graph=None, size=20)
        assert len(run_sync(refine(example, judge, chat, stop=.5))) == 1
        assert [v.judgement.value for v in run_sync(refine(example, judge, chat))] == [.5, 1]
        assert len(run_sync(refine(example, judge, chat, rounds=0))) == 1

def test_a_judge_without_a_score_ends_it():
    example = Example('it', source=TALE, target=TRUE)
    with StubServer(spoiled(check=lambda request, reply: 'Well.')) as server:
        chat = chat_to(server)
        versions = run_sync(refine(example, NarrativeFactScore(chat, graph=None, size=20), chat))
    assert len(versions) == 1 and versions[0].judgement.absence == 'malformed'

@pytest.mark.parametrize('reply', ['{"facts": []}', 'null', '[]', '1', ' ', '<think>hm</think>', '[' * 5000])
def test_a_revision_that_is_no_text_keeps_the_text(reply):
    with StubServer(spoiled(revise=lambda request, honest: reply)) as server:
        chat = Chat('stub', server.base_url, api_key='none', endpoint='test', mode='off')
        judge = NarrativeFactScore(chat, size=20)
        versions = run_sync(refine(Example('r', source=TALE, target=f'{FALSE[3]} {TRUE}'), judge, chat))
    assert len(versions) == 2 and versions[1].text == versions[0].text and versions[1].absence

def test_a_judge_must_be_one():
    with pytest.raises(BadInput, match='method `judge`'): Refinement('nfs')

def test_summaries_cut_and_said():
    with StubServer(rule) as server:
        chat = chat_to(server)
        whole = run_sync(summarise(TALE, chat, size=20))
        cut = run_sync(summarise(TALE, chat, size=20, cut=20))
        assert len(server.requests) == 2 + 1
    assert whole.text == "Bob, Ann's brother, has a ship.\n\nAt the harbour Ann met Cy." and whole.read == 1
    assert len(whole.chunks) == 2
    assert cut.text == "Bob, Ann's brother, has a ship." and cut.read == 19/(19 + 17 + 3)
    with pytest.raises(BadInput, match='no text'): run_sync(summarise(' ', chat))
    with pytest.raises(BadInput, match='`merge`'): Summariser(chat, merge='all')

def test_textrank_is_pagerank():
    import networkx as nx
    rng = random.Random(5)
    words = 'fox hen ship rain harbour king queen letter knife garden river road'.split()
    texts = [' '.join(rng.choices(words, k=rng.randrange(1, 7))) for _ in range(30)] + ['the', 'moon']
    ties = sentence_ties(texts)
    table = (ties @ np.eye(len(texts))).round(12)
    for i, a in enumerate(texts): # the definition, pair by pair
        for j, b in enumerate(texts):
            a_has, b_has = set(stems(a)), set(stems(b))
            tied = i != j and a_has & b_has and len(a_has)*len(b_has) > 1
            assert table[i, j] == pytest.approx(len(a_has & b_has)/math.log(len(a_has)*len(b_has)) if tied else 0,
                                                abs=1e-9)
    graph = nx.from_numpy_array(table)
    expected = nx.pagerank(graph, alpha=.85, tol=1e-12, max_iter=1000)
    assert ranks(ties) == pytest.approx([expected[i] for i in range(len(texts))], abs=1e-7)

def test_textrank_takes_any_text():
    for text in ['', ' ', 'x'*10_000, '\ud800. \ud800.', '...', 'a. b. c. d.', '犬が猫を追う。猫が逃げた。犬が走った。']:
        assert len(textrank(text, 2)) <= 2
    with pytest.raises(BadInput): textrank('a', -1)

def test_textrank_of_one_sentence_over_and_over():
    "20,000 sentences have 200 million ties, which would not fit into memory."
    text = 'The old house fell.\n'*20_000
    assert [s.start for s in textrank(text, 2)] == [s.start for s in sentences(text)[:2]]

@pytest.mark.slow
def test_textrank_of_a_book_is_small():
    "100,000 tokens of English prose, in a process of its own; 400 MB."
    import subprocess, sys, os
    if not os.environ.get('FACTLIB_DATA'): pytest.skip('FACTLIB_DATA is not set')
    out = subprocess.run([sys.executable, '-c', BOOK], capture_output=True, text=True, check=True).stdout.split()
    assert int(out[0]) < 400 # megabytes

BOOK = '''
import os, resource
from factlib.core.files import data_file
import pyarrow.parquet as pq
texts = dict.fromkeys(pq.ParquetFile(data_file('judgememo/documents.parquet')).read_row_group(0, columns=['text'])['text'].to_pylist())
text = ' '.join('\\n\\n'.join(texts).split(' ')[:62_000])
from factlib.evaluators.narrative.summarise import textrank
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(textrank(text, 20)) == 20
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base)//1024, len(text)//4)
'''
