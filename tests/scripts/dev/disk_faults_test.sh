#!/usr/bin/env bash
# scripts/dev/disk_faults.py: a sample of the faults of the disk loses nothing, and two planted
# defects are found.
set -euo pipefail
cd "${TW_SOURCE:?}"
# shellcheck source=tests/support/programs/faults.sh
. tests/support/programs/faults.sh

faults() {
  scripts/dev/disk_faults.py --build "$TW_BUILD" --seed "$RANDOM" "$@" 2>&1
}

out=$(faults --sample 8 train limit resume pack analyze) || fail 'a fault is lost' "$out"
grep -q '^40 cases, 0 failed$' <<<"$out" || fail 'the table has other sums' "$out"
for number in {1..4}; do  # every read of --resume before the plan
  out=$(faults --only "resume:$number:EIO") || fail 'a resume loses a fault' "$out"
done
# Whether samples of cases find a planted defect; one sample may miss it.
finds() {
  for _ in {1..10}; do
    out=$(faults --sample 40 "$@" train) || true
    if [[ $out =~ ' '[1-9][0-9]*' failed'$ ]]; then return 0; fi
  done
  return 1
}
finds --faults cut --no-sync || fail 'power cuts find no missing fsync'
finds --faults lost || fail 'lost writes are not found'
