"Findings about the thesis's prompts on made-up tables."
import pandas as pd
import pytest

from factlib.papers.judgememo.prompts import beside_words, lost_finding, missing_scores, missing_words, prompt_changes
from sentences import says

def lost(**shares):
    table = pd.DataFrame([dict(prompt=p, evaluator=e, length='Full', missing=s, cut=s//2, asked=100, share=float(s))
                          for p, row in shares.items() for e, s in zip(('LI', 'Q'), row)]).replace(
                              {'prompt': dict(main='v6-3')})
    return [lost_finding(table), missing_words(table)]

def test_which_prompt_loses_scores():
    text = lost(main=(4, 40), v1=(0, 10), v2=(90,))
    says(text, 'v6-3, the prompt of the main study, lacks 40 % of the scores of one judge (Q, Full', 'and 4 % at best',
         'v1 (5.0 %) lacks fewest scores and v6-3 (22.0 %) most, of the 2 prompts')
    says(text, 'Of these 54 missing scores 27 are of replies that were cut off; 27 could not be read, 22 of them with '
               'v6-3.')
    says(lost(main=(0, 0), v1=(30, 10)), 'v6-3 (0.0 %) lacks fewest scores and v1 (20.0 %) most')
    assert lost(v1=(30, 10))[0] == '' # without the prompt of the main study

def test_a_score_that_cannot_be_read_is_missing_too():
    rows = [dict(prompt=p, evaluator='LI', level='2000', value=4. if why is None else None, finish_reason=why or 'stop')
            for p, whys in dict(v1=['length', None, None, None], v2=['stop', 'stop', None, None]).items()
            for why in whys]
    says(missing_words(missing_scores(pd.DataFrame(rows))), 'v1 (25.0 %) lacks fewest scores and v2 (50.0 %) most',
         'Of these 3 missing scores 1 are of replies that were cut off; 2 could not be read, all of them with v2.')

@pytest.mark.parametrize('change, q, words',
                         [(-.5, .01, 'more is noticed with v1 (not recorded with Q) and less with no prompt'),
                          (.5, .01, 'more is noticed with no prompt and less with v1 (not recorded with Q)'),
                          (-.5, .2, 'for the other 1 no difference is shown')])
def test_prompts_beside_that_of_the_main_study(change, q, words):
    beside = pd.DataFrame(dict(prompt=['v1'], judges=[['LI']], change=[change], q=[q], family=1, documents=5))
    says(beside_words(beside, ['LI', 'Q'], ['v1', 'v4-1']), words, 'on 5 texts. Not compared: v4-1.')

def test_a_document_counts_once():
    "v1 costs a point more than v6-3, by two judges on two documents; v2 has no score in common with it."
    rows = [dict(prompt=p, evaluator=e, level='2000', metric='fluency', variant=v, group=g,
                 value=None if p == 'v2' else 5. - (v == '41')*(1 + (p == 'v1') + i/10))
            for p in ('v1', 'v2', 'v6-3') for e in ('LI', 'Q') for v in ('gold', '41') for i, g in enumerate('ab')]
    row, = prompt_changes(pd.DataFrame(rows), ['v1', 'v2', 'v6-3']).itertuples()
    assert (row.prompt, row.judges, row.documents, round(row.change, 9)) == ('v1', ['LI', 'Q'], 2, -1)
    assert prompt_changes(pd.DataFrame(rows), ['v1'], against='v9').empty
