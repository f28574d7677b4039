#!/usr/bin/env bash
# gpu_limits.py: a figure that is missing or misses its limit fails, and no other.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# judge PART: exit code
judge() {
  python3 scripts/dev/gpu_limits.py "$work" "$1" >"$work/said" 2>&1 && echo 0 || echo $?
}
expect() {
  [[ $1 == "$2" ]] || { echo "$3: exit code $1, not $2"; cat "$work/said"; exit 1; }
}

expect "$(judge workers)" 1 "no table"
grep -q "dense.*missing.*no" "$work/said"

# steps DENSE: what a step of one rank takes, 0.010 s, and of sixteen
steps() {
  echo model,sparsifier,seconds_per_step >"$work/workers.csv"
  for model in resnet20 vgg16; do
    printf "$model,%s\n" alone,0.010 "dense,$1" {topk,gaussiank,gtopk,dgc,randk},0.020 \
      >>"$work/workers.csv"
  done
}
steps 0.0249
expect "$(judge workers)" 0 "all within 2.5 epochs"
steps 0.0251
expect "$(judge workers)" 1 "dense takes 2.51 epochs"
[[ $(grep -c ',no$' "$work/limits.csv") == 2 ]] || { echo "two limits are missed"; exit 1; }
sed -i '/vgg16,alone/d' "$work/workers.csv"
expect "$(judge workers)" 1 "nothing to compare VGG-16 with"
grep -q "vgg16.*missing.*no" "$work/said"

selections() {
  printf '%s\n' device,distribution,d,density,selector,seconds,best_seconds,gb_s,of_add,nnz_over_k \
    "cuda,gaussian,25557032,0.001,gaussiank,0.000150,0.0001,1,1.5,1" \
    "cuda,t3,25557032,0.001,gaussiank,$1,0.0001,1,1.9,1" \
    "cuda,gaussian,25557032,0.001,topk,0.000290,0.0001,1,$2,1" >"$work/select-25557032.csv"
}
selections 0.000199 2.99
expect "$(judge select)" 0 "all within their limits"
selections 0.000201 2.99
expect "$(judge select)" 1 "the slowest distribution counts"
selections 0.000199 3.01
expect "$(judge select)" 1 "too many passes"

# bench SPEED SYNCS: ours in bf16; PyTorch's modes at 90 and 100
bench() {
  for setup in resnet20-128 vgg16-128 resnet20-32 resnet50-256; do
    printf '[{"mode": "thinwire bf16", "results": [{"images_per_s": %s,
      "graph_launches_per_step": 1, "host_syncs_per_step": %s}]},
      {"mode": "torch tf32", "results": [{"images_per_s": 90}]},
      {"mode": "torch bf16 compiled", "results": [{"images_per_s": 100}]}]' "$1" "$2" \
      >"$work/bench-$setup.json"
  done
}
bench 4000 0.08
expect "$(judge bench)" 0 "fast enough"
bench 150 0.08
expect "$(judge bench)" 1 "not twice as fast at batch 32"
bench 4000 1
expect "$(judge bench)" 1 "the host waits in each step"
