#!/usr/bin/env bash
# thinwire.record() and `analyze compressors` on its files; needs a Python with PyTorch, named by
# THINWIRE_PYTHON.
set -euo pipefail
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
needs_python "numpy, torch"
export PYTHONPATH=$TW_SOURCE/scripts/python
"$python" tests/scripts/record_checks.py "$TW_BUILD/bin/analyze" "$work"
