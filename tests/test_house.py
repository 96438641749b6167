"The house: floors, exports, README, rhythm, public names, imports, the wheel."
import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import rhythm

ROOT = Path(__file__).resolve().parent.parent
FLOORS = {'core': 1, 'text': 2, 'validity': 2, 'report': 2, 'llm': 3,
          'perturb': 4, 'evaluators': 4, 'benchmarks': 5, 'metaeval': 6, 'trust': 6, 'runs': 6, 'papers': 7, 'apps': 7, 'cli_build': 8, 'cli': 9}
# What stands lower and is kept out all the same: evaluators know nothing of damage nor of statistics, benchmarks hold
# no statistics, report shows what it is given.
APART = {('evaluators', 'perturb'), ('evaluators', 'validity'), ('perturb', 'validity'), ('benchmarks', 'validity'),
         ('papers', 'runs')} | {('report', other) for other in FLOORS if other not in ('core', 'report')}
# Faults of rhythm that are left: these numbers may only fall.
ALLOWED = {'long line': 0, 'no example': 61, 'private import': 0, 'patch': 0, 'stray self': 0,
           'method by assignment': 0, 'long line in an experiment': 0, 'long cell in an experiment': 0,
           'definition in an experiment': 0}
MODULES = sorted(p for p in (ROOT/'factlib').rglob('*.py') if p.name != '_modidx.py')
NAMES = ['.'.join(p.relative_to(ROOT).with_suffix('').parts).removesuffix('.__init__') for p in MODULES]
NOTEBOOKS = sorted(p for p in (ROOT/'nbs').rglob('*.ipynb') if not p.name.startswith(('.', '_'))
                   and '.ipynb_checkpoints' not in p.parts)

def package(path):
    "The package (or module) directly below factlib that a file belongs to; None for factlib itself."
    parts = path.relative_to(ROOT/'factlib').with_suffix('').parts
    return None if parts == ('__init__',) else parts[0]

def imported(path):
    "Packages of factlib that a file imports, wherever in the file."
    here = path.relative_to(ROOT).with_suffix('').parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import): names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = '.'.join(here[:-node.level]) if node.level else ''
            names = ['.'.join(filter(None, [base, node.module, alias.name])) for alias in node.names]
        else: continue
        found |= {n.split('.')[1] for n in names if n.startswith('factlib.') and n.split('.')[1] in FLOORS}
    return found

def wrong_imports(paths):
    "(file, package) of imports that run upwards, sideways, or to where two packages are kept apart."
    return [(str(p.relative_to(ROOT)), other) for p in paths for other in imported(p)
            if package(p) is not None and other != package(p)
            and (FLOORS[other] >= FLOORS[package(p)] or (package(p), other) in APART)]

def test_no_import_runs_upwards_or_sideways():
    assert len(MODULES) > 100 and {package(p) for p in MODULES} - {None} <= set(FLOORS)
    assert not wrong_imports(MODULES)

def test_the_floor_test_sees_what_it_should(tmp_path, monkeypatch):
    "The check above on a planted fault, for relative and for lazy imports."
    monkeypatch.setattr(sys.modules[__name__], 'ROOT', tmp_path)
    bad = tmp_path/'factlib'/'core'/'bad.py'
    bad.parent.mkdir(parents=True)
    bad.write_text(
        'from ..llm.replies import likert\ndef f():\n    from factlib.report import page\n    import factlib.cli\n')
    assert package(bad) == 'core' and imported(bad) == {'llm', 'report', 'cli'}
    assert wrong_imports([bad]) == [('factlib/core/bad.py', other) for other in imported(bad)]
    for name, code, other in (('text', 'from ..validity.base import holm', 'validity'),
                              ('evaluators', 'from ..perturb.order import inversions\nfrom ..core.files import digest',
                               'perturb'), ('report', 'from ..text.spans import Span', 'text')):
        # a neighbour, two that are kept apart, and the one that imports core alone
        path = tmp_path/'factlib'/name/'bad.py'
        path.parent.mkdir(parents=True)
        path.write_text(code)
        assert wrong_imports([path]) == [(f'factlib/{name}/bad.py', other)]

