#!/usr/bin/env bash
# Figures of repro.py: axes and legends.
set -euo pipefail
python=python3
"$python" -c 'import matplotlib' 2>/dev/null || python=/usr/bin/python3
"$python" -c 'import matplotlib' 2>/dev/null || { echo "skipped: no matplotlib"; exit 77; }
PYTHONPATH=scripts PYTHONDONTWRITEBYTECODE=1 "$python" - <<'PY'
import tempfile
from pathlib import Path
from types import SimpleNamespace
from repro import figures
from repro.claims import Curve, Panel
from repro.comparable import Speed
from repro.figures import plt


def ticks(values):
    """The labels within the range of a logarithmic axis with these values."""
    _, axes = plt.subplots()
    axes.plot(range(len(values)), values)
    figures.scale_log(axes)
    axes.figure.canvas.draw()
    low, high = axes.get_ylim()
    return [label.get_text() for label in axes.get_yticklabels()
            if low <= label.get_position()[1] <= high]


assert len(ticks([0.2, 3])) >= 3, ticks([0.2, 3])  # one power of ten alone
assert "0.5" in ticks([0.01, 1]) and "0.02" in ticks([0.01, 1]), ticks([0.01, 1])
assert "0.5" not in ticks([1e-6, 1])

# a legend is not wider than its figure, and has as many columns as fit
for labels, most in ((["a"] * 8, 8), (["a label of 24 characters"] * 8, 3)):
    figure, (axes,), strip = figures.grid(1, 1, 9, 4)
    for label in {f"{i} {text}" for i, text in enumerate(labels)}:
        axes.plot([0, 1], label=label)
    figures.draw_legend([axes], strip, 8)
    figure.canvas.draw()
    assert strip.get_legend()._ncols == most, (labels[0], strip.get_legend()._ncols)
    assert strip.get_legend().get_window_extent().width < figure.bbox.width

# a panel for each row with u, and one for its residual if there is one; each in its own deviation
with tempfile.TemporaryDirectory() as folder:
    results = {}
    for row, scales in (("topk", {"histograms": 1, "residual_histograms": 8}),
                        ("dense", {"histograms": 1})):
        (run := Path(folder) / row).mkdir()
        for table, scale in scales.items():
            normal = [(i / 8, 10000 * 2.718281828 ** (-i * i / 128)) for i in range(-32, 32)]
            (run / f"{table}.csv").write_text("epoch,low,high,count\n" + "".join(
                f"1,{scale * x},{scale * (x + 1 / 8)},{count:.0f}\n" for x, count in normal))
        results[row] = [SimpleNamespace(finished=True, folder=run)]
    plan = SimpleNamespace(rows={row: SimpleNamespace(label=f"{row}: u") for row in results})
    drawn = figures.histograms(plan, results).axes[:-1]
titles = [title for axes in drawn for loc in ("left", "center") if (title := axes.get_title(loc))]
assert titles == ["topk: u", "topk: residual alone", "dense: u"], titles  # by row
for axes in drawn:
    assert abs(max(axes.get_lines()[0].get_ydata()) - 0.4) < 0.02  # as in a normal distribution

# bars of shares: each curve begins where the one before it ends, and all end at 1
shares = Panel("", "model", "", "", "", [Curve(name, points={"a": a, "b": b}) for name, a, b in
                                         (("x", 1, 6), ("y", 3, 2))], stacked=True)
(axes, _) = figures.panels(SimpleNamespace(panels=[shares], columns=1), {}).axes
bars = [[(bar.get_y(), bar.get_height()) for bar in one] for one in axes.containers]
assert bars == [[(0, 0.25), (0, 0.75)], [(0.25, 0.75), (0.75, 0.25)]], bars
assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b"]

# a curve has the same colour where others are left out
lone = Panel("", "ranks", "y", "", "", [Curve("none"), Curve("one", points={1: 1, 2: 2})])
(axes, _) = figures.panels(SimpleNamespace(panels=[lone], columns=1), {}).axes
assert axes.get_lines()[0].get_color() == figures.COLOURS[1]

# panels without a curve are left out, down to a single one, or none
POINTS = {"a": {1: 1, 2: 2}, "b": {1: 1}}
for names in (["a", "b"], ["a"], []):
    wanted = [Panel(name, "ranks", "y", "", "", [Curve(name, points=POINTS[name])]
                    if name in names else []) for name in POINTS]
    axes = figures.panels(SimpleNamespace(panels=wanted, columns=3), {}).axes[:-1]
    assert [one.get_title() or one.get_title("left") for one in axes] == names, names

row = SimpleNamespace(seeded=True, resolved={})
plan = SimpleNamespace(rows={name: SimpleNamespace(label=name) for name in "abc"}, panels=[
    lone, SimpleNamespace(x=figures.SECONDS)], claim=SimpleNamespace(figure="panels"))
BANDS = "; bands from the lowest to the highest."
for each, speeds, noted in (
        ([[]], [1], ""), ([[1, 3]], [1], "Seed 1."), ([[1], [1], [3]], [1, 2, 1], "Seed 1."),
        ([[2, 3, 1]], [1], f"Means of seeds 1, 2{BANDS}"),
        ([[1], [1], [2, 1]], [1] * 3, f"Seed 1 (c: seeds 1, 2){BANDS}"),
        ([[1]] * 3, [1, 2, 1], "Seed 1. Panels by time lack b: their seconds do not compare.")):
    ran = {name: [SimpleNamespace(seed=seed, finished=seed < 3, row=row, speed=Speed("x", speed))
                  for seed in seeds] for name, seeds, speed in zip("abc", each, speeds)}
    assert figures.seeds_text(plan, ran) == noted, (figures.seeds_text(plan, ran), noted)
plan.panels.pop()
assert figures.seeds_text(plan, ran) == "Seed 1."
PY
