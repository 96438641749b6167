"The benchmarks of true sentences in a false order: what is in them, bad files, and their AUC against scikit-learn."
import hashlib
import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from factlib.benchmarks.base import BENCHMARKS, load
from factlib.benchmarks.montagelie import (CONTROLS, CUES, DIFFICULTIES,
                                           LEVELS, _storysumm_rows, cue_of, flashback, lies, reordered, storysumm_marks,
                                           summary, text_key)
from factlib.metaeval.order import cue_alarms, false_alarms, order_aucs, order_tests
from factlib.benchmarks.samples import Refused, stories
from factlib.core.files import shipped
from factlib.core.records import BadInput, Example
from factlib.perturb.order import BANDS, inversions, most_inversions

# ---- our summaries

@pytest.mark.parametrize('story', stories(), ids=lambda s: s.id)
def test_each_sentence_of_a_summary_can_be_checked_in_the_story(story):
    told = summary(story.id)
    sentences = told['sentences']
    assert told['title'] == story.title
    for s in sentences: assert story.text.count(s['quote']) == 1 and 2 <= len(s['quote'].split()) <= 20, s
    assert len({s['quote'] for s in sentences}) == len({s['text'] for s in sentences}) == len(sentences)
    text = ' '.join(s['text'] for s in sentences)
    assert 150 <= len(text.split()) <= 300
    assert all(re.fullmatch(r'[A-Z].*\.', s['text']) for s in sentences)
    # the order alone tells the time
    assert not re.search(r'\b(then|afterwards|later|meanwhile|finally|next|after that)\b', text, re.IGNORECASE)
    assert not any(re.match(r'(He|She|It|They|His|Her|This|That)\b', s['text']) for s in sentences)

@pytest.mark.parametrize('story', stories(), ids=lambda s: s.id)
def test_events_and_facts_of_a_summary(story):
    told = summary(story.id)
    facts = [i for i, s in enumerate(told['sentences']) if s.get('fact')]
    # neighbours, so that they may change places
    assert len(told['sentences']) - len(facts) >= 12 and len(facts) == 4
    assert facts == list(range(facts[0], facts[0] + 4))
    assert facts[-1] < told['ending_from'] < len(told['sentences']) - 1

def test_our_words_are_not_the_story_s():
    for story in stories():
        words = lambda t: re.findall(r'\w+', t.lower())
        have = words(story.text)
        runs = {tuple(have[i:i + 9]) for i in range(len(have))}
        ours = words(' '.join(s['text'] for s in summary(story.id)['sentences']))
        assert not any(tuple(ours[i:i + 9]) in runs for i in range(len(ours) - 8)), story.id

def test_there_is_no_thirteenth_story():
    with pytest.raises(BadInput, match='holmes-12'): summary('holmes-13')

# ---- orders

def test_holmes_order():
    b = load('holmes_order')
    assert b.truth_kind == 'label' and not b.refused and len({e.id for e in b}) == len(b) == 84
    for e in b:
        told = summary(e.group)['sentences']
        true = [s['text'] for s in told]
        assert e.truth == ('true' if e.level == 'true' else 'lie') and len(e.source) > 30_000
        if e.variant == 'flashback': continue
        # nothing but the order differs
        assert sorted(re.split(r'(?<=\.) (?=[A-Z])',
                               e.target)) == sorted(re.split(r'(?<=\.) (?=[A-Z])', ' '.join(true)))
        if e.level != 'true':
            low, high = BANDS[e.level]
            assert low <= 100*inversions(e.meta['order'])/66 <= high and len(e.meta['order']) == 12
            events = [s['text'] for s in told if not s.get('fact')]
            assert [e.target.index(t)
                    for t in (events[i] for i in e.meta['order'])] == sorted(e.target.index(t) for t in events)
    parallel = [e for e in b if e.variant == 'parallel']
    original = {e.group: e for e in b if e.id.endswith('/original/true')}
    assert len(parallel) == 12 and all(e.target != original[e.group].target for e in parallel)

def test_flashbacks_announce_the_ending():
    for e in load('holmes_order'):
        if e.variant != 'flashback': continue
        told = summary(e.group)
        ending = told['sentences'][told['ending_from']]['text']
        assert e.truth == 'true' and e.target.startswith(f'{told["opening"]} {ending} ')
        assert f'{told["back"]} {told["sentences"][0]["text"]}' in e.target
    assert flashback(['A.', 'B.', 'C.'], 2, 'X.', 'Y.') == 'X. C. Y. A. B.'
    for start in (0, 3):
        with pytest.raises(BadInput, match='1 to 2'): flashback(['A.', 'B.', 'C.'], start)

