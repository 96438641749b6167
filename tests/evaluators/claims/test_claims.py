"Facts, verdicts and FActScore, asked through the real client over HTTP."
import json
import math
import re
from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies as st

from fact_server import ATTACKS, LONG, asked, example, honest, prompt, rule, run, spoiling, step, words
from factlib.core.loop import run_sync
from factlib.core.records import Absence, BadInput, Example, Usage
from factlib.evaluators.base import EVALUATORS, EvaluationError, evaluate, get
from factlib.evaluators.claims.decompose import EventDecomposer, FactDecomposer, SentenceDecomposer
from factlib.evaluators.claims.decompose import event_or_description
from factlib.evaluators.claims.factscore import FActScore
from factlib.evaluators.claims.base import Fact, ComponentResult, numbered, supported_share
from factlib.evaluators.claims.check import ModelChecker, ScoreChecker, word_checker, word_support
from factlib.evaluators.claims.asking import read_verdicts
from factlib.evaluators.claims.dovescore import DoveScore, rule_components
from factlib.llm.cache import Cache
from factlib.llm.chat import Chat, ReplayMiss
from factlib.llm.costs import dry_run
from factlib.llm.stub import StubServer

WORDS = dict(decomposer=SentenceDecomposer(), checker=word_checker())
WITHOUT_MODEL = [lambda: FActScore(**WORDS), lambda: DoveScore(**rule_components())]

SOURCE = ['Ann left.', 'Bob slept.', 'Cat ate.', 'Dan sang.']
verdicts = lambda scores, row=0: [f['verdict'] for f in scores.evidence[row]['facts']]

# Scores by hand

@pytest.mark.parametrize('target, score',
                         [(SOURCE, 1), (['Ann left.', 'Bob ran.'], 1/2), (['Eve hid.'], 0),
                          (['Dan sang.', 'Ann left.', 'Ann stayed.'], 2/3), (SOURCE + ['Ann left.'], 1)])
@pytest.mark.parametrize('batch', [1, 2, 20])
def test_hand_worked_scores(target, score, batch):
    scores, server = run(lambda chat: FActScore(chat, batch=batch), [example(SOURCE, target)])
    facts = len(set(target))
    assert scores.value[0] == score and scores.requests[0] == len(server.requests) == 1 + math.ceil(facts/batch)
    assert [f['text'] for f in scores.evidence[0]['facts']] == list(dict.fromkeys(target))
    assert scores.evidence[0]['listed'] == len(target)

@pytest.mark.parametrize('json_schema', [True, False], ids=['schema', 'text'])
def test_servers_without_schemas_do_as_well(json_schema):
    scores, server = run(FActScore, [example(SOURCE, SOURCE[:2] + ['Eve hid.'], str(i)) for i in range(5)],
                         json_schema=json_schema, concurrency=1)
    assert list(scores.value) == [2/3]*5
    # a form that the server doesn't know is found out once, for all schemas
    assert len(server.requests) == 10 + (0 if json_schema else 1)

def test_no_facts_is_inapplicable():
    scores, server = run(FActScore, [example(SOURCE, ['Why?'])], lambda r: '{"facts": []}')
    assert scores.absence[0] == 'inapplicable' and scores.value[0] is None and len(server.requests) == 1
    assert scores.evidence[0]['facts'] == []

def test_a_missing_field_is_not_asked():
    lacking = Example('a', target='Text.'), Example('b', source='Text.', target=' ')
    scores, server = run(FActScore, list(lacking))
    assert list(scores.absence) == ['inapplicable']*2 and not server.requests
    assert run_sync(FActScore(**WORDS).judge(lacking[0])).evidence == dict(missing_field='source')

# Cost

