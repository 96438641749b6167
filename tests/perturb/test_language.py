"[42] to [45]: tenses that agree, words and marks that move or go, and nothing else."
import re, string, sys, unicodedata
from functools import lru_cache

import pytest
import spacy
from hypothesis import assume, given, settings, strategies as st

import factlib.perturb.language as language
from factlib.core.records import BadInput
from factlib.text.vectors import load_spacy
from factlib.text.spans import paragraphs
from factlib.text.parse import parse
from factlib.perturb.base import MANIPULATIONS, SPACY_MODEL
from factlib.perturb.language import change_tense
from factlib.perturb.quality import manipulate

KINDS = ('42', '43', '44', '45')
PARSED = ('42', '43')
TALE = '''The old fox had come down to the river before anybody was awake, and he drank slowly. "You are late," said the heron, who stands there every night. "I was looking for eels, but they have gone; they don't like the moon."

The fox didn't answer. He thought that the hens were asleep, and his wife wanted one for supper. She was ill, and the cubs had eaten nothing but beetles since Monday.

"Well," he remarked, "I know a house where the door is never locked." He took his hat and left. Behind him the heron laughed until the reeds shook -- a thing that Mr. Fox, as everybody knows, forgave at last.'''
LONG = '\n\n'.join([TALE] * 8)

@pytest.fixture(scope='module')
def nlp(): return load_spacy(SPACY_MODEL)

@pytest.fixture(scope='module')
def long_doc(nlp): return nlp(LONG)

@lru_cache
def blank(language): return spacy.blank(language)

def made(text, kind, nlp=None, **more):
    "The kind with a light parse: no model, unless one is given."
    if kind == '43' and nlp is None: more.setdefault('doc', blank('xx')(readable(text)))
    if kind == '42' and nlp is not None: more.setdefault('doc', nlp(readable(text)))
    return manipulate(text, kind, **more)

def readable(text): return re.sub('[\ud800-\udfff]', '\ufffd', text)

def exact(m, text):
    assert m.revert() == text
    for e in m.edits: assert m.text[e.start:e.end] == e.after != e.before
    assert all(a.end <= b.start for a, b in zip(m.edits, m.edits[1:]))
    if m.refused:
        assert m.text == text and not m.edits and (m.refused.asked > m.refused.available or m.refused.asked == 0)
    else: assert m.text != text and m.edits

piece = st.text(alphabet=st.one_of(st.sampled_from('abcXYZ \n\r\t.,:"\'’—-é\u0301犬ß😀\u200d\ud800{}%\x00\x1c'),
                                   st.characters()), max_size=150)
hostile = st.lists(st.one_of(piece, st.sampled_from([TALE, 'He went. ',
                                                     '\n\n', '\r\n\r\n', 'A fox, a hen and a goose came in. ',
                                                     '狐が川に来た。', 'एक लोमड़ी नदी पर आई। '])), max_size=6).map(''.join)

# ---- exact, reversible, repeatable

@pytest.mark.parametrize('kind', ['43', '44', '45'])
@given(text=hostile, seed=st.integers(0, 99), share=st.sampled_from([.05, .3, 1., 1, 4]),
       density=st.sampled_from(['widespread', 'dense']))
@settings(max_examples=120, deadline=None)
def test_hostile_texts(kind, text, seed, share, density):
    assume(text.strip())
    m = made(text, kind, seed=seed, intensity=share, density=density)
    exact(m, text)
    assert m == made(text, kind, seed=seed, intensity=share, density=density)

@given(text=hostile, kind=st.sampled_from(PARSED), share=st.sampled_from([.1, .5, 3]),
       density=st.sampled_from(['widespread', 'dense']))
@settings(max_examples=60, deadline=None)
def test_hostile_texts_parsed(nlp, text, kind, share, density):
    assume(text.strip())
    exact(manipulate(text, kind, doc=nlp(readable(text)), intensity=share, density=density), text)

@pytest.mark.parametrize('text', ['Fox', 'went', '犬', '!', '😀', 'a\ud800', '\x00', 'no sentence end here',
                                  'went ' * 30, 'I.\n\nII.', '."' * 40, 'One\ntwo\nthree\nfour'])
