"A folder of one's own texts: copies count once, licences go, and both are said."
import pytest

from factlib.benchmarks.samples import quick_sweep, stories, texts_in
from factlib.core.records import BadInput
from factlib.runs.parameters import live_examples

STORY = ' '.join(stories()[0].text.split()[:400]) + '.'
WRAPPED = f'''Title: The Goose

*** START OF THE PROJECT GUTENBERG EBOOK THE GOOSE ***

The goose ran by. It was never late again.

*** END OF THE PROJECT GUTENBERG EBOOK THE GOOSE ***

A licence.
'''

def test_four_copies_are_one_text(tmp_path):
    for name in 'abcd': (tmp_path/f'{name}.txt').write_text(STORY)
    said = []
    texts = texts_in(tmp_path, said.append)
    assert [text.id for text in texts] == ['a']
    assert said == ['left out 3 (twice), e.g. b: It is the same text as a.']
    examples, refused = quick_sweep(texts=texts, lengths=(None,))
    assert {e.group for e in examples} == {'a'} and [r.id for r in refused] == ['a/full/17'] # nobody to exchange with

def test_the_licence_goes_and_is_said(tmp_path, capsys):
    (tmp_path/'goose.txt').write_text(WRAPPED)
    (tmp_path/'odd.txt').write_bytes(bytes(range(256))*9)
    (tmp_path/'none.txt').write_text(' \n')
    assert [text.text for text in texts_in(tmp_path)] == ['The goose ran by. It was never late again.']
    told = capsys.readouterr().out
    assert 'left out 1 (empty), e.g. none' in told and 'left out 1 (unreadable), e.g. odd' in told
    assert 'cleaned 1 (wrapping), e.g. goose' in told

def test_every_language_and_verse_are_taken(tmp_path):
    (tmp_path/'Songs.txt').write_text('Der Fuchs lief in den Wald.')
    assert len(texts_in(tmp_path, lambda line: None)) == 1

def test_a_folder_of_nothing(tmp_path):
    (tmp_path/'none.txt').write_text(' ')
    with pytest.raises(BadInput, match='can be used: left out 1'): texts_in(tmp_path)

def test_live_examples_take_copies_once(tmp_path, capsys):
    for name in 'abcd': (tmp_path/f'{name}.txt').write_text(STORY)
    asked = dict(dataset=str(tmp_path), n=0, seed=0, kinds='41', length=150)
    examples, _ = live_examples(asked)
    assert {e.group for e in examples} == {'a'} and 'It is the same text as a.' in capsys.readouterr().out
