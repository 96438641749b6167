"Planted files and what a statistician would sign of each: one test a kind, with further sizes, scales and names."
import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from planted_judges import file_of, points

from factlib.trust.habits import habits_table
from factlib.trust.matrix import distinct_rows, score_matrix
from factlib.trust.scores import Scale
from factlib.trust.trust import trust
from factlib.trust.baselines import filter_leads
from factlib.trust.decision import NO, NOT_YET, YES, labels_needed_for
from factlib.trust.needs import read_needs
from factlib.trust.uses import decide

spec = importlib.util.spec_from_file_location('honest_judges', Path(__file__).parents[2]/'benchmarks'/'honest_judges.py')
honest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(honest)

TWO, FIVE, HUNDRED = Scale('binary', ('bad', 'good'), 0, 1), Scale('number', (), 1, 5), Scale('number', (), 0, 100)
SCALES = [(TWO, lambda x: (x > 0)*1.), (FIVE, lambda x: points(3 + x)), (HUNDRED, lambda x: np.clip(50 + 18*x, 0, 100))]

def made(judge, people, scale, name='judge', **columns):
    "A file with a judge and people on one scale, from qualities around 0."
    kind, rate = scale
    humans = {f'ann_{i}': rate(x) for i, x in enumerate(people)}
    scored = np.where(np.isnan(judge), np.nan, rate(np.nan_to_num(judge)))
    return file_of({name: scored, **humans, **columns}, humans=tuple(humans), judges=(name,), scale=kind)

def decided(file, uses=('filter', 'mean'), **needs):
    return decide(score_matrix(file), uses, needs).set_index('use')

def promises_a_yes(d): return 'would confirm it' in d.why

# --- one row of the table each

@pytest.mark.parametrize('n,scale,name', [(200, SCALES[1], 'judge'), (40, SCALES[0], 'gpt'), (75, SCALES[2], 'llm score')])
def test_a_copy_of_the_human_column_is_asked_about_and_nothing_else_is_said(n, scale, name):
    quality = np.random.default_rng(n).normal(size=n)
    found = decided(made(quality, [quality], scale, name), ('filter', 'mean', 'agree'))
    assert set(found.decision) == {NOT_YET}
    assert all(why == f"{name!r} is identical to 'ann_0' in {n} of {n} rows: is it a copy?" for why in found.why)

@pytest.mark.parametrize('n,scale,name', [(200, SCALES[1], 'judge'), (120, SCALES[0], 'risk'), (300, SCALES[2], 'errors')])
def test_a_reversed_judge_is_told_what_turning_it_round_gives(n, scale, name):
    rng = np.random.default_rng(n)
    quality = rng.normal(size=n)
    found = decided(made(-quality + rng.normal(0, .3, n), [quality], scale, name))
    row, mean = found.loc['filter'], found.loc['mean']
    assert mean.decision == NO and '--higher worse' in mean.why
    assert row.decision == NO and '--higher worse' in row.why and f'--judge=-{name}' in row.why
    told = float(re.search(r'would score above a bad one in (\d+) %', row.why)[1])
    assert told == pytest.approx(100 - 100*row.estimate, abs=.51)

@pytest.mark.parametrize('scale', SCALES)
@pytest.mark.parametrize('n', [60, 200])
def test_a_random_judge_is_promised_nothing(n, scale):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        found = decided(made(rng.normal(size=n), [rng.normal(size=n)], scale))
        mean = found.loc['mean']
        assert mean.decision != YES and not promises_a_yes(mean) and not promises_a_yes(found.loc['filter'])
        if mean.decision == NOT_YET and 'not shown to follow' in mean.why: assert labels_needed_for(mean.made) is None

