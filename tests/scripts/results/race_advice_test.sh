#!/usr/bin/env bash
# race.py show: what advise is asked, which answers are kept, and why the method that it names is
# not the winner.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runs=$work/runs kept=$work/runs/lenet/none/advise.json
mkdir "$work/bin"

# an advise that writes the predictions in predictions-H, behind the answer in answer-H
cat >"$work/bin/advise" <<SH
#!/usr/bin/env bash
echo "\$*" >>"$work/asked"
while (( \$# )); do
  case \$1 in --local-steps) steps=\$2 ;; --csv) table=\$2 ;; esac
  shift
done
{
  echo recommended,busy,sparsifier,collective,local_steps,ranks,at_link,iteration_seconds,\
speedup,top1_points
  sed "s/^/\$(cat "$work/answer-\$steps"),/" "$work/predictions-\$steps"
} >"\$table"
SH
chmod +x "$work/bin/advise"

# race METHOD...: as race_runs.py; the runs replace those before
race() {
  rm -rf "$runs"
  PYTHONDONTWRITEBYTECODE=1 python3 tests/scripts/results/race_runs.py "$runs" "$@"
}

# shows TEXT: the tables, without back quotes, hold the text
shows() {
  : >"$work/asked"
  scripts/results/race.py show --output-dir "$runs" --bin "$work/bin" | tr -d '\`' >"$work/said"
  grep -qF -- "$1" "$work/said" || { echo "lacks: $1"; cat "$work/said"; exit 1; }
}

# asked N: advise was called so many times
asked() {
  [[ $(wc -l <"$work/asked") == "$1" ]] || { echo "asked:" && cat "$work/asked" && exit 1; }
}

echo "--sparsifier topk,0" >"$work/answer-1"
echo "--sparsifier dense --allreduce ring,0" >"$work/answer-16"
cat >"$work/predictions-1" <<'TEXT'
dense,ring,1,4,1,0.1,1,
topk,,1,4,1,0.05,2,-1
gtopk,,1,4,1,0.04,2.5,-6.2
redsync,,1,4,1,0.06,1.7,-1
TEXT
cat >"$work/predictions-16" <<'TEXT'
dense,ring,1,4,1,0.1,1,
dense,ring,16,4,1,0.2,0.5,
TEXT
dense="dense 100 0.1 fast" topk="topk 60 0.1 fast" gtopk="gtopk 40 0.1 fast"
local16="local16 30 0.1 fast 10 dense --local-steps 16"

# one question for each number of local steps, as the rows were trained; answers are kept
race "$dense" "$topk" "$gtopk"
shows "its table has gtopk 6.2 points below dense, more than --max-loss 2."
shows "advise names --sparsifier topk (topk): 60 s, 50.0 % slower than gtopk. Why: its"
asked 0
PYTHONDONTWRITEBYTECODE=1 python3 tests/scripts/results/race_runs.py "$runs" "$local16"
shows "Why: its table has no accuracy of local16."
asked 1
for words in "--local-steps 16" "--precision f32" "--batch-size 32" "--workers 4" "--max-loss 2"; do
  grep -qF -- "$words" "$work/asked" || { echo "not asked with $words"; cat "$work/asked"; exit 1; }
done
scripts/results/race.py keep --output-dir "$runs" --to "$work/kept" >/dev/null
scripts/results/race.py show --output-dir "$work/kept" --bin "$work/none" |
  tr -d '\`' >"$work/again"
diff -I '^tables and figures: ' "$work/said" "$work/again"

# the answer with the largest gain counts, its method may have local steps
rm "$kept"
sed -i '2s/.*/dense,ring,16,4,1,0.03,3,-1/' "$work/predictions-16"
echo "--sparsifier dense --allreduce ring --local-steps 16,0" >"$work/answer-16"
shows "--sparsifier dense --allreduce ring --local-steps 16, the winner."
asked 2

# other reasons
race "$dense" "$topk" "redsync 40 0.1 fast"
# seconds until the accuracy, not of epochs that follow
sed -i 's/"train_seconds": 60/"train_seconds": 600/' "$runs/lenet/none/topk-s1/records.json"
shows "predicts 0.05 s, measured are 0.06 s; for one of redsync 0.06 s, measured are 0.04 s."
grep -qF 'Why: the prediction of seconds is wrong' "$work/said"
race "$dense" "$topk" "redsync 30 0.1 fast 5"
shows "Why: redsync needs 5 epochs and topk 10, which it does not predict."
race "$dense" "$topk" "topk-hot 30 0.1 fast 10 topk --lr 0.2"
shows "Why: advise does not consider --lr 0.2."
race "$dense" "$gtopk"
shows "--sparsifier topk, which did not race. Why: its table has gtopk 6.2 points"
race "$dense" "$topk" "redsync 57 0.1 fast"
shows "5.3 % slower than redsync."
if grep -q "Why" "$work/said"; then echo "a reason within 10 %" && exit 1; fi

# an answer from a busy machine is used once
race "$dense" "$topk"
echo "--sparsifier topk,1" >"$work/answer-1"
shows "--sparsifier topk, the winner. It measured another machine than the runs:"
grep -qF 'It measured a busy machine, so its answer is not kept.' "$work/said"
[[ ! -e $kept ]]
shows "--sparsifier topk, the winner"
asked 1
