#!/usr/bin/env bash
# Trains on several machines that mpirun of MPICH reaches by ssh without a password. The programs
# lie at the same path on all of them; the run folder of rank 0 holds the results.
#
#   scripts/examples/two_machines.sh node1,node2 4 --model resnet20 --sparsifier topk
#
# The first argument names the machines, the second the number of ranks; ranks are dealt in blocks,
# so that neighbours share a machine. IFACE names the network interface if there are several.
set -euo pipefail
if [[ $# -lt 2 || ! $2 =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: two_machines.sh MACHINE,MACHINE... RANKS [train options]" >&2
  exit 2
fi
machines=$1 ranks=$2
shift 2
count=$(tr ',' '\n' <<<"$machines" | wc -l)
exec "${MPIRUN:-mpirun}" -launcher ssh ${IFACE:+-iface "$IFACE"} -hosts "$machines" \
  -ppn $(((ranks + count - 1) / count)) -n "$ranks" "${BIN:-build/bin}/train" "$@"
