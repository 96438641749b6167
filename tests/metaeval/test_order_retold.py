"Re-tellings against originals: differences, equivalence and AUCs, against scipy, statsmodels and scikit-learn."
import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.api as sm
from sklearn.metrics import roc_auc_score
from statsmodels.stats.weightstats import DescrStatsW

from factlib.benchmarks.montagelie import DIFFICULTIES, LEVELS
from factlib.metaeval.order import paraphrase_aucs, paraphrase_tests
from factlib.core.records import BadInput

def frame(scores, evaluator='e', groups=None):
    "scores: (variant, level) -> values by item, None for missing, absent where shorter."
    return pd.DataFrame([dict(example_id=f'it-{i}/{v}/{d}', evaluator=evaluator,
                              value=x, group=f'g{groups[i] if groups else i}', variant=v, level=d)
                         for (v, d), values in scores.items() for i, x in enumerate(values)]).astype(dict(value=object))

def drawn(seed=0, n=30, shift=0., noise=.5, lies=True):
    "Scores 0 for the truth and -1 for lies, with noise; re-tellings are shifted."
    rng, scores = np.random.default_rng(seed), {}
    for d in LEVELS:
        scores['original', d] = list(rng.normal(0 if d == 'true' else -1, 1, n))
        if lies or d == 'true':
            scores['paraphrase', d] = list(np.array(scores['original', d]) + shift + rng.normal(0, noise, n))
    return scores

# Differences

def test_against_scipy_and_statsmodels():
    scores = drawn(shift=.3)
    found = paraphrase_tests(frame(scores), margin=.4).set_index('level')
    assert list(found.index) == list(LEVELS)
    for d in LEVELS:
        a, b = np.array(scores['original', d]), np.array(scores['paraphrase', d])
        t = scipy.stats.ttest_rel(b, a)
        ci = t.confidence_interval()
        same = DescrStatsW(b - a).ttost_mean(-.4, .4)[0]
        row = found.loc[d]
        assert (row.difference, row.p, row.ci_low, row.ci_high,
                row.p_same) == pytest.approx(((b - a).mean(), t.pvalue, ci.low, ci.high, same))
        assert (row.asked, row.scored, row.groups, row.margin) == (30, 30, 30, .4)

