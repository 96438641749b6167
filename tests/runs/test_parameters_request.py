"One way to say more in every request: `--request` of each command that asks a model, and the parameter `request`."
import asyncio
import json
import re

import pandas as pd
import pytest
from command import factlib_inside
from factlib.core.records import Absence, BadInput, Example
from factlib.evaluators.base import get
from factlib.evaluators.prompt_family import generation
from factlib.llm.chat import Chat, _one_form
from factlib.llm.costs import dry_run
from factlib.llm.stub import StubServer
from factlib.runs.grid import load_grid
from factlib.runs.judging import memo_judges
from factlib.runs.parameters import chat_for, check_parameters, request_fields
from obliging_server import obliging
from strict_server import strict
from sweeps import grid

FIELDS = dict(temperature=None, max_tokens=3000, reasoning_effort='low')
REQUEST = '{"temperature": null, "max_tokens": 3000, "reasoning_effort": "low"}'

def check_sent(server, limit='max_tokens'):
    "Each request has the fields that were fixed, and lacks the one that is null."
    assert server.requests
    for body in server.requests:
        assert 'temperature' not in body and (body[limit], body['reasoning_effort']) == (3000, 'low')

def texts(folder):
    "A file with two texts and their sources."
    rows = [dict(id=str(i), source='The cat slept on a mat.', target=text) for i,
        text in enumerate(('It slept.', 'It flew.'))]
    (folder/'mine.jsonl').write_text('\n'.join(map(json.dumps, rows)))
    return folder/'mine.jsonl'

@pytest.mark.parametrize('given, words', [
    ('temperature=0', 'no JSON'), ("{'temperature': 0}", 'no JSON'), ('[1]', 'has to be a JSON object'),
    ('3', 'has to be a JSON object'), ('{"model": "x"}', 'make another chat'),
    ('{"stream": true}', 'nothing is streamed'),
    ('{"schema": {}}', 'who asks sets it'), ('{"max_completion_tokens": 9}', '`max_tokens`'),
    ('{"a": NaN}', 'JSON has not'),
    ('{"max_tokens": "9"}', 'max_tokens'), ('{"max_tokens": 0}', 'max_tokens'), ('{"seed": 1, "seed": 2}', 'twice'),
    ('['*5000, 'no JSON')])
def test_what_is_no_request_is_said_in_a_sentence(tmp_path, given, words):
    with pytest.raises(BadInput, match=words) as said: request_fields(given)
    assert len(str(said.value)) < 400
    for command in (['run', 'live_judge', '-p', 'model', 'm'], ['cost', 'live_judge'],
        ['evaluate', texts(tmp_path), '--with', 'faithfulness', '--model', 'm']):
        done = factlib_inside(*command, *(['--out', tmp_path/'o'] if command[0] != 'cost' else []), '--request',
            given, cwd=tmp_path)
        assert done.returncode == 2 and re.search(words, done.stderr), done.stderr
        assert not (tmp_path/'o'/'answers.sqlite').exists()

def test_empty_is_nothing_and_order_does_not_count():
    assert request_fields('') == request_fields(' ') == request_fields(None) == request_fields('{}') == {}
    one, other = (Chat('m', 'http://h/v1', request=request_fields(x)) for x in ('{"seed": 1, "top_p": 0.5}',
        '{"top_p": 0.5, "seed": 1}'))
    assert get('faithfulness', chat=one).signature == get('faithfulness', chat=other).signature

def test_without_it_key_and_signature_are_as_ever(tmp_path):
    given = dict(model='m', base_url='http://127.0.0.1:9/v1', dataset='x', n=1, seed=0, out=str(tmp_path), mode='off')
    plain = Chat('m', 'http://127.0.0.1:9/v1', mode='off')
    for parameters in (given, given | dict(request=''), given | dict(request='{}')):
        with chat_for(parameters) as chat:
            assert chat.key('Hm?') == plain.key('Hm?') and chat.describe() == plain.describe()
    with chat_for(given | dict(request=REQUEST)) as chat:
        assert chat.key('Hm?') != plain.key('Hm?') and chat.describe()['request'] == FIELDS
    leading = {name: given[name] for name in ('model', 'base_url', 'dataset', 'n', 'seed', 'out')}
    assert json.loads(check_parameters(leading | dict(request=FIELDS), request=str)['request']) == FIELDS

