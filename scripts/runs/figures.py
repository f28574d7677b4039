"""The figures of plot.py: curves of runs, and predictions of `advise`. Needs matplotlib."""

import contextlib
import io
import itertools
import math
import sys
import textwrap

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib import font_manager
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator

from . import UserError, advice, compressors, confusion, curves, output, program_name
from .folder import PHASES
from .measures import UNITS, bytes_text

MOST_POINTS = 200  # of a curve by step
WIDTH, PANEL = 14, 3.75  # inches of a picture, and of the height of a panel
LEAST_ROWS = 5  # for which the panel of phases has room
# Okabe and Ito's palette: distinguishable with any colour vision
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442"]
DASHES = ["-", "--", ":", "-."]
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


def look(number):
    """Colour and dashes of a curve; dashes change when the colours are used up."""
    return COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]


class Unit:
    """What is drawn as one line: a run, or seeds as their mean, with a band from the lowest to the
    highest value of the seeds and of the steps that a point averages."""

    def __init__(self, label, runs, band=False):
        self.label, self.runs, self.band = label, runs, band
        with_steps = [run for run in runs if run.optional("steps.csv")]
        self.width = curves.bin_width(with_steps, MOST_POINTS) if with_steps else 1

    def by_epoch(self, name):
        found = curves.merged([curves.by_epoch(run, name) for run in self.runs])
        return found | {"marker": "o"}

    def by_step(self, name):
        """By epoch without steps.csv."""
        if not all(run.optional("steps.csv") for run in self.runs):
            return self.by_epoch(name)
        return curves.merged([curves.by_step(run, name, self.width) for run in self.runs])

    def phases(self):
        """Seconds of an average epoch by phase, or of all steps before the first epoch ends, and
        the rest that no phase counts."""
        return [curves.mean(values) for values in zip(*map(phases_of, self.runs))]


def phases_of(run):
    table, count = ((run.metrics, len(run.metrics)) if len(run.metrics) else (run.steps, 1))
    found = [sum(table.numbers(f"sec_{phase}")) / count for phase in PHASES]
    return [*found, max(0.0, sum(table.numbers("seconds")) / count - sum(found))]


def line(axes, unit, axis, curve):
    """Draws a curve; points of epochs have markers, and so has a single point."""
    x, y, marker = curve[axis], curve["mean"], curve.get("marker")
    axes.plot(x, y, marker="o" if len(y) == 1 else marker, color=unit.look[0],
              linestyle=unit.look[1], label=unit.label, linewidth=2 if marker else 1.5)
    if unit.band:
        axes.fill_between(x, curve["low"], curve["high"], alpha=0.15, linewidth=0,
                          color=unit.look[0])


def shortened(text, most):
    """The text, or its start and end."""
    return text if len(text) <= most else f"{text[:most // 2]}…{text[1 - most // 2:]}"


def draw_phases(axes, units):
    """One bar per line below its label."""
    for row, unit in enumerate(units):
        left = 0.0
        for phase, colour, seconds in zip((*PHASES, "rest"), (*PHASE_COLOURS, "#dddddd"),
                                          unit.phases()):
            axes.barh(row + 0.15, seconds, 0.45, left, color=colour,
                      label=phase if row == 0 else None)
            left += seconds
        axes.text(0, row - 0.12, shortened(unit.label, 56), fontsize=8, va="bottom")
    space = max(0, LEAST_ROWS - len(units)) / 2  # a single bar is no wall
    axes.set_ylim(len(units) - 0.5 + space, -0.7 - space)
    axes.set_yticks([])
    axes.legend(ncols=4, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0),
                borderaxespad=4.5)


def draw_legend(figure, place, curves):
    """The legend of all panels, in an area of its own; `curves` are those of one of them."""
    labels = [textwrap.fill(run.get_label(), 60) for run in curves]
    axes = figure.add_subplot(place)
    axes.axis("off")
    axes.legend(curves, labels, ncols=legend_columns(curves), handlelength=3.5, fontsize=9,
                loc="center")


def legend_columns(curves):
    """As many columns as the longest label leaves room for."""
    longest = max(min(60, len(run.get_label())) for run in curves)
    return max(1, min(len(curves), int(WIDTH / (0.75 + 0.085 * longest))))


def label_bytes(axes, log):
    """Gives the x axis, whose curves are drawn, ticks at round numbers of KiB, MiB, ..."""
    if log:
        axes.set_xscale("log", base=2)
        axes.set_xlabel(f"{axes.get_xlabel()} (logarithmic)")
        axes.xaxis.set(major_locator=LogLocator(2, numticks=4), major_formatter=bytes_text)
        return
    most = axes.set_xlim(0, max(1, axes.get_xlim()[1]))[1]
    power = min(int(math.log(most, 1024)), len(UNITS) - 1)
    ticks = MaxNLocator(4).tick_values(0, most / 1024 ** power)
    axes.xaxis.set(major_locator=FixedLocator([tick * 1024 ** power for tick in ticks]),
                   major_formatter=lambda at, _: f"{at / 1024 ** power:.4g} {UNITS[power]}")


