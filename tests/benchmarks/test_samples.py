"The sample stories, the quick sweep, and benchmarks by name or from a file."
import json, subprocess, sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import factlib.benchmarks.samples as samples
from factlib.benchmarks.base import BENCHMARKS, Benchmark, load, sample_groups
from factlib.benchmarks.base import sample_groups
from factlib.benchmarks.samples import background_text, quick_sweep, stories
from factlib.core.records import BadInput, Example
from factlib.text.spans import paragraphs, sentences
from factlib.perturb.quality import manipulate

TITLES = ['A Scandal in Bohemia', 'The Red-Headed League', 'A Case of Identity',
          'The Boscombe Valley Mystery', 'The Five Orange Pips', 'The Man with the Twisted Lip',
          'The Adventure of the Blue Carbuncle', 'The Adventure of the Speckled Band',
          "The Adventure of the Engineer's Thumb", 'The Adventure of the Noble Bachelor',
          'The Adventure of the Beryl Coronet', 'The Adventure of the Copper Beeches']

# ---- stories

def test_the_twelve_stories():
    assert [s.title for s in stories()] == TITLES
    assert [s.id for s in stories()] == [f'holmes-{i:02}' for i in range(1, 13)]
    for s in stories():
        assert s.text == s.text.strip() and 6900 < len(s.text.split()) < 11_000
        assert 'ADVENTURE' not in s.text and 'Gutenberg' not in s.text and '***' not in s.text
        assert s.text in samples.big_text() # as it stands in the file
    # first and last words, as in the printed book
    ends = {1: ('I.\n\n\nTo Sherlock Holmes', 'the honourable title of the woman.'),
            2: ('I had called upon my friend', "Gustave Flaubert wrote to George Sand.\""),
            7: ('I had called upon my friend Sherlock', 'a bird will be the chief feature."'),
            12: ('"To the man who loves art', 'met with considerable success.')}
    for i, (first, last) in ends.items():
        assert stories()[i - 1].text.startswith(first) and stories()[i - 1].text.endswith(last), i

def test_all_of_the_book_is_in_the_stories():
    book = samples._books()['THE ADVENTURES OF SHERLOCK HOLMES']
    rest = book[book.index('ADVENTURE  I.'):]
    for s in stories(): rest = rest.replace(s.text, '')
    # nothing but headings
    assert len(rest.splitlines()) < 60
    assert all(line == '' or line.isupper() for line in map(str.strip, rest.splitlines()))

def test_background_is_another_book():
    background = background_text()
    assert 900_000 < len(background.split()) < 1_000_000
    assert not any(word in background for word in ('Sherlock', 'Gutenberg EBook', 'Small Print', 'eBook'))
    long = [p.of(s.text) for s in stories() for p in paragraphs(s.text) if p.end - p.start > 60]
    there = ' '.join(background.split())
    assert len(long) > 1000 and not any(p in there for p in long[::7])

@pytest.fixture
def no_cache():
    for f in (samples.big_text, samples._books, samples._stories): f.cache_clear()
    yield
    for f in (samples.big_text, samples._books, samples._stories): f.cache_clear()

def test_without_the_package(monkeypatch, no_cache):
    monkeypatch.setattr(samples.importlib.util, 'find_spec', lambda name: None)
    with pytest.raises(BadInput, match=r"pip install 'factlib\[notebooks\]'"): stories()

def test_another_file(monkeypatch, no_cache, tmp_path):
    (tmp_path/'big.txt').write_text('Another book.')
    monkeypatch.setattr(samples.importlib.util, 'find_spec',
                        lambda name: type('Spec', (), dict(origin=str(tmp_path/'__init__.py'))))
    with pytest.raises(BadInput, match='not the file'): stories()

# ---- the sweep

@pytest.fixture(scope='module')
def sweep(): return quick_sweep()[0]

