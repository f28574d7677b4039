#!/usr/bin/env bash
# repro.py: a claim of a few seconds is stopped by a signal, resumed, finished once, and judged by
# its rules; wrong options and files end with one line; the claims of configs/repro are valid.
set -euo pipefail
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
claims=$work/claims out=$work/out
mkdir "$claims"

# claim MOST: training on a slow link, and a prediction; the rule of the first allows MOST
claim() {
  cat >"$claims/T1.py" <<PY
from repro.claims import Scale, claim

@claim("T1", "test", "a test", "none", "nowhere",
       {"quick": Scale(), "paper": Scale()})
def test(plan):
    dense = plan.row("dense", model="lenet", dataset="shapes", epochs=2, workers=2,
                     link="100Mbit,1ms", analyze_every=40, max_steps=120)
    model = plan.row("model", "advise", simulate=True, compute=1, select=0, link="1Gbit,1ms",
                     ranks=[2, 4])
    plan.line("loss", dense.value("train_loss"), 2)
    plan.rule("loss", dense.value("train_loss"), most=$1, why="test")
    gtopk, topk = (model.value("iteration_seconds", sparsifier=name, ranks=4)
                   for name in ("gtopk", "topk"))
    plan.rule("gtopk over topk", gtopk / topk, 0.5, 2, why="test")
PY
}

repro() {
  python3 scripts/repro.py --claims "$claims" --output-dir "$out" \
    --bin "${bin:-${TW_BUILD:-build}/bin}" "$@"
}

claim 100
run=$out/quick/T1/dense-s1
repro run T1 --dry-run >"$work/said"
expect "$work/said" "T1/dense seed 1: P = 2, 1 epoch, 120 steps"
# seconds of a training without results are those of a few steps: on this link at least 0.02 s each
seconds=$(sed -n 's/^T1\/dense.* about \([0-9]*\) s$/\1/p' "$work/said")
((seconds >= 2)) || { echo "120 steps in $seconds s"; cat "$work/said"; exit 1; }
expect "$work/said" "$seconds s and the time of 1 results that is unknown"
[[ ! -e $out ]]
repro run T1 --dry-run --images-per-s 10 >"$work/said"
expect "$work/said" "about 768 s"
# a printed command works where it is printed
PYTHONPATH=scripts python3 - <<'PY'
import os
from repro import ROOT, estimate
words = ["train", "--config", "configs/resnet20-cifar10.json"]
assert estimate.from_here(words) == words
os.chdir("/")
assert estimate.from_here(words)[2] == str(ROOT / words[2])
PY
# --rows names the rows to run; --val-size holds out images of real data only
repro run --dry-run T1 --rows model >"$work/said"
expect "$work/said" "0 results finished, 1 to run"
refuses "unknown row modle; did you mean model?" repro run T1 --rows modle
repro run T1 --dry-run --val-size 500 >"$work/said"
if grep -q -e --val-size "$work/said"; then echo "held out generated images" && exit 1; fi
refuses "--val-size is -1; expected 0 or more" repro run T1 --val-size -1
refuses "--images-per-s is -5; expected at least 0" repro run T1 --dry-run --images-per-s -5
refuses "--launcher is empty" repro run T1 --launcher ""
refuses "none: No such file or directory" repro run T1 --dry-run --launcher "$work/none -n {P}"
out=$claims/T1.py/x refuses "Not a directory" repro run T1
refuses "T1.py: File exists" repro run T1 --tables "$claims/T1.py"

# SIGTERM ends the program after its step, and the script with the code of the signal
python3 scripts/repro.py run T1 --claims "$claims" --output-dir "$out" \
  --bin "${TW_BUILD:-build}/bin" >"$work/said" 2>&1 &
ends_by_sigterm $! "$run/steps.csv" 20
expect "$run/summary.json" '"stopped": true'
repro run T1 --dry-run --images-per-s 10 >"$work/said"
expect "$work/said" "about 768 s"  # not the seconds until the signal
repro show T1 >"$work/said"
expect "$work/said" ": 0 of 2 runs finished."