def test_run_and_its_winner(tmp_path):
    "Over the experiment's own temperature and max_tokens; short and long form are the same."
    with StubServer(obliging) as server:
        common = ['-p', 'model', 'm', '-p', 'base_url', server.base_url, '-p', 'n', '1', '-p', 'max_tokens', '77',
            '-p', 'temperature', '0.5']
        assert factlib_inside('run', 'live_judge', *common, '--request', REQUEST, '--out', 'short',
            cwd=tmp_path).returncode == 0
        check_sent(server)
        assert factlib_inside('run', 'live_judge', *common, '-p', 'request', REQUEST, '--out', 'long',
            cwd=tmp_path).returncode == 0
        assert len(server.requests) == 6
        check_sent(server)
        both = factlib_inside('run', 'live_judge', *common, '-p', 'request', REQUEST, '--request', REQUEST,
            cwd=tmp_path)
        assert both.returncode == 2 and 'give one of them' in both.stderr
    results = [json.loads((tmp_path/name/'result.json').read_text()) for name in ('short', 'long')]
    assert results[0]['parameters']['request'] == REQUEST
    signatures = [result['evaluators']['m']['signature'] for result in results]
    assert signatures[0] == signatures[1] and 'reasoning_effort' in signatures[0]
    none = factlib_inside('run', 'quick_sweep', '--request', REQUEST, cwd=tmp_path)
    assert none.returncode == 2 and 'asks no model' in none.stderr

