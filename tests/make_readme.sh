# README.md is nbs/index.ipynb as Markdown, with links that count from the top level. Where to write is the first argument.
set -eu
jupyter nbconvert --log-level WARN --to markdown --stdout nbs/index.ipynb | sed 's#](\.\./#](#g' > "$1"
