"Every evaluator that can ask a model says beforehand what it would ask for."
import pytest
from factlib.core.records import BadInput, Example
from factlib.evaluators.base import EVALUATORS, evaluate
from factlib.llm.chat import Chat
from factlib.llm.costs import dry_run
from factlib.llm.stub import StubServer
from factlib.runs.costs import estimate, may_ask
from factlib.runs.execute import experiments
from factlib.runs.judging import asks, judges_for
from obliging_server import obliging

STORY = ('Anna met Ben at the gate. "You are late," said Ben. Anna laughed. They walked to the mill, and Ben told her '
         'about his brother.')
TEXT = Example('a', target='Anna met Ben. They walked to the mill.', source=STORY,
               reference=STORY, question='Who met Ben?', group='a')

# factual_correctness_nli needs torch: tests/nli
ASKING = [name for name in EVALUATORS if asks(name) and name != 'factual_correctness_nli']

@pytest.mark.parametrize('name', ASKING)
def test_an_evaluator_plans_at_least_what_it_sends(name, tmp_path):
    "The stub finds one fact where a sentence is guessed."
    with StubServer(obliging) as server, Chat('stub', server.base_url, cache=tmp_path/'a.sqlite').cache as cache:
        judge, = judges_for(name, Chat('stub', server.base_url, cache=cache))
        planned = dry_run(judge, [TEXT])
        assert not server.requests and planned.total.requests, 'it asks'
        frame = evaluate(judge, [TEXT], progress=False)
        sure = not any('guess' in s or 'stand in' in s for s in planned.assumptions)
        assert 0 < len(server.requests) <= planned.total.requests
        assert not sure or len(server.requests) == planned.total.requests == int(frame.requests.sum())

@pytest.mark.parametrize('name', [name for name, notebook in experiments().items() if not may_ask(notebook)])
def test_who_has_no_way_to_a_model_costs_nothing(name):
    with pytest.raises(BadInput, match='asks no model, so it costs nothing'): estimate(name, {})

def test_what_is_kept_costs_nothing_again(tmp_path):
    "Two texts, each untouched and with two kinds of damage."
    from factlib.runs.execute import execute, find_experiment
    with StubServer(obliging) as server:
        values = dict(model='stub', base_url=server.base_url, out=str(tmp_path/'live'), n=2)
        assert estimate('live_judge', values).assumptions[0].startswith('At most 6 requests')
        execute(find_experiment('live_judge'), values, tmp_path/'live', progress=False)
        assert len(server.requests) == 6
        assert estimate('live_judge', values).assumptions[0].startswith('At most 0 requests')
        assert estimate('live_judge', values | dict(mode='record')).assumptions[0].startswith('At most 6 requests')
        assert estimate('live_judge', values | dict(mode='replay')).assumptions[0] == 'It replays: nothing is sent.'
