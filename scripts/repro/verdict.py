"""Rules and verdicts."""

import statistics

from .comparable import left_out_rows
from .programs import basis
from .values import form

HOLDS, NOT, UNTESTED = "holds", "does not", "not tested at this scale"


def band_text(rule):
    least, most = rule.least, rule.most
    if least is None:
        return f"at most {form(most)}"
    return f"at least {form(least)}" if most is None else f"{form(least)} to {form(most)}"


def judge(rule, plan, results):
    """(numbers of the value or None, outcome) of a rule."""
    rows = rule.value.rows
    if not plan.applies(rule):
        return None, "does not apply at this scale"
    if not all(result.finished for row in rows for result in results[row]):
        return None, "runs are missing"
    if rule.value.of_seconds and rows & left_out_rows(results).keys():
        return None, "seconds do not compare"
    numbers = rule.value.numbers(results)
    if numbers is None:
        return None, "no value"
    mean = statistics.fmean(numbers)
    inside = ((rule.least is None or mean >= rule.least)
              and (rule.most is None or mean <= rule.most))
    return numbers, HOLDS if inside else NOT


def basis_of(rule, plan):
    """measured, predicted or simulated clock, from the rows of a rule."""
    return " and ".join(sorted({basis(plan.rows[row])
                                for row in rule.value.rows & plan.rows.keys()}))


def verdict(plan, results):
    """(verdict, reason). All runs that the rules name must be finished, and all rules judged."""
    if not plan.tested:
        return UNTESTED, "no runs at this scale"
    named = set().union(*(rule.value.rows for rule in plan.rules))
    every = [result for row, each in results.items() if row in named for result in each]
    done = sum(result.finished for result in every)
    outcomes = [judge(rule, plan, results)[1] for rule in plan.rules]
    kinds = " and ".join(sorted({basis_of(rule, plan) for rule in plan.rules
                                 if plan.applies(rule)} - {""}))
    if done < len(every):
        return UNTESTED, f"{done} of {len(every)} runs finished"
    if open_rules := sum(outcome not in (HOLDS, NOT) for outcome in outcomes):
        return UNTESTED, f"{open_rules} of {len(outcomes)} rules are not judged"
    failed = outcomes.count(NOT)
    reason = f"{len(outcomes) - failed} of {len(outcomes)} rules hold; {kinds}"
    return (NOT if failed else HOLDS), reason
