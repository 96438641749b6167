"""Reading a clone of the public repository of recorded replies: a made-up tree with planted faults, and a tree made
from the rows of the real tables."""
import json
import os
from pathlib import Path

import pandas as pd
import pytest

from factlib.papers.judgememo.importer import FILES, import_recordings, in_order, place, read_memory, read_reply
from factlib.core.records import BadInput
from factlib.papers.judgememo.recordings import recorded, scores

LINE = '-' * 28
CATEGORY = {'1': 'C/1', '2': 'C/2', '3': 'C/3', '4': 'F/4'} # by the first digit of a manipulation's id

def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode('utf-8'))

def ended(response, finish='stop', incomplete=False):
    return f'{response}\n\n{LINE}\nfinish_reason: {finish}' + ('\nWARNING: INCOMPLETE OUTPUT after max retries'
                                                               if incomplete else '')

def folder_of(set_, length, variant, level):
    """gold_<set>_<length>, or manipulated_<set>_<length>/C/1/17/paragraph; folders of manipulations of fluency name no
    level."""
    name = 'full_20' if (set_, length) == ('sanity', 'full') else f'{set_}_{length}'
    if variant == 'gold': return f'gold_{name}'
    return f'manipulated_{name}/{CATEGORY[variant[0]]}/{variant}' + ('' if variant[0] == '4' else f'/{level}')

SETS = {'project_gutenberg': 'pg-1900', 'sub_sample': 'sanity', 'test': 'test'}

def vanilla_path(r):
    return (f"experiments/{r.model}{'_THINK' * r.thinking}/{r.dataset}_{r.prompt_version}/{folder_of(SETS[r.dataset], r.length, r.variant, r.level)}/eval_exp_{r.exp}_{r.doc_id}.txt")

def memo_folder(r):
    level = {'17': 'paragraph', '24': 'paragraph', '32': 'document'}.get(r.variant, '')
    return (f"experiments_JM/{r.model}{'_THINK' * r.thinking}/JM-sub-sample_v6-3{'_context' * (r.context_dir == 'context')}/sr-{r.section_size}_sor-{r.overlap}_iss-{r.section_summary}"
            f"_rm-{r.report_mode}_s2t-True/{folder_of('pg-1900', r.length, r.variant, level)}")

