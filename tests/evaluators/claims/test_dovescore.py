"DoveScore, asked through the real client over HTTP; scores worked out by hand."
import json
import math
import os
import random
import re
from itertools import combinations

import pytest
from hypothesis import given, settings, strategies as st
from types import SimpleNamespace

from fact_server import ATTACKS, LONG, asked, example, honest, prompt, rule, run, spoiling, step, words
from factlib.core.loop import run_sync
from factlib.core.records import Absence, BadInput, Example
from factlib.evaluators.base import EVALUATORS, EvaluationError, evaluate, get
from factlib.evaluators.claims.base import Fact, ComponentResult, numbered
from factlib.evaluators.claims.decompose import FactDecomposer, SentenceDecomposer
from factlib.evaluators.claims.check import ModelChecker, ScoreChecker, word_support
from factlib.evaluators.claims.dovescore import LEAST, DoveScore, dove_score, inversions, inverted_pairs, order_score
from factlib.evaluators.claims.dovescore import rule_components
from factlib.evaluators.claims.dovescore import score_bounds
from factlib.evaluators.claims.sort import HybridSorter, ModelSorter, PairSorter, PathSorter, Places
from factlib.evaluators.claims.sort import order_fault
from factlib.evaluators.claims.sort import read_order, relations
from factlib.llm.chat import Chat
from factlib.llm.costs import dry_run
from factlib.llm.prompts import load_prompt, neutralise
from factlib.perturb.order import shuffle_degree

# in the source in this order, but for Eve
A, B, C, D, E = 'Ann left.', 'Bob slept.', 'Cat ate.', 'Dan sang.', 'Eve hid.'
P, Q, X = '~Ann is tall.', '~Bob is a cook.', '~Cat is a dog.' # descriptions; X is not in the source
SOURCE = [A, P, B, C, Q, D]
parts = lambda scores, row=0: tuple(scores[p][row] if scores[p][row] is not None
                                    else scores[f'{p}_absence'][row] for p in ('S_E', 'S_EO', 'S_D'))
FORMS = dict(default=DoveScore, singly=lambda chat: DoveScore(chat, batch=1),
             supported=lambda chat: DoveScore(chat, sort='supported'),
             pairs=lambda chat: DoveScore(chat, sorter=PairSorter(chat)),
             single_pairs=lambda chat: DoveScore(chat, sorter=PairSorter(chat, batch=1)),
             decomposer=lambda chat: DoveScore(chat, target_order='decomposer'))
forms = pytest.mark.parametrize('form', FORMS)

# Scores by hand

CASES = { # target -> S_E, S_EO, S_D, score
    'all': ([A, B, C, D, P, Q], 1, 1, 1, 1),
    'reversed': ([D, C, B, A], 1, 0, 'inapplicable', 0),
    'one pair of six': ([A, C, B, D], 1, 5/6, 'inapplicable', 5/6),
    'last comes first': ([D, A, B, C], 1, 1/2, 'inapplicable', 1/2),
    'with descriptions': ([B, A, P, X], 1, 0, 1/2, 1/4), # alpha 1/2: 1/2*1*0 + 1/2*1/2
    'false event': ([A, E, B, C], 3/4, 1, 'inapplicable', 3/4),
    'false event out of order': ([C, E, B, P], 2/3, 0, 1, 1/4), # alpha 3/4: 3/4*2/3*0 + 1/4
    'mixed': ([B, A, C, E, P, X], 3/4, 2/3, 1/2, 1/2), # alpha 2/3: 2/3*3/4*2/3 + 1/3*1/2 = 1/3 + 1/6
    'no events': ([P, X, Q], 'inapplicable', 'inapplicable', 2/3, 2/3),
    'one event': ([C], 1, 'inapplicable', 'inapplicable', 1),
    'one true event': ([C, E, X], 1/2, 'inapplicable', 0, 1/3), # alpha 2/3: 2/3*1/2
    'no true event': ([E, 'Fay won.', P], 0, 'inapplicable', 1, 1/3),
    'nothing true': ([E, 'Fay won.', X], 0, 'inapplicable', 0, 0),
    'said twice': ([A, A, B], 1, 1, 'inapplicable', 1)}

def spoilt_list(request, data):
    "A list with its first two events exchanged."
    return dict(order=[*data['order'][1::-1], *data['order'][2:]])