@pytest.mark.parametrize('scale', SCALES)
@pytest.mark.parametrize('n,share', [(120, .3), (300, .45)])
def test_a_judge_that_is_silent_on_bad_texts_is_promised_nothing(n, share, scale):
    rng = np.random.default_rng(n)
    quality = rng.normal(size=n)
    judge = np.where(quality < np.quantile(quality, share), np.nan, quality + rng.normal(0, .2, n))
    found = decided(made(judge, [quality + rng.normal(0, .2, n)], scale))
    assert YES not in set(found.decision) and not found.why.str.contains('would confirm it').any()
    caught = re.search(r'counted against it, it catches (\d+) %', found.why['filter'])
    assert float(caught[1]) < 60 # its worst case is said
    assert found.made['filter'].needed is None

@pytest.mark.parametrize('n,people,scale', [(40, 2, SCALES[1]), (60, 3, SCALES[0]), (50, 2, SCALES[2])])
def test_as_good_as_a_person_among_noisy_ones_it_is_the_people_who_agree_too_little(n, people, scale):
    said = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        quality = rng.normal(0, .5, n)
        noisy = [quality + rng.normal(size=n) for _ in range(people + 1)]
        row = decided(made(noisy[0], noisy[1:], scale), ('replace',)).loc['replace']
        assert row.decision != NO
        if row.decision == NOT_YET: said.append('people agree too little for this test' in row.why)
    assert said and np.mean(said) > .7

@pytest.mark.parametrize('times', [2, 5])
@pytest.mark.parametrize('text', [True, False])
@pytest.mark.parametrize('scale', SCALES[1:])
def test_exact_duplicates_are_said_and_intervals_are_by_distinct_rows(times, text, scale):
    rng = np.random.default_rng(4)
    n = 60
    quality = rng.normal(size=n)
    columns = dict(text=[f'text {i}' for i in range(n)]) if text else {}
    once = made(quality + rng.normal(0, .7, n), [quality], scale, **columns)
    frame = pd.concat([once.frame]*times, ignore_index=True)
    frame['item'] = [f'n{i}' for i in range(len(frame))] # with identifiers of their own
    whole = replace(once, frame=frame)
    alone, many = trust(once, use='filter,mean'), trust(whole, use='filter,mean')
    assert many.matrix.clusters.max() + 1 == alone.matrix.clusters.max() + 1
    a, b = (t.decisions.set_index('use') for t in (alone, many))
    # three or four rows may be alike by chance
    assert (b.high - b.low).to_numpy() == pytest.approx((a.high - a.low).to_numpy(), rel=.02)
    assert any(f'{60*times - 60} rows are exact copies' in line and f'60 of {60*times} rows are distinct' in line
               for line in many.warnings) and not any('exact copies' in line for line in alone.warnings)

def test_rows_that_are_alike_by_chance_are_no_duplicates():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(dict(item=range(200), row=range(200), judge=rng.integers(1, 6, 200), ann=rng.integers(1, 6, 200)))
    assert len(np.unique(distinct_rows(frame))) == 200
    two = pd.DataFrame(dict(item=range(40), judge=np.tile([0, 1], 20), ann=np.tile([0, 1], 20)))
    assert len(np.unique(distinct_rows(two))) == 40 # two labels are alike in most files

@pytest.mark.parametrize('systems,n', [(4, 80), (6, 120), (3, 60)])
def test_people_who_separate_no_systems_say_so(systems, n):
    rng = np.random.default_rng(systems)
    people = np.full(n, 4.)
    people[rng.choice(n, 3, replace=False)] = 3. # nearly constant
    file = file_of(dict(judge=points(rng.normal(3, 1, n)), ann=people, system=[f's{i % systems}' for i in range(n)]))
    row = decided(file, ('rank',)).loc['rank']
    assert row.decision == NOT_YET and "eople don't separate these systems" in row.why
    assert f'{systems*(systems - 1)//2} pair' in row.why and row.made.needed is None

