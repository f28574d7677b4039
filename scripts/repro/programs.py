"""The command line of a row, and the records of its result.

A record is an object with numbers and texts: one per training run, one per line of the tables that
`bench`, `advise` and `analyze` write.
"""

import collections
import json
import os
import shlex
import statistics
import subprocess
from pathlib import Path

from runs import build, kept, told_by

from . import ROOT

CIFAR_FOLDER = "cifar-10-batches-bin"
CLASSES = 1000  # of ImageNet
FOLDERS = {"imagenet": "ImageNet", "imagefolder": "images in class folders"}
REAL_DATA = ("cifar10", *FOLDERS)
TORCH = "bench torch"  # `bench select` beside PyTorch, which the first python3 on the PATH has
TORCH_SCRIPT = "scripts/bench/select_vs_torch.py"  # which is not installed


def flags(options):
    """Flags of a program from options with the keys of its JSON files."""
    words = []
    for key, value in options.items():
        flag = "--" + key.replace("_", "-")
        if key == "set":
            words += [word for name, one in value.items() for word in (
                "--set", f"{name}={one if isinstance(one, str) else json.dumps(one)}")]
        elif isinstance(value, bool):
            words.append(flag if value else f"{flag}=false")
        else:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            words += [flag, text]
    return words


def holds_out(row, settings):
    """Whether --val-size applies: to training on real data, whose test file it replaces."""
    return (row.program == "train" and settings.val_size is not None
            and row.resolved.get("dataset") in REAL_DATA)


def command(row, settings, more=()):
    """The words that start a row, without those that say where its result goes."""
    program, *sub = row.program.split()
    words = [str(settings.bin / program), *sub]
    if row.program == TORCH:
        words = ["python3", TORCH_SCRIPT, "--bench", words[0]]
    given = dict(row.options)
    ranks = row.resolved.get("workers", 1)
    if row.config:
        words += ["--config", str(Path("configs") / row.config)]
    if row.program == "train" and settings.launcher != "threads":
        given["workers"] = 0
        words = shlex.split(settings.launcher.replace("{P}", str(ranks))) + words
    if settings.device and row.program in ("train", "bench comm", "bench select", TORCH):
        given["device"] = settings.device
    if settings.data_dir and row.resolved.get("dataset") in REAL_DATA:
        given["data_dir"] = settings.data_dir
    if holds_out(row, settings):
        given["val_size"] = settings.val_size
    return words + flags(given) + list(more)


def build_of(row, settings):
    """The build of the program of a row; `versions` is a text that has its libraries, too."""
    program = settings.bin / row.program.split()[0]
    return {**build.of_program(program), "versions": told_by(program, "--version").strip()}


def unfinished(results):
    """Of the results by row of a claim, those that are not finished."""
    return [one for each in results.values() for one in each if not one.finished]


def missing_data(results, settings):
    """A line on the data that unfinished results by row need and --data-dir lacks, or on the source
    tree or PyTorch; empty if nothing is missing."""
    rows = [one.row for one in unfinished(results)]
    if any(row.program == TORCH for row in rows):
        if not (ROOT / TORCH_SCRIPT).exists():
            return f"needs the source tree; {TORCH_SCRIPT} is not installed"
        if subprocess.getstatusoutput("python3 -c 'import torch'")[0]:
            return "needs PyTorch (python3 -c 'import torch')"
    for name in sorted({row.resolved.get("dataset", "") for row in rows}):
        given = Path(settings.data_dir or os.environ.get("THINWIRE_CACHE") or ROOT / "data-cache")
        files = given if given.name == CIFAR_FOLDER else given / CIFAR_FOLDER
        if name == "cifar10" and not (files / "data_batch_1.bin").exists():
            return f"needs CIFAR-10; {files} lacks data_batch_1.bin (scripts/data/get_cifar10.sh)"
        if name in FOLDERS:  # a folder with train/ and val/, or a record file
            classes = [path for path in (given / "train").glob("[!.]*") if path.is_dir()]
            if not settings.data_dir or not (given.is_file() or classes):
                return (f"needs {FOLDERS[name]}; --data-dir names a folder with train/ and val/ or "
                        "a record file")
            if name == "imagenet" and classes and len(classes) != CLASSES:
                return f"needs ImageNet; {given}/train has {len(classes)} of {CLASSES} classes"
    return ""


def read_csv(path):
    """The lines of a table, numbers as float."""
    table = kept.read_table(path)
    return [{name: number(cell) for name, cell in zip(table.names, row)} for row in table.rows]


def of_link(path):
    """The lines of a table, of `advise` those of the link: it predicts for others, too."""
    return [line for line in read_csv(path) if line.get("at_link", 1) == 1]


def number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return text


def seconds_per_step(steps):
    """The median of the lines of steps.csv, without the first ones, if there are more: these
    include warm-up of caches and threads."""
    return statistics.median(line["seconds"] for line in steps[3:] or steps)


def of_training(folder):
    """One record: the summary, and what the other tables of a run add."""
    record = kept.read_json(folder / "summary.json")
    steps, epochs = read_csv(folder / "steps.csv"), read_csv(folder / "metrics.csv")
    record["mib_per_step"] = record["bytes_sent"] / max(1, record["steps"]) / 2**20
    record["seconds_per_step"] = seconds_per_step(steps)
    each = collections.Counter(line["epoch"] for line in steps)
    record["steps_of_epochs"] = [each[epoch["epoch"]] for epoch in epochs]
    record["train_loss"] = epochs[-1]["train_loss"]
    record["first_train_loss"] = epochs[0]["train_loss"]
    table = folder / "distributions.csv"
    lines = read_csv(table) if kept.exists(table) else []
    bounds = [line["left_topk"] / line["bound"] for line in lines if line["bound"]]
    if bounds:  # dense has none
        record["most_topk_over_bound"] = max(bounds)
    if lines:
        record["least_kurtosis"] = min(line["kurtosis"] for line in lines)
        record["most_offset"] = max(abs(line["mean"]) / line["std"] for line in lines)
    return [record]


def of_table(row, path):
    """The lines of a program's table, with the options of the row and derived columns."""
    options = {key: number(value) for key, value in row.resolved.items() if key != "set"}
    records = [{**options, **line} for line in of_link(path)]
    for record in records:
        if row.program == "advise" and "batch_size" in record:
            record["images_per_s"] = record["batch_size"] / record["iteration_seconds"]
        if row.program == "bench comm":
            record["mib_per_rank"] = record["wire_bytes"] / record["ranks"] / 2**20
        if row.program in ("bench select", TORCH):
            record["milliseconds"] = 1e3 * record["seconds"]
    return records


def basis(row):
    """How the numbers of a row come about."""
    if row.program == "advise":
        return "predicted"
    if row.program == "bench comm" and row.resolved.get("simulated_clock"):
        return "simulated clock"
    return "measured on an emulated link" if row.resolved.get("link") else "measured"