@pytest.mark.parametrize('kind', KINDS)
def test_odd_short_texts(kind, text):
    m = manipulate(text, kind, intensity=.5)
    exact(m, text)
    if len(text.split()) < 4 and kind != '44': assert m.refused

@pytest.mark.parametrize('kind', KINDS)
def test_seeds(kind, long_doc):
    doc = dict(doc=long_doc) if kind in PARSED else {}
    texts = {manipulate(LONG, kind, seed=s, **doc).text for s in range(6)}
    assert len(texts) == 6 and manipulate(LONG, kind, seed=0, **doc).text in texts

@pytest.mark.parametrize('kind', PARSED)
def test_with_and_without_the_parse(kind, nlp):
    assert manipulate(TALE, kind, intensity=3) == manipulate(TALE, kind, intensity=3, doc=nlp(TALE))

# ---- intensity

def test_realised_is_asked(long_doc):
    verbs = sum(t.pos_ in ('VERB', 'AUX') for t in long_doc)
    for share in (.05, .1, .3):
        assert len(manipulate(LONG, '42', doc=long_doc, intensity=share).edits) == round(verbs * share)
    marks = sum(c in string.punctuation for c in LONG)
    for share in (.1, .15, .5):
        assert len(manipulate(LONG, '44', intensity=share).edits) == round(round(100 * share) * marks / 100)
    tokens = len(LONG.split())
    for share in (.05, .2):
        assert len(manipulate(LONG, '45', intensity=share).text.split()) == tokens - round(tokens * share)
    for kind in KINDS:
        for n in (1, 7, 20):
            assert len(manipulate(LONG, kind, intensity=n, **(dict(doc=long_doc) if kind in PARSED else {})).edits) == n

def test_share_of_sentences():
    text = 'The fox came in late. ' * 40 # forty sentences
    doc = blank('en')(text)
    for share, n in ((.05, 2), (.33, 13), (1., 40)):
        m = manipulate(text, '43', doc=doc, intensity=share)
        assert len(m.edits) == n and sum(s != 'The fox came in late' for s in m.text.rstrip('. ').split('. ')) == n

def test_paper_intensities():
    assert {k: MANIPULATIONS[k].intensity for k in KINDS} == {'42': .05, '43': .05, '44': .15, '45': .05}
    assert all(MANIPULATIONS[k].metric == 'fluency' for k in KINDS)

@pytest.mark.parametrize('kind, rate', [('42', 10), ('43', 2.2), ('44', 36), ('45', 50)])
def test_equal_density(kind, rate, long_doc):
    m = manipulate(LONG, kind, mode='equal_density', **(dict(doc=long_doc) if kind in PARSED else {}))
    assert len(m.edits) == round(rate * len(LONG.split()) / 1000)

@pytest.mark.parametrize('kind', KINDS)
def test_dense_is_dense(kind, long_doc):
    doc = dict(doc=long_doc) if kind in PARSED else {}
    span = {d: [] for d in ('dense', 'widespread')}
    for density, spans in span.items():
        for seed in range(20):
            edits = manipulate(LONG, kind, seed=seed, intensity=6, density=density, **doc).edits
            assert len(edits) == 6
            spans.append(edits[-1].end - edits[0].start)
    assert max(span['dense']) < min(1500, min(span['widespread']))
    if kind == '45': assert max(span['dense']) <= 6 * 5 * 2.5 + 60 # Eq 3.3: words are dense enough for it

@pytest.mark.parametrize('kind, text, available',
                         [('42', 'He went home to sleep.', 1), ('43', 'The fox came. He saw the hen.', 1),
                          ('44', 'A fox, a hen.', 2), ('45', 'The fox, who came.', 1)])
def test_refusals_have_numbers(kind, text, available):
    m = manipulate(text, kind, intensity=5)
    assert m.text == text and (m.refused.asked, m.refused.available) == (5, available)
    assert m.refused.reason.startswith('too_few')

# ---- [42]

