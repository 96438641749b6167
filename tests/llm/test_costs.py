"Dry runs, price tables, token counts: all by hand calculation."
import math
import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factlib.core.records import Absence, BadInput, Example, Usage
from factlib.text.spans import COUNTERS
from factlib.evaluators.base import Evaluator, evaluate
from factlib.llm.cache import Cache, request_key
from factlib.llm.chat import Chat
from factlib.llm.costs import (Cost, DryRun, Planned, Price, cost, dry_run, estimate_tokens, price_table,
                               prompt_tokens, used_tokens)
from factlib.llm.stub import StubServer

PRICES = {'m': (1.0, 10.0, 'EUR'), 'n': (2, 20, 'EUR'), 'd': (3, 30, 'USD')} # made up

class Chatting:
    "As much of a Chat as a dry run needs."
    def __init__(self, model='m', cache=None, mode='live'): self.model, self.cache, self.mode = model, cache, mode
    def request(self, messages, **options): return dict(model=self.model, messages=messages, **options)
    def key(self, messages, **options): return request_key(self.request(messages, **options))
    def keep(self, messages, **options):
        request = self.request(messages, **options)
        self.cache.put(request_key(request), request, {'text': 'kept'})

class Yes(Evaluator):
    "Asks once, with a question of 8 characters before the target."
    name, requires, signature = 'yes', ('target',), 'yes|v:1'
    def __init__(self, chat=None, **fields): self.chat, self.fields = chat, fields
    def plan(self, example): return [Planned(f'Is it so {example.target}', **dict(max_tokens=50) | self.fields)]
    async def judge(self, example): return self.judgement(example, 1.0)

class Claims(Yes):
    "Asks for claims, then about each of them; how many there will be is a guess."
    name, requires = 'claims', ('target', 'source')
    def plan(self, example):
        verify = [{'role': 'system', 'content': 'abcd'}, {'role': 'user', 'content': 'efghijkl'}]
        return [Planned('abcd', 100), *[Planned(verify, 10, note='Three claims were assumed.')]*3]

# prompts of 13 characters: 4 tokens, and 7 around them
def examples(n): return [Example(f'e{i}', target=f'{i:04}', source='s' if i % 2 else None) for i in range(n)]

# ---- tokens

@pytest.mark.parametrize('text, n', [('', 0), ('a', 1), ('abcd', 1), ('abcde', 2), ('ä', 1),
                                     ('ääää', 2), ('漢字漢字', 3), ('😀', 1), ('\ud83d', 1), ('a'*4_000_000, 1_000_000)])
def test_estimated_tokens_are_a_quarter_of_the_bytes(text, n): assert estimate_tokens(text) == n

def test_prompt_tokens():
    assert prompt_tokens(Planned('abcd', 5)) == 1 + 4 + 3
    assert prompt_tokens(Planned('', 5)) == 4 + 3
    assert prompt_tokens(Planned([{'role': 'system', 'content': 'abcd'}, {'role': 'user', 'content': 'abcde'}],
                                 5)) == (1 + 4) + (2 + 4) + 3
    assert prompt_tokens(Planned('one two', 5), COUNTERS['words']) == 2 + 4 + 3
    # {"type": "object"} has 18 characters
    assert prompt_tokens(Planned('abcd', 5, options={'schema': {'type': 'object'}})) == 1 + 4 + 3 + 5
    assert prompt_tokens(Planned('abcd', 5, options={'schema': None})) == 1 + 4 + 3

@pytest.mark.parametrize('fields', [dict(max_tokens=0), dict(max_tokens=2.5),
                                    dict(max_tokens=None), dict(max_tokens=True), dict(max_tokens=5, repeats=-1),
                                    dict(max_tokens=5, repeats=1.5), dict(max_tokens=5, messages=[]),
                                    dict(max_tokens=5, messages=None),
                                    dict(max_tokens=5, messages=['text']),
                                    dict(max_tokens=5, messages=[{'role': 'user'}]),
                                    dict(max_tokens=5, messages=[{'content': None}])])
def test_wrong_plans_are_refused(fields):
    with pytest.raises(BadInput, match=r'\.$'): Planned(**dict(messages='a') | fields)

def test_a_whole_float_is_a_count(): assert Planned('a', 5.0, repeats=1.0) == Planned('a', 5)

# ---- prices

