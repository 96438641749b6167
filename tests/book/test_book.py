"""The chapters of the book run on the recordings, so that every number in them holds; and they don't run if one is
changed, turned round, or has no check."""
import json
import os
from contextlib import chdir
from pathlib import Path

import nbformat
import pytest
from command import run_cell
from execnb.shell import CaptureShell
from factlib.core.records import BadInput
from factlib.report.prose import ProseError, measured

NBS = Path(__file__).resolve().parent.parent.parent/'nbs'
CHAPTERS = sorted((NBS/'book').glob('*.ipynb'))
NAMES = [p.stem for p in CHAPTERS]
with_data = pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'), reason='needs real data: set FACTLIB_DATA')

def run(path):
    "Run a chapter in its folder, in a shell of its own within this process; nothing is written."
    notebook, shell = nbformat.read(path, as_version=4), CaptureShell()
    try:
        with chdir(path.parent):
            for cell in notebook.cells:
                raised = run_cell(shell, cell) if cell.cell_type == 'code' else None
                if raised is not None: raise raised
    finally: shell.close()
    return notebook

def source(path, kind):
    "The cells of one kind."
    cells = json.loads(path.read_text(encoding='utf-8'))['cells']
    return [''.join(c['source']) for c in cells if c['cell_type'] == kind]

def test_there_are_chapters(): assert CHAPTERS

@pytest.mark.parametrize('chapter', CHAPTERS, ids=NAMES)
def test_a_chapter_is_short_and_closes(chapter):
    "It opens with a question, can be read in ten minutes, and ends by looking for numbers without a check."
    prose, code = source(chapter, 'markdown'), source(chapter, 'code')
    assert '?' in prose[0] and code[-1].strip().endswith('prose.close()')
    assert sum(len(text.split()) for text in prose) < 2000

@with_data
@pytest.mark.parametrize('chapter', CHAPTERS, ids=NAMES)
def test_every_number_holds(chapter):
    last = [c for c in run(chapter).cells if c.cell_type == 'code'][-1]
    assert 'no number is left unchecked' in ''.join(last.outputs[-1].data['text/plain'])

LENGTH = 'long_against_short' # the chapter that runs the fastest
PLANTED = [(LENGTH, 'in 77.8 of 100 pairs', 'in 76.8 of 100 pairs', '77.8 of 100 pairs'), # another number
           (LENGTH, 'which is not shown (interval', 'which is shown (interval', 'is not in the text'), # another direction
           (LENGTH, 'How sure is that?', 'How sure is that after 3 hours?', 'after 3 hours')] # one without a check

@with_data
@pytest.mark.slow
@pytest.mark.parametrize('chapter,old,new,told', PLANTED, ids=['number', 'direction', 'unchecked'])
def test_a_planted_fault_stops_the_chapter(tmp_path, chapter, old, new, told):
    notebook = nbformat.read(NBS/'book'/f'{chapter}.ipynb', as_version=4)
    (cell,) = [c for c in notebook.cells if c.cell_type == 'markdown' and old in c.source]
    cell.source = cell.source.replace(old, new)
    nbformat.write(notebook, tmp_path/f'{chapter}.ipynb')
    with pytest.raises(ProseError) as failed: run(tmp_path/f'{chapter}.ipynb')
    assert told in str(failed.value)

MISSING = dict(does_a_memory_help='judgememo', can_it_see_order='storysumm', facts_in_a_conversation='begin')

@pytest.mark.parametrize('chapter,data', MISSING.items(), ids=list(MISSING))
def test_without_data_it_says_what_is_missing(chapter, data, monkeypatch, tmp_path):
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path))
    with pytest.raises(BadInput, match=data): run(NBS/'book'/f'{chapter}.ipynb')

def test_the_answer_in_readme_is_the_first_chapters():
    "Each number in README's answer stands in the answer of the chapter, which is checked."
    cells = {c['id']: ''.join(c['source']) for path in (NBS/'index.ipynb', NBS/'book'/'which_judge_for_long_texts.ipynb')
             for c in json.loads(path.read_text(encoding='utf-8'))['cells']}
    shown, checked = ([n.value for n in measured(cells[name])] for name in ('index-answer', 'which-answer'))
    assert len(shown) >= 4 and set(shown) <= set(checked)
