"""Short training runs, and what must be the same of an interrupted and of an undisturbed one."""

import csv
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from faults import SOURCE
from runs.processes import run

IMAGES = 96  # of the training set: two epochs of six steps on two ranks
BATCH = 16  # images of a step, all ranks together
# columns and keys that differ from run to run
CLOCK = ("sec", "images_per_s", "train_seconds")


def write_images(folder):
    """A data set of two classes: copies of the tests' JPEGs, which the trainer crops at random."""
    images = sorted((SOURCE / "tests/data/image").glob("*.jpg"))
    for part, count in (("train", IMAGES), ("val", 10)):
        for i in range(count):
            file = folder / part / "ab"[i % 2] / f"{i}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(images[i // 2 % len(images)], file)


def preload(build):
    """The library that injects faults, or an error."""
    library = Path(build).resolve() / "tests/disk_faults.so"
    if not library.exists():
        raise SystemExit(f"{library} is missing; build the target disk_faults")
    return library


def weights_hash(folder):
    """The hash in summary.json of a run; None before its end."""
    return summary_of(folder).get("weights_hash")


def summary_of(folder):
    try:
        return json.loads((folder / "summary.json").read_text())
    except (OSError, ValueError):
        return {}


def rows(path):
    """The rows of a table without the columns of the clock; none if the file is missing."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return [{key: value for key, value in row.items() if not str(key).startswith(CLOCK)}
                for row in csv.DictReader(file)]


def events(path):
    """The step and the names of each event in TensorBoard's file, without the values; none if the
    file is missing. Steps are below 128, and a value is a f32 number (0x15) behind its name."""
    data = path.read_bytes() if path.exists() else b""
    found, at = [], 12  # an event follows its length and a checksum, and has another one behind it
    while at < len(data):
        event = data[at:at + int.from_bytes(data[at - 12:at - 4], "little")]
        at += len(event) + 16
        names = re.findall(rb"\n.([\w/]+)\x15", event, flags=re.S)
        found.append({"step": event[10] if event[9] == 0x10 else 0, "names": names})
    return found


@dataclass
class Outcome:
    """What a finished run leaves behind, without times."""

    summary: dict
    tables: dict
    files: list

    @staticmethod
    def of(folder):
        kept = {key: value for key, value in summary_of(folder).items()
                if not key.startswith(CLOCK)}
        found = [str(p.relative_to(folder)) for p in folder.rglob("*")]
        # a signal may have saved another step; only the last one must be the same
        for number, step in enumerate(sorted(folder.glob("checkpoints/step-*"))[:-1]):
            found = [name.replace(step.name, f"step-#{number}") for name in found]
        found.sort()
        tables = {name: rows(folder / name) for name in ("steps.csv", "metrics.csv")}
        tables["events"] = events(folder / "events.out.tfevents.thinwire")
        return Outcome(kept, tables, found)

    def differences(self, other):
        """Lines that say how `other` differs; none if it does not."""
        lines = []
        for key in sorted(self.summary.keys() | other.summary.keys()):
            mine, theirs = self.summary.get(key), other.summary.get(key)
            if str(mine) != str(theirs):  # NaN equals itself
                lines.append(f"summary: {key} is {theirs}, expected {mine}")
        for name, mine in self.tables.items():
            theirs = other.tables[name]
            if mine != theirs:
                key = next(iter(mine[0])) if mine else "step"
                got = [row.get(key) for row in theirs]
                odd = [a[key] for a, b in zip(mine, theirs) if a != b]
                detail = f"row {odd[0]} differs" if len(mine) == len(theirs) else f"has rows {got}"
                lines.append(f"{name}: {detail}, expected {len(mine)} rows")
        missing, extra = (sorted(set(one) - set(two)) for one, two in (
            (self.files, other.files), (other.files, self.files)))
        if missing or extra:
            lines.append(f"files: missing {missing}, left behind {extra}")
        return lines


@dataclass(frozen=True)
class Job:
    """A training run: what to train, on which ranks."""

    build: Path
    data: Path
    sparsifier: str = "topk"
    transport: str = "threads"
    ranks: int = 2
    threads: int = 1
    device: str = "cpu"
    model: str = "lenet"
    options: tuple = ()

    def program(self, name):
        return str(Path(self.build).resolve() / "bin" / name)

    def command(self, output, name, *more):
        train = [self.program("train")]
        if self.transport == "mpirun":
            train = ["mpirun", "-n", str(self.ranks), *train]
        else:
            train += ["--workers", str(self.ranks)]
        return [
            *train, "--output-dir", str(output), "--name", name, "--model", self.model,
            "--dataset", "imagefolder", "--data-dir", str(self.data), "--image-size", "32",
            "--batch-size", str(BATCH // self.ranks), "--sparsifier", self.sparsifier,
            "--density", "0.01", "--epochs", "2", "--checkpoint-steps", "4",
            "--threads-per-rank", str(self.threads), "--device", self.device,
            "--comm-timeout", "20", *(["--deterministic"] if self.device == "cuda" else []),
            *self.options, *more]

    def environment(self, **more):
        # a signal to mpirun before its ranks run may leave them in MPI_Init until this limit
        fixed = {"OMP_WAIT_POLICY": "passive", "THINWIRE_START_TIMEOUT": "10"}
        return {**os.environ, **fixed, **{k: str(v) for k, v in more.items()}}

    def run(self, output, name, *more):
        """Runs to the end: exit code and output."""
        return run(self.command(output, name, *more), self.environment())
