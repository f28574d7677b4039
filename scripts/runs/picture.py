"""The state of runs as lines of text that fit a terminal."""

import math

from . import UserError
from .folder import BROKEN, RUNNING
from .measures import bytes_text

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-=+*#@"


def clock(seconds):
    minutes, second = divmod(int(seconds + 0.5), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def fit(parts, width, first=""):
    """A line of `first` and those parts [(rank, text)] for which there is room, in their order;
    those of a lower rank have precedence."""
    room, shown = width - len(first), set()
    for _, text in sorted(parts):
        if len(text) + 2 <= room:
            room -= len(text) + 2
            shown.add(text)
    return "  ".join([first] * bool(first) + [text for _, text in parts if text in shown])[:width]


def curve(values, width, marks):
    """A line of `width` marks, each the mean of as many values, from the least to the greatest."""
    width = max(1, min(width, len(values)))
    edges = [i * len(values) // width for i in range(width + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in zip(edges, edges[1:])]
    low, span = min(means), (max(means) - min(means)) or 1
    return "".join(marks[min(len(marks) - 1, int((mean - low) / span * len(marks)))]
                   for mean in means)


def bar(share, width):
    filled = round(width * min(1, max(0, share)))
    return f"|{'#' * filled}{'.' * (width - filled)}|"


def numbers(live):
    """[(rank, text)]: loss, speed and the time to the end."""
    config = live.run.config
    parts = [(1, f"loss {live.mean_over_images('train_loss'):.4f}"),
             (4, f"top-1 {live.mean_over_images('train_top1'):.3f}")]
    if live.top1():
        parts.append((2, "val {:.4f} (best {:.4f})".format(*live.top1())))
    seconds = live.recent("seconds")
    if seconds > 0 and live.state == RUNNING:
        parts.append((5, f"{live.seconds():.3g} s/step"))
        if config.get("run", {}).get("ranks", 1) > 1:
            rate = live.recent("bytes_sent") / seconds  # with a decimal that does not come and go
            parts += [(6, f"{100 * live.recent('sec_exchange') / seconds:.0f} % exchange"),
                      (8, f"{bytes_text(rate, form='.1f' if rate >= 1024 else '.0f')}/s")]
        parts.append((7, f"{live.recent('images') / seconds:.0f} images/s"))
        if live.total_steps:
            left = max(0, live.total_steps - live.step) * live.seconds()
            parts.append((0, f"ETA {clock(left)}"))
    return parts


def shortened(name, width):
    """A name, or its start and `..` where there is no room."""
    return name if len(name) <= width else name[:width - 2] + ".."


def headline(live, width):
    total = live.total_steps
    steps = f"{live.step}/{total} steps" if total else f"{live.step} steps"
    epoch = f"epoch {live.epoch}/{live.run.config.get('epochs', '?')}"
    return fit([(0, live.state), (1, epoch), (2, steps)], width,
               shortened(live.name, max(8, width - 12)))


def block(live, width, marks):
    """The lines of one run."""
    lines = [headline(live, width)]
    if len(live.steps) == 0:
        return lines
    if live.total_steps:
        lines.append(bar(live.step / live.total_steps, min(60, width - 2)))
    parts = numbers(live)
    while parts:  # as many lines as they need
        lines.append(fit(parts, width))
        left = [part for part in parts if part[1] not in lines[-1]]
        parts = left if len(left) < len(parts) else []
    for name, values in (("loss", live.steps.columns["train_loss"]),
                         ("val top-1", live.run["val_top1"])):
        values = list(filter(math.isfinite, values))
        if len(values) > 1:
            drawn = curve(values, min(60, width - 30), marks)
            lines.append(f"{name:<9} {drawn} {values[0]:.4g} -> {values[-1]:.4g}"[:width])
    return lines


def row(live, width):
    """One run in one line."""
    where = f"epoch {live.epoch}/{live.run.config.get('epochs', '?')}"
    parts = numbers(live) if len(live.steps) else []
    return fit([(-2, live.state), (-1, where), *parts], width,
               shortened(live.name, max(8, width - 30)))


def of_run(live, draw):
    """What draw() makes of a run, or what is wrong with it."""
    reason = live.broken
    try:
        if not reason:
            return draw()
    except UserError as error:  # config.json and metrics.csv are read when they are drawn
        reason = error
    return f"{live.name}  {BROKEN}: {reason}"


def lines(runs, width, height, marks):
    """Blocks of all runs if they fit, else a line for each."""
    blocks = []
    for live in runs:
        found = of_run(live, lambda: block(live, width, marks))
        blocks += [*([found[:width]] if isinstance(found, str) else found), ""]
    if len(blocks) - 1 <= height:
        return blocks[:-1]
    rows = [of_run(live, lambda: row(live, width))[:width] for live in runs]
    if len(rows) <= height:
        return rows
    return [*rows[:height - 1], f"and {len(rows) - height + 1} more"[:width]]
