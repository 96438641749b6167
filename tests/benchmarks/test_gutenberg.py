"""Cleaning: every form of the wrapping, no word of the book lost, the same when done twice; folders: a reason for every
file."""
import re

import pytest
from hypothesis import given, settings, strategies as st

from factlib.benchmarks.gutenberg import (REASONS, Document, at_length,
                                          book_span, break_sentences, clean, corpus, document, drop_asterisks,
                                          drop_brackets, header_fields, mark_chapters, read_metadata, statistics)
from factlib.benchmarks.samples import big_text
from factlib.core.records import BadInput

BOOK = 'It was raining when the lamplighter came home.\n\nNobody had lit his own lamp.'
STARTS = ['*** START OF THE PROJECT GUTENBERG EBOOK LAMPS ***', '*** START OF THIS PROJECT GUTENBERG EBOOK LAMPS ***',
          '***START OF THE PROJECT GUTENBERG EBOOK LAMPS***', '*** START OF THE PROJECT GUTENBERG ETEXT, LAMPS ***',
          '*** START OF THE PROJECT GUTENBERG EBOOK LAMPS, OR\nA LONG NIGHT ***',
          '*** start of this project gutenberg e-text lamps',
          '*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*',
          '*END THE SMALL PRINT! FOR PUBLIC DOMAIN EBOOKS*Ver.02/11/02*END*']
ENDS = ['*** END OF THE PROJECT GUTENBERG EBOOK LAMPS ***', '*** END OF THIS PROJECT GUTENBERG EBOOK LAMPS ***',
        '***END OF THE PROJECT GUTENBERG EBOOK LAMPS***', "End of Project Gutenberg's Lamps, by A. Wick",
        'End of The Project Gutenberg Etext of Lamps',
        'End of this Project Gutenberg Etext', 'The End of Project Gutenberg Etext Lamps',
        '***START**THE SMALL PRINT!**FOR PUBLIC DOMAIN EBOOKS**START***']

@pytest.mark.parametrize('start', STARTS)
@pytest.mark.parametrize('end', ENDS)
@pytest.mark.parametrize('newline', ['\n', '\r\n'])
def test_every_form_of_the_wrapping(start, end, newline):
    raw = (f'The Project Gutenberg EBook of Lamps\n\nTitle: Lamps\n\n{start}\n\n\n{BOOK}\n\n\n{end}\n\nA licence that goes on.\n'.replace('\n', newline))
    assert clean(raw).text == BOOK

def test_a_text_that_only_talks_about_the_end():
    text = 'He read the end of the Project, and thought of Gutenberg.\n\nThis was not the end of Project Gutenberg.'
    assert clean(text).text == text and book_span(text) == (0, len(text))

def test_header_of_a_text_without_one():
    assert header_fields(BOOK) == {}
    assert header_fields(f'Title: One\nTitle: Two\nLanguage: German\n{STARTS[0]}\n{BOOK}') == dict(
        title='One', language='German')

@pytest.mark.parametrize('text, kept', [('a [b] c', 'a c'), ('[a [b [c]]] d', ' d'), ('a [b', 'a [b'),
                                        ('a] b', 'a] b'), ('one\n[Illustration:\n\ntwo]\nthree', 'one\n\nthree')])
def test_brackets(text, kept): assert drop_brackets(text)[0] == kept

@pytest.mark.parametrize('text, kept, n',
                         [('* * *', '', 1), ('a\n   *   *\nb', 'a\n\nb', 1),
                          ('a* b', 'a b', 1), ('* note\nof two lines\n\nb', '\n\nb', 1),
                          ('***', '', 1), ('*.*.*', '', 1), ('a ** b', 'a  b', 2)])
def test_asterisks(text, kept, n): assert drop_asterisks(text) == (kept, n)

@pytest.mark.parametrize('line, broken', [('Mr.', False), ('e.g.', False),
                                          ('J.', False), ('Lieut.', False),
                                          ('I.', True), ('done.', True), ('done!"', True),
                                          ('"done"', True), ('done,', False), ('etc.', True), ('(done.)', True)])
def test_breaks(line, broken): assert break_sentences(f'It was {line}\nNext')[1] == broken

