"Findings of trutheval on made-up tables: where the opposite holds they say the opposite."
import numpy as np
import pandas as pd
import pytest

from factlib.papers.trutheval.findings import control_finding, first_lie_finding, level_finding, two_judges_finding
from factlib.papers.trutheval.tables import sizes_table
from sentences import says

def ladders(tau, auc):
    own = pd.DataFrame(dict(evaluator=['rouge1', 'judge'], questions=100, tau=[tau, -.5], auc=[auc, .9]))
    for name in ('tau', 'auc'): own[f'{name}_low'], own[f'{name}_high'] = own[name] - .02, own[name] + .02
    return [level_finding(own, 'recorded', sizes_table().kendall.min()), first_lie_finding(own)]

def test_whether_shared_words_follow_the_levels():
    says(ladders(-.99, .6), 'without reading for errors', 'for judge, the highest of 2 evaluators, and 0.60')
    says(ladders(-.7, .95), 'do not follow the levels better', 'for rouge1, the highest of 2')
    says(ladders(-.95, .5), 'can\'t be told')

@pytest.mark.parametrize('judge, words',
                         [(.9, 'Of true texts and lies within 0.03 of each other in ROUGE-1, judge puts 90% in the '
                               'right order; ROUGE-1 alone still puts 70% right and text length 60% (100 '
                               'questions).'),
                          (.72, 'judge puts 72% in the right order, not shown to be more than others; ROUGE-1 alone')])
def test_true_texts_against_lies(judge, words):
    put = pd.DataFrame(dict(evaluator=['rouge1', 'length', 'judge'], questions=100,
                            matched_right=[.7, .6, judge], matched_right_low=[.6, .5, judge - .05]))
    says(control_finding(put, .03), words)
    # without the baselines nothing is said of the best
    assert control_finding(put[2:], .03) == ''

def two_judges(first, second, questions=12):
    "What is found of two judges whose scores follow the five levels with these errors."
    chance = np.random.default_rng(0)
    pair = [('RAGAS|gpt-4o-mini', first), ('LLM + NLI|gemma3:12b', second)]
    rows = pd.DataFrame([dict(example_id=f'{q}-{step}', group=f'q{q}',
                              step=step, evaluator=e, value=-step + error*chance.normal())
                         for q in range(questions) for step in range(5) for e, error in pair])
    return two_judges_finding(rows, 'RAGAS|gpt-4o-mini', 'LLM + NLI|gemma3:12b')

def test_two_judges_of_the_same_questions():
    better, worse, alike = two_judges(.01, 6.), two_judges(6., .01), two_judges(2., 3.)
    says(better, 'RAGAS|gpt-4o-mini and LLM + NLI|gemma3:12b differ by -0.', '12 questions)')
    says(worse, 'differ by 0.')
    assert 'no difference is shown' not in better + worse
    says(alike, 'so no difference is shown', 'questions would show one of this size')
