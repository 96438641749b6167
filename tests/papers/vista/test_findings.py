"Findings of VISTA on made-up tables: where the opposite holds they say the opposite."
import pandas as pd

from factlib.papers.vista.findings import ablation_findings, claim_findings, model_findings, support_findings
from sentences import joined, says

def aucs(*differences, evaluator='vista, by rules', auc=.9, half=.02, q=.01):
    rows = [dict(dataset=f'set{i}', evaluator=evaluator, auc=auc, ci_low=auc - .1, ci_high=.95, difference=d,
                 difference_low=d - half, difference_high=d + half, q=q, family=3) for i, d in enumerate(differences)]
    return pd.DataFrame(rows)

def found(*tables, made_on=0): return joined(support_findings(pd.concat(tables), made_on, 30))

def test_whether_claims_beat_shared_words():
    says(found(aucs(.1, -.1)), 'AUC of 0.90 by vista, by rules (the score of the paper, the share of verified claims)',
         'and 0.80 to 1.00 by the share of words', 'on 2 sets', 'beats shared words is shown on 1 of 2 sets, the '
         'opposite on 1 (on each set Benjamini-Hochberg over 3')
    says(found(aucs(.1, .01)), 'shown on 1 of 2 sets, the opposite on 0; on 1 it can\'t be told')
    says(found(aucs(.1, -.1, q=.2)), 'shown on 0 of 2 sets, the opposite on 0; on 2 it can\'t be told')
    says(found(aucs(.1), made_on=20), 'The rules were made on 20 of the 30 written dialogues.')
    assert 'rules were made' not in found(aucs(.1))

def test_what_holds_of_our_own_degree_is_not_said_of_the_papers_score():
    "The paper's score is below shared words here and ours above them, and each sentence says whose."
    score, degree = aucs(-.055, auc=.877), aucs(.023, auc=.955, evaluator='vista, by rules, graded')
    answer, *beats = support_findings(pd.concat([degree, score]), 0, 30)
    says(answer, 'AUC of 0.88 by vista, by rules (the score of the paper',
         ' 0.95 by vista, by rules, graded (our own degree of support)', 'and 0.93 by the share of words')
    says(beats[0], 'That vista, by rules (the score', 'on 0 of 1 set, the opposite on 1 (', '-0.055')
    says(beats[1], 'That vista, by rules, graded (our own', 'on 1 of 1 set, the opposite on 0 (', '+0.023')

def test_without_both_labels_nothing_is_compared():
    table = pd.DataFrame([dict(dataset='a', evaluator='vista, by rules', auc=None, difference=None, difference_low=None,
                               difference_high=None, q=None, family=3)])
    assert support_findings(table, 0, 0) == []

def test_an_ablation_that_changes_nothing_says_nothing():
    def found(b, delta):
        return ablation_findings(pd.DataFrame(dict(setting=['vista', 'vista_no_history'],
                                                   scored=112, b=[None, b], c=[None, 0], delta=[None, delta],
                                                   ci_low=[None, delta - 1], ci_high=[None, delta + 1])))
    says(found(0, 0.), 'no verdict of 112 turns changes with vista_no_history', 'says nothing about')
    says(found(5, 4.5), 'vista_no_history 4.50, a loss')
    says(found(5, -4.5), 'vista_no_history -4.50, a gain')
    says(found(5, .5), 'vista_no_history 0.50, not shown')

def test_models_of_which_the_same_is_said_share_a_sentence():
    rows = [dict(dataset='begin', seed=0, model=model, setting=setting, scored=20, b=0, c=0, delta=0., ci_low=0., ci_high=0.)
            for model in ('by rules', 'M', 'N', 'O', 'P') for setting in ('vista', 'vista_no_history')]
    for row in rows[-1:]: row |= dict(b=5, delta=25., ci_low=4., ci_high=46.)
    same, lost = ablation_findings(pd.DataFrame(rows))
    says(same, 'By rules and with M, N and O on begin no verdict of 20 turns changes with vista_no_history')
    says(lost, 'With P on begin accuracy shows a loss with vista_no_history (1 tried)')

def test_of_many_models_the_range_is_told():
    table = pd.DataFrame([dict(model=m, dataset=d, why='', turns=100, VISTA=70. + i, VISTA_scored=100, **{
        'LLM-as-Judge': 60. - i, 'LLM-as-Judge_scored': 90, 'FActScore': None, 'FActScore_scored': 0})
        for i, m in enumerate('MNOP') for d in ('begin', 'audit')])
    counts = pd.DataFrame([dict(model=m, comparison=f'VISTA vs {other}', p=p, delta=delta) for m in 'MNOP'
                           for other, p, delta in (('LLM-as-Judge', .01, 5.), ('FActScore', .2, -3.))])
    told, = model_findings(table, counts)
    says(told, 'Accuracy in percent with 4 models: begin: VISTA 70.0 to 73.0', 'audit: VISTA 70.0 to 73.0',
         'VISTA is above in 4 of 8 comparisons and below in 0')
    assert len(model_findings(table[table.model.isin(['M', 'N'])], counts)) == 2

def test_claims_of_conversations_that_the_rules_were_made_with_are_not_counted():
    row = dict(evaluator='vista, by rules, given claims', scored=40, accuracy=.8, macro_f1=.7, majority_f1=.2)
    rows = [row | dict(half='seen', f1_low=.6, f1_high=.8), row | dict(half='unseen', f1_low=None, f1_high=None)]
    unseen, = claim_findings(pd.DataFrame([*rows, rows[1] | dict(evaluator='vista, by rules')]))
    says(unseen, 'that they were not made with, vista by rules puts 80 % of 40 claims',
         'macro-F1 0.70; always the most frequent one: 0.20')
