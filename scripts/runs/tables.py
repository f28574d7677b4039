"""Tables in CSV files."""

import csv
import io
import itertools
import math

from . import UserError


# names of columns in tables of earlier versions
RENAMED = {"from": "low", "to": "high"}


class Table:
    """The rows of a file as texts, and its columns as numbers."""

    def __init__(self, path, names, rows):
        self.path, self.names, self.rows = path, names, rows

    def __len__(self):
        return len(self.rows)

    def require(self, names):
        """UserError unless the table has these columns."""
        missing = [name for name in names if name not in self.names]
        if missing:
            raise UserError(f"{self.path}: missing column(s) {', '.join(missing)}")

    def texts(self, name):
        """A column as it is written."""
        self.require([name])
        at = self.names.index(name)
        return [row[at] for row in self.rows]

    def numbers(self, name):
        """A column as floats; an empty cell (an epoch without validation) is nan."""
        texts = self.texts(name)
        try:
            return [float(text or "nan") for text in texts]
        except ValueError:
            row, text = next((i, text) for i, text in enumerate(texts) if not is_number(text))
            raise UserError(f"{self.path}: {name} is {text!r} in {self.names[0]} "
                            f"{self.rows[row][0]}") from None


def is_number(text):
    try:
        float(text or "nan")
    except ValueError:
        return False
    return True


def read(path):
    """A file as a Table. Drops an incomplete last line, which a run may be writing."""
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{path}: not a regular file")
        with open(path, newline="", encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file") from None
    whole = text[:text.rfind("\n") + 1]
    try:
        names, *rows = csv.reader(io.StringIO(whole))
    except ValueError:
        raise UserError(f"{path}: no header") from None
    except csv.Error as error:
        raise UserError(f"{path}: {error}") from None
    for line, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise UserError(f"{path}: line {line} has {len(row)} cells; expected {len(names)}")
    return Table(path, [RENAMED.get(name, name) for name in names], rows)


def as_csv(rows):
    """Rows of cells as a CSV file; the first one is the header."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def markdown(head, rows):
    """Rows of texts as a Markdown table, without the end of its last line."""
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in row) + " |"
                     for row in (head, ["---"] * len(head), *rows))


def totals(values):
    """Running sums."""
    return list(itertools.accumulate(values))


def known(values):
    """The values without nan."""
    return [value for value in values if not math.isnan(value)]
