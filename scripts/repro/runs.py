"""Results: one folder per row and seed, with the options it was started with.

A finished result is read, an interrupted one resumed. `repro.json` in each folder holds options,
versions, commit, machine and every start.
"""

import contextlib
import datetime
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import time

from runs import ProgramFailed, output
from runs.kept import exists, read_json

from . import ROOT, ReproError, comparable, programs


class Interrupted(Exception):
    """A signal ended this script; its number is the argument."""


def machine():
    """CPU model, cores and GPU of this machine."""
    model = "unknown CPU"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            found = re.search(r"^model name\s*:\s*(.*)$", file.read(), flags=re.M)
            model = found.group(1) if found else model
    except OSError:
        pass
    gpus = []
    if shutil.which("nvidia-smi"):
        told = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
                              capture_output=True, text=True, check=False)
        gpus = told.stdout.split("\n")[:-1] if told.returncode == 0 else []
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)), "gpu": ", ".join(gpus) or "none"}


def write(path, value):
    """Writes a JSON file, whole or not at all."""
    output.write(path, f"{json.dumps(value, indent=2)}\n".encode())


def trained(folder):
    """Whether a training run has reached its end."""
    summary = read_json(folder / "summary.json")
    return summary is not None and summary.get("stopped") is False


def finished(folder):
    """Whether the result in a folder, of training or of another program, is finished."""
    return trained(folder) if exists(folder / "metrics.csv") else exists(folder / "records.json")


def records_of(folder):
    """The records of a finished result, from records.json or the tables of a training run."""
    if not exists(folder / "records.json"):
        write(folder / "records.json", programs.of_training(folder))
    return read_json(folder / "records.json")


class Folder:
    """The folder of a result, or a kept one."""

    def __init__(self, folder):
        self.folder = folder

    @property
    def notes(self):
        """What repro.json holds; empty before the first start."""
        return read_json(self.folder / "repro.json") or {}

    @functools.cached_property
    def records(self):
        """The records of a finished result."""
        return records_of(self.folder)

    @functools.cached_property
    def epochs(self):
        """The lines of metrics.csv."""
        return programs.read_csv(self.folder / "metrics.csv")

    @functools.cached_property
    def speed(self):
        """Machine and seconds of forward and backward of a finished training run."""
        return comparable.speed(self.notes, self.epochs, self.records[0]["steps"],
                                self.records[0].get("steps_of_epochs", ()))


class Result(Folder):
    """The result of a row with a seed; seed is None for programs other than train."""

    again = False  # whether run() replaces a finished result, which does not count as one before

    def __init__(self, row, seed, settings):
        self.row, self.seed, self.settings = row, seed, settings
        *parents, name = row.home
        if row.seeded:
            name += f"-s{seed}"
        super().__init__(settings.results.joinpath(*parents, name))

    @property
    def options(self):
        """What must not differ between the starts of a result."""
        given = dict(self.row.resolved)
        if self.row.seeded:
            given["seed"] = self.seed
        if self.settings.device:
            given["device"] = self.settings.device
        if programs.holds_out(self.row, self.settings):
            given["val_size"] = self.settings.val_size
        return {"program": self.row.program, **given}

    @property
    def finished(self):
        if self.again or not self.notes:
            return False
        return trained(self.folder) if self.row.seeded else exists(self.folder / "records.json")

    def check_options(self):
        """Stops when the folder holds the result of other options."""
        before = self.notes.get("options")
        if before is None or before == self.options:
            return
        keys = [key for key in sorted({*before, *self.options})
                if before.get(key) != self.options.get(key)]
        change = "; ".join(f"{key} is {self.options.get(key)}, was {before.get(key)}"
                           for key in keys)
        raise ReproError(f"{self.folder} holds a result of other options: {change}; remove it or "
                         "choose another --output-dir")

    def run(self):
        """Starts or resumes the program and waits until it ends."""
        if self.again:
            return self.run_beside()
        notes = self.notes
        self.folder.mkdir(parents=True, exist_ok=True)
        words = programs.command(self.row, self.settings)
        table, log = self.folder / "table.csv", self.folder / "log.txt"
        if self.row.seeded:
            words += ["--seed", str(self.seed), "--output-dir", str(self.folder.parent),
                      "--name", self.folder.name, "--resume", "auto"]
        else:
            words += ["--csv", str(table)]
        notes.setdefault("starts", []).append(
            datetime.datetime.now().astimezone().isoformat(timespec="seconds"))
        notes |= {"label": self.row.label, "options": self.options,
                  "build": programs.build_of(self.row, self.settings),
                  "machine": self.settings.machine,
                  "command": words}
        write(self.folder / "repro.json", notes)
        start = time.monotonic()
        try:
            with open(log, "a" if self.row.seeded else "w", encoding="utf-8") as file:
                follow(words, file, log)
            if not self.row.seeded:
                write(self.folder / "records.json", programs.of_table(self.row, table))
        finally:
            table.unlink(missing_ok=True)
            notes["seconds"] = notes.get("seconds", 0) + time.monotonic() - start
            write(self.folder / "repro.json", notes)

    def run_beside(self):
        """Replaces the result when another run of it is whole, which is made in the folder `again`
        beside it and resumed there."""
        fresh = Result(self.row, self.seed, self.settings)
        fresh.folder = self.folder.parent / "again" / self.folder.name
        fresh.check_options()
        fresh.run()
        old = fresh.folder.with_name(f"{self.folder.name}-before")
        if self.folder.exists():  # a kept result has none
            self.folder.rename(old)
        fresh.folder.rename(self.folder)
        shutil.rmtree(old, ignore_errors=True)
        with contextlib.suppress(OSError):  # other runs are there
            fresh.folder.parent.rmdir()
        self.again = False


def follow(words, output, log):
    """Runs a program and passes SIGTERM and SIGINT on to it, once each."""
    received = []
    child = None

    def forward(number, _frame):
        received.append(number)
        if child is not None:
            child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        # a session of its own: a terminal's Ctrl-C arrives only once
        child = subprocess.Popen(words, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT,
                                 start_new_session=True)
        for number in received:
            child.send_signal(number)
        code = child.wait()
    except OSError as error:
        raise ReproError(f"{words[0]}: {error.strerror}") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        raise Interrupted(received[0])
    if code != 0:
        lines = log.read_text().strip().splitlines() or ["no output"]
        raise ProgramFailed(f"exit code {code}: {lines[-1]} (see {log})")


def results_of(row, settings):
    """The results of a row: one per seed for training."""
    return [Result(row, seed, settings) for seed in (settings.seeds if row.seeded else [None])]
