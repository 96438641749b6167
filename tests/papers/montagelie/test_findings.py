"Findings of MontageLie on made-up tables: where the opposite holds they say the opposite."
import pandas as pd
import pytest

from factlib.papers.montagelie.findings import (announced_findings, batch_finding, cue_findings, draw_findings,
                                                false_alarm_findings, leader_findings, order_seen_findings,
                                                unseen_findings)
from sentences import joined

def unseen(ours, other, q, benchmark='storysumm_order', stories=7):
    "Two evaluators' mean AUC on unseen stories, and the test of their difference."
    aucs = pd.DataFrame([dict(benchmark=benchmark, evaluator=e, difficulty='mean',
                              auc=auc, ci_low=auc - .1, ci_high=auc + .05, groups=stories)
                         for e, auc in (('order_path', ours), ('rougeL', other))])
    tests = pd.DataFrame([dict(benchmark=benchmark, evaluator='rougeL',
                               difficulty='mean', difference=other - ours, q=q, family=3, groups=stories)])
    return joined(unseen_findings(aucs, tests))

@pytest.mark.parametrize('ours, other, q, says',
                         [(.9, .7, .01,
                           '7 unseen stories: order_path (tuned on other stories of it) scores a true text above a lie '
                           'in 90.0 % [80.0, 95.0] of the cases, the next, rougeL, in 70.0 %; order_path is ahead (q '
                           '0.010'),
                          (.7, .9, .01, 'rougeL is ahead'),
                          (.9, .7, .2, 'neither is shown to be ahead (q 0.200, Benjamini-Hochberg over 3 tests)'),
                          (.9, .7, None, 'neither is shown')])
def test_who_is_ahead_on_unseen_stories(ours, other, q, says):
    assert says in unseen(ours, other, q)

def test_texts_that_order_path_was_not_tuned_on_need_no_warning():
    assert 'tuned' not in unseen(.9, .7, .01, 'montagelie')

def test_nothing_is_said_of_no_unseen_stories():
    assert unseen_findings(pd.DataFrame(), pd.DataFrame()) == []

@pytest.mark.parametrize('low, says',
                         [(.6, '1 of 3 evaluators are shown to notice a false order (mean AUC above 50 %, 95 % interval, '
                               'one by one): '
                               'rougeL'),
                          (.4, '0 of 3 evaluators are shown to notice a false order (mean AUC above 50 %, 95 % interval, '
                               'one by one): '
                               'none')])
def test_who_sees_the_order(low, says):
    rows = [('rougeL', .7, low, 't'), ('factscore', .5, .4, 'bound'), ('exact', .5, .4, 't'),
            ('random', .9, .8, 't')] # a control is never counted
    aucs = pd.DataFrame([dict(benchmark='storysumm_order', variant='original',
                              difficulty='mean', evaluator=e, auc=auc, ci_low=ci_low, kind=kind)
                         for e, auc, ci_low, kind in rows])
    text = joined(order_seen_findings(aucs))
    assert says in text and 'For 1 the order of sentences does not matter: exactly 50 %.' in text
    assert 'exactly 50 %: factscore.' in text

@pytest.mark.parametrize('best, says',
                         [('order_path',
                           'order_path has the highest mean AUC, 90.0 % [60.0, 95.0], tuned on 1 of these 3 stories;'),
                          ('rougeL', 'rougeL has the highest mean AUC, 90.0 % [60.0, 95.0]; extreme')])
def test_tuning_is_named_where_it_leads(best, says):
    "Two evaluators on three stories, of which order_path was tuned on one."
    rows = [dict(benchmark='storysumm_order', variant='original', evaluator=e,
                 difficulty=d, auc=.9 if e == best else .7, ci_low=.6, ci_high=.95, groups=2)
            for e in ('order_path', 'rougeL') for d in ('extreme', 'mean')]
    stories = ['storysumm-12', 'storysumm-14', 'storysumm-2']
    assert says in joined(leader_findings(pd.DataFrame(rows), stories))

def test_true_texts_that_are_called_lies():
    alarms = pd.DataFrame([dict(benchmark='storysumm_order', evaluator='order_path', original=.25, original_n=4)])
    text = joined(false_alarm_findings(alarms))
    assert 'catches 90 % of the easy lies it accuses 1 of 4 true summaries.' in text and 'hard lies' not in text
    assert 'of the hard lies it accuses 1 of 4' in joined(false_alarm_findings(alarms, 'hard'))
    other = alarms.assign(lies='easy', flashback=.5, flashback_n=2)
    assert joined(announced_findings(other)).endswith('90 % of the easy lies order_path accuses 1 of 2 flashbacks.')

def test_which_cues_are_missed():
    cues = pd.DataFrame(dict(benchmark='holmes_order', evaluator=['order_path', 'order_path', 'order_share'],
                             n=[3, 2, 5], accused=[1, 0, 5]))
    assert cue_findings(cues) == ['(b) Holmes: order_path calls 1 of 5 flashbacks lies: 1 of 3 with 1 of the 2 cues, '
                                  'none with the others.']
    assert cue_findings(cues.assign(accused=0)) == ['(b) Holmes: order_path calls 0 of 5 flashbacks lies: none with '
                                                    'any of the 2 cues.']

def test_costs_and_draws():
    planned = pd.DataFrame([dict(benchmark=b, judge=judge, requests_ratio=x, tokens_ratio=2*x)
                            for b, x in (('A', .25), ('B', .5)) for judge in ('dovescore', 'factscore')])
    assert ('25 % of the requests and 50 % of the prompt tokens of the single form on A, 50 % of the requests'
            in batch_finding(planned))
    draws = pd.DataFrame([dict(benchmark=b, evaluator=e, mean=m, extreme=m - .1)
                          for b, ms in (('holmes_order', (.9, .8)), ('storysumm_order', (.7,))) for m in ms
                          for e in ('order_path', 'order_share')])
    assert draw_findings(draws) == ['(b) Holmes: over 2 draws of the lies the mean AUC of order_path lies between 80.0 '
                                    'and 90.0 %, in the extreme band between 70.0 and 80.0 %.']
