#!/usr/bin/env bash
# links.py: the dense exchanges that advise names are flags of train; a table begins with the build
# and the CPU, and kept measurements of another build are refused.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bin=$TW_BUILD/bin
"$bin/advise" --simulate --model mlp --link 1Gbit,0.4ms --ranks 4 --compute 1 --select 0 \
  --csv "$work/advice.csv" >"$work/advice.txt"
PYTHONPATH=scripts/results python3 -B - "$bin/train" "$work/advice.csv" <<'PY'
import subprocess
import sys
from pathlib import Path
import links

rows = links.of_link(Path(sys.argv[2]))  # each exchange once
assert len(rows) == len({(row["sparsifier"], row["collective"]) for row in rows}) > 5, rows
dense = {row["collective"] for row in rows if row["sparsifier"] == "dense"}
assert {"ring", "ring bf16"} <= dense, dense
told = {}
for collective in (*dense, "ring bf16 overlap"):
    words = [sys.argv[1], "--model", "mlp", "--workers", "4", "--sparsifier", "dense",
             "--dry-run", *links.flags_of(collective)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (collective, done.stderr)
    told[collective] = done.stdout.splitlines()[-1]
assert told["ring"] != told["ring bf16"], told  # half the bytes
assert links.flags_of("") == []
PY

cat >"$work/bench" <<'SH'
#!/bin/sh
[ "$1" = --describe ] || exit 1
echo '{"build": {"commit": "1234567", "date": "2026-01-02", "compiler": "GCC 1.2", "cpu": "A"}}'
SH
chmod +x "$work/bench"
echo '{"build": "Commit: 7654321."}' >"$work/kept.json"
if scripts/results/links.py -b "$work" --keep "$work/kept.json" card >"$work/out" 2>"$work/err" ||
  ! grep -qx 'Commit: 1234567 (2026-01-02). Compiler: GCC 1.2. CPU: A.' "$work/out" ||
  ! grep -q 'of another build or machine: Commit: 7654321. This is Commit: 1' "$work/err"; then
  cat "$work/out" "$work/err"
  exit 1
fi
