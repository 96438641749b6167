"""Findings on made-up tables: of the matrix, the narratives, the offline judges, trutheval, and the two lengths under
JudgeMemo."""
import numpy as np
import pandas as pd
import pytest

from experiments.test_experiments_findings import said
from experiments.test_experiments_findings_3 import says

# The matrix

def cells(*rows):
    "A matrix: evaluator, benchmark, higher, beats_floors, alpha of each cell."
    table = pd.DataFrame(rows, columns=['evaluator', 'benchmark', 'higher', 'beats_floors', 'alpha'])
    return table.assign(recorded=False, made_on=np.where(table.evaluator == 'fit', 'fitted on these turns', ''),
                        floor=table.evaluator == 'length', scored=table.higher.notna().astype(int)*9)

@pytest.mark.parametrize('beats, higher, alpha, words', [
    ('yes', .9, .8,
     ['Of 2 pairs of an evaluator and a benchmark 2 are shown to beat every floor (Holm over the whole table); for 0',
      '0 pairs have no score']),
    ('no', .2, .1, ['Of 2 pairs of an evaluator and a benchmark 0 are shown', 'for 0',
                    'b: the raters hardly agree (alpha 0.10), so a low share says little about an evaluator.']),
    ('too few groups', .9, .8, ['Of 2 pairs of an evaluator and a benchmark 0 are shown', 'for 2 there were too few']),
    ('', None, .8, ['Of 0 pairs of an evaluator and a benchmark 0', '2 pairs have no score'])])
def test_what_beats_the_floors(beats, higher, alpha, words):
    text = said('trust_matrix', 'trust-heat-findings',
                matrix=cells(('j', 'b', higher, beats, alpha), ('k', 'b', higher, beats, alpha),
                             ('fit', 'b', .99, 'yes', alpha), ('length', 'b', .5, '', alpha)))
    says(text, *words, 'Not among them are 1 pairs where the evaluator was made on the benchmark.')
    assert ('hardly agree' in text) == (alpha < .2)

@pytest.mark.parametrize('worse, alarms, words', [
    ((.9, .6), (.2, .5),
     'b, flashback: j separates them best: it scores 90% of the worse texts lower, and 20% of the harmless ones; more '
     'alarms than chance (interval above .5): none.'),
    ((.5, .9), (.9, .2),
     'k separates them best: it scores 90% of the worse texts lower, and 20% of the harmless ones; more alarms than '
     'chance (interval above .5): j.'),
    ((.2, .2), (.9, .8),
     'b, flashback: none scores the worse texts lower more often than the harmless ones; more alarms than chance '
     '(interval above .5): j and k.'),
    ((.58, .5), (.6, .52),
     'b, flashback: none scores the worse texts lower more often than the harmless ones; more alarms than chance '
     '(interval above .5): none.'),
    ((.5, None), (.4, .9),
     'j separates them best: it scores 50% of the worse texts lower, and 40% of the harmless ones; more alarms than '
     'chance (interval above .5): k.'),
    ((None, None), (.9, .2), 'no evaluator has scores of both; more alarms than chance (interval above .5): j.')])
def test_who_raises_false_alarms(worse, alarms, words):
    table = pd.DataFrame(dict(benchmark='b', control='flashback', evaluator=['j', 'k'],
                              worse_lower=worse, alarms=alarms, ci_low=[a - .2 for a in alarms]))
    table = table.assign(excess=table.worse_lower - table.alarms, made_on='')
    says(said('trust_matrix', 'trust-alarms-finding', alarms=table), words)
    text = said('trust_matrix', 'trust-alarms-finding', alarms=table.assign(made_on=['tuned on these stories', '']))
    assert ('j (tuned on these stories) separates' in text) == ('j separates' in words)

# NarrativeFactScore

def graph_finding(whole, form, books=12, same=False):
    "The findings of the table of correlations, for scores that follow the truth with these errors."
    chance = np.random.default_rng(0)
    rows = [(b, i, chance.normal()) for b in range(books) for i in range(5)]
    def judged(name, error):
        return [dict(dataset='s', evaluator=name, example_id=f'{b}-{i}', group=f'b{b}',
                     truth=truth, value=truth + error*chance.normal(), absence=None) for b, i, truth in rows]
    frame = pd.DataFrame([r for name, error in (('narrativefactscore', whole), ('narrativefactscore_text', form),
                                                ('length', 9.)) for r in judged(name, error)])
    if same:
        frame.loc[frame.evaluator == 'narrativefactscore_text',
                  'value'] = list(frame.value[frame.evaluator == 'narrativefactscore'])
    return said('narrativefactscore', 'narrativefactscore-correlation', judged=frame, seed=0, display=lambda x: None)

@pytest.mark.parametrize('whole, form, words', [(.1, 3., 'it helps.'), (3., .1, 'it costs agreement.'),
                                                (1., 1., 'that it helps is not shown.')])
def test_whether_the_graph_helps(whole, form, words):
    says(graph_finding(whole, form), '(narrativefactscore against narrativefactscore_text; 60 of 60 scores change); '
         + words)

def test_a_graph_that_changes_no_score_says_nothing():
    text = graph_finding(1., 0., same=True)
    says(text, 's: the graph changes none of 60 scores (narrativefactscore against narrativefactscore_text), so '
               'whether it helps can\'t be told here.')
    assert 'rho with people' not in text

