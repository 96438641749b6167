"""A provider's bill against our ledger, with kills. As a script: `python tests/bill.py 100` prints a table.

The provider is a process of its own, and writes down every request as it arrives, before anything else happens: model,
tokens of the prompt (a quarter of its bytes) and of the reply. Some replies are errors (500, 408, 409), cut
connections, stopped by a filter, or come too late; some are refusals (429), which nobody bills. What a reply took is
said in many ways, or not at all; a model that thinks takes 60 tokens, and says so in the total alone. Meanwhile the
command is killed (SIGKILL): the main process, one of its children, or all of them at once."""
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from sweeps import ROOT, grid, notebook

CONCURRENCY = 8 # requests of a command under way at a time
KINDS = ('run', 'evaluate', 'sweep', 'build-answers')
ASKING = """import asyncio, os
from pathlib import Path
from factlib.llm.chat import Chat
from factlib.runs.parameters import cache_of
chat = Chat(model, base_url, concurrency=concurrency, cache=cache_of(dict(out=out)), endpoint='ours', timeout=1., longest_wait=.2, attempts=4)
replies = await asyncio.gather(*[chat(f'{name} {i}', max_tokens=64) for i in range(n)])
Path(os.environ['FACTLIB_PART'], 'table.csv').write_text('\\n'.join(r.text or str(r.absence) for r in replies))"""

SAYING = dict( # how a provider says what it bills, if it does
    plain=lambda prompt, reply: dict(prompt_tokens=prompt, completion_tokens=reply, total_tokens=prompt + reply),
    thinks=lambda prompt, reply: dict(prompt_tokens=prompt, completion_tokens=1, total_tokens=prompt + reply),
    total=lambda prompt, reply: dict(prompt_tokens=prompt, total_tokens=prompt + reply),
    null=lambda prompt, reply: dict(prompt_tokens=prompt, completion_tokens=None),
    text=lambda prompt, reply: dict(prompt_tokens=f'{prompt}', completion_tokens=f'{reply}'),
    float=lambda prompt, reply: dict(prompt_tokens=float(prompt), completion_tokens=float(reply)),
    zero=lambda prompt, reply: dict(prompt_tokens=prompt, completion_tokens=0),
    other=lambda prompt, reply: dict(input_tokens=prompt, output_tokens=reply),
    nothing=lambda prompt, reply: None)