PAIRS = [ # sentence, {verb: other tense}; every other word must stay
    ('He went home.', 'went goes'), ('They went home.', 'went go'), ('I went home.', 'went go'),
    ('You went home.', 'went go'), ('She goes home every night.', 'goes went'), ('We go home now.', 'go went'),
    ('The fox was hungry.', 'was is'), ('I was hungry.', 'was am'), ('I am hungry.', 'am was'),
    ('The hens were asleep.', 'were are'), ('You were late.', 'were are'),
    ('They are late.', 'are were'), ('The night is cold.', 'is was'),
    ('He had gone out.', 'had has'), ('They had gone out.', 'had have'), ('She has gone out.', 'has had'),
    ('We have gone out.', 'have had'), ('He has a gun.', 'has had'), ('The man had no hat.', 'had has'),
    ('I do not know him.', 'do did'), ('He did not know them.', 'did does'),
    ('They did not know it.', 'did do'), ('She does not know us.', 'does did'),
    ("I don't believe you.", 'do did'), ("He didn't come.", 'did does'), ("She doesn't sing.", 'does did'),
    ("It isn't here.", 'is was'), ("They weren't there.", 'were are'),
    ("The fox hasn't eaten.", 'has had'), ("We haven't seen it.", 'have had'), ("It wasn't his.", 'was is'),
    ('The miller took his hat.', 'took takes'), ('She sang a song.', 'sang sings'),
    ('The bell rang twice.', 'rang rings'), ('He wrote a letter.', 'wrote writes'),
    ('They wrote a letter.', 'wrote write'), ('He bought a goose.', 'bought buys'),
    ('The dog caught a rat.', 'caught catches'), ('The bird flew away.', 'flew flies'),
    ('He carries a lamp.', 'carries carried'), ('She tried again.', 'tried tries'),
    ('The man stopped.', 'stopped stops'), ('He speaks slowly.', 'speaks spoke'),
    ('They think so.', 'think thought'), ('He knows the way.', 'knows knew'),
    ('The lady left the room.', 'left leaves'), ('He found a coin.', 'found finds'),
    ('The old man fell.', 'fell falls'), ('She felt cold.', 'felt feels'),
    ('I saw a fox.', 'saw see'), ('They said nothing.', 'said say'), ('He read the letter aloud.', 'read reads'),
    ('He puts it down.', 'puts put'), ('The king chose a horse.', 'chose chooses'),
    ('He forgets everything.', 'forgets forgot'),
    ('The wind blew hard.', 'blew blows'), ('The lake froze over.', 'froze freezes'),
    ('He begins at noon.', 'begins began'), ('She wears a hat.', 'wears wore'),
    ('We drink tea.', 'drink drank'), ('She teaches him.', 'teaches taught'),
    ('The child hid.', 'hid hides'), ('The judge swore loudly.', 'swore swears'),
    ('He pays the bill.', 'pays paid'), ('He lay upon the couch.', 'lay lies'), ('He watches them.', 'watches watched'),
    ('He WENT home.', 'WENT GOES'), ('Was he there?', 'Was Is'), ('Do you see them?', 'Do Did'),
    ('"Nonsense!" said Tom.', 'said says'), ('There was a dog.', 'was is'), ('There were two dogs.', 'were are'),
    ('The fox and the hen were friends.', 'were are'), ('He came and saw us.', 'came comes saw sees'),
    ('The hens, which were asleep, heard nothing.', 'were are heard hear'),
    ('The man who came was old.', 'came comes was is'),
    ('I dare say he knows.', 'knows knew'), ('He sat with his eyes closed.', 'sat sits'),
    ('She stood with her head bowed.', 'stood stands'), ("He'd had the flu, and he was ill.", 'was is'),
    ('He was walking home.', 'was is'), ('You need some help.', 'need needed'),
    ('The letter was written by her.', 'was is'), ('Both were drunk.', 'were are'),
    ('What he said was true.', 'said says was is')]

@pytest.mark.parametrize('sentence, pairs', PAIRS, ids=[s for s, _ in PAIRS])
def test_tenses_by_hand(nlp, sentence, pairs):
    pairs = pairs.split()
    want = list(zip(pairs[::2], pairs[1::2]))
    m = manipulate(sentence, '42', doc=nlp(sentence), intensity=len(want))
    assert [(e.before, e.after) for e in m.edits] == want
    assert manipulate(sentence, '42', doc=nlp(sentence), intensity=len(want) + 1).refused.available == len(want)

