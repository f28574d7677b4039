#!/usr/bin/env bash
# compare.py and list_runs.py: settings that differ, groups of seeds, conditions, states of runs,
# and one line for each error.
set -euo pipefail
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
runs=$work/runs
python3 tests/scripts/runs/make_runs.py "$runs" 80

# expect TEXT: the last output has a line that matches TEXT
expect() {
  grep -qE -- "$1" "$work/said" && return
  echo "expected a line with: $1; got:"
  cat "$work/said"
  exit 1
}

# only what differs; the numbers are those of the runs
scripts/compare.py "$runs/topk-s1" "$runs/topk-s2" >"$work/said"
expect '^run +seed +state +epochs_done +val_top1 .* nnz_over_k$'
expect '^topk-s2 +2 +finished +4 +0\.[0-9]{4} '
[[ $(wc -l <"$work/said") == 3 ]]
# a run that a resume changed says so
cp -r "$runs/topk-s1" "$work/changed"
python3 - "$work/changed/config.json" <<'PY'
import json
import sys

with open(sys.argv[1], "r+") as file:
    config = json.load(file)
    config["run"]["changes"] = [{"step": 3, "text": "lr was 0.1, is now 0.2"}]
    file.seek(0)
    json.dump(config, file)
PY
scripts/compare.py "$work/changed" "$runs/topk-s2" >"$work/said"
expect '^changed .* step 3: lr was 0.1, is now 0.2$'
rm -r "$work/changed"
# settings that are objects, here the normalisation, are shown by their parts; runs of other
# commits are seeds of one group
for seed in 1 2; do
  cp -r "$runs/topk-s$seed" "$work/other-$seed"
  python3 - "$work/other-$seed/config.json" $seed <<'PY'
import json
import sys

with open(sys.argv[1], "r+") as file:
    config = json.load(file)
    config["run"]["normalisation"] = {"mean": [0.5, int(sys.argv[2])], "deviation": [1]}
    config["run"]["commit"] = "abc" + sys.argv[2]
    file.seek(0)
    json.dump(config, file)
PY
done
scripts/compare.py "$work/other-1" "$work/other-2" >"$work/said"
expect '^other-1 .* mean 0.5,1; deviation 1  abc1$'
sed -i 's/"normalisation"/"steps_per_epoch"/' "$work/other-"?/config.json
scripts/compare.py --group-seeds "$work/other-1" "$work/other-2" >"$work/said"
expect '^topk +1,2 +2 finished '
rm -r "$work/other-1" "$work/other-2"
# the last row of metrics.csv may be of an epoch that --max-steps cut
cp -r "$runs/topk-s1" "$work/cut"
sed -i 's/"epochs": 4/"epochs": 3/' "$work/cut/summary.json"
scripts/compare.py "$work/cut" "$runs/topk-s2" >"$work/said"
expect '^cut .* finished +3 '
rm -r "$work/cut"
# on a narrow terminal a run has a column; the lines are the same otherwise
compare="scripts/compare.py '$runs/topk-s1' '$runs/topk-s2'"
script -qec "stty cols 60; $compare" /dev/null </dev/null | tr -d '\r' >"$work/said"
expect '^run +topk-s1 +topk-s2$'
expect '^val_top1 +0\.[0-9]{4} +0\.[0-9]{4}$'
[[ $(wc -L <"$work/said") -le 60 ]]
scripts/compare.py "$runs/dense" "$runs/stopped" --markdown >"$work/said"
expect '^\| run \| sparsifier \| density \| link \| state '
expect '^\| dense \| dense \| – \| 100Mbit,1ms \| finished '
cp -r "$runs/dense" "$work/quantized"
sed -i 's/"sparsifier": "dense"/"sparsifier": "quantized"/' "$work/quantized/config.json"
scripts/compare.py "$work/quantized" "$runs/stopped" --markdown >"$work/said"
expect '^\| quantized \| quantized \| – '
python3 - "$runs" <<'PY'
import csv
import io
import json
import statistics
import subprocess
import sys
from pathlib import Path

runs = Path(sys.argv[1])
folders = sorted(runs.iterdir())


def compare(*options):
    text = subprocess.run(["scripts/compare.py", *folders, "--csv", *options], check=True,
                          text=True, capture_output=True).stdout
    return list(csv.DictReader(io.StringIO(text)))


