#!/usr/bin/env bash
# imagenet10.sh DATA_DIR [OUTPUT_DIR]: trains ResNet-18 on a small folder of JPEGs with dense,
# gaussiank and gtopk on 4 workers, prints the table of docs/results.md, and checks that a run that
# is killed within an epoch resumes to the same bits. Takes two hours on two cores.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"

data=$(path_of "${1:?usage: imagenet10.sh DATA_DIR [OUTPUT_DIR]}")
out=$(path_of "${2:-$PWD/runs/imagenet10}")

# run NAME OPTION...: runs it unless it is finished
run() {
  train_once build/bin/train "$out/$1" --config configs/resnet18-imagenet10.json \
    --data-dir "$data" "${@:2}"
}

hash_of() { result "$out/$1" weights_hash; }

for sparsifier in dense gaussiank gtopk; do
  run "$sparsifier" --sparsifier "$sparsifier"
done
run dense-bf16 --sparsifier dense --set allreduce.values=bf16

short=(--sparsifier gaussiank --max-steps 30 --checkpoint-steps 7)
run whole "${short[@]}"
if [[ ! -e $out/cut/summary.json ]]; then
  run cut "${short[@]}" &
  until [[ -e $out/cut/checkpoints/step-00000007 ]]; do sleep 1; done
  pkill -9 -P $! -x train || true
  wait || true
  [[ ! -e $out/cut/summary.json ]] || die "the run ended before it was killed"
fi
run cut "${short[@]}"
same_weights "$out/whole" "$out/cut" ||
  die "the killed and resumed run ends in $(hash_of cut), the other in $(hash_of whole)"
echo "killed within an epoch and resumed: $(hash_of cut), equal to the uninterrupted run"

scripts/compare.py --markdown "$out"/{dense,dense-bf16,gaussiank,gtopk}
