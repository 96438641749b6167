"""trutheval for any models: judged once with a stub, on a handful of its recorded ladders, and shown beside another
model that refuses a third; every number worked from the judgements by other code."""
import json
import shutil

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from factlib.llm.stub import StubServer

import fact_server
from command import factlib_inside

QUESTIONS, SAID = 4, ['one', 'two', 'three', 'four', 'five', 'six']

def answer(level, question): return f'Question {question}: ' + ' '.join(SAID[:len(SAID) - level]) + '.'

def released(data):
    "A data folder with trutheval's three files, of a few questions."
    (data/'trutheval').mkdir(parents=True)
    rows = [dict(id=q, level=k, question=f'Question {q}?', ground_truth=answer(0, q), answer=answer(k, q),
                 with_brackets='[a] b' if k == 4 else '[a] [b]', planning='')
            for q in range(QUESTIONS) for k in range(5)]
    people = [dict(id=q, level=k, question=f'Question {q}?', ground_truth=answer(0, q), ai=answer(k, q),
                   expert=answer(k, q), evaluator_1='AI' if k < q - 6 else 'Expert', evaluator_2='Both are good')
              for q in (8, 9, 10) for k in range(5)]
    scores = [dict(method=method, fact_extraction_llm=model, id=r['id'], level=r['level'], score=1 - .2*r['level'])
              for method, model in (('ragas_factual_correctness', 'gpt-4o-mini'), ('llm_plus_nli', 'gemma3:12b-it-qat'))
              for r in rows]
    for name, table in dict(perturbed_answers=rows, human_preferences=people, recorded_scores=scores).items():
        pd.DataFrame(table).to_parquet(data/'trutheval'/f'{name}.parquet', index=False)
    return data

def rule(request):
    "A judge that counts the words which are left."
    left = sum(word in fact_server.prompt(request).split('</answer>')[0].split('<answer>')[-1] for word in SAID)
    return json.dumps(dict(reason='', correctness=max(1, min(5, left - 1))))

@pytest.fixture(scope='module')
def folders(tmp_path_factory):
    "A run with a model that the paper has; its judgements as another model's, a third of them refused; both shown."
    home = tmp_path_factory.mktemp('trutheval')
    with StubServer(rule, json_schema=True) as server:
        done = factlib_inside('run', 'trutheval', '-p', 'model', 'gemma3:4b', '-p', 'base_url', server.base_url, '-p',
                              'dataset', 'trutheval', '-p', 'judges', 'rubric', '--out', home/'first', cwd=home,
                              data=released(home/'data'), whole=True)
    assert done.returncode == 0, done.stderr
    shutil.copytree(home/'first', home/'shy')
    judged = pd.read_parquet(home/'shy/judgements.parquet')
    judged = judged[judged.evaluator == 'rubric, gemma3:4b'].assign(evaluator='rubric, shy', model='shy')
    refused = np.arange(len(judged)) % 3 == 0
    judged['value'] = judged['correctness'] = judged.value.mask(refused)
    judged['absence'] = ['refused' if no else None for no in refused]
    judged.to_parquet(home/'shy/judgements.parquet')
    done = factlib_inside('run', 'trutheval', '-p', 'judgements', f'{home}/first,{home}/shy', '--out', home/'shown',
                          cwd=home, whole=True)
    assert done.returncode == 0, done.stderr
    return home

def own(home, evaluator):
    "The scores of the recorded ladders, by question and level."
    frames = [pd.read_parquet(home/name/'judgements.parquet') for name in ('first', 'shy')]
    rows = pd.concat(frames, ignore_index=True)
    rows = rows[(rows.evaluator == evaluator) & (rows.variant == 'recorded')]
    return rows.assign(step=rows.truth.map(json.loads), value=rows.value.astype(float))

