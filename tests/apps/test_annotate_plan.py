"Who gets what: shared, dealt, quotas, shortages in numbers; texts drawn with known chances, and what comes of them."
import csv
import itertools
import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from annotators import Person, fact_rows
from command import factlib_inside

from factlib.apps.annotate import assign, serve
from factlib.apps.annotate_plan import chances, results_rows, systematic
from factlib.apps.annotate_store import label_rows
from factlib.core.records import BadInput
from factlib.trust.trust import trust, write_trust
from factlib.validity.calibration import calibrated_mean


def rows(n=30):
    return [dict(id=f'{i}/{turn}', group=f'g{i}', dataset=('ais', 'begin', 'fade')[i % 3],
                 kind='rare' if i < 6 else 'other')
            for i in range(n) for turn in (0, 1)]

def test_groups_stay_whole_and_everybody_gets_as_many():
    plan = assign(rows(), ('A', 'B', 'C'), shared=3, seed=5)
    own = {name: [id.split('/')[0] for id in ids] for name, ids in plan.of.items()}
    assert all(n == 2 for ids in own.values() for n in Counter(ids).values())
    assert {len(set(ids)) for ids in own.values()} == {3 + 9}
    together = set.intersection(*map(set, own.values()))
    assert together == {id.split('/')[0] for id in plan.shared} and len(together) == 3
    assert len(set().union(*own.values())) == 30 and len({tuple(ids) for ids in own.values()}) == 3
    for ids in plan.of.values():
        assert all(ids.index(f'{g}/0') + 1 == ids.index(f'{g}/1') for g in {i[:-2] for i in ids})
    again, other = (assign(rows(), ('A', 'B', 'C'), shared=3, seed=seed).of for seed in (5, 6))
    assert again == plan.of != other
    assert set(plan.table[plan.table.shared].item) == set(plan.shared)

def test_quotas():
    quotas = {'dataset': dict(ais=6, begin=4), ('dataset', 'kind'): {('ais', 'rare'): 2, ('begin', 'rare'): 1}}
    table = assign(rows(), 'A', quotas=quotas).table.drop_duplicates('group')
    datasets = Counter(('ais', 'begin', 'fade')[int(g[1:]) % 3] for g in table.group)
    assert datasets == dict(ais=6, begin=4)
    assert sum(int(g[1:]) < 6 for g in table.group) >= 3
    assert Counter(table.chosen_for)["dataset 'ais' and kind 'rare'"] == 2

def crossed(*groups):
    "Rows of groups named by their datasets and kinds: each 'dataset/kind', several rows with + between them."
    return [dict(id=f'{g}.{n}', group=f'g{g}', **dict(zip(('dataset', 'kind'), row.split('/'))))
            for g, group in enumerate(groups) for n, row in enumerate(group.split('+'))]

def counts(plan, given, quotas):
    "(field, value) -> groups that have it."
    own = {row['group'] for row in given if row['id'] in plan.of['A']}
    return {(f, v): len({row['group'] for row in given if row['group'] in own and row[f] == v})
            for f, wanted in quotas.items() for v in wanted}

@pytest.mark.parametrize('seed', range(8))
def test_crossed_quotas_are_met_exactly_where_they_can_be(seed):
    given = crossed(*['ais/rare', 'begin/rare']*3, *['ais/other', 'begin/other']*30)
    quotas = dict(dataset=dict(ais=5, begin=5), kind=dict(rare=3, other=7))
    plan = assign(given, 'A', quotas=quotas, seed=seed)
    assert counts(plan, given, quotas) == {('dataset', 'ais'): 5, ('dataset', 'begin'): 5, ('kind', 'rare'): 3,
                                           ('kind', 'other'): 7}
    assert plan.said == [] and all(plan.table.chosen_for)

