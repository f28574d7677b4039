#!/usr/bin/env bash
# Trains the runs of docs/results.md that want a GPU, and prints their tables: ResNet-20 to its full
# schedule and by the ten epochs that the CPU takes, in bf16; ResNet-20 and VGG-16 by the papers'
# settings, sixteen workers on one card.
# usage: results_gpu.sh DATA_DIR [OUTPUT_DIR [BINARIES]]      (what is there already goes on)
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
data=${1:?usage: results_gpu.sh DATA_DIR [OUTPUT_DIR [BINARIES]]}
out=${2:-runs/gpu}
bin=${3:-build/bin}

# run NAME OPTION...: skipped when it is finished
run() {
  local name=$1
  shift
  grep -qs '"stopped": false' "$out/$name/summary.json" && return
  "$bin/train" --device cuda --data-dir "$data" --output-dir "$out" --name "$name" --resume auto \
    --val-size 5000 "$@"
}

alone=(--config configs/resnet20-cifar10.json --batch-size 128 --precision bf16)
run p1-ten-epochs "${alone[@]}"
run p1-full "${alone[@]}" --epochs 200
python3 scripts/table.py "$out"/p1-{ten-epochs,full}

sparsifiers=(dense topk gaussiank gtopk dgc randk)
for model in resnet20 vgg16; do
  for sparsifier in "${sparsifiers[@]}"; do
    run "$model-$sparsifier" --config "configs/gaussiank-2019/$model-topk.json" \
      --sparsifier "$sparsifier"
  done
  python3 scripts/table.py "${sparsifiers[@]/#/$out/$model-}"
done
