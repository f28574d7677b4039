#!/usr/bin/env bash
# race.py show: forward and backward count the same in every row; seconds are compared only among
# runs of one machine that was not busy; the others keep accuracy and bytes, are drawn hollow, and
# no winner is named without them.
set -euo pipefail
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
PYTHONDONTWRITEBYTECODE=1 python3 tests/scripts/results/race_runs.py "$work/runs" \
  "dense 100 0.02 fast" "topk 60 0.028 fast" "gtopk 90 0.07 fast" "bsp 30 0.01 slow" \
  "dgc 55 0.011 fast" "local16 80 0.02 fast 10 dense --local-steps 16"

show() { scripts/results/race.py show --output-dir "$work/runs" --bin "$work/none" >"$work/said"; }

# the median of `fast` is 0.02 s, so 1000 steps of topk take 60 - 28 + 20 s, of dgc 55 - 11 + 20 s
show
while read -r line; do expect "$work/said" "$line"; done <<'TEXT'
the median of all runs of the race: 0.02 s (fast, 2 cores, GPU: none).
`topk` is the fastest of 4 methods: 80 % after 52.0 s, 1.92 times as fast as the best dense
`dense`. No winner is named without its rivals: `bsp`, `gtopk` (seconds left out).
| `topk` | measured | 52.0 | 1.92 | 1.92 | 0.8100 | 2 | 0.052 | 1 |
| `dgc` | measured | 64.0 | 1.56 | 1.56 | 0.8100 | 2 | 0.064 | 1 |
| `gtopk` | measured | left out | – | – | 0.8100 | 2 | – | 1 |
`bsp` (ran on slow, 2 cores, GPU: none; most ran on fast, 2 cores, GPU: none)
`gtopk` (forward and backward took 0.07 s a step; the median is 0.02 s)
TEXT
PYTHONPATH=scripts /usr/bin/python3 - "$work/runs/tables" <<'PY'
import csv
import sys
from pathlib import Path

folder = Path(sys.argv[1])
with open(folder / "tables.csv", encoding="utf-8") as file:
    rows = {row["method"]: row for row in csv.DictReader(file)}
for name, row in rows.items():
    out = name in ("gtopk", "bsp")
    assert bool(row["left_out"]) == out == (row["seconds"] == ""), row
    assert out == (row["seconds_per_iteration"] == row["seconds_max"] == ""), row
    assert row["top1"] and row["mib_per_step"], row
if (folder / "lenet.svg").exists():
    from repro.race import figures, ranking, readings
    (section,) = [(link, ranking.Ranking(heat, 0.8), "", "")
                  for link, heat in readings.race(folder.parent / "lenet").items()]
    names = figures.shown([section])
    assert set(names) == {"dense", "topk", "dgc", "local16"}, names
    assert "gtopk" in figures.left_out_text([section]), figures.left_out_text([section])
    # methods with local steps have a line of their own, also those without a colour
    for coloured in (names, []):
        axes = figures.plt.subplots()[1]
        left_out = [one for one in section[1].entries if one not in section[1].compared]
        figures.draw(axes, section[1].compared, left_out, 0.8, figures.styles(coloured))
        hollow = [one for one in axes.lines if one.get_markerfacecolor() == "white"]
        assert [one.get_label() for one in hollow] == ["seconds left out"] * 2, hollow
        styles = {one.get_label(): one.get_linestyle() for one in axes.lines[:-1]}
        local = [name for name, style in styles.items() if style == ":"]
        assert local == ["local16" if coloured else "others, local steps"], styles
    figures.zoom(axes, section[1].compared, 0.3, 0.81)
    assert axes.get_ylim()[0] == 0, axes.get_ylim()
PY

# an accuracy is reached on the line between two epochs
PYTHONPATH=scripts PYTHONDONTWRITEBYTECODE=1 python3 - <<'PY'
from types import SimpleNamespace
from repro.race import readings, verdict
from repro.race.readings import crossing

first, named = (SimpleNamespace(method=name, trainings=seeds)
                for name, seeds in (("topk", [1]), ("dense", [])))
ranking = SimpleNamespace(target=0.8, first=first, compared=[first, named], left_out={},
                          seconds=lambda one: 60 if one is first else None)
