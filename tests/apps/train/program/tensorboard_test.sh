#!/usr/bin/env bash
# TensorBoard reads the events of train --tensorboard: all scalars of a step, and the histograms.
# Skipped without the Python package tensorboard.
set -euo pipefail
train=$TW_BUILD/bin/train
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export THINWIRE_CACHE=$TW_BUILD/test-data  # other tests use these generated images, too
export CUDA_VISIBLE_DEVICES=
if ! python3 -c 'import tensorboard' 2>"$work/said"; then
  echo "skipped: needs the Python package tensorboard"
  exit 77
fi
options=(--model mlp --precision f32 --batch-size 128 --workers 2 --threads-per-rank 1
  --tensorboard --analyze-every 2 --eval-every 0 --output-dir "$work/runs")
"$train" "${options[@]}" --max-steps 5 --name run >"$work/said" || { cat "$work/said"; exit 1; }
"$train" "${options[@]}" --max-steps 9 --resume "$work/runs/run" >"$work/said"
python3 - "$work/runs" <<'PY'
import csv
import sys
from pathlib import Path

from tensorboard.backend.event_processing import plugin_event_multiplexer

# as the program tensorboard reads them; 0: every event
found = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance={
    name: 0 for name in ("scalars", "histograms")})
found.AddRunsFromDirectory(sys.argv[1])
found.Reload()
assert list(found.Runs()) == ["run"], found.Runs()
rows = list(csv.DictReader(open(Path(sys.argv[1]) / "run/steps.csv")))
scalars = [name for name in rows[0] if name != "step"]
for name in scalars:
    tensors = found.Tensors("run", f"step/{name}")
    assert [event.step for event in tensors] == list(range(1, 10)), name
    for row, event in zip(rows, tensors):
        value, = event.tensor_proto.float_val
        assert abs(value - float(row[name])) <= 1e-6 * abs(value), (name, row, value)
histograms = found.Tensors("run", "gradient_and_residual")
assert [event.step for event in histograms] == [5, 9]
print(f"TensorBoard reads {len(scalars)} scalars of {len(rows)} steps and "
      f"{len(histograms)} histograms")
PY