@pytest.mark.parametrize('spoilers', [{}, dict(sort=spoilt_list)], ids=['right', 'spoilt list'])
def test_a_hybrid_sorter_looks_at_neighbours_again(spoilers):
    "The scores by hand, also where the list has two events in the wrong places; as many requests as were planned."
    make, told = lambda chat: DoveScore(chat, sorter=HybridSorter(chat)), {k: CASES[k] for k in ('all', 'mixed')}
    scores, server = run(make, [example(SOURCE, case[0], name) for name, case in told.items()], spoiling(**spoilers))
    assert scores.value.tolist() == [case[-1] for case in told.values()]
    judge = make(Chat('stub', 'http://127.0.0.1:9/v1', api_key='none', endpoint='test', mode='off'))
    planned = sum(len(judge.plan(example(SOURCE, case[0]))) for case in told.values())
    # a list that is spoilt has new neighbours, which are asked about once more: for both texts, by source and target
    assert len(server.requests) == planned + 4*bool(spoilers) == 12 + 4*bool(spoilers)

@forms
def test_hand_worked_scores(form):
    scores, _ = run(FORMS[form], [example(SOURCE, case[0], name) for name, case in CASES.items()])
    for i, (name, (_, *expected)) in enumerate(CASES.items()):
        assert parts(scores, i) == pytest.approx(tuple(expected[:3])) if all(not isinstance(x, str)
                                                                             for x in expected) else [
                                                                                 x if isinstance(x, str)
                                                                                 else pytest.approx(x)
                                                                                 for x in expected[:3]] == list(
                                                                                     parts(scores, i)), name
        assert scores.value[i] == pytest.approx(expected[3], abs=1e-12), name

def test_the_evidence_says_what_is_wrong():
    scores, server = run(DoveScore, [example(SOURCE, [B, A, C, E, P, X])])
    found = scores.evidence[0]
    assert [(f['id'], f['verdict']) for f in found['facts']] == [('E1', 'supported'),
                                                                 ('E2', 'supported'),
                                                                 ('E3', 'supported'), ('E4', 'unsupported'),
                                                                 ('D1', 'supported'), ('D2', 'unsupported')]
    assert found['inverted'] == [['E2', 'E1']]
    assert (found['alpha'], found['pairs'], found['open'], found['listed']) == (2/3, 3, 0, 6)
    assert found['by_source']['order'] == ['E2', 'E1', 'E3', 'E4']
    assert found['by_target']['order'] == ['E1', 'E2', 'E3', 'E4']
    assert [step(r) for r in server.requests][0] == 'decompose'
    assert sorted(step(r) for r in server.requests[1:]) == ['check', 'sort', 'sort']
    json.dumps(found)

def test_no_facts_at_all():
    scores, server = run(DoveScore, [example(SOURCE, ['Why?'])], lambda r: '{"events": [], "descriptions": []}')
    assert scores.absence[0] == 'inapplicable' and parts(scores) == ('inapplicable',)*3 and len(server.requests) == 1

@pytest.mark.parametrize('sorter', [ModelSorter, PairSorter], ids=['global', 'pairs'])
def test_the_order_is_one_minus_the_shuffle_degree(sorter):
    rng, lines = random.Random(3), [f'Event number {i}.' for i in range(9)]
    orders = [rng.sample(range(9), n) for n in (9, 9, 8, 5, 2)]
    scores, _ = run(lambda chat: DoveScore(chat, sorter=sorter(chat)),
                    [example(lines, [lines[i] for i in order], str(n)) for n, order in enumerate(orders)])
    ranks = [[sorted(order).index(i) for i in order] for order in orders]
    assert list(scores.S_EO) == pytest.approx([1 - shuffle_degree(r) for r in ranks], abs=1e-12)
    assert list(scores.value) == list(scores.S_EO)

@settings(max_examples=50, deadline=None)
@given(st.permutations(range(7)), st.permutations(range(7)), st.sets(st.integers(0, 6)))
def test_inversions_of_complete_orders(one, other, kept):
    found = inverted_pairs(relations(one, range(7)), relations(other, range(7)), kept)
    left, right = [i for i in one if i in kept], [i for i in other if i in kept]
    assert sorted(found) == sorted((a, b) for a, b in combinations(left, 2) if right.index(a) > right.index(b))
    if len(kept) > 1:
        assert order_score(found, len(kept)) == pytest.approx(1 - shuffle_degree([right.index(i) for i in left]),
                                                              abs=1e-12)

placed = st.lists(st.tuples(*[st.one_of(st.none(), st.integers(0, 5))]*2), max_size=9)

@settings(max_examples=200, deadline=None)
@given(placed, st.sets(st.integers(0, 8)))
def test_inversions_of_places_are_those_of_all_pairs(places, left):
    "Against every pair, written down."
    ids = [f'E{i}' for i in range(len(places))]
    source, target = (Places({i: p[k] for i, p in zip(ids, places)}) for k in (0, 1))
    kept = [i for n, i in enumerate(ids) if n not in left]
    count, still_open, listed = inversions(source, target, kept)
    assert listed == inverted_pairs(dict(source), dict(target), kept) and count == len(listed)
    assert still_open == sum(0 in (source[p], target[p]) for p in combinations(kept, 2))
    assert dict(source) == source and len(source) == len(dict(source))