def test_orders_depend_on_seed_and_text_only():
    whole = {e.id: e for e in load('holmes_order')}
    assert all(whole[e.id] == e for e in load('holmes_order', n=4))
    assert len({e.group for e in load('holmes_order', n=4)}) == 4
    changed = [e for e in load('holmes_order', seed=1) if whole[e.id] != e]
    assert len(changed) > 40 and all(e.truth == 'lie' for e in changed)
    assert any(whole[e.id] != e for e in load('holmes_order', method='uniform'))
    assert load('holmes_order', seed='0').examples == load('holmes_order').examples
    with pytest.raises(BadInput, match='no splits'): load('holmes_order', split='test')

def test_short_texts_are_refused_with_a_type():
    made = lies('x', 'source', ['A.', 'B.', 'C.', 'D.'], 'g')
    refused = {m.id: m.reason for m in made if isinstance(m, Refused)}
    assert set(refused) == {'x/original/medium', 'x/original/extreme'}
    assert all(r.reason == 'too_few_sentences' and (r.asked, r.available) == (5, 4) for r in refused.values())
    assert reordered(['A', 'f', 'B', 'C'], [2, 0, 1], [0, 2, 3]) == ['C', 'f', 'A', 'B']

# ---- StorySumm

def write_storysumm(home, rows):
    (home/'storysumm').mkdir(parents=True)
    pd.DataFrame([dict(id=i, story_id=s, split=split, label=label, summary=list(text))
                  for i, s, split, label, text in rows]).to_parquet(home/'storysumm'/'summaries.parquet')
    pd.DataFrame([dict(story_id=s, story=f'Story {s}.') for s in sorted({r[1] for r in rows})]).to_parquet(
        home/'storysumm'/'stories.parquet')

def test_storysumm_order_on_made_up_rows(tmp_path, monkeypatch):
    parallel = json.loads(shipped('data/order/storysumm.json').read_text(encoding='utf-8'))['parallel']
    known, order = next((i, p['order']) for i, p in parallel.items())
    write_storysumm(tmp_path, [('a', 1, 'val', 1, 'ABCDEF'), ('b', 1, 'val', 0, 'ABCDEF'),
                               ('c', 2, 'test', 1, 'ABC'), (known, 2, 'test', 1, 'ABCDEFGHIJKLM'[:len(order)])])
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path))
    b = load('storysumm_order')
    targets = {e.id: e.target for e in b}
    assert targets['storysumm-a/original/true'] == 'A B C D E F' and 'storysumm-b/original/true' not in targets
    cue = CUES[int(hashlib.sha256(b'0/storysumm-a').hexdigest(), 16) % 12]
    assert targets['storysumm-a/flashback/true'] == f'The end of it comes first. E F {cue} A B C D'
    assert next(e.meta for e in b if e.id == 'storysumm-a/flashback/true') == dict(cue=cue)
    assert {r.id: r.reason.asked for r in b.refused} == {'storysumm-c/original/easy': 4,
                                                         'storysumm-c/original/medium': 5,
                                                         'storysumm-c/original/extreme': 5}
    assert targets['storysumm-c/original/hard'] in ('A C B', 'B A C')
    assert targets[f'storysumm-{known}/parallel/true'] == ' '.join('ABCDEFGHIJKLM'[i] for i in order)
    assert {e.group for e in b} == {'storysumm-1', 'storysumm-2'} and {e.source for e in b} == {'Story 1.', 'Story 2.'}
    assert {e.group for e in load('storysumm_order', split='val')} == {'storysumm-1'}
    assert not load('storysumm_order', split='val').refused
    with pytest.raises(BadInput, match='test, val'): load('storysumm_order', split='dev')
    one = load('storysumm_order', n=1)
    assert len({e.group for e in one}) == 1
    assert all(r.id.startswith(tuple(e.id.rsplit('/', 2)[0] for e in one)) for r in one.refused)

def test_cues():
    "At least eight, whole sentences; they depend on the seed and the id alone, and on both."
    assert len(set(CUES)) == len(CUES) >= 8 and all(re.fullmatch(r'[A-Z].*[.]', c) for c in CUES)
    drawn = [cue_of(f'storysumm-{i}', seed) for seed in range(3) for i in range(400)]
    # 100 expected; a binomial stays within 4.7 standard deviations
    assert all(60 <= drawn.count(c) <= 145 for c in CUES)
    assert sum(cue_of(f'x{i}', 0) == cue_of(f'x{i}', 1) for i in range(600)) < 90 # 50 expected by chance
    assert {e.meta['cue'] for e in load('holmes_order') if e.variant
            == 'flashback'} == {summary(s.id)['back'] for s in stories()}

def test_a_summary_of_one_sentence_has_no_lies_and_no_flashback(tmp_path, monkeypatch):
    write_storysumm(tmp_path, [('a', 1, 'val', 1, ['It ended well.']), ('c', 2, 'test', 1, 'ABC')])
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path))
    b = load('storysumm_order')
    assert [e.id for e in b if e.group == 'storysumm-1'] == ['storysumm-a/original/true']
    assert any(e.id == 'storysumm-c/flashback/true' for e in b)
    refused = {r.id: (r.reason.reason, r.reason.asked, r.reason.available)
               for r in b.refused if r.id.startswith('storysumm-a/')}
    assert refused == {f'storysumm-a/original/{d}': ('too_few_sentences', n, 1)
                       for d, n in dict(easy=4, medium=5, hard=3, extreme=5).items()} | {
                           'storysumm-a/flashback/true': ('too_few_sentences', 2, 1)}
    assert all(isinstance(m, Refused) for m in lies('x', 's', ['Only one.'], 'g'))
    assert all(isinstance(m, Refused) for m in lies('x', 's', ['A.', 'f.', 'f.'], 'g', movable=[0]))

