"""Three models, two sets, two draws, one model refusing a third: cells as a sweep makes them, joined and laid out as
NarrativeFactScore's, trutheval's and the thesis's tables, equal to tables that pandas and scipy make of the files."""
import json
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from factlib.benchmarks.base import Benchmark
from factlib.core.records import Example
from factlib.llm.stub import StubServer
from factlib.metaeval.labels import with_truth
from factlib.metaeval.levels import with_steps
from factlib.metaeval.scores import judged_scores
from factlib.papers.judgememo.live import live_setups, told_apart
from factlib.papers.judgememo.printed import main_table
from factlib.papers.narrativefactscore.printed import table_1, table_2
from factlib.papers.narrativefactscore.tables import correlation_table
from factlib.papers.trutheval.printed import print_correlations, who_is
from factlib.papers.trutheval.tables import correlation_table as level_correlations
from factlib.report.published import published
from factlib.report.results import Experiment
from factlib.runs.judging import GivenJudgements, evaluate_models

import fact_server
import narrative_server

MODELS, SEEDS = ('alpha', 'beta', 'shy'), (0, 1)

def joined(folder, judges, answer, sets, texts):
    """What `texts(set, seed)`, judged by each model in a folder of its own, comes to together: the rows of all files,
    the texts by set and draw, and `Asked` as the experiments show it."""
    paths = []
    with StubServer(answer, json_schema=True) as server:
        for model, name, seed in product(MODELS, sets, SEEDS):
            paths.append(folder/f'{model}-{name}-{seed}')
            run = Experiment('cell', '', '', dict(out=str(paths[-1]), seed=seed, n=0, model=model,
                                                  base_url=server.base_url))
            evaluate_models(judges, {name: Benchmark(name, texts(name, seed), 'label', '')}, run)
            run.finish()
    given = GivenJudgements(paths)
    shown = Experiment('all', '', '', dict(out=str(folder/'all'), seed=0, n=0, model='', base_url=''), given)
    own = {b.name: b for b in given.benchmarks('main')}
    rows = pd.concat([pd.read_parquet(path/'judgements.parquet') for path in paths], ignore_index=True)
    rows['draw'] = [f'{b}, seed {s}' for b, s in zip(rows.benchmark, rows.seed)]
    rows['value'] = rows.value.astype(float)
    assert set(own) == set(rows.draw) and len(own) == 4
    return rows, own, evaluate_models('', own, shown)

def pick(rows, **of):
    for column, value in of.items(): rows = rows[rows[column] == value]
    return rows

# NarrativeFactScore

def summaries(name, seed):
    "Four stories of three summaries, of which one to three sentences are told and the others are not."
    told = lambda s, k: [*fact_server.EVENTS[:1 + (s + k + seed) % 3], *['Terrible dragons appeared.']*(k + s % 2)]
    return [Example(f's{s}-{k}', source=f'Story {s}.\n{fact_server.SOURCE}', group=f's{s}',
                    target=' '.join([f'Tale {s} of part {k} sailed.', *told(s, k)]),
                    truth=(7*s + 5*k + seed + len(name)) % 9/8) for s in range(4) for k in range(3)]

def checks(request):
    "`beta` supports one fact less of each text; `shy` takes no part 0 apart."
    if request['model'] == 'shy' and re.search('<text>\nTale . of part 0', narrative_server.prompt(request)):
        return 'I can\'t help.'
    said = narrative_server.storyteller(request)
    return said.replace('"supported"', '"unsupported"', 1) if request['model'] == 'beta' else said

def test_narrativefactscore(tmp_path):
    rows, own, asked = joined(tmp_path, 'factscore narrativefactscore_text', checks, ['storysumm', 'mine'], summaries)
    judged = pd.concat([a.frame for a in asked], ignore_index=True).rename(columns=dict(benchmark='dataset'))
    judged = pd.concat([with_truth(part, own[name]) for name, part in judged.groupby('dataset', sort=False)])
    table = correlation_table(judged.reset_index(drop=True))
    rows['truth'] = rows.truth.map(json.loads)
    forms = table_1(table).query('measure == "FActScore"'), table_2(table).query('form == "C"')
    for of, name in zip(forms, ('factscore', 'narrativefactscore_text')):
        of = of[of.asked.notna()]
        assert len(of) == 2*len(MODELS)*4 and of.dataset.nunique() == 4
        for row in of.itertuples():
            judge = pick(rows, evaluator=f'{name}, {row.model}', draw=row.dataset.replace('StorySumm', 'storysumm'))
            known = judge.dropna(subset=['value'])
            assert (row.asked, row.scored) == (12, len(known)) and len(known) == (8 if row.model == 'shy' else 12)
            by = dict(Spearman=scipy.stats.spearmanr, Kendall=scipy.stats.kendalltau)[row.coefficient]
            assert row.here == pytest.approx(by(known.value, known.truth).statistic)

# trutheval

WORDS = 'one two three four five six'.split()

