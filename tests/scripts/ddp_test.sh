#!/usr/bin/env bash
# thinwire.ddp on processes of torch.distributed; needs a Python with PyTorch, named by
# THINWIRE_PYTHON.
set -euo pipefail
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
needs_python "torch.distributed"
if grep -q '^SANITIZE:[A-Z]*=.' "$TW_BUILD/CMakeCache.txt"; then
  echo "skipped: Python cannot load the library with the sanitizer"
  exit 77
fi
export PYTHONPATH=$TW_SOURCE/scripts/python THINWIRE_LIBRARY=$TW_BUILD/lib/libthinwire.so
"$python" tests/scripts/ddp_checks.py "$TW_BUILD/bin/train"

# the examples, on a text of a few words
for ((i = 0; i < 400; ++i)); do
  echo "in the beginning was line $((i * i % 97)) of a text, and the text was $((i % 13))."
done >"$work/text"
for example in lstm gpt; do
  "$python" "scripts/examples/pytorch/$example.py" "$work/text" --ranks 2 --steps 2 --batch 1 \
    --length 16 --methods topk,torch-powersgd,topk-local4 --csv "$work/$example.csv" \
    --record "$work/$example" >/dev/null
  (($(wc -l <"$work/$example.csv") == 4)) || { echo "$example:"; cat "$work/$example.csv"; exit 1; }
done
"$TW_BUILD/bin/analyze" compressors "$work"/gpt/step-00000002-rank-{0,1}.safetensors \
  --sparsifiers topk --iterations 1 >/dev/null

# one line for what they cannot use
echo "a few words" >"$work/short"
for arguments in none short "text --"{"methods foo","seeds x","ranks 0","link 1"}; do
  code=0
  # shellcheck disable=SC2086
  "$python" scripts/examples/pytorch/lstm.py "$work/"$arguments >"$work/log" 2>&1 || code=$?
  if ((code != 2)) || grep -q Traceback "$work/log"; then cat "$work/log" && exit 1; fi
done
