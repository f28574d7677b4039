#!/usr/bin/env bash
# plot.py draws several runs, also with epochs that were not validated, and says what it misses.
set -euo pipefail
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
folder=$work
export PYTHONPATH=scripts
phases=sec_data,sec_forward,sec_backward,sec_select,sec_exchange,sec_update
head=epoch,train_loss,val_top1,seconds,nnz_over_k,bytes_sent,$phases
for run in a b; do
  mkdir "$folder/$run"
  printf '%s\n' "$head" 1,2.3,,9,1,0,1,2,3,0,1,1 2,1.1,0.55,9,0.9,4096,1,2,3,0,1,1 \
    >"$folder/$run/metrics.csv"
  echo '{"name": "'$run'", "sparsifier": "topk", "density": 0.001}' >"$folder/$run/config.json"
done

scripts/plot.py "$folder/a" "$folder/b" -o "$folder/curves.png" --title two >"$folder/log" 2>&1 ||
  { cat "$folder/log" && grep -q 'has no matplotlib' "$folder/log" && exit 77; }
[[ $(head -c 4 "$folder/curves.png" | tail -c 3) == PNG ]]

# lines_of RUN PANEL: the points of each line in a panel (0: top-1, 1: loss) and the label
lines_of() {
  /usr/bin/python3 - "$1" "$2" <<'EOF'
import sys
import plot
from runs import figures
((label, runs),) = plot.labelled([plot.opened(sys.argv[1])])
axes = figures.draw([figures.Unit(label, runs)]).axes[int(sys.argv[2])]
print(*(len(line.get_xdata()) for line in axes.lines), label)
EOF
}
# texts_of RUN: what is written in the panel of top-1
texts_of() {
  /usr/bin/python3 - "$1" <<'EOF'
import sys
import plot
from runs import figures
axes = figures.draw([figures.Unit("a", [plot.opened(sys.argv[1])])]).axes[0]
print(*(text.get_text() for text in axes.texts))
EOF
}
# a run of one epoch has a loss curve, and a run stopped before its first epoch is drawn; the label
# has the configured density, not that of the warm-up
steps=step,epoch,density,train_loss,seconds,nnz_over_k,bytes_sent,$phases
for run in short stopped; do
  mkdir "$folder/$run"
  echo "$head,density" >"$folder/$run/metrics.csv"
  echo '{"name": "'$run'", "sparsifier": "topk", "density": 0.001}' >"$folder/$run/config.json"
  echo "$steps" >"$folder/$run/steps.csv"
  for step in 1 2 3 4 5; do
    echo "$step,1,0.02,$((9 - step)),9,1,10,1,2,3,0,1,1" >>"$folder/$run/steps.csv"
  done
done
echo 1,2.3,0.5,9,1,50,1,2,3,0,1,1,0.02 >>"$folder/short/metrics.csv"
[[ $(lines_of "$folder/short" 1) == "5 short (topk 0.001)" ]]
[[ $(lines_of "$folder/stopped" 1) == "5 stopped (topk 0.001)" ]]
[[ $(lines_of "$folder/short" 0) == "1 short (topk 0.001)" ]]
grep -q 'no validation yet' <<<"$(texts_of "$folder/stopped")"
[[ -z $(texts_of "$folder/short") ]]
# panels in which there is nothing to see are left out: bytes and entries of one rank that sends
# nothing, entries of a dense exchange, all of a validation that is yet to come
cp -r "$folder/short" "$folder/alone"
sed -i 's/,10,1,2,3,/,0,1,2,3,/' "$folder/alone/steps.csv"
sed -i 's/,50,1,2,3,/,0,1,2,3,/' "$folder/alone/metrics.csv"
/usr/bin/python3 - "$folder" <<'EOF'
import sys
import plot
from runs import figures
every = ["Validation top-1", "Training loss", "Time of an epoch by phase", "Top-1 by bytes sent",
         "Top-1 by training time", "Entries sent / k"]
for name, shown in (("a", every), ("short", every[:5]), ("alone", [*every[:3], every[4]]),
                    ("stopped", every[:3])):
    figure = figures.draw([figures.Unit("a", [plot.opened(f"{sys.argv[1]}/{name}")])])
    *panels, legend = figure.axes
    assert [axes.get_title() for axes in panels] == shown, (name, panels)
    places = {axes.get_subplotspec().get_geometry()[2] for axes in panels}
    assert places == set(range(len(shown))), (name, places)