def test_of_very_many_inverted_pairs_a_thousand_are_listed():
    ids = [f'E{i}' for i in range(3000)]
    forward, backward = Places({i: n for n, i in enumerate(ids)}), Places({i: -n for n, i in enumerate(ids)})
    count, still_open, listed = inversions(forward, backward, ids)
    assert (count, still_open, listed) == (math.comb(3000, 2), 0, [(ids[0], i) for i in ids[1:1001]])
    assert inversions(forward, forward, ids) == (0, 0, []) and order_score(count, 3000) == 0

def test_long_texts_by_rule():
    "Two thousand sentences took minutes; twice as many take about twice as long, and others have their turn meanwhile."
    import asyncio
    rng = random.Random(1)
    lines = [f'The clerk named{i} met name{rng.randrange(500)} at noon.' for i in range(2000)]
    source, target = ' '.join(lines), ' '.join(lines[::-1])
    async def watched():
        turns, done = [], asyncio.Event()
        async def tick():
            while not done.is_set():
                await asyncio.sleep(.01)
                turns.append(1)
        ticking = asyncio.ensure_future(tick())
        j = await DoveScore(**rule_components()).judge(Example('x', source=source, target=target))
        done.set()
        await ticking
        return j, len(turns)
    j, turns = run_sync(watched())
    assert j.value == 0 and j.parts['S_EO'] == 0
    assert (j.evidence['inversions'], len(j.evidence['inverted'])) == (math.comb(2000, 2), 1000)
    assert turns > 10 # of somebody else, meanwhile

def test_too_many_sentences_for_places():
    source = ' '.join(f'Name{i} ran.' for i in range(5000))
    scores = evaluate(DoveScore(**rule_components()), [Example('x', source=source, target=source)], progress=False)
    assert scores.absence[0] == 'too_long' and parts(scores) == (1, 'too_long', 'inapplicable')
    assert scores.evidence[0]['by_source']['too_long'] == 25_000_000

def test_pairs_may_be_open_and_may_contradict_themselves():
    side_by_side = lambda request, data: dict(verdicts=[
        v | (dict(verdict='open') if 'Ann' in ''.join(asked(request)[v['id']]) else {}) for v in data['verdicts']])
    scores, _ = run(FORMS['pairs'], [example(SOURCE, [C, B, A])], spoiling(pairs=side_by_side))
    assert scores.S_EO[0] == pytest.approx(1/3) and scores.evidence[0]['open'] == 2
    assert scores.evidence[0]['inverted'] == [['E2', 'E1']]
    circle = lambda request, data: dict(verdicts=[dict(id=i, verdict='A'
                                                       if (a[0], b[0]) in ('AB', 'BC',
                                                                           'CA', ('A', 'B'), ('B', 'C'), ('C', 'A'))
                                                       else 'B') for i, (a, b) in asked(request).items()])
    scores, _ = run(FORMS['pairs'], [example(SOURCE, [C, B, A])], spoiling(pairs=circle))
    assert scores.S_EO[0] == 1 # the same circle in both texts

# Cost

def test_batches_cost_a_fifth_or_less():
    target = [line.strip() for line in LONG[::15]]
    assert len(' '.join(LONG).split()) == 4200 and len(target) == 20
    made = {name: run(FORMS[name], [example(LONG, target)]) for name in ('default', 'singly', 'pairs')}
    assert all(scores.value[0] == 1 for scores, _ in made.values())
    requests, tokens = ({name: f(server) for name, (_, server) in made.items()}
                        for f in (lambda server: len(server.requests), words))
    assert requests == dict(default=1 + 1 + 2, singly=1 + 20 + 2, pairs=1 + 1 + 2*10)
    assert requests['default']*5 <= requests['singly'] and tokens['default']*5 <= tokens['singly']
    for name, (scores, server) in made.items():
        assert (scores.requests[0], scores.prompt_tokens[0]) == (len(server.requests), words(server)), name
    print(requests, tokens)

@forms
def test_a_dry_run_knows_the_requests(form):
    examples = [example(SOURCE, [A, C, B], 'three'), example(SOURCE, [D], 'one')]
    scores, server = run(FORMS[form], examples)
    judge = FORMS[form](Chat('stub', 'http://127.0.0.1:9/v1', api_key='none', endpoint='test', mode='off'))
    plans = [p for e in examples for p in judge.plan(e)]
    assert sorted(json.dumps(p.messages) for p in plans) == sorted(json.dumps(r['messages']) for r in server.requests)
    total = dry_run(judge, examples).total
    assert total.requests == scores.requests.sum() and judge.plan(Example('x', target='No source.')) == []
    said = ' '.join(dry_run(judge, examples).assumptions)
    assert 'stand in' in said and ('taken to be supported' in said) == (form == 'supported')

