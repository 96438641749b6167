"""Models of language inference behind SummaC and AlignScore, on tiny ones that are built here. Run by `make test-nli`,
which brings torch and transformers."""
import numpy as np
import pytest

transformers = pytest.importorskip('transformers',
                                   reason='transformers is not installed; `make test-nli` tests with it, in an '
                                          'environment of its own')
torch = pytest.importorskip('torch',
                            reason='torch is not installed; `make test-nli` tests with it, in an environment of its own')

from factlib.core.records import Absence, BadInput, Example
from factlib.evaluators.base import evaluate, get
from factlib.evaluators.claims.factscore import FActScore
from factlib.evaluators.entailment.alignscore import AlignScoreLike
from factlib.evaluators.entailment.summac import ConvWeights, SummaCConv, SummaCZS
from factlib.evaluators.claims.check import NliChecker
from factlib.evaluators.claims.decompose import SentenceDecomposer
from factlib.evaluators.entailment.base import CATEGORIES
from factlib.evaluators.entailment.models import TransformersEntailment

WORDS = 'the a hare tortoise fox slept won lost ran race and . , it was never three two in leeds'.split()
PREMISES = ['The hare slept.', 'The tortoise won the race, and the fox never ran.', 'It was a fox.']
HYPOTHESES = ['A hare slept.', 'The fox lost two races in Leeds, and the hare won three.', 'It ran.']
SOURCE, TARGET = ('The hare slept. The tortoise won the race. It was a fox in Leeds.',
                  'A hare slept. The tortoise lost the race and the fox never ran.')

def build(folder, kind='bert', labels=('contradiction', 'entailment', 'neutral'), positions=64):
    "A tokenizer with a vocabulary of our own and a classifier with random weights, saved."
    marks = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    folder.mkdir()
    (folder/'vocab.txt').write_text('\n'.join(marks + WORDS + [f'##{c}' for c in 'abcdefghijklmnopqrstuvwxyz']
                                              + list('abcdefghijklmnopqrstuvwxyz')), encoding='utf-8')
    tokenizer = transformers.BertTokenizer(
        vocab=str(folder/'vocab.txt')) if kind == 'bert' or kind == 'deberta' else None
    sizes = dict(vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2,
                 num_attention_heads=2, intermediate_size=64, max_position_embeddings=positions,
                 id2label=dict(enumerate(labels)), label2id={l: i for i, l in enumerate(labels)},
                 pad_token_id=0, initializer_range=.5)
    torch.manual_seed(7)
    if kind == 'bert': model = transformers.BertForSequenceClassification(transformers.BertConfig(**sizes))
    else:
        model = transformers.DebertaV2ForSequenceClassification(transformers.DebertaV2Config(
            relative_attention=True, pos_att_type=['p2c', 'c2p'], position_biased_input=False, **sizes))
    tokenizer.save_pretrained(folder)
    model.eval().save_pretrained(folder)
    return str(folder)

@pytest.fixture(scope='module')
def model(tmp_path_factory): return build(tmp_path_factory.mktemp('models')/'tiny')

def direct(folder, premise, hypothesis):
    "One pair, alone, by transformers itself: probabilities in the model's own order."
    tokenizer, model = transformers.AutoTokenizer.from_pretrained(
        folder), transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        return torch.softmax(model(**tokenizer(premise, hypothesis, return_tensors='pt')).logits[0], -1).numpy()

@pytest.mark.parametrize('kind', ['bert', 'deberta'])
def test_probabilities_are_those_of_a_direct_forward_pass(tmp_path, kind):
    folder = build(tmp_path/kind, kind)
    found = TransformersEntailment(folder, device='cpu').grid(PREMISES, HYPOTHESES)
    by_name = {'contradiction': 0, 'entailment': 1, 'neutral': 2} # the model's order
    spread = []
    for i, p in enumerate(PREMISES):
        for j, h in enumerate(HYPOTHESES):
            expected = direct(folder, p, h)
            assert found.probabilities[i, j] == pytest.approx([expected[by_name[c]] for c in CATEGORIES], abs=1e-5)
            spread.append(expected)
    assert np.ptp(spread, axis=0).max() > .01 # not all the same, which anything would pass

def test_batches_and_padding_change_nothing(model):
    tables = [TransformersEntailment(model, device='cpu', batch=n).grid(PREMISES, HYPOTHESES).probabilities
              for n in (1, 2, 4, 100)]
    for table in tables[1:]: assert np.abs(table - tables[0]).max() < 1e-5
    # nothing to pad
    alone = TransformersEntailment(model, device='cpu').grid(PREMISES[:1], HYPOTHESES[:1]).probabilities
    assert np.abs(alone[0, 0] - tables[0][0, 0]).max() < 1e-5
    assert (TransformersEntailment(model, device='cpu').grid(PREMISES[::-1], HYPOTHESES).probabilities[::-1]
            == pytest.approx(tables[0], abs=1e-5))