@pytest.mark.slow
def test_table_2_has_a_row_for_each_model(folders):
    table = pd.read_csv(folders/'shown/tables/table_2.csv')
    printed = table[table['pearson, published'].notna()]
    assert len(printed) == 9 and printed.method.tolist()[:2] == ['LLM-as-judge', 'LLM-as-judge']
    here = printed[printed.pearson.notna()]
    assert here.evaluator.tolist() == ['rubric, gemma3:4b', 'RAGAS|gpt-4o-mini', 'LLM + NLI|gemma3:12b']
    assert here.loc[here.model == 'gpt-4o-mini', 'kendall'].item() == pytest.approx(-1)
    assert printed.why[printed.pearson.isna()].str.contains('-p model').all()
    for label, model in {'rubric, gemma3:4b': 'gemma3:4b', 'rubric, shy': 'shy'}.items():
        rows, row = own(folders, label), table[(table.evaluator == label) & (table.ladders == 'recorded')].iloc[0]
        known = rows[rows.value.notna()]
        assert (row.model, row.method, row.asked, row.scored) == (model, 'LLM-as-judge', len(rows), len(known))
        assert row.pearson == pytest.approx(np.corrcoef(known.value, known.step)[0, 1])
        taus = [scipy.stats.kendalltau(q.value, q.step).statistic for _, q in known.groupby('group')]
        assert row.kendall == pytest.approx(np.mean(taus))
    baselines = table[table.method == 'baseline']
    assert set(baselines.evaluator) == {'rouge1', 'word_support', 'length', 'random'}
    assert not table.evaluator.fillna('').str.contains('by rules|words\\)').any()

@pytest.mark.slow
def test_pairs_and_levels_are_of_common_answers(folders):
    tests = pd.read_csv(folders/'shown/tables/tests.csv')
    pair = tests[(tests['first'] == 'rubric, gemma3:4b') & (tests.second == 'rubric, shy')
                 & (tests.variant == 'recorded')]
    a, b = own(folders, 'rubric, gemma3:4b'), own(folders, 'rubric, shy')
    both = a.merge(b[['example_id', 'value']], on='example_id', suffixes=('', '_b')).dropna(subset=['value', 'value_b'])
    assert (pair.asked.item(), pair.scored.item(), pair.difference.item()) == (len(a), len(both), 0)
    levels = pd.read_csv(folders/'shown/tables/levels.csv')
    cell = levels[(levels.evaluator == 'rubric, shy') & (levels.variant == 'recorded')].set_index('pair').loc['A0 > A4']
    wide = b.pivot(index='group', columns='step', values='value')
    right = (wide[0] - wide[4]).dropna()
    assert (cell.asked, cell.scored, cell.right) == (QUESTIONS, len(right), (right > 0).mean() + (right == 0).mean()/2)

@pytest.mark.slow
def test_shown_as_judged_and_as_in_print(folders):
    "What one run alone has is the same in both; without data, tables say what they need; no interval leaves its range."
    alone = pd.read_csv(folders/'first/tables/table_1.csv')
    assert alone['Both are good'].sum() == 3*4 and alone['AI, published'].sum() == 15
    without = pd.read_csv(folders/'shown/tables/table_1.csv')
    assert without.AI.isna().all() and without.why.str.startswith('needs the recorded preferences').all()
    for name in ('table_4', 'sections_4_and_5'):
        table = pd.read_csv(folders/f'shown/tables/{name}.csv')
        assert table.here.isna().all() and table.published.notna().all() and table.why.str.startswith('needs').all()
    for name in ('figure_1', 'figure_3a', 'figure_3b', 'levels'):
        for folder in ('first', 'shown'): assert 5000 < (folders/folder/f'figures/{name}.png').stat().st_size < 100_000
    assert (folders/'first/figures/figure_2.png').is_file()
    first, shown = (pd.read_csv(folders/f'{x}/tables/correlations.csv').set_index(['variant', 'evaluator'])
                    for x in ('first', 'shown'))
    pd.testing.assert_frame_equal(first, shown.loc[first.index])
    for name, most in dict(tau=1, pearson=1, rows=1, auc=1).items():
        assert (shown[f'{name}_high'].dropna() <= most).all() and (shown[f'{name}_low'].dropna() >= -most).all()
    means = pd.read_csv(folders/'shown/tables/scores_by_level.csv')
    judge = means[means.evaluator.str.startswith('rubric')]
    assert (judge.ci_low.dropna() >= 1).all() and (judge.ci_high.dropna() <= 5).all()
    parts = pd.read_parquet(folders/'shown/judgements.parquet')
    assert set(parts.part) == {'main', 'recorded'}
    assert 'RAGAS|gpt-4o-mini' in set(parts[parts.part == 'recorded'].evaluator)
