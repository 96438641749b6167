"What reads foreign texts takes time in proportion to their length, whatever stands in them."
import time

import pandas as pd, pytest

from factlib.benchmarks import gutenberg, narrative
from factlib.benchmarks import answer_writer, dialogue_files
from factlib.benchmarks.answer_writer import marks_for
from factlib.benchmarks.dialogue_files import example_index
from factlib.core import files
from factlib.core.records import BadInput
from factlib.evaluators.claims import asking, check
from factlib.evaluators.narrative import people, scenes
from factlib.evaluators.overlap import rouge
from factlib.perturb.controls import number_otherwise
from factlib.report import prose, tables
from factlib.text import details, edits, spans, words
from factlib.benchmarks import values
from factlib.trust import names, scales, verdicts

READERS = {
    'paragraphs': spans.paragraphs, 'sections': lambda text: spans.sections(text, 1000), 'chapters': spans.chapters,
    'units': spans.units, 'language_of': words.language_of, 'words': words.words, 'stems': words.stems,
    'content_words': words.content_words, 'normalise': words.normalise, 'number_values': details.number_values,
    'name_stems': details.name_stems, 'edits_between': lambda text: edits.edits_between(text, text[1:]),
    'break_sentences': gutenberg.break_sentences, 'drop_brackets': gutenberg.drop_brackets, 'clean': gutenberg.clean,
    'header_fields': gutenberg.header_fields, 'scenes_in': narrative.scenes_in,
    'relations_of': lambda text: narrative.relations_of('Ann', text), 'name_words': names.name_words,
    'plain_words': values.plain_words, 'read_scale_flag': lambda text: scales.read_scale_flag(text),
    'read_verdict': lambda text: verdicts.read_verdict(text, ('a', 'b')), 'parse_order': values.parse_order,
    'read_cells': lambda text: values.read_cells(pd.Series([text, '1'], dtype=object), 'x'),
    'example_index': example_index, 'marks_for': marks_for, 'measured': prose.measured, 'parse_table': tables.parse_table,
    'to_html': lambda text: tables.to_html(pd.DataFrame(dict(a=[text]))),
    'wrapper_fault': lambda text: asking.wrapper_fault(text, 'x'),
    'hidden_fault': lambda text: asking.hidden_fault(text, 'x'),
    'label': lambda text: [*asking._LABEL.finditer(text)], 'sorry': lambda text: [*asking._SORRY.finditer(text)],
    'index': lambda text: [*dialogue_files._INDEX.finditer(text)],
    'changed_words': lambda text: answer_writer.changed_words(text, text[len(text)//2:] + ' b ' + text),
    'standing_elsewhere': lambda text: answer_writer.standing_elsewhere(f'Foster {text}', text.replace('A', 'B')),
    'headings': scenes.headings, 'plain_name': people.plain_name, 'take_apart': people.take_apart,
    'read_evidence': check.read_evidence, 'plain': check.plain, 'spelled_out': check.spelled_out,
    'number_otherwise': number_otherwise, 'rouge': lambda text: rouge(text, 'a fox ran'),
    'printable': files.printable, 'parse_json': files.parse_json, 'escape_formula': files.escape_formula,
    'numbered_lines': files.numbered_lines, 'json_weight': lambda text: files.need_json_size(text*2)}

RUNS = (' ', '\n', '1', 'A', '-', '"', "'", '[', '<', '.', ',', '\u4e2d', '\\', ' \n', '1,', 'a.', 'a ', '](', '<a ', 'A ', 'the ',
        'here is ')

def seconds(read, text):
    "Processor time of a call; what is refused has been read."
    begun = time.process_time()
    try: read(text)
    except (BadInput, ValueError): pass
    return time.process_time() - begun

@pytest.mark.parametrize('name', READERS)
def test_no_run_of_characters_takes_the_square_of_its_length(name):
    """Sixteen times the text may take sixty-four times as long, or else less than a second; a square takes 256 times as
    long. Short texts come first, so that a failure ends soon."""
    read = READERS[name]
    for run in RUNS:
        short, long = (f'{(run*n)[:n]}x\n' for n in (1_000, 16_000))
        once = seconds(read, short)
        assert once < 1, run
        taken = seconds(read, long)
        assert taken < max(1, 64*once), (run, once, taken)

@pytest.mark.parametrize('run', ['\u4e2d', 'a', "'", '.', ' ', '[', ']', '{[', 'a.\n', '" '])
def test_a_long_line_of_gutenberg_is_cleaned_in_seconds(run):
    "Before, 25,000 characters without a blank took seconds, and a megabyte hours; so did brackets within brackets."
    text = (run*250_000)[:250_000]
    for own in (f'{text}x', text[:125_000] + ']'*125_000):
        assert seconds(gutenberg.drop_brackets, own) < 3 and seconds(gutenberg.break_sentences, own) < 3

def test_brackets_within_brackets():
    assert gutenberg.drop_brackets('a ' + '['*3000 + 'b' + ']'*3000 + ' c') == ('a c', 3000)
    assert gutenberg.drop_brackets('a [b {c} d] {e [f] g} h') == ('a h', 4)
    assert gutenberg.drop_brackets('a [' + 'b'*5001 + '] c [d]') == ('a [' + 'b'*5001 + '] c', 1)
    assert gutenberg.drop_brackets('a ] [ b } c') == ('a ] [ b } c', 0)
