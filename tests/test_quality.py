"Every manipulation: exact, reversible, repeatable, independent of its neighbours, and patient with hostile text."
import os, pickle, subprocess, sys, time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from factlib.core.records import BadInput
from factlib.core.text import paragraphs
from factlib.perturb.quality import ANACHRONISMS, MANIPULATIONS, NEIGHBOURS, Refusal, eligible, manipulate, operations, seeded

def story(n=40, words=30, tag='w'):
    "`n` (up to 100) different paragraphs of `words` tokens each."
    return '\n\n'.join(f'{tag}ord ' * (words - 2) + f'number {"abcdefghij"[i // 10]}{"abcdefghij"[i % 10]}.' for i in range(n))

DONORS = [story(30, tag=t) for t in 'xyz']
SETTINGS = {'17': dict(donors=DONORS), '24': {}, '41': {}}
piece = st.text(alphabet=st.one_of(st.sampled_from('abcXYZ \n\r\t.,:"\'-é\u0301犬ß😀\u200d\ud800{}%'), st.characters()), max_size=200)
hostile = st.lists(st.one_of(piece, st.sampled_from([story(3), 'CHAPTER I\n\n', '\n\n', 'A fox. ' * 12, '\r\n\r\n'])), max_size=8).map(''.join)

def made(text, kind, **more): return manipulate(text, kind, **(SETTINGS[kind] | more))

@pytest.mark.parametrize('kind', MANIPULATIONS)
@given(text=hostile, seed=st.one_of(st.integers(), st.text(max_size=5)))
@settings(max_examples=150, deadline=None)
def test_exact_and_reversible(kind, text, seed):
    assume(text.strip())
    m = made(text, kind, seed=seed)
    assert m.revert() == text
    if m.refused: assert m.text == text and m.edits == [] and isinstance(m.refused, Refusal) and (m.refused.reason == 'too_short') == (m.refused.asked == 0) and (m.refused.asked > m.refused.available or m.refused.asked == 0)
    else: assert m.text != text and m.edits
    for e in m.edits: assert m.text[e.start:e.end] == e.after != e.before
    assert [e.start for e in m.edits] == sorted(e.start for e in m.edits)

@pytest.mark.parametrize('kind', MANIPULATIONS)
@given(text=hostile, other=hostile)
@settings(max_examples=40, deadline=None)
def test_neighbours_change_nothing(kind, text, other):
    assume(text.strip() and other.strip())
    first = made(text, kind, seed='a')
    made(other, kind, seed='b')
    assert made(text, kind, seed='a') == first

def test_seeds_differ_and_processes_agree():
    code = ('import sys, hashlib; from factlib.perturb.quality import manipulate; t = sys.stdin.read(); donors = [t.replace("word", "lord")]; '
            'texts = [manipulate(t, k, seed="d", donors=donors if k == "17" else None).text for k in ("17", "24", "41")]; print(hashlib.sha256("".join(texts).encode()).hexdigest())')
    run = lambda seed: subprocess.run([sys.executable, '-c', code], input=story(), text=True, capture_output=True, check=True,
                                      env=dict(os.environ, PYTHONHASHSEED=seed, PYTHONPATH=str(Path(__file__).parent.parent))).stdout
    assert run('1') == run('2') != ''
    for kind in MANIPULATIONS: assert len({made(story(), kind, seed=s).text for s in range(8)}) > 1

# By hand: round(tokens/1000 + b), and tokens x (2 + b)/2000
@pytest.mark.parametrize('tokens, bias, mode, n', [(2000, 2, 'paper', 4), (2000, 1, 'paper', 3), (400, 2, 'paper', 2), (600, 2, 'paper', 3), (10_500, 2, 'paper', 12), (10_501, 2, 'paper', 13),
    (2000, 2, 'equal_density', 4), (8000, 2, 'equal_density', 16), (2000, 1, 'equal_density', 3), (8000, 1, 'equal_density', 12), (100, 1, 'equal_density', 0)])
def test_operations(tokens, bias, mode, n): assert operations(tokens, bias, mode) == n

@pytest.mark.parametrize('kind, n', [('17', 3), ('24', 2), ('41', 24)]) # 40 x 30 = 1,200 tokens: 3.2, 2.2 and 2 %
def test_realised_is_asked_by_default(kind, n): assert len(made(story(), kind, seed=1).edits) == n

