"Rated sets: files of the published form written by hand, damaged ones, and the real ones against what their cards say."
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from factlib.benchmarks.base import BENCHMARKS, load
from factlib.benchmarks.rated import rater_table
from factlib.benchmarks.rated_pairs import hanna_recorded, llmbar_recorded, ttcw_recorded
from factlib.core.records import BadInput
from factlib.validity.agreement import alpha
from factlib.validity.association import kendall, pearson, spearman
from factlib.validity.detection import balanced_accuracy

DATA = os.environ.get('FACTLIB_DATA', '')
NAMES = ['squality', 'ttcw', 'metasyn', 'booookscore', 'factscore_labels', 'hanna', 'llmbar']
real = pytest.mark.skipif(not DATA, reason='FACTLIB_DATA is not set')

def squality_files():
    review = lambda who, x: {'worker_id': who, 'correctness-rating': x,
                             'selection-rating': x - 10, 'overall-rating': x + 10.5, 'annotations': [], 'system': 's'}
    answers = {'bart': {'response': 'The fox fox.', 'reviews': [review('2', 10), review('3', 30)]},
               'human': {'response': 'The fox ate the hen.', 'reviews': [review('2', 80), review('6', 60)]}}
    rated = {'passage-id': '7', 'questions': {'0': answers, '1': {'bart': answers['bart']}}}
    references = [dict(response_text=text, worker_id='9', uid='u')
                  for text in ('The fox ate the hen. ', 'A hen was eaten.', 'The hen is gone.')]
    story = dict(metadata=dict(passage_id='7', uid='x', license='free'), document='A fox came. It ate the hen.',
                 questions=[dict(question_text='What happened?', question_number=1, responses=references)])
    return {'all-responses.jsonl': [rated], 'test.jsonl': [story]}

def ttcw_files():
    stories = [dict(story_idx=0, story_id=f'0_{who}', story_name='Fox', plot='A fox.', content=text)
               for who, text in (('NewYorker', 'https://a.example/fox'), ('GPT4', 'A fox ran.'))]
    said = {'0_NewYorker': ('Yes', 'Yes', 'No'), '0_GPT4': ('No', 'Yes', 'No')}
    verdicts = [dict(story_idx=0, story_id=s, expert_idx=i, ttcw_idx=2, category='C',
                     binary_verdict=v, explanation='so') for s, own in said.items() for i, v in enumerate(own)]
    tests = [dict(ttcw_idx=2, torrance_dimension='Fluency', category='C',
                  question='Does it cohere?', full_prompt='...')]
    replies = [dict(id='story_0_GPT4_test2', response='Yes, it does.')]
    return {'ttcw_annotations.json': verdicts, 'ttcw_short_stories.json': stories,
            'ttcw_all_tests.json': tests, 'annotations_gpt4.jsonl': replies,
            'annotations_cgpt.jsonl': [dict(id='story_0_NewYorker_test2', response='Content Blocked')]}

def metasyn_files():
    rated = lambda *ratings: {f'annotator_{i:02}': dict(rating=r, rating_num=None, comment='')
                              for i, r in enumerate(ratings)}
    task = lambda pair, dimension, *ratings: dict(task_id=f'7_{pair}_{dimension}',
                                                  paper_id='7', pair_id=pair, dimension_id=dimension,
                                                  paper_title='On foxes', human_annotations=rated(*ratings))
    tasks = [task('x_vs_y', 'insights', 'A2', 'tie', 'skip'), task('x_vs_z', 'insights', 'A1', 'B1'),
             task('x_vs_y', 'structure', 'B2'), task('y_vs_z', 'insights', 'B1')]
    row = lambda pair, one, two: dict(dataset='ma', id=pair, instruction='...',
                                      responses=[dict(model=m,
                                                      content=f'# AutoMeta {m}\n**Model:** gpt | **Retrieval:** '
                                                              f'bm25\n\nOf {m}.') for m in (one, two)],
                                      meta=dict(paper_id='7', pair_id=pair))
    return {'human_annotation_data.json': dict(per_task_annotations={t['task_id']: t for t in tasks}),
            'ma.jsonl': [row('x_vs_y', 'x', 'y'), row('x_vs_z', 'x', 'z')]}