@pytest.mark.parametrize('sentence', ['To go there may be to die.', 'He will go home.',
                                      'Going home, tired and beaten.',
                                      'They could have gone.', "I'd go.", "He's there, and they've come.",
                                      'Go home!', 'He used to sing.', 'You had better go.',
    'I dare say.', 'I need hardly say it.', 'You need not go.', 'If I were you!',
                                      'They put it down.', 'We cut the bread.', "You needn't.",
                                      'Having seen it, run!', "'Tis late.", "I ain't here.", 'Let them go.'])
def test_no_tense_to_change(nlp, sentence):
    assert manipulate(sentence, '42', doc=nlp(sentence), intensity=1).refused.available == 0

@pytest.mark.parametrize('space, changed', [(True, 1), (False, 0)])
def test_half_words_have_no_tense(space, changed):
    doc = spacy.tokens.Doc(blank('en').vocab, words=['They', 'under', 'went', 'it'], spaces=[True, space, True, False],
                           tags=['PRP', 'RB', 'VBD', 'PRP'], pos=['PRON', 'ADV', 'VERB', 'PRON'],
                           deps=['nsubj', 'advmod', 'ROOT', 'dobj'], heads=[2, 2, 2, 2],
                           lemmas=['they', 'under', 'go', 'it'])
    m = manipulate(doc.text, '42', doc=doc, intensity=1)
    assert (m.text == 'They under go it') == bool(changed) == (not m.refused)

@pytest.mark.parametrize('call, want', [(('lies', 'lie', 'VBZ', 'singular'), None),
                                        (('go', 'go', 'VBP', 'singular'), None),
                                        (('goes', 'go', 'VBZ', 'plural'), None), (('gone', 'go', 'VBD', 'I'), None),
    (('are', 'be', 'VBP', 'plural'), 'were'), (('were', 'be', 'VBD', 'I'), None),
                                        (('was', 'be', 'VBD', 'plural'), None),
                                        (('befoxed', 'befox', 'VBD', 'I'), None), (('', '', 'VBD', 'I'), None)])
def test_change_tense(call, want): assert change_tense(*call) == want

def test_only_finite_verbs_with_a_subject(long_doc):
    m = manipulate(LONG, '42', doc=long_doc, intensity=.4)
    tokens = {t.idx: t for t in long_doc}
    shift = 0
    for e in m.edits:
        token = tokens[e.start - shift]
        assert token.text == e.before and token.tag_ in ('VBD', 'VBZ', 'VBP') and e.after.isalpha()
        assert e.after.islower() == e.before.islower()
        shift += len(e.after) - len(e.before)
    assert len(m.text.split()) == len(LONG.split())

def test_tense_needs_lemminflect(monkeypatch, nlp):
    monkeypatch.setitem(sys.modules, 'lemminflect', None)
    with pytest.raises(BadInput, match='pip install'): manipulate('He went.', '42', doc=nlp('He went.'), intensity=1)

def test_tenses_are_english():
    text = 'Der Fuchs ging zum Fluss.'
    m = manipulate(text, '42', doc=blank('de')(text), intensity=1)
    assert m.refused.reason == 'language' and "'de'" in m.refused and m.text == text
    with pytest.raises(BadInput, match='tags'): manipulate('He went.', '42', doc=blank('en')('He went.'))

@pytest.mark.parametrize('kind', PARSED)
def test_the_parse_must_be_the_text_s(kind, nlp):
    with pytest.raises(BadInput, match='another text'): manipulate(TALE, kind, doc=nlp('He went.'))
    with pytest.raises(BadInput, match='spaCy parse'): manipulate(TALE, kind, doc='He went.')
    with pytest.raises(BadInput, match='not installed'): manipulate('He went.', kind, model='en_core_web_unheard_of')

# ---- [43]

def words(text): return re.findall(r"[\w'’]+", text)

@given(text=hostile, seed=st.integers(0, 99), order=st.sampled_from(['shuffle', 'swap']))
@settings(max_examples=100, deadline=None)
def test_order_keeps_all_words(text, seed, order):
    assume(text.strip())
    m = made(text, '43', seed=seed, intensity=1, order=order)
    assert sorted(m.text) == sorted(text) # not a character more or less
    assert re.findall(r'[^\S ]', m.text) == re.findall(r'[^\S ]', text) # every line break where it was, in order

