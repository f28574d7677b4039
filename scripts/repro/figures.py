"""The figure of a claim, as PNG and SVG. Needs matplotlib."""

import itertools
import math
import statistics
import textwrap

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from runs.figures import COLOURS, PHASE_COLOURS, STYLE, label_bytes, write_picture
from runs.kept import exists
from runs.tables import totals

from .comparable import left_out_rows
from .programs import read_csv
from .values import same

SECONDS = "+seconds"  # of training


def column(records, name):
    """A column of a table; "+name" is its running sum."""
    values = [record.get(name.lstrip("+")) for record in records]
    return totals(values) if name.startswith("+") else values


def points(records, x, y):
    """[(x, y)] where y is a number, and x one or a name, in the order of x."""
    pairs = zip(column(records, x), column(records, y))
    return sorted((a, b) for a, b in pairs if a not in (None, "") and isinstance(b, float))


def seeds_of(curve, panel, results):
    """The points of each seed of a curve; one list where several results form it."""
    if curve.points is not None:
        return [list(curve.points.items())]
    seeds = []
    for result in (one for row in curve.rows for one in results.get(row.name, ())):
        if not result.finished or (panel.file and not exists(result.folder / panel.file)):
            continue
        records = read_csv(result.folder / panel.file) if panel.file else result.records
        seeds.append(points([record for record in records if all(
            same(record.get(key), wanted) for key, wanted in curve.where.items())],
            panel.x, curve.y or panel.y))
    if not panel.file:
        seeds = [sorted(itertools.chain(*seeds))]
    return list(filter(None, seeds))


def draw_mean(axes, seeds, style, colour, label, marker="o", band=True, **how):
    """The mean of the curves of several seeds, and a band between the lowest and the highest."""
    length = min(map(len, seeds))
    x, y = ([statistics.fmean(seed[i][axis] for seed in seeds) for i in range(length)]
            for axis in (0, 1))
    axes.plot(x, y, style, color=colour, label=label, marker=marker if length < 30 else None,
              **how)
    if len(seeds) > 1 and band:
        axes.fill_between(x, [min(seed[i][1] for seed in seeds) for i in range(length)],
                          [max(seed[i][1] for seed in seeds) for i in range(length)],
                          color=colour, alpha=0.2, linewidth=0)


def draw_shares(axes, panel, results):
    """Bars, one above the other: the share of each curve in the sum of all."""
    parts = [dict(seed) for curve in panel.curves for seed in seeds_of(curve, panel, results)[:1]]
    below = dict.fromkeys(parts[0], 0.0)
    for curve, part, colour in zip(panel.curves, parts, PHASE_COLOURS[1::2]):
        shares = [part[x] / sum(each[x] for each in parts) for x in below]
        axes.bar(list(below), shares, 0.6, list(below.values()), color=colour, label=curve.label)
        below = {x: low + share for (x, low), share in zip(below.items(), shares)}
    axes.set(title=panel.title, ylabel=panel.ylabel)


def draw_panel(axes, panel, results):
    if panel.stacked:
        draw_shares(axes, panel, results)
        return
    drawn = 0
    for number, curve in enumerate(panel.curves):
        if not (seeds := seeds_of(curve, panel, results)):
            continue
        if panel.relative:
            seeds = [[(x, y / seed[0][1]) for x, y in seed] for seed in seeds]
        # the same in all panels, also where others are left out
        colour = COLOURS[(number if curve.colour is None else curve.colour) % len(COLOURS)]
        # curves beyond the number of colours are dotted
        style = curve.style or ("-" if number < len(COLOURS) else ":")
        # later curves are thinner, so that equal ones are seen
        draw_mean(axes, seeds, style, colour, curve.label, linewidth=max(1.2, 3.6 - 0.9 * drawn))
        drawn += 1
    axes.set(title=panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel)
    scale_axes(axes, panel)


def scale_log(axes):
    """A logarithmic y axis, with labels between powers of ten where these are too few."""
    axes.set_yscale("log")
    least, most = axes.dataLim.minposy, axes.dataLim.y1
    if most < 1000 * least:
        digits = (1, 2, 3, 5, 7) if most < 10 * least else (1, 2, 5)
        axes.yaxis.set(major_locator=LogLocator(subs=digits), major_formatter="{x:g}",
                       minor_locator=NullLocator())


