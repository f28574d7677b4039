#!/usr/bin/env bash
# The Slurm example trains on the tasks that srun starts, with the bits of as many threads; tasks
# that MPI does not join end with one line. An emulated srun sets Slurm's variables.
set -euo pipefail
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
export SLURM_NTASKS=2
[[ $kind != pmi2 ]] || exec mpirun -n 2 "$@"
SLURM_PROCID=1 "$@" &
SLURM_PROCID=0 "$@"
code=$?
wait $! && exit $code
exit 2
SRUN
chmod +x "$work/bin/srun"
options=(--model lenet --dataset shapes --max-steps 5 --epochs 1 --output-dir "$work/runs")
hash_of() { grep -o '"weights_hash": "[0-9a-f]*"' "$work/runs/$1/summary.json"; }

"$build/bin/train" --workers 2 --threads-per-rank 1 --name threads "${options[@]}" >"$work/log"
PATH=$work/bin:$PATH BIN=$build/bin SLURM_CPUS_PER_TASK=1 \
  scripts/examples/slurm.sh --name slurm "${options[@]}" >"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}
[[ $(hash_of slurm) == "$(hash_of threads)" ]] || { echo "other bits than threads" && exit 1; }

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
if [[ $code != 2 || $(cat "$work/log") != "slurm.sh: there is no $work/train" ]]; then
  echo "expected exit code 2 and what is missing; got $code and:"
  cat "$work/log"
  exit 1
fi
