"Findings from the recordings on made-up tables: where the opposite holds they say the opposite."
import pandas as pd
import pytest

from factlib.metaeval.damage import gold_scores
from factlib.papers.judgememo.findings import (all_judges_finding, apart_finding, averaged_findings, beyond_finding,
                                               change_findings, complete_finding, detectable, distance_finding,
                                               drops_by_setup, failure_findings, finer_finding, larger_drops_findings,
                                               length_count_findings, length_findings, missing_findings,
                                               noticed_findings, picked_findings, pooled_findings, power_finding,
                                               same_judges, setup_findings, sign_finding, silent_findings,
                                               untouched_findings)
from factlib.papers.judgememo.misprints import sign_readings
from factlib.perturb.quality import TASKS
from factlib.papers.judgememo.noticing import gain_finding
from sentences import ends, joined, says

def cells(*intervals, p_holm=1.):
    "Combinations of judge and fault with these intervals."
    names = ['43', '41', '42', '32', '17', '24']
    return pd.DataFrame([dict(evaluator='LI', variant=v, task=f'[{v}]', metric='fluency', mean=(low + high)/2,
                              ci_low=low, ci_high=high, p_holm=p_holm, family=len(intervals), missing=0, asked=65,
                              scored=65, t=2.)
                         for v, (low, high) in zip(names, intervals)])

# Do the judges see the faults?

def test_whether_faults_are_noticed():
    text = joined(noticed_findings(cells((-.5, -.3), (-1.4, -1.2), (-.1, .1), (.2, .4))))
    assert 'noticed (interval below 0) in 2 of 4' in text and 'No drop is shown for [42] by LI and [32] by LI.' in text
    assert 'largest drop is 1.30 points ([41], LI), the median 0.20' in text and 'less than one point in 3 of 4' in text
    assert len(noticed_findings(cells((-.5, -.3))[:0])) == 2

def noticed(vanilla, memo):
    rows = [dict(setup=s, evaluator='LI', variant=v, t=-t, critical=1.7, ci_high=2.05 - t)
            for s, ts in (('vanilla', vanilla), ('vanilla_30', vanilla), ('judgememo', memo))
            for v, t in zip(TASKS, ts)]
    short, titles = pd.DataFrame(rows), dict(vanilla='v', vanilla_30='v30', judgememo='J')
    assert same_judges(short, ['Q', 'LI']) == ['LI'] and same_judges(short[1:-1], ['LI']) == []
    return setup_findings(short, ['LI'], titles) + [all_judges_finding(short, 'v')]

def test_who_notices_more_faults():
    """With 30 documents t lies beyond 1.70 one-sided and beyond 2.05 two-sided; t = 1.8 is noticed by the first test
    alone."""
    says(noticed([1, 1.8, 3, 3, 3, 3], [3]*6),
         'one prompt notices the fault at 2,000 tokens (interval below 0) in 4 of 6 combinations, JudgeMemo in 6 of 6; '
         'by the thesis\'s one-sided test in 5 and 6', 'do not show that one notices more',
         'v, all 1 judges: in 4 of 6; by the one-sided test in 5.')
    says(noticed([3]*6, [1]*5 + [1.8]),
         'in 6 of 6 combinations, JudgeMemo in 0 of 6; by the thesis\'s one-sided test in 6 and 1')

# Do they see less in long texts?

@pytest.mark.parametrize('low, high, words',
                         [(-.4, -.2,
                           'less is noticed in the long text in 1 ([43] LI −0.30 [−0.40, −0.20]), more in 0 (none)'),
                          (.2, .4, 'in the long text in 0 (none), more in 1 ([43] LI 0.30 [0.20, 0.40])'),
                          (-.2, .4, 'in the long text in 0 (none), more in 0 (none); in 2 no difference is shown')])
def test_whether_long_texts_hide_faults(low, high, words):
    says(length_findings(cells((low, high), (-.1, .1))), words)

def test_the_family_is_that_of_the_rows():
    "Of four tests two hold after the correction, one each way; their number is the one they were corrected over."
    found = length_findings(cells((-.4, -.2), (-.4, -.2), (.2, .4), (-.1, .1)).assign(p_holm=[.01, .2, .02, 1.]))
    says(found, 'in 1 no difference is shown. 2 remain (Holm over 4 tests): less in 1, more in 1.')

def test_scores_that_are_missing_are_named_where_they_are_many():
    table = cells((-.1, .1), (-.1, .1))
    assert 'missing' not in joined(length_findings(table))
    says(length_findings(table.assign(missing=[0, 17])), '17 of 65 for [41] by LI')

