"""Conditions such as `density<0.01` on the values of runs."""

import operator
import re

from . import UserError, settings

OPERATORS = {"!=": operator.ne, "<=": operator.le, ">=": operator.ge, "=": operator.eq,
             "<": operator.lt, ">": operator.gt}


class Condition:
    """KEY, operator and VALUE. Numbers are compared as numbers, everything else as text; a run
    without the key fulfils only !=."""

    def __init__(self, words):
        found = re.fullmatch(r"\s*([\w.-]+?)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", words)
        if not found:
            raise UserError(f"--where {words}: expected KEY and a value with one of "
                            f"{' '.join(OPERATORS)} between them, such as density<0.01")
        key, self.operator, self.value = found.groups()
        self.key, self.words = key.replace("-", "_"), words
        if self.operator not in ("=", "!=") and number(self.value) is None:
            raise UserError(f"--where {words}: {self.value!r} is no number")

    def holds(self, values):
        found = values.get(self.key)
        if found is None:
            return self.operator == "!="
        mine, theirs = number(found), number(self.value)
        compare = OPERATORS[self.operator]
        if mine is not None and theirs is not None:
            return compare(mine, theirs)
        return self.operator in ("=", "!=") and compare(
            settings.text(found), self.value or settings.text(""))


def number(value):
    """A number or the text of one as float, or None."""
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def ordered(runs, key, reverse):
    """Runs by the value of a key: numbers, then texts; those without a value are last."""
    def rank(values):
        value = number(values[key])
        return (1, 0, settings.text(values[key])) if value is None else (0, value, "")

    known = [values for values in runs if values.get(key) is not None]
    return (sorted(known, key=rank, reverse=reverse)
            + [values for values in runs if values.get(key) is None])
