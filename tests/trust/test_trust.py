"From a file of scores to decisions: planted judges, honest ones, SummHay's print, the page and the command."
import json
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy
from planted_judges import FAULTS, judges, noisy, points, score_file, texts
from summhay_rows import JUDGES, summhay_frame

from factlib.trust.scores import read_scores
from factlib.core.files import data_home
from factlib.core.records import BadInput
from factlib.trust.trust import trust, write_trust
from factlib.trust.habits import bias_slope, habits_table, slope
from factlib.trust.names import own_system
from factlib.trust.matrix import halving_cut, score_matrix
from factlib.trust.ranks import share_in_order
from factlib.trust.decision import NO, NOT_YET, YES, groups_needed
from factlib.trust.means import mean_table
from factlib.trust.needs import read_needs, read_uses
from factlib.trust.uses import decide
from factlib.report.tables import read_table
from factlib.validity.base import Result
from factlib.validity.detection import auc_ci
from factlib.validity.intervals import interval

@pytest.fixture(scope='module', params=[1, 2], ids=['one person', 'two people'])
def planted(request):
    rng = np.random.default_rng(7)
    frame = texts(rng, request.param)
    return trust(score_file(frame, judges(frame, rng)), need='filter=.6')

# --- planted judges

@pytest.mark.parametrize('judge', FAULTS)
def test_a_planted_judge_has_its_own_habit_and_no_other(planted, judge):
    own = planted.habits[(planted.habits.judge == judge) & (planted.habits.found == True)]
    assert own.habit.tolist() == [FAULTS[judge]]*bool(FAULTS[judge])

def decision(found, judge, use): return found.decisions.set_index(['judge', 'use']).decision[judge, use]

def test_decisions_of_planted_judges(planted):
    for judge in ('perfect', 'shifted', 'first', 'drifting', 'gamma-judge'):
        assert decision(planted, judge, 'filter') == YES
    for judge in ('constant', 'random'): assert decision(planted, judge, 'filter') == NO
    assert decision(planted, 'refusing', 'filter') == NOT_YET # it may be anything on what it refused
    asked = decide(planted.matrix, ('filter',)).set_index('judge').decision # .7 and .7
    for judge in ('perfect', 'shifted'): assert asked[judge] == YES
    for judge in ('constant', 'random', 'blind'): assert asked[judge] == NO
    assert asked['refusing'] == NOT_YET
    assert decision(planted, 'shifted', 'mean') == NO and decision(planted, 'perfect', 'mean') == YES
    for judge in ('constant', 'random', 'refusing'): assert decision(planted, judge, 'mean') != YES
    assert NO not in set(planted.decisions[planted.decisions.judge == 'perfect'].decision)
    assert 'replace' not in set(planted.decisions[(planted.decisions.judge == 'perfect')
                                                  & (planted.decisions.decision == NO)].use)

def test_with_two_people_the_perfect_judge_may_replace_one():
    rng = np.random.default_rng(1)
    frame = texts(rng, 2)
    given = dict(perfect=points(frame.quality), chance=points(rng.normal(3, 1.2, len(frame))))
    found = decide(score_matrix(score_file(frame, given)), ('replace',)).set_index('judge').decision
    assert found.to_dict() == dict(perfect=YES, chance=NO)

def test_honest_noisy_judges_are_hardly_ever_accused():
    accused = []
    for seed in range(4): # 40 judges; over 200 it is counted in the report of the room
        rng = np.random.default_rng(100 + seed)
        frame = texts(rng, 1 + seed % 2, 40)
        given = {f'gamma-{i}': points(noisy(frame, rng, rng.uniform(.3, 1.2))) for i in range(10)}
        habits = habits_table(score_matrix(score_file(frame, given)))
        assert habits.found.notna().sum() == 10*9 # nine habits are tested of each
        accused += habits[habits.found == True][['judge', 'habit']].values.tolist()
    assert len(accused) <= 2, accused

def test_quality_that_goes_with_length_is_no_favour_and_a_favour_is_seen_all_the_same():
    rng = np.random.default_rng(5)
    quality, groups = rng.normal(size=600), np.arange(600)//6
    ann, bob, judge = (quality + rng.normal(size=600)*.6 for _ in range(3))
    length = quality + rng.normal(size=600)
    assert slope(judge, length, ann, groups=groups).p < .001 # what a plain regression would say
    assert bias_slope(judge, ann, length, groups).p > .05
    assert bias_slope(judge, (ann + bob)/2, length, groups, (ann, bob)).p > .05
    assert bias_slope(judge + .5*length, (ann + bob)/2, length, groups, (ann, bob)).p < .001
    alone = rng.normal(size=600) # a length that has nothing to do with quality
    assert bias_slope(judge + .5*alone, ann, alone, groups).p < .001 and bias_slope(judge, ann, alone, groups).p > .05

