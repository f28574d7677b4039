#!/usr/bin/env bash
# Trains the CIFAR-10 runs of docs/results.md and prints their table.
# usage: cifar10.sh DATA_DIR [OUTPUT_DIR]     (over an hour on two cores)
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
data=${1:?usage: cifar10.sh DATA_DIR [OUTPUT_DIR]}
out=${2:-runs/cifar10}

# run NAME COMMAND...: runs it unless it is finished
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
conserving=(--set gtopk.put_back=conserve --set gtopk.rotate=true)
run p4-gtopk-conserving "${four[@]}" --sparsifier gtopk "${conserving[@]}"
run p4-exact "${four[@]}" --sparsifier exact
# momentum before the selection; twice the learning rate where all ranks together update k entries
run p4-redsync-corrected "${four[@]}" --sparsifier redsync --momentum-correction on
for sparsifier in gtopk oktopk; do
  run "p4-$sparsifier-corrected" "${four[@]}" --sparsifier "$sparsifier" \
    --momentum-correction on --lr 0.2 "${conserving[@]}"
done
run p4-dense-lr02 "${four[@]}" --sparsifier dense --lr 0.2
# in the papers, this variant does not train
run p4-randk-dropping "${four[@]}" --sparsifier randk --no-error-feedback

python3 scripts/results/table.py "$out"/p1-dense-{bf16,f32} "${sparsifiers[@]/#/$out/p4-}" \
  "$out"/p4-{gtopk-conserving,exact,{redsync,gtopk,oktopk}-corrected,dense-lr02,randk-dropping}
