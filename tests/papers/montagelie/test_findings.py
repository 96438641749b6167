"Findings of MontageLie on made-up tables: where the opposite holds they say the opposite."
import pandas as pd
import pytest

from factlib.papers.montagelie.findings import (announced_finding, false_alarm_finding, order_seen_finding,
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
    text = order_seen_finding(aucs)
    assert says in text and 'For 1 the order of sentences does not matter: exactly 50 %.' in text
    assert order_seen_finding(aucs[aucs.evaluator == 'random']) == ''

def test_true_texts_that_are_called_lies():
    row = dict(evaluator='order_path', original=.25, original_n=4)
    alarms = pd.DataFrame([row | dict(benchmark='storysumm_order'), row | dict(benchmark='holmes_order', original=.5)])
    assert false_alarm_finding(alarms, 'hard') == (
        'Where order_path catches 90 % of the hard lies it accuses in (a) StorySumm 1 of 4 true summaries; in (b) '
        'Holmes 2 of 4 true summaries.')
    other = alarms[:1].assign(flashback=.5, flashback_n=2)
    assert announced_finding(other, 'easy') == (
        'Announced in other words, at 90 % of the easy lies order_path accuses 1 of 2 flashbacks of (a) StorySumm.')
    none = alarms.assign(evaluator='order_share')
    assert false_alarm_finding(none, 'hard') == announced_finding(none, 'hard') == ''