def provide(account):
    "Serve until killed; the address is the first line of the output."
    from factlib.llm.stub import StubServer
    chance, file = random.Random(7), open(account, 'a', buffering=1)
    def rule(request):
        prompt = request['messages'][-1]['content']
        if '"order"' in prompt:
            reply = json.dumps(dict(strategy='-',
                                    order=list(range(len(re.findall(r':\d+\]', prompt.split('<answer>\n')[1]))))))
        elif '"plan"' in prompt:
            reply = json.dumps(dict(plan=[], text=re.sub(r'\[\d+: (.*?)\]', lambda m: m[1][::-1],
                                                         prompt.split('<answer>\n')[1].split('\n</answer>')[0])))
        elif '<answer>' in prompt:
            reply = json.dumps(dict(text='So: ' + prompt.split('<answer>\n')[1].split('\n</answer>')[0]))
        else: reply = json.dumps(dict(reason='It says so.', verdict='faithful'))
        usage = dict(prompt_tokens=1 + len(json.dumps(request['messages']))//4, completion_tokens=1 + len(reply)//4)
        # Only the notebooks of this file give up after a second; the commands wait for three minutes.
        late = 2 if request['model'].startswith(('run', 'sweep')) else 0
        kind = chance.choices(['ok', '500', 'cut', 'late', '429', '408', '409', 'filter'], [86, 3, 3, 2, 2, 1, 1, 2])[0]
        way = chance.choice(list(SAYING))
        if way == 'thinks': usage['completion_tokens'] = 60
        file.write(json.dumps(dict(model=request['model'], kind=kind, way=way, **usage)) + '\n')
        usage = SAYING[way](usage['prompt_tokens'], usage['completion_tokens'])
        if kind.isdigit() and kind != '429': return dict(status=int(kind), body={})
        if kind == 'filter': return dict(status=400, body=dict(error=dict(message='no', code='content_filter')))
        if kind == '429': return dict(status=429, body={}, headers={'retry-after-ms': '50'})
        if kind == 'cut': return dict(drop=True)
        return dict(content=reply, usage=usage, delay=late if kind == 'late' else chance.uniform(.02, .1))
    with StubServer(rule) as server:
        print(server.base_url, flush=True)
        time.sleep(10**6)

def bill(account, model):
    "Requests, those that may be billed, and their tokens, as the provider says."
    rows = [row for row in map(json.loads, Path(account).read_text().splitlines()) if row['model'] == model]
    billed = [row for row in rows if row['kind'] != '429']
    return len(rows), len(billed), sum(row['prompt_tokens'] + row['completion_tokens'] for row in billed)

@dataclass
class Job:
    "A command that is started again until it has ended by itself."
    kind: str
    folder: Path
    model: str
    command: list
    ledger: Path
    limit: int = 0
    kills: Counter = field(default_factory=Counter)

def job(kind, number, home, url):
    "A fresh folder for a command."
    model, folder = f'{kind}{number}', home/f'{kind}{number}'
    folder.mkdir()
    out, limit = folder/'out', 0
    if kind in ('run', 'sweep'):
        notebook(folder/'asking.ipynb',
                 f'base_url:str = {url!r}\nmodel:str = {model!r}\nname:str = "a"\nn:int = 60\nconcurrency:int = '
                 f'{CONCURRENCY}\nout:str = "out"', ASKING)
    if kind == 'run': command, ledger = ['run', 'asking.ipynb', '--out', 'out', '--no-page'], out/'spent.jsonl'
    if kind == 'sweep':
        limit = 4_000 if number//len(KINDS) % 2 else 60_000 # the former is reached
        grid(folder, dict(experiment='asking.ipynb', grid=dict(name=['a', 'b', 'c', 'd']),
                          limits=dict(tokens=limit, concurrency=CONCURRENCY)))
        command, ledger = ['sweep', 'grid.yaml', '--out', 'out', '--workers', '2'], out/'.sweep'/'spent.jsonl'
    asks = ['--model', model, '--base-url', url, '--concurrency', str(CONCURRENCY)]
    if kind == 'evaluate':
        rows = [dict(response=f'The fox ran {i} miles.', context=f'A fox ran {i} miles on a day in May.')
                for i in range(60)]
        (folder/'mine.jsonl').write_text('\n'.join(map(json.dumps, rows)))
        command, ledger = ['evaluate', 'mine.jsonl', '--with', 'faithfulness',
                           '--out', 'out', '--no-page', *asks], out/'spent.jsonl'
    if kind == 'build-answers':
        pairs = [dict(question=f'Who sang in {1800 + i}?',
                      ground_truth=f'Anna Berg sang with old friends in Lyon in May {1800 + i}.') for i in range(30)]
        (folder/'pairs.json').write_text(json.dumps(pairs))
        command, ledger = ['build-answers', 'pairs.json', '--out', 'made.json',
                           '--levels', '2', *asks], folder/'made.spent.jsonl'
    return Job(kind, folder, model, command, ledger, limit)

def children(process):
    "All processes below one, and it."
    try: return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess: return []

def kill(processes):
    "At once, as a power cut does."
    for p in processes:
        try: p.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess: pass
    psutil.wait_procs(processes, timeout=20)

def started(job, account, chance):
    "Run the command, and kill what a dice says some time after its first request; what was killed, or 'ended'."
    env = {k: v for k, v in os.environ.items() if k not in ('FACTLIB_DATA', 'FACTLIB_CACHE', 'OPENAI_API_KEY')} | {
        'PYTHONPATH': str(ROOT), 'OPENAI_API_KEY': 'sk-0123456789'}
    before = bill(account, job.model)[0]
    process = psutil.Popen([sys.executable, '-c', 'from factlib.cli import main; main()', *job.command],
                           cwd=job.folder, env=env, stdout=subprocess.DEVNULL, stderr=open(job.folder/'err', 'a'))
    while process.poll() is None and bill(account, job.model)[0] == before: time.sleep(.02)
    time.sleep(chance.uniform(0, .7))
    if process.poll() is not None: return 'ended'
    whole = children(process)
    what = chance.choice(['main', 'child', 'all'] if len(whole) > 1 else ['main'])
    kill(dict(main=whole[:1], child=[chance.choice(whole[1:])] if len(whole) > 1 else [], all=whole)[what])
    try: process.wait(60 if what == 'child' else 1) # who lost a child may go on, or end
    except psutil.TimeoutExpired: pass
    time.sleep(1.5) # orphans notice
    kill({p for q in whole for p in [q, *children(q)]})
    return what

def row(job, account):
    "Bill and ledger of a job, side by side."
    from factlib.core.ledger import read_spent
    spent, (sent, billed, tokens) = read_spent(job.ledger), bill(account, job.model)
    return dict(command=job.kind, kills=sum(n for what, n in job.kills.items() if what != 'ended'),
                sent=sent, ledger_requests=spent.requests, billed=billed,
                billed_tokens=tokens, counted_tokens=spent.tokens, reserved_tokens=spent.reserved_tokens,
                answered=spent.answered, unanswered=spent.unanswered, limit=job.limit)

def check(row):
    "The ledger is at least the bill, at most the bill and what was in flight; no limit was passed."
    assert row['sent'] <= row['ledger_requests'] <= row['sent'] + row['kills']*CONCURRENCY, row
    assert row['counted_tokens'] <= row['billed_tokens'] <= row['counted_tokens'] + row['reserved_tokens'], row
    if row['limit']: assert row['billed_tokens'] <= row['counted_tokens'] + row['reserved_tokens'] <= row['limit'], row

def trials(kills, home, seed=0, kinds=KINDS, say=lambda row: None):
    "Rows of all jobs; each is killed and started again, at most eight times, and then left to end by itself or not."
    account, chance, rows, jobs = home/'account.jsonl', random.Random(seed), {}, {}
    account.touch()
    provider = subprocess.Popen([sys.executable, __file__, '--provider', str(account)],
                                stdout=subprocess.PIPE, text=True, env=os.environ | {'PYTHONPATH': str(ROOT)})
    try:
        url = provider.stdout.readline().strip()
        number = done = 0
        while done < kills:
            kind = kinds[number % len(kinds)]
            number += 1
            mine = jobs.get(kind)
            if mine is None or sum(mine.kills.values()) >= 8: mine = jobs[kind] = job(kind, number, home, url)
            what = started(mine, account, chance)
            mine.kills[what] += 1
            done += what != 'ended'
            rows[mine.model] = row(mine, account)
            say(rows[mine.model] | dict(killed=what))
            check(rows[mine.model])
            if what == 'ended': jobs[kind] = None
    finally:
        provider.kill()
        provider.wait()
    return list(rows.values())

if __name__ == '__main__':
    if sys.argv[1] == '--provider': provide(sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as folder:
            table = trials(int(sys.argv[1]), Path(folder), *map(int, sys.argv[2:3]),
                           say=lambda row: print(row, flush=True))
        totals = {}
        for made in table:
            mine = totals.setdefault(made['command'], Counter())
            mine.update({name: value for name, value in made.items() if isinstance(value, int) and name != 'limit'})
        names = list(next(iter(totals.values())))
        print('| command |', ' | '.join(names), '|')
        for command, counts in totals.items():
            print(f'| {command} |', ' | '.join(f'{counts[name]:,}' for name in names), '|')