@pytest.mark.parametrize('means, words', [
    ((-.3, -.2),
     'in 2 of 2 combinations of judge and fault ([17] and [43]; of [17] short texts also hold more per 1,000 tokens), '
     'and more in 0; for 0'),
    ((.3, .2), 'in 0 of 2 combinations of judge and fault, and more in 2; for 0'),
    ((.05, -.3), 'in 1 of 2 combinations of judge and fault ([43]), and more in 0; for 1 that can\'t be told')])
def test_whether_faults_are_noticed_less_in_full(means, words):
    table = pd.DataFrame(dict(variant=['17', '43'], task=['[17]', '[43]'],
                              evaluator='LI', p_holm=1., family=3, missing=0, asked=30))
    says(length_findings(ends(table, means, .1)), words)

@pytest.mark.parametrize('mean, word', [(-.3, 'less'), (.3, 'more'), (.05, 'neither shown')])
def test_differences_averaged_over_the_faults(mean, word):
    table = ends(pd.DataFrame(dict(faults=['all six'], evaluator=['LI'])), [mean], .1)
    says(averaged_findings(table), f']: {word} (points; 1 tests')

def test_power():
    "16 differences of standard deviation 1: by G*Power a two-sided test finds d_z .749 with a power of 80 %."
    length = cells((-.1, .1)).assign(scored=16, mean=.5, t=2.) # sd = .5/2*4 = 1
    def power(short): return power_finding(detectable(length, cells(short)))
    says(power((-1.1, -.9)), 'difference of 0.75 points', 'at least 80 % in 1 of 1 combinations',
         'half as much there, in 0.')
    says(power((-1.7, -1.5)), 'half as much there, in 1.')

def gold(longer, even=False):
    """Untouched texts that gain so many points in full; eight documents with a small scatter. `even`: only in the short
    texts."""
    rows = [dict(evaluator='LI', variant='gold', metric='fluency', level=level, group=f'd{i}',
                 value=4 + (longer*(1 + i % 2) if level == 'full' else 0) + (i % 3)/10*(level != 'full' or not even))
            for i in range(8) for level in ('2000', 'full')]
    return untouched_findings(gold_scores(pd.DataFrame(rows)))

@pytest.mark.parametrize('longer, words', [(-.1, 'lower in 1 of 1 cases (LI, fluency −0.15'),
                                           (.1, 'lower in 0 of 1 cases (none), higher in 1 (LI, fluency 0.15'),
                                           (0., 'for 1 no difference is shown')])
def test_whether_length_alone_costs_points(longer, words):
    says(gold(longer), words)

def test_what_untouched_texts_lose():
    says(gold(-.2, even=True), 'Untouched texts score lower in full by 0.', 'with LI (1 of 1 means')
    assert 'Untouched texts score lower' not in joined(gold(.4, even=True))

# Does a memory help?

def test_whether_a_memory_changes_what_long_texts_hide():
    def moved(estimate, p_holm):
        change = ends(pd.DataFrame(dict(evaluator=['LI', 'Q'], variant=['17', '17'], p_holm=[p_holm, 1.], family=2)),
                      [estimate, .1], .2)
        return change_findings(change)
    says(moved(.5, .01),
         'less is lost in the long text of [17] by LI (0.50 [0.30, 0.70] points), more of no fault; for the other 1 of '
         '2', 'No change is shown for [17] by Q (0.10')
    says(moved(-.5, .01), 'less is lost in the long text of no fault, more of [17] by LI (−0.50')
    says(moved(.5, .2), 'of no fault, more of no fault; for the other 2 of 2',
         'No change is shown for [17] by LI (0.50 [0.30, 0.70] points) and [17] by Q')

@pytest.mark.parametrize('p, differ', [(.04, 6), (.06, 0)])
def test_lengths_are_compared_two_sided(p, differ):
    table = pd.DataFrame([dict(setup=s, evaluator='LI', variant=v, p=p,
                               p_holm=6*p, family=6, scored=30, mean=-.1, ci_low=-.2, ci_high=0.)
                          for s in ('vanilla_30', 'judgememo') for v in ('43', '41', '42', '24', '17', '32')])
    judges = same_judges(table, ['LI'])
    says(length_count_findings(table, judges, dict(vanilla_30='v30', judgememo='J')),
         f'J, models recorded in full under both (LI): 2K and Full are shown to differ (two-sided, p below .05) in '
         f'{differ} of 6', 'in 0 corrected over its set-up (Holm over 6 tests)',
         '[17], J: LI -0.10 points [-0.20, +0.00].')

