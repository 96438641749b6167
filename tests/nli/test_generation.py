"""BERTScore, BARTScore, LongDocFACTScore and pretrained summaries, on tiny models that are built here. Run by `make
test-nli`, which brings torch and transformers."""
import numpy as np
import pytest

transformers = pytest.importorskip('transformers',
                                   reason='transformers is not installed; `make test-nli` tests with it, in an '
                                          'environment of its own')
torch = pytest.importorskip('torch',
                            reason='torch is not installed; `make test-nli` tests with it, in an environment of its own')

from factlib.core.records import Absence, BadInput, Example
from factlib.evaluators.bartscore import BARTScore, TransformersLikelihood
from factlib.evaluators.base import EVALUATORS, evaluate, get, offline_evaluators
from factlib.evaluators.bertscore import BERTScore, TransformersVectors
from factlib.evaluators.longdocfactscore import LongDocFACTScore
from factlib.evaluators.narrative.summarise import PretrainedSummariser, pretrained_summary

WORDS = 'the a hare tortoise fox slept won lost ran race and . , it was never three two in leeds'.split()
LETTERS = 'abcdefghijklmnopqrstuvwxyz'
MARKS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
SOURCE, TARGET = ('The hare slept. The tortoise won the race. It was a fox in Leeds.',
                  'A hare slept. The tortoise lost the race and the fox never ran.')
HOSTILE = ['{}{{x}}%s', '\ud800 fox', 'שלום עולם', '狐狸跑了', 'x'*30, '[SEP] [CLS] hare', '\x00\x07 fox', '</s><s> it ran']

def tokenizer_in(folder):
    "A tokenizer with a vocabulary of our own, saved."
    folder.mkdir()
    (folder/'vocab.txt').write_text('\n'.join(MARKS + WORDS + [f'##{c}' for c in LETTERS] + list(LETTERS)),
                                    encoding='utf-8')
    tokenizer = transformers.BertTokenizer(vocab=str(folder/'vocab.txt'))
    tokenizer.save_pretrained(folder)
    return tokenizer

def encoder(folder, positions=32, pooler=True):
    n = len(tokenizer_in(folder))
    torch.manual_seed(7)
    config = transformers.BertConfig(vocab_size=n, hidden_size=32, num_hidden_layers=3, num_attention_heads=2,
                                     intermediate_size=64, max_position_embeddings=positions, initializer_range=.5)
    transformers.BertModel(config, add_pooling_layer=pooler).eval().save_pretrained(folder)
    return str(folder)

NUMBERS = dict(pad_token_id=0, bos_token_id=2, eos_token_id=3, decoder_start_token_id=3)
def writer(folder, kind='bart', positions=48):
    n = len(tokenizer_in(folder))
    torch.manual_seed(5)
    if kind == 'bart':
        model = transformers.BartForConditionalGeneration(transformers.BartConfig(
        vocab_size=n, d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64,
        max_position_embeddings=positions, init_std=.3, forced_eos_token_id=None, **NUMBERS))
    elif kind == 'led':
        model = transformers.LEDForConditionalGeneration(transformers.LEDConfig(
        vocab_size=n, d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64,
        max_encoder_position_embeddings=64, max_decoder_position_embeddings=32,
        attention_window=8, init_std=.3, **NUMBERS))
    else:
        model = transformers.LongT5ForConditionalGeneration(transformers.LongT5Config(
      vocab_size=n, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2,
      local_radius=7, global_block_size=4, encoder_attention_type='transient-global',
      initializer_factor=1., pad_token_id=0, eos_token_id=3, decoder_start_token_id=0))
    model.generation_config.forced_eos_token_id = None
    model.eval().save_pretrained(folder)
    return str(folder)

@pytest.fixture(scope='module')
def bert(tmp_path_factory): return encoder(tmp_path_factory.mktemp('models')/'tiny')