def memory_entry(r):
    "As many issues as the table counts, spread over two tags."
    def issues(n): return {'[A]': ['issue'] * (n // 2), '[B]': ['issue'] * (n - n // 2)} if n else {}
    return dict(issues=dict(fluency=issues(r.author_n_flu_issues), coherence=issues(r.author_n_coh_issues)),
                scores=dict(fluency=r.author_fluency, coherence=r.author_coherence),
                section_start_char_incl=int(r.start), section_end_char_excl=int(r.end),
                section_summary=None if pd.isna(r.summary_text) else r.summary_text)

# ---- a made-up tree

MEMO = ('experiments_JM/m_THINK/JM-sub-sample_v6-3_context/sr-2000_sor-0.1_iss-True_rm-report_summary_s2t-True/manipulated_pg-1900_2000/C/1/17/paragraph')
HARD = 'experiments_JM/m/JM-sub-sample_v6-3/sr-1000_sor-0.0_iss-False_rm-report_only_s2t-True/gold_pg-1900_full'
ENTRY = dict(issues=dict(fluency={'[GRAMMAR]': ['a', 'b'], '[SPELLING]': ['c']}, coherence={}),
             scores=dict(fluency=4.5, coherence=3), section_start_char_incl=0, section_end_char_excl=90,
             section_summary='They met.')

def source(i, genre=True):
    "An entry of the metadata."
    return {'id': f'JM-{i}', 'gold_text': f'/data/x/PG-{i}.txt',
            'gold_source': {'dataset': 'Project Gutenberg', 'source_id': str(i),
                            'title': f'Book {i}', 'author': 'Ann Önn', 'year': 1900 + i if isinstance(i, int) else 1900,
                              'gutenberg': {'num': i} | ({'genre': 'Arts'} if genre else {})}}

def edits(i, **params):
    return {'id': f'JM-{i}_C_1_17', 'gold_id': f'JM-{i}', 'manipulated_char_spans': [[0, 1], [5, 9]],
            'random_seed': 31, 'manipulation_type': 'exchange_content', 'params': params}

@pytest.fixture
def tree(tmp_path):
    root = tmp_path/'clone'
    vanilla = root/'experiments'
    put(vanilla/'m/project_gutenberg_v6-3/gold_pg-1900_2000/eval_exp_1_JM-1.txt', ended('Score: 4'))
    put(vanilla/'m/project_gutenberg_v6-3/manipulated_pg-1900_2000/F/4/41/eval_exp_1_JM-1.txt',
        ended('Score: “2”  \n', 'length', True).replace('\n', '\r\n'))
    put(vanilla/'m_THINK/test_v5-8_fluency/manipulated_test_full/C/3/32/document/eval_exp_3_JM-2.txt',
        ended(f'a\n{LINE}\nfinish_reason: stop\nb'))
    put(vanilla/'m/sub_sample_v1/manipulated_full_20/C/1/17/chapter/eval_exp_2_JM-2.txt', ended(''))
    put(root/MEMO/'eval_exp_1_JM-1.txt', ended('Final'))
    for n in (1, 2, 10): put(root/MEMO/f'sec_evaluations/sec_evaluation_JM-1/section_{n}.txt', ended(f'Section {n}'))
    put(root/MEMO/'memory/memory_file-JM-1.json',
        json.dumps({'section_01': ENTRY,
                    'section_11': ENTRY | dict(section_summary=None, scores=dict(fluency=0, coherence=None))}))
    put(root/HARD/'eval_exp_1_JM-2.txt', ended('Hard'))
    # not replies, and hidden
    put(root/HARD/'reports/report_file-JM-2.txt', 'report')
    put(vanilla/'full_prompts/a/b.txt', 'prompt')
    put(vanilla/'.DS_Store', b'\xff')
    put(root/'experiments_JM/.cache/x.txt', 'x')
    # texts
    data = root/'data'
    for length, gold in (('2000', 'gold_dataset_2000'), ('full', 'gold_dataset')):
        put(data/f'project_gutenberg/gold_pg-1900_meta_{length}.json', json.dumps([source(2), source(1)]))
        for i in (1, 2, 3): put(data/f'project_gutenberg/{gold}/PG-{i}.txt', f'Text {i} {length} é\n')
    put(data/'project_gutenberg/manipulated_pg-1900_2000/F/4/41/exp_1/JM-1.txt', 'Txet 1')
    put(data/'project_gutenberg/manipulated_pg-1900_2000/F/4/41/exp_1_meta.json', '[]')
    put(data/'JM-sub-sample/gold_pg-1900_meta_2000.json', json.dumps([source(1)]))
    put(data/'sub_sample/gold_full_meta_20.json', json.dumps([source(2, False)]))
    for length in ('1000', '2000', '3000'):
        put(data/f'sub_sample/gold_sanity_meta_{length}.json', json.dumps([source(2, False)]))
    for length in ('sanity_1000', 'sanity_2000', 'sanity_3000', 'full_20'):
        put(data/f'sub_sample/gold_{length}/PG-2.txt', 'Short')
    for k in (1, 2): put(data/f'sub_sample/manipulated_full_20/C/1/17/section/exp_{k}/JM-2.txt', 'Mixed')
    put(data/'sub_sample/manipulated_full_20/C/1/17/section/exp_1_meta.json',
        json.dumps([edits(2, n=3, start=None, texts_to_insert=['long', 'longer'])]))
    put(data/'sub_sample/manipulated_sanity_1000/C/1/13/chapter/exp_1/JM-2.txt', 'Longer')
    put(data/'sub_sample/manipulated_sanity_1000/C/1/13/chapter/exp_1_meta.json',
        json.dumps([edits(2, n=2, text_to_insert='/data/PG-1.txt')]))
    put(data/'test/gold_test_meta_full.json', json.dumps([]))
    return root

# what the tree lacks on purpose
KNOWN = {('data/sub_sample/manipulated_full_20/C/1/17/section/exp_2_meta.json',
          'not there: n_ops is -1 and params are empty')}

def skipped(recordings): return dict(zip(recordings.skipped.path, recordings.skipped.reason))

def test_a_made_up_tree(tree):
    r = import_recordings(tree, progress=False)
    assert set(skipped(r).items()) == KNOWN
    assert r.aside == {'reports': 1, 'filled prompts': 1, 'other texts': 2} # the third gold text, in two lengths
    v = r.vanilla
    assert list(v.dataset) == ['project_gutenberg', 'project_gutenberg', 'sub_sample', 'test'] # sorted
    assert list(v.variant) == ['41', 'gold', '17', '32'] and list(v.level) == ['document', '', 'chapter', 'document']
    assert list(v.exp) == [1, 1, 2, 3]
    assert list(v.length) == ['2000', '2000', 'full', 'full']
    assert list(v.prompt_version) == ['v6-3', 'v6-3', 'v1', 'v5-8_fluency']
    assert list(v.thinking) == [False, False, False, True]
    assert list(v.finish_reason) == ['length', 'stop', 'stop', 'stop']
    assert list(v.incomplete) == [True, False, False, False]
    # blanks at the end of a line belong to the reply, line breaks before the ending don't; an ending in the middle is
    # text
    assert list(v.response) == ['Score: “2”  ', 'Score: 4', '', f'a\n{LINE}\nfinish_reason: stop\nb']
    j = r.judgememo
    assert list(j.response) == ['Hard', 'Final'] and list(j.scan_mode) == ['hard', 'stride']
    assert list(j.overlap) == [0.0, .1] and list(j.context_dir) == ['base', 'context']
    assert list(j.section_size) == [1000, 2000] and list(j.section_summary) == [False, True]
    assert list(j.report_mode) == ['report_only', 'report_summary'] and list(j.thinking) == [False, True]
    s = r.sections.set_index('section')
    assert list(s.index) == [1, 2, 10, 11]
    assert list(s.incomplete) == [False, False, False, True]
    assert list(s.response)[:3] == ['Section 1', 'Section 2', 'Section 10']
    assert s.response.isna().tolist() == [False, False, False, True]
    assert s.finish_reason.isna()[11] and s.start.isna().tolist() == [False, True, True, False] and s.end[1] == 90
    assert s.author_n_flu_issues[1] == 3 and s.author_n_coh_issues[1] == 0 and s.author_fluency[1] == 4.5
    assert s.author_coherence[1] == 3 and s.summary_text[1] == 'They met.'
    assert s.author_fluency[11] == 0 and pd.isna(s.author_coherence[11]) and pd.isna(s.summary_text[11])
    assert list(s.doc_id) == ['JM-1'] * 4
    d = r.documents
    assert list(zip(d.doc_id, d.length, d.variant)) == [('JM-2', '2000', 'gold'),
                                                        ('JM-1', '2000', 'gold'), ('JM-1', '2000', '41'),
                                                        ('JM-2', 'full', 'gold'), ('JM-1', 'full', 'gold')]
    assert list(d.meta_order) == [0, 1, 1, 0, 1] and d.text[0] == 'Text 2 2000 é\n' and d.author[0] == 'Ann Önn'
    assert d.year[0] == 1902 and d.gutenberg_id[0] == 2 and d.genre[0] == 'Arts'
    assert list(d.in_jm30) == [False, True, True, False, True] and list(d.in_sub20) == [True, False, False, True, False]
    assert not d.in_test5.any() and d.in_test5.dtype == bool
    u = r.documents_sub20
    assert list(zip(u.length, u.variant, u.level, u.exp, u.n_ops)) == [('1000', '13', 'chapter', 1, 2),
                                                                       ('1000', 'gold', '', 0, 0),
                                                                       ('2000', 'gold', '', 0, 0),
                                                                       ('3000', 'gold', '', 0, 0),
                                                                         ('full', '17', 'section', 1, 2),
                                                                       ('full', '17', 'section', 2, -1),
                                                                       ('full', 'gold', '', 0, 0)]
    assert u.params[0] == '{"donor": "/data/PG-1.txt", "n": 2, "seed": 31, "type": "exchange_content"}'
    assert u.params[4] == '{"n": 3, "n_donors": 2, "seed": 31, "type": "exchange_content"}'
    assert list(u.meta_order) == [-1, 0, 0, 0, -1, -1, 0] and u.params[5] == ''
    assert repr(r).startswith(
        'Recordings(4 vanilla, 2 judgememo, 4 sections, 5 documents, 7 documents_sub20; skipped: 1; left aside: ')
    assert '2 other texts' in repr(r)

FAULTS = { # path -> (content, a part of the reason)
    'experiments/m/project_gutenberg_v6-3/gold_pg-1900_full/eval_exp_1_JM-9.txt': ('Score: 4', 'finish reason'),
    'experiments/m/project_gutenberg_v6-3/gold_pg-1900_full/eval_exp_1_JM-8.txt': (
        ended('x').replace('stop', 'stopped'), "'stopped'"),
    'experiments/m/project_gutenberg_v6-3/gold_pg-1900_full/eval_exp_1_JM-7.txt': (b'caf\xe9 ' + ended('x').encode(),
                                                                                   'not UTF-8: byte 3 is 0xe9'),
    'experiments/m/project_gutenberg_v6-3/gold_pg-1900_full/eval_exp_1_JM-6.txt': ('', 'finish reason'),
    'experiments/m/project_gutenberg_v6-3/gold_pg-1900_full/eval_exp_1_JM-5.txt': (ended('x') + '\nmore',
                                                                                   'finish reason'),
    'experiments/m/project_gutenberg_v6-3/gold_pg-1900_full/notes.txt': (ended('x'), 'layout'),
    'experiments/m/project_gutenberg_v6-3/gold_pg-1900_full/eval_exp_1_PG-5.txt': (ended('x'), 'layout'),
    'experiments/m/project_gutenberg_v6-3/gold_pg-1900_long/eval_exp_1_JM-1.txt': (ended('x'), 'layout'),
    'experiments/m/project_gutenberg_v6-3/manipulated_pg-1900_full/C/1/17/sentence/eval_exp_1_JM-1.txt': (
        ended('x'), 'layout'),
    'experiments/m/project_gutenberg/gold_pg-1900_full/eval_exp_1_JM-1.txt': (ended('x'), 'layout'),
    'experiments/eval_exp_1_JM-1.txt': (ended('x'), 'layout'),
    HARD.replace('v6-3', 'v6-4') + '/eval_exp_1_JM-1.txt': (ended('x'), 'layout'),
    HARD.replace('s2t-True', 's2t-False') + '/eval_exp_1_JM-1.txt': (ended('x'), 'layout'),
    HARD + '/eval_exp_2_JM-2.txt': (ended('x'), 'layout'),
    MEMO.replace('/paragraph', '/section') + '/eval_exp_1_JM-1.txt': (ended('x'), 'second file'),
    HARD + '/memory/memory_file-JM-2.json': ('{"section_01": ', 'not JSON'),
    HARD + '/memory/memory_file-JM-3.json': ('[]', 'another form'),
    HARD + '/memory/memory_file-JM-4.json': (json.dumps({'sect': ENTRY}), 'another form'),
    HARD + '/memory/memory_file-JM-5.json': (json.dumps({'section_01': ENTRY | dict(section_end_char_excl=2**40)}),
                                             str(2**40)),
    HARD + '/memory/memory_file-JM-6.json': (
        json.dumps({'section_01': ENTRY | dict(scores=dict(fluency='4', coherence=4))}), 'another form'),
    HARD + '/memory/memory_file-JM-7.json': (
        json.dumps({'section_01': ENTRY | dict(issues=dict(fluency={'[A]': 'one'}, coherence={}))}), 'another form'),
    HARD + '/memory/memory_file-JM-8.json': ('[' * 100_000, ''),
    HARD + '/sec_evaluations/sec_evaluation_JM-2/section_x.txt': (ended('x'), 'layout'),
    HARD + '/memory/memory_file-JM-9.json': (json.dumps({'section_01': ENTRY | dict(section_summary='half a \ud83d')}),
                                             'surrogate'),
    HARD + '/memory/memory_file-JM-10.json': (
        json.dumps({'section_01': ENTRY | dict(scores=dict(fluency=10**400, coherence=4))}), 'another form'),
    'experiments/m\n/project_gutenberg_v6-3/gold_pg-1900_full/eval_exp_1_JM-5.txt': (ended('x'), 'odd characters'),
    'data/project_gutenberg/manipulated_pg-1900_2000/F/4/41/exp_2/JM-2.txt': ('x', 'layout'),
    'data/project_gutenberg/manipulated_pg-1900_2000/F/4/43/exp_1/JM-2.txt': (b'\xff', 'not UTF-8'),
    'data/project_gutenberg/manipulated_pg-1900_2000/F/4/43/exp_1/JM-77.txt': ('x', 'metadata know no such'),
    'data/sub_sample/manipulated_full_20/C/1/17/section/exp_2_meta.json': ('{}', 'not a list'),
}

def test_every_planted_fault_is_said_and_costs_nothing_else(tree):
    clean = import_recordings(tree, progress=False)
    for path, (content, _) in FAULTS.items(): put(tree/path, content)
    r = import_recordings(tree, progress=False)
    found = skipped(r)
    assert len(r.skipped) == len(found) and set(found) == set(FAULTS) | {p for p, _ in KNOWN}
    for path, (_, reason) in FAULTS.items(): assert reason in found[path], (path, found[path])
    assert r.sections.doc_id.unique().tolist() == ['JM-1']
    for name in FILES: pd.testing.assert_frame_equal(getattr(r, name), getattr(clean, name))
    assert r.aside == clean.aside

def test_faults_of_the_metadata(tree):
    (tree/'data/JM-sub-sample/gold_pg-1900_meta_2000.json').unlink()
    put(tree/'data/project_gutenberg/gold_pg-1900_meta_full.json',
        json.dumps([source(2), {'id': 'JM-1'}, source(4), source(10**400), source('\ud83d')]))
    put(tree/'data/sub_sample/gold_sanity_meta_3000.json', '[')
    r = import_recordings(tree, progress=False)
    reasons = '\n'.join(f'{p}: {w}' for p, w in zip(r.skipped.path, r.skipped.reason))
    # can't be told: neither true nor false
    assert r.documents.in_jm30.isna().all() and reasons.count('in_jm30 is unknown') == 2
    assert r.documents.in_sub20.dtype == bool
    assert all(f'gold_pg-1900_meta_full.json: entry {i} is of another form' in reasons for i in (1, 3, 4))
    assert 'the gold text of JM-4, length full, is not there' in reasons
    assert 'gold_sanity_meta_3000.json: not JSON' in reasons and 'no texts of length 3000' in reasons
    assert list(zip(r.documents.doc_id, r.documents.length)) == [('JM-2', '2000'),
                                                                 ('JM-1', '2000'), ('JM-1', '2000'), ('JM-2', 'full')]
    assert '3000' not in set(r.documents_sub20.length)

def test_a_name_that_is_not_utf_8(tree):
    folder = os.fsencode(tree/'experiments/m/project_gutenberg_v6-3/gold_pg-1900_2000')
    try:
        with open(folder + b'/caf\xe9.txt', 'wb') as f: f.write(b'x')
    except OSError: pytest.skip('this file system has UTF-8 names only')
    r = import_recordings(tree, progress=False)
    assert skipped(r)[
        'experiments/m/project_gutenberg_v6-3/gold_pg-1900_2000/caf\\udce9.txt'] == 'a name with odd characters'
    assert len(r.vanilla) == 4

def test_without_data_the_replies_are_there(tree):
    import shutil
    shutil.rmtree(tree/'data')
    r = import_recordings(tree, progress=False)
    assert len(r.vanilla) == 4 and len(r.sections) == 4 and not len(r.documents) and not len(r.documents_sub20)
    assert sum('no texts of length' in reason for reason in r.skipped.reason) == 6

def test_what_is_written_is_what_recorded_reads(tree, tmp_path):
    out = tmp_path/'home'
    put(tree/'experiments/m/lost.txt', 'x')
    r = import_recordings(str(tree), out=out, progress=False)
    assert sorted(p.name for p in (out/'judgememo').iterdir()) == sorted([*FILES.values(), 'skipped.csv', 'CARD.md'])
    for name, file in FILES.items():
        pd.testing.assert_frame_equal(pd.read_parquet(out/'judgememo'/file), getattr(r, name))
    assert pd.read_csv(out/'judgememo/skipped.csv').path.tolist() == r.skipped.path.tolist()
    assert 'CC BY-NC-SA' in (out/'judgememo/CARD.md').read_text(encoding='utf-8')
    read = recorded('sections', out)
    assert list(read.model) == ['m-T'] * 4 and list(read.reply) == ['Section 1', 'Section 2', 'Section 10', None]
    assert list(scores(recorded('vanilla', out, variant='gold'), ['score']).value) == [4]
    # a smaller clone has nothing to put in the place of what is there
    import shutil
    shutil.rmtree(tree/'experiments_JM')
    import_recordings(tree, out=out, progress=False)
    assert len(pd.read_parquet(out/'judgememo/responses_judgememo.parquet')) == 2

def test_a_failed_write_leaves_the_old(tree, tmp_path, monkeypatch):
    from factlib.core.files import OpenFolder
    import_recordings(tree, out=tmp_path/'home', progress=False)
    before = {p.name: p.read_bytes() for p in (tmp_path/'home/judgememo').iterdir()}
    write = OpenFolder.write
    def full(folder, path, *rest):
        if path == 'CARD.md': raise OSError(28, 'No space left on device')
        return write(folder, path, *rest)
    monkeypatch.setattr(OpenFolder, 'write', full)
    with pytest.raises(BadInput, match='No space left'): import_recordings(tree, out=tmp_path/'home', progress=False)
    assert {p.name: p.read_bytes() for p in (tmp_path/'home/judgememo').iterdir()} == before

def test_wrong_folders(tmp_path):
    with pytest.raises(BadInput, match='no folder'): import_recordings(tmp_path/'nowhere')
    with pytest.raises(BadInput, match='no clone'): import_recordings(tmp_path)
    (tmp_path/'experiments').mkdir()
    with pytest.raises(BadInput, match='no clone'): import_recordings(tmp_path)
    put(tmp_path/'experiments/a.txt', 'x')
    with pytest.raises(BadInput, match=r'No file in .* experiments/a.txt: no place'):
        import_recordings(tmp_path, progress=False)
    put(tmp_path/'one.txt', 'x')
    with pytest.raises(BadInput, match='no folder'): import_recordings(tmp_path/'one.txt')

@pytest.mark.skipif(hasattr(os, 'geteuid') and os.geteuid() == 0, reason='root can read every file')
def test_a_file_that_may_not_be_read(tree):
    path = tree/'experiments/m/project_gutenberg_v6-3/gold_pg-1900_2000/eval_exp_1_JM-1.txt'
    path.chmod(0)
    r = import_recordings(tree, progress=False)
    assert len(r.vanilla) == 3 and 'denied' in skipped(r)[path.relative_to(tree).as_posix()]

def test_paths_and_endings_by_hand():
    assert place('experiments/m/d_v1/gold_x_full/eval_exp_1_JM-1.txt')[0] == 'vanilla'
    assert place('other/m/d_v1/gold_x_full/eval_exp_1_JM-1.txt') is None
    assert place(HARD + '/eval_exp_1_JM-2.txt')[1] == dict(model='m',
                                                           thinking=False, context_dir='base', section_size=1000,
                                                           scan_mode='hard', overlap=0.0, section_summary=False,
                                                         report_mode='report_only',
                                                           length='full', variant='gold', level='', doc_id='JM-2')
    long = '-' * 300_000 # a judge that looped: must not take long
    assert read_reply(ended(long))['response'] == long
    assert read_reply(ended('\n\n x \n\n\n')) == dict(finish_reason='stop', incomplete=False, response='\n\n x ')
    # the dashed line has to be a line of its own
    with pytest.raises(ValueError): read_reply(f'x{LINE}\nfinish_reason: stop')
    assert read_memory('{}') == {}

# ---- the real tables

HOME = os.environ.get('FACTLIB_DATA', '')
REAL = Path(HOME)/'judgememo' if HOME else None
needs_recordings = pytest.mark.skipif(REAL is None or not all((REAL/file).is_file() for file in FILES.values()),
                                      reason='FACTLIB_DATA has no recordings')

def some(frame, by, n=1):
    "Some rows of every configuration, in the order of the table."
    return frame.groupby(by, sort=False, dropna=False).sample(n, random_state=1).sort_index()

@needs_recordings
def test_real_rows_come_back_as_they_are(tmp_path):
    """A tree made from rows of the tables that were derived from the repository, of every configuration, gives these
    rows."""
    real = {name: pd.read_parquet(REAL/file) for name, file in FILES.items()}
    v = real['vanilla']
    odd = v[v.incomplete | (v.response != v.response.str.strip())].index
    v = v.loc[some(v, ['model', 'thinking', 'dataset', 'prompt_version',
                       'length', 'variant', 'level', 'exp']).index.union(odd)]
    for r in v.itertuples(): put(tmp_path/vanilla_path(r), ended(r.response, r.finish_reason, r.incomplete))
    config = ['model', 'thinking', 'context_dir', 'section_size', 'scan_mode',
              'overlap', 'section_summary', 'report_mode', 'length', 'variant']
    j = some(real['judgememo'], config)
    for r in j.itertuples():
        put(tmp_path/memo_folder(r)/f'eval_exp_1_{r.doc_id}.txt', ended(r.response, r.finish_reason, r.incomplete))
    s = real['sections']
    whole = pd.concat([some(s, config), s[s.response.isna()]])[[*config, 'doc_id']].drop_duplicates()
    # all sections of these documents
    s = s.reset_index().merge(whole, on=[*config, 'doc_id']).set_index('index').sort_index()
    for _, sections in s.groupby([*config, 'doc_id'], sort=False):
        rows = list(sections.itertuples())
        folder, doc = tmp_path/memo_folder(rows[0]), rows[0].doc_id
        for r in rows:
            if not pd.isna(r.response):
                put(folder/f'sec_evaluations/sec_evaluation_{doc}/section_{r.section}.txt',
                    ended(r.response, r.finish_reason, r.incomplete))
        memory = {f'section_{r.section:02}': memory_entry(r) for r in rows if not pd.isna(r.start)}
        if memory: put(folder/f'memory/memory_file-{doc}.json', json.dumps(memory, indent=4))
    d, u = real['documents'], real['documents_sub20']
    kept = ['JM-41947', 'JM-645', 'JM-14522', 'JM-738'] # d's metadata are written whole, its texts for some
    d, u = d[d.doc_id.isin(kept)], u[u.doc_id.isin(['JM-738', 'JM-642'])]
    write_texts(tmp_path/'data', real['documents'], d, real['documents_sub20'], u)
    got = import_recordings(tmp_path, progress=False)
    assert len(v) > 800 and len(j) > 300 and len(s) > 1500 and len(d) == 56 and len(u) > 400
    reasons = got.skipped.reason
    # those left out above; those that the repository lacks
    assert (reasons.str.startswith('the gold text of') | reasons.str.contains('not there.*: n_ops', regex=True)).all()
    for name, want in dict(vanilla=v, judgememo=j, sections=s, documents=d, documents_sub20=u).items():
        pd.testing.assert_frame_equal(getattr(got, name), in_order(name, want), obj=name)

def write_texts(data, all_d, d, all_u, u):
    def meta(rows, genre):
        return json.dumps([{'id': r.doc_id, 'gold_text': '',
                            'gold_source': {'title': r.title, 'author': r.author,
                                            'year': r.year, 'gutenberg': {'num': int(r.doc_id[3:])} | (
{'genre': r.genre} if genre else {})}} for r in rows.itertuples()])
    gold = all_d[all_d.variant == 'gold']
    for length in ('2000', 'full'):
        put(data/f'project_gutenberg/gold_pg-1900_meta_{length}.json', meta(gold[gold.length == length], True))
        put(data/f'JM-sub-sample/gold_pg-1900_meta_{length}.json',
            meta(gold[(gold.length == length) & gold.in_jm30], True))
        put(data/f'test/gold_test_meta_{length}.json', meta(gold[(gold.length == length) & gold.in_test5], True))
    level = {'17': 'paragraph', '24': 'paragraph', '32': 'document'}
    for r in d.itertuples():
        if r.variant == 'gold':
            put(data/'project_gutenberg'/('gold_dataset' + '_2000' * (r.length == '2000'))/f'PG-{r.doc_id[3:]}.txt',
                r.text)
        else:
            put(data/'project_gutenberg'/folder_of('pg-1900', r.length,
                                                   r.variant, level.get(r.variant))/f'exp_1/{r.doc_id}.txt', r.text)
    gold = all_u[all_u.variant == 'gold'].sort_values('meta_order')
    for length in ('1000', '2000', '3000', 'full'):
        put(data/'sub_sample'/('gold_full_meta_20.json' if length == 'full' else f'gold_sanity_meta_{length}.json'),
            meta(gold[gold.length == length], False))
    about = {}
    for r in u.itertuples():
        folder = data/'sub_sample'/folder_of('sanity', r.length, r.variant, r.level)
        put(folder/f'PG-{r.doc_id[3:]}.txt' if r.variant == 'gold' else folder/f'exp_{r.exp}/{r.doc_id}.txt', r.text)
        if not r.params: continue
        params = json.loads(r.params)
        entry = dict(gold_id=r.doc_id, random_seed=params.pop('seed'),
                     manipulation_type=params.pop('type'), manipulated_char_spans=[[0, 1]] * r.n_ops)
        if 'donor' in params: params['text_to_insert'] = params.pop('donor')
        if 'n_donors' in params: params['texts_to_insert'] = ['text'] * params.pop('n_donors')
        about.setdefault(folder/f'exp_{r.exp}_meta.json', []).append(entry | dict(params=params | dict(unused=None)))
    for path, entries in about.items(): put(path, json.dumps(entries))
