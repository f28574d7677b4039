"""The curves of runs and of groups of seeds, short enough for a page or a picture.

A curve has the positions of its points on each axis (epoch, step, seconds, bytes_sent), `mean`, and
`key`, which is equal for the same point of runs with other seeds. Curves by step are averaged in
bins of equally many steps, in position as in value, and keep the least and greatest value of a bin
as `low` and `high`. Values that are not finite are None.
"""

import math
from collections import Counter

from . import kept
from .folder import PHASES
from .tables import totals

MOST_POINTS = 600
AXES = ("epoch", "step", "seconds", "bytes_sent")
BY_EPOCH = ("val_loss", "val_top1", "val_top5", "density", "nnz_over_k")


def digits(values):
    """Seven digits, which is what the tables have; None for nan and infinity."""
    return [float(f"{value:.7g}") if math.isfinite(value) else None for value in values]


def bin_width(runs, most=MOST_POINTS):
    """Steps per point, so that the longest of these runs has at most `most`."""
    return max(1, math.ceil(max(len(run.steps) for run in runs) / most))


def binned(values, width, reduce):
    return digits([reduce(values[i:i + width]) for i in range(0, len(values), width)])


def mean(values):
    return sum(values) / len(values)


def epoch_positions(epochs, length=0):
    """The epoch of each step as a fraction: 1.5 after half of the second epoch. `length` is the
    number of steps of an epoch; if it is 0, that of the longest one here."""
    longest = max([length, *Counter(epochs).values()])
    seen, positions = {}, []
    for epoch in epochs:
        seen[epoch] = seen.get(epoch, 0) + 1
        positions.append(epoch - 1 + seen[epoch] / longest)
    return positions


def epoch_ends(run):
    """Where each row of metrics.csv lies on the axis of epochs: 0.25 for an epoch that --max-steps
    ended after a quarter."""
    epochs = list(run["epoch"])
    if not epochs or not run.steps_per_epoch or not kept.exists(run.folder / "steps.csv"):
        return epochs
    steps = Counter(run.steps.numbers("epoch"))[epochs[-1]]
    if 0 < steps < run.steps_per_epoch:
        epochs[-1] += steps / run.steps_per_epoch - 1
    return epochs


def by_step(run, name, width):
    """A column of steps.csv."""
    steps = run.steps
    values = steps.numbers(name)
    axes = {"epoch": epoch_positions(steps.numbers("epoch"), run.steps_per_epoch),
            "step": steps.numbers("step"),
            "seconds": totals(steps.numbers("seconds")),
            "bytes_sent": totals(steps.numbers("bytes_sent"))}
    curve = {axis: binned(positions, width, mean) for axis, positions in axes.items()}
    curve["key"] = list(range(len(curve["step"])))
    return curve | {part: binned(values, width, reduce)
                    for part, reduce in (("mean", mean), ("low", min), ("high", max))}


def by_epoch(run, name):
    """A column of metrics.csv without its empty cells."""
    epochs, steps = run["epoch"], run.optional("steps.csv")
    last_step = dict(zip(steps.numbers("epoch"), steps.numbers("step"))) if steps else {}
    axes = {"epoch": epoch_ends(run), "step": [last_step.get(epoch, math.nan) for epoch in epochs],
            "seconds": totals(run["seconds"]), "bytes_sent": totals(run["bytes_sent"]),
            "key": epochs, "mean": run[name]}
    keep = [i for i, value in enumerate(run[name]) if not math.isnan(value)]
    if name == "val_top5" and run.has_few_classes:
        keep = []
    return {axis: digits([values[i] for i in keep]) for axis, values in axes.items()}


def of(run, width):
    """All curves of a run by column."""
    curves = {"train_loss": by_step(run, "train_loss", width)}
    return curves | {name: by_epoch(run, name) for name in BY_EPOCH}


def merged(every):
    """The curves of several seeds as one: means, the least and the greatest value, and of how many
    seeds, over those that have the point."""
    points = {}
    for curve in every:
        for i, value in enumerate(curve["mean"]):
            if value is not None:
                point = {"low": value, "high": value} | {part: values[i]
                                                         for part, values in curve.items()}
                points.setdefault(point["key"], []).append(point)
    found = [points[key] for key in sorted(points)]

    def over(part, reduce):
        every = [[point[part] for point in same if point[part] is not None] for same in found]
        return digits([reduce(values) if values else math.nan for values in every])

    return {"key": sorted(points), "seeds": list(map(len, found)), "low": over("low", min),
            "high": over("high", max),
            **{part: over(part, mean) for part in (*AXES, "mean")}}


def phases(run):
    """Seconds of an average epoch by phase. `exchange` is without `wait`; `other` is the rest that
    no phase counts. Empty before the first epoch ends."""
    if not len(run.metrics):
        return {}
    found = {name: mean(run[f"sec_{name}"]) for name in (*PHASES, "wait")}
    total = mean(run["seconds"])
    found["exchange"] = max(0.0, found["exchange"] - found["wait"])
    found["other"] = max(0.0, total - sum(found.values()))
    return {name: float(f"{value:.7g}") for name, value in found.items()}


def mean_phases(every):
    """Those of several runs as one; runs without an epoch do not count."""
    known = list(filter(None, every))
    return {name: mean([phases[name] for phases in known]) for name in known[0]} if known else {}


def distribution(run, most_epochs=8):
    """The tables that --analyze-every writes: moments by epoch, and of up to `most_epochs` epochs
    the share of the entries per factor of two in magnitude. None without them."""
    table, bars = run.optional("distributions.csv"), run.optional("histograms.csv")
    if not table or not bars or not len(table):
        return None
    epochs = table.numbers("epoch")
    chosen = sorted({epochs[round(i * (len(epochs) - 1) / max(1, most_epochs - 1))]
                     for i in range(most_epochs)})
    counts = {int(epoch): {} for epoch in chosen}
    columns = zip(*(bars.numbers(name) for name in ("epoch", "low", "high", "count")))
    for epoch, start, end, count in columns:
        edges = tuple(sorted((abs(start), abs(end))))
        if epoch in counts:
            counts[int(epoch)][edges] = counts[int(epoch)].get(edges, 0) + count
    histograms = {}
    for epoch, bins in counts.items():
        total = sum(bins.values())
        edges = [edge for edge in sorted(bins) if edge[0] > 0]
        histograms[epoch] = {
            "x": digits([math.sqrt(low * high) for low, high in edges]),
            "mean": digits([bins[low, high] / total / math.log2(high / low)
                            for low, high in edges])}
    moments = {name: digits(table.numbers(name)) for name in table.names}
    return {"moments": moments, "histograms": histograms}
