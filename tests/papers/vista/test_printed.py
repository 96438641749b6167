"VISTA's tables as in print, against counts that other code makes of the same judgements."
import random

import pandas as pd
import pytest
from scipy.stats import binomtest

from factlib.core.records import Example
from factlib.papers.vista.misprints import SETS
from factlib.papers.vista.printed import (THREE, beside_draws, pair_counts, print_accuracies, print_differences,
                                          print_labels, print_overlap, print_pairs, printed_model, sample_for_people,
                                          three_evaluators, written_draws)
from factlib.report.published import published

FORMS = {'VISTA': 'vista', 'FActScore': 'factscore', 'LLM-as-Judge': 'faithfulness'}
LABELS = ('supported', 'unsupported')

@pytest.fixture(scope='module')
def said():
    """Verdicts of three models on two sets by two draws; `shy` has none for a third of the turns. BEGIN's draws share
    their ids, as draws of one set may."""
    rng, rows = random.Random(1), []
    for model in ('gpt-4o', 'shy', 'Qwen/Qwen3-8B'):
        for dataset in ('begin_wow', 'ais_qrecc'):
            for seed in (0, 1):
                for i in range(60):
                    truth = None if i % 20 == 7 else rng.choice(LABELS)
                    for name in FORMS.values():
                        verdict = None if model == 'shy' and i % 3 == 0 else rng.choice(LABELS)
                        rows.append(dict(evaluator=f'{name}, {model}', model=model, dataset=f'{dataset}, seed {seed}',
                                         example_id=f't{i}', group=f'g{i//2}', truth=truth, verdict=verdict))
    return pd.DataFrame(rows, dtype=object)

@pytest.fixture(scope='module')
def three(said):
    names = {f'{name}, {model}': name for name in FORMS.values() for model in said.model.unique()}
    return three_evaluators(said, names, {d: int(d[-1]) for d in said.dataset.unique()})

def hits(said, model, dataset, seed, name):
    own = [r for r in said.to_dict('records') if r['model'] == model and r['dataset'] == f'{dataset}, seed {seed}'
           and r['evaluator'].startswith(f'{name}, ') and r['truth']]
    return {r['example_id']: r['verdict'] and r['verdict'] == r['truth'] for r in own}

def test_table_1_has_a_row_for_each_model_and_draw(said, three):
    table = print_accuracies(three, pair_counts(three))
    here = table[table.why == '']
    assert len(here) == 3*2*2 and set(here.dataset) == {'BEGIN', 'AIS'} and set(here.seed) == {0, 1}
    for row in here.to_dict('records'):
        for column, name in FORMS.items():
            known = [x for x in hits(said, row['model'], row['data'], row['seed'], name).values() if x is not None]
            assert row[f'{column}_scored'] == len(known) == (38 if row['model'] == 'shy' else 57)
            assert row[column] == pytest.approx(100*sum(known)/len(known)) and row['turns'] == 57
    first, cells = here.iloc[0], published('vista')['1'].cells
    assert first['VISTA_published'] == cells['GPT-4o|BEGIN|VISTA'] and first['VISTA_above_published'] == 'fl'
    # printed rows that nobody asked for: 32 less four
    assert (table.why != '').sum() == 28 and table[table.why != ''][list(THREE)].isna().all().all()

def test_tables_7_to_10_count_as_scipy_tests(said, three):
    counts = pair_counts(three)
    assert len(counts) == 3*2*2*3
    for row in counts.to_dict('records'):
        first, second = (hits(said, row['model'], row['data'], row['seed'], FORMS[name])
                         for name in row['comparison'].split(' - '))
        both = [(first[t], second[t]) for t in first if first[t] is not None and second[t] is not None]
        b, c = sum(x and not y for x, y in both), sum(y and not x for x, y in both)
        assert (row['b'], row['c'], row['scored']) == (b, c, len(both))
        assert row['p'] == pytest.approx(binomtest(b, b + c).pvalue) and row['delta'] == pytest.approx(
            100*(b - c)/len(both))
    for table, dataset in SETS.items():
        own = print_pairs(counts, table)
        assert (own.why == '').sum() == (18 if dataset in ('BEGIN', 'AIS') else 0)
        missing = own[own.why != '']
        assert len(missing) == (24 - 6 if dataset in ('BEGIN', 'AIS') else 24) and missing.b_published.notna().all()

def test_several_forms_are_one_column():
    rows = [dict(evaluator=e, model='m', dataset='one', example_id='t', group='g', truth='supported', verdict=v)
            for e, v in (('vista, m', 'supported'), ('vista_single, m', 'unsupported'), ('vista_zero_shot, m', None))]
    names = {r['evaluator']: r['evaluator'].split(',')[0] for r in rows}
    for drop, form in ((0, 'vista'), (1, 'vista_single')):
        assert three_evaluators(pd.DataFrame(rows[drop:]), names).form.tolist() == [form]
    empty = three_evaluators(pd.DataFrame(rows[2:]), names)
    table = print_accuracies(empty, pair_counts(empty))
    assert len(table) == 32 and (table.why != '').all()

def test_models_by_their_names():
    assert [printed_model(name) for name in ('openai/gpt-5', 'gpt-5-mini', 'DeepSeek-V3-Chat', 'Qwen3-32B')] == [
        'GPT-5', None, 'DeepSeek', 'Qwen-32B']