@pytest.fixture(scope='module')
def bart(tmp_path_factory): return writer(tmp_path_factory.mktemp('models')/'small')

def states(folder, text, layer):
    "The states of one text by transformers itself, marks first and last, of length 1."
    tokenizer, model = transformers.AutoTokenizer.from_pretrained(folder), transformers.AutoModel.from_pretrained(
        folder).eval()
    with torch.no_grad():
        rows = model(**tokenizer(text, return_tensors='pt'),
                     output_hidden_states=True).hidden_states[layer][0].double().numpy()
    return rows/np.linalg.norm(rows, axis=1, keepdims=True)

def matched(a, b):
    "Precision, recall, F: a mark may be somebody's nearest, but counts in no mean."
    cosines = a @ b.T
    p, r = cosines[1:-1].max(1).mean(), cosines[:, 1:-1].max(0).mean()
    return p, r, 2*p*r/(p + r)

@pytest.mark.parametrize('layer', [1, 2, 3])
def test_bertscore_is_greedy_matching_of_the_layers_states(bert, layer):
    row = evaluate(BERTScore(bert, layer=layer), [Example('x', source=SOURCE, target=TARGET)], progress=False).iloc[0]
    assert (row.precision, row.recall,
            row.value) == pytest.approx(matched(states(bert, TARGET, layer), states(bert, SOURCE, layer)), abs=1e-5)
    assert row.evidence['tokens'] == dict(target=15, source=17) and row.evidence['read'] == dict(target=1, source=1)

def test_bertscore_of_three_tokens_by_hand(bert):
    "Two against one: each cosine written out."
    (_, hare, slept, _), (start, fox, end) = states(bert, 'hare slept', 2), states(bert, 'fox', 2)
    p = (max(hare @ start, hare @ fox, hare @ end) + max(slept @ start, slept @ fox, slept @ end))/2
    r = max(x @ fox for x in states(bert, 'hare slept', 2))
    row = evaluate(BERTScore(bert, layer=2, against='reference'), [Example('x', reference='fox', target='hare slept')],
                   progress=False).iloc[0]
    assert (row.precision, row.recall, row.f) == pytest.approx((p, r, 2*p*r/(p + r)), abs=1e-5)

def test_bertscore_is_that_of_the_package(bert):
    "The published code itself, where it is installed."
    utils = pytest.importorskip('bert_score.utils', reason='the package bert-score is not installed')
    from collections import defaultdict
    tokenizer, model = transformers.AutoTokenizer.from_pretrained(bert), transformers.AutoModel.from_pretrained(
        bert).eval()
    model.encoder.layer = torch.nn.ModuleList(list(model.encoder.layer[:2]))
    weights = defaultdict(lambda: 1., {tokenizer.sep_token_id: 0, tokenizer.cls_token_id: 0})
    theirs = []
    for a, b in ((TARGET, SOURCE), ('hare slept', 'fox'), ('it ran', 'It ran')):
        numbers, mask, idf = [], [], []
        for text in (b, a): # reference, candidate
            ids = tokenizer(text)['input_ids']
            with torch.no_grad(): numbers.append(model(input_ids=torch.tensor([ids]))[0])
            mask.append(torch.ones(1, len(ids)))
            idf.append(torch.tensor([[float(weights[i]) for i in ids]]))
        theirs.append([float(x) for x in utils.greedy_cos_idf(numbers[0],
                                                              mask[0], idf[0], numbers[1], mask[1], idf[1])])
    rows = evaluate(BERTScore(bert, layer=2),
                    [Example(str(i), source=b, target=a)
                     for i, (a, b) in enumerate(((TARGET, SOURCE), ('hare slept', 'fox'), ('it ran', 'It ran')))],
                    progress=False)
    assert rows[['precision', 'recall', 'f']].astype(float).to_numpy() == pytest.approx(np.array(theirs), abs=1e-5)

