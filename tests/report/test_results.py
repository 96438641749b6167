"What opens a notebook, and what is said of evaluators that gave nothing."
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from factlib.core.records import BadInput, Example, Judgement, Usage
from factlib.evaluators.base import judgements_frame
from factlib.report.figures.style import figure_bytes
from factlib.report.results import Experiment, NotebookDisplay, ResultFolder, ScoreCounts
from factlib.report.tables import read_table

class Slot:
    "A place in a notebook."
    def update(self, thing): self.thing = thing

def displayed(folder, findings, figures=()):
    "What stands in the two places of the answer."
    display = NotebookDisplay('fox', Path('outputs/fox'))
    display.slots = [Slot(), Slot()]
    display.answer(findings, list(figures), folder)
    return [getattr(slot, 'thing', None) for slot in display.slots]

def finding(text, lead=0): return dict(text=text, cell='', lead=lead)

@pytest.mark.parametrize('leads, said', [((0, 0, 0, 0), 'a b c'), ((1, 0, 3, 0), 'c a'), ((1, 2, 3, 4), 'd c b')])
def test_what_leads_opens_the_notebook_else_the_first(leads, said, tmp_path):
    answer, picture = displayed(tmp_path, [finding(text, lead) for text, lead in zip('abcd', leads)])
    assert answer.markdown == f'**Answer.** {said}' and picture is None

def test_what_is_measured_anew_is_not_kept_in_the_notebook(tmp_path):
    "The file and the page have it; the notebook says where it is."
    run = Experiment('demo', 'A demonstration', 'How?', dict(out=f'{tmp_path}/out', seed=0, n=0))
    frame = pd.DataFrame(dict(evaluator=['length'], requests=[2.], seconds=[1.25]))
    html = run.table(frame, 'cost', 'What it costs.', cell='c', digits=dict(requests=0, seconds=4),
                     columns=dict(evaluator='who', requests='requests', seconds='time'),
                     measured=('seconds',))._repr_html_()
    assert '1.25' not in html and '>2<' in html and 'Each run measures anew, so see tables/cost.csv: seconds.' in html
    assert 'Each run' not in run.table(frame, 'all', 'All.', cell='c')._repr_html_()
    run.finish()
    assert read_table(tmp_path/'out/tables/cost.csv').seconds.tolist() == [1.25]
    assert '1.2500' in (tmp_path/'out/index.html').read_text(encoding='utf-8')

def test_nothing_found(tmp_path):
    assert displayed(tmp_path, [])[0].markdown == '**Answer.** Nothing was found: see the cells below.'

@pytest.mark.parametrize('high, width', [(4, 700), (10, 364)])
def test_a_tall_picture_is_made_narrower(high, width, tmp_path):
    "364: 700 by 1,000 pixels, made 520 high."
    (tmp_path/'low.png').write_bytes(b'no picture')
    (tmp_path/'fig.png').write_bytes(figure_bytes(Figure(figsize=(7, high)), 'png'))
    figures = [dict(file='low.png', lead=0), dict(file='fig.png', lead=1)]
    assert displayed(tmp_path, [], figures)[1].width == width

def test_who_was_asked_in_vain_for_which_reason():
    counts = ScoreCounts()
    for name, scored, why in [('a', 0, 'transport in 2 of 2.'), ('b', 0, 'refused in 2 of 2.'), ('c', 1, ''),
                              ('d', 0, 'transport in 2 of 2.'), ('e', 0, 'inapplicable in 2 of 2, each time: .')]:
        counts.add(name, 2, scored, 's', why=why)
    assert [name for name in 'abcdef' if counts.is_silent(name)] == ['a', 'b', 'd']
    assert counts.same_silence('d') == ['a', 'd'] and counts.same_silence('b') == ['b']
    assert counts.silence(['a', 'd']) == 'a and d gave no score to any of 2 examples: transport in 2 of 2.'
    with pytest.raises(BadInput, match='named twice'): counts.add('a', 1, 1, 's')

def test_a_file_is_written_once_unless_it_grows(tmp_path):
    results = ResultFolder(tmp_path/'fox')
    results.write('a.txt', 'one')
    results.write('b.txt', 'two')
    results.write('a.txt', 'three', anew=True)
    assert results.files == ['b.txt', 'a.txt'] and (results.path/'a.txt').read_text() == 'three'
    with pytest.raises(BadInput, match='is there already'): results.write('b.txt', 'four')
    assert (results.path/'b.txt').read_text() == 'two'
    results.part.give_up()

@pytest.mark.parametrize('usage, written', [(Usage(), False), (Usage(requests=1), True), (Usage(seconds=60.), True)])
def test_judgements_that_cost_something_are_written_at_once(usage, written, tmp_path):
    run = Experiment('x', 'X', 'Why?', dict(out=str(tmp_path/'x')))
    fox = [Example('a', target='The fox ran.')]
    run.judgements(judgements_frame([Judgement('a', 'length', value=3., usage=usage)], fox), fox, 'mine')
    both = ['examples.parquet', 'judgements.parquet']
    assert sorted(run.files) == (both if written else [])
    run.finish()
    assert {*both} <= set(run.files)

def test_texts_of_a_list_that_has_grown_are_kept(tmp_path):
    run, texts = Experiment('x', 'X', 'Why?', dict(out=str(tmp_path/'x'))), [Example('a', target='The fox ran.')]
    run.texts.add(texts, 'mine', 'main', seed=0, n=0)
    texts.append(Example('b', target='The hen slept.'))
    assert run.texts.add(texts, 'mine', 'main', seed=0, n=0) and len(run.texts.to_frame()) == 2
    assert not run.texts.add(texts, 'mine', 'main', seed=0, n=0)
