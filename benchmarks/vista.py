"""What a conversation waits for: VISTA on eight turns against a stub with 50 ms of delay, beside its longest chain of replies and beside a client that asks one request after the other. Ratios within one run; `make bench` runs it.

The chain: one reply for all decompositions together, then two for each turn, 17 in a row. Asked one by one there would be 24."""
import json, time

from factlib.core.records import Example
from factlib.evaluators.base import evaluate
from factlib.evaluators.vista.vista import Vista
from factlib.llm.chat import Chat
from factlib.llm.stub import StubServer

DELAY, TURNS = .05, 8

def reply(request):
    "Two claims a turn; the first is verified, the second lacks evidence."
    prompt = request['messages'][-1]['content']
    schema = json.dumps(request.get('response_format', {}))
    if '"presupposed"' in schema: return json.dumps(dict(claims=[dict(text=f'Part {i} of {len(prompt)}', presupposed=False) for i in (1, 2)]))
    if '"reason"' in schema: return json.dumps(dict(verdicts=[dict(id='C2', reason='not said', verdict='lacking_evidence', against='none')]))
    return json.dumps(dict(verdicts=[dict(id='C1', verdict='verified', by='reference', items=[]), dict(id='C2', verdict='unverifiable', by='none', items=[])]))

def talk():
    "A conversation: each earlier turn stands in the later ones' history."
    said, examples = [], []
    for i in range(TURNS):
        said.append(dict(speaker='user', text=f'Question {i}?'))
        examples.append(Example(f't{i}', source=f'Reference {i}.', target=f'Answer {i}.', history=tuple(said), group='talk', meta=dict(conversation='talk', turn=len(said))))
        said.append(dict(speaker='assistant', text=f'Answer {i}.'))
    return examples

if __name__ == '__main__':
    with StubServer(reply, delay=DELAY) as server:
        chat = Chat('stub', server.base_url, api_key='none', mode='off')
        evaluate(Vista(chat), talk()[:1], progress=False) # imports and connections, once
        server.requests.clear()
        start = time.perf_counter()
        frame = evaluate(Vista(chat), talk(), progress=False)
        seconds, n = time.perf_counter() - start, len(server.requests)
    chain = (1 + 2*TURNS)*DELAY
    print(f'{TURNS} turns, {n} requests, {frame.value.notna().sum()} scored: {seconds:.2f} s, {seconds/chain:.2f} times the longest chain, {seconds/(n*DELAY):.2f} of one after the other')
