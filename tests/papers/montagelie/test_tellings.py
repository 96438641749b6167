"The tellings beside their lies: what is kept is what would be said now, and no half of a pair comes from another text."
import os

import numpy as np
import pytest
from factlib.benchmarks.base import load
from factlib.core.records import BadInput, Example
from factlib.evaluators import kept
from factlib.evaluators.kept import score_rows, scores
from factlib.papers.montagelie.tellings import kinds_of, told_late, unsaid

KEPT = ('order_path', 'detail_support') # whose scores are in data/kept/tellings.csv

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
