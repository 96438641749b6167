"Judges of a user's own on the command line: prompts x models, programs, classes; one sentence for what can't be."
import json
import sys

import pandas as pd
import pytest
from command import factlib_inside
from factlib.core.records import BadInput
from factlib.llm.stub import StubServer
from factlib.runs.own_judges import load_evaluator_class, parse_options, parse_scale, question_examples

ROWS = [dict(id=f't{i}', target='word '*(i + 1), label=['bad', 'good'][i % 2]) for i in range(4)]
PROMPTS = dict(a='Rate from 1 to 5: {target}', b='How good is {target}? End with "Score: N".')
STRICT = '''
from factlib.evaluators.base import Evaluator
import beside
class Strict(Evaluator):
    name, signature = 'strict', 'strict|v:1'
    async def judge(self, example): return self.judgement(example, beside.SCORE)
class Asks(Evaluator):
    name = 'asks'
    def __init__(self, chat): self.chat, self.signature = chat, 'asks|' + chat.model
    async def judge(self, example):
        reply = await self.chat('asks ' + example.target)
        return self.judgement(example, float(len(reply.text)))
class Needs(Evaluator):
    def __init__(self, chat, threshold): pass
    async def judge(self, example): pass
class NoJudge: pass
'''
SCORE = '''import json, sys
for line in sys.stdin:
    q = json.loads(line)
    print(json.dumps({"id": q["id"], "score": len(q["text"].split())}))
'''

@pytest.fixture
def place(tmp_path):
    (tmp_path/'mine.jsonl').write_text(''.join(json.dumps(row) + '\n' for row in ROWS))
    for name, text in PROMPTS.items(): (tmp_path/f'{name}.txt').write_text(text)
    for name, text in dict(mine=STRICT, beside='SCORE = 2', score=SCORE).items(): (tmp_path/f'{name}.py').write_text(text)
    return tmp_path

def rule(request): return f'Score: {1 + len(request["messages"][0]["content"]) % 5}'

def test_prompts_by_models_are_compared_in_one_run(place):
    command = ['evaluate', 'mine.jsonl', '--prompt', 'a.txt', '--prompt', 'b.txt', '--model', 'M1', '--model', 'M2', '--scale', '1..5',
               '--with', 'length', '--columns', 'truth=', '--out', 'o/r']
    with StubServer(rule) as server:
        endpoint = ['--base-url', server.base_url]
        cost = factlib_inside(*command, *endpoint, '--cost', cwd=place)
        assert cost.returncode == 0 and not server.requests, cost.stderr
        assert all(name in cost.stdout for name in ('a, M1', 'b, M1', 'a, M2', 'b, M2'))
        for _ in range(2):
            done = factlib_inside(*command, *endpoint, cwd=place)
            assert done.returncode == 0, done.stderr
            assert len(server.requests) == 16 # the second run asks nothing
        assert {r['model'] for r in server.requests} == {'M1', 'M2'}
        kept = factlib_inside(*command, *endpoint, '--cost', cwd=place).stdout
        assert [line.split()[-1] for line in kept.splitlines() if 'to be asked' in line] == ['0']
    judged = pd.read_parquet(place/'o/r/judgements.parquet')
    assert list(dict.fromkeys(judged.evaluator)) == ['length', 'a, M1', 'b, M1', 'a, M2', 'b, M2']
    assert dict(judged.groupby('model').size()) == {'': 4, 'M1': 8, 'M2': 8}
    scores = pd.read_csv(place/'o/r/tables/scores.csv')
    texts = [PROMPTS['a'].format(target=row['target']) for row in ROWS]
    assert list(scores['a, M1']) == [1 + len(text) % 5 for text in texts] == list(scores['a, M2'])

def test_a_program_a_class_and_verdicts(place):
    with StubServer(lambda request: 'Verdict: pass' if 'word word' in request['messages'][0]['content'] else 'fail') as server:
        done = factlib_inside('evaluate', 'mine.jsonl', '--command', f'{sys.executable} score.py', '--judge', 'mine.py:Strict', '--judge',
                              'mine.py:Asks', '--model', 'M', '--base-url', server.base_url, '--columns', 'truth=', '--out', 'o/r', cwd=place)
        assert done.returncode == 0, done.stderr
        scores = pd.read_csv(place/'o/r/tables/scores.csv')
        assert list(scores.score) == [1, 2, 3, 4] and set(scores.strict) == {2} and list(scores['asks, M']) == [4, 13, 13, 13]
        done = factlib_inside('evaluate', 'mine.jsonl', '--prompt', 'a.txt', '--options', 'pass,fail', '--model', 'M', '--base-url',
                              server.base_url, '--columns', 'truth=', '--out', 'o/v', cwd=place)
    assert done.returncode == 0 and 'Verdicts as scores: pass 1, fail 0.' in done.stdout, done.stderr
    assert list(pd.read_csv(place/'o/v/tables/scores.csv')['a, M']) == [0, 1, 1, 1]

