#!/usr/bin/env bash
# A claim file that is not of its form is one line that names the file, and exit code 2.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 - "$work" <<'PY'
import json
import subprocess
import sys
from pathlib import Path

row = {"options": {"model": "lenet", "dataset": "shapes", "workers": 2}}
term = {"row": "a", "measure": "val_top1"}
rule = {"text": "r", "value": term, "least": 0.1, "why": "w"}
claim = {"id": "T1", "paper": "t", "title": "x", "claim": "c", "source": "s",
         "scales": {"quick": {}}, "rows": {"a": row}, "rules": [rule], "measures": ["val_top1"],
         "figure": {"kind": "curves"}}
panel = {"title": "t", "x": "x", "y": "y", "xlabel": "a", "ylabel": "b", "series": ["x"]}


def row_with(**more):
    return {"rows": {"a": {**row, **more}}}


def rule_with(**more):
    return {"rules": [{**rule, **more}]}


BAD = [
    ([1], "a claim must be an object, not [1]"),
    ({"title": 5}, "title is 5; expected a text"),
    ({"titel": "x"}, "unknown key titel of a claim; did you mean title?"),
    ({"scales": {"quik": {}}}, "unknown scale quik; did you mean quick?"),
    ({"scales": {"quick": {"options": "x"}}}, "quick: options is 'x'; expected options by program"),
    ({"rows": {"a": [1]}}, "a: a row must be an object, not [1]"),
    (row_with(options=[1]), "a: options is [1]; expected options"),
    (row_with(options={"set": {"a.b": 1}}), "expected options, with set an object of texts"),
    (row_with(scales=["qick"]), "a: unknown scale qick; did you mean quick?"),
    ({"rows": {"a": {"use": "T1/a"}}}, "rows use each other: T1, T1"),
    ({"each": {"P": 5}}, "each is {'P': 5}; expected an object of lists"),
    ({"lines": {"label": "x"}}, "lines is {'label': 'x'}; expected a list"),
    ({"rules": []}, "rules is []; expected a list, not empty"),
    (rule_with(least="x"), "least is 'x'; expected a number"),
    (rule_with(most=0), "r: least is 0.1, above most, 0"),
    (rule_with(scales=["qick"]), "unknown scale qick; did you mean quick?"),
    (rule_with(value="a"), "value is 'a'; expected an object or a number"),
    (rule_with(value=None), "value is None; expected an object or a number"),
    (rule_with(value={"row": "a"}), "{'row': 'a'}: expected row and measure, or published"),
    (rule_with(value={"row": "b", "measure": "m"}), "no row b at scale quick"),
    ({"published": {"a": "x"}, **rule_with(theirs={"published": ["a"]})},
     "'x' is published under ['a']; expected a number"),
    ({"figure": {"kind": "panels"}}, "a figure of panels without panels"),
    ({"figure": {"kind": "panels", "panels": [panel]}}, "a series must be an object, not 'x'"),
]
folder = Path(sys.argv[1])
for change, text in BAD:
    bad = change if isinstance(change, list) else {**claim, **change}
    (folder / "T1.json").write_text(json.dumps(bad))
    done = subprocess.run(["scripts/repro.py", "show", "--claims", folder, "--output-dir",
                           folder / "out"], capture_output=True, text=True, check=False)
    assert done.returncode == 2, (change, done)
    (line,) = done.stderr.splitlines()
    assert line.startswith("repro.py: T1.json: ") and text in line, (change, line)
(folder / "T1.json").write_text(json.dumps(claim))
subprocess.run(["scripts/repro.py", "show", "--claims", folder, "--output-dir", folder / "out"],
               check=True, stdout=subprocess.DEVNULL)
PY
