#!/usr/bin/env bash
# scripts/dev/storm.py: a sample of faults changes nothing, and a planted defect is found, shrunk
# and repeated. TW_STORM_SECONDS=60 takes a sample of that many seconds.
set -euo pipefail
cd "${TW_SOURCE:?}"
# shellcheck source=tests/support/programs/faults.sh
. tests/support/programs/faults.sh

transports=threads
# storm.py knows how MPICH's launcher ends
if grep -q TW_WITH_MPI "$TW_BUILD/compile_commands.json" &&
  [[ $(mpirun --version 2>&1) == *HYDRA* ]]; then transports=threads,mpirun; fi
out=$(scripts/dev/storm.py --build "$TW_BUILD" --transports "$transports" --faults 1000 \
  --seconds "${TW_STORM_SECONDS:-6}" 2>&1) || fail 'a fault changes a run' "$out"
grep -q ' 0 failed$' <<<"$out" || fail 'the storm does not end with a summary' "$out"

# the planted defect: a resumed run loses the last row of metrics.csv
mkdir -p "$work/build/bin" "$work/build/tests"
cp "$TW_BUILD/tests/disk_faults.so" "$work/build/tests"
cat >"$work/build/bin/train" <<END
#!/bin/bash
"$TW_BUILD/bin/train" "\$@" || exit
[[ " \$* " != *" --resume "* ]] || sed -i '\$d' "\$4/a/metrics.csv"  # \$4: --output-dir
END
chmod +x "$work/build/bin/train"
case='topk/lenet/threads/2/1/cpu/kill.all@c60>auto'
out=$(scripts/dev/storm.py --build "$TW_BUILD" --case "$case" 2>&1) ||
  fail 'the case fails without the defect' "$out"
out=$(scripts/dev/storm.py --build "$work/build" --transports threads --faults 1 --jobs 1 \
  --seed 3 2>&1) &&
  fail 'a lost row is not found' "$out"
grep -q 'metrics.csv: has rows' <<<"$out" || fail 'the difference is not named' "$out"
small=$(sed -n "s/^  repeat: .*--case '\(.*\)'/\1/p" <<<"$out" | head -n 1)
[[ $small =~ ^dense/lenet/threads/1/1/cpu/[^/]*\>auto$ ]] || fail 'the case is not shrunk' "$out"
out=$(scripts/dev/storm.py --build "$work/build" --case "$small" 2>&1) &&
  fail 'the shrunk case does not fail' "$out"
exit 0