def test_order_inside_a_sentence(long_doc):
    m = manipulate(LONG, '43', doc=long_doc, intensity=30)
    for e in m.edits:
        assert words(e.before) != words(e.after) and sorted(words(e.before)) == sorted(words(e.after))
        assert re.sub(r"[\w'’.]", '', e.before) == re.sub(r"[\w'’.]", '', e.after) # marks and gaps stay in their order
        assert '\n\n' not in e.before
    for old, new in zip(paragraphs(LONG), paragraphs(m.text)): # first and last words
        assert words(old.of(LONG))[0] == words(new.of(m.text))[0]
        assert words(old.of(LONG))[-1] == words(new.of(m.text))[-1]

def test_no_sentence_reaches_over_a_paragraph():
    text = 'One two three\n\nfour five six'
    doc = spacy.tokens.Doc(blank('en').vocab, words=['One', 'two', 'three', '\n\n', 'four', 'five', 'six'],
                           spaces=[True, True, False, False, True, True, False], sent_starts=[True] + [False] * 6)
    # one inner word in each
    assert doc.text == text and manipulate(text, '43', doc=doc, intensity=1).refused.available == 0

def test_swap_is_one_swap():
    text = 'One two three four five six seven.'
    for seed in range(20):
        m = made(text, '43', seed=seed, intensity=1, order='swap')
        assert sum(a != b for a, b in zip(words(text), words(m.text))) == 2 and m.text.startswith('One ')
        assert m.text.endswith(' seven.')

def test_order_by_hand():
    assert made('The fox came in.', '43', intensity=1).text == 'The came fox in.' # the only other order
    assert made("I don't know!", '43', intensity=1).refused.available == 0 # one word between the first and the last
    m = made('He said: that that that!', '43', intensity=1) # two equal words leave two other orders
    assert (m.edits[0].before, m.edits[0].after) in [('said: that', 'that: said'),
                                                     ('said: that that', 'that: that said')]
    with pytest.raises(BadInput, match='swap'): made(TALE, '43', order='sorted')

def test_every_order_is_drawn():
    orders = {made('Go one two three four on.', '43', seed=s, intensity=1).text for s in range(400)}
    assert len(orders) == 23 # 4! less the old one

def test_word_shapes():
    text = 'So Mr. Fox\'s red-headed aunt paid 10,000 pounds at 5 a.m. (in gold) -- well... yes, "all" of it.'
    doc = blank('en')(text)
    assert [w.of(text) for w in language._words(text, doc)] == ['So', 'Mr.',
                                                                "Fox's",
                                                                'red-headed',
                                                                'aunt', 'paid', '10,000', 'pounds', 'at', '5',
                                                                'a.m.', 'in', 'gold', 'well', 'yes', 'all', 'of', 'it']

@pytest.mark.parametrize('language_code, text',
                         [('de', 'Der alte Fuchs kam zum Fluss. Er trank dort langsam Wasser.'),
                          ('xx', 'Лиса тихо пришла к реке. Она долго пила воду.'),
                          ('hi', 'एक बूढ़ी लोमड़ी नदी पर आई।'), ('ar', 'جاء الثعلب العجوز إلى النهر ليلا.'),
('zh', '老狐狸来到河边喝水。'), ('el', 'Η γριά αλεπού ήρθε στο ποτάμι.')])
def test_other_languages(language_code, text):
    doc = blank(language_code)(text)
    m = manipulate(text, '43', doc=doc, intensity=1)
    assert not m.refused and sorted(m.text) == sorted(text) and m.revert() == text
    m = manipulate(text, '45', doc=doc, intensity=1)
    assert not m.refused and len(m.text) < len(text)
    m = manipulate(text, '44', intensity=1)
    assert not m.refused and len(m.text) == len(text) - 1

# ---- [44] and [45]

