#!/usr/bin/env bash
# `quietly` of scripts/lib/common.sh prints a line for each quarter of ninja's progress, and other
# output only of a command that fails, whose exit code it returns.
set -euo pipefail
# shellcheck source=scripts/lib/common.sh
. scripts/lib/common.sh

build() {
  for i in {1..8}; do echo "[$i/8] file"; done
  echo "a message" >&2
  return "$1"
}

# expect CODE OUTPUT: of a build that ends with CODE
expect() {
  local code=0 output
  output=$(quietly build "$1") || code=$?
  [[ $code == "$1" && $output == "$2" ]] ||
    { printf 'exit code %s, expected %s; output:\n%s\n' "$code" "$1" "$output" && exit 1; }
}
quarters=$'built 2 of 8 files\nbuilt 4 of 8 files\nbuilt 6 of 8 files\nbuilt 8 of 8 files'
expect 0 "$quarters"
expect 3 "$quarters"$'\n''a message'
