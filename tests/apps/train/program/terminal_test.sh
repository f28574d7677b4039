#!/usr/bin/env bash
# The progress line of train on a terminal: it fits the width, also after the width changes, stays
# on one line, and goes on in validation. In a file there are lines only; --quiet and --log.
set -euo pipefail
source=$TW_SOURCE train=$TW_BUILD/bin/train
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export THINWIRE_CACHE=$TW_BUILD/test-data  # other tests use these generated images, too
unset NO_COLOR

fail() {
  echo "$*"
  cat "$work/said" 2>/dev/null || true
  exit 1
}

run=("$train" --model lenet --precision f32 --threads-per-rank 1 --workers 2 --epochs 40
  --val-size 8000 --eval-every 1 --checkpoint-every 0 --output-dir "$work")
on_terminal=(python3 "$source/tests/support/programs/terminal.py")

# ends with a signal: the length of the run does not depend on the speed of the machine
"${on_terminal[@]}" --columns 60,40,200,60 --after ETA --interrupt 3 --until validating \
  "${run[@]}" --name terminal >"$work/said" && fail "Ctrl-C: exit code 0" || [[ $? == 3 ]] ||
  fail "another exit code than 3:"
python3 - "$work/said" <<'PY' || fail "on a terminal:"
import re
import sys

text = open(sys.argv[1]).read()
progress, width, before = [], 0, 0
for line in text.split("\n"):
    if line.startswith("COLUMNS"):
        before, width = width, int(line.split()[1])
        continue
    # a redraw begins with CR; one line of text holds all redraws up to the next line of the console
    for drawn in re.split(r"CR(?:ESC\[\d+A)?ESC\[J", line):
        if "ETA" not in drawn and "/" not in drawn.partition("  ")[0]:
            continue
        if drawn.startswith("epoch ") and "sent" not in drawn:
            progress.append((width, before, drawn))
assert {width for width, _, _ in progress} == {40, 60, 200}, "a width has no progress"
for width, before, drawn in progress:
    # what was drawn before the program could see the new width
    assert len(drawn) < max(width, before), f"{len(drawn)} columns of {width}: {drawn}"
wide = [drawn for width, _, drawn in progress if width == 200][-1]
for part in ("loss ", "top-1 ", " s/step", " % exchange", "iB/s", " images/s", "ETA ", "|"):
    assert part in wide, f"no {part!r} in {wide}"
narrow = [drawn for width, _, drawn in progress if width == 60]
assert all("ETA " in drawn for drawn in narrow[5:]), narrow
assert any("validating" in drawn for _, _, drawn in progress), "silent during validation"
assert re.search(r"ESC\[\d+A", text), "a wrapped line is not erased"
plan = text[:text.index("writing to")].split("\n")[1:]
assert all(len(line) <= 60 for line in plan), plan
assert any(line.startswith("memory per rank: ") for line in plan), plan
PY

grep -q '^memory per rank: .* optimizer = ' "$work/terminal/run.log" ||
  fail "the log has broken lines"

short=("${run[@]}" --max-steps 30 --eval-every 0)
"${short[@]}" --name file >"$work/said" 2>&1
! grep -P '\r|\033' "$work/said" || fail "control characters in a file:"
[[ $(grep -c '^epoch' "$work/said") == 1 ]] || fail "another number of lines than epochs:"

# the line of an epoch is broken on a terminal, before a number or a name
"${on_terminal[@]}" --columns 80 "${short[@]}" --name wide | sed 's/CR$//' >"$work/said"
grep -E '^(CR|ESC\[J)*epoch .* train loss' "$work/said" >"$work/epochs" || fail "no epoch:"
[[ $(sed -E 's/^.*epoch/epoch/' "$work/epochs" | wc -L) -le 80 ]] || fail "wider than the terminal:"
grep -qE '^  .*images/s  .* sent' "$work/said" || fail "no second line of an epoch:"
# so is the line of the results
grep -A1 '^top-1 .* held-out' "$work/said" >"$work/results" || fail "no results:"
[[ $(wc -L <"$work/results") -le 80 ]] || fail "results wider than the terminal:"
grep -qE '^  (.* )?weights [0-9a-f]{16}$' "$work/results" || fail "no second line of the results:"

"${short[@]}" --name quiet --quiet --log "$work/log" >"$work/said" 2>&1
[[ ! -s $work/said ]] || fail "--quiet prints:"
same_log() { cmp "$work/log" "$work/quiet/run.log"; }
same_log || fail "--log differs from run.log"
"${short[@]}" --resume "$work/quiet" --max-steps 40 --log "$work/log" >"$work/said" 2>&1
same_log || fail "--log of a resumed run differs from run.log"
! grep -q '"\(quiet\|log\)":' "$work/quiet/config.json" || fail "config.json keeps them"
code=0
"${short[@]}" --log "$work/none/log" >"$work/said" 2>&1 || code=$?
[[ $code == 2 && $(wc -l <"$work/said") == 1 ]] || fail "a log that cannot be written:"
