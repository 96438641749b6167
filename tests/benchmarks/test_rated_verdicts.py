"SummHay and FaithBench: small files of the published form, damaged ones, and the real ones against what is printed."
import json
import os
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from factlib.benchmarks.base import BENCHMARKS, benchmarks_here, load
from factlib.benchmarks.rated import rater_table
from factlib.benchmarks.rated_verdicts import (COUNTS, DETECTORS, SUMMHAY_JUDGES, faithbench_recorded, marks_severity,
                                               summhay_recorded)
from factlib.core.records import BadInput
from factlib.metaeval.matrix import matrix_columns, small_matrix, trust_matrix
from factlib.validity.agreement import alpha
from factlib.validity.association import pearson
from factlib.validity.detection import auc

DATA = os.environ.get('FACTLIB_DATA', '')
real = pytest.mark.skipif(not DATA, reason='FACTLIB_DATA is not set')
NAMES = ['summhay', 'faithbench']
FULL, PART, NONE = 'FULL_COVERAGE', 'PARTIAL_COVERAGE', 'NO_COVERAGE'

def summary(subtopic, system, labels, **judged):
    "A row of SummHay's file; labels: insight -> coverage by people; judged: key of a judge -> its verdicts."
    verdicts = lambda own: [dict(insight_id=f'i{k}', coverage=x, bullet_id=1) for k, x in enumerate(own) if x]
    return dict(subtopic_id=subtopic, subtopic=f'About {subtopic}', summkey=f'summary_subtopic_{system}',
                summary=[f'A fox of {subtopic}.', 'It ran.'],
                reference_insights=[dict(insight_id=f'i{k}', insight=f'Insight {k}.') for k in range(len(labels))],
                annotation=[dict(insight_id=f'i{k}', coverage=x, candidate_id='no_selection' if x == 'not_covered' else
                                 '1') for k, x in enumerate(labels)],
                **{SUMMHAY_JUDGES[name].key: verdicts(own) for name, own in judged.items()})

def summhay_rows():
    return [summary('s1', 'gpt-4o', ['fully_covered', 'not_covered'],
                    **{'gpt-4o': [FULL, PART], 'gpt3.5': [FULL, None]}),
            summary('s1', 'dwzhu/e5-base-4k_claude3-opus', ['partially_covered', 'not_covered'],
                    **{'gpt-4o': [PART, 'SOME'], 'gpt3.5': []}),
            summary('s2', 'oracle_gpt-4o', ['not_covered', 'fully_covered'], **{'gpt-4o': [NONE, FULL]})]

def mark(person, *labels):
    return dict(annot_id=1, annotator_id=person, label=list(labels), note='', summary_span='fox', summary_start=0,
                summary_end=3, source_span=None, source_start=None, source_end=None)

def sample(i, source, *marks, **detected):
    return dict(sample_id=i, source=source, summary=f'A fox, {i}.', annotations=list(marks),
                metadata=dict(summarizer='m/one', raw_sample_id=i, **(dict.fromkeys(DETECTORS, 1) | detected)))

def batches():
    "Fifteen files; the first has the samples that the tests look at."
    first = [sample(0, 'One.', mark('ann', 'Benign'), mark('bob', 'Benign'),
                    mark('bob', 'Unwanted', 'Unwanted.Intrinsic')),
             sample(1, 'One.', mark('ann', 'Questionable', 'Benign'), true_nli=None, hhemv1=.25),
             sample(2, 'One.', mark('ann'), gpt_4o=0), sample(3, 'Two.')]
    others = [[sample(0, f'Source {k}.')] for k in range(14)]
    return dict(zip(BENCHMARKS['faithbench'].needs, [dict(samples=rows) for rows in [first, *others]]))

@pytest.fixture
def home(tmp_path, monkeypatch):
    "A data folder with a small file of each published form."
    for name, content in {'summhay/eval_benchmark_data.json': summhay_rows(), **batches()}.items():
        (tmp_path/name).parent.mkdir(exist_ok=True)
        (tmp_path/name).write_text(json.dumps(content), encoding='utf-8')
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path))
    return tmp_path

def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))

def test_they_are_registered_and_say_what_they_need(home):
    for name in NAMES:
        b = load(name)
        assert all((home/file).is_file() for file in BENCHMARKS[name].needs)
        assert b.examples and 'Warnings' in b.card and len({e.id for e in b}) == len(b) and b.question == 'facts'
        assert len({e.group for e in load(name, n=1)}) == 1
    assert [b.name for b in benchmarks_here(NAMES)[0]] == NAMES