def test_tests_stand_where_notebooks_do():
    """A folder of tests is a folder of notebooks. A file in it is called after a room there (`test_ROOM.py`,
    `test_ROOM_more.py`), or after the folder if it tests several."""
    for path in sorted((ROOT/'tests').rglob('test_*.py')):
        folder = path.relative_to(ROOT/'tests').parent
        if folder.parts in ((), ('nli',)): continue # of the house; and the step with torch
        rooms = [folder.name, *(p.stem for p in (ROOT/'nbs'/folder).glob('*.ipynb'))]
        assert len(rooms) > 1 and any(f'{path.stem}_'.startswith(f'test_{room}_')
                                      for room in rooms), f'{path.relative_to(ROOT)}: no such room in nbs/{folder}'

def copy(to):
    "The files that git knows or would add, in a fresh folder."
    if not (ROOT/'.git').exists(): pytest.skip('not a git checkout, so there is no list of the project\'s files')
    files = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '-z'],
                           cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split('\0')):
        if not (ROOT/name).is_file(): continue
        (to/name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT/name, to/name)
    return to

def differences(a, b, names):
    return [n for n in names if (a/n).read_bytes() != ((b/n).read_bytes() if (b/n).exists() else None)]

def run(*command, cwd, **env):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=os.environ | env)
    assert done.returncode == 0, f'{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}'
    return done.stdout

def test_exports_and_notebooks_are_in_sync(tmp_path, request):
    """nbdev-export and nbdev-clean change nothing; if they would, run `make notebooks`. With --room only that notebook
    and its module count."""
    there, room = copy(tmp_path), request.config.getoption('room')
    for command in ('nbdev-export', 'nbdev-clean'): run(command, cwd=there)
    names = [str(p.relative_to(there)) for pattern in ('factlib/**/*.py', 'nbs/**/*.ipynb')
             for p in there.glob(pattern)]
    if room: names = [n for n in names if n in (f'nbs/{room}.ipynb', f'factlib/{room}.py')]
    assert len(names) > (0 if room else 200) and not differences(there, ROOT, names)

def test_readme_is_the_index(tmp_path):
    "README.md comes from nbs/index.ipynb; if not, run `make notebooks`."
    there = copy(tmp_path)
    run('sh', 'tests/make_readme.sh', 'made.md', cwd=there)
    assert (there/'made.md').read_text(encoding='utf-8') == (ROOT/'README.md').read_text(encoding='utf-8')

def test_what_the_readme_shows_is_printed():
    "The sample sentences in README are findings of the stored notebooks, word for word."
    shown, experiment, names = [], '', {p.stem for p in (ROOT/'nbs'/'experiments').glob('*.ipynb')}
    for line in (ROOT/'README.md').read_text(encoding='utf-8').split('\n'):
        if line in names: experiment = line
        elif line.startswith('```'): experiment = ''
        elif experiment and line.startswith('- '): shown.append((experiment, line[2:]))
    assert len({name for name, _ in shown}) == 2
    for name, text in shown:
        cells = json.loads((ROOT/'nbs'/'experiments'/f'{name}.ipynb').read_text(encoding='utf-8'))['cells']
        plain = [''.join(o.get('data', {}).get('text/plain', [])) for c in cells for o in c.get('outputs', [])]
        assert text in plain, (name, text)