@pytest.mark.parametrize('vanilla, memo, words', [
    ((2, 0), (0, 2), ['differently in 2 of 2 cases under a single prompt and in 0 under JudgeMemo']),
    ((0, 2), (2, 0), ['differently in 0 of 2 cases under a single prompt and in 2 under JudgeMemo'])])
def test_at_which_the_lengths_are_judged_differently(vanilla, memo, words):
    rows = [dict(setup=setup, ci_low=low, ci_high=.9)
            for setup, (apart, open_) in (('vanilla', vanilla), ('JudgeMemo', memo))
            for low in [.1]*apart + [-.1]*open_]
    gaps = pd.DataFrame(dict(variant=['17', '42'], evaluator='LI', judgememo=[.1, .3],
                             vanilla=[.4, .6], p_holm=[.01, .2], family=2))
    says(apart_finding(pd.DataFrame(rows), ['LI'], 30), *words, 'what is not shown is not absent')
    says(distance_finding(gaps), '0.20 points apart under JudgeMemo and 0.50 under a single prompt',
         'in 1 of 2 cases ([17] LI); in the other 1')

@pytest.mark.parametrize('low, high, words', [(-.2, -.1, 'judged more alike'),
                                              (.1, .2, 'judged less alike'), (-.1, .1, 'no change is shown')])
def test_whether_the_lengths_come_closer(low, high, words):
    pooled = pd.DataFrame([dict(cases='all cases', documents=30, change=(low + high)/2,
                                ci_low=low, ci_high=high, p=.5)])
    says(pooled_findings(pooled), words)
    assert beyond_finding(pooled, pooled[:0]) == '' # without the other row

def test_finer_scores_are_named():
    steps = pd.DataFrame(dict(vanilla=[6], JudgeMemo=[16]), index=['LI'])
    says(finer_finding(steps), 'LI 16 instead of 6')
    assert finer_finding(pd.DataFrame()) == ''

@pytest.mark.parametrize('first, last, words', [
    (-.2, -.2, 'JudgeMemo judges the two lengths more alike beyond [17] by LI: it changes how far'),
    (.2, .2, 'JudgeMemo judges the two lengths less alike beyond [17] by LI'),
    (-.2, -.05, 'That JudgeMemo judges the two lengths more alike is not shown beyond [17] by LI')])
def test_whether_a_memory_evens_out_lengths(first, last, words):
    pooled = pd.DataFrame(dict(cases=['all cases', 'rest'], documents=30, p=.5))
    pooled = ends(pooled, [first, last], .1).rename(columns=dict(mean='change'))
    says(beyond_finding(pooled, pd.DataFrame(dict(variant=['17'], evaluator=['LI']))), words)
    says(beyond_finding(pooled, pd.DataFrame(dict(variant=[], evaluator=[]))), ': it changes how far', 'points.')

@pytest.mark.parametrize('memo, words', [(-.8, 'larger under JudgeMemo than under the single prompt in 1 of 1'),
                                         (-.2, 'in 0 of 1')])
def test_whose_drops_are_larger(memo, words):
    def scores(drop):
        return pd.DataFrame([dict(evaluator='LI', variant=v, metric='fluency',
                                  level='2000', group=f'd{i}', value=4 + i/10 + (drop if v == '43' else 0))
                             for i in range(3) for v in ('gold', '43')])
    same = dict(vanilla=scores(-.5), JudgeMemo=scores(memo))
    says(larger_drops_findings(drops_by_setup(same, ['LI'])), words)
    assert larger_drops_findings(drops_by_setup(dict(vanilla=scores(-.5)), ['LI'])) == []

# Documents picked for a score

@pytest.mark.parametrize('sd, picked, words',
                         [(0., -.3,
                           'untouched short text by LI (fluency); fluency 4.50, on the other 35 4.20 on average'),
                          (.2, -.1, 'short text by no judge')])
def test_documents_picked_for_a_score(sd, picked, words):
    picks = pd.DataFrame(dict(evaluator='LI', metric='fluency', documents=['picked', 'others'],
                              count=[30, 35], mean=[4.5, 4.2], std=[sd, .3]))
    drops = pd.DataFrame(dict(evaluator=['LI'], variant=['42'], level=['2000'], picked=[picked], others=[-.2]))
    text = joined(picked_findings(picks, drops, 30, 14))
    says(text, words, f'LI in {int(picked < -.2)} of 1 faults')
    assert ('[42] costs 0.30 points on the 30 documents and 0.20 on the others' in text) == (not sd)

