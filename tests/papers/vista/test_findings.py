"Findings of VISTA on made-up tables: where the opposite holds they say the opposite."
import pandas as pd

from factlib.papers.vista.findings import ablation_findings, claim_findings, model_findings, support_findings
from sentences import joined, says

def aucs(*differences, evaluator='vista, M', auc=.9, half=.02, q=.01):
    rows = [dict(dataset=f'set{i}', evaluator=evaluator, auc=auc, ci_low=auc - .1, ci_high=.95, difference=d,
                 difference_low=d - half, difference_high=d + half, q=q, family=3) for i, d in enumerate(differences)]
    return pd.DataFrame(rows)

def words(*areas):
    return pd.DataFrame([dict(dataset=f'set{i}', evaluator='word_support', auc=auc, ci_low=auc - .1, ci_high=.95,
                              difference=None, difference_low=None, difference_high=None, q=None, family=3)
                         for i, auc in enumerate(areas)])

def found(*tables): return joined(support_findings(pd.concat([words(.8, .7), *tables])))

def test_whether_a_model_beats_shared_words():
    says(found(aucs(.1, -.1)), 'AUC of 0.70 to 0.80 by word_support (the share of its words that the source has)',
         '0.90 by vista, M', 'on 2 sets', 'vista, M beats shared words is shown on 1 of 2 sets, the '
         'opposite on 1 (on each set Benjamini-Hochberg over 3')
    says(found(aucs(.1, .01)), 'shown on 1 of 2 sets, the opposite on 0; on 1 it can\'t be told')
    says(found(aucs(.1, -.1, q=.2)), 'shown on 0 of 2 sets, the opposite on 0; on 2 it can\'t be told')

def test_each_sentence_says_whose_it_is():
    "A model is below shared words here and the details above them; of length nobody expects anything."
    model, details = aucs(-.055, auc=.877), aucs(.023, auc=.955, evaluator='detail_support')
    answer, *beats = support_findings(pd.concat([words(.93), details, model, aucs(-.5, evaluator='length')]))
    says(answer, '0.93 by word_support', ' 0.95 by detail_support (the details that the source has', '0.88 by vista, M')
    says(beats[0], 'That detail_support beats', 'on 1 of 1 set, the opposite on 0 (', '+0.023')
    says(beats[1], 'That vista, M beats', 'on 0 of 1 set, the opposite on 1 (', '-0.055')
    assert len(beats) == 2

def test_a_set_that_an_evaluator_was_made_on_is_no_fair_test():
    for name, dataset in (('detail_support', 'begin_tc'), ('words_and_details', 'begin_tc, seed 1')):
        details = aucs(.1, evaluator=name)
        made = details.assign(dataset=dataset)
        says(found(details, made), 'shown on 1 of 1 set', f'Not counted: {dataset}, where it was made.')
        assert 'beats' not in found(made)
    assert 'Not counted' not in found(aucs(.1).assign(dataset='begin_tc'))

def test_without_both_labels_nothing_is_compared():
    assert support_findings(words(.8).assign(auc=None)) == []

def test_an_ablation_that_changes_nothing_says_nothing():
    def found(b, delta):
        return ablation_findings(pd.DataFrame(dict(dataset='d', seed=0, model='M', setting=['vista', 'vista_no_history'],
                                                   scored=112, b=[None, b], c=[None, 0], delta=[None, delta],
                                                   ci_low=[None, delta - 1], ci_high=[None, delta + 1])))
    says(found(0, 0.), 'no verdict of 112 turns changes with vista_no_history', 'says nothing about')
    says(found(5, 4.5), 'vista_no_history 4.50, a loss')
    says(found(5, -4.5), 'vista_no_history -4.50, a gain')
    says(found(5, .5), 'vista_no_history 0.50, not shown')

def test_models_of_which_the_same_is_said_share_a_sentence():
    rows = [dict(dataset='begin', seed=0, model=model, setting=setting, scored=20, b=0, c=0, delta=0., ci_low=0., ci_high=0.)
            for model in ('L', 'M', 'N', 'O', 'P') for setting in ('vista', 'vista_no_history')]
    for row in rows[-1:]: row |= dict(b=5, delta=25., ci_low=4., ci_high=46.)
    same, lost = ablation_findings(pd.DataFrame(rows))
    says(same, 'With L, M, N and O on begin no verdict of 20 turns changes with vista_no_history')
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

def test_only_given_claims_are_counted():
    row = dict(evaluator='vista, M, given claims', scored=40, accuracy=.8, macro_f1=.7, majority_f1=.2, f1_low=None,
               f1_high=None)
    told, = claim_findings(pd.DataFrame([row, row | dict(evaluator='vista, M')]))
    says(told, 'Given the written claims, vista, M puts 80 % of 40 claims',
         'macro-F1 0.70; always the most frequent one: 0.20')
    many = pd.DataFrame([row | dict(evaluator=f'vista, {m}, given claims', accuracy=a) for m, a in
                         zip('MNOP', (.5, .6, .7, .8))])
    told, = claim_findings(many)
    says(told, '4 models put 50 to 80 % of them')
