"Decisions on comparisons of two texts: by hand, against other packages, planted judges, honest ones, the page."
import html
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from factlib.core.records import BadInput
from factlib.report.tables import read_table
from factlib.trust.pairs import agree_decision, compare, confusion, kappa_within, majority, pair_habits, pair_needs
from factlib.trust.pairs import pair_uses, rank_decision, verdict_matrix
from factlib.trust.trust import write_trust
from factlib.trust.decision import NO, NOT_YET, YES
from factlib.trust.verdicts import Comparisons, verdict_column

NONE = pd.DataFrame(columns=['column', 'role', 'why', 'flag'])

def record(judges, humans, swapped=None, **columns):
    "A file of comparisons with these verdicts and columns."
    n = len(next(iter(humans.values())))
    frame = pd.DataFrame(dict(item=[f'p{i}' for i in range(n)], row=range(1, n + 1)) | columns)
    floats = lambda verdicts: {name: np.array(x, dtype=float) for name, x in verdicts.items()}
    return Comparisons('pairs.csv', frame, floats(judges), floats(humans), floats(swapped or {}), 'group' in columns,
                       '', NONE, NONE, ())

def world(rng, n=400, systems=4, people=1, noises=(), skew=0., tie=.2, group=1,
          linked=.25):
    "Pairs of texts of known quality: verdicts of people and of honest judges with these noises, once and once more."
    names = np.array(['gpt-4', 'mint', 'sage', 'thyme', 'dill'][:systems])
    pairs = np.array([rng.permutation(systems)[:2] for _ in range(n)])
    pairs = np.where(rng.random((n, 1)) < skew, np.sort(pairs, 1), pairs) # the better system stands first more often
    quality = np.linspace(.9, -.9, systems)[pairs] + rng.normal(size=(n, 2))
    apart = quality[:, 0] - quality[:, 1]
    def verdict(sd, more=0.):
        x = apart + more + rng.normal(size=n)*sd
        return np.where(np.abs(x) < tie, .5, x > 0)
    words = np.exp(rng.normal(size=(n, 2))*.4 + linked*quality)*40
    texts = {f'text_{side}': [' '.join(['word']*max(1, int(x))) for x in words[:, k]]
             for k, side in enumerate(('first', 'second'))}
    humans = {name: verdict(.7) for name in ('ann', 'bob', 'cy')[:people]}
    judges = {f'gpt-4-judge{i}': verdict(sd) for i, sd in enumerate(noises)}
    columns = dict(first=names[pairs[:, 0]], second=names[pairs[:, 1]], **texts)
    if group > 1: columns['group'] = np.arange(n)//group
    return record(judges, humans, {}, **columns), verdict, np.log2(words[:, 0]/words[:, 1])

def decided(found): return found.decisions.set_index(['judge', 'use'])

# --- by hand

def test_two_systems_as_people_and_the_judge_see_them():
    "People prefer mint in 12 of 24 pairs, the judge in 4; they agree on 16."
    first = ['mint', 'sage']*12
    people_mint, judge_mint = [1]*12 + [0]*12, [1]*4 + [0]*20
    verdict = lambda mint: [m if a == 'mint' else 1 - m for m, a in zip(mint, first)]
    second = ['sage' if a == 'mint' else 'mint' for a in first]
    found = compare(record(dict(pick=verdict(judge_mint)), dict(ann=verdict(people_mint)), first=first, second=second))
    rates = found.tables['win_rates'].set_index('system')
    assert rates.people['mint'] == .5 and rates.rate['mint'] == pytest.approx(4/24)
    assert rates.difference['mint'] == pytest.approx(-8/24) and rates.difference['sage'] == pytest.approx(8/24)
    why = decided(found).why
    assert '12 of 24 pairs' in why['pick', 'rank'] and 'the judge in 4' in why['pick', 'rank']
    assert '−33 [' in why['pick', 'rank'] and decided(found).decision['pick', 'rank'] == NO
    assert '67 %' in why['pick', 'agree'] and 'of 24 pairs' in why['pick', 'agree']
    assert decided(found).decision['pick', 'agree'] == NOT_YET and 'you have 24' in why['pick', 'agree']