def test_what_can_not_be_exact_is_told():
    "All that is rare is of ais, so five of it are five of ais; and one group is of both."
    given = crossed(*['ais/rare']*5, *['begin/other']*5, 'ais/other+begin/other')
    plan = assign(given, 'A', quotas=dict(dataset=dict(ais=3), kind=dict(rare=5)))
    why = "because the quotas can't all be met with fewer."
    assert plan.said == [f"Groups with dataset 'ais': 3 asked for, 5 drawn, {why}"]
    plan = assign(given, 'A', quotas=dict(dataset=dict(ais=0, begin=6)))
    assert plan.said == [f"Groups with dataset 'ais': 0 asked for, 1 drawn, {why}"]

def test_a_draw_that_is_exact_is_not_touched():
    "Quotas within quotas are minima: what is beyond them stays, and nothing is said."
    given = crossed(*['ais/rare']*20, *['ais/other']*20)
    quotas = {'dataset': dict(ais=20), ('dataset', 'kind'): {('ais', 'rare'): 2}}
    drawn = [assign(given, 'A', quotas=quotas, seed=seed) for seed in range(40)]
    rare = [counts(plan, given, dict(kind=dict(rare=2)))['kind', 'rare'] for plan in drawn]
    assert min(rare) >= 2 and 9 < np.mean(rare) < 13 # 2 and a half of the other 18
    assert all(len(plan.of['A']) == 20 and plan.said == [] for plan in drawn)

def test_no_plan_has_less_beyond_its_quotas():
    "All sets of groups of small random plans, by hand."
    rng, mended = np.random.default_rng(5), 0
    for trial in range(60):
        names = [f'{d}/{k}' for d in 'ab' for k in 'xyz']
        given = crossed(*['+'.join(rng.choice(names, 1 + (rng.random() < .3), replace=False)) for _ in range(9)])
        there = counts(assign(given, 'A'), given, dict(dataset=dict(a=0, b=0), kind=dict(x=0, y=0)))
        quotas: dict = {}
        for (f, v), most in there.items(): quotas.setdefault(f, {})[v] = int(rng.integers(0, most + 1))
        if not any(n for wanted in quotas.values() for n in wanted.values()): continue
        plan = assign(given, 'A', quotas=quotas, seed=trial)
        groups: dict = {}
        for row in given: groups.setdefault(row['group'], set()).update((f, row[f]) for f in quotas)
        wanted = {(f, v): n for f, own in quotas.items() for v, n in own.items()}
        def beyond(chosen): return [sum(key in groups[g] for g in chosen) - n for key, n in wanted.items()]
        least = min(sum(b) for size in range(10) for chosen in itertools.combinations(groups, size)
                    if min(b := beyond(chosen)) >= 0)
        own = beyond(set(plan.table.group))
        assert min(own) >= 0 and sum(own) == least, (trial, wanted)
        assert len(plan.said) == sum(b > 0 for b in own)
        mended += least > 0
    assert mended > 5

@pytest.mark.parametrize('wrong, said', [
    (dict(quotas={'dataset': dict(ais=11)}), "11 groups with dataset 'ais' are asked for, and there are 10"),
    (dict(quotas={'dataset': dict(mars=1)}), 'there are 0'), (dict(quotas={'dataset': 3}), 'how many of each value'),
    (dict(quotas={('dataset', 'kind'): dict(ais=1)}), 'as many values'),
    (dict(shared=31), '31 groups .* and 30 are drawn'), (dict(annotators=()), 'at least one'),
    (dict(annotators=('A', 'A')), 'different names'),
    (dict(annotators=[str(i) for i in range(31)]), '30 groups are too few for 31'),
    (dict(items=[dict(group='g')]), "no 'id'"), (dict(quotas={'dataset': dict(ais=-1)}), 'quota')])
def test_what_can_not_be_met(wrong, said):
    with pytest.raises(BadInput, match=said): assign(**dict(items=rows(), annotators=('A', 'B')) | wrong)

def test_training_is_for_all():
    plan = assign([*rows(4), dict(id='t', training='supported')], ('A', 'B'))
    assert all(ids[0] == 't' for ids in plan.of.values()) and 't' not in set(plan.table.item)

