"""Tables that `analyze compressors --csv` writes: sparsifiers on recorded gradients."""

from statistics import fmean

from . import UserError, tables

EXACT = 1e-4  # an error below is that of rounding


def read(path):
    """[(sparsifier, [(bytes, error)])]: a point for each density, the mean over the steps."""
    table = tables.read(path)
    table.require(["step", "sparsifier", "density", "bytes", "error"])
    points = {}
    numbers = zip(*(table.numbers(name) for name in ("density", "bytes", "error")))
    names = table.names.index("sparsifier")
    for row, (density, sent, error) in zip(table.rows, numbers):
        if sent > 0 and error == error:
            points.setdefault(row[names], {}).setdefault(density, []).append((sent, error))
    if not points:
        raise UserError(f"{path}: no sparsifier with bytes and an error in it")
    return [(name, [tuple(fmean(column) for column in zip(*steps))
                    for _, steps in sorted(of.items())]) for name, of in points.items()]