assert verdict.place_of(named, ranking) == (" (`dense`), which is not trained", True)
curve = [(10, 0.5), (20, 0.7), (30, 0.9), (40, 0.8)]
assert abs(crossing(curve, 0.8) - 25) < 1e-9
assert crossing(curve, 0.5) == crossing(curve, 0.1) == 10
# the bytes of a line are the mean of its seeds
seeds = [SimpleNamespace(record={"mib_per_step": mib}, config={}, folder="x",
                         notes={"label": "x", "versions": ""}) for mib in (2, 4)]
assert readings.Entry("x", seeds, []).mib_per_step == 3
assert readings.Entry("x", seeds[1:], []).mib_per_step == 4
assert crossing(curve, 0.9) == 30 and crossing(curve, 0.91) is None and crossing([], 0.5) is None
PY

# without rivals there is a winner; an unfinished run is a rival, one that never arrives is not
for gone in bsp gtopk; do rm -r "$work/runs/lenet/none/$gone-s1"; done
show
expect "$work/said" " wins: 80 % after 52.0 s, 1.92 times as fast as the best dense exchange"
sed -i 's/false/true/' "$work/runs/lenet/none/dgc-s1/summary.json"
show
expect "$work/said" "No winner is named without its rivals: \`dgc-s1\` (not finished)."
sed -i 's/true/false/' "$work/runs/lenet/none/dgc-s1/summary.json"
PYTHONDONTWRITEBYTECODE=1 python3 tests/scripts/results/race_runs.py "$work/runs" \
  "gtopk 90 0.07 fast" "bsp 30 0.01 slow"
sed -i 's/,0\.8\(1*\),/,0.7\1,/' "$work/runs/lenet/none/"{gtopk,bsp}-s1/metrics.csv
show
expect "$work/said" "\`topk\` wins: 80 %"

# two runs at different speeds, or one run, have no winner
for gone in topk dgc bsp local16; do rm -r "$work/runs/lenet/none/$gone-s1"; done
show
expect "$work/said" "No winner is named, as there are fewer than two methods whose seconds may be"
expect "$work/said" "| \`dense\` | measured | left out |"
rm -r "$work/runs/lenet/none/gtopk-s1"
show
expect "$work/said" "No winner is named, as"
expect "$work/said" "| \`dense\` | measured | 100.0 |"

# short runs give the seconds of a step at each density, without their first 16 steps; forward and
# backward count 0.02 s: dense takes 1000 steps of 0.08 s, topk 100 of 0.06 s and 900 of 0.03 s
rm -r "$work/runs"
PYTHONDONTWRITEBYTECODE=1 python3 tests/scripts/results/race_runs.py "$work/runs" \
  "dense 100 0.02 fast" "topk 60 0.02 fast" "dgc 50 0.02 fast" \
  "1Mbit,1ms/dense/0.01 0.08 0.02 fast" "1Mbit,1ms/dense/0.001 0.083 0.023 fast" \
  "1Mbit,1ms/topk/0.01 0.06 0.02 fast" "1Mbit,1ms/topk/0.001 0.027 0.017 fast" \
  "1Mbit,1ms/dgc/0.001 0.03 0.02 fast" "1Mbit,1ms/bsp/0.001 0.07 0.02 fast"
show
while read -r line; do expect "$work/said" "$line"; done <<'TEXT'
| `topk` | iterations | 33.0 | 2.42 | 2.42 | 0.8100 | 2 | 0.03 | 1 |
| `dense` | iterations | 80.0 | 1.00 | 1.00 | 0.8100 | 2 | 0.08 | 1 |
| `bsp` | iterations, not trained | – | – | – | – | 2 | 0.07 | – |
without its rivals: `bsp` (not trained); `dgc` (lacks the short run of a density).
Left out: `dgc` (lacks the short run of a density).
| `topk` | measured | 60.0 | 1.67 | 1.67 | 0.8100 | 2 | 0.06 | 1 |
TEXT

# trainings of other batches do not race
sed -i 's/"batch_size": 32/"batch_size": 8/' "$work/runs/lenet/none/dgc-s1/config.json"
if show 2>"$work/said"; then exit 1; fi
expect "$work/said" "dgc-s1 do not race: they differ in batch_size"
