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

from .. import ReproError, runs
from . import links
from ..comparable import compute_of, speed, usual_compute
from .rows import LEFT_OUT, steps_of

ALIKE = ("epochs", "batch_size", "bn_stats", "val_size")  # in all trainings of a link
MEASURED, ITERATIONS, UNTRAINED = "measured", "iterations", "iterations, not trained"


class Training(runs.Folder):
    """A finished run folder."""

    finished = True

    def __init__(self, folder):
        super().__init__(folder)
        try:
            self.seed, self.record = self.notes["options"]["seed"], self.records[0]
            self.config, self.steps = Run(folder).config, self.record["steps_of_epochs"]
        except (KeyError, IndexError) as error:
            raise ReproError(f"{folder} is no finished run: {error}") from None

    def measured(self, compute):
        """[(seconds, top-1)] at the end of each validated epoch; a step counts the seconds
        compute[machine] for forward and backward."""
        return self.curve([steps * with_compute([epoch], steps, compute[self.speed.machine])
                           for steps, epoch in zip(self.steps, self.epochs)])

    def by_iterations(self, seconds_of):
        """The same, with the seconds of a step by density; None when a density is missing."""
        if any(epoch["density"] not in seconds_of for epoch in self.epochs):
            return None
        return self.curve([steps * seconds_of[epoch["density"]] for steps, epoch in
                           zip(self.steps, self.epochs)])

    def curve(self, seconds):
        found, total = [], 0.0
        for epoch, more in zip(self.epochs, seconds):
            total += more
            if isinstance(epoch["val_top1"], float):
                found.append((total, epoch["val_top1"]))
        return found

    def seconds_per_iteration(self, compute):
        """The mean, as rounds of local steps have steps with and without an exchange."""
        return (self.record["train_seconds"] / max(1, self.record["steps"]) - self.speed.compute
                + compute[self.speed.machine])


class Entry:
    """A line of the table of a link: a method with its finished trainings by seed, those without a
    link where short runs give the seconds.

    count() sets the clock, the curves of the trainings and the seconds of an iteration.
    """

    def __init__(self, method, trainings, shorts):
        self.method, self.trainings, self.shorts = method, trainings, shorts
        first = (trainings or shorts)[0]
        self.label = first.notes["label"]  # the options of the method as typed
        self.config, self.build = first.config, build.of_notes(first.notes)
        self.mib_per_step = statistics.fmean(one.record["mib_per_step"]
                                             for one in trainings or [first])
        self.folders = [one.folder for one in shorts or trainings]  # of the runs of the seconds
        self.clock, self.curves, self.seconds_per_iteration = None, [], None

    @functools.cached_property
    def speeds(self):
        """Of the runs that the seconds are from."""
        return ([speed(short.notes, lines, len(lines)) for short in self.shorts
                 for lines in [timed_steps(short)]] or [one.speed for one in self.trainings])

    def count(self, compute):
        """Counts the seconds compute[machine] for forward and backward of a step. False if the
        short run of a density is missing."""
        if not self.shorts:
            self.clock, self.curves = MEASURED, [one.measured(compute) for one in self.trainings]
            self.seconds_per_iteration = statistics.fmean(one.seconds_per_iteration(compute)
                                                          for one in self.trainings)
            return True
        seconds_of = {}  # a step, by density
        for short, own in zip(self.shorts, self.speeds):
            lines = timed_steps(short)
            seconds_of[lines[0]["density"]] = with_compute(lines, len(lines),
                                                           compute[own.machine])
        if not self.trainings:  # densities fall during the warm-up
            self.clock, self.seconds_per_iteration = UNTRAINED, seconds_of[min(seconds_of)]
            return True
        self.clock = ITERATIONS
        self.curves = [one.by_iterations(seconds_of) for one in self.trainings]
        self.seconds_per_iteration = seconds_of.get(self.trainings[0].epochs[-1]["density"])
        return None not in self.curves

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


def finished_in(folder, pattern, name_of):
    """{method: finished trainings} of the paths that match; name_of(path) is the method."""
    found = {}
    for path in results(folder, pattern):
        if runs.trained(path):
            found.setdefault(name_of(path), []).append(Training(path))
    return dict(sorted(found.items()))


def trainings_in(folder):
    """{method: finished trainings by seed} of the folder of a link."""
    found = finished_in(folder, "*-s*", lambda path: re.sub(r"-s\d+$", "", path.name))
    return {name: sorted(each, key=lambda one: one.seed) for name, each in found.items()}


def timed_steps(short):
    """The lines of the steps of a short run that count."""
    lines = steps_of(short.folder)
    return lines[LEFT_OUT:] or lines


def with_compute(lines, steps, compute):
    """Mean seconds of a step, from lines of a table of so many steps: their own, but `compute` for
    forward and backward."""
    return (sum(line["seconds"] for line in lines) / max(1, steps) - compute_of(lines, steps)
            + compute)


def entries_of(folder, free, by_short_runs):
    """(entries of a link, {unfinished training: why}); `free` are trainings without a link.
    by_short_runs: a method's short runs count rather than the seconds of its trainings."""
    trained = trainings_in(folder)
    shorts = finished_in(folder, "iterations/*/*-s*", lambda path: path.parent.name)
    found = [Entry(name, each, []) for name, each in trained.items()
             if not (by_short_runs and name in shorts)]
    measured = {one.method for one in found}
    found += [Entry(name, free.get(name, []), each) for name, each in shorts.items()
              if name not in measured]
    started = set(results(folder, "*-s*"))
    finished = {one.folder for each in trained.values() for one in each}
    return found, {path.name: "not finished" for path in sorted(started - finished)}


def check_alike(entries):
    """Stops when trainings of a link differ in ALIKE, or those of a method in other options."""
    seen = {}
    for method, one in ((entry.method, each) for entry in entries for each in entry.trainings):
        shared = {key: one.config.get(key) for key in ALIKE} | {"ranks": one.config["run"]["ranks"]}
        for key, value in (("", shared), (method, {**one.notes["options"], "seed": None})):
            folder, before = seen.setdefault(key, (one.folder, value))
            if differ := [name for name in {**before, **value}
                          if before.get(name) != value.get(name)]:
                raise ReproError(f"{folder} and {one.folder} do not race: they differ in "
                                 + ", ".join(differ))


@dataclasses.dataclass
class Heat:
    """What was run on a link. `unfinished`: why trainings, and methods, have no entry; `compute`:
    seconds of forward and backward of a step, by machine."""
    folder: Path
    entries: list
    unfinished: dict
    compute: dict


def race(folder):
    """{link: Heat} of the folder of a model, slow links first."""
    by_link = {read_json(path / "repro.json")["options"].get("link", links.NONE):
               folder / path.relative_to(folder).parts[0] for path in results(folder)}
    free = trainings_in(by_link[links.NONE]) if links.NONE in by_link else {}
    # trainings without a link are for all links, also those that ran beside other programs
    every = {link: entries_of(by_link[link], free, link == links.NONE)
             for link in sorted(by_link, key=lambda link: (links.parse(link)[0],
                                                           -links.parse(link)[1]))}
    compute = usual_compute(one for entries, _ in every.values() for entry in entries
                            for one in entry.speeds)
    found = {}
    for link, (entries, unfinished) in every.items():
        check_alike(entries)
        counted = {entry: entry.count(compute) for entry in entries}
        unfinished |= {entry.method: "lacks the short run of a density"
                       for entry, whole in counted.items() if not whole}
        found[link] = Heat(by_link[link], [entry for entry, whole in counted.items() if whole],
                           unfinished, compute)
    return found
