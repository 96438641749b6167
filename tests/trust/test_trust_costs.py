"Best for its price: costs told by names, beside ratings, given; the frontier by hand; nothing where no costs are."
import json

import numpy as np
import pandas as pd
import pytest
from command import factlib_inside
from summhay_rows import JUDGES, summhay_frame

from factlib.trust.scores import read_scores
from factlib.core.files import data_home
from factlib.core.records import BadInput
from factlib.trust.trust import trust, write_trust
from factlib.trust.agreement import agreement_lead
from factlib.trust.costs import cost_table
from factlib.trust.matrix import score_matrix
from factlib.report.tables import read_table
from factlib.validity.detection import auc_test

def rows(**more):
    rng = np.random.default_rng(0)
    human = np.clip(np.rint(3 + rng.normal(size=400)), 1, 5)
    noisy = lambda sd: np.clip(np.rint(human + sd*rng.normal(size=400)), 1, 5)
    return pd.DataFrame({'doc': np.arange(400)//8, 'human': human, 'gpt-4o': noisy(.5), 'gpt-4o-mini': noisy(2),
                         'opus': noisy(1.2)} | more)

def means(file): return file.costs.frame.mean().to_dict()

def test_columns_of_costs_are_told_by_the_judges_names():
    frame = rows(**{'cost_gpt-4o': .02, 'gpt-4o-mini cost (USD)': '$0.001', 'opusTotalUsd': .06, 'price': 9.})
    file = read_scores(frame, group='doc')
    assert set(file.judges) == {'gpt-4o', 'gpt-4o-mini', 'opus'}
    assert means(file) == pytest.approx({'gpt-4o': .02, 'gpt-4o-mini': .001, 'opus': .06})
    assert sum(line.startswith('cost: ') and '--cost' in line for line in file.said) == 3
    assert read_scores(frame, group='doc', cost='').costs is None

def test_money_goes_before_tokens_and_tokens_add_up():
    frame = rows(**{f'{j}_{way}_tokens': n for j in ('gpt-4o', 'gpt-4o-mini') for way, n in (('in', 100), ('out', 7))})
    file = read_scores(frame, group='doc')
    assert means(file) == {'gpt-4o': 107, 'gpt-4o-mini': 107} and file.costs.unit == 'tokens'
    file = read_scores(frame.assign(**{'gpt-4o_usd': .5}), group='doc')
    assert means(file) == {'gpt-4o': .5}
    assert any("'gpt-4o-mini' costs in the unit of the others" in line for line in file.said)

def test_a_price_that_is_a_score_stays_one():
    frame = pd.DataFrame(dict(price_gpt4=[1, 2, 3, 1], price_human=[1, 2, 3, 2]))
    file = read_scores(frame)
    assert (file.judges, file.humans, file.costs) == (('price_gpt4',), ('price_human',), None)

@pytest.mark.parametrize('unit', ['usd', 'EUR', 'euro', 'cents', 'dollar', 'prix'])
def test_a_price_alone_is_no_judge_in_any_unit(unit):
    frame = pd.DataFrame({'human': [1, 2, 3, 1], f'gpt_{unit}': [.1, .4, .2, .3]})
    with pytest.raises(BadInput, match='No column looks like a judge'): read_scores(frame)

def test_one_column_beside_ratings():
    frame = pd.DataFrame(dict(item=['a', 'a', 'a', 'b', 'b', 'b'], rater=['ann', 'gpt4', 'opus']*2,
                              rating=[1, 2, 1, 3, 3, 2], cost_usd=[None, .01, .05, None, .03, .07]))
    file = read_scores(frame)
    assert means(file) == pytest.approx(dict(gpt4=.02, opus=.06)) and file.costs.unit == 'USD'
    assert read_scores(frame.drop(columns='cost_usd'), cost='gpt4=2').costs.frame.gpt4.tolist() == [2, 2]

