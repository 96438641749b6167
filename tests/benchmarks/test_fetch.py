"Fetching archives, from a real HTTP server on this machine that can be told to misbehave."
import gzip
import hashlib
import io
import json
import os
import random
import re
import shutil
import socket
import tarfile
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from click.testing import CliRunner

import factlib.benchmarks.fetch as room
from factlib.benchmarks.fetch import ARCHIVES, Archive, FetchError, fetch, sha256, unpack
from factlib.cli import app
from factlib.core.ownership import replacing
from factlib.core.records import BadInput

def zip_of(files, top='repo-main/'):
    data = io.BytesIO()
    with zipfile.ZipFile(data, 'w', zipfile.ZIP_DEFLATED) as z:
        for name, content in files.items(): z.writestr(top + name, content)
    return data.getvalue()

NOISE = random.Random(0).randbytes(1_500_000) # doesn't get smaller in a zip
BIG = zip_of({'README.md': 'made up', 'data/noise.bin': NOISE})
OTHER = zip_of({'README.md': 'changed', 'data/noise.bin': NOISE[::-1]})

class Site:
    "What the server does, and what it was asked."
    def __init__(self):
        self.body, self.etag, self.ranges, self.if_range, self.length = BIG, '"one"', True, True, True
        self.cut = []       # The n-th reply stops after so many bytes of its body; None: not at all
        self.status = []    # The n-th reply has this status instead
        self.redirect, self.pause, self.modified, self.lie, self.chunked = None, 0, None, None, False
        self.asked = []     # (path, Range, If-Range)
        self.sent = 0       # Bytes of bodies

class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *args): pass

    def do_GET(self):
        site = self.server.site
        n, wanted, mark = len(site.asked), self.headers['Range'], self.headers['If-Range']
        site.asked.append((self.path, wanted, mark))
        status = site.status[n] if n < len(site.status) else None
        if self.path == '/gone.zip': status = 404
        if status: return self.reply(status, b'')
        if site.redirect and self.path != '/end.zip':
            self.send_response(302)
            self.send_header('Location', site.redirect)
            self.send_header('Content-Length', '0')
            return self.end_headers()
        body, status, extra = site.body, 200, {}
        if wanted and site.ranges and (not site.if_range or mark in (None, site.etag, site.modified)):
            start = int(re.fullmatch(r'bytes=(\d+)-', wanted)[1])
            if start >= len(body): return self.reply(416, b'', {'Content-Range': f'bytes */{len(body)}'})
            extra['Content-Range'] = f'bytes {start if site.lie is None else site.lie}-{len(body) - 1}/{len(body)}'
            body, status = body[start:], 206
        self.reply(status, body, extra, site.cut[n] if n < len(site.cut) else None)

    def reply(self, status, body, extra={}, cut=None):
        site = self.server.site
        self.send_response(status)
        for name, value in extra.items(): self.send_header(name, value)
        if site.etag: self.send_header('ETag', site.etag)
        if site.modified: self.send_header('Last-Modified', site.modified)
        if site.chunked: self.send_header('Transfer-Encoding', 'chunked')
        elif site.length: self.send_header('Content-Length', str(len(body)))
        else: self.send_header('Connection', 'close')
        self.end_headers()
        part = body[:cut]
        for i in range(0, len(part), 300_000):
            block = part[i:i + 300_000]
            if site.pause: time.sleep(site.pause)
            try: self.wfile.write(b'%x\r\n%s\r\n' % (len(block), block) if site.chunked else block)
            except OSError: return # the client has gone
            site.sent += len(block)
        if site.chunked and cut is None: self.wfile.write(b'0\r\n\r\n')
        if cut is not None or not site.length: self.close_connection = True

@pytest.fixture
def site(monkeypatch):
    for name in ('http_proxy', 'https_proxy', 'all_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(room, '_PAUSE', 0)
    monkeypatch.setattr(room, '_TIMEOUT', 3)
    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    server.daemon_threads = True
    server.site = Site()
    threading.Thread(target=server.serve_forever, kwargs=dict(poll_interval=.02), daemon=True).start()
    server.site.url = f'http://127.0.0.1:{server.server_port}/main.zip'
    yield server.site
    server.shutdown()
    server.server_close()

@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path))
    return tmp_path

def get(site, name='fables', **options): return fetch(name, url=site.url, progress=False, **options)

