"""Three models, two data sets, two seeds, one model refusing a third: a sweep's judgements as the paper's tables, equal
to tables that are worked out from the judgements by other code."""
import json
import re
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from factlib.llm.stub import StubServer
from factlib.papers.storysumm.tables import EVALUATORS

import fact_server
import narrative_server
from command import factlib_inside
from sweeps import END, JUDGES, TABLES, grid, part_of, statuses

def released(file, source):
    "Six tuples as released, with sources of their own."
    row = lambda i: dict(s=f'{source} {i}.\n{fact_server.SOURCE}', g=fact_server.target(range(6)),
                         **{f'l_{k}': fact_server.target(fact_server.LIES[name])
                            for k, name in (('e', 'easy'), ('m', 'medium'), ('h', 'hard'), ('eh', 'extreme'))})
    file.write_text(json.dumps([row(i) for i in range(6)]), encoding='utf-8')

def answer(request):
    "`rule` sees order; `blind` sorts nothing; `shy` refuses two of six sources, where facts are checked."
    text = fact_server.prompt(request)
    if request['model'] == 'shy' and re.search(r'(Voyage|Journey) [14]\.\n', text): return 'I can\'t help with that.'
    data = fact_server.honest(request)
    if request['model'] == 'blind' and 'order' in data: data['order'] = sorted(data['order'])
    return json.dumps(data)

def auc(true, lies):
    "How often a true text is above a lie, ties half: pair by pair."
    wins = [(t > x) + .5*(t == x) for t, x in product(true, lies)]
    return float(np.mean(wins)) if wins else None

def share(own, ids):
    "Of each source's pairs of its true text and a lie, the share in which the true one is above; the mean of these."
    groups = []
    for _, texts in own[own.example_id.isin(ids)].groupby('group'):
        true, lies = texts[texts.level == 'true'].value, texts[texts.level != 'true'].value
        if len(true) and len(lies): groups.append(auc(true, lies))
    return np.mean(groups)

