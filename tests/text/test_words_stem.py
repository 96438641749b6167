"Stems against NLTK's, on every word of a large text and on made-up ones."
import re

from hypothesis import example, given, settings, strategies as st
from nltk.stem.porter import PorterStemmer

from factlib.benchmarks.samples import background_text, stories
from factlib.text.words import porter

stem = PorterStemmer().stem

def differing(words): return [(w, porter(w), stem(w)) for w in words if porter(w) != stem(w)]

def test_every_word_of_the_stories_and_of_the_books_beside_them():
    words = {w for text in [*(s.text for s in stories()), background_text()]
             for w in re.findall('[a-z0-9]+', text.lower())}
    assert len(words) > 25_000 and not differing(sorted(words))

ENDINGS = '''ational tional enci anci izer bli abli alli entli eli ousli ization ation ator alism iveness fulness ousness aliti iviti biliti fulli logi icate ative alize iciti ical ful ness ement ance ence
able ible ment ant ent ion sion tion ism ate iti ous ive ize al er ic ou s es ies sses ss ed eed ied ing y ll e ating bling izing'''.split()

@settings(max_examples=1500, deadline=None)
@given(st.text('aeiouybclstrwx', max_size=6), st.lists(st.sampled_from(ENDINGS), max_size=3))
def test_made_up_words(beginning, endings):
    word = beginning + ''.join(endings)
    assert porter(word) == stem(word)

@settings(max_examples=500, deadline=None)
@given(st.text('abcdefghijklmnopqrstuvwxyz0123456789', max_size=12))
@example('')
def test_any_word(word): assert porter(word) == stem(word)