# --- by hand

def test_slope_by_hand():
    x, z = np.array([0., 1, 2, 3, 4, 5]), np.array([1., 0, 1, 1, 0, 1])
    y = 3*x - 2*z + np.array([.1, -.1, .2, -.2, .1, -.1])
    design = np.column_stack([x, z, np.ones(6)])
    assert slope(y, x, z, groups=np.arange(6)).estimate == pytest.approx(np.linalg.lstsq(design, y, rcond=None)[0][0])

def test_share_of_pairs_in_order_by_hand():
    systems = np.tile([0., 1, 2, 3], 20)
    people, groups = np.tile([1., 2, 3, 4], 20), np.repeat(np.arange(20), 4)
    swapped = np.tile([1., 2, 4, 3], 20) # one of six pairs
    assert share_in_order(swapped, people, systems, groups).estimate == pytest.approx(5/6)
    tied = np.tile([1., 2, 3, 3], 20)
    assert share_in_order(tied, people, systems, groups).estimate == pytest.approx(5.5/6)
    whole = share_in_order(people, people, systems, groups)
    assert whole.estimate == 1 and whole.low == pytest.approx(.05**(1/20)) # twenty groups say the same

def test_an_uneven_order_has_a_wide_interval():
    rng = np.random.default_rng(0)
    systems, groups = np.tile(np.arange(6.), 30), np.repeat(np.arange(30), 6)
    people = rng.normal(size=180) # systems that don't differ
    r = share_in_order(rng.normal(size=180), people, systems, groups)
    assert r.low < .5 < r.high and r.high - r.low > .3

def test_halving_cut_takes_the_most_even_one():
    assert halving_cut(np.array([1., 1, 1, 2, 3, 4])) == 2
    assert halving_cut(np.array([0., 0, 0, 0, 1])) == 1

@pytest.mark.parametrize('right,of,need', [(45, 50, .8), (60, 80, .65), (33, 60, .7), (12, 120, .2)])
def test_groups_needed_is_the_textbooks_size_of_a_sample(right, of, need):
    r = interval(np.mean, np.arange(of) < right, limits=(0, 1))
    p, z = right/of, scipy.stats.norm.isf([.025, .2])
    textbook = ((z[0]*math.sqrt(need*(1 - need)) + z[1]*math.sqrt(p*(1 - p)))/(p - need))**2
    n = groups_needed(r, need, of)
    assert textbook <= n <= 1.06*textbook + 3 if textbook > of else n == of + 1
    assert groups_needed(r, p, of) is None

@pytest.mark.parametrize('kinds,need,rows', [(3, .75, 22), (3, .92, 72), (5, .5, 10), (4, .8, 28)])
def test_where_all_say_the_same_the_exact_bound_is_planned_for(kinds, need, rows):
    r = Result(1., ci=(.05**(1/kinds), 1.), kind='bound')
    assert groups_needed(r, need, 2*kinds) == max(rows, 2*kinds + 1)
    enough = rows//2 # of the rarer kind
    assert .05**(1/enough) > need >= .05**(1/(enough - 1)) or kinds >= enough

def test_a_number_without_limits_is_planned_for_by_hand():
    r = Result(1., ci=(-1., 3.)) # an error of 2/1.96
    assert groups_needed(r, 0., 10, None) == pytest.approx(10*((1.96 + .8416)*2/1.96)**2, rel=.06)

def test_the_auc_is_the_librarys_own(planted):
    whole, row = planted.matrix, planted.decisions.set_index(['judge', 'use']).loc[('wordy', 'filter')]
    x, good, groups = whole.judges['wordy'], whole.good, whole.groups
    known = ~np.isnan(good)
    up, down = known & (good == 1), known & (good == 0)
    r = auc_ci(x[up], x[down], 'cluster', (groups[up].tolist(), groups[down].tolist()))
    assert (row.estimate, row.low, row.high) == pytest.approx((r.estimate, *r.ci))