def test_same_texts_match_wholly_and_batches_change_nothing(bert):
    text = 'the hare ran . '*30
    tables = [TransformersVectors(bert, layer=2, batch=n)(text) for n in (1, 3, 100)]
    assert tables[0].windows == 4 and tables[0].counts.sum() == 120 and tables[0].vectors.shape == (128, 32)
    for table in tables[1:]: assert np.abs(table.vectors - tables[0].vectors).max() < 1e-5
    assert np.allclose(np.linalg.norm(tables[0].vectors, axis=1), 1, atol=1e-5)
    row = evaluate(BERTScore(bert, layer=2), [Example('x', source=text, target=text)], progress=False).iloc[0]
    assert row.value == pytest.approx(1, abs=1e-6) and row.evidence['windows'] == dict(target=4, source=4)

def test_a_long_text_is_read_in_windows_or_absent_or_cut_with_the_share(bert):
    long = ' '.join(['the hare ran'] + ['a fox won']*20) # 63 tokens, 30 a window
    windows = [' '.join(long.split()[i:i + 30]) for i in (0, 30, 60)]
    found = TransformersVectors(bert, layer=3)(long)
    assert found.vectors == pytest.approx(np.concatenate([states(bert, w, 3) for w in windows]), abs=1e-5)
    judged = {way: evaluate(BERTScore(bert, layer=3, long=way), [Example('x', source=long, target='a fox ran')],
                            progress=False).iloc[0] for way in ('windows', 'absent', 'cut')}
    assert judged['windows'].absence is None and judged['windows'].evidence['windows'] == dict(target=1, source=3)
    assert judged['absent'].absence == 'too_long'
    assert judged['absent'].evidence['why'] == 'the source does not fit the model'
    assert judged['cut'].value == pytest.approx(matched(states(bert, 'a fox ran', 3), states(bert, windows[0], 3))[2],
                                                abs=1e-5)
    assert judged['cut'].evidence['read'] == dict(target=1, source=30/63)

def test_a_text_is_read_once(bert):
    vectors = TransformersVectors(bert, layer=2)
    evaluate(BERTScore(vectors), [Example(str(i), source=SOURCE, target=f'{TARGET} {word}')
                                  for i, word in enumerate(WORDS)], progress=False)
    assert vectors(SOURCE) is vectors(SOURCE) and SOURCE in vectors.last.by_text
    assert len(vectors.last.by_text) == len(set(WORDS)) + 1

def test_encoders_that_do_not_fit(bert, bart, tmp_path):
    with pytest.raises(BadInput, match='whole number from 1 to 3, not 9'): BERTScore(bert)
    with pytest.raises(BadInput, match='reads and writes'): BERTScore(bart)
    with pytest.raises(BadInput, match='There is no model'): BERTScore(str(tmp_path/'nothing'))
    with pytest.raises(BadInput, match='reads 32 tokens'): TransformersVectors(bert, layer=2, max_tokens=33)
    with pytest.raises(BadInput, match='There is no model that rewrites'): BARTScore(bert)
    bare = encoder(tmp_path/'bare', pooler=False) # as RoBERTa's: nobody asks its pooler
    assert TransformersVectors(bare, layer=1)('a fox').counts.sum() == 2

def likelihood(folder, given, text):
    "Minus the cross-entropy of one pair, alone, by torch."
    tokenizer, model = transformers.AutoTokenizer.from_pretrained(
        folder), transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    given, ids = tokenizer(given, return_tensors='pt')['input_ids'], tokenizer(text, return_tensors='pt')['input_ids']
    shown = torch.cat([torch.tensor([[model.config.decoder_start_token_id]]), ids[:, :-1]], 1)
    with torch.no_grad(): logits = model(input_ids=given, decoder_input_ids=shown).logits[0].double()
    return -float(torch.nn.functional.cross_entropy(logits, ids[0]))

PAIRS = [(SOURCE, TARGET), ('it ran', 'the fox'), (SOURCE, 'a'), ('a', TARGET),
         ('the fox never won', 'the fox never won')]