def test_the_order_of_sentences_changes_nothing_to_the_last_digit(model):
    entailment, sentences = TransformersEntailment(model, device='cpu',
                                                   batch=4), [*HYPOTHESES, *PREMISES, 'Three never won.']
    a, b = entailment.grid(PREMISES, sentences).probabilities, entailment.grid(PREMISES[::-1],
                                                                               sentences[::-1]).probabilities
    assert (a == b[::-1, ::-1]).all()

def test_what_does_not_fit_is_too_long_and_never_cut_unasked(model):
    long = 'the hare ran '*12 # 36 tokens
    whole = TransformersEntailment(model, device='cpu', max_tokens=32)
    assert whole.grid(['the hare', long], ['a fox', 'it ran']).too_long == 2
    assert whole.grid(['the hare', long], ['a fox']).probabilities is None
    assert whole.grid(['the hare ran '*9], ['a fox']).too_long == 0 # 27 + 2 + 3 marks: just fits
    assert whole.grid(['the hare ran '*9], ['a fox ran']).too_long == 1
    # 63 + 2 + 3 beyond the model's own 64
    assert TransformersEntailment(model, device='cpu').grid(['the hare ran '*21], ['a fox']).too_long == 1

def test_cutting_is_counted_and_only_cuts_premises(model):
    long = 'the hare ran '*12
    cut = TransformersEntailment(model, device='cpu', max_tokens=32, truncate=True)
    found = cut.grid(['the hare', long], ['a fox', 'it ran'])
    assert (found.cut, found.too_long) == (2, 0)
    kept = ' '.join(long.split()[:32 - 3 - 2]) # three marks, two words of the hypothesis
    expected = direct(model, kept, 'a fox')
    assert found.probabilities[1, 0] == pytest.approx(expected[[1, 2, 0]], abs=1e-6)
    assert cut.grid(['a fox'], [long]).too_long == 1 # a hypothesis is not cut

def test_a_judgement_says_what_was_cut_or_too_long(model):
    long = 'The ' + 'hare ran and the '*15 + 'fox won. The hare slept.'
    example = Example('x', source=long, target='A fox won. A hare slept.')
    j = evaluate(SummaCZS(TransformersEntailment(model, device='cpu')), [example], progress=False).iloc[0]
    assert j.absence == 'too_long' and j.evidence['too_long'] == 2 and j.evidence['pairs'] == 4
    j = evaluate(SummaCZS(TransformersEntailment(model, device='cpu', truncate=True)),
                 [example], progress=False).iloc[0]
    assert j.absence is None and j.evidence['caps'] == {'max_tokens': dict(pairs=2)}

def test_all_three_evaluators_end_to_end(model):
    entailment = TransformersEntailment(model, device='cpu')
    source, target = SOURCE.replace('. ', '.|').split('|'), TARGET.replace('. ', '.|').split('|')
    # entailment, neutral, contradiction
    table = np.array([[direct(model, s, t)[[1, 2, 0]] for t in target] for s in source])
    whole = np.array([direct(model, SOURCE, t)[1] for t in target])
    weights = ConvWeights((0, .25, .5, 1), (-1, 0, 2), bias=.25)
    conv = [sum({0: -1, 1: 0, 2: 2}[(x >= .25).astype(int) + (x >= .5)] for x in table[:, j, 0]) + .25
            for j in range(len(target))]
    expected = {'summac_zs': (table[..., 0].max(0) - table[..., 2].max(0)).mean(),
                'alignscore': whole.mean(), 'summac_conv': 1/(1 + np.exp(-np.mean(conv)))}
    made = [get('summac_zs', entailment=entailment), get('alignscore', entailment=entailment),
            get('summac_conv', entailment=entailment, weights=weights)]
    for evaluator in made:
        row = evaluate(evaluator, [Example('x', source=SOURCE, target=TARGET)], progress=False).iloc[0]
        assert row.value == pytest.approx(expected[evaluator.name.split(',')[0]], abs=1e-6)
        assert evaluator.name.endswith(', tiny') and 'model:tiny' in evaluator.signature
        assert 'rules' not in evaluator.signature

def test_as_a_checker_of_facts(model):
    entailment = TransformersEntailment(model, device='cpu')
    best = [direct(model, SOURCE, t)[1] for t in TARGET.replace('. ', '.|').split('|')]
    threshold = float(np.mean(best))
    row = evaluate(FActScore(decomposer=SentenceDecomposer(), checker=NliChecker(entailment, threshold)),
                   [Example('x', source=SOURCE, target=TARGET)], progress=False).iloc[0]
    assert row.value == .5 and row.evidence['scores'] == pytest.approx({'F1': best[0], 'F2': best[1]}, abs=1e-6)

