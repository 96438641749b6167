"""The published forms of AlignScore's and SummaC-Conv's weights, made here with random numbers. Run by `make test-nli`,
which brings torch and transformers."""
import numpy as np
import pytest

transformers = pytest.importorskip('transformers',
                                   reason='transformers is not installed; `make test-nli` tests with it, in an '
                                          'environment of its own')
torch = pytest.importorskip('torch',
                            reason='torch is not installed; `make test-nli` tests with it, in an environment of its own')

from factlib.core.records import BadInput, Example
from factlib.evaluators.entailment.alignscore import AlignScoreLike
from factlib.evaluators.entailment.models import TransformersEntailment, save_alignscore, torch_state
from factlib.evaluators.entailment.rules import RuleEntailment
from factlib.evaluators.entailment.summac import PUBLISHED_EDGES, ConvWeights, SummaCConv
from factlib.core.loop import run_sync

PAIRS = [('The hare slept.', 'A hare slept.'), ('The tortoise won the race.', 'It lost.')]

class Odd: "What a checkpoint may hold beside numbers."

@pytest.fixture(scope='module')
def published(tmp_path_factory):
    """A backbone's folder and a checkpoint as AlignScore's code would save it: its modules by its names, and what only
    training needs."""
    torch.manual_seed(3)
    home = tmp_path_factory.mktemp('alignscore')
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    words = ['<s>', '<pad>', '</s>', '<unk>', '<mask>',
             *'The the hare slept . A tortoise won race It lost a fox ran'.split()]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token='<unk>'))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.RobertaProcessing(('</s>', 2), ('<s>', 0))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner,
                                                     bos_token='<s>',
                                                     eos_token='</s>', pad_token='<pad>', unk_token='<unk>',
                                                     mask_token='<mask>', cls_token='<s>', sep_token='</s>',
                                                     model_max_length=32,
                                                     model_input_names=['input_ids', 'attention_mask'])
    config = transformers.RobertaConfig(vocab_size=len(words), hidden_size=16,
                                        num_hidden_layers=2, num_attention_heads=2,
                                        intermediate_size=32, max_position_embeddings=34,
                                        pad_token_id=1, type_vocab_size=1, initializer_range=.5)
    base, heads = transformers.RobertaModel(config), {n: torch.nn.Linear(16, k)
                                                      for n, k in (('bin_layer', 2),
                                                                   ('tri_layer', 3), ('reg_layer', 1))}
    tokenizer.save_pretrained(home/'backbone')
    config.save_pretrained(home/'backbone')
    state = {f'base_model.{k}': v for k, v in base.state_dict().items()} | {f'{n}.{k}': v for n, head in heads.items()
                                                                            for k, v in head.state_dict().items()}
    state |= {'mlm_head.bias': torch.zeros(len(words)), 'base_model.embeddings.position_ids': torch.arange(34)[None]}
    torch.save(dict(state_dict=state, epoch=2, hyper_parameters=dict(model='roberta-base')), home/'a.ckpt')
    torch.save(dict(state_dict=state, hyper_parameters=Odd()), home/'odd.ckpt')
    return home, base.eval(), heads['tri_layer'].eval(), tokenizer

def test_the_model_computes_what_the_checkpoint_does(published, tmp_path):
    home, base, tri, tokenizer = published
    model = TransformersEntailment(str(save_alignscore(home/'a.ckpt', tmp_path/'model', home/'backbone')), device='cpu')
    for premise, hypothesis in PAIRS:
        with torch.no_grad():
            expected = torch.softmax(tri(base(**tokenizer(premise, hypothesis, return_tensors='pt')).pooler_output),
                                     -1)[0].numpy()
        assert model.grid([premise], [hypothesis]).probabilities[0, 0] == pytest.approx(expected, abs=1e-6)
        assert np.ptp(expected) > .01
    judged = run_sync(AlignScoreLike(model).judge(Example('x', source='The hare slept. The tortoise won the race.',
                                                          target='A hare slept. It lost.')))
    assert 0 < judged.value < 1 and judged.absence is None

def test_what_is_no_checkpoint_of_this_backbone(published, tmp_path):
    home, *_ = published
    state = torch_state(home/'a.ckpt')
    for name, change, words in (('short', lambda s: s.pop('tri_layer.bias'), 'not AlignScore'),
                                ('wide', lambda s: s.update({'tri_layer.weight': torch.zeros(3, 20)}),
                                 'not AlignScore')):
        changed = dict(state)
        change(changed)
        torch.save(dict(state_dict=changed), tmp_path/f'{name}.ckpt')
        with pytest.raises(BadInput, match=words):
            save_alignscore(tmp_path/f'{name}.ckpt', tmp_path/'out', home/'backbone')
    with pytest.raises(BadInput, match='There is no model'):
        save_alignscore(home/'a.ckpt', tmp_path/'out', tmp_path/'nothing')
    assert not (tmp_path/'out').exists()

def test_code_in_a_file_does_not_run_unless_it_is_trusted(published, tmp_path):
    home, *_ = published
    with pytest.raises(BadInput, match='trust=True'): torch_state(home/'odd.ckpt')
    assert 'tri_layer.bias' in torch_state(home/'odd.ckpt', trust=True)
    (tmp_path/'junk.bin').write_bytes(b'junk')
    torch.save([1, 2], tmp_path/'list.bin')
    torch.save(dict(a=3), tmp_path/'plain.bin')
    for name, words in (('junk.bin', "can't be read"), ('list.bin', 'no weights by name'),
                        ('plain.bin', 'no weights by name'), ('none.bin', 'There is no file')):
        with pytest.raises(BadInput, match=words): torch_state(tmp_path/name)

def test_published_weights_of_summac_conv(tmp_path):
    """By the definition: a linear layer over each sentence's bins, their mean three times over, a layer with two
    outputs, the softmax's second."""
    torch.manual_seed(5)
    bins = len(PUBLISHED_EDGES) - 1
    mlp, final = torch.nn.Linear(bins, 1), torch.nn.Linear(3, 2)
    torch.save({'mlp.weight': mlp.weight, 'mlp.bias': mlp.bias, 'layer_final.weight': final.weight,
                'layer_final.bias': final.bias}, tmp_path/'conv.bin')
    weights = ConvWeights.from_file(tmp_path/'conv.bin')
    entailments = np.random.default_rng(0).random((4, 3)) # chunks x sentences
    counts = np.array([np.histogram(column, PUBLISHED_EDGES)[0] for column in entailments.T], float)
    with torch.no_grad():
        mean = mlp(torch.tensor(counts, dtype=torch.float32)).mean()
        expected = torch.softmax(final(mean.repeat(3)), -1)[1].item()
    words = RuleEntailment('words')
    evaluator = SummaCConv(str(tmp_path/'conv.bin'), words)
    p = np.zeros((4, 3, 3))
    p[..., 0] = entailments
    example = Example('x', source='a', target='b')
    assert evaluator.total(evaluator.sentence_scores(p, example), example) == pytest.approx(expected, abs=1e-5)
    assert evaluator.signature == SummaCConv(weights, words).signature
