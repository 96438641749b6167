"Whoever asks a model and gets no score can read why, in the evidence of each judgement."
import pytest
from factlib.core.records import Example
from factlib.evaluators.base import EVALUATORS, evaluate, get
from factlib.evaluators.entailment.rules import RuleEntailment
from factlib.llm.chat import Chat
from factlib.llm.stub import StubServer
from factlib.runs.judging import asks
from obliging_server import obliging

STORY = ('Anna met Ben at the gate. "You are late," said Ben. Anna laughed. They walked to the mill, and Ben told her '
         'about his brother.')
EXAMPLES = [Example(f'{i}', source=STORY, target=f'Anna met Ben at the gate {i} times. Then they walked to the mill.',
                    reference='Anna met Ben.', question='Who met?',
                    history=[dict(text='Who is Anna?', speaker='user')]) for i in range(2)]
NO_ROLE = dict(status=400, body=dict(error=dict(message='no system role', type='invalid_request_error')))
ASKING = [name for name in EVALUATORS if asks(name)]
LOADED = dict(factual_correctness_nli=dict(nli=RuleEntailment('words'))) # what else they load is played by rules

def judged(name, rule):
    with StubServer(rule) as server:
        frame = evaluate(get(name, chat=Chat('stub', server.base_url, api_key='k'), **LOADED.get(name, {})), EXAMPLES, progress=False)
        assert server.requests, 'it asks'
    return frame

@pytest.mark.parametrize('name', ASKING)
@pytest.mark.parametrize('rule, absence, said', [
    (lambda request: NO_ROLE, 'transport', 'no system role'),
    (lambda request: 'Well, it reads like a story to me.', 'malformed', 'The reply'),
    (lambda request: dict(content='', refusal='No, sorry.'), 'refused', 'No, sorry.')],
                         ids=['HTTP 400', 'malformed', 'refused'])
def test_each_absence_carries_its_reason(name, rule, absence, said):
    frame = judged(name, rule)
    assert list(frame.value) == [None]*2 and list(frame.absence) == [absence]*2
    for evidence in frame.evidence: assert said in evidence['detail'], evidence

@pytest.mark.parametrize('name', ASKING)
def test_a_later_step_that_fails_says_so_too(name):
    """The first request is answered in form; those after it are refused. Whatever is absent then, value or part, has
    its reason."""
    answered = []
    def rule(request):
        prompt = str(request['messages'])
        if not answered: answered.append(prompt)
        return obliging(request) if prompt == answered[0] else NO_ROLE
    frame = judged(name, rule)
    absent = [c for c in frame if c == 'absence' or c.endswith('_absence')]
    for row in frame.to_dict('records'):
        lacking = [row[c] for c in absent if row[c] not in (None, 'inapplicable') and row[c] == row[c]]
        if lacking: assert 'no system role' in row['evidence']['detail'], (name, row)