def test_sweep_is_complete(sweep):
    assert len(sweep) == 12 * 2 * 4 and len({e.id for e in sweep}) == 96 and quick_sweep(n=1)[1] == []
    for e in sweep:
        assert e.id == f'{e.group}/{e.level}/{e.variant}'
        assert e.truth == ('gold' if e.variant == 'gold' else 'manipulated')
        assert e.meta['tokens'] == len(e.target.split()) and e.meta['title'] in TITLES
    assert [e.id for e in sweep[:8]] == [f'holmes-01/{level}/{variant}'
                                         for level in ('2000', 'full') for variant in ('gold', '17', '24', '41')]

def test_gold_is_the_story(sweep):
    gold = {(e.group, e.level): e.target for e in sweep if e.variant == 'gold'}
    for s in stories():
        assert gold[s.id, 'full'] == s.text and s.text.startswith(gold[s.id, '2000'])
        assert 1800 < len(gold[s.id, '2000'].split()) <= 2000
        # one sentence more would be too many
        following = sentences(s.text[len(gold[s.id, '2000']):])[0].of(s.text[len(gold[s.id, '2000']):])
        assert len(gold[s.id, '2000'].split()) + len(following.split()) > 2000

# By hand from Eq 3.23 and the rounded token counts: about 2,000 tokens give 4, 3 and 40; 8,525 give round(10.525),
# round(9.525) and round(170.5)
def test_sweep_by_the_paper(sweep):
    edits = {e.id: e.meta['edits'] for e in sweep}
    assert [edits[f'holmes-01/full/{k}'] for k in ('gold', '17', '24', '41')] == [0, 11, 10, 170]
    for s in stories():
        assert [edits[f'{s.id}/2000/{k}'] for k in ('17', '24')] == [4, 3] and 36 <= edits[f'{s.id}/2000/41'] <= 40
    equal = {e.id: e.meta['edits'] for e in quick_sweep(n=1, mode='equal_density')[0]}
    # 2 x 8.525 = 17.05, 1.5 x 8.525 = 12.79
    assert [equal[f'holmes-01/full/{k}'] for k in ('17', '24', '41')] == [17, 13, 170]

def test_donors_are_the_other_stories(sweep):
    target = {e.id: e.target for e in sweep}
    for s in stories():
        own = {p.of(s.text) for p in paragraphs(s.text)}
        foreign = [p.of(target[f'{s.id}/2000/17']) for p in paragraphs(target[f'{s.id}/2000/17'])
                   if p.of(target[f'{s.id}/2000/17']) not in own]
        others = {p.of(target[f'{o.id}/2000/gold']) for o in stories()
                  if o.id != s.id for p in paragraphs(target[f'{o.id}/2000/gold'])}
        # the cut may fall inside a paragraph, whose beginning is then no paragraph of the whole story
        assert 4 <= len(foreign) <= 5 and len([p for p in foreign if p in others]) == 4

def test_nothing_depends_on_the_rest(sweep):
    whole = {e.id: e for e in sweep}
    for e in quick_sweep(n=2)[0] + quick_sweep(n=1, lengths=(None,))[0] + quick_sweep(n=3, kinds=('41', '17'))[0]:
        assert whole[e.id] == e
    assert any(whole[e.id] != e for e in quick_sweep(n=1, seed=1)[0] if e.variant != 'gold')
    assert quick_sweep(n=1, seed='1')[0] == quick_sweep(n=1, seed=1)[0]

def test_refused_manipulations_are_reported():
    examples, refused = quick_sweep(n=12, lengths=(150,))
    assert len(examples) + len(refused) == 12 * 4 and refused
    assert all(r.id.split('/')[1] == '150' and r.reason for r in refused)
    assert {e.id for e in examples}.isdisjoint(r.id for r in refused)
    b = load('holmes', lengths=(150,))
    assert list(b.refused) == refused and b.examples == examples

@pytest.mark.parametrize('call, says', [(dict(n=0), '1 to 12'), (dict(n=13), '1 to 12'), (dict(n=True), '1 to 12'),
                                        (dict(n=2.5), '1 to 12'), (dict(kinds=('99',)), "'99'"),
                                        (dict(lengths=(0,)), 'length'), (dict(lengths=('2000',)), 'length'),
                                        (dict(lengths=(3,)), 'first sentence'), (dict(mode='x'), "'x'"),
                                        (dict(kinds='17'), 'tuple'), (dict(kinds=('41', '41')), 'different'),
                                        (dict(kinds=()), 'tuple'), (dict(lengths=2000), 'tuple')])
