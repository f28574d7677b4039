#!/usr/bin/env python3
"""page_data.py PAGE RUN...: the numbers inside a page of report.py are those of the runs' tables,
computed here a second time."""

import csv
import json
import math
import re
import sys
from pathlib import Path

MOST = 600


def rows_of(path):
    with open(path, newline="") as file:
        return [{key: float(value) if re.fullmatch(r"[-+.\de]+|nan", value) else value
                 for key, value in row.items()} for row in csv.DictReader(file)]


def near(a, b):
    assert abs(a - b) <= 1e-6 * max(abs(a), abs(b)), (a, b)


def step_curve(folder, width):
    """{axis: values} of steps.csv in bins of `width` steps, and least and greatest loss."""
    rows, sums = rows_of(folder / "steps.csv"), {"seconds": 0, "bytes_sent": 0}
    for row in rows:
        for name in sums:
            sums[name] += row[name]
            row[f"total_{name}"] = sums[name]
    bins = [rows[i:i + width] for i in range(0, len(rows), width)]
    curve = {axis: [sum(row[name] for row in own) / len(own) for own in bins]
             for axis, name in (("step", "step"), ("seconds", "total_seconds"),
                                ("bytes_sent", "total_bytes_sent"), ("mean", "train_loss"))}
    for axis, reduce in (("low", min), ("high", max)):
        curve[axis] = [reduce(row["train_loss"] for row in own) for own in bins]
    return curve


def ends_of(folder):
    """{epoch: where it ended}; the last one may have fewer steps than config.json tells."""
    length = json.loads((folder / "config.json").read_text())["run"].get("steps_per_epoch")
    steps = [row["epoch"] for row in rows_of(folder / "steps.csv")]
    return {epoch: epoch - 1 + steps.count(epoch) / length if length else epoch
            for epoch in set(steps)}


def check_run(run, folder, width):
    wanted = step_curve(folder, width)
    curve = run["curves"]["train_loss"]
    assert len(curve["mean"]) <= MOST
    for name, values in wanted.items():
        assert len(curve[name]) == len(values), name
        for a, b in zip(curve[name], values):
            assert a is None if math.isnan(b) else near(a, b) is None
    epochs = rows_of(folder / "metrics.csv")
    for name in ("val_top1", "val_top5", "density", "nnz_over_k"):
        known = [row for row in epochs if row[name] != ""]
        ends = ends_of(folder)
        assert len(run["curves"][name]["epoch"]) == len(known), name
        for a, row in zip(run["curves"][name]["epoch"], known):
            near(a, ends[row["epoch"]])
        for a, row in zip(run["curves"][name]["mean"], known):
            near(a, row[name])
    for phase in ("data", "forward", "backward", "select", "update", "wait"):
        near(run["phases"][phase], sum(row[f"sec_{phase}"] for row in epochs) / len(epochs))
    near(run["phases"]["exchange"] + run["phases"]["wait"],
         sum(row["sec_exchange"] for row in epochs) / len(epochs))
    near(sum(run["phases"].values()), sum(row["seconds"] for row in epochs) / len(epochs))


def main():
    text = Path(sys.argv[1]).read_text()
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text,
                                flags=re.S).group(1))
    folders = {folder.name: folder for folder in map(Path, sys.argv[2:])}
    assert [run["name"] for run in data["runs"]] == list(folders)
    for group in data["groups"]:
        longest = max(len(rows_of(folders[data["runs"][i]["name"]] / "steps.csv"))
                      for i in group["runs"])
        assert group["bin"] == max(1, -(-longest // MOST)), group
    for run in data["runs"]:
        check_run(run, folders[run["name"]], data["groups"][run["group"]]["bin"])
    print(len(data["runs"]), "runs,", [group["label"] for group in data["groups"]])


if __name__ == "__main__":
    main()
