"Examples as people's files give them: histories that are texts, names that no file can hold."
import json

import pandas as pd
import pytest

from factlib.benchmarks.base import load
from factlib.core.records import BadInput, Example

@pytest.mark.parametrize('field', ['id', 'group', 'variant', 'level'])
def test_half_a_character_in_a_name_is_refused_at_once(field, tmp_path):
    "Before anything is asked: no table could be written at the end."
    fields = dict(id='a', target='x') | {field: 'a\ud800b'}
    with pytest.raises(BadInput, match=f'{field} has half a character'): Example(**fields)
    (tmp_path/'b.jsonl').write_text(json.dumps(fields))
    with pytest.raises(BadInput, match='half a character'): load(str(tmp_path/'b.jsonl'))
    assert Example(**fields | {field: 'a\U0001f600b'})

@pytest.mark.parametrize('text', ['a\ud800b'])
def test_half_a_character_in_a_text_is_no_reason_to_refuse(text):
    assert Example(id='a', target=text, source=text, meta=dict(x=text)).target == text

@pytest.mark.parametrize('given, turns', [('["Hello.", "Who is it?"]', ('Hello.', 'Who is it?')),
                                          ('[{"role": "user", "content": "Hi"}]', (dict(role='user', content='Hi'),)),
                                          ('[]', ()), ('', ()), (['a'], ('a',)), ((), ())])
def test_a_history_is_a_list_or_the_text_of_one(given, turns):
    assert Example(id='a', target='x', history=given).history == turns

@pytest.mark.parametrize('given', ['Hello.', "['Hello.']", '{"a": 1}',
                                   '"Hello."', '5', 'null', '[' * 100_000, '[1', 5, None, dict(a=1)])
def test_any_other_history_is_refused(given):
    with pytest.raises(BadInput, match='list of turns'): Example(id='a', target='x', history=given)

def test_a_csv_file_with_histories(tmp_path):
    pd.DataFrame(dict(id=['a', 'b', 'c'], target=['x']*3,
                      history=['["Hello."]', '', '[]'])).to_csv(tmp_path/'b.csv', index=False)
    assert [e.history for e in load(str(tmp_path/'b.csv')).examples] == [('Hello.',), (), ()]
    pd.DataFrame(dict(id=['a'], target=['x'], history=['Hello.'])).to_csv(tmp_path/'c.csv', index=False)
    with pytest.raises(BadInput, match='JSON list'): load(str(tmp_path/'c.csv'))
