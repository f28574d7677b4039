#!/usr/bin/env bash
# The C++ examples of docs/algorithms.md and docs/examples.md, linked into train and advise as
# files that a user adds: --list names them, a run takes each by its name, and advise prices them.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
train=$TW_BUILD/bin/train_with_examples

"$train" --list >"$work/list"
for name in "sparsifier threshold" "sparsifier layerwise_topk" "sparsifier ternary" \
  "selector threshold" "exchange ternary" "model tiny" "dataset noise"; do
  awk -v kind="${name% *}" -v entry="${name#* }" '
    /^[^ ]/ { here = $0 == kind }
    here && /^  [^ ]/ && $1 == entry { found = 1 }
    END { exit !found }' "$work/list" || { echo "--list lacks: $name"; cat "$work/list"; exit 1; }
done

# hash FLAG...: trains three steps of two ranks and prints the hash of the weights
hash() {
  "$train" --model tiny --dataset noise --workers 2 --batch-size 16 --epochs 1 --max-steps 3 \
    --density 0.05 --density-warmup none --output-dir "$work" --name run "$@" \
    >"$work/said" 2>&1 </dev/null || { cat "$work/said" >&2; return 1; }
  grep -o '"weights_hash": "[0-9a-f]*"' "$work/run/summary.json"
  rm -r "$work/run"
}

same() { [[ $1 == "$2" ]] || { echo "$3: other weights: $1 and $2"; exit 1; }; }
topk=$(hash --sparsifier topk)
dense=$(hash --sparsifier dense)
[[ $topk != "$dense" ]] || { echo "topk sends everything"; exit 1; }
ternary=$(hash --sparsifier ternary)
[[ $ternary != "$topk" ]] || { echo "ternary sends the values"; exit 1; }
same "$(hash --sparsifier topk --exchange ternary)" "$ternary" "--exchange ternary"
same "$(hash --sparsifier ternary --density 1)" "$dense" "ternary at density 1"
if hash --sparsifier ternary --set wire.values=bf16 2>/dev/null; then
  echo "ternary reads wire.values" && exit 1
fi
grep -q '\[options\] set wire.values has no effect' "$work/said" || { cat "$work/said"; exit 1; }
same "$(hash --sparsifier layerwise_topk)" "$(hash --sparsifier topk --scope layer)" layerwise_topk
same "$(hash --sparsifier threshold --set threshold.above=0)" "$dense" "threshold of 0"
[[ $(hash --sparsifier threshold --set threshold.above=0.01) != "$dense" ]] ||
  { echo "threshold.above has no effect"; exit 1; }
same "$(hash --sparsifier dense --allreduce star)" "$dense" star

# 2 alpha + 3 k (beta + merge) for P = 4 and k = 1000; topk sends twice the bytes
"$TW_BUILD/bin/advise_with_examples" --simulate --alpha 1e-3 --beta 1e-6 --compute 0.1 \
  --select 0.001 --parameters 1000000 --density 0.001 --ranks 4 --csv "$work/advice.csv" >/dev/null
for row in ternary,0.005 topk,0.008; do
  awk -F, -v name="${row%,*}" -v seconds="${row#*,}" '
    NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i }
    $1 == name && $column["at_link"] == 1 { found = $column["exchange_seconds"] == seconds }
    END { exit !found }' "$work/advice.csv" ||
    { echo "advise: $row"; cat "$work/advice.csv"; exit 1; }
done