def files(home): return sorted(p.relative_to(home).as_posix() for p in home.rglob('*') if p.is_file())

WHOLE = ['archives/fables.zip', 'archives/fables/README.md', 'archives/fables/data/noise.bin', 'archives/manifest.json']

# ---- what goes well

def test_fetch(site, home, capsys):
    got = get(site)
    assert got.fresh and got.folder == home/'archives'/'fables' and got.sha256 == hashlib.sha256(BIG).hexdigest()
    assert got.left_out == 0
    assert files(home) == WHOLE and (got.folder/'data/noise.bin').read_bytes() == NOISE
    assert (home/'archives/fables.zip').read_bytes() == BIG
    entry = json.loads((home/'archives/manifest.json').read_text())['fables']
    assert entry['sha256'] == got.sha256 and entry['url'] == site.url and entry['bytes'] == len(BIG)
    assert entry['licence'] == 'MIT'
    said = capsys.readouterr().out
    assert said.index('Licence: MIT') < said.index('Fetched') and site.url in said
    # again: nothing is transferred
    again = get(site)
    assert not again.fresh and again.sha256 == got.sha256 and len(site.asked) == 1
    assert 'Already there' in capsys.readouterr().out
    # the folder is gone: unpacked again, without the network
    shutil.rmtree(got.folder)
    assert not get(site).fresh and files(home) == WHOLE and len(site.asked) == 1

def test_the_licence_is_shown_before_anything_is_fetched(site, home, capsys):
    site.url = site.url.replace('main', 'gone')
    with pytest.raises(FetchError): get(site)
    assert 'Licence: MIT' in capsys.readouterr().out

def test_judgememo_points_to_the_import(site, home, capsys):
    assert get(site, 'judgememo').next == f'make the tables with: factlib import {home}/archives/judgememo'
    assert 'factlib import' in capsys.readouterr().out

def test_a_tar_archive_and_another_home(site, tmp_path, monkeypatch):
    monkeypatch.delenv('FACTLIB_DATA', raising=False)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode='w:gz') as t:
        member = tarfile.TarInfo('repo-1/a/b.txt')
        member.size = 3
        t.addfile(member, io.BytesIO(b'abc'))
    site.body, site.url = data.getvalue(), site.url.replace('.zip', '.tar.gz')
    get(site, home=tmp_path/'new')
    assert files(tmp_path) == ['new/archives/fables.tar.gz', 'new/archives/fables/a/b.txt',
                               'new/archives/manifest.json']

def test_progress_bar(site, home, capsys):
    fetch('fables', url=site.url)
    assert 'fables.zip: 100%' in capsys.readouterr().err

def test_redirects(site, home):
    site.redirect = '/end.zip'
    get(site)
    assert [path for path, *_ in site.asked] == ['/main.zip', '/end.zip'] and files(home) == WHOLE

@pytest.mark.parametrize('target', ['ftp://127.0.0.1/x.zip', 'file:///etc/passwd'])
def test_a_redirect_to_another_scheme_is_not_followed(site, home, target):
    site.redirect = target
    with pytest.raises(FetchError): get(site)
    assert files(home) == []

def test_no_way_back_from_https():
    import urllib.request
    with pytest.raises(FetchError, match="isn't safe"):
        room._Redirect().redirect_request(urllib.request.Request('https://a.org/x.zip'),
                                          None, 302, '', {}, 'http://a.org/x.zip')

@pytest.mark.parametrize('how', [dict(length=False), dict(chunked=True)])
def test_no_length(site, home, how):
    for name, value in how.items(): setattr(site, name, value)
    get(site)
    assert files(home) == WHOLE

# ---- transfers that break off

def test_a_dropped_connection_goes_on_where_it_broke_off(site, home):
    site.cut = [600_000, 500_000]
    get(site)
    assert site.asked == [('/main.zip', None, None), ('/main.zip', 'bytes=600000-', '"one"'),
                          ('/main.zip', 'bytes=1100000-', '"one"')]
    assert site.sent == len(BIG) and files(home) == WHOLE and (home/'archives/fables.zip').read_bytes() == BIG