def test_storysumm_order_needs_its_files(tmp_path, monkeypatch):
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path))
    with pytest.raises(BadInput, match='storysumm/summaries.parquet'): load('storysumm_order')

@pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'), reason='FACTLIB_DATA is not set: StorySumm is not here')
def test_storysumm_order_on_the_real_summaries():
    b = load('storysumm_order', sentences='all')
    n = {(v, l): sum(e.variant == v and e.level == l for e in b) for v in ('original', *CONTROLS) for l in LEVELS}
    # of 36 faithful summaries 5 have three sentences and 6 have four
    assert [n['original', l] for l in LEVELS] == [36, 31, 25, 36, 25] and n['flashback', 'true'] == 36
    assert n['parallel', 'true'] == 5
    assert len(b.refused) == 5 + 11 + 11

@pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'), reason='FACTLIB_DATA is not set: StorySumm is not here')
@pytest.mark.parametrize('seed', range(3))
def test_only_events_of_storysumm_are_moved(seed):
    "Of 36 summaries 4 have fewer than two events, 5 have two, 7 three and 7 four (counted by hand from the marks)."
    b, marks = load('storysumm_order', seed=seed), storysumm_marks()
    n = [sum(e.variant == 'original' and e.level == l for e in b) for l in LEVELS]
    assert n == [36, 20, 13, 27, 13] and len(b.refused) == 4*36 - 20 - 13 - 27 - 13
    summaries = {f'storysumm-{r.id}': [s.strip() for s in r.summary] for r in _storysumm_rows(None)[0].itertuples()}
    assert {i: len(s) for i, s in summaries.items()} == {f'storysumm-{i}': m['sentences'] for i, m in marks.items()}
    for e in b:
        if e.level == 'true': continue
        item = e.id.rsplit('/', 2)[0]
        mark, sentences = marks[item.removeprefix('storysumm-')], summaries[item]
        events = sorted(set(mark['first']) & set(mark['second']))
        told, at = [None]*len(sentences), dict(zip(events, (events[i] for i in e.meta['order'])))
        for i in range(len(sentences)): told[i] = sentences[at.get(i, i)]
        assert e.target == ' '.join(told) and sum(at[i] != i for i in events) >= 2 and inversions(e.meta['order']) >= 1

def test_marks_are_two_whole_passes():
    marks = storysumm_marks()
    assert len(marks) == 36 and sum(m['sentences'] for m in marks.values()) == 229
    for m in marks.values():
        for which in ('first', 'second'):
            assert m[which] == sorted(set(m[which])) and all(0 <= i < m['sentences'] for i in m[which])
    with pytest.raises(BadInput, match='events'): load('storysumm_order', sentences='some')

# ---- the release

TUPLE = {'s': 'Source.', 'g': 'True.', 'l_e': 'Easy.', 'l_m': 'Medium.', 'l_h': 'Hard.', 'l_eh': 'Extreme.'}
WHOLE = TUPLE | {f"{k}'": f'{v[:-1]}, anew.' for k, v in TUPLE.items() if k != 's'}

def released(tmp_path, rows, name='rows.jsonl'):
    path = tmp_path/name
    path.write_text('\n'.join(r if isinstance(r, str) else json.dumps(r) for r in rows)
                    if name.endswith('l') else json.dumps(rows), encoding='utf-8')
    return load('montagelie', path=path)

def test_whole_tuples(tmp_path):
    b = released(tmp_path, [WHOLE | {'id': 7, 'level': 'x', 'variant': 1, 'item': 2}, TUPLE | {'s': 'Other.'}])
    assert len(b) == 15 and not b.refused and len({e.group for e in b}) == 2
    got = {(e.variant, e.level): (e.target, e.truth) for e in b.examples[:10]}
    assert got['original', 'extreme'] == ('Extreme.', 'lie') and got['paraphrase', 'true'] == ('True, anew.', 'true')
    assert got['paraphrase', 'medium'] == ('Medium, anew.', 'lie')
    assert b.examples[0].id == 'montagelie-0001/original/true'
    assert b.examples[0].meta == {'id': 7, 'level': 'x', 'variant': 1, 'item': 2, 'row': 1}

@pytest.mark.parametrize('wrap', [lambda rows: rows, lambda rows: {'data': rows},
                                  lambda rows: {'a': rows[0], 'b': rows[1]}])
def test_json_forms(tmp_path, wrap): assert len(released(tmp_path, wrap([WHOLE, WHOLE]), 'rows.json')) == 20

