"""Fetching public sources, from a real HTTP server on this machine that can be told to misbehave. The sources are made
up; what lies beside the project is fetched and compared where it is there."""
import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

import factlib.benchmarks.fetch as room
import factlib.benchmarks.manifest as manifest
from factlib.benchmarks.archives import unpack
from factlib.benchmarks.fetch import fetch
from factlib.benchmarks.manifest import blob_sha1, choose, content_digest, sources, state_of, tree_sha1
from factlib.benchmarks.sources import answers, dialogues
from factlib.cli import app
from factlib.core.ownership import replacing
from factlib.core.records import BadInput

COMMIT = 'c'*40
NOISE = random.Random(0).randbytes(600_000)
PLAIN = {'data/noise.bin': NOISE, 'data/naïve file.txt': b'text', 'small.json': b'[]'}
FILM = json.dumps({str(i): 'A shark eats swimmers.' for i in range(4)} | {'wikiDocumentIdx': 5}).encode()
TALK = json.dumps(dict(wikiDocumentIdx=5, history=[dict(uid='user1', text='The shark one?')])).encode()
DOGS = {'Conversations/test/d.json': TALK, 'WikiData/jaws.json': FILM, 'README.md': b'made up'}
AUDIT = {'data-audit/gold/cmu.csv': b'a,b,c,d,e\r\na shark eats,The shark one?,Yes,Entailment,Ack\r\n'}
NAMED = dict(samples=[dict(sample_id=0, annotations=[dict(annot_id=1, annotator_name='Ada Secret', label=['Benign'])])])
BENCH = {f'data_for_release/batch_{i}.json': json.dumps(NAMED).encode() for i in (1, 2)}

def zip_of(files, top=f'dogs-{COMMIT}/'):
    data = io.BytesIO()
    with zipfile.ZipFile(data, 'w', zipfile.ZIP_DEFLATED) as z:
        for name, content in files.items(): z.writestr(top + name, content)
    return data.getvalue()

def listed(files, targets=False):
    "As in the manifest."
    return [dict(path=path, bytes=len(content), blob=blob_sha1(content), sha256=hashlib.sha256(content).hexdigest(),
                 to=f'plain/{path}' if targets else None) for path, content in files.items()]

def digests(tables):
    contents = {t: made if isinstance(made, bytes) else made.to_parquet(index=False) for t, made in tables.items()}
    return {target: content_digest(content, target) for target, content in contents.items()}

@pytest.fixture
def made_up(tmp_path, monkeypatch):
    "A manifest of four sources, and the files of a mirror by their place."
    (tmp_path/'dogs.zip').write_bytes(zip_of(DOGS))
    unpack(tmp_path/'dogs.zip', tmp_path/'dogs')
    common = dict(about='Made up', licence='MIT', citation='Nobody', commit=COMMIT)
    entries = dict(
        plain=common | dict(repo='o/plain', files=listed(PLAIN, True), warning='Mind the noise'),
        dogs=common | dict(repo='o/dogs', archive=dict(suffix='zip', bytes=2000, tree=tree_sha1(tmp_path/'dogs'))),
        faithdial_audit=common | dict(repo='o/audit', files=listed(AUDIT), uses=['dogs'],
                                      converter='factlib.benchmarks.sources.dialogues:faithdial_audit',
                                      tables=digests(dialogues.faithdial_audit(AUDIT | DOGS))),
        faithbench=common | dict(repo='o/bench', files=listed(BENCH), noncommercial=True, private=True,
                                 licence='CC BY-NC-SA 4.0', converter='factlib.benchmarks.sources.answers:faithbench',
                                 tables=digests(answers.faithbench(BENCH))))
    (tmp_path/'sources.json').write_text(json.dumps(entries))
    monkeypatch.setattr(manifest, 'shipped', lambda name: tmp_path/'sources.json')
    manifest.sources.cache_clear()
    places = {'o/plain': PLAIN, 'o/audit': AUDIT, 'o/bench': BENCH}
    files = {f'{repo}/{COMMIT}/{path}': content for repo, own in places.items() for path, content in own.items()}
    yield files | {f'o/dogs/{COMMIT}.zip': zip_of(DOGS)}
    manifest.sources.cache_clear()

