"""Where a key can be found while a sweep has it: not in /proc, not in what a child inherits; by a process of the same
user and by another account."""
import os
import shutil
import ssl
import subprocess
import sys
import time

import pytest

from factlib.core.records import BadInput
from factlib.llm.chat import Chat
from factlib.llm.gateway import Gateway
from factlib.llm.keys import Key, key_taken, server_certificate, trust_also
from factlib.llm.stub import StubServer
from factlib.runs.costs import kernel_spending
from sweeps import asking

LINUX = pytest.mark.skipif(not sys.platform.startswith('linux'), reason='/proc is of Linux')
KEY = 'sk-the-real-key-of-a-test'
NOBODY = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
AS_NOBODY = pytest.mark.skipif(os.name != 'posix' or os.geteuid() != 0 or shutil.which('setpriv') is None,
                               reason='another account needs root')

HOLDING = '''
import os, subprocess, sys
from factlib.llm.keys import key_taken
with key_taken() as key:
    assert key == %r and 'OPENAI_API_KEY' not in os.environ and 'COPY' not in os.environ
    print(os.getpid(), flush=True)
    sys.stdin.read()
assert os.environ['OPENAI_API_KEY'] == os.environ['COPY'] == key
''' % KEY

def holding(*before):
    "A process that has the key, and its number."
    env = {n: v for n, v in os.environ.items() if n != 'FACTLIB_CACHE'} | dict(OPENAI_API_KEY=KEY, COPY=KEY)
    process = subprocess.Popen([*before, sys.executable, '-c', HOLDING],
                               env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())

def released(process):
    process.stdin.close()
    return process.wait(30)

@LINUX
def test_the_environment_of_a_process_shows_no_key():
    """Before, `os.environ` was changed and /proc/PID/environ still had it. Root may read it here: the memory is
    overwritten."""
    process, pid = holding()
    try: shown = open(f'/proc/{pid}/environ', 'rb').read()
    except PermissionError: shown = b''
    assert KEY.encode() not in shown and released(process) == 0

@LINUX
@AS_NOBODY
def test_another_process_of_the_same_user_reads_neither_environment_nor_memory():
    "Before, any cell could read both of the process that had started it."
    process, pid = holding(*NOBODY)
    for name in ('environ', 'mem', 'maps', 'fd'):
        looked = subprocess.run([*NOBODY, 'sh', '-c', f'ls /proc/{pid}/{name}/ 2>&1 || head -c 100 /proc/{pid}/{name}'],
                                capture_output=True, text=True)
        assert looked.returncode != 0 and 'ermission denied' in looked.stdout + looked.stderr, name
    assert released(process) == 0

def test_a_child_inherits_no_key(monkeypatch):
    monkeypatch.setenv('OPENAI_API_KEY', KEY)
    monkeypatch.setenv('COPY', f'Bearer {KEY}')
    monkeypatch.setenv('OTHER', 'kept')
    with key_taken() as key:
        child = subprocess.run([sys.executable, '-c', 'import os; print(dict(os.environ))'],
                               capture_output=True, text=True).stdout
        assert key == KEY and KEY not in child and "'kept'" in child
    assert os.environ['OPENAI_API_KEY'] == KEY and os.environ['COPY'] == f'Bearer {KEY}'

def test_no_key_and_a_short_one(monkeypatch):
    "A short word that stands for a key isn't looked for in other variables."
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    with key_taken() as key: assert key == ''
    monkeypatch.setenv('OPENAI_API_KEY', 'n')
    with key_taken() as key: assert key == 'n' and os.environ['PATH']
    assert os.environ['OPENAI_API_KEY'] == 'n'

@pytest.mark.parametrize('around', ['{}\n', '{}\r\n', ' {}', '\t{} \n', '{}\x0b', '{}\u00a0'])
def test_white_space_around_a_key_is_taken_off_everywhere(around, monkeypatch, tmp_path):
    "Before, `evaluate` did and `run` and `sweep` didn't: nothing was sent, and all of it was counted as sent."
    monkeypatch.setenv('OPENAI_API_KEY', around.format(KEY))
    monkeypatch.setenv('COPY', KEY)
    with StubServer(lambda request: 'Yes.', key=KEY) as server:
        assert Chat('m', server.base_url, mode='off').ask('a').text == 'Yes.' # in a notebook, `evaluate`, `probe`
        notebook = asking(tmp_path, server.base_url)
        with kernel_spending(tmp_path/'out', notebook, dict(base_url=server.base_url)): # `run`
            assert KEY not in ' '.join(os.environ.values()) and 'COPY' not in os.environ
            assert Chat('m', server.base_url, mode='off').ask('b').text == 'Yes.'
        assert len(server.requests) == 2

@pytest.mark.parametrize('key', ['sk-secret\nsk-other', 'sk-secret\r\nX-Header: 1', 'Bearer sk-secret', 'sk-sec\tret',
                                 ' \n', 'sk-secret\x00', 'sk-secr\u00e9t', '\ufeffsk-secret', 'sk\u2013secret',
                                 'sk-secret\x7f'])
def test_what_no_key_can_hold_is_refused_without_being_shown(key, monkeypatch, tmp_path):
    "In one sentence, before anything is sent, whoever asks."
    if '\0' not in key: monkeypatch.setenv('OPENAI_API_KEY', key)
    with StubServer(lambda request: 'Yes.') as server:
        def run():
            if '\0' in key: raise BadInput('API key OPENAI_API_KEY') # no environment holds it
            notebook = asking(tmp_path, server.base_url)
            with kernel_spending(tmp_path/'out', notebook, dict(base_url=server.base_url)): pass
        for ask in (lambda: Chat('m', server.base_url, api_key=key),
                    lambda: Gateway([server.base_url], api_key=key), run):
            with pytest.raises(BadInput, match='API key .*OPENAI_API_KEY') as told: ask()
            assert 'secr' not in str(told.value) and 'sk' not in str(told.value)
        assert not server.requests

@pytest.mark.parametrize('run', ['\\\\', '&amp;', '%25', 'sk-proj-', '&#0000', '\\\\u0073', 's', '"\\\\'])
def test_a_key_is_looked_for_in_time(run):
    "A megabyte that nearly holds it, over and over."
    begun, text = time.process_time(), run*(1_000_000//len(run))
    assert Key('sk-proj-abc+def/0123456789').strike(text) == text and time.process_time() - begun < 5

def test_a_certificate_is_trusted_by_who_was_told(tmp_path, monkeypatch):
    "One that knows it besides the usual ones, under its own address only; its key is in no file that stays."
    monkeypatch.delenv('SSL_CERT_FILE', raising=False)
    public, context = server_certificate('127.0.0.1')
    bundle = trust_also(public, tmp_path/'all.pem')['SSL_CERT_FILE']
    assert 'PRIVATE' not in public and len(ssl.create_default_context(cafile=bundle).get_ca_certs()) > 1
    def shaken(name, **trust):
        "Both sides of a handshake, in memory."
        client, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        ours = ssl.create_default_context(**trust).wrap_bio(back, client, server_hostname=name)
        theirs = context.wrap_bio(client, back, server_side=True)
        for _ in range(4):
            for side in (ours, theirs):
                try: side.do_handshake()
                except ssl.SSLWantReadError: pass
        return ours.version()
    assert shaken('127.0.0.1', cafile=bundle).startswith('TLSv1.')
    for wrong in (dict(name='127.0.0.2', cafile=bundle), dict(name='127.0.0.1')):
        with pytest.raises(ssl.SSLCertVerificationError): shaken(**wrong)