def booookscore_files():
    mark = lambda agreement, **anno: dict(source='human', anno=anno, agreement=agreement,
                                          reasons=None, explanation=None)
    marks = [mark('Agree', span='ran', questions='Why?'), mark('Partially agree', span='fox', questions='Who?'),
             mark("Don't agree", span_a='A', span_b='far', shared_questions='How?', shared_labels=['x'])]
    return {'annotations-gpt4-4096-inc.json': {'fox.epub': dict(summary='A fox ran far', annotations=marks),
                                               'hen.epub': dict(summary='A hen.', annotations=[])}}

def factscore_files():
    sentence = lambda *labels: {'text': 'x', 'is-relevant': bool(labels),
                                'model-atomic-facts': None,
                                'human-atomic-facts': [dict(text=f'Fact {i}.', label=s) for i, s in enumerate(labels)]
                                if labels else None}
    row = lambda topic, *sentences: dict(input=f'Tell me of {topic}.', output='Words.' if sentences else 'I cannot.',
                                         topic=topic, cat=['rare', 'Asia'], annotations=list(sentences) or None)
    return {f'{m}.jsonl': [row('Ann', sentence('S', 'S', 'NS', 'IR'), sentence()),
                           row('Bob'), row('Cid', sentence('IR'))] for m in ('ChatGPT', 'InstructGPT', 'PerplexityAI')}

def hanna_files():
    columns = {'Model': ['Human', 'GPT'], 'Human 1 CH': [[5, 4], [1, 2]], 'Human 2 CH': [[5, 4], [2, 2]],
               'Human 3 CH': [[5, 1], [3, 2]], 'BLEU': [[100.0, 1], [.5, .25]], 'ChatGPT CH 1': [[4.5, -1], [3, 2]]}
    lines = [list(columns)] + [[own[i] if isinstance(own[i], str) else json.dumps(own[i]) for own in columns.values()]
                               for i in (0, 1)]
    return {'hanna_metric_scores_llm.csv': '\n'.join(','.join(f'"{x}"' for x in line) for line in lines) + '\n'}

def llmbar_files():
    rows = [dict(input='Sum up.', output_1='Short.', output_2='A long one.', label=1),
            dict(input='Say no.', output_1='Yes.', output_2='No.', label=2)]
    judged = [row | dict(results=[{'swap = False': dict(completion=[], winner='1'),
                                   'swap = True': dict(completion=[], winner=last)}])
              for row, last in zip(rows, ('2', None))]
    sets = ('Natural', 'Adversarial/GPTInst', 'Adversarial/GPTOut', 'Adversarial/Manual', 'Adversarial/Neighbor')
    return {f'{name}/dataset.json': rows for name in sets} | {'Natural/evaluators/GPT-4/Vanilla/result.json': judged}

FILES = dict(squality=squality_files, ttcw=ttcw_files, metasyn=metasyn_files,
             booookscore=booookscore_files, factscore_labels=factscore_files, hanna=hanna_files, llmbar=llmbar_files)

@pytest.fixture
def home(tmp_path, monkeypatch):
    "A data folder with a small file of each published form."
    for name, files in FILES.items():
        for file, content in files().items():
            path = tmp_path/name/file
            path.parent.mkdir(parents=True, exist_ok=True)
            if file.endswith('.jsonl'): content = '\n'.join(map(json.dumps, content))
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding='utf-8')
    monkeypatch.setenv('FACTLIB_DATA', str(tmp_path))
    return tmp_path

def test_they_are_registered_and_say_what_they_need(home):
    assert set(NAMES) <= set(BENCHMARKS)
    assert all((home/file).is_file() for name in NAMES for file in BENCHMARKS[name].needs)
    for name in NAMES:
        b = load(name)
        assert b.examples and 'Warnings' in b.card and len({e.id for e in b}) == len(b)
        assert len(load(name, n=1)) <= len(b)

