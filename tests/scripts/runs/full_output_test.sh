#!/usr/bin/env bash
# A script whose standard output takes no more ends with one line and exit code 1, as the programs
# do, whether Python buffers or not; one whose reader has read enough is quiet.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export MPLCONFIGDIR=$work
python3 tests/scripts/runs/make_runs.py "$work/runs" 40

commands=("list_runs.py $work/runs" "list_runs.py $work/runs --csv" "compare.py $work/runs/dense"
  "watch.py --once $work/runs/dense" "report.py $work/runs/dense -o $work/page.html"
  "repro.py list")
for script in scripts/*.py scripts/results/race.py; do
  commands+=("${script#scripts/} --help")
done
((${#commands[@]} > 12)) || { echo "only ${#commands[@]} commands found"; exit 1; }

# ended CODE LINE COMMAND...: the command's exit code and all that it says on stderr
ended() {
  local expected=$1 line=$2 code=0
  shift 2
  "$@" 2>"$work/said" || code=$?
  [[ $code == "$expected" && $(cat "$work/said") == "$line" ]] && return
  { echo "expected $expected, '$line' of $*; got $code:" && cat "$work/said"; } >&2
  exit 1
}

mkfifo "$work/pipe"
# shellcheck disable=SC2094 # nobody reads what is written to 4
exec 3<>"$work/pipe" 4>"$work/pipe" 3<&-
full='cannot write to standard output: No space left on device'
for command in "${commands[@]}"; do
  read -ra words <<<"$command"
  name=$(basename "${words[0]}")
  if [[ $name == plot.py ]] && ! "${words[@]/#plot.py/scripts/plot.py}" >/dev/null 2>&1; then
    continue  # no matplotlib
  fi
  for unbuffered in "" 1; do
    PYTHONUNBUFFERED=$unbuffered ended 1 "$name: $full" "scripts/${words[0]}" "${words[@]:1}" \
      >/dev/full
  done
  if [[ $command != *--help ]]; then  # argparse ends with 0
    PYTHONUNBUFFERED='' ended 1 "" "scripts/${words[0]}" "${words[@]:1}" >&4
  fi
done