def test_price_tables(tmp_path):
    (tmp_path/'p.csv').write_text('\ufeffmodel, input, output, currency, note\nm, 1.0, 10, EUR, ours\n"a, b",0,0,\n',
                                  encoding='utf-8')
    table = price_table(tmp_path/'p.csv')
    assert table == {'m': Price(1, 10, 'EUR'), 'a, b': Price(0, 0, '')} == price_table(str(tmp_path/'p.csv'))
    assert price_table({'m': (1, 10), 'n': {'output': 1, 'input': 2, 'currency': 'EUR'},
                        'o': Price(1, 2)}) == {'m': (1, 10, ''), 'n': (2, 1, 'EUR'), 'o': (1, 2, '')}
    assert price_table(table) == table and price_table({}) == {}

@pytest.mark.parametrize('text', ['model;input;output;currency\nm;0,15;2;EUR\n',
                                  '\ufeffModel, INPUT,Output,CURRENCY\n m ,.15,2,EUR\n',
                                  'currency\tmodel\toutput\tinput\nEUR\tm\t2.0\t0.15\n\n',
                                  '\ufeffmodel;note; Input ;Output;Currency\r\nm;ours, in May;0.150;2;EUR\r\n;;;;\r\n',
                                  'model,input,output,currency\nm,"0,15","2",EUR\n'])
def test_a_price_file_as_spreadsheets_write_it(tmp_path, text):
    (tmp_path/'p.csv').write_text(text, encoding='utf-8', newline='')
    assert price_table(tmp_path/'p.csv') == {'m': (.15, 2, 'EUR')}

@pytest.mark.parametrize('usage, used', [
    (dict(prompt_tokens=10, completion_tokens=9, total_tokens=19), (10, 9)),
    (dict(prompt_tokens=10, completion_tokens=9, total_tokens=1010), (10, 1000)), # thoughts in the total alone
    (dict(prompt_tokens=10, total_tokens=1010), (10, 1000)), (dict(prompt_tokens=10, completion_tokens=9), (10, 9)),
    (dict(prompt_tokens=10, completion_tokens=None, total_tokens=1010), (10, 1000)),
    (dict(prompt_tokens=10., completion_tokens='9', total_tokens=19.), (10, 9)),
    (dict(prompt_tokens=10, completion_tokens=9, completion_tokens_details=dict(reasoning_tokens=500)), (10, 509)),
    (dict(prompt_tokens=10, completion_tokens=600, completion_tokens_details=dict(reasoning_tokens=500)), (10, 600)),
    (dict(input_tokens=10, output_tokens=9), (10, 9)),
    (dict(input_tokens=10, output_tokens=9, cache_read_input_tokens=90, cache_creation_input_tokens=None), (100, 9)),
    (dict(prompt_tokens=10, completion_tokens=0, total_tokens=10), (10, 0)), # both say that there is no reply
    (dict(prompt_tokens=10, completion_tokens=0), (10, None)), (dict(prompt_tokens=10), (10, None)),
    (dict(prompt_tokens=10, completion_tokens=-5, total_tokens=5), (10, None)),
    (dict(prompt_tokens=10, completion_tokens=True), (10, None)),
    (dict(prompt_tokens=True, completion_tokens=9), (None, None)),
    (dict(prompt_tokens=10, completion_tokens=math.nan, total_tokens=math.inf), (10, None)),
    (dict(prompt_tokens=10, completion_tokens=2**63, total_tokens=19), (10, 9)),
    (dict(prompt_tokens=10, completion_tokens=.5), (10, None)),
    (dict(prompt_tokens=10, completion_tokens='many'), (10, None)),
    (dict(completion_tokens=9, total_tokens=19), (None, None)),
    (dict(prompt_tokens=0, completion_tokens=9), (None, None)),
    *[(nothing, (None, None)) for nothing in (None, [], [dict(prompt_tokens=10)], '19', {})]])
def test_what_a_reply_took(usage, used): assert used_tokens(usage) == used

@pytest.mark.parametrize('entry', [5, None, (), (1,), (1, 2, 'EUR', 4), (-1, 2), (1, math.nan), (1, math.inf),
                                   ('x', 1), (None, 1), {'input': 1}, {'input': 1, 'output': 2, 'api_key': 'k'}, 'ab'])
def test_wrong_prices_are_refused(entry):
    with pytest.raises(BadInput, match="price of 'm'.*\\.$"): price_table({'m': entry})

