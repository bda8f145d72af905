#!/usr/bin/env bash
# Runs every check: lint, types, bytecode, tests. Options and paths given here go to pytest (`./test.sh tests/cli -x`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source .ci/environment.sh

prepare_environment test,dev,torch
python=.venv/bin/python

# Every check runs, whatever became of the ones before it; the end says which failed.
failed=()
check() {
    local name=$1
    shift
    say "$name"
    "$@" || failed+=("$name")
}

# One thread for each worker's arithmetic: the workers already fill the cores. loadfile keeps a file in one worker.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-1}"
check ruff "$python" -m ruff check .
check mypy "$python" -m mypy
check compileall "$python" -m compileall -q src tests examples benchmarks
check pytest "$python" -m pytest -q -n auto --maxprocesses=8 --dist=loadfile "$@"

[ ${#failed[@]} -eq 0 ] || fail "failed: ${failed[*]}"
say "all checks passed"
