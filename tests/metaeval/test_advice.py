"What matrices say in sentences, on made-up ones: where the opposite holds they say the opposite."
import numpy as np
import pandas as pd
import pytest

from factlib.metaeval.advice import chance_findings, floor_findings, known_aucs
from sentences import joined, says

# The small matrix

def matrix(*rows):
    "What is found of these evaluators, AUCs, intervals and q, on one benchmark."
    table = pd.DataFrame([dict(benchmark='holmes_order', evaluator=e, statistic='AUC', estimate=auc, ci_low=low,
                               ci_high=high, q=q, family=4, scored=12) for e, auc, low, high, q in rows])
    return joined(chance_findings(known_aucs(table)))

@pytest.mark.parametrize('auc, q, words',
                         [(.7, .01, ['1 have an AUC shown to be above one half (rouge1 0.70 on holmes_order) and 0 '
                                     'below it (none; Benjamini-Hochberg over 4 tests, those of a benchmark). That a']),
                          (.3, .01, ['0 have an AUC shown to be above one half (none) and 1 below it (rouge1',
                                     'in the other 1 does not mean that nothing']),
                          (.6, .06, ['0 have an AUC shown to be above one half (none) and 0 below it (none;',
                                     'in the other 2 does not mean that nothing'])])
def test_what_is_told_apart(auc, q, words):
    rows = (('rouge1', auc, auc - .1, auc + .1, q), ('order_path', .9, None, None, None), ('length', .1, .05, .2, .001),
            ('random', .5, .3, .7, .9))
    says(matrix(*rows), 'Of 2 pairs', *words,
         '1 of 2 AUCs is shown to differ from one half (length 0.10 on holmes_order')

def test_of_many_the_furthest_are_named():
    rows = [(f'e{i}', .6 + i/100, .5, .8, .01) for i in range(9)]
    says(matrix(*rows), 'Of 9 pairs', '9 have an AUC shown to be above one half (furthest e8 0.68 on holmes_order, e7 0.67 '
         'on holmes_order, e6 0.66 on holmes_order, e5 0.65 on holmes_order and e4 0.64 on holmes_order) and 0')

def test_a_tuned_evaluator_is_named_as_tuned():
    says(matrix(('order_path', .9, .8, .95, .01), ('rouge1', .7, .6, .8, .01), ('length', .99, .9, 1., .01)),
         'Of 2 pairs', # the control is none
         '(order_path 0.90 on holmes_order (tuned there) and rouge1 0.70 on holmes_order)')

@pytest.mark.parametrize('length, random, words', [(.001, .02, '2 of 2 AUCs are shown to differ'),
                                                   (.5, .02, '1 of 2 AUCs is shown'),
                                                   (.5, .6, '0 of 2 AUCs are shown to differ from one half (the')])
def test_controls_in_good_english(length, random, words):
    rows = [(e, auc, auc - .1, auc + .1, q) for e, auc, q in (('length', .2, length), ('random', .3, random),
                                                              ('rouge1', .5, 1.))]
    says(matrix(*rows), words)

# The matrix

def cells(*rows):
    "A matrix: evaluator, benchmark, higher, q against the baselines and alpha of each cell."
    table = pd.DataFrame(rows, columns=['evaluator', 'benchmark', 'higher', 'q_floor', 'alpha']).astype(
        dict(q_floor=float))
    made = np.where(table.evaluator == 'fit', 'fitted on these turns', '')
    return table.assign(question='facts', recorded=table.evaluator == 'gpt', made_on=made, floor_tests=4,
                        beats_floors=np.where(table.q_floor < .05, 'yes', 'not shown'),
                        floor=table.evaluator == 'length', scored=table.higher.notna().astype(int)*9,
                        overall_q_floor=table.q_floor.where(table.evaluator != 'gpt'), overall_floor_tests=2)

@pytest.mark.parametrize('q, higher, alpha, words', [
    (.01, .9, .8,
     ['1 of 1 on record are shown to beat every baseline (Benjamini-Hochberg over 4 tests, those of a benchmark\'s',
      'benchmark 2 of 2 that can be run', 'together 2 of 2 are (Benjamini-Hochberg over 2 tests, those of a question): '
      'facts: j and k.', '0 pairs have no score']),
    (.2, .2, .1, ['benchmark 0 of 2 that can be run and 0 of 1 on record', 'together 0 of 2 are (',
                  'b: the raters hardly agree (alpha 0.10), so a low share says little about an evaluator.']),
    (None, None, .8, ['0 of 0 that can be run and 0 of 0 on record', '3 pairs have no score'])])
def test_what_beats_the_floors(q, higher, alpha, words):
    text = joined(floor_findings(cells(('j', 'b', higher, q, alpha), ('k', 'b', higher, q, alpha),
                                       ('gpt', 'b', higher, q, alpha), ('fit', 'b', .99, .01, alpha),
                                       ('length', 'b', .5, None, alpha))))
    says(text, *words, 'Not among them are 1 pairs where the evaluator was made on the benchmark.')
    assert ('hardly agree' in text) == (alpha < .2)