def test_evaluate(tmp_path):
    with StubServer(obliging) as server:
        command = ['evaluate', texts(tmp_path), '--with', 'faithfulness,consistency', '--model', 'm', '--base-url',
            server.base_url, '--out', 'o/x', '--request', REQUEST]
        cost = factlib_inside(*command, '--cost', cwd=tmp_path)
        # 2 judges, 2 texts
        assert '3,000 tokens, as `request` says' in cost.stdout and '12,000' in cost.stdout and not server.requests
        done = factlib_inside(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        check_sent(server)
    nobody = factlib_inside('evaluate', texts(tmp_path), '--with', 'rouge1', '--out', 'o/y', '--request', REQUEST,
        cwd=tmp_path)
    assert nobody.returncode == 2 and 'needs a model' in nobody.stderr

def test_builders(tmp_path):
    (tmp_path/'pairs.jsonl').write_text(json.dumps(dict(source='A fox ran. It hid. It slept.',
        true='A fox ran. Then it hid. At last it slept.')))
    (tmp_path/'pairs.json').write_text(json.dumps([dict(question='Who was Ada Lovelace?',
        ground_truth='Ada Lovelace, born in 1815, wrote about the Analytical Engine.')]))
    for name, pairs, out in (('build-montagelie', 'pairs.jsonl', 'm.jsonl'), ('build-answers', 'pairs.json', 'a.json')):
        with StubServer(obliging) as server:
            command = [name, pairs, '--out', out, '--model', 'm', '--base-url', server.base_url, '--request', REQUEST]
            cost = factlib_inside(*command, '--cost', cwd=tmp_path)
            assert cost.returncode == 0 and 'as `request` says' in cost.stdout, cost.stderr
            factlib_inside(*command, cwd=tmp_path) # what the stub says need not make anything
            check_sent(server)
        wrong = factlib_inside(*command[:-1], '{', cwd=tmp_path)
        assert wrong.returncode == 2 and 'JSON' in wrong.stderr

def test_page_of_narratives(tmp_path):
    from factlib.apps.narrative_steps import ModelSettings, NarrativeSteps
    from factlib.apps.store import Store
    with pytest.raises(BadInput, match='JSON'): ModelSettings('m', request='{')
    steps = NarrativeSteps(Store(tmp_path), ModelSettings('m', 'http://127.0.0.1:9/v1', request=REQUEST))
    assert steps.chat().request == FIELDS
    steps.close()
    wrong = factlib_inside('narrative', '--store', tmp_path/'s', '-p', 'model', 'm', '-p', 'request', '{', cwd=tmp_path)
    assert wrong.returncode == 2 and 'JSON' in wrong.stderr

def test_grid_takes_a_mapping_a_text_and_an_axis(tmp_path):
    said = dict(experiment='live_judge', parameters=dict(model='m', request=dict(temperature=None)),
        grid=dict(seed=[0, 1]))
    cells = load_grid(grid(tmp_path, said)).cells
    assert [cell.parameters['request'] for cell in cells] == ['{"temperature": null}']*2
    said = dict(experiment='live_judge', parameters=dict(model='m'),
        grid=dict(request=['', dict(top_p=.5), '{"top_p": 0.9}']), exclude=[dict(request='')])
    cells = load_grid(grid(tmp_path, said)).cells
    assert [json.loads(cell.parameters['request']) for cell in cells] == [dict(top_p=.5),
        dict(top_p=.9)] and len({cell.name for cell in cells}) == 2
    for wrong in ('{', dict(model='x'), '[1]'):
        with pytest.raises(BadInput, match='JSON|another chat'): load_grid(grid(tmp_path,
            said | dict(grid=dict(request=[wrong]), exclude=[])))
    said = dict(experiment='quick_sweep', parameters=dict(request='{}'))
    with pytest.raises(BadInput, match='no parameter'): load_grid(grid(tmp_path, said))

@pytest.mark.slow
def test_sweep_sends_it(tmp_path):
    with StubServer(obliging) as server:
        said = dict(experiment='live_judge',
            parameters=dict(model='m', base_url=server.base_url, n=1, kinds='41', request=FIELDS))
        done = factlib_inside('sweep', grid(tmp_path, said), '--out', 'swept', cwd=tmp_path)
        assert done.returncode == 0, done.stderr + done.stdout
        check_sent(server)

JUDGEMEMO = dict(model='gpt-5', what='modes', judges='vanilla judgememo_aggregate', size=200, max_tokens=0,
    generation='plain')

def test_table_a6_and_a_model_that_it_has_not(tmp_path):
    "`request` wins over the settings; a model without any is an error only if nothing else says how to ask it."
    def asked(model, request):
        fields = request_fields(request)
        chat = Chat(model, 'http://127.0.0.1:9/v1', mode='off', request=fields)
        judge = memo_judges(JUDGEMEMO | dict(model=model, request=request), chat)[0]
        plan, = judge.plan(Example('x', target='A fox ran. It slept.'))
        return _one_form(chat, plan.messages, **plan.options | dict(max_tokens=plan.max_tokens))
    assert generation('Qwen3-32B').options == dict(max_tokens=1024, temperature=.7, top_p=1., top_k=20)
    sent = asked('Qwen3-32B', '{"temperature": null, "max_tokens": 3000}')
    assert 'temperature' not in sent and (sent['max_tokens'], sent['top_k']) == (3000, 20)
    with pytest.raises(BadInput, match='Table A.6 has no settings.*--request'): asked('gpt-5', '')
    with pytest.warns(UserWarning, match='Table A.6 has no settings'): sent = asked('gpt-5', '{"temperature": null}')
    assert 'temperature' not in sent and sent['max_tokens'] == 2048
    with pytest.warns(UserWarning, match='no reasoning mode'):
        chat = Chat('llama', 'http://127.0.0.1:9/v1', mode='off')
        memo_judges(JUDGEMEMO | dict(model='llama', request='{"seed": 1}', generation='thinking'), chat)

def test_plans_count_with_the_limit_that_is_asked_for(tmp_path):
    example = Example('x', source='The cat slept.', target='It slept.')
    chats = {limit: Chat('m', 'http://127.0.0.1:9/v1', mode='off', request=dict(max_tokens=limit)) for limit in (3000,
        None)}
    plan = {limit: dry_run(get('faithfulness', chat=chat), [example], reply_tokens=2500,
        prices=dict(m=(1, 2, 'EUR'))) for limit, chat in chats.items()}
    assert (plan[3000].total.completion_tokens, plan[3000].total.expected_tokens) == (3000, 2500)
    none = plan[None].total
    assert (none.completion_tokens, none.most, none.expected_tokens) == (None, None, 2500) and none.expected is not None
    assert 'no upper bound' in str(plan[None]) and 'at most' not in plan[None].table().to_string()
    assert 'The upper bound' not in str(plan[None]) and 'The upper bound' in str(plan[3000])
    for request, words in (('{"max_tokens": 3000}', '9,000'), ('{"max_tokens": null}', 'no upper bound')): # three texts
        done = factlib_inside('cost', 'live_judge', '-p', 'model', 'm', '-p', 'n', '1', '--request', request,
            cwd=tmp_path)
        assert done.returncode == 0 and words in done.stdout, done.stderr

def test_judgememo_counts_its_context_with_it():
    "A prompt and a reply of 2,048 fit into 4,000 tokens; with 3,900 they don't; without a limit the prompt counts."
    example = Example('x', target='A fox ran. It slept. '*20)
    def judge(request):
        chat = Chat('m', server.base_url, request=request)
        return get('judgememo_aggregate', chat=chat, size=2000, context=4000)
    with StubServer(obliging) as server:
        fits, too_long, unbounded = [asyncio.run(judge(request).judge(example)) for request in ({},
            dict(max_tokens=3900), dict(max_tokens=None))]
    assert fits.absence is not Absence.too_long and unbounded.absence is not Absence.too_long
    assert too_long.absence is Absence.too_long and '3,900 for the reply' in too_long.evidence['detail']

def test_a_strict_reasoning_model_judges_a_file(tmp_path):
    with StubServer(strict()) as server:
        command = ['evaluate', texts(tmp_path), '--with', 'faithfulness,consistency,factscore', '--model', 'm',
            '--base-url', server.base_url, '--out', 'o/x', '--no-page']
        done = factlib_inside(*command, '--request', '{"temperature": null}', cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert not any('temperature' in body for body in server.requests)
        assert 'max_completion_tokens' in server.requests[-1]
    frame = pd.read_parquet(tmp_path/'o/x/judgements.parquet')
    assert len(frame) == 6 and frame.value.notna().all()

def test_help_teaches_it(tmp_path):
    for command in ('run', 'cost', 'evaluate', 'build-montagelie', 'build-answers'):
        shown = ' '.join(factlib_inside(command, '--help', cwd=tmp_path).stdout.split())
        assert '--request JSON' in shown
        assert '{"temperature": null, "max_tokens": 3000, "reasoning_effort": "low"}' in shown
    assert 'request (JSON' in ' '.join(factlib_inside('narrative', '--help', cwd=tmp_path).stdout.split())

GIVEN = dict(model='', base_url='', dataset='holmes', n=1, seed=0, out='/x')

@pytest.mark.parametrize('name, made, text', [('kinds', 24, '24'), ('lengths', 2000, '2000'), ('temperature', .7, '0.7'),
                                              ('temperature', 1, '1'), ('temperature', 1e-1, '0.1'), ('model', 7, '7')])
def test_a_text_that_papermill_took_for_a_number_is_a_text(name, made, text):
    "The notebook's own name has it, too."
    names = GIVEN | {name: made}
    assert check_parameters(names, **{name: str})[name] == text == names[name]

@pytest.mark.parametrize('name, made', [('model', 1e5), ('language', False), ('kinds', [24, 41]), ('pack', None)])
def test_a_text_that_cannot_be_known_is_asked_for_again(name, made):
    with pytest.raises(BadInput, match=f'{name} has to be of type str, .* `-r {name} TEXT`'):
        check_parameters(GIVEN | {name: made}, **{name: str})

@pytest.mark.parametrize('seed, said', [(10**19, 'largest number'), (10**20, 'largest number'), (-1, "can't be negative")])
def test_seeds_that_no_table_holds_are_one_sentence(seed, said):
    with pytest.raises(BadInput, match=said): check_parameters(GIVEN | dict(seed=seed))
    assert check_parameters(GIVEN | dict(seed=2**63 - 1))['seed'] == 2**63 - 1

@pytest.mark.parametrize('made, truth', [('true', True), ('no', False), (1, True), (True, True)])
def test_truth_values_as_run_takes_them(made, truth):
    assert check_parameters(GIVEN | dict(slow=made), slow=bool)['slow'] is truth