@given(n=st.integers(1, 30), seed=st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_realised_is_asked(n, seed):
    assert len(made(story(), '17', intensity=n, seed=seed).edits) == n
    assert len(made(story(), '24', intensity=n, seed=seed).edits) == n
    assert len(made(story(), '41', intensity=n/30, seed=seed).edits) == round(n/30*1200)

def test_kinds_hit_different_places():
    assert len({seeded('a', kind).random() for kind in MANIPULATIONS}) == len(MANIPULATIONS)

def test_exchange_takes_foreign_paragraphs_once():
    m = made(story(), '17', intensity=20)
    pool = {p.of(d) for d in DONORS for p in paragraphs(d)}
    old, new = [p.of(story()) for p in paragraphs(story())], [p.of(m.text) for p in paragraphs(m.text)]
    assert len(old) == len(new) and sum(a != b for a, b in zip(old, new)) == 20
    assert all(e.after in pool and e.before in old for e in m.edits)
    assert len({e.after for e in m.edits}) == 20
    assert sorted(Counter(e.after[0] for e in m.edits).values()) == [6, 7, 7] # the donors take turns
    assert len({made(story(), '17', intensity=1, seed=s).edits[0].after[0] for s in range(30)}) == 3 # each may be the first

def test_exchange_never_takes_its_own():
    m = manipulate(story(), '17', donors=[story(), DONORS[0]], intensity=30)
    assert all(e.after.startswith('xord') for e in m.edits)
    m = manipulate(story(), '17', donors=[story()] * 3, intensity=5)
    assert m.refused.reason == 'too_few_donor_paragraphs' and (m.refused.asked, m.refused.available) == (5, 0)
    assert manipulate(story(), '17', donors=[DONORS[0]] * 4, intensity=31).refused.available == 30

def test_headings_and_short_paragraphs_are_left():
    heading = 'CHAPTER XII. In which the fox at last meets the old hen again'
    text = f'{heading}\n\nshort\n\n{story(1)}\n\nCHAPTER: {"a" * 60}'
    assert [p.of(text) for p in eligible(text)] == [story(1)]
    assert eligible('x' * 49) == [] and len(eligible('x' * 50)) == 1 and len(eligible('x', 1)) == 1
    assert manipulate(text, '24', intensity=2).refused.available == 1
    assert made(text, '17', intensity=1).text.startswith(f'{heading}\n\nshort\n\n')

def test_sentences_are_appended_to_different_paragraphs():
    m = manipulate(story(), '24', intensity=40)
    assert len({e.after for e in m.edits}) == 40 and all(e.after[1:] in ANACHRONISMS and e.before == '' and e.after[0] == ' ' for e in m.edits)
    assert all(p.of(m.text).split('. ')[-1] in ANACHRONISMS for p in paragraphs(m.text))
    refused = manipulate(story(99), '24', intensity=61).refused
    assert refused.reason == 'too_few_sentences' and (refused.asked, refused.available) == (61, 60)
    assert manipulate(story(), '24', intensity=1, sentences=['Nothing rang.']).edits[0].after == ' Nothing rang.'

@pytest.mark.parametrize('end', [':', ',', ' --', ',"', ' –'])
def test_a_paragraph_that_runs_on_takes_no_sentence(end):
    text = 'The fox said to the old hen, who had been listening all the while'
    assert manipulate(text + end, '24').refused.available == 0
    assert len(manipulate(text + '."', '24').edits) == 1

def test_typos_are_neighbouring_letters():
    text = 'The QUICK brown fox; 12 Jumps över\n\nthe lazy dog _ é e\u0301 zu Ende! ' * 50
    m = manipulate(text, '41', intensity=1)
    for e in m.edits:
        assert e.after.lower() in NEIGHBOURS[e.before.lower()] and e.before.isupper() == e.after.isupper() and e.end == e.start + 1
        assert not m.text[e.end:].startswith('\u0301')
    assert len(m.text) == len(text) and [c.isspace() for c in m.text] == [c.isspace() for c in text]
    assert len(m.edits) == len(text.split()) # 100 % of the tokens, as characters

def test_typos_are_spread_evenly_over_letters_and_neighbours():
    m = manipulate('g' * 6000 + ' b' * 6000, '41', intensity=1) # 6,001 tokens, half of the 12,000 letters
    hit = Counter(e.before for e in m.edits)
    assert abs(hit['g'] - 3000) < 250 and abs(hit['b'] - 3000) < 250 # more than 6 standard deviations
    to = Counter(e.after for e in m.edits if e.before == 'g')
    assert set(to) == set('tyfhvb') and all(abs(n - hit['g']/6) < 150 for n in to.values())

@pytest.mark.parametrize('text, letters', [('犬が 走った。' * 100, 0), ('Лиса бежала домой. ' * 100, 0), ('e\u0301 ' * 300, 0), ('1 2 3 ab ' * 100, 200)])
def test_typos_need_latin_letters(text, letters):
    m = manipulate(text, '41', intensity=.9)
    assert m.refused.reason == 'too_few_letters' and m.refused.available == letters < m.refused.asked and m.text == text

def test_qwerty_map():
    assert {k: NEIGHBOURS[k] for k in 'asmz'} == dict(a='qswz', s='adewxz', m='jkn', z='asx')
    assert set(''.join(NEIGHBOURS.values())) == set(NEIGHBOURS) == set('abcdefghijklmnopqrstuvwxyz')

@pytest.mark.parametrize('call, says', [
    (dict(kind='42x'), '17, 24, 41'), (dict(kind=17), '17, 24, 41'), (dict(kind='17'), 'donors'), (dict(kind='17', donors='abc'), 'donors'), (dict(kind='17', donors=[]), 'donors'),
    (dict(kind='17', donors=[1]), 'donors'), (dict(kind='17', donors=7), 'donors'),
    (dict(kind='17', donors=DONORS, density='dense'), 'intensity, donors, mode, min_characters'), (dict(kind='24', donors=DONORS), 'donors'), (dict(kind='41', mode='paper'), 'intensity'),
    (dict(kind='24', fast=True), 'fast'), (dict(kind='24', mode='other'), 'equal_density'), (dict(kind='24', intensity=2, mode='equal_density'), 'either'),
    (dict(kind='24', intensity=.5), 'whole number'), (dict(kind='24', intensity=0), 'whole number'), (dict(kind='24', intensity=True), 'whole number'),
    (dict(kind='41', intensity=0), '(0, 1]'), (dict(kind='41', intensity=1.5), '(0, 1]'), (dict(kind='41', intensity=float('nan')), '(0, 1]'), (dict(kind='41', intensity='2%'), '(0, 1]'),
    (dict(kind='41', seed=1.5), 'seed'), (dict(kind='41', seed=None), 'seed'), (dict(kind='41', text=''), 'nothing to manipulate'), (dict(kind='24', text='\n \t\n'), 'nothing to manipulate'),
    (dict(kind='24', text=None), 'string'), (dict(kind='24', sentences='One.'), 'list'), (dict(kind='24', sentences=[1]), 'list'), (dict(kind='24', min_characters=-1), 'min_characters'),
    (dict(kind=['17']), '17, 24, 41')])
def test_bad_input(call, says):
    with pytest.raises(BadInput) as e: manipulate(**(dict(text=story()) | call))
    assert says in str(e.value) and '\n' not in str(e.value)

def test_numpy_numbers_are_numbers():
    assert manipulate(story(), '24', intensity=np.int64(3), seed=np.int64(5)) == manipulate(story(), '24', intensity=3, seed='5')
    assert len(manipulate(story(), '41', intensity=np.float64(.1)).edits) == 120

def test_refusal_survives_pickling():
    m = manipulate('One.', '24')
    again = pickle.loads(pickle.dumps(m))
    assert again == m and again.refused.available == 0

def test_registry_describes_every_kind():
    assert {'17': 'coherence', '24': 'coherence', '41': 'fluency'}.items() <= {k: m.metric for k, m in MANIPULATIONS.items()}.items()
    assert all(m.id == k and m.name and m.description and m.takes for k, m in MANIPULATIONS.items())

@pytest.mark.parametrize('kind, more', [('24', dict(intensity=50)), ('41', {})])
def test_a_million_words(kind, more):
    text = (story(40) + '\n\n') * 834 # 1,000,800 tokens
    start = time.process_time()
    m = manipulate(text, kind, **more)
    assert time.process_time() - start < 3 and m.refused is None # about 0.2 s on a quiet machine

@pytest.mark.parametrize('text', ['\n' * 400_000 + 'a', 'a\n' * 200_000, 'a\n\n' * 100_000, '\r' * 400_000 + 'a', 'a:"' * 150_000, '\n chapter' * 60_000])
def test_odd_long_texts_are_linear(text):
    start = time.process_time()
    for kind in MANIPULATIONS: assert made(text, kind).revert() == text
    assert time.process_time() - start < 5
