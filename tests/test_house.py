"The house: floors, exports, README, imports, the wheel."
import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOORS = {'core': 1, 'llm': 2, 'validity': 2, 'perturb': 3, 'evaluators': 3, 'benchmarks': 4, 'report': 5, 'annotate': 6, 'sweep': 6, 'cli': 6}
MODULES = sorted(p for p in (ROOT/'factlib').rglob('*.py') if p.name != '_modidx.py')

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

def test_no_import_runs_upwards_or_sideways():
    assert len(MODULES) > 15
    wrong = [(str(p.relative_to(ROOT)), other) for p in MODULES for other in imported(p)
             if package(p) is not None and other != package(p) and FLOORS[other] >= FLOORS[package(p)]]
    assert not wrong

def test_the_floor_test_sees_what_it_should(tmp_path, monkeypatch):
    "The check above on a planted fault, for relative and for lazy imports."
    monkeypatch.setattr(sys.modules[__name__], 'ROOT', tmp_path)
    bad = tmp_path/'factlib'/'core'/'bad.py'
    bad.parent.mkdir(parents=True)
    bad.write_text('from ..llm.replies import likert\ndef f():\n    from factlib.report import page\n    import factlib.cli\n')
    assert package(bad) == 'core' and imported(bad) == {'llm', 'report', 'cli'}

def copy(to):
    "The files that git knows or would add, in a fresh folder."
    if not (ROOT/'.git').exists(): pytest.skip('not a git checkout, so there is no list of the project\'s files')
    files = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '-z'], cwd=ROOT, capture_output=True, text=True, check=True).stdout
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

def test_exports_and_notebooks_are_in_sync(tmp_path):
    "nbdev-export and nbdev-clean change nothing; if they would, run `make notebooks`."
    there = copy(tmp_path)
    for command in ('nbdev-export', 'nbdev-clean'): run(command, cwd=there)
    names = [str(p.relative_to(there)) for pattern in ('factlib/**/*.py', 'nbs/**/*.ipynb') for p in there.glob(pattern)]
    assert len(names) > 30 and not differences(there, ROOT, names)

def test_readme_is_the_index(tmp_path):
    "README.md comes from nbs/index.ipynb; if not, run `make notebooks`."
    there = copy(tmp_path)
    run('sh', 'tests/make_readme.sh', 'made.md', cwd=there)
    assert (there/'made.md').read_text(encoding='utf-8') == (ROOT/'README.md').read_text(encoding='utf-8')

def test_notebooks_are_as_agreed():
    "Cell ids by hand and unique, no star imports, no asyncio.run, tags only in experiments and directives only in the library, figures below 100 kB."
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
            if 'experiments' in path.parts: assert not source.startswith('#|'), where
            else: assert not c['metadata'].get('tags'), where
            for output in c['outputs']:
                for kind, data in output.get('data', {}).items():
                    if kind.startswith('image/'): assert len(''.join(data)) < 100_000*4/3, f'{where}: a figure of more than 100 kB'

def test_importing_is_light():
    "No module of factlib imports a heavy package before it is needed."
    names = ['.'.join(p.relative_to(ROOT).with_suffix('').parts).removesuffix('.__init__') for p in MODULES]
    heavy = ['pandas', 'matplotlib', 'seaborn', 'statsmodels', 'scipy.stats', 'spacy', 'openai', 'nbconvert', 'papermill', 'IPython', 'sklearn', 'torch', 'pyarrow', 'aiohttp', 'jsonschema', 'jinja2', 'xllamacpp', 'gguf', 'lemminflect']
    code = f'import importlib, sys\nfor n in {names!r}: importlib.import_module(n)\nprint([h for h in {heavy!r} if h in sys.modules])'
    assert run(sys.executable, '-c', code, cwd=ROOT).strip() == '[]'

def test_overlap_brings_little_along():
    "ROUGE needs no chat and no data: importing it loads at most ten modules of factlib's."
    code = "import sys, factlib.evaluators.overlap\nprint(*sorted(m for m in sys.modules if m.split('.')[0] == 'factlib'))"
    loaded = run(sys.executable, '-c', code, cwd=ROOT).split()
    assert 'factlib.evaluators.overlap' in loaded and len(loaded) <= 10, loaded

def test_wheel_in_an_empty_environment(tmp_path):
    "The wheel, built from a clean copy and installed unpinned outside the checkout, imports every module and finds its data; the sdist builds the same."
    there = copy(tmp_path/'source')
    run('uv', 'build', '--quiet', '--out-dir', str(tmp_path/'dist'), cwd=there) # sdist, and the wheel from the sdist
    wheel, = (tmp_path/'dist').glob('*.whl')
    run('uv', 'venv', '--quiet', '--python', sys.executable, str(tmp_path/'venv'), cwd=tmp_path)
    python = str(tmp_path/'venv'/'bin'/'python')
    run('uv', 'pip', 'install', '--quiet', '--python', python, str(wheel), cwd=tmp_path)
    names = ['.'.join(p.relative_to(ROOT).with_suffix('').parts).removesuffix('.__init__') for p in MODULES]
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
