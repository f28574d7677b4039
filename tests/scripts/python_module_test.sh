#!/usr/bin/env bash
# The Python module thinwire, in the source tree and as pip installs it: the example of
# docs/python.md, types and values of tables, keywords of train, errors, what trackers get.
# The tables need a Python with pandas (THINWIRE_PYTHON names one).
set -euo pipefail
source=$TW_SOURCE build=$TW_BUILD
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
export THINWIRE_CACHE=$build/test-data PYTHONDONTWRITEBYTECODE=1

# the commands that pip installs are all programs, and thinwire
diff <(sed -n 's/^set(programs \(.*\))/thinwire \1/p' "$source/CMakeLists.txt" | tr ' ' '\n') \
  <(sed -n 's/ = "thinwire.programs:main"$//p' "$source/pyproject.toml")

# a package directory as in the wheel: the module, and what `cmake --install` puts there
site=$work/site
cmake --install "$build" --prefix "$site/thinwire" >/dev/null
cp "$source"/scripts/python/thinwire/*.py "$site/thinwire/"
ln -s "$site/thinwire/programs.py" "$work/train"
cd "$work"
PYTHONPATH=$site python3 -c 'import sys; from thinwire import programs
sys.argv[0] = "any/train"; programs.main()' --version >said
expect said "thinwire "

# the library of the installation; a program without the sanitizer cannot load one with it
if ! grep -q '^SANITIZE:[A-Z]*=.' "$build/CMakeCache.txt"; then
  PYTHONPATH=$site python3 - <<'PY'
import array
import thinwire
from thinwire.library import Group, Reducer

group = Group(0, 1, lambda *_: 0)
tensors, options = [("weight", (20, 5)), ("bias", ())], {"sparsifier": "topk"}
reducer, again = Reducer(group, tensors, options), Reducer(group, tensors, options)
weight, bias = array.array("f", range(100)), array.array("f", [0.5])
addresses = [weight.buffer_info()[0], bias.buffer_info()[0]]
report = reducer.step(addresses, 0, density=0.1)
assert report.entries == 10 and list(weight) == [0] * 90 + list(range(90, 100)), list(weight)
again.load(reducer.save())
for other in (reducer, again):  # what was not sent is owed
    weight[:], bias[0] = array.array("f", bytes(400)), 0
    other.step(addresses, 1, density=0.1)
    assert list(weight) == [0] * 80 + list(range(80, 90)) + [0] * 10, list(weight)
assert reducer.bytes(0.1) == 0 and reducer.seconds("1Gbit,1ms", 0.1) == 0
for wrong in ({"sparsifer": "topk"}, {"sparsifier": "topk", "momentum": 0.9}):
    try:
        Reducer(group, tensors, wrong)
    except thinwire.UserError as error:
        assert "sparsifer" in str(error) or "momentum" in str(error), error
    else:
        raise AssertionError(wrong)
bias[0] = float("nan")
try:
    reducer.step(addresses, 2)
except thinwire.NonFinite as error:
    assert "bias" in str(error), error
else:
    raise AssertionError("no error")
failing = Group(0, 2, lambda *_: 1 / 0)
try:
    Reducer(failing, tensors, options)
except thinwire.Fault as error:
    assert isinstance(error.__cause__, ZeroDivisionError), error.__cause__
else:
    raise AssertionError("no error")
PY
fi

for python in "${THINWIRE_PYTHON:-python3}" python3 /usr/bin/python3; do
  "$python" -c 'import pandas' 2>/dev/null && break
  python=
done
[[ -n $python ]] || { echo "skipped: no Python with pandas (Debian: python3-pandas)"; exit 77; }
awk '/^```/ && on { exit } on { print } /^```python/ { on = 1 }' "$source/docs/python.md" >test.py
cat >>test.py <<'PY'

import csv, json, os, shutil, sys
from pathlib import Path
import pandas

assert str(Path(thinwire.__file__).parent) == sys.argv[1], thinwire.__file__
folder = Path("runs/python")
rows = {name: list(csv.DictReader(open(folder / f"{name}.csv"))) for name in ("steps", "metrics")}
for name, frame in (("steps", run.steps()), ("metrics", run.metrics())):
    assert list(frame) == list(rows[name][0]) and len(frame) == len(rows[name]) > 1, name
    whole = {key for key, kind in frame.dtypes.items() if kind == "int64"}
    assert whole == {"step", "epoch", "images", "bytes_sent"} & set(frame), (name, whole)
    assert all(frame[key].dtype == "float64" for key in set(frame) - whole), name
    assert frame["train_loss"].tolist() == [float(row["train_loss"]) for row in rows[name]]
assert run.config == json.load(open(folder / "config.json")) and run.config["workers"] == 4
assert run.summary == json.load(open(folder / "summary.json")) and run.state == "finished"

# what trackers get: each cell once, an epoch at its last step, nothing for an empty cell
found = dict(thinwire.trackers.scalars(run))
for prefix, table in (("step", rows["steps"]), ("epoch", rows["metrics"])):
    for row in table:
        at = int(row["step"]) if prefix == "step" else int(row["epoch"]) * len(rows["steps"]) // 2
        for key in row.keys() - {prefix}:
            assert found[at].pop(f"{prefix}/{key}") == float(row[key]), (at, key)
assert not any(found.values()), found
# and when: the last step when the table was written, those before by its seconds
os.utime(folder / "steps.csv", (0, 1e9))
*_, (before, _, _), (last, at, _) = thinwire.trackers.timed(run)
assert abs(last - 1e9) < 1e-3 and at == len(rows["steps"]), (last, at)
assert abs(last - before - float(rows["steps"][-1]["seconds"])) < 1e-3, (before, last)

# keywords; two runs of two epochs of one step, of which the second is validated
Path("on.json").write_text('{"overlap": true}')
options = {"model": "mlp", "epochs": 2, "quiet": True, "nesterov": True, "config": "on.json",
           "overlap": False}
pair = {"seeds": [1, 2], "sparsifier": "topk", "density_warmup": [0.1, 0.05], "name": "two",
        "lr": 0.012345678, "set": {"wire.values": "bf16"}, "eval_every": 0, "batch_size": 10000}
several = thinwire.train(**pair, **options)
assert [one.name for one in several] == ["two-s1", "two-s2"], several
# finished runs are returned, too
again = thinwire.train(**pair, **options, resume="auto")
assert [one.folder for one in again] == [one.folder for one in several], again
Path("sweep.json").write_text('{"sweep": {"batch_size": [5000, 10000]}}')
swept = {**options, "config": "sweep.json", "output_dir": "swept"}
names = [one.name for one in thinwire.train(**swept)]
assert names == ["sweep-batch_size-5000", "sweep-batch_size-10000"], names
shutil.rmtree(f"swept/{names[0]}")
assert [one.name for one in thinwire.train(**swept)] == names
config = several[1].config
assert [config[key] for key in ("nesterov", "overlap", "density_warmup", "lr", "workers")] == [
    True, False, [0.1, 0.05], 0.012345678, 0], config
assert config["set"]["wire.values"] == "bf16"
assert several[0].metrics()["val_top1"].isna().tolist() == [True, False]
assert "epoch/val_top1" not in dict(thinwire.trackers.scalars(several[0]))[1]
Path("runs/two-s2/metrics.csv").write_text("")
table = thinwire.runs("runs").table().set_index("name")
assert table["state"].to_dict() == {"python": "finished", "two-s1": "finished", "two-s2": "broken"}
assert table["lr"].dtype == "float64" and table["reason"]["two-s2"].endswith("no header")
assert table["weights_hash"]["python"] == run.summary["weights_hash"]
assert table["epochs"]["python"] == 2 and table["bytes_sent"]["python"] == run.summary["bytes_sent"]
assert isinstance(table, pandas.DataFrame) and thinwire.runs("runs/two-s1").table().shape[0] == 1

# a run that goes on
with open(folder / "steps.csv") as file:
    last = file.readlines()[-1]
with open(folder / "steps.csv", "a") as file:
    file.write(last)
assert len(run.steps()) == len(rows["steps"]) + 1

# kept results without steps: an epoch is at its last step all the same
for one in thinwire.runs(sys.argv[2]):
    *_, (at, values) = thinwire.trackers.scalars(one)
    assert (at, values["epoch/val_top1"]) == (one.summary["steps"], one.summary["val_top1"]), one
# an older version does not tell the steps of an epoch: its number, and no epoch is lost
older = thinwire.Run(Path(sys.argv[2]).parents[1] / "race/resnet20/none/dense-s1")
assert [at for at, _ in thinwire.trackers.scalars(older)] == list(range(1, 11))


def refusal(kind, text, call, **given):
    try:
        call(**given)
    except kind as error:
        assert text in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__} with: {text}")


refusal(thinwire.UserError, "unknown flag --modl; nearest is --model", thinwire.train,
        quiet=True, modl="mlp")
refusal(thinwire.Fault, "a lower learning rate may help", thinwire.train, lr=1e9, **options)
refusal(thinwire.UserError, "none: not a folder", lambda: thinwire.runs("none"))
for package in ("pandas", "tensorboard", "mlflow", "wandb"):
    sys.modules[package] = None  # as if it were not installed
    call = run.metrics if package == "pandas" else getattr(run, f"to_{package}")
    refusal(ImportError, f"needs the Python package {package}: pip install {package}", call,
            **{"folder": "events"} if package == "tensorboard" else {})
PY
for place in "$site" "$source/scripts/python"; do
  bin=
  [[ $place == "$site" ]] || bin=$build/bin
  rm -rf runs
  THINWIRE_BIN=$bin PYTHONPATH=$place "$python" test.py "$place/thinwire" \
    "$source/docs/results/repro/paper" >said 2>&1 ||
    { cat said; exit 1; }
  expect said "results in runs/python"
done
