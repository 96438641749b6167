"A user's files under every name that a command writes: not a byte changes, one sentence names the file, nobody is asked, and `--force` goes through."
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from command import ROOT, environment, factlib_inside, files
from factlib.core.files import write_atomic
from factlib.llm.stub import StubServer

MINE = b'a letter of mine\n'

def judge(request):
    "Answers what the commands here ask: the next event, or a verdict."
    prompt = request['messages'][-1]['content']
    if '<event>' in prompt: return json.dumps(dict(next=prompt.split('<event>\n')[1].split('\n</event>')[0]))
    return json.dumps(dict(reason='by rule', score=4))

def notebook(path, source="from factlib.report.results import Experiment\nimport pandas as pd\nrun = Experiment('own', 'Mine', 'Which?', dict(out=out))\n"
             "run.table(pd.DataFrame(dict(x=[1])), 'ones', 'Ones.', cell='')\nrun.file('notes/a.txt', 'a')\nrun.finish()"):
    cell = nbformat.v4.new_code_cell
    cells = [cell("out: str = ''\nseed: int = 0", metadata=dict(tags=['parameters'])), cell(source)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=dict(kernelspec=dict(name='python3', display_name='Python', language='python'))), path)

def inputs(home):
    "What the commands read."
    home.mkdir(parents=True, exist_ok=True)
    write_atomic(home/'in/replies.jsonl', json.dumps(dict(response='The fox ran.', source='A fox ran.')) + '\n')
    write_atomic(home/'in/pairs.jsonl', json.dumps(dict(source='...', true='Ann rose. Ann ate. Ann left. Ann sang. Ann slept.')) + '\n')
    write_atomic(home/'in/texts/a.txt', '\n\n'.join(f'Ann fed the goose on day {i} and then went home to sleep.' for i in range(40)))
    write_atomic(home/'in/grid.json', json.dumps(dict(experiment='in/own.ipynb', grid=dict(seed=[0]))))
    notebook(home/'in/own.ipynb')

# command -> arguments, the folder or file that it writes
COMMANDS = {
    'evaluate': ['evaluate', 'in/replies.jsonl', '--with', 'rouge1', '--out', 'place/res'],
    'evaluate with a model': ['evaluate', 'in/replies.jsonl', '--with', 'faithfulness', '--model', 'stub', '--base-url', 'URL', '--out', 'place/res'],
    'run': ['run', 'in/own.ipynb', '--out', 'place/res'],
    'run --if-changed': ['run', 'in/own.ipynb', '--if-changed', '--out', 'place/res'],
    'sweep': ['sweep', 'in/grid.json', '--out', 'place/sweep'],
    'build': ['build', 'in/texts', '--out', 'place/mine', '--kinds', '41', '--lengths', '200', '--workers', '1'],
    'build-montagelie': ['build-montagelie', 'in/pairs.jsonl', '--out', 'place/mine.jsonl', '--model', 'stub', '--base-url', 'URL', '--sentences', '--no-paraphrase'],
}
ENDS = (0, 4) # 4: the stand-in gives the judge no score

def call(name, home, url, *more): return factlib_inside(*[url if a == 'URL' else a for a in COMMANDS[name]], *more, cwd=home)

def written(name, home, url):
    "The files of a run in an empty folder."
    inputs(home)
    done = call(name, home, url)
    assert done.returncode in ENDS, done.stderr
    return [path for path in files(home) if path.startswith('place/')]

def others(path): return Path(path).name not in ('lock', 'spent.json') and '/.sweep/' not in path and not path.endswith(('-wal', '-shm'))

@pytest.mark.parametrize('name', COMMANDS)
def test_a_users_file_under_every_name_that_is_written(name, tmp_path):
    with StubServer(judge) as server:
        paths = [path for path in written(name, tmp_path/'empty', server.base_url) if others(path)]
        assert paths
        assert call(name, tmp_path/'empty', server.base_url).returncode in ENDS # its own files are no obstacle
        for i, path in enumerate(paths):
            home = tmp_path/str(i)
            inputs(home)
            write_atomic(home/path, MINE)
            asked = len(server.requests)
            done = call(name, home, server.base_url)
            if path in ('place/index.html', 'place/.factlib.json'): assert done.returncode in (*ENDS, 2), done.stderr # not gathered in a folder of the user's
            else:
                assert done.returncode in ((2, 1) if name == 'sweep' else (2,)), (path, done.stderr, done.stdout)
                assert 'Traceback' not in done.stderr and len(server.requests) == asked
                assert Path(path).name in done.stderr + done.stdout or Path(path).parts[2] in done.stderr, (path, done.stderr)
            assert (home/path).read_bytes() == MINE, path

