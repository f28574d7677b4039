#!/usr/bin/env bash
#SBATCH --job-name=thinwire
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=4
#SBATCH --time=12:00:00
#SBATCH --signal=TERM@120
# Trains on the tasks of a Slurm job: one rank for each task. Slurm sends SIGTERM two minutes before
# the time limit; the run then writes a checkpoint, and the same job submitted again continues it.
#
#   sbatch scripts/examples/slurm.sh --model resnet20 --sparsifier topk
#
# PMI names the protocol between srun and MPI: pmi2 for MPICH (default), pmix for Open MPI;
# `srun --mpi=list` shows those of this cluster. BIN is the folder of the programs (default:
# build/bin if it has them, else the command thinwire).
set -euo pipefail
if [[ -n ${BIN:-} || -x build/bin/train ]]; then
  train=("${BIN:-build/bin}/train")
else
  train=(thinwire train)
fi
for program in srun "${train[0]}"; do
  command -v "$program" >/dev/null || {
    echo "slurm.sh: there is no $program" >&2
    exit 2
  }
done
exec srun --mpi="${PMI:-pmi2}" "${train[@]}" \
  --threads-per-rank "${SLURM_CPUS_PER_TASK:-1}" --resume auto "$@"
