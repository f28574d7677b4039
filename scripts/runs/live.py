"""A run while it is written: what was added since the last look, its speed and its end."""

import bisect
import os
import time
from array import array

from . import UserError, folder
from .tables import Table, known

RECENT = 20  # steps of a mean; `train` writes steps.csv in blocks of as many
COLUMNS = ("step", "epoch", "train_loss", "train_top1", "images", "seconds", "bytes_sent",
           "sec_exchange")
PREPARING = "preparing"  # no step is written yet


def number(value):
    """A number of config.json, 0 where it has none."""
    return value if isinstance(value, (int, float)) else 0


class Growing:
    """Columns of a table, of which each refresh() reads only what was added."""

    def __init__(self, path, names):
        self.path, self.columns = path, {name: array("d") for name in names}
        self.forget()

    def forget(self):
        self.file, self.offset, self.places = None, 0, []
        for column in self.columns.values():
            del column[:]

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def refresh(self):
        """Reads all again if the file was replaced, as by a run that resumes."""
        try:
            with open(self.path, "rb") as file:
                found = self.path.stat()
                if found.st_ino != self.file or found.st_size < self.offset:
                    self.forget()
                self.file = found.st_ino
                file.seek(self.offset)
                added = file.read()
        except FileNotFoundError:
            self.forget()
            return
        except OSError as error:
            raise UserError(f"{self.path}: {error.strerror}") from None
        whole = added[:added.rfind(b"\n") + 1]
        self.offset += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            self.add(line.split(","))

    def add(self, cells):
        if not self.places:
            Table(self.path, cells, []).require(self.columns)
            self.places = [cells.index(name) for name in self.columns]
            return
        try:
            values = [float(cells[place]) for place in self.places]
        except (ValueError, IndexError):
            raise UserError(f"{self.path}: {','.join(cells)!r} is not a row of numbers") from None
        for column, value in zip(self.columns.values(), values):
            column.append(value)


class Live:
    """refresh() sets `run`, the folder as it is now, and `state`, and adds to `steps`; `broken`
    tells which file cannot be read."""

    def __init__(self, path):
        self.path, self.name = path, path.resolve().name
        self.steps = Growing(path / "steps.csv", COLUMNS)
        self.locks = False  # whether a run without a lock has ended
        self.refresh()

    def refresh(self):
        self.broken = ""
        try:
            self.run = folder.Run(self.path)
            self.steps.refresh()
            self.state = self.find_state()
        except UserError as error:
            self.state, self.broken = folder.BROKEN, str(error)

    def find_state(self):
        """That of the folder. A run whose lock was not seen counts as running as long as it writes
        on a disk that other machines may share: their locks may not be seen here."""
        state = self.run.state
        self.locks = self.locks or state == folder.RUNNING or on_own_disk(self.path)
        if (state == folder.UNFINISHED and not self.locks
                and age(self.path) < max(30, 3 * RECENT * self.seconds())):
            state = folder.RUNNING
        return PREPARING if state == folder.RUNNING and not len(self.steps) else state

    @property
    def runs(self):
        return self.state in (folder.RUNNING, folder.WAITING, PREPARING)

    def recent(self, name):
        """Sum of a column over the last steps."""
        return sum(self.steps.columns[name][-RECENT:])

    def seconds(self):
        """Of a step."""
        return self.recent("seconds") / max(1, min(RECENT, len(self.steps)))

    def mean_over_images(self, name):
        images = self.steps.columns["images"][-RECENT:]
        values = self.steps.columns[name][-RECENT:]
        return sum(map(float.__mul__, values, images)) / max(1, sum(images))

    @property
    def step(self):
        return int(self.steps.columns["step"][-1]) if len(self.steps) else 0

    @property
    def epoch(self):
        """Counted from 1."""
        return int(self.steps.columns["epoch"][-1]) if len(self.steps) else 1

    @property
    def total_steps(self):
        """Of the whole run; None if the length of an epoch is not known."""
        config = self.run.config
        length = number(config.get("run", {}).get("steps_per_epoch"))
        if not length and self.epoch > 1:  # an older version wrote the run
            length = self.steps.columns["epoch"].index(2.0)
        if not length:
            return None
        # epochs that were trained on another number of ranks had other lengths
        first = bisect.bisect_left(self.steps.columns["epoch"], self.epoch)
        before = int(self.steps.columns["step"][first]) - 1 if len(self.steps) else 0
        total = before + length * (number(config.get("epochs")) - self.epoch + 1)
        most = number(config.get("max_steps"))
        return min(total, most) if most else total

    def top1(self):
        """Last and best validation; None before the first."""
        values = known(self.run["val_top1"])
        return (values[-1], max(values)) if values else None


def on_own_disk(path):
    """Whether it lies on a disk of this machine alone: no other shares a block device."""
    return os.major(path.stat().st_dev) > 0


def age(path):
    """Seconds since a run wrote a step."""
    try:
        return max(0, time.time() - (path / "steps.csv").stat().st_mtime)
    except FileNotFoundError:
        return float("inf")


def find(paths, every):
    """The run folders among these, and below the others those that may be written now, or all, if
    `every`."""
    return [run for path in paths for run in folder.below(path)
            if every or run == path or folder.locked(run) or age(run) < 30]
