"FaithDial and FADE from files of our own in their published formats, whole and broken."
import csv
import json
import random

import pytest

from factlib.benchmarks.base import load
from factlib.benchmarks.dialogue_files import FADE_COLUMNS, csv_rows
from factlib.core.records import BadInput, Example

# ---- FaithDial: two turns of the wizard's, the first one rewritten

def said(history, response, original=None, **more):
    return dict(history=history, speaker='Wizard', knowledge=f'Knowledge of {response}',
                response=response, original_response=original, BEGIN=['Entailment'], VRM=['Edification']) | more

FIRST = said(['What is a fox?'], 'A fox is a mammal.', 'I love foxes!', BEGIN=['Hallucination'], VRM=['Disclosure'])
SECOND = said(['What is a fox?', 'A fox is a mammal.', 'And a hen?'], 'A hen is a bird.')
THIRD = said([*SECOND['history'], 'A hen is a bird.', 'Thanks.'], 'You are welcome.', BEGIN=['Generic'], VRM=[])

def faithdial(folder, *dialogues, **options):
    (folder/'test.json').write_text(json.dumps([dict(utterances=d) if isinstance(d, list) else d for d in dialogues]),
                                    encoding='utf-8')
    return load('faithdial', path=folder/'test.json', **options)

def test_the_original_turns_stand_in_the_history_too(tmp_path):
    first, second, third = faithdial(tmp_path, [FIRST, SECOND, THIRD])
    assert [e.target for e in (first, second, third)] == ['I love foxes!', 'A hen is a bird.', 'You are welcome.']
    assert [e.truth for e in (first, second, third)] == ['unsupported', 'supported', None]
    assert [e.meta['turn'] for e in (first, second, third)] == [1, 3, 5]
    assert first.source == 'Knowledge of A fox is a mammal.'
    assert first.history == ({'speaker': 'user', 'text': 'What is a fox?'},)
    assert [(t['speaker'], t['text'], t.get('reference')) for t in third.history] == [
        ('user', 'What is a fox?', None), ('assistant', 'I love foxes!', 'Knowledge of A fox is a mammal.'),
        ('user', 'And a hen?', None),
        ('assistant', 'A hen is a bird.', 'Knowledge of A hen is a bird.'), ('user', 'Thanks.', None)]
    assert {e.group for e in (first, second, third)} == {'test-0000'} and first.meta['label'] == 'Hallucination'
    assert first.meta['vrm'] == 'Disclosure'

def test_each_earlier_example_stands_in_its_place(tmp_path):
    "So an evaluator that reads the history finds what another example's target says."
    for version in ('original', 'edited'):
        turns = faithdial(tmp_path, [FIRST, SECOND, THIRD], version=version).examples
        for a in turns:
            for b in turns:
                if a.meta['turn'] < b.meta['turn']:
                    assert b.history[a.meta['turn']] == dict(speaker='assistant', text=a.target, reference=a.source)

def test_edited_turns_are_supported_because_they_were_rewritten(tmp_path):
    b = faithdial(tmp_path, [FIRST, SECOND, THIRD], version='edited')
    first, second, third = b
    assert [(e.target, e.truth, e.meta['label']) for e in b] == [('A fox is a mammal.', 'supported', 'edited'),
                                                                 ('A hen is a bird.', 'supported', 'Entailment'),
                                                                 ('You are welcome.', None, 'Generic')]
    assert second.history[1]['text'] == 'A fox is a mammal.' and first.meta['annotated'] == ['Hallucination']
    assert 'nobody labelled' in b.card and '3 of 3 pairs' in b.card
    with pytest.raises(BadInput, match='it can be original, edited'): faithdial(tmp_path, [FIRST], version='both')

def test_an_empty_original_means_unedited(tmp_path):
    assert [e.target for e in faithdial(tmp_path, [SECOND | dict(original_response='')])] == ['A hen is a bird.']

def test_missing_labels_are_no_truth(tmp_path):
    b = faithdial(tmp_path, [{k: v for k, v in SECOND.items() if k not in ('BEGIN', 'VRM', 'speaker')}])
    assert [e.truth for e in b] == [None] and '1 without truth (1 unlabelled)' in b.card and b.truth_kind == 'none'

def test_an_earlier_turn_that_is_not_where_it_should_be_stays_as_the_file_has_it(tmp_path):
    b = faithdial(tmp_path, [FIRST, SECOND | dict(history=['What is a fox?', 'A dog, I think.', 'And a hen?'])])
    assert b.examples[1].history[1] == dict(speaker='assistant', text='A dog, I think.') and '0 of 1 pairs' in b.card

