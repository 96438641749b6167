"Order evaluators: against brute force, by hand, on hostile texts, and what they reach on the Holmes summaries."
import itertools
import math
import os

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import time_cues
from factlib.core.loop import run_sync
from factlib.core.records import BadInput, Example
from factlib.evaluators.base import evaluate, get
from factlib.evaluators.offline.order import (OrderPath, OrderShare, best_order, likeness, narrates, path_fits,
                                              share_in_order, spans_back, steps_back, window_places)
from factlib.text.spans import pieces
from factlib.text.words import stems
from factlib.perturb.order import shuffle_degree

def judge(target, source, evaluator=None):
    return run_sync((evaluator or OrderPath()).judge(Example('x', target=target, source=source)))

# --- the path, against a sum over all paths

def by_brute_force(places, order, slip):
    "The same likelihood ratio from its definition: every path, every step's probability written out."
    m, n = places.shape
    def ahead(a, b):
        weights = [math.exp(-(p - a)*m/n) for p in range(a, n)]
        return math.exp(-(b - a)*m/n)/sum(weights) if b >= a else 0
    def step(a, b): return .5/n + .5*ahead(0, b) if a is None else (1 - slip)*ahead(a, b) + slip/n
    total = 0
    for path in itertools.product(range(n), repeat=m):
        total += math.prod(step(a, b) for a, b in zip((None, *path),
                                                      path))*math.prod(places[i, p]*n for i, p in zip(order, path))
    return math.log(total)

@pytest.mark.parametrize('m, n, slip', [(1, 2, .05), (2, 3, .05), (3, 4, .3), (4, 5, .01), (5, 4, .1)])
def test_path_fits_are_the_sum_over_all_paths(m, n, slip):
    places = np.random.default_rng(m*n).dirichlet(np.ones(n)*.5, m)
    orders = list(itertools.permutations(range(m)))[::5]
    assert path_fits(places, orders, slip) == pytest.approx([by_brute_force(places, o, slip) for o in orders],
                                                            abs=1e-12)

def test_orders_are_followed_together_as_alone():
    places = np.random.default_rng(0).dirichlet(np.ones(40), 5)
    orders = list(itertools.permutations(range(5))) + [(2, 2, 2, 2, 2), (0, 1, 2, 3, 4)]
    assert path_fits(places, orders).tolist() == [float(path_fits(places, [order])[0]) for order in orders]

def test_fits_of_long_sources_stay_finite():
    n = 50_000
    certain = np.zeros((6, n))
    certain[range(6), np.linspace(0, n - 1, 6).astype(int)] = 1
    forward, backward = path_fits(certain, [range(6), range(5, -1, -1)])/6
    # a step of a fifth of the source after steps of a sixth on average: 6 exp(-6/5) a sentence, and the first at the
    # start; backwards nothing but slips
    assert forward == pytest.approx(math.log(.95*6) - 1.2*5/6, abs=.35)
    assert backward == pytest.approx(math.log(.05), abs=.5)

@pytest.mark.parametrize('seed', range(8))
def test_the_best_order_is_the_best_of_all(seed):
    "Against all 720; a search may miss it, but by little, and seldom."
    places = np.random.default_rng(seed).dirichlet(np.ones(12)*.2, 6) + 1e-4
    places /= places.sum(1, keepdims=True)
    most = path_fits(places, list(itertools.permutations(range(6)))).max()
    order, fit = best_order(places)
    assert sorted(order) == list(range(6)) and fit == pytest.approx(float(path_fits(places, [order])[0]))
    assert most - 1 < fit <= most + 1e-9

def test_a_part_of_a_story_is_as_true_as_the_whole():
    parts = [(A, B, C), (D, E, F), (C, D), (A, B, C, D, E, F)]
    assert all(judge(' '.join(p), SOURCE).value > .95 for p in parts)

# --- the baseline

@given(st.permutations(range(7)))
def test_share_in_order_is_one_minus_the_shuffle_degree(order):
    assert share_in_order(order) == pytest.approx(1 - shuffle_degree(order), abs=1e-12)

