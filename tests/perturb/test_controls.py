"Controls: true ones that lose words, lies near the reference, and the same places with the meaning kept."
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from factlib.core.records import BadInput
from factlib.perturb.controls import aligned, in_words, near_lie, number_otherwise, otherwise, reworded, same_place
from factlib.perturb.facts import swap_ladder

recorded = pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'),
                              reason='FACTLIB_DATA is not set: the recorded answers are not here')
WORDS = dict(
    zip('zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen'.split(), range(20))) | \
    dict(zip('twenty thirty forty fifty sixty seventy eighty ninety'.split(), range(20, 100, 10)))

def value(said):
    "The number that some words say: another way than the code's."
    total, part = 0, 0
    for word in re.findall(r'\w+', said):
        if word == 'and': continue
        if word == 'hundred': part *= 100
        elif word in ('thousand', 'million'): total, part = total + part*{'thousand': 1000, 'million': 10**6}[word], 0
        else: part += WORDS[word]
    return total + part

@settings(max_examples=300, deadline=None)
@given(st.integers(0, 999_999_999))
def test_numbers_in_words(n): assert value(in_words(n)) == n

@pytest.mark.parametrize('year', range(1100, 2030, 7))
def test_years(year):
    said = number_otherwise(str(year))
    pair = re.fullmatch(r'([\w-]+) ([\w-]+)', said)
    assert value(said) == year or pair and 100*value(pair[1]) + value(pair[2]) == year

def test_numbers_there_and_back():
    for n in range(2, 100): assert number_otherwise(in_words(n)) == str(n)
    for n in range(1, 100):
        digits = number_otherwise(
            number_otherwise(f'{n}{"th" if n//10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")}'))
        assert re.fullmatch(rf'{n}(st|nd|rd|th)', digits)

def test_lists_change_what_they_name():
    from factlib.text.words import word_list
    rows = [line.split(' - ') for line in word_list('said_otherwise')]
    assert all(len(row) == 2 and row[0] != row[1] for row in rows) and len({row[0] for row in rows}) == len(rows)
    opposites = [line.split(' - ') for line in word_list('opposites_exact')]
    assert all(len(row) in (2, 3) and row[0] != row[1] for row in opposites)
    said, opposed = dict(rows), {(a, b) for a, b, *_ in opposites} | {(b, a) for a, b, *_ in opposites}
    assert not [(a, b) for a, b in said.items() if (a, b) in opposed] # no word's opposite passes for the same

def test_alignment_by_hand():
    assert aligned(['Cats sleep.', 'Dogs bark.'], ['Cats sleep a lot and dogs bark.']) == [((0, 2), (0, 1))]
    assert aligned(['Cats sleep.', 'Dogs bark.', 'Fish swim.'],
                   ['Cats sleep.', 'Dogs bark.', 'Fish swim.']) == [((i, i + 1), (i, i + 1)) for i in range(3)]

def test_reworded_by_hand():
    text, told = ('Cats sleep. Dogs bark. Fish swim. Birds fly.',
                  'The cats are asleep. The dogs are barking. The fish are swimming. The birds are flying.')
    steps = reworded(text, told)
    assert steps.texts[2] == 'The cats are asleep. The dogs are barking. Fish swim. Birds fly.'
    assert steps.texts[0] == text and steps.texts[4] == told
    assert steps.changed == steps.asked == (0, 1, 2, 3, 4)

@pytest.mark.parametrize('wrong', [('', 'b', 4), ('a', ' ', 4), ('a', None, 4), ('a', 'b', 0)])
def test_bad_input(wrong):
    with pytest.raises(BadInput): reworded(*wrong)

def test_a_function_that_gives_no_text():
    ladder = swap_ladder('He left Lyon in May and Rome in June.', levels=2, keep=1)
    with pytest.raises(BadInput, match='text or None'): same_place(ladder, lambda *_: 3)

@recorded
def test_recorded_questions():
    "Each control for at least 95 of 100; 64 % of the words at the lies' places can be said otherwise."
    import pandas as pd
    rows = pd.read_parquet(Path(os.environ['FACTLIB_DATA'])/'trutheval'/'perturbed_answers.parquet').query('level == 0')
    donors, there, shares = list(rows.ground_truth), dict(reworded=0, near=0, same=0), []
    for row in rows.itertuples():
        steps = reworded(row.ground_truth, row.answer)
        ladder = swap_ladder(row.answer, row.question, seed=row.question, donors=donors)
        same = same_place(ladder)
        there['reworded'] += not steps.refused
        there['near'] += not near_lie(row.ground_truth, row.question, seed=row.question, donors=donors).refused
        there['same'] += not same.refused
        if not same.refused: shares.append(same.changed[-1]/same.asked[-1])
        places = {(s.start, s.end) for step in ladder.swaps for s in step}
        assert {(s.start, s.end) for level in same.edits for s in level} <= places
    print(there, sum(shares)/len(shares))
    assert all(n >= 95 for n in there.values()) and sum(shares)/len(shares) > .5

@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from(list('In 1921, Paris. [x] {0}%s\n\ud800\u202e世界。.')), min_size=1,
               max_size=120).filter(str.strip), st.text(min_size=1, max_size=80).filter(str.strip), st.integers(1, 5))
def test_hostile_texts(text, other, levels):
    steps = reworded(text, other, levels)
    assert len(steps.texts) == levels + 1 and steps.texts[0] == text and (steps.refused or steps.texts[-1] == other)
    otherwise(text)

def test_long_texts_are_one_block():
    text = ' '.join(f'Ship {i} sank.' for i in range(300))
    assert reworded(text, text.replace('sank', 'went down')).changed == (0, 0, 0, 0, 300)
