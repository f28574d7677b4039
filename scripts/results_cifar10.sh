#!/usr/bin/env bash
# Trains the CIFAR-10 runs of docs/results.md and prints their table.
# usage: results_cifar10.sh DATA_DIR [OUTPUT_DIR]     (over an hour on two cores)
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
data=${1:?usage: results_cifar10.sh DATA_DIR [OUTPUT_DIR]}
out=${2:-runs/cifar10}

# run NAME COMMAND...: skipped when it is finished
run() {
  local name=$1
  shift
  grep -qs '"stopped": false' "$out/$name/summary.json" && return
  "$@" --data-dir "$data" --output-dir "$out" --name "$name" --resume auto
}

single=(build/bin/train --config configs/resnet20-cifar10.json --batch-size 128)
four=(mpirun -n 4 build/bin/train --config configs/resnet20-cifar10.json --batch-size 32)
run p1-dense-bf16 "${single[@]}" --precision bf16
run p1-dense-f32 "${single[@]}" --precision f32
sparsifiers=(dense topk gtopk gaussiank dgc trimmed redsync oktopk)
for sparsifier in "${sparsifiers[@]}"; do
  run "p4-$sparsifier" "${four[@]}" --sparsifier "$sparsifier"
done
run p4-gtopk-paper "${four[@]}" --sparsifier gtopk --set gtopk.put_back=paper
run p4-exact "${four[@]}" --sparsifier exact
run p4-dgc-gtopk "${four[@]}" --sparsifier dgc --exchange gtopk
# the papers' failing variant
run p4-randk-dropping "${four[@]}" --sparsifier randk --no-error-feedback

python3 scripts/table.py "$out"/p1-dense-{bf16,f32} "${sparsifiers[@]/#/$out/p4-}" \
  "$out"/p4-{gtopk-paper,exact,dgc-gtopk,randk-dropping}
