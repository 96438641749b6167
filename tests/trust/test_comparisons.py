"Files in which judges and people say which of two texts is better: every way of writing it, and none guessed."
import numpy as np
import pandas as pd
import pytest

from factlib.core.records import BadInput
from factlib.trust.comparisons import one_winner, order_twins
from factlib.trust.scores import read_scores
from factlib.trust.trust import trust
from factlib.trust.decision import NOT_YET
from factlib.trust.verdicts import Comparisons

N = 24
PEOPLE = [1, 0, .5, 1, 0, 0]*4 # 1: the first text wins
JUDGE = [1, 0, .5, 0, 0, 1]*4
SYSTEMS = ['mint', 'sage']*(N//2), ['sage', 'mint']*(N//2)

def said(verdicts, first, second, tie): return [{1: first, 0: second, .5: tie}[v] for v in verdicts]

def texts(start): return [f'{start} the kettle stood by the green door, {i}' for i in range(N)]

def by_name(verdicts): return [{1: a, 0: b, .5: 'Tie'}[v] for v, a, b in zip(verdicts, *SYSTEMS)]

def sides(first, second, values=SYSTEMS): return {first: values[0], second: values[1]}

def both(human, judge, first, second, tie): return {human: said(PEOPLE, first, second, tie),
                                                    judge: said(JUDGE, first, second, tie)}

FILES = { # name -> columns in the order of the file
    'model_a, model_b, A and B': dict(id=range(N)) | sides('model_a', 'model_b') | dict(
        human_winner=said(PEOPLE, 'model_a', 'model_b', 'tie'), judge_pick=said(JUDGE, 'A', 'B', 'tie')),
    'Chatbot Arena': dict(question_id=[f'q{i}' for i in range(N)]) | sides('model_a', 'model_b') | dict(
        winner=said(PEOPLE, 'model_a', 'model_b', 'tie (bothbad)'), judge='arena_user', turn=1,
        gpt4_verdict=said(JUDGE, '[[A]]', '[[B]]', '[[C]]')),
    'German': both('sieger_mensch', 'sieger_judge', 'A', 'B', 'unentschieden') | sides('modell_a', 'modell_b'),
    'A>B': dict(paar=range(N)) | both('Urteil_Mensch', 'Urteil_LLM', 'A>B', 'B>A', 'A=B'),
    'A>>B': dict(judge_verdict=said(JUDGE, '[[A>>B]]', '[[B>A]]', '[[A=B]]'), label=said(PEOPLE, 'A>B', 'B>>A', 'A=B')),
    'names in capitals': dict(question_id=range(N)) | sides('model_name', 'baseline_name') | dict(
        human_winner=[w.upper() for w in by_name(PEOPLE)], judge_winner=by_name(JUDGE)),
    'preferred_model': dict(preferred_model=by_name(PEOPLE), judge_preferred_model=[w.lower() for w in by_name(JUDGE)])
    | sides('model_1', 'model_2') | dict(prompt=texts('Why')),
    'Response 1 wins': dict(judge_verdict=said(JUDGE, 'Response 1 wins', 'Response 2 wins', 'Tie'),
                            response_1=texts('so'), response_2=texts('no'),
                            annotator_choice=said(PEOPLE, 'Response 1', 'Response 2', 'Equal')),
    'both and neither': dict(antwort_a=texts('so'), antwort_b=texts('no'),
                             mensch=said(PEOPLE, 'A', 'B', 'both'), llama_judge=said(JUDGE, 'a', 'b', 'neither')),
    '1, 2 and 0': dict(left_answer=texts('so'), right_answer=texts('no')) | both('human_preference',
                                                                                'claude_preference', 1, 2, 0),
    '1, 2 and 1.5': dict(output_1=texts('so'), output_2=texts('no')) | both('preference', 'gpt4_preference', 1, 2, 1.5),
    '-1, 0 and 1': both('human_preference', 'claude_preference', 1, -1, 0) | dict(summary_a=texts('so'),
                                                                                 summary_b=texts('no')),
    'names of columns of texts': dict(output_mint=texts('so'), output_sage=texts('no'),
                                      human_pref=said(PEOPLE, 'mint', 'sage', 'tie'),
                                      judge_pref=said(JUDGE, 'output_mint', 'output_sage', 'tie')),
    'wins over a baseline': dict(output=texts('so'), baseline_output=texts('no')) | both('human_result', 'gpt4_result',
                                                                                        'win', 'loss', 'tie'),
    'graded': dict(response_a=texts('so'), response_b=texts('no'),
                   rater_1=said(PEOPLE, 'A much better', 'B slightly better', 'About the same'),
                   llm_verdict=said(JUDGE, 'A slightly better', 'B much better', 'About the same')),
    'a column for each outcome': dict(id=range(N)) | sides('model_a', 'model_b') | dict(
        winner_model_a=[int(v == 1) for v in PEOPLE], winner_model_b=[int(v == 0) for v in PEOPLE],
        winner_tie=[int(v == .5) for v in PEOPLE], gpt4_winner=said(JUDGE, 'A', 'B', 'tie')),
}

@pytest.mark.parametrize('name', FILES)
def test_who_wins_is_read_without_a_flag(name):
    found = read_scores(pd.DataFrame(FILES[name]))
    assert isinstance(found, Comparisons), found.said
    assert [v.tolist() for v in found.humans.values()] == [PEOPLE] and list(found.swapped) == []
    assert [v.tolist() for v in found.judges.values()] == [JUDGE]
    assert any(line.startswith('Verdicts of') for line in found.said)
    if any(str(column).startswith(('model', 'modell')) for column in FILES[name]):
        assert found.frame['first'].tolist() == SYSTEMS[0] and found.frame['second'].tolist() == SYSTEMS[1]

TWO = {
    'true where a wins': dict(response_a=texts('so'), response_b=texts('no'), human_prefers_a=[True, False]*12,
                              judge_prefers_a=['yes', 'no']*12),
    'true where the second wins': dict(text_1=texts('so'), text_2=texts('no'), human_prefers_second=[0, 1]*12,
                                       gpt_prefers_second=['FALSE', 'TRUE']*12),
    'answers numbered from 0': dict(response_0=texts('so'), response_1=texts('no'), better_response_id=[0, 1]*12,
                                    gpt4_better_response_id=[0, 1]*12),
}

@pytest.mark.parametrize('name', TWO)
def test_true_and_0_say_who_wins_where_the_names_say_how(name):
    found = read_scores(pd.DataFrame(TWO[name]))
    assert isinstance(found, Comparisons)
    for verdicts in (*found.humans.values(), *found.judges.values()): assert verdicts.tolist() == [1, 0]*12

@pytest.mark.parametrize('labels, flag', [((0, 1), "--order '0 < 1'"), ((False, True), '--order'),
                                          (('B', 'A', 'Gleichstand im Ergebnis'), '--order')])
def test_what_could_mean_either_text_is_asked_about(labels, flag):
    frame = pd.DataFrame(dict(antwort_a=texts('so'), antwort_b=texts('no'), human_choice=[*labels]*(N//len(labels)),
                              gpt_choice=[*labels]*(N//len(labels))))
    with pytest.raises(BadInput, match=flag) as refused: read_scores(frame)
    assert 'human_choice' in str(refused.value)
    order = ' < '.join(map(str, labels if len(labels) == 2 else (labels[0], labels[2], labels[1])))
    found = read_scores(frame, order=order)
    assert found.humans['human_choice'].tolist() == ([0, 1]*12 if len(labels) == 2 else [0, 1, .5]*8)

def test_scores_of_both_texts_in_one_row_are_no_criteria():
    frame = dict(id=range(N)) | sides('model_a', 'model_b') | {
        f'{who}_score_{side}': [1, 2, 3]*8 for who in ('human', 'gpt') for side in 'ab'}
    with pytest.raises(BadInput, match='a row for each text'): read_scores(pd.DataFrame(frame))

def test_two_sentences_with_a_score_are_no_comparison():
    frame = dict(sentence1=texts('so'), sentence2=texts('no'), human_score=[1, 2, 3]*8, gpt_score=[1, 3, 3]*8)
    found = read_scores(pd.DataFrame(frame))
    assert not isinstance(found, Comparisons) and found.scale.kind == 'number'
    classes = ['entailment', 'neutral', 'contradiction']*8
    found = read_scores(pd.DataFrame(frame | dict(human_score=classes, gpt_score=classes)))
    assert found.scale.kind == 'nominal'

def test_both_orders_in_columns_are_put_back_though_the_letters_are_in_the_names_of_the_systems():
    "'A' of the other order is the file's model_b: people agree with 20 of 20 verdicts that are read so."
    frame = pd.DataFrame(sides('model_a', 'model_b') | dict(
        human=said(PEOPLE, 'A', 'B', 'tie'), judge_ab=said(PEOPLE, 'A', 'B', 'tie'),
        judge_ba=said(PEOPLE, 'B', 'A', 'tie')))
    found = read_scores(frame)
    assert found.swapped['judge'].tolist() == PEOPLE == found.judges['judge'].tolist()
    assert order_twins(['gpt_original', 'gpt_flipped']) == {'gpt': ('gpt_original', 'gpt_flipped')}

def test_both_orders_in_rows_belong_to_one_question():
    "Two rows of one question and the same systems are one pair; those of another question aren't."
    first = pd.DataFrame(dict(question_id=range(N)) | sides('system_a', 'system_b')
                         | both('human_label', 'gpt_label', 'A', 'B', 'tie'))
    other = pd.DataFrame(dict(question_id=range(N)) | sides('system_a', 'system_b', SYSTEMS[::-1])
                         | both('human_label', 'gpt_label', 'B', 'A', 'tie'))
    found = read_scores(pd.concat([first, other], ignore_index=True))
    assert len(found.frame) == N and found.swapped['gpt_label'].tolist() == JUDGE
    alone = read_scores(first.drop(columns='question_id')) # each row a question of its own
    assert len(alone.frame) == N and not alone.swapped

def test_one_of_several_columns_is_the_winner():
    frame = pd.DataFrame(dict(winner_model_a=[1, 0, 0, None], winner_model_b=[0, 0, 1, None],
                              winner_tie=[0, 1, 0, None], x=1))
    folded, line = one_winner(frame)
    assert list(folded) == ['x', 'winner'] and folded.winner.tolist()[:3] == ['A', 'tie', 'B']
    assert folded.winner.isna()[3] and "'winner'" in line
    twice = frame.assign(winner_tie=1)
    assert one_winner(twice)[0] is twice

def test_raters_of_pairs_and_their_systems_in_a_long_file():
    "MT-bench's form: a question stands beside several pairs, and a judge may be a list."
    rows = [dict(question_id=i % 8, model_a=a, model_b=b, winner=said([v], 'model_a', 'model_b', 'tie')[0], judge=who,
                 turn=1 + (i >= 8)) for who, verdicts in (('expert_7', PEOPLE), ('author_2', PEOPLE),
                                                          (['gpt-4', 'pair-v2'], JUDGE))
            for i, (v, a, b) in enumerate(zip(verdicts[:16], *SYSTEMS))]
    found = read_scores(pd.DataFrame(rows), human='expert_7,author_2')
    assert isinstance(found, Comparisons) and list(found.humans) == ['expert_7', 'author_2']
    assert found.judges['gpt-4, pair-v2'].tolist() == JUDGE[:16] and found.frame['first'].tolist() == SYSTEMS[0][:16]
    turned = pd.DataFrame(rows)
    other = turned.judge.map(str) == 'author_2'
    turned.loc[other, ['model_a', 'model_b']] = turned.loc[other, ['model_b', 'model_a']].to_numpy()
    said_so = read_scores(turned, human='expert_7,author_2').said
    assert any('16 comparisons stand in both orders' in line for line in said_so)

def test_a_judge_that_always_says_what_people_say_is_asked_about():
    frame = pd.DataFrame(sides('model_a', 'model_b') | dict(human_winner=said(PEOPLE*3, 'A', 'B', 'tie')[:N],
                                                           judge_verdict=said(PEOPLE*3, 'A', 'B', 'tie')[:N]))
    found = trust(frame)
    assert 'identical' in found.warnings[0] and '24 of 24 pairs' in found.warnings[0]
    assert set(found.decisions.decision) == {NOT_YET}
    frame.loc[0, 'judge_verdict'] = 'B'
    assert not any('identical' in line for line in trust(frame).warnings)

def test_words_of_single_texts_are_not_said_of_pairs():
    found = trust(pd.DataFrame(FILES['model_a, model_b, A and B']))
    whole = ' '.join([*found.lines, *found.said])
    for wrong in ('good text', 'its mean', 'people give', '--system'): assert wrong not in whole
    mint = [v if a == 'mint' else 1 - v for v, a in zip(PEOPLE, SYSTEMS[0])]
    rates = found.tables['win_rates'].set_index('system')
    assert rates.people['mint'] == pytest.approx(np.mean(mint))

@pytest.mark.parametrize('words', [('A', 'B', 'tie'), ('first', 'second', 'draw')])
def test_a_judge_that_only_says_tie_is_read_beside_people_who_name_winners(words):
    made = read_scores(pd.DataFrame(dict(gpt=[words[2]]*N, human=said(PEOPLE, *words))))
    assert isinstance(made, Comparisons)
    assert list(made.judges['gpt']) == [.5]*N and list(made.humans['human']) == PEOPLE
    assert "Verdicts of 'gpt': ties only." in made.said