@pytest.mark.parametrize('kind', ['bart', 'led', 'longt5'])
def test_bartscore_is_minus_the_cross_entropy(tmp_path, kind):
    folder = writer(tmp_path/kind, kind)
    expected = [likelihood(folder, *pair) for pair in PAIRS]
    for batch in (1, 2, 5): # padding changes nothing
        found = TransformersLikelihood(folder, batch=batch)(PAIRS)
        assert [x.value for x in found] == pytest.approx(expected, abs=1e-4 if kind == 'longt5' else 1e-5)
    assert max(expected) < 0 and np.ptp(expected) > .1 # not all the same, which anything would pass
    assert [x.tokens for x in found] == [15, 2, 1, 15, 4] and all(x.read == x.given_read == 1 for x in found)

def test_bartscore_judges(bart):
    examples = [Example('x', source=SOURCE, target=TARGET), Example('none', source=SOURCE, target='\x07'),
                Example('lacks', target=TARGET)]
    rows = evaluate(BARTScore(bart), examples, progress=False)
    assert rows.value[0] == pytest.approx(likelihood(bart, SOURCE, TARGET), abs=1e-5)
    assert rows.evidence[0]['tokens'] == dict(target=15, source=17)
    assert list(rows.absence[1:]) == ['inapplicable', 'inapplicable']
    assert rows.evidence[1]['why'] == 'the target has no tokens'
    rows = evaluate(BARTScore(bart, against='reference'), [Example('x', reference='It ran.', target=TARGET)],
                    progress=False)
    assert rows.value[0] == pytest.approx(likelihood(bart, 'It ran.', TARGET), abs=1e-5)

def test_bartscore_of_what_does_not_fit(bart):
    long = 'the hare ran '*20 # 60 tokens, of which 46 fit
    example = Example('x', source=long, target='a fox')
    row = evaluate(BARTScore(bart), [example], progress=False).iloc[0]
    assert row.absence == 'too_long' and row.evidence['why'] == 'more tokens than the model takes: the source'
    assert row.evidence['read'] == dict(target=1, source=46/60)
    row = evaluate(BARTScore(bart, truncate=True), [example], progress=False).iloc[0]
    assert row.value == pytest.approx(likelihood(bart, ' '.join(long.split()[:46]), 'a fox'), abs=1e-5)
    assert row.evidence['read'] == dict(target=1, source=46/60)
    row = evaluate(BARTScore(bart), [Example('x', source='a fox', target=long)], progress=False).iloc[0]
    assert row.absence == 'too_long' and row.evidence['why'] == 'more tokens than the model takes: the target'
    row = evaluate(BARTScore(bart, truncate=True), [Example('x', source='a fox', target=long)], progress=False).iloc[0]
    assert row.value == pytest.approx(likelihood(bart, 'a fox', ' '.join(long.split()[:46])), abs=1e-5)
    assert TransformersLikelihood(bart)([]) == []

def test_longdocfactscore_by_hand(bart):
    "Four sentences; the neighbours of the nearest written out."
    source = 'The hare slept. The tortoise won the race. It was a fox in Leeds. Two lost.'
    target = 'The tortoise won. A fox ran.'
    row = evaluate(LongDocFACTScore(bart, k=1, retriever='bm25'), [Example('x', source=source, target=target)],
                   progress=False).iloc[0]
    near = ['The hare slept. The tortoise won the race. It was a fox in Leeds.',
            'The tortoise won the race. It was a fox in Leeds. Two lost.']
    expected = [likelihood(bart, near[0], 'The tortoise won.'), likelihood(bart, near[1], 'A fox ran.')]
    assert row.value == pytest.approx(np.mean(expected), abs=1e-5)
    assert [source[slice(*s['source'])] for s in row.evidence['sentences']] == near
    assert [target[slice(*s['target'])] for s in row.evidence['sentences']] == ['The tortoise won.', 'A fox ran.']
    assert [s['score'] for s in row.evidence['sentences']] == pytest.approx(expected, abs=1e-5)
    row = evaluate(LongDocFACTScore(bart, k=9, retriever='bm25', neighbours=(0, 0)),
                   [Example('x', source=source, target=target)], progress=False).iloc[0]
    best = [max(likelihood(bart, s, t) for s in ('The hare slept.', 'The tortoise won the race.',
                                                 'It was a fox in Leeds.', 'Two lost.'))
            for t in ('The tortoise won.', 'A fox ran.')]
    assert row.value == pytest.approx(np.mean(best), abs=1e-5)