def test_also_in_the_next_call(site, home):
    site.cut = [700_000, 0, 0, 0, 0]
    with pytest.raises(FetchError, match=r'broke off 5 times .* goes on from byte 700,000'): get(site)
    assert files(home) == ['archives/.fables.zip.part', 'archives/.fables.zip.part.json'] # hidden, and nothing else
    get(site)
    assert site.asked[-1] == ('/main.zip', 'bytes=700000-', '"one"') and site.sent == len(BIG) and files(home) == WHOLE

def test_another_address_is_another_file(site, home):
    site.cut = [700_000, 0, 0, 0, 0]
    with pytest.raises(FetchError): get(site)
    site.url = site.url.replace('main', 'mirror')
    get(site)
    assert site.asked[-1] == ('/mirror.zip', None, None)

def test_a_last_modified_date_will_do_a_weak_etag_not(site, home):
    site.cut, site.etag, site.modified = [600_000], 'W/"one"', 'Wed, 21 Oct 2015 07:28:00 GMT'
    get(site)
    assert site.asked[1] == ('/main.zip', 'bytes=600000-', site.modified) and site.sent == len(BIG)

@pytest.mark.parametrize('etag', ['W/"weak"', None])
def test_without_a_mark_it_starts_again(site, home, etag):
    site.cut, site.etag = [600_000], etag
    get(site)
    assert [r for _, r, _ in site.asked] == [None, None] and (home/'archives/fables.zip').read_bytes() == BIG

def test_a_server_without_ranges_starts_again(site, home):
    site.cut, site.ranges = [600_000], False
    get(site)
    assert site.asked[1][1] == 'bytes=600000-' and site.sent == 600_000 + len(BIG)
    assert (home/'archives/fables.zip').read_bytes() == BIG

def test_a_chunked_reply_that_breaks_off(site, home):
    site.cut, site.chunked, site.ranges = [600_000], True, False
    get(site)
    assert len(site.asked) == 2 and (home/'archives/fables.zip').read_bytes() == BIG

def test_without_length_or_chunks_a_cut_off_archive_is_noticed(site, home):
    site.cut, site.length = [600_000], False
    with pytest.raises(FetchError, match='damaged'): get(site)
    assert files(home) == []

@pytest.mark.parametrize('if_range', [True, False], ids=['knows If-Range', 'does not'])
def test_a_file_that_changed_meanwhile_is_fetched_whole(site, home, if_range):
    site.cut = [700_000, 0, 0, 0, 0]
    with pytest.raises(FetchError): get(site)
    site.body, site.etag, site.if_range = OTHER, '"two"', if_range
    assert (get(site).folder/'README.md').read_text() == 'changed'
    assert (home/'archives/fables.zip').read_bytes() == OTHER

def test_a_shorter_file_now_416(site, home):
    site.cut = [700_000, 0, 0, 0, 0]
    with pytest.raises(FetchError): get(site)
    site.body, site.if_range = zip_of({'README.md': 'small'}), False
    assert (get(site).folder/'README.md').read_text() == 'small' and site.asked[-1] == ('/main.zip', None, None)

def test_the_wrong_part_is_not_appended(site, home):
    site.cut, site.lie = [600_000], 5
    get(site)
    assert (home/'archives/fables.zip').read_bytes() == BIG and site.asked[-1] == ('/main.zip', None, None)

def test_busy_servers_are_asked_again_refusals_are_not(site, home):
    site.status = [503, 429, 500]
    get(site)
    assert len(site.asked) == 4 and files(home) == WHOLE
    site.status, site.asked = [403] * 9, []
    with pytest.raises(FetchError, match='refuses .*403'): get(site, 'begin')
    assert len(site.asked) == 1

def test_a_slow_server_is_waited_for_a_silent_one_is_not(site, home, monkeypatch):
    site.pause = .1
    get(site)
    site.pause = 1
    monkeypatch.setattr(room, '_TIMEOUT', .15)
    monkeypatch.setattr(room, '_ATTEMPTS', 2)
    with pytest.raises(FetchError, match='timed out|broke off 2 times'): get(site, 'begin')
    assert files(home)[:2] == ['archives/.begin.zip.part', 'archives/.begin.zip.part.json']

def test_a_damaged_note_is_as_none(site, home):
    site.cut = [700_000, 0, 0, 0, 0]
    with pytest.raises(FetchError): get(site)
    for note in ('{', '[]', '{"url": 1}'):
        (home/'archives/.fables.zip.part.json').write_text(note)
        assert room._resumable(site.url, home/'archives/.fables.zip.part',
                               home/'archives/.fables.zip.part.json') == (0, '')
    get(site)
    assert site.asked[-1][1] is None and files(home) == WHOLE