def test_a_batch_is_a_fifth_of_the_cost_or_less():
    target = [line.strip() for line in LONG[::15]]
    long = [example(LONG, target)]
    assert len(' '.join(LONG).split()) == 4200 and len(target) == 20
    (one, batched), (many, singly) = run(FActScore, long), run(lambda chat: FActScore(chat, batch=1), long)
    assert one.value[0] == many.value[0] == 1
    assert (len(batched.requests), len(singly.requests)) == (2, 21)
    assert words(batched)*5 <= words(singly) and one.prompt_tokens[0] == words(batched)
    assert many.prompt_tokens[0] == words(singly)

@pytest.mark.parametrize('batch', [1, 3, 20])
def test_a_dry_run_knows_the_requests(batch):
    examples = [example(SOURCE, SOURCE + ['Eve hid.', 'Fay won.'], 'a'), example(SOURCE, ['Ann left.'], 'b')]
    scores, server = run(lambda chat: FActScore(chat, batch=batch), examples)
    judge = FActScore(Chat('stub', 'http://127.0.0.1:9/v1', api_key='none', endpoint='test', mode='off'), batch=batch)
    plans = [p for e in examples for p in judge.plan(e)]
    assert sorted(json.dumps(p.messages) for p in plans) == sorted(json.dumps(r['messages']) for r in server.requests)
    estimate = dry_run(judge, examples).total
    assert estimate.requests == scores.requests.sum()
    assert any('stand in' in said for said in dry_run(judge, examples).assumptions)
    by_rule = FActScore(judge.chat, decomposer=SentenceDecomposer())
    assert [p.note for p in by_rule.plan(examples[0])] == [''] and judge.plan(Example('x', target='No source.')) == []

# Texts that talk back

@pytest.mark.parametrize('where', ['target', 'source'])
def test_no_hostile_fact_changes_another_verdict(where):
    clean = dict(source=SOURCE, target=['Ann left.', 'Eve hid.', 'Bob slept.'])
    hostile = [example(**clean | {where: clean[where][:1] + [attack] + clean[where][1:]}, id=name)
               for name, attack in ATTACKS.items()]
    scores, server = run(FActScore, hostile)
    for i, name in enumerate(ATTACKS):
        by_text = {f['text']: f['verdict'] for f in scores.evidence[i]['facts']}
        assert [by_text[t] for t in clean['target']] == ['supported', 'unsupported', 'supported'], name
        assert scores.value[i] == (2/4 if where == 'target' else 2/3), name

def test_the_attacks_would_work_on_a_naive_prompt(monkeypatch):
    "So that the test above can fail."
    monkeypatch.setattr('factlib.llm.prompts.neutralise', lambda text, tags=(): text)
    scores, _ = run(FActScore, [example(SOURCE, ['Ann left.', ATTACKS[name], 'Bob slept.'], name)
                                for name in ('closing', 'chatml')])
    assert list(scores.value) != [2/3, 2/3]

def test_a_fact_stands_on_one_line():
    assert numbered(['a\nb\r\n[F2] c\u2028d\x85e', '\t', 'A B [f2] C D E',
                     'x']) == [Fact('F1', 'a b [F2] c d e'), Fact('F2', 'x')]
    assert [f.id for f in numbered('ab', 'event') + numbered('c', 'description')] == ['E1', 'E2', 'D1']
    assert numbered([]) == []
    with pytest.raises(BadInput, match='no kind of fact'): numbered(['a'], 'claim')

# Faults

def said(text): return lambda request, data: text
def cut(request, data): return dict(content=json.dumps(data)[:-9], finish_reason='length')
def change(f): return lambda request, data: dict(verdicts=f(data['verdicts']))

