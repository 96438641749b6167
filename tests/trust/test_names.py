"What the name of a column says, in names that nobody tidied."
import pytest

from factlib.trust.names import is_beside, is_truth, names_of, rawest_columns


@pytest.mark.parametrize('name', ['DeepSeekR1', 'LLaMA-3.1-70B', 'o1', 'o4-mini', 'OpenAI o3', 'MiniCheck', 'GPT-4o', 'GPT4oMini',
                                  'Qwen2.5-72B-Instruct', 'SummaC-ZS', 'AlignScore', 'FActScore', 'G-Eval', 'GEval', 'QuestEval',
                                  'AnswerRelevancy', 'contextPrecisionScore', 'faithfulness_score', 'KI_Bewertung', 'AI score', 'AI',
                                  'TrueTeacher', 'note_gpt'])
def test_a_judge_by_its_name(name): assert names_of(name) == 'judge' and not is_beside(name) and not is_truth(name)


@pytest.mark.parametrize('name', ['Annotator', 'physician', 'nurseRating', 'teacher_score', 'hum_clarity', 'note_humaine', 'Gutachterin 2',
                                  'puntuación experto', 'Radiologist B'])
def test_a_person_by_its_name(name): assert names_of(name) == 'human'


@pytest.mark.parametrize('name', ['prompt_tokens', 'num_tokens_gpt4', 'tokens_judge', 'time_gpt4', 'judge_latency_s', 'judge_num_turns',
                                  'latencyMs', 'judge_retry_count', 'gpt_logprob', 'total_cost_usd', 'Laufzeit_ms', 'judge_mode',
                                  'any_judge_truncated'])
def test_what_stands_beside_a_score(name): assert is_beside(name)


@pytest.mark.parametrize('name', ['is_ai', 'ai_generated', 'air', 'kind', 'main', 'time 1'])
def test_what_only_looks_like_it(name): assert names_of(name) == '' and not is_beside(name)


@pytest.mark.parametrize('name, truth', {'ground_truth_score': 1, 'groundTruth': 1, 'trueGrade': 1, 'y_true': 1, 'label.gold': 0, 'label_gold': 1,
                                         'gt_label': 1, 'actual': 0, 'actualGrade': 1, 'truth': 1, 'gpt_correct': 0, 'correct': 0,
                                         'predicted': 0}.items())
def test_the_truth_by_its_name(name, truth): assert is_truth(name) == bool(truth)


@pytest.mark.parametrize('names, found', [
    (['human_z', 'human_raw'], {'human_z': 'human_raw'}),
    (['llmScoreNorm', 'llmScore', 'llmZScore'], {'llmScoreNorm': 'llmScore', 'llmZScore': 'llmScore'}),
    (['comet_rank', 'log_comet', 'comet'], {'comet_rank': 'comet', 'log_comet': 'comet'}),
    (['judge_rank', 'judge_score'], {'judge_rank': 'judge_score'}),
    (['gpt4_rank', 'gpt4_z', 'gpt4_scaled'], {'gpt4_rank': 'gpt4_scaled', 'gpt4_z': 'gpt4_scaled'}), # none is raw
    (['expert_residual', 'expert'], {'expert_residual': 'expert'}),
    (['human_1', 'human_2'], {}), (['human_score', 'human'], {}), (['gpt4_norm', 'opus_z'], {})])
def test_transforms_are_one_with_the_rawest(names, found): assert rawest_columns(names) == found
