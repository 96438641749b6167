"Ladders by rule: on the recorded paraphrases, by hand, and on hostile texts."
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from factlib.core.records import BadInput
from factlib.perturb.facts import factual_spans, question_overlap, swap_ladder
from factlib.perturb.fact_swaps import typed_swap
from factlib.text.parse import parse

recorded = pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'),
                              reason='FACTLIB_DATA is not set: the recorded answers are not here')

def check(ladder, text):
    "What holds of every ladder: each level has the changes of the one before, and nothing else of the text is touched."
    assert ladder.texts[0] == text
    changed = sorted(swap for step in ladder.swaps for swap in step)
    assert all(a.end <= b.start for a, b in zip(changed, changed[1:]))
    for level in range(len(ladder.texts)):
        new = text
        for swap in sorted((s for step in ladder.swaps[:level] for s in step), reverse=True):
            new = new[:swap.start] + swap.after + new[swap.end:]
        assert new == ladder.texts[level]
    for i in (*ladder.blocked, *ladder.protected):
        if ladder.refused is None:
            assert not any(s.start < ladder.spans[i].end and ladder.spans[i].start < s.end for s in changed)

@recorded
def test_recorded_paraphrases():
    "At least 95 of 100 with nouns from the other texts, and 75 without."
    import pandas as pd
    rows = pd.read_parquet(Path(os.environ['FACTLIB_DATA'])/'trutheval'/'perturbed_answers.parquet').query('level == 0')
    donors, distinct = list(rows.ground_truth), dict(all=0, typed=0)
    for row in rows.itertuples():
        doc = parse(row.answer)
        for name, given in dict(all=donors, typed=None).items():
            ladder = swap_ladder(row.answer, row.question, donors=given, doc=doc, seed=row.question)
            check(ladder, row.answer)
            distinct[name] += len(set(ladder.texts)) == 5
            marks = lambda text: sorted(re.findall(r'[\[\]{}]', text))
            assert all(marks(text) == marks(row.answer) for text in ladder.texts)
            spans = factual_spans(row.answer, doc)
            assert set(question_overlap(row.answer, spans, row.question)) <= set(ladder.blocked)
    assert distinct['all'] >= 95 and distinct['typed'] >= 75

def test_by_hand():
    text = 'The bridge was opened in May 1921 by Anna Berg, an engineer from Lyon.'
    ladder = swap_ladder(text, 'Who opened the bridge at Lyon?', levels=2, keep=1)
    check(ladder, text)
    assert [text[slice(*ladder.spans[i])] for i in ladder.blocked] == ['Lyon']
    before = {text[s.start:s.end]: s.kind for step in ladder.swaps for s in step}
    assert before == {'May': 'date', '1921': 'date', 'Anna Berg': 'name',
                      'an engineer': 'noun'} or before == {'May': 'date',
                                                           '1921': 'date', 'Anna Berg': 'name', 'engineer': 'noun'}

@pytest.mark.parametrize('sentence, word, options', [
    ('It cost 50% of it.', '50', range(25, 76)), ('It came on 31 March.', '31', range(2, 29)),
    ('It has two wings.', 'two', 'three four five'.split()),
    ('He liked the biggest one.', 'biggest', ['smallest']),
    ('They met on a Monday.', 'Monday', 'Tuesday Wednesday Thursday Friday Saturday Sunday'.split()),
    ('He lives on Mars.', 'Mars', None)])
def test_kinds_stay(sentence, word, options):
    doc = parse(sentence)
    spans = [doc.char_span(*s) for s in factual_spans(sentence, doc)]
    swap = next(filter(None, (typed_swap(span, 3) for span in spans)), None)
    if options: assert sentence[swap.start:swap.end] == word and swap.after in list(map(str, options))

@pytest.mark.parametrize('sentence, stays', [
    ('It is played on demand.', 'demand'), ('He helps people in need.', 'need'), ('It takes place there.', 'place'),
    ('He was in Disaster Movie and Vampires Suck.', 'Disaster Movie and Vampires Suck'),
    ('It was led by King Louis XVI.', 'Louis XVI'), ('He crossed the Russian Empire.', 'Empire'),
    ('He walked on the Moon.', 'the Moon'), ('He murdered his uncle Claudius.', 'uncle Claudius'),
    ('It weighs 3 kg more each second.', 'each second'), ('No matter how much it weighs.', 'how much'),
    ('They set him free.', 'free'), ('It is at sea level.', 'sea level')])
def test_what_is_no_fact_stays(sentence, stays):
    "Idioms, titles, realms, names behind a kinship, units of time: faults that were found by reading ladders."
    doc, new = parse(sentence), sentence
    for span in reversed([doc.char_span(*s) for s in factual_spans(sentence, doc)]):
        swap = typed_swap(span, 0)
        if swap: new = new[:swap.start] + swap.after + new[swap.end:]
    assert stays in new

def test_two_names_never_become_one():
    text = ('He went from Korea to China, then to Kenya, to Cuba, to Mali, to Chile, to Peru, to Iran, to Iraq and to '
            'Spain.')
    for seed in range(10):
        after = [s.after for step in swap_ladder(text, levels=1, keep=1, seed=seed).swaps for s in step]
        assert len(after) == len(set(after)) == 10

def test_an_unknown_first_name_keeps_its_gender():
    text = 'In 1990 she wrote to Sakura Haruno in Lyon.'
    assert any('Sakura ' in t and 'Haruno' not in t for t in swap_ladder(text, levels=1, keep=1).texts)

def test_nouns_that_exclude_each_other():
    "No noun twice in a line; no two of a line that our rewordings call the same."
    from factlib.perturb.fact_swaps import is_vague, same_meaning
    from factlib.text.words import word_list
    for line in word_list('nouns_by_kind'):
        row = [noun.split('/')[0] for noun in line.split(', ')]
        assert len(row) == len(set(row)) > 1 and not [n for n in row if is_vague(n)]
        assert not [(a, b) for i, a in enumerate(row) for b in row[i + 1:] if same_meaning(a, b)], row

def test_the_same_name_becomes_the_same_name():
    text = 'In Lyon he met Anna Berg in 1921. In 1921 he left Lyon for Rome and wrote to Anna Berg twice.'
    after = {}
    for step in swap_ladder(text, levels=2, keep=1).swaps:
        for s in step: after.setdefault(text[s.start:s.end], set()).add(s.after)
    assert all(len(options) == 1 for options in after.values()) and {'1921', 'Lyon', 'Anna Berg'} <= set(after)

@pytest.mark.parametrize('wrong', [dict(levels=0), dict(keep=0), dict(keep=2),
                                   dict(donors='one text'), dict(question=''), dict(question=3)])
def test_bad_settings(wrong):
    with pytest.raises(BadInput): swap_ladder('In 1921 he came to Rome.', **wrong)

@pytest.mark.parametrize('text', ['', '  ', None, 3])
def test_no_answer(text):
    with pytest.raises(BadInput): swap_ladder(text)

@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from(list('In 1921, the largest of 40 Paris-May [x] {{y}} {0}%s\n\ud800\u202e世界.')),
               min_size=1, max_size=200).filter(str.strip), st.integers(1, 5))
def test_hostile_texts(text, levels):
    check(swap_ladder(text, levels=levels, donors=['The bus has a horn and wheels.']), text)
