"""NarrativeFactScore's Table 7 of a few judgements, worked out by hand."""
import pandas as pd
import pytest

from factlib.papers.narrativefactscore.printed import table_7

def cost(evaluator, dataset, requests, cached, tokens, seconds, absence=None):
    return dict(evaluator=evaluator, dataset=dataset, benchmark=dataset, requests=requests, cached=cached,
                prompt_tokens=tokens, seconds=seconds, absence=absence)

def test_minutes_requests_and_tokens_of_two_draws():
    """Of three summaries one is refused after a request, and one was partly answered before; of two graphs one breaks
    off. Another draw has a summary and a graph of its own."""
    first, second = (f'storysumm, seed {seed}' for seed in (0, 1))
    judged = pd.DataFrame([
        cost('narrativefactscore, shy', first, 4, 0, 1000, 120),
        cost('narrativefactscore, shy', first, 6, 2, 2000, 3),
        cost('narrativefactscore, shy', first, 1, 0, 300, 600, 'refused'),
        cost('narrativefactscore, shy', second, 9, 0, 900, 60),
        cost('factscore, shy', second, 1, 0, 300, 60, 'refused'),
        cost('longdocfactscore', first, 0, 0, 0, 6)])
    graphs = pd.DataFrame([
        cost('graph, shy', first, 10, 0, 5000, 240), cost('graph, shy', first, 2, 0, 800, 12, 'refused'),
        cost('graph, shy', second, 20, 20, 7000, 0), cost('graph', first, 0, 0, 0, 30)])
    none = pd.DataFrame(columns=['dataset', 'evaluator'])
    table = table_7(judged, graphs, none).fillna(dict(model=''))
    table = table[table.asked.notna()].set_index(['data', 'model', 'evaluator', 'what'])
    row = lambda seed, *key: [None if pd.isna(x) else x for x in
                              table.loc[(f'StorySumm, seed {seed}', *key), ['here', 'asked', 'scored']]]
    nfs = ('shy', 'NFS')
    assert row(0, *nfs, 'factuality') == [2, 3, 1] # 120 seconds
    assert row(0, *nfs, 'factuality, requests') == [5, 3, 2]
    assert row(0, *nfs, 'factuality, prompt tokens') == [1500, 3, 2]
    assert row(0, *nfs, 'graph') == [4, 2, 1]
    assert row(0, *nfs, 'graph, requests') == [10, 2, 1]
    assert row(0, *nfs, 'graph, prompt tokens') == [5000, 2, 1]
    assert row(1, *nfs, 'factuality, requests') == [9, 1, 1] and row(1, *nfs, 'factuality') == [1, 1, 1]
    assert row(1, *nfs, 'graph') == [None, 1, 0] # all of it was there already
    assert row(1, *nfs, 'graph, requests') == [20, 1, 1]
    assert row(1, 'shy', 'FActScore', 'factuality') == [None, 1, 0]
    assert ('StorySumm, seed 1', 'shy', 'FActScore', 'factuality, requests') not in table.index
    assert row(0, '', 'LongDocFACTScore', 'factuality') == [pytest.approx(.1), 1, 1]
