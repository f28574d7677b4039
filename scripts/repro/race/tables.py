"""The tables of a race, as Markdown and CSV."""

import statistics

from runs.tables import markdown

from .. import tables
from ..values import form
from . import links, verdict
from .readings import UNTRAINED

HEAD = ["method", "clock", "s to {target}", "over plain dense", "over best dense", "final top-1",
        "MiB a step", "s an iteration", "seeds"]
COLUMNS = ["model", "link", "ranks", "batch_size", "method", "options", "clock", "seeds", "target",
           "reached", "seconds", "seconds_min", "seconds_max", "over_dense", "over_best_dense",
           "top1", "top1_min", "top1_max", "mib_per_step", "seconds_per_iteration", "commit",
           "date", "compiler", "machine", "left_out"]


def mean_and_band(numbers, text=form):
    band = f" ({text(min(numbers))}–{text(max(numbers))})" if len(numbers) > 1 else ""
    return text(statistics.fmean(numbers)) + band


def number(value, digits):
    return "–" if value is None else f"{value:{digits}}"


def reached_text(ranking, entry):
    if entry.clock == UNTRAINED:
        return "–"
    found = entry.reached(ranking.target)
    if len(found) == len(entry.curves):
        return "left out" if entry.method in ranking.left_out else \
            mean_and_band(found, lambda seconds: f"{seconds:.1f}")
    return f"never for {len(entry.curves) - len(found)} of {len(entry.curves)} seeds" \
        if found else "never"


def line(ranking, entry):
    """The cells of HEAD."""
    return [f"`{entry.method}`", entry.clock, reached_text(ranking, entry),
            number(ranking.ratio(ranking.dense, entry), ".2f"),
            number(ranking.ratio(ranking.best_dense, entry), ".2f"),
            mean_and_band(entry.top1, lambda top1: f"{top1:.4f}") if entry.top1 else "–",
            f"{entry.mib_per_step:.4g}", number(ranking.per_iteration(entry), ".4g"),
            ", ".join(str(one.seed) for one in entry.trainings) or "–"]


def cells(model, link, ranking, entry):
    """The values of COLUMNS."""
    found, top1, seconds = entry.reached(ranking.target), entry.top1, ranking.seconds(entry)
    every = [] if seconds is None else found
    values = [seconds, min(every, default=None), max(every, default=None),
              ranking.ratio(ranking.dense, entry), ranking.ratio(ranking.best_dense, entry),
              statistics.fmean(top1) if top1 else None, min(top1, default=None),
              max(top1, default=None), entry.mib_per_step, ranking.per_iteration(entry)]
    return [model, link, entry.config["run"]["ranks"], entry.config["batch_size"], entry.method,
            entry.label, entry.clock, ";".join(str(one.seed) for one in entry.trainings),
            ranking.target, len(found), *("" if value is None else f"{value:.9g}"
                                          for value in values),
            *(entry.build[name] for name in ("commit", "date", "compiler")),
            "; ".join(dict.fromkeys(one.machine for one in entry.speeds)),
            ranking.left_out.get(entry.method, "")]


def compute_text(rankings):
    """The figure that takes the place of forward and backward, on each machine that is compared."""
    found = {one.machine: ranking.compute[one.machine] for ranking in rankings
             for entry in ranking.compared for one in entry.speeds}
    each = "; ".join(f"{seconds:.4g} s ({machine})" for machine, seconds in found.items())
    return each and ("Forward and backward of a step count the same in every row, the median of "
                     f"all runs of the race: {each}. The other seconds are those of each row.")


def document(model, sections, target):
    """Markdown; sections are (link, ranking, advised, why it is not)."""
    every = [training for _, ranking, _, _ in sections for entry in ranking.entries
             for training in entry.trainings]
    parts = [f"## {model}: seconds to a validation top-1 of {100 * target:g} %"]
    if every:
        parts.append(tables.origin({"": every}))
    if text := compute_text(ranking for _, ranking, _, _ in sections):
        parts.append(text)
    head = [cell.format(target=f"{100 * target:g} %") for cell in HEAD]
    for link, ranking, advised, failed in sections:
        parts += [f"### {links.title(link)}", verdict.of_link(ranking, advised)]
        if ranking.entries:
            parts.append(markdown(head, [line(ranking, one) for one in ranking.entries]))
        if ranking.left_out:
            parts.append("Seconds left out: " + "; ".join(
                f"`{method}` ({why})" for method, why in ranking.left_out.items()) + ".")
        missing = [f"`{name}` ({why})" for name, why in ranking.unfinished.items()]
        if missing := [failed] * bool(failed) + missing:
            parts.append("Left out: " + "; ".join(missing) + ".")
    return "\n\n".join(parts) + "\n"


def rows_of(model, sections):
    """COLUMNS and a row per method and link."""
    return [COLUMNS, *(cells(model, link, ranking, entry) for link, ranking, _, _ in sections
                       for entry in ranking.entries)]
