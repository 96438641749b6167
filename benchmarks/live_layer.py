"""What the live layer costs: `factlib.llm.chat` against a stub with 50 ms of delay in a process and on a core of its own, beside two clients of twenty lines: one of the SDK, and a bare loop of aiohttp that keeps nothing. Ratios within one run; `make bench` runs it.

The ideal is requests x delay / concurrency. CPU is the client process's, per request. Prompts have 1,000 words. `await` is a caller on a loop of its own, such as a notebook's cell, who asks everything at once; `evaluate` asks on factlib's loop, where no thread hands over to another, with as many workers as may be under way. The aim: half of the bare loop's rate, every answer on disk."""
import argparse, asyncio, json, multiprocessing, os, random, resource, tempfile, time
from pathlib import Path

DELAY = .05

def pin(core):
    "Keep this process on one core, where the system can do that."
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else []
    if len(cores) > core: os.sched_setaffinity(0, {cores[core]})

def serve(pipe):
    "The stub, in a process of its own. Answers a request for its counts with the counts since the last one."
    pin(1)
    from factlib.llm.stub import StubServer
    with StubServer(lambda request: 'Fluency: 4', delay=DELAY) as server:
        pipe.send(server.base_url)
        while pipe.recv() == 'counts':
            pipe.send((len(server.requests), server.most_in_flight, server.connections))
            server.requests.clear()
            server.most_in_flight = server.connections = 0

def prompts(n, salt):
    "Prompts of a thousand words that are all different."
    chance = random.Random(salt)
    words = [''.join(chance.choices('abcdefghijklmnopqrstuvwxyz', k=chance.randint(2, 9))) for _ in range(5000)]
    return [' '.join(chance.choices(words, k=1000)) for _ in range(n)]

async def naive(base_url, asked, concurrency):
    "What one writes in twenty lines: no retries, no cache, no absences."
    from openai import AsyncOpenAI
    slots = asyncio.Semaphore(concurrency)
    async with AsyncOpenAI(base_url=base_url, api_key='none', max_retries=0) as client:
        async def one(prompt):
            async with slots:
                done = await client.chat.completions.create(model='stub', messages=[dict(role='user', content=prompt)], temperature=0, max_tokens=2048)
                return done.choices[0].message.content
        return await asyncio.gather(*[one(p) for p in asked])

async def bare(base_url, asked, concurrency):
    "The least that can be done: no types, no retries, no cache, no absences."
    import aiohttp
    waiting, replies = iter(asked), []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        async def work():
            for prompt in waiting: # the workers share one iterator
                body = dict(model='stub', messages=[dict(role='user', content=prompt)], temperature=0, max_tokens=2048)
                async with session.post(f'{base_url}/chat/completions', json=body) as response: replies.append(json.loads(await response.read())['choices'][0]['message']['content'])
        await asyncio.gather(*[work() for _ in range(concurrency)])
    return replies

async def factlib_chat(chat, asked):
    replies = await asyncio.gather(*[chat(p) for p in asked])
    assert all(r.text == 'Fluency: 4' and r.absence is None for r in replies)
    return replies

async def evaluated(chat, asked):
    "As `evaluate` asks: so many workers, which take one question after another."
    replies, waiting = [], iter(asked)
    async def work():
        for prompt in waiting: replies.append(await chat(prompt))
    await asyncio.gather(*[work() for _ in range(chat.concurrency)])
    assert all(r.text == 'Fluency: 4' and r.absence is None for r in replies)
    return replies

def measure(name, run, n, concurrency, counts):
    "One row: wall time against the ideal, CPU a request, what the server saw."
    from factlib.core.loop import run_sync
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    (run_sync if 'evaluate' in name else asyncio.run)(run())
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    sent, in_flight, connections = counts()
    row = dict(what=name, n=n, concurrency=concurrency, sent=sent, wall=round(wall, 3), ideal=round(n*DELAY/concurrency, 3), cpu_ms=round(1000*cpu/n, 3), per_second=round(n/wall),
               in_flight=in_flight, connections=connections)
    row['times_ideal'] = round(wall/row['ideal'], 2) if sent else None
    return row

def cases(base_url, folder, repeats):
    "Name, coroutine function, n, concurrency. Each Chat is new, each prompt too, but for the warm runs."
    from factlib.llm.chat import Chat
    for r in range(repeats):
        for concurrency, n in ((16, 400), (256, 4000)):
            ours, theirs = prompts(n, f'{concurrency}-{r}'), prompts(n, f'naive-{concurrency}-{r}')
            yield 'bare aiohttp', lambda: bare(base_url, theirs, concurrency), n, concurrency
            yield 'naive SDK client', lambda: naive(base_url, theirs, concurrency), n, concurrency
            for transport, way in (('sdk', 'await'), ('lean', 'await'), ('lean', 'evaluate')):
                chat = Chat('stub', base_url, concurrency=concurrency, cache=f'{folder}/{transport}-{way}-{concurrency}-{r}.sqlite', transport=transport)
                run = evaluated if way == 'evaluate' else factlib_chat
                yield f'Chat, {transport}, {way}', lambda: run(chat, ours), n, concurrency
                yield f'Chat, {transport}, {way}, warm', lambda: run(Chat('stub', base_url, concurrency=concurrency, cache=chat.cache), ours), n, concurrency

def told(pipe, question=None):
    "What the server's process says next, to a question if there is one."
    try:
        if question: pipe.send(question)
        return pipe.recv()
    except (EOFError, OSError): raise SystemExit('The stub server died, so there is nothing to measure.') from None

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--repeats', type=int, default=3, help='runs of each case; the best is shown')
    parser.add_argument('--out', type=Path, help='write all rows to this JSON file')
    options = parser.parse_args()
    ours, theirs = multiprocessing.get_context('spawn').Pipe()
    server = multiprocessing.get_context('spawn').Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    theirs.close() # the server's end is now held by the server alone, so if it dies, `recv` fails instead of waiting for ever
    base_url = told(ours)
    pin(0)
    counts = lambda: told(ours, 'counts')
    with tempfile.TemporaryDirectory() as folder: rows = [measure(*case, counts) for case in cases(base_url, folder, options.repeats)]
    ours.send('stop')
    best = {}
    for row in rows:
        key = row['what'], row['concurrency']
        if key not in best or row['wall'] < best[key]['wall']: best[key] = row
    print(f'{"":26} {"at once":>7} {"sent":>6} {"x ideal":>8} {"CPU ms":>7} {"per s":>7} {"of bare":>7} {"in flight":>9} {"connections":>11}')
    for row in sorted(best.values(), key=lambda r: r['concurrency']):
        of_bare = row['per_second']/best['bare aiohttp', row['concurrency']]['per_second']
        print(f'{row["what"]:26} {row["concurrency"]:7} {row["sent"]:6} {row["times_ideal"] or "-":>8} {row["cpu_ms"]:7.2f} {row["per_second"]:7} {of_bare:7.2f} {row["in_flight"]:9} {row["connections"]:11}')
    if options.out: options.out.write_text(json.dumps(rows, indent=1), encoding='utf-8')

if __name__ == '__main__': main()
