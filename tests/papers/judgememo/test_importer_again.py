"""Importing a part, the same twice, over a damaged file; what isn't a regular file; the names of the whole repository,
and a cut of it."""
import gzip
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from factlib.core.ownership import replacing
from factlib.core.records import BadInput
from factlib.papers.judgememo.importer import (FILES, KEYS, PARTS, gaps, import_recordings, kind_of, part_of, place,
                                               readers, suffering)

sys.path.insert(0, str(Path(__file__).parent))
from test_importer import HARD, MEMO, ended, put, skipped, tree # noqa: F401 (a fixture)

def read(home):
    return {name: pd.read_parquet(home/'judgememo'/file) for name, file in FILES.items()
            if (home/'judgememo'/file).exists()}

def same(a, b):
    assert set(a) == set(b)
    for name in a: pd.testing.assert_frame_equal(a[name], b[name], obj=name)

def test_the_same_twice_changes_nothing(tree, tmp_path):
    home = tmp_path/'home'
    import_recordings(tree, out=home, progress=False)
    before = {p.name: p.read_bytes() for p in (home/'judgememo').iterdir()}
    again = import_recordings(tree, out=home, progress=False)
    assert {p.name: p.read_bytes() for p in (home/'judgememo').iterdir()} == before
    assert again.rows == dict(vanilla=4, judgememo=2, sections=4, documents=5, documents_sub20=7)
    assert not any(again.kept.values())

def test_one_models_folder_joins_what_is_there(tree, tmp_path):
    home, part = tmp_path/'home', tmp_path/'part'
    import_recordings(tree, out=home, progress=False)
    whole = read(home)
    put(part/'experiments/other/project_gutenberg_v6-3/gold_pg-1900_2000/eval_exp_1_JM-1.txt', ended('Score: 1'))
    put(part/'experiments/m/project_gutenberg_v6-3/gold_pg-1900_2000/eval_exp_1_JM-1.txt', ended('Score: 5'))
    r = import_recordings(part, out=home, progress=False)
    assert r.rows['vanilla'] == 2 and r.kept['vanilla'] == 3 and '2 vanilla (and 3 from before)' in repr(r)
    now = read(home)
    assert len(now['vanilla']) == 5 and not now['vanilla'].duplicated(KEYS['vanilla']).any()
    # the new one counts
    assert dict(zip(zip(now['vanilla'].model, now['vanilla'].variant),
                    now['vanilla'].response))[('m', 'gold')] == 'Score: 5'
    same({n: t for n, t in whole.items() if n != 'vanilla'}, {n: t for n, t in now.items() if n != 'vanilla'})
    # with `replace` only the part is left, of the tables that it has
    import_recordings(part, out=home, progress=False, replace=True)
    assert len(read(home)['vanilla']) == 2 and len(read(home)['sections']) == 4

def test_parts_in_any_order_make_the_whole(tree, tmp_path):
    import_recordings(tree, out=tmp_path/'whole', progress=False)
    for name in ('experiments', 'experiments_JM'): shutil.copytree(tree/name, tmp_path/'parts'/name/name)
    shutil.copytree(tree/'data', tmp_path/'parts/experiments/data')
    for order in (['experiments', 'experiments_JM'], ['experiments_JM', 'experiments']):
        home = tmp_path/order[0]
        for name in order: import_recordings(tmp_path/'parts'/name, out=home, progress=False)
        same(read(tmp_path/'whole'), read(home))

def test_a_section_joins_its_place(tree, tmp_path):
    import_recordings(tree, out=tmp_path/'whole', progress=False)
    for part, drop in (('replies', 'memory'), ('memories', 'sec_evaluations')):
        shutil.copytree(tree/'experiments_JM', tmp_path/part/'experiments_JM', ignore=shutil.ignore_patterns(drop))
        import_recordings(tmp_path/part, out=tmp_path/'home', progress=False)
    pd.testing.assert_frame_equal(read(tmp_path/'home')['sections'], read(tmp_path/'whole')['sections'])

def test_a_damaged_table_is_said_and_left(tree, tmp_path):
    home = tmp_path/'home'
    import_recordings(tree, out=home, progress=False)
    damaged = home/'judgememo'/FILES['sections']
    damaged.write_bytes(b'PAR1' + damaged.read_bytes()[4:-40])
    before = {p.name: p.read_bytes() for p in (home/'judgememo').iterdir()}
    with pytest.raises(BadInput,
                       match='responses_judgememo_sections.parquet.* is not as factlib made it, if it did: move it '
                             'away.*--force'):
        import_recordings(tree, out=home, progress=False)
    assert {p.name: p.read_bytes() for p in (home/'judgememo').iterdir()} == before # nothing half done
    with replacing(): import_recordings(tree, out=home, progress=False, replace=True)
    assert len(read(home)['sections']) == 4