# ---- what can't be had: one sentence, and what was there stays

def one_sentence(error):
    text = str(error.value)
    assert '\n' not in text and text.endswith('.') and len(text) < 600, text
    return text

def test_not_found(site, home):
    site.url = site.url.replace('main', 'gone')
    with pytest.raises(FetchError, match='404') as e: get(site)
    assert one_sentence(e) and len(site.asked) == 1 and files(home) == []

def test_no_network(home, monkeypatch):
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    for url in (f'http://127.0.0.1:{port}/x.zip', 'http://no-such-host.invalid/x.zip'):
        monkeypatch.setenv('no_proxy', '*')
        with pytest.raises(FetchError, match="can't be reached") as e: fetch('fables', url=url, progress=False)
        assert one_sentence(e) and files(home) == []

def test_a_known_checksum(site, home, monkeypatch):
    monkeypatch.setitem(ARCHIVES, 'mine',
                        Archive('mine', site.url, 'CC0', 'Made up', sha256=hashlib.sha256(BIG).hexdigest()))
    get(site, 'mine')
    shutil.rmtree(home/'archives')
    site.body = OTHER
    with pytest.raises(FetchError, match='checksum') as e: get(site, 'mine')
    assert 'manifest' not in one_sentence(e) and files(home) == []

def test_a_recorded_checksum(site, home):
    get(site)
    (home/'archives/fables.zip').unlink()
    site.body, site.etag = OTHER, '"two"'
    with pytest.raises(FetchError, match='remove the entry .fables.') as e: get(site)
    assert one_sentence(e) and (home/'archives/fables/README.md').read_text() == 'made up' # the old folder is as it was
    assert '.part' not in ' '.join(files(home))
    manifest = home/'archives/manifest.json'
    # as the sentence says
    manifest.write_text(json.dumps({k: v for k, v in json.loads(manifest.read_text()).items() if k != 'fables'}))
    assert (get(site).folder/'README.md').read_text() == 'changed'

def test_a_damaged_copy_is_fetched_again(site, home):
    get(site)
    (home/'archives/fables.zip').write_bytes(BIG[:-1] + b'x')
    assert get(site).fresh and (home/'archives/fables.zip').read_bytes() == BIG and len(site.asked) == 2

def test_a_damaged_manifest(site, home):
    get(site)
    for content in ('{', '[1]', '{"fables": 3}'):
        (home/'archives/manifest.json').write_text(content)
        with pytest.raises(BadInput, match='manifest.json') as e: get(site)
        one_sentence(e)

def test_full_disk(site, home, monkeypatch):
    usage = shutil.disk_usage(home)
    monkeypatch.setattr(room.shutil, 'disk_usage', lambda p: usage._replace(free=len(BIG) - 1))
    with pytest.raises(FetchError, match='full') as e: get(site)
    assert one_sentence(e) and files(home) == [] and site.sent <= len(BIG)

@pytest.mark.skipif(not os.path.exists('/dev/full'), reason='needs /dev/full')
def test_a_disk_that_fills_up_on_the_way(site, home):
    "A device that is always full, in the place of the part."
    (home/'archives').mkdir()
    (home/'archives/.fables.zip.part').symlink_to('/dev/full')
    with pytest.raises(BadInput, match='move it away'): get(site) # somebody's link: what it leads to would be written
    with replacing(), pytest.raises(FetchError, match='full') as e: get(site)
    assert one_sentence(e) and not (home/'archives/fables').exists() and not (home/'archives/manifest.json').exists()

def test_a_page_instead_of_an_archive(site, home):
    site.body = b'<html>Please log in</html>'
    with pytest.raises(FetchError, match='no archive') as e: get(site)
    assert one_sentence(e) and files(home) == []

@pytest.mark.parametrize('options, says',
                         [(dict(name='nothing'), 'judgememo'), (dict(name='fables', url='ftp://x.org/a.zip'), 'https'),
                          (dict(name='fables', url='a.zip'), 'https'),
                          (dict(name='fables', url='https://x.org/a.html'), '.tar.gz')])
