"""trutheval's tables from its recordings: what comes out, what an audit says of dropped and swapped scores, and the
import of a clone."""
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.formula.api as smf

from factlib.core.records import Absence, BadInput, Example
from factlib.papers.trutheval.misprints import correlation_cells, section_4_cells, text_cells, trutheval_audit
from factlib.papers.trutheval.recordings import FILES, SCORES, import_trutheval, label_of, recorded_judgements
from factlib.papers.trutheval.recordings import recorded_preferences, recorded_scores
from factlib.papers.trutheval.tables import changed_words, correlation_table, preference_levels, preferences_table
from factlib.papers.trutheval.tables import section_4_table, sizes_table
from factlib.papers.trutheval.printed import print_correlations, who_is
from factlib.report.published import published

DATA = Path(os.environ.get('FACTLIB_DATA') or 'nowhere')/'trutheval'
needs_data = pytest.mark.skipif(not (DATA/'recorded_scores.parquet').is_file(), reason='FACTLIB_DATA has no trutheval')
PIPELINES = ['RAGAS|gpt-4o-mini', 'LLM + NLI|gemma3:12b', 'LLM + NLI|llama3.3:70b']

@pytest.fixture(scope='module')
def rows():
    from factlib.benchmarks.base import load
    from factlib.metaeval.levels import with_steps
    examples = load('trutheval', split='evaluation').examples
    return with_steps(recorded_judgements(recorded_scores(), examples), examples)

# The print

def test_the_printed_cells_have_the_agreed_names():
    tables = published('trutheval')
    assert tables['1'].cells['AI|Both are good'] == 14 and sum(tables['1'].cells.values()) == 80
    two = tables['2'].cells
    assert len(two) == 9*6 and two['LLM-as-judge|phi4:14b|pearson'] == -.74
    assert two['LLM + NLI|gemma3:12b|kendall low'] == -.98
    assert all(two[f'{row}|{c} low'] <= two[f'{row}|{c}'] <= two[f'{row}|{c} high']
               for row in {key.rsplit('|', 1)[0] for key in two} for c in ('pearson', 'kendall'))
    assert set(tables['4'].cells) == {'composite', 'composite low', 'ties all',
                                      'ties A0', 'ties A1-A4', 'opposing', 'kappa', 'power'}

def test_size_and_pearson_among_the_judges():
    judges = sizes_table().query('method == "LLM-as-judge"')
    assert list(judges.billions) == [4, 70, 24, 14, 7, 7]
    assert round(-scipy.stats.spearmanr(judges.billions, judges.pearson).statistic, 2) == .76

def test_an_audit_without_data_is_no_data():
    audit = trutheval_audit()
    assert set(audit.status) == {'no_data'} and '.76' in audit.note.iloc[-1]
    assert all(audit.note)

# The recordings

@needs_data
def test_table_1_and_section_4_come_out():
    pairs = recorded_preferences()
    audit = trutheval_audit(pairs).set_index(['table', 'cell'])
    assert set(audit.loc['1'].status) == {'agrees'}
    four = audit.loc['4']
    assert dict(four.status) == {'composite': 'agrees', 'composite low': 'agrees',
                                 'kappa': 'agrees', 'opposing': 'agrees', 'power': 'recipe_only',
                                 'ties all': 'recipe_only', 'ties A0': 'recipe_only', 'ties A1-A4': 'recipe_only'}
    assert round(four.by_definition['power'], 1) == 85.7 and round(four.by_recipe['power'], 1) == 77.1
    assert '69 %' in four.note['power']
    assert four.by_definition['ties A1-A4'] == 45 and four.by_recipe['ties A1-A4'] == 82.5
    statistics = section_4_table(pairs, n_resamples=99).set_index('statistic').estimate
    assert round(statistics['power, two-sided, questions'], 3) == .555 # 55.5 % in research

@needs_data
def test_table_2_comes_out_where_scores_are_there(rows):
    audit = trutheval_audit(rows=rows)
    two = audit[audit.table == '2']
    known = two[two.status != 'no_data']
    assert len(known) == 18 and set(known.status) == {'agrees'}
    assert {cell.rsplit('|', 1)[0] for cell in known.cell} == set(PIPELINES)

