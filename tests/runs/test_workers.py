"""Sweeps on workers: real processes, killed in mid-cell, in folders of their own; a scheduler that isn't there; the
script for Slurm."""
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import pytest

from factlib.benchmarks.archives import FetchError
from factlib.core.records import BadInput
from factlib.llm.stub import StubServer
from factlib.runs.sweep import copier, here, plan, run_sweep
from factlib.runs.workers import arrive, job_script, local_workers, scheduler_workers, slurm_workers
from factlib.runs.grid import load_grid
from factlib.runs.sweep_report import exit_code
from sweeps import asking, grid, notebook, rows, statuses, sweep

KEY = 'sk-the-real-key'

class Deadly:
    """A rule that answers with the prompt, and once, at the third request for `b`, kills the worker that runs it. A
    cell says in a file which process its kernel belongs to."""
    def __init__(self, folder): self.folder, self.asked, self.killed = folder, [], False
    def __call__(self, request):
        prompt = request['messages'][0]['content']
        self.asked.append(prompt)
        if not self.killed and len([p for p in self.asked if p.startswith('b')]) == 3:
            self.killed = True
            os.kill(int((self.folder/'worker-b').read_text()), signal.SIGKILL)
        return dict(content=prompt, delay=.05)

def swept(path, out, workers=here, done=bool):
    with redirect_stderr(io.StringIO()): return run_sweep(load_grid(path), out, workers, done)

@pytest.fixture
def asked(tmp_path, monkeypatch):
    "A server that kills, and the grid of a notebook that asks it; the environment has the key."
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv('FACTLIB_CACHE', raising=False)
    monkeypatch.setenv('OPENAI_API_KEY', KEY)
    rule = Deadly(tmp_path)
    with StubServer(rule, key=KEY) as server:
        own = asking(tmp_path, server.base_url)
        said = json.loads(own.read_text())
        said['cells'][1][
            'source'] = f'import os; open({str(tmp_path)!r} + f"/worker-{{name}}", "w").write(str(os.getppid()))\n' + said['cells'][1]['source']
        own.write_text(json.dumps(said))
        rule.server = server
        rule.grid = grid(tmp_path, dict(experiment='asking.ipynb', parameters=dict(n=8, concurrency=2),
                                        grid=dict(name=['a', 'b']), limits=dict(concurrency=3)))
        yield rule

def check_survived(rule, out, killed=True):
    "All done, each table right, at most what was under way asked twice, never more at a time than allowed."
    assert statuses(out) == dict.fromkeys(('name=a', 'name=b'), 'done') and rule.killed == killed
    for name in 'ab':
        assert (out/f'name={name}'/'table.csv').read_text().split('\n') == [f'{name} {i}' for i in range(8)]
    assert set(rule.asked) == {f'{name} {i}' for name in 'ab' for i in range(8)} and len(rule.asked) <= 16 + 2*killed
    assert rule.server.most_in_flight <= 3 and not list(out.glob('*.failed*')) and not list(out.glob('.*.part'))

@pytest.mark.slow
def test_a_worker_of_this_machine_killed_in_mid_cell(asked, tmp_path, monkeypatch):
    summary = swept(asked.grid, tmp_path/'out', local_workers(2))
    assert summary['done'] == 2 and summary['requests'] == len(asked.asked)
    check_survived(asked, tmp_path/'out')
    monkeypatch.setattr('distributed.LocalCluster', None) # none is started where nothing is to do
    assert swept(asked.grid, tmp_path/'out', local_workers(2))['kept'] == 2
    assert os.environ['OPENAI_API_KEY'] == KEY

