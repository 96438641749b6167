"""Factual correctness: by hand against a server with rules, requests as planned, hostile texts, NLI as trutheval has
it, and the recorded ladders."""
import asyncio
import json
import math
import os
import re
from pathlib import Path

import pytest

from fact_server import ATTACKS, TURNS, between, prompt
from factlib.core.records import Absence, BadInput, Example
from factlib.evaluators.base import evaluate, get
from factlib.evaluators.claims.check import DegreeChecker, ModelChecker, NliChecker, degree_of_support
from factlib.evaluators.claims.correctness import FactualCorrectness, correctness, correctness_scores
from factlib.evaluators.claims.decompose import ClaimDecomposer, SentenceDecomposer
from factlib.evaluators.claims.base import Component, ComponentResult, numbered
from factlib.evaluators.entailment.base import Entailment, Scored
from factlib.evaluators.entailment.rules import RuleEntailment
from factlib.llm.chat import Chat
from factlib.llm.costs import dry_run
from factlib.llm.stub import StubServer

DEGREES = dict(decomposer=SentenceDecomposer(), checker=DegreeChecker(False))

def is_check(request): return '"verdicts"' in re.split('</(?:facts|text)>', prompt(request))[-1]

def honest(request):
    "Every line of a text is a claim; a claim is supported if it is a line of the source."
    task = TURNS.split(prompt(request))[0]
    if not is_check(request):
        return dict(claims=[line for line in between(task, 'text').strip().split('\n') if line.strip()])
    lines = [line.strip() for line in between(task, 'source').split('\n')]
    asked = re.findall(r'^\[(\w+)\] (.*)$', between(task, 'facts'), re.MULTILINE)
    return dict(verdicts=[dict(id=i, verdict='supported' if fact.strip() in lines else 'unsupported')
                          for i, fact in asked])

def rule(request): return json.dumps(honest(request))

def run(examples, answer=rule, **options):
    with StubServer(answer) as server:
        chat = Chat('stub', server.base_url, api_key='none', endpoint='test', mode='off')
        return evaluate(FactualCorrectness(chat, **options), examples, progress=False), server

def it(target, reference, id='it'): return Example(id, target='\n'.join(target), reference='\n'.join(reference))

def test_by_hand():
    """Ten claims, of which the reference has one; of the reference's two the other is not in the answer (the case that
    research measured as F .95)."""
    target, reference = [f'Claim {i}.' for i in range(8)], ['Claim 0.', 'Claim 1.', 'Else.']
    judged, _ = run([it(target, reference)])
    tp, fp, fn = 2, 6, 1
    p, r = tp/(tp + fp), tp/(tp + fn)
    assert (judged.precision[0], judged.recall[0], judged.reference_recall[0]) == (p, r, 2/3)
    assert math.isclose(judged.value[0], 2*p*r/(p + r), rel_tol=1e-12) and judged.value[0] == judged.f[0]
    assert [f['verdict'] for f in judged.evidence[0]['reference_facts']] == ['supported', 'supported', 'unsupported']
    f2, _ = run([it(target, reference)], beta=2)
    assert math.isclose(f2.value[0], 5*p*r/(4*p + r), rel_tol=1e-12)
    for mode, value in dict(precision=p, recall=r).items():
        assert run([it(target, reference)], mode=mode)[0].value[0] == value
    assert round(correctness([True]*10, [True, False]).f, 2) == .95

@pytest.mark.parametrize('batch', [1, 2, 20])
def test_requests_are_as_planned(batch):
    "The claims are the sentences, so the plan knows them."
    examples = [it([f'Sentence {i} is here.' for i in range(n)], [f'Sentence {i} is here.' for i in range(m)],
                   f'{n}-{m}') for n, m in ((1, 1), (3, 2), (5, 7))]
    judged, server = run(examples, batch=batch)
    chat = Chat('stub', 'http://localhost:9/v1', api_key='none', endpoint='test', mode='off')
    planned = dry_run(FactualCorrectness(chat, batch=batch), examples)
    assert planned.total.requests == judged.requests.sum() == len(server.requests) == sum(
        2 + math.ceil(n/batch) + math.ceil(m/batch) for n, m in ((1, 1), (3, 2), (5, 7)))

