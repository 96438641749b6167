"""Findings on made-up tables, as in `test_experiments_findings`: MontageLie, small matrix, StorySumm,
NarrativeFactScore, screening, live judges, quick sweep, offline evaluators."""
from types import SimpleNamespace

import pandas as pd
import pytest
from experiments.test_experiments_findings import Run, said

# MontageLie

NAMES = dict(storysumm_order='(a) StorySumm', montagelie='MontageLie')

def unseen(ours, other, p_holm, benchmark='storysumm_order', stories=7):
    "Two evaluators' mean AUC on unseen stories, and the test of their difference."
    aucs = pd.DataFrame([dict(benchmark=benchmark, evaluator=e, difficulty='mean',
                              auc=auc, ci_low=auc - .1, ci_high=auc + .05, groups=stories)
                         for e, auc in (('order_path', ours), ('rougeL', other))])
    tests = pd.DataFrame([dict(benchmark=benchmark, evaluator='rougeL',
                               difficulty='mean', difference=other - ours, p_holm=p_holm, family=3, groups=stories)])
    return dict(unseen=aucs, unseen_tests=tests, NAMES=NAMES)

@pytest.mark.parametrize('ours, other, p_holm, says',
                         [(.9, .7, .01,
                           '7 unseen stories: order_path (tuned on other stories of it) scores a true text above a lie '
                           'in 90.0 % [80.0, 95.0] of the cases, the next, rougeL, in 70.0 %; order_path is ahead (p '
                           '0.010'),
                          (.7, .9, .01, 'rougeL is ahead'),
                          (.9, .7, .2, 'neither is shown to be ahead (p 0.200, Holm over 3)'),
                          (.9, .7, None, 'neither is shown')])
def test_who_is_ahead_on_unseen_stories(ours, other, p_holm, says):
    assert says in said('montagelie', 'montage-unseen-finding', **unseen(ours, other, p_holm))

def test_texts_that_order_path_was_not_tuned_on_need_no_warning():
    assert 'tuned' not in said('montagelie', 'montage-unseen-finding', **unseen(.9, .7, .01, 'montagelie'))

# 3 x 2/2^6 = .09375
@pytest.mark.parametrize('stories, p_holm, words',
                         [(6, .112,
                           'so few stories can\'t show who is ahead (p is at least 0.094, whatever the scores, Holm '
                           'over 3)'),
                                                    # 3 x 2/2^7 = .047: seven could
                          (7, .0625, 'neither is shown to be ahead (p 0.062')])
def test_too_few_stories_for_any_p_below_5_percent(stories, p_holm, words):
    assert words in said('montagelie', 'montage-unseen-finding', **unseen(.9, .7, p_holm, stories=stories))

@pytest.mark.parametrize('low, says',
                         [(.6, '1 of 2 evaluators have a mean AUC shown to be above 50 % (95 % interval, one by one): '
                               'rougeL'),
                          (.4, '0 of 2 evaluators have a mean AUC shown to be above 50 % (95 % interval, one by one): '
                               'none')])
def test_who_sees_the_order(low, says):
    rows = [('rougeL', .7, low), ('factscore', .5, None), ('random', .9, .8)] # a control is never counted
    aucs = pd.DataFrame([dict(benchmark='storysumm_order', variant='original',
                              difficulty='mean', evaluator=e, auc=auc, ci_low=ci_low) for e, auc, ci_low in rows])
    text = said('montagelie', 'montage-blind-finding', aucs=aucs, NAMES=NAMES)
    assert says in text and 'For 1 the order of sentences does not matter: exactly 50 %.' in text
    assert 'exactly 50 %: factscore.' in text

# Small matrix

def matrix(*rows):
    "Evaluator, AUC, its interval, on one benchmark."
    table = pd.DataFrame([dict(benchmark='holmes_order', evaluator=e, statistic='AUC',
                               estimate=auc, ci_low=low, ci_high=high, scored=12) for e, auc, low, high in rows])
    return dict(auc=table, matrix=table, benchmarks=[SimpleNamespace(name='holmes_order')])