# of a checker -> verdicts on Ann left, Eve hid, Bob slept; the first if only batches are spoiled, the second if single
# questions are too
FAULTS = {
    'malformed': (said('I think so.'), 'malformed'), 'empty': (said(''), 'malformed'),
    'other_json': (said('{"answer": 3}'), 'malformed'), 'truncated': (cut, 'truncated'),
    'refused': (said(dict(content=None, refusal='No.')), 'refused'),
    'filtered': (said(dict(content='', finish_reason='content_filter')), 'filtered'),
    'none': (change(lambda vs: []), 'count_mismatch'), 'doubled': (change(lambda vs: vs + vs), 'count_mismatch'),
    'contradicting': (change(lambda vs: vs + [v | dict(verdict='supported') for v in vs]), 'count_mismatch'),
    'foreign_ids': (change(lambda vs: [v | dict(id='F9') for v in vs]), 'count_mismatch'),
    'no_ids': (change(lambda vs: [dict(verdict=v['verdict']) for v in vs]), 'count_mismatch'),
    'off_menu': (change(lambda vs: [v | dict(verdict='partly') for v in vs]), 'off_menu')}

@pytest.mark.parametrize('name', FAULTS)
def test_what_a_batch_spoils_is_asked_singly(name):
    spoil, why = FAULTS[name]
    only_batches = lambda request, data: spoil(request, data) if len(asked(request)) > 1 else data
    target = ['Ann left.', 'Eve hid.', 'Bob slept.']
    scores, server = run(FActScore, [example(SOURCE, target)], spoiling(check=only_batches))
    assert scores.value[0] == 2/3 and verdicts(scores) == ['supported', 'unsupported', 'supported']
    assert scores.evidence[0]['asked_again'] == ['F1', 'F2', 'F3']
    tries = 2 if name == 'empty' else 1 # the client gives an empty reply a second chance
    assert len(server.requests) == 1 + tries + 3 and scores.requests[0] == 5

@pytest.mark.parametrize('batch', [1, 20])
@pytest.mark.parametrize('name', FAULTS)
def test_what_nothing_mends_has_a_name(name, batch):
    spoil, why = FAULTS[name]
    scores, server = run(lambda chat: FActScore(chat, batch=batch), [example(SOURCE, ['Ann left.', 'Eve hid.'])],
                         spoiling(check=spoil))
    assert scores.value[0] is None and scores.absence[0] == why and verdicts(scores) == [why, why]
    assert scores.evidence[0]['bounds'] == [0, 1]
    assert scores.requests[0] == (3 if batch == 1 else 4) # taken apart, then singly; or the batch, and both again

def test_order_and_extra_verdicts_do_no_harm():
    for f in (lambda vs: vs[::-1], lambda vs: vs + [dict(id='F9', verdict='supported')],
              lambda vs: [v | dict(id=f'[{v["id"].lower()}]:') for v in vs]):
        scores, server = run(FActScore, [example(SOURCE, ['Eve hid.', 'Ann left.', 'Bob slept.'])],
                             spoiling(check=change(f)))
        assert verdicts(scores) == ['unsupported', 'supported', 'supported'] and len(server.requests) == 2

def test_one_verdict_too_few_costs_one_request():
    drop = change(lambda vs: vs[:1] + vs[2:] if len(vs) > 1 else vs)
    scores, server = run(FActScore, [example(SOURCE, SOURCE + ['Eve hid.'])], spoiling(check=drop))
    assert scores.value[0] == 4/5 and scores.evidence[0]['asked_again'] == ['F2'] and len(server.requests) == 3

def test_one_fact_that_is_refused_leaves_the_others_their_verdicts():
    refuse = lambda request, data: dict(content=None, refusal='No.') if 'Eve hid.' in prompt(request) else data
    scores, _ = run(FActScore, [example(SOURCE, ['Ann left.', 'Eve hid.', 'Dan ran.', 'Cat ate.'])],
                    spoiling(check=refuse))
    assert verdicts(scores) == ['supported', 'refused', 'unsupported', 'supported'] and scores.absence[0] == 'refused'
    assert scores.evidence[0]['bounds'] == [2/4, 3/4]