@contextmanager
def dask(*arguments, cwd):
    "A process of Dask's command line in a folder of its own, without the key."
    cwd.mkdir(exist_ok=True)
    env = {k: v for k, v in os.environ.items() if k != 'OPENAI_API_KEY'}
    process = subprocess.Popen([sys.executable, '-m', 'distributed.cli.dask_' + arguments[0], *arguments[1:]],
                               cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    log = []
    threading.Thread(target=lambda: log.extend(process.stdout), daemon=True).start()
    try: yield process, log
    finally:
        process.terminate()
        try: process.wait(10)
        except subprocess.TimeoutExpired: process.kill()

def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end: time.sleep(.05)
    assert condition()

@pytest.fixture
def certificates(tmp_path):
    "Dask's configuration for TLS, and what its command line needs to know of it."
    import dask.config
    from distributed.security import Security
    made, folder = Security.temporary(), tmp_path/'tls'
    folder.mkdir(mode=0o700)
    for name, text in (('ca', made.tls_ca_file), ('cert', made.tls_client_cert), ('key', made.tls_client_key)):
        (folder/name).write_text(text)
    one = dict(cert=str(folder/'cert'), key=str(folder/'key'))
    with dask.config.set({'distributed.comm.tls': {'ca-file': str(folder/'ca'),
                                                   **dict.fromkeys(('client', 'worker', 'scheduler'), one),
                                                   'ciphers': None, 'min-version': 1.2, 'max-version': None}}):
        yield ['--protocol', 'tls', '--tls-ca-file', str(folder/'ca'),
               '--tls-cert', one['cert'], '--tls-key', one['key']]

def address_of_this_machine():
    "As others see it, so that what we say to workers is encrypted; 127.0.0.1 where there is no network."
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try: probe.connect(('192.0.2.1', 9)) # RFC 5737; nothing is sent
        except OSError: return '127.0.0.1'
        return probe.getsockname()[0]

@contextmanager
def scheduler(folder, *more):
    "A scheduler; its address."
    with dask('scheduler', '--port', '0', '--no-dashboard', '--host',
              address_of_this_machine(), *more, cwd=folder) as (_, log):
        found = lambda: next((line.split('Scheduler at:')[1].strip() for line in log if 'Scheduler at:' in line), '')
        until(found)
        yield found()

def worker(address, folder, *more):
    return dask('worker', address, '--nthreads', '1', '--no-dashboard',
                '--death-timeout', '30', '--local-directory', str(folder), *more, cwd=folder)

def connected(address, n):
    from distributed import Client
    with Client(address, set_as_default=False, timeout=20) as client: client.wait_for_workers(n, timeout=60)

@pytest.mark.slow
def test_workers_in_separate_folders_one_killed(asked, tmp_path, certificates):
    """As on other machines: notebook and data travel, answers and tables come back, and so does the notebook of a cell
    that fails."""
    Path('texts.csv').write_text('data of mine')
    said = json.loads(asked.grid.read_text())
    own = json.loads(Path('asking.ipynb').read_text())
    own['cells'][0]['source'] += '\ntexts:str = ""'
    own['cells'].insert(1, dict(own['cells'][1], id='reads',
                                source='assert open(texts).read() == "data of mine"\nassert name != "z", "broken on '
                                       'purpose"'))
    Path('asking.ipynb').write_text(json.dumps(own))
    file = grid(tmp_path, dict(said, parameters=said['parameters'] | dict(texts='texts.csv'),
                               grid=dict(name=['a', 'b', 'z'])))
    with scheduler(tmp_path/'s', *certificates) as address:
        assert address.startswith('tls://')
        with pytest.raises(BadInput, match='has no workers'): swept(file, tmp_path/'out', scheduler_workers(address))
        assert not (tmp_path/'out').exists()
        with worker(address, tmp_path/'w1', *certificates), worker(address, tmp_path/'w2', *certificates):
            connected(address, 2)
            summary = swept(file, tmp_path/'out', scheduler_workers(address))
    assert (summary['done'], summary['failed']) == (2, 1), rows(tmp_path/'out')
    assert 'broken on purpose' in rows(tmp_path/'out')['name=z']['why']
    assert 'Traceback' in (tmp_path/'out'/'name=z.failed.ipynb').read_text()
    (tmp_path/'out'/'name=z.failed.ipynb').unlink()
    (tmp_path/'out'/'cells.csv').write_text(''.join(
        line for line in (tmp_path/'out'/'cells.csv').read_text().splitlines(True) if not line.startswith('name=z')))
    check_survived(asked, tmp_path/'out')
    # here it is seen as up to date
    assert list(plan(load_grid(file), tmp_path/'out').values()) == ['', '', 'It failed before.']

def test_a_scheduler_that_doesnt_answer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook(tmp_path/'own.ipynb', 'x:int = 1', 'x')
    file = grid(tmp_path, dict(experiment='own.ipynb', grid=dict(x=[1])))
    for address in ('tcp://127.0.0.1:1', 'nonsense://x:1'):
        with pytest.raises(BadInput, match='No Dask scheduler answers'):
            swept(file, tmp_path/'out', scheduler_workers(address, timeout=1, insecure=True))
        # before, it was taken
        with pytest.raises(BadInput, match='can run code as you.*--insecure'): scheduler_workers(address)
    with pytest.raises(BadInput, match='lets in who has a certificate'):
        swept(file, tmp_path/'out', scheduler_workers('tls://127.0.0.1:1'))
    assert not (tmp_path/'out').exists()

def test_without_dask_cells_run_here(monkeypatch):
    import factlib.runs.workers as room
    monkeypatch.setattr(room, 'has_dask', lambda: False)
    assert room.local_workers(4) is here
    with pytest.raises(BadInput, match=r'factlib\[scale\]'): room.scheduler_workers('tls://127.0.0.1:1')

def test_a_script_for_slurm_is_shown(tmp_path):
    from click.testing import CliRunner
    from factlib.cli import app
    notebook(tmp_path/'own.ipynb', 'x:int = 1', 'x')
    file, slurm = grid(tmp_path, dict(experiment=str(tmp_path/'own.ipynb'), grid=dict(x=[1]))), tmp_path/'slurm.yaml'
    slurm.write_text('{queue: short, walltime: "02:00:00", memory: 3GB, jobs: 5}')
    said = CliRunner().invoke(app, ['sweep', str(file), '--out', str(tmp_path/'out'),
                                    '--slurm', str(slurm), '--dry-run'])
    assert said.exit_code == 0
    assert {'#!/usr/bin/env bash', '#SBATCH -p short', '#SBATCH -t 02:00:00',
            '#SBATCH --mem=3G'} <= set(said.output.splitlines())
    assert '--nthreads 1' in said.output and '--death-timeout 600' in said.output and not (tmp_path/'out').exists()
    before = signal.getsignal(signal.SIGINT)
    assert before is signal.default_int_handler # dask-jobqueue would have taken it

@pytest.mark.parametrize('sbatch, told', [('echo invalid partition >&2; exit 1', 'invalid partition'), ('', 'sbatch')])
def test_slurm_that_takes_no_job_is_one_sentence(sbatch, told, tmp_path, monkeypatch):
    "`sbatch` fails, or isn't there: nobody waits for workers that can't come, and nothing is left."
    monkeypatch.chdir(tmp_path)
    notebook(tmp_path/'own.ipynb', 'x:int = 1', 'x')
    file, slurm, commands = grid(tmp_path,
                                 dict(experiment='own.ipynb', grid=dict(x=[1]))), tmp_path/'slurm.yaml', tmp_path/'bin'
    slurm.write_text('{queue: short, interface: lo}')
    commands.mkdir()
    if sbatch:
        (commands/'sbatch').write_text(f'#!/bin/sh\n{sbatch}\n')
        (commands/'sbatch').chmod(0o755)
    monkeypatch.setenv('PATH', str(commands))
    with pytest.raises(BadInput, match=r"Slurm can't be asked for workers \(.*" + told):
        swept(file, tmp_path/'out', slurm_workers(slurm))
    assert not (tmp_path/'out').exists()

def test_what_is_no_option_of_slurm(tmp_path):
    (tmp_path/'slurm.yaml').write_text('memory: [1]')
    with pytest.raises(BadInput, match='is not what a SLURMCluster takes'): job_script(tmp_path/'slurm.yaml')

def packed(**files):
    "An archive as a worker sends it."
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode='w') as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()