def test_breaks_need_a_capital():
    assert break_sentences('"No!"\nsaid he')[1] == 0 and break_sentences('"No!"\n"Yes!"')[1] == 1

def test_headings_by_hand():
    text = ('LAMPS\n\nBy A. Wick\n\nCHAPTER ONE\n\nTHE RAIN\n\nIt rained.\n\n"STOP!"\n\nHe stopped.\n\nChapter 2. The '
            'Sun\n\nIt shone.\n\nIII.\n\nIt set.\n\nAND THEN, AS THE CLOCK STRUCK TWELVE AND THE RAIN BEGAN ONCE '
            'MORE, HE RAN')
    marked, n = mark_chapters(text)
    assert re.findall(r'^CHAPTER: .*$', marked, re.M) == ['CHAPTER: LAMPS', 'CHAPTER: ONE. THE RAIN',
                                                          'CHAPTER: 2. The Sun', 'CHAPTER: III.']
    assert n == 4
    assert mark_chapters(marked) == (marked, n)

LINES = st.sampled_from(['It rained.', 'Mr.', '"Stop!"', 'said he', 'CHAPTER II',
                         'THE RAIN', 'IV.', '[note', 'note]', '* * *', '* note', '_so_', 'BY',
                         '', '', '***', 'a*', '[x]', 'THE END', 'Produced by A. Wick', *STARTS, *ENDS, 'Title: x'])

@settings(max_examples=300, deadline=None)
@given(st.lists(LINES, max_size=14))
def test_cleaning_twice_is_cleaning_once_and_leaves_no_marks(lines):
    text = clean('\n'.join(lines)).text
    assert clean(text).text == text and '*' not in text and '_' not in text and not re.search(r'\[[^\[\]]*\]', text)
    assert text == text.strip()

@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_can_be_cleaned(text):
    assert not set(clean(text).text) & set('*_\r')

PLAIN = st.lists(st.lists(st.sampled_from('rain fell on Mr. Wick. lamp "home" so, it came! no? I'.split()),
                          min_size=1, max_size=12).map(' '.join), min_size=1, max_size=8)

@settings(max_examples=200, deadline=None)
@given(PLAIN)
def test_no_word_of_plain_prose_is_lost(lines):
    "Whatever is neither heading nor note stays, in order."
    text = '\n'.join(lines)
    assert clean(text).text.replace('CHAPTER: ', '').split() == text.split()

def test_the_real_books():
    raw = big_text()
    starts = [m.start() for m in re.finditer(r'^\*\*\* START OF TH', raw, re.M)] 
    for a, b in zip(starts[:2], starts[1:]):
        text = clean(raw[a:b]).text
        assert 'utenberg' not in text and '*' not in text and '_' not in text and len(text) > 500_000
    words = clean(raw[starts[0]:starts[1]]).text.split()
    assert words[-6:] == 'she has met with considerable success.'.split()
    assert document('all', raw)[1]['books'] == 4

def folder(tmp_path, **files):
    for name, text in files.items(): (tmp_path/f'{name}.txt').write_text(text, encoding='utf-8')
    return tmp_path

PROSE = 'The lamp was lit and the rain fell. ' * 30 # 240 tokens

