# shellcheck shell=bash
# Sourced by tests of scripts: $work is a folder that is removed at the end, $work/said what a
# command printed.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# refuses TEXT COMMAND...: exit code 2 and one line that holds TEXT
refuses() {
  local text=$1 code=0
  shift
  "$@" >"$work/said" 2>&1 || code=$?
  [[ $code == 2 && $(wc -l <"$work/said") == 1 ]] && grep -qF -- "$text" "$work/said" && return
  { echo "$*: expected exit code 2 and one line with: $text; got $code and:"
    cat "$work/said"; } >&2
  exit 1
}

# expect FILE TEXT: the file has a line that holds TEXT
expect() {
  grep -qF -- "$2" "$1" || { echo "$1 lacks: $2"; cat "$1"; exit 1; }
}