EOF
for step in 6 7; do echo "$step,2,0.001,1,9,1,10,1,2,3,0,1,1"; done >>"$folder/stopped/steps.csv"
[[ $(lines_of "$folder/stopped" 1) == "7 stopped (topk 0.001)" ]]
scripts/plot.py "$folder/stopped" "$folder/short" -o "$folder/short.png" >"$folder/log"
[[ -s $folder/short.png ]]

# seeds of a group are one line, their mean, with a band; a line says which seed counts
for seed in 1 2 3; do
  mkdir "$folder/s$seed"
  printf '%s\n' "$head" 1,2.3,0.$((seed * seed)),9,1,$seed,1,2,3,0,1,1 >"$folder/s$seed/metrics.csv"
  echo '{"sparsifier": "topk", "seed": '"$seed"'}' >"$folder/s$seed/config.json"
done
/usr/bin/python3 - "$folder"/s[123] <<'PY'
import sys
import plot
from runs import figures
((label, runs),) = plot.grouped([plot.opened(folder) for folder in sys.argv[1:]])
assert label == "topk (3 seeds)", label
axes = figures.draw([figures.Unit(label, runs, band=True)]).axes
(line,), (band,) = axes[0].lines, axes[0].collections
assert [round(y, 6) for y in line.get_ydata()] == [round((0.1 + 0.4 + 0.9) / 3, 6)]
assert {round(y, 6) for _, y in band.get_paths()[0].vertices} == {0.1, 0.9}, band.get_paths()
assert list(axes[3].lines[0].get_xdata()) == [2], "the mean of 1, 2 and 3 bytes"
PY
cp -r "$folder/s3" "$folder/s4"
scripts/plot.py "$folder"/s[1234] --group-seeds -o "$folder/curves.svg" >"$folder/log" 2>&1
grep -qE 'has the settings and the seed of s[34], which is counted instead' "$folder/log"
grep -q '<svg' "$folder/curves.svg"

# the table of `eval`: colours are shares, numbers counts; a name without a font is a number
printf '%s\n' 'label,a,"b, c",寿' a,3,1,0 '"b, c",0,0,0' 寿,0,2,2 >"$folder/confusion.csv"
/usr/bin/python3 - "$folder/confusion.csv" 2>"$folder/log" <<'PY'
import pathlib
import sys
from runs import confusion, figures
every = figures.font_manager.fontManager.ttflist
every[:] = [font for font in every if "DejaVu" in font.name]
axes = figures.draw_confusion(confusion.read(pathlib.Path(sys.argv[1]))).axes[0]
assert axes.images[0].get_array().tolist() == [[0.75, 0.25, 0], [0, 0, 0], [0, 0.5, 0.5]]
cells = {text.get_position(): text.get_text() for text in axes.texts}
assert cells == {(0, 0): "3", (1, 0): "1", (1, 2): "2", (2, 2): "2"}, cells
assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b, c", "2"]
PY
grep -q 'no font can write all names, shown are 寿 as 2; .* fonts-noto-cjk' "$folder/log"
scripts/plot.py --confusion "$folder/confusion.csv" -o "$folder/confusion.svg" >"$folder/log" 2>&1
grep -q '<svg' "$folder/confusion.svg"
refuses 'expected one row and one column for each class' \
  scripts/plot.py --confusion "$folder/a/metrics.csv" -o "$folder/no.svg"
refuses '--confusion draws one table and no runs; found' \
  scripts/plot.py --confusion "$folder/confusion.csv" "$folder/a"
[[ ! -e $folder/no.svg ]]

# the table of `analyze compressors`: a marker for each density, the mean of the steps; methods with
# the same points share a line, and one without an error is at the lower edge
printf '%s\n' step,sparsifier,density,bytes,error \
  1,a,0.1,1000,0.8 1,a,0.2,2000,0.4 1,b,0.1,1000,0.8 1,b,0.2,2000,0.4 1,all,1,9000,1e-8 \
  2,a,0.1,3000,0.6 2,a,0.2,2000,0.4 2,b,0.1,3000,0.6 2,b,0.2,2000,0.4 2,all,1,9000,0 \
  >"$folder/compressors.csv"
