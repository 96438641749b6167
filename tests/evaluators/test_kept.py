"Kept scores are those of now: every row counts, a changed text or evaluator is judged anew, and no score stays none."
import pandas as pd
import pytest
from factlib.core.records import Example
from factlib.evaluators import kept
from factlib.evaluators.kept import keep, scores

RACE = ('The hare mocked the tortoise. They ran. The hare lay down. He slept under the oak. '
        'The tortoise crawled past. She won.')
@pytest.fixture
def race(tmp_path):
    "A table with a score that no evaluator gave, so that it shows where a score is from; and its texts."
    texts = [Example('told', source=RACE, target='The hare mocked her. The tortoise crawled past.'),
             Example('one', source=RACE, target='The hare mocked.')] # has no order
    rows = keep(tmp_path/'race.csv', ['order_share'], texts)
    assert rows.value.isna().tolist() == [False, True]
    table = pd.read_csv(tmp_path/'race.csv', dtype=dict(signature=str, text=str))
    table['value'] = table.value.where(table.value.isna(), .25)
    table.to_csv(tmp_path/'race.csv', index=False)
    return tmp_path/'race.csv', texts

def test_what_is_the_same_is_kept_and_no_score_stays_none(race):
    path, texts = race
    value = scores(['order_share'], texts, path).set_index('example_id').value
    assert value['told'] == .25 and pd.isna(value['one'])

@pytest.mark.parametrize('change', [dict(target='The tortoise crawled past. The hare mocked her.'), dict(truth='lie'), dict(history=('Who?',))])
def test_a_changed_text_is_judged_anew(race, change):
    path, (told, _) = race
    other = Example(**told.to_dict() | change)
    assert scores(['order_share'], [other], path).value[0] in (0, 1)

def test_another_form_of_the_evaluator_is_judged_anew(race, monkeypatch):
    path, (told, _) = race
    real = kept.get
    def newer(name):
        evaluator = real(name)
        evaluator.signature += '|newer'
        return evaluator
    monkeypatch.setattr(kept, 'get', newer)
    assert scores(['order_share'], [told], path).value[0] == 1 # by hand: the sentences are in the source's order