@pytest.mark.parametrize('low, high, says',
                         [(.6, .8, ['1 have an AUC shown to be above one half (rouge1 0.70 on holmes_order) and 0 '
                                    'below it (none). 0 intervals']),
                          (.2, .4, ['0 have an AUC shown to be above one half (none) and 1 below it (rouge1',
                                    '0 intervals']),
                          (.4, .8, ['0 have an AUC shown to be above one half (none) and 0 below it (none). 1 '
                                    'intervals include one half, and 1 pairs have no interval'])])
def test_what_is_told_apart(low, high, says):
    rows = ('rouge1', (low + high)/2, low, high), ('order_path', .9, None,
                                                   None), ('length', .1, .05, .2), ('random', .5, .3, .7)
    text = said('small_matrix', 'small-findings', **matrix(*rows))
    for words in ['Of 2 pairs', *says, '1 of 2 intervals excludes one half (length 0.10 on holmes_order']:
        assert words in text

def test_a_tuned_evaluator_is_named_with_the_best_of_the_others():
    text = said('small_matrix', 'small-findings',
                **matrix(('order_path', .9, .8, .95), ('rouge1', .7, .6, .8), ('length', .99, .9, 1.)))
    assert (('order_path (tuned there) 0.90 [0.80, 0.95], 12 texts (settings chosen among some 300 on these stories); '
             'of the others rouge1 0.70') in text)
    assert 'the highest AUC of 2 evaluators' in text # the control is none

@pytest.mark.parametrize('length, random, words',
                         [((.05, .2), (.1, .3), '2 of 2 intervals exclude one half'),
                          ((.4, .6), (.1, .3), '1 of 2 intervals excludes'),
                          ((.4, .6), (.3, .7), '0 of 2 intervals exclude one half')])
def test_controls_in_good_english(length, random, words):
    rows = [(e, (low + high)/2, low, high)
            for e, (low, high) in (('length', length), ('random', random), ('rouge1', (.4, .6)))]
    assert words in said('small_matrix', 'small-findings', **matrix(*rows))

# StorySumm

def held(*intervals):
    "Partial correlations with these intervals, and raw ones."
    names = ['rouge1', 'factscore', 'FABLES (recorded)']
    table = pd.DataFrame([dict(evaluator=e, partial=(low + high)/2, ci_low=low, ci_high=high)
                          for e, (low, high) in zip(names, intervals)])
    raw = pd.DataFrame(dict(evaluator=names, spearman=.2, spearman_low=.1, spearman_high=.3, kendall=.1))
    return dict(ids={'a'}, held=table, raw=raw)

@pytest.mark.parametrize('low, high, says',
                         [(.2, .4, '1 of 3 evaluators still agree with people (interval above 0, one by one): FABLES '
                                   '(recorded) 0.30 [0.20, 0.40]. For 2'),
                          (-.4, -.2,
                           '0 of 3 evaluators still agree with people (interval above 0, one by one): none; against '
                           'people go FABLES'),
                          (-.2, .4,
                           '0 of 3 evaluators still agree with people (interval above 0, one by one): none. For 3 no '
                           'agreement beyond length is shown (the interval includes 0).')])
def test_who_agrees_with_people_beyond_length(low, high, says):
    text = said('storysumm', 'storysumm-held-finding', **held((-.3, .1), (-.1, .4), (low, high)))
    assert says in text
    assert (('With length held fixed ROUGE has rouge1 −0.10 [−0.30, 0.10]; 1 of 1 intervals include 0. That is no '
             'proof of none: up to 0.10 is possible') in text)

# NarrativeFactScore

def changes(low, high, p_holm):
    "All sentences false against harmless edits, for one evaluator and for one that never changes."
    return pd.DataFrame([dict(before='harmless', after='false all', measure=m,
                              delta=(lo + hi)/2, ci_low=lo, ci_high=hi, p_holm=p)
                         for m, lo, hi, p in (('factscore', low, high, p_holm), ('rouge1', -1., 1., 1.))])

