#!/usr/bin/env python3
"""plot.py RUN... [-o FILE.png]: draws the curves of one or several run folders.

By epoch: validation accuracy, training loss, entries sent / k. Also accuracy by bytes sent (summed
over ranks), accuracy by seconds of training, and the seconds of each phase.

plot.py --advice FILE.csv [-o FILE.png]: draws the predictions of `advise --csv`: for each number of
ranks, how many times as fast as the best dense exchange each sparsifier is, by bandwidth.
"""

import argparse
import csv
import json
import math
import os
import sys
import textwrap
from pathlib import Path

try:
    import matplotlib
except ImportError:
    # Debian's matplotlib belongs to Debian's python, which may not be the first on the PATH
    system = "/usr/bin/python3"
    if os.path.exists(system) and os.path.realpath(sys.executable) != os.path.realpath(system):
        os.execv(system, [system, *sys.argv])
    sys.exit("plot.py: matplotlib is missing; on Debian: apt-get install python3-matplotlib")

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, PercentFormatter  # noqa: E402

PHASES = ["data", "forward", "backward", "select", "exchange", "update"]
COLUMNS = ["epoch", "train_loss", "val_top1", "seconds", "nnz_over_k", "bytes_sent"]
COLUMNS += [f"sec_{phase}" for phase in PHASES]
# Okabe and Ito's palette: distinguishable with any colour vision
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442"]
# blues: phases of any SGD; oranges: phases of distributed SGD
PHASE_COLOURS = ["#c3d0e4", "#8fabd0", "#5b83b8", "#f5cf98", "#e59a3c", "#b3631a"]
STYLE = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "grid.color": "#e5e5e5",
    "lines.linewidth": 2,
    "lines.markersize": 4,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


class Run:
    """One run folder: columns of metrics.csv by name, and a label."""

    def __init__(self, folder):
        self.folder = Path(folder)
        table = self.folder / "metrics.csv"
        try:
            with open(table, newline="") as file:
                reader = csv.DictReader(file)
                rows = list(reader)
        except OSError as error:
            sys.exit(f"plot.py: {table}: {error.strerror}")
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
        if missing:
            sys.exit(f"plot.py: {table}: missing column(s) {', '.join(missing)}")
        if not rows:
            sys.exit(f"plot.py: {table}: no epoch has been finished yet")
        self.columns = {name: [self.number(table, row, name) for row in rows] for name in COLUMNS}
        self.label = self.describe()

    @staticmethod
    def number(table, row, name):
        """A cell as a float; an empty one (no validation in this epoch) as nan."""
        try:
            return float(row[name] or "nan")
        except (TypeError, ValueError):
            sys.exit(f"plot.py: {table}: {name} is {row[name]!r} in epoch {row['epoch']}")

    def describe(self):
        """The label: name (sparsifier density), as far as config.json has them."""
        try:
            config = json.loads((self.folder / "config.json").read_text())
        except (OSError, json.JSONDecodeError):
            return self.folder.resolve().name
        name = config.get("name") or self.folder.resolve().name
        kind = config.get("sparsifier", "")
        if kind and kind != "dense" and "density" in config:
            kind += f" {config['density']:g}"
        return f"{name} ({kind})" if kind and kind != name else name

    def __getitem__(self, name):
        return self.columns[name]

    def total(self, name):
        """Running sum of a per-epoch column."""
        sums, total = [], 0.0
        for value in self[name]:
            total += value
            sums.append(total)
        return sums


def line(axes, run, x, y, colour):
    """Draws y over x; skips epochs without a value."""
    points = [(a, b) for a, b in zip(x, y) if not math.isnan(b)]
    axes.plot([a for a, _ in points], [b for _, b in points], marker="o", color=colour,
              label=run.label)


def bytes_text(value, _position=None):
    for unit in ["B", "kB", "MB", "GB", "TB"]:
        if abs(value) < 1000 or unit == "TB":
            return f"{value:.3g} {unit}"
        value /= 1000