@pytest.mark.slow
def test_montagelie_of_twelve_cells(tmp_path):
    for name, source in dict(sea='Voyage', land='Journey').items(): released(tmp_path/f'{name}.json', source)
    own = part_of('montagelie', JUDGES | END, tmp_path)
    shown = part_of('montagelie', JUDGES | TABLES | {'montage-model-tests': ''} | END, tmp_path/'parts')
    with StubServer(answer, json_schema=True) as server:
        said = dict(experiment=str(own), parameters=dict(base_url=server.base_url, judges='dovescore', draws=0),
                    grid=dict(model=['rule', 'blind', 'shy'], dataset=['sea.json', 'land.json'], seed=[0, 1]))
        done = factlib_inside('sweep', grid(tmp_path, said), '--out', 'swept', cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert len(statuses(tmp_path/'swept')) == 12 and 'swept/all/index.html' in done.stdout
    done = factlib_inside('run', shown, '-p', 'judgements', 'swept', '--out', 'shown', cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    cells = pd.concat([pd.read_parquet(tmp_path/'swept'/cell/'judgements.parquet')
                       for cell in statuses(tmp_path/'swept')])
    cells = cells[(cells.part == 'main') & (cells.variant == 'original')]
    cells = cells.assign(benchmark=[f'{b}, seed {s}' for b, s in zip(cells.benchmark, cells.seed)])
    judged = {key: rows for key, rows in cells[cells.model != ''].groupby(['benchmark', 'evaluator'])}
    assert len(judged) == 12 and {rows.value.count() for (_, e), rows in judged.items() if e.endswith('shy')} == {20}
    check_table_3(pd.read_csv(tmp_path/'shown/tables/table_3.csv'), judged)
    check_model_tests(pd.read_csv(tmp_path/'shown/tables/model_tests.csv'), judged)

def check_table_3(table, judged):
    "Three rows for each draw, with their own n: AUCs in percent, and their mean."
    table = table[table.model.fillna('') != ''].set_index(['benchmark', 'evaluator'])
    table = table.loc[[key for key in table.index if key in judged]]
    assert len(table) == 12
    for key, rows in judged.items():
        known, row = rows[rows.value.notna()], table.loc[key]
        true = known[known.level == 'true'].value
        aucs = [100*auc(true, known[known.level == level].value) for level in ('easy', 'medium', 'hard', 'extreme')]
        assert list(row[['easy', 'medium', 'hard', 'extreme']]) == pytest.approx(aucs)
        assert row['mean'] == pytest.approx(np.mean(aucs)) and (row.asked, row.scored) == (30, len(known))

def check_model_tests(table, judged):
    "Each two of three models on each draw, on the texts that both scored; adjusted within a draw."
    table = table.set_index(['benchmark', 'first', 'second'])
    assert len(table) == 4*3 and set(table.family) == {3} and set(table.asked) == {30}
    for benchmark, tests in table.groupby('benchmark'):
        for first, second in combinations(['dovescore, rule', 'dovescore, blind', 'dovescore, shy'], 2):
            row, one, other = table.loc[benchmark, first, second], judged[benchmark, first], judged[benchmark, second]
            common = set(one[one.value.notna()].example_id) & set(other[other.value.notna()].example_id)
            shares = share(one, common), share(other, common)
            assert row.scored == len(common) and row.groups == len(common)/5
            assert (row.share_first, row.share_second) == pytest.approx(shares)
            assert row.difference == pytest.approx(shares[0] - shares[1])
        ordered = tests.sort_values('p') # Benjamini and Hochberg, step by step from the greatest
        least, adjusted = 1., []
        for rank, p in reversed(list(enumerate(ordered.p, 1))):
            least = min(least, p*len(ordered)/rank)
            adjusted.insert(0, least)
        assert list(ordered.q) == pytest.approx(adjusted)

# StorySumm and FABLES: another seed draws other stories

def told(data):
    "Eight stories of two summaries each and what ten evaluators said of them, and six novels, as released."
    for name in ('storysumm', 'fables'): (data/name).mkdir(parents=True)
    def summary(story, k): # the second one, and no other, has sentences that no story tells
        false = ['Terrible dragons appeared.']*(k*(1 + story % 3))
        return dict(id=f's{story}-{k}', story_id=story, split='test' if story % 2 else 'val', model='ab'[k],
                    label=1 - k, difficulty='easy' if story % 4 < 2 else 'hard', claims=[],
                    summary=fact_server.EVENTS[:2 + (story + k) % 4] + false,
                    sentence_labels=[1]*(2 + (story + k) % 4) + [0]*len(false))
    rows = [summary(story, k) for story in range(8) for k in (0, 1)]
    for row in rows: row['human_score'] = float(np.mean(row['sentence_labels']))
    stories = [dict(story_id=i, story=f'Journey {i}. {" ".join(fact_server.EVENTS)}') for i in range(8)]
    said = [dict(evaluator=name, id=row['id'], prob=(7*i + 5*j) % 11/10, unit='summary', unit_labels=None,
                 label=None if 'CoT' not in printed and j < 2 else float((i + j) % 3 > 0))
            for j, (printed, name) in enumerate(EVALUATORS.items()) for i, row in enumerate(rows)]
    novels = [dict(book=f'Book {b}', model=m, summary=f'Somebody {"sails "*(b + k)}home.', n_claims=10,
                   n_Yes=5 + (b*k) % 5, n_No=5 - (b*k) % 5, n_PartialSupport=0, n_Inapplicable=0)
              for b in range(6) for k, m in enumerate('abc')]
    files = {'storysumm/summaries': rows, 'storysumm/stories': stories, 'storysumm/recorded_predictions': said,
             'fables/summaries': novels}
    for name, table in files.items(): pd.DataFrame(table).to_parquet(data/f'{name}.parquet', index=False)
    return data

def checks(request):
    "`rule` finds the dragons; `blind` supports all; `shy` refuses summaries in which the pilot sails."
    asked = re.split('<(?:facts|text)>', narrative_server.prompt(request))[-1]
    if request['model'] == 'shy' and fact_server.EVENTS[3] in asked: return 'I can\'t.'
    said = narrative_server.storyteller(request)
    return said.replace('"unsupported"', '"supported"') if request['model'] == 'blind' else said

@pytest.mark.slow
def test_storysumm_of_twelve_cells(tmp_path):
    data, cells = told(tmp_path/'data'), ('parameters', 'check', 'judge', 'finish')
    own = part_of('storysumm', {f'storysumm-{name}': '' for name in cells}, tmp_path)
    with StubServer(checks, json_schema=True) as server:
        def swept(*models):
            said = dict(experiment=str(own), parameters=dict(base_url=server.base_url, n=4),
                        grid=dict(model=models, dataset=['storysumm', 'fables'], seed=[0, 1]))
            done = factlib_inside('sweep', grid(tmp_path, said), '--out', 'swept', cwd=tmp_path, data=data)
            assert done.returncode == 0, done.stderr
        swept('rule', 'shy')
        before = len(server.requests)
        why = factlib_inside('sweep', tmp_path/'grid.yaml', '--out', 'swept', '--dry-run', cwd=tmp_path, data=data)
        assert '8 are kept' in why.stdout, why.stdout
        swept('rule', 'shy', 'blind') # joins, and nobody else is asked again
        again = [request['model'] for request in server.requests[before:]]
        assert set(again) == {'blind'}, (again, statuses(tmp_path/'swept'))
    assert [*statuses(tmp_path/'swept').values()].count('done') == 4 and len(statuses(tmp_path/'swept')) == 12
    together = json.loads((tmp_path/'swept/all/result.json').read_text(encoding='utf-8'))
    assert {f'factscore, {model}' for model in ('rule', 'shy', 'blind')} <= set(together['evaluators'])
    done = factlib_inside('run', 'storysumm', '-p', 'judgements', 'swept', '--out', 'shown', cwd=tmp_path,
                          whole=True)
    assert done.returncode == 0, done.stderr
    judged = pd.concat([pd.read_parquet(tmp_path/'swept'/cell/'judgements.parquet')
                        for cell in statuses(tmp_path/'swept')])
    judged = judged.assign(dataset=[f'{b}, seed {s}' for b, s in zip(judged.benchmark, judged.seed)],
                           truth=judged.truth.map(json.loads)).drop_duplicates(['dataset', 'evaluator', 'example_id'])
    check_storysumm(tmp_path/'shown', {key: rows for key, rows in judged.groupby(['dataset', 'evaluator'])})

def check_storysumm(folder, judged):
    "Of each draw rows of its own, with their n: coefficients by scipy, shares counted."
    read = lambda name: pd.read_csv(folder/f'tables/{name}.csv').set_index(['dataset', 'evaluator'])
    tables = read('correlations'), read('fables_floors').query('read == "over all"')
    scored = set()
    for table, (key, rows) in product(tables, judged.items()):
        if key not in table.index: continue
        known, row = rows[rows.value.notna()].astype(dict(value=float)), table.loc[key]
        assert (row.asked, row.scored) == (len(rows), len(known))
        for name, coefficient in dict(spearman=scipy.stats.spearmanr, kendall=scipy.stats.kendalltau).items():
            if known.value.nunique() > 1:
                assert row[name] == pytest.approx(coefficient(known.value, known.truth).statistic), key
        scored.add((*key, len(known)))
    draws = [f'storysumm, seed {seed}' for seed in (0, 1)]
    assert {e for d, e, _ in scored if d == draws[0]} == {e for d, e, _ in scored if d == draws[1]} > {
        'factscore, rule', 'factscore, shy', 'factscore, blind', 'word_support', 'length', 'Claude-3 (recorded)'}
    assert {n < 8 for _, e, n in scored if e == 'factscore, shy'} == {True}
    results = read('results')
    for draw in draws:
        rows, own = judged[draw, 'factscore, shy'], results.loc[(draw, 'factscore, shy')]
        assert own.asked.sum() == len(rows) == 8 and own.summaries.sum() == rows.value.notna().sum()
        assert read('agreement').loc[draw].published.notna().sum() == 36
    findings = [f['text'] for f in json.loads((folder/'result.json').read_text(encoding='utf-8'))['findings']]
    floors = [text.partition(': ')[0] for text in findings if 'The number of words alone' in text]
    assert floors == draws and (folder/'figures/length_held.png').stat().st_size < 100_000
