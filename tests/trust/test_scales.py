"The same judgements in numbers, grades, words and other dress; scales that differ; people who are not on one scale."
import numpy as np
import pandas as pd
import pytest

from factlib.core.records import BadInput
from factlib.trust.scales import are_apart
from factlib.trust.scores import read_scores
from factlib.trust.trust import trust
from factlib.trust.decision import NO, NOT_YET, YES

N = 60
PEOPLE = [1, 2, 3, 4, 5]*12
JUDGE = [1, 2, 3, 5, 4]*6 + [2, 1, 3, 4, 5]*6
LIKERT = ['strongly disagree', 'disagree', 'neutral', 'agree', 'strongly agree']

DRESS = dict(grades='EDCBA', school=['F', 'D', 'C', 'B', 'A'], signs=['F', 'D+', 'C', 'B-', 'A+'], likert=LIKERT,
             capitals=[word.upper() for word in LIKERT], words=['awful', 'weak', 'so-so', 'good', 'superb'],
             quality=['Very poor', 'Poor', 'Fair', 'Good', 'Excellent'], slash=[f'{x}/5' for x in range(1, 6)],
             out_of=[f'{x} out of 5' for x in range(1, 6)], points=[f'{x} points' for x in range(1, 6)],
             stars=['★'*x + '☆'*(5 - x) for x in range(1, 6)], emoji=['⭐'*x for x in range(1, 6)],
             brackets=[f'({x})' for x in range(1, 6)], wide='１２３４５',
             score=[f'Score: {x}' for x in range(1, 6)],
             apostrophe=[f"'{x}" for x in range(1, 6)], floats=[1., 2., 3., 4., 5.])

@pytest.mark.parametrize('name', DRESS)
def test_a_judge_in_other_dress_has_the_same_scores(name):
    found = read_scores(pd.DataFrame(dict(human=PEOPLE, gpt4=[DRESS[name][x - 1] for x in JUDGE])))
    assert found.frame['gpt4'].tolist() == JUDGE and not found.mixed
    if name not in ('floats',): assert any("'gpt4'" in line and 'read as' in line for line in found.said)

def test_the_same_judgements_give_the_same_decisions():
    lines = {tuple(trust(pd.DataFrame(dict(human=PEOPLE, ann=JUDGE[::-1], gpt4=[dress[x - 1] for x in JUDGE])),
                         use='filter,mean,replace').lines)
             for dress in ([1, 2, 3, 4, 5], DRESS['grades'], DRESS['words'], DRESS['likert'])}
    assert len(lines) == 1

@pytest.mark.parametrize('labels', [['I', 'II', 'III', 'IV', 'V'], ['mies', 'matt', 'mittel', 'fein', 'prima']])
def test_words_that_nobody_knows_decide_nothing(labels):
    frame = pd.DataFrame(dict(human=PEOPLE, gpt4=[labels[x - 1] for x in JUDGE]))
    found = trust(frame, use='filter,mean')
    assert set(found.decisions.decision) == {NOT_YET} and '--order' in found.decisions.why[0]
    known = trust(frame, use='filter,mean', order=' < '.join(labels))
    assert known.matrix.judges['gpt4'].tolist() in (JUDGE, [x - 1. for x in JUDGE])
    assert known.decisions.decision[0] == YES

@pytest.mark.parametrize('other', [[20*x for x in PEOPLE], [2*x for x in PEOPLE], [(x - 1)/4 for x in PEOPLE],
                                   [int(x > 3) for x in PEOPLE], [x - 1 for x in PEOPLE], [x - 3 for x in PEOPLE]],
                         ids=['percent', 'doubled', 'shares', 'binary', '0 to 4', '-2 to 2'])
@pytest.mark.parametrize('first', [True, False])
def test_people_on_two_scales_decide_nothing_and_the_remedy_is_named(other, first):
    columns = [('human_ann', PEOPLE), ('human_bob', other)]
    found = trust(pd.DataFrame(dict(columns if first else columns[::-1]) | dict(gpt4=JUDGE)))
    assert set(found.decisions.decision) == {NOT_YET}
    assert all('--scale' in why for why in found.decisions.why)

