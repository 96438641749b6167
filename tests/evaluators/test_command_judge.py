"A judge that is a program: it dies, it is killed, it writes nonsense; nothing is asked twice and nothing is made up."
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from factlib.core.records import BadInput, Example
from factlib.evaluators.base import evaluate
from factlib.evaluators.command_judge import CommandJudge, question_row

EXAMPLES = [Example(id=f'q{i}', target='word '*(i + 1)) for i in range(8)]
HEAD = '''
import json, os, sys, time
log = open('asked.txt', 'a')
def questions():
    for line in sys.stdin:
        question = json.loads(line)
        print(question['id'], file=log, flush=True)
        yield question
def answer(i, score, **more): print(json.dumps(dict(id=i, score=score, **more)))
'''

def program(tmp_path, body, keep=True, **options):
    "A judge that is a script with this body, which runs in `tmp_path`."
    (tmp_path/'score.py').write_text(f'import os\nos.chdir({str(tmp_path)!r})\n{HEAD}{body}')
    return CommandJudge([sys.executable, str(tmp_path/'score.py')], keep=tmp_path if keep else None, **options)

def asked(tmp_path): return (tmp_path/'asked.txt').read_text().split()

COUNT = "for q in questions(): answer(q['id'], len(q['text'].split()))\n"

def test_answers_are_kept_and_a_changed_script_is_asked_anew(tmp_path):
    for _ in range(2):
        frame = evaluate(program(tmp_path, COUNT), EXAMPLES, progress=False)
        assert list(frame.value) == [1, 2, 3, 4, 5, 6, 7, 8] and len(asked(tmp_path)) == 8
    more = [*EXAMPLES, Example(id='new', target='one two')]
    assert program(tmp_path, COUNT).unanswered(more) == 1
    evaluate(program(tmp_path, COUNT), more, progress=False)
    assert asked(tmp_path)[8:] == ['new']
    evaluate(program(tmp_path, COUNT + '# changed\n'), EXAMPLES, progress=False)
    assert len(asked(tmp_path)) == 17

def test_a_script_may_read_all_before_it_answers_in_any_order(tmp_path):
    frame = evaluate(program(tmp_path, "for q in reversed(list(questions())): answer(q['id'], 2)"), EXAMPLES, progress=False)
    assert set(frame.value) == {2}

def test_it_is_restarted_when_it_dies_and_asked_only_for_the_rest(tmp_path):
    "It dies at q3 and at q5, each time once, by a signal and by an error."
    body = '''
for q in questions():
    mark = q['id'] + '.died'
    if q['id'] in ('q3', 'q5') and not os.path.exists(mark):
        open(mark, 'w').close()
        os.kill(os.getpid(), 9) if q['id'] == 'q3' else sys.exit('no memory')
    answer(q['id'], len(q['text'].split()))
'''
    frame = evaluate(program(tmp_path, body), EXAMPLES, progress=False)
    assert list(frame.value) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert asked(tmp_path) == 'q0 q1 q2 q3 q3 q4 q5 q5 q6 q7'.split()

def test_one_question_that_kills_it_costs_no_other_its_score(tmp_path):
    body = "for q in questions(): answer(q['id'], 1) if q['id'] != 'q2' else sys.exit('q2 is too long')"
    frame = evaluate(program(tmp_path, body), EXAMPLES, progress=False)
    assert list(frame.absence) == [None, None, 'transport', *[None]*5]
    assert frame.evidence[2]['detail'] == 'The program ended with code 1: q2 is too long'

def test_a_program_that_always_dies_is_given_up(tmp_path):
    frame = evaluate(program(tmp_path, "open('starts', 'a').write('x'); sys.exit('no licence')"), EXAMPLES, progress=False)
    assert set(frame.absence) == {'transport'} and 'no licence' in frame.evidence[7]['detail']
    assert len((tmp_path/'starts').read_text()) == 6 # all, the first alone; three times
    frame = evaluate(program(tmp_path, COUNT), EXAMPLES, progress=False) # mended: nothing of that was kept
    assert frame.value.notna().all()

ODD = {'"4"': 'malformed', 'true': 'malformed', 'null': 'malformed', '[4]': 'malformed', 'NaN': 'malformed', '1e999': 'transport',
       '"good"': 'malformed', '4': None, '-1.5': None}

def test_what_is_no_number_is_an_absence(tmp_path):
    examples = [Example(id=str(i), target=score) for i, score in enumerate(ODD)]
    body = '''for q in questions(): print('{"id": %s, "score": %s}' % (q['id'], q['text']))'''
    frame = evaluate(program(tmp_path, body), examples, progress=False)
    assert list(frame.absence) == list(ODD.values())
    assert 'a number is needed' in frame.evidence[0]['detail']