class Site:
    "What the server has, does wrong, and was asked."
    def __init__(self, files):
        self.files, self.asked, self.sent, self.pause, self.ranges = files, [], 0, 0, True
        self.faults = {} # Path -> what comes instead, one after the other; the last of "always" stays

    def fault(self, path):
        waiting = self.faults.get(path, [])
        return waiting[0] if waiting[:1] and waiting[-1] == 'always' else waiting.pop(0) if waiting else None

class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *args): pass

    def do_GET(self):
        from urllib.parse import unquote
        site, path = self.server.site, unquote(self.path).lstrip('/')
        site.asked.append((path, self.headers['Range']))
        if site.pause: time.sleep(site.pause)
        fault, body = site.fault(path), site.files.get(path)
        if isinstance(body, Path): body = body.read_bytes()
        if body is None: return self.reply(404, b'')
        if isinstance(fault, int): return self.reply(fault, b'')
        if isinstance(fault, tuple): return self.reply(429, b'', {'Retry-After': fault[0]})
        if fault == 'html': return self.reply(200, b'<html>Log in</html>')
        if fault == 'elsewhere': return self.reply(302, b'', {'Location': 'ftp://127.0.0.1/x'})
        if fault == 'wrong': body = body[:50] + bytes([body[50] ^ 1]) + body[51:]
        if fault == 'long': body += b'x'*100_000
        extra, status, start = {}, 200, 0
        if self.headers['Range'] and site.ranges:
            start = int(re.fullmatch(r'bytes=(\d+)-', self.headers['Range'])[1])
            if start >= len(body): return self.reply(416, b'')
            extra, status = {'Content-Range': f'bytes {start}-{len(body) - 1}/{len(body)}'}, 206
        cut = int(fault[4:]) if isinstance(fault, str) and fault.startswith('cut ') else None
        self.reply(status, body[start:], extra, cut)

    def reply(self, status, body, extra={}, cut=None):
        self.send_response(status)
        for name, value in (extra | {'Content-Length': str(len(body))}).items(): self.send_header(name, value)
        self.end_headers()
        try: self.wfile.write(body[:cut])
        except OSError: return # the client has gone
        self.server.site.sent += len(body[:cut])
        if cut is not None: self.close_connection = True

def serve(files):
    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    server.daemon_threads, server.site = True, Site(files)
    server.site.url = f'http://127.0.0.1:{server.server_port}'
    threading.Thread(target=server.serve_forever, kwargs=dict(poll_interval=.02), daemon=True).start()
    return server

@pytest.fixture
def site(made_up, monkeypatch):
    for name in ('http_proxy', 'https_proxy', 'all_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(room, '_PAUSE', 0)
    monkeypatch.setattr(room, '_TIMEOUT', 3)
    server = serve(made_up)
    yield server.site
    server.shutdown()
    server.server_close()

@pytest.fixture
def home(tmp_path, monkeypatch):
    (tmp_path/'home').mkdir()
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path/'home'))
    return tmp_path/'home'

def get(site, *names, **options): return fetch(list(names or ['all']), url=site.url, accept_nc=True, **options)

def states(results): return {r.source.name: r.state for r in results}

def whole(home, *names): return all(set(state_of(sources()[n], home).values()) == {'whole'} for n in names)

ALL = ('plain', 'faithdial_audit', 'faithbench')
NOISY = f'o/plain/{COMMIT}/data/noise.bin'

# ---- what goes well

