"""Values of a claim: columns of the records of results, their differences and ratios."""

import math
import operator
import statistics

from . import ReproError

SECONDS = {"train_seconds", "seconds_per_step"}  # of training on this machine


class Value:
    """numbers(results) are its numbers, one for each seed or a single one; None while results of
    its rows are missing. `rows` and `columns` are the names that it is made of."""

    def __init__(self, numbers, rows=frozenset(), columns=frozenset()):
        self.numbers, self.rows, self.columns = numbers, rows, columns

    def __sub__(self, other):
        return self._with(other, operator.sub)

    def __truediv__(self, other):
        return self._with(other, lambda a, b: a / b if b else math.inf)

    def _with(self, other, operation):
        """Seed by seed, or with a single number that holds for all seeds."""
        if not isinstance(other, Value):
            other = Value(lambda _, number=float(other): [number])

        def numbers(results):
            ours, theirs = self.numbers(results), other.numbers(results)
            if ours is None or theirs is None:
                return None
            if len(theirs) != len(ours):
                theirs = [statistics.fmean(theirs)] * len(ours)
            return list(map(operation, ours, theirs))

        return Value(numbers, self.rows | other.rows, self.columns | other.columns)

    @property
    def of_seconds(self):
        """Whether it is made of seconds of training."""
        return bool(self.columns & SECONDS)


UNKNOWN = Value(lambda _: None)  # of a line that has a published number alone


def measured(row, column, where):
    """The Value of a column in the records of a row's results, in the one line with these cells."""
    def number_of(result):
        found = [record for record in result.records
                 if all(same(record.get(key), wanted) for key, wanted in where.items())]
        if len(found) != 1 or column not in found[0]:
            what = f"{len(found)} records with {where}" if len(found) != 1 else "none"
            raise ReproError(f"expected one {column} in {result.folder}; found {what}")
        return found[0][column]

    def numbers(results):
        every = [number_of(result) for result in results.get(row, ()) if result.finished]
        return [one for one in every if isinstance(one, (int, float))] or None

    return Value(numbers, frozenset([row]), frozenset([column]))


def same(cell, wanted):
    """Whether a cell of a record is the wanted text or number."""
    try:
        return float(cell) == float(wanted)
    except (TypeError, ValueError):
        return cell == wanted


def form(number):
    """A number with four digits."""
    return f"{number:,.0f}" if abs(number) >= 10000 else f"{number:.4g}"


def text(numbers):
    """Mean and standard deviation of the numbers of a value; a dash for None."""
    if numbers is None:
        return "–"
    sd = f" ± {statistics.stdev(numbers):.2g}" if len(numbers) > 1 else ""
    return form(statistics.fmean(numbers)) + sd


def theirs_text(theirs):
    """A published text or number."""
    return theirs if isinstance(theirs, str) else form(theirs)