@pytest.mark.parametrize('judge,systems,own', [
    ('predictions_9fs_gpt-4o', ['gpt-4', 'gpt-4o', 'opus'], 'gpt-4o'),
    ('gpt4o', ['gpt-4', 'openai/gpt-4o'], 'openai/gpt-4o'),
    ('judge', ['gpt-4', 'opus'], None), ('Claude 3 Opus', ['claude3-haiku', 'claude3-opus'], 'claude3-opus')])
def test_own_system_by_name(judge, systems, own): assert own_system(judge, systems) == own

# --- flags

@pytest.mark.parametrize('text', ['filter', 'filter=2', 'filter=x', 'speed=.5', 'filter=.5,filter=.6', 'filter=caught:2', 'filter=seen:.5',
                                  'filter=caught:.5,caught:.6', 'caught='])
def test_criteria_that_cannot_be_read(text):
    with pytest.raises(BadInput, match='--need'): read_needs(text)

def test_uses_that_are_not_known():
    assert read_uses('replace,rank') == ('rank', 'replace')
    with pytest.raises(BadInput, match='--use'): read_uses('rank,fly')

def test_a_stricter_criterion_turns_a_yes(planted):
    found = decide(planted.matrix, ('filter',), read_needs('filter=.99')).set_index('judge').decision
    assert found['perfect'] == NO and decision(planted, 'perfect', 'filter') == YES

# --- what a file lacks

