#!/usr/bin/env bash
# quickstart.sh: installs missing packages, builds, trains ResNet-20 with GaussianK-SGD on four
# ranks on generated images, and draws the curves. Exit code 1 if the accuracy stays below 0.8.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

run=runs/quickstart
least_top1=0.8
train=(
  mpirun -n 4 build/bin/train --model resnet20 --sparsifier gaussiank --density 0.001
  --density-warmup "0.015625,0.004" --warmup-epochs 0 --bn-stats recompute
  --epochs "${QUICKSTART_EPOCHS:-6}" --name quickstart
)

scripts/install_deps.sh --no-tests

say "build"
scripts/build.sh release train

say "${train[*]}"
rm -rf "$run"
"${train[@]}"

# accuracy of the last validation
top1=$(sed -n 's/.*"val_top1": *\([0-9.eE+-]*\).*/\1/p' "$run/summary.json" | tail -n 1)
awk -v a="${top1:-0}" -v b="$least_top1" 'BEGIN { exit !(a >= b) }' ||
  die "val_top1 is ${top1:-missing in $run/summary.json}; expected at least $least_top1"
say "curves"
scripts/plot.py "$run" -o "$run/curve.png"

say "val_top1 $top1; tables, checkpoints and curve.png are in $run"