def test_claims_in_other_words_are_the_same():
    "By words 1 of 3 claims is shared; the other two say one thing."
    rows = pd.DataFrame([dict(annotator=a, conversation='c', turn=1, claim=c, label='verified') for a, c in
                         (('A', 'It snowed.'), ('A', 'The bridge was opened by the mayor in 1990.'),
                          ('B', 'It snowed.'), ('B', 'In 1990 the bridge was opened by the mayor.'))])
    row = print_overlap(rows).iloc[0]
    assert (row.jaccard, row.f1, row.jaccard_words) == (1, 1, 1/3)
    alone = print_overlap(rows[rows.annotator == 'A'])
    assert len(alone) == 4 and (alone.why != '').all() # one annotator agrees with nobody

def two_draws():
    """Draw 0 has turns t and u, draw 1 only u. Turn t is verified by the reference; u by the memory, and its other claim
    lacks evidence. The evaluator says the same of t, and of u finds one claim in draw 0, another one in draw 1."""
    claims = dict(t=[('It is so.', 'verified', 'reference')],
                  u=[('It snowed.', 'verified', 'memory'), ('Bo sang.', 'lacking_evidence', '')])
    examples = {i: Example(i, target='.', group=f'of {i}', meta=dict(claims=[
        dict(text=text, category=category, by=by) for text, category, by in told])) for i, told in claims.items()}
    gold = pd.DataFrame([dict(example_id=i, group=f'of {i}', claim=text, category=category, by=by)
                         for i, told in claims.items() for text, category, by in told])
    found = [(0, 't', ['It is so.']), (0, 'u', ['It snowed.']), (1, 'u', ['It snowed.', 'Bo sang.']),
             (1, 'u', ['It snowed.', 'Bo sang.'])] # judged twice in draw 1, and counted once
    judged = pd.DataFrame([dict(evaluator='vista, m', seed=seed, example_id=i, group=f'of {i}', absence=None,
                                evidence=dict(claims=[dict(text=x, category='verified') for x in listed]))
                           for seed, i, listed in found])
    draws = {0: [examples['t'], examples['u']], 1: [examples['u']]}
    return written_draws(draws, gold, judged, judged)

def test_each_draw_of_the_written_dialogues_has_rows_of_its_own():
    "Counted by hand; nothing of one draw is counted in the other."
    of_each = two_draws()
    shown = lambda table: beside_draws({seed: table(source) for seed, source in of_each.items()})
    overlap = shown(lambda s: print_overlap(s.listed, s.of)).query('pair == "written-vista, m"').set_index('seed')
    assert overlap.jaccard.to_dict() == {0: 2/3, 1: 1} and overlap.turns.to_dict() == {0: 2, 1: 1}
    labels = shown(lambda s: print_labels(s.shares, s.alpha, s.of)).query('seed.notna()').set_index(['seed', 'label'])
    assert labels['count'].to_dict() == {(0, 'verifiable'): 2, (0, 'lacking evidence'): 1, (0, 'total'): 3,
                                         (1, 'verifiable'): 1, (1, 'lacking evidence'): 1, (1, 'total'): 2}
    # of 4 labels 3 are "verified", and one unit of two is split: 1 - (2/4)/(2*3*1/(4*3)) = 0
    assert labels.alpha[1, 'total'] == pytest.approx(0)
    kinds = shown(lambda s: print_differences(s.original, s.claims, s.of))
    assert kinds[kinds.seed == 1]['count'].sum() == 1 and kinds[kinds.seed == 0]['count'].sum() == 2

def test_printed_rows_stand_once_behind_all_draws():
    of_each = two_draws()
    table = beside_draws({seed: print_labels(s.shares, s.alpha, s.of) for seed, s in of_each.items()})
    printed = table[table.seed.isna()].label.tolist()
    assert len(printed) == len(set(printed)) and not set(printed) & {'verifiable', 'lacking evidence', 'total'}
    assert (table[table.seed.isna()].why != '').all()
    alone = beside_draws({None: print_overlap(None)})
    assert len(alone) == 4 and alone.seed.isna().all()

def test_rare_conversations_come_first_and_each_once():
    kinds = {'abstention': 3, 'contradicted': 9, 'verified': 50}
    rows = [dict(evaluator='v', dataset=d, example_id=f'{d}{k}{i}', group=f'{d}{k}{i}', absence=None,
                 evidence=dict(claims=[dict(text='.', category=k)]))
            for d in ('faithdial', 'fade') for k, n in kinds.items() for i in range(n)]
    sample = sample_for_people(pd.DataFrame(rows), seed=3)
    counts = sample.groupby(['dataset', 'chosen_for']).size().to_dict()
    assert counts == {('faithdial', 'abstention'): 3, ('faithdial', 'contradiction'): 5, ('faithdial', 'chance'): 12,
                      ('fade', 'abstention'): 3, ('fade', 'contradiction'): 5, ('fade', 'chance'): 32}
    assert not sample.conversation.duplicated().any()
    assert sample.equals(sample_for_people(pd.DataFrame(rows), seed=3))
    assert not sample.equals(sample_for_people(pd.DataFrame(rows), seed=4))
