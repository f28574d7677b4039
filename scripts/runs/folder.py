"""One run folder."""

import fcntl
import functools
import os
from pathlib import Path

from . import UserError, kept, nearest_is

FINISHED, STOPPED, UNFINISHED, RUNNING, WAITING, BROKEN = (
    "finished", "stopped", "unfinished", "running", "waiting", "broken")
TOTALS = ("steps", "train_seconds", "images_per_s", "bytes_sent", "nnz_over_k")  # of summary.json
PHASES = ("data", "forward", "backward", "select", "exchange", "update")


class Run:
    """A run folder; its files are read when they are needed. UserError names a file that is
    missing or broken."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.tables = {}
        check_folder(self.folder)
        if not is_run(self.folder) and any(map(is_run, self.folder.glob("*/"))):
            raise UserError(f"{folder} is a folder of runs; give {folder}/*")

    def __getitem__(self, name):
        """A column of metrics.csv."""
        return self.metrics.numbers(name)

    @property
    def metrics(self):
        return self.table("metrics.csv")

    @property
    def steps(self):
        return self.table("steps.csv")

    @functools.cached_property
    def config(self):
        path = self.folder / "config.json"
        config = read_json(path)
        for key in ("set", "run"):
            if not isinstance(config.get(key, {}), dict):
                raise UserError(f"{path}: {key} is no object")
        return config

    @functools.cached_property
    def summary(self):
        """summary.json, which a run writes at its end; empty before."""
        path = self.folder / "summary.json"
        summary = read_json(path) if kept.exists(path) else {}
        for key in TOTALS:
            if summary and not isinstance(summary.get(key), (int, float)):
                raise UserError(f"{path}: {key} is {summary.get(key)!r}; expected a number")
        return summary

    @property
    def has_few_classes(self):
        """Whether top-5 says nothing: the run names less than ten classes."""
        return 0 < len((self.summary or self.config.get("run", {})).get("classes") or ()) < 10

    def table(self, name):
        """A table of the run. It is read once."""
        if name not in self.tables:
            self.tables[name] = kept.read_table(self.folder / name)
        return self.tables[name]

    def optional(self, name):
        """A table that not every run writes, or None."""
        return self.table(name) if kept.exists(self.folder / name) else None

    @functools.cached_property
    def steps_per_epoch(self):
        """0 if it is not known, as of runs of an older version."""
        try:
            length = self.config.get("run", {}).get("steps_per_epoch")
        except UserError:
            return 0
        return length if isinstance(length, int) and length > 0 else 0

    @functools.cached_property
    def name(self):
        """The name of the folder."""
        return self.folder.resolve().name

    @functools.cached_property
    def epochs(self):
        """Finished epochs. The last row may be of an epoch that --max-steps cut."""
        known = self.summary.get("epochs") if self.state in (FINISHED, STOPPED) else None
        if isinstance(known, int):
            return known
        done = self["epoch"]
        return int(done[-1]) if done else 0

    @functools.cached_property
    def written(self):
        """The time of its last epoch; 0 for a kept run."""
        path = self.metrics.path
        return path.stat().st_mtime if path.exists() else 0

    @functools.cached_property
    def state(self):
        """finished; stopped: by a signal; running: a process holds the lock of the folder; waiting:
        it was killed, and `thinwire run`, which holds the lock of run.log, will start it again;
        unfinished: killed, or it resumed the run of an older summary and was killed."""
        if kept.lookup(self.folder / "summary.json"):
            return FINISHED
        if locked(self.folder):
            return RUNNING
        if not self.summary or last_step(self.folder / "steps.csv") > self.summary["steps"]:
            log = self.folder / "run.log"
            return WAITING if log.exists() and locked(log) else UNFINISHED
        return STOPPED if self.summary.get("stopped") else FINISHED


def check_folder(folder):
    """UserError unless it is a folder, or that of kept runs; names the run of that name, or the
    nearest folder beside it."""
    if not folder.is_dir() and not kept.below(folder):
        run, beside = Path("runs") / folder, (path.name for path in folder.parent.glob("*/"))
        near = nearest_is(folder.name, beside, os.path.dirname(folder))
        raise UserError(f"{folder}: not a folder" + (f"; {run} is" if run.is_dir() else near))


def last_step(path):
    """The number in the last line of steps.csv, without reading the lines before; 0 if it has
    none."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            lines = file.read().split(b"\n")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    number = lines[-2].split(b",")[0] if len(lines) > 1 else b""
    return int(number) if number.isdigit() else 0


def read_json(path):
    """A JSON object."""
    value = kept.read_json(path)
    if not isinstance(value, dict):
        raise UserError(f"{path}: " + ("not a JSON object" if path.exists() else
                                       "No such file or directory"))
    return value


def locked(path):
    """Whether a process holds an exclusive flock() on it, as `train` does on its folder."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # not to wait at a pipe
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(file)


def is_run(folder):
    """Whether a folder is that of a run, broken or not."""
    names = {"metrics.csv", "steps.csv", "config.json"}
    try:
        found = {name for name in [*names, "checkpoints"] if kept.exists(folder / name)}
    except PermissionError:
        return False
    return bool(found & names) and (len(found) > 1 or "config.json" not in found)


def below(folder):
    """The run folders below a folder, or the folder itself, by name."""
    check_folder(folder)
    if is_run(folder):
        return [folder]
    found = [path for path in kept.below(folder) if is_run(path)]
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            try:
                found += below(path)
            except PermissionError:
                continue
    return sorted(set(found))