def test_small_summhay(home):
    b = load('summhay')
    assert {e.id: e.truth for e in b} == {
        's1/gpt-4o/i0': 1, 's1/gpt-4o/i1': 0, 's1/dwzhu/e5-base-4k_claude3-opus/i0': .5,
        's1/dwzhu/e5-base-4k_claude3-opus/i1': 0, 's2/oracle_gpt-4o/i0': 0, 's2/oracle_gpt-4o/i1': 1}
    opus = b.examples[2]
    assert (opus.group, opus.variant) == ('s1', 'claude3-opus')
    assert (opus.source, opus.target) == ('A fox of s1.\nIt ran.', 'Insight 0.')
    assert (opus.meta['retriever'], opus.meta['writer'], opus.meta['bullet']) == ('dwzhu/e5-base-4k', 'claude3-opus', 1)
    assert b.examples[0].meta['retriever'] is None and b.examples[1].meta['bullet'] is None
    whole = load('summhay', unit='summary')
    assert [(e.id, e.truth) for e in whole] == [('s1/gpt-4o', .5), ('s1/dwzhu/e5-base-4k_claude3-opus', .25),
                                                ('s2/oracle_gpt-4o', .5)]
    assert whole.examples[0].reference == 'Insight 0.\nInsight 1.'

def test_what_a_judge_did_not_say_is_an_absence(home):
    said = summhay_recorded(load('summhay').examples).set_index(['evaluator', 'example_id'])
    assert list(dict.fromkeys(said.index.get_level_values(0))) == ['gpt-4o', 'gpt3.5'] # the others are not in the file
    assert said.loc['gpt-4o'].value.tolist() == [1, .5, .5, None, 0, 1]
    assert said.loc['gpt-4o'].absence.dropna().tolist() == ['off_menu']
    assert said.loc['gpt3.5'].absence.tolist() == [None, *['inapplicable']*5]
    whole = summhay_recorded(load('summhay', unit='summary').examples).set_index(['evaluator', 'example_id'])
    assert whole.loc['gpt-4o'].value.tolist() == [.75, None, .5]
    assert whole.loc['gpt-4o'].absence.dropna().tolist() == ['count_mismatch']
    assert whole.loc['gpt3.5'].absence.tolist() == ['count_mismatch', 'inapplicable', 'inapplicable']

def test_empty_summaries_are_refused(home):
    change(home/'summhay'/'eval_benchmark_data.json', '["A fox of s2.", "It ran."]', '[" "]')
    for unit in ('insight', 'summary'):
        b = load('summhay', unit=unit)
        assert [r.id for r in b.refused] == ['s2/oracle_gpt-4o'] and {e.group for e in b} == {'s1'}

def test_small_faithbench(home):
    b = load('faithbench')
    first = {e.id: e for e in b.examples[:4]}
    assert [e.truth for e in first.values()] == ['inconsistent', 'inconsistent', 'consistent', 'consistent']
    assert [e.meta['severity'] for e in first.values()] == ['unwanted', 'questionable', 'consistent', 'consistent']
    assert [e.meta['raters'] for e in first.values()] == [dict(ann=1, bob=3), dict(ann=2), {}, {}]
    assert len(b) == 18 and len({e.group for e in b}) == 16 and first['1/0'].group == first['1/2'].group
    truths = lambda **options: [e.truth for e in load('faithbench', **options).examples[:4]]
    assert truths(by='best') == ['consistent']*4 == truths(by='majority')
    assert truths(by='majority_of_kinds') == ['inconsistent', 'consistent', 'consistent', 'consistent']
    assert truths(bad=('unwanted',)) == ['inconsistent', *['consistent']*3]
    assert truths(bad=('benign', 'questionable', 'unwanted'), by='best') == ['inconsistent']*2 + ['consistent']*2
    said = faithbench_recorded(b.examples).set_index(['evaluator', 'example_id'])
    assert list(dict.fromkeys(said.index.get_level_values(0))) == list(DETECTORS)
    assert said.loc[('true_nli', '1/1'), 'absence'] == 'malformed' and said.absence.notna().sum() == 1
    assert said.loc[('hhemv1', '1/1'), 'value'] == .25 and said.loc[('gpt_4o', '1/2'), 'value'] == 0