def test_bad_sweeps(call, says):
    with pytest.raises(BadInput) as e: quick_sweep(**(dict(n=1) | call))
    assert says in str(e.value)

# ---- benchmarks

def test_holmes_by_name(sweep):
    b = load('holmes')
    assert isinstance(b, Benchmark) and b.examples == sweep == list(b) and len(b) == 96 and b.truth_kind == 'label'
    assert 'public domain' in b.card and b.refused == ()
    for seed in range(3):
        drawn = load('holmes', n=3, seed=seed)
        assert list(drawn) == sample_groups(load('holmes', seed=seed).examples, 3, seed) and len(drawn) == 24
        assert all(r.id.split('/')[0] in {e.group for e in drawn}
                   for r in load('holmes', n=3, seed=seed, lengths=(150,)).refused)
    assert len({frozenset(e.group for e in load('holmes', n=3, seed=seed)) for seed in range(3)}) > 1
    assert len(load('holmes', n=1, kinds=('41',), lengths=(None,))) == 2
    with pytest.raises(BadInput, match='no splits'): load('holmes', split='test')
    with pytest.raises(BadInput, match="no 'length'"): load('holmes', length=3)

def test_unknown_names_and_own_loaders(monkeypatch):
    with pytest.raises(BadInput, match='holmes'): load('homes')
    monkeypatch.setitem(BENCHMARKS, 'mine',
                        lambda split, n, seed: Benchmark('mine', [Example('a', target='x')], 'none', 'Mine.'))
    assert load('mine').name == 'mine'

def test_importing_the_package_imports_no_benchmark():
    code = ('import sys; from factlib.benchmarks import BENCHMARKS, load; print([m for m in '
            '("factlib.benchmarks.samples", "numpy", "pandas") if m in sys.modules])')
    out = subprocess.run([sys.executable, '-c', code], capture_output=True,
                         text=True, check=True, cwd=Path(__file__).resolve().parents[2]).stdout
    assert out == '[]\n'
    for room in ('benchmarks.samples', 'perturb.quality', 'evaluators.base', 'evaluators.controls'):
        code = (f'import sys, factlib.{room}; print([m for m in ("pandas", "scipy", "tqdm", "spacy") if m in '
                f'sys.modules])')
        assert subprocess.run([sys.executable, '-c', code], capture_output=True,
                              text=True, check=True, cwd=Path(__file__).resolve().parents[2]).stdout == '[]\n', room

ROWS = [dict(id='007', target='The fox ran.', truth=1.5, group='g', split='test', reference='A fox ran.'),
        dict(id='008', target='NA', truth=2, group='g', split='test'), dict(id='009', target='Hen.', split='dev')]
EXAMPLES = [Example.from_dict({k: v for k, v in r.items() if k != 'split'}) for r in ROWS]

def written(folder, ending):
    path = folder/f'mine.{ending}'
    if ending == 'jsonl': path.write_text('\n'.join(map(json.dumps, ROWS)) + '\n\n', encoding='utf-8')
    if ending == 'csv': pd.DataFrame(ROWS).to_csv(path, index=False)
    if ending == 'parquet': pd.DataFrame(ROWS).to_parquet(path)
    return path

@pytest.mark.parametrize('ending', ['jsonl', 'csv', 'parquet'])
def test_files(tmp_path, ending):
    path = written(tmp_path, ending)
    b = load(path)
    assert b.examples == EXAMPLES and b.name == 'mine' and b.truth_kind == 'score'
    assert load(str(path), split='test').examples == EXAMPLES[:2]
    assert len(load(path, n=1)) in (1, 2)
    with pytest.raises(BadInput, match="no split 'train'; it has dev, test"): load(path, split='train')
    with pytest.raises(BadInput, match="no option 'mode'"): load(path, mode='paper')
    with pytest.raises(BadInput, match='number of groups'): load(path, n=0)

