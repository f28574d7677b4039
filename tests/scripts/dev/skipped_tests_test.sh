#!/usr/bin/env bash
# skipped_tests.py on a run of ctest: counts by reason, and names what should have run.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# skip REASON TEST: what GoogleTest prints, for printf
skip() {
  printf '/a/b.cpp:8: Skipped\\\\n%s\\\\n\\\\n' "$1"
  printf '[  SKIPPED ] %s, where x = 1 (0 ms)\\\\n' "$2"
}
long=$(seq -s ' ' 2000) # by itself, ctest cuts off the output of a test that passed
data="THINWIRE_DATA is not set"
cat >"$work/CTestTestfile.cmake" <<EOF
add_test(suite printf "$long\\\\n$(skip "$data" Data.First)Passed\\\\n")
add_test(other printf "$(skip "$data" Data.Second)$(skip "ends the run" Run.Ends)")
add_test(no_reason sh -c "exit 77")
add_test(new sh -c "echo skipped: needs the moon && exit 77")
add_test(gpu sh -c "echo '[  SKIPPED ] all tests, because there is no usable GPU: none' && exit 77")
set_tests_properties(no_reason new gpu PROPERTIES SKIP_RETURN_CODE 77)
EOF
ctest --test-dir "$work" --output-junit "$work/junit" --test-output-size-passed 1000000 >"$work/log"

# expect LINE...: the lines that the script prints without a GPU
expect() {
  printf '%s\n' "$@" >"$work/expected"
  PATH=$work/bin:$PATH scripts/dev/skipped_tests.py "$work/junit" "${TW_BUILD:-build}" >"$work/said"
  sort "$work/said" | diff "$work/expected" -
}
mkdir "$work/bin"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/nvidia-smi"
chmod +x "$work/bin/nvidia-smi"
lines=(
  "     1  all tests, because there is no usable GPU: none"
  "     1  ends the run"
  "     1  needs the moon"
  "     1  no reason given"
  "     2  THINWIRE_DATA is not set"
  "6 tests were skipped"
)
unknown=(
  "        unexpected, not a known reason: new"
  "        unexpected, not a known reason: no_reason"
)
export LC_ALL=C
unset THINWIRE_DATA
expect "${unknown[@]}" "${lines[@]}"
export THINWIRE_DATA=$work
expect "${unknown[@]}" "        unexpected, which is here: Data.First Data.Second" "${lines[@]}"