@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(0, 6)), max_size=12))
def test_share_in_order_by_brute_force(places):
    known = [p for p in places if p is not None]
    pairs = [(b > a) + (a == b)/2 for a, b in itertools.combinations(known, 2)]
    assert share_in_order(places) == (pytest.approx(sum(pairs)/len(pairs)) if pairs else None)

@pytest.mark.parametrize('n', [4, 5, 9, 20])
def test_a_text_held_against_itself(n):
    "The first three sentences share a window, so their three pairs count half."
    text = ' '.join(f'Name{i} did{i} thing{i}.' for i in range(n))
    j = judge(text, text, OrderShare())
    assert j.value == pytest.approx(1 - 3/(n*(n - 1))) and j.evidence['unplaced'] == 0

@pytest.mark.parametrize('n', [2, 3])
def test_one_window_has_no_order(n):
    lines = [A, B, C][:n]
    for target in (lines, lines[::-1]):
        j = judge(' '.join(target), ' '.join(lines), OrderShare())
        assert j.value is None and j.absence == 'inapplicable' and f'{n} sentences' in j.evidence['why']
        assert 'needs 4' in j.evidence['why']
    assert judge(' '.join(lines), ' '.join(lines)).value > .5 # the path needs no windows

def test_the_floor_s_evidence_points_at_sentences():
    source = f'{A} {B} {C} {D} {E}'
    target = f'Whales sing. {C} Ella!'
    j = judge(target, source, OrderShare())
    assert [(target[slice(*p['target'])], source[slice(*p['source'])])
            for p in j.evidence['places']] == [(C, f'{A} {B} {C}'), ('Ella!', f'{C} {D} {E}')]
    assert j.evidence['unplaced'] == 1 and j.value == 1

def test_windows_by_brute_force():
    rng = np.random.default_rng(2)
    for _ in range(40):
        rows = [rng.choice(['fox', 'hen', 'oak', 'mill', 'sail'], 2) for _ in range(rng.integers(3, 9))]
        source, target = ' '.join(f'{a} {b}.'.capitalize() for a, b in rows), rng.choice(['fox', 'hen', 'oak'], 2)
        weight = {w: math.log((len(rows) + 1)/sum(w in r for r in rows))
                  for w in set(target) if any(w in r for r in rows)}
        totals = [sum(v for w, v in sorted(weight.items()) if any(w in r for r in rows[i:i + 3]))
                  for i in range(len(rows) - 2)]
        assert window_places([' '.join(target)], source) == [totals.index(max(totals)) if max(totals) else None]

def test_the_floor_on_long_texts():
    source = ' '.join(f'The clerk name{i} met name{i//2} at noon.' for i in range(3000))
    assert judge(source, source, OrderShare()).value == pytest.approx(1 - 3/(3000*2999))
    assert judge(' '.join(['Run.']*5000), ' '.join(['Run.']*5000), OrderShare()).absence == 'too_long'

def test_windows_weigh_rare_words_more():
    source = 'The king rode. The king sang. The king drank. A dragon came. It rained. It snowed.'
    # the first window with the dragon (log 7) and a king (log 7/3)
    assert window_places(['The king met a dragon.'], source) == [1]
    assert window_places(['Nobody.'], source) == [None]

def test_likeness_falls_off_to_nothing_at_five_sentences():
    source = ' '.join(f'Filler{i} stood.' for i in range(6)) + ' Dragon.'
    row = likeness(['dragon'], source)[0]
    assert row.tolist() == pytest.approx([0, 0] + [math.log(8)*x for x in (.2, .4, .7, .9, 1)])

# --- time cues

BACK = ['What follows now is what had led up to that night.', 'This is how it had begun.',
        'From here on is told what had happened before.', 'Let us go back to the beginning.',
        'Before that, the following had happened.']
NOT_BACK = ['He followed her to the beginning of the lane.', 'The following morning he left before dawn.',
            'They told him earlier.', 'The story follows a girl who grows up.', 'She came back before noon.']

