#!/usr/bin/env bash
# The C++ examples of docs/algorithms.md and docs/contributing.md, linked into train as files that a
# user adds: --list names them, and a run takes each by its name.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
train=$TW_BUILD/bin/train_with_examples

"$train" --list >"$work/list"
for name in "sparsifier threshold" "sparsifier layerwise_topk" "sparsifier densify" \
  "selector threshold" "exchange densify" "model tiny" "dataset noise"; do
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
same "$(hash --sparsifier densify)" "$topk" densify
same "$(hash --sparsifier topk --exchange densify)" "$topk" "--exchange densify"
same "$(hash --sparsifier layerwise_topk)" "$(hash --sparsifier topk --scope layer)" layerwise_topk
same "$(hash --sparsifier threshold --set threshold.above=0)" "$dense" "threshold of 0"
[[ $(hash --sparsifier threshold --set threshold.above=0.01) != "$dense" ]] ||
  { echo "threshold.above has no effect"; exit 1; }
same "$(hash --sparsifier dense --allreduce star)" "$dense" star