def test_a_reason_for_every_file(tmp_path):
    here = folder(tmp_path, good=PROSE, short='A lamp.', long=PROSE*9,
                  verse=PROSE, french=f'Language: French\n{STARTS[0]}\n{PROSE} x',
                  two=f'{STARTS[0]}\n{PROSE}\n{STARTS[1]}\n{PROSE}', empty='* * *',
                  old=PROSE + 'x', undated=PROSE + 'y', other=PROSE + 'z',
                  picture='\0' + PROSE, unsaid=PROSE + 'w', again=PROSE + 'v', twice=PROSE + 'v')
    rows = ['id,title,year,genre,language', 'good,Lamps,1905,Fiction,',
            'short,S,1905,Fiction,', 'long,L,1905,Fiction,', 'verse,Songs of Lamps,1905,Fiction,',
            'french,F,1905,Fiction,', 'two,T,1905,Fiction,', 'empty,E,1905,Fiction,', 'old,O,1850,Fiction,',
            'undated,U,,Fiction,', 'other,X,1905,History,', 'unsaid,W,1905,,',
            'again,A,1905,Fiction,', 'twice,B,1905,Fiction,', 'lost,G,1905,Fiction,']
    (here/'table.csv').write_text('\n'.join(rows), encoding='utf-8')
    made = corpus(here, here/'table.csv', genres=['fiction'], years=(1900, 2005), tokens=(100, 1000))
    assert [d.id for d in made] == ['again', 'good']
    reasons = {x.id: x.reason for x in made.left_out}
    assert reasons == dict(short='too_short', long='too_long', verse='not_prose',
                           french='language', two='several_books', empty='empty', old='year', undated='no_year',
                           other='genre', picture='unreadable', unsaid='no_genre', twice='twice', lost='no_file')
    assert set(reasons.values()) == set(REASONS) # every reason there is
    assert len(made) + len(made.left_out) == len(list(here.glob('*.txt'))) + 1
    assert all(x.said.endswith('.') for x in made.left_out)

def test_a_folder_without_a_table(tmp_path):
    made = corpus(folder(tmp_path, b=PROSE,
                         a=f'Title: Lamps\nOriginal publication: London, 1911\n{STARTS[0]}\n{PROSE} End'))
    assert [(d.id, d.title, d.year) for d in made] == [('a', 'Lamps', 1911), ('b', 'b', None)] and not made.left_out

def test_encodings(tmp_path):
    (tmp_path/'a.txt').write_bytes('Die Tür war zu. „Nein“'.encode('cp1252'))
    (tmp_path/'b.txt').write_bytes('\ufeffDie Tür war offen.'.encode('utf-8'))
    assert [d.text for d in corpus(tmp_path)] == ['Die Tür war zu. „Nein“', 'Die Tür war offen.']

@pytest.mark.parametrize('rows, words', [('title\nx', 'column "id"'), ('id\n', 'at least one row'),
                                         ('id\na\na', 'twice'), ('id,year\na,soon', 'not a whole number')])
def test_bad_tables(rows, words, tmp_path):
    (tmp_path/'t.csv').write_text(rows)
    with pytest.raises(BadInput, match=words): read_metadata(tmp_path/'t.csv')

def test_bad_folders(tmp_path):
    for bad in (tmp_path, tmp_path/'no'):
        with pytest.raises(BadInput, match='not a folder with .txt files|no file or folder'): corpus(bad)
    folder(tmp_path, a=PROSE)
    with pytest.raises(BadInput, match='from low to high'): corpus(tmp_path, years=(2000, 1900))
    with pytest.raises(BadInput, match='no file'): corpus(tmp_path, tmp_path/'t.csv')

def test_lengths():
    text = ' '.join(f'Sentence number {i} has six words.' for i in range(100)) # 600 tokens
    doc = Document('a', 'A', text)
    for n in (6, 7, 11, 12, 100, 599, 600):
        short = at_length(doc, n)
        assert text.startswith(short) and len(short.split()) == n//6*6 and short.endswith('.')
    assert at_length(doc, 601).reason == 'too_short' and at_length(doc, 5).reason == 'too_long'
    headed = Document('b', 'B', 'CHAPTER: I\n\nIt rained on the lamp.\n\nCHAPTER: II\n\nIt shone on the lamp.')
    assert at_length(headed, 10) == 'CHAPTER: I\n\nIt rained on the lamp.' # not "CHAPTER: II" with nothing below
    assert at_length(Document('c', 'C', 'CHAPTER: I\n\nIt rained on the lamp.'), 3).reason == 'too_long'

def test_statistics():
    table = statistics([Document('a', 'A', 'CHAPTER: I\n\nIt rained. It shone.\n\nIt set.'),
                        Document('b', 'B', 'One.')], (7, None))
    assert table.values.tolist() == [['a', '7', len('CHAPTER: I\n\nIt rained. It shone.'), 6, 3, 2, 1],
                                     ['a', 'full', 41, 8, 4, 3, 1], ['b', 'full', 4, 1, 1, 1, 0]]
