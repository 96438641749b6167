"""Running evaluators: order, concurrency, failures, interruption. And the baselines, against hand calculation and
scikit-learn."""
import asyncio, os, signal, sys, threading, time, warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings, strategies as st

from factlib.core.records import Absence, BadInput, Example, Judgement, Usage, signature
from factlib.text.spans import Span
from factlib.evaluators.base import EVALUATORS, EvaluationError, Evaluator, evaluate, get, register, summary
from factlib.text.words import LEAST_KNOWN, WORD, normalise, unreadable, vocabulary_of
from factlib.evaluators.offline.cohesion import AdjacentSimilarity, blocks
from factlib.evaluators.controls import Length, Random
from factlib.evaluators.pretrained import load_pretrained, split_revision
from factlib.evaluators.offline.fluency import OutOfVocabulary

def examples(n, **more): return [Example(f'e{i}', target=f'text {i}', **more) for i in range(n)]
def run(evaluator, items, **more): return evaluate(evaluator, items, progress=False, **more)

class Made(Evaluator):
    "Judges by a function of the example."
    name, signature = 'made', 'made|v:1'
    def __init__(self, f): self.f = f
    async def judge(self, example): return self.f(example)

def score(e, x=1, **more): return Judgement(e.id, 'made', value=x, **more)

class Waiting(Evaluator):
    name, signature = 'waiting', 'waiting|v:1'
    def __init__(self, seconds=.002):
        self.seconds, self.now, self.most, self.cancelled, self.started = seconds, 0, 0, 0, 0
    async def judge(self, example):
        self.now, self.started = self.now + 1, self.started + 1
        self.most = max(self.most, self.now)
        try: await asyncio.sleep(self.seconds * (1 + hash(example.id) % 3))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally: self.now -= 1
        return self.judgement(example, int(example.id[1:]))

class Conversation(Evaluator):
    "Counts its group's turns."
    name, signature = 'conversation', 'conversation|v:1'
    async def judge_group(self, group):
        await asyncio.sleep(.001)
        return [self.judgement(e, i, seen=[x.id for x in group]) for i, e in enumerate(group)]

# ---- the table

def test_order_is_kept_whatever_finishes_first():
    items = examples(200)[::-1]
    frame = run(Waiting(), items)
    assert frame.example_id.tolist() == [e.id for e in items] and frame.value.tolist() == [199 - i for i in range(200)]

def test_columns():
    items = [Example('a', target='x', group='g', variant='gold', level='2000'), Example('b', target='y')]
    answers = {'a': score(items[0], 3, parts={'fluency': 4, 'coherence': Absence.truncated},
                          evidence={'k': 1}, usage=Usage(2, 1, 10, 20, 99)),
               'b': Judgement('b', 'made', absence=Absence.refused, parts={'fluency': 2})}
    frame = run(Made(lambda e: answers[e.id]), items)
    assert list(frame.columns) == ['example_id', 'evaluator', 'value', 'absence',
                                   'fluency', 'coherence', 'coherence_absence', 'group', 'variant', 'level', 'evidence',
                                   'requests', 'cached', 'prompt_tokens',
                                   'completion_tokens', 'seconds', 'uncounted', 'prompt_bytes', 'unread_bytes', 'profile']
    assert frame.value.tolist() == [3, None] and frame.absence.tolist() == [None, 'refused']
    assert frame.fluency.tolist() == [4, 2] and frame.fluency.dtype == float
    assert frame.coherence.tolist() == [None, None] and frame.coherence_absence.tolist() == ['truncated', 'refused']
    assert frame.group.tolist() == ['g', 'b'] and frame.variant.tolist() == ['gold', None]
    assert frame.evidence[0] == {'k': 1}
    assert frame.requests.tolist() == [2, 0] and frame.cached.tolist() == [1, 0]
    assert frame.prompt_tokens.tolist() == [10, 0]
    assert frame.attrs['signatures'] == {'made': 'made|v:1'}

