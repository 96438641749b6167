"BEGIN and the audit: groups, truths, histories and cards, on rows of our own and, where they are, on the real ones."
import os
import random
from collections import Counter

import pandas as pd
import pytest

from factlib.benchmarks.base import BENCHMARKS, load
from factlib.benchmarks.dialogue import DIALOGUE_ASKS, alternating, joined, plain, taxonomy_truth
from factlib.core.records import BadInput, Example

real = pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'), reason='FACTLIB_DATA is not set')
TABLES = ['begin_wow', 'begin_cmu', 'begin_tc', 'faithdial_audit']

def test_all_sets_are_registered_and_say_what_they_ask_for():
    assert set(DIALOGUE_ASKS) <= set(BENCHMARKS) and set(DIALOGUE_ASKS.values()) == {'support', 'factual_support'}
    assert all(BENCHMARKS[name].good == 'supported' and BENCHMARKS[name].about for name in DIALOGUE_ASKS)
    assert {name for name in DIALOGUE_ASKS if BENCHMARKS[name].needs} == set(TABLES)

# ---- groups

def components(rows):
    "The same groups the slow way: whoever shares a text gets the smaller number, until nothing changes."
    numbers = list(range(len(rows)))
    share = lambda a, b: any(plain(x) and plain(x) == plain(y) for x, y in zip(a, b))
    while True:
        new = [min(numbers[j] for j in range(len(rows)) if i == j or share(rows[i], rows[j])) for i in range(len(rows))]
        if new == numbers: return numbers
        numbers = new

def partition(names):
    "Which belong together, whatever the groups are called."
    groups = {}
    for i, name in enumerate(names): groups.setdefault(name, []).append(i)
    return sorted(groups.values())

def test_groups_are_connected_components_whatever_the_order():
    rng = random.Random(5)
    for _ in range(60):
        rows = [tuple(rng.choice(['', '?!', *(f'{kind} {i}' for i in range(9))]) for kind in ('m', 'k'))
                for _ in range(rng.randint(0, 14))]
        names = joined(rows)
        assert partition(names) == partition(components(rows))
        order = rng.sample(range(len(rows)), len(rows))
        shuffled = joined([rows[i] for i in order])
        # names don't depend on the order
        assert all(shuffled[k] == names[i] for k, i in enumerate(order) if any(map(plain, rows[i])))
    assert joined([('a', 'b')]) == joined([('A!', 'b'), ('c', 'd')])[:1] # nor on other groups

def test_a_message_is_no_reference(): assert len(set(joined([('fox', 'hen'), ('hen', 'fox')]))) == 2

def test_a_long_chain_is_one_group():
    # each shares its message with one neighbour and its reference with the other
    chain = [(f'm{i//2}', f'k{(i + 1)//2}') for i in range(20_000)]
    assert len(set(joined(chain))) == 1 and len(set(joined(chain[:7] + chain[9:]))) == 2

# ---- truths

@pytest.mark.parametrize('label', ['entailed', '', 'hallucination entailment', 'True'])
def test_an_unknown_label_is_said(label):
    with pytest.raises(BadInput, match='it can be hallucination, entailment, generic, uncooperative'):
        taxonomy_truth([label])

def test_truths_of_the_taxonomy():
    assert taxonomy_truth(['Hallucination', 'Entailment']) == taxonomy_truth(['partial hallucination']) == 'unsupported'
    assert taxonomy_truth(['Entailment', 'Generic']) == 'supported'
    assert taxonomy_truth(['Generic', 'Uncooperative']) is None

# ---- rows of our own

ROW = dict(item_id='x-0', data_source='wow', split='test', model='t5', knowledge='A fox is a mammal.',
           message='What is a fox?', response='A mammal.', label='Fully attributable', supported=1,
           dialogue_id=None, turn_index=None, history=None)

def begin(folder, monkeypatch, *rows):
    (folder/'begin').mkdir(exist_ok=True)
    pd.DataFrame([ROW | dict(item_id=f'x-{i}') | row for i, row in enumerate(rows)]).to_parquet(
        folder/'begin'/'turns.parquet')
    monkeypatch.setenv('FACTLIB_DATA', str(folder))

def test_rows_become_turns(tmp_path, monkeypatch):
    history = [dict(speaker='agent_1', text='Hi!'), dict(speaker='agent_2', text='Hello. A question?')]
    begin(tmp_path, monkeypatch, {}, dict(label='Generic', message='[]', knowledge=' '),
          dict(label='Not fully attributable', split='dev'),
          dict(history=history, turn_index=2, dialogue_id='d'), dict(history=history, turn_index=3, dialogue_id='d'),
          dict(label='Perhaps'), dict(data_source='tc', label='Perhaps'))
    test = load('begin_wow')
    assert [e.id for e in test] == ['x-0', 'x-1', 'x-3'] and [e.truth for e in test] == ['supported', None, 'supported']
    first, generic, whole = test
    assert first.history == ({'speaker': 'user', 'text': 'What is a fox?'},) and 'turn' not in first.meta
    assert first.meta['conversation'] == first.group
    assert generic.history == () and generic.source is None
    assert (whole.group, whole.meta['conversation'], whole.meta['turn']) == ('d', 'd', 2)
    assert [t['speaker'] for t in whole.history] == ['assistant', 'user']
    assert [r.reason for r in test.refused] == ["Row 'x-4': its place is 3, but 2 messages stand before it.",
                                                "Row 'x-5': the label is 'Perhaps'; it can be Fully attributable, Not "
                                                "fully attributable, Generic."]
    assert (('3 turns in 3 groups: 2 supported, 0 unsupported, 1 without truth (1 Generic). 1 of them have no '
             'reference.') in test.card)
    assert '`refused`: 2.' in test.card
    dev = load('begin_wow', split='dev')
    # the same message, so the same group in the other split
    assert [e.id for e in dev] == ['x-2'] and dev.examples[0].group == first.group