def test_small_squality(home):
    b = load('squality')
    assert {e.id: e.truth for e in b} == {'7/0/bart': 30.5, '7/0/human': 80.5} # means of 20.5, 40.5 and of 90.5, 70.5
    assert [r.id for r in b.refused] == ['7/1/bart'] and {e.reference for e in b} == {'A hen was eaten.'}
    assert b.examples[0].meta['raters'] == {'2': 20.5, '3': 40.5, '6': None} and b.examples[0].group == '7'
    assert [e.truth for e in load('squality', ask='selection', systems=('bart',))] == [10]

def test_small_ttcw(home):
    b = load('ttcw')
    assert {e.id: (e.truth, bool(e.target)) for e in b} == {'0_NewYorker/2': ('yes', False), '0_GPT4/2': ('no', True)}
    assert [e.truth for e in load('ttcw', truth='share')] == pytest.approx([2/3, 1/3])
    assert {e.group for e in b} == {'plot-00'}
    said = ttcw_recorded(b.examples)[['evaluator', 'example_id', 'value', 'absence']].values.tolist()
    assert said == [['cgpt', '0_NewYorker/2', None, 'filtered'], ['cgpt', '0_GPT4/2', None, 'inapplicable'],
                    ['gpt4', '0_NewYorker/2', None, 'inapplicable'], ['gpt4', '0_GPT4/2', 1.0, None]]

def test_small_metasyn(home):
    b = load('metasyn')
    # 0 and 2 are below 2; 1 and 3 are a tie
    assert [(e.meta['pair'], e.variant, e.truth) for e in b] == [('7_x_vs_y_insights', 'A', 'better'),
                                                                 ('7_x_vs_y_insights', 'B', 'worse'),
                                                                 ('7_x_vs_z_insights', 'A', None),
                                                                 ('7_x_vs_z_insights', 'B', None)]
    assert b.refused[0].id == '7_y_vs_z_insights' and {e.target for e in b} == {'Of x.', 'Of y.', 'Of z.'}
    assert [e.truth for e in load('metasyn', dimension='structure')] == ['worse', 'better'] and len(rater_table(b)) == 2

def test_small_booookscore(home):
    # "ran" of thirteen characters
    assert {e.id: e.truth for e in load('booookscore')} == {'fox.epub': 1 - 3/13, 'hen.epub': 1.}
    marks = load('booookscore', unit='mark')
    assert [(e.target, e.question, e.truth) for e in marks] == [('ran', 'Why?', 'agree'), ('fox', 'Who?', 'agree'),
                                                                ('A\n\nfar', 'How?', 'disagree')]

def test_small_factscore(home):
    b = load('factscore_labels')
    assert [e.truth for e in b][:3] == [2/3, None, None] and [e.meta['answered'] for e in b][:3] == [True, False, True]
    assert b.examples[0].meta['IR'] == 1
    assert Counter(e.truth for e in load('factscore_labels', unit='fact')) == {'supported': 6,
                                                                               'unsupported': 3, None: 6}

def test_small_hanna(home):
    b = load('hanna')
    assert {e.id: e.truth for e in b} == {'Human/0': 5, 'Human/1': 3, 'GPT/0': 2, 'GPT/1': 2}
    assert [e.meta['story'] for e in b] == [0, 1, 2, 3]
    said = hanna_recorded(b.examples)
    assert said.value.tolist() == [100, 1, .5, .25, 4.5, None, 3, 2] and list(said.absence.dropna()) == ['off_menu']

def test_small_llmbar(home):
    b = load('llmbar', split='Natural')
    assert [(e.id, e.truth) for e in b] == [('Natural/0/1', 'better'), ('Natural/0/2', 'worse'),
                                            ('Natural/1/1', 'worse'), ('Natural/1/2', 'better')]
    said = llmbar_recorded(b.examples)
    assert said.value.tolist() == [.5, .5, 1, 0]
    assert said.swapped_absence.tolist() == [None, None, 'malformed', 'malformed']

BROKEN = ['', '{', 'null', '[]', '{}', '[{"id": 1}]', '{"a": {"summary": 1, "annotations": []}}',
          '[NaN]', '['*100_000, '"text"', 'Model\n', '\0', 'Model,Human 1 CH\nGPT,7\n']

