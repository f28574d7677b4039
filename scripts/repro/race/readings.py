"""Reads the folders of a race: one entry per link and method, with its seeds and its clock.

Seconds are the column `seconds` of metrics.csv: those of the steps of an epoch, mean over the
ranks, without validation and checkpoints. In all rows of a race the same figure takes the place of
those of forward and backward: computing takes as long with every method, and its noise is larger
than what the methods differ by. An accuracy is reached on the line between two epochs.
"""

import dataclasses
import functools
import re
import statistics
from pathlib import Path

from runs import build
from runs.folder import Run
from runs.kept import read_json, results

from .. import ReproError, programs, runs
from . import links
from ..comparable import compute_of, speed, usual_compute
from .rows import LEFT_OUT, steps_of

MEASURED, ITERATIONS, UNTRAINED = "measured", "iterations", "iterations, not trained"


class Training:
    """A finished run folder."""

    finished = True

    def __init__(self, folder, notes):
        self.folder, self.notes = folder, notes
        self.options = notes["options"]
        self.link = self.options.get("link", links.NONE)
        self.seed = self.options["seed"]
        try:
            self.config = Run(folder).config
            self.record = runs.records_of(folder)[0]
            self.epochs = programs.read_csv(folder / "metrics.csv")
        except (KeyError, IndexError) as error:
            raise ReproError(f"{folder} is no finished run: {error}") from None

    def measured(self, compute):
        """[(seconds, top-1)] at the end of each validated epoch; a step counts the seconds
        compute[machine] for forward and backward."""
        return self.curve([steps * with_compute([epoch], steps, compute[self.speed.machine])
                           for steps, epoch in zip(self.record["steps_of_epochs"], self.epochs)])

    def by_iterations(self, seconds_of):
        """The same, with the seconds of a step by density; None when a density is missing."""
        if any(epoch["density"] not in seconds_of for epoch in self.epochs):
            return None
        return self.curve([steps * seconds_of[epoch["density"]] for steps, epoch in
                           zip(self.record["steps_of_epochs"], self.epochs)])

    def curve(self, seconds):
        found, total = [], 0.0
        for epoch, more in zip(self.epochs, seconds):
            total += more
            if isinstance(epoch["val_top1"], float):
                found.append((total, epoch["val_top1"]))
        return found

    @functools.cached_property
    def speed(self):
        return speed(self.notes, self.epochs, self.record["steps"])

    def seconds_per_iteration(self, compute):
        """The mean, as rounds of local steps have steps with and without an exchange."""
        return (self.record["train_seconds"] / max(1, self.record["steps"]) - self.speed.compute
                + compute[self.speed.machine])


@dataclasses.dataclass
class Source:
    """The finished runs of a method that count on a link: short runs if there are any."""
    method: str
    trainings: list
    shorts: list

    @functools.cached_property
    def speeds(self):
        every = [(short.notes, timed_steps(short)) for short in self.shorts]
        return ([speed(notes, lines, len(lines)) for notes, lines in every]
                or [one.speed for one in self.trainings])


@dataclasses.dataclass
class Entry:
    """A line of the table of a link."""
    method: str
    label: str             # the options of the method as typed
    clock: str
    trainings: list        # by seed; those without a link when the clock is iterations
    curves: list           # of these
    seconds_per_iteration: float
    mib_per_step: float    # mean of the seeds
    speeds: list           # of the runs that the seconds are from
    folders: list          # of these
    config: dict
    build: dict            # commit, date and compiler of the first one

    def reached(self, target):
        """Seconds until top-1 reaches the target, one number per seed that does."""
        firsts = (crossing(curve, target) for curve in self.curves)
        return [at for at in firsts if at is not None]

    def seconds(self, target):
        """The mean of these; None unless every seed reaches the target."""
        found = self.reached(target)
        return statistics.fmean(found) if found and len(found) == len(self.curves) else None

    @property
    def top1(self):
        return [training.record["val_top1"] for training in self.trainings]


def crossing(curve, target):
    """Where a curve [(x, y)] first reaches the target, on the lines between its points; or None."""
    for (x0, y0), (x1, y1) in zip([curve[0], *curve] if curve else (), curve):
        if y1 >= target:
            return x1 if y1 == y0 else x0 + (x1 - x0) * (target - y0) / (y1 - y0)
    return None


def read(folder):
    """A finished training in this folder, or None."""
    notes = read_json(folder / "repro.json")
    return Training(folder, notes) if notes and runs.trained(folder) else None