def test_bad_input(home, options, says):
    with pytest.raises(BadInput, match=re.escape(says)) as e: fetch(**options)
    one_sentence(e)

def test_no_home(monkeypatch, tmp_path):
    monkeypatch.delenv('FACTLIB_DATA', raising=False)
    with pytest.raises(BadInput, match='FACTLIB_DATA'): fetch('fables')
    (tmp_path/'file').write_text('x')
    with pytest.raises(FetchError, match="can't be written"):
        fetch('fables', home=tmp_path/'file', url='http://127.0.0.1:9/x.zip')

def test_interrupted_by_the_user(site, home, monkeypatch):
    whole = room._blocks
    def two(reply):
        for i, block in enumerate(whole(reply)):
            if i == 2: raise KeyboardInterrupt
            yield block
    monkeypatch.setattr(room, '_blocks', two)
    with pytest.raises(KeyboardInterrupt): get(site)
    monkeypatch.setattr(room, '_blocks', whole)
    get(site)
    assert site.asked[1] == ('/main.zip', f'bytes={2 * room._BLOCK}-', '"one"')
    assert (home/'archives/fables.zip').read_bytes() == BIG

# ---- unpacking

def tar_of(*members):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode='w:gz') as t:
        for name, kind, link in members:
            m = tarfile.TarInfo(name)
            m.type, m.linkname, m.size = kind, link, 3 if kind == tarfile.REGTYPE else 0
            t.addfile(m, io.BytesIO(b'abc'))
    return data.getvalue()

EVIL = ['../evil', 'a/../../evil', '/evil', 'C:/evil', 'a\\..\\..\\evil', '..']

@pytest.mark.parametrize('name', EVIL)
@pytest.mark.parametrize('kind', ['zip', 'tar.gz'])
def test_no_way_out(tmp_path, name, kind):
    inside = tmp_path/'in'
    inside.mkdir()
    archive = inside/f'a.{kind}'
    archive.write_bytes(zip_of({'good': 'x', name: 'evil'}, top='') if kind == 'zip'
                        else tar_of(('good', tarfile.REGTYPE, ''), (name, tarfile.REGTYPE, '')))
    with pytest.raises(FetchError, match='outside') as e: unpack(archive, inside/'x')
    assert one_sentence(e) and files(tmp_path) == [f'in/a.{kind}']
    assert [p.name for p in inside.iterdir()] == [archive.name]

def test_links_and_devices_are_left_out(tmp_path):
    archive = tmp_path/'a.tar.gz'
    archive.write_bytes(tar_of(('r/d', tarfile.SYMTYPE, str(tmp_path)),
                               ('r/d/evil', tarfile.REGTYPE, ''), ('r/h', tarfile.LNKTYPE, '/etc/passwd'),
                               ('r/p', tarfile.FIFOTYPE, ''), ('r/ok', tarfile.REGTYPE, '')))
    assert unpack(archive, tmp_path/'x') == 3
    # a folder of its own, not the link's target
    assert files(tmp_path) == ['a.tar.gz', 'x/d/evil', 'x/ok'] and not (tmp_path/'x/d').is_symlink()
    link = zipfile.ZipInfo('r/link')
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path/'b.zip', 'w') as z:
        z.writestr(link, '/etc/passwd')
        z.writestr('r/ok', 'x')
    assert unpack(tmp_path/'b.zip', tmp_path/'y') == 1 and files(tmp_path/'y') == ['ok']

def test_the_limit_counts_what_comes(tmp_path):
    archive = tmp_path/'bomb.zip'
    archive.write_bytes(zip_of({'zeros': bytes(5_000_000)}))
    assert archive.stat().st_size < 10_000
    with pytest.raises(FetchError, match='larger than 4,999,999 bytes'): unpack(archive, tmp_path/'x', limit=4_999_999)
    assert files(tmp_path) == ['bomb.zip']
    unpack(archive, tmp_path/'x', limit=5_000_000)

def test_replacing_a_folder_leaves_nothing_of_the_old(tmp_path):
    for content in ({'old': '1', 'both': '1'}, {'new': '2', 'both': '2'}):
        (tmp_path/'a.zip').write_bytes(zip_of(content))
        unpack(tmp_path/'a.zip', tmp_path/'x')
    assert files(tmp_path) == ['a.zip', 'x/both', 'x/new'] and (tmp_path/'x/both').read_text() == '2'
    (tmp_path/'a.zip').write_bytes(zip_of({}))
    with pytest.raises(FetchError, match='empty'): unpack(tmp_path/'a.zip', tmp_path/'x')
    assert files(tmp_path) == ['a.zip', 'x/both', 'x/new']

