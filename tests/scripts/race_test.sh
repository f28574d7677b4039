#!/usr/bin/env bash
# race.py: two methods on two links are stopped by a signal, resumed and finished once; the tables
# hold the numbers of the runs; names that a program adds enter; short runs give the seconds of the
# other clock; the table for advise; wrong options and files end with one line.
set -euo pipefail
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
out=$work/out model=$work/out/lenet bin=$work/bin
programs=$(realpath "${TW_BUILD:-build}/bin")

# the steps of short runs that count, and those left out, are whole rounds of local steps; no
# density warm-up of a variant ends below its density
PYTHONPATH=scripts python3 - <<'PY'
import json
from repro.race.rows import LEFT_OUT, SHORT_STEPS
with open("configs/race/variants.json", encoding="utf-8") as file:
    variants = json.load(file)
for name, options in variants.items():
    steps = options.get("local_steps", 1)
    assert LEFT_OUT % steps == SHORT_STEPS % steps == 0, name
    if "density" in options:
        assert all(early > options["density"] for early in options["density_warmup"]), name
PY

cat >"$work/recipe.json" <<'JSON'
{"model": "lenet", "dataset": "shapes", "batch_size": 250, "epochs": 2, "lr": 0.03,
 "density": 0.01, "density_warmup": [0.05]}
JSON
cat >"$work/variants.json" <<'JSON'
{"topk-trimmed": {"sparsifier": "topk", "selector": "trimmed", "links": ["none"]},
 "from-tomorrow": {"sparsifier": "topk", "flag_of_tomorrow": 4},
 "set-of-tomorrow": {"sparsifier": "dense", "set": {"allreduce.tomorrow": "1"}}}
JSON
# a program with the examples of docs/algorithms.md and docs/examples.md (`threshold`,
# `layerwise_topk`, `ternary`), and with a sparsifier `own` and a selector `mine`, which are topk
# and trimmed
mkdir "$bin"
cat >"$bin/advise" <<SH
#!/usr/bin/env bash
words=" \$* "
# shellcheck disable=SC2086
exec "$programs/advise" --simulate --compute 0.1 --select 0.001 --alpha 1e-3 --beta 1e-8 \
  \${words/ --workers 2/}
SH
cat >"$bin/train" <<SH
#!/usr/bin/env bash
if [[ \$* == --describe ]]; then
  "$programs/train_with_examples" --describe |
    sed -e '/"name": "sparsifier"/,/"suggestions"/s/"suggestions": \[/&"own", /' \
      -e '/"name": "selector"/,/"suggestions"/s/"suggestions": \[/&"mine", /'
  exit
fi
[[ \$* != *--dry-run ]] || echo "\$*" >>"$work/dry-runs"
[[ ! -e "$work/fails" || \$* == *--dry-run* ]] || exit 1
words=()
for word; do
  case \$word in own) word=topk ;; mine) word=trimmed ;; esac
  words+=("\$word")
done
exec "$programs/train_with_examples" "\${words[@]}"
SH
chmod +x "$bin/train" "$bin/advise"

methods=dense,topk
race() {
  local action=$1 more=()
  shift
  if [[ $action == run ]]; then
    more=(--config "$work/recipe.json" --variants "$work/variants.json" --ranks "${ranks:-2}"
      --bin "$bin" --methods "$methods" --target "${target:-0.11}")
  fi
  python3 scripts/results/race.py "$action" --output-dir "$out" "${more[@]}" "$@"
}

starts() { python3 -c "import json; print(len(json.load(open('$1/repro.json'))['starts']))"; }

# every registered name and every variant takes part, and what the program lacks is named
methods='' race run --link none --epochs 1 --dry-run >"$work/said"
expect "$work/said" "from-tomorrow is left out: train has no --flag-of-tomorrow"
expect "$work/said" "set-of-tomorrow is left out: train has no setting allreduce.tomorrow"
for name in dense topk own mine threshold layerwise_topk ternary topk-trimmed; do
  expect "$work/said" "none/$name seed 1: P = 2, 1 epoch, 20 steps"
done
expect "$work/said" "--sparsifier topk --selector mine"
methods=topk,topk-trimmed race run --link 20Mbit,1ms --dry-run >"$work/said"
expect "$work/said" "20Mbit-1ms/topk seed 1"
if grep -q topk-trimmed "$work/said"; then echo "links of a variant are ignored" && exit 1; fi
[[ ! -e $out ]]