def test_a_damaged_file_keeps_the_row_that_is_there(tree, tmp_path):
    home = tmp_path/'home'
    import_recordings(tree, out=home, progress=False)
    whole = read(home)
    put(tree/'experiments/m/project_gutenberg_v6-3/gold_pg-1900_2000/eval_exp_1_JM-1.txt', 'Score')
    r = import_recordings(tree, out=home, progress=False)
    assert r.kept['vanilla'] == 1 and any('finish reason' in reason for reason in r.skipped.reason)
    same(whole, read(home))

def test_untouched_texts_without_a_number_of_the_run(tree):
    folder = tree/'experiments/m/sub_sample_v1'
    put(folder/'gold_sanity_1000/eval_JM-2.txt', ended('Score: 3'))
    put(folder/'manipulated_sanity_1000/F/4/41/eval_JM-2.txt', ended('Score: 2'))
    r = import_recordings(tree, progress=False)
    row = r.vanilla[(r.vanilla.length == '1000')].iloc[0]
    assert (row.variant, row.exp, row.response) == ('gold', 1, 'Score: 3')
    assert skipped(r)[
        'experiments/m/sub_sample_v1/manipulated_sanity_1000/F/4/41/eval_JM-2.txt'] == 'no place of the layout'

@pytest.mark.skipif(not hasattr(os, 'mkfifo'), reason='no pipes here')
def test_only_regular_files_inside_the_clone_are_read(tree, tmp_path):
    clean = import_recordings(tree, progress=False)
    secret = tmp_path/'secret.txt'
    put(secret, ended('private'))
    folder = tree/'experiments/m/project_gutenberg_v6-3/gold_pg-1900_full'
    folder.mkdir(parents=True)
    os.mkfifo(folder/'eval_exp_1_JM-3.txt')
    (folder/'eval_exp_1_JM-4.txt').symlink_to('/dev/zero')
    (folder/'eval_exp_1_JM-5.txt').symlink_to(secret)
    (folder/'eval_exp_1_JM-6.txt').symlink_to('nowhere')
    (tree/'experiments/linked').symlink_to(tmp_path)
    (tree/'data/project_gutenberg/gold_dataset/PG-2.txt').unlink()
    (tree/'data/project_gutenberg/gold_dataset/PG-2.txt').symlink_to('/dev/zero')
    (tree/'data/test/gold_test_meta_2000.json').symlink_to('/dev/zero')
    put(folder/'eval_exp_1_JM-7.txt', ended('x').encode('utf-16'))
    put(folder/'eval_exp_1_JM-8.txt', ended('\0'))
    r = import_recordings(tree, progress=False)
    said = skipped(r)
    at = folder.relative_to(tree).as_posix()
    assert said[f'{at}/eval_exp_1_JM-3.txt'] == 'no regular file'
    assert 'out of the folder' in said[f'{at}/eval_exp_1_JM-4.txt'] + said[f'{at}/eval_exp_1_JM-5.txt']
    assert 'out of the folder' in said[f'{at}/eval_exp_1_JM-5.txt'] and 'no file' in said[f'{at}/eval_exp_1_JM-6.txt']
    assert 'not followed' in said['experiments/linked'] and 'UTF-16' in said[f'{at}/eval_exp_1_JM-7.txt']
    assert 'NUL' in said[f'{at}/eval_exp_1_JM-8.txt']
    pd.testing.assert_frame_equal(r.vanilla, clean.vanilla)
    assert 'out of the folder' in said['data/project_gutenberg/gold_dataset/PG-2.txt']

def test_a_link_inside_the_clone_is_read(tree):
    folder = tree/'experiments/m/project_gutenberg_v6-3/gold_pg-1900_2000'
    (folder/'eval_exp_1_JM-3.txt').symlink_to(folder/'eval_exp_1_JM-1.txt')
    assert len(import_recordings(tree, progress=False).vanilla) == 5

def test_what_suffers_is_said(tree):
    put(tree/'experiments/m/sub_sample_v1/gold_full_20/eval_exp_1_JM-9.txt', 'broken')
    lacking = gaps(import_recordings(tree, progress=False)).set_index('part')
    assert lacking.rows.to_dict() == {'single prompt': 2, 'screening': 1, 'prompt engineering': 1,
                                      'JudgeMemo': 2, 'JudgeMemo sections': 3, 'texts': 5, 'screening texts': 7}
    assert lacking.skipped.to_dict() == (dict.fromkeys(lacking.index, 0) | {'screening': 1}
                                          | {'screening texts': 1}) # its metadata are not there
    said = '\n'.join(suffering(lacking.reset_index(), readers()))
    assert 'screening: 1 of 4,308, 1 files left out' in said and 'judgememo_matrix_analysis' in said
    assert '3.4, A.4, A.5, heatmaps' in said

# ---- the real repository

HOME = os.environ.get('FACTLIB_DATA', '')
CLONE = Path(HOME)/'judgememo_clone' if HOME else Path('nowhere')
needs_clone = pytest.mark.skipif(not (CLONE/'clone_cut.tar.gz').is_file(),
                                 reason='FACTLIB_DATA has no cut of the repository')

