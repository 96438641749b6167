"Exams: blind, balanced, the same bytes by seed, and one sentence for bad input."
import json

import numpy as np
import pandas as pd
import pytest

from factlib.benchmarks.exam import make_exam, plan_exam, power_sentences, read_exam, write_exam
from factlib.benchmarks.exam_forms import as_variable
from factlib.core.records import BadInput
from factlib.metaeval.exam import NEEDS, grade_exam
from factlib.trust.decision import YES
from factlib.validity.detection import auc

WHO = ['Alice', 'Clara', 'Emma', 'Julia', 'Lucy', 'Margaret', 'Helen', 'Laura']
MEN = ['Arthur', 'Daniel', 'Edward', 'Frank', 'George', 'Henry', 'James', 'Martin']
DID = ['{a} met {b} in May', '{a} liked {b}', '{b} called {a} in the evening', '{a} had three dogs and 40 sheep',
       '{b} left the town two weeks later', '{a} trusted {b}', '{b} was tired', '{a} walked to the station in the rain',
       '{b} bought a green coat at the market', '{a} knew the road well', '{b} wrote {n} letters', '{a} saw {b}',
       '{b} opened the shop at noon', '{a} painted the kitchen wall', '{b} did not believe the story']


def story(i, paragraphs=8):
    rng = np.random.default_rng(i)
    out = []
    for _ in range(paragraphs):
        said = [DID[k].format(a=WHO[i % 8], b=MEN[(i + 3) % 8], n=rng.integers(20, 90))
                for k in rng.permutation(15)[:6]]
        out.append('. '.join(said) + '.')
    return '\n\n'.join(out)


@pytest.fixture(scope='module')
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp('texts')/'texts.jsonl'
    rows = [dict(target=story(i), source='The whole story.', id=f't{i}') for i in range(8)]
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
    return path


@pytest.fixture(scope='module')
def exam(table, tmp_path_factory):
    out = tmp_path_factory.mktemp('exam')/'exam'
    write_exam(table, out, rows=240, kinds=('names', 'numbers', 'dates', 'negation'))
    return out


def test_same_seed_same_bytes(table, exam, tmp_path):
    write_exam(table, tmp_path/'again', rows=240, kinds=('names', 'numbers', 'dates', 'negation'))
    files = sorted(p.relative_to(exam) for p in exam.rglob('*') if p.is_file() and p.name != '.factlib.json')
    assert len(files) == 10
    for path in files: assert (tmp_path/'again'/path).read_bytes() == (exam/path).read_bytes(), path
    write_exam(table, tmp_path/'other', rows=240, seed=1, kinds=('names', 'numbers', 'dates', 'negation'))
    assert (tmp_path/'other'/'questions.jsonl').read_bytes() != (exam/'questions.jsonl').read_bytes()


def test_key_fits_questions(exam):
    read = read_exam(exam)
    key, shown = read.key.set_index('id'), {q['id']: q['text'] for q in read.questions}
    assert [q['id'] for q in read.questions] == list(read.key.id)
    assert len(set(shown)) == len(shown) == read.info['rows'] == 240
    assert all(set(q) == {'id', 'text', 'source'} for q in read.questions)
    original = {row.text_id: shown[i] for i, row in key.iterrows() if row.role == 'original'}
    for i, row in key.iterrows():
        text = shown[i]
        if row.role in ('original', 'twin'):
            assert text == original[row.text_id] and row.dose == 0
            continue
        assert text != original[row.text_id] and key.loc[row.twin_of].text_id == row.text_id
        first = json.loads(row.changed)[0]
        assert text[row.start:row.end] == first[1]
        expected = 'damage' if row.role == 'injection' else 'original'
        assert key.loc[row.twin_of].role == expected
        if row.harmless_for: assert row.role == 'harmless' and key.loc[row.harmless_for].text_id == row.text_id
        if row.role == 'damage':
            middle = row.start/len(text)
            assert dict(first=middle < .45, middle=.2 < middle < .8, last=middle > .55)[row.place]


def test_balanced(exam):
    damage = read_exam(exam).key.query("role == 'damage'")
    cells = damage.groupby(['kind', 'dose_step', 'place']).size().unstack(fill_value=0)
    assert cells.to_numpy().max() - cells.to_numpy().min() <= 1 and cells.shape[1] == 3 <= cells.shape[0]/3
    by_step = damage.groupby('dose_step').dose.mean()
    assert by_step[1] < by_step[2] < by_step[3]


def test_blind(exam):
    read = read_exam(exam)
    key, n = read.key, len(read.key)
    order = np.arange(n)
    ids = np.array([int(i[1:], 16) for i in key.id], float)
    chars = np.array([len(q['text']) for q in read.questions], float)
    relative = chars - np.array([np.median(chars[key.text_id == t]) for t in key.text_id])
    same_words = (key.role != 'injection') & ~key.kind.isin(read.info['changes_length'])
    tests = []
    for role in ('original', 'damage', 'harmless', 'injection'):
        hit = (key.role == role).to_numpy()
        for feature in (order, ids):
            tests.append(auc(feature[hit], feature[~hit]).estimate)
    assert all(abs(a - .5) < .15 for a in tests)
    original = key[key.role == 'original'].set_index('text_id').words
    assert (key.words[same_words] == key.text_id.map(original)[same_words]).all()
    damage, harmless = ((key.role == r).to_numpy() & same_words for r in ('damage', 'harmless'))
    assert damage.sum() > 50