def test_a_part_may_be_missing_or_named_like_a_column():
    items = examples(2)
    frame = run(Made(lambda e: score(e, parts={'group': .5} | ({'extra': 2} if e.id == 'e0' else {}))), items)
    assert frame.part_group.tolist() == [.5, .5] and frame.group.tolist() == ['e0', 'e1']
    assert frame.extra.tolist() == [2, None] and 'extra_absence' not in frame

def test_seconds_are_measured_here():
    class Slow(Conversation):
        async def judge_group(self, group):
            await asyncio.sleep(.2)
            return await super().judge_group(group)
    begun = time.perf_counter()
    frame = run(Slow(), examples(4, group='g'))
    assert .19 < frame.seconds.sum() <= time.perf_counter() - begun and frame.seconds.nunique() == 1

def test_groups_are_judged_together_and_in_order():
    items = [Example(f'{g}{i}', target='x', group=g) for i in range(3) for g in 'abc']
    frame = run(Conversation(), items, concurrency=2).set_index('example_id')
    assert frame.index.tolist() == [e.id for e in items]
    assert frame.value.to_dict() == {f'{g}{i}': i for i in range(3) for g in 'abc'}
    assert frame.evidence['b1'] == {'seen': ['b0', 'b1', 'b2']}

@pytest.mark.parametrize('name, empty', [('reference', None), ('reference', ''),
                                         ('reference', ' \n'), ('history', ()), ('truth', None)])
def test_an_example_without_a_required_field_is_inapplicable(name, empty):
    asked = []
    class Needs(Conversation):
        requires = ('target', name)
        async def judge_group(self, group):
            asked.extend(e.id for e in group)
            return await super().judge_group(group)
    given = dict(reference='r', history=('h',), truth=0)
    items = [Example('a', target='x', group='g', **given),
             Example('b', target='x', group='g', **(given | {name: empty})),
             Example('c', target='x', group='g', **given)]
    frame = run(Needs(), items)
    assert asked == ['a', 'c'] and frame.absence.tolist() == [None, 'inapplicable', None]
    assert frame.value.tolist() == [0, None, 1]
    assert frame.evidence[1] == {'missing_field': name}

def test_all_inapplicable():
    frame = run(Made(lambda e: 1/0), [Example('a', target=''), Example('b', target='')])
    assert frame.absence.tolist() == ['inapplicable'] * 2
    assert summary(frame).scored.tolist() == [0] and summary(frame)['mean'].tolist() == [None]

# ---- concurrency

@pytest.mark.parametrize('limit', [1, 3, 16, 1000])
def test_concurrency_is_a_limit(limit):
    w = Waiting()
    run(w, examples(60), concurrency=limit)
    assert w.most == min(limit, 60) and w.started == 60

def test_inside_a_running_loop():
    async def notebook(): return run(Waiting(), examples(5))
    assert asyncio.run(notebook()).value.tolist() == [0, 1, 2, 3, 4]

def test_a_plain_function_will_do():
    class Plain(Made):
        def judge(self, example): return self.f(example)
    assert run(Plain(score), examples(3)).value.tolist() == [1, 1, 1]

def test_many_examples_at_once():
    assert len(run(Length(), examples(5000), concurrency=10**6)) == 5000

def test_progress_goes_to_stderr_only_if_asked(capsys):
    evaluate(Length(), examples(3))
    assert '3/3' in capsys.readouterr().err
    evaluate(Length(), examples(3), progress=False)
    assert capsys.readouterr() == ('', '')

@pytest.mark.parametrize('busy', [False, True])
def test_interrupt_cancels(busy, monkeypatch):
    again = lambda lost: os.kill(os.getpid(), signal.SIGINT) if lost.exc_type is KeyboardInterrupt else None
    # Python drops an interrupt that falls into a weak reference's callback; a person would press again
    monkeypatch.setattr(sys, 'unraisablehook', again)
    w = Waiting(30)
    spun = []
    def spin(e):
        spun.append(e.id)
        time.sleep(.05)
        return score(e)
    # a shell may have started us with interrupts ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt): run(Made(spin) if busy else w, examples(100), concurrency=4)
    finally: signal.signal(signal.SIGINT, before)
    soon = len(spun)
    time.sleep(1)
    # each of the 4 workers stopped between two examples; 20 more would have been judged
    if busy: assert 1 <= len(spun) <= soon + 8
    else: assert (w.cancelled, w.started, w.now) == (4, 4, 0)
    assert run(Length(), examples(2)).value.tolist() == [2, 2] # and the loop still works

