"""Judgements that earlier runs have made are shown as they were: joined, each once, told apart where they differ."""
import json

import pandas as pd
import pytest

from factlib.benchmarks.base import Benchmark
from factlib.core.records import Absence, BadInput, Example, Judgement, signature
from factlib.evaluators.base import get
from factlib.report.results import Experiment, text_hash
from factlib.runs.judging import GivenJudgements, evaluate_in, evaluate_models, given_judgements, judged_files
from factlib.runs.judging import judges_for

class Words:
    "Counts words, with a prompt that somebody may change; gives nothing for a text with a question mark."
    requires, offline = ('target',), True
    def __init__(self, prompt='a', name='words'): self.name, self.signature = name, signature(name, 1, prompt=prompt)
    def judge(self, example):
        if '?' in example.target: return Judgement(example.id, self.name, absence=Absence.refused)
        words = len(example.target.split())
        return Judgement(example.id, self.name, words, parts=dict(half=words/2), evidence=dict(seen=[words]))

def texts(seed=0):
    return Benchmark('mine', [
        Example('a', source='A fox ran.', target=f'A fox ran {seed}.', truth='true', variant='original', level='true',
                history=({'user': 'Who?'},), meta=dict(order=[1, 0])),
        Example('b', target='Did it?', truth='false', group='x', reference='No.', question='Ran it?')],
        'label', 'A card.', (('c', 'empty'),), 'true', 'facts')

def run(folder, judges, seed=0, label='{}', model='', n=0, part='main', examples=None):
    "A run that judges and ends."
    made = Experiment('demo', 'A demonstration', 'How long?', dict(out=str(folder), seed=seed, n=n, model=model))
    frames = [evaluate_in(judge, {'mine': examples or texts(seed)}, made, label.format(judge.name), model, part=part)
              for judge in judges]
    made.finish()
    return pd.concat(frames, ignore_index=True)

def show(tmp_path, *folders, name='shown'):
    "An experiment that shows runs."
    given = GivenJudgements([tmp_path/folder for folder in folders])
    return Experiment('demo', 'A demonstration', 'How long?', dict(out=str(tmp_path/name), seed=0, n=0), given)

def by_name(given, part='main'): return {b.name: b for b in given.benchmarks(part)}

def test_what_is_shown_is_what_was_judged(tmp_path):
    judged = run(tmp_path/'first', [Words(), get('length')])
    shown = show(tmp_path, 'first')
    (again,) = shown.given.benchmarks()
    assert again == texts() # with its card, what was refused, and all fields of its examples
    frames = [evaluate_in(judge, {'mine': again}, shown) for judge in (Words(), get('length'))]
    pd.testing.assert_frame_equal(pd.concat(frames, ignore_index=True), judged)
    assert shown.evaluators['words']['asked'] == 2 and shown.evaluators['words']['scored'] == 1
    assert shown.evaluators['words']['why'].startswith('refused in 1 of 2')
    assert shown.findings == []
    shown.finish()
    for name in ('judgements', 'examples'): # a shown run can be shown in turn
        first, second = (pd.read_parquet(tmp_path/f/f'{name}.parquet') for f in ('first', 'shown'))
        pd.testing.assert_frame_equal(first, second)
    assert {'judgements.parquet', 'examples.parquet'} <= set(json.loads(
        (tmp_path/'shown/result.json').read_text())['files'])

def test_columns_of_the_files(tmp_path):
    run(tmp_path/'first', [Words()], seed=3, n=7, label='{}, M', model='M')
    rows = pd.read_parquet(tmp_path/'first/judgements.parquet')
    row = rows.iloc[0]
    assert (row.evaluator, row.evaluator_name, row.model, row.seed, row.n, row.split, row.part) == (
        'words, M', 'words', 'M', 3, 7, '', 'main')
    assert json.loads(row.meta) == dict(order=[1, 0]) and row.text_hash == text_hash(texts(3).examples[0])
    told = pd.read_parquet(tmp_path/'first/examples.parquet')
    assert list(told.text_hash) == list(rows.text_hash) and list(told.target) == ['A fox ran 3.', 'Did it?']

def test_a_hash_is_of_all_texts():
    fields = dict(source='s', target='t', reference='r', question='q', history=('h',))
    hashes = {text_hash(Example('a', **fields | {name: ('x',) if name == 'history' else 'x'})) for name in fields}
    assert len(hashes | {text_hash(Example('a', **fields))}) == 6
    assert text_hash(Example('b', **fields, meta=dict(x=1))) == text_hash(Example('a', **fields))