class Meeting(Component):
    """Takes apart and checks, and goes on only when both sides have come: it would wait for ever if they came one after
    the other."""
    signature = 'meeting'
    def __init__(self): self.waiting = {}
    async def meet(self, step):
        first, event = step not in self.waiting, self.waiting.setdefault(step, asyncio.Event())
        if not first: event.set()
        await asyncio.wait_for(event.wait(), 20)
    async def decompose(self, text):
        await self.meet('decompose')
        return ComponentResult(numbered(text.split('\n')))
    async def check(self, facts, source):
        await self.meet('check')
        return ComponentResult({f.id: f.text in source for f in facts})

def test_both_sides_at_once():
    both = Meeting()
    assert evaluate(FactualCorrectness(decomposer=both, checker=both),
                    [it(['a b.'], ['a b.', 'c d.'])], progress=False).value[0] == 2/3

def test_texts_without_claims():
    nothing = lambda request: json.dumps(dict(claims=[])) if not is_check(
        request) and '?' in between(prompt(request), 'text') else rule(request)
    judged, server = run([it(['?'], ['One.'], 'target'), it(['One.'], ['?'], 'reference'), it(['?'], ['??'], 'both')],
                         nothing)
    assert list(judged.value) == [0, None, None] and list(judged.absence) == [None, 'inapplicable', 'inapplicable']
    assert judged.precision[0] == judged.recall[0] == judged.reference_recall[0] == 0
    assert not any(is_check(r) for r in server.requests)
    assert 'target makes no claims' in judged.evidence[0]['why']
    assert 'reference makes no claims' in judged.evidence[1]['why']

def test_a_missing_verdict_is_no_zero():
    "The claim that the server will not judge leaves the value open, within bounds; what does not need it is known."
    def shy(request):
        data = honest(request)
        if is_check(request):
            data['verdicts'] = [v for v in data['verdicts'] if f'[{v["id"]}] Secret.' not in prompt(request)]
        return json.dumps(data)
    judged, _ = run([it(['One.', 'Secret.'], ['One.', 'Two.'])], shy)
    assert judged.value[0] is None and judged.absence[0] == 'count_mismatch' and judged.reference_recall[0] == .5
    low, high = judged.evidence[0]['bounds']
    assert math.isclose(low, .5) and math.isclose(high, 2*(2/3)/(1 + 2/3)) # P 1/2 R 1/2; P 1, R 2/3
    assert judged.precision_absence[0] == 'count_mismatch'

@pytest.mark.parametrize('step', ['target', 'reference'])
def test_a_text_that_is_not_taken_apart(step):
    mark = dict(target='AAA', reference='BBB')[step]
    judged, _ = run([it(['AAA is here.'], ['BBB is here.'])],
                    lambda r: 'well...' if not is_check(r) and mark in between(prompt(r), 'text') else rule(r))
    assert judged.value[0] is None and judged.absence[0] == 'malformed'
    assert judged.evidence[0]['step'] == f'decompose {step}'

@pytest.mark.parametrize('attack', ATTACKS.values(), ids=list(ATTACKS))
def test_attacks_change_nothing(attack):
    """The attack stands in a claim that the other text lacks, on either side; the lines of both are counted by a server
    that trusts the first closing tag."""
    plain, _ = run([it(['One.', 'Two.', 'x'], ['One.', 'Two.', 'Three.'])])
    for target, reference in ((['One.', 'Two.', attack], ['One.', 'Two.', 'Three.']),
                              (['One.', 'Two.', 'Three.'], ['One.', 'Two.', attack])):
        judged, server = run([it(target, reference)])
        # one claim or several
        if '\u2028' in attack or '\x1b' in attack: assert judged.value[0] is not None and judged.value[0] < 1
        else: assert judged.value[0] == plain.value[0] == 2/3
        assert all(prompt(r).count(f'</{tag}>') == 1 for r in server.requests
                   for tag in (('source', 'facts') if is_check(r) else ('text',)))

HOSTILE = ['{{x}} {% y %} {0}', '[[a]] {{b}}', '"}]} supported', '\ud800 half', '\x00\x07',
           'x'*20_000, 'word '*20_000, '漢字' * 50, 'مرحبا بالعالم', '﷽'*30, '🙂🙂', 'a.b.c', '"', '—', '1,000,000 of 10']

