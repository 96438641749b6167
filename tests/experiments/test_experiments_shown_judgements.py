"""What a run has judged is shown again by `-p judgements`: the same tables, byte by byte, with neither data nor model."""
import json

import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from factlib.benchmarks.base import load
from factlib.core.records import Example
from factlib.evaluators.base import get
from factlib.llm.stub import StubServer
from factlib.report.results import Experiment
from factlib.runs.judging import evaluate_in, evaluate_models

import fact_server
import turn_server
from command import factlib_inside

def shown(tmp_path, experiment, *folders, out='shown', more=(), whole=False):
    "The result of showing, in a folder of its own."
    paths = ','.join(str(tmp_path/folder) for folder in folders)
    done = factlib_inside('run', experiment, '-p', 'judgements', paths, *more, '--out', tmp_path/out, cwd=tmp_path,
                          whole=whole)
    assert done.returncode == 0, done.stderr
    return json.loads((tmp_path/out/'result.json').read_text(encoding='utf-8'))

def check_same_tables(first, second):
    names = sorted(p.name for p in (first/'tables').iterdir())
    assert names == sorted(p.name for p in (second/'tables').iterdir()) and len(names) > 20
    assert [n for n in names if (first/'tables'/n).read_bytes() != (second/'tables'/n).read_bytes()] == []

def judge(tmp_path, experiment, out, answer, *more, model='rule', data=None):
    with StubServer(answer, json_schema=True) as server:
        done = factlib_inside('run', experiment, '-p', 'model', model, '-p', 'base_url', server.base_url, *more,
                              '--out', tmp_path/out, cwd=tmp_path, data=data)
        assert done.returncode == 0, done.stderr

def judge_inside(folder, judged, model='', base_url=''):
    "A run without its notebook: `judged` lets evaluators judge in it."
    run = Experiment('montagelie', '', '', dict(out=str(folder), seed=0, n=0, model=model, base_url=base_url))
    judged(run)
    run.finish()

def percent_auc(rows, label, level):
    "AUC of the judgements in a file, by scikit-learn."
    own = rows[(rows.evaluator == label) & rows.level.isin(['true', level])].dropna(subset=['value'])
    return 100*roc_auc_score(own.level == 'true', own.value.astype(float))

@pytest.mark.slow
def test_montagelie_with_two_models(tmp_path):
    """One refuses a third; together they are two rows of each table, with their own n. Two draws of other texts, and
    DoveScores with other components, are shown beside them."""
    def refusing(request):
        text = fact_server.prompt(request)
        return 'I can\'t help with that.' if 'Voyage 1.' in text else fact_server.rule(request)
    released = fact_server.released_tuples(tmp_path/'data')
    more = ['-p', 'dataset', 'montagelie', '-p', 'judges', 'dovescore', '-p', 'draws', 0,
            '-p', 'components', 'checker=other; sorter=hybrid:other, sort=supported']
    judge(tmp_path, 'montagelie', 'rule', fact_server.rule, *more, data=released)
    tuples = load('montagelie', path=released/'montagelie/montagelie.json')
    with StubServer(refusing, json_schema=True) as server:
        judge_inside(tmp_path/'shy', lambda run: evaluate_models('dovescore', dict(montagelie=tuples), run), 'shy',
                     server.base_url)
    for seed in (0, 1):
        drawn = load('holmes_order', n=3, seed=seed)
        judge_inside(tmp_path/f'seed{seed}', lambda run: evaluate_in(
            [get('order_path'), get('length')], dict(holmes_order=drawn), run, seed=seed))
    shown(tmp_path, 'montagelie', 'rule', out='again')
    check_same_tables(tmp_path/'rule', tmp_path/'again')
    result = shown(tmp_path, 'montagelie', 'rule', 'shy', 'seed0', 'seed1')
    asked = {name: (e['asked'], e['scored']) for name, e in result['evaluators'].items()}
    assert asked['dovescore, rule'] == (15, 15) and asked['dovescore, shy'] == (15, 10)
    read = lambda name: pd.read_csv(tmp_path/f'shown/tables/{name}.csv', keep_default_na=False)
    third = read('table_3').set_index(['benchmark', 'evaluator'])
    rows = pd.concat([pd.read_parquet(tmp_path/f/'judgements.parquet') for f in ('rule', 'shy')])
    rows = rows[(rows.part == 'main') & (rows.variant == 'original')]
    for label, scored in (('dovescore, rule', 15), ('dovescore, shy', 10), ('order_path', 15), ('rougeL', 15)):
        row = third.loc['montagelie', label]
        assert (int(row.asked), int(row.scored)) == (15, scored)
        assert float(row.extreme) == pytest.approx(percent_auc(rows, label, 'extreme'))
    assert {b for b, _ in third.index} == {'montagelie', 'holmes_order, seed 0', 'holmes_order, seed 1', ''}
    assert third.loc[('', 'qwen-3-8b'), 'why'] and float(third.loc[('', 'qwen-3-8b'), 'published_mean']) == 59.36
    fourth = read('table_4')
    assert fourth[fourth.printed_as == 'DoveScore'].model.tolist() == ['rule', 'shy']
    assert set(read('table_2').here) == {''} and len(read('table_1')) == 3*9
    costs = read('component_costs').set_index('evaluator').requests
    # taken apart, checked, sorted twice; a hybrid sorts a list and its neighbours, twice
    assert (costs['dovescore, checker=other, rule'], costs['dovescore, sorter=hybrid:other, sort=supported, rule']) == (
        4, 6)
    drawings = {p.stem for p in (tmp_path/'shown/figures').glob('*.png')}
    assert {f'figure_{i}' for i in (4, 5, 6, 7, 8, 9, 10)} | {'models', 'scores_montagelie'} <= drawings