def test_correlations_are_those_of_the_table():
    row = dict(dataset='s', scored=9, spearman_low=-.1, spearman_high=.4)
    table = pd.DataFrame([row | dict(evaluator=e, spearman=rho)
                          for e, rho in (('narrativefactscore', .16), ('length', .41), ('rouge1', .2))])
    text = said('narrativefactscore', 'narrativefactscore-correlation-finding', known=table, table_1=table)
    says(text, 's, Spearman\'s rho with people\'s judgements: narrativefactscore 0.16', 'length 0.41')
    assert 'rouge1' not in text

# Offline judges beside the recorded

def at_two_lengths(effect, p_holm):
    rows = [dict(evaluator=e, variant='17', fault='f', p=p_holm, p_holm=p_holm,
                 effect=effect, dz_short=1., dz_long=1. + effect) for e in ('LI', 'rouge1')]
    llm = pd.DataFrame(dict(evaluator=['LI']))
    return said('offline_against_recorded', 'offline-judges-lengths-findings',
                full=True, llm=llm, evaluators={'rouge1': None}, lengths=pd.DataFrame(rows), shared=set(range(8)))

def test_what_two_lengths_show():
    says(at_two_lengths(-.8, .01), 'recorded language models: after Holm (over 2 tests, two-sided)',
         'in 1 of 1 tests, in 1 of them because', 'rouge1 on [17] f (1.0 and 0.2)')
    says(at_two_lengths(.8, .01), 'in 1 of 1 tests, in 0 of them because')
    text = at_two_lengths(-.8, .2)
    says(text, 'in 0 of 1 tests.', 'd_z 1.2 with a power of 80 %', 'smaller differences may be there')
    assert 'The offline ones' not in text

# trutheval

def two_judges(first, second, questions=12):
    "What is found of two judges whose scores follow the five levels with these errors."
    chance = np.random.default_rng(0)
    pair = [('RAGAS|gpt-4o-mini', first), ('LLM + NLI|gemma3:12b', second)]
    rows = pd.DataFrame([dict(example_id=f'{q}-{step}', group=f'q{q}',
                              step=step, evaluator=e, value=-step + error*chance.normal())
                         for q in range(questions) for step in range(5) for e, error in pair])
    return said('trutheval', 'trutheval-compare', rows=rows, theirs=rows, seed=0)

def test_two_judges_of_the_same_questions():
    better, worse, alike = two_judges(.01, 6.), two_judges(6., .01), two_judges(2., 3.)
    says(better, 'RAGAS|gpt-4o-mini and LLM + NLI|gemma3:12b differ by -0.', '12 questions)')
    says(worse, 'differ by 0.')
    assert 'no difference is shown' not in better + worse
    says(alike, 'so no difference is shown', 'questions would show one of this size')

@pytest.mark.parametrize('first, second, words', [
    ('Both are good', 'AI', '100.0 % are ties as the paper counts them, and 0.0 % by the composite score'),
    ('AI', 'Expert', '0.0 % are ties as the paper counts them, and 100.0 % by the composite score'),
    ('Both are good', 'Both are good', '100.0 % are ties as the paper counts them, and 100.0 % by')])
def test_ties_in_both_meanings(first, second, words):
    pairs = pd.DataFrame([dict(group=f'q{q}', level=level, first=first if level else 'AI',
                               second=second if level else 'AI') for q in range(8) for level in range(5)])
    says(said('trutheval', 'trutheval-ties', pairs=pairs, seed=0, display=lambda x: None),
         'Of the pairs at A1 to A4, ' + words)

# Two lengths under JudgeMemo

@pytest.mark.parametrize('vanilla, memo, words', [
    ((2, 0), (0, 2), ['differently in 2 of 2 cases under a single prompt and in 0 under JudgeMemo']),
    ((0, 2), (2, 0), ['differently in 0 of 2 cases under a single prompt and in 2 under JudgeMemo'])])
def test_at_which_the_lengths_are_judged_differently(vanilla, memo, words):
    rows = [dict(setup=setup, ci_low=low, ci_high=.9)
            for setup, (apart, open_) in (('vanilla', vanilla), ('JudgeMemo', memo))
            for low in [.1]*apart + [-.1]*open_]
    shown = pd.DataFrame(rows)
    gaps = pd.DataFrame(dict(variant=['17', '42'], evaluator='LI', judgememo=[.1, .3],
                             vanilla=[.4, .6], p_holm=[.01, .2]))
    text = said('what_the_recordings_say', 'say-three-finding', judges=['LI'], shown=shown, shared=range(30), gaps=gaps)
    says(text, *words, 'what is not shown is not absent',
         '0.20 points apart under JudgeMemo and 0.50 under a single prompt',
         'in 1 of 2 cases ([17] LI); in the other 1')

# VISTA's accuracy, numbers beside their floors

def test_accuracy_stands_beside_its_floors():
    rows = [dict(dataset='s', evaluator=e, turns=9, accuracy=a, majority=60.)
            for e, a in (('word_support', 85.6), ('vista, graded', 80.1), ('vista_fitted', 90.2))]
    text = said('vista', 'vista-accuracy-finding', accuracy=pd.DataFrame(rows))
    says(text, 'vista, graded beside word_support and the more frequent label: s 80.1 (85.6, 60.0)',
         's 90.2 (85.6, 60.0)')
