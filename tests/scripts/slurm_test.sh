#!/usr/bin/env bash
# The Slurm example trains on the tasks that srun starts, with the bits of as many threads; tasks
# that MPI does not join end with one line. Before the time limit it queues the job again, and the
# next start goes on, on other tasks. An emulated srun sets Slurm's variables.
# shellcheck source=scripts/lib/common.sh
. scripts/lib/common.sh
build=${TW_BUILD:-build}
grep -q TW_WITH_MPI "$build/compile_commands.json" || { echo "built without MPI" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
# srun --mpi=KIND PROGRAM...: with pmi2, hydra serves the protocol; without, there is none
cat >"$work/bin/srun" <<'SRUN'
#!/usr/bin/env bash
kind=${1#--mpi=}
shift
export SLURM_NTASKS=${TASKS:-2}
[[ $kind != pmi2 ]] || exec mpirun -n "$SLURM_NTASKS" "$@"
SLURM_PROCID=1 "$@" &
SLURM_PROCID=0 "$@"
code=$?
wait $! && exit $code
exit 2
SRUN
printf '#!/bin/sh\necho "$*" >>%s\n' "$work/scontrol" >"$work/bin/scontrol"
chmod +x "$work/bin/srun" "$work/bin/scontrol"
scripts/examples/slurm.sh --help | grep -q 'sbatch scripts/examples/slurm.sh' # without srun
tasks=5 BIN=$build/bin scripts/examples/slurm.sh --dry-run --model lenet >"$work/log"
grep -qxF "srun --mpi=pmi2 $build/bin/train --threads-per-rank 4 --resume auto --model lenet " \
  "$work/log"
grep -q '^4 ranks x 4 threads' "$work/log"
options=(--model lenet --dataset shapes --max-steps 5 --epochs 1 --output-dir "$work/runs")

"$build/bin/train" --workers 2 --threads-per-rank 1 --name threads "${options[@]}" >"$work/log"
PATH=$work/bin:$PATH BIN=$build/bin SLURM_CPUS_PER_TASK=1 \
  scripts/examples/slurm.sh --name slurm "${options[@]}" >"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}
same_weights "$work"/runs/{slurm,threads} || { echo "other bits than threads" && exit 1; }

code=0
PATH=$work/bin:$PATH BIN=$build/bin PMI=none \
  scripts/examples/slurm.sh --name alone "${options[@]}" >"$work/log" 2>&1 || code=$?
if [[ $code != 2 || $(wc -l <"$work/log") != 1 ]] ||
  ! grep -q 'srun started 2 processes' "$work/log"; then
  echo "expected exit code 2 and one line; got $code and:"
  cat "$work/log"
  exit 1
fi
[[ ! -e $work/runs/alone ]]

code=0
PATH=$work/bin:$PATH BIN=$work scripts/examples/slurm.sh >"$work/log" 2>&1 || code=$?
if [[ $code != 2 || $(cat "$work/log") != "slurm.sh: $work/train is missing; BIN names "* ]]; then
  echo "expected exit code 2 and what is missing; got $code and:"
  cat "$work/log"
  exit 1
fi

newest() { compgen -G "$work/runs/mlp-dense-s1/checkpoints/step-*" | tail -n 1 || :; }
# signalled COMMAND...: starts the job, and COMMAND with its process when the run has its next
# checkpoint; $code is that of the job
job() {
  PATH=$work/bin:$PATH BIN=$build/bin SLURM_JOB_ID=17 SLURM_CPUS_PER_TASK=1 exec \
    scripts/examples/slurm.sh --model mlp --dataset shapes --epochs 100 --max-steps 600 \
    --checkpoint-steps 60 --eval-every never --output-dir "$work/runs" >>"$work/log" 2>&1
}
signalled() {
  local before
  before=$(newest)
  job &
  while [[ $(newest) == "$before" ]] && kill -0 $! 2>/dev/null; do sleep 0.01; done
  "$@" $!
  code=0
  wait $! || code=$?
}
cancel() { kill -TERM "$(pgrep -P "$1" -x 'mpirun|mpiexec.hydra')"; }  # to srun, as scancel

signalled kill -USR1
[[ $code == 3 && $(cat "$work/scontrol") == "requeue 17" ]] || {
  echo "after SIGUSR1: exit code $code, scontrol $(cat "$work/scontrol")" && cat "$work/log"
  exit 1
}
rm "$work/scontrol"
export TASKS=3
signalled cancel
[[ $code == 3 && ! -e $work/scontrol ]] || { echo "cancelled: exit code $code" && exit 1; }
(job) || { cat "$work/log" && exit 1; }
[[ $(grep -c 'resuming .*/mlp-dense-s1/checkpoints/step-' "$work/log") == 2 ]] || {
  echo "the job did not go on twice" && cat "$work/log" && exit 1
}
grep -q '"stopped": false' "$work/runs/mlp-dense-s1/summary.json"