@pytest.mark.parametrize('n', [4, 12, 29])
@pytest.mark.parametrize('scale', SCALES)
def test_nothing_is_decided_on_fewer_than_thirty_texts(n, scale):
    rng = np.random.default_rng(n)
    people = np.tile([-1., 1.], n)[:n]
    systems = [f's{i % 2}' for i in range(n)]
    for judge in (rng.permutation(people), people + rng.normal(0, .2, n), -people):
        file = made(judge + rng.normal(0, .05, n), [people + .01*np.arange(n)], scale, system=systems)
        for row in decided(file, ('rank', 'filter', 'mean', 'agree')).itertuples():
            assert row.decision == NOT_YET, row.why
            assert any(part in row.why for part in ('fewer than 30', 'a copy', 'it needs labels', 'It needs labels',
                                                    "eople don't separate", 'one and the same label')), row.why
            if row.Index == 'filter' and 'a copy' not in row.why: assert f'{n} texts' in row.why and 'fewer than 30' in row.why

@pytest.mark.parametrize('n,missing', [(60, 2), (200, 9), (25, 3)])
def test_there_is_no_habit_of_fewer_than_ten_cases(n, missing):
    rng = np.random.default_rng(n)
    quality = np.sort(rng.normal(size=n)) # the worst are not scored
    judge = np.where(np.arange(n) < missing, np.nan, quality + rng.normal(0, .3, n))
    position = np.where(np.arange(n) < 5, 1., 2.)
    file = made(judge, [quality], SCALES[1], position=position, system=['judge']*8 + ['other']*(n - 8))
    habits = habits_table(score_matrix(file)).set_index('habit')
    for habit in ('absences', 'position', 'own texts'): assert habits.found[habit] is None, habits.said[habit]
    assert f'{missing} of {n} texts have no score' in habits.said['absences']

@pytest.mark.parametrize('scale', SCALES)
def test_every_sentence_says_how_many_texts(scale):
    rng = np.random.default_rng(0)
    quality = rng.normal(size=90)
    file = made(quality + rng.normal(0, .5, 90), [quality + rng.normal(0, .4, 90) for _ in range(2)], scale,
                system=[f's{i % 3}' for i in range(90)])
    found = decided(file, ('rank', 'filter', 'mean', 'replace'))
    frame = file.frame # of two labels, those on which both people agree are good or bad
    filtered = int((frame.ann_0 == frame.ann_1).sum()) if scale[0] == TWO else 90
    for use, n in dict(rank=90, filter=filtered, mean=90, replace=90).items():
        assert f'{n} texts' in found.why[use] and found.n[use] == n, found.why[use]

# --- like with like

def words_and_judge(rng, n, ahead):
    "Qualities, a coarse judge and a fine baseline that sees as much, or less."
    quality = rng.normal(size=n)
    return quality, np.round(quality + rng.normal(0, .8, n)), quality + rng.normal(0, .8 + ahead, n)

def with_words(quality, judge, words):
    "Texts whose length is the baseline."
    lengths = 20 + np.round(8*(words - words.min())).astype(int)
    return file_of(dict(judge=points(3 + judge), ann=(quality > 0)*1., text=[' '.join(['w']*k) for k in lengths]),
                   scale=TWO, scales=dict(judge=FIVE))

def test_a_baseline_gets_no_finer_steps_than_the_judge():
    leads = []
    for seed in range(20): # both see as much, and the judge says it in five steps
        rng = np.random.default_rng(seed)
        matrix = score_matrix(with_words(*words_and_judge(rng, 150, 0.)))
        leads.append(filter_leads(matrix, 'judge')['length'][1].estimate)
    assert abs(np.mean(leads)) < 3*np.std(leads)/np.sqrt(20)

def test_a_no_names_what_does_better():
    rng = np.random.default_rng(1)
    quality, judge, words = words_and_judge(rng, 400, -.7)
    row = decided(with_words(quality, judge + rng.normal(0, 1.2, 400), words), ('filter',), caught=.5, passed=.5)
    assert row.decision['filter'] == NO and row.why['filter'].startswith('Because length does better')
    found = trust(with_words(quality, judge + rng.normal(0, 1.2, 400), words), use='filter', need='filter=.5')
    assert found.lines[0].startswith('judge, filter: NO, because length does better')

# --- criteria