@pytest.mark.parametrize('text', ['', 'm,1,2,EUR\n', 'model,input\nm,1\n',
                                  'model,input,output\nm,1\n', 'model,input,output\nm,1,x\n',
                                  'model,input,output\nm,1,2\nm,1,3\n',
                                  'model,input,output\n,1,2\n', 'model,input,output\nm,$0.15,2\n',
                                  'model,input,output\nm,-1,2\n', 'model,input,output\nm,,2\n',
                                  'model,input,output,currency\nm,0,15,0,60,EUR\n', # decimal commas without quotes
                                  'model,input,output,currency\nm,0,15,2\n', 'model,input,output,Input\nm,1,2,3\n',
                                  'model;input;output\nm;1,000;2\n', 'model,input,output\nm,nan,2\n'])
def test_wrong_price_files_are_refused(tmp_path, text):
    (tmp_path/'p.csv').write_text(text, encoding='utf-8')
    with pytest.raises(BadInput, match=r'\.$'): price_table(tmp_path/'p.csv')
    with pytest.raises(BadInput, match='no price table'): price_table(tmp_path/'none.csv')
    with pytest.raises(BadInput): price_table([('m', 1, 2)])

def test_costs():
    used = Usage(requests=2, prompt_tokens=3_000_000, completion_tokens=200_000)
    assert cost(used, PRICES, 'm') == (3*1 + .2*10, 'EUR') and cost(used + used, PRICES, 'd').amount == 2*(9 + 6)
    frame = pd.DataFrame({'prompt_tokens': [1_000_000, 2_000_000], 'completion_tokens': [200_000, 0]})
    assert cost(frame, PRICES, 'm') == cost(used, PRICES, 'm')
    assert cost(frame.iloc[:0], PRICES, 'm') == (0, 'EUR')
    # a frame of evaluate has the columns
    assert cost(evaluate(Yes(), examples(3), progress=False), PRICES, 'm') == (0, 'EUR')
    with pytest.raises(BadInput, match="no model 'x'; they have 'm', 'n', 'd'"): cost(used, PRICES, 'x')
    for wrong in (None, 5, {'prompt_tokens': 5}, frame[['prompt_tokens']],
                  pd.DataFrame({'prompt_tokens': [1, None], 'completion_tokens': [1, 1]})):
        with pytest.raises(BadInput, match=r'\.$'): cost(wrong, PRICES, 'm')

@pytest.mark.parametrize('amount, text', [(0, '0.00 EUR'), (1234.5, '1,234.50 EUR'),
                                          (0.1, '0.10 EUR'), (0.012345, '0.012 EUR')])
def test_how_money_looks(amount, text):
    assert str(Cost(amount, 'EUR')) == text and str(Cost(amount, '')) == text.removesuffix(' EUR')

# ---- dry runs

class Asking(Yes):
    "Yes, with a real chat and a schema."
    schema = {'type': 'object', 'properties': {'so': {'type': 'boolean'}},
              'required': ['so'], 'additionalProperties': False}
    def plan(self, example):
        return [Planned(f'Is it so {example.target}', 50, repeats=2, options=dict(schema=self.schema, temperature=0.5))]
    async def judge(self, example):
        planned, = self.plan(example)
        replies = [await self.chat(planned.messages, max_tokens=planned.max_tokens, repeat=i, **planned.options)
                   for i in range(planned.repeats)]
        return self.judgement(example, sum(r.data['so'] for r in replies))

def test_a_dry_run_says_what_a_real_chat_will_send(tmp_path):
    with StubServer(lambda request: '{"so": true}') as server:
        judge = Asking(Chat('m', base_url=server.base_url, endpoint='ours', cache=tmp_path))
        first = dry_run(judge, examples(3)).total
        assert (first.model, first.requests, first.cached, first.asked) == ('m', 6, 0, 6) and not server.requests
        evaluate(judge, examples(3), progress=False)
        assert len(server.requests) == 6
        more = dry_run(judge, examples(5), prices=PRICES).total
        assert (more.requests, more.cached, more.asked, more.completion_tokens) == (10, 6, 4, 200)
        evaluate(judge, examples(5), progress=False)
        assert len(server.requests) == 10
        last = dry_run(judge, examples(5), prices=PRICES).total
        assert (last.asked, last.prompt_tokens, last.most) == (0, 0, Cost(0, 'EUR'))
        judge.chat.cache.close()

