"A server that makes answers worse by rule, for benchmarks/answer_writer: it spells marked terms backwards."
import json
import re

from fact_server import prompt
from factlib.benchmarks.answer_writer import MARKS

def step(request):
    "What is asked for: a ranking of terms, changed terms, or the answer told again."
    task = prompt(request).split('your task begins')[-1]
    return 'rank' if '"order"' in task else 'change' if '"plan"' in task else 'tell'

def shown(request): return prompt(request).split('<answer>\n', 1)[1].rsplit('\n</answer>', 1)[0]

def marks(request):
    asked = prompt(request)
    return next(m for m in MARKS if any(f'{m.open}{form}{m.close}' in asked
                                        for form in ('number: term', 'term:number')))

def backwards(request):
    m = marks(request)
    return re.sub(rf'{re.escape(m.open)}\d+: (.*?){re.escape(m.close)}', lambda x: x[1][::-1] + 'x', shown(request),
                  flags=re.S)

def terms(request): return int(re.search(r'\d+', prompt(request).split('In the answer, ')[1])[0])

def honest(request):
    if step(request) == 'tell': return dict(text=f'Now: {shown(request)}')
    if step(request) == 'rank': return dict(strategy='from the end', order=list(range(terms(request)))[::-1])
    return dict(plan=[dict(id='1', options=['a', 'b'], choice='a')], text=backwards(request))

def rule(request): return json.dumps(honest(request))