top1 = {}
for folder, row in zip(folders, compare(), strict=True):
    summary = json.loads((folder / "summary.json").read_text())
    with open(folder / "metrics.csv", newline="") as file:
        known = [float(line["val_top1"]) for line in csv.DictReader(file) if line["val_top1"]]
    top1[row["run"]] = known[-1]
    assert float(row["val_top1"]) == known[-1] and float(row["best_top1"]) == max(known), row
    assert row["state"] == ("stopped" if summary["stopped"] else "finished"), row
    for name in ("train_seconds", "images_per_s", "bytes_sent", "nnz_over_k"):
        assert abs(float(row[name]) / summary[name] - 1) < 1e-8, (name, row)
groups = {row["group"]: row for row in compare("--group-seeds")}
labels = ["dense", "gaussiank, density 0.01", "topk, density 0.001", "topk, density 0.01"]
assert list(groups) == labels, groups
row, seeds = groups["gaussiank, density 0.01"], [top1[f"gaussiank-s{seed}"] for seed in (1, 2, 3)]
assert row["seeds"] == "1,2,3" and row["state"] == "3 finished", row
assert abs(float(row["val_top1"]) - statistics.mean(seeds)) < 1e-8, row
assert abs(float(row["val_top1_sd"]) - statistics.stdev(seeds)) < 1e-8, row
assert groups["dense"]["val_top1_sd"] == "", groups["dense"]
PY

# equal settings and seeds count once: the finished run that was written last
repeats=$work/repeats
mkdir "$repeats"
for run in topk-s1 topk-s2 gaussiank-s1; do cp -r "$runs/$run" "$repeats"; done
cp -r "$runs/topk-s1" "$repeats/topk"
cp -r "$runs/topk-s1" "$repeats/topk-later"
rm "$repeats/topk-later/summary.json"
touch -d '2 hours ago' "$repeats/topk-s1/metrics.csv"
touch -d '1 hour ago' "$repeats/topk/metrics.csv"
scripts/compare.py --group-seeds --csv "$repeats"/* >"$work/with" 2>"$work/said"
[[ $(wc -l <"$work/said") == 2 ]]
for run in topk-s1 topk-later; do
  expect "^compare.py: $run has the settings and the seed of topk, which is counted instead$"
done
rm -r "$repeats"/topk-{s1,later}
scripts/compare.py --group-seeds --csv "$repeats"/* 2>&1 | cmp - "$work/with"

# without a summary the totals come from metrics.csv, the same for a run that was complete
scripts/compare.py --csv "$runs/topk-s3" | cut -d, -f 4- >"$work/with"
mv "$runs/topk-s3/summary.json" "$work"
scripts/compare.py --csv "$runs/topk-s3" | cut -d, -f 4- >"$work/without"
python3 - "$work/with" "$work/without" <<'PY'
import csv
import sys
a, b = (next(csv.DictReader(open(path))) for path in sys.argv[1:])
assert a.keys() == b.keys()
for name in a:
    assert abs(float(a[name]) - float(b[name])) <= 1e-4 * abs(float(a[name])), (name, a, b)
PY

# a run that only another version has settings for
python3 - "$runs/dense/config.json" <<'PY'
import json
import sys
config = json.load(open(sys.argv[1]))
config["set"]["new.setting"] = "auto"
config["run"]["branched_from"] = "runs/first/checkpoints/step-00000010"  # marks a branch
json.dump(config, open(sys.argv[1], "w"))
PY
scripts/compare.py "$runs/dense" "$runs/topk-s1" >"$work/said"
expect '^in some runs only, from another version: new.setting$'

# list: states, conditions, order
list() { scripts/list_runs.py "$@" >"$work/said"; }
mv "$runs/gaussiank-s1" "$work/outside"
mkdir -p "$runs/deep/er" "$runs/empty"
mv "$work/outside" "$runs/deep/er/gaussiank-s1"
echo 'epoch,val_top1' >"$runs/gaussiank-s2/metrics.csv"
flock --no-fork "$runs/topk-s2" sleep 60 &
holder=$!
for _ in {1..100}; do
  flock -n "$runs/topk-s2" true || break
  sleep 0.05
done
list "$runs"
kill "$holder"
wait "$holder" 2>/dev/null || true
[[ $(wc -l <"$work/said") == 9 ]]
expect '^finished +4 .* gaussiank-s1 +.*/deep/er/gaussiank-s1$'
expect '^broken +– .* gaussiank-s2 .*metrics.csv: missing column\(s\) seconds$'
expect '^stopped +2 .* stopped '
expect '^running +4 .* topk-s2 '
expect '^unfinished +4 .* topk-s3 '

