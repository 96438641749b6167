"Restyles: the same words, exactly revertible, in any script."
import random

import pytest

from factlib.core.records import BadInput
from factlib.perturb.surface import RESTYLES, harmless_twin, restyle, same_words, spans_before, words_touched
from factlib.text.edits import apply_edits

SCRIPTS = dict(latin='abcdefgh éü ÇŠ', greek='αβγδεζ ηθικ', arabic='ابتثجحخ دذرز', cjk='漢字仮名交じり文。、',
               devanagari='कखगघङ चछजझ ािीु')
MARKS = ['"', '“', '”', "'", '’', '—', '--', ' – ', '.', '. ', '! ', '\n', '\n\n', '  ', ' ',
         '- ', '# ', '*', '**', '`', '<b>', '{x}', '1. ', '\r\n',
         '\u200d', '\u0301', '\ud800', ' two ', ' 3 ', " don't ", ' colour ', ' did not go ']


def random_text(rng, letters):
    return ''.join(rng.choice([''.join(rng.choices(letters, k=rng.randint(1, 9))), ' ', rng.choice(MARKS)])
                   for _ in range(rng.randint(1, 40)))


@pytest.mark.parametrize('script', SCRIPTS)
def test_reverts_exactly(script):
    rng, kinds, made_of = random.Random(script), list(RESTYLES), dict.fromkeys(RESTYLES, 0)
    for n in range(2000):
        text, kind = random_text(rng, SCRIPTS[script]), kinds[n % len(kinds)]
        made = restyle(text, kind, seed=n, share=rng.choice([.1, .5, 1]))
        assert made.revert() == text
        assert same_words(text, made.text)
        assert bool(made.refused) == (made.text == text)
        made_of[kind] += not made.refused
    assert min(made_of[k] for k in ('spaces', 'bold', 'quotes')) > 20


def test_twin_touches_as_many_words():
    text = ' '.join(f'Word {i} of the "text" is not long; it ends here.' for i in range(40))
    for before in ('Word', 'text" is not long', 'of the'):
        at = text.index(before, 500)
        _, edits = apply_edits(text, [(at, at + len(before), 'other')])
        for kind in ('bold', 'spaces'):
            name, made = harmless_twin(text, edits, kinds=(kind,))
            assert name == kind and words_touched(made.edits) >= len(before.split()) - (kind == 'spaces')
            near = spans_before(made.edits)
            assert all(abs(a - at) < 80 for a, _ in near)


@pytest.mark.parametrize('kind,before,after', [
    ('contractions', "She can't come and I won't.", "She cannot come and I won't."),
    ('spelling', 'The colour of honour', 'The color of honor'),
    ('numbers', 'He had three dogs.', 'He had 3 dogs.'),
    ('dashes', 'He--she', 'He—she'),
    ('quotes', '"Yes"', '“Yes”'),
    ('spaces', 'a b', 'a  b')])
def test_by_hand(kind, before, after):
    assert restyle(before, kind).text == after


def test_words_are_the_same():
    assert same_words('I don’t', "I do not") and not same_words('two', 'three') and not same_words('can', "can't")


def test_bad_input():
    with pytest.raises(BadInput, match='restyle'): restyle('a b', 'colors')
    with pytest.raises(BadInput, match='share'): restyle('a b', 'spaces', share=0)
    assert restyle('Der Hund ist nicht hier und die Katze auch nicht, weil es regnet.', 'contractions').refused