@pytest.mark.parametrize('name, content, says',
                         [('a.txt', 'x', '.jsonl, .json, .csv, .parquet'), ('a.jsonl', '{"id": 1', 'is no JSON'),
                          ('a.jsonl', '[1]', 'JSON object'), ('a.jsonl', '', 'no examples'),
('a.jsonl', '{"id": "a", "text": "x"}', "'text'"), ('a.jsonl', '{"id": "a"}', "target"),
                          ('a.csv', 'id,text\n1,x\n', "'target'"), ('a.csv', 'id,target\n', 'no examples'),
                          ('a.csv', '', 'no examples'),
('a.parquet', 'x', 'not a readable parquet file'),
                          ('a.jsonl', '{"id": "a", "target": "x"}\n{"id": "a", "target": "y"}', "'a'")])
def test_bad_files(tmp_path, name, content, says):
    (tmp_path/name).write_text(content)
    with pytest.raises(BadInput) as e: load(tmp_path/name)
    assert says in str(e.value)

def test_line_separators_of_unicode_end_no_row(tmp_path):
    told = 'One.\u2028Two.\u2029Three.\x85Four.'
    (tmp_path/'a.jsonl').write_bytes(('{"id": "a", "target": "%s"}\r\n{"id": "b", "target": "x"}' % told).encode())
    assert [e.target for e in load(tmp_path/'a.jsonl')] == [told, 'x']
    (tmp_path/'b.jsonl').write_text('['*100_000)
    with pytest.raises(BadInput, match='is no JSON'): load(tmp_path/'b.jsonl')

def test_nested_fields_survive_parquet(tmp_path):
    items = [Example('a', target='x', history=('one', 'two'), meta=dict(turn=2)),
             Example('b', target='y', history=('three',), meta=dict(turn=3))]
    frame = Example.to_frame(items)
    frame.to_parquet(tmp_path/'a.parquet')
    assert load(tmp_path/'a.parquet').examples == items

def test_labels_are_labels(tmp_path):
    (tmp_path/'a.csv').write_text('id,target,truth\n1,x,yes\n2,y,no\n')
    b = load(tmp_path/'a.csv')
    assert b.truth_kind == 'label' and [e.truth for e in b] == ['yes', 'no'] and [e.id for e in b] == ['1', '2']

@given(groups=st.lists(st.sampled_from('abcdefgh'), min_size=1, max_size=30),
       n=st.integers(1, 9), seed=st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_whole_groups_are_drawn(groups, n, seed):
    items = [Example(str(i), target='x', group=g) for i, g in enumerate(groups)]
    drawn = sample_groups(items, n, seed)
    kept = {e.group for e in drawn}
    assert len(kept) == min(n, len(set(groups))) and drawn == [e for e in items if e.group in kept]
    assert {e.group for e in sample_groups(items[::-1], n + 1, seed)} >= kept

def test_seeds_draw_different_groups():
    items = [Example(g, target='x') for g in 'abcdefgh']
    assert len({tuple(e.id for e in sample_groups(items, 3, seed)) for seed in range(12)}) > 6

def test_ones_own_texts(tmp_path):
    with pytest.raises(BadInput, match='There is no file or folder'): samples.texts_in(tmp_path/'none')
    (tmp_path/'a.txt').write_bytes(b'\xff\xfe\x00')
    with pytest.raises(BadInput, match='save it as UTF-8'): samples.texts_in(tmp_path)
    (tmp_path/'a.txt').write_text('One short text.')
    examples, refused = quick_sweep(texts=samples.texts_in(tmp_path), kinds=('17',))
    assert [e.variant for e in examples] == ['gold', 'gold'] and all('no other text' in r.reason for r in refused)
    assert len(refused) == 2
    with pytest.raises(BadInput, match='number of texts must be a whole number from 1 to 1'):
        quick_sweep(2, texts=samples.texts_in(tmp_path))