# ---- failures

def test_a_failure_loses_nothing():
    def f(e):
        if e.id in ('e3', 'e5'): raise KeyError(e.id)
        return score(e, int(e.id[1:]))
    with pytest.raises(EvaluationError,
                       match="'made' failed on 2 of 8 examples, first on 'e3': KeyError: 'e3'") as caught:
        run(Made(f), examples(8))
    assert caught.value.frame.value.tolist() == [0, 1, 2, 4, 6, 7] and list(caught.value.errors) == ['e3', 'e5']
    assert isinstance(caught.value.__cause__, KeyError) and caught.value.frame.attrs['signatures']

@pytest.mark.parametrize('answer, says', [(lambda e: 3.5, 'not float'), (lambda e: None, 'not NoneType'),
                                          (lambda e: Judgement('other', 'made', value=1), "'other'"),
    (lambda e: Judgement(e.id, 'impostor', value=1), "'impostor'"), (lambda e: score(e, float('nan')), 'nan')])
def test_a_wrong_answer_is_named(answer, says):
    with pytest.raises(EvaluationError) as caught:
        run(Made(lambda e: answer(e) if e.id == 'e1' else score(e)), examples(3))
    assert says in str(caught.value) and "'e1'" in str(caught.value)
    assert caught.value.frame.example_id.tolist() == ['e0', 'e2']

@pytest.mark.parametrize('spoil', [lambda js: js[:-1], lambda js: js[::-1], lambda js: js[0], lambda js: iter(js)])
def test_a_wrong_group_is_named(spoil):
    class Wrong(Conversation):
        async def judge_group(self, group):
            judgements = await super().judge_group(group)
            return spoil(judgements) if group[0].group == 'g' else judgements
    items = examples(3, group='g') + [Example('z', target='x')]
    with pytest.raises(EvaluationError, match="failed on 3 of 4 examples, first on 'e0'") as caught: run(Wrong(), items)
    assert caught.value.frame.example_id.tolist() == ['z']

def test_an_evaluator_that_cancels_itself_is_a_failure():
    def f(e):
        if e.id == 'e1': raise asyncio.CancelledError('inside')
        return score(e)
    with pytest.raises(EvaluationError, match='CancelledError') as caught: run(Made(f), examples(4), concurrency=2)
    assert caught.value.frame.example_id.tolist() == ['e0', 'e2', 'e3']

@pytest.mark.parametrize('evaluator, items, more, says', [
    (Length(), [], {}, 'no examples'), (Length(), examples(1) * 2, {}, "'e0'"),
    (Length(), ['text'], {}, 'str'), (Length(), Example('a', target='x'), {}, 'list'),
    (Length(), examples(1), dict(concurrency=0), 'concurrency'),
    (Length(), examples(1), dict(concurrency=2.5), 'concurrency'),
    (object(), examples(1), {}, 'no name'), (Length, examples(1), {}, 'Length()')])
def test_bad_input(evaluator, items, more, says):
    with pytest.raises(BadInput) as caught: run(evaluator, items, **more)
    assert says in str(caught.value)

@pytest.mark.parametrize('spoil, says', [(dict(requires='target'), 'tuple'),
                                         (dict(requires=('targets',)), "'targets'"),
                                         (dict(signature=None), 'signature'),
                                         (dict(name=3), 'name'), (dict(judge=None), 'judge_group')])
def test_what_is_no_evaluator(spoil, says):
    with pytest.raises(BadInput) as caught: run(type('Odd', (Length,), spoil)(), examples(1))
    assert says in str(caught.value)

def test_registry():
    assert {'out_of_vocabulary', 'adjacent_similarity', 'length', 'random'} <= set(EVALUATORS)
    assert get('random', seed=3).signature == 'random|seed:3|v:1' and isinstance(get('length'), Length)
    with pytest.raises(BadInput, match='length, ') : get('lenght')
    with pytest.raises(BadInput, match='min_words'): get('adjacent_similarity', minimum=3)
    with pytest.raises(BadInput, match='vocabulary'): get('out_of_vocabulary')
    @register
    class Mine(Length): name = 'mine'
    try: assert isinstance(get('mine'), Mine)
    finally: del EVALUATORS['mine']

