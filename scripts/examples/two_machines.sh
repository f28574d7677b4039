#!/usr/bin/env bash
# Trains on several machines that mpirun of MPICH reaches by ssh without a password. Programs and
# data lie at the same paths on all of them. The run folder lies on the machine of rank 0, the first
# one, and holds the results; the others need no part of it.
#
#   scripts/examples/two_machines.sh node1,node2 4 --model resnet20 --sparsifier topk
#
# The first argument names the machines, the second the number of ranks; ranks are dealt in blocks,
# so that neighbours share a machine. IFACE names the network interface if there are several, BIN
# the folder of the programs (default: build/bin if it has them, else the command thinwire). With
# --dry-run it prints the command of mpirun and the plan of the run; no machine is asked.
set -euo pipefail
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '/^# /s/^# //p; /^#$/s/#//p; /^set/q' "$0"
  exit
fi
if [[ $# -lt 2 || ! $2 =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: two_machines.sh MACHINE,MACHINE... RANKS [train options]; --help tells more" >&2
  exit 2
fi
machines=$1 ranks=$2
shift 2
train=("${BIN:-build/bin}/train")
[[ -n ${BIN:-} || -x ${train[0]} ]] || train=(thinwire train)
if ! command -v "${train[0]}" >/dev/null; then
  echo "two_machines.sh: ${train[0]} is missing; BIN names the folder of train" >&2
  exit 2
fi
count=$(tr ',' '\n' <<<"$machines" | wc -l)
run=("${MPIRUN:-mpirun}" -launcher ssh ${IFACE:+-iface "$IFACE"} -hosts "$machines"
  -ppn $(((ranks + count - 1) / count)) -n "$ranks" "${train[@]}" "$@")
if [[ " $* " == *" --dry-run "* ]]; then
  echo "${run[*]}"
  exec "${train[@]}" --workers "$ranks" "$@"
fi
# without an answer, mpirun would wait for ever
for machine in ${machines//,/ }; do
  "${HYDRA_LAUNCHER_EXEC:-ssh}" -o BatchMode=yes -o ConnectTimeout=10 "$machine" true || {
    echo "two_machines.sh: ssh $machine fails; it must work without a password" >&2
    exit 2
  }
done
exec "${run[@]}"