def test_others_with_the_same_scores_are_counted():
    picks = pd.DataFrame(dict(evaluator='LI', metric=['fluency', 'fluency', 'coherence', 'coherence'],
                              documents=['picked', 'others']*2, count=[30, 35]*2,
                              mean=[4.5, 4.2, 4., 4.1], std=[0., .3]*2))
    drops = pd.DataFrame(dict(evaluator=['LI'], variant=['42'], level=['2000'], picked=[-.3], others=[-.2]))
    says(picked_findings(picks, drops, 30, 14), '14 of the others have both of these scores too')

@pytest.mark.parametrize('scored, words', [(56, 'at both lengths by LI and Q.'),
                                           (20, 'at both lengths by LI. Under JudgeMemo Q has 20 of 56 scores.')])
def test_whose_scores_are_in_the_picture(scored, words):
    "Two documents, six faults and the untouched text, two metrics, two lengths: 56 scores."
    memo = pd.DataFrame(dict(evaluator=['LI']*56 + ['Q']*56, value=[4.]*56 + [4.]*scored + [None]*(56 - scored)))
    text = complete_finding(memo, 2, ['LI', 'Q'], ['LI', 'Q'] if scored == 56 else ['LI'])
    says(text, 'at 2,000 tokens by LI and Q', words)
    assert text.endswith(words)

@pytest.mark.parametrize('ts, words',
                         [((-2., -1., .5, 0.),
                           '4 printed t of Eq 5.3, 2 say by the equation that the fault is noticed less in the whole '
                           'text, 1 that it is noticed more, and 1 neither'),
                          ((1., 2.),
                           ', 0 say by the equation that the fault is noticed less in the whole text, 2 that it is '
                           'noticed more, and 0 neither')])
def test_what_printed_signs_say(ts, words):
    printed = type('Table', (), dict(name='A.13', cells={f't|LI|{i}': t for i, t in enumerate(ts)}))()
    says(sign_finding(sign_readings([printed, type('Table', (), dict(name='A.15', cells={}))()])), words)

# Missing scores

@pytest.mark.parametrize('lost, silent', [(10, True), (4, False)])
def test_a_judge_without_a_score(lost, silent):
    missing = pd.DataFrame([dict(setup='judgememo', evaluator='Q-noT',
                                 level='full', variant='41', metric='fluency', missing=lost)])
    setups = dict(vanilla=pd.DataFrame(columns=['metric', 'evaluator']),
                  judgememo=pd.DataFrame(dict(metric=['fluency']*10, evaluator='Q-noT')))
    found = joined(missing_findings(missing) + silent_findings(missing, setups))
    assert ('Q-noT under JudgeMemo has no score at all.' in found) == silent

def test_scores_missing_of_long_texts_with_typos():
    missing = pd.DataFrame([dict(setup='vanilla', level=level, variant=v, metric='fluency', missing=k)
                            for level, v, k in (('full', '41', 3), ('2000', '41', 1), ('full', 'gold', 1))])
    says(missing_findings(missing), '3 of the 5 replies without a fluency score under vanilla are about long texts')

def test_which_replies_fail():
    def failures(where, kinds):
        return failure_findings(pd.DataFrame([dict(length=length, variant=v, kind=k)
                                              for (length, v), k in zip(where, kinds)]), 1000)
    says(failures([('full', '41'), ('full', '17')], ['list', 'loop']), '2 of 1,000 replies lack a score; 1 of them',
         'Of these 2, 1 list issue after issue without a verdict and 1 repeat one block')
    says(failures([('2000', '41')], ['thinking']), '; 0 of them are about long texts',
         'Of these 1, 1 never stop reasoning.')
    assert failure_findings(pd.DataFrame(columns=['length', 'variant', 'kind']), 9) == []

@pytest.mark.parametrize('memo, single, shown', [(1., .5, 'more is shown'), (0., .5, 'less is shown'),
                                                 (.5, .5, 'neither more nor less is shown')])
def test_which_set_up_notices_more_pair_by_pair(memo, single, shown):
    "Twelve documents of one pair each; eleven say the same, the twelfth is even under both."
    rows = [dict(evaluator='LI', level='full', group=f'd{i}', variant='41', single=single if i else .5,
                 memo=memo if i else .5) for i in range(12)]
    pairs = pd.DataFrame(rows).assign(gain=lambda t: t.memo - t.single)
    text = gain_finding(pairs)
    says(text, f'Pair by pair, {shown} to be noticed', f'it puts {round(100*(11*memo + .5)/12)} right, one prompt 50',
         'LI, 12 pairs of 12 documents')
    assert gain_finding(pairs.assign(level='2000')) == gain_finding(pairs.assign(gain=None)) == ''
