"""MontageLie live, against a server that plays decomposer, checker and sorter by rule: scores, AUCs and costs that can
be worked out by hand."""
import pandas as pd
import pytest

from factlib.core.records import BadInput, Example
from factlib.llm.chat import Chat
from factlib.llm.stub import StubServer
from factlib.runs.judging import judges_for
from factlib.runs.costs import document_costs

from command import factlib_inside
from fact_server import LIES, prompt, released_tuples, rule, step
from sweeps import END, JUDGES, part_of

@pytest.fixture
def released(tmp_path): return released_tuples(tmp_path/'data')

@pytest.mark.slow
def test_scores_and_costs_of_the_model_rows(tmp_path, released):
    """Each lie's facts are supported; of DoveScore S_EO alone falls, by the share of inverted pairs (Eq 5 with alpha =
    1: the product with S_E). Of the experiment, what judges and makes these tables."""
    def answer(request): return '{"consistency": 4}' if '"consistency"' in prompt(request) else rule(request)
    names = 'factscore dovescore dovescore_single dovescore_pairs'
    cells = JUDGES | dict.fromkeys(['montage-cost', 'montage-plan', 'montage-auc'], '') | END
    with StubServer(answer, json_schema=True) as server:
        done = factlib_inside('run', part_of('montagelie', cells, tmp_path), '-p', 'dataset', 'montagelie',
                              '-p', 'judges', f'consistency {names}', '-p', 'model', 'rule', '-p', 'base_url',
                              server.base_url, '-p', 'draws', 0, '--out', tmp_path/'x', cwd=tmp_path, data=released)
        assert done.returncode == 0, done.stderr
        steps = [step(r) for r in server.requests]
    cost = pd.read_csv(tmp_path/'x/tables/cost.csv').set_index('evaluator')
    # 15 texts of 6 facts: take apart (the same for all DoveScores), check (once or 6 times), sort source and target (or
    # their 15 pairs in one request)
    assert [cost.requests[f'{n}, rule'] for n in names.split()] == [2, 4, 9, 4]
    assert (cost.scored[[f'{n}, rule' for n in names.split()]] == 15).all()
    assert (cost.prompt_tokens['dovescore, rule'] < cost.prompt_tokens['dovescore_single, rule'])
    aucs = pd.read_csv(tmp_path/'x/tables/aucs.csv').query("variant == 'original'").set_index(
        ['evaluator', 'difficulty']).auc
    # the same score for all
    assert cost.requests['consistency, rule'] == 1 and aucs['consistency, rule', 'mean'] == .5
    assert ('order_path', 'mean') in aucs.index
    assert all(aucs[f'factscore, rule', d] == .5 for d in LIES) # every fact is true
    assert all(aucs[f'{n}, rule', d] == 1 for n in names.split()[1:] for d in LIES)
    planned = pd.read_csv(tmp_path/'x/tables/planned.csv').set_index('judge')
    assert list(planned.requests[['factscore', 'factscore_single', 'dovescore', 'dovescore_single',
                                  'dovescore_pairs', 'dovescore_pairs_single']]) == [2, 7, 4, 9, 4, 37]
    assert planned.requests_ratio['dovescore'] == pytest.approx(4/9) and steps.count('sort') > 0 < steps.count('pairs')

def test_document_costs_by_hand():
    chat = Chat('m', 'http://127.0.0.1:1/v1', mode='off')
    told = Example('x', source='A bell rang. ' * 800,
                   target=' '.join(f'Then bell {i} rang in the tower.' for i in range(20)))
    table = document_costs(
        judges_for('consistency factscore_single factscore dovescore_single dovescore dovescore_pairs_single '
                   'dovescore_pairs', chat), [told, Example('y', target='No source.')]).set_index('judge')
    assert set(table.documents) == {1}
    assert dict(table.requests) == dict(consistency=1, factscore_single=21, factscore=2, dovescore_single=23,
                                        dovescore=4, dovescore_pairs_single=1 + 20 + 2*190, dovescore_pairs=2 + 2*10)
    assert table.tokens_ratio['factscore'] < .2 and pd.isna(table.tokens_ratio['consistency'])
    assert table.tokens_ratio['factscore_single'] == 1

def test_judges_that_cannot_be_had():
    chat = Chat('m', 'http://127.0.0.1:1/v1', mode='off')
    with pytest.raises(BadInput, match="'nobody'"): judges_for(['consistency', 'nobody'], chat)
    with pytest.raises(BadInput, match='once'): judges_for(['dovescore', 'dovescore'], chat)
    with pytest.raises(BadInput, match='source and target'):
        document_costs(judges_for(['dovescore'], chat), [Example('y', target='No source.')])

def test_a_misspelt_judge_is_found_before_anything_runs(tmp_path):
    done = factlib_inside('run', 'montagelie', '-p', 'judges', 'dovescores', '--out', tmp_path/'x', cwd=tmp_path)
    assert done.returncode == 2 and "no judge 'dovescores'" in done.stderr and not (tmp_path/'x').exists()

@pytest.mark.parametrize('dataset, words', [('montagelie', 'montagelie is not here: '), (' ', 'No benchmark is named')])
def test_a_benchmark_that_is_named_must_be_there(tmp_path, dataset, words):
    done = factlib_inside('run', 'montagelie', '-p', 'dataset', dataset, '--out', tmp_path/'x', cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr.strip().splitlines()[-1] and 'Traceback' not in done.stderr
    assert not (tmp_path/'x').exists()

def test_baselines_named_beside_a_model_are_no_model_rows(tmp_path):
    "Those that have judged already are not judged again; one more, which asks nothing either, has a row without a model."
    from factlib.report.results import Experiment
    from factlib.runs.judging import evaluate_in, evaluate_models, judges_for
    fox = dict(mine=[Example('a', 'A fox ran.', 'A fox ran.')])
    with StubServer(lambda request: 'never') as server:
        out = tmp_path/'out'
        run = Experiment('demo', 'A demonstration', 'Who asks?', dict(model='alpha', base_url=server.base_url, out=str(out)))
        evaluate_in(judges_for('order_path')[0], fox, run)
        asked = evaluate_models('order_path rouge1 word_support', fox, run)
        assert not server.requests
    assert [(a.label, a.model) for a in asked] == [('rouge1', ''), ('word_support', '')]
    assert set(run.evaluators) == {'order_path', 'rouge1', 'word_support'} and set(run.judged.model) == {''}
