"Judges, people, texts and groups of files by kind: those that were misread once, built here, and others like them."
import random

import pandas as pd
import pytest

from factlib.core.records import BadInput
from factlib.trust.scores import read_criteria, read_scores

N = 30
WORDS = 'lamp kettle ladder bucket fox mill river stone bread candle window garden'.split()
PLACES = range(N)


def marks(seed, low=1, high=5):
    draw = random.Random(seed)
    return [low, high, *(draw.randint(low, high) for _ in range(N - 2))]


def texts(words, seed=0):
    draw = random.Random(seed)
    return [' '.join(draw.choice(WORDS) for _ in range(words)) + f' {i}.' for i in PLACES]


def read(columns, **flags): return read_scores(pd.DataFrame(columns), **flags)


def roles(scores): return scores.roles.set_index('column').role.to_dict()


# --- judges by content ---

def test_settings_of_a_judge_are_none():
    scores = read(dict(question=texts(5), context=texts(20), answer=texts(8), label=marks(1, 0, 1),
                       faithfulness_score=[i % 10/10 for i in PLACES], any_judge_truncated=[1]*N, judge_mode=['pair']*N))
    assert (scores.judges, scores.humans) == (('faithfulness_score',), ('label',))


def test_tokens_time_money_and_constants_are_none():
    scores = read(dict(total_cost_usd=[.001 + i/1e6 for i in PLACES], latency_ms=[200. + i for i in PLACES], was_truncated=[i % 7 == 0 for i in PLACES],
                       expert_rating=marks(1), AnswerRelevancy=[i % 10/10 for i in PLACES], judge_model=['gpt-4o']*N,
                       completion_tokens=[10 + i % 9 for i in PLACES], llm_response=texts(9), judge_confidence=[i % 5/5 for i in PLACES]))
    assert (scores.judges, scores.humans) == (('AnswerRelevancy',), ('expert_rating',))


def test_how_a_judgement_went_is_no_judgement():
    scores = read(dict(crowd=marks(1), gpt4_refused=marks(2, 0, 1), gpt4_has_error=marks(3, 0, 1), gpt4_valid_json=[i % 9 > 0 for i in PLACES],
                       gpt4_num_claims=marks(4, 3, 9), time_gpt4=[1 + i/9 for i in PLACES], gpt4=marks(5)))
    assert (scores.judges, scores.humans) == (('gpt4',), ('crowd',))
    assert {name for name, role in roles(scores).items() if role == 'left out'} == {'gpt4_refused', 'gpt4_has_error', 'gpt4_valid_json', 'gpt4_num_claims'}
    assert any("'gpt4_refused'" in line and '--judge' in line for line in scores.said)


def test_errors_that_people_mark_too_are_judgements():
    scores = read(dict(gpt4_error=marks(1, 0, 1), human_error=marks(2, 0, 1), gpt4_score=marks(3)), judge='gpt4_error')
    assert scores.judges == ('gpt4_error',)
    assert 'gpt4_error' in read(dict(gpt4_error=marks(1, 0, 1), human_error=marks(2, 0, 1))).judges


def test_six_judges_by_their_names():
    names = ('GPT-4o', 'DeepSeek V4', 'LLaMA-3', 'OpenAI o3', 'o1-mini', 'MiniCheck')
    scores = read(dict(id=PLACES, answer=texts(8), human_rating=marks(9)) | {name: marks(i) for i, name in enumerate(names)})
    assert scores.judges == names and scores.humans == ('human_rating',)


def test_a_neighbour_of_the_same_kind_is_proposed_first():
    scores = read(dict(words=[i*11 % 300 for i in PLACES], Lynx=marks(1), year=[1990 + i % 17 for i in PLACES], Gemini=marks(2), Selene=marks(3),
                       annotators_mean=[x + .5*(x < 5) for x in marks(4)], nr=list(PLACES)))
    first = next(i for i, line in enumerate(scores.said) if 'perhaps judges as well' in line)
    assert "'Lynx', 'Selene'" in scores.said[first] and '--judge' in scores.said[first]
    assert not any("'nr'" in line and 'could hold scores' in line for line in scores.said) # it numbers the rows
    assert not any('Lynx' in line and 'Taken for nothing' in line for line in scores.said)