def test_texts_lie_once_each(tmp_path):
    made = Experiment('demo', 'A demonstration', 'How long?', dict(out=str(tmp_path/'x'), seed=0, n=0))
    evaluate_in([Words(), get('length')], {'mine': texts()}, made)
    evaluate_in(Words(), {'mine': Benchmark('mine', texts().examples[::-1], 'label', '')}, made, part='ablation')
    made.finish()
    assert len(pd.read_parquet(tmp_path/'x/examples.parquet')) == 2
    assert len(pd.read_parquet(tmp_path/'x/judgements.parquet')) == 6
    given = GivenJudgements([tmp_path/'x'])
    assert [e.id for e in given.benchmarks('ablation')[0]] == ['b', 'a'] # each part in its own order
    assert 'words' in made.evaluators and made.evaluators['words']['asked'] == 2 # what is beside the main ones isn't counted

def test_equal_judgements_count_once_and_models_are_rows(tmp_path):
    for model in ('M', 'N'):
        made = Experiment('demo', 'A demonstration', 'How long?', dict(out=str(tmp_path/model), seed=0, n=0))
        evaluate_in(get('length'), {'mine': texts()}, made)
        evaluate_in(Words(), {'mine': texts()}, made, f'words, {model}', model)
        made.finish()
    shown = show(tmp_path, 'M', 'N')
    benchmarks = by_name(shown.given)
    assert list(benchmarks) == ['mine']
    assert len(evaluate_in(get('length'), benchmarks, shown)) == 2
    asked = evaluate_models('words', benchmarks, shown)
    assert [(a.name, a.label, a.model, len(a.frame)) for a in asked] == [('words', 'words, M', 'M', 2),
                                                                         ('words', 'words, N', 'N', 2)]

def test_another_seed_is_another_draw(tmp_path):
    for seed in (0, 1): run(tmp_path/f'{seed}', [Words()], seed=seed)
    shown = show(tmp_path, '0', '1')
    benchmarks = by_name(shown.given)
    assert {name: b.examples for name, b in benchmarks.items()} == {
        f'mine, seed {seed}': texts(seed).examples for seed in (0, 1)}
    frame = evaluate_in(Words(), benchmarks, shown)
    assert list(frame.benchmark) == ['mine, seed 0']*2 + ['mine, seed 1']*2
    assert shown.evaluators['words']['asked'] == 4
    shown.finish()
    kept = pd.read_parquet(tmp_path/'shown/judgements.parquet')
    assert list(kept.benchmark) == ['mine']*4 and list(kept.seed) == [0, 0, 1, 1]
    assert [b.name for b in shown.given.benchmarks(names=['mine'])] == list(benchmarks)
    with pytest.raises(BadInput, match="no benchmark 'other'; they have mine"): shown.given.benchmarks(names=['other'])

def test_another_prompt_is_never_mixed(tmp_path):
    run(tmp_path/'a', [Words('a')], label='{}, M', model='M')
    run(tmp_path/'b', [Words('b')], label='{}, M', model='M')
    shown = show(tmp_path, 'a', 'b')
    asked = evaluate_models('words', by_name(shown.given), shown)
    assert [a.label for a in asked] == ['words, M [prompt:a]', 'words, M [prompt:b]']
    assert [set(a.frame.evaluator) for a in asked] == [{a.label} for a in asked]
    assert [f['text'] for f in shown.findings] == ['words, M was not judged in the same way everywhere, and is told '
                                                   'apart: words, M [prompt:a]; words, M [prompt:b].']

def test_who_asks_no_model_keeps_its_name_where_it_judged_most(tmp_path):
    "An older version judged fewer texts: it is told apart by what differs, and tables find the other by its name."
    run(tmp_path/'old', [Words('a')], examples=Benchmark('mine', texts().examples[:1], 'label', ''))
    run(tmp_path/'new', [Words('b')])
    for folders in (('old', 'new'), ('new', 'old')):
        shown = show(tmp_path, *folders, name='-'.join(folders))
        frame = evaluate_in(Words('c'), by_name(shown.given), shown)
        assert frame.evaluator.value_counts().to_dict() == {'words': 2, 'words [prompt:a]': 1}
        assert 'words was not judged in the same way everywhere' in shown.findings[0]['text']

