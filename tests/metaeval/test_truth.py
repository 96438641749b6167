"What can be predicted of a summary from the others."
import os

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from factlib.benchmarks.base import load
from factlib.core.records import BadInput, Example
from factlib.metaeval.truth import left_out_means

TRUTHS = st.lists(st.tuples(st.sampled_from('ab'), st.sampled_from('pq'), st.one_of(st.none(), st.floats(-9, 9))),
                  max_size=12)

@given(TRUTHS)
@settings(max_examples=100, deadline=None)
def test_means_of_the_others(rows):
    examples = [Example(str(i), target='x', truth=t, group=g, meta=dict(model=m)) for i, (g, m, t) in enumerate(rows)]
    table = left_out_means(examples)
    for i, (g, m, _) in enumerate(rows):
        others = [[t for j, (g2, _, t) in enumerate(rows) if j != i and t is not None and g2 == g],
                  [t for j, (_, m2, t) in enumerate(rows) if j != i and t is not None and m2 == m]]
        if all(others): assert abs(table.value[i] - sum(map(np.mean, others))) < 1e-9
        else: assert np.isnan(table.value[i])

def test_wrong_truths_and_keys():
    for examples, keys in [([Example('a', target='x', truth='yes')], ('group',)),
                           ([Example('a', target='x', truth=True)], ('group',)),
                           ([Example('a', target='x', truth=1)], ('model',))]:
        with pytest.raises(BadInput): left_out_means(examples, keys)
    assert left_out_means([]).empty

@pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'), reason='FACTLIB_DATA is not set: FABLES is not here')
def test_fables():
    "The figures of an independent computation."
    from scipy.stats import kendalltau, spearmanr
    table = left_out_means(load('fables').examples)
    assert round(spearmanr(table.value, table.truth)[0], 3) == .454
    assert round(kendalltau(table.value, table.truth)[0], 3) == .320
