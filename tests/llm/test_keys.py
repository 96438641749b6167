"""Where a key can be found while a sweep has it: not in /proc, not in what a child inherits; by a process of the same
user and by another account."""
import os
import shutil
import ssl
import subprocess
import sys

import pytest

from factlib.llm.keys import key_taken, server_certificate, trust_also

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