def test_edited_key(exam, tmp_path):
    import shutil
    copy = tmp_path/'copy'
    shutil.copytree(exam, copy)
    key = pd.read_parquet(copy/'key.parquet')
    key.loc[0, 'role'] = 'none'
    key.to_parquet(copy/'key.parquet', index=False)
    with pytest.raises(BadInput, match='key .* was edited'): read_exam(copy)
    shutil.copytree(exam, tmp_path/'other')
    (tmp_path/'other'/'questions.jsonl').write_text('{}\n')
    with pytest.raises(BadInput, match='questions .* were edited'): read_exam(tmp_path/'other')
    with pytest.raises(BadInput, match='holds no exam'): read_exam(tmp_path)


def test_pairs(table):
    questions, key, info = make_exam(table, rows=96, pairs=True, kinds=('numbers', 'names'))
    assert len(questions) == info['rows'] and not (key.role == 'original').any()
    at, shown = key.set_index('id'), {q['id']: q for q in questions}
    for i, row in at.iterrows():
        other = at.loc[row.order_of]
        one, two = shown[i], shown[row.order_of]
        assert (one['text_a'], one['text_b']) == (two['text_b'], two['text_a'])
        assert {row.better, other.better} in ({'a', 'b'}, {'tie'})
        assert (row.better == 'tie') == (row.role in ('twin', 'harmless'))
        if row.harmless_for: assert at.loc[row.harmless_for].role == 'damage'


def test_folder_of_texts(tmp_path):
    for i in range(3): (tmp_path/f'{i}.txt').write_text(story(i, 12), encoding='utf-8')
    questions, key, info = make_exam(tmp_path, rows=48, kinds=('typos', 'punctuation_removed', 'swap_content'))
    assert set(key[key.role == 'damage'].kind) == {'typos', 'punctuation_removed', 'swap_content'}
    assert 'punctuation_removed' not in questions[0] and list(questions[0]) == ['id', 'text'] and info['columns'] == []


@pytest.mark.parametrize('texts,more,message', [
    ({'a.txt': story(0)}, {}, 'at least 2 different texts'),
    ({'a.txt': 'Too short.', 'b.txt': 'Short too.'}, {}, 'fewer than 30 words'),
    ({'a.txt': story(0), 'b.txt': story(0)}, {}, 'same text'),
    ({}, {}, 'not a folder with .txt files'),
    ({'a.txt': story(0), 'b.txt': story(1)}, dict(rows=5), 'from 24'),
    ({'a.txt': story(0), 'b.txt': story(1)}, dict(kinds=('name',)), "Did you mean 'names'"),
    ({'a.txt': story(0), 'b.txt': story(1)}, dict(kinds=()), 'No kind')])
def test_bad_input(tmp_path, texts, more, message):
    for name, text in texts.items(): (tmp_path/name).write_text(text, encoding='utf-8')
    with pytest.raises(BadInput, match=message) as e: write_exam(tmp_path, tmp_path/'out', **more)
    assert str(e.value).count('\n') == 0 and not (tmp_path/'out').exists()


def test_power_and_plan():
    assert '0.98' in power_sentences(100)[0] and '0.63' in power_sentences(100)[1]
    for n in (24, 100, 240, 1000):
        plan = plan_exam(n, 5)
        assert plan.texts + plan.twins + 2*plan.damages + plan.injections in (n, n - 1)


def test_hostile_texts_in_forms():
    for text in ('{{ x }}', '{% endraw %}{{ 7*7 }}', 'file:///etc/passwd', '{# c #}'):
        assert as_variable(text).startswith('{% raw %}')


CHEAP = ('typos', 'punctuation_removed', 'words_removed', 'shuffled_word_order')


@pytest.mark.parametrize('pairs', [False, True])
def test_a_perfect_judge_meets_every_need_of_the_default_exam(table, tmp_path, pairs):
    info = write_exam(table, tmp_path/'exam', pairs=pairs, kinds=CHEAP)
    exam = read_exam(tmp_path/'exam')
    scores = exam.key.better if pairs else exam.key.role.map(dict(damage=2, injection=2)).fillna(5)
    answers = pd.DataFrame(dict(id=exam.key['id'], **{'winner' if pairs else 'score': scores}))
    report = grade_exam(exam, dict(perfect=answers))
    decisions = report.grades['perfect'].decisions
    assert dict(zip(decisions.use, decisions.decision)) == dict.fromkeys(NEEDS, YES), report.lines
    assert info['rows'] in (359, 360) and (pairs or info['roles']['twin'] == info['roles']['injection'] == 59)


def test_a_judge_of_pairs_that_knows_only_ties_is_constant(table, tmp_path):
    write_exam(table, tmp_path/'exam', pairs=True, rows=96, kinds=CHEAP)
    exam = read_exam(tmp_path/'exam')
    ties = pd.DataFrame(dict(id=exam.key['id'], winner='tie'))
    grade = grade_exam(exam, dict(ties=ties)).grades['ties']
    assert grade.findings == ('constant',) and grade.leads[0][1].startswith('It gives one verdict (tie) to all')