def test_what_nobody_judged_is_said_once(tmp_path):
    run(tmp_path/'a', [Words()])
    shown = show(tmp_path, 'a')
    for name in ('length', 'random', 'length'): assert not len(evaluate_in(get(name), by_name(shown.given), shown))
    assert [f['text'] for f in shown.findings] == ['Not among the given judgements, and not judged here: length, '
                                                   'random.']

def test_models_that_judged_fewer_texts(tmp_path):
    run(tmp_path/'a', [Words()], label='{}, M', model='M')
    few = Benchmark('mine', texts().examples[:1], 'label', '')
    run(tmp_path/'b', [Words()], label='{}, N', model='N', n=1, examples=few)
    shown = show(tmp_path, 'b', 'a')
    asked = evaluate_models('words', by_name(shown.given), shown)
    assert {a.model: list(a.frame.example_id) for a in asked} == dict(M=['a', 'b'], N=['a'])
    assert 'Of mine not all runs judged the same number of texts: n was 0 and 1.' in shown.given.said

def test_the_same_id_with_other_texts_is_another_draw(tmp_path):
    run(tmp_path/'a', [Words()], n=1)
    run(tmp_path/'b', [Words()], n=2, examples=texts(9))
    assert list(by_name(show(tmp_path, 'a', 'b').given)) == ['mine, n 1', 'mine, n 2']

def test_files_from_before_texts_were_kept(tmp_path):
    run(tmp_path/'old', [Words()], seed=2)
    (tmp_path/'old/examples.parquet').unlink()
    rows = pd.read_parquet(tmp_path/'old/judgements.parquet')
    rows.drop(columns=['evaluator_name', 'part', 'seed', 'n', 'split', 'meta', 'text_hash']).to_parquet(
        tmp_path/'old/judgements.parquet')
    shown = show(tmp_path, 'old')
    (mine,) = shown.given.benchmarks()
    assert [(e.id, e.truth, e.group, e.target) for e in mine] == [('a', 'true', 'a', ''), ('b', 'false', 'x', '')]
    assert shown.given.draws['main'][0].seed == 2
    assert list(evaluate_in(Words(), {'mine': mine}, shown).half.dropna()) == [2.]
    assert 'were made before texts were kept' in shown.findings[0]['text']

def test_where_judgements_are_looked_for(tmp_path):
    for cell in ('x=1', 'x=2', 'x=3'): run(tmp_path/'sweep'/cell, [Words()])
    (tmp_path/'sweep/cells.csv').write_text('cell,x,status\n"x=1",1,done\n"x=2",2,failed\n"x=3",3,kept\n')
    assert [file.parent.name for file in judged_files(tmp_path/'sweep')] == ['x=1', 'x=3']
    assert judged_files(tmp_path/'sweep/x=2') == judged_files(tmp_path/'sweep/x=2/judgements.parquet')
    for wrong, why in (('nowhere', 'There are no judgements'), ('sweep/x=1/result.json', 'no readable parquet|not a readable parquet|can\'t be read')):
        with pytest.raises(BadInput, match=why): GivenJudgements([tmp_path/wrong])
    assert given_judgements(dict(judgements=' ')) is None and given_judgements({}) is None
    both = f'{tmp_path}/sweep/x=1, {tmp_path}/sweep/x=3'
    assert len(given_judgements(dict(judgements=both)).rows) == 2

def test_runs_that_differ_without_a_reason_are_said(tmp_path):
    "The first counts; one that failed on the way counts only where there is no other."
    class Moody(Words):
        def judge(self, example):
            self.signature, score = 'words', self.scores.pop(0)
            absent = dict(absence=Absence.transport) if score is None else {}
            return Judgement(example.id, self.name, score, **absent)
    for folder, scores in dict(first=[None, 2.], second=[1., 3.], third=[1., 2.]).items():
        judge = Moody()
        judge.scores = scores
        run(tmp_path/folder, [judge])
    shown = show(tmp_path, 'first', 'second', 'third')
    assert list(evaluate_in(Words(), by_name(shown.given), shown).value) == [1, 2]
    assert shown.given.said == ['words judged 1 text in more than one of these runs, and not alike: the first run '
                                'counts.']
    assert [f['text'] for f in shown.findings] == shown.given.said

def test_paths_may_have_commas(tmp_path):
    run(tmp_path/'x=1,seed=0', [Words()])
    run(tmp_path/'b', [get('length')])
    given = given_judgements(dict(judgements=f'{tmp_path}/x=1,seed=0, {tmp_path}/b'))
    assert set(given.rows.evaluator) == {'words', 'length'}
    with pytest.raises(BadInput, match='no judgements in .*x=2'):
        given_judgements(dict(judgements=f'{tmp_path}/x=2,seed=0'))

