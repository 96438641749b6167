"Classes without an order: labels in the file's words, decided on agreement."
import pandas as pd
import pytest

from factlib.core.records import BadInput
from factlib.trust.scores import read_scores
from factlib.trust.trust import trust
from factlib.trust.decision import YES

N = 60

FILES = { # name -> (column of people, column of the judge, labels)
    'emotions': ('gold', 'pred', ['joy', 'calm', 'anger']),
    'NLI in German': ('Mensch', 'LLM', ['Folgerung', 'Widerspruch', 'neutral']),
    'NLI in capitals': ('annotator_label', 'llm_label', ['Entailment', 'Contradiction', 'Neutral']),
    'FEVER': ('human', 'gpt', ['SUPPORTS', 'REFUTES', 'NOT ENOUGH INFO']),
    'types of errors': ('human_error_type', 'claude_error_type', ['number error', 'entity error', 'no error', 'other']),
    'Spanish': ('emocion_humano', 'modelo_pred', ['alegría', 'tristeza', 'ira', 'miedo']),
    'options': ('gold_option', 'llm_option', ['A', 'B', 'C', 'D']),
    'numbers of categories': ('human_category', 'judge_category', [1, 2, 3, 4]),
}

@pytest.mark.parametrize('name', FILES)
def test_classes_are_decided_on_agreement(name):
    person, judge, labels = FILES[name]
    people = [labels[i % len(labels)] for i in range(N)]
    said = [people[i] if i % 10 else labels[(i + 1) % len(labels)] for i in range(N)] # 6 of 60 wrong
    said = [x.lower() if isinstance(x, str) and name.startswith('NLI') else x for x in said]
    found = trust(pd.DataFrame({judge: said, 'qid': range(N), person: people}))
    decisions = found.decisions.set_index('use')
    assert list(decisions.index) == ['agree', 'replace'] and decisions.decision['agree'] == YES
    assert 'accuracy is 90 %' in decisions.why['agree'] and '--order' not in ' '.join(decisions.why)
    agree = found.tables['agreement']
    assert agree.accuracy.max() == pytest.approx(.9)
    assert {str(x).lower() for x in found.matrix.scale.labels} == {str(x).lower() for x in labels}

def test_two_annotators_of_classes_are_people_and_no_systems():
    labels = ['refund', 'cancel', 'upgrade']
    people = [labels[i % 3] for i in range(N)]
    other = [labels[(i + (i % 9 == 0)) % 3] for i in range(N)]
    found = read_scores(pd.DataFrame(dict(utterance=[f'please do what number {i} asked' for i in range(N)],
                                          annotator_1=people, annotator_2=other, gpt_4o_mini=people)))
    assert found.humans == ('annotator_1', 'annotator_2') and found.scale.kind == 'nominal'

def test_numbers_of_classes_may_be_scores_after_all():
    frame = pd.DataFrame(dict(human_category=[1, 2, 3, 4]*15, judge_category=[1, 2, 4, 3]*15))
    assert read_scores(frame, scale='1..4').scale.kind == 'number'

@pytest.mark.parametrize('labels', [('spam', 'ham'), ('negative', 'positive')])
def test_of_two_labels_it_asks_which_is_better(labels):
    frame = pd.DataFrame(dict(gold=[*labels]*30, judge=[*labels]*30))
    with pytest.raises(BadInput, match='--order'): read_scores(frame)
    assert read_scores(frame, order=' < '.join(labels)).frame['gold'].tolist() == [0, 1]*30

def test_an_order_names_the_labels_that_need_one():
    "True and False are known; the person's labels are ordered."
    frame = pd.DataFrame(dict(human_label=['Dangerous', 'Incorrect', 'Correct']*20,
                              judge_passed=['False', 'False', 'True']*20))
    found = read_scores(frame, order='Dangerous < Incorrect < Correct')
    assert found.frame['human_label'].tolist() == [0, 1, 2]*20 and found.frame['judge_passed'].tolist() == [0, 0, 1]*20
