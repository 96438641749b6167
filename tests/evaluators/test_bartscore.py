"Mean logarithms against scipy's. The models themselves are tested in tests/nli."
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import log_softmax

from factlib.core.records import BadInput, Example
from factlib.evaluators.bartscore import BARTScore, Likelihood, mean_log_likelihood
from factlib.evaluators.base import evaluate

@settings(max_examples=100, deadline=None)
@given(st.integers(1, 8), st.integers(2, 9), st.integers(0, 10_000), st.sampled_from([1e-3, 1, 50, 1e4]))
def test_the_mean_of_log_softmax(n, vocabulary, seed, scale):
    rng = np.random.default_rng(seed)
    logits, tokens = (rng.normal(size=(n, vocabulary))*scale).astype(np.float32), rng.integers(vocabulary, size=n)
    expected = log_softmax(logits.astype(float), axis=1)[np.arange(n), tokens].mean()
    assert mean_log_likelihood(logits, tokens) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert mean_log_likelihood(logits, tokens) <= 0

def test_too_long_says_which_text_and_a_cut_one_its_share():
    example = Example('x', source='a', target='b')
    judged = [evaluate(BARTScore(lambda pairs: [found]), [example], progress=False).iloc[0]
              for found in (Likelihood(None, 9, 9, .5, .5), Likelihood(-2., 9, 9, 1., .5), Likelihood(None, 0, 9))]
    assert judged[0].absence == 'too_long'
    assert judged[0].evidence['why'] == 'more tokens than the model takes: the target and the source'
    assert judged[1].value == -2 and judged[1].evidence['read'] == dict(target=1, source=.5)
    assert judged[2].absence == 'inapplicable'
    with pytest.raises(BadInput, match='`against`'): BARTScore(str.split, against='history')