@pytest.mark.parametrize('sentence', BACK)
def test_sentences_that_a_narrator_may_say(sentence): assert narrates(sentence)

@pytest.mark.parametrize('sentence', ['He followed her to the beginning of the lane.',
                                      'They told him earlier.', 'The train came to Paris.',
                                      '"Now for the end," said the cook.',
                                      'It rained.', 'The story ' + 'and the story '*6 + 'ended.'])
def test_sentences_that_no_narrator_says(sentence): assert not narrates(sentence)

def test_the_sentences_that_were_looked_at():
    "As the notebook says."
    cues, ordinary = time_cues.CUES + time_cues.MORE_CUES, time_cues.ORDINARY + time_cues.MORE_ORDINARY
    assert (len(cues), len(ordinary)) == (69, 88) and not set(cues) & set(ordinary)
    assert (sum(map(narrates, cues)), sum(map(narrates, ordinary))) == (63, 41)
    assert all(map(steps_back, time_cues.STEPS))
    assert not [s for s in time_cues.NO_STEPS + time_cues.ORDINARY if steps_back(s)]

@pytest.mark.parametrize('event', ['The crew decided to turn back before the ice thickened.',
                                   'She started going back to church.',
                                   'The police began looking back at the case.',
                                   'Ann had to go back before the shop closed.',
                                   'Before dawn, the whole story came out.'])
def test_an_event_that_sounds_like_a_cue_makes_no_true_text_false(event):
    """Halves exchanged around such an event are what a flashback looks like; where the words may be a narrator's,
    nobody can tell it from one, but it stands no higher than the truth."""
    true, lie = f'{A} {B} {C} {event} {D} {E} {F}', f'{D} {E} {F} {event} {A} {B} {C}'
    assert judge(true, SOURCE).value == judge(true, SOURCE, OrderPath(cues=False)).value
    assert judge(lie, SOURCE).value <= judge(true, SOURCE).value
    assert judge(lie, SOURCE, OrderPath(cues=False)).value < .9
    if not narrates(event): assert judge(lie, SOURCE).value == judge(lie, SOURCE, OrderPath(cues=False)).value

def test_steps_back():
    assert all(map(steps_back, ['Three years earlier they had met.', 'Earlier, he slept.',
                                'He had seen it two days before.', 'A flashback shows the war.']))
    assert not any(map(steps_back, ['He slept before the war.', 'It was an early train.',
                                    'Two days later they met.', 'She waited three days before she wrote.']))

def test_spans_of_several_cues():
    assert spans_back(['E rose.', BACK[1], 'C rose.', 'D rose.', BACK[1], 'A rose.']) == [(1, [2, 3]), (4, [5])]
    # nothing comes before the first or after the last
    assert spans_back([BACK[1], 'A rose.', BACK[1]]) == [] == spans_back([])

SOURCE = ' '.join(f'{a} found the {b}. It was {c} weather.'
                  for a, b, c in zip(('Anna', 'Bela', 'Cora', 'Dora', 'Ella', 'Fina'),
                                     ('apple', 'bucket', 'candle', 'drum', 'engine', 'fiddle'),
                                     ('mild', 'wet', 'dry', 'hot', 'grim', 'foul')))
A, B, C, D, E, F = (f'{a} found the {b}.' for a, b in zip(('Anna', 'Bela', 'Cora', 'Dora', 'Ella', 'Fina'),
                                                          ('apple', 'bucket', 'candle', 'drum', 'engine', 'fiddle')))

def test_every_order_of_six_is_below_the_true_one():
    true = judge(' '.join((A, B, C, D, E, F)), SOURCE).value
    rng = np.random.default_rng(0)
    for order in [rng.permutation(6) for _ in range(30)]:
        if list(order) != list(range(6)):
            assert judge(' '.join((A, B, C, D, E, F)[i] for i in order), SOURCE).value < true