@pytest.mark.slow
def test_vista_without_its_data(tmp_path):
    more = ['-p', 'dataset', 'written_dialogues', '-p', 'judges', 'vista', '-p', 'n', 3]
    judge(tmp_path, 'vista', 'first', turn_server.rule, *more)
    result = shown(tmp_path, 'vista', 'first')
    check_same_tables(tmp_path/'first', tmp_path/'shown')
    assert 'vista, rule' in result['evaluators']
    judged = pd.read_parquet(tmp_path/'shown/judgements.parquet')
    assert set(judged.part) == {'main', 'tuning', 'ablation', 'given_claims'}
    assert any('vista_zero_shot, rule' in name for name in judged.evaluator[judged.part == 'ablation'])
    add_another_model(judged, tmp_path/'first', tmp_path/'second')
    people = ['-p', 'annotations', annotated(tmp_path/'shown/for_people.jsonl', tmp_path/'people.jsonl')]
    check_two_models_and_draws(tmp_path, shown(tmp_path, 'vista', 'first', 'second', out='both', more=people,
                                               whole=True))

def annotated(source, path):
    "Two annotators have filled in what they were given: they agree, but for the first claim."
    lines = [json.loads(line) for line in source.read_text(encoding='utf-8').splitlines()]
    filled = [line | dict(annotator=a, label='verifiable' if i or a == 'A' else 'out-of-scope')
              for a in 'AB' for i, line in enumerate(line for line in lines if line['claim'])]
    path.write_text(''.join(json.dumps(line) + '\n' for line in filled), encoding='utf-8')
    return path

def add_another_model(judged, first, second):
    """A file as of another model on the same conversations, drawn by seed 1, whose verdicts on every third turn are
    missing."""
    second.mkdir()
    own = judged[judged.model == 'rule'].copy()
    for name in ('evaluator', 'signature', 'model'): own[name] = own[name].str.replace('rule', 'shy')
    turns = own.example_id.drop_duplicates().tolist()
    gone = own.example_id.isin(turns[::3])
    numbers = [c for c in own if own[c].dtype == 'Float64']
    own.loc[gone, numbers] = None
    own.loc[gone, 'evidence'] = '{}'
    own.loc[gone, 'absence'] = 'refused'
    own.assign(seed=1).astype(dict(seed='Int64')).to_parquet(second/'judgements.parquet')
    texts = pd.read_parquet(first/'examples.parquet')
    texts.assign(seed=1).astype(dict(seed='Int64')).to_parquet(second/'examples.parquet')