@pytest.mark.parametrize('archive', [packed(**{'../evil': b'x', 'made/x=1/notebook.ipynb': b''}),
                                     b'no archive', packed(**{'/etc/evil': b'x'})])
def test_an_archive_that_isnt_sound_changes_nothing(archive, tmp_path):
    out = tmp_path/'out'/'x=1'
    out.mkdir(parents=True)
    (out/'notebook.ipynb').write_text('old')
    with pytest.raises(FetchError): arrive(archive, out)
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob('*')) == ['out', 'out/x=1',
                                                                                 'out/x=1/notebook.ipynb']

def test_a_copy_that_fails_stops_nobody(tmp_path, monkeypatch):
    "A file is where the first cell's copy belongs: the second runs and is copied, and the end says which was not."
    monkeypatch.chdir(tmp_path)
    notebook(tmp_path/'own.ipynb', 'x:int = 1', 'x')
    file = grid(tmp_path, dict(experiment='own.ipynb', grid=dict(x=[1, 2])))
    (tmp_path/'elsewhere').mkdir()
    (tmp_path/'elsewhere'/'x=1').touch()
    (tmp_path/'elsewhere'/'index.html').mkdir()
    for kept in (0, 2): # again: those that are kept are copied before anything runs
        summary = swept(file, 'out', done=copier('out', f'file://{tmp_path}/elsewhere'))
        assert (summary['kept'], summary['done']) == (kept, 2 - kept)
        assert sorted(summary['not_copied']) == ['index.html', 'x=1'] and exit_code(summary) == 1
    assert (tmp_path/'elsewhere'/'x=2'/'notebook.ipynb').is_file() and (tmp_path/'elsewhere'/'cells.csv').is_file()