def test_labels_that_cannot_be_told(tmp_path):
    folder = build(tmp_path/'unnamed', labels=('LABEL_0', 'LABEL_1', 'LABEL_2'))
    with pytest.raises(BadInput, match="'LABEL_0'.*name them in their order"): TransformersEntailment(folder)
    named = TransformersEntailment(folder, device='cpu', labels=['neutral', 'contradiction', 'entailment'])
    assert named.grid(PREMISES[:1], HYPOTHESES[:1]).probabilities[0, 0] == pytest.approx(
        direct(folder, PREMISES[0], HYPOTHESES[0])[[2, 0, 1]], abs=1e-6)
    with pytest.raises(BadInput, match='3 outputs, and 2 labels'):
        TransformersEntailment(folder, labels=['entailment', 'neutral'])

def test_a_model_without_a_trained_classifier_is_refused(tmp_path):
    "Else its last layer would be random."
    folder = build(tmp_path/'encoder')
    transformers.AutoModel.from_pretrained(folder).save_pretrained(folder)
    with pytest.raises(BadInput, match="no weights for 'classifier"): TransformersEntailment(folder)

def test_two_outputs_and_one(tmp_path):
    two, one = build(tmp_path/'two', labels=('not_entailment', 'entailment')), build(tmp_path/'one', labels=('score',))
    p, expected = TransformersEntailment(two, device='cpu').grid(PREMISES[:1],
                                                                 HYPOTHESES[:1]).probabilities[
                                                                     0, 0], direct(two, PREMISES[0], HYPOTHESES[0])
    assert p == pytest.approx([expected[1], expected[0], 0], abs=1e-6)
    with pytest.raises(BadInput, match="'score'"): TransformersEntailment(one)
    tokenizer, model = transformers.AutoTokenizer.from_pretrained(
        one), transformers.AutoModelForSequenceClassification.from_pretrained(one).eval()
    with torch.no_grad():
        logit = float(model(**tokenizer(PREMISES[0], HYPOTHESES[0], return_tensors='pt')).logits[0, 0])
    p = TransformersEntailment(one, device='cpu',
                               labels=['entailment']).grid(PREMISES[:1], HYPOTHESES[:1]).probabilities[0, 0]
    assert p == pytest.approx([1/(1 + np.exp(-logit)), 1/(1 + np.exp(logit)), 0], abs=1e-6)

def test_signature_and_faults(model, tmp_path):
    a, b = TransformersEntailment(model, device='cpu').signature, TransformersEntailment(
        model, device='cpu', batch=3).signature
    # batches change nothing, and a folder's place is nobody's business
    assert a == b and 'max_tokens:64' in a and str(model) not in a
    assert TransformersEntailment(build(tmp_path/'tiny', labels=('entailment', 'contradiction', 'neutral')),
                                  device='cpu').signature != a
    with pytest.raises(BadInput, match='reads 64 tokens'): TransformersEntailment(model, max_tokens=65)
    with pytest.raises(BadInput, match='There is no model'): TransformersEntailment(str(tmp_path/'nothing'))

def test_hostile_texts(model):
    entailment = TransformersEntailment(model, device='cpu', truncate=True)
    texts = ['{}{{x}}%s', '\ud800 fox', 'שלום עולם', '狐狸跑了', '', 'x'*100_000, '[SEP] [CLS] hare']
    found = entailment.grid(texts, ['A hare.'])
    assert np.isfinite(found.probabilities).all() and abs(found.probabilities.sum(-1) - 1).max() < 1e-9

def test_correctness_with_a_model_of_inference(model, monkeypatch):
    "By its name: a chat takes apart, the model of FACTLIB_NLI checks; premises that are too long are cut, and counted."
    import json
    from factlib.llm.chat import Chat
    from factlib.llm.stub import StubServer
    monkeypatch.setenv('FACTLIB_NLI', model)
    with StubServer(lambda request: json.dumps(dict(claims=['The hare slept.', 'It was a fox.']))) as server:
        judge = get('factual_correctness_nli', chat=Chat('stub', server.base_url, api_key='none', mode='off'))
        examples = [Example(name, target=TARGET, reference=SOURCE*k) for name, k in dict(short=1, long=20).items()]
        judged = evaluate(judge, examples, progress=False)
    labels = ('contradiction', 'entailment', 'neutral')
    likeliest = [direct(model, SOURCE, claim).argmax() == labels.index('entailment')
                 for claim in ('The hare slept.', 'It was a fox.')]
    assert judged.precision[0] == sum(likeliest)/2 and judged.requests[0] == 2
    assert 'cut' not in judged.evidence[0]['precision_notes'] and judged.evidence[1]['precision_notes']['cut'] == 2