# a dry run asks once for a method on all links, whose bytes are those of each density
rm "$work/dry-runs"
race run --link none --link "20Mbit,1ms" --link "1Gbit,1ms" --dry-run --images-per-s 1000 \
  >"$work/said"
[[ $(wc -l <"$work/dry-runs") == 2 ]] || { cat "$work/dry-runs"; exit 1; }
for link in none 20Mbit-1ms 1Gbit-1ms; do
  expect "$work/said" "$link/topk seed 1: P = 2, 2 epochs, 40 steps, 1.1 MiB sent, about 20 s"
done

# SIGTERM ends the program after its step; the same command continues
slow=$model/20Mbit-1ms/dense-s1
two=(--link "20Mbit,1ms" --link none)
python3 scripts/results/race.py run --config "$work/recipe.json" --ranks 2 --bin "$bin" \
  --variants "$work/variants.json" --methods dense,topk --target 0.11 --output-dir "$out" \
  "${two[@]}" >"$work/said" 2>&1 &
ends_by_sigterm $! "$slow/steps.csv" 10
expect "$slow/summary.json" '"stopped": true'
race show --bin "$work/none" >"$work/said"
expect "$work/said" "Left out: \`dense-s1\` (not finished)."
race run "${two[@]}" >"$work/said"
expect "$slow/summary.json" '"steps": 40'
[[ $(starts "$slow") == 2 ]]
for run in 20Mbit-1ms/topk-s1 none/dense-s1 none/topk-s1; do
  [[ $(starts "$model/$run") == 1 ]] || { echo "$run was started again"; exit 1; }
done
race run "${two[@]}" >"$work/said"
if grep -q 's1$' "$work/said"; then echo "a finished run is started again" && exit 1; fi
[[ $(starts "$slow") == 2 ]]
expect "$work/said" "\`advise\` names \`--sparsifier"
expect "$model/none/advise.json" '"recommended": "--sparsifier '

# names of the program
methods=own,mine,threshold race run --link none >"$work/said"
expect "$model/none/own-s1/repro.json" '"label": "--sparsifier own"'
expect "$model/none/mine-s1/repro.json" '"label": "--sparsifier topk --selector mine"'
expect "$model/none/threshold-s1/repro.json" '"label": "--sparsifier threshold"'
for name in own mine threshold; do
  expect "$out/tables/tables.md" "| \`$name\` | measured |"
done

# short runs: each density of topk, one density of dense
race run --clock iterations --link 50Mbit,1ms --no-training >"$work/said"
short=$model/50Mbit-1ms/iterations
[[ -e $short/topk/0.01-s1 && -e $short/topk/0.05-s1 ]]
[[ -e $short/dense/0.01-s1 && ! -e $short/dense/0.05-s1 ]]
race run --clock iterations --link 50Mbit,1ms >"$work/said"
if grep -q 's1$' "$work/said"; then echo "a finished run is started again" && exit 1; fi
expect "$work/said" "### 50Mbit,1ms"

echo model,kept >"$work/accuracy.csv"  # a table is replaced
race accuracy "$work/accuracy.csv" >"$work/said"
expect "$work/said" "5 rows: $work/accuracy.csv"

PYTHONPATH=scripts python3 - "$out" "$work/accuracy.csv" <<'PY'
import csv
import json
import sys
from pathlib import Path

out = Path(sys.argv[1])


