# Shared by shell scripts: prints their help; changes to the root of the repository; defines
# path_of, say, die, skip, environment, result, same_weights and quietly.
# shellcheck shell=bash
set -euo pipefail
# --help prints the comment at the top of the script
case ${1:-} in
  -h | --help)
    sed -n '2,${/^#/!q; /^# shellcheck/q; s/^# \{0,1\}//p}' "$0"
    exit 0
    ;;
esac
called_in=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# path_of PATH: the absolute path of an argument, which may be relative to the caller's folder
path_of() { (cd "$called_in" && realpath -ms -- "$1"); }

# say TEXT: prints a headline
say() { printf '\n== %s\n' "$*"; }

# die TEXT: prints "SCRIPT: TEXT" to stderr and exits with 1
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# skip TEXT: prints "skipped: TEXT" and exits with 77
skip() { echo "skipped: $*" && exit 77; }

# environment FOLDER PACKAGE...: makes a virtual environment of Python with packages of PyPI
environment() { python3 -m venv "$1" && "$1/bin/pip" install -qq --retries 1 "${@:2}"; }

# result FOLDER KEY: a value of a run's summary.json; nothing where there is none
result() {
  [[ ! -e $1/summary.json ]] || python3 -c 'import json, sys
print(json.load(open(sys.argv[1])).get(sys.argv[2], ""))' "$1/summary.json" "$2"
}

# same_weights FOLDER FOLDER: whether both runs have ended, with equal weights
same_weights() {
  local hash
  hash=$(result "$1" weights_hash)
  [[ -n $hash && $hash == "$(result "$2" weights_hash)" ]]
}

# quietly COMMAND...: prints a line for each quarter of ninja's progress, and the rest of the output
# only if the command fails
quietly() {
  local log code=0
  log=$(mktemp)
  "$@" 2>&1 | tee "$log" | awk -F'[][/]' '/^\[[0-9]+\/[0-9]+\] / {
    quarter = int(4 * $2 / $3)
    if (quarter > last) { last = quarter; printf "built %d of %d files\n", $2, $3; fflush() }
  }' || code=$?
  ((code == 0)) || grep -vE '^\[[0-9]+/[0-9]+\] ' "$log" || true
  rm "$log"
  return "$code"
}