@pytest.mark.parametrize('cost,said', [
    ('nobody=.1', "no judge 'nobody'"), ('gpt-4o=elsewhere', "no column 'elsewhere'"), ('doc', 'whose cost'),
    ('opus=-1', "no column '-1'"), ('opus=1,opus=2', 'twice'), ('opus=bad', 'below 0'),
    ('opus=word', 'holds no costs')])
def test_a_cost_that_is_none_is_one_sentence(cost, said):
    with pytest.raises(BadInput, match=said): read_scores(rows(bad=-.1, word='dear'), group='doc', cost=cost)

def test_who_is_worth_the_price():
    frame = rows(same=rows()['gpt-4o'])
    found = trust(frame, judge='gpt-4o,gpt-4o-mini,opus,same', group='doc',
                  cost={'gpt-4o-mini': .001, 'gpt-4o': .02, 'opus': .06, 'same': .03})
    worth = found.tables['costs'].set_index('judge').worth
    assert worth.to_dict() == {'gpt-4o-mini': 'cheapest', 'gpt-4o': 'yes', 'same': 'no', 'opus': 'no'}
    assert list(worth.index) == ['gpt-4o-mini', 'gpt-4o', 'same', 'opus']
    assert found.prices[0].endswith('gpt-4o-mini and gpt-4o.') and '20 times' in found.prices[2]
    row = found.tables['costs'].set_index('judge').loc['opus']
    agreement = found.tables['agreement'].drop_duplicates('judge').set_index('judge').spearman
    assert row.agreement == pytest.approx(agreement.opus) and row.against == 'gpt-4o'
    assert row.lead == pytest.approx(agreement.opus - agreement['gpt-4o'])

def test_judges_that_cost_the_same_do_not_hold_each_other_back():
    """Two cost nothing and are alike, two are the same judge's at one price and both better, a third costs as much and
    is worse than they are."""
    rng = np.random.default_rng(1)
    human = rng.normal(size=400)
    noisy = lambda sd: human + sd*rng.normal(size=400)
    frame = pd.DataFrame(dict(doc=np.arange(400)//8, human=human, length=noisy(3), words=noisy(3), plain=noisy(.5),
                              poor=noisy(2)))
    frame['weighted'] = frame.plain + .05*rng.normal(size=400)
    found = trust(frame, judge='length,words,plain,weighted,poor', group='doc',
                  cost=dict(length=0, words=0, plain=999.7, weighted=999.7, poor=999.7))
    table = found.tables['costs'].set_index('judge')
    worth = dict(length='cheapest', words='cheapest', plain='yes', weighted='yes', poor='no')
    assert table.worth.to_dict() == worth
    assert table.agreement[:2].is_monotonic_decreasing and table.agreement[2:].is_monotonic_decreasing
    best, other = table.index[:2]
    headline, cheapest, alike, *lines = found.prices
    assert headline.endswith(f'cost less): {best}, {table.index[2]} and {table.index[3]}.'), headline
    assert cheapest.startswith(f'{best} is the cheapest: 0 a judgement') and alike.endswith(f'less: {other}.')
    assert table.against[['plain', 'weighted']].isin(['length', 'words']).all()
    assert lines[-1].startswith('poor (1,000), at the price of ') and 'is not worth it' in lines[-1], lines