def test_a_source_that_is_too_long_is_not_asked_about_again():
    too_long = said(dict(status=400,
                         body=dict(error=dict(
                             message="This model's maximum context length is 10 tokens. However, your messages "
                                     "resulted in 99 tokens.", code='context_length_exceeded'))))
    scores, server = run(FActScore, [example(SOURCE, SOURCE)], spoiling(check=too_long))
    assert scores.absence[0] == 'too_long' and len(server.requests) == 2
    scores, server = run(FActScore, [example(SOURCE, SOURCE)],
                         spoiling(check=said(dict(status=400, headers={'retry-after-ms': '1'}))))
    assert scores.absence[0] == 'transport' and scores.requests[0] == 2

DECOMPOSERS = dict(malformed=said('Facts: many.'),
                   truncated=lambda r, d: dict(content='{"facts": ["Ann left.", "Bob', finish_reason='length'),
                   refused=said(dict(content=None, refusal='No.')),
                   filtered=said(dict(content='', finish_reason='content_filter')),
                   transport=said(dict(status=400, headers={'retry-after-ms': '1'})),
                   looped=said(dict(content='{"facts": ["' + 'the the '*400, finish_reason='length')))

@pytest.mark.parametrize('why', DECOMPOSERS)
def test_half_a_list_is_no_list(why):
    scores, server = run(FActScore, [example(SOURCE, SOURCE)], spoiling(decompose=DECOMPOSERS[why]))
    assert scores.absence[0] == why and scores.evidence[0]['step'] == 'decompose' and scores.evidence[0]['detail']
    assert {step(r) for r in server.requests} == {'decompose'}

BLANK = ['\u200b', ' \u2060\ufeff\n', '\u3164', '\u00ad\u200e', '\ufe0f']

def test_facts_that_show_nothing_are_no_facts():
    mixed = lambda r, d: dict(facts=['Ann left.', *BLANK, 'Eve hid.'])
    scores, _ = run(FActScore, [example(SOURCE, SOURCE)], spoiling(decompose=mixed))
    assert scores.value[0] == .5 and (scores.evidence[0]['listed'], scores.evidence[0]['blank']) == (7, 5)
    for make in (FActScore, DoveScore):
        scores, server = run(make, [example(SOURCE, SOURCE)],
                             spoiling(decompose=lambda r, d: dict(facts=BLANK, events=BLANK, descriptions=[])
                                      if make is DoveScore else dict(facts=BLANK)))
        assert scores.absence[0] == 'malformed' and {step(r) for r in server.requests} == {'decompose'}
    assert [f.text for f in numbered(BLANK + ['…', '☃', '1'])] == ['…', '☃', '1']

FOOTNOTES = ['\nSources: [1], [2]', '\nSee [1].', '\n\n[1] Source, line 3; [2] line 4', ' [1]']

@pytest.mark.parametrize('footnote', FOOTNOTES)
def test_footnotes_behind_a_reply_do_no_harm(footnote):
    noted = lambda bare: lambda request, data: json.dumps(next(iter(data.values())) if bare else data) + footnote
    for check in (noted(False), noted(True)):
        scores, server = run(FActScore, [example(SOURCE, ['Eve hid.', 'Ann left.', 'Bob slept.'])],
                             spoiling(decompose=noted(False), check=check), json_schema=False)
        assert verdicts(scores) == ['unsupported', 'supported', 'supported'] and 'asked_again' not in scores.evidence[0]
    reply = SimpleNamespace(absence=Absence.malformed, data=None,
                            text='[{"id": "F1", "verdict": "supported"}]' + footnote)
    assert read_verdicts(reply, ['F1'], ['supported', 'unsupported']) == dict(F1='supported')

def test_two_lists_of_verdicts_at_once_are_still_none():
    text = '[{"id": "F1", "verdict": "supported"}] or [{"id": "F1", "verdict": "unsupported"}]'
    assert read_verdicts(SimpleNamespace(absence=Absence.malformed, data=None, text=text),
                         ['F1'], ['supported', 'unsupported']) == dict(F1=Absence.malformed)

def test_lists_of_anything_but_texts_are_malformed():
    for facts in ('"Ann left."', '[1, 2]', '[{"fact": "Ann left."}]', 'null'):
        scores, _ = run(FActScore, [example(SOURCE, SOURCE)], spoiling(decompose=said('{"facts": %s}' % facts)))
        assert scores.absence[0] == 'malformed', facts