def test_a_plan_is_served(tmp_path):
    given = [dict(row, group=row['id']) for row in fact_rows(6)]
    plan = assign(given, ('A', 'B'), shared=2)
    with serve('facts', given, tmp_path/'a.db', ('A', 'B'), plan=plan) as served:
        for name, address in served.urls.items():
            with Person(address) as person: assert person.progress() == (0, 4) and person.item == plan.of[name][0]
    for wrong, said in ((dict(A=['f0']), 'nothing for B'), (dict(A=['f0'], B=['f9']), 'not in the data'),
                        (dict(A=['f1'], B=['f0']), 'another plan for A')):
        with pytest.raises(BadInput, match=said): serve('facts', given, tmp_path/'a.db', ('A', 'B'), plan=wrong)

def test_numbers_that_a_frame_made_floats(tmp_path):
    "A column with a missing cell: 1.0 is the item 1, in rows, groups, quotas and plans."
    frame = pd.DataFrame([dict(id=i, group=g, level=i % 2, claim='Bob left.', source='Bob stayed.')
                          for i, g in ((1, 7), (2, 7), (3, None))]).astype(dict(id=float, level=float))
    plan = assign(frame, 'A', quotas=dict(level={1: 2}))
    assert sorted(plan.of['A']) == ['1', '2', '3'] and set(plan.table.group) == {'7', '3'}
    for own in (plan, dict(A=[1, 2, 3])):
        with serve('facts', frame, tmp_path/'a.db', plan=dict(A=sorted(own.of['A'])) if own is plan else own) as served:
            assert list(served.store.items()) == ['1', '2', '3']
    with pytest.raises(BadInput, match="id '1' is in row 1 and again in row 2"):
        serve('facts', [dict(row, id=id) for row, id in zip(fact_rows(2), (1., '1'))], tmp_path/'b.db')
    for id in (1.5, True, 'a\nb', float('inf')):
        with pytest.raises(BadInput, match="has the 'id' .*a whole number or a short text in one line"):
            serve('facts', [dict(fact_rows(1)[0], id=id)], tmp_path/'b.db')

# Results of an evaluator

@pytest.fixture(scope='module')
def results(tmp_path_factory):
    "What `factlib evaluate` makes of forty answers."
    home = tmp_path_factory.mktemp('results')
    words = ['Ann', 'came', 'home', 'late', 'and', 'Bob', 'slept', 'well', 'that', 'night']
    lines = [dict(id=f'e{i}', group=f'g{i // 2}', source=' '.join(words) + '.',
                  target=' '.join([*words[:i % 11], *['xylophone']*(10 - i % 11)]) + '.') for i in range(40)]
    (home/'mine.jsonl').write_text(''.join(json.dumps(line) + '\n' for line in lines))
    done = factlib_inside('evaluate', home/'mine.jsonl', '--with', 'rouge1,length', '--out', home/'out', '--no-page',
                          cwd=home)
    assert done.returncode == 0, done.stderr
    return home/'out'

@pytest.mark.parametrize('by', ['random', 'unsure'])
def test_the_weighted_mean_is_right_whatever_the_chances(results, by):
    "Over many draws: the mean of the labels, each weighted by one over its chance, is that of all texts."
    found = [results_rows('facts', results, 10, by, 'rouge1', seed) for seed in range(300)]
    assert all(len(f.rows) == 10 and len(f.population) == 40 for f in found)
    truth = {text['item']: float(text['scores']['rouge1'] > .6) for text in found[0].population}
    means = [sum(truth[row['id']]/row['chance'] for row in f.rows)/40 for f in found]
    assert abs(np.mean(means) - np.mean(list(truth.values()))) < 4*np.std(means)/300**.5
    drawn = Counter(row['id'] for f in found for row in f.rows)
    chance = {row['id']: row['chance'] for f in found for row in f.rows}
    for id, p in chance.items(): assert abs(drawn[id]/300 - p) < 4.5*(p*(1 - p)/300)**.5 + 1e-9
    if by == 'unsure': assert max(chance.values()) > 3*min(chance.values())
    else: assert set(chance.values()) == {.25}