def test_kappa_and_confusion_are_those_of_another_package():
    metrics = pytest.importorskip('sklearn.metrics')
    rng = np.random.default_rng(0)
    a, b = rng.choice([0, .5, 1], 200, p=[.4, .2, .4]), rng.choice([0, .5, 1], 200)
    a = np.where(rng.random(200) < .5, b, a)
    found = compare(record(dict(judge=a), dict(ann=b)))
    label = lambda x: (x*2).astype(int)
    row = found.tables['agreement'].set_index('judge').loc['judge']
    assert row.kappa == pytest.approx(metrics.cohen_kappa_score(label(a), label(b)))
    assert row.accuracy == pytest.approx(np.mean(a == b)) and row.untied == pytest.approx(np.mean((a == b)[b != .5]))
    theirs = metrics.confusion_matrix(label(b), label(a), labels=[2, 1, 0]).ravel()
    assert confusion(found.matrix).pairs.tolist() == theirs.tolist()

def test_most_people_and_a_tie_where_they_split():
    nan = np.nan
    votes = np.array([[1, 1, 0], [1, 0, nan], [1, .5, nan], [1, .5, 0], [.5, .5, 1], [nan, nan, 0], [nan]*3]).T
    np.testing.assert_array_equal(majority(list(votes)), [1, .5, .5, .5, .5, 0, nan])

def test_kappa_within_parts_by_hand():
    "In each part judge and people always say one thing, so that within parts nothing is shown; pooled it is 1."
    x, part = np.array([1.]*10 + [0.]*10), np.array([0]*10 + [1]*10)
    assert kappa_within(x, x, part, np.arange(20)).estimate is None # no part has a disagreement that chance would give
    people = np.array([1.]*8 + [0]*2 + [0.]*8 + [1]*2)
    judge = np.array([1.]*9 + [0] + [0.]*9 + [1])
    # each part: 9 of 10 agree; by chance .8*.9 + .2*.1 = .74
    assert kappa_within(judge, people, part, np.arange(20)).estimate == pytest.approx((.9 - .74)/(1 - .74))

def test_a_column_of_few_values_that_alone_says_who_wins_gives_no_yes():
    rng = np.random.default_rng(1)
    dataset = np.arange(400) % 2
    people = np.where(rng.random(400) < .9, dataset, 1 - dataset).astype(float)
    judge = dataset.astype(float)
    found = compare(record(dict(judge=judge), dict(ann=people), dataset=np.array(['x', 'y'])[dataset]))
    assert found.tables['agreement'].set_index('judge').kappa_low['judge'] > .6
    assert decided(found).decision['judge', 'agree'] == NOT_YET
    assert 'most frequent by dataset' in decided(found).why['judge', 'agree']
    assert set(found.tables['strata'].value) == {'x', 'y'}

def test_what_is_asked_of_comparisons():
    assert pair_uses(('rank', 'filter')) == ('agree', 'rank') and pair_uses() == ('agree', 'rank', 'replace')
    assert pair_needs()['agree'] == .6 and pair_needs(dict(rank=.9))['rank'] == .9

def test_verdicts_that_are_missing_count_at_their_worst():
    rng = np.random.default_rng(3)
    people = rng.integers(0, 2, 200).astype(float)
    judge = people.copy()
    assert agree_decision(verdict_matrix(record(dict(j=judge), dict(ann=people))), 'j', .6).decision == YES
    judge[:80] = np.nan
    d = agree_decision(verdict_matrix(record(dict(j=judge), dict(ann=people))), 'j', .6)
    assert d.decision == NOT_YET and '80 pairs on which it gave no verdict' in d.why and d.n == 120

