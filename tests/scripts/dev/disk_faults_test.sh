#!/usr/bin/env bash
# scripts/dev/disk_faults.py: a sample of the faults of the disk loses nothing, and two planted
# defects are found.
set -euo pipefail

cd "${TW_SOURCE:?}"
cache=$(grep '^SANITIZE:' "${TW_BUILD:?}/CMakeCache.txt" || true)
[[ ${cache##*=} == "" ]] || exit 77  # a preloaded library comes before the sanitizer's
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work

fail() {
  printf 'FAILED: %s\n%s\n' "$1" "${2:-}" >&2
  exit 1
}

faults() {
  scripts/dev/disk_faults.py --build "$TW_BUILD" --seed "$RANDOM" "$@" 2>&1
}

out=$(faults --sample 8 train limit resume pack analyze) || fail 'a fault is lost' "$out"
grep -q '^40 cases, 0 failed$' <<<"$out" || fail 'the table has other sums' "$out"
out=$(faults --sample 12 --faults cut --no-sync train) &&
  fail 'a power cut finds no missing fsync' "$out"
out=$(faults --sample 12 --faults lost train) && fail 'a lost write is not found' "$out"
exit 0