def test_all_and_again_without_a_request(site, home):
    results = get(site)
    assert states(results) == dict.fromkeys(('plain', 'dogs', 'faithdial_audit', 'faithbench'), 'fetched')
    assert whole(home, *ALL) and (home/'plain/data/noise.bin').read_bytes() == NOISE
    assert sum(r.bytes for r in results) == site.sent and [r.rows for r in results] == [0, 0, 1, 0]
    site.asked.clear()
    assert set(states(get(site)).values()) == {'here'} and not site.asked
    (home/'faithdial_audit/turns.parquet').unlink() # what was raw is still here
    assert states(get(site))['faithdial_audit'] == 'here' and whole(home, *ALL) and not site.asked

def test_a_history_from_the_archive(site, home):
    import pandas as pd
    get(site, 'faithdial_audit')
    row, = pd.read_parquet(home/'faithdial_audit/turns.parquet').itertuples()
    assert (row.dialogue_id, row.turn_index, row.supported) == ('test/d', 1, 1) and len(row.history) == 1

def test_a_mirror_in_a_folder_and_one_home_for_another(site, home, made_up, tmp_path):
    for path, content in made_up.items():
        (tmp_path/'mirror'/path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path/'mirror'/path).write_bytes(content)
    assert 'failed' not in states(fetch(['all'], home, str(tmp_path/'mirror'), accept_nc=True)).values()
    other = fetch(['all'], tmp_path/'other', (tmp_path/'mirror').as_uri(), ('plain',), accept_nc=True)
    assert whole(tmp_path/'other', *ALL[1:]) and 'plain' not in states(other) and not site.asked

def test_no_name_of_an_annotator_ever_reaches_the_disk(site, home):
    site.faults[f'o/bench/{COMMIT}/data_for_release/batch_2.json'] = [404, 'always']
    assert states(get(site, 'faithbench')) == dict(faithbench='failed')
    site.faults.clear()
    get(site, 'faithbench')
    everything = [path.read_bytes() for path in home.rglob('*') if path.is_file()]
    assert whole(home, 'faithbench') and not any(b'Ada Secret' in content for content in everything)

def test_not_for_commercial_use(site, home):
    with pytest.raises(BadInput, match='--accept-nc.*--except faithbench'): fetch(['all'], url=site.url)
    assert not site.asked
    fetch(['all'], url=site.url, leave_out=('faithbench',))
    assert whole(home, *ALL[:2]) and not (home/'faithbench').exists()

# ---- faults that are mended within a call

CUTS = [f'cut {n}' for n in random.Random(1).sample(range(len(NOISE)), 10)]

@pytest.mark.parametrize('faults', [[cut] for cut in CUTS] + [
    ['cut 0', 'cut 5', 'cut 300000'], ['wrong'], ['html'], ['wrong', 'html', 500], [429], [('0',)], [('soon',)],
    [('-5',)], [503, 429, 500, ('0',)]], ids=str)
@pytest.mark.parametrize('ranges', [True, False])
def test_mended(site, home, faults, ranges):
    site.faults[NOISY], site.ranges = list(faults), ranges
    assert states(get(site, 'plain')) == dict(plain='fetched') and whole(home, 'plain')

def test_it_goes_on_where_it_broke_off(site, home):
    site.faults[NOISY] = ['cut 400000']
    get(site, 'plain')
    assert [r for path, r in site.asked if path == NOISY] == [None, 'bytes=400000-']
    assert site.sent == sum(map(len, PLAIN.values()))

def test_a_server_is_waited_for_as_long_as_it_says(site, home, monkeypatch):
    waits = []
    monkeypatch.setattr(room, '_PAUSE', 2)
    monkeypatch.setattr(room.time, 'sleep', waits.append)
    site.faults[NOISY] = [('7',), 429, 429, ('99999',)]
    get(site, 'plain')
    assert waits == [7, 8, 16, 120]

