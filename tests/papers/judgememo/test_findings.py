"Findings from the recordings on made-up tables: where the opposite holds they say the opposite."
import pandas as pd
import pytest

from factlib.metaeval.damage import gold_scores
from factlib.papers.judgememo.findings import (beyond_finding, change_finding, complete_finding, detectable,
                                               drops_by_setup, failure_findings, length_findings, noticed_finding,
                                               power_finding, same_judges, silent_findings, untouched_finding)
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
    says(noticed_finding(cells((-.5, -.3), (-1.4, -1.2), (-.1, .1), (.2, .4))),
         'noticed (interval below 0) in 2 of 4', 'no drop is shown for [42] by LI and [32] by LI.')
    says(noticed_finding(cells((-.5, -.3))[:0]), 'in 0 of 0', 'no drop is shown for none.')

def test_who_can_be_compared():
    "Those with all faults under both set-ups."
    short = pd.DataFrame([dict(setup=s, evaluator='LI', variant=v) for s in ('vanilla_30', 'judgememo') for v in TASKS])
    assert same_judges(short, ['Q', 'LI']) == ['LI'] and same_judges(short[1:], ['LI']) == []

# Do they see less in long texts?

def test_the_family_is_that_of_the_rows():
    "Of four tests two hold after the correction; their number is the one they were corrected over."
    found = length_findings(cells((-.4, -.2), (-.4, -.2), (.2, .4), (-.1, .1)).assign(p_holm=[.01, .2, .02, 1.]))
    says(found, 'for 1 that can\'t be told (Holm over 4 tests: 2 remain).')

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
    return untouched_finding(gold_scores(pd.DataFrame(rows)))

@pytest.mark.parametrize('longer, words', [
    (-.1, 'lower in full by 0.15 to 0.15 points with LI (1 of 1 means, two metrics a judge); for the others no loss'),
    (.1, 'shown for none of 1 means, two metrics a judge; higher with LI (1).'),
    (0., 'shown for none of 1 means, two metrics a judge.')])
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
        return change_finding(change)
    says(moved(.5, .01),
         'less is lost in the long text of [17] by LI (0.50 [0.30, 0.70] points), more of no fault; for the other 1 of '
         '2')
    says(moved(-.5, .01), 'less is lost in the long text of no fault, more of [17] by LI (−0.50')
    says(moved(.5, .2), 'of no fault, more of no fault; for the other 2 of 2')

@pytest.mark.parametrize('first, last, words', [
    (-.2, -.2, 'JudgeMemo judges the two lengths more alike beyond [17] by LI: it changes how far'),
    (.2, .2, 'JudgeMemo judges the two lengths less alike beyond [17] by LI'),
    (-.2, -.05, 'That JudgeMemo judges the two lengths more alike is not shown beyond [17] by LI')])
def test_whether_a_memory_evens_out_lengths(first, last, words):
    pooled = pd.DataFrame(dict(cases=['all cases', 'rest'], documents=30, p=.5))
    pooled = ends(pooled, [first, last], .1).rename(columns=dict(mean='change'))
    says(beyond_finding(pooled, pd.DataFrame(dict(variant=['17'], evaluator=['LI']))), words)
    says(beyond_finding(pooled, pd.DataFrame(dict(variant=[], evaluator=[]))), ': it changes how far', 'points.')
    assert beyond_finding(pooled[:1], pooled[:0]) == '' # without the other row

def test_drops_of_both_set_ups():
    "Three documents; the fault costs half a point under one prompt and .8 under JudgeMemo."
    def scores(drop):
        return pd.DataFrame([dict(evaluator='LI', variant=v, metric='fluency',
                                  level='2000', group=f'd{i}', value=4 + i/10 + (drop if v == '43' else 0))
                             for i in range(3) for v in ('gold', '43')])
    drops = drops_by_setup(dict(vanilla=scores(-.5), JudgeMemo=scores(-.8)), ['LI']).set_index('setup')['mean']
    assert drops.round(9).to_dict() == dict(vanilla=-.5, JudgeMemo=-.8)

@pytest.mark.parametrize('scored, words', [(56, 'at both lengths by LI and Q.'),
                                           (20, 'at both lengths by LI. Under JudgeMemo Q has 20 of 56 scores.')])
def test_whose_scores_are_in_the_picture(scored, words):
    "Two documents, six faults and the untouched text, two metrics, two lengths: 56 scores."
    memo = pd.DataFrame(dict(evaluator=['LI']*56 + ['Q']*56, value=[4.]*56 + [4.]*scored + [None]*(56 - scored)))
    text = complete_finding(memo, 2, ['LI', 'Q'], ['LI', 'Q'] if scored == 56 else ['LI'])
    says(text, 'at 2,000 tokens by LI and Q', words)
    assert text.endswith(words)

# Missing scores

@pytest.mark.parametrize('lost, silent', [(10, True), (4, False)])
def test_a_judge_without_a_score(lost, silent):
    missing = pd.DataFrame([dict(setup='judgememo', evaluator='Q-noT',
                                 level='full', variant='41', metric='fluency', missing=lost)])
    setups = dict(vanilla=pd.DataFrame(columns=['metric', 'evaluator']),
                  judgememo=pd.DataFrame(dict(metric=['fluency']*10, evaluator='Q-noT')))
    found = joined(silent_findings(missing, setups))
    assert ('Q-noT under JudgeMemo has no score at all.' in found) == silent

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
    says(text, f'Pair by pair, {shown} to be noticed', f'it puts {100*(11*memo + .5)/12:.1f} right, one prompt 50.0',
         'LI, 12 pairs of 12 documents')
    assert gain_finding(pairs.assign(level='2000')) == gain_finding(pairs.assign(gain=None)) == ''
