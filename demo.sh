#!/usr/bin/env bash
# Sets up .venv without PyTorch and trains the demo's small text model; options go to `rushlight demo`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source .ci/environment.sh

prepare_environment ""
exec .venv/bin/rushlight demo "$@"
