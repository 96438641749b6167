"Edits from two texts: every pair goes back, whatever the texts, and a book takes seconds."
import random

import pytest

from factlib.text.edits import edits_between, revert_edits

HOSTILE = ['', ' ', '\n\n', 'a', '\ud800\udc00 \ud83d', 'x'*5_000, 'a '*3_000,
           '\x00\x1b', '{"a": 1}', 'שלום עולם.', '犬が猫を追う。', 'e\u0301 e\u0301', 'Ann met Bob.', 'Bob met Ann!']

def goes_back(before, after):
    edits = edits_between(before, after)
    assert revert_edits(after, edits) == before
    assert all(after[e.start:e.end] == e.after and e.before != e.after for e in edits)
    return edits

def test_every_pair_goes_back():
    for before in HOSTILE:
        for after in HOSTILE: goes_back(before, after)

def test_random_pairs_go_back():
    rng = random.Random(8)
    for _ in range(300):
        alphabet = rng.choice(['ab', 'ab ', 'abc .\n', 'aé犬 \ud800'])
        before, after = (''.join(rng.choices(alphabet, k=rng.randrange(60))) for _ in range(2))
        goes_back(before, after)

def test_whole_words_change_and_neighbours_are_one():
    assert [(e.before, e.after) for e in goes_back('He was thirty years old.',
                                                   'He was thirteen years old.')] == [('thirty', 'thirteen')]
    assert [(e.before, e.after) for e in goes_back('a b c d e', 'a x y d z')] == [('b c', 'x y'), ('e', 'z')]

def test_the_edits_of_a_long_text_are_the_few_that_were_made():
    rng = random.Random(1)
    words = [rng.choice(['the', 'of', 'and', f'word{rng.randrange(9_000)}']) for _ in range(20_000)]
    changed = list(words)
    places = sorted(rng.sample(range(0, 20_000, 20), 50))
    for i in places: changed[i] = f'new{i}'
    edits = goes_back(' '.join(words), ' '.join(changed))
    assert [e.after for e in edits] == [f'new{i}' for i in places]
    assert [e.before for e in edits] == [words[i] for i in places]

@pytest.mark.slow
def test_a_hundred_thousand_words_take_seconds():
    rng = random.Random(2)
    words = [rng.choice(['the', 'of', 'and', 'a', f'word{rng.randrange(5_000)}']) for _ in range(100_000)]
    pairs = dict(edited=[w if rng.random() > .05 else 'new' for w in words],
                 other=rng.sample(words, len(words)), same_word=['a']*100_000,
                 two=rng.choices('ab', k=100_000), reversed=words[::-1])
    for after in pairs.values():
        goes_back(' '.join(words), ' '.join(after))
        goes_back(' '.join(rng.choices('ab', k=100_000)), ' '.join(after))