@pytest.mark.parametrize('low, high, p_holm, says',
                         [(-9., -3., .01,
                           '1 of 2 evaluators score summaries with all sentences false lower than those with as many '
                           'harmless edits (factscore −6.00 [−9.00, −3.00]), 0 higher (none): points of 100, '
                           'two-sided, Holm over 2. All'),
                          (3., 9., .01, 'edits (none), 1 higher (factscore 6.00 [3.00, 9.00])'),
                          (-9., -3., .2,
                           'None of 2 evaluators is shown to score summaries with all sentences false lower than those '
                           'with as many harmless edits, or higher (two-sided, Holm over 2). All sentences false '
                           'against as many harmless edits, no difference shown: factscore −6.00 [−9.00, −3.00] and '
                           'rouge1 0.00 [−1.00, 1.00]')])
def test_whether_falsehoods_cost_more_than_edits(low, high, p_holm, says):
    assert says in said('narrativefactscore', 'narrativefactscore-false-finding',
                        changed=[1], changes=changes(low, high, p_holm))

def test_each_pair_of_kinds_is_a_family_of_its_own(monkeypatch):
    """A measure that falls on all of six stories has p 2/64 = .03125.

    Two evaluators are two tests of a question, so Holm gives 2 x .03125 for both, whatever the four other questions
    are."""
    edits = {'original': 0, 'harmless': 1, 'false 1': 2, 'false 4': 3, 'false all': 4}
    rows = [dict(dataset='holmes_false', evaluator=e, variant=v.split()[0] if v.startswith('false') else v,
                 level=v.split()[-1], group=f's{i}', example_id=f's{i}/{v}', value=(50 - k*(i + 1))/100)
            for e in ('factscore', 'rouge1') for i in range(6) for v, k in edits.items()]
    frame = pd.DataFrame(rows)
    shown = []
    monkeypatch.setattr(Run, 'table', lambda self, table, *args, **options: table)
    said('narrativefactscore', 'narrativefactscore-false', changed=frame, judged=frame, seed=0, display=shown.append)
    assert set(shown[1].p) == {.03125} and set(shown[1].p_holm) == {.0625}

# Screening

def whole(noticed, rewarded):
    "Two kinds at two doses, one evaluator and the random control."
    rows = [dict(evaluator=e, metric='score', name=kind, factor=x, scored=12,
                 noticed=e != 'random' and kind in noticed and x > 1, rewarded=kind in rewarded)
            for e in ('counter', 'random') for kind in ('[14]', '[41]') for x in (1, 2)]
    return dict(whole=pd.DataFrame(rows), refused=[])

@pytest.mark.parametrize('noticed, rewarded, says',
                         [(['[41]'], [],
                           'counter (score): the score falls in over nine of ten texts for 1 of 2 kinds ([41] at dose '
                           '2 only) and rises for 0 (none). random (a control): the score falls in over nine of ten '
                           'texts for 0 of 2 kinds (none) and rises for 0 (none). Over nine of ten texts: of at most '
                           '12 texts (4 at each of 3 lengths).'),
                          ([], ['[14]'], 'for 0 of 2 kinds (none) and rises for 1 ([14] from dose 1)')])
def test_which_kinds_are_noticed(noticed, rewarded, says):
    names = whole(noticed, rewarded) | dict(built=SimpleNamespace(benchmark=[1]),
                                            cells=pd.DataFrame(dict(asked=4, level=['1000', '2000', '3000'])))
    assert says in said('screening', 'screens-findings', **names)

# Quick sweep

@pytest.mark.parametrize('effect, p_holm, says',
                         [(-2., .01,
                           'length (a control): the score falls for [24] anachronisms (−2.0 whole) (d_z, n = 12'),
                          (14.6, .01,
                           'length (a control): the score falls for nothing, rises for [24] anachronisms (14.6 whole)'),
                          (14.6, .2, 'the score falls for nothing; not shown for [24] anachronisms (14.6 whole)')])
