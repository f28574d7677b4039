"""The figure of a race: top-1 over seconds on each link. Needs matplotlib."""

import statistics

from matplotlib.ticker import FuncFormatter, PercentFormatter

from .. import figures
from ..figures import COLOURS, STYLE, plt
from . import links
from .methods import is_dense_exchange, is_plain_dense
from .readings import ITERATIONS

OTHERS = "#cccccc"
MARKERS = "os^Dv<>P"
LEFT_OUT = "seconds left out"  # the label of hollow curves
LOCAL = ":"  # the line of methods with local steps


def shown(sections):
    """The methods with a colour: winners, advised ones, the best dense rows, then by place."""
    first, places = [], {}
    for _, ranking, advised, _ in sections:
        trained = [entry for entry in ranking.compared if entry.curves]
        first += trained[:1]
        if advised and advised.named in trained:
            first.append(advised.named)
        for fits in (is_plain_dense, is_dense_exchange):
            first += [entry for entry in trained if fits(entry)][:1]
        for place, entry in enumerate(trained):
            places[entry.method] = min(place, places.get(entry.method, place))
    names = list(dict.fromkeys(entry.method for entry in first))
    return names + [name for name in sorted(places, key=places.__getitem__) if name not in names]


def styles(names):
    """{method: colour}; plain dense is black, those beyond the palette share a grey."""
    black, palette = "#000000", [one for one in COLOURS[:7] if one != "#000000"]
    rest = [name for name in names if name != "dense"]
    return {"dense": black, **dict(zip(rest, palette))}


def draw(axes, entries, left_out, target, colours):
    """The curves of the trained entries of a link and a line at the target; those whose seconds
    are left out are hollow."""
    for entry in left_out:
        figures.draw_mean(axes, entry.curves, "-", OTHERS, LEFT_OUT, marker="o", band=False,
                          linewidth=0.8, markerfacecolor="white", zorder=1.2)
    for entry in entries:
        local = entry.config["local_steps"] > 1
        style = LOCAL if local else "-"
        if (colour := colours.get(entry.method)) is None:  # no bands, below the others
            figures.draw_mean(axes, entry.curves, style, OTHERS,
                              "others, local steps" if local else "other methods", marker=None,
                              band=False, linewidth=1.5 if local else 1, zorder=1.5)
            continue
        figures.draw_mean(axes, entry.curves, style, colour, entry.method, linewidth=1.8,
                          marker=MARKERS[list(colours).index(entry.method)])
    axes.axhline(target, linestyle="--", linewidth=1, color="#888888", zorder=1)
    clocks = {entry.clock for entry in [*entries, *left_out]}
    axes.set_xlabel("seconds of training" + (" (iterations × s)" if ITERATIONS in clocks else ""))
    axes.set_ylabel("validation top-1")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))


def scale(axes, entries):
    """A logarithmic axis of seconds where curves end at very different times."""
    ends = [statistics.fmean(curve[-1][0] for curve in entry.curves) for entry in entries]
    if max(ends) > 8 * min(ends):
        axes.set_xscale("log")
        axes.set_xlim(left=min(curve[0][0] for entry in entries for curve in entry.curves) / 1.2)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        axes.set_xlim(left=0)
    axes.set_xlim(right=1.05 * max(ends))  # curves that are left out may end later


def zoom(axes, entries, target, highest):
    """Limits around the target, from the first curve that comes near it."""
    lowest = max(0, target - 2 * max(0.02, highest - target))
    near = [at for entry in entries for curve in entry.curves for at, top1 in curve
            if top1 >= lowest]
    if near and highest > lowest and min(near) < max(near):
        first, last = min(near), max(near)
        axes.set_xlim(first - 0.05 * (last - first), last + 0.05 * (last - first))
        axes.set_ylim(lowest, highest + 0.1 * (highest - lowest))


def left_out_text(sections):
    """The methods whose seconds are left out, by link; empty if there are none."""
    each = "; ".join(f"{links.title(link)}: {', '.join(ranking.left_out)}"
                     for link, ranking, _, _ in sections if ranking.left_out)
    return each and f"Hollow, as their seconds may not be compared with the others': {each}."


def save(model, sections, path):
    """Writes PATH.png and PATH.svg: above the whole curves, below what is near the target."""
    drawn = []
    for link, ranking, _, _ in sections:
        curved = [entry for entry in ranking.entries if entry.curves and all(entry.curves)]
        compared = [entry for entry in curved if entry in ranking.compared]
        if compared:
            drawn.append((link, compared, [one for one in curved if one not in compared]))
    if not drawn:
        return
    target = sections[0][1].target
    every = [top1 for _, entries, _ in drawn for entry in entries for curve in entry.curves
             for _, top1 in curve]
    names = shown(sections)
    colours = styles(names)
    with plt.rc_context(STYLE):
        figure, axes, strip = figures.grid(2 * len(drawn), len(drawn), 4.6, 3.6)
        for i, (link, entries, left_out) in enumerate(drawn):
            whole, near = axes[i], axes[len(drawn) + i]
            for one in (whole, near):
                draw(one, entries, left_out, target, colours)
            scale(whole, entries)
            margin = 0.05 * (max(*every, target) - min(every))
            whole.set_ylim(min(every) - margin, max(*every, target) + margin)
            whole.set_title(links.title(link))
            zoom(near, entries, target, max(every))
            near.set_title("near the target")
        order = {name: place for place, name in enumerate(names)}
        figures.draw_legend(axes, strip, max(4, 3 * len(drawn)),
                            key=lambda label: order.get(label, len(order)))
        figure.suptitle(f"{model}: top-1 over seconds of training (dashed: {100 * target:g} %, "
                        "dotted: local steps)", x=0.01, ha="left", fontsize=12, fontweight="bold")
        figures.note(figure, left_out_text(sections))
        figures.write(figure, path)


def save_chosen(link, entries, target, path):
    """Writes PATH.png and PATH.svg: the curves of a few trained entries on a link."""
    with plt.rc_context(STYLE):
        figure, (axes,), strip = figures.grid(1, 1, 7.2, 3.8)
        draw(axes, entries, [], target, styles([entry.method for entry in entries]))
        scale(axes, entries)
        axes.set_title(links.title(link))
        figures.draw_legend([axes], strip, 4)
        figures.write(figure, path)