def test_all_lists_of_an_object_are_read(tmp_path):
    third = TUPLE | {'s': 'Third.'}
    b = released(tmp_path, {'version': '1.0', 'booksum': [WHOLE, TUPLE],
                            'about': {'year': 2025}, 'summscreen': [third, 3]}, 'rows.json')
    assert len(b) == 10 + 5 + 5
    assert [(e.meta['row'], e.meta['part']) for e in b
            if e.id.endswith('/original/true')] == [(1, 'booksum'), (2, 'booksum'), (3, 'summscreen')]
    assert [r.reason for r in b.refused] == ['Row 4: it must be a JSON object, not a int.']
    assert [e.meta['part'] for e in released(tmp_path, {'a': TUPLE, 'b': third}, 'rows.json')] == ['a']*5 + ['b']*5

@pytest.mark.parametrize('row', [TUPLE, TUPLE | {'events': ['He came.', 'He went.'], 'orders': {'easy': [1, 0]}}])
def test_one_row_saved_as_an_object(tmp_path, row):
    b = released(tmp_path, row, 'rows.json')
    assert [e.target for e in b] == ['True.', 'Easy.', 'Medium.', 'Hard.', 'Extreme.'] and not b.refused
    assert all(e.meta['row'] == 1 and 'part' not in e.meta for e in b)

@pytest.mark.parametrize('data, says', [({'g': 'T', 'l_e': 'E'}, 'no row .it has no source.*its keys are g, l_e'),
                                        ({}, 'its keys are none'), ({'data': []}, 'neither a list'),
                                        ('text', 'not a str'), (None, 'not a NoneType')])
def test_json_that_holds_no_rows(tmp_path, data, says):
    with pytest.raises(BadInput, match=says): released(tmp_path, data, 'rows.json')

def test_line_separators_of_unicode_end_no_row(tmp_path):
    told = 'One.\u2028Two.\u2029Three.\x85Four.'
    path = tmp_path/'rows.jsonl'
    path.write_bytes('\r\n'.join(json.dumps(row, ensure_ascii=False) for row in (TUPLE | {'s': told}, TUPLE)).encode())
    b = load('montagelie', path=path)
    assert len(b) == 10 and not b.refused and b.examples[0].source == told

def test_the_same_source_is_one_group(tmp_path):
    b = released(tmp_path, [TUPLE, TUPLE | {'g': 'Also true.'}])
    assert len({e.group for e in b}) == 1 and len({e.id for e in b}) == 10

SPELLINGS = [dict(source='S', target='T', easy='E', medium='M', hard='H', extreme='X'),
             dict(source_text='S', correct='T', lie_easy='E', lie_medium='M', lie_hard='H', lie_extreme_hard='X'),
             dict(Source='S', gold_target='T',
                  **{'Easy-Lie': 'E', 'Medium Lie': 'M', 'hard lie text': 'H', 'extremeHard': 'X'}),
             dict(s='S', g='T', lies=dict(easy='E', medium='M', hard='H', extreme='X')),
             dict(source='S', original=dict(true='T', easy='E', medium='M', hard='H', extreme='X'),
                  rephrased=dict(true='T2', easy='E2', medium='M2', hard='H2', extreme='X2'))]

@pytest.mark.parametrize('row', SPELLINGS)
def test_spellings(tmp_path, row):
    b = released(tmp_path, [row])
    assert [e.target for e in b if e.variant == 'original'] == list('TEMHX') and not b.refused

BAD = [('{"s": ', 'no JSON'), ('['*100_000, 'no JSON .*levels deep'), ([1], 'not a list'),
       ({'g': 'T'}, 'source is missing; its keys are g'), (TUPLE | {'s': 3}, 'source is no text but a int'),
       (TUPLE | {'s': '  '}, 'source is empty'),
       (TUPLE | {'source': 'S'}, "source is given twice, as 's' and as 'source'")]

@pytest.mark.parametrize('row, says', BAD)
def test_bad_rows_are_refused_one_by_one(tmp_path, row, says):
    b = released(tmp_path, [TUPLE, row, TUPLE | {'s': 'Third.'}])
    assert len(b) == 10 and len(b.refused) == 1 and b.refused[0].reason.startswith('Row 2: ')
    assert re.search(says, b.refused[0].reason)
    assert [e.meta['row'] for e in b] == [1]*5 + [3]*5
    with pytest.raises(BadInput, match='no row of MontageLie.*Row 1'): released(tmp_path, [row])

@pytest.mark.parametrize('change, says', [({'l_e': None}, 'easy lie is no text'),
                                          ({'l_h': ''}, 'hard lie is empty'),
                                          ({"g'": 'T', "l_e'": 'E', "l_m'": 'M', "l_h'": 'H'},
                                           'extreme lie, paraphrased is missing')])
def test_bad_texts_are_refused_one_by_one(tmp_path, change, says):
    b = released(tmp_path, [TUPLE | change])
    assert len(b.refused) == 1 and says in b.refused[0].reason
    assert len(b) == len(TUPLE | change) - 2 + (len(change) == 4)