def test_what_has_no_judge_no_person_or_nothing_in_common_is_refused():
    with pytest.raises(BadInput, match='human'): verdict_matrix(replace(record(dict(j=[1]), dict(a=[1])), humans={}))
    with pytest.raises(BadInput, match='judge'): verdict_matrix(record({}, dict(a=[1.])))
    with pytest.raises(BadInput, match='nothing to compare'):
        verdict_matrix(record(dict(j=[1, np.nan]), dict(a=[np.nan, 1])))

@pytest.mark.parametrize('judge, people', [([1]*6, [1]*6), ([1], [0]), ([1]*6, [0, 1, .5]*2), ([.5]*6, [1]*6)])
def test_few_or_constant_verdicts_are_decided_without_a_fault(judge, people):
    found = compare(record(dict(j=judge), dict(ann=people, bob=people), first='x', second='y'))
    assert YES not in set(found.decisions.decision) and 'nan' not in ' '.join(found.decisions.why).lower()
    assert found.page()

# --- planted judges

@pytest.fixture(scope='module', params=[1, 2], ids=['one person', 'two people'])
def planted(request):
    rng = np.random.default_rng(7)
    file, verdict, lengths = world(rng, 900, people=request.param, group=3, linked=0.)
    own = (file.frame['first'] == 'gpt-4')*1. - (file.frame['second'] == 'gpt-4')
    judges = {'near': verdict(.1), 'coin': rng.integers(0, 2, 900)*1., 'place': verdict(.4, .9),
              'wordy': verdict(.4, 1.2*lengths), 'gpt-4-mini': verdict(.4, 1.2*own), 'decided': verdict(.4),
              'always': np.ones(900), 'twice': verdict(.4, 1.)}
    judges['decided'] = np.where(judges['decided'] == .5, 1., judges['decided'])
    return compare(replace(file, judges=judges, swapped=dict(twice=verdict(.4, -1.))))

@pytest.mark.parametrize('judge, habit', [
    ('near', ''), ('place', 'place'), ('wordy', 'length'), ('gpt-4-mini', 'own texts'), ('decided', 'ties'),
    ('always', 'place'), ('twice', 'place')])
def test_a_planted_judge_has_its_own_habit(planted, judge, habit):
    own = planted.habits[(planted.habits.judge == judge) & (planted.habits.found == True)].habit.tolist()
    assert habit in own if habit else not own
    assert not set(own) - {habit, 'ties', *(['place'] if judge == 'decided' else [])}

def test_decisions_of_planted_judges(planted):
    decisions = decided(planted).decision
    for judge in ('coin', 'always', 'place'): assert decisions[judge, 'agree'] == NO
    assert decisions['coin', 'rank'] != YES and decisions['near', 'rank'] == YES
    assert planted.judges[0] in ('near', 'decided', 'wordy') and planted.judges[-1] in ('coin', 'always')

def test_both_orders_of_a_judge(planted):
    row = planted.tables['orders'].set_index('judge').loc['twice']
    assert row.same + row.by_first + row.by_second + row.half == row.pairs == 900 and row.by_first > 5*row.by_second
    merged = planted.matrix.judges['twice']
    original, swapped = planted.file.judges['twice'], planted.file.swapped['twice']
    assert (merged[original != swapped] == .5).all() and (merged == original)[original == swapped].all()

def test_strengths_stand_beside_win_rates(planted):
    table = planted.tables['strengths']
    own = table[table.judge == 'near'].set_index('system')
    assert own.people.sum() == pytest.approx(0, abs=1e-6) and list(own.index) == ['gpt-4', 'mint', 'sage', 'thyme']
    assert (own.strength_low < own.strength).all() and (own.strength < own.strength_high).all()

def test_a_system_that_always_wins_has_a_win_rate_and_a_reason_instead_of_a_strength():
    pairs = [('best', 'mid'), ('mid', 'low'), ('best', 'low'), ('low', 'mid')]*10
    people = [1, 1, 1, 1]*10
    found = compare(record(dict(j=people), dict(ann=people), first=[a for a, _ in pairs], second=[b for _, b in pairs]))
    row = found.tables['strengths'].set_index('system').loc['best']
    assert np.isnan(row.people) and 'won all' in row.note
    assert found.tables['win_rates'].set_index('system').people['best'] == 1

