#!/usr/bin/env bash
# In Chromium, the page of report.py draws the numbers of the tables, its switches work, and no text
# is cut. Skipped without Chromium.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! command -v chromium chromium-browser google-chrome >/dev/null; then
  echo "skipped: needs Chromium; on Debian: apt-get install chromium"
  exit 77
fi
python3 tests/scripts/runs/make_runs.py "$work/runs" 1600
scripts/report.py "$work"/runs/* -o "$work/report.html"
python3 tests/scripts/runs/drawn.py "$work/report.html" "$work"/runs/*

# a run of one rank, which sends nothing, has no section of entries and no axis of bytes
python3 - "$work/runs/dense" <<'PY'
import csv
import sys
for name in ("metrics", "steps"):
    with open(f"{sys.argv[1]}/{name}.csv", newline="") as file:
        rows = [row | {"nnz_over_k": "1.0", "bytes_sent": "0"} for row in csv.DictReader(file)]
    with open(f"{sys.argv[1]}/{name}.csv", "w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
PY
scripts/report.py "$work/runs/dense" -o "$work/report.html"
PYTHONPATH=tests/scripts/runs python3 - "$work/report.html" <<'PY'
import sys
import browser
text = browser.dump(sys.argv[1], "x=bytes")
assert not {"density", "nnz_over_k"} & set(found := browser.Figures(text).found), set(found)
assert 'value="bytes"' not in text and ">Entries sent<" not in text
assert found["val_top1"]["ticks"]["x"][-1][2] == "4", "the axis is that of epochs"
PY