def test_copies_are_whole_when_they_are_there(tmp_path, monkeypatch):
    "To another folder by fsspec: what vouches comes last, so that a copy that broke off isn't taken for one."
    import fsspec.implementations.local as local
    monkeypatch.chdir(tmp_path)
    notebook(tmp_path/'own.ipynb', 'x:int = 1', 'x')
    file, put, order = grid(tmp_path, dict(experiment='own.ipynb',
                                           grid=dict(x=[1, 2]))), local.LocalFileSystem.put_file, []
    def noted(self, source, to, **options):
        order.append(Path(to).name)
        return put(self, source, to, **options)
    monkeypatch.setattr(local.LocalFileSystem, 'put_file', noted)
    for _ in range(2): # the second time only what is new is copied
        swept(file, 'out', done=copier('out', f'file://{tmp_path}/elsewhere'))
    assert order == ['notebook.html', 'notebook.ipynb']*2 + ['cells.csv', 'index.html']*2
    assert {p.name for p in (tmp_path/'elsewhere').iterdir()} == {'x=1', 'x=2', 'cells.csv', 'index.html'}
    with pytest.raises(BadInput, match='Nothing can be copied'): copier('out', 'nowhere://x')

# Who isn't the user, and code in a cell that tries what it shouldn't

NOBODY = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']

# A scheduler or worker of Dask speaks first: what answers to a stranger's connection, plain or encrypted, has let him
# in.
KNOCKING = '''
import socket, ssl, sys, urllib.request
open_page = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
trusting = ssl.create_default_context()
trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
for port in sys.argv[1:]:
    for way in ('tcp', 'tls'):
        try:
            with socket.create_connection(('127.0.0.1', port), 1) as plain:
                knocks = plain if way == 'tcp' else trusting.wrap_socket(plain)
                print('IN' if knocks.recv(10) else 'out', way, port)
        except OSError as e: print('out', way, port, type(e).__name__)
    for page in ('info/main/workers.html', 'json/counts.json', 'status'):
        try: print('IN', page, port, open_page(f'http://127.0.0.1:{port}/{page}', timeout=1).status)
        except Exception as e: print('out', page, port, type(e).__name__)
'''

@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith('linux'), reason='it looks for the ports in /proc')
@pytest.mark.parametrize('whose, least', [('ours', 3), ('slurm', 2)])
def test_nobody_else_reaches_scheduler_or_workers(whose, least, tmp_path, monkeypatch):
    """Before, another account connected by TCP and ran code as the sweeping user. Each port that we or our workers
    listen at is tried, also where this process has had a cluster of Slurm: its page was kept for all later ones."""
    import psutil
    slurm, commands = tmp_path/'slurm.yaml', tmp_path/'bin'
    slurm.write_text('{queue: short, interface: lo}')
    job_script(slurm)
    commands.mkdir()
    for name, said in dict(sbatch='echo Submitted batch job 1', scancel='exit 0').items():
        (commands/name).write_text(f'#!/bin/sh\n{said}\n')
        (commands/name).chmod(0o755)
    monkeypatch.setenv('PATH', f'{commands}:{os.environ["PATH"]}')
    monkeypatch.chdir(tmp_path)
    with (local_workers(2) if whose == 'ours' else slurm_workers(slurm))(2):
        ours = [psutil.Process(), *psutil.Process().children(recursive=True)]
        ports = {str(c.laddr.port) for p in ours for c in p.net_connections('tcp') if c.status == 'LISTEN'}
        arguments = [arg for p in ours for arg in p.cmdline()]
        as_nobody = NOBODY if os.geteuid() == 0 and shutil.which('setpriv') else []
        (tmp_path/'home').mkdir(mode=0o777)
        said = subprocess.run([*as_nobody, sys.executable, '-c', KNOCKING, *sorted(ports)], capture_output=True,
                              text=True, cwd='/', env=os.environ | dict(HOME=str(tmp_path/'home')), timeout=120)
    assert len(ports) >= least and [line.split()[0]
                                for line in said.stdout.splitlines()] == ['out']*5*len(ports), said.stdout + said.stderr
    assert not any('PRIVATE KEY' in arg for arg in arguments)