def test_alike_judges_are_hardly_ever_called_worth_more():
    called = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        human = np.repeat(rng.normal(size=20), 5)*.6 + rng.normal(size=100)
        given = {f'gpt-{i}': human + np.repeat(rng.normal(size=20), 5)*.6 + rng.normal(size=100) for i in range(4)}
        frame = pd.DataFrame(dict(doc=np.arange(100)//5, human=human) | given)
        file = read_scores(frame, group='doc', cost={name: i + 1. for i, name in enumerate(given)})
        called += (cost_table(score_matrix(file)).worth.isin(['yes', 'no'])).any()
    assert called <= 6 # six pairs of alike judges in each

def test_the_lead_of_auc_is_that_of_the_library():
    rng = np.random.default_rng(3)
    good, groups = rng.integers(0, 2, 300).astype(float), np.arange(300)//10
    a, b = (good + rng.normal(size=300)*sd for sd in (1, 2))
    mine = agreement_lead('auc', a, b, good, groups)
    side = lambda x: (x[good == 1], x[good == 0])
    theirs = auc_test(*side(a), *side(b), groups=(groups[good == 1], groups[good == 0]))
    assert mine.estimate == pytest.approx(theirs.estimate) and mine.p == pytest.approx(theirs.p, rel=.2)

def test_a_column_given_as_a_cost_is_no_judge_whatever_the_blanks():
    frame = rows(**{'opus_fee': np.tile([1., 2., 3., 4.], 100)})
    for cost in ('opus=opus_fee', 'opus = opus_fee', dict(opus='opus_fee')):
        file = read_scores(frame, cost=cost)
        assert set(file.judges) == {'gpt-4o', 'gpt-4o-mini', 'opus'} and means(file) == dict(opus=2.5)

def test_the_accuracy_of_many_labels_stands_beside_its_price():
    human = [f'kind {c}' for c in 'abcdefghijklmn']*20
    near, far = ([label if i % k else 'kind a' for i, label in enumerate(human)] for k in (5, 2))
    frame = pd.DataFrame(dict(human=human, gpt=near, opus=far))
    table = cost_table(score_matrix(read_scores(frame, cost='gpt=2,opus=1'))).set_index('judge')
    assert table.measure.eq('accuracy').all()
    for name, given in (('gpt', near), ('opus', far)):
        assert table.agreement[name] == pytest.approx(np.mean([a == b for a, b in zip(given, human)]))
        assert table.low[name] < table.agreement[name] < table.high[name]

def test_nothing_is_said_where_no_costs_are(tmp_path):
    found = trust(rows(), group='doc')
    assert found.prices == [] and 'costs' not in found.tables
    assert 'Best for its price' not in write_trust(found, tmp_path/'out').read_text('utf-8')

def test_the_command_and_its_page(tmp_path):
    rows(**{'cost_gpt-4o': .02, 'cost_opus': .06}).to_csv(tmp_path/'a.csv', index=False)
    done = factlib_inside('trust', 'a.csv', '--group', 'doc', '--out', 'out', '--json',
                          '--cost', 'mini=.001,opus=cost_opus', cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [row['judge'] for row in said['costs']] == ['gpt-4o-mini', 'opus'] and said['prices'][0] in \
        (tmp_path/'out'/'index.html').read_text('utf-8').replace('&#39;', "'")
    assert read_table(tmp_path/'out'/'tables'/'costs.csv').worth.tolist() == ['cheapest', 'yes']

def test_summhays_best_for_the_price(tmp_path):
    "Prices as the card has them: dollars of one summary."
    home = data_home()
    path = home and home/'summhay'/'eval_benchmark_data.json'
    if not path or not path.is_file(): pytest.skip('SummHay is not here')
    prices = dict(zip(JUDGES, (.0758, .1306, .0344, .1190, .0020, .0067)))
    found = trust(summhay_frame(path), judge=list(JUDGES), human='people', group='subtopic', system='writer',
                  text='insight', cost=prices)
    table = found.tables['costs'].set_index('judge')
    assert list(table.index) == sorted(JUDGES, key=prices.get)
    assert table.worth['gpt-4o'] == 'yes' and table.worth['claude3-opus'] == 'no'
    assert table.worth['gpt3.5'] != 'yes' # three times what Haiku costs

@pytest.mark.parametrize('cost, told', [(7, 'a dict of judges, not 7'), ({'gpt': ['a', 'b']}, "not ['a', 'b']"),
                                        ({'gpt': None}, 'not None')])
def test_what_is_no_cost_is_one_sentence(cost, told):
    frame = pd.DataFrame(dict(id=range(6), gpt=[1, 2, 3, 4, 5, 1], human=[1, 2, 3, 4, 5, 2], a=.1, b=.2))
    with pytest.raises(BadInput) as refused: trust(frame, judge='gpt', human='human', cost=cost)
    assert told in str(refused.value)