names() { tail -n +2 "$work/said" | awk '{ print $5 }' | tr '\n' ' '; }
list "$runs" --where sparsifier=topk --where 'density<0.01'
[[ $(names) == "stopped " ]]
list "$runs" --where 'sparsifier!=topk' --where state=finished --where ranks=2 --where overlap=false
[[ $(names) == "gaussiank-s1 dense gaussiank-s3 " ]]
list "$runs" --where gtopk.rotate=false --where 'batch-size>=32' --where 'epochs_done <= 2'
[[ $(names) == "stopped " ]]
list "$runs" --where 'epochs_done>2' --where sparsifier=topk --sort seed --reverse
[[ $(names) == "topk-s3 topk-s2 topk-s1 " ]]
list "$runs" --where sparsifier=gaussiank --where link= --sort val_top1
[[ $(names) == *" gaussiank-s2 " ]]  # a broken one has no value and is last
list "$runs" --csv --where seed=3
expect '^finished,4,0\.[0-9]*,0\.[0-9]*,gaussiank-s3,.*/gaussiank-s3,3$'
list "$runs/empty"
[[ $(wc -l <"$work/said") == 1 ]]

refuses "$runs is a folder of runs; give $runs/*" scripts/compare.py "$runs"
refuses "no run has the key sparsfier; did you mean sparsifier?" \
  scripts/list_runs.py "$runs" --where sparsfier=topk
refuses "no run has the key val_topp1; did you mean val_top1?" \
  scripts/list_runs.py "$runs" --sort val_topp1
# of many keys, the nearest ones
refuses "no run has the key foo; nearest are " scripts/list_runs.py "$runs" --where foo=1
(($(wc -c <"$work/said") < 150))
refuses "expected KEY and a value" scripts/list_runs.py "$runs" --where topk
refuses "'low' is no number" scripts/list_runs.py "$runs" --where 'density<low'
refuses "none: not a folder" scripts/list_runs.py "$work/none"
sed -i 's/"steps": /"stepps": /' "$runs/stopped/summary.json"
refuses "stopped/summary.json: steps is None; expected a number" scripts/compare.py "$runs/stopped"
echo '{"set": 1}' >"$runs/stopped/config.json"
refuses "stopped/config.json: set is no object" scripts/compare.py "$runs/stopped"
refuses "none: not a folder" scripts/compare.py "$work/none"
here=$PWD
refuses "dense: not a folder; runs/dense is" env -C "$work" "$here/scripts/compare.py" dense
refuses "dense: not a folder; runs/dense is" env -C "$work" "$here/scripts/watch.py" dense
# of a misspelt one, the nearest folder beside it
for command in compare watch report; do
  refuses "$command.py: $runs/dens: not a folder; nearest is $runs/dense" \
    "scripts/$command.py" "$runs/dense" "$runs/dens"
done
refuses "list_runs.py: runz: not a folder; nearest is runs" \
  env -C "$work" "$here/scripts/list_runs.py" runz
refuses "gaussiank-s2/metrics.csv: missing column(s)" scripts/compare.py "$runs/gaussiank-s2"

# files that no run has written leave a run broken, and the others listed
hostile=$work/hostile
for name in digits nesting pipe whole; do cp -r "$runs/topk-s1" "$hostile-$name"; done
mkdir "$hostile"
mv "$hostile"-* "$hostile"
printf '{"epochs": 1%05000d}' 0 >"$hostile/hostile-digits/config.json"
python3 -c 'print("[" * 100000 + "]" * 100000)' >"$hostile/hostile-nesting/config.json"
rm "$hostile/hostile-pipe/metrics.csv"
mkfifo "$hostile/hostile-pipe/metrics.csv"
timeout 20 scripts/list_runs.py "$hostile" >"$work/said"
for name in digits nesting pipe; do expect "^broken .*hostile-$name"; done
expect '^finished .*hostile-whole'
