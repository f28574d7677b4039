"""What repro.py and race.py share: options and their checks, the runs that are missing, signals and
errors, and `keep`."""

import importlib
import os
import shlex
import signal
import sys
from pathlib import Path

from runs import ProgramFailed, exit_code, kept, program_name, with_matplotlib
from runs.options import Parser  # noqa: F401
from runs.output import refused

from . import BIN, ReproError, programs, runs


def add_options(parser, output, seeds):
    """The options of scripts that train; `output` is the default folder, `seeds` a help text."""
    parser.add_argument("--seeds", help=seeds)
    parser.add_argument("--data-dir", default="", help="folder of CIFAR-10 or ImageNet")
    parser.add_argument("--val-size", type=int, metavar="N",
                        help="validate on N training images that are held out, instead of the "
                             "test file of real data (default: as in the recipe)")
    parser.add_argument("--launcher", default="threads", metavar="threads|'mpirun -n {P}'",
                        help="ranks of train: threads, or a command that starts P processes")
    parser.add_argument("--device", default="", help="passed to train and bench")
    parser.add_argument("-b", "--bin", type=Path, default=BIN, help="programs")
    parser.add_argument("--output-dir", type=Path, default=output)
    parser.add_argument("--dry-run", action="store_true", help="print steps, bytes and seconds")
    parser.add_argument("--images-per-s", type=float, default=0,
                        help="throughput for the estimates of --dry-run (default: that of a few "
                        "steps)")


def resolve(given, seeds):
    """Replaces texts by seeds and absolute paths, adds the machine. `seeds` stands for a missing
    --seeds."""
    text = given.seeds or seeds
    try:
        given.seeds = [int(seed) for seed in text.split(",")]
    except ValueError:
        raise ReproError(f"--seeds is {text}; expected numbers such as 1,2,3") from None
    if len(set(given.seeds)) < len(given.seeds) or min(given.seeds) < 0:
        raise ReproError(f"--seeds is {text}; expected different numbers, none negative")
    if given.data_dir:
        given.data_dir = str(Path(given.data_dir).resolve())
        if not Path(given.data_dir).exists():
            raise ReproError(f"--data-dir {given.data_dir} does not exist")
    try:
        words = shlex.split(given.launcher)
    except ValueError:  # no closing quotation
        words = []
    if not words:
        raise ReproError(f"--launcher is {given.launcher or 'empty'}; expected threads, or a "
                         "command that starts {P} processes")
    if given.images_per_s < 0:
        raise ReproError(f"--images-per-s is {given.images_per_s:g}; expected at least 0")
    if given.val_size is not None and given.val_size < 0:
        raise ReproError(f"--val-size is {given.val_size}; expected 0 or more")
    given.output, given.bin = given.output_dir.resolve(), given.bin.resolve()
    given.machine = runs.machine()
    return given


def need(programs, settings):
    """Stops when one of these programs is missing."""
    for name in sorted(programs):
        if not os.access(settings.bin / name, os.X_OK):
            raise ReproError(f"{settings.bin / name} is missing; scripts/build.sh builds it")


def add_keep_options(parser):
    """Those of `keep` besides --output-dir."""
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="for keep: that of the files")
    parser.add_argument("--replace", action="store_true",
                        help="for keep: also replace other results that are kept")


def keep(given):
    """Adds the finished results below --output-dir, and what `advise` said on them, to the kept
    ones. Prints a line for each, and says which have another result already."""
    if not given.to:
        raise ReproError("keep where? --to names a folder")
    output = given.output_dir
    if not output.is_dir():
        raise ReproError(f"--output-dir {output} does not exist")
    done = [folder for folder in kept.results(output) if runs.finished(folder)]
    asked = {parent for folder in done for parent in folder.parents
             if parent.is_relative_to(output) and kept.exists(parent / kept.ADVICE)}
    for folder in done:
        runs.records_of(folder)
    entries = {folder.relative_to(output).as_posix(): kept.entry(folder)
               for folder in sorted({*done, *asked})}
    others = kept.add(entries, given.to, given.replace)
    for run in entries:
        print(run + f": not kept, {given.to} has another result; --replace replaces it"
              * (run in others))
    return 0


def drawing(module):
    """A module that draws; None, and a line that says so, without matplotlib."""
    try:
        return importlib.import_module(module)
    except ImportError:
        print(f"{program_name()}: no figures: matplotlib is missing (apt-get install "
              "python3-matplotlib)", file=sys.stderr)
        return None


def checked(results):
    """Those of {plan: {row: results}}. Stops when one is of other options."""
    found = [one for rows in results.values() for each in rows.values() for one in each]
    for result in found:
        result.check_options()
    return found


def run_missing(chosen, results, settings, outputs):
    """Runs what is not finished; returns the number of failures.

    After the results of a plan, outputs(name) writes what is made of them.
    """
    failures, done = 0, set()
    for name in chosen:
        if skipped := programs.missing_data(results[name], settings):
            print(f"{name}: {skipped}")
        for result in programs.unfinished(results[name]) if not skipped else ():
            if result.finished or result.folder in done:
                continue
            done.add(result.folder)
            print(f"{name}: {result.folder.relative_to(settings.output)}", flush=True)
            try:
                result.run()
            except ProgramFailed as error:
                failures += 1
                print(f"{program_name()}: {error}", file=sys.stderr)
        outputs(name)
    return failures


def main(run):
    """The exit code of run(): as exit_code() says, 128 + n after signal n."""
    with_matplotlib()

    def stop(number, _frame):
        raise runs.Interrupted(number)

    def guarded():
        try:
            return run()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise refused(error) from None

    # while a program runs, runs.follow passes these on to it
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        return exit_code(None, guarded)
    except runs.Interrupted as stopped:
        name = signal.Signals(stopped.args[0]).name
        print(f"{program_name()}: ended by {name}; the same command continues", file=sys.stderr)
        return 128 + stopped.args[0]
