"""Every experiment that asks a model does so by the command that its own notebook prints, with two texts of somebody
else's and a model that answers in form."""
import json
import re
import shlex

import pytest
from command import factlib_inside
from factlib.core.files import data_home
from factlib.llm.stub import StubServer
from factlib.papers.coverage import unmade
from factlib.runs.costs import may_ask
from factlib.runs.execute import experiments
from obliging_server import obliging
from strict_server import strict
from sweeps import END, JUDGES, TABLES, part_of

def commands(notebook):
    "The lines that run it with a model."
    cells = json.loads(notebook.read_text(encoding='utf-8'))['cells']
    texts = '\n'.join(''.join(cell['source']) for cell in cells if cell['cell_type'] == 'markdown').replace('\\\n', ' ')
    return [line.split('#')[0].strip() for line in texts.split('\n') if line.startswith('factlib run')
            and '-p model' in line]

PRINTED = [(name, i) for name, notebook in experiments().items() for i in range(len(commands(notebook)))]

def test_experiments_that_ask_say_how():
    "Whoever reads the parameter `model` prints a command with it."
    asking = [name for name, notebook in experiments().items() if may_ask(notebook)]
    assert set(asking) == {name for name, _ in PRINTED}

def printed_words(folder, name, i, server):
    "A printed command as arguments, for two texts in this folder and this server."
    (folder/'texts').mkdir()
    story = ('Anna met Ben at the gate. "You are late," said Ben. Anna laughed. They walked to the mill, and Ben told '
             'her about his brother.\n\n')
    for title in ('a', 'b'): (folder/f'texts/{title}.txt').write_text(story*6, encoding='utf-8')
    printed = commands(experiments()[name])[i].replace('FOLDER', 'texts').replace('-p length 0', '-p length 60')
    if 'recorded' not in printed: printed = printed.replace('"2000 full"', '"60 full"')
    # one benchmark's statistics are enough
    if name in ('montagelie', 'trust_matrix') and '-p dataset' not in printed: printed += ' -p dataset holmes_order'
    if name == 'trust_matrix': printed += ' -p slow false'
    return shlex.split(printed.replace('NAME', 'stub').replace('https://HOST/v1', server.base_url))[1:]

COMPONENTS = dict.fromkeys(['montage-table', 'montage-components', 'montage-component-tables'], '')

@pytest.mark.slow
@pytest.mark.parametrize('name, i', PRINTED)
def test_printed_command_runs(tmp_path, name, i):
    """As printed; but of montagelie, which draws for half a minute whoever is asked, what asks and makes tables is
    enough from its second command on. An experiment's first command meets a strict reasoning model, which refuses
    `temperature` and `max_tokens`: one option more, and every request is answered."""
    is_strict = i == 0
    more = ['--request', '{"temperature": null}'] if is_strict else []
    with StubServer(strict() if is_strict else obliging) as server:
        words = printed_words(tmp_path, name, i, server)
        before = factlib_inside('cost', *words[1:], '-p', 'n', '1', cwd=tmp_path, data=data_home())
        assert not server.requests, 'a plan asks nobody'
        if name == 'montagelie' and i: words[1] = part_of(name, JUDGES | TABLES | COMPONENTS | END, tmp_path/'part')
        done = factlib_inside(*words, '-p', 'n', '1', '--out', 'o/x', *more, cwd=tmp_path, data=data_home())
    if 'set FACTLIB_DATA' in done.stderr:
        pytest.skip(f'the printed command of {name} needs real data')
    if lacking := re.search(r"There is no file( or folder)? '(PATH|FILE|mine)'|needs the packages.* torch",
                            done.stderr):
        pytest.skip(f'the printed command of {name} needs what the reader has: {lacking[0]}')
    assert done.returncode == 0 and server.requests, done.stderr[-3000:] + done.stdout[-2000:]
    assert before.returncode == 0, before.stderr
    planned = re.search(r'(At most|About) ([\d,]+) requests are sent', before.stdout)
    answered = [body for body in server.requests if not is_strict or 'max_tokens' not in body]
    # an upper bound that is said as one; the stub finds one fact where a sentence is guessed, so it never asks for more
    assert len(answered) <= int(planned[2].replace(',', '')), before.stdout
    # nothing is guessed
    if name == 'live_judge': assert planned[1] == 'At most' and len(answered) == int(planned[2])
    result = json.loads((tmp_path/'o/x/result.json').read_text(encoding='utf-8'))
    assert result['name'] == name and not re.search('traceback', done.stderr, re.IGNORECASE)
    assert unmade(name, tmp_path/'o/x') == [] or (name == 'montagelie' and i)
    if is_strict:
        assert not any('temperature' in body for body in server.requests)
        assert 'max_completion_tokens' in server.requests[-1]
        asked = [row for row in result['evaluators'].values() if row.get('usage', {}).get('requests')]
        assert asked and all(row['scored'] for row in asked)
        assert "temperature" in str([row['signature'] for row in asked])

@pytest.mark.slow
def test_a_model_without_one_usable_answer_ends_with_1(tmp_path):
    "Though evaluators that ask nobody have scores, and all is on disk."
    if data_home() is None: pytest.skip('storysumm needs real data')
    with StubServer(lambda request: 'I would rather not say.') as server:
        words = shlex.split(commands(experiments()['storysumm'])[0].replace(
            'NAME', 'stub').replace('https://HOST/v1', server.base_url))[1:]
        done = factlib_inside(*words, '-p', 'n', '1', '--out', 'o/x', cwd=tmp_path, data=data_home())
        assert server.requests
    assert done.returncode == 1 and 'Nothing could be scored by factscore, stub' in done.stderr
    assert 'Results in o/x' in done.stdout
    result = json.loads((tmp_path/'o/x/result.json').read_text(encoding='utf-8'))
    assert any(e['scored'] for e in result['evaluators'].values())
    assert result['evaluators']['factscore, stub']['scored'] == 0
