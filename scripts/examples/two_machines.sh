#!/usr/bin/env bash
# Trains on several machines that mpirun of MPICH reaches by ssh without a password. Programs and
# data lie at the same paths on all of them. The run folder lies on the machine of rank 0, the first
# one, and holds the results. A machine that dies ends the run; `thinwire run --hosts` does better.
#
#   scripts/examples/two_machines.sh node1,node2 4 --model resnet20 --sparsifier topk
#
# The first argument names the machines, the second the number of ranks; ranks are dealt in blocks,
# so that neighbours share a machine. IFACE names the network interface if there are several, BIN
# the folder of the programs (default: build/bin of this source tree if it is there, else the
# command thinwire). With --dry-run as the first word it only prints its command, and the plan.
set -euo pipefail
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '/^# /s/^# //p; /^#$/s/#//p; /^set/q' "$0"
  exit
fi
die() { echo "two_machines.sh: $*" >&2 && exit 2; }
dry=
[[ ${1:-} != --dry-run ]] || { dry=1 && shift; }
[[ $# -ge 2 && $2 =~ ^[1-9][0-9]*$ ]] ||
  die "expected [--dry-run] MACHINE,MACHINE... RANKS [train options]; --help tells more"
machines=$1 ranks=$2
shift 2
train=("$(realpath -m "${BIN:-$(dirname "$0")/../../build/bin}")/train")
[[ -n ${BIN:-} || -x ${train[0]} ]] || train=(thinwire train)
command -v "${train[0]}" >/dev/null || die "${train[0]} is missing; BIN names the folder of train"
count=$(tr ',' '\n' <<<"$machines" | wc -l)
run=("${MPIRUN:-mpirun}" -launcher ssh ${IFACE:+-iface "$IFACE"} -hosts "$machines"
  -ppn $(((ranks + count - 1) / count)) -n "$ranks" "${train[@]}" "$@")
if [[ $dry ]]; then
  printf '%q ' "${run[@]}" && echo
  exec "${train[@]}" --dry-run --workers "$ranks" "$@"
fi
# without an answer, mpirun would wait for ever
for machine in ${machines//,/ }; do
  "${HYDRA_LAUNCHER_EXEC:-ssh}" -o BatchMode=yes -o ConnectTimeout=10 "$machine" true ||
    die "ssh $machine fails; it must work without a password"
done
exec "${run[@]}"
