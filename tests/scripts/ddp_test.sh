#!/usr/bin/env bash
# thinwire.ddp on processes of torch.distributed; needs a Python with PyTorch, named by
# THINWIRE_PYTHON.
set -euo pipefail
python=${THINWIRE_PYTHON:-python3}
"$python" -c 'import torch.distributed' 2>/dev/null || {
  echo "skipped: $python has no PyTorch (THINWIRE_PYTHON names another)"
  exit 77
}
export PYTHONPATH=$TW_SOURCE/scripts/python THINWIRE_LIBRARY=$TW_BUILD/lib/libthinwire.so
"$python" tests/scripts/ddp_checks.py "$TW_BUILD/bin/train"