def test_checker_and_sorts_are_under_way_together():
    _, server = run(DoveScore, [example(SOURCE, [A, B])], delay=.15)
    assert server.most_in_flight == 3
    _, server = run(FORMS['supported'], [example(SOURCE, [A, B, E])], delay=.15)
    assert server.most_in_flight == 2 and [step(r) for r in server.requests] == ['decompose', 'check', 'sort', 'sort']
    assert not any(E in prompt(r) for r in server.requests[2:] if A + '\n' + P in prompt(r))
    assert len(asked(server.requests[2])) == 2

@pytest.mark.parametrize('source', [SOURCE, [A, *ATTACKS.values(), B]], ids=['plain', 'hostile'])
def test_checker_and_sorters_begin_alike(source):
    begin = []
    for form in ('default', 'pairs'):
        _, server = run(FORMS[form], [example(source, [A, B])])
        begin += [(step(r), prompt(r)) for r in server.requests if step(r) != 'decompose'
                  and 'Ann left.\n' + source[1][:2] in prompt(r)]
    assert sorted(s for s, _ in begin) == ['check', 'check', 'pairs', 'sort']
    shared = os.path.commonprefix([p for _, p in begin])
    assert '</source>' in shared and source[-1] in shared.split('</source>')[0]

# What sorters see

def test_the_order_shown_gives_nothing_away():
    lines = [f'Event number {i}.' for i in range(8)]
    as_shown = lambda request, data: dict(order=list(asked(request)))
    source = [P] + lines
    scores, server = run(DoveScore, [example(source, lines, 'true'), example(source, lines[::-1], 'lie')],
                         spoiling(sort=as_shown))
    assert all(0 < s < 1 for s in scores.S_EO) # a sorter that does nothing is neither right nor wrong
    by_source = [r['messages'] for r in server.requests if step(r) == 'sort' and P in prompt(r)]
    assert len(by_source) == 2 and by_source[0] == by_source[1] # the truth and the lie ask the same of the source

# Faults

def said(text): return lambda request, data: text
def order(f): return lambda request, data: dict(order=f(data['order']))
def cut(request, data): return dict(content=json.dumps(data)[:-4], finish_reason='length')

SORTS = { # fault -> absence, requests in all (taken apart, checked, two sorts, and the sorts again)
    'dropped': (order(lambda o: o[:-1]), 'count_mismatch', 6),
    'dropped first': (order(lambda o: o[1:]), 'count_mismatch', 6),
    'repeated': (order(lambda o: o + o[:1]), 'count_mismatch', 6),
    'invented': (order(lambda o: o + ['S9']), 'count_mismatch', 6),
    'only invented': (order(lambda o: ['S7', 'S8', 'S9']), 'count_mismatch', 6),
    'empty order': (order(lambda o: []), 'count_mismatch', 6),
    'texts': (lambda request, data: dict(order=list(asked(request).values())), 'count_mismatch', 6),
    'malformed': (said('First Ann, then Bob.'), 'malformed', 6),
    'numbers': (said('{"order": [[1], {}]}'), 'count_mismatch', 6),
    'truncated': (cut, 'truncated', 4), 'refused': (said(dict(content=None, refusal='No.')), 'refused', 4),
    'filtered': (said(dict(content='', finish_reason='content_filter')), 'filtered', 4),
    'transport': (said(dict(status=400, headers={'retry-after-ms': '1'})), 'transport', 4)}

@pytest.mark.parametrize('name', SORTS)
def test_a_sorter_that_fails_takes_only_the_order_with_it(name):
    spoil, why, requests = SORTS[name]
    scores, server = run(DoveScore, [example(SOURCE, [A, B, C, P, X])], spoiling(sort=spoil))
    assert scores.value[0] is None and scores.absence[0] == why and parts(scores) == (1, why, .5)
    assert scores.requests[0] == requests
    none_true, _ = run(DoveScore, [example(SOURCE, [E, 'Fay won.', C, P, X])], spoiling(sort=spoil))
    # one true event needs no sorter
    assert none_true.value[0] == pytest.approx(3/5*1/3 + 2/5*1/2)
    assert parts(none_true) == (pytest.approx(1/3), 'inapplicable', .5)

@pytest.mark.parametrize('footnote', ['\nSources: [1], [2]', '\nSee [1].'])
@pytest.mark.parametrize('bare', [False, True])
def test_footnotes_do_no_harm(footnote, bare):
    noted = lambda request, data: json.dumps(data['order'] if bare else data) + footnote
    verdicts = lambda request, data: json.dumps(data['verdicts'] if bare else data) + footnote
    facts = lambda request, data: json.dumps(data) + footnote
    for form, requests in (('default', 4), ('pairs', 4)):
        scores, server = run(FORMS[form], [example(SOURCE, [B, A, C, P])],
                             spoiling(decompose=facts, sort=noted, check=verdicts, pairs=verdicts))
        assert parts(scores) == (1, pytest.approx(2/3), 1) and scores.requests[0] == requests

