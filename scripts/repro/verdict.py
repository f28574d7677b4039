"""Values of results, rules and verdicts."""

import math
import statistics

from . import ReproError
from .claims import named_rows, terms
from .comparable import left_out_rows
from .form import is_number
from .programs import basis

HOLDS, NOT, UNTESTED = "holds", "does not", "not tested at this scale"
SECONDS = ("train_seconds", "seconds_per_step")  # of training on this machine


class Value:
    """One number per seed, or a single number."""

    def __init__(self, numbers):
        self.numbers = list(numbers)

    @property
    def mean(self):
        return statistics.fmean(self.numbers)

    def combined(self, other, operation):
        """Seed by seed, or with a single number that holds for all seeds."""
        if len(other.numbers) == len(self.numbers):
            return Value(map(operation, self.numbers, other.numbers))
        return Value(operation(number, other.mean) for number in self.numbers)

    def text(self):
        sd = f" ± {statistics.stdev(self.numbers):.2g}" if len(self.numbers) > 1 else ""
        return form(self.mean) + sd


def form(number):
    """A number with four digits."""
    return f"{number:,.0f}" if abs(number) >= 10000 else f"{number:.4g}"


def published(claim, path):
    """A published number by its path in the claim file."""
    found = claim.published
    for key in map(str, path):
        if not isinstance(found, dict) or key not in found:
            raise ReproError(f"{claim.path.name}: nothing published under {path}")
        found = found[key]
    if not is_number(found):
        raise ReproError(f"{claim.path.name}: {found!r} is published under {path}; "
                         "expected a number")
    return float(found)


def term_value(term, claim, results):
    """The value of a term; None while its results are missing."""
    if isinstance(term, (int, float)):
        return Value([term])
    if "published" in term:
        return Value([published(claim, term["published"])])
    numbers = []
    for result in results.get(term["row"], []):
        if not result.finished:
            continue
        where = term.get("where", {})
        found = [record for record in result.records
                 if all(same(record.get(key), value) for key, value in where.items())]
        if len(found) != 1 or term["measure"] not in found[0]:
            what = f"{len(found)} records with {where}" if len(found) != 1 else "none"
            raise ReproError(f"{claim.path.name}: expected one {term['measure']} in "
                             f"{result.folder}; found {what}")
        if isinstance(found[0][term["measure"]], (int, float)):
            numbers.append(found[0][term["measure"]])
    return Value(numbers) if numbers else None


def same(cell, wanted):
    """Whether a cell of a record is the wanted text or number."""
    try:
        return float(cell) == float(wanted)
    except (TypeError, ValueError):
        return cell == wanted


def value_of(item, claim, results):
    """value, value - minus or value / over of a rule or a line."""
    value = term_value(item["value"], claim, results)
    for key, operation in (("minus", lambda a, b: a - b),
                           ("over", lambda a, b: a / b if b else math.inf)):
        if value is not None and key in item:
            other = term_value(item[key], claim, results)
            value = value.combined(other, operation) if other is not None else None
    return value


def theirs_of(item, claim):
    """The published side of a rule or a line as text."""
    theirs = item.get("theirs", "")
    if not isinstance(theirs, dict):
        return form(theirs) if isinstance(theirs, (int, float)) else theirs
    return form(value_of(theirs if "value" in theirs else {"value": theirs}, claim, {}).mean)


def band_text(rule):
    least, most = rule.get("least"), rule.get("most")
    if least is None:
        return f"at most {form(most)}"
    return f"at least {form(least)}" if most is None else f"{form(least)} to {form(most)}"


def of_seconds(item):
    """Whether a rule or a line compares seconds of training."""
    return any(term.get("measure") in SECONDS for term in terms(item))


def judge(rule, plan, results):
    """(value or None, outcome) of a rule."""
    if not plan.applies(rule):
        return None, "does not apply at this scale"
    if not all(result.finished for row in named_rows(rule) for result in results[row]):
        return None, "runs are missing"
    if of_seconds(rule) and named_rows(rule) & left_out_rows(results).keys():
        return None, "seconds do not compare"
    value = value_of(rule, plan.claim, results)
    if value is None:
        return None, "no value"
    least, most = rule.get("least"), rule.get("most")
    inside = (least is None or value.mean >= least) and (most is None or value.mean <= most)
    return value, HOLDS if inside else NOT


def basis_of(rule, plan):
    """measured, predicted or simulated clock, from the rows of a rule."""
    return " and ".join(sorted({basis(plan.rows[row])
                                for row in named_rows(rule) & plan.rows.keys()}))


def verdict(plan, results):
    """(verdict, reason). All runs that the rules name must be finished, and all rules judged."""
    if not plan.tested:
        return UNTESTED, "no runs at this scale"
    named = set().union(*map(named_rows, plan.rules))
    every = [result for row, each in results.items() if row in named for result in each]
    done = sum(result.finished for result in every)
    outcomes = [judge(rule, plan, results)[1] for rule in plan.rules]
    kinds = " and ".join(sorted({basis_of(rule, plan) for rule in plan.rules
                                 if plan.applies(rule)} - {""}))
    if done < len(every):
        return UNTESTED, f"{done} of {len(every)} runs finished"
    open_rules = sum(outcome not in (HOLDS, NOT) for outcome in outcomes)
    if open_rules:
        return UNTESTED, f"{open_rules} of {len(outcomes)} rules are not judged"
    failed = outcomes.count(NOT)
    reason = f"{len(outcomes) - failed} of {len(outcomes)} rules hold; {kinds}"
    return (NOT if failed else HOLDS), reason
