"""Somebody's own file, from the command line: RAGAS's keys, other columns, labels, a broken line, a model behind a real
server, too few scores."""
import json

import pandas as pd
import pytest
from command import factlib_inside
from factlib.core.records import BadInput
from factlib.evaluators.base import EVALUATORS, Evaluator
from factlib.llm.stub import StubServer
from factlib.runs.own_file import own_benchmark

RAGAS = [dict(user_input='Who ran?', response='The fox ran home.', retrieved_contexts=['A fox ran home.', 'A hen hid.'],
              reference='The fox.'),
         dict(user_input='Who hid?', response='The hen hid.', retrieved_contexts=['A hen hid.'], reference='The hen.'),
         dict(user_input='Who sang?', response=None, retrieved_contexts=['A lark sang.'], reference='The lark.')]

def write_lines(path, rows):
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows), encoding='utf-8')
    return path

def test_ragas_rows_need_no_mapping(tmp_path):
    write_lines(tmp_path/'replies.jsonl', RAGAS)
    done = factlib_inside('evaluate', 'replies.jsonl', '--with', 'rouge1,word_support',
                          '--out', 'outputs/replies', cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    judged = pd.read_parquet(tmp_path/'outputs/replies/judgements.parquet')
    assert list(judged[judged.evaluator == 'word_support'].absence.fillna('')) == ['', '', 'inapplicable']
    scores = pd.read_csv(tmp_path/'outputs/replies/tables/scores.csv')
    assert list(scores.example_id) == [1, 2, 3] and scores.rouge1_absence.iloc[2] == 'inapplicable'
    page = (tmp_path/'outputs/index.html').read_text(encoding='utf-8')
    assert 'replies.jsonl, judged' in page and 'notebook.html' not in page # there is none to link to

def test_llm_plus_nli_without_torch_is_one_sentence(tmp_path, monkeypatch):
    "Nobody is asked before it is said."
    import sys
    monkeypatch.setitem(sys.modules, 'torch', None)
    write_lines(tmp_path/'replies.jsonl', RAGAS)
    with StubServer(lambda request: 'never') as server:
        done = factlib_inside('evaluate', 'replies.jsonl', '--with', 'factual_correctness_nli', '--model', 'm',
                              '--base-url', server.base_url, '--out', 'outputs/x', cwd=tmp_path)
        assert not server.requests
    assert done.returncode == 2 and not (tmp_path/'outputs/x/result.json').exists()
    assert done.stderr.strip().splitlines()[-1].endswith(
        "A model for language inference needs the packages transformers and torch: pip install 'factlib[nli]'.")

def test_too_few_scores_end_with_four(tmp_path):
    write_lines(tmp_path/'replies.jsonl', RAGAS)
    command = ['evaluate', 'replies.jsonl', '--with', 'rouge1', '--out', 'o/r', '--at-least']
    assert factlib_inside(*command, '.6', cwd=tmp_path).returncode == 0
    done = factlib_inside(*command, '.9', cwd=tmp_path)
    assert done.returncode == 4 and 'rouge1 scored 2 of 3 texts' in done.stderr

@pytest.mark.parametrize('labels, good, auc', [('1=true,0=false', 'true', 1.), ('1=wrong,0=right', 'right', 0.)])
def test_labels_mean_what_their_owner_says(tmp_path, labels, good, auc):
    "The first reply shares all its words with its page, the second none."
    (tmp_path/'mine.csv').write_text(
        'nr,reply,page,label\na,The fox ran.,The fox ran.,1\nb,Hens swim.,The fox ran.,0\n', encoding='utf-8')
    done = factlib_inside('evaluate', 'mine.csv', '--with', 'rouge1',
                          '--columns', 'target=reply,source=page,id=nr', '--labels', labels,
                          '--good', good, '--out', 'o/m', cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    truth = pd.read_csv(tmp_path/'o/m/tables/truth.csv')
    assert list(truth.estimate) == [auc]
    assert list(pd.read_csv(tmp_path/'o/m/tables/scores.csv').example_id) == ['a', 'b']

@pytest.mark.parametrize('text, more, told', [
    ('{"response": "a"}\n{"response": \n', [], 'Line 2 of'),
    ('{"response": "a", "label": "cat"}\n{"response": "b", "label": "dog"}\n', [], "--good 'cat'"),
    ('{"response": "a", "label": "cat"}\n{"response": "b", "label": "dog"}\n', ['--good', 'cat,dog'], 'names all labels'),
    ('{"response": "a", "label": 1}\n{"response": "b", "label": 5}\n', ['--good', '>=9'], 'people give 1 to 5'),
    ('{"response": "a"}\n', ['--good', 'yes'], 'has a label'),
    ('{"response": "a", "answer": "b"}\n', [], '--columns target=response'),
    ('{"text": "a"}\n', [], '--columns target=NAME'),
    ('{"response": "a"}\n', ['--columns', 'target=reply'], "no column 'reply'"),
    ('{"response": "a"}\n', ['--labels', '1=true'], "no column 'label'"),
    ('{"response": 7}\n', [], 'the target must be a text'),
    ('', [], 'holds no examples'),
])
def test_what_is_wrong_is_one_sentence(tmp_path, text, more, told):
    (tmp_path/'x.jsonl').write_text(text, encoding='utf-8')
    done = factlib_inside('evaluate', 'x.jsonl', '--with', 'length', '--out', 'o/x', *more, cwd=tmp_path)
    assert done.returncode == 2 and told in done.stderr and 'Traceback' not in done.stderr
    assert not (tmp_path/'o').exists()

def test_a_judge_without_its_model_is_told_before_anything_is_read(tmp_path):
    done = factlib_inside('evaluate', 'nowhere.jsonl', '--with', 'faithfulness', '--out', 'o/x', cwd=tmp_path)
    assert done.returncode == 2 and "'faithfulness' asks a model, and none is given: name one by `--model NAME`" in done.stderr

def test_a_model_is_asked_once_for_each_reply(tmp_path):
    write_lines(tmp_path/'replies.jsonl', RAGAS)
    with StubServer(lambda request: json.dumps(dict(verdict='faithful', reason='x'))) as server:
        command = ['evaluate', 'replies.jsonl', '--with', 'faithfulness',
                   '--model', 'stub', '--base-url', server.base_url, '--out', 'o/r']
        for _ in range(2): assert factlib_inside(*command, cwd=tmp_path).returncode == 0
        assert len(server.requests) == 2 # the third reply is empty, and the second run asks nothing
        said = factlib_inside(*command, '--cost', cwd=tmp_path).stdout
    assert 'faithfulness' in said and '2' in said

def test_lists_as_json(tmp_path):
    for what in ('experiments', 'evaluators', 'benchmarks'):
        rows = json.loads(factlib_inside('list', what, '--json', cwd=tmp_path).stdout)
        assert len(rows) > 5 and all({'name', 'about', 'needs', 'here'} <= set(row) for row in rows)

def failing(fails_on):
    "An evaluator that raises a KeyError on texts with this word, or when it is made ('made')."
    class Failing(Evaluator):
        name, signature, offline = 'failing', 'failing', True
        def __init__(self):
            if fails_on == 'made': raise KeyError('weights')
        async def judge(self, example):
            if fails_on in example.target: raise KeyError('table')
            return self.judgement(example, 1.)
    return Failing

FOXES = [dict(id=str(i), source='The fox ran home.', target=t, label=l) for i, (t, l) in enumerate(
    [('The fox ran.', 'good'), ('The hen swam.', 'bad'), ('The fox ran home.', 'good'), ('The hen ran.', 'bad')])]

@pytest.mark.parametrize('order', ['rouge1,failing', 'failing,rouge1'])
@pytest.mark.parametrize('fails_on, why', [
    ('made', "failing failed: KeyError: 'weights'."), ('The', "failing failed on 4 of 4 examples, first on '0': KeyError"),
    ('swam', "failing failed on 1 of 4 examples, first on '1': KeyError: 'table'.")])
def test_one_evaluator_that_fails_costs_no_other_its_results(tmp_path, monkeypatch, order, fails_on, why):
    monkeypatch.setitem(EVALUATORS, 'failing', failing(fails_on))
    write_lines(tmp_path/'foxes.jsonl', FOXES)
    done = factlib_inside('evaluate', 'foxes.jsonl', '--with', order, '--labels', 'good=good,bad=bad', '--good', 'good',
                          '--out', 'o/f', cwd=tmp_path)
    assert done.returncode == 1 and why in done.stderr and 'Traceback' not in done.stderr, done.stderr
    scores = pd.read_csv(tmp_path/'o/f/tables/scores.csv')
    # unigram F: of 3 in 4 words 6/7, 'the' alone 2/7, all, and 'the', 'ran' 4/7
    assert list(scores.rouge1.round(3)) == [.857, .286, 1., .571]
    truth = pd.read_csv(tmp_path/'o/f/tables/truth.csv').set_index('evaluator')
    assert truth.estimate['rouge1'] == 1
    result = json.loads((tmp_path/'o/f/result.json').read_text())
    assert result['evaluators']['rouge1']['scored'] == 4 and why in result['failed']['failing']
    assert result['evaluators']['failing']['asked'] == 4 and why in result['evaluators']['failing']['why']
    assert 'failing failed' in (tmp_path/'o/f/index.html').read_text(encoding='utf-8')

@pytest.mark.parametrize('names, code, missing, others', [
    ('rouge1,summac_zs', 1, 'summac_zs', ['rouge1']), # what can be judged is judged
    ('alignscore', 2, 'alignscore', None), ('rouge1,factscore,length', 2, 'factscore', None), ('vista', 2, 'vista', None),
    ('dovescore_pairs', 2, 'dovescore_pairs', None), ('narrativefactscore_text', 2, 'narrativefactscore', None),
    ('faithfulness', 2, 'faithfulness', None), ('factual_correctness', 2, 'factual_correctness', None)])
def test_without_a_model_a_papers_evaluator_is_refused_in_a_sentence(tmp_path, monkeypatch, names, code, missing, others):
    "What is missing, the command, and the baselines; nothing is counted in the place of a model."
    monkeypatch.delenv('FACTLIB_NLI', raising=False)
    write_lines(tmp_path/'foxes.jsonl', FOXES)
    done = factlib_inside('evaluate', 'foxes.jsonl', '--with', names, '--columns', 'truth=', '--out', 'o/f', cwd=tmp_path)
    assert done.returncode == code and 'Traceback' not in done.stderr, done.stderr
    told = done.stderr.strip().splitlines()[-1]
    assert f"'{missing}' asks a model, and none is given" in told and 'Baselines that need none: ' in told
    assert ('--model NAME' in told) != ('FACTLIB_NLI' in told)
    if others is None: assert not (tmp_path/'o/f').exists()
    else: assert set(pd.read_parquet(tmp_path/'o/f/judgements.parquet').evaluator) == set(others)

def test_one_statistic_or_figure_that_fails_costs_nothing_else(tmp_path):
    "A statistic that can't be computed of one evaluator is computed of the others; the rest is written and named."
    from factlib.metaeval.matrix import small_matrix
    from factlib.runs.own_file import evaluate_file
    write_lines(tmp_path/'foxes.jsonl', FOXES)
    def statistics(judged, benchmarks):
        if 'length' in set(judged.evaluator): raise ZeroDivisionError('no pairs')
        return small_matrix(judged, benchmarks)
    def decide(judged, benchmark): raise IndexError('empty')
    meant = dict(labels=dict(good='good', bad='bad'), good='good')
    result, failed = evaluate_file(tmp_path/'foxes.jsonl', 'rouge1 length', tmp_path/'out', statistics=statistics,
                                   decide=decide, **meant)
    assert failed == result['failed'] and set(failed) == {'The decisions', 'The statistic of length'} | {
        name for name in failed if name.startswith('The decision of')}
    assert 'ZeroDivisionError: no pairs' in failed['The statistic of length']
    assert set(pd.read_csv(tmp_path/'out/tables/truth.csv').evaluator) == {'rouge1'}
    assert len(pd.read_csv(tmp_path/'out/tables/scores.csv')) == 4 and (tmp_path/'out/figures/scores.png').is_file()

def test_baselines_beside_a_model_do_not_bear_its_name(tmp_path):
    write_lines(tmp_path/'foxes.jsonl', FOXES[:2])
    with StubServer(lambda request: 'Verdict: faithful') as server:
        factlib_inside('evaluate', 'foxes.jsonl', '--with', 'order_path,rouge1,word_support,faithfulness', '--model', 'alpha',
                       '--base-url', server.base_url, '--columns', 'truth=', '--out', 'o/f', cwd=tmp_path)
    judged = pd.read_parquet(tmp_path/'o/f/judgements.parquet')
    assert set(judged.evaluator[judged.model == 'alpha']) == {'faithfulness'}
    assert set(judged.evaluator[judged.model == '']) == {'order_path', 'rouge1', 'word_support'}

@pytest.mark.parametrize('wrapped', [lambda rows: rows, lambda rows: dict(data=rows, version=1)])
def test_a_list_in_a_json_file_is_rows(tmp_path, wrapped):
    (tmp_path/'foxes.json').write_text(json.dumps(wrapped(FOXES), indent=1), encoding='utf-8')
    command = ['evaluate', 'foxes.json', '--with', 'rouge1', '--out', 'o/f']
    done = factlib_inside(*command, '--labels', 'good=true,bad=false', '--good', 'true', cwd=tmp_path)
    assert done.returncode == 0 and len(pd.read_csv(tmp_path/'o/f/tables/scores.csv')) == 4, done.stderr

@pytest.mark.parametrize('more, said', [
    (['--labels', 'godo=true,bad=false'], "has the label 'godo'; there are good, bad. Did you mean 'good'?"),
    (['--labels', 'good=true,bad=false', '--good', 'treu'], "no label 'treu'; there are 'true', 'false'. Did you mean"),
    (['--columns', 'target=tarqet'], "There is no column 'tarqet'; there are 'id', 'source', 'target', 'label'. Did you mean")])
def test_what_is_not_there_is_answered_with_the_nearest(tmp_path, more, said):
    write_lines(tmp_path/'foxes.jsonl', FOXES)
    done = factlib_inside('evaluate', 'foxes.jsonl', '--with', 'rouge1', '--out', 'o/f', *more, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and not (tmp_path/'o/f').exists()

# --- Labels that `factlib trust` reads, too: kind 15

LABELS = dict( # name -> (column, its cells: bad, good, bad, good; what is said)
    zero_and_one=('label', ['0', '1', '0', '1'], "'1' is good and '0' is bad"),
    capital=('Label', ['0', '1', '0', '1'], "'1' is good and '0' is bad"),
    floats=('LABELS', ['0.0', '1.0', '0.0', '1.0'], "'1' is good and '0' is bad"),
    booleans=('Gold label', ['False', 'True', 'False', 'True'], "'True' is good and 'False' is bad"),
    supported=('label', ['hallucinated', 'supported', 'hallucinated', 'supported'], "'supported' is good"),
    yes_no=('human_label', ['no', 'yes', 'No', 'YES'], "'yes' is good"),
    good_bad=('ground_truth', ['bad', 'good', 'bad', 'good'], "'good' is good and 'bad' is bad"),
    grades=('label', ['F', 'A', 'C', 'B'], 'F < C < B < A'),
    steps=('gold', ['poor', 'excellent', 'poor', 'fair'], 'poor < fair < excellent'),
    stars=('label', ['1', '5', '2', '4'], ''),
    missing=('label', ['0', '1', 'N/A', '1'], "1 of 4 cells ('N/A')"))
ANSWERS = ['Nine owls sang.', 'The fox ran over the hill.', 'Grey hens swim.', 'The fox ran.']

def labelled_answers(path, column, cells):
    rows = [dict(zip(('Context', 'Answer', column), ('The fox ran over the hill.', answer, cell)))
            for answer, cell in zip(ANSWERS, cells)]
    if path.suffix == '.csv': pd.DataFrame(rows).to_csv(path, index=False)
    else: write_lines(path, [row | {column: json.loads(row[column].lower())} if row[column].lower() in ('true', 'false', '0', '1')
                             else row for row in rows])
    return path

@pytest.mark.parametrize('ending', ['.csv', '.jsonl'])
@pytest.mark.parametrize('column, cells, said', LABELS.values(), ids=LABELS)
def test_labels_are_read_as_trust_reads_them(tmp_path, column, cells, said, ending):
    "The better label of evaluate's benchmark is the one that `trust` gives the higher code."
    from factlib.benchmarks.values import code_columns, read_cells
    benchmark = own_benchmark(labelled_answers(tmp_path/f'x{ending}', column, cells))
    assert said in ' '.join(benchmark.said)
    truths = [e.truth for e in benchmark]
    known = [i for i, cell in enumerate(cells) if cell != 'N/A']
    assert [i for i, t in enumerate(truths) if t is not None] == known
    if benchmark.good is None: up = [float(truths[i]) for i in known]
    else: up = [float(truths[i] == benchmark.good) for i in known]
    if column == 'label' and cells[0] == 'F': theirs = dict(F=0, C=1, B=2, A=3)
    else:
        codes, _ = code_columns([read_cells(pd.Series(cells, dtype=object), column)])
        theirs = dict(zip(cells, codes[column]))
    assert up == [theirs[cells[i]] for i in known]

@pytest.mark.parametrize('cells, good, truths, best', [
    (['0', '1', '0', '1'], '0', ['0', '1', '0', '1'], '0'),
    (['1', '5', '2', '4'], '>=4', ['below 4', '4 or more', 'below 4', '4 or more'], '4 or more'),
    (['1', '5', '2', '4'], '>4', ['below 5', '5 or more', 'below 5', 'below 5'], '5 or more'),
    (['neutral', 'entailment', 'contradiction', 'entailment'], 'Entailment', ['other', 'entailment', 'other', 'entailment'],
     'entailment'),
    (['poor', 'excellent', 'poor', 'fair'], 'fair,excellent', ['poor', 'fair or excellent', 'poor', 'fair or excellent'],
     'fair or excellent')])
def test_good_is_said_as_for_trust(tmp_path, cells, good, truths, best):
    benchmark = own_benchmark(labelled_answers(tmp_path/'x.csv', 'label', cells), good=good)
    assert [e.truth for e in benchmark] == truths and (benchmark.good, benchmark.truth_kind) == (best, 'label')

def test_labels_without_an_order_are_asked_about(tmp_path):
    for cells in (['cat', 'dog', 'cat', 'dog'], ['neutral', 'entailment', 'contradiction', 'entailment']):
        with pytest.raises(BadInput, match='which is better can\'t be told: name the better ones as --good'):
            own_benchmark(labelled_answers(tmp_path/'x.csv', 'label', cells))
        assert own_benchmark(tmp_path/'x.csv', columns=dict(truth='')).truth_kind == 'none'
    with pytest.raises(BadInput, match='mixes 2 numbers with 2 words'):
        own_benchmark(labelled_answers(tmp_path/'x.csv', 'label', ['1', 'cat', '2', 'dog']))

def test_a_reference_is_no_label(tmp_path):
    path = labelled_answers(tmp_path/'x.csv', 'gold', ['A fox ran.', 'The fox ran over it.', 'One fox.', 'Foxes run.'])
    benchmark = own_benchmark(path)
    assert [e.reference for e in benchmark][0] == 'A fox ran.' and benchmark.truth_kind == 'none'

def test_zero_and_one_are_compared_with_scores(tmp_path):
    "By hand: both good answers share all their words with the page, the bad ones fewer."
    labelled_answers(tmp_path/'x.csv', 'Label', ['0', '1', '0', '1'])
    done = factlib_inside('evaluate', 'x.csv', '--with', 'rouge1', '--out', 'o/x', cwd=tmp_path)
    assert done.returncode == 0 and "'Label': '1' is good and '0' is bad" in done.stdout, done.stderr
    assert list(pd.read_csv(tmp_path/'o/x/tables/truth.csv').estimate) == [1.]
