# For developers, after a notebook was edited: export the library, run every notebook and keep its outputs, make the README and its picture.
# Experiments that need real data are run where FACTLIB_DATA is set; elsewhere their outputs stay as they are.
set -eu
nbdev-export
nbdev-test nbs --save --n-workers 0 --skip-folder-re '^experiments$'
run() { papermill "nbs/experiments/$1.ipynb" "nbs/experiments/$1.ipynb" --no-progress-bar >/dev/null && echo "ran $1"; }
for name in quick_sweep judgememo_taxonomy screening; do run $name; done
python -c 'import sys; from factlib.llm.local import local_available; sys.exit(not local_available())' && run live_judge && run judgememo_live || echo 'live_judge needs the embedded model'
if [ -n "${FACTLIB_DATA:-}" ]; then
    for name in small_matrix montagelie what_the_recordings_say judgememo judgememo_ablations judgememo_matrix_analysis judgememo_intervals judgememo_prompts judgememo_rule_or_final_call judgememo_failure_gallery judgememo_dataset_statistics offline_against_recorded; do run $name; done
    mkdir -p outputs/gallery && cp outputs/judgememo/figures/noticed_2k.png outputs/gallery/
fi
nbdev-clean
sh tests/make_readme.sh README.md
