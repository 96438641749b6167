"Words about two texts, read as verdicts: as a whole column or not at all; both orders put together."
import numpy as np
import pandas as pd
import pytest

from factlib.core.records import BadInput
from factlib.trust.verdicts import Comparisons, match_orders, merge_orders, put_back, read_verdict, verdict_column

NONE = pd.DataFrame()

@pytest.mark.parametrize('labels, verdicts', [
    (['A', 'B', 'tie'], [1, 0, .5]), (['a', 'b', 'a'], [1, 0, 1]),
    (['A>B', 'B>A', 'A=B', 'A>>B', 'B>>A', 'A<B', 'A<<B', 'A ~ B'], [1, 0, .5, 1, 0, 0, 0, .5]),
    (['[[A]]', '[[B]]', '[[C]]'], [1, 0, .5]), (['[[A>>B]]', '[[B>A]]', '[[A=B]]'], [1, 0, .5]),
    (['model_a', 'model_b', 'tie', 'tie (bothbad)'], [1, 0, .5, .5]),
    (['first', 'second', 'both'], [1, 0, .5]), (['left', 'right', 'neither'], [1, 0, .5]),
    (['answer_a', 'answer_b', 'both bad'], [1, 0, .5]), (['Assistant A', 'Assistant B', 'No preference'], [1, 0, .5]),
    (['Response 1', 'Response 2', 'Equal'], [1, 0, .5]), (['A is better', 'B is slightly better', 'draw'], [1, 0, .5]),
    (['modelA', 'modelB', 'same'], [1, 0, .5]), (['**A**', '"B"', 'Tie.'], [1, 0, .5]),
    (['A', None, 'B', '', 'N/A', float('nan'), 'error'], [1, np.nan, 0, np.nan, np.nan, np.nan, np.nan])])
def test_words_for_two_texts(labels, verdicts):
    np.testing.assert_array_equal(verdict_column(labels).verdicts, verdicts)

@pytest.mark.parametrize('labels', [
    ['good', 'bad'], ['A', 'B', 'C'], ['[[C]]', '[[C]]'], ['A', 'B', 'D'], ['yes', 'no'], ['positive', 'neutral'],
    [1, 2, 0], [0, 1, 1], ['A', 'B', 'A is worse'], ['tie', 'tie'], ['A>A', 'B>A'], ['A>B>C', 'B>A'], ['not A', 'B']])
def test_what_names_no_winner_is_not_guessed(labels):
    found = verdict_column(labels)
    assert found.verdicts is None and found.said

@pytest.mark.parametrize('numbers, verdicts', [
    ([1, 2, 0], [1, 0, .5]), ([1., 2., 3.], [1, 0, .5]), (['1', '2', 'tie'], [1, 0, .5]), ([-1, 0, 1], [0, .5, 1]),
    ([0, .5, 1], [0, .5, 1]), ([1, 2, 1.5], [1, 0, .5]), (['−1', '1', '0'], [0, 1, .5])])
def test_numbers_are_verdicts_only_where_the_caller_says_so(numbers, verdicts):
    assert verdict_column(numbers).verdicts is None
    assert verdict_column(numbers, is_verdict=True).verdicts.tolist() == verdicts

def test_zero_and_one_alone_are_asked_about_unless_the_columns_are_numbered_so():
    refused = verdict_column([1, 0, 1], is_verdict=True, name='label')
    assert refused.verdicts is None and 'label' in refused.said and 'first' in refused.said
    assert verdict_column([1, 0], None, None, 'response_0', 'response_1', is_verdict=True).verdicts.tolist() == [0, 1]

def test_the_name_of_the_winner_wherever_it_stands():
    first, second = ['mint', 'sage', 'mint', 'sage'], ['sage', 'mint', 'sage', 'mint']
    found = verdict_column(['SAGE', 'Sage', 'mint wins', 'tie'], first, second, 'model_name', 'baseline_name', 'winner')
    assert found.verdicts.tolist() == [0, 1, 1, .5] and "'Sage'" in found.said and not found.by_place
    found = verdict_column(['gpt4', 'LLaMA 3'], ['openai/GPT-4', 'GPT-4'], ['llama-3', 'Llama-3'])
    assert found.verdicts.tolist() == [1, 0]
    assert read_verdict('mint > sage', 'sage', 'mint')[0] == 0 # compared by their names

def test_the_name_of_the_column_or_the_part_in_which_it_differs():
    columns = ('model_name', 'baseline_name')
    assert verdict_column(['model', 'baseline', 'tie'], None, None, *columns).verdicts.tolist() == [1, 0, .5]
    assert verdict_column(['win', 'loss', 'tie'], None, None, *columns).verdicts.tolist() == [1, 0, .5]
    assert verdict_column(['win', 'loss', 'tie'], None, None, 'text_a', 'text_b').verdicts is None # whose win?
    # the column that the caller names first holds the first text, whatever it is called
    assert verdict_column(['b', 'a'], None, None, 'response_b', 'response_a').verdicts.tolist() == [1, 0]