/usr/bin/python3 - "$folder/compressors.csv" <<'PY'
import pathlib
import sys
from runs import compressors, figures
axes = figures.draw_compressors(compressors.read(pathlib.Path(sys.argv[1]))).axes[0]
both, whole = axes.lines
assert list(both.get_xdata()) == [2000, 2000] and both.get_label() == "a, b"
assert [round(y, 9) for y in both.get_ydata()] == [0.7, 0.4]
assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
assert whole.get_label() == "all (exact)" and whole.get_ydata()[0] == axes.get_ylim()[0] < 0.4
PY
env -C "$folder" "$PWD/scripts/plot.py" --compressors compressors.csv >"$folder/log"
[[ -s $folder/compressors.png ]]  # not curves.png, the picture of runs
refuses 'missing column(s) step, sparsifier, density, bytes, error' \
  scripts/plot.py --compressors "$folder/confusion.csv" -o "$folder/no.svg"

# the labels of top-1 say where their ticks are
/usr/bin/python3 - "$folder/a" <<'PY'
import sys
import plot
from runs import figures
run = plot.opened(sys.argv[1])
for low, high in ((0.252, 0.261), (0.11, 0.19), (0.1, 0.9), (0.25, 0.25)):
    run.metrics.rows = [[*row[:2], str(value), *row[3:]]
                        for row, value in zip(run.metrics.rows, (low, high))]
    figure = figures.draw([figures.Unit("a", [run])])
    figure.draw_without_rendering()
    for axes in (figure.axes[0], figure.axes[3], figure.axes[4]):
        for tick, text in zip(axes.get_yticks(), axes.get_yticklabels()):
            assert abs(float(text.get_text().rstrip(" %")) / 100 - tick) < 1e-9, (tick, text)
assert figures.decimals([12.5, 15, 17.5]) == 1 and figures.decimals([10, 20]) == 0
PY

# of one and of twelve runs: each curve has its own look, no text lies on another, the legend is
# below the panels, and bars are thin
/usr/bin/python3 - "$folder/a" <<'PY'
import itertools
import sys
import plot
from runs import figures


def legend_of(axes):
    return axes.get_legend().get_texts() if axes.get_legend() else []


def shown(axis):
    low, high = sorted(axis.get_view_interval())
    return [text for at, text in zip(axis.get_ticklocs(), axis.get_ticklabels())
            if low <= at <= high and axis.axes.axison]


for count in (1, 2, 12):
    runs = [plot.opened(sys.argv[1]) for _ in range(count)]
    units = [figures.Unit(f"lenet-gaussiank-shapes-w4-density0.001-s{number} (gaussiank 0.001)",
                          [run]) for number, run in enumerate(runs)]
    for number, run in enumerate(runs):
        at = run.metrics.names.index("bytes_sent")
        for row in run.metrics.rows:
            row[at] = str(1e6 * 1.4 ** number)
    with figures.plt.rc_context(figures.STYLE):
        figure = figures.draw(units)
        figure.draw_without_rendering()
    panels = figure.axes[:6]
    for axes in panels:
        looks = {(line.get_color(), line.get_linestyle()) for line in axes.lines}
        assert len(looks) == len(axes.lines), looks
    texts = [text for axes in figure.axes for text in [
        axes.title, axes.xaxis.label, *axes.texts, *shown(axes.xaxis),
        *shown(axes.yaxis), *legend_of(axes)]]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
    for (name, box), (other, near) in itertools.combinations(boxes, 2):
        assert not box.overlaps(near), (count, name, other)
        assert 0 <= box.x0 and box.x1 <= figure.bbox.x1 and 0 <= box.y0, (count, name, box)
    legend = figure.axes[6].get_legend()
    assert len(legend.get_texts()) == count
    bottom = min(axes.get_tightbbox(figure.canvas.get_renderer()).y0 for axes in panels)
    assert legend.get_window_extent().y1 <= bottom, count
    bars = [bar for axes in panels for bar in axes.patches]
    assert bars and all(bar.get_window_extent().height < 0.4 * figure.dpi for bar in bars)
PY

