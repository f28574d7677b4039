#!/usr/bin/env bash
# compare_selections.py: equal runs agree, other selections do not, and bad input is one line.
# compare_authors.py: the same of its arguments.
set -euo pipefail
train=${TW_BUILD:-build}/bin/train
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
export THINWIRE_CACHE=$TW_BUILD/test-data

step() {  # step NAME OPTION...: one step, and its checkpoint
  "$train" --model mlp --workers 2 --max-steps 1 --eval-every never \
    --output-dir "$work" --name "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}
step one --sparsifier topk
step same --sparsifier topk
step more --sparsifier topk --density-warmup 0.03
one=$(echo "$work"/one/checkpoints/step-*)

scripts/dev/compare_selections.py "$one" "$work"/same/checkpoints/step-* >"$work/said"
grep -q '^rank-1: [1-9][0-9]* and' "$work/said" || { cat "$work/said"; exit 1; }
code=0
scripts/dev/compare_selections.py "$one" "$work"/more/checkpoints/step-* >"$work/said" || code=$?
[[ $code == 1 ]] || { echo "exit code $code for other selections"; cat "$work/said"; exit 1; }
compare=scripts/dev/compare_selections.py
refuses "usage:" "$compare" "$one"
refuses "$work/none has no rank-" "$compare" "$one" "$work/none"
cp -r "$one" "$work/cut"
rm "$work"/cut/rank-1.*
refuses "different numbers of ranks" "$compare" "$one" "$work/cut"
cp "$one"/rank-1.* "$work/cut"
truncate -s -1000 "$work"/cut/rank-1.*
refuses "the residual is cut off" "$compare" "$one" "$work/cut"
cp "$one/model.safetensors" "$work/cut/rank-1.safetensors"
refuses "no safetensors file with a residual" "$compare" "$one" "$work/cut"
echo x >"$work/cut/rank-1.safetensors"
refuses "no safetensors file with a residual" "$compare" "$one" "$work/cut"
refuses "compare_authors.py: " scripts/dev/compare_authors.py "$work/none"