def test_what_a_control_gives_away(effect, p_holm, says):
    tests = pd.DataFrame([dict(evaluator='length', manipulation='[24] anachronisms',
                               level='full', effect=effect, mean=effect, p_holm=p_holm, scored=12)])
    text = said('quick_sweep', 'sweep-findings', tests=tests)
    assert says in text and ('alone tells spoilt from untouched' in text) == (p_holm < .05)
    assert 'two-sided, Holm over 1 tests' in text

@pytest.mark.parametrize('effect, p_holm, says',
                         [(-2., .01,
                           'notices [24] anachronisms (in 2,000 tokens, whole); not shown for [41] typos (the score '
                           'falls, Holm over 3 tests)'),
                          (2., .01, 'notices nothing; not shown for [24] anachronisms and [41] typos'),
                          (-2., .06, 'notices nothing; not shown for [24] anachronisms and [41] typos')])
def test_what_a_floor_notices(effect, p_holm, says):
    floor = dict(evaluator='out_of_vocabulary', manipulation='[24] anachronisms',
                 level='2000', effect=effect, mean=effect, p_holm=p_holm, scored=12)
    tests = pd.DataFrame([floor, floor | dict(level='full', evaluator='adjacent_similarity'),
                          floor | dict(manipulation='[41] typos', effect=1., mean=1.)])
    assert says in said('quick_sweep', 'sweep-findings', tests=tests)

# Offline evaluators and recorded judges

@pytest.mark.parametrize('low, high, says',
                         [(-3., -1.,
                           'more consistently in 1 of 1 comparisons ([41] typos), less consistently in 0; in 0 nothing'), (1., 3., 'more consistently in 0 of 1 comparisons (none), less consistently in 1; in 0 nothing'),
                          (-1., 3.,
                           'more consistently in 0 of 1 comparisons (none), less consistently in 0; in 1 nothing is '
                           'shown')])
def test_who_separates_more_consistently(low, high, says):
    text = separated(low, high)
    assert says in text and ('[41] typos, where LI has d_z -1.0 (n = 20): none of 1' in text) == (high > 0)
    assert 'combination' not in text

def test_combinations_that_were_fitted_here_are_counted():
    assert 'in 1 of 1 comparisons ([41] typos; 1 of them by a combination fitted on this benchmark), less' in separated(
        -3., -1., 'combination, fault unseen')
    assert 'fitted' not in separated(1., 3., 'combination') # it separates less consistently

def separated(low, high, judge='counter'):
    against = pd.DataFrame([dict(against='LI, single prompt', variant='41',
                                 judge=judge, dz=-2., opponent='LI', dz_opponent=-1.,
                                 difference=(low + high)/2, ci_low=low, ci_high=high, n=20, more=high < 0)])
    tests = pd.DataFrame([dict(evaluator='length', variant='41', fault='typos', effect=0., p_holm=1.)])
    return said('offline_against_recorded', 'offline-judges-findings',
                against=against, documents=range(20), TASKS={'41': 'fluency'}, tests=tests, judges=[judge])

# Live judges

def test_too_few_texts():
    tests = pd.DataFrame([dict(manipulation='[24] x', metric='fluency',
                               mean=0., ci_low=None, ci_high=None, p_holm=None)])
    assert 'cannot be told' in said('live_judge', 'live-findings', tests=tests,
                                    frame=pd.DataFrame(dict(value=[4., 3.])), label='M', spoilt=True)

def live(mean, p_holm):
    "A delta of one fault, and one that can't be tested."
    return pd.DataFrame([dict(manipulation='[41] typos', metric='fluency',
                              mean=mean, ci_low=mean - .5, ci_high=mean + .5, p_holm=p_holm),
                         dict(manipulation='[24] x', metric='fluency',
                              mean=0., ci_low=None, ci_high=None, p_holm=None)])

@pytest.mark.parametrize('mean, p_holm, says',
                         [(-1., .01,
                           'lower in 1 of 2 combinations of manipulation and metric ([41] typos, fluency (−1.00 '
                           '[−1.50, −0.50])), higher in 0 (none); in 0 no'),
                          (1., .01,
                           'lower in 0 of 2 combinations of manipulation and metric (none), higher in 1 ([41] typos'),
                          (-1., .2,
                           '(none), higher in 0 (none); in 1 no difference is shown, and 1 have too few texts for a '
                           'test (points, two-sided, Holm over 1)')])