def test_an_archive_goes_on_in_the_next_call(site, home):
    archive = f'o/dogs/{COMMIT}.zip'
    site.faults[archive] = ['cut 300', 500, 500, 500, 500, 500]
    assert states(get(site, 'dogs')) == dict(dogs='failed')
    site.asked.clear()
    assert states(get(site, 'faithdial_audit')) == dict(dogs='fetched', faithdial_audit='fetched')
    assert site.asked[0] == (archive, 'bytes=300-') and whole(home, 'faithdial_audit')

def test_a_part_of_another_archive_is_thrown_away(site, home):
    part = home/f'raw/o/dogs/{COMMIT}.zip'
    for left in (b'x'*10, b'x'*100_000): # the second is longer than what the server has
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(left)
        assert states(get(site, 'dogs')) == dict(dogs='fetched') and not part.exists()
        shutil.rmtree(home/'raw')

# ---- faults that stay: nothing wrong is taken, the others come, the next call goes on

@pytest.mark.parametrize('fault', [404, 403, 500, 'html', 'wrong', 'long', 'cut 0', 'elsewhere', ('0',)], ids=str)
@pytest.mark.parametrize('path, name', [(NOISY, 'plain'), (f'o/audit/{COMMIT}/data-audit/gold/cmu.csv', 'faithdial_audit'),
                                        (f'o/dogs/{COMMIT}.zip', 'dogs')], ids=['file', 'raw', 'archive'])
def test_a_fault_that_stays(site, home, fault, path, name):
    site.faults[path] = [fault, 'always']
    results = get(site)
    failed = {n for n, state in states(results).items() if state == 'failed'}
    assert failed == {name} | ({'faithdial_audit'} if name == 'dogs' else set())
    for r in results:
        assert (r.state == 'failed') == bool(r.why) and '\n' not in r.why and r.why.isprintable()
    assert not any(state == 'other' for s in sources().values() for state in state_of(s, home).values())
    assert whole(home, *(set(ALL) - failed))
    site.faults.clear()
    site.asked.clear()
    assert 'failed' not in states(get(site)).values() and whole(home, *ALL)
    of_failed = tuple(sources()[n].repo for n in failed)
    assert all(place.startswith(of_failed) for place, _ in site.asked) # what was whole is not sent again

def test_hostile_archives(site, home):
    archive = f'o/dogs/{COMMIT}.zip'
    for content in (zip_of(DOGS | {'../../../evil': b'x'}), zip_of(DOGS | {'more.txt': b'x'}), b'no zip',
                    zip_of({k: v for k, v in DOGS.items() if k != 'README.md'}), zip_of(DOGS | {'README.md': b'Made up'})):
        site.files[archive] = content
        assert states(get(site, 'faithdial_audit')) == dict(dogs='failed', faithdial_audit='failed')
        assert not (home/f'raw/o/dogs/{COMMIT}').exists() and not list(home.rglob('evil*'))
    assert not (home.parent/'evil').exists()

def test_a_full_disk(site, home, monkeypatch):
    write = room.write_atomic
    def full(path, content):
        if len(content) > 1000: raise OSError(28, 'No space left on device', str(path))
        return write(path, content)
    monkeypatch.setattr(room, 'write_atomic', full)
    result, = get(site, 'plain')
    assert result.state == 'failed' and 'is full' in result.why and not (home/'plain/data/noise.bin').exists()
    monkeypatch.setattr(room, 'write_atomic', write)
    site.asked.clear()
    get(site, 'plain')
    assert whole(home, 'plain') and NOISY in [path for path, _ in site.asked] # another file may have been on its way

def test_a_table_with_other_values_is_not_kept(site, home, monkeypatch):
    wrong = lambda raw: {t: f.assign(label='other') for t, f in dialogues.faithdial_audit(raw).items()}
    monkeypatch.setattr(room, 'resolve_name', lambda name: wrong)
    result = get(site, 'faithdial_audit')[-1]
    assert result.state == 'failed' and 'other values' in result.why and not (home/'faithdial_audit').exists()