def test_longdocfactscore_reads_what_bartscore_can_not(bart):
    source = 'The hare slept. The tortoise won the race. '*40
    example = Example('x', source=source, target='The tortoise won the race.')
    assert evaluate(BARTScore(bart), [example], progress=False).absence[0] == 'too_long'
    assert evaluate(LongDocFACTScore(bart, retriever='bm25'), [example], progress=False).value[0] < 0
    long = Example('y', source='The hare ran ' + 'and the fox ran '*20 + '. It slept.', target='It ran.')
    row = evaluate(LongDocFACTScore(bart, retriever='bm25'), [long], progress=False).iloc[0]
    assert row.absence == 'too_long' and row.evidence['too_long'] >= 1

def generated(folder, text, length, **options):
    tokenizer, model = transformers.AutoTokenizer.from_pretrained(
        folder), transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    ids = tokenizer(text, return_tensors='pt')
    with torch.no_grad():
        written = model.generate(ids['input_ids'], attention_mask=ids['attention_mask'],
                                 num_beams=4, do_sample=False, max_length=None, max_new_tokens=length, **options)
    return tokenizer.decode(written[0], skip_special_tokens=True)

@pytest.mark.parametrize('kind', ['bart', 'led', 'longt5'])
def test_a_summary_is_what_the_model_writes(tmp_path, kind):
    folder = writer(tmp_path/kind, kind)
    tokens = len(transformers.AutoTokenizer.from_pretrained(folder)(SOURCE)['input_ids'])
    options = dict(global_attention_mask=torch.tensor([[1] + [0]*(tokens - 1)])) if kind == 'led' else {}
    expected = generated(folder, SOURCE, 12, **options)
    summary = pretrained_summary(SOURCE, folder, length=12, unfinished=True)
    assert summary.text == expected.strip() and summary.read == 1 and summary.chunks == ((0, len(SOURCE)),)
    assert summary.usage.prompt_tokens == tokens
    whole = pretrained_summary(SOURCE, folder, length=12)
    assert whole.absence == (Absence.truncated if summary.detail else None) and whole.parts == (summary.text,)
    assert pretrained_summary(SOURCE, folder, length=12, unfinished=True).text == summary.text # no chance

def test_a_summary_that_ends(tmp_path):
    "A model whose every step ends the text, and one that must not."
    folder = writer(tmp_path/'ends')
    summariser = PretrainedSummariser(folder, length=12)
    with torch.no_grad(): summariser.loaded.model.final_logits_bias[0, 3] = 1000.
    assert summariser(SOURCE).absence == 'malformed' and summariser(SOURCE).detail == 'The model wrote nothing.'
    summariser.loaded.model.generation_config.min_new_tokens = 4
    summary = summariser(SOURCE)
    assert summary.absence is None and summary.text and summary.detail == '' and summary.usage.completion_tokens <= 6

