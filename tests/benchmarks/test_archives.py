"Unpacking archives that are damaged, or made to do harm; and bringing a commit by git."
import gzip
import io
import random
import subprocess
import tarfile
import zipfile

import pytest

import factlib.benchmarks.archives as room
from factlib.benchmarks.archives import FetchError, checkout, unpack

def zip_of(files, top='repo-main/'):
    data = io.BytesIO()
    with zipfile.ZipFile(data, 'w', zipfile.ZIP_DEFLATED) as z:
        for name, content in files.items(): z.writestr(top + name, content)
    return data.getvalue()

def files(home): return sorted(p.relative_to(home).as_posix() for p in home.rglob('*') if p.is_file())

def one_sentence(error):
    text = str(error.value)
    assert '\n' not in text and text.endswith('.') and len(text) < 600, text
    return text

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

def test_git_brings_a_commit_without_the_folders_left_out(tmp_path):
    git = lambda *command: subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b.c', *command],
                                          cwd=tmp_path/'repo', capture_output=True, text=True, check=True).stdout.strip()
    for name in ('data/a.txt', 'prompts/b.txt', 'c.txt'):
        (tmp_path/'repo'/name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path/'repo'/name).write_bytes(b'x\r\n')
    for step in (['init', '-q'], ['-c', 'core.autocrlf=false', 'add', '.'], ['commit', '-qm', 'all']): git(*step)
    commit = git('rev-parse', 'HEAD')
    assert checkout(str(tmp_path/'repo'), commit, tmp_path/'new', ['prompts'])
    assert files(tmp_path/'new') == ['c.txt', 'data/a.txt'] and (tmp_path/'new/c.txt').read_bytes() == b'x\r\n'
    assert not checkout(str(tmp_path/'repo'), 'c'*40, tmp_path/'other', []) and not (tmp_path/'other').exists()

def test_without_git(tmp_path, monkeypatch):
    monkeypatch.setenv('PATH', str(tmp_path))
    assert not checkout('x', 'c'*40, tmp_path/'new', []) and not (tmp_path/'new').exists()