def test_several_things_at_the_top(tmp_path):
    (tmp_path/'a.zip').write_bytes(zip_of({'a/1': '1', 'b': '2'}, top=''))
    unpack(tmp_path/'a.zip', tmp_path/'x')
    assert files(tmp_path/'x') == ['a/1', 'b']

@pytest.mark.parametrize('kind', ['zip', 'tar.gz'])
def test_damaged_archives_never_raise_anything_else(tmp_path, kind):
    """Archives with bytes changed or missing: unpacked, where the damage doesn't show, or one sentence; never a
    leftover."""
    rng, path, failed = random.Random(1), tmp_path/f'a.{kind}', 0
    good = zip_of({f'f{i}': f'text {i}' * 40 for i in range(5)}) if kind == 'zip' else tar_of(
        *((f'r/f{i}', tarfile.REGTYPE, '') for i in range(5)))
    for i in range(100):
        bad = bytearray(good)
        if i % 2: del bad[rng.randrange(len(bad)):]
        else:
            for _ in range(rng.randrange(1, 6)): bad[rng.randrange(len(bad))] = rng.randrange(256)
        path.write_bytes(bad)
        try: unpack(path, tmp_path/'x')
        except FetchError as e:
            failed += 1
            assert '\n' not in str(e)
        assert {p.name for p in tmp_path.iterdir()} <= {path.name, 'x'}
    assert failed > 50

def test_file_and_folder_of_one_name(tmp_path):
    (tmp_path/'a.zip').write_bytes(zip_of({'a': '1', 'a/b': '2'}))
    with pytest.raises(FetchError) as e: unpack(tmp_path/'a.zip', tmp_path/'x')
    assert one_sentence(e) and files(tmp_path) == ['a.zip']

# ---- the list, and the commands

def test_the_archives_are_well_described():
    assert set(ARCHIVES) == {'judgememo', 'trutheval', 'storysumm', 'fables', 'begin', 'faithdial'}
    for name, a in ARCHIVES.items():
        assert a.name == name
        assert re.fullmatch(r'https://github\.com/[\w.-]+/[\w.-]+/archive/(HEAD|[0-9a-f]{40})\.zip', a.url)
        assert a.licence
    assert [a.name for a in ARCHIVES.values() if a.imported] == ['judgememo'] # what test_commands imports below

def test_commands(site, home):
    run = CliRunner().invoke
    listed = run(app, ['fetch'])
    assert listed.exit_code == 0 and all(name in listed.output for name in ARCHIVES) and 'CC BY-NC-SA' in listed.output
    ending = '\n\n' + '-' * 28 + '\nfinish_reason: stop'
    site.body = zip_of({'experiments/m/test_v1/gold_test_2000/eval_exp_1_JM-1.txt': 'Score: 4' + ending,
                        'experiments/m/test_v1/gold_test_2000/eval_exp_1_JM-2.txt': 'Sco'}, 'JudgeMemo-main/')
    fetched = run(app, ['fetch', 'judgememo', '--url', site.url])
    assert fetched.exit_code == 0 and 'Licence: CC BY-NC-SA' in fetched.output
    made = run(app, ['import', str(home/'archives/judgememo')])
    assert made.exit_code == 0, made.output
    assert '1 vanilla' in made.output and 'skipped 1: no line with the finish reason' in made.output
    from factlib.papers.judgememo.recordings import recorded
    assert list(recorded('vanilla').reply) == ['Score: 4']
    wrong = run(app, ['import', str(home/'archives')])
    assert isinstance(wrong.exception, BadInput)
    assert isinstance(run(app, ['fetch', 'x']).exception, BadInput)
    assert isinstance(run(app, ['import', 'x'], env={'FACTLIB_DATA': None}).exception, BadInput)

def test_the_checksum_is_sha256(tmp_path):
    (tmp_path/'abc').write_text('abc')
    # FIPS 180-2, B.1
    assert sha256(tmp_path/'abc') == 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'

# ---- what a hostile server or archive may say