@pytest.mark.parametrize('name', ['evaluate', 'run', 'build', 'build-montagelie'])
def test_force_replaces(name, tmp_path):
    with StubServer(judge) as server:
        for path in [p for p in written(name, tmp_path/'empty', server.base_url) if others(p) and not p.endswith(('.sqlite', '.factlib.json'))]:
            write_atomic(tmp_path/'full'/path, MINE)
        inputs(tmp_path/'full')
        assert call(name, tmp_path/'full', server.base_url).returncode == 2
        assert call(name, tmp_path/'full', server.base_url, '--force').returncode == 0
        assert call(name, tmp_path/'full', server.base_url).returncode == 0 and 'FACTLIB_FORCE' not in os.environ

def test_a_project_keeps_its_own_index(tmp_path):
    "The page lies inside; above it is gathered only where factlib made the folder, or where asked."
    inputs(tmp_path)
    (tmp_path/'index.html').write_bytes(MINE)
    done = factlib_inside('evaluate', 'in/replies.jsonl', '--with', 'rouge1', '--out', 'res', cwd=tmp_path)
    assert done.returncode == 0 and 'Page: res/index.html' in done.stdout and (tmp_path/'index.html').read_bytes() == MINE
    asked = factlib_inside('page', '.', cwd=tmp_path)
    assert asked.returncode == 2 and 'index.html' in asked.stderr and (tmp_path/'index.html').read_bytes() == MINE
    assert factlib_inside('page', '.', '--force', cwd=tmp_path).returncode == 0 and b'factlib' in (tmp_path/'index.html').read_bytes()

def test_what_the_user_changed_is_kept(tmp_path):
    "An edited table of a result stays beside the new one under another name; an edited benchmark, a single file, is not replaced."
    inputs(tmp_path)
    command = ['evaluate', 'in/replies.jsonl', '--with', 'rouge1', '--out', 'outputs/res']
    assert factlib_inside(*command, cwd=tmp_path).returncode == 0
    table = tmp_path/'outputs/res/tables/scores.csv'
    made = table.read_bytes()
    for _ in range(2):
        table.write_bytes(MINE)
        assert factlib_inside(*command, cwd=tmp_path).returncode == 0 and table.read_bytes() == made
    assert [p.read_bytes() for p in table.parent.glob('scores.csv.*')] == [MINE, MINE]
    with StubServer(judge) as server:
        assert call('build-montagelie', tmp_path, server.base_url).returncode == 0
        (tmp_path/'place/mine.jsonl').write_bytes(MINE)
        done = call('build-montagelie', tmp_path, server.base_url)
        assert done.returncode == 2 and 'mine.jsonl' in done.stderr and (tmp_path/'place/mine.jsonl').read_bytes() == MINE

def test_a_failed_run_removes_nothing_of_the_users(tmp_path):
    inputs(tmp_path)
    for path in ('place/res.failed.ipynb', 'place/res.failed/letter.txt', 'place/res/unfinished.json'): write_atomic(tmp_path/path, MINE)
    assert factlib_inside('run', 'in/own.ipynb', '--out', 'place/res', cwd=tmp_path).returncode == 0
    notebook(tmp_path/'in/own.ipynb', "raise RuntimeError('It broke.')")
    assert factlib_inside('run', 'in/own.ipynb', '--out', 'place/res', cwd=tmp_path).returncode == 1
    for path in ('place/res.failed.ipynb', 'place/res.failed/letter.txt', 'place/res/unfinished.json'): assert (tmp_path/path).read_bytes() == MINE

@pytest.mark.slow
@pytest.mark.parametrize('name', ['evaluate', 'run'])
def test_killed_at_any_moment(name, tmp_path):
    "The user's files beside and inside, under names of ours and others: not a byte changes, and the next run is whole."
    inputs(tmp_path)
    mine = ['place/index.html', 'place/letter.txt', 'place/res/letter.txt', 'place/res/tables/letter.txt', 'place/res.failed.ipynb', 'place/res.failed/letter.txt']
    for path in mine: write_atomic(tmp_path/path, MINE)
    generator, killed = random.Random(7), 0
    for _ in range(10):
        process = subprocess.Popen([sys.executable, '-c', 'from factlib.cli import main; main()', *COMMANDS[name]], cwd=tmp_path, env=environment(None),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(generator.uniform(.5, 8))
        killed += process.poll() is None
        try: os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError: pass
        process.wait()
        for path in mine: assert (tmp_path/path).read_bytes() == MINE, path
    done = factlib_inside(*COMMANDS[name], cwd=tmp_path)
    assert killed and done.returncode == 0, (killed, done.stderr)
    for path in mine: assert (tmp_path/path).read_bytes() == MINE, path