# ---- the summary, by hand

def test_summary():
    items = examples(5)
    a = {'e0': score(items[0], 1, parts={'f': 2, 'c': Absence.truncated}),
         'e1': score(items[1], 3, parts={'f': 4}), 'e2': Judgement('e2', 'made', absence=Absence.refused),
         'e3': score(items[3], 8, parts={'f': 6, 'c': 1}), 'e4': Judgement('e4', 'made', absence=Absence.looped)}
    both = pd.concat([run(Made(lambda e: a[e.id]), items), run(Length(), items)])
    s = summary(both)
    assert s[['evaluator', 'part']].values.tolist() == [['made', 'value'],
                                                        ['made', 'f'], ['made', 'c'], ['length', 'value']]
    assert s.asked.tolist() == [5] * 4 and s.scored.tolist() == [3, 3, 1, 5]
    assert s['mean'].tolist() == [4, 4, 1, 2] # (1+3+8)/3, (2+4+6)/3
    assert s.sd[0] == pytest.approx(13**.5) and s.sd[1] == 2 and s.sd[2] is None and s.sd[3] == 0 # (9+1+16)/2 = 13
    assert s.refused.tolist() == [1, 1, 1, 0] and s.looped.tolist() == [1, 1, 1, 0]
    assert s.truncated.tolist() == [0, 0, 1, 0] and s.not_given.tolist() == [0, 0, 1, 0]
    counts = ['scored', 'refused', 'looped', 'truncated', 'not_given']
    assert (s[counts].sum(axis=1) == s.asked).all()

# ---- floors

text = st.text(alphabet=st.one_of(st.sampled_from("abc AB'’- .\n\u0301é"), st.characters()), max_size=300)
def judge(evaluator, target): return asyncio.run(evaluator.judge(Example('x', target=target)))

@pytest.mark.parametrize('given_text, words',
                         [("don't stop", ["don't", 'stop']), ("'tis the dogs' bone'", ['tis', 'the', 'dogs', 'bone']),
                          ('rock-and-roll', ['rock', 'and', 'roll']), ('a1b_c', ['a', 'b', 'c']),
('naïve Лиса 犬が走る', ['naïve', 'Лиса', '犬が走る']), ('e\u0301te\u0301', ['e\u0301te\u0301']),
                          ('l’été', ['l’été']), ('', []), ('12 - _', [])])
def test_words(given_text, words): assert WORD.findall(given_text) == words

def test_out_of_vocabulary_by_hand():
    ev = OutOfVocabulary({'the', 'fox', "don't", 'été'})
    j = judge(ev, 'The fox, the fxo and Reynard: don’t e\u0301te\u0301 été 7 fxo')
    assert j.value == 1 - 3/8 and j.parts == {'fluency': j.value} # fox the fxo and don't été été fxo
    assert j.evidence['words'] == 8 and j.evidence['unknown'] == 3
    assert [u['word'] for u in j.evidence['first_unknown']] == ['fxo', 'and', 'fxo']
    assert judge(OutOfVocabulary({'the'}, shown=1),
                 'the a b').evidence['first_unknown'] == [dict(word='a', start=4, end=5)]
    assert judge(ev, 'fox').value == 1
    assert judge(ev, 'dog').absence is judge(ev, 'FOX 3').absence is Absence.inapplicable

def test_hardly_a_known_letter_is_another_language():
    ev = OutOfVocabulary({'the', 'fox'})
    for unknown, value in ((54, .5), (55, None)): # 6 letters of 60, and of 61
        j = judge(ev, 'the fox ' + ' '.join(['q'*(unknown - 27), 'q'*27]))
        assert j.value == value
        assert (value or j.evidence['known_share'] == pytest.approx(6/61) and '9.8%' in j.evidence['why'])
    assert LEAST_KNOWN == .1 and judge(ev, 'Лиса спала на холме.').evidence['known_share'] == 0
    assert judge(ev, 'लोमड़ी पहाड़ी पर सोती थी।').absence is Absence.inapplicable

