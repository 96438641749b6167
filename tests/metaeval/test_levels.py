"Ladders by hand and by scipy; pairs of true texts and lies counted one by one; preferences by hand."
import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from factlib.core.records import BadInput, Example
from factlib.metaeval.levels import level_statistics, loss_by_question, pairs_put_right, partial_within, score_loss
from factlib.metaeval.levels import step_shares, tau_tests, with_steps
from factlib.metaeval.preferences import composite, is_tie, preference_statistics

def ladders(seed=0, n=12):
    rng = np.random.default_rng(seed)
    rows = [dict(evaluator='e', example_id=f'{v}{q}{k}', group=f'q{q}',
                 variant=v, step=float(k), true=v == 'told' or k == 0, rouge1=round(1 - k/8 + rng.normal(0, .05), 3),
                 value=round(float(-k*(v == 'lie') + rng.normal(0, 1)), 1), words=20 + q)
            for q in range(n) for v in ('lie', 'told') for k in range(5)]
    return pd.DataFrame(rows)

def test_statistics_by_scipy():
    rows = ladders()
    table = level_statistics(rows, n_resamples=20).set_index('variant')
    for variant, part in rows.groupby('variant'):
        assert table.tau[variant] == pytest.approx(
            np.mean([scipy.stats.kendalltau(q.value, q.step).statistic for _, q in part.groupby('group')]))
        assert table.pearson[variant] == pytest.approx(scipy.stats.pearsonr(part.value, part.step).statistic)
        assert table.loss[variant] == pytest.approx(
            -np.mean([scipy.stats.linregress(q.step, q.value).slope for _, q in part.groupby('group')]))
        assert table.loc[variant, ['questions', 'asked', 'scored']].tolist() == [12, 60, 60]

def test_levels_and_pairs_of_evaluators_one_by_one():
    "Some scores are missing; what is counted are questions in which both answers have one."
    rows = ladders().query("variant == 'lie'").reset_index(drop=True)
    other = rows.assign(evaluator='f', value=np.random.default_rng(1).normal(0, 1, len(rows)).round(1))
    other.loc[::7, 'value'] = np.nan
    shares = step_shares(other).set_index('pair')
    assert list(shares.index) == ['A0 > A1', 'A0 > A2', 'A0 > A3', 'A0 > A4', 'A1 > A2', 'A2 > A3', 'A3 > A4']
    wide = other.pivot(index='group', columns='step', values='value')
    for pair, (low, high) in {'A0 > A3': (0., 3.), 'A2 > A3': (2., 3.)}.items():
        apart = (wide[low] - wide[high]).dropna()
        assert shares.loc[pair, ['asked', 'scored']].tolist() == [12, len(apart)]
        assert shares.right[pair] == pytest.approx(((apart > 0) + .5*(apart == 0)).mean())
    test = tau_tests(pd.concat([rows, other]), ['e', 'f']).iloc[0]
    both = rows.assign(f=other.value).dropna(subset=['f'])
    taus = np.array([[scipy.stats.kendalltau(q[c], q.step).statistic for c in ('value', 'f')]
                     for _, q in both.groupby('group')])
    assert (test.asked, test.scored, test.questions) == (60, len(both), 12)
    assert [test.tau_first, test.tau_second] == pytest.approx(taus.mean(0).tolist())
    assert test.difference == pytest.approx((taus[:, 0] - taus[:, 1]).mean())
    # Within -2 to 2 the difference is a share of what it can be; its distance from a half in errors of a half is t.
    d = (taus[:, 0] - taus[:, 1] + 2)/4
    u, n_star = d.mean(), d.mean()*(1 - d.mean())/scipy.stats.sem(d)**2
    assert test.p == pytest.approx(2*scipy.stats.t.sf(abs(u - .5)/(.25/n_star)**.5, 11)) and test.q == test.p
    assert test.family == 1