def trainings_in(folder):
    """{method: finished trainings by seed} of the folder of a link."""
    found = {}
    for path in results(folder, "*-s*"):
        if training := read(path):
            found.setdefault(re.sub(r"-s\d+$", "", path.name), []).append(training)
    return {name: sorted(each, key=lambda one: one.seed) for name, each in sorted(found.items())}


def short_runs_in(folder):
    """{method: finished short runs} of the folder of a link."""
    found = {}
    for path in results(folder, "iterations/*/*-s*"):
        if short := read(path):
            found.setdefault(path.parent.name, []).append(short)
    return found


def timed_steps(short):
    """The lines of the steps of a short run that count."""
    lines = steps_of(short.folder)
    return lines[LEFT_OUT:] or lines


def with_compute(lines, steps, compute):
    """Mean seconds of a step, from lines of a table of so many steps: their own, but `compute` for
    forward and backward."""
    return (sum(line["seconds"] for line in lines) / max(1, steps) - compute_of(lines, steps)
            + compute)


def seconds_of(source, compute):
    """{density: mean seconds of a step} of the short runs of a method."""
    found = {}
    for short, own in zip(source.shorts, source.speeds):
        lines = timed_steps(short)
        found[lines[0]["density"]] = with_compute(lines, len(lines), compute[own.machine])
    return found


def entry(source, clock, curves, seconds):
    first = (source.trainings or source.shorts)[0]
    mib = statistics.fmean(one.record["mib_per_step"] for one in source.trainings or [first])
    return Entry(source.method, first.notes["label"], clock, source.trainings, curves, seconds,
                 mib, source.speeds, [one.folder for one in source.shorts or source.trainings],
                 first.config, build.of_text(first.notes["versions"]))


def sources_of(folder, free, by_short_runs):
    """(sources of a link, names of unfinished trainings); `free` are those without a link.
    by_short_runs: a method's short runs count rather than the seconds of its trainings."""
    trained, short_runs = trainings_in(folder), short_runs_in(folder)
    measured = {name: each for name, each in trained.items()
                if not (by_short_runs and name in short_runs)}
    found = [Source(name, each, []) for name, each in measured.items()]
    found += [Source(name, free.get(name, []), shorts) for name, shorts in short_runs.items()
              if name not in measured]
    started = set(results(folder, "*-s*"))
    finished = {one.folder for each in trained.values() for one in each}
    return found, [path.name for path in sorted(started - finished)]


def entry_of(source, compute):
    """The entry of a source; None if the short run of a density is missing."""
    if not source.shorts:
        each = source.trainings
        return entry(source, MEASURED, [one.measured(compute) for one in each],
                     statistics.fmean(one.seconds_per_iteration(compute) for one in each))
    by_density = seconds_of(source, compute)
    if not source.trainings:  # densities fall during the warm-up
        return entry(source, UNTRAINED, [], by_density[min(by_density)])
    curves = [one.by_iterations(by_density) for one in source.trainings]
    last = source.trainings[0].epochs[-1]["density"]
    return None if None in curves else entry(source, ITERATIONS, curves, by_density[last])


@dataclasses.dataclass
class Heat:
    """What was run on a link. `unfinished`: names of trainings; `missing`: texts on methods
    without an entry; `compute`: seconds of forward and backward of a step, by machine."""
    folder: Path
    entries: list
    unfinished: list
    missing: list
    compute: dict


def race(folder):
    """{link: Heat} of the folder of a model, slow links first."""
    by_link = {read_json(path / "repro.json")["options"].get("link", links.NONE):
               folder / path.relative_to(folder).parts[0] for path in results(folder)}
    free = trainings_in(by_link[links.NONE]) if links.NONE in by_link else {}
    # trainings without a link are for all links, also those that ran beside other programs
    sources = {link: sources_of(by_link[link], free, link == links.NONE)
               for link in sorted(by_link, key=lambda link: (links.parse(link)[0],
                                                              -links.parse(link)[1]))}
    compute = usual_compute(source for each, _ in sources.values() for source in each)
    found = {}
    for link, (each, unfinished) in sources.items():
        entries = [entry_of(source, compute) for source in each]
        missing = [f"`{source.method}` lacks the short run of a density"
                   for source, made in zip(each, entries) if made is None]
        found[link] = Heat(by_link[link], list(filter(None, entries)), unfinished, missing,
                           compute)
    return found
