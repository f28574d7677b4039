#!/usr/bin/env bash
#SBATCH --job-name=thinwire
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=4
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120
# Trains on the tasks of a Slurm job: one rank for each task. Two minutes before the time limit
# Slurm sends SIGUSR1 to this script: the run gets SIGTERM, writes a checkpoint and ends, and the
# job is queued again. Slurm does that itself after the failure of a node. Each start continues the
# run, as does the same job submitted again, also on another number of tasks (a single one needs
# --workers 1). scancel ends the run with a checkpoint.
#
#   sbatch scripts/examples/slurm.sh --model resnet20 --sparsifier topk
#
# Runs that differ in other options than model, sparsifier and seed need --name each.
# PMI names the protocol between srun and MPI (`srun --mpi=list`): pmi2 for MPICH, the default, pmix
# for Open MPI. BIN is the folder of the programs (default: build/bin in the folder of sbatch if it
# is there, else the command thinwire). With --dry-run as the first word it only prints the command
# of srun, and a plan for the tasks above, without Slurm.
set -euo pipefail
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '/^#SBATCH/p; /^# /s/^# //p; /^#$/s/#//p; /^set/q' "$0"
  exit
fi
die() { echo "slurm.sh: $*" >&2 && exit 2; }
train=("${BIN:-build/bin}/train")
[[ -n ${BIN:-} || -x ${train[0]} ]] || train=(thinwire train)
command -v "${train[0]}" >/dev/null || die "${train[0]} is missing; BIN names the folder of train"
tasks='' limit=''
if [[ ${1:-} == --dry-run ]]; then
  shift
  asked() { sed -n "s/^#SBATCH --$1=//p" "$0"; }
  : "${SLURM_CPUS_PER_TASK:=$(asked cpus-per-task)}"
  tasks=${SLURM_NTASKS:-$(($(asked nodes) * $(asked ntasks-per-node)))}
fi
run=(srun --mpi="${PMI:-pmi2}" "${train[@]}"
  --threads-per-rank "${SLURM_CPUS_PER_TASK:-1}" --resume auto "$@")
if [[ $tasks ]]; then
  printf '%q ' "${run[@]}" && echo
  exec "${run[@]:2}" --dry-run --workers "$tasks"
fi
command -v srun >/dev/null || die "srun is missing; --dry-run as the first word needs none"
trap 'limit=1; kill -TERM "$pid" || :' USR1
"${run[@]}" &
pid=$! code=0
wait "$pid" || code=$?
if [[ $limit ]]; then # the signal has ended only the wait
  code=0
  wait "$pid" || code=$?
  [[ $code != 3 ]] || scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