@needs_data
def test_table_2_by_scipy(rows):
    table = correlation_table(rows, n_resamples=20).set_index('evaluator')
    for name, part in rows.groupby('evaluator'):
        taus = [scipy.stats.kendalltau(q.step, q.value).statistic for _, q in part.groupby('group')]
        assert table.tau[name] == pytest.approx(np.mean(taus), abs=1e-12)
        assert table.pearson[name] == pytest.approx(scipy.stats.pearsonr(part.step, part.value).statistic, abs=1e-12)
        levels = {k: q.value.to_numpy() for k, q in part.groupby('step')}
        u = scipy.stats.mannwhitneyu(levels[0], levels[1]).statistic/1e4
        assert table.auc[name] == pytest.approx(u, abs=1e-12)

@needs_data
def test_dropped_scores_are_not_passed_off(rows):
    "One score less, and the row is no longer held against the print; the other ones are."
    fewer = rows.drop(index=rows.index[rows.evaluator == PIPELINES[0]][7])
    absent = rows.assign(value=rows.value.where(~((rows.evaluator == PIPELINES[0]) & (rows.step == 4))))
    for part in (fewer, absent):
        audit = trutheval_audit(rows=part)
        known = audit[(audit.table == '2') & (audit.status != 'no_data')]
        assert {cell.rsplit('|', 1)[0] for cell in known.cell} == set(PIPELINES[1:])

@needs_data
def test_swapped_scores_are_seen(rows):
    names = dict(zip(PIPELINES, PIPELINES[1:] + PIPELINES[:1]))
    audit = trutheval_audit(rows=rows.assign(evaluator=rows.evaluator.map(names)))
    known = audit[(audit.table == '2') & (audit.status != 'no_data')]
    assert {'unexplained'} <= set(known.status)
    of_others = known.cell.isin([f'{name}|pearson' for name in PIPELINES[:2]]) # the two LLM + NLI are nearly equal
    assert (known[of_others].status == 'unexplained').all()

@needs_data
def test_partial_correlations_of_research(rows):
    "Those of research; the third pipeline's, which research didn't have, by regression with a mean for each question."
    from factlib.metaeval.levels import partial_within
    estimates = {name: round(partial_within(part).estimate, 3) for name, part in rows.groupby('evaluator')}
    third = rows[rows.evaluator == PIPELINES[2]]
    fit = smf.ols('value ~ step + rouge1 + C(group)', third.astype(dict(value=float, step=float))).fit()
    r = fit.tvalues['step']/np.sqrt(fit.tvalues['step']**2 + fit.df_resid)
    assert estimates == {'RAGAS|gpt-4o-mini': -.588, 'LLM + NLI|gemma3:12b': -.508, PIPELINES[2]: round(r, 3)}

@needs_data
def test_918_questions_would_tell(rows):
    from factlib.validity.paired import examples_needed
    taus = [rows[rows.evaluator == name].groupby('group').apply(
        lambda q: scipy.stats.kendalltau(q.step, q.value).statistic, include_groups=False) for name in PIPELINES[:2]]
    assert examples_needed(list(taus[0] - taus[1])) == 918

@needs_data
def test_lengths_and_spans():
    answers = pd.read_parquet(DATA/'perturbed_answers.parquet')
    lengths = list(answers[answers.level == 0].ground_truth.str.len())
    spans = tuple(int(answers[answers.level == k].with_brackets.str.count(r'\[').sum()) for k in (0, 4))
    cells = text_cells(lengths, spans, recorded_preferences())
    assert cells['longest ground truth'].reason.startswith('24 of 100')
    assert round(cells['facts preserved at A4'].definition) == 27

# Judgements, and a clone

def scores(**more):
    return pd.DataFrame([dict(evaluator='e', id=0, level=k, score=1 - k/4) for k in range(5)]).assign(**more)

def ladder(variant='recorded'):
    return [Example(f'q/{variant}/{k}', target='A.', reference='A.', truth=k,
                    group='q', variant=variant, level=str(k), meta=dict(id=0)) for k in range(5)]

