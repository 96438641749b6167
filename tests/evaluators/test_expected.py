"Expected scores, by log probabilities calculated by hand."
import json
import math
from dataclasses import replace

import pytest
from factlib.core.records import Absence, BadInput, Example
from factlib.evaluators.base import evaluate, get
from factlib.evaluators.expected import expected_judgements, expected_score
from factlib.llm.chat import Chat, Reply
from factlib.llm.replies import likert
from factlib.llm.stub import StubServer
from factlib.runs.judging import add_expected

POINTS = [1, 2, 3, 4, 5]
EXAMPLE = Example('x', source='The cat slept.', target='It slept.')

def entry(token, p=1., others=(), **more):
    "A token as OpenAI writes it; `others`: pairs of token and probability, likeliest first."
    number = None if p is None else math.log(p) if p else -9999.
    top = [dict(token=t, logprob=math.log(q) if q else -9999., bytes=list(t.encode())) for t, q in others]
    return dict(token=token, logprob=number, bytes=list(token.encode()), top_logprobs=top) | more

FOUR = entry('4', .5, [('4', .5), ('5', .25), ('3', .125), ('The', .0625)]) # (2 + 1.25 + .375)/.875
EXPECTED, COVERED = 3.625/.875, .875

def tokens(*given): return dict(content=[entry(x) if isinstance(x, str) else x for x in given])

def rule(logprobs, text): return lambda request: dict(content=text, logprobs=logprobs)

def judged(logprobs, text, name='consistency', **options):
    "The frame's one row, and what was sent."
    with StubServer(rule(logprobs, text)) as server:
        judge = get(name, chat=Chat('m', server.base_url), weighted=True, **options)
        frame = evaluate(judge, [EXAMPLE], progress=False)
    return frame.iloc[0], server.requests[0]

JSON = ('{"reason": "4 of 4 facts", "consistency": ', FOUR, '}')

@pytest.mark.parametrize('parts', [
    JSON, ('{"reason":"none","consistency":', '"', FOUR, '"}'), ('Consistency: ', FOUR, '/5'), (FOUR,),
    ('[RESULT] ', FOUR), ('4 problems.\n\nConsistency: ', FOUR),
    ('Ключ: 4 \u00e9\U0001f98a.\n', 'Consistency', ':',
    entry(' 4', .5, [(' 4', .5), ('5', .25), (' 3', .125), ('.', .1)]), '\n')])
def test_place_of_the_score(parts):
    "JSON, a fraction, a bare number; the digit also stands earlier; other scripts around it."
    logprobs = tokens(*parts)
    row, sent = judged(logprobs, ''.join(e['token'] for e in logprobs['content']))
    assert (sent['logprobs'], sent['top_logprobs']) == (True, 20)
    assert row.value == row.consistency == 4 and row['consistency (expected)'] == pytest.approx(EXPECTED, abs=1e-12)
    told = row.evidence['expected']['consistency']
    assert told['covered'] == pytest.approx(COVERED)
    assert told['probabilities'] == pytest.approx({'3': .125, '4': .5, '5': .25})

def test_variants_of_a_token_add_up():
    "4 as '4' and ' 4': (4*(.4 + .2) + 2*.2)/.8 = 3.5; a token that is there twice counts once."
    place = entry('4', .4, [('4', .4), (' 4', .2), ('2', .2), ('4', .4)])
    row, _ = judged(tokens('Consistency: ', place), 'Consistency: 4')
    assert row['consistency (expected)'] == pytest.approx(3.5)

def test_score_that_is_not_among_the_likeliest_counts():
    "Sampled with .1, beside 5 at .6 and 3 at .3: (.4 + 3 + .9)/1."
    row, _ = judged(tokens('Consistency: ', entry('4', .1, [('5', .6), ('3', .3)])), 'Consistency: 4')
    assert row['consistency (expected)'] == pytest.approx(4.3)

def without(parts, **change): return [x | change if x is FOUR else x for x in parts]

BARE = ('Consistency: ', FOUR)