def test_two_orders_at_once_are_none():
    text = '["S1", "S2"] or ["S2", "S1"]'
    assert read_order(SimpleNamespace(absence=Absence.malformed, data=None, text=text),
                      ['S1', 'S2']) is Absence.malformed

@pytest.mark.parametrize('name', [n for n in SORTS if SORTS[n][2] == 6])
def test_a_sorter_is_told_and_may_mend_its_order(name):
    spoil = lambda request, data: data if 'could not be used' in prompt(request) else SORTS[name][0](request, data)
    scores, server = run(DoveScore, [example(SOURCE, [B, A, C])], spoiling(sort=spoil))
    assert scores.value[0] == pytest.approx(2/3) and len(server.requests) == 6
    assert scores.evidence[0]['by_source']['asked_again']
    first, again = ([r for r in server.requests if step(r) == 'sort' and ('could not be used' in prompt(r)) == told
                     and P in prompt(r)] for told in (False, True))
    assert prompt(again[0]).startswith(prompt(first[0]).split('Answer with')[0])

def test_only_a_supported_event_needs_its_place():
    without_eve = lambda request, data: dict(order=[i for i in data['order'] if asked(request)[i] != E])
    scores, _ = run(DoveScore, [example(SOURCE, [B, E, A])], spoiling(sort=without_eve))
    assert scores.value[0] == 0 and parts(scores) == (pytest.approx(2/3), 0, 'inapplicable')
    assert scores.evidence[0]['by_source']['asked_again'] == 'it left out E2'

CHECKS = dict(malformed=said('Yes.'), truncated=cut, refused=said(dict(content=None, refusal='No.')),
              filtered=said(dict(content='', finish_reason='content_filter')),
              transport=said(dict(status=400, headers={'retry-after-ms': '1'})),
              count_mismatch=lambda request, data: dict(verdicts=[]),
              off_menu=lambda request, data: dict(verdicts=[v | dict(verdict='perhaps') for v in data['verdicts']]))

@pytest.mark.parametrize('form', ['default', 'supported'])
@pytest.mark.parametrize('why', CHECKS)
def test_a_checker_that_fails_is_an_absence(why, form):
    scores, _ = run(FORMS[form], [example(SOURCE, [A, B, P])], spoiling(check=CHECKS[why]))
    assert scores.value[0] is None and scores.absence[0] == why and parts(scores) == (why,)*3

@pytest.mark.parametrize('name', ['swapped', 'doubled', 'short', 'long'])
@pytest.mark.parametrize('form', ['default', 'supported', 'pairs'])
def test_verdicts_are_matched_by_id(name, form):
    f = dict(swapped=lambda vs: vs[::-1], doubled=lambda vs: vs + vs[:1] if len(vs) > 1 else vs,
             short=lambda vs: vs[:-1] if len(vs) > 1 else vs, long=lambda vs: vs + [dict(id='Z1', verdict='A')])[name]
    spoil = lambda request, data: dict(verdicts=f(data['verdicts']))
    scores, _ = run(FORMS[form], [example(SOURCE, [B, A, C, E, P, X])], spoiling(check=spoil, pairs=spoil))
    assert parts(scores) == (3/4, pytest.approx(2/3), 1/2) and scores.value[0] == pytest.approx(1/2)

def test_one_fact_without_a_verdict():
    shrug = lambda who: lambda request, data: dict(verdicts=[v for v in data['verdicts']
                                                             if who not in asked(request)[v['id']]])
    scores, _ = run(DoveScore, [example(SOURCE, [A, B, P, X])], spoiling(check=shrug('Bob')))
    assert scores.absence[0] == 'count_mismatch' and parts(scores) == ('count_mismatch', 'count_mismatch', .5)
    scores, _ = run(DoveScore, [example(SOURCE, [A, B, P, X])], spoiling(check=shrug('Cat')))
    assert scores.absence[0] == 'count_mismatch' and parts(scores) == (1, 1, 'count_mismatch')

@pytest.mark.parametrize('why', ['malformed', 'truncated', 'refused', 'filtered', 'transport'])
def test_a_pair_sorter_that_fails(why):
    scores, _ = run(FORMS['pairs'], [example(SOURCE, [A, B, C, P])], spoiling(pairs=CHECKS[why]))
    assert scores.absence[0] == why and parts(scores) == (1, why, 1)

@pytest.mark.parametrize('why', ['malformed', 'truncated', 'refused', 'filtered', 'transport'])
def test_a_decomposer_that_fails(why):
    scores, server = run(DoveScore, [example(SOURCE, [A, B])], spoiling(decompose=CHECKS[why]))
    assert scores.absence[0] == why and scores.evidence[0]['step'] == 'decompose'
    assert {step(r) for r in server.requests} == {'decompose'}

