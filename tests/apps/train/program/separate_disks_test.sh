#!/usr/bin/env bash
# Ranks on two machines without a common disk: checkpoints, resumes and validations have the bits of
# threads on one machine, and a file that one machine lacks is named before the first step. Machine
# 2 is a mount namespace with an empty disk over the output folder; `ssh` enters it.
# shellcheck source=scripts/lib/common.sh
. scripts/lib/common.sh
build=$(realpath "${TW_BUILD:-build}")
grep -q TW_WITH_MPI "$build/compile_commands.json" || skip "built without MPI"
[[ $(mpirun --version 2>&1) == *HYDRA* ]] || skip "mpirun is not that of MPICH"
[[ $(id -u) == 0 ]] || skip "mount namespaces need root"
work=$(mktemp -d)
runs=$work/runs
clean() {
  [[ -z ${machine:-} ]] || kill "$machine" 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT
mkdir "$runs"
unshare -m --uts sh -c "hostname machine2 && mount -t tmpfs none $runs && touch $work/up &&
  exec sleep 600" 2>"$work/log" &
machine=$!
for _ in $(seq 100); do
  [[ ! -e $work/up ]] && kill -0 "$machine" 2>/dev/null && sleep 0.1
done
[[ -e $work/up ]] || skip "this kernel cannot create mount namespaces here"
# called as ssh [-o OPTION]... MACHINE COMMAND, and by mpirun as ssh -x MACHINE COMMAND
cat >"$work/ssh" <<SSH
#!/bin/bash
while [[ \$1 == -* ]]; do [[ \$1 == -o ]] && shift; shift; done
host=\$1 && shift
cd "$PWD"
[[ \$host == 127.0.0.2 ]] && exec nsenter -t $machine -m -u sh -c "cd '$PWD' && \$*"
exec sh -c "\$*"
SSH
chmod +x "$work/ssh"

options=(--model mlp --dataset shapes --batch-size 8 --epochs 1 --threads-per-rank 1
  --output-dir "$runs" --val-size 64 --keep-checkpoints 9)
fresh=(--sparsifier topk --checkpoint-steps 2 --save-gradients 2)
expect() {
  local code=$1 got=0
  shift
  "$@" >"$work/log" 2>&1 || got=$?
  [[ $got == "$code" ]] || { echo "exit code $got of: $*" && cat "$work/log" && exit 1; }
}
says() { grep -q -- "$1" "$work/log" || { echo "missing: $1" && cat "$work/log" && exit 1; }; }
threads() { expect 0 "$build/bin/train" "${options[@]}" "$@"; }
machines() {
  local code=$1 ranks=$2
  shift 2
  expect "$code" env HYDRA_LAUNCHER_EXEC="$work/ssh" BIN="$build/bin" \
    scripts/examples/two_machines.sh 127.0.0.1,127.0.0.2 "$ranks" "${options[@]}" "$@"
}
same() {
  for run in "$@"; do
    same_weights "$runs/$run" "$runs/$1" || { echo "other bits: $run than $1" && exit 1; }
  done
}

threads --workers 4 --name one "${fresh[@]}" --max-steps 4
machines 0 4 --name two "${fresh[@]}" --max-steps 4
says "rank 0 writes the checkpoints for rank 2, 3"
same one two
[[ $("$work/ssh" 127.0.0.2 ls -A "$runs") == "" ]] || { echo "files on machine 2" && exit 1; }
[[ $(ls "$runs"/two/checkpoints) == $(ls "$runs"/one/checkpoints) ]]
for file in "$runs"/one/checkpoints/*/rank-* "$runs"/one/gradients/step-0000000[24]-rank-[0-3].*; do
  cmp "$file" "${file/one/two}" || { echo "$file differs" && exit 1; }
done
# the files that pass through rank 0 count in no step
for run in one two; do grep '"bytes_sent"' "$runs/$run/summary.json" >"$work/bytes-$run"; done
cmp "$work/bytes-one" "$work/bytes-two"

# each kind of folder goes on each kind of machines, on as many ranks and on others
cp -r "$runs/one" "$runs/one-on-machines" && cp -r "$runs/two" "$runs/two-on-threads"
threads --workers 4 --resume "$runs/one" --max-steps 6
machines 0 4 --resume "$runs/two" --max-steps 6
machines 0 4 --workers 0 --resume "$runs/one-on-machines" --max-steps 6
threads --workers 4 --resume "$runs/two-on-threads" --max-steps 6
same one two one-on-machines two-on-threads
threads --workers 3 --resume "$runs/one" --max-steps 8
machines 0 3 --resume "$runs/two" --max-steps 8
same one two
threads --workers 3 --resume "$runs/one" --eval-only
top1=$(grep -o 'top-1 0[.0-9]*' "$work/log")
machines 0 3 --resume "$runs/two" --eval-only
says "$top1"

# a damaged part of a rank that does not see it
printf x >>"$runs/two/checkpoints/step-00000008/rank-2.safetensors"
machines 2 3 --resume "$runs/two" --max-steps 9
says "two/checkpoints/step-00000008/rank-2.safetensors"

# what one machine lacks, or has otherwise, is named with the machine
cp "$runs/one/checkpoints/step-00000008/model.safetensors" "$runs/weights"
machines 2 2 --name fine --pretrained "$runs/weights" --max-steps 1
says "$runs/weights does not exist (rank 1 on machine2)"
"$work/ssh" 127.0.0.2 "cat >$runs/weights" <"$runs/one/checkpoints/step-00000002/model.safetensors"
machines 2 2 --name fine --pretrained "$runs/weights" --max-steps 1
says "checksum of the pretrained weights is .* on rank 1"
for folder in "$runs"/data/{train,val}/{a,b}; do
  mkdir -p "$folder" && cp tests/data/image/grayscale.jpg "$folder"
done
machines 2 2 --name fine --val-size 0 --dataset imagefolder --data-dir "$runs/data" \
  --max-steps 1
says "there is no folder $runs/data (rank 1 on machine2)"
[[ $(grep -c error: "$work/log") == 1 && ! -e $runs/fine ]] || { cat "$work/log" && exit 1; }
