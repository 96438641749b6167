# For developers, after a notebook was edited: export the library, run every notebook and keep its outputs, make the README.
# Experiments that need real data are run where FACTLIB_DATA is set; elsewhere their outputs stay as they are.
set -eu
nbdev-export
nbdev-test nbs --save --n-workers 0 --skip-folder-re '^experiments$'
run() { papermill "$1" "$1" --cwd . --no-progress-bar >/dev/null && echo "$1"; }
run nbs/experiments/quick_sweep.ipynb
[ -z "${FACTLIB_DATA:-}" ] || run nbs/experiments/judgememo.ipynb
nbdev-clean
sh tests/make_readme.sh README.md
