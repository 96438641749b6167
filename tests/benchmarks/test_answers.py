"""The benchmarks trutheval and answers: what they hold, that nothing depends on what else is drawn, and files in
trutheval's format."""
import json
import os
from collections import Counter

import pytest

from factlib.benchmarks.answers import TRUE_VARIANTS, VARIANTS, own_items
from factlib.benchmarks.base import load
from factlib.core.records import BadInput

recorded = pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'),
                              reason='FACTLIB_DATA is not set: the recorded answers are not here')

def test_our_own_questions():
    items = own_items()
    assert len({i.question for i in items}) == len(items) == 20
    for item in items:
        for text in (item.ground_truth, item.paraphrase):
            assert 250 <= len(text) <= 700 and text.endswith('.') and not set(text) & set('[]{}')
        assert item.ground_truth != item.paraphrase and item.question.endswith('?')

def check(benchmark, questions, controls):
    "What holds of all ladders; `controls` of the questions have each variant."
    assert benchmark.truth_kind == 'score' and len({e.group for e in benchmark}) == questions
    assert len({e.id for e in benchmark}) == len(benchmark)
    for e in benchmark:
        assert e.source == e.reference and e.question and e.truth == int(e.level) and e.variant in VARIANTS
        assert e.meta['true'] == (e.level == '0' or e.variant in TRUE_VARIANTS)
    texts = {(e.group, e.variant, e.level): e.target for e in benchmark}
    for group in {e.group for e in benchmark}:
        assert texts[group, 'near_lie', '0'] == texts[group, 'reworded', '0']
        assert texts[group, 'lie', '0'] == texts[group, 'same_place', '0']
        if (group, 'reworded', '4') in texts: assert texts[group, 'reworded', '4'] == texts[group, 'lie', '0']
    last = Counter(e.variant for e in benchmark if e.level == '4')
    assert all(last[variant] >= controls for variant in VARIANTS), last
    made = Counter(e.variant for e in benchmark) + Counter(r.id.split('/')[1] for r in benchmark.refused)
    assert set(made.values()) == {5*questions}

def test_own_answers(): check(load('answers', texts='own'), 20, 19)

@recorded
def test_recorded_answers(): check(load('answers', texts='recorded'), 100, 95)

def test_a_question_does_not_depend_on_the_others_drawn():
    for seed in (0, 1):
        all_of_them = {e.id: e for e in load('answers', texts='own', seed=seed)}
        assert all(all_of_them[e.id] == e for e in load('answers', texts='own', n=3, seed=seed))
    assert {e.variant for e in load('answers', 'same_place', texts='own', n=2)} == {'same_place'}

def test_another_seed_makes_other_swaps():
    a, b = (load('answers', 'lie', texts='own', seed=seed) for seed in (0, 1))
    assert [e.target for e in a if e.level == '4'] != [e.target for e in b if e.level == '4']

def test_a_function_that_rewords():
    steps = load('answers', 'same_place', texts='own', n=2, reword=lambda piece, text, start: f'what is called {piece}')
    assert not steps.refused and any('what is called' in e.target for e in steps)

@pytest.mark.parametrize('wrong', [dict(split='lies'), dict(levels=0),
                                   dict(keep=0), dict(keep=2), dict(texts='mine'), dict(n=0)])
def test_bad_settings(wrong):
    with pytest.raises(BadInput): load('answers', **dict(texts='own') | wrong)

@recorded
def test_recorded_ladders():
    whole = load('trutheval')
    assert Counter(e.variant for e in whole) == dict(recorded=500, pipeline=100, expert=100)
    assert len({e.group for e in whole}) == 120
    assert Counter(e.level for e in whole) == {str(k): 140 for k in range(5)}
    assert {e.variant for e in load('trutheval', 'human')} == {'pipeline', 'expert'}
    assert len(load('trutheval', 'evaluation')) == 500
    assert len({e.group for e in load('trutheval', n=7)}) == 7
    with pytest.raises(BadInput, match='evaluation, human'): load('trutheval', 'train')

def test_without_data(monkeypatch):
    monkeypatch.setenv('FACTLIB_DATA', '')
    with pytest.raises(BadInput, match='FACTLIB_DATA'): load('trutheval')
    with pytest.raises(BadInput, match='FACTLIB_DATA'): load('answers', texts='recorded')
    assert len({e.group for e in load('answers', n=2)}) == 2

GOOD = dict(id=7, question='Why?', ground_truth='Because.',
            answers=dict(A0='Because so.', A1='No reason.', A2='{{x}} [y] \u2028'))

def write(path, data):
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding='utf-8')
    return path

def test_a_file(tmp_path):
    rows = [GOOD, GOOD, {}, 3, GOOD | dict(question=' '), GOOD | dict(answers=dict(B='x')),
            GOOD | dict(answers=dict(A0=None))]
    made = load('trutheval', path=write(tmp_path/'dataset.json', dict(questions=rows)))
    assert len(made) == 6 and len({e.id for e in made}) == 6 and len({e.group for e in made}) == 1
    assert len(made.refused) == 5
    assert [e.truth for e in made][:3] == [0, 1, 2] and made.examples[2].target == '{{x}} [y] \u2028'
    with pytest.raises(BadInput, match='no split'): load('trutheval', 'human', path=tmp_path/'dataset.json')

@pytest.mark.parametrize('data', ['', '{', '[]', '{"questions": 3}', '{"questions": []}',
                                  '{"questions": [{}]}', '['*100_000])
def test_no_such_file(tmp_path, data):
    with pytest.raises(BadInput): load('trutheval', path=write(tmp_path/'x.json', data))
    with pytest.raises(BadInput): load('trutheval', path=tmp_path/'none.json')
