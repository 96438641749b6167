"""Experiment offline_judges on made-up recordings and texts whose every effect size can be worked out by hand; and
scores that are kept in a file."""
import json
import math

import pandas as pd
import pytest

import recordings
from command import factlib_inside
from factlib.core.records import Absence, BadInput, Example
from factlib.evaluators.base import Evaluator
from factlib.metaeval.pairwise import across_lengths
from factlib.runs.judging import precompute, load_precomputed
from factlib.papers.judgememo.recordings import recorded_documents
from factlib.report.tables import read_table

FAULTY = 'qzxv' # no word of the background
# so many faulty words in the documents a, b and c
FAULTS = {'43': (1, 2, 3), '41': (2, 4, 6), '42': (2, 3, 4), '24': (1, 3, 5), '17': (3, 2, 1), '32': (1, 1, 4)}
MARKS = dict(zip(['gold', *FAULTS], 'abcdefg'))
WHOLE = FAULTS | {'41': (4, 6, 8)}

def text(paragraphs, faulty, mark):
    """Paragraphs of 50 words that the background knows, the first of them replaced by words of which each fault has its
    own."""
    words = ('the old house on the hill was dark and the men went to the river in the evening '*50).split()[
        :50*paragraphs]
    words[:faulty] = [FAULTY + mark]*faulty
    return '\n\n'.join(' '.join(words[i:i + 50]) for i in range(0, len(words), 50))

class Faulty(Evaluator):
    "Minus the number of faulty words, under the name of surprisal."
    name, signature = 'surprisal', 'made up|v:1'
    def __init__(self): self.calls = 0
    async def judge(self, example):
        self.calls += 1
        if example.target == 'no server': return self.absent(example, Absence.transport)
        return self.absent(example, Absence.too_long) if example.target == 'long' else self.judgement(
            example, -example.target.count(FAULTY))

@pytest.fixture(scope='module')
def home(tmp_path_factory):
    """Three documents at two lengths, and one model that lowers its score by 1, 2 and 1 for every fault; a fourth
    document is recorded but was not among JudgeMemo's."""
    rows = [('LI', length, v, d, 4 - fall, 4 - fall) for length in ('2000', 'full')
            for v in ('gold', *FAULTS) for d, fall in zip('abc', (0, 0, 0) if v == 'gold' else (1, 2, 1))]
    home = recordings.write(tmp_path_factory.mktemp('recorded'), vanilla=rows, judgememo=rows)
    texts = [dict(doc_id=d, meta_order=i, in_jm30=d != 'z', length=length,
                  variant=v, text=text(paragraphs, k[i], MARKS[v]))
             for length, paragraphs, faults in (('2000', 4, FAULTS), ('full', 8, WHOLE))
             for v, k in {'gold': (0, 0, 0), **faults}.items() for i, d in enumerate('abc')]
    pd.DataFrame([*texts, *[r | dict(doc_id='z', in_jm30=False) for r in texts if r['doc_id'] == 'a']]).to_parquet(
        home/'judgememo'/'documents.parquet')
    return home

@pytest.fixture(scope='module')
def done(home, tmp_path_factory):
    "The experiment, with a file of scores for all texts of 2,000 tokens, from the command line."
    here = tmp_path_factory.mktemp('experiment')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('FACTLIB_DATA', str(home))
        assert precompute(Faulty(), [e for e in recorded_documents(3) if e.variant in ('gold', '41')],
                          here/'kept.jsonl', say=lambda line: None) == 0
    ran = factlib_inside('run', 'offline_against_recorded', '--no-page',
                         '--out', here/'out', '-p', 'n', 3, '-p', 'tagger',
                         False, '-p', 'embeddings', False, '-p', 'surprisal', here/'kept.jsonl', cwd=here, data=home)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return here/'out'

def test_effect_sizes_by_hand(done):
    """Of 200 words 2, 4 and 6 become unknown: deltas -0.01, -0.02 and -0.03, d_z -2. The model's are -1, -2 and -1:
    mean -4/3, sd the root of 1/3."""
    tests = read_table(done/'tables'/'tests.csv').astype({'variant': str}).set_index(['evaluator', 'variant'])
    row = tests.loc[('out_of_vocabulary', '41')]
    assert row['mean'] == pytest.approx(-.02) and row.effect == pytest.approx(-2)
    assert row.t == pytest.approx(-2*math.sqrt(3)) and row.scored == 3
    for judge in ('LI, single prompt', 'LI, JudgeMemo'):
        assert tests.effect[judge, '41'] == pytest.approx(-4/3*math.sqrt(3))
    assert tests.effect['surprisal', '41'] == pytest.approx(-2) and ('surprisal', '43') not in tests.index
    assert tests.effect['out_of_vocabulary', '17'] == pytest.approx(-2) # 3, 2 and 1
    assert math.isnan(tests.effect['length', '41']) # as many words as before: no spread

