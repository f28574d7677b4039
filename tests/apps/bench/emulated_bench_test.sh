#!/usr/bin/env bash
# bench on the CUDA emulator (tests/emulator) measures the same cases as on the CPU. It checks its
# results itself.
# shellcheck source=tests/support/programs/emulated.sh
. tests/support/programs/emulated.sh
bench=$emulated/bench

# rows TABLE COLUMN...: values of these columns, sorted
rows() {
  local table=$1
  shift
  awk -F, -v wanted="$*" '
    NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; n = split(wanted, names, " ") }
    { for (i = 1; i <= n; ++i) { if (!(names[i] in at)) exit 1; printf "%s ", $at[names[i]] }
      print "" }' "$work/$table.csv" | sort
}
# measure TABLE FLAG...
measure() {
  local table=$1
  shift
  "$bench" "$@" --csv "$work/$table.csv" >"$work/$table.txt" 2>&1 ||
    { cat "$work/$table.txt"; exit 1; }
}

for device in cpu cuda; do
  measure "select-$device" select --device "$device" --d 20000 --density 0.01 --iterations 2 \
    --distribution laplace
  measure "comm-$device" comm --device "$device" --workers 3 -b 4K -e 4K -n 2
done

# as many entries from the same vector; bandwidth has other rows
diff <(rows select-cpu selector nnz_over_k | grep -v '^triad\|^copy') \
  <(rows select-cuda selector nnz_over_k | grep -v '^triad\|^copy')
[[ $(rows select-cuda selector | wc -l) -gt 10 ]]
diff <(rows comm-cpu collective algorithm bytes wrong) \
  <(rows comm-cuda collective algorithm bytes wrong)
[[ $(rows comm-cuda collective | wc -l) -gt 10 ]]

# each node of the recorded step takes time on a GPU
"$bench" step --device cuda --model resnet20 --batch-size 1 --precision bf16 >"$work/step.txt"
nodes=$(sed -n 's/.*"graph_nodes": *\([0-9]*\).*/\1/p' "$work/step.txt")
((nodes > 0 && nodes <= 150)) || { cat "$work/step.txt"; exit 1; }