@pytest.mark.parametrize('wrong, reason', [
    ([], 'it must be an object, not list'), (FIRST | dict(speaker='Apprentice'), "its speaker is 'Apprentice'"),
    (FIRST | dict(speaker=3), 'its `speaker` is no text but a int'),
    (FIRST | dict(history='Hi.'), 'its `history` must be a list of texts'),
    (FIRST | dict(history=[3]), 'its `history` must be a list of texts'),
    (FIRST | dict(knowledge=None), 'its `knowledge` is missing'),
    (FIRST | dict(response=None), 'its `response` is missing'),
    (FIRST | dict(original_response=['x']), 'its `original_response` is no text but a list'),
    (FIRST | dict(BEGIN='Entailment'), 'its `BEGIN` must be a list of texts'),
    (FIRST | dict(BEGIN=['Perhaps']), "the label is 'Perhaps'"),
    (SECOND, 'an utterance before it stands at the same place')])
def test_a_wrong_utterance_is_refused_and_the_rest_is_read(tmp_path, wrong, reason):
    b = faithdial(tmp_path, [SECOND, wrong, THIRD])
    assert [e.target for e in b] == ['A hen is a bird.', 'You are welcome.'] and len(b.refused) == 1
    assert b.refused[0].reason.startswith('Dialogue 0, utterances[1]: ') and reason in b.refused[0].reason
    assert b.refused[0].reason.endswith('.')

def test_wrong_dialogues_and_files(tmp_path):
    b = faithdial(tmp_path, [FIRST], {}, [], 3, dict(utterances='x'))
    assert len(b) == 1
    assert [r.reason.split(':')[0] for r in b.refused] == ['Dialogue 1', 'Dialogue 2', 'Dialogue 3', 'Dialogue 4']
    assert '`refused`: 4.' in b.card
    for text, said in (('', 'no JSON'), ('{', 'no JSON'), ('[' * 100_000, 'no JSON'), ('{}', 'must hold a list'),
                       ('[]', 'must hold a list'), ('[1]', 'no turn that can be used. Dialogue 0')):
        (tmp_path/'bad.json').write_text(text)
        with pytest.raises(BadInput, match=said) as e: load('faithdial', path=tmp_path/'bad.json')
        assert '\n' not in str(e.value)
    for path in (None, tmp_path/'none.json', tmp_path):
        with pytest.raises(BadInput, match='needs `path`'): load('faithdial', path=path)
    with pytest.raises(BadInput, match='has no splits'): load('faithdial', split='test', path=tmp_path/'test.json')

# ---- FADE: four turns of a dialogue and its alternatives

def cell(**more):
    row = dict(history=repr(['Who made Up?']), response='Pixar made it .',
               speaker='assistant',
               knowledge_base=repr(dict(paths=[['Up', 'made_by', 'Pixar']], render='Up is made by Pixar')),
               dialogue_id='7',
               corrupted_response='lego made it .', hallucination_tags=repr(['U-HALLUC', 'O', 'O', 'O']),
               corrupt_history='')
    return row | {k: v if isinstance(v, str) else repr(v) for k, v in more.items()}

LATER = dict(history=['Who made Up?', 'Pixar made it .', 'When ?'], response='In 2009 .',
             corrupted_response='in 2009 .', hallucination_tags=['O', 'O', 'O'],
             knowledge_base=dict(render='Up was released 2009'))

def fade(folder, *rows, header=('', 'Unnamed: 0', *FADE_COLUMNS, 'corrupt_history')):
    with open(folder/'fade.csv', 'w', newline='', encoding='utf-8') as file:
        writer = csv.DictWriter(file, header)
        writer.writeheader()
        writer.writerows(rows)
    return load('fade', path=folder/'fade.csv')

def test_exchanged_words_make_a_turn_unsupported(tmp_path):
    b = fade(tmp_path, cell(), cell(corrupted_response='pixar made it .', hallucination_tags=['O']*4),
             cell(**LATER), cell(speaker='user', dialogue_id='8', history=['Hi .', 'Hello .']))
    assert [e.truth for e in b] == ['unsupported', 'supported', 'supported', 'unsupported']
    assert [e.id for e in b] == ['7/1', '7/2', '7/3', '8/4'] and [e.meta['turn'] for e in b] == [1, 1, 3, 2]
    first, _, later, users = b
    assert (first.target, first.source, first.group,
            first.meta['response']) == ('lego made it .', 'Up is made by Pixar', '7', 'Pixar made it .')
    assert later.history == (dict(speaker='user', text='Who made Up?'),
                             dict(speaker='assistant', text='Pixar made it .', reference='Up is made by Pixar'),
                             dict(speaker='user', text='When ?'))
    assert [t['speaker'] for t in users.history] == ['user', 'assistant'] and '1 turns are the user\'s' in b.card
    assert 'Asks for `factual_support`' in b.card

def test_a_users_earlier_turn_gets_no_reference(tmp_path):
    _, later = fade(tmp_path, cell(speaker='user', history=['Hello !'], response='Who made Up ?'),
                    cell(history=['Hello !', 'Who made Up ?']))
    assert all('reference' not in turn for turn in later.history)

