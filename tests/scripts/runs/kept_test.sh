#!/usr/bin/env bash
# runs/kept.py: folders of results become a few files, in any order the same bytes, and are read
# from these as from the folders; a table may have more columns than another; a broken file is one
# line.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONPATH=scripts PYTHONDONTWRITEBYTECODE=1 python3 - "$work" <<'PY'
import json
import os
import sys
from pathlib import Path
from runs import UserError, folder, kept

work = Path(sys.argv[1])
os.chdir(work)
every = {}


def result(path, columns, **more):
    """A folder with two epochs and two steps, and the files in `more`."""
    place = Path("live", path)
    place.mkdir(parents=True)
    files = {"repro": {"label": path, "options": {"seed": 1}, "command": ["/a/path"]},
             "config": {"model": "mlp", "output_dir": "/a/path"},
             "summary": {"stopped": False, "epochs": 2, "steps": 2, "train_seconds": 4,
                         "images_per_s": 8, "bytes_sent": 16, "nnz_over_k": 1},
             "records": [{"steps": 2, "steps_of_epochs": [1, 1]}], **more}
    for name, value in files.items():
        (place / f"{name}.json").write_text(json.dumps(value))
    lines = "".join(",".join(f"{10 * row + i}" for i in range(len(columns.split(",")))) + "\n"
                    for row in (1, 2))
    for name in ("metrics.csv", "steps.csv"):
        (place / name).write_text(f"{columns}\n{lines}")
    every[path] = kept.entry(place)


def bytes_of(target):
    return {path.name: path.read_bytes() for path in target.iterdir()}


result("b/x-s1", "epoch,seconds")
result("b/x-s2", "epoch,val_top1,seconds")
result("a/b/y-s1", "epoch,seconds", advise=[{"options": {"ranks": 4}}, {"options": {"ranks": 8}}])
for target, order in (("kept", every), ("back", reversed(every)), ("once", ["all"])):
    for path in order:
        entries = every if path == "all" else {path: every[path]}
        assert kept.add(entries, Path(target), False) == []
first = bytes_of(Path("kept"))
assert bytes_of(Path("back")) == bytes_of(Path("once")) == first, first
assert set(first) == {"runs.jsonl", "epochs.csv", "steps.csv.xz", "advise.jsonl"}, set(first)
assert b"/a/path" not in first["runs.jsonl"] and first["epochs.csv"].decode() == """\
run,epoch,seconds,val_top1
a/b/y-s1,10,11,
a/b/y-s1,20,21,
b/x-s1,10,11,
b/x-s1,20,21,
b/x-s2,10,12,11
b/x-s2,20,22,21
"""

# the same again changes nothing; another result stays out unless it is to replace the kept one
assert kept.add(every, Path("kept"), False) == [] and bytes_of(Path("kept")) == first
other = every["b/x-s1"] | {"runs.jsonl": [{"label": "another"}]}
assert kept.add({"b/x-s1": other}, Path("kept"), False) == ["b/x-s1"]
assert bytes_of(Path("kept")) == first
kept.add({"b/x-s1": other}, Path("once"), True)
assert json.loads(Path("once/runs.jsonl").read_text().splitlines()[1])["label"] == "another"

# read as the folders
for path in every:
    place, live = Path("kept", path), Path("live", path)
    assert kept.exists(place / "metrics.csv") and not kept.exists(place / "run.log")
    assert kept.read_json(place / "summary.json") == kept.read_json(live / "summary.json")
    (records,) = kept.read_json(place / "records.json")
    assert records["steps_of_epochs"] == [1, 1] and records["train_seconds"] == 4, records
    for name in ("metrics.csv", "steps.csv"):
        ours, theirs = kept.read_table(place / name), kept.read_table(live / name)
        assert all(ours.texts(column) == theirs.texts(column) for column in theirs.names)
    assert folder.Run(place).state == "finished"
assert kept.read_json(Path("kept/a/b/y-s1/advise.json")) == [{"options": {"ranks": 4}},
                                                            {"options": {"ranks": 8}}]
assert not kept.exists(Path("kept/b/z/metrics.csv"))
paths = [Path("kept", path) for path in sorted(every)]
assert kept.results(Path("kept")) == folder.below(Path("kept")) == paths
assert kept.results(Path("kept/b"), "*-s*") == paths[1:]
assert kept.results(Path("kept"), "*-s*") == []
os.chdir("kept")
assert kept.read_table(Path("b/x-s1/metrics.csv")).texts("seconds") == ["11", "21"]
os.chdir("..")

# a folder hides what is kept of its path, also what it lacks itself
(Path("kept/b/x-s1")).mkdir(parents=True)
Path("kept/b/x-s1/repro.json").write_text("{}")
assert kept.read_json(paths[1] / "repro.json") == {} and not kept.exists(paths[1] / "metrics.csv")
assert kept.results(Path("kept")) == paths

# steps of long runs are not kept
Path("live/b/x-s1/steps.csv").write_text("step\n" + "1\n" * 1001)
assert "steps.csv.xz" not in kept.entry(Path("live/b/x-s1"))

for name, text, said in (("runs.jsonl", '{"run": "x"', "Expecting"),
                         ("runs.jsonl", "[1]", "a row without a run"),
                         ("runs.jsonl", '{"label": "x"}', "a row without a run"),
                         ("epochs.csv", "run,a\nx,1,2\n", "more or fewer cells than the header"),
                         ("steps.csv.xz", "run,a\n", "format not supported")):
    Path("bad").mkdir(exist_ok=True)
    Path("bad", name).write_text(text)
    kept.known.cache_clear()
    try:
        raise AssertionError(kept.known(Path("bad", name)))
    except UserError as error:
        assert str(error).startswith(f"bad/{name}: ") and said in str(error), error
PY