def small(n=60, **columns):
    rng = np.random.default_rng(2)
    people = np.tile([0., 1.], n//2)
    frame = pd.DataFrame(dict(item=[f'{i}' for i in range(n)], row=range(n), people=people,
                              judge=np.where(rng.random(n) < .85, people, 1 - people)))
    file = score_file(texts(np.random.default_rng(0), 1, 2), {})
    scale = replace(file.scale, kind='binary', labels=('bad', 'good'), low=0., high=1.)
    return replace(file, frame=frame.assign(**columns), judges=('judge',), humans=('people',), scale=scale,
                   group_given=False)

def test_two_labels_one_person_and_nothing_else():
    found = trust(small())
    why = found.decisions.set_index('use').why
    assert '--system' in why['rank'] and '--human' in why['replace'] and "people say 'good'" == found.matrix.good_means
    needs = found.habits[found.habits.found.isna()].set_index('habit').said
    assert '--text' in needs['length'] and '--time' in needs['drift'] and '--position' in needs['position']

def test_no_common_row_is_one_sentence():
    file = small()
    frame = file.frame.assign(judge=np.where(file.frame.row < 30, file.frame.judge, np.nan),
                              people=np.where(file.frame.row >= 30, file.frame.people, np.nan))
    with pytest.raises(BadInput, match='nothing to compare'): trust(replace(file, frame=frame))
    with pytest.raises(BadInput, match='--human'): trust(replace(file, humans=()))

def test_labels_without_an_order_are_counted_only():
    file = small()
    scale = replace(file.scale, kind='nominal', labels=('red', 'blue'))
    found = trust(replace(file, scale=scale))
    assert found.decisions.use.tolist() == ['agree', 'replace'] and not found.decisions.why.str.contains('--order').any()
    row = found.tables['agreement'].iloc[0]
    assert row.accuracy == pytest.approx(np.mean(file.frame.judge == file.frame.people)) and np.isnan(row.spearman)

@pytest.mark.parametrize('change', [dict(judge=np.full(60, .5)), dict(people=np.full(60, 1.)), dict(group=['one']*60)])
def test_what_does_not_vary_still_has_a_page(change, tmp_path):
    found = trust(small(**change))
    assert YES not in set(found.decisions.decision)
    assert '</html>' in found.html(tmp_path/'page.html').read_text(encoding='utf-8')

def test_two_rows_have_a_page(tmp_path):
    found = trust(small(2))
    assert set(found.decisions.decision) == {NOT_YET}
    assert found.html(tmp_path/'page.html').is_file()

def test_rows_that_cluster_are_said_at_the_top(tmp_path):
    found = trust(replace(small(), clustered='question'))
    assert 'question' in found.warnings[0]
    page = found.html(tmp_path/'page.html').read_text(encoding='utf-8')
    assert page.index('Give --group question') < page.index('class="matrix"')

def test_a_decision_over_rows_that_cluster_says_what_it_supposes():
    alone, shared = (trust(f, need='filter=.6') for f in (small(), replace(small(), clustered='a question')))
    assert YES in set(alone.decisions.decision) and not alone.decisions.why.str.contains('independent').any()
    for d in shared.decisions.itertuples():
        assert d.why.startswith("If rows were independent") == (d.decision != NOT_YET)
        if d.decision != NOT_YET: assert "--group 'a question'" in d.why

def ranked(systems):
    rng = np.random.default_rng(0)
    system = np.arange(200) % systems
    people = np.clip(np.rint(3 + rng.normal(0, 1, 200) + .8*(system - (systems - 1)/2)), 1, 5)
    judge = np.where(np.arange(200) == 100, people % 5 + 1, people) # all but a copy
    frame = pd.DataFrame(dict(system=[f's{k}' for k in system], judge=judge, human=people,
                              text=['word '*(4 + k) + f'{i}' for i, k in enumerate(system)]))
    return decide(score_matrix(read_scores(frame, judge='judge', human='human')), ('rank',)).iloc[0]

def test_luck_is_no_baseline_where_systems_are_few():
    assert ranked(2).decision == YES # length tells two systems apart whatever it is worth
    assert ranked(5).decision == NOT_YET and 'length, puts in order 100 %' in ranked(5).why

def test_one_group_accuses_nobody():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(dict(document='same', judge=rng.integers(1, 6, 80), human=rng.integers(1, 6, 80).clip(2, 4)))
    found = trust(frame, judge='judge', human='human', group='document')
    assert not (found.habits.found == True).any() and 'one group' in found.decisions.why[1]

def test_many_groups_are_pooled_and_it_is_said():
    frame = texts(np.random.default_rng(0), 1, 1500)
    found = score_matrix(score_file(frame, dict(judge=points(frame.quality))))
    assert found.clusters.max() == 1499 and found.groups.max() < 1000 and '1,500 groups' in found.pooled

def test_repeats_are_found_and_a_judge_that_contradicts_itself_too():
    rng = np.random.default_rng(3)
    frame = texts(rng, 1, 30)
    twice = pd.concat([frame, frame], ignore_index=True)
    given = dict(steady=np.tile(points(frame.quality), 2), wild=points(rng.normal(3, 1.2, len(twice))))
    habits = habits_table(score_matrix(score_file(twice, given))).query('habit == "repeats"').set_index('judge')
    assert habits.found.to_dict() == dict(steady=False, wild=True) and habits.estimate['steady'] == 1

# --- SummHay: the card's six correlations and six bias figures

@pytest.fixture(scope='module')
def summhay():
    home = data_home()
    path = home and home/'summhay'/'eval_benchmark_data.json'
    if not path or not path.is_file(): pytest.skip('SummHay is not here')
    frame = summhay_frame(path).rename(columns=dict(summary='item', subtopic='group', writer='system', insight='text'))
    file = score_file(texts(np.random.default_rng(0), 1, 2), {})
    scale = replace(file.scale, kind='number', low=0., high=1.)
    frame = frame.assign(row=range(len(frame)))
    return trust(replace(file, frame=frame, judges=JUDGES, humans=('people',), scale=scale))

def test_summhays_six_correlations(summhay):
    found = summhay.tables['agreement'].set_index('judge').pearson
    print_ = dict(zip(JUDGES, (.751, .719, .716, .677, .498, .495)))
    assert {j: found[j] for j in JUDGES} == pytest.approx(print_, abs=.0005)
    assert summhay.tables['agreement'].n.iloc[0] == 1419

@pytest.mark.parametrize('judge,own,mean', [('gpt-4o', .070, .047), ('gemini-1.5-pro', .041, .035),
                                            ('claude3-opus', .011, .054)])
def test_summhays_bias_of_own_texts_and_over_writers(summhay, judge, own, mean):
    bias = summhay.tables['bias'].query('judge == @judge')
    assert bias[bias.own].system.tolist() == [judge] and bias[bias.own]['items'].iloc[0] > 20
    assert bias[bias.own].bias.iloc[0] == pytest.approx(own, abs=.0005)
    assert bias[bias.system == 'mean of systems'].bias.iloc[0] == pytest.approx(mean, abs=.0005)

# --- page, files, command

def test_the_folder_and_its_tables(planted, tmp_path):
    page = write_trust(planted, tmp_path/'out')
    tables = {path.stem: read_table(path) for path in (tmp_path/'out'/'tables').glob('*.csv')}
    assert list(tables['decisions']) == ['judge', 'use', 'decision', 'estimate', 'low', 'high', 'n', 'groups', 'why']
    assert list(tables['agreement'])[:5] == ['judge', 'human', 'n', 'missing', 'groups']
    assert [c for c in tables['agreement'] if c.endswith('_low')] == [f'{c}_low' for c in (
        'accuracy', 'kappa', 'alpha', 'pearson', 'spearman', 'kendall', 'auc')]
    assert list(tables['habits']) == ['judge', 'habit', 'estimate', 'low', 'high', 'p', 'q', 'said']
    assert {'constant', 'length'} <= set(tables['agreement'].judge) and 'bias' in tables
    html = page.read_text(encoding='utf-8')
    assert not re.search(r'(src|href)="(https?:)?//', html) and "default-src 'none'" in html
    for path in re.findall(r'(?:href|src)="((?:tables|figures)/[^"]+)"', html): assert (page.parent/path).is_file()
    for anchor in re.findall(r'href="#([^"]+)"', html): assert f'id="{anchor}"' in html, anchor

def test_texts_are_kept_for_people(tmp_path):
    "As they were read, half characters aside; more is better; labels without an order stay words."
    lines = [dict(id=f'i{i}', doc=f'd{i // 3}', summary=f'It <b>ran</b> \ud800 {i}.',
                  article=None if i == 1 else 'It ran.', gpt_errors=i % 5,
                  llm_kind=('fact', 'tone', 'style')[i % 3], human=i % 2) for i in range(30)]
    (tmp_path/'s.jsonl').write_text(''.join(json.dumps(line) + '\n' for line in lines))
    found = trust(tmp_path/'s.jsonl', judge='-gpt_errors,llm_kind', human='human', group='doc')
    page = write_trust(found, tmp_path/'out')
    kept = pd.read_parquet(page.parent/'items.parquet')
    assert list(kept) == ['item', 'row', 'group', 'text', 'source', 'gpt_errors', 'llm_kind']
    assert kept.text.tolist() == [f'It <b>ran</b> \ufffd {i}.' for i in range(30)]
    assert pd.isna(kept.source[1]) and kept.source[2] == 'It ran.' and kept.group[29] == 'd9'
    assert kept.gpt_errors.tolist() == [4 - i % 5 for i in range(30)]
    assert kept.llm_kind.tolist() == [line['llm_kind'] for line in lines]
    assert 'items.parquet' in json.loads((page.parent/'result.json').read_text())['sha256']
    write_trust(found, tmp_path/'out', texts=False)
    assert not (page.parent/'items.parquet').exists()
    assert not (write_trust(trust(small()), tmp_path/'bare').parent/'items.parquet').exists() # no column of texts

def test_hostile_texts_and_names_are_escaped(tmp_path):
    bad = '</p><script>alert(1)</script>'
    file = small(text=[bad]*60, system=[f'<b>{i % 2}' for i in range(60)])
    frame = file.frame.rename(columns=dict(judge=bad))
    found = trust(replace(file, frame=frame, judges=(bad,), said=(bad,), name=bad))
    html = found.html(tmp_path/'p.html').read_text('utf-8')
    assert '<script' not in html and '<b>' not in html and '&lt;script&gt;' in html

def test_a_foreign_file_is_never_replaced(planted, tmp_path):
    (tmp_path/'index.html').write_text('mine')
    with pytest.raises(BadInput, match='index.html'): write_trust(planted, tmp_path)
    with pytest.raises(BadInput, match='index.html'): planted.html(tmp_path/'index.html')
    assert [p.name for p in tmp_path.iterdir()] == ['index.html'] and (tmp_path/'index.html').read_text() == 'mine'

def test_json_is_plain(planted):
    found = json.loads(json.dumps(planted.to_dict(), allow_nan=False))
    assert {d['decision'] for d in found['decisions']} <= {YES, NO, NOT_YET} and found['need']['caught'] == .6

def test_missing_labels_are_filled_by_the_judge():
    frame = texts(np.random.default_rng(0), 1)
    some = frame.assign(ann=frame.ann.where(frame.index % 4 == 0))
    row = mean_table(score_matrix(score_file(some, dict(judge=points(frame.quality))))).iloc[0]
    assert (row.texts, row.labels) == (800, 200)
    assert row.calibrated_low < frame.ann.mean() < row.calibrated_high
    assert row.calibrated_high - row.calibrated_low < row.labels_high - row.labels_low
