#!/usr/bin/env bash
# pandas and DuckDB read the tables of a run as they are. Needs a Python with both, named by
# THINWIRE_PYTHON.
set -euo pipefail
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
needs_python "pandas, duckdb"
export THINWIRE_CACHE=$TW_BUILD/test-data
for every in 1 never; do
  "$TW_BUILD/bin/train" --model mlp --workers 2 --sparsifier topk --max-steps 4 --analyze-every 2 \
    --eval-every "$every" --name "eval-$every" --output-dir "$work" >/dev/null
done
scripts/compare.py "$work"/eval-* --csv >"$work/compare.csv"
"$python" tests/scripts/runs/read_tables.py "$work"
