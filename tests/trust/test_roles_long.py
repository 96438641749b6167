"Files with a row per rating or per judge: who rated, what was rated, and who wrote it."
import json

import pandas as pd
import pytest

from factlib.core.records import BadInput
from factlib.trust.roles import Flags, read_roles
from factlib.trust.scores import read_scores

N = 20
POINTS = [1, 2, 3, 4, 5]*4
TRUTH = ['yes', 'no', 'no', 'yes', 'no']*4

def long(names, raters, scores=POINTS, **more):
    "A row for each rater and item; the columns are called as `names`: item, rater, score."
    rows = [{names[0]: f'n{i}', names[1]: rater, names[2]: scores[(i*k) % N]} | {c: v[i] for c, v in more.items()}
            for k, rater in enumerate(raters, 1) for i in range(N)]
    return pd.DataFrame(rows)

MODELS = ['deepseek-v3', 'Phi-4', 'glm-mid']

@pytest.mark.parametrize('names, people', [
    (('item_id', 'model', 'pred'), 'gold'), (('claim_id', 'judge_model', 'verdict'), 'ground_truth'),
    (('doc', 'model_name', 'prediction'), 'label'), (('example_id', 'llm', 'llm_answer'), 'gold_answer')])
def test_a_column_of_models_with_one_truth_per_item_names_the_judges(names, people):
    frame = long(names, MODELS, TRUTH, **{people: TRUTH})
    found = read_scores(frame[[people, *reversed(names)]])
    assert found.judges == tuple(MODELS) and found.humans == (people,) and len(found.frame) == N
    assert found.frame['deepseek-v3'].tolist() == [1. if t == 'yes' else 0. for t in TRUTH]
    assert 'system' not in found.frame

@pytest.mark.parametrize('column', ['judge_prompt', 'judge_version', 'evaluator_config'])
def test_variants_of_a_judge_are_judges(column):
    found = read_scores(long(('item', column, 'judge_score'), ['v1', 'v2-long'], human_score=POINTS[::-1]))
    assert found.judges == ('v1', 'v2-long') and len(found.frame) == N

def test_a_model_whose_texts_people_judge_apart_wrote_them():
    frame = pd.concat([pd.DataFrame(dict(question_id=range(N), model=m, answer=[f'the {m} answer is number {i}' for i in
                                                                               range(N)],
                                         human_score=p, judge_score=POINTS)) for m, p in
                       (('llama', POINTS), ('qwen', POINTS[::-1]))])
    found = read_scores(frame.reset_index(drop=True))
    assert found.judges == ('judge_score',) and found.frame['system'].nunique() == 2 and len(found.frame) == 2*N

def test_where_both_fit_it_asks():
    rows = [dict(id=i, model=m, score=s, human=h) for i, h in ((1, 3), (2, 4))
            for m, s in (('gemma', 3), ('yi', 2 + i))]
    with pytest.raises(BadInput, match="--rater 'model' or --system 'model'"): read_scores(pd.DataFrame(rows))

@pytest.mark.parametrize('names', [('answer_id', 'annotator', 'rating'), ('beispiel_nr', 'bewerter', 'note'),
                                   ('sample', 'rater', 'score'), ('Réponse', 'annotateur', 'note'),
                                   ('respuesta_id', 'evaluador', 'puntuación')])
def test_people_and_models_among_raters_in_any_language(names):
    found = read_scores(long(names, ['Anna', 'Jörg', 'GPT-4o', 'Claude 3.5']))
    assert found.humans == ('Anna', 'Jörg') and found.judges == ('GPT-4o', 'Claude 3.5')
    assert found.frame['Anna'].tolist() == POINTS and found.frame['item'].tolist() == [f'n{i}' for i in range(N)]

def test_a_column_that_says_which_raters_are_people():
    frame = long(('item_id', 'annotator', 'score'), ['a1', 'a2', 'm1'])
    frame['annotator_type'] = frame.annotator.map(dict(a1='human', a2='human', m1='llm'))
    found = read_scores(frame)
    assert found.humans == ('a1', 'a2') and found.judges == ('m1',)
    frame['annotator_type'] = frame.annotator.map(dict(a1='Mensch', a2='model', m1='AI'))
    assert read_scores(frame).humans == ('a1',)

def test_raters_that_could_be_either_are_asked_about():
    with pytest.raises(BadInput, match="--judge 'Maria' or --human 'Maria'"):
        read_scores(long(('item_id', 'scored_by', 'score'), ['Maria', 'Luis', 'gpt-4']))

@pytest.mark.parametrize('name', ['response_id', 'pair_id', 'question_id', 'doc_id', 'datapoint', 'ticket', 'essay',
                                  'Antwort_ID', 'turn_id'])
def test_the_only_column_of_ids_names_what_was_rated(name):
    roles = read_roles(long((name, 'rater', 'score'), ['expert_A', 'expert_B', 'claude']))
    assert roles.others['item'] == (name,) and roles.humans == ('expert_A', 'expert_B') and roles.judges == ('claude',)

def test_a_text_may_be_all_that_says_what_was_rated():
    frame = long(('answer', 'rater', 'score'), ['expert_A', 'claude'], topic=['a', 'b']*10)
    frame['answer'] = 'the answer that was given is ' + frame.answer
    assert read_roles(frame).others['item'] == ('answer',)
    frame['reply'] = ['another text of some length, ' + str(i*7 % 40) for i in range(2*N)]
    assert read_roles(frame).others['item'] == ('answer',) # a reply stands in one row each
    numbers = frame.assign(answer=[i for _ in range(2) for i in range(N)]) # 0 to 19 could be scores as well
    with pytest.raises(BadInput, match='--item COLUMN'): read_roles(numbers.drop(columns='reply'))
    assert read_roles(numbers, Flags(others=dict(item='answer'))).others['item'] == ('answer',)

def test_a_rubric_whose_criterion_is_a_column():
    parts = [long(('summary_id', 'rater', 'value'), ['turker_1', 'turker_2', 'gpt-4-turbo']).assign(criterion=c)
             for c in ('coherence', 'fluency')]
    found = read_scores(pd.concat(parts, ignore_index=True), criterion='fluency')
    assert len(found.frame) == N and found.humans == ('turker_1', 'turker_2') and found.judges == ('gpt-4-turbo',)

def test_raters_in_lines_of_json_may_be_lists(tmp_path):
    rows = [dict(item_id=i, score=p, judge=who) for who in ('human_7', ['gpt-4', 'v2']) for i, p in enumerate(POINTS)]
    path = tmp_path/'ratings.jsonl'
    path.write_text('\n'.join(map(json.dumps, rows)))
    found = read_scores(path)
    assert found.humans == ('human_7',) and found.judges == ('gpt-4, v2',)
