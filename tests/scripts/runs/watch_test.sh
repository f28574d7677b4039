#!/usr/bin/env bash
# watch.py: the picture of runs that go on, have ended or are broken; on a terminal it follows them
# and ends with Ctrl-C or the last run.
set -euo pipefail
source=$TW_SOURCE train=$TW_BUILD/bin/train
work=$(mktemp -d)
pid=
trap 'test -z "$pid" || kill "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT
export THINWIRE_CACHE=$TW_BUILD/test-data  # other tests use these generated images, too
export PYTHONIOENCODING=utf-8

fail() {
  echo "$*"
  cat "$work/said"
  exit 1
}
# says TEXT: the last output has the text; lacks TEXT: it has not
says() { grep -qF -- "$1" "$work/said" || fail "does not print: $1"; }
lacks() { ! grep -qF -- "$1" "$work/said" || fail "prints: $1"; }
watch() { "$source/scripts/watch.py" "$@" >"$work/said" 2>&1; }
on_terminal() {
  python3 "$source/tests/support/programs/terminal.py" "$@" >"$work/said" 2>&1
}

# runs that have ended
python3 "$source/tests/scripts/runs/make_runs.py" "$work/made" 40
watch "$work/made"
says 'no run is running in'
watch "$work/made/stopped"
says 'stopped  stopped  epoch 3/4'
watch --all "$work/made"
says 'dense  finished  epoch 4/4'
says '▁'
! grep -P '\033' "$work/said" || fail "control characters in a file"
PYTHONIOENCODING=ascii watch --all "$work/made"
says '@'
for columns in 20 40 60 200; do
  COLUMNS=$columns watch --all "$work/made"
  longest=$(wc -L <"$work/said")
  ((longest <= columns)) || fail "$longest columns of $columns"
done
code=0
watch "$work/none" || code=$?
[[ $code == 2 && $(wc -l <"$work/said") == 1 ]] || fail "a missing folder: exit code $code"
cp -r "$work/made/dense" "$work/made/torn"
echo 'x,1' >>"$work/made/torn/steps.csv"
mkdir "$work/made/new"
cp "$work/made/dense/config.json" "$work/made/new/"
touch "$work/made/new/steps.csv"
flock "$work/made/new" "$source/scripts/watch.py" --all "$work/made" >"$work/said" 2>&1
says 'torn  broken: '
says 'new  preparing'
touch -d '1 hour ago' "$work/made/new/steps.csv"
watch --all "$work/made"
says 'new  unfinished'

# on a terminal that is too low for all: a line for each; nothing runs, so it ends
on_terminal --columns 80 "$source/scripts/watch.py" --all "$work/made" || fail "does not end"
says 'topk-s3  finished  epoch 4/4'
lacks '|####'

# without a run it waits for one
mkdir "$work/runs"
began=$SECONDS
on_terminal --columns 80 --interrupt 2 "$source/scripts/watch.py" "$work/runs" ||
  fail "Ctrl-C: exit code $?"
says 'no run is running in'
((SECONDS - began >= 2)) || fail "ends before Ctrl-C"

# a run that goes on: the picture moves until it ends
"$train" --model lenet --precision f32 --threads-per-rank 1 --workers 2 --epochs 4000 \
  --checkpoint-every 0 --output-dir "$work/runs" --name live >"$work/train" 2>&1 &
pid=$!
for _ in $(seq 300); do
  [[ $(wc -l 2>/dev/null <"$work/runs/live/steps.csv") -gt 40 ]] && break
  sleep 0.1
done
watch "$work/runs"
says 'live  running  epoch '
says ' % exchange'
says 'ETA '
on_terminal --columns 80,60 --interrupt 3 "$source/scripts/watch.py" --every 0.2 "$work/runs" ||
  fail "Ctrl-C: exit code $?"
says 'live  running  epoch '
lacks Traceback
python3 - "$work/said" <<'PY' || fail "the picture stands still"
import re
import sys

steps = [int(step) for step in re.findall(r"(\d+)/\d+ steps", open(sys.argv[1]).read())]
assert len(steps) > 5 and steps == sorted(steps) and steps[0] < steps[-1], steps
PY
says 'ESC[?1049l'
kill -0 "$pid" || fail "watch ended the run"
kill "$pid"
wait "$pid" || true
pid=
watch "$work/runs/live"
says 'live  stopped  epoch '