def test_caught_and_passed_are_by_a_threshold_of_other_groups_or_the_given_one():
    rng = np.random.default_rng(2)
    noise = made(rng.normal(size=60), [rng.normal(size=60)], SCALES[2]) # chosen on its own rows it would look able
    rates = [decided(noise, ('filter',)).why['filter']]
    caught, passed = (float(x) for x in re.findall(r'(\d+) % \[', rates[0])[:2])
    assert caught + passed < 125
    quality = rng.normal(size=200)
    file = made(quality + rng.normal(0, .3, 200), [quality], SCALES[1])
    given = trust(file, use='filter', threshold=4.)
    x, good = given.matrix.judges['judge'], given.matrix.good
    shares = np.mean(x[good == 0] < 4), np.mean(x[good == 1] >= 4)
    assert all(f'{100*share:.0f} %' in given.decisions.why[0] for share in shares) and 'below 4' in given.decisions.why[0]

@pytest.mark.parametrize('failures', [.03, .2])
def test_two_points_are_much_for_a_rare_failure(failures):
    n = 2000
    good = np.arange(n) >= failures*n
    judge = good.copy()
    judge[-round(.02*n):] = False # two points more fail
    found = decided(made(judge - .5, [good - .5], SCALES[0]), ('mean',)).loc['mean']
    assert found.estimate == pytest.approx(.02/failures) and (found.decision == NO) == (failures < .1)

def test_who_labelled_sets_the_discount():
    assert [read_needs('', who)['replace'] for who in ('expert', 'trained', 'crowd')] == [.2, .15, .1]
    assert read_needs('replace=.3', 'crowd')['replace'] == .3

def test_p_and_interval_of_a_habit_agree():
    seen = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        quality = rng.normal(size=80)
        file = made(quality + rng.normal(0, .8, 80), [quality + rng.normal(0, .5, 80)], SCALES[1],
                    system=rng.choice(['judge', 'other'], 80), position=rng.integers(1, 3, 80)*1.,
                    time=rng.permutation(80)*1., text=[' '.join(['w']*k) for k in rng.integers(5, 90, 80)])
        habits = habits_table(score_matrix(file))
        for h in habits[habits.habit.isin(['length', 'position', 'own texts', 'drift'])].dropna(subset='p').itertuples():
            seen += 1
            assert (h.p < .05) == (h.low > 0 or h.high < 0), h
    assert seen == 16

# --- honest judges

def test_honest_noisy_judges_are_neither_accused_nor_refused():
    "All uses at the usual criteria; `benchmarks/honest_judges.py` asks 200 judges of each size."
    wrong = {n: honest.wronged(60, n, seed=7) for n in (30, 60, 200)}
    assert sum(found['any'] for found in wrong.values()) <= .02*180, wrong

def test_of_honest_judges_a_biased_or_a_weaker_one_is_still_seen():
    "The planted faults that the test above must not hide."
    rng = np.random.default_rng(0)
    file = honest.honest_file(rng, 200)
    frame = file.frame
    shifted = replace(file, frame=frame.assign(judge=np.clip(frame.judge + 1, 1, 5)))
    assert decided(shifted).decision['mean'] == NO
    lengths = frame.text.str.split().str.len()
    wordy = replace(file, frame=frame.assign(judge=frame.judge + np.log2(lengths) - 6.5))
    assert habits_table(score_matrix(wordy)).set_index('habit').found['length']

def test_the_number_that_is_promised_gives_its_yes_in_four_of_five():
    "Planned from the true rates, with a judge's errors drawn anew."
    from factlib.trust.decision import Condition, settle
    from factlib.validity.intervals import interval
    rate, need, pilot = .85, .7, 20
    exact = np.arange(pilot) < round(rate*pilot)
    both = [Condition(interval(np.mean, exact, limits=(0, 1), null=need), need, 'short') for _ in range(2)]
    decision, _, n = settle(both, pilot)
    assert decision in (NOT_YET, YES)
    n = n or pilot
    rng = np.random.default_rng(0)
    yes = 0
    for _ in range(300):
        drawn = [Condition(interval(np.mean, rng.random(n) < rate, limits=(0, 1), null=need), need, 'short') for _ in '12']
        yes += settle(drawn, n)[0] == YES
    assert .76 < yes/300 < .93