@pytest.mark.parametrize('logprobs, why', [
    (None, 'no log probabilities'), (dict(content=None), 'no log probabilities'),
    (dict(content=[]), 'no log probabilities'),
    (dict(content=['4']), 'form that OpenAI'), (dict(content=[dict(token=4)]), 'form that OpenAI'),
    (tokens(*without(BARE, bytes=[999])), 'form that OpenAI'),
    (tokens(*without(BARE, top_logprobs=None)), 'what else'), (tokens(*without(BARE, top_logprobs=[])), 'what else'),
    (tokens(*without(BARE, top_logprobs=FOUR['top_logprobs'][:1])), 'what else'),
    (tokens(*without(BARE, logprob=None)), 'has no log probability'),
    (tokens(*without(BARE, top_logprobs=[dict(token='4', logprob='x', bytes=None)]*2)), 'is no log probability'),
    (tokens(*without(BARE, top_logprobs=[dict(token='4', logprob=.7, bytes=None)]*2)), 'is no log probability'),
    (tokens(*without(BARE, top_logprobs=[dict(token=t, logprob=-.1, bytes=None) for t in '45'])), 'more than 1'),
    (tokens('Consistency:', entry(': 4x', .9, [('4', .1), ('5', .1)])), 'not those of the reply'),
    (tokens('Consistency:', '4', ' really'), 'not those of the reply'),
    (tokens('Consistency', entry('= 4', .5, [('4', .5), ('5', .2)])), 'not those of the reply'),
    (tokens('Consistency: ', entry('4', 0, [('4', 0), ('5', 0)])), 'no probability')])
def test_hostile_log_probabilities(logprobs, why):
    "The score stays; the expected one is absent, with the reason."
    row, _ = judged(logprobs, 'Consistency: 4')
    assert row.value == 4 and row.evidence['expected']['consistency']['why'].find(why) >= 0, row.evidence
    assert row['consistency (expected)'] is None and row['consistency (expected)_absence'] == 'inapplicable'

def test_infinite_and_null_ones_of_other_tokens_are_nothing():
    "-Infinity is no JSON, but servers write it: (2 + 1.25)/.75."
    others = [*FOUR['top_logprobs'][:2], dict(token='3', logprob=-math.inf, bytes=None),
        dict(token='2', logprob=None, bytes=None)]
    row, _ = judged(tokens(*without(BARE, top_logprobs=others)), 'Consistency: 4')
    assert row['consistency (expected)'] == pytest.approx(3.25/.75)
    assert row.evidence['expected']['consistency']['covered'] == pytest.approx(.75)

def scored(text, *parts, score=4, points=POINTS):
    "By the reader of Likert scores alone."
    read = lambda text: likert(text, ['quality'], points[0], points[-1], 1)['quality']
    return expected_score(Reply(text, logprobs=tokens(*parts)), score, points, read)

def test_numbers_of_several_tokens():
    ten = list(range(1, 11))
    value, told = scored('Quality: 10', 'Quality: ', entry('1', .9, [('1', .9), ('9', .1)]), '0', score=10, points=ten)
    assert value is Absence.inapplicable and '2 tokens' in told['why']
    one = entry('10', .5, [('10', .5), ('9', .25), ('1', .25)]) # here 10 is a token, so 1 is 1: 5 + 2.25 + .25
    assert scored('Quality: 10', 'Quality: ', one, score=10, points=ten)[0] == pytest.approx(7.5)
    first = entry('1', .6, [('1', .6), ('2', .4)]) # 1, or the beginning of 10?
    value, told = scored('Quality: 1', 'Quality: ', first, score=1, points=ten)
    assert value is Absence.inapplicable and 'beginning of 10' in told['why']

def test_what_cannot_be_placed():
    place = entry('٤', .5, [('٤', .5), ('3', .25)])
    assert scored('Quality: ٤', 'Quality: ', place)[0] is Absence.inapplicable # a digit of another script
    assert scored('Quality: four', 'Quality: ',
        entry('four', .5, [('four', .5), ('3', .25)]))[0] is Absence.inapplicable
    assert scored('Quality: 4', 'Quality', entry(': 4.', .5, [(': 4', .5), ('3', .25)]))[0] is Absence.inapplicable
    assert scored('No number.', 'No number.')[0] is Absence.inapplicable

def test_reasoning_before_the_reply_and_marks_behind_it():
    value, _ = scored('Quality: 4', '<think>', 'Quality: 2, or 4', '</think>\n', 'Quality: ', FOUR, '<|im_end|>')
    assert value == pytest.approx(EXPECTED)

