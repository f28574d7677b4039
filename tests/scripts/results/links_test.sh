#!/usr/bin/env bash
# links.py: the dense exchanges that advise names are flags of train.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bin=$TW_BUILD/bin
"$bin/advise" --simulate --model mlp --link 1Gbit,0.4ms --ranks 4 --compute 1 --select 0 \
  --csv "$work/advice.csv" >"$work/advice.txt"
PYTHONDONTWRITEBYTECODE=1 python3 - "$bin/train" "$work/advice.csv" <<'PY'
import subprocess
import sys

sys.path.insert(0, "scripts/results")
import links

dense = {row["collective"] for row in links.read_csv(sys.argv[2]) if row["sparsifier"] == "dense"}
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