@pytest.mark.parametrize('kind, room', [('bart', 46), ('led', 62)])
def test_a_story_that_does_not_fit(tmp_path, kind, room):
    folder = writer(tmp_path/kind, kind)
    story = ' '.join(['the hare ran .']*25) # 100 tokens
    summary = pretrained_summary(story, folder, length=8)
    assert summary.absence == 'too_long' and summary.read == room/100 and summary.text is None
    assert summary.usage.requests == 0
    cut = pretrained_summary(story, folder, length=8, cut=True, unfinished=True)
    assert cut.read == room/100 and cut.chunks[0].of(story).split() == story.split()[:room]
    assert cut.usage.prompt_tokens == room + 2
    same = pretrained_summary(' '.join(story.split()[:room]), folder, length=8, unfinished=True)
    assert (same.text, same.read) == (cut.text, 1)

def test_longt5_has_no_limit_but_one_can_be_set(tmp_path):
    folder = writer(tmp_path/'longt5', 'longt5')
    story = ' '.join(['the hare ran .']*300)
    assert pretrained_summary(story, folder, length=8, unfinished=True).read == 1
    assert pretrained_summary(story, folder, length=8, unfinished=True, max_tokens=302, cut=True).read == 300/1200
    assert pretrained_summary(story, folder, length=8, max_tokens=302).absence == 'too_long'

def test_summaries_of_nothing_and_of_models_that_are_none(tmp_path, bert):
    folder = writer(tmp_path/'led', 'led')
    summariser = PretrainedSummariser(folder, length=8, unfinished=True)
    for nothing in ('', ' \n', None):
        with pytest.raises(BadInput, match='no text'): summariser(nothing)
    with pytest.raises(BadInput, match="writes 32 tokens"): PretrainedSummariser(folder, length=33)
    with pytest.raises(BadInput, match='There is no model that sums up texts'): PretrainedSummariser(bert)
    with pytest.raises(BadInput, match='comes too late'): pretrained_summary('It ran.', summariser, cut=True)

def test_registered_by_name_and_not_offline(bert, bart):
    names = {'bertscore', 'bartscore', 'longdocfactscore'}
    assert names <= set(EVALUATORS) and not names & set(offline_evaluators(slow=True))
    assert all(EVALUATORS[name].slow for name in names)
    made = [get('bertscore', model=bert, layer=2), get('bartscore', model=bart),
            get('longdocfactscore', model=bart, retriever='bm25')]
    for evaluator, label in zip(made, ('tiny', 'small', 'small')):
        assert f'model:{label}' in evaluator.signature and bart not in evaluator.signature
        assert bert not in evaluator.signature
    with pytest.raises(BadInput, match="to be had as 'facebook/bart-large'"): get('bartscore') # by its name: the paper's
    assert get('bertscore', model=bert, layer=2).signature != get('bertscore', model=bert, layer=3).signature
    shared = TransformersLikelihood(bart) # one model for two evaluators
    assert BARTScore(shared).likelihood is LongDocFACTScore(shared, retriever='bm25').likelihood

def test_hostile_texts(bert, bart):
    examples = [Example(f'{i}{j}', source=a, target=b) for i, a in enumerate(HOSTILE) for j, b in enumerate(HOSTILE)]
    for evaluator in (BERTScore(bert, layer=2), BARTScore(bart), LongDocFACTScore(bart, retriever='bm25')):
        rows = evaluate(evaluator, examples, progress=False)
        assert len(rows) == len(examples) and all(np.isfinite(v) for v in rows.value if v is not None)
        assert rows.absence.isna().any()
    summariser = PretrainedSummariser(bart, length=8, unfinished=True)
    assert all(summariser(text).read == 1 for text in HOSTILE)

def test_marks_in_a_text_are_characters(bert, bart):
    vectors = TransformersVectors(bert, layer=2)('hare [SEP] fox')
    assert vectors.counts.tolist() == [False] + [True]*(len(vectors.counts) - 2) + [False]
    ids = transformers.AutoTokenizer.from_pretrained(bert)('hare [SEP] fox', split_special_tokens=True)['input_ids']
    assert len(ids) == len(vectors.counts) and ids.count(3) == 1 # only the mark at the end
    assert TransformersLikelihood(bart)([('it', 'hare [SEP] fox')])[0].tokens == len(ids) - 2