any_json = st.recursive(st.none() | st.booleans() | st.integers() | st.sampled_from(['S1', 's2', '[S3]', 'x']),
                        lambda x: st.lists(x, max_size=4)
                        | st.dictionaries(st.sampled_from(['order', 'x']), x, max_size=2), max_leaves=10)

@settings(max_examples=150, deadline=None)
@given(any_json)
def test_any_json_gives_an_order_or_an_absence(data):
    said, ids = read_order(SimpleNamespace(absence=Absence.malformed,
                                           data=None, text=json.dumps(data))), ['S1', 'S2', 'S3']
    found = relations(said, ids)
    assert list(found) == list(combinations(ids, 2))
    assert all(v in (1, -1) or isinstance(v, Absence) for v in found.values())
    assert not order_fault(said, ids) == (not isinstance(said, list) or sorted(said) != ids)

# Texts that talk back

@pytest.mark.parametrize('kind, form', [('event', 'default'), ('event', 'pairs'), ('event', 'singly'),
                                        ('description', 'default'), ('source', 'default'), ('source', 'pairs')])
def test_no_hostile_fact_changes_a_score(kind, form):
    mark, source = '~' if kind == 'description' else '', [B, A, P, E]
    examples = [example(SOURCE[:1] + [attack] + SOURCE[1:], source, name) if kind == 'source'
                else example(SOURCE, [B, mark + attack, A, P, E], name) for name, attack in ATTACKS.items()]
    scores, _ = run(FORMS[form], examples)
    # [B, A, P, E]: S_E 2/3, S_EO 0, S_D 1, alpha 3/4; one more false event: S_E 2/4, alpha 4/5; one more false
    # description: S_D 1/2, alpha 3/5
    expected = dict(source=(2/3, 0, 1, 1/4), event=(2/4, 0, 1, 1/5), description=(2/3, 0, 1/2, 1/5))[kind]
    for i, name in enumerate(ATTACKS):
        assert (*parts(scores, i), scores.value[i]) == pytest.approx(expected, abs=1e-12), name

def test_hostile_events_that_are_true_are_sorted():
    lines = [A, *ATTACKS.values(), B]
    lines = [' '.join(line.split()) for line in lines]
    tags = load_prompt('sort_events').tags + ('text',)
    harmless = [neutralise(line, tags) for line in lines] # the stub compares lines as the prompt shows them
    scores, _ = run(lambda chat: DoveScore(chat, batch=1), [example(harmless, harmless[::-1])])
    assert (scores.S_E[0], scores.S_EO[0]) == (1, 0)

# Components

def test_components_may_be_any():
    class Oracle:
        signature = 'oracle;v:1'
        async def sort(self, events, text):
            return ComponentResult({(a.id, b.id): 1 if text.find(a.text) < text.find(b.text)
                            else -1 for a, b in combinations(events, 2)})
    nli = ScoreChecker(lambda fact, source: float(fact in source), .5, 'nli')
    dove = DoveScore(decomposer=SentenceDecomposer(lambda s: 'description' if s.startswith('~') else 'event'),
                     checker=nli, sorter=Oracle())
    scores = evaluate(dove, [example(SOURCE, [B, A, E, P])], progress=False)
    assert parts(scores) == (2/3, 0, 1) and scores.value[0] == .25 and scores.requests[0] == 0
    assert 'sorter:oracle;v:1' in dove.signature
    mixed, server = run(lambda chat: DoveScore(chat, sorter=Oracle(), checker=nli), [example(SOURCE, [B, A, E, P])])
    assert mixed.value[0] == .25 and len(server.requests) == 1

def test_a_decomposer_of_plain_facts_will_not_do():
    with pytest.raises(EvaluationError, match='tells events from descriptions'):
        evaluate(DoveScore(**rule_components() | dict(decomposer=SentenceDecomposer())), [example(SOURCE, [A, B])], progress=False)

def test_what_cannot_be_made():
    chat = Chat('stub', 'http://127.0.0.1:9/v1', api_key='none')
    for make, match in ((lambda: DoveScore(sort='some'), 'all, supported'),
                        (lambda: DoveScore(target_order='x'), 'sorter, decomposer'),
                        (lambda: DoveScore(**rule_components() | dict(sorter=ModelChecker(chat))), 'no method `sort`'),
                        (DoveScore, 'none is given.*order_path'), (lambda: DoveScore(sorter=PathSorter()), 'none is given'),
                        (lambda: DoveScore(seed=1), 'has no chat'), (lambda: PairSorter(chat, batch=0), 'whole number'),
                        (lambda: ModelSorter(None), 'through a `Chat`')):
        with pytest.raises(BadInput, match=match): make()

# A missing verdict leaves bounds, and other forms of a verdict are verdicts