def test_bad_files(tmp_path, monkeypatch):
    monkeypatch.setenv('FACTLIB_DATA', '')
    with pytest.raises(BadInput, match='FACTLIB_DATA'): load('montagelie')
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path))
    with pytest.raises(BadInput, match='montagelie/montagelie.jsonl'): load('montagelie')
    (tmp_path/'montagelie').mkdir()
    (tmp_path/'montagelie'/'montagelie.json').write_text(json.dumps([TUPLE]))
    assert len(load('montagelie')) == 5
    for name, text, says in (('a.json', '{', 'one object a line'), ('f.json', '['*100_000, 'is no JSON'),
                             ('b.json', '3', 'list of rows'), ('c.jsonl', '', 'no row'), ('d.txt', '', 'no .json')):
        (tmp_path/name).write_text(text)
        with pytest.raises(BadInput, match=says): load('montagelie', path=tmp_path/name)
    (tmp_path/'e.jsonl').write_bytes(b'\xff\xfe\xff')
    with pytest.raises(BadInput, match='UTF-8'): load('montagelie', path=tmp_path/'e.jsonl')
    with pytest.raises(BadInput, match='no splits'): load('montagelie', split='test', path=tmp_path/'a.json')

def test_keys_that_are_no_texts():
    for key in ('id', 'source_dataset', 'dataset', 'easy_events', 'shuffled',
                'text', 'paraphrase', 'hard_easy', "s'", '', '3'):
        assert text_key(key) is None, key
    assert text_key('l′_eh') == text_key("l_eh'") == text_key('paraphrased_extreme') == ('paraphrase', 'extreme')

def test_they_are_registered(): assert {'montagelie', 'storysumm_order', 'holmes_order'} <= set(BENCHMARKS)

# ---- statistics

def judged(seed=0, groups=15, gap=1.0):
    "Scores with a true effect; one item lacks its easy lie, one score is missing."
    rng, rows = np.random.default_rng(seed), []
    for g in range(groups):
        for variant, level in [('original', l) for l in LEVELS] + [('paraphrase', l)
                                                                   for l in LEVELS] + [(c, 'true') for c in CONTROLS]:
            rows.append(dict(example_id=f'i{g}/{variant}/{level}', evaluator='e',
                             value=round(rng.normal() + gap*(level == 'true'), 1),
                             group=f'g{g//2}', variant=variant, level=level))
    return pd.DataFrame(rows)

@pytest.mark.parametrize('variant', ['original', 'paraphrase', None])
def test_aucs_are_scikit_learn_s(variant):
    frame = judged()
    table = order_aucs(frame, variant).set_index('difficulty')
    kept = frame[frame.variant.eq(variant) if variant else frame.variant.isin(['original', 'paraphrase'])]
    for d in DIFFICULTIES:
        both = kept[kept.level.isin(['true', d])]
        assert table.auc[d] == pytest.approx(roc_auc_score(both.level == 'true', both.value))
        assert table.true[d] == table.lies[d] == len(both)/2 and table.groups[d] == 8
        assert table.ci_low[d] <= table.auc[d] <= table.ci_high[d]
    assert table.auc['mean'] == pytest.approx(table.auc[list(DIFFICULTIES)].mean())
    assert table.ci_low['mean'] < table.auc['mean'] < table.ci_high['mean']

def test_only_counterparts_count():
    frame = judged()
    frame = frame[frame.example_id != 'i0/original/easy']
    table = order_aucs(frame).set_index('difficulty')
    both = frame[(frame.variant == 'original') & frame.level.isin(['true', 'easy']) & ~frame.example_id.str.startswith(
        'i0/')]
    assert table.auc['easy'] == pytest.approx(roc_auc_score(both.level == 'true', both.value))
    assert list(table.true) == [14, 15, 15, 15, 15] and list(table.lies) == [14, 15, 15, 15, 59]

def test_a_true_text_without_a_lie_was_asked_all_the_same():
    frame = judged()
    frame = frame[(frame.level == 'true') | ~frame.example_id.str.startswith(('i0/', 'i1/', 'i2/'))]
    frame['value'] = frame.value.astype(object).where(frame.example_id != 'i0/original/true', None)
    table = order_aucs(frame).set_index('difficulty')
    assert (table.true['mean'], table.lies['mean'], table.scored['mean']) == (12, 48, 60)
    assert set(table.asked) == {15 + 48} and set(table.answered) == {15 + 48 - 1}

def test_missing_scores_are_counted():
    frame = judged()
    frame['value'] = frame.value.astype(object).where(frame.example_id != 'i3/original/true', None)
    table = order_aucs(frame).set_index('difficulty')
    assert table.true['hard'] == 15 and table.scored['hard'] == 29
    assert (table.true['mean'], table.lies['mean'], table.scored['mean']) == (15, 60, 74) # one of 75 texts has no score

