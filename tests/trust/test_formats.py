"Exports of promptfoo, MLflow, Langfuse and Phoenix, made here by what their documentation says of each field."
import json

import pandas as pd, pytest

from factlib.trust.scores import read_scores

N = 12
JUDGE = [i % 5/4 for i in range(N)]
PEOPLE = [float(i % 3 == 0) for i in range(N)]


@pytest.fixture
def written(tmp_path):
    "Writes a file, and gives its path."
    def write(name, content):
        path = tmp_path/name
        if isinstance(content, pd.DataFrame): content.to_csv(path, index=False)
        elif name.endswith('.jsonl'): path.write_text('\n'.join(map(json.dumps, content)))
        else: path.write_text(json.dumps(content))
        return path
    return write


def told(scores, judge=JUDGE, human=PEOPLE):
    "Whether one judge and one person said this of the twelve items."
    (one,), (other,) = scores.judges, scores.humans
    assert scores.frame[one].tolist() == judge and scores.frame[other].tolist() == human


# --- promptfoo: an `EvaluateResult` for each test and provider; a person's mark is an assertion of the type `human` ---

def promptfoo_result(i, **more):
    parts = [dict(passed=JUDGE[i] > .5, score=JUDGE[i], reason='r', assertion=dict(type='llm-rubric', value='Is it true?', metric='truth')),
             {'pass': bool(PEOPLE[i]), 'score': PEOPLE[i], 'reason': 'Rated by hand.', 'assertion': dict(type='human')}]
    return dict(id=f'r{i}', testIdx=i, promptIdx=0, promptId='p', provider=dict(id='openai:gpt-4o-mini', label='mini'), prompt=dict(raw='Q', label='Q'),
                vars=dict(question=f'Where did fox {i} hide?'), testCase=dict(vars=dict(question=f'Where did fox {i} hide?')),
                response=dict(output=f'In mill {i}.', tokenUsage=dict(total=9)), success=bool(PEOPLE[i]), score=PEOPLE[i], latencyMs=300 + i, cost=.001,
                failureReason=0, namedScores=dict(truth=JUDGE[i]), gradingResult={'pass': bool(PEOPLE[i]), 'score': PEOPLE[i], 'reason': '', 'componentResults': parts}) | more


@pytest.mark.parametrize('name', ['results.json', 'results.jsonl'])
def test_promptfoo(written, name):
    results = [promptfoo_result(i) for i in range(N)]
    whole = results if name.endswith('l') else dict(evalId='eval-1', results=dict(version=3, timestamp='2026-01-01T00:00:00Z', prompts=[], results=results,
                                                                                stats=dict(successes=1, failures=1, errors=0)), config={}, shareableUrl=None)
    scores = read_scores(written(name, whole))
    told(scores)
    assert scores.judges == ('scores.truth',) and scores.frame.text[0] == 'In mill 0.'


def test_promptfoo_with_a_test_that_failed(written):
    results = [promptfoo_result(i) for i in range(N)]
    lost = {k: v for k, v in promptfoo_result(0, testIdx=N, error='timeout', namedScores={}, score=0).items() if k not in ('gradingResult', 'response')}
    scores = read_scores(written('results.json', dict(evalId='e', results=dict(version=3, results=[*results, lost]))))
    assert scores.judges == ('scores.truth',) and scores.frame['scores.truth'].tolist()[:N] == JUDGE and len(scores.frame) == N + 1
    assert scores.frame['scores.truth'].isna().tolist() == [False]*N + [True]


# --- MLflow: `Assessment.to_dictionary`, where one of feedback and expectation is null, and traces that hold assessments ---

def assessment(i, kind, who, value, form='feedback', **more):
    return dict(assessment_id=f'a-{i}-{who}', trace_id=f'tr-{i}', name='correctness', source=dict(source_type=kind, source_id=who), create_time_ms=i,
                last_update_time_ms=i, expectation=None, feedback=None, rationale='r', metadata=None, error=None, span_id=None) | {form: dict(value=value)} | more


@pytest.mark.parametrize('form', ['feedback', 'expectation'])
def test_assessments_of_mlflow(written, form):
    entries = [a for i in range(N) for a in (assessment(i, 'LLM_JUDGE', 'gpt-4o', JUDGE[i]), assessment(i, 'HUMAN', 'ann@example.org', PEOPLE[i], form))]
    scores = read_scores(written('assessments.json', entries))
    told(scores)
    assert scores.frame['item'].tolist() == [f'tr-{i}' for i in range(N)]


