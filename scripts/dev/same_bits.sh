#!/usr/bin/env bash
# same_bits.sh [BIN_DIR] > LIST: prints the weights_hash of a fixed list of short training runs.
# Two builds compute the same bits when `diff` finds their lists equal. Compare on one machine: the
# bits depend on the CPU and on the number of threads.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"

root=$PWD
bin=$(path_of "${1:-$root/build/bin}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMP_WAIT_POLICY=passive

# run NAME COMMAND...: prints NAME and the hash, or how the run ended
run() {
  local name=$1 code=0
  shift
  "$@" --output-dir "$work" --name "$name" --threads-per-rank 1 >"$work/log" 2>&1 || code=$?
  if ((code == 0)); then
    printf '%s %s\n' "$name" "$(result "$work/$name" weights_hash)"
  else
    printf '%s exit %d: %s\n' "$name" "$code" "$(tail -n 1 "$work/log")"
  fi
}

# ten JPEGs in two classes
for i in 1 2 3 4 5; do
  for split in train val; do
    for class in a b; do mkdir -p "$work/images/$split/$class"; done
    cp "$root/tests/data/image/colour.jpg" "$work/images/$split/a/$i.jpg"
    cp "$root/tests/data/image/progressive.jpg" "$work/images/$split/b/$i.jpg"
  done
done

train=("$bin/train" --max-steps 3 --density 0.01 --density-warmup "" --batch-size 4 --precision f32
  --lr 0.1 --warmup-epochs 0)
images=(--model resnet18 --dataset imagefolder --data-dir "$work/images" --image-size 64
  --batch-size 1 --max-steps 2)
few=(--max-steps 2 --batch-size 2)

mapfile -t sparsifiers < <("$bin/train" --describe | python3 -c 'import json, sys
print(*(name for option in json.load(sys.stdin)["options"] if option["name"] == "sparsifier"
        for name in option["suggestions"]), sep="\n")')
((${#sparsifiers[@]} >= 10)) || { echo "same_bits.sh: no sparsifiers found" >&2; exit 1; }

for sparsifier in "${sparsifiers[@]}"; do
  for ranks in 1 3 4; do
    run "lenet-$sparsifier-p$ranks" "${train[@]}" --model lenet --sparsifier "$sparsifier" \
      --workers "$ranks"
    run "resnet20-$sparsifier-p$ranks" "${train[@]}" --model resnet20 "${few[@]}" \
      --sparsifier "$sparsifier" --workers "$ranks"
    run "resnet18-jpeg-$sparsifier-p$ranks" "${train[@]}" "${images[@]}" \
      --sparsifier "$sparsifier" --workers "$ranks"
  done
  run "bf16-$sparsifier" "${train[@]}" --model lenet --sparsifier "$sparsifier" --workers 3 \
    --precision bf16
done

lenet=("${train[@]}" --model lenet --workers 3)
resnet=("${train[@]}" --model resnet20 "${few[@]}" --workers 3)
for collective in ring linear_pipeline binomial_tree recursive_halving; do
  run "collective-$collective" "${lenet[@]}" --sparsifier dense --allreduce "$collective"
done
for sparsifier in dense topk gaussiank gtopk dgc; do
  scope=(--scope layer --bucket-mib 0.05)
  run "layer-$sparsifier" "${lenet[@]}" --sparsifier "$sparsifier" "${scope[@]}"
  run "overlap-$sparsifier" "${lenet[@]}" --sparsifier "$sparsifier" "${scope[@]}" --overlap
done
for sparsifier in topk gtopk oktopk; do
  run "corrected-$sparsifier" "${lenet[@]}" --sparsifier "$sparsifier" --momentum-correction on
done
run "gtopk-conserving" "${lenet[@]}" --sparsifier gtopk --set gtopk.put_back=conserve \
  --set gtopk.rotate=true
run "gaussiank-histogram" "${lenet[@]}" --sparsifier gaussiank --set gaussiank.refine=histogram
run "randk-shared" "${lenet[@]}" --sparsifier randk --set randk.seed=shared
run "no-error-feedback" "${lenet[@]}" --sparsifier topk --no-error-feedback
run "residual-decay" "${lenet[@]}" --sparsifier topk --residual-decay 0.9
run "local-steps" "${lenet[@]}" --sparsifier topk --local-steps 2
run "local-steps-outer" "${lenet[@]}" --local-steps 2 --outer-lr 0.7 --outer-momentum 0.9
run "accumulate" "${lenet[@]}" --sparsifier topk --accumulate 3
run "nesterov" "${lenet[@]}" --sparsifier gtopk --nesterov
run "decay-all" "${lenet[@]}" --sparsifier topk --decay-all
run "recompute" "${resnet[@]}" --sparsifier topk --recompute blocks
run "not-recompute" "${resnet[@]}" --sparsifier topk
run "link" "${lenet[@]}" --sparsifier gtopk --link 1Gbit,0.01ms
run "vgg16" "${train[@]}" "${few[@]}" --model vgg16 --sparsifier topk --workers 2
for precision in f32 bf16; do
  run "precision-$precision" "${resnet[@]}" --sparsifier gaussiank --precision "$precision"
done
run "resumed" "${lenet[@]}" --sparsifier topk --max-steps 2 --checkpoint-steps 1
run "resumed" "${lenet[@]}" --sparsifier topk --max-steps 4 --resume auto
run "not-resumed" "${lenet[@]}" --sparsifier topk --max-steps 4
if command -v mpirun >/dev/null; then
  run "mpirun-collective-vendor" mpirun -n 3 "${train[@]}" --model lenet --sparsifier dense \
    --allreduce vendor
  for sparsifier in "${sparsifiers[@]}"; do
    run "mpirun-$sparsifier" mpirun -n 3 "${train[@]}" --model lenet --sparsifier "$sparsifier"
  done
fi