@pytest.mark.parametrize('words, share', [('狐狸跑了', 1), ('キツネはねむい', 1), ('หมาจิ้งจอกวิ่ง', 1), ('走 fox', 1/4),
                                          ('飛走了 fox', 1/2), ('飛走了吧 fox', 4/7), ('여우가 달린다', 0), ('лиса', 0)])
def test_scripts_without_spaces(words, share):
    found = unreadable(WORD.findall(words))
    assert bool(found) == (share > .5) and (not found or found['spaceless_share'] == pytest.approx(share))
    if share == 1: assert judge(AdjacentSimilarity(min_words=1), f'{words}\n\n{words}。').absence is Absence.inapplicable

@given(a=text, b=text)
@settings(max_examples=150, deadline=None)
def test_out_of_vocabulary_properties(a, b):
    ev = OutOfVocabulary(vocabulary_of([a]) | {'fox'})
    for t in (a, b):
        j = judge(ev, t)
        if j.absence: continue
        assert 0 <= j.value <= 1
        assert all(t[u['start']:u['end']] == u['word'] for u in j.evidence['first_unknown'])
        assert judge(ev, t + '\n\n' + t).value == pytest.approx(j.value)
    if (j := judge(ev, a)).value is not None: assert j.value == 1

@given(texts=st.lists(text, max_size=4), n=st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_vocabulary_by_brute_force(texts, n):
    all_words = [normalise(w) for t in texts for w in WORD.findall(t)]
    assert vocabulary_of(texts, n) == {w for w in all_words if all_words.count(w) >= n}

def test_vocabulary_signature():
    a, b = OutOfVocabulary(['b', 'A']), OutOfVocabulary({'a', 'b'})
    assert a.signature == b.signature != OutOfVocabulary(['a', 'c']).signature and 'words:2' in a.signature
    for bad in ('word', [], ()):
        with pytest.raises(BadInput): OutOfVocabulary(bad)
    with pytest.raises(BadInput): vocabulary_of('text')

def reference_similarity(pieces):
    "The same number with scikit-learn's counts and dense matrices."
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.metrics.pairwise import cosine_similarity
    counts = CountVectorizer(token_pattern=r'[a-z]+').fit_transform(pieces).toarray().astype(float)
    idf = np.log((len(pieces) + 1)/(counts > 0).sum(axis=0))
    s = cosine_similarity(counts * idf)
    return float(np.mean([s[i, i + 1] for i in range(len(pieces) - 1)]))

@given(pieces=st.lists(st.lists(st.sampled_from('the fox hen ran hid and slept over under away'.split()),
                                min_size=5, max_size=30).map(' '.join), min_size=2, max_size=8))
@settings(max_examples=30, deadline=None)
def test_adjacent_similarity_like_scikit_learn(pieces):
    j = judge(AdjacentSimilarity(min_words=5), '\n\n'.join(pieces))
    assert j.value == pytest.approx(reference_similarity(pieces), abs=1e-9) and j.evidence['blocks'] == len(pieces)
    backwards = judge(AdjacentSimilarity(min_words=5), '\n\n'.join(pieces[::-1]))
    assert backwards.value == pytest.approx(j.value) # neighbours stay neighbours
    assert judge(AdjacentSimilarity(min_words=5),
                 '\n\n'.join(p.upper().replace(' ', ', ') for p in pieces)).value == pytest.approx(j.value)

@given(text, st.integers(1, 60))
@settings(max_examples=150, deadline=None)
def test_blocks_and_similarity_on_anything(t, n):
    found = blocks(t, n)
    sizes = [len(WORD.findall(b.of(t))) for b in found]
    assert all(s >= n for s in sizes) or len(sizes) == 1
    assert sum(sizes) == len(WORD.findall(t)) and all(a.end <= b.start for a, b in zip(found, found[1:]))
    j = judge(AdjacentSimilarity(min_words=n), t)
    assert j.absence is Absence.inapplicable if len(found) < 2 else 0 <= j.value <= 1

def test_blocks_by_hand():
    t = 'a b c d\n\ne\n\nf g h\n\ni j'
    # what is left over goes to the last block
    assert [b.of(t) for b in blocks(t, 4)] == ['a b c d', 'e\n\nf g h\n\ni j']
    assert [b.of(t) for b in blocks(t, 2)] == ['a b c d', 'e\n\nf g h', 'i j']
    assert [b.of(t) for b in blocks(t, 99)] == [t]

def test_lowest_pairs():
    fox, hen = 'The fox ran home over the wet fields.', 'A storm broke all windows of our church.'
    t = '\n\n'.join([fox, fox, hen, hen])
    lowest = judge(AdjacentSimilarity(min_words=3, shown=1), t).evidence['lowest']
    assert len(lowest) == 1 and lowest[0]['similarity'] == 0
    assert [Span(*lowest[0][k]).of(t) for k in ('first', 'second')] == [fox, hen]

def test_exchanged_paragraphs_lower_the_similarity():
    about = lambda subject: [
        f'The {subject} was what they spoke of, and of that {subject} they never tired, whatever {w} said.'
        for w in ('Anna', 'Boris', 'Clara', 'David', 'Emma')]
    whole, mixed = about('harvest'), about('harvest')
    mixed[2] = about('battle')[2]
    ev = AdjacentSimilarity(min_words=10)
    assert judge(ev, '\n\n'.join(mixed)).value < judge(ev, '\n\n'.join(whole)).value

def test_controls():
    frame = run(Random(), examples(4000))
    assert 0 <= frame.value.min() and frame.value.max() < 1 and abs(frame.value.mean() - .5) < .03
    assert abs(frame.value.std() - 12**-.5) < .02
    assert run(Random(), examples(4000)[::-1]).value.tolist() == frame.value.tolist()[::-1]
    assert run(Random(1), examples(3)).value.tolist() != frame.value.tolist()[:3]
    assert judge(Length(), 'a  b\nc\u00a0d').value == 4

def test_a_megabyte_is_nothing():
    # 300,000 words, 1.8 MB
    t = '\n\n'.join(' '.join(f'word{"abcdefghij"[(i * j) % 10]}' for j in range(60)) for i in range(5000))
    assert judge(OutOfVocabulary(['worda']), t).value is not None and judge(AdjacentSimilarity(), t).value is not None

@pytest.mark.parametrize('name, revision, asked', [('org/nli', None, None), ('org/nli@v2', None, 'v2'),
                                                   ('org/nli', 'a'*40, 'a'*40)])
def test_a_model_of_the_hub_is_of_one_commit(monkeypatch, name, revision, asked):
    """A hub that changes with every request: tokenizer and weights are of the commit that the first answer named. (A
    stand-in for `transformers`, which the tests don't install.)"""
    given = []
    def load(kind):
        def from_pretrained(model, output_loading_info=False, revision=None):
            given.append((kind, model, revision))
            loaded = SimpleNamespace(_commit_hash=f'{len(given)}'*40, eval=lambda: kind)
            return (loaded, dict(missing_keys=[])) if output_loading_info else loaded
        return SimpleNamespace(from_pretrained=from_pretrained)
    kinds = ('AutoConfig', 'AutoTokenizer', 'AutoModel')
    monkeypatch.setitem(sys.modules, 'transformers', SimpleNamespace(**{kind: load(kind) for kind in kinds}))
    monkeypatch.setitem(sys.modules, 'torch', SimpleNamespace())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        load_pretrained(name, 'AutoModel', 'for tests', revision)
    assert given == [('AutoConfig', 'org/nli', asked), ('AutoTokenizer', 'org/nli', '1'*40),
                     ('AutoModel', 'org/nli', '1'*40)]
    assert [f'org/nli@{"1"*40}' in str(w.message) for w in said] == ([] if asked else [True])

@pytest.mark.parametrize('name, revision', [('@v1', None), ('org/nli@', None), ('org/nli@v1', 'v2')])
def test_a_revision_that_is_none(name, revision):
    with pytest.raises(BadInput, match='give'): split_revision(name, revision)
