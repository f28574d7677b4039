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