def test_a_word_that_names_one_text_as_a_system_and_the_other_as_a_place_is_not_understood():
    assert verdict_column(['A', 'B'], ['B', 'B'], ['A', 'A']).verdicts is None
    assert verdict_column(['A', 'B'], ['A', 'A'], ['B', 'B']).verdicts.tolist() == [1, 0]
    assert verdict_column(['mint'], ['mint'], ['mint']).verdicts is None # a system against itself

def test_the_convention_is_said():
    found = verdict_column(['A', 'B', 'tie'], None, None, 'model_a', 'model_b', 'judge')
    assert found.said == ("Verdicts of 'judge': 'A' = the first text (model_a), 'B' = the second (model_b), "
                          "'tie' = a tie.")
    assert "2 cells ('N/A') hold no verdict" in verdict_column(['A', 'B', 'N/A', 'N/A']).said
    assert "'maybe'" in verdict_column(['A', 'maybe'], name='judge').said

def test_both_orders_in_two_columns():
    original, swapped = np.array([1, 1, 0, .5, np.nan, 1, np.nan]), np.array([1, 0, 0, 0, 0, np.nan, np.nan])
    np.testing.assert_array_equal(merge_orders(original, swapped), [1, .5, 0, .5, 0, 1, np.nan])

def test_verdicts_of_the_other_order_speak_of_places_or_of_texts_and_people_show_which():
    people = np.array([1, 0, 1, 1, 0, 0, 1, 0]*3)
    by_place = verdict_column(np.where(people == 1, 'B', 'A')) # the first place holds the file's second text
    found = put_back(by_place, people)
    assert found.sure and found.verdicts.tolist() == people.tolist()
    by_text = put_back(verdict_column(np.where(people == 1, 'A', 'B')), people)
    assert by_text.sure and by_text.verdicts.tolist() == people.tolist() and 'texts' in by_text.said
    stuck = put_back(verdict_column(['A']*24), people) # always the first place: people can't show what is meant
    assert not stuck.sure and stuck.verdicts.tolist() == [0]*24
    named = put_back(verdict_column(['mint', 'sage'], ['mint']*2, ['sage']*2))
    assert named.sure and named.verdicts.tolist() == [1, 0]
    with pytest.raises(BadInput, match='maybe'): put_back(verdict_column(['maybe']))

@pytest.mark.parametrize('exchanged', [True, False])
def test_both_orders_in_two_rows(exchanged):
    item = ['q1', 'q2', 'q1', 'q2', 'q3']
    first = ['x', 'x', 'y', 'y', 'x'] if exchanged else ['x']*5
    second = ['y', 'y', 'x', 'x', 'y'] if exchanged else ['y']*5
    found = match_orders(item, first, second, None if exchanged else ['AB', 'AB', 'BA', 'BA', 'AB'])
    assert found.rows.tolist() == [0, 1, 4] and found.other.tolist() == [2, 3, -1] and found.exchanged == exchanged
    verdicts, swapped = found.together(np.array([1, 1, 1, 0, 0.]))
    assert verdicts.tolist() == [1, 1, 0]
    np.testing.assert_array_equal(swapped, [0, 1, np.nan] if exchanged else [1, 0, np.nan])

def test_rows_in_one_order_stay_and_repeats_are_not_orders():
    assert match_orders(['q1', 'q1', 'q2'], ['x', 'x', 'x'], ['y', 'y', 'y']) is None
    assert match_orders(['q1', 'q2'], ['x', 'y'], ['y', 'x']) is None
    again = match_orders(['q1']*3, ['x', 'y', 'x'], ['y', 'x', 'y']) # twice in one order, once in the other
    assert again.rows.tolist() == [0, 2] and again.other.tolist() == [1, -1]

def test_a_record_holds_verdicts_only():
    frame = pd.DataFrame(dict(item=['a', 'b'], row=[1, 2], language=['en', 'de']))
    def made(judges, swapped=None): return Comparisons('x', frame, judges, {}, swapped or {}, False, '', NONE, NONE, ())
    assert made(dict(j=np.array([1., np.nan]))).strata == ('language',)
    for wrong in (dict(j=np.array([1.])), dict(j=np.array([2., 0]))):
        with pytest.raises(BadInput, match="'j'"): made(wrong)
    with pytest.raises(BadInput, match="'k'"): made({}, dict(k=np.array([1., 0])))

def test_many_rows_with_many_systems_are_read_at_once():
    n = 20_000
    rng = np.random.default_rng(0)
    names = np.array([f'system-{i}' for i in range(12)])
    pairs = np.array([rng.permutation(12)[:2] for _ in range(n)])
    wins = rng.integers(0, 2, n)
    found = verdict_column(names[pairs[np.arange(n), wins]], *names[pairs].T)
    assert found.verdicts.tolist() == (1 - wins).tolist()