def test_whether_the_model_notices(mean, p_holm, says):
    names = dict(frame=pd.DataFrame(dict(value=[4., 3.])), label='M', spoilt=True)
    assert says in said('live_judge', 'live-findings', tests=live(mean, p_holm), **names)

@pytest.mark.parametrize('mean, p_holm, says',
                         [(-1., .01, 'scores lower with vanilla in 1 of 2 (higher in 0)'),
                          (1., .01, 'scores lower with vanilla in 0 of 2 (higher in 1)'),
                          (-1., .2,
                           'scores lower with vanilla in 0 of 2 (higher in 0); in the others no difference is shown '
                           '(two-sided, Holm over 1). These counts do not')])
def test_which_way_notices(mean, p_holm, says):
    usage = pd.DataFrame(dict(requests_planned=[1], new_planned=[1], requests=[1], sent=[1]))
    names = dict(names=['vanilla'], chat=SimpleNamespace(endpoint='https://host/v1'),
                 compared=[SimpleNamespace(name='vanilla')], frames=[pd.DataFrame(dict(value=[4.]))],
                 usage=usage, same={}, several=True, between=live(mean, p_holm).assign(evaluator='vanilla'))
    text = said('judgememo_live', 'livememo-findings', tests=live(mean, p_holm).assign(evaluator='vanilla'), **names)
    assert says in text and ('less by vanilla in 1 of 2' in text) == (mean < 0 and p_holm < .05)
    assert ('(more in 1)' in text) == (mean > 0)

# MontageLie, all stories; StorySumm's verdicts

def all_stories(best):
    "Mean and extreme AUC of two evaluators on three stories, of which order_path was tuned on one."
    rows = [dict(benchmark='storysumm_order', variant='original', evaluator=e,
                 difficulty=d, auc=.9 if e == best else .7, ci_low=.6, ci_high=.95, groups=2)
            for e in ('order_path', 'rougeL') for d in ('extreme', 'mean')]
    part = pd.DataFrame(dict(group=['storysumm-12', 'storysumm-14', 'storysumm-2']))
    alarms = pd.DataFrame([dict(benchmark='storysumm_order', evaluator='order_path', original=.25, original_n=4)])
    empty = pd.DataFrame(columns=['judge', 'benchmark', 'evaluator'])
    return dict(aucs=pd.DataFrame(rows), parts=[(SimpleNamespace(name='storysumm_order'), part)], alarms=alarms,
                hard_alarms=None, levels=[], announced=None, by_cue=None, planned=empty, draws_made=empty, NAMES=NAMES)

@pytest.mark.parametrize('best, says',
                         [('order_path',
                           'order_path has the highest mean AUC, 90.0 % [60.0, 95.0], tuned on 1 of these 3 stories;'),
                          ('rougeL', 'rougeL has the highest mean AUC, 90.0 % [60.0, 95.0]; extreme')])
def test_tuning_is_named_where_it_leads(best, says):
    text = said('montagelie', 'montage-findings', **all_stories(best))
    assert says in text and 'catches 90 % of the easy lies it accuses 1 of 4 true summaries.' in text
    assert 'hard lies' not in text

@pytest.mark.parametrize('low, high, says', [(.1, .5, 'better than chance'), (-.5, -.1, 'worse than chance'),
                                             (-.1, .5, 'not shown to be better than chance')])
def test_agreement_beyond_chance(low, high, says):
    results = pd.DataFrame([{'on': 'test', 'evaluator': 'UniEval', 'kappa': (low + high)/2,
                             'kappa, low': low, 'kappa, high': high}])
    names = dict(results=results, audit=pd.DataFrame(dict(status=['agrees'])), display=print)
    assert f'], {says}.' in said('storysumm', 'storysumm-results', **names)