def test_false_alarms_by_hand():
    rows = [('original', 'easy', x) for x in range(1, 11)] + [('original', 'true', x) for x in (8, 9, 10, 11)] + [
        ('flashback', 'true', x) for x in (9, 9.5)] + [('parallel', 'true', None)]
    frame = pd.DataFrame([dict(evaluator='e', variant=v, level=l, value=x) for v, l, x in rows])
    row, = false_alarms(frame).to_dict('records')
    # nine of ten easy lies are at 9 or below
    assert row == dict(evaluator='e', threshold=9, missing=1, original_n=4, original=.5, flashback_n=2, flashback=.5)
    with pytest.raises(BadInput, match='no score'): false_alarms(frame, 'hard')
    assert false_alarms(frame, caught=1).threshold[0] == 10 and false_alarms(frame, caught=.55).threshold[0] == 6
    for caught in (90, 0, -.1, 'many', None):
        with pytest.raises(BadInput, match='caught'): false_alarms(frame, caught=caught)

def test_cue_alarms_by_hand():
    values = {'a': 5, 'b': 9, 'c': 12, 'd': None}
    examples = [Example(f'{i}/flashback/true', target='x', variant='flashback',
                        level='true', meta=dict(cue='Before.' if i in 'ab' else 'Then.')) for i in values]
    frame = pd.DataFrame([dict(example_id=f'{x}/original/easy', evaluator='e',
                               value=x, variant='original', level='easy') for x in range(1, 11)]
                         + [dict(example_id=f'{i}/flashback/true', evaluator='e',
                                 value=x, variant='flashback', level='true') for i, x in values.items()])
    # nine is above eight
    assert cue_alarms(frame, examples,
                      caught=.8).to_dict('records') == [dict(evaluator='e', cue='Before.', n=2, accused=1, share=.5),
                                                        dict(evaluator='e', cue='Then.', n=1, accused=0, share=0.)]
    assert cue_alarms(frame, examples).accused.tolist() == [2, 0]
    with pytest.raises(BadInput, match='caught'): cue_alarms(frame, examples, caught=2)

# ---- tests between evaluators

def unbalanced():
    """Four long texts with lies of all difficulties, four short ones with an easy and a hard lie; as in StorySumm,
    short texts lack some lies."""
    texts = [(f'i{i}', 200 + 10*i, LEVELS) for i in range(4)] + [(f'i{i}', 50 + 10*i, ('true', 'easy', 'hard'))
                                                                 for i in range(4, 8)]
    rows = [dict(example_id=f'{i}/original/{d}', evaluator=e,
                 value=float(length if e == 'length' else 1 if e == 'constant' else d == 'true'),
                 group=i, variant='original', level=d)
            for e in ('constant', 'length', 'perfect') for i, length, levels in texts for d in levels]
    return pd.DataFrame(rows)

def test_length_is_no_evidence_where_texts_have_different_numbers_of_lies():
    """A re-ordered text is as long as the true one. All lies together would give the length another AUC than one half,
    because the long texts have more of them."""
    frame = unbalanced()
    length = frame[frame.evaluator == 'length']
    assert roc_auc_score(length.level == 'true', length.value) < .45 # what is wrong with all lies together
    tests = order_tests(frame, 'constant').set_index(['evaluator', 'difficulty']).loc['length']
    assert list(tests.index) == [*DIFFICULTIES, 'mean'] and tests.difference.tolist() == [0]*5
    assert tests.p.tolist() == [1]*5
    assert tests.scored.tolist() == [16, 8, 16, 8, 32] and tests.groups.tolist() == [8, 4, 8, 4, 8]

def test_perfect_against_useless_has_a_p_and_stays_in_the_family():
    """Every source says the same: the difference is bounded, and all sources point one way, which two of 2^8 (2^4) ways
    to flip them do."""
    tests = order_tests(unbalanced(), 'constant').set_index(['evaluator', 'difficulty'])
    best = tests.loc['perfect']
    as_equal = 24**2/(4*4**2 + 4*2**2) # of the mean: four sources with four true texts each, four with two
    assert best.difference.tolist() == [.5]*5
    assert best.p.tolist() == pytest.approx([2/2**8, 2/2**4, 2/2**8, 2/2**4, 2/2**as_equal])
    assert (best.ci_low[best.p < .05] > 0).all() and (best.ci_low[best.p > .05] < 0).all()
    # the other has p 1, so the least of two counts twice
    assert (tests.family == 2).all() and best.q.tolist() == pytest.approx((2*best.p).tolist())
    assert (tests.loc['length'].q == 1).all()

def test_many_evaluators_can_be_significant():
    "Thirteen, one of them perfect: with 24 sources its p is small, and 13 times that is."
    frame = judged(groups=24, gap=0.)
    frame['group'] = [i.split('/')[0] for i in frame.example_id]
    others = [frame.assign(evaluator=f'e{k}', value=np.random.default_rng(k).normal(size=len(frame)))
              for k in range(12)]
    tests = order_tests(pd.concat([frame, *others,
                                   frame.assign(evaluator='perfect', value=(frame.level == 'true')*1.)]),
                        'e').set_index(['evaluator', 'difficulty'])
    assert (tests.family == 13).all() and tests.q['perfect', 'mean'] < .001