FIVE = [B, A, C, P, X] # three events, told B, A, C; a true and a false description: alpha 3/5, S_E 1, S_EO 2/3, S_D 1/2

@pytest.mark.parametrize('form', ['default', 'supported', 'pairs'])
@pytest.mark.parametrize('who, low, high', [
    # supported: 3/5 * 2/3 = .4; not: 3/5 * 2/3 * 1 = .4; and one description of five facts
    ('Ann left', .4 + .2, .4 + .2),
    ('Cat ate', 0 + .2, .4 + .2), # not: A and B are left, the wrong way round
    ('Ann is', .4, .6), ('is a dog', .4 + .2, .4 + .4)])
def test_bounds_of_five_facts_by_hand(who, low, high, form):
    shrug = lambda request, data: dict(verdicts=[v | (dict(verdict='perhaps') if who in asked(request)[v['id']] else {})
                                                 for v in data['verdicts']])
    scores, _ = run(FORMS[form], [example(SOURCE, FIVE), example(SOURCE, [A, P], 'other')], spoiling(check=shrug))
    assert scores.absence[0] == 'off_menu' and scores.value[0] is None
    if form == 'supported' and who in ('Ann left', 'Cat ate'): # the event was not sorted, so every order is possible
        low, high = .2, .8
    assert scores.evidence[0]['bounds'] == pytest.approx([low, high])
    if who == 'Cat ate': assert scores.value[1] == 1 and 'bounds' not in scores.evidence[1]

def test_bounds_without_an_order_or_with_many_verdicts_missing():
    facts = numbered([f'Event {i} happened.' for i in range(12)], 'event') + numbered(['It is so.'], 'description')
    ids = [f.id for f in facts if f.kind == 'event']
    in_order = Places({i: n for n, i in enumerate(ids)})
    nobody = dict.fromkeys(ids, Absence.refused) | dict(D1=True)
    assert score_bounds(facts, nobody, in_order, in_order) == pytest.approx([1/13, 1]) # nine and more are not tried out
    eight = nobody | dict.fromkeys(ids[8:], True)
    assert score_bounds(facts, eight, in_order, in_order) == pytest.approx([5/13, 1]) # 256 ways, all in order
    lost = Places(dict.fromkeys(ids), Absence.too_long)
    assert score_bounds(facts, dict.fromkeys(nobody, True), lost, in_order) == pytest.approx([1/13, 1])

@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([True, False, None]), min_size=5, max_size=5), st.permutations(range(4)))
def test_bounds_hold_the_score_of_every_filling_and_touch_it(known, order):
    facts = numbered(['A came.', 'B came.', 'C came.', 'D came.'], 'event') + numbered(['E is.'], 'description')
    ids = [f.id for f in facts]
    verdicts = {i: Absence.refused if v is None else v for i, v in zip(ids, known)}
    by_source, by_target = Places(dict(zip(ids, range(4)))), Places(dict(zip(ids, order)))
    missing, scores = [i for i in ids if isinstance(verdicts[i], Absence)], []
    for bits in range(2**len(missing)):
        filled = verdicts | {i: bool(bits >> k & 1) for k, i in enumerate(missing)}
        scores.append(DoveScore(**rule_components()).put_together(facts, filled, by_source, by_target)[0])
    assert score_bounds(facts, verdicts, by_source, by_target) == pytest.approx([min(scores), max(scores)])

@pytest.mark.parametrize('yes, no', [('supported.', 'unsupported.'), ('"Supported"', "'Unsupported'"),
                                     ('True', 'False'), (True, False), ('TRUE.', '**False**'),
                                     ('yes', 'No.'), ('Supported', 'not supported'), ('“supported”', 'Not-Supported')])
@pytest.mark.parametrize('form', ['default', 'singly'])
def test_other_forms_of_a_verdict(yes, no, form):
    said = lambda request, data: dict(verdicts=[v | dict(verdict=yes if v['verdict'] == 'supported' else no)
                                                for v in data['verdicts']])
    scores, server = run(FORMS[form], [example(SOURCE, [B, A, C, E, P, X])], spoiling(check=said))
    assert parts(scores) == (3/4, pytest.approx(2/3), 1/2) and scores.value[0] == pytest.approx(1/2)

@pytest.mark.parametrize('said', ['supported by nobody', 'partly', '',
                                  'truee', 'unsupported or supported', None, 1, []])
def test_what_is_no_verdict_stays_none(said):
    scores, _ = run(DoveScore, [example(SOURCE, [A])],
                    spoiling(check=lambda request, data: dict(
                        verdicts=[v | dict(verdict=said) for v in data['verdicts']])))
    assert scores.absence[0] == 'off_menu' and scores.evidence[0]['bounds'] == [0, 1]