# the same command resumes it; a third time it does nothing
repro run T1 >"$work/said"
expect "$work/said" "| T1 | a test | holds | 2 of 2 rules hold; measured on an emulated link and"
expect "$run/summary.json" '"steps": 120'
starts() { python3 -c "import json; print(len(json.load(open('$run/repro.json'))['starts']))"; }
[[ $(starts) == 2 ]]
tables=$out/quick/tables
rm "$tables"/*
# without matplotlib the tables are written, too
mkdir -p "$work/path/matplotlib"
echo 'raise ImportError("absent")' >"$work/path/matplotlib/__init__.py"
PYTHONPATH=$work/path repro run test >"$work/said" 2>&1
expect "$work/said" "no figures: matplotlib is missing"
[[ $(starts) == 2 && ! -e $tables/T1.png ]]
expect "$tables/tables.md" "Seeds: 1."
expect "$tables/tables.csv" "T1,quick,verdict,,,,,,holds"
[[ -z $(find "$out" -name '*.tmp' -o -name table.csv) ]]
if python3 -c 'import matplotlib' 2>/dev/null || /usr/bin/python3 -c 'import matplotlib'; then
  repro run T1 >"$work/said"
  [[ $(head -c 4 "$tables/T1.png" | tail -c 3) == PNG && -s $tables/T1.svg ]]
fi

# kept results hold no paths, have the same rows and tables, and are not run again
repro keep --to "$work/kept" >"$work/said"
[[ $(cat "$work/said") == $'quick/T1/dense-s1\nquick/T1/model' ]]
if grep -rqF -e "$work" -e "$PWD" "$work/kept"; then echo "a path was kept" && exit 1; fi
while read -r file of_all; do  # what figures are drawn from
  xzcat -f "$work/kept/$of_all" | cut -d, -f2- | cmp - "$run/$file"
done <<'TEXT'
metrics.csv epochs.csv
steps.csv steps.csv.xz
distributions.csv distributions.csv
histograms.csv histograms.csv
TEXT
out=$work/kept repro show T1 | sed 's/^ *//' >"$work/kept.md"
repro show T1 | sed 's/^ *//' | cmp - "$work/kept.md"
out=$work/kept repro run T1 --tables "$work/drawn" >"$work/said"
cmp "$work/drawn/tables.csv" "$tables/tables.csv"
if [[ -e $tables/T1.png ]]; then cmp "$work/drawn/T1.png" "$tables/T1.png"; fi
[[ ! -e $work/kept/quick ]]
# results that an older version kept are folders without logs and steps; they are read, and kept
cp -r "$out" "$work/old"
find "$work/old" \( -name 'steps.csv' -o -name '*log*' \) -delete
out=$work/old repro show T1 | sed 's/^ *//' | cmp - "$work/kept.md"
out=$work/old repro keep --to "$work/renewed" >"$work/said"
diff -r -x steps.csv.xz "$work/kept" "$work/renewed"
# what is kept is not kept twice, nor replaced by another one unless that is asked for
cp -r "$work/kept" "$work/before"
repro keep --to "$work/kept" >"$work/said"
out=$work/kept repro keep --to "$work/kept" >"$work/said"
diff -r "$work/before" "$work/kept"
sed -i '1s/dense/other/2' "$work/kept/runs.jsonl"
cp "$work/kept/runs.jsonl" "$work/other"
repro keep --to "$work/kept" >"$work/said"
expect "$work/said" "quick/T1/dense-s1: not kept, $work/kept has another result; --replace"
expect "$work/said" "quick/T1/model"
cmp "$work/other" "$work/kept/runs.jsonl"
repro keep --to "$work/kept" --replace >"$work/said"
diff -r "$work/before" "$work/kept"
refuses "keep where?" repro keep
out=$work/none refuses "none does not exist" repro keep --to "$work/kept"

# a claim whose data is not there is one line of the plan of all
mkdir -p "$work"/few/{train,val}/{one,two,.cache}
sed 's/"T1"/"U1"/; s/"lenet"/"resnet50"/; s/"shapes"/"imagenet"/' "$claims/T1.py" >"$claims/U1.py"
repro run all --dry-run --data-dir "$work/few" >"$work/said"
expect "$work/said" "U1: needs ImageNet; $work/few/train has 2 of 1000 classes"
expect "$work/said" "2 results finished, 0 to run"
sed -i 's/"imagenet"/"imagefolder"/' "$claims/U1.py"
repro run all --dry-run >"$work/said"
expect "$work/said" "U1: needs images in class folders; --data-dir names a folder with train/"
rm "$claims/U1.py"
# results that are there need neither data nor programs
claims=configs/repro out=docs/results/repro bin=$work/none repro run E1 --scale short --seeds 1 \
  --val-size 5000 --data-dir "$work/few" --tables "$work/drawn" >"$work/said"
expect "$work/said" "| E1 | a dense rival with messages in bf16 | holds | 2 of 2 rules hold"

# a rule that fails, and a scale without results
claim 0.001
repro show T1 >"$work/said"
expect "$work/said" "| T1 | a test | does not | 1 of 2 rules hold"
repro show T1 --scale paper --seeds 1 >"$work/said"
expect "$work/said" "not tested at this scale"

refuses "unknown claim T2; did you mean T1?" repro run T2
refuses "unknown scale quik; did you mean quick?" repro run T1 --scale quik
refuses "unknown action ran" repro ran
refuses "expected numbers such as 1,2,3" repro run T1 --seeds 1,x
refuses "none does not exist" repro run T1 --data-dir "$work/none"
# only the programs of rows that are not finished must be there
out=$work/fresh bin=$work refuses "advise is missing" repro run T1
mkdir "$work/only" && ln -s "$(realpath "${TW_BUILD:-build}/bin/advise")" "$work/only"
out=$work/fresh bin=$work/only refuses "train is missing" repro run T1
out=$work/fresh bin=$work/only repro run T1 --rows model >"$work/said"
bin=$work repro run T1 >"$work/said"
sed -i 's/100Mbit/200Mbit/' "$claims/T1.py"
refuses "link is 200Mbit,1ms, was 100Mbit,1ms" repro run T1