def test_mean_difference_is_that_of_the_means():
    frame = pd.concat([judged(), judged(1).assign(evaluator='f')])
    means = order_aucs(frame).query('difficulty == "mean"').set_index('evaluator').auc
    row = order_tests(frame, 'e').set_index('difficulty').loc['mean']
    assert row.difference == pytest.approx(means.f - means.e) and row.ci_low <= row.difference <= row.ci_high
    assert row.groups == 8
    same = order_tests(pd.concat([judged(), judged().assign(evaluator='f')]), 'e')
    assert (same.difference == 0).all() and (same.p == 1).all()

def test_an_evaluator_without_scores_is_not_in_the_family():
    frame = pd.concat([judged(), judged(1).assign(evaluator='f'), judged(2).assign(evaluator='none', value=None)])
    tests = order_tests(frame, 'e')
    assert (tests.family == 1).all() and tests[tests.evaluator == 'none'].p.isna().all()
    assert (tests[tests.evaluator == 'none'].scored == 0).all()

def test_bad_tables_of_judgements():
    frame = judged()
    for call in (lambda f: order_aucs(f), lambda f: order_tests(f, 'e')):
        with pytest.raises(BadInput, match="two judgements of 'i0/original/true' by 'e'"):
            call(pd.concat([frame, frame.head(1)]))
        with pytest.raises(BadInput, match="'e' has judged no lie"): call(frame[frame.level == 'true'])
        with pytest.raises(BadInput, match="variant 'original'"): call(frame[frame.variant == 'paraphrase'])
    with pytest.raises(BadInput, match="no judgements by 'g'"): order_tests(frame, 'g')
    only = order_tests(pd.concat([frame, frame.assign(evaluator='f')])[lambda f: f.level.isin(['true', 'hard'])],
                       'e')
    assert list(only.difficulty) == ['hard'] # and no mean of four

# One text a row, with a label: labels are mapped or refused

def labelled(path, rows):
    "Write rows as a file of the kind that its name says."
    if path.suffix == '.jsonl': path.write_text(''.join(json.dumps(r) + '\n' for r in rows), encoding='utf-8')
    else:
        import pandas as pd
        frame = pd.DataFrame(rows)
        frame.to_csv(path, index=False) if path.suffix == '.csv' else frame.to_parquet(path)
    return path

KINDS = pytest.mark.parametrize('kind', ['jsonl', 'csv', 'parquet'])
@KINDS
@pytest.mark.parametrize('name, value', [('is_true', 0), ('is_lie', True), ('verdict', 'false'), ('y', 1.5)])
def test_an_unknown_column_beside_one_text_a_row_may_be_a_label(tmp_path, kind, name, value):
    rows = [dict(source='S', target='T', id='1', **{name: value}),
            dict(source='S', target='U', id='2', **{name: value})]
    path = labelled(tmp_path/f'x.{kind}', rows)
    with pytest.raises(BadInput, match=f'column {name!r}, which may be a label'): load('montagelie', path=path)
    bare = labelled(tmp_path/f'y.{kind}', [dict(source='S', target='T', id='1', title='A day')])
    assert [e.truth for e in load('montagelie', path=bare)] == ['true']

MAPPINGS = [({'0': 'lie', '1': 'true'}, ['lie', 'true', 'lie']), ({'0': 'true', '1': 'lie'}, ['true', 'lie', 'true']),
            ({'0': 'easy', '1': 'true'}, ['easy', 'true', 'easy']),
            ({'0': 'true', '1': 'extreme'}, ['true', 'extreme', 'true'])]

@KINDS
@pytest.mark.parametrize('labels, levels', MAPPINGS, ids=['0 lie', '0 true', '0 easy', '1 extreme'])
@pytest.mark.parametrize('names', [('source', 'target'), ('document', 'summary'), ('article', 'response')],
                         ids='-'.join)
def test_every_mapping_of_labels(tmp_path, kind, labels, levels, names):
    path = labelled(tmp_path/f'f.{kind}', [{names[0]: 'A story.', names[1]: f'Text {i}.', 'label': label}
                                           for i, label in enumerate([0, 1, 0])])
    back = load('montagelie', path=path, labels=labels)
    assert [(e.source, e.target, e.level, e.truth) for e in back] == [
        ('A story.', f'Text {i}.', level, 'true' if level == 'true' else 'lie') for i, level in enumerate(levels)]
    assert len({e.group for e in back}) == 1 and len({e.id for e in back}) == 3 and not back.refused