def draw_phases(axes, runs):
    """One bar per run: seconds of an average epoch by phase, and the rest that no phase counts."""
    for row, run in enumerate(runs):
        left = 0.0
        for phase, colour in zip(PHASES, PHASE_COLOURS):
            mean = sum(run[f"sec_{phase}"]) / len(run["epoch"])
            axes.barh(row, mean, left=left, color=colour, label=phase if row == 0 else None)
            left += mean
        rest = sum(run["seconds"]) / len(run["epoch"]) - left
        if rest > 0:
            axes.barh(row, rest, left=left, color="#dddddd", label="rest" if row == 0 else None)
    names = [run.label.replace(" (", "\n(") for run in runs] if len(runs) > 1 else [""]
    axes.set_yticks(range(len(runs)), names, fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.legend(ncols=4, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def draw(runs, title):
    figure, ((top1, loss, phases), (by_bytes, by_seconds, sent)) = plt.subplots(
        2, 3, figsize=(14, 7.5))
    for run, colour in zip(runs, (COLOURS[i % len(COLOURS)] for i in range(len(runs)))):
        line(top1, run, run["epoch"], run["val_top1"], colour)
        line(loss, run, run["epoch"], run["train_loss"], colour)
        line(by_bytes, run, run.total("bytes_sent"), run["val_top1"], colour)
        line(by_seconds, run, run.total("seconds"), run["val_top1"], colour)
        line(sent, run, run["epoch"], run["nnz_over_k"], colour)
    draw_phases(phases, runs)

    for axes, name, x in [(top1, "Validation top-1", "epoch"), (loss, "Training loss", "epoch"),
                          (by_bytes, "Top-1 by bytes sent", "bytes, all ranks"),
                          (by_seconds, "Top-1 by training time", "seconds"),
                          (sent, "Entries sent / k", "epoch"),
                          (phases, "Time of an epoch by phase", "seconds")]:
        axes.set_title(name)
        axes.set_xlabel(x)
        if x == "epoch":
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (top1, by_bytes, by_seconds):
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    sent.set_ylim(0, 1.1 * max(1.0, *(value for run in runs for value in run["nnz_over_k"])))
    by_bytes.xaxis.set_major_locator(MaxNLocator(5))
    ends = [run.total("bytes_sent")[-1] for run in runs]
    if min(ends) > 0 and max(ends) > 20 * min(ends):
        by_bytes.set_xscale("log")
    by_bytes.xaxis.set_major_formatter(FuncFormatter(bytes_text))
    for axes in (top1, loss):
        axes.legend(fontsize=8, loc="lower right" if axes is top1 else "upper right")
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    return figure


ADVICE = ["gbit_per_s", "speedup", "speedup_low", "speedup_high"]


def read_advice(path):
    """Of a table of `advise --csv`: {ranks: {exchange: rows of ADVICE}}, {ranks: Gbit/s of the
    link}. Exchanges that sum densely count as one for each kind, the fastest collective."""
    try:
        with open(path, newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except OSError as error:
        sys.exit(f"plot.py: {path}: {error.strerror}")
    names = ["sparsifier", "collective", "ranks", "at_link"] + ADVICE
    missing = [name for name in names if name not in (reader.fieldnames or [])]
    if missing:
        sys.exit(f"plot.py: {path}: missing column(s) {', '.join(missing)}")
    if not rows:
        sys.exit(f"plot.py: {path}: no prediction in it")
    panels, links = {}, {}
    for row in rows:
        collective = row["collective"].split()
        label = " ".join([row["sparsifier"], *collective[1:]])  # `dense bf16 overlap`
        try:
            ranks, at_link = int(row["ranks"]), int(row["at_link"])
            numbers = [float(row[name]) for name in ADVICE]
        except (TypeError, ValueError):
            sys.exit(f"plot.py: {path}: a value of {label} is no number")
        if at_link:
            links[ranks] = numbers[0]
        else:
            points = panels.setdefault(ranks, {}).setdefault(label, {})
            points[numbers[0]] = max(points.get(numbers[0], numbers), numbers,
                                     key=lambda point: point[1])
    if not panels:
        sys.exit(f"plot.py: {path}: no prediction for other bandwidths than the link's")
    return {ranks: {label: [points[at] for at in sorted(points)]
                    for label, points in lines.items()} for ranks, lines in panels.items()}, links


def merge_curves(lines):
    """(label, rows) with the curves that are nowhere more than 1 % apart as one."""
    merged = []
    for label, rows in lines.items():
        same = next((curve for curve in merged
                     if all(abs(a[1] / b[1] - 1) < 0.01 for a, b in zip(curve[1], rows))), None)
        if same:
            same[0].append(label)
        else:
            merged.append(([label], rows))
    return [(", ".join(labels), rows) for labels, rows in merged]


def draw_advice(advice, title):
    """A panel for each number of ranks: speed-up over the best dense exchange by bandwidth."""
    panels, links = advice
    columns = 2 if len(panels) == 4 else min(3, len(panels))
    lines = -(-len(panels) // columns)
    figure, grid = plt.subplots(lines, columns, figsize=(6 * columns, 5.5 * lines), squeeze=False)
    looks = {}  # of sparse exchanges; dense ones are grey
    for axes, (ranks, curves) in zip(grid.flat, sorted(panels.items())):
        for label, rows in merge_curves(curves):
            first = label.split(", ")[0]
            if first.startswith("dense"):
                kind = ("bf16" in first) + 2 * ("overlap" in first)
                colour, style = "0.5", ["-", "--", ":", "-."][kind]
            else:
                i = looks.setdefault(first, len(looks))
                colour, style = COLOURS[i % len(COLOURS)], ["-", "--", ":"][i // len(COLOURS) % 3]
            bandwidths = [row[0] for row in rows]
            axes.plot(bandwidths, [row[1] for row in rows], style, color=colour,
                      linewidth=1.8, label=textwrap.fill(label, 44))
            axes.fill_between(bandwidths, [row[2] for row in rows], [row[3] for row in rows],
                              alpha=0.15, linewidth=0, color=colour)
        if ranks in links:
            axes.axvline(links[ranks], color="black", linewidth=0.8)
            axes.annotate("link", (links[ranks], 0.02), xycoords=("data", "axes fraction"),
                          xytext=(3, 0), textcoords="offset points", fontsize=8)
        axes.set_title(f"{ranks} rank{'' if ranks == 1 else 's'}")
        axes.set_xlabel("Gbit/s")
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.legend(fontsize=7, loc="upper right")
    for axes in list(grid.flat)[len(panels):]:
        axes.axis("off")
    for axes in grid[:, 0]:
        axes.set_ylabel("speed-up over the best dense exchange")
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    return figure


def save(make, output):
    """Writes the figure that make() returns, in the common style."""
    with plt.rc_context(STYLE):
        try:
            make().savefig(output, dpi=150)
        except (OSError, ValueError) as error:
            sys.exit(f"plot.py: {output}: {error}")
    print(f"plot.py: {output}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run folder with metrics.csv")
    parser.add_argument("--advice", metavar="CSV", help="draw a table of `advise --csv` instead")
    parser.add_argument("-o", "--output", default="curves.png", help="picture (png, pdf, svg)")
    parser.add_argument("--title", default="", help="text above the picture")
    options = parser.parse_args()
    if bool(options.runs) == bool(options.advice):
        parser.error("expected run folders, or --advice and a table")
    if options.advice:
        advice = read_advice(options.advice)
        save(lambda: draw_advice(advice, options.title), options.output)
        return

    runs = [Run(folder) for folder in options.runs]
    labels = [run.label for run in runs]
    for run in runs:
        if labels.count(run.label) > 1:
            run.label += f" [{run.folder}]"
    save(lambda: draw(runs, options.title), options.output)


if __name__ == "__main__":
    main()