def test_a_contest_by_hand(done):
    contests = read_table(done/'tables'/'contests.csv').astype({'variant': str}).set_index(
        ['against', 'judge', 'variant'])
    row = contests.loc[('LI, single prompt', 'out_of_vocabulary', '41')]
    assert row.difference == pytest.approx(-2 + 4/math.sqrt(3)) and (row.n, row.asked) == (3, 3)
    assert ('LI, single prompt', 'surprisal', '41') in contests.index # it has all of the documents

def test_two_lengths_by_hand(done):
    """Of 400 words 4, 6 and 8: deltas -0.01, -0.015 and -0.02; the differences are 0, -0.005 and -0.01. The model's
    score falls alike."""
    lengths = read_table(done/'tables'/'lengths.csv').astype({'variant': str}).set_index(['evaluator', 'variant'])
    row = lengths.loc[('out_of_vocabulary', '41')]
    assert row['mean'] == pytest.approx(-.005) and row.effect == pytest.approx(-1) and row.dz_short == pytest.approx(-2)
    assert row.dz_long == pytest.approx(-3) and row.scored == 3
    assert lengths['mean']['LI, single prompt', '41'] == 0
    assert lengths.dz_long['LI, single prompt', '41'] == pytest.approx(-4/3*math.sqrt(3))
    assert not {'surprisal', 'combination'} & set(lengths.index.get_level_values(0))

def test_what_the_experiment_says(done):
    result = json.loads((done/'result.json').read_text())
    said = ' '.join(f['text'] for f in result['findings'])
    assert 'nan' not in said and 'Surprisal, so far: [41] typos d_z -2.0 [-4.1, 0.1] on 3 documents.' in said
    assert 'Eq 5.3 on 3 documents: corrected' in said and 'tests of offline evaluators' in said
    counts = {name: (e['asked'], e['scored']) for name, e in result['evaluators'].items()}
    assert counts['out_of_vocabulary'] == counts['out_of_vocabulary, whole texts'] == (21, 21)
    assert counts['surprisal'] == (6, 6) and 'tense' not in counts
    notebook = json.loads((done/'notebook.ipynb').read_text())
    assert 'scores of 6 texts of 3 documents' in json.dumps(notebook)

# Scores kept in a file

def example(i, target): return Example(f'{i}', target=target, group=f'g{i}', variant='gold', level='2000')

def test_an_interrupted_run_goes_on(tmp_path):
    path, judge, examples = tmp_path/'new'/'kept.jsonl', Faulty(), [example(0, FAULTY), example(1, 'no server'),
                                                                    example(2, 'long'), example(3, 'two words')]
    lines = []
    # the first one always is
    assert precompute(judge, examples, path, seconds=0, say=lines.append) == 3 and judge.calls == 1 and len(lines) == 1
    # what needs a server that is away is not written
    assert precompute(judge, examples, path, say=lines.append) == 1 and judge.calls == 4
    assert precompute(judge, examples, path, say=lines.append) == 1 and judge.calls == 5 # and tried again
    found = load_precomputed(path, [example('x', 'two words'), *examples])
    assert list(found.group) == ['gx', 'g0', 'g2', 'g3'] and found.value.tolist()[:2] == [0, -1]
    assert math.isnan(found.value[2]) and found.absence[2] == 'too_long'

def test_another_method_does_not_mix(tmp_path):
    path, new = tmp_path/'kept.jsonl', Faulty()
    precompute(Faulty(), [example(0, 'a'), example(1, 'b')], path, say=lambda line: None)
    new.signature = 'made up|v:2'
    assert precompute(new, [example(0, 'a')], path, say=lambda line: None) == 0 and new.calls == 1
    found = load_precomputed(path, [example(0, 'a'), example(1, 'b')])
    assert list(found.group) == ['g0'] and set(found.signature) == {'made up|v:2'}

def test_no_file_and_another_file(tmp_path):
    assert load_precomputed(tmp_path/'none', [example(0, 'a')]).empty
    (tmp_path/'other').write_text('not JSON\n')
    for path in (tmp_path/'other', tmp_path): pytest.raises(BadInput, load_precomputed, path, [])

def test_a_judge_at_one_length_has_no_row():
    rows = [(j, d, v, length, 'fluency', x) for j, lengths in (('both', ('2000', 'full')), ('short', ('2000',)))
            for length in lengths for d, y in zip('ab', (1, 3)) for v, x in (('gold', 4), ('41', y))]
    found = across_lengths(pd.DataFrame(rows, columns=['evaluator', 'group',
                                                       'variant', 'level', 'metric', 'value']).astype({'value': float}))
    assert list(found.evaluator) == ['both'] and found['mean'][0] == 0 and found.note[0] # no spread, and it says so
