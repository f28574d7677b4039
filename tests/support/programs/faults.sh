# shellcheck shell=bash
# Sourced by tests of scripts that preload the library of faults: $work is a folder that is removed
# at the end. Skips the test in builds with a sanitizer, whose library must come first.
cache=$(grep '^SANITIZE:' "${TW_BUILD:?}/CMakeCache.txt" || true)
[[ ${cache##*=} == "" ]] || { echo "skipped: built with a sanitizer" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work

# fail WHAT [OUTPUT]: ends the test
fail() {
  printf 'FAILED: %s\n%s\n' "$1" "${2:-}" >&2
  exit 1
}