def test_thousands_of_numbers_take_no_time():
    text = '4 '*20000 + 'Quality: 4'
    assert scored(text, '4 '*20000, 'Quality: ', FOUR)[0] == pytest.approx(EXPECTED)
    assert scored('Quality: 4\n' + 'and 4 more '*3000, 'x')[0] is Absence.inapplicable

def test_several_metrics_each_at_its_own_place():
    two = entry('2', .5, [('2', .5), ('1', .5)])
    parts = tokens('{"reason": "", "fluency": ', FOUR, ', "coherence": ', two, '}')
    row, _ = judged(parts, ''.join(e['token'] for e in parts['content']), 'fluency_coherence', step=1)
    assert row.value == 3
    assert (row['fluency (expected)'], row['coherence (expected)']) == (pytest.approx(EXPECTED), pytest.approx(1.5))

def test_same_score_twice_in_a_reply():
    "Both metrics are 4; each has its own probabilities."
    sure = entry('4', 1., [('4', 1.), ('5', 0)])
    parts = tokens('FINAL Fluency Score: ', FOUR, '\nFINAL Coherence Score: ', sure)
    row, _ = judged(parts, ''.join(e['token'] for e in parts['content']), 'fluency_coherence', step=1)
    assert (row['fluency (expected)'], row['coherence (expected)']) == (pytest.approx(EXPECTED), 4)

def test_absent_score_has_no_expected_one():
    row, _ = judged(tokens('I am', ' unsure.'), 'I am unsure.')
    assert row.absence == 'malformed' and row.evidence['expected'] == {}

def test_signature_and_request_of_who_does_not_ask_for_it():
    chat = Chat('m', 'http://127.0.0.1:9/v1')
    for name, options in (('consistency', {}), ('rubric', {}), ('fluency_coherence', dict(step=1))):
        plain, weighted = (get(name, chat=chat, **options, **more) for more in ({}, dict(weighted=True)))
        assert get(name, chat=chat, weighted=False, **options).signature == plain.signature != weighted.signature
        assert 'logprobs' not in plain.signature and plain.options.keys() == {'temperature', 'max_tokens', 'schema'}
        assert weighted.plan(replace(EXAMPLE, question='?', reference='!'))[0].options['top_logprobs'] == 20

@pytest.mark.parametrize('options', [dict(step=.5), dict(step=None), dict(high=100), dict(low=-2, high=2),
    dict(weighted='yes')])
def test_scales_without_expected_scores(options):
    with pytest.raises(BadInput, match='whole numbers|True or False') as said:
        get('consistency', chat=Chat('m', 'http://127.0.0.1:9/v1'), **dict(weighted=True) | options)
    assert len(str(said.value)) < 200

@pytest.mark.parametrize('command', [['run', 'live_judge', '-p', 'judge', 'consistency', '-p', 'weighted', 'true',
    '-p', 'n', '0', '-p', 'dataset'], ['evaluate', '--with', 'consistency', '--weighted']])