@pytest.mark.parametrize('grouped', [False, True])
def test_the_calibrated_mean_stays_right(results, grouped):
    "With the weights of the labels beside their scores; without them a draw of unsure texts pulls it."
    means: dict = dict(weighted=[], bare=[])
    for seed in range(120):
        found = results_rows('facts', results, 16, 'unsure', 'rouge1', seed)
        # what the judge can't tell
        label = {t['item']: float(.2 < t['scores']['rouge1'] < .8) for t in found.population}
        given = dict(A={row['id']: dict(label=label[row['id']]) for row in found.rows})
        lines = label_rows(found.population, {row['id']: row for row in found.rows}, given)
        columns = {name: [line[name] for line in lines] for name in ('rouge1', 'annotator_A', 'weight', 'group')}
        groups = columns['group'] if grouped else None
        for name, weights in (('weighted', columns['weight']), ('bare', None)):
            r = calibrated_mean(columns['rouge1'], columns['annotator_A'], groups, weights=weights)
            means[name].append(r.estimate)
    truth = np.mean(list(label.values()))
    error = np.std(means['weighted'])/120**.5
    assert abs(np.mean(means['weighted']) - truth) < 4*error + .01 < abs(np.mean(means['bare']) - truth)

def test_weights_of_what_nobody_answered():
    texts = [dict(item=i, group=i, chance=p, scores={}) for i, p in (('a', .5), ('b', .5), ('c', 1.), ('d', .2))]
    given = dict(A=dict(a=dict(label='x'), b=dict(comment='?'))) # one of three
    rows = label_rows(texts, dict(a={}, b={}, c={}), given)
    assert [row['weight'] for row in rows] == [2, 1/(1 - .5/3), 1/(1 - 1/3), 1/(1 - .2/3)]

def test_chances_by_hand():
    assert chances([1, 1, 2], 1).tolist() == [.25, .25, .5] and chances([0, 0], 1).tolist() == [.5, .5]
    assert chances([8, 1, 1], 2) == pytest.approx([.9, .55, .55]) and chances([1, 2, 3], 3).tolist() == [1, 1, 1]
    assert chances([9, 9] + [1]*18, 19) == pytest.approx([.95]*20) # more are drawn than .9 of each
    with pytest.raises(BadInput, match='3 texts are to be drawn, and there are 2'): chances([1, 1], 3)
    rng = np.random.default_rng(0)
    for n in range(1, 30): assert len(set(systematic(chances(rng.uniform(size=30), n), rng))) == n

def test_from_results_to_labels_beside_scores(results, tmp_path):
    with serve('facts', results, tmp_path/'a.db', ('A', 'B'), n=6, by='unsure', judge='rouge1') as served:
        assert any('6 of 40 texts are drawn' in sentence for sentence in served.said)
        for i, address in enumerate(served.urls.values()):
            with Person(address) as person:
                while person.item:
                    person.send('label=' + ('unsupported' if i and person.item[-1] > '4' else 'supported'))
        served.store.export(tmp_path/'out')
        items = served.store.items()
    lines = [json.loads(line) for line in (tmp_path/'out'/'labels.jsonl').read_text().splitlines()]
    assert len(lines) == 40 and sum(line['annotator_A'] is not None for line in lines) == 6
    assert set(lines[0]) == {'item', 'group', 'text', 'source', 'rouge1', 'length', 'annotator_A', 'annotator_B',
                             'weight'}
    assert sum(line['text'] is not None for line in lines) == 6
    chance = {text['item']: text['chance'] for text in results_rows('facts', results, 6, 'unsure', 'rouge1').population}
    for line in lines:
        p = chance[line['item']]
        assert line['weight'] == (1/p if line['item'] in items else 1/(1 - p))
    with serve('facts', results, tmp_path/'a.db', ('A', 'B'), n=6, by='unsure', judge='rouge1') as again:
        assert len(again.store.answers()) == 12 # the same draw