def scale_axes(axes, panel):
    if "y" in panel.log:
        scale_log(axes)
    elif not panel.file:  # seconds and rates, which compare from zero
        axes.set_ylim(0, 1.05 * axes.dataLim.y1)
    if panel.xlabel == "ranks":
        axes.set_xscale("log", base=2)
        axes.xaxis.set(major_formatter="{x:g}", minor_locator=NullLocator())
    elif "x" in panel.log:
        axes.set_xscale("log")
    if panel.x in ("epoch", "step"):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if "bytes" in panel.x:
        spans = [line.get_xdata() for line in axes.get_lines()]
        ends = [max(span) for span in spans if len(span)]
        label_bytes(axes, "x" in panel.log or (ends and min(ends) > 0
                                               and max(ends) > 20 * min(ends)))
    if panel.relative and "y" not in panel.log:
        axes.set_ylim(0, 1.05)


def grid(count, columns, width, height):
    """A figure, its axes, and a strip below them for the legend."""
    columns = min(columns, max(1, count))
    rows = -(-max(1, count) // columns)
    figure = plt.figure(figsize=(max(7.5, width * columns), height * rows + 0.9))
    spec = figure.add_gridspec(rows + 1, columns, height_ratios=[1] * rows + [0.9 / 6 / rows])
    axes = [figure.add_subplot(spec[i // columns, i % columns]) for i in range(count)]
    strip = figure.add_subplot(spec[-1, :])
    strip.axis("off")
    return figure, axes, strip


def legend_width(labels, columns):
    """About the inches of a legend: 13 characters each, and 10 for the line before a label."""
    labels, rows = list(labels), math.ceil(len(labels) / columns)
    return sum(10 + max(map(len, labels[i:i + rows])) for i in range(0, len(labels), rows)) / 13


def draw_legend(axes, strip, columns, key=lambda _label: 0):
    """One legend for the curves of all axes, sorted by key(label)."""
    legend = {label: line for one in axes
              for line, label in zip(*one.get_legend_handles_labels())}
    legend = {label: legend[label] for label in sorted(legend, key=key)}
    if legend:
        fitting = (n for n in range(min(len(legend), columns), 1, -1)
                   if legend_width(legend, n) <= strip.figure.get_figwidth())
        strip.legend(legend.values(), legend, loc="center", fontsize=9, handlelength=3.5,
                     ncols=next(fitting, 1))


def panels(plan, results):
    """A grid of panels with one legend below them. Rows whose seconds may not be compared are not
    in panels by time."""
    left_out = left_out_rows(results)
    timed = {name: each for name, each in results.items() if name not in left_out}
    drawn = [(panel, rows) for panel in plan.panels
             for rows in [timed if panel.x == SECONDS else results]
             if any(seeds_of(curve, panel, rows) for curve in panel.curves)]
    columns = plan.columns
    if len(drawn) < len(plan.panels):
        columns = max(1, min(columns, len(drawn) // 2))
    figure, axes, strip = grid(len(drawn), columns, 4.6, 3.6)
    for one, (panel, rows) in zip(axes, drawn):
        draw_panel(one, panel, rows)
    draw_legend(axes, strip, max(4, 2 * min(columns, len(drawn))))
    return figure


def tables_of(plan, results, file):
    """(label, lines of a table in the run folder) of the first finished seed of each row."""
    for name, each in results.items():
        for result in each:
            if result.finished and exists(result.folder / file):
                yield plan.rows[name].label, read_csv(result.folder / file)
                break


def ratios(plan, results):
    """What Top-k and Rand-k take of the squared norm, and both bounds, over the epochs."""
    found = list(tables_of(plan, results, "distributions.csv"))
    figure, every, strip = grid(len(found), 2, 5.5, 4)
    for axes, (label, lines) in zip(every, found):
        epochs = column(lines, "epoch")
        bound = column(lines, "bound")
        for colour, (name, values, style) in zip(COLOURS, (
                ("Top-k", column(lines, "left_topk"), "-"),
                ("Rand-k", column(lines, "left_randk"), "-"),
                ("1 - (1 - k/d)², bound of Top-k", bound, "--"),
                ("k/d, bound of Rand-k", [value**0.5 for value in bound], "--"))):
            axes.plot(epochs, [1 - value for value in values], style, color=colour, label=name,
                      marker="o" if len(epochs) < 30 else None)
        axes.set(title=label, xlabel="epoch", ylabel="1 - ||u - S(u)||² / ||u||²")
        scale_log(axes)  # the ratios themselves are too near to 1 to be told apart
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    draw_legend(every, strip, 4)
    return figure


def density(bins, unit, least=0.05):
    """[(x, density)], x in the given unit; bins narrower than `least` of it are joined."""
    total = sum(line["count"] for line in bins)
    found, start, count = [], None, 0
    for line in bins:
        if start is None:
            start, count = line["low"], 0
        count += line["count"]
        width = (line["high"] - start) / unit
        if width >= least:
            found.append(((start + line["high"]) / 2 / unit, count / total / width))
            start = None
    return [(x, y) for x, y in found if abs(x) < 6]


def deviation(bins):
    """The standard deviation of the values in bins, which count as the middles of their bins."""
    values, counts = [(line["low"] + line["high"]) / 2 for line in bins], column(bins, "count")
    mean = statistics.fmean(values, counts)
    return math.sqrt(statistics.fmean([(value - mean)**2 for value in values], counts))


def histograms(plan, results):
    """Densities of u, and of the residual alone where there is one, in up to six epochs, each in
    units of its own standard deviation."""
    found = list(tables_of(plan, results, "histograms.csv"))
    found += [(label.partition(":")[0] + ": residual alone", lines)
              for label, lines in tables_of(plan, results, "residual_histograms.csv")]
    order = [row.label.partition(":")[0] for row in plan.rows.values()]
    found.sort(key=lambda one: order.index(one[0].partition(":")[0]))
    figure, every, strip = grid(len(found), 3, 4.6, 4)
    for axes, (label, lines) in zip(every, found):
        epochs = sorted({line["epoch"] for line in lines})
        shown = epochs[::-(-len(epochs) // 6)]
        for i, epoch in enumerate(shown):
            bins = [line for line in lines if line["epoch"] == epoch]
            axes.plot(*zip(*density(bins, deviation(bins))), linewidth=1.3,
                      color=plt.get_cmap("viridis")(i / len(shown)), label=f"epoch {epoch:.0f}")
        normal = [(x / 20, statistics.NormalDist().pdf(x / 20)) for x in range(-80, 81)]
        axes.plot(*zip(*normal), "--", linewidth=1.3, color="#888888", label="normal")
        axes.set(title=label, xlabel="value / standard deviation", ylabel="density", yscale="log",
                 xlim=(-6.3, 6.3), ylim=(1e-4, 2 * axes.dataLim.y1))
    draw_legend(every, strip, 7, key=lambda label: (label == "normal", len(label), label))
    return figure


def seeds_text(plan, results):
    """Which seeds the curves of trainings are of, and which rows panels by time lack; empty without
    trainings."""
    every = {plan.rows[name].label: sorted(one.seed for one in each if one.row.seeded
                                           and one.finished) for name, each in results.items()}
    seeds = {label: f"seed{'s' * (len(each) > 1)} {', '.join(map(str, each))}"
             for label, each in every.items() if each}
    if not seeds:
        return ""
    usual = statistics.mode(seeds.values())
    others = "; ".join(f"{label}: {named}" for label, named in seeds.items() if named != usual)
    text = f"Means of {usual}" if "," in usual else usual.capitalize()
    text += f" ({others})" * bool(others)
    text += "; bands from the lowest to the highest." if "," in text else "."
    lacking = [plan.rows[name].label for name in left_out_rows(results)]
    by_time = plan.claim.figure == "panels" and any(panel.x == SECONDS for panel in plan.panels)
    if by_time and 0 < len(lacking) < len(seeds):
        text += f" Panels by time lack {'; '.join(lacking)}: their seconds do not compare."
    return text


def note(figure, text):
    """A small text below a figure, if there is any."""
    if text:
        figure.supxlabel(textwrap.fill(text, int(15 * figure.get_figwidth())), fontsize=8,
                         color="#666666")


def write(figure, path):
    for end in ("png", "svg"):
        write_picture(figure, path.with_name(f"{path.name}.{end}"), 120)
    plt.close(figure)


def save(plan, results, path):
    """Writes PATH.png and PATH.svg."""
    draw = {"panels": panels, "histograms": histograms, "ratios": ratios}[plan.claim.figure]
    with plt.rc_context(STYLE):
        figure = draw(plan, results)
        figure.suptitle(f"{plan.claim.id}: {plan.claim.title} (scale {plan.scale})", x=0.01,
                        ha="left", fontsize=12, fontweight="bold")
        note(figure, f"{plan.note} {seeds_text(plan, results)}".strip())
        write(figure, path)