@pytest.mark.parametrize('length', ['\xb2', '-5', '1e3', '9'*5000, '1_000', ' ', '0x10'])
def test_odd_lengths_count_as_not_said(site, home, length, monkeypatch):
    monkeypatch.setattr(Handler, 'send_header',
                        lambda self, name, value, send=BaseHTTPRequestHandler.send_header: send(
                            self, name, length if name == 'Content-Length' else value))
    monkeypatch.setattr(Handler, 'protocol_version', 'HTTP/1.0')
    try: assert get(site).fresh and files(home) == WHOLE
    except FetchError as e: assert str(e).isprintable() # the library that reads the body takes 1_000 for a thousand

@pytest.mark.parametrize('part', ['bytes \xb2-9/9', f'bytes {"9"*5000}-9/9',
                                  f'bytes 0-{"9"*5000}/*', 'bytes -1-5/9', 'nonsense', ''])
def test_odd_parts_are_not_taken(part):
    from types import SimpleNamespace
    with pytest.raises(room._Dropped):
        room._begins(SimpleNamespace(status=206, headers={'Content-Range': part}), 4, 'm')

def test_a_transfer_without_end_is_given_up(site, home, monkeypatch):
    monkeypatch.setattr(room, '_MOST_BYTES', 500_000)
    for site.length in (True, False):
        with pytest.raises(FetchError, match='larger than 500,000 bytes') as e: get(site)
        assert one_sentence(e)
    assert not (home/'archives/fables').exists()

def test_messages_hold_no_commands_to_the_terminal(site, home, monkeypatch):
    monkeypatch.setattr(Handler, 'send_response',
                        lambda self, code, message=None, send=BaseHTTPRequestHandler.send_response: send(
                            self, 403, '\x1b[2J\x1b]0;owned\x07 no'))
    with pytest.raises(FetchError, match='403') as e: get(site)
    assert str(e.value).isprintable()

ZEROS = bytes(120_000_000)

@pytest.mark.parametrize('kind', ['zip', 'tar.gz', 'tar.gz, a head', 'zip, overlapping'])
def test_a_small_archive_does_not_unpack_to_much(kind, tmp_path, monkeypatch):
    "120 MB of zeros in 120 kB; as a file, as the head of a member, as one file listed often."
    path = tmp_path/('a.' + kind.split(',')[0])
    data = io.BytesIO()
    if kind == 'zip': data = io.BytesIO(zip_of({'zeros': ZEROS}))
    elif kind == 'zip, overlapping':
        monkeypatch.setattr(room, '_FREE', 1_000_000)
        with zipfile.ZipFile(data, 'w', zipfile.ZIP_DEFLATED) as z:
            z.writestr('r/a', bytes(200_000))
            for i in range(40):
                z.filelist.append(z.filelist[0])
    else:
        with tarfile.open(fileobj=data, mode='w:gz', format=tarfile.PAX_FORMAT) as t:
            m = tarfile.TarInfo('r/zeros')
            if kind == 'tar.gz': m.size = len(ZEROS)
            else: m.pax_headers = dict(comment='0'*len(ZEROS))
            t.addfile(m, io.BytesIO(ZEROS))
    path.write_bytes(data.getvalue())
    with pytest.raises(FetchError, match='nothing was unpacked') as e: unpack(path, tmp_path/'x')
    assert one_sentence(e) and [p.name for p in tmp_path.iterdir()] == [path.name]

