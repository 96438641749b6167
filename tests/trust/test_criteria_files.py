"Rubrics as people keep them: a column for each criterion, or one that names it."
import pandas as pd
import pytest

from factlib.core.records import BadInput
from factlib.trust.scores import read_criteria
from factlib.trust.trust import trust

N = 30
A, B, C, D = ([(i*k) % 5 + 1 for i in range(N)] for k in (1, 2, 3, 4))

FILES = { # name -> (columns, criteria, judges of the second, people of the second)
    'a word before': (dict(gpt4_Kohärenz=A, Mensch_Kohärenz=B, gpt4_Stil=C, Mensch_Stil=D), ['Kohärenz', 'Stil'],
                      ['gpt4_Stil'], ['Mensch_Stil']),
    'capitals': (dict(expertClarity=B, claudeScoreClarity=A, expertDepth=D, claudeScoreDepth=C), ['Clarity', 'Depth'],
                 ['claudeScoreDepth'], ['expertDepth']),
    'people alone are named': (dict(tone=A, human_tone=B, depth=C, human_depth=D, ticket=[f't{i}' for i in range(N)]),
                               ['tone', 'depth'], ['depth'], ['human_depth']),
    'two people, two judges': (dict(tone_gpt4o=A, tone_DeepSeek=B, tone_annotator1=C, tone_annotator2=D,
                                    facts_annotator2=A, facts_annotator1=B, facts_gpt4o=C, facts_DeepSeek=D),
                               ['tone', 'facts'], ['facts_gpt4o', 'facts_DeepSeek'],
                               ['facts_annotator2', 'facts_annotator1']),
}

@pytest.mark.parametrize('name', FILES)
def test_a_column_for_each_criterion(name):
    columns, criteria, judges, people = FILES[name]
    found = read_criteria(pd.DataFrame(columns))
    assert list(found) == criteria
    second = found[criteria[1]]
    assert list(second.judges) == judges and list(second.humans) == people
    assert second.frame[judges[0]].tolist() == columns[judges[0]]
    kept = read_criteria(pd.DataFrame(columns), criterion=criteria[1])
    assert list(kept) == [criteria[1]]
    with pytest.raises(BadInput, match='--criterion'): read_criteria(pd.DataFrame(columns), criterion='grammar')

def test_a_column_for_each_criterion_beside_raters():
    rows = [dict(datapoint=f't{i}', evaluator=who, consistency=A[i], fluency=column[i])
            for who, column in (('Coder1', B), ('Coder2', C), ('Llama', D)) for i in range(N)]
    found = read_criteria(pd.DataFrame(rows))
    assert list(found) == ['consistency', 'fluency'] and found['fluency'].judges == ('Llama',)
    assert found['fluency'].humans == ('Coder1', 'Coder2') and found['fluency'].frame['Llama'].tolist() == D
    one = read_criteria(pd.DataFrame(rows), score='fluency')
    assert list(one) == [''] and one[''].frame['Coder2'].tolist() == C

@pytest.mark.parametrize('name', ['dimension', 'quality_aspect', 'kriterium'])
def test_a_column_that_names_the_criterion_beside_both_scores(name):
    rows = [{name: c, 'item_id': f's{i}', 'judge_score': j[i], 'human_score': h[i]}
            for c, j, h in (('coherence', A, B), ('fluency', C, D)) for i in range(N)]
    found = read_criteria(pd.DataFrame(rows))
    assert list(found) == ['coherence', 'fluency'] and found['fluency'].frame['human_score'].tolist() == D
    assert list(read_criteria(pd.DataFrame(rows), criterion='fluency')) == ['fluency']

def test_annotators_a_and_b_are_two_people():
    found = read_criteria(pd.DataFrame(dict(human_a=A, human_b=B, gpt_a=C, gpt_b=D)))
    assert list(found) == [''] and found[''].humans == ('human_a', 'human_b')

def test_the_column_of_criteria_may_be_given_and_no_choice_is_ignored():
    rows = [dict(merkmal=c, item_id=f's{i}', judge_score=j[i], human_score=h[i])
            for c, j, h in (('stil', A, B), ('fakten', C, D)) for i in range(N)]
    frame = pd.DataFrame(rows)
    found = read_criteria(frame, criterion='merkmal')
    assert list(found) == ['stil', 'fakten'] and found['fakten'].frame['judge_score'].tolist() == C
    with pytest.raises(BadInput, match="--criterion.*'tone'"): read_criteria(frame, criterion='tone')

@pytest.mark.parametrize('names', [('consistency', 'fluency'), ('Klarheit', 'Tiefe', 'Ton')])
def test_the_page_of_several_criteria_is_called_as_the_file(names, tmp_path):
    rows = [dict(id=i, rater=who, **{name: 1 + (i*(k + 2) + len(who)) % 5 for k, name in enumerate(names)})
            for i in range(8) for who in ('gpt-4o', 'human_ann', 'human_bob')]
    pd.DataFrame(rows).to_csv(tmp_path/'mine.csv', index=False)
    found = trust(tmp_path/'mine.csv')
    assert found.counts.startswith(f'mine.csv: 8 rows, {len(names)} criteria')
    assert [t.file.name for t in found.trusts.values()] == [f'mine.csv, {name}' for name in found.criteria]


def _long_rubric():
    rows = [(i, rater, i % 5 + 1, (i + (rater == 'gpt4')) % 4 + 1) for i in range(20) for rater in ('gpt4', 'ann')]
    return pd.DataFrame(rows, columns=['item', 'rater', 'Clarity', 'Tone-of-voice'])


@pytest.mark.parametrize('kept', ['Tone-of-voice', 'tone_of_voice'])
def test_one_criterion_of_a_long_file_is_kept_however_it_is_written(kept):
    assert trust(_long_rubric()).criteria == ['Clarity', 'Tone-of-voice'] # as the file spells them
    alone = trust(_long_rubric(), criterion=kept)
    assert list(alone.scores) == ['gpt4'] and sorted(set(alone.scores['gpt4'])) == [1, 2, 3, 4]


@pytest.mark.parametrize('flag', ['judge', 'human'])
def test_the_column_of_raters_is_no_judge(flag):
    with pytest.raises(BadInput, match=f"--{flag} rater: this column says who gave each rating.*'gpt4', 'ann'"):
        trust(_long_rubric(), **{flag: 'rater'})