def test_a_file_of_the_users_own_is_never_replaced(site, home):
    for place in ('plain/data/noise.bin', 'faithdial_audit/turns.parquet'):
        (home/place).parent.mkdir(parents=True, exist_ok=True)
        (home/place).write_text('my own')
    (home/'faithbench').mkdir()
    (home/'faithbench/batch_1.json').symlink_to(home/'plain/data/noise.bin')
    results = get(site)
    assert set(states(results).values()) == {'failed', 'fetched'} and states(results)['dogs'] == 'fetched'
    assert all('--force' in r.why for r in results if r.state == 'failed')
    assert (home/'plain/data/noise.bin').read_text() == 'my own' and (home/'faithbench/batch_1.json').is_symlink()
    assert (home/'faithdial_audit/turns.parquet').read_text() == 'my own'
    with replacing(): get(site)
    assert whole(home, *ALL) and (home/'plain/data/noise.bin').read_bytes() == NOISE

CHILD = """
import sys
import factlib.benchmarks.fetch as room, factlib.benchmarks.manifest as manifest
from pathlib import Path
manifest.shipped = lambda name: Path(sys.argv[2])
room.fetch(['all'], Path(sys.argv[1]), sys.argv[3], accept_nc=True)
"""

@pytest.mark.slow
def test_kill_9_at_ten_moments(site, home, tmp_path):
    rng, site.pause = random.Random(2), .05
    for i in range(10):
        child = subprocess.Popen([sys.executable, '-c', CHILD, home, tmp_path/'sources.json', site.url])
        begun, until = len(site.asked), rng.choice([1, 1, 2, 3, 4])
        while child.poll() is None and len(site.asked) < begun + until: time.sleep(.005)
        time.sleep(rng.random()*.1)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert not any(state == 'other' for s in sources().values() for state in state_of(s, home).values())
        if i == 4: shutil.rmtree(home/'faithdial_audit', ignore_errors=True) # there is something to do again
    assert 'failed' not in states(get(site)).values() and whole(home, *ALL)
    assert not any(path.name.startswith(f'.{COMMIT}') for path in home.rglob('*'))

