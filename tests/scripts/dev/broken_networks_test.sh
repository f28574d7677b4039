#!/usr/bin/env bash
# broken_networks.py: a run whose link goes down ends within the timeout, names a rank, and resumes.
# Skipped without root, network namespaces or mpirun.
set -euo pipefail
bin=$TW_BUILD/bin
export THINWIRE_CACHE=$TW_BUILD/test-data
skip() { echo "skipped: $1" && exit 77; }
command -v ip >/dev/null || skip "ip is missing (package iproute2)"
grep -q TW_WITH_MPI "$TW_BUILD/compile_commands.json" || skip "built without MPI"
[[ $(mpirun --version 2>/dev/null) == *HYDRA* ]] || skip "mpirun is not that of MPICH"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

code=0
scripts/dev/broken_networks.py --train "$bin/train" --timeout 4 "link down" >"$work/out" || code=$?
[[ $code != 77 ]] || exit 77
cat "$work/out"
[[ $code == 0 ]]
waited='rank [0-9] has waited 4 s for rank [0-9]; from step .*; resumed: 0'
grep -q "exit 1 .* ok .*$waited" "$work/out"
