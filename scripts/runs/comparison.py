"""The table of several runs: the settings that differ, and the results."""

import math
import shutil
import statistics
import sys
import unicodedata

from . import measures, settings
from .folder import FINISHED
from .tables import as_csv, is_number, markdown


class Spread:
    """Mean and standard deviation of several seeds."""

    def __init__(self, numbers):
        self.mean = statistics.fmean(numbers)
        self.sd = statistics.stdev(numbers) if len(numbers) > 1 else 0.0

    def text(self, form):
        return f"{form(self.mean)} ± {self.deviation(form)}"

    def deviation(self, form):
        """As many decimals as the mean has, or two digits."""
        return form(self.sd) if form in (measures.fixed, measures.bytes_text) else (
            f"{float(f'{self.sd:.2g}'):g}")


class Comparison:
    """names: the columns; rows: lists of texts, numbers, Spreads and None."""

    def __init__(self, names, rows):
        used = [i for i, _ in enumerate(names)
                if not rows or any(row[i] is not None for row in rows)]
        self.names = [names[i] for i in used]
        self.rows = [[row[i] for i in used] for row in rows]

    def cells(self):
        """All rows as texts for people."""
        return [[self.cell(name, value) for name, value in zip(self.names, row)]
                for row in self.rows]

    @staticmethod
    def cell(name, value):
        if value is None:
            return "–"
        form = measures.FORMS.get(name)
        if form is None:
            return str(value)
        return value.text(form) if isinstance(value, Spread) else form(value)

    def csv(self):
        """All rows as CSV, every number with nine digits; a Spread has two columns."""
        spread = [any(isinstance(row[i], Spread) for row in self.rows)
                  for i, _ in enumerate(self.names)]
        rows = [[part for name, two in zip(self.names, spread)
                 for part in ([name, f"{name}_sd"] if two else [name])]]
        for row in self.rows:
            cells = []
            for value, two in zip(row, spread):
                mean = value.mean if isinstance(value, Spread) else value
                cells.append(number(mean))
                if two:
                    cells.append(number(value.sd) if isinstance(value, Spread) else "")
            rows.append(cells)
        return as_csv(rows)

    def markdown(self):
        return markdown(self.names, self.cells()) + "\n"

    def plain(self, columns=math.inf):
        """Aligned columns, texts to the left and numbers to the right. A table that is wider than
        `columns` has a column for each row instead, if that is narrow enough."""
        cells = [self.names, *self.cells()]
        left = [any(isinstance(row[i], str) and not is_number(row[i]) for row in self.rows)
                for i, _ in enumerate(self.names)]
        lines = aligned(cells, left)
        if max(map(width, lines)) > columns:
            turned = aligned(list(zip(*cells)), [True] + [False] * len(self.rows))
            if max(map(width, turned)) <= columns:
                lines = turned
        return "".join(line + "\n" for line in lines)


def aligned(cells, left):
    """Lines of equally many columns; `left`: whether each is aligned to the left."""
    widths = [max(map(width, column)) for column in zip(*cells)]
    return ["  ".join(map(padded, row, widths, left)).rstrip() for row in cells]


def output_columns():
    """The columns of standard output; no limit if it is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else math.inf


def number(value):
    return "" if value is None else f"{value:.9g}" if isinstance(value, float) else value


def width(text):
    """Columns on a terminal."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def padded(text, size, to_left):
    space = " " * (size - width(text))
    return text + space if to_left else space + text


def setting(values, key):
    without = key.startswith("density") and values.get("sparsifier") in settings.WITHOUT_DENSITY
    return settings.text(values[key]) if key in values and not without else None


def names_of(runs):
    """Folder names, or paths where names repeat."""
    names = [run.name for run in runs]
    return [str(run.folder) if names.count(run.name) > 1 else run.name for run in runs]


def by_run(runs, known):
    """A row per run; `known` are their Settings."""
    first, rest = known.split()
    rows = []
    for name, run, values in zip(names_of(runs), runs, known.values):
        found = measures.of(run)
        rows.append([name, *(setting(values, key) for key in first),
                     *(found[measure] for measure in measures.NAMES),
                     *(setting(values, key) for key in rest)])
    return Comparison(["run", *first, *measures.NAMES, *rest], rows)


def repeated(runs, groups):
    """A sentence for each run that a group leaves out, because another one has its seed."""
    names = names_of(runs)
    return [f"{names[one]} has the settings and the seed of {names[other]}, "
            "which is counted instead"
            for group in groups for one, other in group.repeated.items()]


def by_group(runs, known, groups):
    """A row per group: its seeds, and mean and standard deviation of its finished runs, or of all
    if none is finished."""
    first, rest = ([key for key in keys if key not in (*settings.BUILD, "seed")]
                   for keys in known.split())
    rows = []
    for group in groups:
        values = known.values[group.runs[0]]
        every = [measures.of(runs[i]) for i in group.runs]
        states = [found["state"] for found in every]
        told = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        counted = [found for found in every if found["state"] == FINISHED] or every
        rows.append([group.label, *(setting(values, key) for key in first),
                     ",".join(map(settings.text, group.seeds)), told,
                     *(spread([found[name] for found in counted]) for name in measures.FORMS),
                     *(setting(values, key) for key in rest)])
    return Comparison(["group", *first, "seeds", "state", *measures.FORMS, *rest], rows)


def spread(values):
    """A number for one seed, a Spread for several, None where no run has a value."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    return Spread(values) if len(values) > 1 else values[0]