def test_what_can_not_be_drawn(results, tmp_path):
    for wrong, said in ((dict(form='compare'), 'form for results'), (dict(n=41), '41 texts .* and there are 40'),
                        (dict(judge='nobody'), 'judge is'), (dict(folder=tmp_path), 'holds no judgements.parquet'),
                        (dict(by='chance'), 'by is')):
        with pytest.raises(BadInput, match=said): results_rows(**dict(form='facts', folder=results) | wrong)
    with pytest.raises(BadInput, match='drawn by chance'): serve('facts', fact_rows(), tmp_path/'a.db', n=2)
    with pytest.raises(BadInput, match='n must be'): serve('facts', results, tmp_path/'a.db', n=0)
    claims = results_rows('claims', results, 3)
    criteria = results_rows('criteria', results, 3, questions=dict(smooth='Does it read smoothly?'))
    assert {'target', 'reference', 'history'} <= set(claims.rows[0]) and criteria.rows[0]['questions']

# A folder of `factlib trust`

def scores_csv(path, n=80):
    "A judge that gives 1 to 5, people who scored the first 40; i is supported if the judge gives 3 or more."
    rng = np.random.default_rng(3)
    rows = [dict(id=f's{i}', doc=f'd{i // 4}', article=f'Story {i // 4}. Ann came home.',
                 summary=f'<b>Ann</b> came, {i}.', gpt_score=int(rng.integers(1, 6)), human='') for i in range(n)]
    for row in rows[:40]: row['human'] = int(row['gpt_score'] >= 3)
    with open(path, 'w', newline='') as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return {row['id']: row for row in rows}