@needs_clone
def test_every_name_of_the_repository_is_known():
    names = gzip.decompress((CLONE/'all_names.txt.gz').read_bytes()).decode('utf-8').split()
    kinds = Counter(map(kind_of, names))
    assert len(names) == 128_011 and None not in kinds
    assert kinds['vanilla'] == 15_448 and kinds['judgememo'] == 12_007 and kinds['sections'] == 65_999
    assert kinds['memory'] == 6_547
    rows = [(kind, *sorted(row.items())) for kind, row in (place(n) for n in names if n.startswith('experiments'))
            if row]
    replies = [r for r in rows if r[0] != 'reports']
    assert len(set(replies)) == len(replies) # no two files say the same of themselves
    parts = Counter(part_of(n) for n in names if kind_of(n) in ('vanilla', 'judgememo', 'sections'))
    assert all(parts[part] == whole for part, (_, whole, table, _) in PARTS.items()
               if table not in ('documents', 'documents_sub20'))

@pytest.fixture(scope='module')
def clone(tmp_path_factory):
    folder = tmp_path_factory.mktemp('clone')
    with tarfile.open(CLONE/'clone_cut.tar.gz') as archive: archive.extractall(folder, filter='data')
    return folder/'JudgeMemo'

@needs_clone
def test_the_cut_clone_has_no_unexplained_skip(clone):
    r = import_recordings(clone, progress=False)
    assert set(r.skipped.reason) <= {'not there: n_ops is -1 and params are empty'}
    assert r.rows == dict(vanilla=516, judgememo=386, sections=1994, documents=142, documents_sub20=499)
    gold = r.vanilla[(r.vanilla.dataset == 'sub_sample') & (r.vanilla.variant == 'gold')]
    assert gold.groupby('length').size().to_dict() == {'1000': 20, '2000': 2, '3000': 2, 'full': 20}
    assert (gold.exp == 1).all()

@needs_clone
@pytest.mark.slow
def test_the_cut_clone_says_what_the_tables_say(clone):
    "Whatever both have is the same: the tables were derived from the repository by somebody else's reading."
    made = import_recordings(clone, progress=False)
    for name, file in FILES.items():
        if not (Path(HOME)/'judgememo'/file).is_file(): pytest.skip('FACTLIB_DATA has no recordings')
        real, got = pd.read_parquet(Path(HOME)/'judgememo'/file), getattr(made, name)
        both = got.merge(real, on=KEYS[name], suffixes=('', '_real'))
        assert len(both) == len(got) > 100
        for column in set(got) - set(KEYS[name]):
            mine, theirs = both[column], both[f'{column}_real']
            same = (mine == theirs) | (mine.isna() & theirs.isna())
            if column in ('n_ops', 'params'): same |= both.n_ops == -1 # the cut lacks what says so
            assert same.all(), (name, column)

@needs_clone
@pytest.mark.slow
def test_memory_of_an_import_stays_small(clone, tmp_path):
    if not Path('/proc/self/status').exists(): pytest.skip('the greatest size of a process is not told here')
    code = ("import re, sys\nfrom pathlib import Path\nfrom factlib.papers.judgememo.importer import "
            "import_recordings\n"
            "import_recordings(sys.argv[1], sys.argv[2], progress=False)\nprint(re.search(r'VmHWM:\\s+(\\d+)', "
            "Path('/proc/self/status').read_text())[1])")
    for _ in range(2):
        done = subprocess.run([sys.executable, '-c', code, str(clone), str(tmp_path)],
                              capture_output=True, text=True, check=True)
        assert int(done.stdout)/1000 < 300 # MB; the whole repository takes under 500

@needs_clone
@pytest.mark.slow
def test_memory_of_joining_a_full_import_is_bounded(clone, tmp_path):
    "480 to 520 MB where this was written; 600 to 670 while the size of texts was found by keeping each of them once."
    import shutil
    if not Path('/proc/self/status').exists(): pytest.skip('the greatest size of a process is not told here')
    if not (Path(HOME)/'judgememo'/FILES['documents_sub20']).is_file(): pytest.skip('FACTLIB_DATA has no recordings')
    (tmp_path/'judgememo').mkdir()
    for file in FILES.values(): shutil.copyfile(Path(HOME)/'judgememo'/file, tmp_path/'judgememo'/file)
    code = ("import re, sys\nfrom pathlib import Path\nfrom factlib.papers.judgememo.importer import "
            "import_recordings\n"
            "made = import_recordings(sys.argv[1], sys.argv[2], progress=False)\nassert made.kept['sections'] > 60000\n"
            "print(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])")
    done = subprocess.run([sys.executable, '-c', code, str(clone), str(tmp_path)],
                          capture_output=True, text=True, check=True)
    assert int(done.stdout)/1000 < 560