def test_given_scales_put_people_on_one():
    frame = pd.DataFrame(dict(human_ann=PEOPLE, human_bob=[2*x for x in PEOPLE], gpt4=JUDGE))
    found = read_scores(frame, scale='human_ann=1..5,human_bob=2..10')
    assert not found.mixed and found.frame['human_bob'].tolist() == PEOPLE
    assert trust(frame, scale='human_ann=1..5,human_bob=2..10', use='filter').decisions.decision[0] == YES

def test_people_with_words_and_people_with_numbers_decide_nothing():
    frame = pd.DataFrame(dict(human_ann=PEOPLE, human_bob=[f'step {"ABCDE"[x - 1]}' for x in PEOPLE], gpt4=JUDGE))
    for columns in (frame, frame[['human_bob', 'gpt4', 'human_ann']]):
        found = trust(columns)
        assert set(found.decisions.decision) == {NOT_YET} and '--human' in found.decisions.why[0]

@pytest.mark.parametrize('a, b, apart', [
    ([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], True), ([0, 1, 2, 3], [1, 2, 3, 4], True), ([1, 2, 3], [1, 2, 4], False),
    ([0, 2, 4], [0, 1, 5], False), ([0, 1], [1, 2], True), ([1, 3, 5], [2, 3, 4], False), 
    ([2, 6, 10], [1, 3, 5], True)])
def test_two_people_apart(a, b, apart):
    a, b = pd.Series(a*10, dtype=float), pd.Series(b*10, dtype=float)
    assert are_apart(a, b) == are_apart(b, a) == apart

@pytest.mark.parametrize('judge', [[20*x for x in JUDGE], [x/5 for x in JUDGE], [f'{2*x}/10' for x in JUDGE],
                                   [f'{20*x} %' for x in JUDGE], [(x > 3)*1 - (x < 3)*1 for x in JUDGE]])
def test_a_judge_on_another_scale_has_an_order_and_no_mean(judge):
    found = trust(pd.DataFrame(dict(human=PEOPLE, gpt4=judge)), use='filter,mean')
    assert found.decisions.decision.tolist() == [YES, NOT_YET] and '--scale' in found.decisions.why[1]

def test_a_scale_is_known_from_what_judge_and_people_use():
    people = [55.1, 62.5, 70.3, 81., 66.]*12
    judge = [15, 60, 75, 90, 65]*11 + [15, 65, 75, 90, 60] # in people's order but for one text: no copy
    found = trust(pd.DataFrame(dict(human_clarity=people, gpt4_score=judge)), use='mean')
    assert found.matrix.ends == (0, 100) and "not on people's scale" not in found.decisions.why[0]
    assert found.decisions.why[0].count('5 either way') == 1 # .05 of 0 to 100
    assert trust(pd.DataFrame(dict(human=[4, 5]*30, gpt4=JUDGE)), use='mean').matrix.ends == (1, 5)

@pytest.mark.parametrize('no, yes', [(('FALSE', 'false', 0), ('TRUE', 'true', 1)),
                                     (('False', 'false'), ('True', 'TRUE')),
                                     (('nein', 'Nein'), ('ja', 'JA')), (('no', 'N'), ('Yes', 'y')),
                                     (('falsch', 'FALSCH'), ('richtig', 'Richtig')),
                                     (('FAIL', 'fail'), ('PASS', 'pass')),
                                     (('non', 'Non'), ('oui', 'Oui')), (('no', 'nein'), ('yes', 'ja'))])
def test_two_words_in_any_case(no, yes):
    people = [yes[0] if x > 2 else no[0] for x in PEOPLE]
    judge = [yes[1] if x > 2 else no[1] for x in JUDGE]
    found = read_scores(pd.DataFrame(dict(human=people, gpt4=judge)))
    assert found.frame['human'].tolist() == [float(x > 2) for x in PEOPLE]
    assert found.frame['gpt4'].tolist() == [float(x > 2) for x in JUDGE] and found.scale.kind == 'binary'

def test_one_rule_for_what_is_said_and_what_is_computed():
    found = trust(pd.DataFrame(dict(human_label=[0, 1]*30, gpt4_score=[.25, .56]*15 + [.6, .4]*15)), use='mean')
    assert not any('not computed' in line for line in found.said) and found.decisions.estimate.notna().all()