python3 scripts/repro.py list >"$work/said"
for claim in A1 D2 $(sed -n 's/^@claim("\([^"]*\)".*/\1/p' configs/repro/*.py); do
  expect "$work/said" "| $claim |"; done

# kept results have the options of their claims and make the tables that lie beside the figures
PYTHONPATH=scripts PYTHONDONTWRITEBYTECODE=1 python3 - "$work" <<'PY'
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from repro import claims, runs, tables
from runs.tables import as_csv

known = claims.load(Path("configs/repro"))
for scale, folder, least, held_out in (("short", "docs/images/repro", 6, None),
                                       ("paper", "docs/images/repro/paper", 1, 5000)):
    plans = claims.plans(known, scale)
    drawn = re.split("^## ", Path(folder, "tables.md").read_text(), flags=re.M)[1:]
    assert len(drawn) >= least, drawn
    texts, rows = [], []
    for text in drawn:
        plan = plans[text.partition(":")[0]]
        seeds = re.search(r"Seeds: ([\d, ]+)\.", text)
        seeds = [int(one) for one in (seeds[1] if seeds else "1").split(",")]
        settings = SimpleNamespace(results=Path("docs/results/repro") / scale, device="",
                                   val_size=held_out, seeds=seeds)
        results = {row.name: runs.results_of(row, settings) for row in plan.rows.values()}
        for result in (one for each in results.values() for one in each):
            result.check_options()
            partly = plan.claim.id in ("A1-density", "A1-vgg16", "B3-density", "B3-workers")
            assert result.finished or partly, f"{result.folder} is not finished"
        texts.append(tables.document(plan, results))
        rows += tables.rows_of(plan, results)[len(rows) > 0:]
    assert "\n".join(texts) == Path(folder, "tables.md").read_text(), f"{folder}: other tables"
    assert as_csv(rows) == Path(folder, "tables.csv").read_text(), f"{folder}: another CSV"
    # a table replaces only that of its claim
    copy = Path(sys.argv[1], scale)
    shutil.copytree(folder, copy)
    tables.write(copy, "A1", "## A1: new\n", [rows[0], ["A1", "new"]])
    others = [row for row in rows[1:] if row[0] != "A1"]
    assert (copy / "tables.md").read_text() == "\n".join(["## A1: new\n", *texts[1:]])
    assert (copy / "tables.csv").read_text() == as_csv([rows[0], ["A1", "new"], *others])
    tables.write(copy, "A1", texts[0], [rows[0], *(row for row in rows if row[0] == "A1")])
    for name in ("tables.md", "tables.csv"):
        assert (copy / name).read_text() == Path(folder, name).read_text(), name
PY

# at scale paper, the rows of a paper's recipes change nothing in them but what the claim varies
PYTHONPATH=scripts PYTHONDONTWRITEBYTECODE=1 python3 - <<'PY'
import json
import re
from pathlib import Path
from repro import claims

VARIED = {  # what the rows of a claim differ in
    "A1-density": {"density"},
    "B3-density": {"density", "density_warmup"},
    "B3-workers": {"workers"},
    "C3": {"sparsifier", "set", "epochs", "warmup_epochs", "link"},
    "D1": {"workers", "accumulate", "warmup_from", "lr_schedule"},
}
NEUTRAL = {"analyze_every", "val_size"}  # leave the training as it is
plans = claims.plans(claims.load(Path("configs/repro")), "paper")
checked = 0
for name, plan in plans.items():
    for row in plan.rows.values():
        if row.config.count("/") != 1:
            continue
        bf16 = {"set"} if row.options.get("set") == {"allreduce.values": "bf16"} else set()
        more = set(row.options) - VARIED.get(name, set()) - NEUTRAL - bf16
        assert not more, f"{name}/{row.name} changes {', '.join(more)} of {row.config}"
        if name == "D1":  # the warm-up starts at the rate of one worker, as in the recipe
            workers = int((re.search(r"-P(\d+)", row.name) or [0, 8])[1])
            assert row.resolved["workers"] == workers, row.name
            assert row.resolved["warmup_from"] == 1 / workers, row.name
            assert row.resolved.get("accumulate", 1) == (8 if "x8" in row.name else 1), row.name
            assert (row.resolved["lr_schedule"] == "cosine") == ("cosine" in row.name), row.name
        if "density_warmup" in row.options:  # that of the recipe, without lower densities
            recipe = json.loads((Path("configs") / row.config).read_text())
            assert row.options["density_warmup"] == [
                one for one in recipe["density_warmup"] if one > row.options["density"]], row.name
        checked += 1
assert checked > 50, checked
PY
