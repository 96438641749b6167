"""A user's files under every name that a command writes: not a byte changes, one sentence names the file, nobody is
asked, and `--force` goes through."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import answer_server
import click
import nbformat
import pytest
from command import environment, factlib, factlib_inside, files
from factlib.apps.annotate import Store, serve
from factlib.apps.annotate_forms import make_form
from factlib.apps.narrative import narrative_server
from factlib.cli import app
from factlib.core.files import write_atomic
from factlib.core.ownership import replacing
from factlib.core.records import BadInput
from factlib.evaluators.prompt_family import VERSIONS
from factlib.llm.stub import StubServer
from factlib.papers.judgememo.importer import FILES
from factlib.runs.execute import main_job

MINE = b'a letter of mine\n'
OWN = '''from factlib.report.results import Experiment
import pandas as pd
run = Experiment('own', 'Mine', 'Which?', dict(out=out))
run.table(pd.DataFrame(dict(x=[1])), 'ones', 'Ones.', cell='')
run.file('notes/a.txt', 'a')
run.finish()'''
BRIDGE = ('Anna Berg opened the bridge on 4 May 1921 with the mayor of Lyon. It crosses a wide river near the old '
          'castle.')

def judge(request):
    "Answers what the commands here ask: the next event, a worse answer, or a verdict."
    prompt = request['messages'][-1]['content']
    if '<event>' in prompt: return json.dumps(dict(next=prompt.split('<event>\n')[1].split('\n</event>')[0]))
    if '<answer>' in prompt: return answer_server.rule(request)
    return json.dumps(dict(reason='by rule', score=4))

def notebook(path, source=OWN):
    cell = nbformat.v4.new_code_cell
    cells = [cell("out: str = ''\nseed: int = 0", metadata=dict(tags=['parameters'])), cell(source)]
    kernel = dict(name='python3', display_name='Python', language='python')
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=dict(kernelspec=kernel)), path)

def write_clones(folder):
    "Of both repositories, as small as they may be."
    reply = f'Score: 4\n\n{"-" * 28}\nfinish_reason: stop'
    write_atomic(folder/'memo/experiments/m/project_gutenberg_v6-3/gold_pg-1900_2000/eval_exp_1_JM-1.txt', reply)
    vanilla = [f'{v}{end}' for v in VERSIONS for end in (('_fluency', '_coherence') if VERSIONS[v].apart else ('',))]
    memo = [f'prompt_v6-3_JudgeMemo_{which}' for which in ('stride_summary', 'stride', 'hard_summary', 'hard')]
    memo += [f'{which}_eval_prompt' for which in ('report_original', 'report_summary', 'report_only')]
    memo += [f'prompt_{which}_summary' for which in ('document', 'section')]
    prompts = [f'baseline_model_inference/prompts/prompt_{name}.txt' for name in vanilla]
    prompts += [f'JudgeMemo_Method/prompts/{name}.txt' for name in memo]
    for path in prompts: write_atomic(folder/'memo'/path, 'Judge {Story} {AddOn} {Content} {Text}.')
    score = dict(id=1, level='A0', llm='phi4:14b', score=5)
    write_atomic(folder/'truth/datasets/evaluation/llm_as_judge_eval.jsonl', json.dumps(score))

def inputs(home):
    "What the commands read."
    home.mkdir(parents=True, exist_ok=True)
    ann = 'Ann rose. Ann ate. Ann left. Ann sang. Ann slept.'
    write_atomic(home/'in/replies.jsonl', json.dumps(dict(response='The fox ran.', source='A fox ran.')) + '\n')
    rows = [f'{i},{i % 2},{(i + (i % 7 == 0)) % 2}' for i in range(30)]
    write_atomic(home/'in/scores.csv', '\n'.join(['item,human,judge', *rows]))
    write_atomic(home/'in/pairs.jsonl', json.dumps(dict(source='...', true=ann)) + '\n')
    fact = dict(id=1, claim='The fox ran.', source='A fox ran.')
    write_atomic(home/'in/facts.jsonl', json.dumps(fact) + '\n')
    with Store(home/'in/labels.db') as store:
        store.begin('facts', {}, make_form('facts').items([fact]), 0, dict(A=['1']))
    write_atomic(home/'in/questions.json', json.dumps([dict(question='Who opened it?', ground_truth=BRIDGE)]))
    days = (f'Ann fed the goose on day {i} and then went home to sleep.' for i in range(40))
    write_atomic(home/'in/texts/a.txt', '\n\n'.join(days))
    for who in ('Ben', 'Mara', 'Tom'):
        story = (f'{who} walked to the mill on day {i} and saw {i + 2} geese near the water.' for i in range(12))
        write_atomic(home/f'in/stories/{who}.txt', ' '.join(story))
    write_atomic(home/'in/grid.json', json.dumps(dict(experiment='in/own.ipynb', grid=dict(seed=[0]))))
    notebook(home/'in/own.ipynb')

# command -> its arguments; all write into the folder place
MODEL = ['--model', 'stub', '--base-url', 'URL']
COMMANDS = {
    'evaluate': ['evaluate', 'in/replies.jsonl', '--with', 'rouge1', '--out', 'place/res'],
    'evaluate with a model': ['evaluate', 'in/replies.jsonl', '--with', 'faithfulness', *MODEL, '--out', 'place/res'],
    'trust': ['trust', 'in/scores.csv', '--out', 'place/res'],
    'run': ['run', 'in/own.ipynb', '--out', 'place/res'],
    'run --if-changed': ['run', 'in/own.ipynb', '--if-changed', '--out', 'place/res'],
    'sweep': ['sweep', 'in/grid.json', '--out', 'place/sweep'],
    'sweep --to': ['sweep', 'in/grid.json', '--out', 'place/sweep', '--to', 'place/copy'],
    'build': ['build', 'in/texts', '--out', 'place/mine', '--kinds', '41', '--lengths', '200', '--workers', '1'],
    'build-montagelie': ['build-montagelie', 'in/pairs.jsonl', '--out', 'place/mine.jsonl', *MODEL, '--sentences',
                         '--no-paraphrase'],
    'build-answers': ['build-answers', 'in/questions.json', '--out', 'place/mine.json', *MODEL],
    'import of JudgeMemo': ['import', 'CLONES/memo', '--out', 'place'],
    'import of trutheval': ['import', 'CLONES/truth', '--out', 'place'],
    'import --prompts': ['import', 'CLONES/memo', '--prompts', 'place/pack'],
    'exam write': ['exam', 'write', 'in/stories', '--rows', '60', '--out', 'place/exam'],
    'exam run': ['exam', 'run', 'in/stories', '--rows', '60', '--with', 'length', '--out', 'place/res'],
    'narrative': ['narrative', 'in/texts/a.txt', '--store', 'place/store'],
    'annotate': ['annotate', 'facts', 'in/facts.jsonl', '--store', 'place/labels.db'],
    'annotate --export': ['annotate', 'facts', 'in/facts.jsonl', '--store', 'in/labels.db', '--export', 'place/labels'],
    'page': ['page', 'place'],
    'reproduce': ['reproduce', 'place'],
}
READERS = {'list', 'cost', 'probe', # these write nothing
           'fetch', # each file has its digest in a manifest: tests/benchmarks/test_fetch.py has files in its way
           'exam grade', # the last part of `exam run`
           'gather'} # into a sweep's folder: tests/runs/test_sweep_report.py has a file in its way

# What is written at times, or is gone at the end
PASSING = {
    'import of JudgeMemo': [f'place/judgememo/{name}' for name in FILES.values()],
    'narrative': ['place/store/answers.sqlite', 'place/store/jobs/0123456789abcdef.json'],
    'reproduce': [f'place/{name}/{path}' for name in main_job()
                  for path in ('result.json', 'index.html', 'notebook.ipynb', 'notebook.html', 'tables/any.csv')],
}
# Made by hand, since the command itself would run for minutes, or serve until it is stopped
ENDLESS = {'narrative', 'annotate', 'reproduce'}
ENDS = (0, 4) # 4: the stand-in gives the judge no score

@pytest.fixture(scope='module')
def world(tmp_path_factory):
    "A model, clones; and what each command writes in an empty folder, made once."
    folder = tmp_path_factory.mktemp('world')
    write_clones(folder/'clones')
    with StubServer(judge) as server:
        places = dict(URL=server.base_url, CLONES=str(folder/'clones'))
        yield SimpleNamespace(folder=folder, places=places, made={}, asked=lambda: len(server.requests))

def arguments(name, world):
    "With the addresses of this world."
    def placed(argument):
        for word, place in world.places.items(): argument = argument.replace(word, place)
        return argument
    return [placed(argument) for argument in COMMANDS[name]]

def call(name, home, world, *more): return factlib_inside(*arguments(name, world), *more, cwd=home)

def prepared(home, name, world):
    "The inputs of a command; `page` gathers what `run` made."
    inputs(home)
    if name == 'page': assert call('run', home, world, '--no-page').returncode == 0

def written(name, world):
    "The files of a run in an empty folder, and that folder."
    if name not in world.made:
        home = world.folder/name.replace(' ', '_')
        prepared(home, name, world)
        before = set(files(home))
        if name == 'narrative':
            with narrative_server(home/'place/store', [home/'in/texts/a.txt']): pass
        elif name == 'annotate':
            with serve('facts', home/'in/facts.jsonl', home/'place/labels.db'): pass
        elif name not in ENDLESS:
            done = call(name, home, world)
            assert done.returncode in ENDS, done.stderr
        world.made[name] = home, sorted(set(files(home)) - before)
    return world.made[name]

def not_passing(path): return Path(path).name != 'lock' and not path.endswith(('-wal', '-shm'))

@pytest.mark.parametrize('name', COMMANDS)
def test_a_users_file_under_every_name_that_is_written(name, world, tmp_path):
    home, made = written(name, world)
    paths = [path for path in [*made, *PASSING.get(name, [])] if not_passing(path)]
    assert len(paths) > (name == 'evaluate')
    if name not in ENDLESS: assert call(name, home, world).returncode in ENDS # its own files are no obstacle
    prepared(tmp_path, name, world)
    before = sorted(tmp_path.rglob('*'))
    for path in sorted(paths, key=lambda path: not_gathered(name, path)): # these are written after all
        write_atomic(tmp_path/path, MINE)
        asked = world.asked()
        done = call(name, tmp_path, world)
        said = done.stderr + done.stdout
        assert (tmp_path/path).read_bytes() == MINE, path
        if not_gathered(name, path):
            assert done.returncode in ENDS
            continue
        assert done.returncode == 2, (path, said)
        assert world.asked() == asked and 'Traceback' not in said
        assert done.stderr.strip().splitlines()[-1].startswith('Error: '), said
        assert Path(path).name in said or any(part in done.stderr for part in Path(path).parts[2:]), (path, said)
        (tmp_path/path).unlink()
        for failed in tmp_path.rglob('*.failed'): shutil.rmtree(failed) # made where the name is known by then only
        remove_empty(tmp_path)
        left = [p for p in sorted(tmp_path.rglob('*')) if p not in before and p != tmp_path/'place']
        assert left == [], (path, left) # what is refused leaves nothing

def not_gathered(name, path):
    "Where factlib did not make the folder above a result, its page doesn't take the place of one there."
    return path in ('place/index.html', 'place/.factlib.json') and name.startswith(('evaluate', 'run'))

def remove_empty(folder):
    for path in sorted(folder.rglob('*'), reverse=True):
        if path.is_dir() and not any(path.iterdir()): path.rmdir()

# What was paid for isn't replaced either way: the sentence says that a file in its place is to be moved away
PAID = ('.sqlite', 'spent.jsonl')

@pytest.mark.parametrize('name', [name for name in COMMANDS if name not in ENDLESS])
def test_force_replaces(name, world, tmp_path):
    made = [path for path in written(name, world)[1] if not_passing(path)]
    home = tmp_path/'full'
    prepared(home, name, world)
    for path in made:
        if not path.endswith(PAID): write_atomic(home/path, MINE)
    assert call(name, home, world).returncode == 2
    done = call(name, home, world, '--force')
    assert done.returncode in ENDS, done.stderr
    kept = [path for path in made if (home/path).read_bytes() == MINE]
    assert kept == [path for path in made if not_gathered(name, path)], kept
    assert call(name, home, world).returncode in ENDS and 'FACTLIB_FORCE' not in os.environ
    for i, path in enumerate(path for path in made if path.endswith(PAID) and '/.sweep/' not in path):
        prepared(tmp_path/str(i), name, world)
        write_atomic(tmp_path/str(i)/path, MINE)
        done = call(name, tmp_path/str(i), world, '--force')
        assert done.returncode == 2 and Path(path).name in done.stderr, (path, done.stderr)
        assert (tmp_path/str(i)/path).read_bytes() == MINE

def test_a_store_is_opened_again_and_by_force(tmp_path):
    inputs(tmp_path)
    text = tmp_path/'in/texts/a.txt'
    for _ in range(2):
        with narrative_server(tmp_path/'store', [text]): pass
    write_atomic(tmp_path/'mine/letter.txt', MINE)
    with pytest.raises(BadInput, match='letter.txt'), narrative_server(tmp_path/'mine', [text]): pass
    with replacing(), narrative_server(tmp_path/'mine', [text]): pass
    assert (tmp_path/'mine/letter.txt').read_bytes() == MINE and (tmp_path/'mine/texts').is_dir()

# Options and arguments that are read; every other path is written, and has a case above
READ = {'annotate': ['data'],
        'build': ['folder', 'metadata'], 'build-answers': ['pairs'], 'build-montagelie': ['texts'],
        'evaluate': ['path', 'prompts'], 'exam write': ['texts'], 'exam run': ['texts', 'prompts'], 'exam grade': ['folder'], 'import': ['path'], 'narrative': ['texts'], 'sweep': ['grid', 'slurm'],
        'trust': ['files']}
WRITTEN = {'annotate': ['store', 'export'],
           'build': ['out'], 'build-answers': ['out'], 'build-montagelie': ['out'], 'evaluate': ['out'],
           'exam write': ['out'], 'exam run': ['out'], 'exam grade': ['out'], 'fetch': ['home'], 'gather': ['folder'], 'import': ['out', 'prompts'], 'narrative': ['store'],
           'page': ['outputs'], 'reproduce': ['outputs'], 'run': ['out'], 'sweep': ['out', 'to'], 'trust': ['out']}

def test_each_command_has_a_case():
    "A new command, or a new option with a path, has to be tried above."
    commands = {name: command for name, command in app.commands.items() if not isinstance(command, click.Group)}
    for group, command in app.commands.items():
        if group not in commands: commands |= {f'{group} {name}': each for name, each in command.commands.items()}
    tried = {}
    for case in COMMANDS.values():
        name = case[0] if case[0] in commands else ' '.join(case[:2])
        tried[name] = tried.get(name, set()) | set(case)
    assert set(commands) == set(tried) | READERS
    for name, command in commands.items():
        paths = {p.name: p for p in command.params if isinstance(p.type, click.Path) or p.name in ('out', 'to')}
        assert set(paths) == {*READ.get(name, []), *WRITTEN.get(name, [])}, name
        forced = any(p.name == 'force' for p in command.params)
        assert forced == bool(WRITTEN.get(name)), name
        for option in WRITTEN.get(name, []):
            if paths[option].opts[0].startswith('--') and name not in READERS:
                assert set(paths[option].opts) & tried[name], (name, option)

@pytest.mark.parametrize('name, more', [('list', ()), ('cost', ('live_judge', '-p', 'model', 'm')), ('fetch', ()),
    ('probe', ('--model', 'm', '--cost')), ('evaluate with a model', ('--cost',)), ('build-montagelie', ('--cost',)),
    ('build-answers', ('--cost',)), ('sweep', ('--dry-run',)), ('sweep --to', ('--dry-run',))])
def test_what_only_says_something_writes_nothing(name, more, world, tmp_path):
    inputs(tmp_path)
    before, asked = sorted(tmp_path.rglob('*')), world.asked()
    command = arguments(name, world) if more[-1:] in (('--cost',), ('--dry-run',)) and name in COMMANDS else [name]
    done = factlib_inside(*command, *more, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(tmp_path.rglob('*')) == before and world.asked() == asked

def test_a_project_keeps_its_own_index(tmp_path):
    "The page lies inside; above it is gathered only where factlib made the folder, or where asked."
    inputs(tmp_path)
    (tmp_path/'index.html').write_bytes(MINE)
    done = factlib_inside('evaluate', 'in/replies.jsonl', '--with', 'rouge1', '--out', 'res', cwd=tmp_path)
    assert done.returncode == 0 and 'Page: res/index.html' in done.stdout
    assert (tmp_path/'index.html').read_bytes() == MINE
    asked = factlib_inside('page', '.', cwd=tmp_path)
    assert asked.returncode == 2 and 'index.html' in asked.stderr and (tmp_path/'index.html').read_bytes() == MINE
    assert factlib_inside('page', '.', '--force', cwd=tmp_path).returncode == 0
    assert b'factlib' in (tmp_path/'index.html').read_bytes()

def told(warned): return [str(w.message) for w in warned if 'was changed since factlib made it' in str(w.message)]

def test_what_the_user_changed_is_kept_and_said_once(world, tmp_path):
    "An edited table, page or notebook of a result stays beside the new one under another name; a sentence says which."
    inputs(tmp_path)
    assert call('run', tmp_path, world).returncode == 0
    res = tmp_path/'place/res'
    for path in ('tables/ones.csv', 'index.html', 'notebook.ipynb'):
        edited = (res/path).read_bytes().replace(b'Mine', b'Yours') + b'\n'
        (res/path).write_bytes(edited)
        with pytest.warns(UserWarning) as warned: assert call('run', tmp_path, world).returncode == 0
        [kept] = (res/path).parent.glob(f'{Path(path).name}.*')
        there, now = f'place/res/{path}', kept.relative_to(tmp_path)
        assert told(warned) == [f"'{there}' was changed since factlib made it: what you had there is now '{now}'."]
        assert kept.read_bytes() == edited != (res/path).read_bytes()
        with pytest.warns(UserWarning) as warned: # none of them, and so one of our own
            import warnings
            warnings.warn('one at least', stacklevel=1)
            assert call('run', tmp_path, world).returncode == 0
        assert told(warned) == [] and kept.read_bytes() == edited

@pytest.mark.slow
def test_a_shell_shows_the_sentence(world, tmp_path):
    "In a process of its own: one line, without the code that it comes from."
    inputs(tmp_path)
    run = lambda: factlib(*COMMANDS['evaluate'], cwd=tmp_path)
    assert run().returncode == 0
    (tmp_path/'place/res/tables/scores.csv').write_bytes(MINE)
    second, third = run(), run()
    [kept] = (tmp_path/'place/res/tables').glob('scores.csv.*')
    sentence = (f"'place/res/tables/scores.csv' was changed since factlib made it: what you had there is now "
                f"'place/res/tables/{kept.name}'.")
    assert second.returncode == third.returncode == 0 and kept.read_bytes() == MINE
    assert second.stderr.splitlines().count(sentence) == 1 and 'was changed' not in third.stderr

def test_a_benchmark_that_the_user_changed_is_not_replaced(world, tmp_path):
    "It is a single file: the sentence comes before anybody is asked."
    inputs(tmp_path)
    assert call('build-montagelie', tmp_path, world).returncode == 0
    (tmp_path/'place/mine.jsonl').write_bytes(MINE)
    asked = world.asked()
    done = call('build-montagelie', tmp_path, world)
    assert done.returncode == 2 and 'mine.jsonl' in done.stderr and world.asked() == asked
    assert (tmp_path/'place/mine.jsonl').read_bytes() == MINE

def test_a_failed_run_removes_nothing_of_the_users(tmp_path):
    inputs(tmp_path)
    mine = ('place/res.failed.ipynb', 'place/res.failed/letter.txt', 'place/res/unfinished.json')
    for path in mine: write_atomic(tmp_path/path, MINE)
    assert factlib_inside('run', 'in/own.ipynb', '--out', 'place/res', cwd=tmp_path).returncode == 0
    notebook(tmp_path/'in/own.ipynb', "raise RuntimeError('It broke.')")
    assert factlib_inside('run', 'in/own.ipynb', '--out', 'place/res', cwd=tmp_path).returncode == 1
    for path in mine: assert (tmp_path/path).read_bytes() == MINE

BESIDE = ['place/letter.txt', 'place/res.failed.ipynb', 'place/res.failed/letter.txt']
LETTERS = { # where a letter is no obstacle
    'evaluate': ['place/index.html', 'place/res/letter.txt', 'place/res/tables/letter.txt'],
    'run': ['place/index.html', 'place/res/letter.txt', 'place/res/tables/letter.txt'],
    'sweep --to': ['place/copy/letter.txt'],
    'build': ['place/mine/letter.txt'],
    'build-montagelie': ['place/mine.txt'],
    'build-answers': ['place/mine.txt'],
    'import of JudgeMemo': ['place/judgememo/letter.txt'],
    'import of trutheval': ['place/trutheval/letter.txt'],
    'import --prompts': ['place/pack/letter.txt'],
    'exam write': ['place/letter.txt'],
    'exam run': ['place/index.html', 'place/res/letter.txt'],
}

@pytest.mark.slow
@pytest.mark.parametrize('name', LETTERS)
def test_killed_at_any_moment(name, world, tmp_path):
    "The user's files beside and inside, under names of ours and others: not a byte changes, and the next run is whole."
    inputs(tmp_path)
    mine = BESIDE + LETTERS[name]
    for path in mine: write_atomic(tmp_path/path, MINE)
    command = [sys.executable, '-c', 'from factlib.cli import main; main()', *arguments(name, world)]
    options = dict(cwd=tmp_path, env=environment(None), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took = []
    for _ in range(2): # the first compiles what the second finds
        begun = time.monotonic()
        subprocess.run([*command[:-1], command[-1], '--help'], **options)
        took.append(time.monotonic() - begun)
    least, generator, killed = min(took), random.Random(7), 0
    for i in range(8): # the first while it starts, and some early, so that short commands are met as well
        process = subprocess.Popen(command, start_new_session=True, **options)
        try: process.wait(least*(generator.uniform(.5, .9 + .7*i) if i else .1))
        except subprocess.TimeoutExpired: killed += 1
        try: os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError: pass
        process.wait()
        for path in mine: assert (tmp_path/path).read_bytes() == MINE, path
    done = call(name, tmp_path, world)
    assert killed and done.returncode in ENDS, (killed, done.stderr)
    for path in mine: assert (tmp_path/path).read_bytes() == MINE, path
