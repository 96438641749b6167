"""What a user may write, with types: README's calls, an evaluator of one's own, a judge by name, what came out.
`test_types.py` has mypy read it; nobody runs it.

Where it says `str`, `float` or `Judgement`, mypy has to find just that: an attribute that it can't see would be an
error here."""
# mypy: check-untyped-defs
from factlib.benchmarks import BENCHMARKS, load
from factlib.core.records import Absence, BadInput, Example, Judgement, Usage
from factlib.evaluators.base import EVALUATORS, Evaluator, evaluate, get, register, register_variant, summary
from factlib.evaluators.claims.dovescore import DoveScore
from factlib.evaluators.vista.vista import Vista
from factlib.evaluators.memo.judgememo import JudgeMemo
from factlib.evaluators.memo.memory import Memory
from factlib.evaluators.narrative.narrativefactscore import NarrativeFactScore
from factlib.evaluators.narrative.network import Graph
from factlib.evaluators.overlap import rouge
from factlib.llm.chat import Chat, Reply
from factlib.llm.costs import dry_run
from factlib.llm.replies import likert
from factlib.perturb.quality import manipulate
from factlib.runs.judging import judges_for
from factlib.validity.agreement import alpha
from factlib.validity.detection import auc_ci
from factlib.validity.paired import paired_t

@register
class Exclamations(Evaluator):
    "An evaluator of one's own."
    name, signature = 'exclamations', 'exclamations|v:1'
    requires = ('target', 'source')

    def __init__(self, weight: float = 1.) -> None: self.weight = weight

    async def judge(self, example: Example) -> Judgement:
        if not example.target.strip(): return self.absent(example, Absence.inapplicable, detail='Nothing to read.')
        n = example.target.count('!')
        return self.judgement(example, self.weight*n, parts=dict(marks=n), seen=n)

class Conversations(Evaluator):
    "One that judges the turns of a conversation together."
    name, signature = 'conversations', 'conversations|v:1'
    async def judge_group(self, examples: list[Example]) -> list[Judgement]:
        return [self.judgement(e, len(e.history)) for e in examples]

register_variant('exclamations_twice', Exclamations, weight=2.)
examples = [Example(id='a', target='Stop! Now!', source='She said stop.'),
            Example.from_dict(dict(id='b', target='Well.'))]
frame = evaluate(Exclamations(), examples)
print(summary(frame).to_string(), evaluate(get('rouge1'), examples, progress=False).value.mean(),
      sorted(EVALUATORS), sorted(BENCHMARKS))

benchmark = load('mine.jsonl', n=10)
name: str = benchmark.name
ids: list[str] = [e.id for e in benchmark.examples]
chat = Chat('NAME', 'http://localhost:8000/v1', cache='answers.sqlite')
for judge in judges_for('fluency_coherence judgememo', chat): evaluate(judge, benchmark.examples)
judges = [JudgeMemo(chat, size=1000, metrics=('fluency',)), Vista(chat, memory=20, knowledge=['Paris is in France.']),
          DoveScore(chat), NarrativeFactScore(chat)]
for each in judges: evaluate(each, benchmark.examples, concurrency=4)
print(dry_run(judges, benchmark.examples).table())

async def ask() -> None:
    reply: Reply = await chat([dict(role='user', content='Is it so?')], max_tokens=10, temperature=0, seed=1)
    text: str = reply.text or ''
    why: Absence | None = reply.absence
    print(likert(text, ['fluency']), why, reply.usage, chat.stats)
    judged: Judgement = await JudgeMemo(chat, report='aggregate').judge(benchmark.examples[0])
    cost: Usage = judged.usage
    print(judged.value, judged.parts, judged.evidence, cost.prompt_tokens + cost.completion_tokens)

try: graph = Graph.load('story.json')
except BadInput as e: raise SystemExit(str(e))
lines: list[str] = graph.at(tau=1).lines('Helen')
same: Graph = Graph.from_json(graph.to_json()).merge('Helen', 'Miss Stoner')
path = same.save('story.graphml')
memory: Memory = Memory.load('notes.json')
print(lines, path.name, memory.to_json())

spoilt = manipulate('A text. And more of it.', '41', seed=1)
spoilt_text: str = spoilt.revert()
test = paired_t([.1, .2, -.1, .3], groups=['a', 'a', 'b', 'b'])
p: float | None = test.p
print(spoilt_text, p, test.ci, auc_ci([.9, .8], [.1, .2]).estimate, alpha([[1, 1], [0, 1]]).estimate,
      rouge('a b', 'a c')['rouge1'])