def test_recorded_judgements():
    judged = recorded_judgements(scores().drop(index=2), ladder() + ladder('lie'))
    assert list(judged.value) == [1, .75, None, .25, 0] and judged.absence[2] == 'inapplicable'
    with pytest.raises(BadInput, match='recorded'): recorded_judgements(scores(), ladder('lie'))
    with pytest.raises(BadInput, match='score'): recorded_judgements(scores().drop(columns='score'), ladder())

def clone(folder, **files):
    where = folder/'datasets'/'evaluation'
    where.mkdir(parents=True)
    for name, lines in files.items(): (where/f'{name}.jsonl').write_text('\n'.join(lines), encoding='utf-8')
    return folder

def lines(model, method=None):
    return [json.dumps(dict(id=q, level=f'A{k}', llm=model, score=5 - k) | (dict(method=method) if method else {}))
            for q in range(3) for k in range(5)]

def test_a_clone_is_imported(tmp_path):
    "Judges go beside the pipelines that are there, a second time nothing changes, broken lines are counted."
    first = clone(tmp_path/'a', factual_correctness_eval=lines('gpt-4o-mini', 'ragas_factual_correctness'))
    import_trutheval(first, tmp_path/'data')
    judges = clone(tmp_path/'b', llm_as_judge_eval=lines('phi4:14b') + lines('qwen2.5:7b-instruct')
                   + ['{', '[1]', '{"id": 1}', '\x00', ''])
    frame, skipped = import_trutheval(judges, tmp_path/'data')
    import_trutheval(judges, tmp_path/'data')
    names = recorded_scores(tmp_path/'data').evaluator.value_counts()
    assert dict(names) == {'RAGAS|gpt-4o-mini': 15, 'LLM-as-judge|phi4:14b': 15, 'LLM-as-judge|qwen2.5:7b': 15}
    assert skipped == {'no JSON': 2, 'no JSON object': 1, 'no id or level': 1} and len(frame) == 30

def test_six_rows_are_filled_by_a_judges_file(tmp_path):
    "Made-up scores of a whole set: their row is held against the print, and does not agree."
    rng = np.random.default_rng(0)
    told = [json.dumps(dict(id=q, level=k, model='phi4:14b', score=int(rng.integers(1, 6))))
            for q in range(100) for k in range(5)]
    import_trutheval(clone(tmp_path/'c', llm_as_judge_eval=told), tmp_path)
    table = recorded_scores(tmp_path)
    rows = table.rename(columns=dict(id='group', level='step', score='value'))
    cells = correlation_cells(rows, 50)
    assert set(cells) == {f'LLM-as-judge|phi4:14b|{c}{end}' for c in ('pearson', 'kendall')
                          for end in ('', ' low', ' high')}

@pytest.mark.parametrize('files, word', [(None, 'neither'), (dict(), 'neither'),
                                         (dict(llm_as_judge_eval=['{}']), 'No line'),
                                         (dict(llm_as_judge_eval=lines('x:1b')*2), 'two scores')])
def test_what_is_no_clone(tmp_path, files, word):
    folder = tmp_path/'x' if files is None else clone(tmp_path/'x', **files)
    with pytest.raises(BadInput, match=word) as error: import_trutheval(folder, tmp_path/'data')
    assert '\n' not in str(error.value) and not (tmp_path/'data').exists()

def test_command(tmp_path):
    from click.testing import CliRunner
    from factlib.cli import app
    done = CliRunner().invoke(app, ['import', str(clone(tmp_path/'a', llm_as_judge_eval=lines('phi4:14b'))),
                                    '--out', str(tmp_path)])
    assert done.exit_code == 0 and '15 scores of 1 models' in done.output and (tmp_path/SCORES).is_file()

# Preferences and diffs, by hand

