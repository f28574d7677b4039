#!/usr/bin/env bash
# broken_networks.py: a run whose link goes down ends within the timeout, names a rank, and resumes.
# Skipped without root, network namespaces or mpirun.
set -euo pipefail
bin=${TW_BUILD:-build}/bin
export THINWIRE_CACHE=$PWD/${TW_BUILD:-build}/test-data
[[ ${TW_BUILD:-build} != /* ]] || THINWIRE_CACHE=$TW_BUILD/test-data
command -v ip mpirun >/dev/null || exit 77
mpirun --version 2>/dev/null | grep -q HYDRA || exit 77
build=${TW_BUILD:-build}
grep -q TW_WITH_MPI "$build/compile_commands.json" || { echo "built without MPI" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

code=0
scripts/dev/broken_networks.py --train "$bin/train" --timeout 4 "link down" >"$work/out" || code=$?
[[ $code != 77 ]] || exit 77
cat "$work/out"
[[ $code == 0 ]]
grep -q 'exit 1 .* ok .*rank [0-9] has waited 4 s for rank [0-9]; resumed: 0' "$work/out"