@pytest.mark.parametrize('kind', ['zip', 'tar.gz'])
def test_too_many_members(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(room, '_MOST_MEMBERS', 101) # files, and their folder
    path = tmp_path/f'a.{kind}'
    for n in (100, 101):
        path.write_bytes(zip_of({f'{i}': 'x' for i in range(n)}) if kind == 'zip'
                         else tar_of(*((f'r/{i}', tarfile.REGTYPE, '') for i in range(n))))
        if n == 100: assert unpack(path, tmp_path/'x') == 0 and len(files(tmp_path/'x')) == 100
    with pytest.raises(FetchError, match='over 101 members'): unpack(path, tmp_path/'x')

def test_names_that_a_terminal_cannot_show_are_left_out(tmp_path):
    (tmp_path/'a.zip').write_bytes(zip_of({'good  name é': 'x', 'bad\x1b[2J': 'x', 'line\nbreak': 'x'}))
    assert unpack(tmp_path/'a.zip', tmp_path/'x') == 2 and files(tmp_path/'x') == ['good  name é']

def test_an_interrupted_command_ends_with_130(site, home):
    "Ctrl-C while the server takes its time."
    import signal, subprocess, sys
    site.pause = 5
    child = subprocess.Popen([sys.executable, '-c', 'from factlib.cli import main\nmain()', 'fetch',
                              'fables', '--url', site.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not site.asked: time.sleep(.02)
    time.sleep(.3)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 130 and 'Interrupted.' in err and 'Traceback' not in err

def sparse_tar(form, size):
    "A tar archive with one file that is a single hole, in one of the four forms that GNU tar writes."
    m = tarfile.TarInfo('r/hole')
    about = {'GNU.sparse.size': str(size), 'GNU.sparse.realsize': str(size), 'GNU.sparse.name': 'r/hole'}
    if form == 'pax 0.0':
        m.pax_headers = about | {'GNU.sparse.numblocks': '1', 'GNU.sparse.offset': str(size),
                                 'GNU.sparse.numbytes': '0'}
    if form == 'pax 0.1': m.pax_headers = about | {'GNU.sparse.map': f'{size},0'}
    if form == 'pax 1.0': m.pax_headers = about | {'GNU.sparse.major': '1', 'GNU.sparse.minor': '0'}
    body = f'1\n{size}\n0\n'.encode().ljust(512, b'\0') if form == 'pax 1.0' else b''
    m.size = len(body)
    data = bytearray(m.tobuf(tarfile.PAX_FORMAT) + body + bytes(1024))
    if form == 'gnu':
        data[156:157], data[386:410], data[483:495] = b'S', b'%011o\0%011o\0' % (size, 0), b'%011o\0' % size
        data[148:156] = b'%06o\0 ' % (sum(data[:148]) + 8*32 + sum(data[156:512]))
    return bytes(data)

@pytest.mark.parametrize('form', ['gnu', 'pax 0.0', 'pax 0.1', 'pax 1.0'])
@pytest.mark.parametrize('pack', [bytes, gzip.compress])
def test_a_sparse_file_of_a_tar_archive_is_refused(form, pack, tmp_path):
    "Before, 150 bytes wrote 2 GB of zeros: only what was read was counted, and a hole is not read."
    archive = tmp_path/'a.tar'
    archive.write_bytes(pack(sparse_tar(form, 2_000_000_000)))
    with tarfile.open(archive) as t: assert [m.size for m in t if m.issparse()] == [2_000_000_000] # it is one
    with pytest.raises(FetchError, match="a sparse file, 'r/hole'"): unpack(archive, tmp_path/'x')
    assert files(tmp_path) == ['a.tar']

def test_a_head_of_a_tar_archive_may_not_fill_the_memory(tmp_path):
    """Before, a name was read whole, up to the 100 MB that every archive may have, and a head of all members was kept
    for each of them."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode='w:gz', format=tarfile.GNU_FORMAT) as t:
        t.addfile(tarfile.TarInfo('r/' + 'x'*2_000_000))
    (tmp_path/'a.tar').write_bytes(data.getvalue())
    with pytest.raises(FetchError, match='head is over 1 MB'): unpack(tmp_path/'a.tar', tmp_path/'x')
    assert files(tmp_path) == ['a.tar']

def test_folders_on_the_way_are_members_and_not_too_deep(tmp_path, monkeypatch):
    """Before, only what an archive lists was counted: a name of 4 KB is 2,000 folders, and 500,000 such names were
    allowed."""
    archive = tmp_path/'a.tar'
    archive.write_bytes(tar_of(('r/' + 'd/'*100 + 'x', tarfile.REGTYPE, '')))
    with pytest.raises(FetchError, match='over 100 folders deep'): unpack(archive, tmp_path/'x')
    archive.write_bytes(tar_of(*((f'r/{i}/' + 'd/'*50 + 'x', tarfile.REGTYPE, '') for i in range(20))))
    monkeypatch.setattr(room, '_MOST_MEMBERS', 1000) # files: 20; folders: 20*51 and 1 above
    with pytest.raises(FetchError, match='over 1,000 members'): unpack(archive, tmp_path/'x')
    monkeypatch.setattr(room, '_MOST_MEMBERS', 1041)
    assert unpack(archive, tmp_path/'x') == 0
