# For developers, after a notebook was edited: export the library, run every notebook and keep its outputs, make the README and its picture.
# Experiments say themselves what they need. Those that can't run here keep their outputs as they are. Bars are drawn as in JupyterLab (JPY_PARENT_PID): none where all is done at once.
set -eu
ran=$(mktemp -d) # executed copies: beside results they would change what the last cell says of the page
trap 'rm -rf "$ran"' EXIT
nbdev-export
JPY_PARENT_PID=1 nbdev-test nbs --save --n-workers 0 --skip-folder-re '^(experiments|book)$'
names=$(python - <<'END'
import sys
from factlib.llm.local import local_available
from factlib.runs.execute import MODEL, main_job, needs_of, why_not
for name, notebook in main_job().items():
    needs = [n for n in needs_of(notebook) if n != MODEL or not local_available()] # the embedded model will do
    if why := why_not(needs): print(f'not run: {name}. {why}', file=sys.stderr)
    else: print(name)
END
)
for name in $names; do
    papermill "nbs/experiments/$name.ipynb" "nbs/experiments/$name.ipynb" --cwd nbs/experiments --no-progress-bar >/dev/null
    echo "ran $name"
done
for chapter in nbs/book/*.ipynb; do # typed over recordings: without them the stored outputs stay
    name=$(basename "$chapter" .ipynb)
    if papermill "$chapter" "$ran/$name.ipynb" --cwd nbs/book --no-progress-bar >/dev/null 2>&1; then
        python tests/keep_outputs.py "$ran/$name.ipynb" "$chapter"
        echo "ran $name"
    else echo "not run, or a number doesn't hold: $name" >&2; fi
done
python - <<'END' # the picture of README is that of the first chapter
import base64, json
from pathlib import Path
cells = json.loads(Path('nbs/book/which_judge_for_long_texts.ipynb').read_text(encoding='utf-8'))['cells']
(png,) = [o['data']['image/png'] for c in cells if c['id'] == 'which-picture' for o in c['outputs'] if 'data' in o]
Path('outputs/gallery').mkdir(parents=True, exist_ok=True)
Path('outputs/gallery/which_judge.png').write_bytes(base64.b64decode(''.join(png)))
END
nbdev-clean
sh tests/make_readme.sh README.md