def test_commands(tmp_path, command):
    from command import factlib_inside
    rows = [dict(id=str(i), source='The cat slept.', target=f'The cat {"slept" if i % 2 else "flew"}.',
        truth='good' if i % 2 else 'bad', group=str(i//2)) for i in range(4)]
    (tmp_path/'mine.jsonl').write_text('\n'.join(map(json.dumps, rows)))
    asked = lambda url: ['-p', 'model', 'm', '-p', 'base_url', url] if command[0] == 'run' else ['--model', 'm',
        '--base-url', url]
    with StubServer(rule(tokens(*JSON), '{"reason": "4 of 4 facts", "consistency": 4}')) as server:
        done = factlib_inside(*command, 'mine.jsonl', *asked(server.base_url), '--out', 'o/x', '--no-page',
            cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert all(body['logprobs'] is True and body['top_logprobs'] == 20 for body in server.requests)
    import pandas as pd
    table = 'judgements.csv' if command[0] == 'run' else 'counts.csv'
    if command[0] == 'run': # every text gets the same
        truth = pd.read_csv(tmp_path/'o/x/tables/tests.csv').set_index('evaluator')
        assert dict(truth.estimate) == {'m': .5, 'm (expected)': .5}
    counts = pd.read_csv(tmp_path/'o/x/tables'/table).set_index('part')
    assert counts.loc['consistency (expected)', 'mean'] == pytest.approx(EXPECTED)
    assert counts.loc['consistency', 'mean'] == 4

def half(request):
    "4 with hesitation; of the second text no log probabilities."
    told = tokens(*JSON) if 'slept 2 times' not in request['messages'][-1]['content'] else None
    return dict(content='{"reason": "4 of 4 facts", "consistency": 4}', logprobs=told)

class Findings:
    "What an experiment would say."
    def __init__(self): self.said = []
    def finding(self, text, cell): self.said.append(text)

def test_expected_scores_stand_beside_the_scores():
    examples = [replace(EXAMPLE, id=str(i), target=f'It slept {i} times.') for i in range(4)]
    with StubServer(half) as server:
        judge = get('consistency', chat=Chat('m', server.base_url), weighted=True)
        frame, run = evaluate(judge, examples, progress=False), Findings()
    whole = add_expected(frame, run).set_index(['evaluator', 'example_id'])
    assert len(whole) == 8 and list(whole.value['consistency']) == [4]*4
    own = whole.loc['consistency (expected)']
    assert list(own.value[['0', '1', '3']]) == pytest.approx([EXPECTED]*3) and own.value.isna()['2']
    assert own.absence['2'] == 'inapplicable' and not own.requests.any() and own.absence.notna().sum() == 1
    assert run.said == ['Why there is no expected score: inapplicable, 1 of 4 texts: consistency (expected): '
        'The endpoint gave no log probabilities.']

def test_no_expected_score_at_all_is_one_sentence_and_no_row():
    with StubServer(rule(None, '{"reason": "", "consistency": 4}')) as server:
        judge = get('consistency', chat=Chat('m', server.base_url), weighted=True)
        frame, run = evaluate(judge, [EXAMPLE], progress=False), Findings()
    assert list(add_expected(frame, run).evaluator) == ['consistency'] and len(run.said) == 1

def test_expected_score_of_two_metrics_is_their_mean():
    two = entry('2', .5, [('2', .5), ('1', .5)])
    parts = tokens('{"reason": "", "fluency": ', FOUR, ', "coherence": ', two, '}')
    with StubServer(rule(parts, ''.join(e['token'] for e in parts['content']))) as server:
        judge = get('fluency_coherence', chat=Chat('m', server.base_url), weighted=True, step=1)
        row, = expected_judgements(evaluate(judge, [EXAMPLE], progress=False)).itertuples()
    assert row.value == pytest.approx((EXPECTED + 1.5)/2) and row.absence is None

def test_judgement_without_a_score_has_no_sentence_of_its_own():
    "Why it has none is said of the score already."
    with StubServer(rule(tokens('I am', ' unsure.'), 'I am unsure.')) as server:
        judge = get('consistency', chat=Chat('m', server.base_url), weighted=True)
        frame, run = evaluate(judge, [EXAMPLE], progress=False), Findings()
    assert expected_judgements(frame).absence.tolist() == ['malformed']
    assert add_expected(frame, run) is frame and run.said == []

@pytest.mark.slow
@pytest.mark.parametrize('name, judge, dataset, table', [('montagelie', 'consistency', 'holmes_order', 'aucs'),
    ('trutheval', 'rubric', 'answers', 'correlations')])
def test_experiments_compare_expected_scores(tmp_path, name, judge, dataset, table):
    "All texts get the same, so no AUC can differ from one half."
    import pandas as pd
    from command import factlib_inside
    metric = dict(consistency='consistency', rubric='correctness')[judge]
    parts = tokens('{"reason": "", "', metric, '": ', FOUR, '}')
    with StubServer(rule(parts, ''.join(e['token'] for e in parts['content']))) as server:
        done = factlib_inside('run', name, '-p', 'model', 'm', '-p', 'base_url', server.base_url, '-p', 'judges', judge,
            '-p', 'dataset', dataset, '-p', 'n', '2', '-p', 'weighted', 'true', '--out', tmp_path/'x', cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = pd.read_csv(tmp_path/'x/tables'/f'{table}.csv').set_index('evaluator')
    assert (rows.auc[[f'{judge}, m', f'{judge}, m (expected)']] == .5).all()
    assert 'no expected score' not in done.stdout