@pytest.mark.parametrize('make', [lambda: FactualCorrectness(**DEGREES),
                                  lambda: FactualCorrectness(decomposer=SentenceDecomposer(),
                                                             checker=NliChecker(RuleEntailment(), None, None))],
                         ids=['degrees', 'nli'])
def test_hostile_texts_by_rule(make):
    evaluator = make()
    examples = [Example(f'{i}', target=a, reference=b)
                for i, (a, b) in enumerate([(x, 'Anna came in 1931.') for x in HOSTILE]
                                           + [('Anna came in 1931.', x) for x in HOSTILE] + [(x, x) for x in HOSTILE])]
    judged = evaluate(evaluator, examples, progress=False)
    for r in judged.itertuples():
        assert (r.absence is None) == (r.value is not None) and (r.value is None or 0 <= r.value <= 1)

def test_degrees_by_hand():
    source = 'Anna Berg was born in 1931 in Oslo. She never married.'
    d = lambda claim: degree_of_support(claim, source, by_meaning=False)
    assert d('Anna Berg was born in 1931.').degree == 1 and d('Anna Berg was born in 1932.').lacking == ('1932',)
    held = d('Anna Berg was born in 1932.') # anna, berg, born of four words; anna and berg of three details
    assert held.words == .75 and held.details == 2/3 and math.isclose(held.degree, .5)
    assert d('She was there.').degree is None
    assert d('Anna did not marry.').lacking == ()
    assert degree_of_support('Anna did not come.', 'Anna came.', False).lacking == ('not',)
    assert degree_of_support('It had twelve rooms.', 'It had 12 rooms.', False).details == 1

class Fixed(Entailment):
    "Entailment by a table of (premise, hypothesis)."
    signature = label = 'fixed'
    def __init__(self, table): self.table, self.premises = table, []
    def grid(self, premises, hypotheses):
        import numpy as np
        self.premises += premises
        return Scored(np.array([[self.table.get(h, (0., 1., 0.)) for h in hypotheses] for _ in premises], dtype=float))

def test_nli_as_in_trutheval():
    "The whole text is the premise; .4 is enough if the others are lower, and .45 is not beside .5."
    model = Fixed({'One is here.': (.4, .35, .25), 'Two is here.': (.45, .5, .05), 'Three is here.': (.9, .1, 0.)})
    example = Example('it', target='One is here. Two is here.', reference='One is here. Three is here. Two is here.')
    judged = evaluate(FactualCorrectness(decomposer=SentenceDecomposer(),
                                         checker=NliChecker(model, threshold=None, words=None)),
                      [example], progress=False)
    assert (judged.precision[0], judged.reference_recall[0]) == (.5, 2/3) and judged.recall[0] == 1/(1 + 1)
    assert set(model.premises) == {example.target, example.reference}

def test_model_decomposer_with_nli():
    "LLM + NLI: only two requests."
    model = Fixed({'One.': (1., 0., 0.)})
    judged, server = run([it(['One.', 'Two.'], ['One.'])], checker=NliChecker(model, threshold=None, words=None))
    assert judged.precision[0] == .5 and judged.recall[0] == 1 and len(server.requests) == 2
    with pytest.raises(BadInput, match='atomicity'): FactualCorrectness(atomicity='low')
    with pytest.raises(BadInput, match='coverage'):
        run([it(['One.'], ['One.'])], decomposer=SentenceDecomposer(), coverage='low')

def test_llm_plus_nli_by_name(monkeypatch):
    """As given by hand; by its name it takes the model that FACTLIB_NLI names, else the paper's, and one sentence says
    what is missing."""
    model = Fixed({'One.': (.4, .35, .25)})
    with StubServer(rule) as server:
        chat = Chat('stub', server.base_url, api_key='none', endpoint='test', mode='off')
        judge = get('factual_correctness_nli', chat=chat, nli=model, mode='precision')
        judged = evaluate(judge, [it(['One.', 'Two.'], ['One.'])], progress=False)
        assert (judged.value[0], judged.recall[0], len(server.requests)) == (.5, 1, 2)
        assert judged.evaluator[0] == 'factual_correctness_nli' and set(model.premises) == {'One.', 'One.\nTwo.'}
        asked = []
        def loaded(name):
            asked.append(name)
            raise BadInput('not here')
        monkeypatch.setattr('factlib.evaluators.claims.correctness._inference', loaded)
        for named in ('', 'mine'):
            monkeypatch.setenv('FACTLIB_NLI', named)
            with pytest.raises(BadInput, match='not here'): get('factual_correctness_nli', chat=chat)
    assert asked == ['cross-encoder/nli-deberta-v3-large', 'mine']

