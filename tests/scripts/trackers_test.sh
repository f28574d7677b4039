#!/usr/bin/env bash
# TensorBoard, MLflow and Weights & Biases read back what a run of the module thinwire gives them.
# Skipped without their Python packages (THINWIRE_PYTHON names a Python that has them).
set -euo pipefail
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
needs_python "tensorboard, mlflow, wandb"
export THINWIRE_CACHE=$TW_BUILD/test-data THINWIRE_BIN=$TW_BUILD/bin PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$TW_SOURCE/scripts/python GIT_PYTHON_REFRESH=quiet WANDB_SILENT=true
export MLFLOW_DISABLE_TELEMETRY=true MLFLOW_TRACKING_URI=sqlite:///$work/mlflow.db
cd "$work"
"$python" - <<'PY'
import csv
import json
import struct
from pathlib import Path

import mlflow
import thinwire
import wandb
from tensorboard.backend.event_processing import plugin_event_multiplexer
from wandb.proto import wandb_internal_pb2

run = thinwire.train(model="mlp", max_steps=3, quiet=True, density_warmup=[0.1, 0.05], name="one")
rows = list(csv.DictReader(open("runs/one/steps.csv")))
loss = [(int(row["step"]), float(row["train_loss"])) for row in rows]
top1 = float(next(csv.DictReader(open("runs/one/metrics.csv")))["val_top1"])

run.to_tensorboard("events")
found = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory("events").Reload()
told = [(event.step, event.tensor_proto.float_val[0])
        for event in found.Tensors("one", "step/train_loss")]
assert [step for step, _ in told] == [1, 2, 3], told
assert all(abs(a - b) < 1e-6 * a for (_, a), (_, b) in zip(told, loss)), told
first, _, last = (event.wall_time for event in found.Tensors("one", "step/train_loss"))
assert abs(last - Path("runs/one/steps.csv").stat().st_mtime) < 1e-3, last
assert abs(last - first - sum(float(row["seconds"]) for row in rows[1:])) < 1e-3, (first, last)
event, = found.Tensors("one", "epoch/val_top1")
assert (event.step, round(event.tensor_proto.float_val[0], 6)) == (3, top1)
try:
    run.to_tensorboard("events")
    raise AssertionError("events are written twice")
except thinwire.UserError as error:
    assert str(error) == "events/one has events already"

number = run.to_mlflow(tags={"of": "test"})
data = mlflow.get_run(number).data
assert data.params["model"] == "mlp" and data.params["density_warmup"] == "0.1,0.05"
assert data.metrics["val_top1"] == data.metrics["epoch/val_top1"] == top1
assert data.tags["of"] == "test"
history = mlflow.MlflowClient().get_metric_history(number, "step/train_loss")
assert [(point.step, point.value) for point in history] == loss

number = run.to_wandb(project="test", mode="offline")
wandb.teardown()  # waits for the file
file, = Path("wandb").glob(f"offline-run-*-{number}/*.wandb")
raw, at, data, steps, config, results = file.read_bytes(), 7, b"", {}, {}, {}
while at + 7 <= len(raw):  # records of LevelDB's log format, in blocks of 32 KiB
    _, length, kind = struct.unpack("<IHB", raw[at:at + 7])
    data += raw[at + 7:at + 7 + length]
    at += 7 + length
    at += 32768 - at % 32768 if 32768 - at % 32768 < 7 else 0
    if kind in (1, 4):  # the last part of a record
        record = wandb_internal_pb2.Record.FromString(data)
        steps[record.history.step.num] = {".".join(item.nested_key) or item.key: item.value_json
                                          for item in record.history.item}
        config |= {item.key: item.value_json for item in record.run.config.update}
        results |= {item.key: item.value_json for item in record.summary.update}
        data = b""
assert [(step, json.loads(steps[step]["step/train_loss"])) for step, _ in loss] == loss
assert json.loads(config["density_warmup"]) == [0.1, 0.05]
assert json.loads(results["val_top1"]) == top1
assert "epoch/val_top1" in steps[3] and "epoch/val_top1" not in steps[2]
print("all three read", len(rows), "steps")
PY
