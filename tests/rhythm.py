"""What a reader stumbles over, counted: `python tests/rhythm.py [FOLDER OR NOTEBOOK ...]` lists it, `--counts` only
counts, `--long` names export cells that may hold two ideas.

An export cell holds one whole idea (a class stands whole in one cell); behind one with a public name stands an example
of what a user may call; a line has at most 120 characters (in experiments 100); nobody imports another room's `_name`;
experiments and the book's chapters define nothing, and their cells have at most 1,500 characters. In the library
lengths find candidates and are not passed. The house test holds the counts below allowances."""
import ast
import json
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE, EXPERIMENT_LINE, EXPERIMENT_CELL, LONG = 120, 100, 1500, 120

def code_cells(path):
    "(id, source, is exported) of the code cells of a notebook."
    for cell in json.loads(path.read_text(encoding='utf-8'))['cells']:
        source = ''.join(cell['source'])
        if cell['cell_type'] == 'code': yield cell['id'], source, bool(re.match(r'#\|\s*export', source))

def parsed(source):
    "The syntax tree; magics are left out, and a cell that is none is empty."
    try:
        return ast.parse('\n'.join('' if line.lstrip().startswith(('%', '!')) else line for line in source.split('\n')))
    except SyntaxError: return ast.Module([], [])

def only_imports(tree): return bool(tree.body) and all(isinstance(x, (ast.Import, ast.ImportFrom)) for x in tree.body)

def is_public(tree):
    "Does a cell define something that a user may call?"
    return any(not name.startswith('_') for node in tree.body for name in [getattr(node, 'name', '_')])

def is_patch(function):
    return any(getattr(d, 'id', getattr(getattr(d, 'func', None), 'id', '')) in ('patch', 'patch_to')
               for d in function.decorator_list)

def private_imports(tree, room):
    "Names with a leading underscore that come from another room of factlib."
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not (node.module or '').startswith('factlib') or node.module == room:
            continue
        for alias in node.names:
            if alias.name.startswith('_') and not alias.name.startswith('__'): yield f'{node.module}.{alias.name}'

def library_faults(path):
    "(kind, where) of one library notebook."
    room, waiting = '', None
    for id, source, exported in code_cells(path):
        tree, where = parsed(source), f'{path.relative_to(ROOT/"nbs")} {id}'
        if m := re.search(r'#\|\s*default_exp (\S+)', source): room = f'factlib.{m[1]}'
        for line in source.split('\n'):
            if len(line) > LINE: yield 'long line', f'{where}: {len(line)} characters'
        for name in private_imports(tree, room): yield 'private import', f'{where}: {name}'
        if not exported:
            if not only_imports(tree) and not source.startswith('#| default_exp'): waiting = None
            continue
        if only_imports(tree): continue
        if waiting: yield 'no example', waiting
        waiting = where if is_public(tree) else None
        yield from structure_faults(tree, where)
    if waiting: yield 'no example', waiting

def structure_faults(tree, where):
    "Methods made outside their class, where neither an editor nor a type checker sees them."
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if is_patch(node): yield 'patch', f'{where}: {node.name}'
            elif node.args.args and node.args.args[0].arg == 'self': yield 'stray self', f'{where}: {node.name}'
        targets = [t for top in getattr(node, 'targets', []) for t in ast.walk(top)
                   if isinstance(t, ast.Attribute)] if isinstance(node, ast.Assign) else []
        for target in targets:
            if isinstance(target.value, ast.Name) and target.value.id[:1].isupper():
                yield 'method by assignment', f'{where}: {target.value.id}.{target.attr}'

def experiment_faults(path):
    "(kind, where) of one experiment."
    for id, source, _ in code_cells(path):
        tree, where = parsed(source), f'{path.relative_to(ROOT/"nbs")} {id}'
        for line in source.split('\n'):
            if len(line) > EXPERIMENT_LINE: yield 'long line in an experiment', f'{where}: {len(line)} characters'
        if len(source) > EXPERIMENT_CELL: yield 'long cell in an experiment', f'{where}: {len(source)} characters'
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield 'definition in an experiment', f'{where}: {node.name}'
        for name in private_imports(tree, ''): yield 'private import', f'{where}: {name}'

def notebooks(paths=()):
    "All notebooks below these folders."
    files = [f for p in (paths or [ROOT/'nbs'])
             for f in ([Path(p)] if Path(p).suffix == '.ipynb' else sorted(Path(p).rglob('*.ipynb')))]
    return [f.resolve() for f in files if '.ipynb_checkpoints' not in f.parts and not f.name.startswith('.')]

def faults(paths=()):
    "All faults, as (kind, where)."
    for path in notebooks(paths):
        yield from (experiment_faults if path.parent.name in ('experiments', 'book') else library_faults)(path)

def long_cells(paths=()):
    "Export cells of more than `LONG` lines: candidates for a second look, no faults."
    for path in notebooks(paths):
        for id, source, exported in code_cells(path):
            lines = [line for line in source.split('\n') if line.strip() and not line.startswith('#|')]
            if exported and len(lines) > LONG: yield f'{path.relative_to(ROOT/"nbs")} {id}: {len(lines)} lines'

def exports(paths=()):
    "How many export cells hold more than imports."
    return sum(exported and not only_imports(parsed(source)) for path in notebooks(paths)
               for _, source, exported in code_cells(path))

if __name__ == '__main__':
    given = [a for a in sys.argv[1:] if not a.startswith('--')]
    if '--long' in sys.argv: sys.exit(print(*long_cells(given), sep='\n'))
    listed = list(faults(given))
    if '--counts' not in sys.argv: print(*(f'{kind}: {where}' for kind, where in listed), sep='\n')
    print(dict(Counter(kind for kind, _ in listed)), f'in {exports(given)} export cells')