@pytest.mark.parametrize('more, told', [
    ([], 'No judge is named: give --with NAME, --prompt FILE'), (['--prompt', 'a.txt'], "'a' asks a model, and none is given"),
    (['--prompt', 'a.txt', '--prompt', 'a.txt', '--model', 'M'], "Two judges are called 'a'"),
    (['--prompt', 'a.txt', '--model', 'M', '--model', 'M'], '--model M is given twice'),
    (['--prompt', 'none.txt', '--model', 'M'], "no file 'none.txt'"), (['--prompt', 'length.txt', '--model', 'M'], 'name of an evaluator'),
    (['--prompt', 'typo.txt', '--model', 'M'], "Did you mean 'target'?"), (['--prompt', 'a.txt', '--scale', '5', '--model', 'M'], 'as 1..5'),
    (['--prompt', 'a.txt', '--scale', '1..5', '--options', 'a,b', '--model', 'M'], 'Give --scale or --options'),
    (['--with', 'length', '--scale', '1..5'], '--scale goes with --prompt or --command'),
    (['--prompt', 'a.txt', '--options', 'fail,pass', '--model', 'M'], 'write pass,fail'),
    (['--judge', 'mine.py:Stric'], "Did you mean 'Strict'?"), (['--judge', 'mine.py'], 'as mine.py:Strict'),
    (['--judge', 'none.py:Strict'], "no file 'none.py'"), (['--judge', 'mine.py:NoJudge'], 'is no evaluator'),
    (['--judge', 'mine.py:Needs', '--model', 'M'], 'give all its parameters but `chat` a default'),
    (['--judge', 'mine.py:Asks'], 'asks a model, and none is given'), (['--judge', 'broken.py:X'], 'fails (ZeroDivisionError'),
    (['--command', 'no_such_program_xyz'], 'There is no program'), (['--command', f'{sys.executable} none.py'], "no file 'none.py'")])
def test_what_can_not_be_is_one_sentence_before_anything_is_made(place, more, told):
    (place/'typo.txt').write_text('Rate {tarqet} and {target}')
    (place/'length.txt').write_text('Rate {target}')
    (place/'broken.py').write_text('1/0')
    done = factlib_inside('evaluate', 'mine.jsonl', *more, '--out', 'o/r', cwd=place)
    assert done.returncode == 2 and told in done.stderr and 'Traceback' not in done.stderr, done.stderr
    assert not (place/'o/r/result.json').exists()

@pytest.mark.parametrize('text, wanted', [('1..5', (1, 5)), ('-1..1', (-1, 1)), ('0..1..0.5', (0, 1, .5)), ('', None)])
def test_scales(text, wanted): assert parse_scale(text) == wanted

@pytest.mark.parametrize('text', ['5..1', '1-5', '1..', '1..1', 'a..b', '1..2..3..4', '1,5'])
def test_what_is_no_scale(text):
    with pytest.raises(BadInput, match='--scale takes'): parse_scale(text)

@pytest.mark.parametrize('text, wanted', [
    ('pass,fail', {'pass': 1, 'fail': 0}), ('A, B ,C', {'A': 1, 'B': .5, 'C': 0}), ('fail=0,pass=1', {'fail': 0, 'pass': 1}), ('', None)])
def test_verdicts(text, wanted): assert parse_options(text) == wanted

@pytest.mark.parametrize('text', ['pass', 'pass,pass', 'pass=1,fail', 'pass=x,fail=0', 'pass=1,fail=1', 'no,yes', 'pass=nan,fail=0'])
def test_what_is_no_verdicts(text):
    with pytest.raises(BadInput): parse_options(text)

def test_copies_of_a_question_are_further_samples():
    frame = pd.DataFrame(dict(id=[1, 2, 3, 4], text=['x', 'x', 'x', 'y'], source=['s', 's', None, 's']))
    examples = question_examples(frame)
    assert [e.meta.get('repeat', 0) for e in examples] == [0, 1, 0, 0] and [e.id for e in examples] == ['1', '2', '3', '4']
    with pytest.raises(BadInput, match="'text'"): question_examples(frame[['id']])

def test_a_class_of_a_folder_elsewhere_finds_what_lies_beside_it(place):
    before = list(sys.path)
    assert load_evaluator_class(f'{place}/mine.py:Strict').name == 'strict' and sys.path == before

def test_an_exam_is_run_and_asks_nothing_twice(place):
    "Five texts, a rule that counts commas, a program that dies in the middle of the first run."
    from factlib.benchmarks.samples import stories
    (place/'texts').mkdir()
    for i, story in enumerate(stories()[:5]): (place/f'texts/{i}.txt').write_text(' '.join(story.text.split(' ')[:500]))
    command = ['exam', 'run', 'texts', '--prompt', 'a.txt', '--rows', '48', '--out', 'report']
    with StubServer(rule) as server:
        asked = ['--model', 'M', '--base-url', server.base_url]
        cost = factlib_inside(*command, *asked, '--cost', cwd=place)
        assert cost.returncode == 0 and not server.requests and not (place/'report').exists(), cost.stderr
        done = factlib_inside(*command, *asked, cwd=place)
        assert done.returncode == 0 and 'a, M, notices: ' in done.stdout and 'a, M, lost: ' in done.stdout, done.stderr
        n = len(server.requests)
        assert n == len(pd.read_json(place/'report/exam/questions.jsonl', lines=True)) == len(pd.read_csv(place/'report/scores/a_M.csv'))
        again = factlib_inside(*command, *asked, '--command', f'{sys.executable} score.py', cwd=place)
        assert again.returncode == 0 and len(server.requests) == n and 'score, notices: ' in again.stdout, again.stderr
    assert (place/'report/index.html').is_file() and len(list((place/'report/scores').glob('*.csv'))) == 2

def test_a_judge_that_scores_nothing_is_told(place):
    from factlib.benchmarks.samples import stories
    (place/'texts').mkdir()
    for i, story in enumerate(stories()[:5]): (place/f'texts/{i}.txt').write_text(' '.join(story.text.split(' ')[:500]))
    with StubServer(lambda request: 'It is lovely.') as server:
        done = factlib_inside('exam', 'run', 'texts', '--prompt', 'a.txt', '--rows', '48', '--model', 'M', '--base-url', server.base_url,
                              '--out', 'report', cwd=place)
    assert done.returncode == 1 and 'a, M gave no score to any of 48 questions; most often malformed' in done.stderr