@pytest.mark.parametrize('wrong, reason', [
    (dict(history='[open("x")]'), 'its `history` is no Python literal'),
    (dict(history='nan'), 'no Python literal'), (dict(history='3'), 'its `history` is no list but a int'),
    (dict(history=[3]), 'its `history` must be a list of texts'),
    (dict(history='['*50_000), 'no Python literal'), (dict(history='-'*50_000 + '1'), 'no Python literal'),
    (dict(history='{[]: 1}'), 'no Python literal'), (dict(history='"\x00"'), 'no Python literal'),
    (dict(knowledge_base=['x']), 'its `knowledge_base` is no dict'),
    (dict(knowledge_base={}), 'its `render` is missing'),
    (dict(knowledge_base=dict(render=3)), 'its `render` is no text'),
    (dict(hallucination_tags=''), 'its `hallucination_tags` is no Python literal'),
    (dict(hallucination_tags=[0]), 'must be a list of texts'),
    (dict(speaker='robot'), "its speaker is 'robot'"), (dict(dialogue_id=' '), 'it has no `dialogue_id`')])
def test_a_wrong_row_is_refused_with_its_number(tmp_path, wrong, reason):
    b = fade(tmp_path, cell(), cell(**wrong), cell(**LATER))
    assert [e.id for e in b] == ['7/1', '7/3'] and len(b.refused) == 1 and b.refused[0].reason.startswith('Row 2: ')
    assert reason in b.refused[0].reason and len(b.refused[0].reason) < 200

def test_a_broken_csv(tmp_path):
    fade(tmp_path, cell())
    whole = (tmp_path/'fade.csv').read_text(encoding='utf-8')
    (tmp_path/'fade.csv').write_text(whole + '1,2\n' + 'x"y,"z"z\n' + whole.split('\n', 1)[1] + '5,"', encoding='utf-8')
    b = load('fade', path=tmp_path/'fade.csv')
    assert [e.id for e in b] == ['7/1', '7/4'] and [r.id for r in b.refused] == ['row-2', 'row-3', 'row-5']
    assert 'it has 2 cells, and the header 10' in b.refused[0].reason
    for text, said in (('', 'lacks the column'), ('a,b\n1,2', "lacks the column 'history'; it has a, b"),
                       (','.join(FADE_COLUMNS), 'It is empty'), ('"a', 'The header of')):
        (tmp_path/'fade.csv').write_text(text)
        with pytest.raises(BadInput, match=said): load('fade', path=tmp_path/'fade.csv')
    (tmp_path/'fade.csv').write_bytes(b'\xff')
    with pytest.raises(BadInput, match='UTF-8'): load('fade', path=tmp_path/'fade.csv')

def test_long_cells_and_strange_line_ends(tmp_path):
    long = 'x' * 300_000
    limit = csv.field_size_limit()
    assert [e.target for e in fade(tmp_path, cell(corrupted_response=long),
                                   cell(corrupted_response='a\u2028b\x85c'))] == [long, 'a\u2028b\x85c']
    assert csv.field_size_limit() == limit
    (tmp_path/'x.csv').write_bytes(b'\xef\xbb\xbfa ,b\r\n1,"2\r\n3"\r\n')
    assert csv_rows(tmp_path/'x.csv', ['a', 'b']) == [(1, dict(a='1', b='2\r\n3'))]

# ---- both, mangled

def mangled(rng, text):
    for _ in range(rng.randint(1, 5)):
        i = rng.randrange(len(text))
        text = text[:i] + rng.choice(['', text[i:i + 6]*2, rng.choice('{}[]"\',0\\nul\x00é'),
                                      '\n', ',']) + text[i + rng.randint(0, 8):]
    return text

@pytest.mark.filterwarnings('ignore') # of Python's parser about what a literal holds
@pytest.mark.parametrize('name', ['faithdial', 'fade'])
def test_mangled_files_are_read_or_refused(tmp_path, name):
    if name == 'fade': fade(tmp_path, cell(), cell(**LATER), cell(dialogue_id='8'))
    else: faithdial(tmp_path, [FIRST, SECOND, THIRD], [SECOND])
    path = tmp_path/('fade.csv' if name == 'fade' else 'test.json')
    rng, whole, read = random.Random(4), path.read_text(encoding='utf-8'), 0
    for _ in range(300):
        path.write_text(mangled(rng, whole), encoding='utf-8')
        try: b = load(name, path=path)
        except BadInput as e:
            assert '\n' not in str(e)
            continue
        read += 1
        assert len({e.id for e in b}) == len(b)
        for e in b:
            assert isinstance(e, Example) and len(e.history) == e.meta['turn']
            assert e.truth in (None, 'supported', 'unsupported') and all(isinstance(t['text'], str) for t in e.history)
    assert read > 30 # most of what breaks JSON breaks all of it