def test_honest_noisy_judges_are_hardly_ever_accused():
    accused, n = [], 0
    for seed in range(8): # 40 judges; over 800 it was 2
        rng = np.random.default_rng(seed)
        file, verdict, _ = world(rng, (80, 300)[seed % 2], 4, 1 + seed//2 % 2, rng.uniform(.3, 2, 5), (0, .8)[seed//4],
                                 group=1 + seed % 3)
        if seed % 2: file = replace(file, swapped={name: verdict(.8) for name in list(file.judges)[:2]})
        habits = pair_habits(verdict_matrix(file))
        n += habits.judge.nunique()
        accused += habits[habits.found == True][['judge', 'habit']].values.tolist()
    assert n == 40 and len(accused) <= 1, accused

def test_with_one_person_a_length_that_goes_with_quality_is_no_proof_and_with_two_it_is():
    shown = {}
    for people in (1, 2):
        file, verdict, lengths = world(np.random.default_rng(7), 900, people=people, linked=.25)
        habits = pair_habits(verdict_matrix(replace(file, judges=dict(wordy=verdict(.4, 1.2*lengths)))))
        shown[people] = habits.set_index('habit').found['length']
    assert shown == {1: False, 2: True}

# --- the page

def test_no_word_of_single_texts_is_said(planted, tmp_path):
    page = planted.page()
    assert 'table.matrix' in page.split('</style>')[0] # it is not bare
    seen = html.unescape(re.sub(r'<style>.*?</style>|<[^>]+>', ' ', page, flags=re.S))
    for wrong in ('good text', 'bad text', 'its mean', 'people give', 'stopping all', '--system'):
        assert wrong not in seen.lower(), wrong
    for right in ('agree with people', 'rank systems', 'win rate', "Cohen's kappa", 'Bradley', 'First (', 'Second ('):
        assert right in seen
    assert ('replace a person' in seen) and page.count('<figure>') == 3

def test_a_comparison_is_written_as_any_result(planted, tmp_path):
    page = write_trust(planted, tmp_path/'out')
    names = {p.name for p in (tmp_path/'out'/'tables').iterdir()}
    assert {'decisions.csv', 'agreement.csv', 'win_rates.csv', 'strengths.csv', 'habits.csv', 'confusion.csv'} <= names
    result = json.loads((tmp_path/'out'/'result.json').read_text())
    assert result['evaluators']['near'] == dict(asked=900, scored=900, signature='recorded|pairs.csv', usage={})
    assert 'tables/win_rates.csv' in page.read_text(encoding='utf-8')
    assert not (tmp_path/'out'/'items.parquet').exists()
    assert len(read_table(tmp_path/'out'/'tables'/'win_rates.csv')) == len(planted.tables['win_rates'])
    json.dumps(planted.to_dict(), allow_nan=False)
    assert 'comparisons of two texts of 4 systems' in planted.counts and len(planted.leads) == 8

def test_from_words_to_a_decision():
    "Winners by the name of the system for people, by letters for the judge."
    first, second = ['mint', 'sage']*20, ['sage', 'mint']*20
    people = verdict_column(['MINT', 'Mint']*20, first, second, 'model_name', 'baseline_name')
    judge = verdict_column(['[[A]]', '[[B]]']*20, first, second, 'model_name', 'baseline_name')
    found = compare(record(dict(j=judge.verdicts), dict(ann=people.verdicts), first=first, second=second))
    rates = found.tables['win_rates'].set_index('system')
    assert rates.people['mint'] == rates.rate['mint'] == 1 and found.tables['agreement'].kappa.iloc[0] == 1
    d = rank_decision(found.matrix, 'j', .8)
    assert '40 of 40 pairs' in d.why
