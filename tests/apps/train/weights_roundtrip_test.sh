#!/usr/bin/env bash
# Weights from torchvision and back; needs a Python with torchvision, named by THINWIRE_PYTHON.
set -euo pipefail
# shellcheck source=tests/support/programs/said.sh
. "$TW_SOURCE/tests/support/programs/said.sh"
needs_python "torchvision, safetensors, PIL"
"$python" "$TW_SOURCE/scripts/dev/check_weights.py" --train "$TW_BUILD/bin/train" resnet18 alexnet