def test_no_loss_beyond_what_scores_allow():
    "From 1 on all lower levels to 0 on all higher ones: the steepest slope of five levels is 3/10."
    rows = pd.DataFrame([dict(evaluator='e', group=q, step=float(k), value=v[k]) for q, v in
                         dict(a=[1, 1, .5, 0, 0], b=[1, .5, .5, .5, 0.4]).items() for k in range(5)])
    free, held = score_loss(rows), score_loss(rows, limits=(0, 1))
    assert free.estimate == held.estimate and free.high > .3
    assert held.ci is None or -.3 <= held.low <= held.high <= .3
    assert score_loss(rows[rows.group == 'a']).estimate == pytest.approx(.3)

def test_pairs_one_by_one():
    rows = ladders()
    right, matched = [], []
    for _, q in rows.groupby('group'):
        for t, l in itertools.product(q[q.true].itertuples(), q[~q.true].itertuples()):
            right.append((t.value > l.value) + .5*(t.value == l.value))
            if abs(t.rouge1 - l.rouge1) <= .03 + 1e-9: matched.append(right[-1])
    put = pairs_put_right(rows).iloc[0]
    assert (put.pairs, put.matched) == (len(right), len(matched)) and put.right == pytest.approx(np.mean(right))
    assert put.matched_right == pytest.approx(np.mean(matched))

def test_partial_is_that_of_regressions():
    "Residuals of value and step on ROUGE-1 and a dummy for each question."
    rows = ladders()
    design = np.column_stack([rows.rouge1, pd.get_dummies(rows.group).to_numpy(float)])
    left = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0]
            for v in (rows.value.to_numpy(), rows.step.to_numpy())]
    assert partial_within(rows).estimate == pytest.approx(np.corrcoef(*left)[0, 1])

def test_missing_and_constant_scores():
    rows = ladders()
    rows.loc[rows.group == 'q0', 'value'] = np.nan
    rows.loc[rows.group == 'q1', 'value'] = 3.
    drop, zero = (level_statistics(rows[rows.variant == 'lie'], undefined=u, n_resamples=20).iloc[0]
                  for u in ('drop', 'zero'))
    assert drop.asked == 60 and drop.scored == 55 and zero.tau == pytest.approx(drop.tau*10/11)
    assert len(loss_by_question(rows)) == 11 and score_loss(rows[rows.group == 'q0']).estimate is None
    nothing = pairs_put_right(rows.assign(value=np.nan)).iloc[0]
    assert nothing.pairs == 0 and np.isnan(nothing.right)

def test_with_steps():
    e = Example('a', target='One two.', reference='One two three.', truth=2,
                group='q', variant='told', meta=dict(true=True))
    frame = pd.DataFrame(dict(example_id=['a', 'a'], evaluator=['x', 'y'], value=[1., None], group='q', variant='told'))
    rows = with_steps(frame, [e])
    assert list(rows.true) == [True, True] and list(rows.step) == [2, 2] and rows.rouge1[0] == pytest.approx(.8)
    assert rows.words[0] == 3
    with pytest.raises(BadInput, match="'b'"): with_steps(frame.assign(example_id='b'), [e])
    with pytest.raises(BadInput, match='variant'): level_statistics(rows.drop(columns='variant'))

@pytest.mark.parametrize('first, second, score, tie, accepted',
                         [('AI', 'Expert', 0, True, False), ('AI', 'Both are good', 1, False, True),
                          ('Both are bad', 'Expert', -1, False, False),
                           ('Both are good', 'Both are bad', 0, True, False),
                          ('Expert', 'Both are good', -1, False, True)])
def test_composite_and_ties(first, second, score, tie, accepted):
    for a, b in ((first, second), (second, first)):
        assert (composite(a, b), is_tie(a, b), is_tie(a, b, 'accepted')) == (score, tie, accepted)

def test_preferences_that_cannot_be_used():
    pairs = pd.DataFrame(dict(group=[1], level=[1], first=['AI'], second=['AI']))
    # and no power from a single pair
    assert preference_statistics(pairs, n_resamples=9).set_index('statistic').estimate['composite, t, pairs'] == 1
    for bad in (pairs[:0], pairs.assign(first='ai'), pairs.drop(columns='group')):
        with pytest.raises(BadInput): preference_statistics(bad)