@given(text=hostile, seed=st.integers(0, 99), n=st.integers(1, 8))
@settings(max_examples=100, deadline=None)
def test_only_marks_go(text, seed, n):
    assume(text.strip())
    m = manipulate(text, '44', seed=seed, intensity=n)
    is_mark = lambda c: c in string.punctuation or unicodedata.category(c)[0] == 'P'
    assert [c for c in m.text if not is_mark(c)] == [c for c in text if not is_mark(c)]
    if not m.refused: assert len(m.text) == len(text) - n and all(is_mark(e.before) and e.after == '' for e in m.edits)

@pytest.mark.parametrize('text, left', [('Yes, "no"!', 'Yes no'), ("don't", 'dont'),
                                        ('red-headed', 'redheaded'), ('well--yes', 'well-yes'),
                                        ('3.50, and/or', '3.50 and/or'),
                                        ('hall—he', 'hall—he'), ('a,"b', 'a,b'), ('犬。猫', '犬猫'), ('$5 + 3', '5  3'),
    ('«Ja», sagt’s', 'Ja sagts'), ('wait...', 'wait')])
def test_all_marks_that_may_go(text, left):
    n = len(text) - len(left)
    assert (manipulate(text, '44', intensity=n).text if n else text) == left
    assert manipulate(text, '44', intensity=n + 1).refused.available == n

@given(text=hostile, seed=st.integers(0, 99), n=st.integers(1, 8))
@settings(max_examples=100, deadline=None)
def test_only_words_go(text, seed, n):
    assume(text.strip())
    m = manipulate(text, '45', seed=seed, intensity=n)
    if not m.refused: assert len(m.text.split()) == len(text.split()) - n
    left = iter(text.split())
    assert all(word in left for word in m.text.split()) # what is left is left in order
    assert m.text.count('\n') == text.count('\n') and m.text.count('.') == text.count('.')

def test_words_by_hand():
    text = 'The fox, who was 9, saw Mr. Hen\nand her egg. So he ate it!'
    assert manipulate(text, '45', intensity=6).text == 'The fox, 9, Mr. Hen\nand egg. So it!'
    assert manipulate(text, '45', intensity=7).refused.available == 6
    assert manipulate('a b ' * 20, '45', intensity=1.).refused.available == 39 # the first stays

# ---- long texts

@pytest.mark.parametrize('kind', ['44', '45'])
def test_a_million_words(kind):
    # 1.3 million words
    text = ('The old fox, as ever, came down to the river and drank; nobody else was there. ' * 20 + '\n\n') * 4200
    m = manipulate(text, kind)
    assert not m.refused

def unparsed(text):
    "A Doc of a long text without the tokenizer's time: one token for 300 characters."
    pieces = [text[i:i + 300] for i in range(0, len(text), 300)]
    return spacy.tokens.Doc(blank('xx').vocab, words=pieces, spaces=[False] * len(pieces))

@pytest.mark.parametrize('text', ['\n' * 300_000 + 'a', 'a\n' * 150_000, 'a:"' * 100_000, '(' * 300_000, "a'" * 150_000,
                                  ' ' * 300_000 + 'a b', 'a.' * 150_000, 'word ' * 60_000, 'a--' * 100_000])
def test_odd_long_texts_are_linear(text):
    for kind in ('44', '45'): assert manipulate(text, kind).revert() == text
    assert manipulate(text, '43', doc=unparsed(text)).revert() == text

def test_long_texts_are_parsed_in_pieces(nlp, monkeypatch):
    import factlib.text.parse as core
    monkeypatch.setattr(core, '_PIECE', 400)
    doc = parse(LONG)
    assert doc.text == LONG
    assert all(len(p) <= 400 for p in core._pieces(LONG, True)) and len(core._pieces(LONG, True)) > 12
    m = manipulate(LONG, '42', doc=doc, intensity=.3)
    assert m.revert() == LONG and len(m.edits) == round(.3 * sum(t.pos_ in ('VERB', 'AUX') for t in doc))

@given(text=hostile, limit=st.integers(1, 60))
@settings(max_examples=100, deadline=None)
def test_pieces_are_the_text(text, limit):
    import factlib.text.parse as core
    old, core._PIECE = core._PIECE, limit
    try: pieces = core._pieces(text, True)
    finally: core._PIECE = old
    assert ''.join(pieces) == text and all(pieces) and all(len(p) <= max(limit, 1) for p in pieces)
