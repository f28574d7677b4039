#!/usr/bin/env bash
# gpu.sh DATA_DIR [OUTPUT_DIR [BINARIES]]: trains on a GPU and prints tables of the runs: ResNet-20
# in bf16 with its full schedule and with the ten epochs of the CPU runs in docs/results.md;
# ResNet-20 and VGG-16 with sixteen workers on one GPU and the recipes of GaussianK (gtopk with that
# of topk). Continues unfinished runs. Exit code 1 when ten epochs on the GPU and ten on the CPU end
# more than 1.5 points apart.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"

data=$(path_of "${1:?usage: gpu.sh DATA_DIR [OUTPUT_DIR [BINARIES]]}")
out=$(path_of "${2:-$PWD/runs/gpu}")
bin=$(path_of "${3:-$PWD/build/bin}")

# run NAME OPTION...: runs it unless it is finished
common=(--output-dir "$out" --resume auto --data-dir "$data")
run() { "$bin/train" "${common[@]}" --device "$device" --name "$1" "${@:2}"; }

alone=(--config configs/resnet20-cifar10.json --batch-size 128)
device=cuda
run p1-ten-epochs "${alone[@]}" --precision bf16
run p1-full "${alone[@]}" --precision bf16 --epochs 200
scripts/compare.py --markdown "$out"/p1-{ten-epochs,full}

sparsifiers=(dense topk gaussiank gtopk dgc randk)
for model in resnet20 vgg16; do
  for sparsifier in "${sparsifiers[@]}"; do
    recipe=configs/gaussiank-2019/$model-$sparsifier.json others=()
    if [[ ! -f $recipe ]]; then
      recipe=configs/gaussiank-2019/$model-topk.json others=(--sparsifier "$sparsifier")
    fi
    run "$model-$sparsifier" --config "$recipe" "${others[@]}" --workers 16
  done
  scripts/compare.py --markdown "${sparsifiers[@]/#/$out/$model-}"
  # fails without matplotlib; plot.py can draw the same folders on another machine
  python3 scripts/plot.py "${sparsifiers[@]/#/$out/$model-}" -o "$out/$model.png" || true
done

# last, because it takes minutes on the CPU
device=cpu apart=0
run p1-ten-epochs-cpu "${alone[@]}" --precision f32
awk -v gpu="$(result "$out/p1-ten-epochs" val_top1)" \
  -v cpu="$(result "$out/p1-ten-epochs-cpu" val_top1)" 'BEGIN {
  off = gpu > cpu ? gpu - cpu : cpu - gpu
  print "ten epochs, GPU and CPU: " 100 * off " points apart (at most 1.5)"; exit off > 0.015
}' || apart=1
exit "$apart"
