"""Somebody's own file, from the command line: RAGAS's keys, other columns, labels, a broken line, a model behind a real
server, too few scores."""
import json

import pandas as pd
import pytest
from command import factlib_inside
from factlib.llm.stub import StubServer

RAGAS = [dict(user_input='Who ran?', response='The fox ran home.', retrieved_contexts=['A fox ran home.', 'A hen hid.'],
              reference='The fox.'),
         dict(user_input='Who hid?', response='The hen hid.', retrieved_contexts=['A hen hid.'], reference='The hen.'),
         dict(user_input='Who sang?', response=None, retrieved_contexts=['A lark sang.'], reference='The lark.')]

def write_lines(path, rows):
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows), encoding='utf-8')
    return path

def test_ragas_rows_need_no_mapping(tmp_path):
    write_lines(tmp_path/'replies.jsonl', RAGAS)
    done = factlib_inside('evaluate', 'replies.jsonl', '--with', 'rouge1,factscore',
                          '--out', 'outputs/replies', cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    judged = pd.read_parquet(tmp_path/'outputs/replies/judgements.parquet')
    assert list(judged[judged.evaluator == 'factscore, by rules'].absence.fillna('')) == ['', '', 'inapplicable']
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
    ('{"response": "a", "label": 0}\n', [], '--labels 0=MEANING'),
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
    assert done.returncode == 2 and "'faithfulness' asks a model: name one as --model" in done.stderr

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
