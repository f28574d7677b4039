#!/usr/bin/env bash
# train in the CUDA emulator (tests/emulator): its losses are close to the CPU's, two runs have the
# same bits, and ranks that share the one GPU select as many entries as ranks on the CPU.
# shellcheck source=scripts/lib/common.sh
. scripts/lib/common.sh
# shellcheck source=tests/support/programs/emulated.sh
. tests/support/programs/emulated.sh
train=$emulated/train

# run NAME FLAG...: $steps steps; leaves the table of steps in $work/NAME
steps=3
run() {
  local name=$1
  shift
  "$train" --model lenet --dataset shapes --max-steps $steps --batch-size 8 --val-size 16 \
    --eval-every 0 --lr 0.001 --output-dir "$work" --name "$name" "$@" >"$work/$name.txt" 2>&1 ||
    { cat "$work/$name.txt"; exit 1; }
}
# column NAME COLUMN: its values
column() {
  awk -F, -v wanted="$2" 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }
    !(wanted in at) { exit 1 }
    { print $at[wanted] }' "$work/$1/steps.csv"
}
# close A B COLUMN BAR: two runs, step by step, relative to B
close() {
  paste <(column "$1" "$3") <(column "$2" "$3") | awk -v bar="$4" '
    { off = ($1 - $2) / $2; if (off < 0) off = -off; if (off > bar) bad = 1; print }
    END { exit bad || NR != 3 }' || { echo "$3 of $1 and $2 differ"; exit 1; }
}

run cpu --device cpu --precision f32
run gpu --device cuda --precision f32
close gpu cpu train_loss 1e-3
for name in bf16 again; do run "$name" --device cuda --precision bf16 --deterministic; done
same_weights "$work/bf16" "$work/again" || { echo "two runs, other bits"; exit 1; }
close bf16 cpu train_loss 5e-2

# gaussiank: a number of entries that depends on the gradient
for sparsifier in gaussiank gtopk; do
  for device in cpu cuda; do
    run "$sparsifier-$device" --device "$device" --precision f32 --workers 3 \
      --sparsifier "$sparsifier" --density 0.01
  done
  close "$sparsifier-cuda" "$sparsifier-cpu" train_loss 1e-3
  close "$sparsifier-cuda" "$sparsifier-cpu" nnz_over_k 0.05
done

# the same entries in the first step
steps=1
for sparsifier in topk randk; do
  for device in cpu cuda; do
    run "first-$sparsifier-$device" --device "$device" --precision f32 --workers 3 \
      --sparsifier "$sparsifier" --density 0.01
  done
  "$TW_SOURCE/scripts/dev/compare_selections.py" \
    "$work/first-$sparsifier-"{cpu,cuda}/checkpoints/step-00000001 >"$work/compared.txt" 2>&1 ||
    { cat "$work/compared.txt"; exit 1; }
done
if "$TW_SOURCE/scripts/dev/compare_selections.py" \
  "$work/first-"{topk,randk}-cpu/checkpoints/step-00000001 >"$work/compared.txt" 2>&1; then
  echo "compare_selections.py takes random entries for the largest"
  exit 1
fi
steps=3

# exchanges on a thread and a stream of their own, during backward: the same bits
layers=(--device cuda --precision f32 --deterministic --workers 3 --sparsifier dense --scope layer)
run in-turn "${layers[@]}"
run beside "${layers[@]}" --overlap
same_weights "$work/in-turn" "$work/beside" || { echo "overlap gives other bits"; exit 1; }

# ranks that were stopped between two steps continue with the bits of an uninterrupted run
ranks=(--device cuda --precision f32 --deterministic --workers 3 --sparsifier gaussiank
  --density 0.01 --resume auto)
steps=4
run whole "${ranks[@]}"
steps=2
run cut "${ranks[@]}"
cut=$(result "$work/cut" weights_hash)
[[ $cut && $cut != "$(result "$work/whole" weights_hash)" ]] ||
  { echo "two more steps change nothing"; exit 1; }
steps=4
run cut "${ranks[@]}"
same_weights "$work/whole" "$work/cut" || { echo "resumed ranks have other bits"; exit 1; }

# more than the card has: one line with the figures of plan and card. Deterministic
# convolutions run once, on rank 0, before the memory is planned; sixteen ranks keep them small.
code=0
"$train" --model vgg16 --dataset shapes --batch-size 200 --workers 16 --precision f32 \
  --device cuda --deterministic --output-dir "$work" --name large >"$work/large.txt" \
  2>"$work/error.txt" || code=$?
said=$(cat "$work/error.txt")
if [[ $code != 1 || $said == *$'\n'* ||
  ! $said =~ "rank "[0-9]+": no memory for ".*"; ".*"iB planned \
for each of 16 ranks; ".*" of 8589934592 free" ]]; then
  echo "out of memory: exit code $code, and: $said"
  exit 1
fi