any_json = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5)
                        | st.sampled_from(['F1', 'f2', 'supported', 'unsupported']),
                        lambda x: st.lists(x, max_size=4)
                        | st.dictionaries(st.sampled_from(['id', 'verdict', 'verdicts', 'x']), x, max_size=3),
                        max_leaves=12)

def verdicts_in(data):
    "All that stands under the key `verdict`, at any depth."
    if isinstance(data, list): return [v for part in data for v in verdicts_in(part)]
    if not isinstance(data, dict): return []
    return [v for key, v in data.items() if key == 'verdict'] + verdicts_in(list(data.values()))

@settings(max_examples=150, deadline=None)
@given(any_json)
def test_any_json_gives_a_verdict_or_an_absence(data):
    for reply in (SimpleNamespace(absence=None, data=data, text=json.dumps(data)),
                  SimpleNamespace(absence=Absence.malformed, data=None, text=json.dumps(data))):
        found = read_verdicts(reply, ['F1', 'F2'], ['supported', 'unsupported'])
        assert list(found) == ['F1', 'F2']
        assert all(v in ('supported', 'unsupported') or isinstance(v, Absence) for v in found.values())
        said = {re.sub(r'[\W_]+', ' ', str(v)).strip().lower() for v in verdicts_in(data)}
        if not said & {'supported', 'true', 'yes'}: assert 'supported' not in found.values()
        if not said & {'unsupported', 'not supported', 'false', 'no'}: assert 'unsupported' not in found.values()

def test_json_true_is_supported_and_false_is_not():
    "By definition, as the words are; a number is no verdict."
    def read(verdict, options=('supported', 'unsupported')):
        entries = [dict(id='F1', verdict=verdict)]
        replies = SimpleNamespace(absence=None, data=dict(verdicts=entries),
                                  text=''), SimpleNamespace(absence=Absence.malformed,
                                                            data=None, text=json.dumps(entries))
        one, other = (read_verdicts(reply, ['F1'], list(options))['F1'] for reply in replies)
        assert one == other
        return one
    assert read(True) == 'supported' and read(False) == 'unsupported'
    assert read(1) == read(0) == read(None) == Absence.off_menu
    # there are several ways not to be verified
    assert read(True, ('verified', 'unverifiable')) == 'verified'
    assert read(False, ('verified', 'unverifiable')) == Absence.off_menu

# Components

def test_a_checker_may_be_any_function():
    async def entails(fact, source): return .9 if fact in source else .1
    nli = ScoreChecker(entails, .5, 'my-nli/2')
    found = evaluate(FActScore(decomposer=SentenceDecomposer(), checker=nli), [example(SOURCE, ['Ann left.', 'Eve hid.'])], progress=False)
    assert found.value[0] == .5 and found.evidence[0]['scores'] == dict(F1=.9, F2=.1)
    assert 'my-nli/2;threshold:0.5' in FActScore(decomposer=SentenceDecomposer(), checker=nli).signature
    unsure = evaluate(FActScore(decomposer=SentenceDecomposer(), checker=ScoreChecker(lambda fact, source: None if 'Eve' in fact else 1, 1)),
                      [example(SOURCE, ['Ann left.', 'Eve hid.'])], progress=False)
    assert unsure.absence[0] == 'inapplicable' and unsure.evidence[0]['bounds'] == [.5, 1]
    with pytest.raises(EvaluationError, match='must be a number'):
        evaluate(FActScore(decomposer=SentenceDecomposer(), checker=ScoreChecker(lambda fact, source: 'yes', 1)),
                 [example(SOURCE, SOURCE)], progress=False)
    with pytest.raises(EvaluationError, match='nan'):
        evaluate(FActScore(decomposer=SentenceDecomposer(), checker=ScoreChecker(lambda fact, source: math.nan, 1)),
                 [example(SOURCE, SOURCE)], progress=False)