def test_one_evaluator_without_cache():
    run = dry_run(Yes(), examples(10), Chatting(), reply_tokens=20, prices=PRICES)
    e, = run.estimates
    assert (e.evaluator, e.model, e.judgements, e.inapplicable, e.requests,
            e.cached, e.asked) == ('yes', 'm', 10, 0, 10, 0, 10)
    assert (e.prompt_tokens, e.completion_tokens, e.expected_tokens) == (10*(4 + 4 + 3), 500, 200)
    assert e.most == Cost((110*1 + 500*10)/1e6, 'EUR') and e.expected == Cost((110*1 + 200*10)/1e6, 'EUR')
    assert run.total.requests == 10 and run.total.most == e.most
    assert any('takes nothing from a cache' in said for said in run.assumptions)

def test_cached_requests_cost_nothing(tmp_path):
    chat = Chatting(cache=Cache(tmp_path))
    for i in (1, 3, 4): chat.keep(f'Is it so {i:04}', max_tokens=50, repeat=0)
    chat.keep('Is it so 0005', max_tokens=51, repeat=0) # another request
    e, = dry_run(Yes(chat), examples(10)).estimates     # the evaluator's own chat
    assert (e.requests, e.cached, e.asked, e.prompt_tokens, e.completion_tokens) == (10, 3, 7, 77, 350)
    assert e.expected_tokens is e.most is e.expected is None
    assert len(chat.cache) == 4 # a dry run keeps nothing
    for mode in ('record', 'off'):
        chat.mode = mode
        assert dry_run(Yes(chat), examples(10)).estimates[0].cached == 0
    chat.mode = 'replay'
    run = dry_run(Yes(chat), examples(10))
    assert run.estimates[0].cached == 3 and any('would stop: 7 requests' in said for said in run.assumptions)
    chat.cache.close()

def test_repeats_are_requests_of_their_own(tmp_path):
    chat = Chatting(cache=Cache(tmp_path))
    for i in (0, 2): chat.keep('Is it so 0000', max_tokens=50, temperature=1, repeat=i)
    e, = dry_run(Yes(repeats=3, options={'temperature': 1}), examples(2), chat).estimates
    assert (e.requests, e.cached, e.prompt_tokens, e.completion_tokens) == (6, 2, 4*11, 4*50)
    assert dry_run(Yes(repeats=0), examples(2), chat).total.requests == 0
    chat.cache.close()

def test_notes_inapplicable_and_repeated_requests_are_said():
    run = dry_run(Claims(), examples(5), Chatting(), reply_tokens=60)
    e, = run.estimates # two of five have a source
    assert (e.judgements, e.inapplicable, e.requests) == (2, 3, 8)
    assert e.prompt_tokens == 2*(1 + 7) + 6*(1 + 4 + 2 + 4 + 3) and e.completion_tokens == 2*100 + 6*10
    assert e.expected_tokens == 2*60 + 6*10 # no reply is longer than it may get
    for said in ('Three claims were assumed. (6 planned requests)', '3 of 5 examples lack',
                 '6 requests are the same as another', 'expected to have 60 tokens', 'a quarter of their bytes'):
        assert any(said in a for a in run.assumptions), said
    blank = [Example('a', target=' \n'), Example('b', target='x', source='')]
    assert dry_run(Claims(), blank, Chatting()).total.requests == 0

def test_several_evaluators(tmp_path):
    run = dry_run([Yes(Chatting('m')), Yes(Chatting('n')), Claims(Chatting('m'))],
                  examples(4), reply_tokens=5, prices=PRICES)
    assert [e.model for e in run.estimates] == ['m', 'n', 'm'] and run.total.model is None
    assert run.total.requests == 4 + 4 + 8 == sum(e.requests for e in run.estimates)
    assert run.total.most.amount == pytest.approx(sum(e.most.amount for e in run.estimates))
    assert run.total.most.currency == 'EUR'
    assert list(run.table().columns) == ['yes 1', 'yes 1, each', 'yes 2',
                                         'yes 2, each', 'claims', 'claims, each', 'all']
    assert any(a.startswith('claims: 2 of 4') for a in run.assumptions)
    mixed = dry_run([Yes(Chatting('m')), Yes(Chatting('d'))], examples(4), prices=PRICES)
    assert mixed.estimates[1].most.currency == 'USD' and mixed.total.most is None # euros and dollars have no sum
    one = dry_run([Yes(Chatting('m')), Yes(Chatting('n'))], examples(4), Chatting('n'))
    assert {e.model for e in one.estimates} == {'n'} # a chat that is given is for all

