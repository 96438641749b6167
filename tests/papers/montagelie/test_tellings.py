"The tellings beside their lies: what is kept is what would be said now, and no half of a pair comes from another text."
import os

import numpy as np
import pandas as pd
import pytest
from factlib.benchmarks.base import load
from factlib.core.records import BadInput, Example
from factlib.evaluators import kept
from factlib.evaluators.kept import score_rows, scores
from factlib.papers.montagelie.tellings import KEPT, kinds_of, told_late, true_ahead, unsaid

def texts(name, **how): return [e for part in kinds_of(load(name, **how)).values() for e in part]

def judged_anew(monkeypatch, examples):
    "Ids that `scores` has judged, though their scores should be kept."
    made, judge = [], kept.score_rows
    monkeypatch.setattr(kept, 'score_rows', lambda name, new, parts: made.extend(e.id for e in new)
                        or judge(name, new, parts))
    scores(KEPT, examples, 'tellings')
    return made

def test_all_holmes_scores_are_kept(monkeypatch):
    assert judged_anew(monkeypatch, texts('holmes_order') + told_late()) == []

@pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'), reason='needs real data: set FACTLIB_DATA')
def test_all_storysumm_scores_are_kept(monkeypatch): assert judged_anew(monkeypatch, texts('storysumm_order')) == []

@pytest.mark.slow
@pytest.mark.parametrize('name', KEPT)
def test_kept_scores_are_those_of_now(name):
    examples = texts('holmes_order', n=3)
    assert np.allclose(score_rows(name, examples).value, scores([name], examples, 'tellings').value, atol=1e-9)

def test_unsaid_takes_away_the_two_sentences_and_nothing_else():
    back = Example('storysumm-1/flashback/true', source='s', group='storysumm-1', variant='flashback',
                   target='The end of it comes first. They wed. Rewind: it was so. They met. They spoke.',
                   meta=dict(cue='Rewind: it was so.'))
    assert unsaid(back).target == 'They wed. They met. They spoke.' and unsaid(back).truth == 'lie'
    with pytest.raises(BadInput, match='no flashback'): unsaid(Example('storysumm-1/original/true', target='They met.'))

def test_only_lies_of_the_same_text_count():
    "Of two summaries of a story, the first is above its own lie and below the other's."
    text = lambda i, level: Example(f'{i}/original/{level}', source='s', target=f'{i} {level}', group='s', level=level)
    true, false = [[text(i, level) for i in 'ab'] for level in ('true', 'easy')]
    value = {'a/original/true': .5, 'a/original/easy': .4, 'b/original/true': .9, 'b/original/easy': .8}
    judged = pd.DataFrame([dict(evaluator='x', example_id=i, value=v) for i, v in value.items()])
    row, = true_ahead(judged, true, false).itertuples()
    assert (row.share, row.pairs, row.even) == (1, 2, 0)
    with pytest.raises(BadInput, match='No true text'): true_ahead(judged, true[:1], false[1:])