def test_a_set_without_its_file_or_split_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path))
    with pytest.raises(BadInput, match='begin/turns.parquet'): load('begin_tc')
    for name, split in (('begin_wow', 'train'), ('begin_tc', 'test'), ('faithdial_audit', 'dev')):
        with pytest.raises(BadInput, match=f'"{name}" has'): load(name, split=split)

def test_speakers_take_turns():
    for n in range(7):
        history = alternating([str(i) for i in range(n)])
        assert [t['text'] for t in history] == [str(i) for i in range(n)]
        assert (not n or history[-1]['speaker'] == 'user')
        assert all(a['speaker'] != b['speaker'] for a, b in zip(history, history[1:]))

# ---- the real ones

COUNTS = {('begin_wow', 'dev'): (430, 180, 250, 0), ('begin_wow', None): (3607, 1392, 2209, 6),
          ('begin_cmu', None): (416, 59, 278, 79), ('begin_tc', None): (383, 74, 307, 2),
          # as counted from the tables' labels (research/benchmarks.md, section 4)
          ('faithdial_audit', None): (2403, 552, 1642, 209)}

@real
@pytest.mark.parametrize('name, split', COUNTS)
def test_real_counts(name, split):
    b = load(name, split=split)
    truths = Counter(e.truth for e in b)
    assert (len(b), truths['supported'], truths['unsupported'], truths[None]) == COUNTS[name, split]
    assert not b.refused and len({e.id for e in b}) == len(b) and b.good == 'supported' and b.truth_kind == 'label'
    table = pd.read_parquet(os.path.join(os.environ['FACTLIB_DATA'], 'begin' if 'begin' in name else name,
                                         'turns.parquet')).set_index('item_id')
    for e in b: # the truth is that of the data's own column; the history is whole where it is, and ends before the turn
        row = table.loc[e.id]
        assert {1: 'supported', 0: 'unsupported'}.get(None if pd.isna(row.supported) else row.supported) == e.truth
        assert e.target == row.response and (e.source or '') == row.knowledge and e.meta['conversation'] == e.group
        if 'turn' in e.meta: assert e.meta['turn'] == len(e.history) == row.turn_index and e.group == row.dialogue_id
        else: assert row.history is None and len(e.history) <= 1
    assert 'supported' in b.card and f'Asks for `{DIALOGUE_ASKS[name]}`' in b.card and 'Known flaws' in b.card

@real
@pytest.mark.parametrize('name', TABLES)
def test_real_groups_are_those_of_scipy(name):
    "Turns without a dialogue, joined by message or reference: connected components of a graph of turns and texts."
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    turns = [e for split in (['dev', 'test'] if name == 'begin_wow' else [None])
             for e in load(name, split=split) if 'turn' not in e.meta]
    edges = [(i, key) for i, e in enumerate(turns)
             for key in (('k', plain(e.source or '')), ('m', plain(e.history[-1]['text']) if e.history else ''))
             if key[1]]
    places = {key: len(turns) + j for j, key in enumerate(dict.fromkeys(key for _, key in edges))}
    size = len(turns) + len(places)
    graph = coo_matrix(([1]*len(edges), ([i for i, _ in edges], [places[key] for _, key in edges])), shape=(size, size))
    assert partition(connected_components(graph, directed=False)[1][:len(turns)].tolist()) == partition(
        [e.group for e in turns])

@real
@pytest.mark.parametrize('names, pairs, standing, dialogues',
                         [(['begin_cmu', 'begin_tc'], 180, 0, 0), (['faithdial_audit'], 13_690, 704, 8)])
def test_which_annotated_turns_stand_in_later_histories(names, pairs, standing, dialogues):
    """Alternative answers were never said: of two annotated turns of a dialogue the earlier one seldom is what was said
    at its place. The numbers are those of the cards."""
    groups = {}
    for e in (e for name in names for e in load(name) if 'turn' in e.meta): groups.setdefault(e.group, []).append(e)
    ordered = [(a, b) for turns in groups.values() for a in turns for b in turns if a.meta['turn'] < b.meta['turn']]
    stand = [a for a, b in ordered if plain(b.history[a.meta['turn']]['text']) == plain(a.target)]
    assert (len(ordered), len(stand), len({a.group for a in stand})) == (pairs, standing, dialogues)
    assert {a.meta['model'] for a in stand} <= {'human'}

@real
def test_what_dev_and_test_share():
    dev, test = load('begin_wow', split='dev'), load('begin_wow', split='test')
    references, groups = {e.source for e in dev}, {e.group for e in dev}
    assert sum(e.source in references for e in test if e.truth) == 1194 and sum(e.group in groups for e in test) == 1820

@real
@pytest.mark.parametrize('name', TABLES)
def test_drawing_keeps_whole_groups(name):
    whole, some = load(name), load(name, n=5, seed=3)
    groups = {e.group for e in some}
    assert len(groups) == 5 and [e.id for e in some] == [e.id for e in whole if e.group in groups]
    assert some.card == whole.card
    assert {e.group for e in load(name, n=4, seed=3)} < groups

@real
def test_turns_go_through_a_frame():
    examples = load('begin_tc', n=3).examples
    assert Example.from_frame(Example.to_frame(examples)) == examples