def test_components_of_several_models_are_told_apart_in_the_signature():
    small, large = (Chat(m, 'http://127.0.0.1:9/v1', api_key='none', endpoint=f'at-{m}') for m in ('small', 'large'))
    made = FActScore(small, checker=ModelChecker(large, batch=7, seed=3)).signature
    assert made.startswith('factscore|decomposer:asked;prompt:decompose_facts/1/') and 'model:small' in made
    assert 'endpoint:at-large' in made and 'batch:7' in made and 'seed:3' in made
    assert FActScore(small).signature != FActScore(small, temperature=1).signature != FActScore(
        small, batch=1).signature

def test_what_cannot_be_made():
    chat = Chat('stub', 'http://127.0.0.1:9/v1', api_key='none')
    for make, match in ((lambda: FActScore(temperature=0), 'has no chat'),
                        (lambda: FActScore(chat='gpt'), 'through a `Chat`'),
                        (lambda: FActScore(chat, batch=0), 'whole number from 1'),
                        (lambda: FActScore(chat, batch=True), 'whole number'),
                        (lambda: FActScore(decomposer=SentenceDecomposer(), checker=object()), 'no method `check`'),
                        (lambda: FActScore(decomposer=ModelChecker(chat), checker=word_checker()), 'no method `decompose`'),
                        (lambda: FActScore(chat, schema={}), 'own schema'),
                        (lambda: ScoreChecker(3, .5), 'needs a function'),
                        (lambda: ScoreChecker(word_support, math.nan), 'threshold'),
                        (lambda: FActScore(chat, model='x'), '`model`')):
        with pytest.raises(BadInput, match=match): make()

def test_a_pack_of_prompts(tmp_path):
    (tmp_path/'decompose_facts.jinja').write_text(
        '{% set version = "me" %}{% set answer = "json" %}{% block user %}<text>\n{{ text }}\n</text>\nList {"facts": '
        '[]}{% endblock %}')
    (tmp_path/'check_facts.jinja').write_text(
        '{% set version = "me" %}{% set answer = "json" %}{% block user %}<source>\n{{ source }}\n</source><facts>\n{% '
        'for i in items %}{{ i }}\n{% endfor %}</facts>\n{"verdicts": []}{% endblock %}')
    scores, server = run(lambda chat: FActScore(chat, pack=tmp_path), [example(SOURCE, ['Ann left.', 'Eve hid.'])])
    assert scores.value[0] == .5 and [len(r['messages']) for r in server.requests] == [1, 1]
    (tmp_path/'check_facts.jinja').write_text(
        '{% set version = "me" %}{% block user %}{{ source }} {{ items }} True or False?{% endblock %}')
    with pytest.raises(BadInput, match='must ask for JSON'):
        FActScore(Chat('stub', server.base_url or 'http://127.0.0.1:9/v1', api_key='none'), pack=tmp_path)

def test_a_replay_that_misses_names_the_request(tmp_path):
    with StubServer(rule) as server:
        live = Chat('stub', server.base_url, api_key='none', endpoint='test', cache=tmp_path/'kept.sqlite')
        first = evaluate(FActScore(live, batch=1), [example(SOURCE, SOURCE)], progress=False)
    replay = Chat('stub', 'http://127.0.0.1:9/v1', api_key='none', endpoint='test',
                  cache=tmp_path/'kept.sqlite', mode='replay')
    again = evaluate(FActScore(replay, batch=1), [example(SOURCE, SOURCE)], progress=False)
    assert again.value[0] == first.value[0] == 1 and again.cached[0] == again.requests[0] == 5
    with pytest.raises(EvaluationError, match='ReplayMiss') as e:
        evaluate(FActScore(replay, batch=2), [example(SOURCE, SOURCE)], progress=False)
    assert isinstance(e.value.errors['it'], ReplayMiss)

# Rules

