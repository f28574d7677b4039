#!/usr/bin/env bash
# An error in a claim file is one line that names the file, and the line in it; exit code 2.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONPATH=scripts PYTHONDONTWRITEBYTECODE=1 python3 - "$work" <<'PY'
import sys
from pathlib import Path
from repro import ReproError, claims

RULE = 'plan.rule("r", a.value("val_top1"), 0.1, why="w")'
GOOD = f"""from repro.claims import Scale, claim
@claim("T1", "t", "x", "c", "s", {{"quick": Scale()}}, measures=["val_top1"])
def one(plan):
    a = plan.row("a", model="lenet", dataset="shapes", workers=2)
    {RULE}
"""
BAD = (
    ('"quick"', '"quik"', "unknown scale quik; did you mean quick?"),
    ("measures", "titel", "unexpected keyword argument 'titel'"),
    ('measures=["val_top1"]', 'figure="pie"', "unknown figure pie; known: panels, histograms"),
    ('"a", ', '"a", "trian", ', "unknown program trian; did you mean train?"),
    ("workers=2", 'scales=["qick"]', "unknown scale qick; did you mean quick?"),
    ("workers=2", 'config="none.json"', "none.json: No such file"),
    (', why="w"', "", "missing 1 required keyword-only argument: 'why'"),
    ("0.1, ", "", "r: neither least nor most"),
    ("0.1, ", "0.1, 0, ", "r: least is 0.1, above most, 0"),
    ("a.value", "b.value", ", line 5: NameError: name 'b' is not defined"),
    ("(plan)", "(plan", "'(' was never closed"),
    ("workers=2", 'scales=["short"]', "no row a at scale quick"),
    (RULE, "pass", "T1 has no rule"),
)
folder = Path(sys.argv[1])


def plans(text):
    (folder / "T1.py").write_text(text)
    return claims.plans(claims.load(folder), "quick")


assert list(plans(GOOD)["T1"].rows) == ["a"]
for old, new, text in BAD:
    try:
        plans(GOOD.replace(old, new))
    except ReproError as error:
        assert str(error).startswith("T1.py") and text in str(error), (text, error)
    else:
        sys.exit(f"accepted: {new}")
PY
echo '{' >"$work/T1.py"
code=0
scripts/repro.py list --claims "$work" 2>"$work/said" || code=$?
[[ $code == 2 && $(cat "$work/said") == "repro.py: T1.py: "* && $(wc -l <"$work/said") == 1 ]] ||
  { echo "exit code $code"; cat "$work/said"; exit 1; }