@pytest.mark.parametrize('marks, expected', [
    ([['Benign'], ['Questionable']], ('questionable', 'benign', 'benign', 'benign')), # as frequent: the milder
    ([['Unwanted'], ['Unwanted'], ['Benign']], ('unwanted', 'benign', 'unwanted', 'benign')),
    ([['Benign'], ['Benign'], ['Unwanted', 'Unwanted.Extrinsic']], ('unwanted', 'benign', 'benign', 'unwanted')),
    ([['Unwanted', 'Questionable', 'Unwanted.Intrinsic']], ('unwanted', 'questionable', 'questionable', 'unwanted')),
    ([[], []], ('consistent',)*4), ([], ('consistent',)*4)])
def test_marks_are_counted_in_four_ways(marks, expected):
    assert tuple(marks_severity(marks, by) for by in COUNTS) == expected

BROKEN = ['', '{', 'null', '{}', '[{"id": 1}]', '[NaN]', '['*100_000, '"text"', '{"samples": [{}]}', '{"samples": 1}',
          '\0']

@pytest.mark.parametrize('name', NAMES)
def test_damaged_and_absent_files_are_one_sentence(home, name):
    for file in BENCHMARKS[name].needs[:2]:
        whole = (home/file).read_bytes()
        for text in [*BROKEN, whole[:len(whole)//2].decode('utf-8')]:
            (home/file).write_text(text)
            with pytest.raises(BadInput) as e: load(name)
            assert len(str(e.value)) < 400 and '\n' not in str(e.value)
        (home/file).write_bytes(b'\xff\xfe\x00')
        with pytest.raises(BadInput): load(name)
        (home/file).unlink()
        with pytest.raises(BadInput, match='bring it with .factlib fetch'): load(name)
        (home/file).write_bytes(whole)

def test_options_are_checked(home):
    with pytest.raises(BadInput, match='unit'): load('summhay', unit='bullet')
    with pytest.raises(BadInput, match='by'): load('faithbench', by='mean')
    with pytest.raises(BadInput, match='severity'): load('faithbench', bad=('awful',))
    with pytest.raises(BadInput, match='severity'): load('faithbench', bad=('consistent',))

def test_what_is_not_as_published_is_named(home):
    path = home/'summhay'/'eval_benchmark_data.json'
    whole = path.read_text()
    label = '"insight_id": "%s", "coverage": "not_covered"'
    for old, new, said in (('"fully_covered"', '"all"', "'all'"), ('_oracle_gpt-4o"', '_oracle_gpt-4o", "x": "y"', ''),
                           (label % 'i1', label % 'i0', "has 'i0' twice"),
                           (label % 'i1', label % 'i9', "insight 'i9', which is not there")):
        change(path, old, new)
        if said:
            with pytest.raises(BadInput, match=said): load('summhay')
        else: assert load('summhay').examples # further keys are no fault
        path.write_text(whole)
    path.write_text(json.dumps(2*json.loads(whole)))
    with pytest.raises(BadInput, match="'s1/gpt-4o' twice"): load('summhay')
    first = home/'faithbench'/'batch_1.json'
    whole = first.read_text()
    for old, new, said in (('"Benign"', '"Fine"', "'Fine'"),
                           ('"sample_id": 1', '"sample_id": 0', 'the sample 0 twice')):
        change(first, old, new)
        with pytest.raises(BadInput, match=said): load('faithbench')
        first.write_text(whole)
    examples = load('faithbench').examples
    change(first, '"hhemv1": 0.25', '"hhemv1": 25')
    with pytest.raises(BadInput, match='outside its scale'): faithbench_recorded(examples)

def judged(name, values):
    "Judgements of a benchmark: evaluator -> example -> value."
    b = load(name)
    rows = [dict(benchmark=name, evaluator=who, example_id=e.id, group=e.group, value=value(e), absence=None,
                 seconds=0.) for who, value in values.items() for e in b]
    return b, pd.DataFrame(rows)

def test_every_table_about_faithbench_says_how_it_was_chosen(home):
    values = dict(length=lambda e: len(e.target), good=lambda e: float(e.truth == 'consistent'), silent=lambda e: None)
    b, frame = judged('faithbench', values)
    assert 'detectors disagreed' in b.caution and not load('summhay').caution
    frame.loc[frame.evaluator == 'silent', 'absence'] = 'refused'
    small = small_matrix(frame, [b])
    assert small.note.str.endswith(b.caution).all()
    assert small.set_index('evaluator').note['silent'] == f'refused: {len(b)}; {b.caution}'
    matrix = trust_matrix(frame, matrix_columns(frame, [b])[0])
    assert matrix.note.str.endswith(b.caution).all() and (matrix.caution == b.caution).all()
    assert all('raters hardly agree' in note for note in matrix.note) # as before, beside it
    other, frame = judged('summhay', dict(length=lambda e: len(e.target), good=lambda e: e.truth))
    assert not any('disagreed' in note for note in trust_matrix(frame, matrix_columns(frame, [other])[0]).note)

# The real files. Numbers are the authors' or computed by their script.

@real
def test_summhay_as_its_authors_print_it():
    b = load('summhay')
    assert len(b) == 1419 and len({e.group for e in b}) == 29 and not b.refused
    assert Counter(e.truth for e in b) == {1: 567, .5: 386, 0: 466}
    assert len({e.id.split('/', 1)[1].rpartition('/')[0] for e in b}) == 53 # pairs of retriever and model
    said, truth = summhay_recorded(b.examples), [e.truth for e in b]
    assert said.value.notna().all() and len(said) == 6*1419
    printed = {'gemini-1.5-pro': .751, 'gpt-4o-9fs': .719, 'gpt-4o': .716, 'claude3-opus': .677, 'claude3-haiku': .498,
               'gpt3.5': .495}
    assert list(printed) == list(SUMMHAY_JUDGES)
    for judge, own in said.groupby('evaluator'):
        assert pearson(own.value.astype(float).tolist(), truth).estimate == pytest.approx(printed[judge], abs=5e-4)
    assert [round(200*judge.dollars, 2) for judge in SUMMHAY_JUDGES.values()] == [15.16, 26.13, 6.87, 23.79, .40, 1.34]

@real
def test_summhay_bias_as_its_authors_print_it():
    b = load('summhay', unit='summary')
    assert len(b) == 200 and Counter(e.variant for e in b)['gpt3.5'] == 9
    said = summhay_recorded(b.examples)
    truth = {e.id: (e.truth, e.variant) for e in b}
    table = said.assign(bias=[v - truth[i][0] for v, i in zip(said.value, said.example_id)],
                        writer=[truth[i][1] for i in said.example_id])
    bias = table.groupby(['evaluator', 'writer']).bias.mean()
    own = dict(zip(['gpt-4o', 'gemini-1.5-pro', 'claude3-opus'], [(.070, .047), (.041, .035), (.011, .054)]))
    for judge, (of_its_own, over_writers) in own.items():
        assert bias[judge, judge] == pytest.approx(of_its_own, abs=5e-4)
        assert bias[judge].mean() == pytest.approx(over_writers, abs=5e-4)
    assert bias['claude3-opus', 'command-r-plus'] == pytest.approx(.128, abs=5e-4) # the largest of their table

@real
def test_faithbench_as_its_card_says():
    b = load('faithbench')
    assert len(b) == 750 and set(Counter(e.group for e in b).values()) == {10} and len({e.group for e in b}) == 75
    assert set(Counter(e.variant for e in b).values()) == {75} and sum(len(e.meta['marks']) for e in b) == 2189
    assert Counter(len(e.meta['raters']) for e in b)[4] == 7 and max(len(e.meta['raters']) for e in b) == 4
    assert sum(not e.meta['marks'] for e in b) == 175 and np.median([len(e.source.split()) for e in b]) == 154
    counts = {by: sum(e.truth == 'inconsistent' for e in load('faithbench', by=by)) for by in COUNTS}
    # by the authors' script, run on these files: 511, 255 and (its majority) 465
    assert counts == dict(worst=511, best=255, majority=371, majority_of_kinds=465)
    table = rater_table(b).drop(columns='group')
    assert alpha(table.values, 'ordinal').estimate == pytest.approx(.399, abs=5e-4)
    said = faithbench_recorded(b.examples)
    missing = said[said.value.isna()]
    assert sorted(zip(missing.evaluator, missing.example_id)) == [('true_nli', '14/48'), ('true_nli', '14/49')]
    good = {e.id for e in b if e.truth == 'consistent'}
    for detector, own in said.groupby('evaluator'): # what their choice makes of detectors: nobody is far from chance
        inside = own.example_id.isin(good)
        assert .44 < auc(own.value[inside].tolist(), own.value[~inside].tolist()).estimate < .63, detector