def read(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def summary(run):
    return json.loads((out / "lenet" / run / "summary.json").read_text())


rows = read(out / "tables" / "tables.csv")
assert len(rows) == 9, rows
for row in rows:
    short = row["link"] == "50Mbit,1ms"
    assert row["clock"] == ("iterations" if short else "measured"), row
    told = summary(("none" if short else row["link"].replace(",", "-")) + f"/{row['method']}-s1")
    assert abs(float(row["top1"]) - told["val_top1"]) < 1e-9, row
    assert abs(float(row["mib_per_step"]) - told["bytes_sent"] / 40 / 2**20) < 1e-6, row
    assert row["seeds"] == "1" and row["options"].startswith("--sparsifier "), row

lines = {(row["sparsifier"], row["options"]): row for row in read(sys.argv[2])}
assert set(lines) == {("dense", ""), ("topk", ""), ("own", ""), ("threshold", ""),
                      ("topk", "--selector mine")}, lines
line = lines["topk", ""]
assert list(line) == ("sparsifier options model dataset ranks batch_size density epochs seeds top1 "
                      "dense_top1 commit images curve").split(), line
assert abs(float(line["top1"]) - summary("none/topk-s1")["val_top1"]) < 1e-6, line
assert abs(float(line["dense_top1"]) - summary("none/dense-s1")["val_top1"]) < 1e-6, line
curve = [float(top1) for top1 in line["curve"].split(";")]
run = out / "lenet" / "none" / "topk-s1"
told = [float(row["val_top1"]) for row in read(run / "metrics.csv")]
assert max(abs(a - b) for a, b in zip(curve, told, strict=True)) < 1e-4, (curve, told)
steps = summary("none/topk-s1")["steps"]
assert int(line["images"]) * len(told) == steps * 2 * 250, (line, steps)
del line["top1"], line["dense_top1"], line["curve"], line["images"]
assert line.pop("commit"), "no commit"
assert line == dict(zip(line, ("topk", "", "lenet", "shapes", "2", "250", "0.01", "2", "1"))), line

# the method that advise recommends
from repro.race import advice

advised = "--sparsifier dense --allreduce ring --set allreduce.values=bf16".split()


class Entry:
    def __init__(self, label):
        self.label = label


entries = [Entry(label) for label in ("--sparsifier topk", "--sparsifier dense --overlap",
                                      "--sparsifier dense",
                                      "--sparsifier dense --set allreduce.values=bf16")]
assert advice.method_of(advised, entries) is entries[3]
assert advice.method_of(["--sparsifier", "dense"], entries) is entries[2]
assert advice.method_of(["--sparsifier", "gtopk"], entries) is None

# the options by which advise finds an accuracy: the density has a column of its own
local = Entry("--sparsifier topk --local-steps 4 --density 0.01 --density-warmup 0.015625")
assert advice.options_for_advise(local) == "--local-steps 4"
PY
if python3 -c 'import matplotlib' 2>/dev/null || /usr/bin/python3 -c 'import matplotlib'; then
  [[ $(head -c 4 "$out/tables/lenet.png" | tail -c 3) == PNG && -s $out/tables/lenet.svg ]]
fi

# kept runs hold no paths, have the same tables, and are not trained again
race keep --to "$work/kept" >"$work/said"
expect "$work/said" "lenet/none/threshold-s1"
if grep -rqF -e "$work" -e "$PWD" "$work/kept"; then echo "a path was kept" && exit 1; fi
out=$work/kept race show --tables "$work/drawn" --bin "$work/none" >"$work/said"
race show --bin "$work/none" >"$work/said"
for table in tables.md tables.csv; do
  cmp "$out/tables/$table" "$work/drawn/$table"
done
out=$work/kept race run --link none >"$work/said"
[[ ! -e $work/kept/lenet/none/topk-s1 ]] || { echo "a kept run is started again"; exit 1; }
# what advise said before stays with the runs that are kept
sed -i '/lenet.none/s/"machine": {/&"note": 1, /' "$work/kept/advise.jsonl"
cp "$work/kept/advise.jsonl" "$work/answers"
race keep --to "$work/kept" >"$work/said"
expect "$work/said" "lenet/none: not kept, $work/kept has another result; --replace replaces it"
cmp "$work/kept/advise.jsonl" "$work/answers"

# the results that the repository keeps make the tables that lie beside the figures
out=docs/results/race race show --tables "$work/images" --bin "$work/none" >"$work/said"
for table in tables.{md,csv}; do
  cmp "$work/images/$table" "docs/images/race/$table"
done

# finished results need no data
THINWIRE_CACHE=$work/none python3 scripts/results/race.py run --methods dense --link none \
  --dry-run --bn-stats average --output-dir docs/results/race --bin "$programs" >"$work/said"
expect "$work/said" "1 results finished, 0 to run"
# short runs without a link replace the seconds of the trainings, not their accuracies
race run --clock iterations --link none --no-training >"$work/said"
python3 - "$out/tables/tables.csv" <<'PY'
import csv
import sys
with open(sys.argv[1], encoding="utf-8") as file:
    clocks = {row["method"]: (row["clock"], row["top1"]) for row in csv.DictReader(file)
              if row["link"] == "none"}
assert all(clocks[one][0] == "iterations" and clocks[one][1] for one in ("dense", "topk")), clocks
PY

# a run that was busy most of its time is left out until --again replaces it
slow=$model/20Mbit-1ms/topk-s1
methods=dense,topk race run --link "20Mbit,1ms" --again >"$work/said"
cp -r "$slow" "$work/before"
# forward_takes SECONDS RUN...: in every epoch of these runs
forward_takes() {
  python3 - "$@" <<'PY'
import csv
import sys

for run in sys.argv[2:]:
    with open(f"{run}/metrics.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with open(f"{run}/metrics.csv", "w", encoding="utf-8") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(row | {"sec_forward": sys.argv[1], "sec_backward": 0} for row in rows)
PY
}
forward_takes 20 "$slow"
methods=dense,topk race run --link "20Mbit,1ms" >"$work/said"
expect "$work/said" "| \`topk\` | measured | left out |"
if grep -q 'topk-s1$' "$work/said"; then echo "started without --again" && exit 1; fi
cp -r "$slow" "$work/slow"
touch "$work/fails"
if methods=topk race run --link "20Mbit,1ms" --again &>"$work/said"; then exit 1; fi
rm "$work/fails"
diff -r "$work/slow" "$slow"  # it stays until another is whole
methods=topk race run --link "20Mbit,1ms" --again >"$work/said"
expect "$work/said" "20Mbit-1ms/topk-s1"
[[ ! -e ${slow%/*}/again ]]
cmp <(cut -d, -f 1-3 "$slow/metrics.csv") <(cut -d, -f 1-3 "$work/before/metrics.csv")
if grep -q ',20,' "$slow/metrics.csv"; then echo "not replaced" && exit 1; fi
sed -i 's/"cpu": ".*"/"cpu": "another"/' "$model/20Mbit-1ms/"*/repro.json "$model/none/"*/repro.json
sed -i 's/"cpu": ".*"/"cpu": "a third"/' "$slow/repro.json"
forward_takes 1 "$model/20Mbit-1ms/"*-s1 "$model/none/"*-s1
methods=topk race run --link "20Mbit,1ms" --again --dry-run >"$work/said"
expect "$work/said" "20Mbit,1ms: nothing runs again: this machine is "

# more epochs than the runs in the folder have
refuses "epochs is 3, was 2; remove it" race run --link none --epochs 3
refuses "link 1Gbit: expected RATE,LATENCY" race run --link 1Gbit
refuses "--clock is wall; expected measured or iterations" race run --clock wall
refuses "--no-training needs --clock iterations" race run --no-training
ranks=0 refuses "--ranks is 0; expected at least 1" race run
target=80 refuses "--target is 80; expected a fraction" race run
bin=$work/none refuses "none/train is missing" race run
mkdir "$work/train" && ln -s "$bin/train" "$work/train"
bin=$work/train race run --link none --dry-run >"$work/said"  # asks for no other program
refuses "no runs of resnet20 in $out" race show --model resnet20
refuses "none/x.csv: No such file" race accuracy "$work/none/x.csv"
refuses "repro.json exists and is no CSV file" race accuracy "$slow/repro.json"
refuses "unknown action ran; did you mean run?" race ran
refuses 'unknown model "lenot"; nearest is "lenet"' race run --model lenot
methods=topl refuses "unknown method topl; did you mean topk?" race run
methods=from-tomorrow refuses "train has no --flag-of-tomorrow" race run
echo '{"hot": {"sparsifier": "dense", "lr": "x"}}' >"$work/variants.json"
methods=hot refuses "lr is x; expected a number" race run --link none
echo '{"hot": {"sparsifier": "dense", "epochs": "x"}}' >"$work/variants.json"
methods=hot refuses "hot: epochs is 'x'; expected a number" race run --link none
echo '{"a b": {}}' >"$work/variants.json"
refuses "'a b' is no name" race run
echo '[' >"$work/variants.json"
refuses "variants.json: " race run
