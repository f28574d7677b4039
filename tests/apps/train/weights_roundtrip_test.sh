#!/usr/bin/env bash
# Weights from torchvision and back; needs a Python with torchvision, named by THINWIRE_PYTHON.
set -euo pipefail
python=${THINWIRE_PYTHON:-python3}
"$python" -c 'import torchvision, safetensors, PIL' 2>/dev/null || {
  echo "skipped: $python has no torchvision, safetensors and Pillow (THINWIRE_PYTHON names another)"
  exit 77
}
"$python" "$TW_SOURCE/scripts/dev/check_weights.py" --train "$TW_BUILD/bin/train" resnet18 alexnet