def test_a_judge_of_one_value_among_others_is_left_out():
    scores = read(dict(human=marks(1), gpt4=[5]*N, llm_judge=marks(2)))
    assert scores.judges == ('llm_judge',) and any("'gpt4' (one value in all rows; --judge changes it)" in line for line in scores.said)


def test_words_of_other_languages():
    german = read(dict(Laufzeit_ms=marks(1, 100, 900), KI_Bewertung=marks(2), Antworttext=texts(9), Modellversion=['v1']*N, Mensch=marks(3), Nr=PLACES))
    assert (german.judges, german.humans) == (('KI_Bewertung',), ('Mensch',)) and 'text' in german.frame
    french = read(dict(num=PLACES, note_humaine=marks(1, 0, 20), cout=marks(2), durée=marks(3), note_gpt=marks(4, 0, 20)))
    assert (french.judges, french.humans) == (('note_gpt',), ('note_humaine',))


# --- the truth ---

CLASSES = ['correct', 'partially_correct', 'wrong']*(N//3)


@pytest.mark.parametrize('columns, judges, humans', [
    (dict(run=['zero_shot']*N, id=[f'e{i}' for i in PLACES], true_label_id=[i % 3 for i in PLACES], true_label_name=CLASSES,
          pred_label_id=[i % 3 for i in PLACES], pred_label_name=CLASSES[::-1], question=texts(5), student_answer=texts(9)),
     ('pred_label_name',), ('true_label_name',)),
    (dict(y_pred=marks(1, 0, 1), y_true=marks(2, 0, 1), claim=texts(6)), ('y_pred',), ('y_true',)),
    (dict(caseId=PLACES, predictedGrade=marks(1, 0, 20), actualGrade=marks(2, 0, 20)), ('predictedGrade',), ('actualGrade',)),
    (dict(correct_answer=[*'ABCD'*7, 'A', 'B'], predicted_answer=[*'BBCD'*7, 'A', 'B']), ('predicted_answer',), ('correct_answer',)),
    (dict(passage=texts(9), predicted_label=CLASSES[::-1], gold_label=CLASSES), ('predicted_label',), ('gold_label',)),
    (dict(id=PLACES, ground_truth_score=marks(1), llm_score=marks(2)), ('llm_score',), ('ground_truth_score',)),
    (dict(llm_score=marks(2), physician=marks(1), id=PLACES), ('llm_score',), ('physician',)),
    (dict(teacher_score=marks(1), llm_score=marks(2)), ('llm_score',), ('teacher_score',)),
    (dict(model_grade=marks(1, 0, 20), essay=texts(30), Teacher_Grade=marks(2, 0, 20)), ('model_grade',), ('Teacher_Grade',)),
    (dict(nurse_rating=marks(1, 0, 100), gpt_4o_rating=marks(2, 0, 100), clinician_2=marks(3, 0, 100)), ('gpt_4o_rating',), ('nurse_rating', 'clinician_2')),
    (dict(decision=['accept', 'reject']*15, ground_truth_verdict=['accept', 'reject', 'reject']*10), ('decision',), ('ground_truth_verdict',)),
    (dict(verdict=['yes', 'no']*15, truth=['yes', 'no', 'no']*10), ('verdict',), ('truth',)),
    (dict(score=[i/N for i in PLACES], label=marks(1, 0, 1)), ('score',), ('label',))])
def test_the_truth_beside_a_judge(columns, judges, humans):
    scores = read(columns)
    assert (scores.judges, scores.humans) == (judges, humans)


def test_people_called_hum_hold_on_each_criterion():
    found = read_criteria(pd.DataFrame(dict(fluency=marks(1), hum_fluency=marks(2), coherence=marks(3), hum_coherence=marks(4))))
    assert {name: (f.judges, f.humans) for name, f in found.items()} == {c: ((c,), (f'hum_{c}',)) for c in ('fluency', 'coherence')}


@pytest.mark.parametrize('columns', [dict(label=marks(1, 0, 1), decision=marks(2, 0, 1), rating=marks(3, 0, 1)),
                                     dict(etiqueta_verdadera=CLASSES, etiqueta_predicha=CLASSES[::-1])])
def test_what_fits_two_ways_is_asked_in_one_sentence(columns):
    with pytest.raises(BadInput) as error: read(columns)
    assert '--judge' in str(error.value) and '\n' not in str(error.value)


# --- transforms ---

@pytest.mark.parametrize('columns, judges, humans', [
    (dict(human_z=[x - 3 for x in marks(1)], human_raw=marks(1), metric_z=[x - 3 for x in marks(2)], metric_raw=marks(2)), ('metric_raw',), ('human_raw',)),
    (dict(humanZScore=[x - 3 for x in marks(1)], humanScore=marks(1), llmScoreNorm=[x/5 for x in marks(2)], llmScore=marks(2)), ('llmScore',), ('humanScore',)),
    (dict(comet=[x/5 for x in marks(1)], log_comet=[x/9 for x in marks(1)], comet_rank=PLACES, expert_residual=[x - 2 for x in marks(3)],
          expert=marks(3)), ('comet',), ('expert',)),
    (dict(gpt4_rank=PLACES, gpt4_norm=[x/5 for x in marks(2)], human=marks(1)), ('gpt4_norm',), ('human',))])
def test_transforms_of_one_are_one(columns, judges, humans):
    scores = read(columns)
    assert (scores.judges, scores.humans) == (judges, humans)
    assert any('a transform of' in line for line in scores.said)


def test_how_far_people_lie_apart_is_no_person():
    scores = read(dict(human_std=[i % 3/2 for i in PLACES], human_mean=marks(1), gpt4=marks(2)))
    assert scores.humans == ('human_mean',)


# --- groups and strata ---

FIVES = [i//5 for i in PLACES] # six of five rows each


@pytest.mark.parametrize('name, cells', {
    'segment': [f's{x}' for x in FIVES], 'sid': [f's{x}' for x in FIVES], 'hash': [f'{x:04x}beef' for x in FIVES],
    'StoryNr': FIVES, 'artikelcode': [f'A-{x:03}' for x in FIVES], 'page_url': [f'https://example.org/{x}' for x in FIVES],
    'patient': [f'P{x}' for x in FIVES], 'instruction': [texts(9)[x] for x in FIVES], 'Frage': [texts(6)[x] for x in FIVES]}.items())
def test_what_comes_again_is_proposed_as_group(name, cells):
    scores = read(dict(gpt4_score=marks(1), lang=['de', 'fi']*15, human_score=marks(2)) | {name: cells})
    assert scores.clustered == name and any(f'--group {name!r}' in line for line in scores.said)
    assert scores.strata == ('lang',)


@pytest.mark.parametrize('columns', [
    dict(source_lang=['de', 'fi']*15, has_conversation_history=[True, False]*15), dict(domain=['legal', 'news', 'web']*10),
    dict(prompt_id=['p0', 'p1', 'p2']*10), dict(source=['wiki', 'news']*15), dict(prompt=['Write of foxes and mills.', 'Write of bread.']*15),
    dict(hospital=['H1', 'H2', 'H3']*10), dict(document=['a', 'b', 'c', 'd', 'e']*6), dict(engine=['gpt-4', 'llama-3', 'o1']*10)])
def test_two_to_five_values_are_no_group(columns):
    scores = read(columns | dict(human=marks(1), judge=marks(2)))
    assert scores.clustered == '' and not any('--group' in line for line in scores.said)


def test_few_values_are_a_stratum():
    scores = read(dict(judge=marks(2), Sprache=['de', 'fi', 'fr']*10, human=marks(1), is_safe=[True, False]*15))
    assert set(scores.strata) == {'Sprache', 'is_safe'}


# --- texts ---

@pytest.mark.parametrize('columns, text', [
    (dict(student_answer=texts(9)), 'student_answer'), (dict(response_text=texts(9), prompt=texts(20, 1)), 'response_text'),
    ({'User Prompt': texts(25), 'Assistant Answer': texts(8, 1)}, 'Assistant Answer'),
    ({'judge_rationale': texts(30), 'Model Output': texts(10, 1), 'context_passage': texts(40, 2)}, 'Model Output'),
    (dict(src=texts(12), mt_text=texts(12, 1), ref=texts(13, 2)), 'mt_text'), (dict(reference_text=texts(30), candidate=texts(8, 1)), 'candidate'),
    (dict(title=texts(4), body=texts(30, 1)), 'body'), (dict(Ausgabe=texts(9), Kommentar=texts(30, 1)), 'Ausgabe'),
    (dict(human_comment=texts(40), reply=texts(9, 1)), 'reply')])
def test_the_text_that_was_judged(columns, text):
    scores = read(dict(human=marks(1), judge=marks(2)) | columns)
    assert scores.frame.text.tolist() == columns[text]


def test_two_answers_are_told_by_their_length_and_said():
    scores = read(dict(answer=texts(5), response=texts(12, 1), human=marks(1), judge=marks(2)))
    assert any("text: 'response' (the longest of 'answer', 'response'; --text changes it)" in line for line in scores.said)
    assert not any('none is taken' in line for line in scores.said)


@pytest.mark.parametrize('cells', [['bench-a', 'bench-b']*15, [f'src{i:02}' for i in PLACES], [f'https://example.org/{i}' for i in PLACES]])
def test_a_source_of_codes_is_none(cells):
    scores = read(dict(source=cells, prompt=[f'Write about {WORDS[i//3]} now.' for i in PLACES], story=texts(40), system=['a', 'b', 'c']*10,
                       human=marks(1), chatgpt=marks(2)))
    assert 'source' not in scores.frame and scores.frame.text.tolist() == texts(40)


def test_a_story_beside_a_prompt_is_the_text_and_one_that_is_shared_the_source():
    prompts = [f'Write about a {WORDS[i//3]} now.' for i in PLACES]
    alone = read(dict(story=texts(40), writing_prompt=prompts, model=['a', 'b', 'c']*10, humans=marks(1), gpt4=marks(2)))
    assert alone.frame.text.tolist() == texts(40) and 'source' not in alone.frame
    shared = [texts(40)[i//3] for i in PLACES]
    beside = read(dict(article=shared, headline=texts(6, 1), system=['a', 'b', 'c']*10, humans=marks(1), gpt4=marks(2)))
    assert beside.frame.source.tolist() == shared and beside.frame.text.tolist() == texts(6, 1)

@pytest.mark.parametrize('same', [4, 5, 'good'])
def test_people_who_all_say_the_same_are_people(same):
    judge = [1 + i*7 % 5 for i in range(40)] if same != 'good' else ['good', 'bad']*20
    found = read_scores(pd.DataFrame(dict(gpt4=judge, human_ann=[same]*40, human_bob=[same]*40)))
    assert list(found.humans) == ['human_ann', 'human_bob'] and list(found.judges) == ['gpt4']

def test_a_setting_of_the_labels_is_no_person_beside_people_who_differ():
    found = read_scores(pd.DataFrame(dict(gpt4=[1, 2, 3, 4]*10, human_ann=[4, 3, 2, 1]*10, human_version=[2]*40)))
    assert list(found.humans) == ['human_ann']
