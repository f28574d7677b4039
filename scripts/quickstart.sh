#!/usr/bin/env bash
# quickstart.sh: installs missing packages, builds, trains ResNet-20 on four ranks on generated
# images, with dense gradients and with GaussianK, and draws both. Exit code 1 if an accuracy stays
# below 0.8.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

runs=runs/quickstart least_top1=0.8
train=(
  mpirun -n 4 build/bin/train --model resnet20 --warmup-epochs 0 --bn-stats recompute
  --epochs "${QUICKSTART_EPOCHS:-6}" --output-dir "$runs"
)

scripts/install_deps.sh --no-tests

say "build"
scripts/build.sh release train

rm -rf "$runs"
# start NAME OPTION...: trains and checks the accuracy of the last validation
start() {
  local name=$1
  shift
  say "${train[*]} --name $name $*"
  "${train[@]}" --name "$name" "$@"
  [[ -n $(scripts/list_runs.py --where "val_top1>=$least_top1" "$runs/$name" | tail -n +2) ]] ||
    die "val_top1 of $runs/$name is below $least_top1"
}
start dense
start gaussiank --sparsifier gaussiank

say "compare"
scripts/compare.py "$runs"/{dense,gaussiank}
scripts/plot.py "$runs"/{dense,gaussiank} -o "$runs/curves.png"
echo "Six epochs are short for gaussiank: what it does not send waits in the residual. Smaller
messages save hardly any time on one machine; over slow links they do (docs/results.md)."
say "tables, checkpoints and curves.png are in $runs"