def decimals(values):
    """The least number of decimals that writes all of these numbers, at most 6."""
    return next((n for n in range(6) if all(abs(round(x, n) - x) < 1e-7 for x in values)), 6)


def label_percents(axis):
    """Labels an axis of fractions, with the decimals that its ticks need."""
    axis.set_major_formatter(FuncFormatter(lambda value, _position: (
        f"{100 * value:.{decimals(100 * axis.get_majorticklocs())}f} %")))


def draw(units):
    figure = plt.figure()
    top1, loss, phases, by_bytes, by_seconds, sent = figure.subplots(2, 3).flat
    ends = []
    for number, unit in enumerate(units):
        unit.look = look(number)
        validation = unit.by_epoch("val_top1")
        for axes, axis in ((top1, "epoch"), (by_bytes, "bytes_sent"), (by_seconds, "seconds")):
            line(axes, unit, axis, validation)
        line(loss, unit, "epoch", unit.by_step("train_loss"))
        line(sent, unit, "epoch", unit.by_epoch("nnz_over_k"))
        ends += [sum(run["bytes_sent"]) for run in unit.runs if len(run.metrics)]
    draw_phases(phases, units)

    for axes, name, x in [(top1, "Validation top-1", "epoch"), (loss, "Training loss", "epoch"),
                          (by_bytes, "Top-1 by bytes sent", "bytes, all ranks"),
                          (by_seconds, "Top-1 by training time", "seconds"),
                          (sent, "Entries sent / k", "epoch"),
                          (phases, "Time of an epoch by phase", "seconds; exchange with waiting")]:
        axes.set(title=name, xlabel=x)
        if x == "epoch" and max((max(one.get_xdata(), default=0) for one in axes.lines),
                                default=0) >= 1:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    for axes in (top1, by_bytes, by_seconds):
        label_percents(axes.yaxis)
    sent.set_ylim(0, 1.1 * max([1.0, *(max(one.get_ydata(), default=0) for one in sent.lines)]))
    label_bytes(by_bytes, log=ends and min(ends) > 0 and max(ends) > 20 * min(ends))
    if not any(len(one.get_xdata()) for one in top1.lines):
        top1.set(xticks=[], yticks=[])
        top1.text(0.5, 0.5, "no validation yet", transform=top1.transAxes, ha="center")
    # no validation, one rank that sends nothing, a dense exchange: there is nothing to see
    for axes, axis, plain in ((by_bytes, 0, 0), (by_seconds, 0, 0), (sent, 1, 1)):
        if all(value == plain for one in axes.lines for value in one.get_data()[axis]):
            axes.remove()
    panels = figure.axes
    columns = 2 if len(panels) == 4 else 3
    heights = [PANEL] * -(-len(panels) // columns)
    heights[panels.index(phases) // columns] = max(PANEL, 1 + 0.36 * len(units))
    heights.append(0.2 + 0.2 * -(-len(units) // legend_columns(top1.lines)))
    grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    for place, axes in enumerate(panels):
        axes.set_subplotspec(grid[place])
    figure.set_size_inches(WIDTH, sum(heights))
    draw_legend(figure, grid[-1, :], top1.lines)
    return figure


def look_of_dense(label):
    """Colour and dashes of a dense exchange: grey, with local steps darker; None for others."""
    name, *kind = label.split()
    if name == "bsp":
        return "0.25", (0, (6, 1, 1, 1, 1, 1))
    if name != "dense":
        return None
    colour = "0.25" if "H=" in label else "0.5"
    return colour, DASHES[("bf16" in kind) + 2 * ("overlap" in kind)]


def draw_advice(predictions):
    """A panel for each number of ranks: speed-up over the best dense exchange by bandwidth.

    Curves of exchanges with local steps have markers.
    """
    panels, links = predictions
    columns = 2 if len(panels) == 4 else min(3, len(panels))
    lines = -(-len(panels) // columns)
    figure, grid = plt.subplots(lines, columns, figsize=(6 * columns, 6.5 * lines), squeeze=False)
    looks = {}  # of sparse exchanges
    for axes, (ranks, lines_of) in zip(grid.flat, sorted(panels.items())):
        for label, rows in advice.merge(lines_of):
            first = label.split(", ")[0]
            colour, style = look_of_dense(first) or look(looks.setdefault(first, len(looks)))
            bandwidths = [row[0] for row in rows]
            axes.plot(bandwidths, [row[1] for row in rows], linestyle=style, color=colour,
                      linewidth=1.8, label=textwrap.fill(label, 44),
                      marker="o" if "H=" in first else None, markevery=4)
            axes.fill_between(bandwidths, [row[2] for row in rows], [row[3] for row in rows],
                              alpha=0.15, linewidth=0, color=colour)
        if ranks in links:
            at_link = next(iter(links[ranks].values()))[0]
            axes.axvline(at_link, color="black", linewidth=0.8)
            axes.annotate("link", (at_link, 0.02), xycoords=("data", "axes fraction"),
                          xytext=(3, 0), textcoords="offset points", fontsize=8)
        axes.set(title=f"{ranks} rank{'' if ranks == 1 else 's'}", xlabel="Gbit/s", xscale="log",
                 yscale="log")
        axes.xaxis.set(major_formatter="{x:g}")
        axes.yaxis.set(minor_locator=LogLocator(subs=(2, 5)), major_formatter="{x:g}",
                       minor_formatter="{x:g}")
        axes.legend(fontsize=7, ncols=2, handlelength=3.5, loc="upper left",
                    bbox_to_anchor=(0, -0.12))
    for axes in list(grid.flat)[len(panels):]:
        axes.axis("off")
    for axes in grid[:, 0]:
        axes.set_ylabel("speed-up over the best dense exchange")
    return figure


def drawable(names):
    """The names, after a choice of fonts; one that no font can write is the number of its class."""
    missing, families = set("".join(names)), []
    usual = font_manager.findfont(font_manager.FontProperties())
    fonts = sorted(font_manager.fontManager.ttflist, key=lambda font: font.fname != usual)
    for font in itertools.takewhile(lambda _: missing, fonts):
        with contextlib.suppress(OSError, RuntimeError):  # gone, or not scalable
            left = missing - set(map(chr, font_manager.get_font(font.fname).get_charmap()))
            if left < missing and "Last Resort" not in font.name:
                missing, families = left, [*families, font.name]
    plt.rcParams["font.family"] = families or ["sans-serif"]
    bad = [name for name in names if missing & set(name)]
    if bad:
        print(f"{program_name()}: no font can write all names, shown are "
              f"{', '.join(f'{name} as {names.index(name)}' for name in bad)}; Debian's "
              "fonts-noto-cjk has Chinese, Japanese and Korean", file=sys.stderr)
    return [str(i) if name in bad else name for i, name in enumerate(names)]


def draw_confusion(table):
    """A cell for each label (row) and prediction (column): its colour is the share of the label's
    images, its number their count."""
    names, counts = table
    most = 60  # names and numbers that are legible
    labels = [shortened(name, 24) for name in drawable(names)] if len(names) <= most else []
    side = min(40, max(4, 0.45 * len(names) + 2))
    figure, axes = plt.subplots(figsize=(side + 1, side))
    picture = axes.imshow(confusion.shares(counts), cmap="Blues", vmin=0, vmax=1)
    axes.set(xlabel="prediction", ylabel="label", title="Images by label and prediction")
    axes.grid(False)
    if labels:
        axes.set_xticks(range(len(names)), labels, rotation=90)
        axes.set_yticks(range(len(names)), labels)
        for label, row in enumerate(confusion.shares(counts)):
            for prediction, share in enumerate(row):
                if counts[label][prediction]:
                    axes.text(prediction, label, f"{counts[label][prediction]:.0f}", fontsize=7,
                              ha="center", va="center", color="white" if share > 0.5 else "black")
    label_percents(figure.colorbar(picture, shrink=0.8, label="share of the label").ax.yaxis)
    return figure


def draw_compressors(methods):
    """A line for each sparsifier: error by bytes, a marker for each density. Those with the same
    points have one line; those without an error but rounding are at the lower edge."""
    figure, axes = plt.subplots(figsize=(10, 6))
    errors = [error for _, points in methods for _, error in points if error >= compressors.EXACT]
    edge = 0.8 * min(errors, default=1)
    lines = {}
    for name, points in methods:
        lines.setdefault(tuple(points), []).append(name)
    for number, (points, names) in enumerate(lines.items()):
        colour, _ = look(number)
        exact = max(error for _, error in points) < compressors.EXACT
        label = ", ".join(names) + " (exact)" * exact
        axes.plot([sent for sent, _ in points], [max(error, edge) for _, error in points],
                  color=colour, linewidth=1, markersize=8, clip_on=False, zorder=3,
                  marker="v" if exact else "os^DP"[number // len(COLOURS) % 5], label=label)
    axes.set_xscale("log", base=4)  # ticks at whole KiB
    axes.set(yscale="log", ylim=(edge, None), xlabel="bytes that all ranks send in a step",
             ylabel="error of the mean over the ranks", title="Error by bytes")
    axes.xaxis.set_major_formatter(bytes_text)
    axes.yaxis.set(minor_locator=LogLocator(subs=(2, 5)), major_formatter="{x:.2g}",
                   minor_formatter="{x:.2g}")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def write_picture(figure, path, dpi):
    picture, kind = io.BytesIO(), path.suffix[1:] or "png"
    try:
        figure.savefig(picture, dpi=dpi, format=kind)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    output.write(path, picture.getvalue(), kind.upper())


def save(draw, data, title, path):
    """Writes the figure that draw(data) returns, in the common style and below a title."""
    with plt.rc_context(STYLE):
        figure = draw(data)
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
        write_picture(figure, path, 150)
    print(f"{program_name()}: {path}")
