"""Tables that `eval` writes: how many images of each class are taken for each class."""

from . import UserError, tables

FILE = "eval/confusion.csv"


def read(path):
    """(names, counts[label][prediction]) of a table."""
    table = tables.read(path)
    names = table.names[1:]
    if table.names[:1] != ["label"] or [row[0] for row in table.rows] != names:
        raise UserError(f"{path}: expected one row and one column for each class, after `label`")
    columns = [table.numbers(name) for name in names]
    return names, [[column[label] for column in columns] for label in range(len(names))]


def shares(counts):
    """Each count as a share of its label's images; 0 without images."""
    return [[count / total if (total := sum(row)) else 0.0 for count in row] for row in counts]