def test_a_flashback_is_true_only_with_its_cue():
    true, told = judge(' '.join((A, B, C, D, E, F)), SOURCE).value, f'{E} {F} {{}} {A} {B} {C} {D}'
    assert true >= judge(told.format(BACK[1]), SOURCE).value > judge(told.format(''), SOURCE).value + .1
    assert judge(told.format(BACK[1]), SOURCE).evidence['cues'] == [2]
    assert judge(told.format(BACK[1]), SOURCE, OrderPath(cues=False)).value < true
    false = f'{A} {B} {C} {BACK[1]} {D} {E} {F}' # a cue that says what isn't so is not heeded
    assert judge(false, SOURCE).evidence['cues'] == []

def test_a_step_back_may_belong_earlier_and_stays_where_it_fits():
    cued, plain = judge(f'{B} {C} Two days earlier {A} {D}', SOURCE), judge(f'{B} {C} {A} {D}', SOURCE)
    assert cued.evidence['cues'] == [2] and cued.value > plain.value
    assert [p['source'][0] for p in cued.evidence['places']] == sorted(p['source'][0] for p in cued.evidence['places'])
    kept = judge(f'{A} {B} Two days earlier {C} {D}', SOURCE)
    assert kept.evidence['cues'] == [] and len(kept.evidence['places']) == 4

def test_an_interjection_returns():
    told = f'{A} {C} {D} Here is what had happened before. {B} So much for the past. {E} {F}'
    assert judge(told, SOURCE).evidence['cues'] == [3]
    assert judge(told, SOURCE).value > judge(f'{A} {C} {D} {B} {E} {F}', SOURCE).value

def test_evidence_points_at_the_sentences():
    j = judge(f'{A} {D} Nonsense blabla.', SOURCE)
    assert [(f'{A} {D}'[slice(*p['target'])], SOURCE[slice(*p['source'])])
            for p in j.evidence['places']] == [(A, A), (D, D)]
    assert j.evidence['unplaced'] == 1 and 0 <= j.parts['confidence'] <= 1

# --- absences and hostile texts

@pytest.mark.parametrize('evaluator', ['order_share', 'order_path'])
@pytest.mark.parametrize('target, source, why',
                         [('Anna found the apple.', SOURCE, '1 of'), (f'{A} {B}', 'Anna found it.', '1 sentence with'),
                          (f'{A} {B}', '... !!', 'no sentence'), ('Whales sing. Ships sail.', SOURCE, 'none of'),
                          ('?! ...', SOURCE, 'none of')])
def test_no_order_to_judge(evaluator, target, source, why):
    j = judge(target, source, get(evaluator))
    assert j.value is None and j.absence == 'inapplicable' and why in j.evidence['why']

def test_empty_fields_and_bad_options():
    frame = evaluate(OrderPath(), [Example('a', target=A, source=''), Example('b', target=A)], progress=False)
    assert list(frame.absence) == ['inapplicable']*2 and [e['missing_field'] for e in frame.evidence] == ['source']*2
    for slip in (0, 1, -1): 
        with pytest.raises(BadInput, match='slip'): OrderPath(slip=slip)

SCRIPTS = {'Russian': ['Анна нашла яблоко.', 'Потом Борис уронил ведро.', 'Вечером Вера зажгла свечу.'],
           'Chinese': ['安娜找到了苹果。', '鲍里斯打翻了水桶。', '维拉点燃了蜡烛。'],
           'Arabic': ['وجدت آنا التفاحة.', 'أسقط بوريس الدلو.', 'أشعلت فيرا الشمعة.'],
           'Hindi': ['अन्ना को सेब मिला।', 'बोरिस ने बाल्टी गिराई।', 'वेरा ने मोमबत्ती जलाई।']}

@pytest.mark.parametrize('script', SCRIPTS)
def test_any_script(script):
    said = SCRIPTS[script]
    true, lie = (judge(' '.join(x), ' '.join(said)).value for x in (said, said[::-1]))
    assert true > lie

