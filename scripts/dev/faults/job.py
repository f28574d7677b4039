"""Short training runs, and what must be the same of an interrupted and of an undisturbed one."""

import csv
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from faults import events

SOURCE = Path(__file__).resolve().parents[3]
IMAGES = 96  # of the training set: two epochs of six steps on two ranks
BATCH = 16  # images of a step, all ranks together
# columns and keys that differ from run to run
CLOCK = ("sec", "images_per_s", "train_seconds")


def write_images(folder):
    """A data set of two classes: copies of the tests' JPEGs, which the trainer crops at random."""
    images = sorted((SOURCE / "tests/data/jpeg").glob("*.jpg"))
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


def rows(path):
    """The rows of a table without the columns of the clock; none if the file is missing."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return [
            {key: value for key, value in row.items() if not str(key).startswith(CLOCK)}
            for row in csv.DictReader(file)
        ]


@dataclass
class Outcome:
    """What a finished run leaves behind, without times."""

    summary: dict
    tables: dict
    files: list

    @staticmethod
    def of(folder):
        try:
            summary = json.loads((folder / "summary.json").read_text())
        except (OSError, ValueError):
            summary = {}
        kept = {key: value for key, value in summary.items() if not key.startswith(CLOCK)}
        found = [str(p.relative_to(folder)) for p in folder.rglob("*")]
        # a signal may have saved another step; only the last one must be the same
        for number, step in enumerate(sorted(folder.glob("checkpoints/step-*"))[:-1]):
            found = [name.replace(step.name, f"step-#{number}") for name in found]
        found.sort()
        tables = {name: rows(folder / name) for name in ("steps.csv", "metrics.csv")}
        tables["events"] = events.rows(folder / "events.out.tfevents.thinwire")
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
        missing, extra = sorted(set(self.files) - set(other.files)), set(other.files)
        extra = sorted(extra - set(self.files))
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
            *self.options, *more,
        ]  # fmt: skip

    def environment(self, **more):
        # a signal to mpirun before its ranks run may leave them in MPI_Init until this limit
        fixed = {"OMP_WAIT_POLICY": "passive", "THINWIRE_START_TIMEOUT": "10"}
        return {**os.environ, **fixed, **{k: str(v) for k, v in more.items()}}

    def run(self, output, name, *more, timeout=120, **variables):
        """Runs to the end: exit code and output, code 124 when it took longer than `timeout`."""
        return run(self.command(output, name, *more), self.environment(**variables), timeout)


def run(command, environment, timeout=120):
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return 124, process.communicate()[0]
        return process.returncode, output


def succeed(command, environment):
    """Ends the script if a run without a fault fails."""
    code, output = run(command, environment)
    if code != 0:
        raise SystemExit(f"a run without faults ends with {code}: {output}")