# predictions of advise
advice=$folder/advice.csv
{
  echo sparsifier,collective,local_steps,ranks,at_link,gbit_per_s,speedup,speedup_low,speedup_high
  for point in 1,1 0,0.1 0,10; do
    echo "dense,ring overlap,1,4,$point,1,1,1"
    echo "dense,ring,1,8,$point,1,1,1"
    echo "topk,,1,8,$point,0.9,0.8,1.1"
    echo "bsp,,1,8,$point,0.5,0.5,0.5"
    echo "dense,ring bf16,1,8,$point,2,2,2"
    echo "dense,ring,16,8,$point,3,3,3"
    echo "topk,,16,8,$point,4,4,4"
  done
} >"$advice"
scripts/plot.py --advice "$advice" -o "$folder/advice.png" >"$folder/log"
[[ $(head -c 4 "$folder/advice.png" | tail -c 3) == PNG ]]
# each line has its own look, and the legend covers none
/usr/bin/python3 - "$advice" <<'EOF'
import sys
from pathlib import Path
import plot
from runs import figures
with figures.plt.rc_context(figures.STYLE):
    figure = figures.draw_advice(plot.advice.read(Path(sys.argv[1])))
    figure.draw_without_rendering()
for axes in figure.axes:
    shown = [line for line in axes.lines if not line.get_label().startswith("_")]
    looks = {(line.get_color(), line.get_linestyle()) for line in shown}
    assert len(looks) == len(shown), looks
    for line in shown:
        assert (line.get_marker() == "o") == ("H=16" in line.get_label()), line.get_label()
    assert not axes.get_window_extent().overlaps(axes.get_legend().get_window_extent())
assert len(looks) == 6, looks
EOF
sed -i 's/0.9,0.8/x,0.8/' "$advice"
if scripts/plot.py --advice "$advice" -o "$folder/curves.png" 2>"$folder/log"; then exit 1; fi
grep -q 'a value of topk is no number' "$folder/log"

# a table that advise has written: local steps are exchanges of their own
"${TW_BUILD:-build}/bin/advise" --simulate --link 1Gbit,0.4ms --compute 0.1 --select 0 \
  --parameters 10000 --ranks 4 --local-steps 16 --csv "$folder/a/advice.csv" >/dev/null
python3 - "$folder/a" <<'PY'
import sys
from pathlib import Path
from runs import advice
(table,) = advice.found_in(Path(sys.argv[1]))
labels = set(advice.read(table)[1][4])
assert {"dense", "dense H=16", "dense bf16", "dense bf16 H=16", "topk H=16"} <= labels, labels
assert "topk" not in labels, labels
PY
rm "$folder/a/advice.csv"
# a run without a step is left out beside others; less than an epoch has ticks between 0 and 1
mkdir "$folder/begun"
cp "$folder/a/config.json" "$folder/begun"
printf '%s\n' "$head" >"$folder/begun/metrics.csv"
scripts/plot.py "$folder/a" "$folder/begun" -o "$folder/curves.png" >"$folder/log" 2>&1
grep -q "^plot.py: $folder/begun is left out: no step is recorded$" "$folder/log"
printf '%s\n' step,epoch,train_loss,nnz_over_k,seconds,bytes_sent,$phases \
  1,1,2.3,1,9,10,1,2,3,0,1,1 2,1,2.2,1,9,10,1,2,3,0,1,1 \
  >"$folder/begun/steps.csv"
sed -i 's/}$/, "run": {"steps_per_epoch": 10}}/' "$folder/begun/config.json"
/usr/bin/python3 - "$folder/begun" <<'EOF'
import sys
import plot
from runs import figures
axes = figures.draw([figures.Unit("a", [plot.opened(sys.argv[1])])]).axes[1]
low, high = axes.get_xlim()
inside = [tick for tick in axes.get_xticks() if low <= tick <= high]
assert high < 1 and len(inside) > 2, (low, high, inside)
EOF
plot() { scripts/plot.py -o "$folder/none.png" "$@"; }
sed -i 's/val_top1/top1/' "$folder/a/metrics.csv"
refuses 'a/metrics.csv: missing column(s) val_top1' plot "$folder/a"
refuses 'none: not a folder' plot "$folder/none"
refuses "beginn: not a folder; nearest is $folder/begun" plot "$folder/beginn"
sed -i 's/^2,1.1/2,abc/' "$folder/b/metrics.csv"
refuses "train_loss is 'abc' in epoch 2" plot "$folder/b"
head -n 1 "$folder/b/metrics.csv" >"$folder/empty" && mv "$folder/empty" "$folder/b/metrics.csv"
refuses 'no epoch has been finished' plot "$folder/b"
[[ ! -e $folder/none.png ]]
