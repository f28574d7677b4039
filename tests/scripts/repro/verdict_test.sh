#!/usr/bin/env bash
# Values, bands and verdicts of repro.py: a verdict needs the runs that the rules name, and rules on
# seconds need runs whose seconds may be compared.
set -euo pipefail
PYTHONPATH=scripts PYTHONDONTWRITEBYTECODE=1 python3 - <<'PY'
from types import SimpleNamespace
from repro import values, verdict
from repro.claims import Rule
from repro.comparable import Speed, left_out_rows, speed
from repro.verdict import HOLDS, NOT, UNTESTED

class Plan:
    rows, scale, tested, rules = {}, "short", True, []
    def applies(self, rule):
        return self.scale in rule.scales


class Result:
    folder, finished = "x", True
    row = SimpleNamespace(seeded=True, resolved={"model": "lenet"})

    def __init__(self, number, compute=0.1, machine="one", slowest=1):
        self.records = [{"top1": number, "train_seconds": 5, "kind": "a"}, {"top1": 9, "kind": "b"}]
        self.speed = Speed(machine, compute, slowest)


def value(row, column="top1"):
    return values.measured(row, column, {"kind": "a"})


def rule(value, least=None, most=None, scales=("short",)):
    return Rule("", value, least, most, "", "", scales)


results = {"ours": [Result(0.90), Result(0.92)], "dense": [Result(0.91), Result(0.93)]}
behind = value("ours") - value("dense")
numbers, outcome = verdict.judge(rule(behind, -0.02), Plan(), results)
assert outcome == HOLDS and max(abs(one + 0.01) for one in numbers) < 1e-9, numbers
assert values.text(numbers).startswith("-0.01 ± "), numbers
assert verdict.judge(rule(behind, -0.005), Plan(), results)[1] == NOT
assert verdict.judge(rule(behind, most=-0.015), Plan(), results)[1] == NOT
assert verdict.judge(rule(behind, -0.02, scales=("paper",)), Plan(), results)[0] is None
assert verdict.judge(rule(value("ours") / value("dense"), 0.9, 1), Plan(), results)[1] == HOLDS
assert (value("ours") / 2).numbers(results) == [0.45, 0.46]  # a number is for all seeds

# a row that no rule names is not waited for; one that a rule names is
plan, more = Plan(), {**results, "other": [Result(0.5)]}
plan.rules, more["other"][0].finished = [rule(behind, -0.02)], False
assert verdict.verdict(plan, more)[0] == HOLDS
plan.rules = [rule(behind, -0.005)]
assert verdict.verdict(plan, more)[0] == NOT
plan.rules = [rule(behind, -0.02), rule(value("other"), 0)]
assert verdict.verdict(plan, more) == (UNTESTED, "4 of 5 runs finished")

# seconds of two machines, of a busy one, or of one that is busy at times, are not judged
times = [{"sec_forward": seconds, "sec_backward": 1} for seconds in (1, 1, 4)]
notes = {"machine": {"cpu": "x", "cores": 1, "gpu": "none"}}
for lines, steps, slowest in ((times, (1, 1, 1), 2.5), (times, (1, 1, 2.5), 1), ([], (), 1),
                          (times, (), 1), ([{"sec_forward": 0, "sec_backward": 0}], [1], 1)):
    assert speed(notes, lines, sum(steps), steps).slowest == slowest, (lines, steps)
plan.rules = [rule(value("ours", "train_seconds") / value("dense", "train_seconds"), most=1)]
assert verdict.verdict(plan, results)[0] == HOLDS
for slow in (Result(0.9, machine="two"), Result(0.9, compute=0.2), Result(0.9, slowest=1.3)):
    busy = {**results, "ours": [results["ours"][0], slow]}
    assert left_out_rows(busy).keys() == busy.keys()  # one row of two compares with none
    assert verdict.judge(plan.rules[0], plan, busy) == (None, "seconds do not compare")
    assert verdict.verdict(plan, busy) == (UNTESTED, "1 of 1 rules are not judged")

results["dense"][0].finished = False
assert verdict.judge(rule(behind, 0), Plan(), results) == (None, "runs are missing")
assert values.text([1, 3]) == "2 ± 1.4" and values.form(123456.7) == "123,457"
PY
