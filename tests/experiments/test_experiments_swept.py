"""Three models, two data sets, two seeds, one model refusing a third: a sweep's judgements as the paper's tables, equal
to tables that are worked out from the judgements by other code."""
import json
import re
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from factlib.llm.stub import StubServer
from factlib.runs.execute import find_experiment

import fact_server
from command import factlib_inside
from sweeps import grid, statuses

def part_of(experiment, cells, folder):
    "Some of an experiment's cells, since all tables and figures take minutes. A source may stand in for a cell's."
    folder.mkdir(exist_ok=True)
    whole = json.loads(find_experiment(experiment).read_text(encoding='utf-8'))
    by_id = {cell['id']: cell for cell in whole['cells']}
    whole['cells'] = [by_id[name] | (dict(source=source) if source else {}) for name, source in cells.items()]
    (folder/f'{experiment}.ipynb').write_text(json.dumps(whole), encoding='utf-8')
    return folder/f'{experiment}.ipynb'

FEW = """from factlib.evaluators.base import get
from factlib.runs.judging import evaluate_in, add_expected
frames = [evaluate_in(get(name), by_name, run) for name in ('length', 'order_path')]"""
JUDGES = {'montage-parameters': '', 'montage-check': '', 'montage-here': '', 'montage-judge': FEW, 'montage-models': ''}
TABLES = dict.fromkeys(['montage-auc', 'montage-printed-tables', 'montage-model-tests'], '')
END = {'montage-finish': ''}

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
    shown = part_of('montagelie', JUDGES | TABLES | END, tmp_path/'parts')
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