def test_two_at_once(site, home):
    fcntl = pytest.importorskip('fcntl')
    with open(home/'.fetch.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BadInput, match='Another fetch'): get(site)

# ---- the command

def test_the_command(site, home):
    run = CliRunner().invoke
    table = run(app, ['fetch'])
    assert table.exit_code == 0 and all(name in table.output for name in sources()) and 'CC BY-NC-SA' in table.output
    plan = run(app, ['fetch', 'all', '--except', 'faithbench', '--dry-run', '--url', site.url])
    assert plan.exit_code == 0 and 'Mind the noise' in plan.output and 'MIT: plain, dogs' in plan.output
    assert '3 sources' in plan.output and not site.asked
    refused = run(app, ['fetch', 'all', '--url', site.url])
    assert isinstance(refused.exception, BadInput) and not site.asked
    site.faults[NOISY] = [404, 'always']
    done = run(app, ['fetch', 'all', '--accept-nc', '--url', site.url])
    assert isinstance(done.exception, RuntimeError) and 'factlib fetch plain' in str(done.exception)
    assert 'failed: The server refuses' in done.output and 'faithbench       fetched' in done.output
    assert 'plain            2 of 3 files as listed; absent: plain/data/noise.bin' in run(app, ['fetch', '--check']).output
    site.faults.clear()
    assert run(app, ['fetch', 'plain', '--url', site.url]).exit_code == 0
    (home/'plain/small.json').write_text('{}')
    checked = run(app, ['fetch', '--check'])
    assert isinstance(checked.exception, RuntimeError) and 'plain/small.json' in str(checked.exception)
    assert isinstance(run(app, ['fetch', 'nothing']).exception, BadInput)

def test_an_experiment_that_lacks_a_source_is_named(site, home):
    site.faults[NOISY] = [404, 'always']
    from factlib.cli import _pages_without
    assert 'judgememo_ablations' in _pages_without('judgememo') and _pages_without('plain') == []

def test_an_interrupted_command_ends_with_130(site, home, tmp_path):
    site.pause = 5
    start = ('import sys, factlib.benchmarks.manifest as m\nfrom pathlib import Path\n'
             f'm.shipped = lambda name: Path({str(tmp_path/"sources.json")!r})\nfrom factlib.cli import main\nmain()')
    child = subprocess.Popen([sys.executable, '-c', start, 'fetch', 'plain', '--url', site.url],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not site.asked: time.sleep(.02)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130 and 'Interrupted.' in err and 'Traceback' not in err

# ---- the real manifest

def test_the_real_manifest():
    manifest.sources.cache_clear()
    assert len(sources()) == 19 and sum(len(s.files) for s in sources().values()) == 143
    for s in sources().values():
        assert re.fullmatch('[0-9a-f]{40}', s.commit) and re.fullmatch(r'[\w.-]+/[\w.-]+', s.repo), s.name
        assert s.licence and s.citation and s.about and set(s.uses) <= set(sources())
        assert all(target.startswith(f'{s.name}/') and '..' not in target for target in s.targets)
        assert not s.converter or callable(room.resolve_name(s.converter))
        if s.tables: assert s.converter
    assert [s.name for s in sources().values() if s.noncommercial] == ['faithbench', 'judgememo']
    assert [s.name for s in sources().values() if s.private] == ['fables', 'faithbench']
    assert 'canary' in sources()['fables'].warning and 'living' in sources()['factscore_labels'].warning
    small = sum(s.bytes for s in choose(['all'], ('judgememo',)))
    assert 60e6 < small < 70e6 # as README says

def test_no_home_is_the_public_folder_of_the_checkout(monkeypatch):
    from factlib.core.files import data_home, public_home
    monkeypatch.delenv('FACTLIB_DATA', raising=False)
    assert public_home().parts[-2:] == ('data', 'public')
    assert data_home() == (public_home() if public_home().is_dir() else None)
    monkeypatch.setenv('FACTLIB_DATA', '')
    assert data_home() is None

SHARED = Path(__file__).resolve().parent.parent.parent.parent/'shared'
RAW, WHOLE = SHARED/'raw_sources', SHARED/'data_whole'
beside = pytest.mark.skipif(not (RAW.is_dir() and WHOLE.is_dir()), reason='needs the mirror beside the project')

def real_mirror():
    "Place -> file, of what the manifest lists and lies beside the project."
    manifest.sources.cache_clear()
    files = {}
    for s in sources().values():
        for f in s.files: files[f'{s.repo}/{s.commit}/{f["path"]}'] = WHOLE/f['to'] if f['to'] else RAW/s.repo/s.commit/f['path']
        if s.archive: files[f'{s.repo}/{s.commit}.{s.archive["suffix"]}'] = RAW/s.repo/f'{s.commit}.{s.archive["suffix"]}'
    return {place: path for place, path in files.items() if path.is_file()}

@beside
@pytest.mark.slow
def test_what_is_fetched_is_what_our_tables_say(tmp_path):
    "All but four sources, whose raw files are not beside the project."
    import pyarrow.parquet as pq
    server = serve(real_mirror())
    out = ('fables', 'faithbench', 'judgememo', 'ais', 'fade')
    try: results = fetch(['all'], tmp_path, server.site.url, leave_out=out)
    finally: server.shutdown()
    assert set(states(results).values()) == {'fetched'} and len(results) == 14, results
    for target in (t for s in choose(['all'], out) for t in s.targets):
        if not target.endswith('.parquet'): assert (tmp_path/target).read_bytes() == (WHOLE/target).read_bytes()
        else:
            made, known = pq.read_table(tmp_path/target), pq.read_table(WHOLE/target)
            assert made.to_pylist() == known.to_pylist() and made.schema.types == known.schema.types, target

@beside
def test_fables_and_faithbench_made_raw_again():
    "Their raw files are nowhere here: what the tables say, written as the repository has it, gives the tables again."
    import pandas as pd
    from factlib.benchmarks.sources.narratives import fables
    manifest.sources.cache_clear()
    claims, summaries = (pd.read_parquet(WHOLE/f'fables/{name}.parquet') for name in ('claims', 'summaries'))
    books = {}
    for row in summaries.itertuples():
        of_one = claims[(claims.book == row.book) & (claims.model == row.model)]
        told = {str(c.claim_id): dict(claim=c.claim, label=c.label, reason=['', *c.reason],
                                      evidence=['N/A', *['quoted']*c.n_evidence]) for c in of_one.itertuples()}
        books.setdefault(row.book, {})[row.model] = dict(summary=row.summary, general_comment=row.general_comment, claims=told)
    packed = zip_of({'FABLES.json': json.dumps(dict(canary='x', FABLES=books))}, '')
    made = fables({'data/FABLES.json.zip': packed})
    known = sources()['fables'].tables
    assert digests({t: f for t, f in made.items() if known[t]}) == {t: d for t, d in known.items() if d}
    named = {}
    for path in (WHOLE/'faithbench').glob('*.json'):
        batch = json.loads(path.read_bytes())
        for sample in batch['samples']:
            for mark in sample['annotations']: mark['annotator_name'] = 'Ada Secret'
        named[f'data_for_release/{path.name}'] = json.dumps(batch).encode()
    assert digests(answers.faithbench(named)) == sources()['faithbench'].tables

@beside
@pytest.mark.slow
def test_judgememo_by_git(tmp_path, monkeypatch):
    "A cut of the repository, committed here: fetched by git, imported, its files removed again."
    import tarfile
    from factlib.papers.judgememo.importer import tables_of_clone
    repo = tmp_path/'mirror/o/judge.git'
    with tarfile.open(WHOLE/'judgememo_clone/clone_cut.tar.gz') as archive: archive.extractall(tmp_path, filter='data')
    repo.parent.mkdir(parents=True)
    (tmp_path/'JudgeMemo').rename(repo)
    (repo/'experiments/full_prompts').mkdir()
    (repo/'experiments/full_prompts/sent.txt').write_text('not needed')
    git = lambda *command: subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b.c', *command], cwd=repo,
                                          capture_output=True, text=True, check=True).stdout.strip()
    for step in (['init', '-q'], ['-c', 'core.autocrlf=false', 'add', '.'], ['commit', '-qm', 'all']): git(*step)
    about = dict(suffix='tar.gz', tree='0'*40, bytes=1, git_bytes=1, leave_out=['experiments/full_prompts'])
    source = manifest.Source('judge', '', '', '', 'o/judge', git('rev-parse', 'HEAD'), archive=about,
                             converter='factlib.papers.judgememo.importer:tables_of_clone',
                             tables=digests(tables_of_clone(repo)))
    result = room.fetch_one(source, tmp_path/'home', str(tmp_path/'mirror'))
    assert (result.state, result.rows) == ('fetched', 516 + 386 + 1994 + 142 + 499), result.why
    assert [p.name for p in (tmp_path/'home').rglob('*') if p.is_file() and p.suffix != '.parquet'] == []

@beside
@pytest.mark.slow
def test_judgememo_as_listed():
    "Our own tables are what the manifest lists, in the order of an import as well."
    import pandas as pd
    from factlib.papers.judgememo.importer import FILES, in_order
    manifest.sources.cache_clear()
    for name, file in FILES.items():
        table = in_order(name, pd.read_parquet(WHOLE/'judgememo'/file)).to_parquet(index=False)
        assert manifest.is_listed(sources()['judgememo'], f'judgememo/{file}', table), file