def test_other_texts_under_the_same_names_are_another_benchmark(tmp_path):
    "Nothing of the one takes the place of the other; what is shown can be shown in turn."
    run(tmp_path/'first', [Words()])
    run(tmp_path/'same', [Words()], label='{}, again')
    run(tmp_path/'edited', [Words()], examples=Benchmark('mine', [
        Example('a', target='An old fox ran far.', truth='true'), Example('b', target='No.', truth='false')], 'label',
        ''))
    shown = show(tmp_path, 'first', 'same', 'edited')
    benchmarks = by_name(shown.given)
    assert {name: [e.target for e in b] for name, b in benchmarks.items()} == {
        'mine': ['A fox ran 0.', 'Did it?'], 'mine, texts 2': ['An old fox ran far.', 'No.']}
    frame = evaluate_in(Words(), benchmarks, shown)
    assert list(zip(frame.benchmark, frame.value)) == [('mine', 4), ('mine', None), ('mine, texts 2', 5),
                                                       ('mine, texts 2', 1)]
    assert shown.given.said == [f'mine has other texts in {tmp_path}/edited than in a run before: there it is "mine, '
                                'texts 2".']
    shown.finish()
    again = show(tmp_path, 'shown', name='again')
    assert by_name(again.given) == benchmarks and len(again.given.rows) == 4

def test_a_seed_in_a_method_that_is_its_draws_tells_nothing_apart(tmp_path):
    "Who makes sentences false by the run's seed does the same in each draw; by another seed than that, it doesn't."
    def judged(folder, own, seed):
        judge = Words()
        judge.signature = signature('words', 1, seed=own)
        run(tmp_path/folder, [judge], seed, '{}, m', model='m')
        return tmp_path/folder
    folders = [judged('zero', 0, 0), judged('one', 1, 1)]
    given = GivenJudgements(folders)
    assert [called for called, *_ in given.labels()] == ['words, m'] and given.said == []
    assert [len(given.frame('main', 'words, m', draw)) for draw in given.draws['main']] == [2, 2]
    told = [called for called, *_ in GivenJudgements([*folders, judged('seven', 7, 1)]).labels()]
    assert sorted(told) == ['words, m [seed:7]', 'words, m [seed]']

def test_components_that_ask_nobody_do_not_bear_a_papers_name_alone(tmp_path):
    "Whoever puts an evaluator together from rules reads so behind its name; by its name nobody gets it."
    from factlib.evaluators.claims.dovescore import rule_components
    one = [Example('a', source='Ann left. Bob slept.', target='Ann left.', truth='true', group='a')]
    run = Experiment('x', '', '', dict(out=str(tmp_path), seed=0, n=0))
    frame = evaluate_in([get('dovescore', **rule_components()), get('length')], dict(mine=one), run)
    assert list(dict.fromkeys(frame.evaluator)) == ['dovescore, no model', 'length']
    assert evaluate_in(get('length'), {}, run).empty
    for name in ('factscore_single', 'dovescore', 'vista'):
        with pytest.raises(BadInput, match='none is given'): judges_for([name, 'length'])

def test_a_run_goes_on_when_an_evaluator_fails(tmp_path):
    "What it had judged is kept, its failure is named, and where nothing was judged at all the error is raised."
    from factlib.evaluators.base import EvaluationError
    class Fails(Words):
        def judge(self, example):
            if example.id == 'a': raise ZeroDivisionError('no words')
            return super().judge(example)
    class AllFail(Words):
        def judge(self, example): raise KeyError('x')
    with pytest.raises(EvaluationError): run(tmp_path/'none', [AllFail(name='all')])
    frame = run(tmp_path/'some', [Words(), Fails(name='fails'), AllFail(name='all')])
    assert list(zip(frame.evaluator, frame.example_id)) == [('words', 'a'), ('words', 'b'), ('fails', 'b')]
    result = json.loads((tmp_path/'some/result.json').read_text())
    assert result['failed'] == dict(
        fails="fails failed on 1 of 2 examples, first on 'a': ZeroDivisionError: no words.",
        all="all failed on 2 of 2 examples, first on 'a': KeyError: 'x'.")
    assert {name: (c['asked'], c['scored']) for name, c in result['evaluators'].items()} == dict(
        words=(2, 1), fails=(2, 0), all=(2, 0))
