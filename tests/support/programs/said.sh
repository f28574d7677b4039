# shellcheck shell=bash
# Sourced by tests of scripts: $work is a folder that is removed at the end, $work/said what a
# command printed.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# needs_python MODULES: $python is THINWIRE_PYTHON, or python3; the test is skipped if it lacks one
needs_python() {
  python=${THINWIRE_PYTHON:-python3}
  "$python" -c "import $1" 2>/dev/null && return
  echo "skipped: $python has not all of $1 (THINWIRE_PYTHON names another)"
  exit 77
}

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

# ends_by_sigterm PID TABLE LINES: SIGTERM, when the table has more lines, ends a script with 143
ends_by_sigterm() {
  local code=0
  for _ in {1..600}; do
    [[ -e $2 && $(wc -l <"$2") -gt $3 ]] && break
    sleep 0.1
  done
  kill -TERM "$1"
  wait "$1" || code=$?
  [[ $code == 143 ]] || { echo "exit code $code after SIGTERM"; cat "$work/said"; exit 1; }
}

# expect FILE TEXT: the file has a line that holds TEXT
expect() {
  grep -qF -- "$2" "$1" || { echo "$1 lacks: $2"; cat "$1"; exit 1; }
}
