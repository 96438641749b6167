"""What is counted: the recorded preferences as a store, agreement and bias by hand and by oracles."""
import json
import os

import pytest
from annotators import compare_rows, fact_rows

from factlib.apps.annotate import Store, import_preferences, overview
from factlib.apps.annotate_forms import make_form
from factlib.apps.annotate_overview import agreement_table, answer_units, position_table, preference_pairs
from factlib.core.records import BadInput
from factlib.metaeval.preferences import preference_statistics
from factlib.papers.trutheval.printed import print_preferences
from factlib.papers.trutheval.recordings import recorded_preferences
from factlib.papers.trutheval.tables import preference_levels, section_4_table
from factlib.report.published import published

DATA = os.environ.get('FACTLIB_DATA')
recorded = pytest.mark.skipif(not DATA, reason='FACTLIB_DATA names no folder')

def store_of(path, form, rows, people, answers):
    "A store with answers: annotator -> id -> field -> value, with what was shown."
    made = make_form(form)
    items = made.items(rows)
    store = Store(path).begin(form, {}, items, 0, {who: [i['id'] for i in items] for who in people})
    for who, own in answers.items():
        for item in items:
            for field, value in own.get(item['id'], {}).items():
                store.save(who, item['id'], {field: value}, f'{who}{item["id"]}{field}', made.shown(item, who, 0), 6.)
    return store

@recorded
def test_the_recorded_preferences_as_a_store(tmp_path):
    store = import_preferences(f'{DATA}/trutheval/human_preferences.parquet', tmp_path/'a.db')
    pairs = preference_pairs(store)
    table, cells = print_preferences(pairs), published('trutheval')['1'].cells
    assert len(cells) == 16
    for cell, printed in cells.items():
        first, second = cell.split('|')
        assert table.set_index('evaluator 1 (rows), 2 (columns)').loc[first, second] == printed, cell
    tested = pairs[pairs.level > 0]
    kappa = preference_statistics(tested, n_resamples=99).set_index('statistic').estimate['kappa']
    assert round(kappa, 3) == .113
    known = recorded_preferences()
    assert [tuple(map(str, row)) for row in pairs.values] == [tuple(map(str, row)) for row in known.values]
    here, there = preference_levels(pairs), preference_levels(known) # ties, composite
    assert here[['level', 'kind', 'count', 'pairs']].equals(there[['level', 'kind', 'count', 'pairs']])
    assert section_4_table(pairs, n_resamples=99).estimate.equals(section_4_table(known, n_resamples=99).estimate)
    shown = overview(store)
    assert shown.tables['agreement'].raw[0] == sum(pairs['first'] == pairs.second)/100
    assert not len(shown.tables['position']) # nobody kept which text stood first
    assert len(shown.disputes) == sum({*pair} == {'AI', 'Expert'} for pair in zip(pairs['first'], pairs.second))
    assert 'bar-0' in shown._repr_html_() and store.answers().seconds.isna().all()

def test_from_the_original_tools_files(tmp_path):
    data = dict(questions=[dict(id=3, question='Why?', ground_truth='So.', answers={
        f'A{k}': dict(ai=f'machine {k}', human=f'woman {k}') for k in range(3)})])
    said = [{'3': {'A0': 'AI', 'A1': 'Both are bad', 'A2': None}}, {'3': {'A0': 'Expert', 'A1': 'Both are good'}}]
    paths = [tmp_path/f'{i}.json' for i in range(3)]
    for path, content in zip(paths, (data, *said)): path.write_text(json.dumps(content))
    store = import_preferences(paths, tmp_path/'a.db')
    assert preference_pairs(store).values.tolist() == [['3', 0, 'AI', 'Expert'],
                                                       ['3', 1, 'Both are bad', 'Both are good']]
    assert store.items()['3/A1']['bases'] == dict(AI='machine 0', Expert='woman 0')
    assert store.items()['3/A0']['bases'] == {}
    for content in ('{', '[]', '{"questions": [{}]}', json.dumps(dict(questions=[dict(data['questions'][0], id=4)]))):
        paths[0].write_text(content)
        with pytest.raises(BadInput): import_preferences(paths, tmp_path/'b.db')
    paths[0].write_text(json.dumps(data))
    paths[1].write_text(json.dumps({'3': {'A0': 'Mine'}}))
    with pytest.raises(BadInput, match='no preference'): import_preferences(paths, tmp_path/'b.db')
    assert not (tmp_path/'b.db').exists()

def test_agreement_against_an_oracle(tmp_path):
    import krippendorff
    from sklearn.metrics import cohen_kappa_score
    labels = dict(A='ssuusussuu', B='susu-sssuu')
    word = dict(s='supported', u='unsupported')
    answers = {who: {f'f{i}': dict(label=word[x]) for i, x in enumerate(own) if x in word}
               for who, own in labels.items()}
    with store_of(tmp_path/'a.db', 'facts', fact_rows(10), ('A', 'B'), answers) as store:
        row = agreement_table(answer_units(store), ['A', 'B']).iloc[0]
        shown = overview(store)
    codes = [[dict(s=0, u=1).get(x, float('nan')) for x in own] for own in labels.values()]
    assert row.alpha == pytest.approx(krippendorff.alpha(codes, level_of_measurement='nominal'))
    both = [(a, b) for a, b in zip(*labels.values()) if '-' not in (a, b)]
    assert row.kappa == pytest.approx(cohen_kappa_score(*zip(*both)))
    assert row.units == row.pairs == 9 and row.raw == sum(a == b for a, b in both)/9
    progress = shown.tables['progress'].set_index('annotator')
    assert list(progress.answered) == [10, 9] and list(progress.open) == [0, 1]
    assert progress.minutes_an_item['A'] == .1 and progress.minutes['B'] == pytest.approx(.9)
    majority = shown.tables['majority']
    assert list(majority.outcome).count('tie') == len(shown.disputes) == 9 - sum(a == b for a, b in both)
    assert list(majority.outcome).count('too few') == 1

def test_position_bias(tmp_path):
    "One presses the first button always, the other always wants the machine's text."
    rows, made = compare_rows(40), make_form('compare')
    items = made.items(rows)
    answers = dict(A={i['id']: dict(choice=made.shown(i, 'A', 0)['first']) for i in items},
                   B={i['id']: dict(choice='AI' if n else 'both') for n, i in enumerate(items)})
    with store_of(tmp_path/'a.db', 'compare', rows, ('A', 'B'), answers) as store:
        table = position_table(store).set_index('annotator')
    assert table.share['A'] == 1 and table.p['A'] == pytest.approx(2*.5**40) and table.decided['B'] == 39
    firsts = sum(made.shown(i, 'B', 0)['first'] == 'AI' for i in items[1:])
    assert table['first']['B'] == firsts and table.low['B'] < .5 < table.high['B']

def test_nobody_has_answered(tmp_path):
    for form, rows in (('facts', fact_rows(2)), ('compare', compare_rows(2))):
        with store_of(tmp_path/f'{form}.db', form, rows, ('A', 'B'), {}) as store:
            shown = overview(store)
            assert list(shown.tables['progress'].open) == [2, 2] and not shown.disputes
            assert not len(shown.tables['majority'])
            assert 'nan' not in shown._repr_html_().lower()
    with pytest.raises(BadInput, match='no store'): overview(tmp_path/'none.db')
