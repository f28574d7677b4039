#!/usr/bin/env python3
"""gpu_limits.py REPORT [PART,... [SETUP,...]]: compares the figures of gpu_check.sh with limits.

Prints and writes REPORT/limits.csv, with a row per limit: limit, figure, whether the limit holds. A
figure that is not in the report is `missing`. Exit code 1 when a limit does not hold or a figure is
missing.
"""
import csv
import json
import statistics
import sys
from pathlib import Path

# setup of the part bench: model and batch size of bench-MODEL-BATCH.json, least ratio of our bf16
# images/s to PyTorch's best mode, and least images/s (0: no limit)
SPEEDS = {"resnet20": ("resnet20", 128, 1.3, 0), "vgg16": ("vgg16", 128, 1.05, 0),
          "resnet20-32": ("resnet20", 32, 2.0, 0), "resnet50": ("resnet50", 256, 1.0, 3000)}
SLOWEST_EPOCH = 2.5  # largest time of sixteen workers / time of one rank on the same images
RESNET50 = 25557032
# selector: largest time of a selection from RESNET50 elements, in microseconds and in multiples of
# e += g
SELECTIONS = {"gaussiank": (200, 2.0), "topk": (300, 3.0)}


def table(path):
    """Rows of a CSV file; none if the file does not exist."""
    return list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []


def measurements(path):
    """{mode: results of each round}"""
    entries = json.loads(path.read_text()) if path.exists() else []
    return {entry["mode"]: entry["results"] for entry in entries}


def speed(results):
    return statistics.median(result["images_per_s"] for result in results)


def bench(report, setups):
    for model, batch, ratio, floor in (SPEEDS[setup] for setup in SPEEDS if setup in setups):
        found = measurements(report / f"bench-{model}-{batch}.json")
        ours = found.get("thinwire bf16")
        theirs = [speed(results) for mode, results in found.items() if mode.startswith("torch")]
        name = f"{model}, batch {batch}"
        yield (f"{name}: ours / PyTorch's best", ">=", ratio,
               speed(ours) / max(theirs) if ours and theirs else None)
        if floor:
            yield f"{name}: images/s", ">=", floor, speed(ours) if ours else None
        # the host reads losses every 64 steps
        for key, most in (("graph_launches_per_step", 1), ("host_syncs_per_step", 0.1)):
            yield (f"{name}: {key.replace('_', ' ')}", "<=", most,
                   max(result[key] for result in ours) if ours else None)


def workers(report, _):
    seconds = {(row["model"], row["sparsifier"]): float(row["seconds_per_step"])
               for row in table(report / "workers.csv")}
    for model in ("resnet20", "vgg16"):
        for name in ("dense", "topk", "gaussiank", "gtopk", "dgc", "randk"):
            alone, ranks = seconds.get((model, "alone")), seconds.get((model, name))
            yield (f"{model}, 16 workers, {name}: epoch / epoch of one rank", "<=", SLOWEST_EPOCH,
                   ranks / alone if alone and ranks else None)


def select(report, _):
    """The slowest of the distributions counts."""
    rows = table(report / f"select-{RESNET50}.csv")
    for name, (most, passes) in SELECTIONS.items():
        mine = [row for row in rows if row["selector"] == name]
        slowest = max((1e6 * float(row["seconds"]) for row in mine), default=None)
        of_add = max((float(row["of_add"]) for row in mine), default=None)
        yield f"selection by {name}, d {RESNET50}: us", "<=", most, slowest
        yield f"selection by {name}, d {RESNET50}: passes of e += g", "<=", passes, of_add


PARTS = {"bench": bench, "workers": workers, "select": select}


def main():
    if len(sys.argv) not in (2, 3, 4):
        sys.exit("usage: gpu_limits.py REPORT [PART,... [SETUP,...]]")
    report = Path(sys.argv[1])
    wanted = sys.argv[2].split(",") if len(sys.argv) > 2 else PARTS
    setups = sys.argv[3].split(",") if len(sys.argv) > 3 else SPEEDS
    rows, bad = [("limit", "wanted", "found", "holds")], False
    for part in (part for part in PARTS if part in wanted):
        for name, sense, bound, found in PARTS[part](report, setups):
            holds = found is not None and (found >= bound if sense == ">=" else found <= bound)
            bad |= not holds
            rows.append((name, f"{sense} {bound:g}",
                         "missing" if found is None else f"{found:.3f}", "yes" if holds else "no"))
    with (report / "limits.csv").open("w", encoding="utf-8") as limits:
        csv.writer(limits, lineterminator="\n").writerows(rows)
    for row in rows:
        print("{:<58} {:>9} {:>10} {:>6}".format(*row))
    return bad


if __name__ == "__main__":
    sys.exit(main())