TRYING = """import asyncio, http.client, json, os, urllib.parse
from pathlib import Path
from factlib.llm.chat import Chat
from factlib.llm.gateway import gated_url
gate, token, found = os.environ['FACTLIB_GATE'], os.environ['OPENAI_API_KEY'], []
def told(method, path, body=b'{}', token=token):
    at = http.client.HTTPConnection(urllib.parse.urlsplit(gate).netloc, timeout=20)
    at.request(method, path, body, {'Authorization': f'Bearer {token}'})
    return at.getresponse().status
def chat_at(url): return urllib.parse.urlsplit(gated_url(gate, url, 5)).path + '/chat/completions'
elsewhere, ended = told('POST', chat_at(evil)), ''
neighbour, = [told('POST', chat_at(url)) for url in both.split() if url != base_url] # of the other cell
if name == 'b' and one_at_a_time: ended = told('GET', '/account', token=Path(notes, 'token-a').read_text())
Path(notes, f'token-{name}').write_text(token)
replaced = told('POST', '/answers', json.dumps(dict(rows=[], replace=True)).encode())
places, process = [os.environ.copy()], os.getpid()
while process not in (0, 1, upto): # this kernel and all that have started it
    for file in ('environ', 'cmdline'):
        try: places.append(Path(f'/proc/{process}/{file}').read_bytes())
        except OSError: pass # sealed
    process = int(Path(f'/proc/{process}/status').read_text().split('PPid:')[1].split()[0])
reply = await Chat('m', base_url, mode='off')('a question')
Path(notes, f'said-{name}.json').write_text(json.dumps(dict(elsewhere=elsewhere, neighbour=neighbour, ended=ended, replaced=replaced, reply=reply.text, seen=str(places))))"""

@pytest.mark.slow
@pytest.mark.parametrize('workers', [1, 2])
def test_code_in_a_cell_that_tries(workers, tmp_path, monkeypatch):
    """Before, a cell could have the key sent to any server, and find it in /proc of what had started it; a token opened
    the gateway to the sweep's end, and to other cells' endpoints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv('FACTLIB_CACHE', raising=False)
    with StubServer(lambda request: 'Yes.',
                    key=KEY) as server, StubServer(lambda request: 'Yes.',
                                                   key=KEY) as other, StubServer(lambda request: 'Evil.') as evil:
        parameters = (
            f'base_url:str = ""\nboth:str = "{server.base_url} {other.base_url}"\nevil:str = '
            f'{evil.base_url!r}\nname:str = "a"\nnotes:str = {str(tmp_path)!r}\nupto:int = '
            f'{os.getpid()}\none_at_a_time:bool = {workers == 1}')
        notebook(tmp_path/'trying.ipynb', parameters, TRYING)
        grid(tmp_path, dict(experiment='trying.ipynb',
                            include=[dict(name='a', base_url=server.base_url),
                                     dict(name='b', base_url=other.base_url)]))
        ran = sweep('grid.yaml', '--out', 'out', '--workers', workers, cwd=tmp_path, OPENAI_API_KEY=KEY)
    assert not evil.requests and len(server.requests) == len(other.requests) == 1 and ran[0] == 0, ran
    told = {name: json.loads((tmp_path/f'said-{name}.json').read_text()) for name in 'ab'}
    # 404: where the disk is shared, there is no such door
    assert all((t['elsewhere'], t['neighbour'], t['replaced'], t['reply']) == (403, 403, 404, 'Yes.')
               for t in told.values())
    assert KEY not in str(told) and (workers > 1 or told['b']['ended'] == 401)
    for file in tmp_path.rglob('*'): assert not file.is_file() or KEY.encode() not in file.read_bytes(), file