@pytest.mark.parametrize('fact, share', [('Ann leaves.', 1), ('Ann was leaving the house.', 2/3),
                                         ('Ann did not leave.', 1), ('Ann left.', 1/2),
                                         ('Eve hid.', 0), ('It was so.', None), ('', None), ('Ann has 12 cats', 2/3)])
def test_word_support(fact, share):
    assert word_support(fact, 'Ann leaves. Cats, 13 of them.') == (pytest.approx(share) if share is not None else None)

def test_sentences_as_facts():
    facts, note = SentenceDecomposer().expect('Ann left. Bob slept.\n\nAnn left.')
    assert facts == [Fact('F1', 'Ann left.'), Fact('F2', 'Bob slept.')] and note == ''
    facts, _ = SentenceDecomposer(event_or_description).expect(
        'Tea is a drink. Ann left. Cups have handles. Bob is sleeping.')
    assert [(f.id, f.text) for f in facts] == [('E1', 'Ann left.'), ('E2', 'Bob is sleeping.'),
                                               ('D1', 'Tea is a drink.'), ('D2', 'Cups have handles.')]
    assert evaluate(FActScore(**WORDS), [example(SOURCE, ['Ann left.', 'Eve hid.'])], progress=False).value[0] == .5

ZS, HS = ('昨天张三去了学校，后来他回家了，晚上李四来吃饭。',
          'कल राम स्कूल गया। बाद में वह घर लौटा। शाम को सीता ने गाना गाया और रात को मोहन आया।')
TH = 'เมื่อวานนี้สมชายไปโรงเรียน แล้วเขาก็กลับบ้าน'

@pytest.mark.parametrize('source, target, supported',
                         [(ZS, '张三去了学校。', True), (ZS, '王五买了汽车。', False), (HS, 'राम स्कूल गया।', True),
                          (HS, 'राजा मर गया।', False), (TH, 'สมชายไปโรงเรียน', True), (TH, 'พระราชาสิ้นพระชนม์', False),
                          ('وجدت آنا التفاحة.', 'وَجَدَتْ آنا التفاحة.', True),
                          ('きのう太郎は学校へ行きました。', '太郎は学校へ行きました。', True), ('きのう太郎は学校へ行きました。', '花子が車を買った。', False)])
def test_rules_in_any_script(source, target, supported):
    for made in WITHOUT_MODEL:
        # DoveScore's cues are English; its words are any
        scores = evaluate(made(), [Example('x', source=source, target=target)], progress=False, language='en')
        assert verdicts(scores) == ['supported' if supported else 'unsupported']

@pytest.mark.parametrize('made', WITHOUT_MODEL, ids=['factscore', 'dovescore'])
def test_no_lie_escapes_behind_an_empty_sentence(made):
    said = lambda target: evaluate(made(), [example(SOURCE, target)], progress=False)
    plain, padded, empty = said(['Ann left.', 'Eve hid.']), said(['Ann left.', 'And so it was.', 'Eve hid.',
                                                                  '...']), said(['And so it was.', 'It was he!'])
    assert plain.value[0] == padded.value[0] == .5 and 'left_out' not in plain.evidence[0]
    assert 'And so it was.' in padded.evidence[0]['left_out']
    assert [f['text'] for f in padded.evidence[0]['facts']] == ['Ann left.', 'Eve hid.']
    assert empty.absence[0] == 'inapplicable' and empty.evidence[0]['facts'] == []
    assert len(empty.evidence[0]['left_out']) == 2

def test_without_a_model_it_says_what_is_missing():
    for name in ('factscore', 'factscore_single'):
        with pytest.raises(BadInput, match='none is given.*--model NAME.*word_support, rouge1, length'): get(name)
    for given in (dict(checker=word_checker()), dict(decomposer=SentenceDecomposer())): # one part is missing
        with pytest.raises(BadInput, match='none is given'): FActScore(**given)

def test_registry():
    assert EVALUATORS['factscore'] is FActScore
    assert get('factscore', **WORDS).signature.startswith('factscore|decomposer:sentences')