def test_both_meanings_of_a_tie():
    table = [('AI', 'Both are good'), ('Both are good', 'Both are good'),
             ('Both are good', 'Both are bad'), ('AI', 'Expert'), ('AI', 'AI')]
    pairs = pd.DataFrame([(q, 1, *row) for q, row in enumerate(table)], columns=['group', 'level', 'first', 'second'])
    counts = preference_levels(pairs).query('level == "all"').set_index('kind')['count']
    assert dict(counts) == {'tie, composite': 3, 'tie, accepted': 2, 'first': 2, 'second': 0, 'opposing': 1}
    assert preferences_table(pairs).set_index('first').loc['AI'].tolist() == [1, 1, 1, 0]
    with pytest.raises(BadInput, match='maybe'): preferences_table(pairs.assign(second='maybe'))
    with pytest.raises(BadInput, match='second'): preferences_table(pairs.drop(columns='second'))

@pytest.mark.parametrize('before, after', [('', ''), ('a', ''), ('', 'b'), ('one two', 'two one'),
                                           ('a\n\nb', 'a b'), ('漢字', '漢語'), ('x '*500, 'y '*500), ('[a]', '{{a}}')])
def test_changed_words_lead_from_text_to_text(before, after):
    change = changed_words(before, after)
    assert change.text == after and change.revert() == before

# As in print

@pytest.mark.parametrize('name, model, printed', [
    ('rubric', 'gemma3:4b', 'LLM-as-judge|gemma3:4b'), ('rubric', 'google/gemma-3-4b-it', 'LLM-as-judge|gemma3:4b'),
    ('factual_correctness', 'gpt-4o-mini-2024-07-18', 'RAGAS|gpt-4o-mini'), ('factual_correctness', 'gpt-4o', ''),
    ('factual_correctness_nli', 'meta-llama/Llama-3.3-70B-Instruct', 'LLM + NLI|llama3.3:70b'),
    ('rubric', 'gemma3:12b', ''), ('rubric', 'gemma3:4bc', ''), ('factscore', 'gemma3:4b', '')])
def test_which_printed_row_a_model_is(name, model, printed):
    assert who_is('it', dict(it=(name, model))).printed == printed

def test_a_model_has_one_name_in_all_methods():
    asked = {name: (name, 'meta-llama/Llama-3.3-70B-Instruct') for name in ('rubric', 'factual_correctness')}
    assert {who_is(name, asked).model for name in asked} == {'llama3.3:70b'}
    assert who_is('factual_correctness', asked).printed == '' # in print it was no RAGAS judge

def test_printed_numbers_stand_only_beside_the_recorded_ladders():
    row = dict(evaluator='it', dataset='mine', variant='recorded', questions=1, asked=5, scored=5, pearson=-.5,
               rows_low=-.6, rows_high=-.4, tau=-.5, drawn_low=-.6, drawn_high=-.4)
    table = print_correlations(pd.DataFrame([row]), dict(it=('rubric', 'phi4:14b')))
    assert len(table) == 9 + 1 and table[table.pearson.notna()]['pearson, published'].isna().all()
    whys = table[table.model == 'phi4:14b'].why.tolist()
    assert whys == ['was judged on other ladders than the recorded ones', '']

def test_a_recorded_model_and_one_that_was_asked_are_two_lines():
    "RAGAS with gpt-4o-mini is on record; asked here, it is another evaluator, and no line joins them."
    from factlib.papers.trutheval.printed import level_lines
    rows = [dict(evaluator=e, level=f'A{i}', mean=m - i/10, ci_low=None, ci_high=None, asked=3, answers=3)
            for e, m in (('RAGAS|gpt-4o-mini', .9), ('factual_correctness, gpt-4o-mini', .7)) for i in range(2)]
    asked = {'factual_correctness, gpt-4o-mini': ('factual_correctness', 'gpt-4o-mini')}
    lines = level_lines(pd.DataFrame(rows).astype(dict(ci_low=float, ci_high=float)), asked)
    assert set(lines.method) == {'RAGAS'} and set(lines.model) == {'RAGAS|gpt-4o-mini', 'factual_correctness, gpt-4o-mini'}
    alone = level_lines(pd.DataFrame(rows[2:]).astype(dict(ci_low=float, ci_high=float)), asked)
    assert set(alone.model) == {'gpt-4o-mini'}