def test_notebooks_are_as_agreed():
    """Cell ids by hand and unique, no star imports, no asyncio.run, tags only in experiments and directives only in the
    library, figures below 100 kB."""
    for path in (ROOT/'nbs').rglob('*.ipynb'):
        if path.name.startswith('.') or '.ipynb_checkpoints' in path.parts: continue
        cells = json.loads(path.read_text(encoding='utf-8'))['cells']
        ids = [c['id'] for c in cells]
        assert len(set(ids)) == len(ids), path
        for c in cells:
            source, where = ''.join(c['source']), f'{path.name} {c["id"]}'
            assert '-' in c['id'], f'{where}: ids are made of the room\'s name and a word'
            if c['cell_type'] != 'code': continue
            assert 'import *' not in source and 'asyncio.run(' not in source, where
            if {'experiments', 'book'} & set(path.relative_to(ROOT).parts): assert not source.startswith('#|'), where
            else: assert not c['metadata'].get('tags'), where
            for output in c['outputs']:
                for kind, data in output.get('data', {}).items():
                    if kind.startswith('image/'):
                        assert len(''.join(data)) < 100_000*4/3, f'{where}: a figure of more than 100 kB'

# Rhythm

def test_rhythm():
    "No more faults of each kind than are allowed; `python tests/rhythm.py` lists them."
    counts = Counter(kind for kind, _ in rhythm.faults())
    assert set(counts) <= set(ALLOWED)
    assert not {kind: (n, ALLOWED[kind]) for kind, n in counts.items() if n > ALLOWED[kind]}

def planted(path, *cells):
    "A notebook with these code cells."
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(dict(cells=[dict(cell_type='code', id=f'x-{i}', source=source,
                                    metadata={}, outputs=[], execution_count=None) for i, source in enumerate(cells)],
                        metadata={}, nbformat=4, nbformat_minor=5)), encoding='utf-8')
    return path

def test_rhythm_sees_each_fault(tmp_path, monkeypatch):
    "One of each, planted; and what is as it should be is no fault."
    monkeypatch.setattr(rhythm, 'ROOT', tmp_path)
    imports = '#| export\nfrom factlib.core.checks import _hidden\nfrom factlib.core.files import digest'
    room = planted(tmp_path/'nbs'/'core'/'bad.ipynb', '#| default_exp core.bad', imports,
                   '#| export\ndef alone(x): return x', f"#| export\ndef wide(x): return {'x + '*30}x", 'wide(1)',
                   '#| export\ndef long(x):\n' + '\n'.join(f'    x += {i}' for i in range(30)),
                   'long(1)',
                   '#| export\nclass C: pass\ndef stray(self): return 1\n@patch\ndef patched(self:C): return '
                   '1\nC.method = stray', 'C().method()')
    assert sorted(kind for kind, _ in rhythm.faults([room])) == ['long line', 'method by assignment',
                                                                 'no example', 'patch', 'private import', 'stray self']
    many = planted(tmp_path/'nbs'/'core'/'many.ipynb', '#| default_exp core.many',
                   '#| export\nclass Many:\n' + '\n'.join(f'    x{i} = {i}' for i in range(130)),
                   'Many()', '#| export\ndef _mine(): return 1')
    # a candidate, no fault; a private helper needs no example
    assert list(rhythm.faults([many])) == [] and list(rhythm.long_cells([many])) == ['core/many.ipynb x-1: 131 lines']
    experiment = planted(tmp_path/'nbs'/'experiments'/'bad.ipynb', 'def f(): return 1',
                         f"x = '{'y'*100}'", 'from factlib.core.files import _hidden',
                         'x = 1234\n'*167)
    assert [kind for kind, _ in rhythm.faults([experiment])] == [
        'definition in an experiment', 'long line in an experiment', 'private import', 'long cell in an experiment']
    good = planted(tmp_path/'nbs'/'core'/'good.ipynb', '#| default_exp core.good',
                   '#| export\nfrom factlib.core.good import _mine',
                   '#| export\nclass C:\n    def method(self): return 1', 'C().method()',
                   '#| export\ndef _mine(): return 1', '#| export\ndef f(): return 1', 'assert f() == 1')
    assert list(rhythm.faults([good])) == [] and rhythm.exports([good, room]) == 3 + 4
    assert {kind for path in (room, experiment) for kind, _ in rhythm.faults([path])} == set(ALLOWED)

