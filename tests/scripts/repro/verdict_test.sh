#!/usr/bin/env bash
# Values, bands and verdicts of repro.py: a verdict needs the runs that the rules name, and rules on
# seconds need runs whose seconds may be compared.
set -euo pipefail
PYTHONDONTWRITEBYTECODE=1 python3 - <<'PY'
import sys
sys.path.insert(0, "scripts")
from types import SimpleNamespace

from repro import verdict
from repro.comparable import Speed
from repro.verdict import HOLDS, NOT, UNTESTED, Value


class Plan:
    claim, rows, scale, tested, rules = None, {}, "short", True, []

    def applies(self, rule):
        return self.scale in rule.get("scales", [self.scale])


class Result:
    folder, finished = "x", True
    row = SimpleNamespace(seeded=True, resolved={"model": "lenet"})

    def __init__(self, number, compute=0.1, machine="one"):
        self.records = [{"top1": number, "train_seconds": 5, "kind": "a"},
                        {"top1": 9, "kind": "b"}]
        self.speed = Speed(machine, compute)


def term(row, measure="top1"):
    return {"row": row, "measure": measure, "where": {"kind": "a"}}


results = {"ours": [Result(0.90), Result(0.92)], "dense": [Result(0.91), Result(0.93)]}
rule = {"value": term("ours"), "minus": term("dense"), "least": -0.02}
value, outcome = verdict.judge(rule, Plan(), results)
assert outcome == HOLDS and abs(value.mean + 0.01) < 1e-9, value.numbers
assert value.text() in ("-0.01 ± 0", "-0.01 ± 1.1e-16", "-0.01 ± 7.9e-17"), value.text()
assert verdict.judge({**rule, "least": -0.005}, Plan(), results)[1] == NOT
assert verdict.judge({**rule, "most": -0.015}, Plan(), results)[1] == NOT
assert verdict.judge({**rule, "scales": ["paper"]}, Plan(), results)[0] is None
over = {"value": term("ours"), "over": term("dense"), "least": 0.9, "most": 1}
assert verdict.judge(over, Plan(), results)[1] == HOLDS

# a row that no rule names is not waited for; one that a rule names is
plan, more = Plan(), {**results, "other": [Result(0.5)]}
plan.rules, more["other"][0].finished = [rule], False
assert verdict.verdict(plan, more)[0] == HOLDS
plan.rules = [{**rule, "least": -0.005}]
assert verdict.verdict(plan, more)[0] == NOT
plan.rules = [rule, {"value": term("other"), "least": 0}]
assert verdict.verdict(plan, more) == (UNTESTED, "4 of 5 runs finished")

# seconds of two machines, or of a busy one, are not judged
plan.rules = [{"value": term("ours", "train_seconds"), "over": term("dense", "train_seconds"),
               "most": 1}]
assert verdict.verdict(plan, results)[0] == HOLDS
for slow in (Result(0.9, machine="two"), Result(0.9, compute=0.2)):
    busy = {**results, "ours": [results["ours"][0], slow]}
    assert verdict.judge(plan.rules[0], plan, busy) == (None, "seconds do not compare")
    assert verdict.verdict(plan, busy) == (UNTESTED, "1 of 1 rules are not judged")

results["dense"][0].finished = False
assert verdict.judge(rule, Plan(), results) == (None, "runs are missing")
assert Value([1, 3]).text() == "2 ± 1.4" and verdict.form(123456.7) == "123,457"
PY