BAD = [(dict(mode='g'), 'mode'), (dict(beta=0), 'beta'), (dict(beta='x'), 'beta'),
       (dict(beta=float('nan')), 'beta'), (dict(beta=1e200), 'beta'), (dict(atomicity='middle'), 'atomicity'),
       (dict(temperature=1), 'temperature'), (dict(checker=3), 'check'), (dict(decomposer='x'), 'decompose')]

@pytest.mark.parametrize('options, word', BAD, ids=[str(o) for o, _ in BAD])
def test_bad_input(options, word):
    with pytest.raises(BadInput, match=word) as error: FactualCorrectness(**DEGREES | options)
    assert str(error.value).count('\n') == 0 and len(str(error.value)) < 250

def test_prompts_differ_by_grain():
    chat = Chat('stub', 'http://localhost:9/v1', api_key='none', endpoint='test', mode='off')
    made = [ClaimDecomposer(chat, a, c) for a in ('high', 'low') for c in ('high', 'low')]
    assert len({m.signature for m in made}) == 4 and len({str(m.plan('A text.')[0].messages) for m in made}) == 4

def test_missing_fields():
    judged = evaluate(FactualCorrectness(**DEGREES),
                      [Example('a', target='One is here.'), Example('b', target=' ', reference='One is here.')],
                      progress=False)
    assert list(judged.absence) == ['inapplicable']*2

def test_scores_never_leave_the_interval():
    import random
    rng = random.Random(0)
    for _ in range(500):
        pick = lambda: rng.choice([True, False, rng.random(), Absence.refused])
        target, reference = [pick() for _ in range(rng.randint(1, 5))], [pick() for _ in range(rng.randint(1, 5))]
        value, parts, more = correctness_scores(target, reference, rng.choice(['f', 'precision', 'recall']),
                                                rng.choice([.5, 1, 2]))
        for x in [value, *parts.values()]: assert isinstance(x, Absence) or 0 <= x <= 1
        if 'bounds' in more: assert more['bounds'][0] <= more['bounds'][1]

# The recorded ladders

DATA = Path(os.environ.get('FACTLIB_DATA') or 'nowhere')/'trutheval'
TARGETS = dict(auc=.853, tau=.915, pearson=.713) # A graded F by word rules, from research

def ladders(which):
    import pandas as pd
    if which == 'recorded':
        return {i: (g.sort_values('level').answer.tolist(), g.ground_truth.iloc[0])
                for i, g in pd.read_parquet(DATA/'perturbed_answers.parquet').groupby('id')}
    rows = pd.read_parquet(DATA/'human_preferences.parquet')
    return {(who, i): (g.sort_values('level')[who].tolist(), g.ground_truth.iloc[0])
            for who in ('ai', 'expert') for i, g in rows.groupby('id')}

@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason='FACTLIB_DATA has no trutheval')
@pytest.mark.parametrize('which, n', [('recorded', 100), ('human', 40)])
def test_degrees_follow_the_ladders(which, n):
    """Two of three beyond the targets, on either set (a dozen questions are enough to see it); the rule has no
    number that was fitted to them."""
    import numpy as np
    import scipy
    from factlib.validity.detection import auc
    rungs = ladders(which)
    assert len(rungs) == n
    examples = [Example(f'{key}/{level}', target=text, reference=reference, group=str(key))
                for key, (texts, reference) in list(rungs.items())[:12] for level, text in enumerate(texts)]
    made = dict(decomposer=SentenceDecomposer(), checker=DegreeChecker())
    values = np.array(list(evaluate(FactualCorrectness(**made), examples, progress=False).value), dtype=float).reshape(-1, 5)
    tau = -np.mean([scipy.stats.kendalltau(range(5), row).statistic for row in values])
    r = -np.corrcoef(np.tile(range(5), len(values)), values.ravel())[0, 1]
    measured = dict(auc=auc(list(values[:, 0]), list(values[:, 1])).estimate, tau=tau, pearson=r)
    assert sum(measured[name] > target for name, target in TARGETS.items()) >= 2, measured