def check_two_models_and_draws(tmp_path, result):
    "Each draw has rows of its own, n is of those that answered, and the counts are those of the judgements."
    read = lambda name: pd.read_csv(tmp_path/f'both/tables/{name}.csv')
    judged = pd.read_parquet(tmp_path/'both/judgements.parquet')
    own = judged[(judged.part == 'main') & judged.evaluator.str.startswith('vista, ') & judged.truth.ne('null')]
    for (model, seed), part in own[own.model != ''].groupby(['model', 'seed']):
        row = read('table_1').query('model == @model and seed == @seed').iloc[0]
        right = [(x == 1) == (t == '"supported"') for x, t in zip(part.supported, part.truth) if pd.notna(x)]
        assert (row.turns, row.VISTA_scored) == (len(part), len(right)) and row.VISTA == pytest.approx(
            100*sum(right)/len(right))
        fifth = read('table_5').query('model == @model and seed == @seed').iloc[0]
        assert fifth.turns == len(part) and (fifth.claims_scored < fifth.claims) == (model == 'shy')
        settings = read('table_6').query('model == @model and seed == @seed')
        assert settings.setting.nunique() == len(settings) == 6 and set(settings.scored) == {len(right)}
    assert {(0, 'rule'), (1, 'shy')} <= set(zip(read('figure_2').seed, read('figure_2').model.str.split(',').str[0]))
    for i in range(1, 11): # all printed rows stand in each, the missing ones with a reason
        table = read(f'table_{i}')
        published = table.filter(like='_published').notna().any(axis=1)
        assert published.any() and (table.why.notna() | (table.index < len(table[table.why.isna()]))).all()
    second, third = read('table_2').iloc[0], read('table_3')
    claims = int(third[third.label == 'verifiable']['count'].iloc[0])
    assert (second.pair, second.jaccard, second.of) == ('A-B', 1, 'people') and second.n_first == claims + 1
    assert set(read('table_4')['of'].dropna()) == {'people'} and len(read('to_adjudicate')) == 1 # a tie
    assert result['evaluators']['vista, shy']['scored'] < result['evaluators']['vista, shy']['asked']
    assert (tmp_path/'both/figures/figure_2.png').stat().st_size < 100_000
    lines = [json.loads(line) for line in (tmp_path/'both/for_people.jsonl').read_text(encoding='utf-8').splitlines()]
    assert lines and set(lines[0]) >= {'annotator', 'conversation', 'turn', 'claim', 'label', 'reference'}

def test_nobody_is_asked_and_what_is_not_there_is_said(tmp_path):
    for more, words in ((['-p', 'judgements', 'nowhere'], "names 'nowhere', which is not there"),
                        (['-p', 'judgements', '.', '-p', 'model', 'M'], 'leave out model and base_url'),
                        (['-p', 'judgements', '.'], 'There are no judgements in')):
        done = factlib_inside('run', 'montagelie', *more, '--out', tmp_path/'x', cwd=tmp_path)
        assert done.returncode == 2 and words in done.stderr.strip().splitlines()[-1]
        assert not (tmp_path/'x').exists()

def test_texts_of_another_kind_are_refused_before_anybody_is_asked(tmp_path):
    lies = [Example(f'e{i}', source='It rained.', target='It snowed.', truth='false') for i in range(3)]
    (tmp_path/'lies.jsonl').write_text(''.join(json.dumps(e.to_dict()) + '\n' for e in lies), encoding='utf-8')
    with StubServer(turn_server.rule, json_schema=True) as server:
        done = factlib_inside('run', 'vista', '-p', 'dataset', 'lies.jsonl', '-p', 'model', 'rule', '-p', 'base_url',
                              server.base_url, '--out', tmp_path/'x', cwd=tmp_path)
        assert not server.requests
    assert done.returncode == 2 and "'e0' is labelled 'false'" in done.stderr.strip().splitlines()[-1]
    assert not (tmp_path/'x').exists()
