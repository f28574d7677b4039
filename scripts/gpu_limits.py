#!/usr/bin/env python3
"""gpu_limits.py REPORT: judges the figures of gpu_check.sh, one row a limit.

Prints and writes REPORT/limits.csv: what is wanted, what was found, whether it holds. A figure that
is not there is told as missing. Exit code 1 when a limit is missed or its figure missing.
"""
import csv
import json
import statistics
import sys
from pathlib import Path

# bench-MODEL-BATCH.json: our bf16 over the best of PyTorch's modes; our images/s, where wanted
SPEEDS = {("resnet20", 128): (1.3, 0), ("vgg16", 128): (1.05, 0), ("resnet20", 32): (2.0, 0),
          ("resnet50", 256): (1.0, 3000)}
SLOWEST_EPOCH = 2.5  # of sixteen workers, in those of one rank with the same images a step


def images_per_s(path):
    """Median images/s by mode."""
    return {entry["mode"]: statistics.median(r["images_per_s"] for r in entry["results"])
            for entry in json.loads(path.read_text())}


def speeds(report):
    for (model, batch), (ratio, floor) in SPEEDS.items():
        path = report / f"bench-{model}-{batch}.json"
        found = images_per_s(path) if path.exists() else {}
        ours = found.get("thinwire bf16")
        theirs = [speed for mode, speed in found.items() if mode.startswith("torch")]
        name = f"{model}, batch {batch}"
        yield f"{name}: ours / PyTorch's best", ratio, ours / max(theirs) if theirs else None
        if floor:
            yield f"{name}: images/s", floor, ours


def workers(report):
    path = report / "workers.csv"
    rows = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
    speed = {row["sparsifier"]: float(row["images_per_s"]) for row in rows}
    for name in ("dense", "topk", "gaussiank", "gtopk", "dgc", "randk"):
        known = "alone" in speed and name in speed
        yield (f"16 workers, {name}: share of one rank's images/s", 1 / SLOWEST_EPOCH,
               speed[name] / speed["alone"] if known else None)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: gpu_limits.py REPORT")
    report = Path(sys.argv[1])
    rows, bad = [("limit", "at least", "found", "holds")], False
    for name, least, found in [*speeds(report), *workers(report)]:
        holds = found is not None and found >= least
        bad |= not holds
        rows.append((name, f"{least:g}", "missing" if found is None else f"{found:.3f}",
                     "yes" if holds else "no"))
    with (report / "limits.csv").open("w", encoding="utf-8") as table:
        csv.writer(table, lineterminator="\n").writerows(rows)
    for row in rows:
        print("{:<52} {:>9} {:>9} {:>6}".format(*row))
    return bad


if __name__ == "__main__":
    sys.exit(main())
