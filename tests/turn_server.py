"A server that plays VISTA's three steps by rule, for evaluators/claims."
import json
import re

from fact_server import TURNS, prompt
from factlib.core.records import Example
from factlib.evaluators.base import evaluate
from factlib.evaluators.vista.vista import Vista
from factlib.llm.chat import Chat
from factlib.llm.stub import StubServer

def step(request):
    "What is asked for."
    task = re.split('</(?:turn|claims)>', request['messages'][-1]['content'])[-1]
    return 'decompose' if '"presupposed"' in task else 'verify' if '"by"' in task else 'categorise'

def material(request, tag):
    """What a trusting reader takes for the material: from the last opening tag (those before it are of the examples) to
    the first closing one."""
    task = request['messages'][-1]['content']
    parts = re.split(rf'<\s*{tag}\s*>\s', task, flags=re.IGNORECASE)
    return re.split(rf'<\s*/\s*{tag}\b', TURNS.split(parts[-1])[0], flags=re.IGNORECASE)[0].rstrip('\n')

def asked(request): return dict(re.findall(r'^\[(C\d+)\] (.*)$', material(request, 'claims'), re.MULTILINE))

def evidence(request):
    "(name, line) in order."
    return [('reference', ' '.join(line.split())) for line in material(request, 'reference').split('\n')] + re.findall(
        r'^\[(B\d+)\] (.*)$', material(request, 'background'), re.MULTILINE)

def number_free(text): return re.sub(r'\d+', '#', text)

def honest(request):
    """The reply as data. Every line of a turn is a claim, one that begins with '~' a presupposed one, and "It" is
    whoever the history names last with a capital at its start ("Ann is here"). A claim is verified if it is a line of
    the evidence; else one that begins with "I like" is out of scope, with "I don't know" an abstention; one that
    differs from a line in numbers alone is contradicted."""
    if step(request) == 'decompose':
        names = re.findall(r'(?:^|: )([A-Z]\w+) ', material(request, 'history'), re.MULTILINE)
        lines = [line for line in material(request, 'turn').split('\n') if line.strip()]
        texts = [re.sub(r'^It\b', names[-1], line) if names else line for line in lines]
        return dict(claims=[dict(text=text.lstrip('~'), presupposed=text.startswith('~')) for text in texts])
    known, verdicts = evidence(request), []
    for i, text in asked(request).items():
        if step(request) == 'verify':
            by = [name for name, line in known if line == text]
            verdicts.append(dict(id=i, verdict='verified' if by else 'unverifiable', by=by))
            continue
        against = [name for name, line in known if number_free(line) == number_free(text)]
        verdict = 'out_of_scope' if text.startswith('I like') else 'abstention' if text.startswith(
            "I don't know") else 'contradicted' if against else 'lacking_evidence'
        verdicts.append(dict(id=i, reason=f'About "{text}".', verdict=verdict,
                             against=against[0] if verdict == 'contradicted' else ''))
    return dict(verdicts=verdicts)

def rule(request): return json.dumps(honest(request))

def spoiling(**spoilers):
    """The honest server, but for the steps that are named: `spoil(request, data)` -> text, dict of the stub's, or data
    for JSON."""
    def spoiled(request):
        data = honest(request)
        if step(request) not in spoilers: return json.dumps(data)
        said = spoilers[step(request)](request, data)
        return said if isinstance(said, str) or set(said) & {'content',
                                                             'status', 'drop', 'refusal'} else json.dumps(said)
    return spoiled

def run(turns, answer=rule, json_schema=True, delay=0., concurrency=16, **options):
    "The table of `Vista(chat, **options)`, and the server."
    with StubServer(answer, json_schema=json_schema, delay=delay) as server:
        chat = Chat('stub', server.base_url, api_key='none', endpoint='test', mode='off', concurrency=concurrency)
        return evaluate(Vista(chat, **options), turns, progress=False), server

def off(): return Chat('stub', 'http://127.0.0.1:9/v1', api_key='none', endpoint='test', mode='off')

def turn(id, place, said, source, target=None, group='talk', conversation='talk', **meta):
    "The message at a place of a conversation, as an example; `target` if another answer was given there."
    return Example(id, source=source, target=said[place] if target is None else target,
                   history=said[:place], group=group, meta=dict(conversation=conversation, turn=place, **meta))

def categories(frame, row=0): return [claim['category'] for claim in frame.evidence[row]['claims']]