@pytest.mark.slow
def test_documentation_can_be_made():
    """nbdev's documentation step passes: it runs exported cells and every cell that holds an import. All in one
    process, so that libraries are imported once, and nbdev's settings read once, not for each cell. Each notebook's
    shell has the garbage collected when the process ends: what is frozen need not be looked at by each."""
    code = '''
import contextlib, functools, gc, io, sys, warnings
warnings.simplefilter('ignore')
from nbdev import processors
from nbdev.process import NBProcessor
from nbdev.processors import FilterDefaults
processors.get_config = functools.cache(processors.get_config)
for path in sys.argv[1:]:
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()): NBProcessor(path, FilterDefaults().procs(), rm_directives=False).process()
    except Exception as e: print(f'{path}: {e}')
gc.freeze()'''
    assert run(sys.executable, '-c', code, *map(str, sorted(NOTEBOOKS)), cwd=ROOT, PYTHONPATH=str(ROOT)) == ''

# Names that callers outside rely on: module -> name -> arguments that are given by name
PUBLIC = {
    'core.records': {'Example': 'id source target reference question history truth group variant level meta',
                     'Judgement': 'example_id evaluator value parts evidence usage absence', 'Absence': ''},
    'llm.chat': {'Chat': 'model base_url api_key concurrency cache mode',
                 'Reply': 'text data finish_reason usage cached absence'},
    'llm.replies': {'likert': 'text metrics low high step', 'verdict': 'text options',
                    'items': 'text', 'issues': 'text'},
    'evaluators.base': {'evaluate': '', 'EVALUATORS': ''},
    'evaluators.overlap': {'rouge': 'target source stem'},
    'perturb.quality': {'manipulate': 'text kind seed intensity scope density granularity donors continuation doc',
                        'MANIPULATIONS': ''},
    'perturb.order': {'shuffle_degree': 'order', 'inversions': 'order', 'permutation': 'n k rng method'},
    'validity.detection': {'auc': 'pos neg', 'auc_ci': 'pos neg method groups',
                           'auc_test': 'pos_a neg_a pos_b neg_b groups'},
    'validity.paired': {'paired_t': 'd alternative groups', 'mcnemar': 'b c', 'permutation_test': 'd groups',
                        'noninferiority': 'd margin method level groups', 'power': 'effect n'},
    'validity.association': {'pearson': 'x y groups per_group', 'spearman': 'x y groups per_group',
                             'kendall': 'x y groups per_group', 'partial': 'x y control',
                             'correlation_test': 'x1 x2 y groups method'},
    'validity.agreement': {'alpha': 'table level', 'kappa': 'a b weights', 'claim_overlap': 'a b match'},
    'benchmarks': {'BENCHMARKS': '', 'load': 'name_or_path split n seed'},
    'apps.annotate': {'FORMS': '', 'Store': 'path', 'serve': 'form data store annotators host port seed',
                      'show': 'form data store', 'assign': 'items annotators shared quotas seed',
                      'overview': 'store', 'import_preferences': 'store'},
}

@pytest.mark.parametrize('module, name', [(m, n) for m, names in PUBLIC.items() for n in names])
def test_public_names(module, name):
    "Each is where it is promised to be, and takes what it is promised to take."
    thing, arguments = getattr(import_module(f'factlib.{module}'), name), PUBLIC[module][name].split()
    if arguments: assert set(arguments) <= set(inspect.signature(thing).parameters)

def test_what_public_names_hold():
    "Results, samples and registries have the promised parts."
    from dataclasses import fields
    from factlib.benchmarks.base import Benchmark
    from factlib.core.records import Absence, Example
    from factlib.perturb.base import MANIPULATIONS, Manipulated
    from factlib.validity.base import Result
    names = lambda kind: {f.name for f in fields(kind)}
    assert {'estimate', 'statistic', 'p', 'ci', 'n', 'df', 'definition'} <= names(Result)
    assert {'text', 'edits', 'refused'} <= names(Manipulated) and callable(Manipulated.revert)
    assert {'name', 'examples', 'truth_kind', 'card'} <= names(Benchmark) and callable(Example.from_dict)
    assert callable(Example.to_dict)
    assert {'malformed', 'truncated', 'refused', 'looped', 'filtered',
            'off_menu', 'count_mismatch', 'too_long', 'inapplicable', 'transport'} == {a.value for a in Absence}
    assert set(MANIPULATIONS) == {'11', '12', '13', '14', '17', '21',
                                  '22', '24', '31', '32', '41', '42', '43', '44', '45'}

