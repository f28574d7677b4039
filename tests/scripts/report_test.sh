#!/usr/bin/env bash
# report.py: the page of eight runs has the numbers of their tables, loads nothing, is small and
# fast to write; a missing or broken file is one line and leaves no page.
set -euo pipefail
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
runs=$work/runs page=$work/report.html
python3 tests/scripts/runs/make_runs.py "$runs" 8000

# under 2 s of a processor and under 2 MB
python3 - "$page" "$runs"/* <<'PY'
import resource
import subprocess
import sys
subprocess.run(["scripts/report.py", *sys.argv[2:], "-o", sys.argv[1]], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds = used.ru_utime + used.ru_stime
print(f"{seconds:.2f} s of a processor")
sys.exit(seconds > 2)
PY
(($(stat -c %s "$page") < 2000000)) || { echo "the page is too large"; exit 1; }
python3 tests/scripts/runs/page_data.py "$page" "$runs"/*

# loads nothing
if grep -nEi "https?://|src=|<link|@import|url\((['\"]?)[^#]" "$page"; then
  echo "the page loads something"
  exit 1
fi
grep -q "default-src 'none'" "$page"

# in print, a section that is longer than the rest of a page begins there
python3 - "$page" <<'PY'
import re
import sys
style = re.search(r"@media print \{(.*?)\n\}", open(sys.argv[1]).read(), re.S)[1]
whole = [rule for rule in style.split("}") if "break-inside: avoid" in rule]
assert any("figure" in rule for rule in whole), whole
assert not [rule for rule in whole if re.search(r"\b(section|main|details)\b", rule)], whole
PY

grep -q 'all phases is “other”' "$page"
# its headline is short, whatever is compared
grep -q '<h1>8 runs</h1>' "$page"

# its table is that of compare.py, and runs that are not finished are named
python3 - "$page" "$runs"/* <<'PY'
import json
import re
import subprocess
import sys
data = json.loads(re.search(r'id="data">(.*?)</script>', open(sys.argv[1]).read(), re.S).group(1))


def compare(*options):
    return subprocess.run(["scripts/compare.py", *sys.argv[2:], *options], check=True, text=True,
                          capture_output=True).stdout


assert data["tables"]["runs"]["csv"] == compare("--csv")
assert data["tables"]["groups"]["csv"] == compare("--csv", "--group-seeds")
assert data["notes"] == ["stopped: stopped by a signal after 2 of 4 epochs."], data["notes"]
assert ["model", "mlp"] in data["tables"]["common"]["rows"]
assert not {"seed", "density"} & {row[0] for row in data["tables"]["common"]["rows"]}
labels = [group["label"] for group in data["groups"]]
known = ["dense", "gaussiank, density 0.01", "topk, density 0.001", "topk, density 0.01"]
assert labels == known, labels
bars = data["runs"][1]["distribution"]["histograms"]["2"]
assert bars["mean"] == [10 / 16, 4 / 16], bars  # of 16 entries; the bin at 0 is left out
assert [panel["ranks"] for panel in data["advice"][0]["ranks"]] == [4, 8]
curves = {curve["label"]: curve["rows"] for curve in data["advice"][0]["ranks"][0]["curves"]}
# dense: the faster of two collectives; topk: 1 + 1 / Gbit/s / ranks
assert [row[1] for row in curves["dense"]] == [1, 1, 1], curves
assert [round(row[1], 6) for row in curves["topk"]] == [3.5, 1.25, 1.025], curves
PY

# equal settings and seeds are drawn once
cp -r "$runs/topk-s1" "$work/topk"
touch -d '1 hour ago' "$runs/topk-s1/metrics.csv"
scripts/report.py "$runs/topk-s1" "$work/topk" "$runs/topk-s2" -o "$page" >/dev/null
python3 - "$page" <<'PY'
import json
import re
import sys
data = json.loads(re.search(r'id="data">(.*?)</script>', open(sys.argv[1]).read(), re.S).group(1))
assert [group["runs"] for group in data["groups"]] == [[1, 2]], data["groups"]
assert data["notes"] == ["topk-s1 has the settings and the seed of topk, which is counted instead."]
assert [run["name"] for run in data["runs"]] == ["topk-s1", "topk", "topk-s2"]
PY

# a title may contain markup
scripts/report.py "$runs/dense" -o "$page" --title '</script><b>@data@' >/dev/null
grep -q '<title>&lt;/script&gt;&lt;b&gt;@data@</title>' "$page"

# a run that `eval` has read shows what it confuses; a finished run of nine classes shows no top-5
one=$work/nine
mkdir "$one"
cp -r "$runs/dense" "$one/dense"
python3 - "$one/dense" <<'PY'
import json
import pathlib
import sys
summary = pathlib.Path(sys.argv[1]) / "summary.json"
summary.write_text(json.dumps(json.loads(summary.read_text()) | {"classes": list("abcdefghi")}))
PY
mkdir "$one/dense/eval"
printf '%s\n' label,a,b a,3,1 b,0,0 >"$one/dense/eval/confusion.csv"
echo '{"data": "photos/val"}' >"$one/dense/eval/summary.json"
scripts/report.py "$one/dense" -o "$page" >"$work/said"
python3 - "$page" <<'PY'
import json
import re
import sys
data = json.loads(re.search(r'id="data">(.*?)</script>', open(sys.argv[1]).read(), re.S).group(1))
(run,) = data["runs"]
assert run["confusion"]["rows"] == [["a", "3", "1"], ["b", "0", "0"]], run["confusion"]
assert run["confusion"]["shares"] == [[0.75, 0.25], [0, 0]]
assert run["confusion"]["images"] == "photos/val"
assert run["curves"]["val_top5"]["key"] == [] != run["curves"]["val_top1"]["key"]
assert "val_top5" not in data["tables"]["runs"]["names"], data["tables"]["runs"]["names"]
PY

# the old page stays, and nothing else
report() { scripts/report.py -o "$page" "$@"; }
echo old >"$page"
cut -d, -f1-6 "$runs/gaussiank-s1/advice.csv" >"$work/narrow.csv"
refuses "narrow.csv: missing column(s) speedup" report "$runs/dense" --advice "$work/narrow.csv"
refuses "none.csv: No such file" report "$runs/dense" --advice "$work/none.csv"
refuses "none: not a folder" report "$work/none"
rm "$runs/dense/steps.csv"
refuses "dense/steps.csv: No such file" report "$runs/topk-s1" "$runs/dense"
sed -i 's/^3,.*/3,1,2/' "$runs/topk-s1/steps.csv"
refuses "topk-s1/steps.csv: line 4 has 3 cells; expected 17" report "$runs/topk-s1"
sed -i '3s/,0\.[0-9]*,0\.7/,abc,0.7/' "$runs/topk-s2/metrics.csv"
refuses "topk-s2/metrics.csv: val_top1 is 'abc' in epoch 2" report "$runs/topk-s2"
echo '{' >"$runs/topk-s3/config.json"
refuses "topk-s3/config.json: not JSON" report "$runs/topk-s3"
[[ $(cat "$page") == old && -z $(find "$work" -name '*.tmp') ]]
rm "$page"
code=0
scripts/report.py "$runs/gaussiank-s2" -o "$work/none/page.html" >"$work/said" 2>&1 || code=$?
[[ $code == 2 && $(cat "$work/said") == "report.py: $work/none/page.html: No such file"* ]]

# a run whose first epoch is not complete is drawn
sed -i 1q "$runs/gaussiank-s3/metrics.csv"
rm "$runs/gaussiank-s3/summary.json"
scripts/report.py "$runs/gaussiank-s3" -o "$page" >/dev/null
grep -q 'gaussiank-s3: ended without a summary after 0 of 4 epochs.' "$page"

# a run of today's train
train=${TW_BUILD:-build}/bin/train
[[ -x $train ]] || exit 0
"$train" --model mlp --dataset shapes --workers 2 --max-steps 30 --analyze-every 10 \
  --output-dir "$work" --name real >/dev/null
scripts/report.py "$work/real" -o "$page" >/dev/null
python3 tests/scripts/runs/page_data.py "$page" "$work/real"
for table in steps metrics distributions histograms; do
  head -n 1 "$work/real/$table.csv" >"$work/real_head"
  head -n 1 "$runs/gaussiank-s1/$table.csv" | diff - "$work/real_head"
done