def test_texts_without_a_sentence_end():
    words = [f'word{i}' for i in range(2000)]
    source = ' '.join(words)
    forward, backward = ' '.join(words[::2]), ' '.join(w for i in range(1900, -1, -100) for w in words[i:i + 100:2])
    assert len(pieces(source)) == 25 and judge(forward, source).value > judge(backward, source).value

def test_megabytes():
    rng = np.random.default_rng(0)
    source = ' '.join(f'Name{i} met name{j}.'
                      for i, j in zip(rng.integers(0, 5000, 40_000), rng.integers(0, 5000, 40_000)))
    assert len(source) > 900_000
    told = [source[s.start:s.end] for s in pieces(source)[::4000]]
    assert judge(' '.join(told), source).value > judge(' '.join(told[::-1]), source).value
    assert judge(source[:30_000], source).absence == 'too_long'
    assert judge('a'*1_000_000, source).absence == 'inapplicable' and judge(A, 'a'*1_000_000).absence == 'inapplicable'

@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_gives_a_number_or_an_absence(target, source):
    for evaluator in (OrderPath(), OrderShare()):
        j = judge(target, source, evaluator)
        assert (j.value is None and j.absence in ('inapplicable', 'too_long')) or 0 <= j.value <= 1

def test_lone_surrogates(): assert judge(f'{A} \ud800x {B}', SOURCE + ' \udfff').value is not None

def test_stems_join_what_unicode_writes_in_two_ways(): assert stems('Cafe\u0301') == stems('CAFÉ') == ['café']

# --- what is reached

def test_the_aims_on_the_holmes_summaries():
    """Two draws of the lies, none picked: a mean AUC above 0.90 on average, and in each draw far above the baseline. Of
    twelve true summaries, retold with flashbacks or not, at most two are accused where nine of ten easy lies are caught
    (version 3 accused none of these: what its successor gains on StorySumm it pays for here)."""
    from factlib.benchmarks.base import load
    from factlib.metaeval.order import false_alarms, order_aucs
    reached = []
    for seed in range(2):
        examples = load('holmes_order', seed=seed).examples
        frames = {name: evaluate(get(name), examples, progress=False) for name in ('order_share', 'order_path')}
        means = {name: order_aucs(f).set_index('difficulty').auc['mean'] for name, f in frames.items()}
        reached.append(means['order_path'])
        alarms = false_alarms(frames['order_path']).iloc[0]
        assert means['order_path'] > means['order_share'] + .1 and max(alarms.original,
                                                                       alarms.flashback, alarms.parallel) <= 2/12, seed
    assert sum(reached)/2 > .90

@pytest.mark.skipif(not os.environ.get('FACTLIB_DATA')
                    or not os.path.isfile(os.path.join(os.environ['FACTLIB_DATA'], 'storysumm', 'stories.parquet')),
                    reason='FACTLIB_DATA has no StorySumm')
def test_the_aims_on_storysumm():
    """Six draws of the lies that move events, none picked (the seeds 0 to 5, of which the evaluator was built on the
    lies of 14 stories). The aim on all stories: a mean AUC of .97, extreme .90, the worst draw .86; of flashbacks with
    cues from before the rules at most one in twenty accused where nine of ten easy lies are caught. The aim at hard
    lies (15 %) isn't reached, so it isn't here."""
    from factlib.benchmarks.base import load
    from factlib.metaeval.order import false_alarms, order_aucs
    reached, accused = [], []
    for seed in range(6):
        frame = evaluate(OrderPath(), load('storysumm_order', seed=seed, announced=True).examples, progress=False)
        reached.append(order_aucs(frame).set_index('difficulty').auc)
        alarms = false_alarms(frame).iloc[0]
        accused.append(alarms.flashback)
        assert max(alarms.original, alarms.parallel) <= .05, seed
    mean = lambda difficulty: sum(r[difficulty] for r in reached)/6
    assert mean('mean') >= .97 and mean('extreme') >= .90 and min(r['extreme'] for r in reached) >= .86
    assert sum(accused)/6 <= .05