def test_importing_is_light():
    "No module of factlib imports a heavy package before it is needed."
    heavy = ['pandas', 'matplotlib', 'seaborn', 'statsmodels', 'scipy.stats',
             'spacy', 'openai', 'nbconvert', 'papermill', 'IPython', 'sklearn',
             'torch', 'pyarrow', 'aiohttp', 'jsonschema', 'jinja2', 'xllamacpp', 'gguf', 'lemminflect']
    code = (f'import importlib, sys\nfor n in {NAMES!r}: importlib.import_module(n)\nprint('
            f'[h for h in {heavy!r} if h in sys.modules])')
    assert run(sys.executable, '-c', code, cwd=ROOT) == '[]\n'

def test_overlap_brings_little_along():
    "ROUGE needs no chat and no data: importing it loads at most ten modules of factlib's."
    code = ("import sys, factlib.evaluators.overlap\n"
            "print(*sorted(m for m in sys.modules if m.split('.')[0] == 'factlib'))")
    loaded = run(sys.executable, '-c', code, cwd=ROOT).split()
    assert 'factlib.evaluators.overlap' in loaded and len(loaded) <= 10, loaded

@pytest.mark.slow
def test_wheel_in_an_empty_environment(tmp_path):
    """The wheel, built from a clean copy and installed unpinned outside the checkout, imports every module and finds
    its data; the sdist builds the same."""
    there = copy(tmp_path/'source')
    run('uv', 'build', '--quiet', '--out-dir', str(tmp_path/'dist'), cwd=there) # sdist, and the wheel from the sdist
    wheel, = (tmp_path/'dist').glob('*.whl')
    run('uv', 'venv', '--quiet', '--python', sys.executable, str(tmp_path/'venv'), cwd=tmp_path)
    python = str(tmp_path/'venv'/'bin'/'python')
    run('uv', 'pip', 'install', '--quiet', '--python', python, str(wheel), cwd=tmp_path)
    names = NAMES
    code = f'''
import importlib, pkgutil, factlib
for n in {names!r}: importlib.import_module(n)
found = sorted(m.name for m in pkgutil.walk_packages(factlib.__path__, 'factlib.') if not m.name.endswith('._modidx'))
assert set(found) <= set({names!r}), found # nothing from a stale build
from factlib.core.files import shipped
from factlib.report.published import published
assert len(published('judgememo')['5.1'].cells) == 30 and (shipped('experiments')/'quick_sweep.ipynb').is_file()
assert 'site-packages' in factlib.__file__
print(len(found))'''
    assert int(run(python, '-c', code, cwd=tmp_path, PYTHONPATH='')) >= len(names) - 1
    assert 'reproduce' in run(str(tmp_path/'venv'/'bin'/'factlib'), '--help', cwd=tmp_path, PYTHONPATH='')

@pytest.mark.parametrize('name', ['requirements.lock', 'tests/weights.txt'])
def test_every_file_that_make_installs_has_a_hash(name):
    "Each line with a version goes on with hashes, and no package is taken by another way."
    whole = (ROOT/name).read_text().replace('\\\n', ' ')
    lines = [line for line in whole.split('\n') if line and not line.lstrip().startswith('#')]
    assert lines and all(re.match(r'[\w.\[\],-]+==\S+ ', line) and ' --hash=sha256:' in line for line in lines)
    script = (ROOT/'tests'/'make_venv.sh').read_text()
    installs = [line for line in script.split('\n') if re.match(r'\s*(\$install|with_pip|with_uv) ', line)]
    assert len(installs) == 5 and all('--require-hashes' in line or line.endswith('-e .') for line in installs)
    assert '--generate-hashes' in (ROOT/'Makefile').read_text()
