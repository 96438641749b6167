"""Give a notebook the outputs of an executed copy: `python tests/keep_outputs.py EXECUTED NOTEBOOK`.

For chapters, which are run on a copy: where a number doesn't hold, the notebook keeps the outputs it had."""
import json
import sys
from pathlib import Path

def keep(executed, notebook):
    "Copy the outputs cell by cell; a cell that differs but for its parameters is an error."
    ran = {c['id']: c for c in json.loads(Path(executed).read_text(encoding='utf-8'))['cells']}
    kept = json.loads(Path(notebook).read_text(encoding='utf-8'))
    for cell in kept['cells']:
        if cell['cell_type'] != 'code': continue
        if cell['id'] not in ran or ''.join(ran[cell['id']]['source']) != ''.join(cell['source']):
            sys.exit(f'{executed} was made from another {cell["id"]}: run it again.')
        cell['outputs'], cell['execution_count'] = ran[cell['id']]['outputs'], ran[cell['id']]['execution_count']
    Path(notebook).write_text(json.dumps(kept, indent=1, ensure_ascii=False, sort_keys=True) + '\n', encoding='utf-8')

if __name__ == '__main__': keep(*sys.argv[1:3])