def ladders(name, seed):
    "Four questions of five levels."
    said = lambda q, k: f'Question {q} of {name}, {seed}: ' + ' '.join(WORDS[:6 - k]) + '.'
    return [Example(f'{name}-{seed}-{q}/{k}', source=said(q, 0), reference=said(q, 0), target=said(q, k), truth=k,
                    question=f'Question {q}?', group=f'{seed}-q{q}', level=f'A{k}',
                    variant='recorded' if name == 'trutheval' else 'lie') for q in range(4) for k in range(5)]

def rubric(request):
    "As many points as words are left; `beta` mistakes some, `shy` says nothing of every third question."
    answer = fact_server.prompt(request).split('</answer>')[0].split('<answer>')[-1]
    q, left = int(re.search(r'Question (\d)', answer)[1]), sum(word in answer for word in WORDS)
    if request['model'] == 'shy' and (q + left) % 3 == 0: return 'I can\'t.'
    points = left - 1 if request['model'] == 'alpha' else (left*(q + 2)) % 5 + 1
    return json.dumps(dict(reason='', correctness=max(1, min(5, points))))

def test_trutheval(tmp_path):
    rows, own, asked = joined(tmp_path, 'rubric', rubric, ['answers', 'trutheval'], ladders)
    models = {a.label: (a.name, a.model) for a in asked}
    judged = pd.concat([a.frame for a in asked], ignore_index=True)
    limits = {label: who_is(label, models).limits for label in models}
    parts = [with_steps(judged[judged.benchmark == name], list(own[name])) for name in own]
    found = pd.concat([level_correlations(part, limits=limits).assign(dataset=name, variant=part.variant.iloc[0])
                       for name, part in zip(own, parts)], ignore_index=True)
    table = print_correlations(found, models)
    rows['truth'] = rows.truth.map(json.loads)
    here = table[table.evaluator.notna()]
    assert len(here) == 12 and set(here.dataset) == set(own)
    for row in here.itertuples():
        judge = pick(rows, evaluator=row.evaluator, draw=row.dataset)
        known = judge.dropna(subset=['value'])
        assert (row.asked, row.scored) == (20, len(known)) and (len(known) < 15) == (row.model == 'shy')
        assert row.pearson == pytest.approx(np.corrcoef(known.value, known.truth)[0, 1])
        taus = [scipy.stats.kendalltau(q.value, q.truth).statistic for _, q in known.groupby('group')]
        assert row.kendall == pytest.approx(np.nanmean(taus))

# The thesis

def versions(name, seed):
    "Four texts, untouched and with typos, short and long."
    return [Example(f'{name}-{seed}-{d}/{level}/{variant}', group=f'd{d}', variant=variant, level=level,
                    target=f'Text {d}, {level}, {variant}, {name}, {seed}. ' + 'The fox ran home. '*4)
            for d in range(4) for level in ('2000', 'full') for variant in ('gold', '41')]

def points(request):
    "Points by the letters of a text's first sentence; `shy` says nothing of every third text."
    told = re.search(r'Text (\d), (\w+), (\w+), (\w+), (\d)', fact_server.prompt(request))
    d, level, variant, name, seed = told.groups()
    if request['model'] == 'shy' and int(d) % 3 == 0: return 'I can\'t.'
    at = (int(d)*3 + len(level)*5 + len(variant + name)*7 + int(seed) + len(request['model'])*int(d)) % 5
    return f'FINAL Fluency Score: {1 + at}\nFINAL Coherence Score: {5 - at}'

def t_of(d):
    "Eq 5.1."
    d = d.dropna()
    return d.mean()/(d.std(ddof=1)/len(d)**.5)

def test_the_thesis(tmp_path):
    rows, own, asked = joined(tmp_path, 'vanilla', points, ['mine', 'other'], versions)
    frames, judges = told_apart(asked)
    setup = live_setups(pd.concat([judged_scores(frame) for frame in frames], ignore_index=True), judges)['vanilla']
    printed, called = published('judgememo'), lambda row: row.model.split(', ', 1)
    rows['fluency'] = rows.fluency.astype(float)
    def score(model, draw, level, variant):
        judge = pick(rows, model=model, draw=draw, level=level, variant=variant)
        return judge.set_index('group').fluency
    gold, tests = (main_table(name, printed[name], setup) for name in ('5.1', 'A.13'))
    gold = gold[gold.published.isna() & (gold.metric == 'fluency')].rename(columns={'length or delta': 'length'})
    tests = tests[tests.published.isna() & (tests.number == 't')]
    assert len(gold) == 12*3 and len(tests) == 12 and gold.model.nunique() == tests.model.nunique() == 12
    for row in gold.itertuples():
        short, long = (score(*called(row), level, 'gold') for level in ('2000', 'full'))
        own = {'2000': short, 'full': long, 'delta': short - long}[row.length]
        assert row.here == pytest.approx(own.mean()) and (row.asked, row.scored) == (4, own.count())
        assert own.count() == (2 if called(row)[0] == 'shy' else 4)
    for row in tests.itertuples():
        fell = [score(*called(row), level, '41') - score(*called(row), level, 'gold') for level in ('2000', 'full')]
        assert (row.asked, row.scored) == (4, fell[0].count())
        if (fell[0] - fell[1]).std() > 0: assert row.here == pytest.approx(t_of(fell[0] - fell[1]))
        else: assert np.isnan(row.here) and row.why