def test_sources_with_several_texts_widen_the_interval():
    groups = [i//3 for i in range(30)]
    scores = drawn(n=30)
    scores['paraphrase', 'true'] = [a + .2 + (groups[i] % 2)*.6 for i, a in enumerate(scores['original', 'true'])]
    row = paraphrase_tests(frame(scores, groups=groups), margin=.7).set_index('level').loc['true']
    d = np.array(scores['paraphrase', 'true']) - scores['original', 'true']
    fit = sm.OLS(d, np.ones(30)).fit(cov_type='cluster', cov_kwds=dict(groups=groups, use_correction=False), use_t=True)
    se = fit.bse[0]*np.sqrt(10/9)
    assert row.groups == 10 and row.difference == pytest.approx(.5)
    assert (row.ci_high - row.ci_low)/2 == pytest.approx(se*scipy.stats.t.isf(.025, 9))
    assert row.p_same == pytest.approx(scipy.stats.t.cdf((.5 - .7)/se, 9))
    assert row.p == pytest.approx(2*scipy.stats.t.sf(.5/se, 9))
    assert row.ci_high - row.ci_low > 1.5*np.diff(scipy.stats.ttest_1samp(d, 0).confidence_interval())[0]

def test_the_margin_is_a_tenth_of_the_spread_of_originals_unless_it_is_given():
    scores = drawn()
    spread = np.std([x for d in LEVELS for x in scores['original', d]], ddof=1)
    assert paraphrase_tests(frame(scores)).margin.tolist() == pytest.approx([spread/10]*5)
    assert paraphrase_tests(frame(scores), share=.5).margin.tolist() == pytest.approx([spread/2]*5)
    two = pd.concat([frame(scores), frame(scores, 'f')])
    assert paraphrase_tests(two, margin=dict(e=1, f=2)).set_index('evaluator').margin.to_dict() == dict(e=1, f=2)
    with pytest.raises(BadInput, match="no margin for 'f'"): paraphrase_tests(two, margin=dict(e=1))
    for wrong in (0, -1):
        with pytest.raises(BadInput, match='margin'): paraphrase_tests(two, margin=wrong)
    with pytest.raises(BadInput, match='share'): paraphrase_tests(two, share=0)

def test_missing_scores_are_counted():
    # the fifth was never told again
    scores = {('original', 'true'): [1, None, 3, 4, 5], ('paraphrase', 'true'): [2, 2, None, 6]}
    row = paraphrase_tests(frame(scores)).iloc[0]
    assert (row.asked, row.scored, row.difference) == (4, 2, 1.5)
    assert row.margin == pytest.approx(.1*np.std([1, 3, 4, 5], ddof=1))

def test_pairs_are_of_the_same_text_whatever_the_order_of_rows():
    scores = drawn()
    shuffled = frame(scores).sample(frac=1, random_state=0)
    assert paraphrase_tests(shuffled).equals(paraphrase_tests(frame(scores))) or np.allclose(
        paraphrase_tests(shuffled).difference, paraphrase_tests(frame(scores)).difference)

@pytest.mark.parametrize('again, margin, reading', [
    ([1, 2, 3, 4], 1, 'identical'), ([2, 3, 4, 5], 1, 'constant shift'),
    ([3.1, 3.9, 5.1, 5.9], 1, 'differs'), ([1.01, 1.99, 3.01, 3.99], 1, 'the same within the margin'),
    ([1.21, 2.19, 3.21, 4.19], 1, 'differs, within the margin'), ([3, 1, 4, 2], 1, 'open'),
    ([1, None, None, None], 1, 'open')])
def test_readings(again, margin, reading):
    "One is always one higher: no spread, so no error and nothing to conclude."
    row = paraphrase_tests(frame({('original', 'true'): [1, 2, 3, 4], ('paraphrase', 'true'): again}),
                           margin=margin).iloc[0]
    assert row.reading == reading
    assert (row.p is None or pd.isna(row.p)) == (reading in ('identical', 'constant shift')
                                                 or again == [1, None, None, None])

def test_one_source_says_nothing():
    row = paraphrase_tests(frame({('original', 'true'): [1, 2, 3], ('paraphrase', 'true'): [2, 4, 3]},
                                 groups=[0, 0, 0]), margin=5).iloc[0]
    assert (row.scored, row.groups, row.difference, row.reading) == (3, 1, 1, 'open')

def test_an_evaluator_without_spread_has_no_margin_and_no_conclusion():
    row = paraphrase_tests(frame({('original', 'true'): [1, 1, 1], ('paraphrase', 'true'): [1, 2, 1]})).iloc[0]
    assert row.margin is None or pd.isna(row.margin)
    assert pd.isna(row.p_same) and row.reading == 'open'

def test_q_is_over_the_evaluators_of_a_level():
    "By hand, Benjamini and Hochberg of three: the largest stays, the middle one counts 3/2 times, the least thrice."
    parts = [frame(drawn(s, shift=x), f'e{s}') for s, x in enumerate((.3, .1, 0))]
    found = paraphrase_tests(pd.concat(parts), margin=.3)
    for d in LEVELS:
        part = found[found.level == d]
        for raw, adjusted in (('p', 'q'), ('p_same', 'q_same')):
            least, middle, most = sorted(part[raw])
            by_hand = [min(3*least, 1.5*middle, most), min(1.5*middle, most), most]
            assert sorted(part[adjusted]) == pytest.approx(by_hand) and set(part.family) == {3}

@pytest.mark.parametrize('bias, column', [(0, 'p'), (.2, 'p_same')])
def test_the_tests_keep_their_level(bias, column):
    """Without a difference 5 % are called different; with one as large as the margin 5 % are called the same. 400
    draws: 5 % give or take 1.1 points."""
    rng, rows = np.random.default_rng(1), []
    for i in range(400): # as many evaluators of the same twenty texts
        a = rng.normal(0, 1, 20)
        for v, scores in (('original', a), ('paraphrase', a + bias + rng.normal(0, .3, 20))):
            rows += [(f'it-{j}/{v}/true', f'e{i}', x, f'g{j}', v, 'true') for j, x in enumerate(scores)]
    found = paraphrase_tests(pd.DataFrame(rows, columns=['example_id',
                                                         'evaluator', 'value', 'group', 'variant', 'level']), margin=.2)
    assert len(found) == 400 and .02 < (found[column] < .05).mean() < .09

def test_what_is_not_there():
    scores = drawn()
    with pytest.raises(BadInput, match="no re-tellings of the variant 'flashback'; there are paraphrase"):
        paraphrase_tests(frame(scores), 'flashback')
    with pytest.raises(BadInput, match="no re-tellings of the variant 'original'"):
        paraphrase_aucs(frame(scores), 'original')
    with pytest.raises(BadInput, match='lacks the column'): paraphrase_tests(frame(scores).drop(columns='group'))

# AUCs

def test_aucs_against_scikit_learn():
    scores = drawn(shift=.3, noise=2)
    found = paraphrase_aucs(frame(scores)).set_index('difficulty')
    assert list(found.index) == list(DIFFICULTIES)
    for d in DIFFICULTIES:
        first, again = (roc_auc_score([1]*30 + [0]*30, scores[v, 'true'] + scores[v, d])
                        for v in ('original', 'paraphrase'))
        row = found.loc[d]
        assert (row.auc, row.auc_retold, row.difference) == pytest.approx((first, again, again - first))
        assert (row.asked, row.scored, row.groups, row.lies) == (60, 60, 30, 'retold')
        assert row.ci_low < row.difference < row.ci_high

def test_flashbacks_of_the_truth_meet_the_original_lies():
    scores = drawn(lies=False)
    as_flashback = {('flashback' if v == 'paraphrase' else v, d): [y - 3 for y in x]
                    if v == 'paraphrase' else x for (v, d), x in scores.items()}
    found = paraphrase_aucs(frame(as_flashback), 'flashback').set_index('difficulty')
    for d in DIFFICULTIES:
        assert found.auc_retold[d] == pytest.approx(roc_auc_score([1]*30 + [0]*30,
                                                                  as_flashback['flashback', 'true']
                                                                  + scores['original', d]))
        assert found.lies[d] == 'original'
    assert (found.ci_high < 0).all() and (found.p < .05).all()

def test_a_missing_score_takes_its_pair_along():
    scores = {k: list(v) for k, v in drawn(n=8).items()}
    scores['paraphrase', 'true'][2] = None
    scores['original', 'easy'][5] = None
    row = paraphrase_aucs(frame(scores)).set_index('difficulty').loc['easy']
    true, lie = [i for i in range(8) if i != 2], [i for i in range(8) if i != 5]
    first, again = (roc_auc_score([1]*7 + [0]*7, [scores[v, 'true'][i] for i in true]
                                  + [scores[v, 'easy'][i] for i in lie]) for v in ('original', 'paraphrase'))
    assert (row.asked, row.scored) == (16, 14)
    assert (row.auc, row.auc_retold, row.difference) == pytest.approx((first, again, again - first))

def test_a_shift_of_everything_moves_scores_and_no_auc():
    scores = drawn(noise=0, shift=-.5)
    assert (paraphrase_tests(frame(scores)).difference.round(9) == -.5).all()
    assert (paraphrase_aucs(frame(scores)).difference == 0).all()
