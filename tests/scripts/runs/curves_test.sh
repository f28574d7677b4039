#!/usr/bin/env bash
# Where the steps and the validations of a run lie on the axis of epochs.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/metrics.csv" <<'CSV'
epoch,val_top1
1,0.5
2,0.75
CSV
cat >"$work/steps.csv" <<'CSV'
step,epoch
1,1
2,1
3,1
4,1
5,2
CSV
positions() {
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=scripts python3 - "$work" <<'PYTHON'
import sys
from runs import curves, folder

run = folder.Run(sys.argv[1])
print(curves.epoch_ends(run),
      curves.epoch_positions(run.steps.numbers("epoch"), run.steps_per_epoch))
PYTHON
}
# expect EPOCHS STEPS [CONFIG]
expect() {
  echo "${3:-}" >"$work/config.json"
  [[ $(positions) == "$1 $2" ]] || { echo "$(positions), expected $1 $2" >&2; exit 1; }
}
# the second epoch was ended by --max-steps
expect '[1.0, 1.25]' '[0.25, 0.5, 0.75, 1.0, 1.25]' '{"run": {"steps_per_epoch": 4}}'
# an older version did not write the length of an epoch
expect '[1.0, 2.0]' '[0.25, 0.5, 0.75, 1.0, 1.25]' '{}'
expect '[1.0, 2.0]' '[0.25, 0.5, 0.75, 1.0, 1.25]' 'not JSON'
# the first epoch, too
sed -i '/^2/d' "$work/metrics.csv"
sed -i '/,2$/d' "$work/steps.csv"
expect '[0.5]' '[0.125, 0.25, 0.375, 0.5]' '{"run": {"steps_per_epoch": 8}}'