def test_traces_of_mlflow(written):
    def one(i):
        named = lambda kind, who, value: dict(assessment_name='correctness', trace_id=f'tr-{i}', source=dict(source_type=kind, source_id=who),
                                              create_time='2026-01-01T00:00:00Z', feedback=dict(value=value))
        info = dict(trace_id=f'tr-{i}', request_preview=f'Where did fox {i} hide?', response_preview=f'It hid in the mill {i}.', state='OK',
                    assessments=[named('HUMAN', 'ann', PEOPLE[i]), named('AI_JUDGE', 'gpt-4o', JUDGE[i])])
        return dict(info=info, data=dict(spans=[]))
    scores = read_scores(written('traces.json', [one(i) for i in range(N)]))
    told(scores)
    assert scores.frame.text[3] == 'It hid in the mill 3.'


# --- Langfuse: scores as the API gives them, and as they lie in a blob storage (snake case; JSON lines and CSV) ---

def langfuse_score(i, source, value, label=None, **more):
    return dict(id=f's-{i}-{source}', timestamp='2026-01-01T00:00:00Z', traceId=f't{i}', observationId=None, name='correctness', value=value,
                stringValue=label, dataType='NUMERIC' if label is None else 'CATEGORICAL', source=source, comment='c', environment='default',
                authorUserId='ann' if source == 'ANNOTATION' else None) | more


def snake(entry):
    return {''.join('_' + c.lower() if c.isupper() else c for c in key): value for key, value in entry.items()}


def langfuse_scores():
    return [e for i in range(N) for e in (langfuse_score(i, 'EVAL', JUDGE[i]), langfuse_score(i, 'ANNOTATION', PEOPLE[i]))]


@pytest.mark.parametrize('name, form', [('scores.json', lambda own: dict(data=own, meta=dict(page=1))), ('list.json', lambda own: own),
                                        ('scores.jsonl', lambda own: list(map(snake, own))), ('api.csv', lambda own: pd.DataFrame(own)),
                                        ('scores.csv', lambda own: pd.DataFrame(map(snake, own)))])
def test_scores_of_langfuse(written, name, form):
    scores = read_scores(written(name, form(langfuse_scores())))
    told(scores)
    assert scores.frame['item'].tolist() == [f't{i}' for i in range(N)] and scores.humans == ('human ann',)


def test_labels_of_langfuse(written):
    words = lambda xs: ['correct' if x > .5 else 'incorrect' for x in xs]
    own = [e for i in range(N) for e in (langfuse_score(i, 'EVAL', None, words(JUDGE)[i]), langfuse_score(i, 'ANNOTATION', None, words(PEOPLE)[i]))]
    told(read_scores(written('scores.csv', pd.DataFrame(map(snake, own)))), [float(x > .5) for x in JUDGE], PEOPLE)


# --- Phoenix: annotations as its REST API gives them, and the data frame of its client, where `result` is flat ---

def phoenix_annotation(i, kind, who, score):
    return dict(id=f'U{i}{kind}', created_at='2026-01-01T00:00:00Z', updated_at='2026-01-01T00:00:00Z', source='API', user_id=None, name='correctness',
                annotator_kind=kind, result=dict(label='correct' if score > .5 else 'incorrect', score=score, explanation='e'), metadata={}, identifier=who,
                span_id=f'sp{i}')


def flat(entry):
    parts = {f'result.{k}': v for k, v in entry['result'].items()}
    return {'annotation_name' if k == 'name' else k: v for k, v in entry.items() if k != 'result'} | parts


@pytest.mark.parametrize('name, form', [('page.json', lambda own: dict(data=own, next_cursor=None)), ('own.jsonl', lambda own: own),
                                        ('frame.csv', lambda own: pd.DataFrame(map(flat, own)))])
def test_annotations_of_phoenix(written, name, form):
    own = [e for i in range(N) for e in (phoenix_annotation(i, 'LLM', '', JUDGE[i]), phoenix_annotation(i, 'HUMAN', 'ann', PEOPLE[i]))]
    scores = read_scores(written(name, form(own)))
    told(scores)
    assert scores.frame['item'].tolist() == [f'sp{i}' for i in range(N)]


# --- what only looks like one of them ---

def test_a_table_of_traces_with_plain_columns_is_no_export():
    frame = pd.DataFrame(dict(trace_id=[f't{i}' for i in range(N)], name=['a']*N, source=['web', 'app']*6, human=PEOPLE, gpt4=JUDGE))
    assert read_scores(frame).judges == ('gpt4',)