@KINDS
@pytest.mark.parametrize('values', [[0, 1], ['lie', 'true'], [True, False], ['no', 'yes']], ids=str)
def test_labels_without_a_meaning_are_refused(tmp_path, kind, values):
    path = labelled(tmp_path/f'f.{kind}', [dict(source='S', target=f'T{v}', label=v) for v in values])
    with pytest.raises(BadInput, match='say what they mean'): load('montagelie', path=path)
    with pytest.raises(BadInput, match='a label means true, lie, easy, medium, hard, extreme'):
        load('montagelie', path=path, labels={str(v): 'false' for v in values})
    with pytest.raises(BadInput, match='has no meaning'): load('montagelie', path=path, labels={str(values[0]): 'lie'})
    with pytest.raises(BadInput, match='No row of'):
        load('montagelie', path=path, labels={str(v): 'lie' for v in values} | dict(perhaps='true'))

@KINDS
def test_a_missing_label_is_refused_by_its_row(tmp_path, kind):
    path = labelled(tmp_path/f'f.{kind}',
                    [dict(source='S', target='T', label='a'), dict(source='S', target='U', label=None),
                     dict(source='S', target='V', label='b')])
    back = load('montagelie', path=path, labels=dict(a='true', b='lie'))
    assert [e.target for e in back] == ['T', 'V'] and [r.reason for r in back.refused] == ['Row 2: it has no label.']

@KINDS
def test_columns_are_named_or_asked_for(tmp_path, kind):
    path = labelled(tmp_path/f'f.{kind}', [dict(book='S', words='T', verdict=0), dict(book='S', words='U', verdict=1)])
    columns, labels = dict(source='book', target='words', truth='verdict'), {'0': 'lie', '1': 'true'}
    assert [(e.source, e.target, e.truth) for e in load('montagelie', path=path, columns=columns,
                                                        labels=labels)] == [('S', 'T', 'lie'), ('S', 'U', 'true')]
    with pytest.raises(BadInput, match='no row of MontageLie|say which|no column'): load('montagelie', path=path)
    with pytest.raises(BadInput, match="no column 'page'"):
        load('montagelie', path=path, columns=columns | dict(source='page'), labels=labels)
    with pytest.raises(BadInput, match="no field 'text'"):
        load('montagelie', path=path, columns=columns | dict(text='words'), labels=labels)
    with pytest.raises(BadInput, match='is marked'): load('montagelie', path=path, columns=columns)

@KINDS
def test_tuples_of_other_kinds_of_file(tmp_path, kind):
    row = dict(document='S', summary='G', l_e='E', l_m='M', l_h='H', l_eh='X')
    assert [(e.level, e.target) for e in load('montagelie', path=labelled(tmp_path/f'f.{kind}', [row]))] == list(
        zip(('true', 'easy', 'medium', 'hard', 'extreme'), 'GEMHX'))
    other = {'book': 'S', 'told': 'G', **{k: v for k, v in row.items() if k.startswith('l_')}}
    back = load('montagelie', path=labelled(tmp_path/f'o.{kind}', [other]), columns=dict(source='book', target='told'))
    assert [e.target for e in back] == list('GEMHX')
    for columns, why in ((dict(source='page'), "no column 'page'"), (dict(question='book'), "no 'question'")):
        with pytest.raises(BadInput, match=why): load('montagelie', path=tmp_path/f'o.{kind}', columns=columns)

def test_levels_that_contradict_labels_are_refused(tmp_path):
    rows = [dict(source='S', target='T', label=0, level='hard'), dict(source='S', target='U', label=1, level='hard'),
            dict(source='S', target='V', label=0, level='true'), dict(source=' ', target='W', label=0),
            dict(source='S', target='X', label=1)]
    back = load('montagelie', path=labelled(tmp_path/'f.jsonl', rows), labels={'0': 'lie', '1': 'true'})
    assert [(e.level, e.truth) for e in back] == [('hard', 'lie'), ('true', 'true')]
    assert [r.reason for r in back.refused] == ["Row 2: its level is 'hard', and its label says 'true'.",
                                                "Row 3: its level is 'true', and its label says 'lie'.",
                                                'Row 4: the source is missing.']

def test_a_labelled_json_file_and_labels_where_there_are_none(tmp_path):
    (tmp_path/'f.json').write_text(json.dumps([dict(source='S', target='T', label=0)]))
    with pytest.raises(BadInput, match='save it as JSON lines'):
        load('montagelie', path=tmp_path/'f.json', labels={'0': 'lie'})
    with pytest.raises(BadInput, match="has no column 'label'"):
        load('montagelie', path=labelled(tmp_path/'f.jsonl', [dict(source='S', target='T')]), labels={'0': 'lie'})

def test_a_labelled_row_is_no_pair_for_the_builder(tmp_path):
    from factlib.benchmarks.montage_writer import true_pairs
    with pytest.raises(BadInput, match='Row 1: it has a label'):
        true_pairs(labelled(tmp_path/'f.jsonl', [dict(source='S', target='T', label=0)]))
    assert [e.target for e in true_pairs(labelled(tmp_path/'g.csv', [dict(document='S', summary='T')]))] == ['T']