def test_the_schema_names_the_verdicts():
    _, server = run(FORMS['pairs'], [example(SOURCE, [A, B])])
    menus = {tuple(v['enum']) for r in server.requests
             for v in [json.loads(json.dumps(r['response_format']))['json_schema']['schema']['properties'].get(
                 'verdicts', {}).get('items', {}).get('properties', {}).get('verdict', {})] if 'enum' in v}
    assert menus == {('supported', 'unsupported'), ('A', 'B', 'open')}

@pytest.mark.skipif(not os.environ.get('FACTLIB_DATA')
                    or not os.path.exists(os.path.join(os.environ['FACTLIB_DATA'], 'storysumm', 'summaries.parquet')),
                    reason='needs storysumm')
def test_the_threshold_is_that_of_labelled_stories_outside_the_benchmark():
    import pandas as pd
    from factlib.benchmarks.base import load
    home = os.path.join(os.environ['FACTLIB_DATA'], 'storysumm')
    summaries, stories = pd.read_parquet(f'{home}/summaries.parquet'), pd.read_parquet(
        f'{home}/stories.parquet').set_index('story_id').story
    outside = summaries[~summaries.story_id.isin(summaries[summaries.label == 1].story_id)]
    assert not {f'storysumm-{i}' for i in outside.story_id} & {e.group for e in load('storysumm_order')}
    assert outside.story_id.nunique() == 9
    rows = [(word_support(text, stories[r.story_id]), label) for r in outside.itertuples()
            for text, label in zip(r.summary, r.sentence_labels, strict=True)]
    true, false = ([x for x, label in rows if label == wanted] for wanted in (1, 0))
    youden = lambda t: sum(x >= t for x in true)/len(true) - sum(x >= t for x in false)/len(false)
    assert (len(true), len(false)) == (113, 42) and max((i/20 for i in range(21)), key=youden) == LEAST

# By the path

def test_the_path_sorter_by_hand():
    source = 'Ann packed her suitcase. Bob made coffee. The train arrived late. Ann kissed Bob on the platform.'
    events = numbered(['Ann kissed Bob on the platform.', 'Zebras ate grass.',
                       'Ann packed her suitcase.', 'The train arrived.'], 'event')
    placed = run_sync(PathSorter().sort(events, source))
    assert placed.notes['places'] == dict(E1=source.index('Ann kissed'), E2=None, E3=0, E4=source.index('The train'))
    assert placed.value['E1', 'E3'] == -1 and placed.value['E1', 'E2'] == 0 and placed.value['E3', 'E4'] == 1
    told = 'Ann kissed Bob on the platform. Two days before, Ann packed her suitcase. The train arrived.'
    by_text = run_sync(PathSorter().sort_told([events[0], events[2], events[3]], told)).value
    # told later, and said to be earlier: never the wrong way round
    assert by_text['E1', 'E4'] == 1 and by_text['E1', 'E3'] <= 0

def test_open_pairs_count_half():
    source = 'Ann slept. Bob sang. Cat ran.'
    facts = numbered(['Ann slept.', 'Bob sang.', 'Cat ran.'], 'event')
    verdicts = dict.fromkeys(['E1', 'E2', 'E3'], True)
    for by_source, s_eo in ((dict(E1=0, E2=0, E3=1), 1 - .5/3), (dict(E1=None, E2=0, E3=1), 1 - 1/3),
                            (dict.fromkeys(verdicts), .5), (dict(E1=2, E2=2, E3=1), 1 - 2.5/3)):
        score, parts, evidence = DoveScore(**rule_components()).put_together(facts, verdicts,
                                                          Places(by_source), Places(dict(E1=0, E2=1, E3=2)))
        assert parts['S_EO'] == score == pytest.approx(s_eo)

def test_components_without_a_model():
    source = 'Ann packed her suitcase. Bob made coffee. The train arrived late. Ann kissed Bob on the platform.'
    scores = evaluate(get('dovescore', **rule_components()),
                      [Example('t', source=source,
                               target='Ann packed. Bob made coffee. The train arrived. Ann kissed Bob. Trains are '
                                      'late.'),
                       Example('l', source=source,
                               target='Ann kissed Bob. The train arrived. Bob made coffee. Ann packed. Zebras have '
                                      'stripes.')], progress=False)
    assert parts(scores, 0) == (1, 1, 1) and parts(scores, 1) == (1, 0, 0) and list(scores.value) == [1, 0]
    assert EVALUATORS['dovescore'] is DoveScore
    assert dry_run(get('dovescore', **rule_components()), [Example('t', source=source, target=source)]).total.requests == 0

def test_fields():
    lacking = [Example('a', target='Text.'), Example('b', source='Text.', target=' ')]
    scores, server = run(DoveScore, lacking)
    assert list(scores.absence) == ['inapplicable']*2 and not server.requests
    assert run_sync(DoveScore(**rule_components()).judge(lacking[0])).evidence == dict(missing_field='source')
