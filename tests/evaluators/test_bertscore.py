"Greedy matching with marks, by pairs written out. The models themselves are tested in tests/nli."
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from factlib.core.records import BadInput, Example
from factlib.evaluators.base import evaluate, get
from factlib.evaluators.bertscore import BERTScore, TokenVectors, bert_match

@settings(max_examples=100, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 10_000))
def test_each_token_that_counts_takes_its_nearest(n, m, seed):
    rng = np.random.default_rng(seed)
    def some(k):
        rows, counts = rng.normal(size=(k, 4)), rng.random(k) < .6
        counts[rng.integers(k)] = True
        return TokenVectors(rows/np.linalg.norm(rows, axis=1, keepdims=True), counts)
    a, b = some(n), some(m)
    cosine = lambda x, y: sum(p*q for p, q in zip(x, y))
    nearest = lambda ours, theirs: np.mean([max(cosine(x, y) for y in theirs.vectors)
                                            for x, counted in zip(ours.vectors, ours.counts) if counted])
    found, p, r = bert_match(a, b), nearest(a, b), nearest(b, a)
    assert (found['precision'], found['recall']) == pytest.approx((p, r))
    assert found['f'] == (pytest.approx(2*p*r/(p + r)) if min(p, r) > 0 else 'inapplicable')

def test_too_long_says_which_text():
    vectors = lambda text: TokenVectors(None if len(text) > 9 else np.eye(2),
                                        np.ones(2, bool), 0. if len(text) > 9 else 1., 2)
    row = evaluate(BERTScore(vectors), [Example('x', source='a long source', target='short')], progress=False).iloc[0]
    assert row.absence == 'too_long' and row.evidence['why'] == 'the source does not fit the model'
    assert row.evidence['read'] == dict(target=1, source=0)

def test_options():
    with pytest.raises(BadInput, match="`against` is 'question'"): BERTScore(str.split, against='question')
    if find_spec('torch') is None: # the paper's model is taken, and can't be loaded
        with pytest.raises(BadInput, match="pip install 'factlib\[nli\]'"): get('bertscore')