def test_from_trust_to_labels_and_back(tmp_path):
    "By commands and over HTTP: a file of scores, its texts drawn and answered, the answers a file of scores again."
    rows, store = scores_csv(tmp_path/'s.csv'), tmp_path/'l.db'
    first = factlib_inside('trust', tmp_path/'s.csv', '--group', 'doc', '--out', tmp_path/'out', cwd=tmp_path)
    assert first.returncode == 0 and 'Texts are kept for `factlib annotate`' in first.stdout, first.stderr
    draw = dict(n=20, by='unsure', judge='gpt_score')
    with serve('facts', tmp_path/'out', store, ('Ann', 'Bob'), **draw) as served:
        assert '20 of 80 texts are drawn' in served.said[0]
        for address in served.urls.values():
            with Person(address) as person:
                while person.item:
                    row = rows[person.item]
                    assert row['summary'] in person.page.text and '<b>Ann' not in person.response.text
                    person.send('label=' + ('supported' if row['gpt_score'] >= 3 else 'unsupported'))
        asked = served.store.items()
    export = '--store', store, '--export', tmp_path/'labels'
    wrong = factlib_inside('annotate', 'claims', tmp_path/'out', *export, cwd=tmp_path)
    assert wrong.returncode == 2 and 'of the form facts, not of claims' in wrong.stderr
    done = factlib_inside('annotate', 'facts', tmp_path/'out', *export, cwd=tmp_path)
    assert done.returncode == 0 and 'factlib trust' in done.stdout, done.stderr
    lines = [json.loads(line) for line in (tmp_path/'labels'/'labels.jsonl').read_text().splitlines()]
    chance = {text['item']: text['chance'] for text in results_rows('facts', tmp_path/'out', **draw).population}
    assert sum(chance.values()) == pytest.approx(20) and chance == pytest.approx(
        {id: chance['s0']*unsure(rows[id])/unsure(rows['s0']) for id in rows})
    for line in lines:
        row, own = rows[line['item']], line['item'] in asked
        assert (line['group'], line['gpt_score']) == (row['doc'], row['gpt_score'])
        assert [line['text'], line['source']] == ([row['summary'], row['article']] if own else [None, None])
        label = None if not own else 'supported' if row['gpt_score'] >= 3 else 'unsupported'
        assert line['annotator_Ann'] == line['annotator_Bob'] == label
        p = chance[line['item']]
        assert line['weight'] == pytest.approx(1/p if own else 1/(1 - p))
    again = factlib_inside('trust', tmp_path/'labels'/'labels.jsonl', '--group', 'group', '--out', tmp_path/'again',
                           '--json', cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    filters = next(d for d in json.loads(again.stdout)['decisions'] if d['use'] == 'filter')
    assert filters['judge'] == 'gpt_score' and filters['estimate'] == 1 and filters['n'] == 20
    mean = pd.read_csv(tmp_path/'again'/'tables'/'means.csv').iloc[0] # weights have reached it
    column = lambda name: [line[name] for line in lines]
    labels = [None if label is None else label == 'supported' for label in column('annotator_Ann')]
    weighted, bare = (calibrated_mean(column('gpt_score'), labels, column('group'), weights=w)
                      for w in (column('weight'), None))
    assert mean.calibrated == pytest.approx(weighted.estimate) and mean.calibrated_low == pytest.approx(weighted.ci[0])
    assert abs(bare.estimate - weighted.estimate) > .01

def unsure(row): # of 3 as can be, of 1 and 5 a tenth
    return max(.1, 1 - abs(row['gpt_score'] - 3)/2)

def test_a_text_that_was_judged_again_is_asked_about_once(tmp_path):
    lines = [dict(item=f'i{i % 30}', text=f'Text {i % 30} came.', source='A source came.', gpt=1 + i % 5,
                  llm='abc'[i % 3], human=i % 2) for i in range(40)]
    write_trust(trust(pd.DataFrame(lines), judge='gpt,llm', human='human', item='item'), tmp_path/'out')
    found = results_rows('facts', tmp_path/'out', 5)
    assert len(found.population) == 30 and '10 of 40 rows are of a text that has an earlier row' in found.said[0]
    scores = {text['item']: text['scores'] for text in found.population}
    assert scores['i0'] == dict(gpt=1, llm='a') and scores['i1'] == dict(gpt=2, llm='b') # 30 is a multiple of 5 and 3
    unsure = results_rows('facts', tmp_path/'out', 5, 'unsure', 'gpt').population
    assert unsure[2]['chance'] == pytest.approx(5/13.2) # of 3; six times .1 + .5 + 1 + .5 + .1
    with pytest.raises(BadInput, match='labels without an order'):
        results_rows('facts', tmp_path/'out', 5, 'unsure', 'llm')

def test_folders_of_trust_that_hold_no_texts(tmp_path):
    scores_csv(tmp_path/'s.csv')
    found = trust(tmp_path/'s.csv', group='doc')
    write_trust(found, tmp_path/'out', texts=False)
    with pytest.raises(BadInput, match='holds no items.parquet.*--no-texts'): results_rows('facts', tmp_path/'out')
    bare = pd.read_csv(tmp_path/'s.csv').drop(columns='article')
    write_trust(trust(bare, group='doc'), tmp_path/'bare')
    with pytest.raises(BadInput, match='needs a source beside each text .*--source'):
        results_rows('facts', tmp_path/'bare')
    assert len(results_rows('claims', tmp_path/'bare', 3).rows) == 3

def test_labels_of_other_forms(tmp_path):
    "Criteria: a column for each person and question. Claims: a text has no label, and its chance is told."
    scores_csv(tmp_path/'s.csv')
    write_trust(trust(tmp_path/'s.csv', group='doc'), tmp_path/'out')
    questions = dict(smooth='Does it read smoothly?', short='Is it short?')
    with serve('criteria', tmp_path/'out', tmp_path/'a.db', n=4, questions=questions) as served:
        with Person(served.urls['A']) as person:
            while person.item:
                for name in questions: person.send(f'{name}=yes')
        served.store.export(tmp_path/'a')
    lines = [json.loads(line) for line in (tmp_path/'a'/'labels.jsonl').read_text().splitlines()]
    own = [line for line in lines if line['annotator_A_smooth'] is not None]
    assert len(lines) == 80 and len(own) == 4 and {line['annotator_A_short'] for line in own} == {'yes'}
    assert {line['weight'] for line in own} == {20} and own[0]['text'].startswith('<b>Ann')
    with serve('claims', tmp_path/'out', tmp_path/'b.db', n=4) as served: served.store.export(tmp_path/'b')
    lines = [json.loads(line) for line in (tmp_path/'b'/'chances.jsonl').read_text().splitlines()]
    assert {line['chance'] for line in lines} == {.05} and not (tmp_path/'b'/'labels.jsonl').exists()
