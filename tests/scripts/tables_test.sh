#!/usr/bin/env bash
# pandas and DuckDB read the tables of a run as they are. Needs a Python with both, named by
# THINWIRE_PYTHON.
set -euo pipefail
python=${THINWIRE_PYTHON:-python3}
"$python" -c 'import pandas, duckdb' 2>/dev/null || {
  echo "skipped: $python has no pandas and duckdb (THINWIRE_PYTHON names another)"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export THINWIRE_CACHE=$TW_BUILD/test-data
for every in 1 never; do
  "$TW_BUILD/bin/train" --model mlp --workers 2 --sparsifier topk --max-steps 4 --analyze-every 2 \
    --eval-every "$every" --name "eval-$every" --output-dir "$work" >/dev/null
done
scripts/compare.py "$work"/eval-* --csv >"$work/compare.csv"
"$python" tests/scripts/runs/read_tables.py "$work"
