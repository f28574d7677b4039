#!/usr/bin/env bash
# thinwire.record() and `analyze compressors` on its files; needs a Python with PyTorch, named by
# THINWIRE_PYTHON.
set -euo pipefail
python=${THINWIRE_PYTHON:-python3}
"$python" -c 'import numpy, torch' 2>/dev/null || {
  echo "skipped: $python has no PyTorch (THINWIRE_PYTHON names another)"
  exit 77
}
export PYTHONPATH=$TW_SOURCE/scripts/python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" tests/scripts/record_checks.py "$TW_BUILD/bin/analyze" "$work"
