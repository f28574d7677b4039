"""Predictions in the tables of `advise --csv`."""

from . import UserError, tables

SPEEDUPS = ("gbit_per_s", "speedup", "speedup_low", "speedup_high")
SECONDS = ("iteration_seconds", "iteration_low", "iteration_high")
PLACE = ("sparsifier", "collective", "local_steps", "ranks", "at_link")


def is_advice(path):
    """Whether the header of a CSV file is that of predictions."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return {*PLACE, *SECONDS, *SPEEDUPS} <= set(file.readline().strip().split(","))


def found_in(folder):
    """The tables of predictions in a folder."""
    return [path for path in sorted(folder.glob("*.csv")) if is_advice(path)]


def read(path, columns=SPEEDUPS):
    """({ranks: {exchange: rows}}, {ranks: {exchange: row at the link's bandwidth}}), rows with
    `columns`, of which the first is the bandwidth and the second the larger the better. Exchanges
    that sum densely count as one for each kind and local steps, the fastest collective."""
    table = tables.read(path)
    table.require([*PLACE, *columns])
    if not len(table):
        raise UserError(f"{path}: no prediction in it")
    panels, links = {}, {}
    for cells in table.rows:
        row = dict(zip(table.names, cells))
        local = [f"H={row['local_steps']}"] * (row["local_steps"] != "1")
        # `dense bf16`, `topk H=16`
        label = " ".join([row["sparsifier"], *row["collective"].split()[1:], *local])
        try:
            ranks, at_link = int(row["ranks"]), int(row["at_link"])
            numbers = [float(row[name]) for name in columns]
        except ValueError:
            raise UserError(f"{path}: a value of {label} is no number") from None
        points = (links if at_link else panels).setdefault(ranks, {}).setdefault(label, {})
        points[numbers[0]] = max(points.get(numbers[0], numbers), numbers,
                                 key=lambda point: point[1])
    if not panels:
        raise UserError(f"{path}: no prediction for other bandwidths than the link's")
    return ({ranks: {label: [points[at] for at in sorted(points)]
                     for label, points in lines.items()} for ranks, lines in panels.items()},
            {ranks: {label: next(iter(points.values())) for label, points in lines.items()}
             for ranks, lines in links.items()})


def merge(lines):
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
