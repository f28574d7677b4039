"""Reads and starts runs of Thinwire.

    run = thinwire.train(model="resnet20", sparsifier="gaussiank", ranks=4, epochs=2)
    run.metrics()                     # pandas: a row per epoch
    thinwire.runs("runs").table()     # pandas: a row per run, its settings and results
    run.to_tensorboard("events")      # also to_mlflow() and to_wandb()

docs/python.md describes them. Tables need pandas, the rest needs no package. thinwire.ddp exchanges
the gradients of PyTorch (docs/library.md).
"""

import collections
import importlib.util
import os
import subprocess
import sys
import tempfile
from operator import attrgetter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
# an installation by pip, the source tree: the scripts, and the command that finds programs
SCRIPTS, COMMAND = next(
    (scripts, command) for scripts, command in (
        (PACKAGE / "share/thinwire/scripts", PACKAGE / "bin/thinwire"),
        (PACKAGE.parents[1], PACKAGE.parents[1] / "thinwire")) if command.is_file())
# the package `runs` of the scripts, by a name of its own: a user may have another module `runs`
_spec = importlib.util.spec_from_file_location(f"{__name__}.reader", SCRIPTS / "runs/__init__.py")
assert _spec and _spec.loader
sys.modules[_spec.name] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sys.modules[_spec.name])

from . import trackers
from .library import NonFinite
from .record import record
from .reader import Fault, UserError, folder, measures
from .trackers import needed

__all__ = ["Fault", "NonFinite", "Run", "Runs", "UserError", "record", "runs", "train"]
WHOLE = ("step", "epoch", "images", "bytes_sent")  # columns of int64; the others are float64
STOPPED = 3  # exit code of a run that a signal stopped


def frame(table):
    """A DataFrame of a table; empty cells are nan."""
    columns = {name: table.numbers(name) for name in table.names}
    return needed("pandas", "a table").DataFrame(columns).astype(
        {name: "int64" if name in WHOLE else "float64" for name in columns})


class Run:
    """A run folder. Each call reads it anew, as it may be running. UserError names a file that is
    missing or broken."""
    record = property(lambda self: folder.Run(self.path), doc="what the scripts know of it")
    folder = property(attrgetter("record.folder"), doc="its path")
    name = property(attrgetter("record.name"), doc="the name of the folder")
    state = property(attrgetter("record.state"),
                     doc="finished, stopped (by a signal), running, or unfinished (killed)")
    config = property(attrgetter("record.config"), doc="config.json")
    summary = property(attrgetter("record.summary"), doc="summary.json; empty before the end")
    to_tensorboard, to_mlflow, to_wandb = (
        trackers.to_tensorboard, trackers.to_mlflow, trackers.to_wandb)

    def __init__(self, path):
        self.path = folder.Run(path).folder

    def __repr__(self):
        return f"thinwire.Run({str(self.folder)!r})"

    def metrics(self):
        """metrics.csv as a DataFrame: a row per epoch."""
        return frame(self.record.metrics)

    def steps(self):
        """steps.csv as a DataFrame: a row per step."""
        return frame(self.record.steps)


class Runs(list):
    """A list of runs."""

    def table(self):
        """A DataFrame with a row per run: its settings, its results as in `compare`, and the rest
        of its summary. A broken run has the state `broken` and a reason."""
        rows = [measures.with_settings(run.record) for run in self]
        return needed("pandas", "a table").DataFrame(rows)


def runs(*folders):
    """The runs below folders (default: runs), by path."""
    return Runs(Run(path) for top in folders or ["runs"] for path in folder.below(Path(top)))


def words_of(name, value):
    """The flag of a keyword, as words of a command line; none for None."""
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, dict):
        return [word for key, one in value.items() for word in (flag, f"{key}={text(one)}")]
    if isinstance(value, bool):
        return [flag if value else f"{flag}=false"]
    return [] if value is None else [flag, text(value)]


def text(value):
    if isinstance(value, (list, tuple)):
        return ",".join(map(text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def train(ranks=None, launcher=(), quiet=False, **options):
    """Trains and returns the run; a list of Runs if there are several (seeds, a sweep). A run that
    a signal stopped is returned, too.

    Keywords are the flags of `train`: batch_size=64, nesterov=True, seeds=[1, 2],
    set={"wire.values": "bf16"}. `ranks` are threads of one process, unless a launcher starts
    them: launcher=["mpirun", "-n", "4"]. Prints what `train` prints, unless `quiet`. UserError has
    the line about a wrong option, Fault that about an error of the run."""
    words = [*launcher, str(COMMAND), "train", *words_of("workers", ranks)]
    words += [word for name, value in options.items() for word in words_of(name, value)]
    lines = collections.deque(maxlen=20)
    # rank 0 may be on another machine
    with (tempfile.NamedTemporaryFile("r", dir="." if os.access(".", os.W_OK) else None) as folders,
          subprocess.Popen([*words, "--folders", folders.name], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True) as process):
        for line in process.stdout:
            lines.append(line.strip())
            if not quiet:
                print(line, end="", flush=True)
        found = Runs(map(Run, folders.read().splitlines()))
    if process.returncode not in (0, STOPPED):
        told = [line for line in lines if line.startswith("error: ")] or lines or words
        raise (UserError if process.returncode == 2 else Fault)(told[-1].removeprefix("error: "))
    return found[0] if len(found) == 1 else found
