"Weights and chances of rows: by hand, by simulation, refused where they are none."
import numpy as np
import pandas as pd
import pytest
from command import factlib_inside

from factlib.apps.annotate_plan import chances, systematic
from factlib.apps.annotate_store import label_rows
from factlib.trust.scores import read_scores
from factlib.core.records import BadInput
from factlib.trust.trust import WEIGHTED, trust
from factlib.trust.matrix import score_matrix
from factlib.trust.means import mean_bias, mean_table

def frame(**more):
    return pd.DataFrame(dict(judge=[2., 3., 4., 5., 1., 3.], human=[1., 3., 5., 4., None, None]) | more)

def both(**more): return dict(judge='judge', human='human') | more

def test_a_weight_is_a_role_and_said(tmp_path):
    rows = frame(weight=[1., 2., 1., 4., 3., 1.])
    rows.to_csv(tmp_path/'a.csv', index=False, sep=';', decimal=',')
    rows.to_json(tmp_path/'a.jsonl', orient='records', lines=True)
    for given in (rows, tmp_path/'a.csv', tmp_path/'a.jsonl'):
        file = read_scores(given, **both())
        assert file.frame.weight.tolist() == [1, 2, 1, 4, 3, 1] and 'weight' in file.roles.role.tolist()
        assert any(line.startswith("weight: 'weight'") and '--weight' in line for line in file.said)
    assert WEIGHTED in trust(rows, **both()).warnings
    assert trust(rows, weight='', **both()).matrix.weights is None
    named = read_scores(rows.rename(columns=dict(weight='w')), weight='w', **both())
    assert named.frame.weight.tolist() == [1, 2, 1, 4, 3, 1]

def test_inverse_probability_weighting_by_hand():
    # chances .5, .25, 1, .5 of those scored: weights 2, 4, 1, 2; of the others .5 and .2: 1/(1 - p) = 2 and 1.25
    found = score_matrix(read_scores(frame(chance=[.5, .25, 1., .5, .5, .2]), **both()))
    assert found.weights.tolist() == pytest.approx([2, 4, 1, 2, 2, 1.25])
    people = (2*1 + 4*3 + 1*5 + 2*4)/9
    row = mean_table(found).iloc[0]
    assert row.labels_mean == pytest.approx(people)
    assert row.judge_mean == pytest.approx((2*2 + 4*3 + 4 + 2*5 + 2*1 + 1.25*3)/12.25)
    assert mean_bias(found, 'judge').estimate == pytest.approx((2*1 + 4*0 + 1*-1 + 2*1)/9)
    assert row.alone_for_1 > row.labels # four labels, one of weight 4: no narrow interval
    own, rest = (2*2 + 4*3 + 4 + 2*5)/9, (2*1 + 1.25*3)/3.25 # PPI: people + c (the rest's judge - the labelled ones')
    share = (row.calibrated - people)/(rest - own)
    assert 0 <= share <= 1

def test_whoever_has_no_weight_takes_no_part_and_it_is_said():
    file = read_scores(frame(chance=[.5, .25, 1., .5, 1., .2]), **both()) # drawn for sure, and without an answer
    assert file.frame.weight.isna().tolist() == [False]*4 + [True, False]
    assert any('1 row has no chance' in line for line in file.said)
    assert mean_table(score_matrix(file)).texts[0] == 5
    file = read_scores(frame(weight=[1, 2, np.inf, 1, 1, 1]), **both()) # no number
    assert any('1 row has no weight' in line for line in file.said)

@pytest.mark.parametrize('name,values,said', [
    ('weight', [1, -1, 1, 1, 1, 1], "must hold weights above 0, and holds -1"),
    ('weight', [1, 0, 1, 1, 1, 1], 'holds 0'), ('weight', [None]*6, 'holds no number at all'),
    ('weight', list('abcabc'), 'holds no number at all'),
    ('chance', [.5, 1.5, 1, 1, 1, 1], 'must hold chances above 0 and up to 1, and holds 1.5')])
def test_what_is_no_weight_is_one_sentence(name, values, said, tmp_path):
    rows = frame(**{name: values})
    with pytest.raises(BadInput, match=said) as e: read_scores(rows, **both())
    assert '--weight' in str(e.value)
    read_scores(rows, weight='', **both())
    rows.to_csv(tmp_path/'a.csv', index=False)
    done = factlib_inside('trust', 'a.csv', '--judge', 'judge', '--human', 'human', '--out', 'out', cwd=tmp_path)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and not (tmp_path/'out').exists()

def test_a_weight_that_differs_between_ratings_of_an_item_is_none():
    rows = pd.DataFrame(dict(item=['a', 'a', 'b', 'b'], rater=['ann', 'gpt4']*2, rating=[1, 2, 2, 1],
                             weight=[1, 2, 1, 1]))
    with pytest.raises(BadInput, match='differs between ratings'): read_scores(rows)
    assert read_scores(rows.assign(weight=[2, 2, 1, 1])).frame.weight.tolist() == [2, 1]

def test_drawn_for_sure_is_said():
    said = lambda chance: ' '.join(read_scores(frame(chance=chance), **both()).said)
    assert '1 row that people scored was drawn for sure' in said([.5, .25, 1., .5, .5, .2])
    assert 'for sure' not in said([.5, .25, .9, .5, .5, .2])

@pytest.mark.parametrize('by_groups', [False, True])
@pytest.mark.parametrize('n_drawn', [80, 200])
def test_drawing_by_doubt_stays_unbiased(by_groups, n_drawn):
    """The judge is too kind where in doubt, and people are shown these texts: plain means are off, weighted ones not.

    With 200 of 400 the most doubtful would be drawn for sure, and no text without a label were like them."""
    found, plain, inside = [], [], 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = 400
        shared = np.repeat(rng.normal(size=n//4), 4)*.5 if by_groups else 0
        doubt = rng.random(n)**(1 if n_drawn == 80 else 4)
        truth = 3 + shared + rng.normal(size=n)*.7 - 1.5*doubt
        judge = truth + rng.normal(size=n)*.5 + 1.2*doubt
        chance = chances(doubt, n_drawn)
        drawn = set(systematic(chance, rng))
        population = [dict(item=str(i), group=f'g{i//4}' if by_groups else str(i), chance=float(p),
                           scores=dict(judge=float(x))) for i, (p, x) in enumerate(zip(chance, judge))]
        given = dict(ann={str(i): dict(label=truth[i]) for i in drawn})
        rows = label_rows(population, {str(i): {} for i in drawn}, given)
        file = read_scores(pd.DataFrame(rows), judge='judge', human='annotator_ann', group='group' if by_groups else '')
        weighed = mean_table(score_matrix(file)).iloc[0]
        found.append(weighed.calibrated - truth.mean())
        inside += weighed.calibrated_low <= truth.mean() <= weighed.calibrated_high
        plain.append(truth[sorted(drawn)].mean() - truth.mean())
    error = np.std(found)/np.sqrt(len(found))
    assert abs(np.mean(found)) < 3*error + .005 and np.mean(plain) < (-.2 if n_drawn == 80 else -.1)
    assert inside/len(found) > .85