@pytest.mark.parametrize('name', NAMES)
def test_damaged_files_are_one_sentence(home, name):
    for file in BENCHMARKS[name].needs:
        whole = (home/file).read_bytes()
        for text in [*BROKEN, whole[:len(whole)//2].decode('utf-8', 'ignore')]:
            (home/file).write_text(text)
            try: made = load(name)
            except BadInput as e: assert len(str(e)) < 400 and '\n' not in str(e)
            else: assert made.examples # an empty set of tests, or so, that leaves something
        for content in (b'\xff\xfe\x00', b'\x80'):
            (home/file).write_bytes(content)
            with pytest.raises(BadInput): load(name)
        (home/file).unlink()
        with pytest.raises(BadInput, match='bring it with .factlib fetch'): load(name)
        (home/file).write_bytes(whole)

def test_values_out_of_scale_and_twice(home):
    def change(name, old, new):
        path = home/name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
    change('squality/all-responses.jsonl', '20.5', '120.5')
    with pytest.raises(BadInput, match='outside its scale'): load('squality')
    change('ttcw/ttcw_annotations.json', '"expert_idx": 1', '"expert_idx": 0')
    with pytest.raises(BadInput, match='two verdicts of expert_00'): load('ttcw')
    change('llmbar/Natural/dataset.json', '"label": 1', '"label": 0')
    with pytest.raises(BadInput, match='the label is 0'): load('llmbar')
    change('llmbar/Natural/evaluators/GPT-4/Vanilla/result.json', '"winner": "2"', '"winner": "b"')
    with pytest.raises(BadInput, match="the winner is 'b'"): llmbar_recorded(_natural())
    change('factscore_labels/ChatGPT.jsonl', '"S"', '"X"')
    with pytest.raises(BadInput, match="unknown label 'X'"): load('factscore_labels')
    change('metasyn/human_annotation_data.json', '"A2"', '"A3"')
    with pytest.raises(BadInput, match="the rating 'A3'"): load('metasyn')
    change('booookscore/annotations-gpt4-4096-inc.json', '"ran"', '"hid"')
    with pytest.raises(BadInput, match='not in the summary'): load('booookscore')

def _natural():
    from factlib.core.records import Example
    return [Example('Natural/0/1', target='x', level='Natural')]

@pytest.mark.parametrize('name', [*NAMES, 'summhay', 'faithbench'])
def test_without_data_and_wrong_options(name, monkeypatch):
    monkeypatch.setenv('FACTLIB_DATA', '')
    with pytest.raises(BadInput, match='set FACTLIB_DATA'): load(name)
    with pytest.raises(BadInput, match='none called'): load(name, split='no such')

def test_a_recorded_row_of_another_text_does_not_count(home):
    path = home/'llmbar'/'Natural'/'evaluators'/'GPT-4'/'Vanilla'/'result.json'
    path.write_text(json.dumps(json.loads(path.read_text())[::-1])) # in another order than the data set
    with pytest.raises(BadInput, match='no recorded judges'): llmbar_recorded(load('llmbar').examples)

# The real files. Numbers are those of the cards, which were computed by others' scripts or printed by the authors.

@real
def test_squality_as_its_card_says():
    b = load('squality')
    assert len(b) == 300 and len({e.group for e in b}) == 20 and not b.refused
    assert all(e.source and e.reference for e in b)
    means = lambda ask: [round(sum(x)/100, 2) for s in ('human', 'bart-dpr', 'bart')
                         for x in [[e.truth for e in load('squality', ask=ask) if e.variant == s]]]
    assert means('overall') == [91.26, 27.91, 18.14] and means('correctness') == [94.11, 45.40, 34.84]
    assert means('selection') == [88.77, 24.26, 15.62]
    people = lambda **options: rater_table(load('squality', **options)).drop(columns='group')
    assert people().notna().sum().to_dict() == dict.fromkeys('2368', 225)
    assert alpha(people().values, 'interval').estimate == pytest.approx(.798, abs=5e-4)
    assert alpha(people(ask='correctness').values, 'interval').estimate == pytest.approx(.459, abs=5e-4)
    machines = dict(systems=('bart', 'bart-dpr'))
    assert alpha(people(**machines).values, 'interval').estimate == pytest.approx(.275, abs=5e-4)
    assert alpha(people(ask='correctness', **machines).values, 'interval').estimate == pytest.approx(-.045, abs=5e-4)
    assert all(len(e.meta['references']) == 2 for e in b) # four, one of which is the person's answer

@real
def test_ttcw_as_its_card_says():
    b = load('ttcw')
    assert len(b) == 672 and sum(bool(e.target) for e in b) == 36*14 and len({e.group for e in b}) == 12
    table = rater_table(b).drop(columns='group')
    assert table.notna().sum().sum() == 2016 and table.sum().sum() == 762 and table.shape[1] == 11
    assert table.expert_09.notna().sum() == 504
    assert round(sum(e.truth == 'yes' for e in b)/672, 3) == .339
    share = lambda who: sum(e.truth for e in load('ttcw', truth='share') if e.variant == who)/168
    assert [round(share(who), 3) for who in ('NewYorker', 'Claude', 'GPT4', 'GPT3.5')] == [.847, .3, .278, .087]
    printed = {'gemini-pro': .46, 'cgpt': .49, 'claudev2': .50, 'claudev21': .52,
               'claudev13': .53, 'gpt4': .54, 'claude3-opus': .58}
    said, truth = ttcw_recorded(b.examples), {e.id: e.truth for e in b}
    for model, own in said.groupby('evaluator'): # as printed: what is missing counts as "no"
        verdicts = ['yes' if v == 1 else 'no' for v in own.value]
        assert round(balanced_accuracy(verdicts, [truth[i] for i in own.example_id], n_resamples=0).estimate,
                     2) == printed[model]
    missing = said[said.value.isna()].groupby('evaluator').absence.value_counts().to_dict()
    assert missing[('gemini-pro', 'filtered')] == 50 and missing[('gemini-pro', 'inapplicable')] == 14
    assert missing[('claudev2', 'malformed')] == 1

@real
def test_metasyn_as_its_card_says():
    b = load('metasyn')
    assert len(b) == 180 and not b.refused
    assert Counter(e.truth for e in b if e.variant == 'A') == {'better': 46, 'worse': 37, None: 7}
    gold = [json.loads(line) for line in (Path(DATA)/'metasyn'/'ma_gt.jsonl').read_text().splitlines()]
    ours = {(e.group, e.meta['pair'].removesuffix('_insights').split('_', 1)[1]): dict(
        better='A', worse='B').get(e.truth, 'tie') for e in b if e.variant == 'A'}
    assert ours == {(f'paper-{g["paper_id"]}', g['pair_id']): dict(A='A', B='B').get(g['preferred'], 'tie')
                    for g in gold}
    expected = dict(insights=.095, structure=-.044, inclusion=.486, exclusion=.420, direction=.912)
    for dimension, value in expected.items():
        assert alpha(rater_table(load('metasyn', dimension=dimension)).drop(columns='group').values,
                     'ordinal').estimate == pytest.approx(value, abs=5e-4)
    assert not any('**Retrieval:**' in e.target or 'AutoMeta Systematic' in e.target for e in b)
    assert len({e.target for e in b}) == 120

@real
def test_booookscore_as_its_card_says():
    books, marks = load('booookscore'), load('booookscore', unit='mark')
    assert len(books) == 88 and sum(e.meta['marks'] for e in books) == 1437
    assert sum(e.meta['by_people'] for e in books) == 768
    assert Counter(e.meta['agreement'] for e in marks) == {'Agree': 858, 'Partially agree': 277, "Don't agree": 302}
    agreed = {who: sum(e.truth == 'agree' for e in marks if e.variant == who)/sum(e.variant == who for e in marks)
              for who in {e.variant for e in marks}}
    assert sorted(round(100*x, 2) for x in agreed.values()) == [78.18, 79.69] and all(0 < e.truth <= 1 for e in books)

@real
def test_factscore_labels_as_their_card_says():
    b = load('factscore_labels')
    assert len(b) == 549 and len({e.group for e in b}) == 183
    counts = {m: tuple(sum(e.meta[label] for e in b if e.variant == m) for label in ('S', 'NS', 'IR'))
              for m in ('ChatGPT', 'InstructGPT', 'PerplexityAI')}
    assert counts == dict(ChatGPT=(3194, 1692, 540), InstructGPT=(2100, 1971, 655), PerplexityAI=(4812, 756, 320))
    truths = {m: [e.truth for e in b if e.variant == m and e.truth is not None] for m in counts}
    assert {m: (round(sum(x)/len(x), 3), len(x))
            for m, x in truths.items()} == dict(ChatGPT=(.623, 157), InstructGPT=(.474, 180), PerplexityAI=(.840, 156))
    assert Counter(e.variant for e in b if not e.meta['answered']) == dict(ChatGPT=26, InstructGPT=1, PerplexityAI=17)
    assert len(load('factscore_labels', unit='fact')) == 16040

@real
def test_hanna_as_its_card_says():
    b = load('hanna', criterion='Relevance')
    assert len(b) == 1056 and sum(len(e.meta['raters']) for e in b) == 3168
    machines = [e for e in b if e.variant != 'Human'] # the notebook's overall figures are without the people's stories
    bleu = hanna_recorded(machines, ('BLEU Ξ§',)).value.astype(float).tolist()
    truth = [e.truth for e in machines]
    assert [round(f(bleu, truth).estimate, 4) for f in (pearson, spearman, kendall)] == [.1124, .1041, .0738]
    averages = {}
    for c in ('Relevance', 'Coherence', 'Empathy', 'Surprise', 'Engagement', 'Complexity'):
        for e in load('hanna', criterion=c): averages.setdefault(e.variant, []).append(e.truth)
    mean = {system: round(sum(x)/len(x), 2) for system, x in averages.items()}
    assert mean['Human'] == 3.76 and max(x for s, x in mean.items() if s != 'Human') == mean['GPT-2 (tag)'] == 2.73
    assert mean['HINT'] == 1.86

@real
def test_llmbar_as_its_card_says():
    b = load('llmbar')
    assert len(b) == 838 and len({e.group for e in b}) == 418
    assert Counter(e.level for e in b if e.truth == 'better'
                   and e.variant == '2') == dict(Natural=58, GPTInst=47, GPTOut=25, Manual=24, Neighbor=59)
    better = [e for e in b if e.truth == 'better']
    said = llmbar_recorded(better)
    said['level'] = said.level.astype(str)
    accuracy = said.assign(right=[0 if (a != a or a is None) else a for a in said['first']],
                           right2=[0 if (a != a or a is None) else a for a in said['swapped']])
    mean = accuracy.groupby(['evaluator', 'level'])[['right', 'right2']].mean().mean(axis=1)
    order = ('Natural', 'GPTInst', 'GPTOut', 'Manual', 'Neighbor')
    assert [round(100*mean['GPT-4', s], 1) for s in order] == [95.5, 86.4, 77.7, 80.4, 78.7]
    assert [round(100*mean['ChatGPT', s], 1) for s in order] == [81.5, 26.6, 41.5, 34.8, 19.4]
    assert said['first_absence'].notna().sum() + said['swapped_absence'].notna().sum() == 10
    natural = said[(said.level == 'Natural')]
    same = {m: int((own['first'] == own.swapped).sum()) for m, own in natural.groupby('evaluator')}
    assert (same['GPT-4'], same['ChatGPT'], same['Falcon']) == (95, 71, 52)
    longer = {s: sum(e.truth == 'better' and len(e.target) > len(o.target)
                     for e, o in zip(b.examples,
                                     [x for i in range(0, len(b), 2) for x in (b.examples[i + 1], b.examples[i])])
                     if e.level == s) for s in order}
    size = Counter(e.level for e in better)
    assert [round(100*longer[s]/size[s]) for s in order] == [56, 13, 45, 17, 12]