def test_unknown_price_and_no_chat_are_said():
    run = dry_run(Yes(Chatting('x')), examples(2), prices=PRICES)
    assert run.total.most is None and any("no price for the model 'x'" in a for a in run.assumptions)
    assert 'price, at most' not in run.table().index
    run = dry_run(Yes(), examples(2))
    assert run.total.model is None and any('No chat was given' in a for a in run.assumptions)

def test_counters():
    assert dry_run(Yes(), examples(2), counter='whitespace').total.prompt_tokens == 2*(4 + 7)
    assert dry_run(Yes(), examples(2), counter=lambda text: 100).total.prompt_tokens == 214
    assert 'by the counter that was given' in dry_run(Yes(), examples(2), counter=len).assumptions[0]
    with pytest.raises(BadInput): dry_run(Yes(), examples(2), counter='no-such-counter')

def test_the_table():
    run = dry_run(Yes(Chatting()), examples(1000), reply_tokens=20, prices=PRICES)
    assert isinstance(run, DryRun) and str(run) == repr(run)
    table = run.table()
    assert table.loc['requests'].tolist() == ['1,000', '1.0']
    assert table.loc['reply tokens, at most'].tolist() == ['50,000', '50.0']
    assert table.loc['price, at most'].tolist() == ['0.51 EUR', '0.00051 EUR']
    assert all(f'- {a}' in str(run) for a in run.assumptions)
    html = dry_run(Yes(Chatting('<b>')), examples(1), prices=PRICES)._repr_html_()
    assert '<table' in html and '&lt;b&gt;' in html and '<b>' not in html
    assert not re.search('nan|None', str(run) + str(dry_run(Claims(), [Example('a', target='x')])))

class Planless(Yes): plan = None

class Wrong(Yes):
    def plan(self, example): return ['a prompt']

@pytest.mark.parametrize('make, said', [
    (lambda: dry_run(Planless(), examples(1)), 'has no method plan'),
    (lambda: dry_run(Wrong(), examples(1)), 'gave a str'), (lambda: dry_run([], examples(1)), 'at least one'),
    (lambda: dry_run(Yes(), []), 'at least one'),
    (lambda: dry_run(Yes(), examples(1), reply_tokens=-1), 'number of tokens'),
    (lambda: dry_run(Yes(), examples(1), reply_tokens=math.nan), 'number of tokens'),
    (lambda: dry_run(Yes(), examples(1), reply_tokens='x'), 'number of tokens'),
    (lambda: dry_run(Yes(), examples(1), prices={'m': 1}), 'price of'), (lambda: dry_run(Yes(), ['text']), 'Example')])
def test_what_a_dry_run_refuses(make, said):
    with pytest.raises(BadInput, match=said) as e: make()
    assert str(e.value).endswith('.')

@settings(max_examples=60, deadline=None)
@given(plans=st.lists(st.tuples(st.text(max_size=30), st.integers(1, 500), st.integers(0, 3)), min_size=1, max_size=6),
       reply=st.floats(0, 600), n=st.integers(1, 4))
def test_sums_by_brute_force(plans, reply, n):
    class Some(Yes):
        def plan(self, example): return [Planned(text, most, repeats=repeats) for text, most, repeats in plans]
    e, = dry_run(Some(), examples(n), Chatting(), reply_tokens=reply, prices=PRICES).estimates
    sent = [(text, most) for text, most, repeats in plans for _ in range(repeats)]*n
    assert e.requests == e.asked == len(sent)
    assert e.prompt_tokens == sum(math.ceil(len(text.encode())/4) + 7 for text, _ in sent)
    assert e.completion_tokens == sum(most for _, most in sent)
    assert e.expected_tokens == pytest.approx(sum(min(reply, most) for _, most in sent))
    assert e.expected_tokens <= e.completion_tokens
    assert e.most.amount == pytest.approx((e.prompt_tokens + 10*e.completion_tokens)/1e6)
    assert e.expected.amount <= e.most.amount + 1e-12
