#!/usr/bin/env bash
# tests/CMakeLists.txt: what ctest says of suites in which all or some tests fail or are skipped.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
echo "include($TW_BUILD/tests/results_probe_suites.cmake)" >"$folder/CTestTestfile.cmake"
ctest --test-dir "$folder" >"$folder/out" 2>&1 || true

# expect SUITE RESULT
expect() {
  grep -Eq ": probe\.$1 \.+ *(\*\*\*)?$2 " "$folder/out" || {
    printf 'suite %s: expected %s, but ctest says\n' "$1" "$2"
    cat "$folder/out"
    exit 1
  }
}
expect OneFails Failed
expect AllFail Failed
expect SomeFail Failed
expect AllSkipped Skipped
expect SomeSkipped Passed
expect Pass Passed
