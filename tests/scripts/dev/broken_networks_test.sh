#!/usr/bin/env bash
# broken_networks.py: a run whose link goes down ends within the timeout, names a rank, and resumes.
# Skipped without root, network namespaces or mpirun.
set -euo pipefail
# shellcheck source=tests/support/programs/networks.sh
. tests/support/programs/networks.sh

code=0
scripts/dev/broken_networks.py --train "$bin/train" --timeout 4 "link down" >"$work/out" || code=$?
[[ $code != 77 ]] || exit 77
cat "$work/out"
[[ $code == 0 ]]
waited='rank [0-9] has waited 4 s for rank [0-9]; from step .*; resumed: 0'
grep -q "exit 1 .* ok .*$waited" "$work/out"
