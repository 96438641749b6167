"ROUGE against rouge-score."
import random

import pytest
from hypothesis import example, given, settings, strategies as st
from rouge_score.rouge_scorer import RougeScorer

from factlib.benchmarks.samples import stories
from factlib.core.records import BadInput, Example
from factlib.evaluators.base import EVALUATORS, evaluate, get
from factlib.evaluators.overlap import common_subsequence, rouge

KINDS = ['rouge1', 'rouge2', 'rougeL']
ORACLES = {stem: RougeScorer(KINDS, use_stemmer=stem) for stem in (False, True)}

def assert_equal(target, source):
    for stem, oracle in ORACLES.items():
        theirs = oracle.score(source, target)
        for kind, ours in rouge(target, source, stem).items():
            assert ours == pytest.approx(tuple(theirs[kind]), abs=1e-12), (kind, stem)

def table_length(a, b):
    "The textbook's table."
    row = [0]*(len(b) + 1)
    for x in a:
        new = [0]
        for j, y in enumerate(b): new.append(row[j] + 1 if x == y else max(new[j], row[j + 1]))
        row = new
    return row[-1]

@settings(max_examples=300, deadline=None)
@given(st.text('abc', max_size=90), st.text('abc', max_size=90))
def test_common_subsequence(a, b): assert common_subsequence(list(a), list(b)) == table_length(a, b)

def test_texts_of_the_stories():
    "Long and short pieces, longer than a machine word, source longer and shorter than target."
    draw = random.Random(0)
    words = [s.text.split() for s in stories()]
    for n_target, n_source in [(60, 900), (260, 1200), (300, 40), (1, 1), (65, 64), (2, 500)]:
        a, b = draw.choice(words), draw.choice(words)
        i, j = draw.randrange(5000), draw.randrange(4000)
        assert_equal(' '.join(a[i:i + n_target]), ' '.join(b[j:j + n_source]))
    own = ' '.join(words[0][:400])
    assert_equal(own, own)
    assert rouge(own, own)['rougeL'] == (1, 1, 1)

WORDS = st.lists(
    st.sampled_from(
        'running runs run dies died skies the a enjoyed enjoying 1891 naïve İstanbul — ... don\'t dis-\nposed geology '
        'happily \u017f K'.split(' ')), max_size=25).map(' '.join)

@settings(max_examples=150, deadline=None)
@given(WORDS, WORDS)
@example('', '')
@example('...', 'a')
@example('a', '...')
@example('one', 'one')
def test_odd_texts(target, source): assert_equal(target, source)

def test_precision_is_the_target_s():
    p, r, f = rouge('a b', 'a b c d')['rouge1']
    assert (p, r) == (1, .5) and f == 2/3

@pytest.mark.parametrize('arguments', [(None, 'a'), ('a', None), (['a'], 'a')])
def test_no_strings(arguments):
    with pytest.raises(BadInput, match='must be a string'): rouge(*arguments)

def test_evaluators():
    e = [Example('x', source='a b c d', target='a b'), Example('none', source='a', target=' ... '),
         Example('no source', target='a')]
    for name in KINDS:
        assert name in EVALUATORS
        frame = evaluate(get(name), e, progress=False)
        assert frame.absence.tolist() == [None, 'inapplicable', 'inapplicable']
        assert frame.value[0] == frame.f[0] == rouge('a b', 'a b c d')[name][2]
        assert evaluate(get(name, measure='recall'), e[:1], progress=False).value[0] == rouge('a b', 'a b c d')[name][1]
        assert len({get(name, measure=m, stem=s).signature for m in ('f', 'recall', 'precision')
                    for s in (True, False)}) == 6
    with pytest.raises(BadInput, match='no measure'): get('rouge1', measure='p')

@pytest.mark.parametrize('target, source, why',
                         [('Holmes!', 'a b c', 'the target has 1 word,'),
                          ('a b', 'Holmes', 'the source has 1 word,'), ('?', 'a b', 'the target has no words')])
def test_one_word_has_no_bigram(target, source, why):
    "The function equals rouge-score; the judgement says that nothing was compared."
    assert_equal(target, source)
    frame = evaluate(get('rouge2'), [Example('x', source=source, target=target)], progress=False)
    assert frame.absence[0] == 'inapplicable' and frame.evidence[0]['why'].startswith(why)
    for name in ('rouge1', 'rougeL'):
        assert (evaluate(get(name), [Example('x', source=source, target=target)],
                         progress=False).absence[0] is None) == (target != '?')