def test_lines_ids_and_doubles(tmp_path):
    body = '''
list(questions())
print('Loading weights'); print('[1]'); print('{"score": 3}'); print('{"id": "q0"'); print(); print('{"id": ["q0"], "score": 1}')
answer('q0', 1); answer('q0', 1)
answer('q1', 1); answer('q1', 2)
answer('nobody', 5)
answer('q2', None, absence='refused', reason='It is rude.')
'''
    judge = program(tmp_path, body)
    for _ in range(2):
        frame = evaluate(judge, EXAMPLES[:4], progress=False)
        assert list(frame.absence) == [None, 'count_mismatch', 'refused', 'transport'] and frame.value[0] == 1
        assert frame.evidence[2]['reason'] == 'It is rude.' and 'without an answer' in frame.evidence[3]['detail']
    assert judge.notes == ['score: lines that are no JSON object with an id, and were not read: 4.',
                           'score: answers with an id that nobody asked about, which were not read: 7.'] # only q3 was asked

def test_scales_and_verdicts(tmp_path):
    frame = evaluate(program(tmp_path, COUNT, scale=(1, 5)), EXAMPLES, progress=False)
    assert list(frame.absence) == [None]*5 + ['off_menu']*3 and 'scale from 1 to 5' in frame.evidence[7]['detail']
    body = "for q in questions(): answer(q['id'], ['pass', 'Fail', 'so so', 1][int(q['id'][1:]) % 4])"
    frame = evaluate(program(tmp_path, body, options=['pass', 'fail']), EXAMPLES[:4], progress=False)
    assert list(frame.value) == [1, 0, None, None] and list(frame.absence[2:]) == ['off_menu', 'malformed']

@pytest.mark.parametrize('command, told', [
    ('', 'is empty'), ('no_such_program_xyz score.py', "no program 'no_such_program_xyz'"), ("python 'x", 'split into words'),
    (f'{sys.executable} nowhere.py', "no file 'nowhere.py'")])
def test_a_command_that_can_not_run_is_a_sentence(command, told):
    with pytest.raises(BadInput, match=told): CommandJudge(command)

def test_megabytes_both_ways(tmp_path):
    "A program that answers before it has read all, with long lines, blocks nobody."
    examples = [Example(id=str(i), target='x'*400_000) for i in range(12)]
    body = "for q in questions(): answer(q['id'], 1, reason='y'*300_000); print('z'*100_000, file=sys.stderr)"
    assert set(evaluate(program(tmp_path, body), examples, progress=False).value) == {1}

def test_what_a_program_is_told():
    whole = Example(id='a', target='T', source='S', question='Q', reference='R', history=('H',))
    assert question_row(whole) == dict(id='a', text='T', source='S', question='Q', reference='R', history=['H'])
    assert question_row(Example(id='a', target='T', source='')) == dict(id='a', text='T')

def test_a_run_that_is_killed_goes_on_where_it_stopped(tmp_path):
    "kill -9 of the process that asks, in the middle; the second run asks only for what has no answer on the disk."
    from command import ROOT
    (tmp_path/'score.py').write_text(f'import os\nos.chdir({str(tmp_path)!r})\n{HEAD}' + '''
for q in questions():
    if not os.path.exists('fast'): time.sleep(.2)
    answer(q['id'], len(q['text'].split()))
''')
    (tmp_path/'mine.jsonl').write_text(''.join(json.dumps(dict(id=e.id, target=e.target)) + '\n' for e in EXAMPLES*1))
    command = [sys.executable, '-c', 'from factlib.cli import main; main()', 'evaluate', 'mine.jsonl', '--command',
               f'{sys.executable} score.py', '--out', 'o/r']
    def start():
        return subprocess.Popen(command, cwd=tmp_path, env=os.environ | dict(PYTHONPATH=str(ROOT)), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)
    def kept(): return sum(len(f.read_text().splitlines()) for f in (tmp_path/'o').rglob('answers-*.jsonl'))
    run = start()
    while kept() < 3 and run.poll() is None: time.sleep(.02)
    run.send_signal(signal.SIGKILL)
    run.wait()
    (tmp_path/'fast').touch()
    time.sleep(.5) # its program ends at the closed pipe
    before, seen = kept(), len(asked(tmp_path))
    assert 3 <= before < 8
    run = start()
    told = run.communicate()[0]
    assert run.returncode == 0 and 'score: 8 of 8 texts have a score, mean 4.500.' in told, told
    assert len(asked(tmp_path)) == seen + 8 - before and kept() == 8
