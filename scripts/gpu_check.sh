#!/usr/bin/env bash
# gpu_check.sh [--bundle FOLDER|ARCHIVE] [--output FOLDER] [--minutes N] [--python PYTHON]
#              [--only PART,...] [--data FOLDER]
# Everything a GPU is needed for, in one call and within N minutes (default 9): builds (or unpacks
# what scripts/bundle.sh made), tests, sanitizes, and measures beside PyTorch. Uses no network.
# PARTs: tests, sanitize, train, workers, comm, select, bench (default: these); results, links: what
# docs/results.md shows of a GPU, with the data sets of FOLDER, for which many calls with the same
# report go on one after the other. The report (default: gpu-report) holds texts and tables of each;
# exit 1 when a test, the sanitizer or a limit failed.
here=$PWD  # what --bundle, --output and --data are relative to
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

bundle='' output='' minutes=9 python=python3 data=''
only=tests,sanitize,train,workers,comm,select,bench
while (($#)); do
  (($# > 1)) || die "$1 wants a value, or is unknown"
  case $1 in
    --bundle) bundle=$(cd "$here" && realpath "$2") || die "no bundle $2" ;;
    --output) output=$(cd "$here" && realpath -m "$2") ;;
    --minutes) minutes=$2 ;;
    --python) python=$2 ;;
    --only) only=$2 ;;
    --data) data=$(cd "$here" && realpath "$2") || die "no folder $2" ;;
    *) die "unknown option $1" ;;
  esac
  shift 2
done
known=tests,sanitize,train,workers,comm,select,bench,results,links
for part in ${only//,/ }; do
  [[ ,$known, == *,$part,* ]] || die "there is no part $part; there are $known"
done
deadline=$((SECONDS + minutes * 60))
left() { echo $((deadline > SECONDS + 1 ? deadline - SECONDS : 1)); }
wanted() { [[ ,$only, == *,$1,* ]]; }
output=${output:-$PWD/gpu-report}
mkdir -p "$output"
failed=0

if [[ -f $bundle ]]; then
  unpacked=$(mktemp -d)
  trap 'rm -rf "$unpacked"' EXIT
  tar -C "$unpacked" -xf "$bundle"
  bundle=$(echo "$unpacked"/*)
fi
if [[ -n $bundle ]]; then
  # shellcheck source=/dev/null
  PYTHON=$python . "$bundle/env.sh"
  bin=$bundle/bin
else
  say "build"
  cmake -G Ninja -S . -B build-gpu -DCMAKE_BUILD_TYPE=Release -DWITH_CUDA=ON -DWITH_EMULATOR=OFF \
    >"$output/build.txt" 2>&1 || die "configuring failed: $output/build.txt"
  cmake --build build-gpu >>"$output/build.txt" 2>&1 || die "building failed: $output/build.txt"
  bin=$PWD/build-gpu/bin
fi

{
  nvidia-smi 2>&1 || true
  nvcc --version 2>&1 | tail -n 2 || true
  "$python" -c 'import torch; print("PyTorch", torch.__version__, torch.version.cuda)' 2>&1 || true
} >"$output/machine.txt"

# run_tests NAME COMMAND...: one row a test executable
run_tests() {
  local name=$1 log code=0 start=$SECONDS
  shift
  log=$output/tests-$name.txt
  timeout "$(left)" "$@" >"$log" 2>&1 || code=$?
  local passed bad skipped
  passed=$(grep -c '^\[       OK' "$log" || true)
  bad=$(grep -c '^\[  FAILED  \] .*)$' "$log" || true)
  skipped=$(grep -c '^\[  SKIPPED \] .*)$' "$log" || true)
  echo "$name,$passed,$bad,$skipped,$code,$((SECONDS - start))" >>"$output/tests.csv"
  # without a GPU they skip all of themselves
  ((code == 0 && passed > 0)) || failed=1
}

if wanted tests; then
  say "tests"
  echo "suite,passed,failed,skipped,exit_code,seconds" >"$output/tests.csv"
  for test in "$bin"/test_*_cuda; do run_tests "$(basename "$test")" "$test"; done
  column -s, -t "$output/tests.csv" 2>/dev/null || cat "$output/tests.csv"
fi

# the suites of ops, selection and messages, without what only takes long: every algorithm takes a
# step, on two ranks, in SyncSgdOnGpu.ReportsANaN
if wanted sanitize; then
  say "sanitize"
  echo "suite,tool,errors,exit_code,seconds" >"$output/sanitize.csv"
  for suite in engine sparsify comm; do
    for tool in memcheck racecheck; do
      code=0 start=$SECONDS log=$output/sanitize-$suite-$tool.txt
      timeout $(($(left) / 5 + 1)) compute-sanitizer --tool "$tool" --error-exitcode 9 \
        "$bin/test_${suite}_cuda" \
        --gtest_filter='-*AgreesWithTheSumInDouble*:*SumsAndKeepsWhatTheCpuDoes*' \
        >"$log" 2>&1 || code=$?
      errors=$(grep -oE 'SUMMARY: [0-9]+ (error|hazard)' "$log" | grep -oE '[0-9]+' || echo -)
      echo "$suite,$tool,$errors,$code,$((SECONDS - start))" >>"$output/sanitize.csv"
      ((code == 0)) || failed=1
    done
  done
  cat "$output/sanitize.csv"
fi

# first losses of CPU and GPU beside each other; two GPU runs must repeat their bits
if wanted train; then
  say "train"
  runs=$(mktemp -d)
  # at a rate of 0.02 the losses of two CPUs with other vector widths are 1.5% apart after 20 steps,
  # at 0.001 less than 0.02%
  first_losses() {
    local name=$1
    shift
    timeout "$(left)" "$bin/train" --model resnet20 --dataset shapes --max-steps 20 \
      --batch-size 64 --lr 0.001 --output-dir "$runs" --name "$name" "$@" \
      >"$output/train-$name.txt" 2>&1 || failed=1
    cut -d, -f1,5 "$runs/$name/steps.csv" >"$output/losses-$name.csv" || true
  }
  first_losses cpu-f32 --device cpu --precision f32
  first_losses gpu-f32 --device cuda --precision f32
  first_losses gpu-bf16 --device cuda --precision bf16
  first_losses gpu-a --device cuda --precision bf16 --deterministic
  first_losses gpu-b --device cuda --precision bf16 --deterministic
  weights() { grep -o '"weights_hash": "[^"]*"' "$runs/$1/summary.json"; }
  [[ -n $(weights gpu-a) && $(weights gpu-a) == "$(weights gpu-b)" ]] || failed=1
  paste -d, "$output"/losses-{cpu-f32,gpu-f32,gpu-bf16}.csv | tee "$output/losses.csv" | tail -n 3
  # f32 within 1e-3 of the CPU's, bf16 within 5e-2, relative, in each of the steps
  awk -F, 'function off(a, b) { return (a > b ? a - b : b - a) / b }
    NR > 1 && (off($4, $2) > 1e-3 || off($6, $2) > 5e-2) { print "losses differ: " $0; bad = 1 }
    END { exit bad || NR < 21 }' "$output/losses.csv" || failed=1
  # of the first step CPU and GPU send the same entries
  for sparsifier in topk gaussiank; do
    for device in cpu cuda; do
      timeout "$(left)" "$bin/train" --model resnet20 --dataset shapes --batch-size 32 --workers 4 \
        --precision f32 --sparsifier "$sparsifier" --max-steps 1 --eval-every 0 \
        --device "$device" --output-dir "$runs" --name "first-$sparsifier-$device" \
        >"$output/train-first-$sparsifier-$device.txt" 2>&1 || failed=1
    done
    "$python" scripts/compare_selections.py \
      "$runs/first-$sparsifier-"{cpu,cuda}/checkpoints/step-00000001 2>&1 |
      sed "s/^/$sparsifier, first step: /" | tee -a "$output/selections.txt" || failed=1
  done

  # stopped by a signal and resumed: the bits of a run that was not
  long=("$bin/train" --model resnet20 --dataset shapes --max-steps 20000 --epochs 1000
    --eval-every 0 --batch-size 64 --device cuda --precision bf16 --deterministic
    --output-dir "$runs" --resume auto)
  timeout "$(left)" "${long[@]}" --name whole >"$output/train-whole.txt" 2>&1 || failed=1
  # in the foreground it passes a signal on once
  timeout --foreground "$(left)" "${long[@]}" --name cut >"$output/train-cut.txt" 2>&1 &
  until [[ $(wc -l 2>/dev/null <"$runs/cut/steps.csv") -gt 1 ]] || ((SECONDS > deadline)); do
    sleep 0.2
  done
  kill -TERM $! || true
  wait || true
  grep -qs '"stopped": true' "$runs/cut/summary.json" || failed=1
  timeout "$(left)" "${long[@]}" --name cut >>"$output/train-cut.txt" 2>&1 || failed=1
  [[ -n $(weights whole) && $(weights whole) == "$(weights cut)" ]] || failed=1
  echo "whole $(weights whole), resumed $(weights cut)" | tee "$output/resumed.txt"

  # more than any card has: 50,000 images at a time, all black; one line tells plan and card
  # (deterministic: no races between convolutions of that size)
  mkdir -p "$runs/black/cifar-10-batches-bin"
  for file in data_batch_{1..5} test_batch; do
    head -c 30730000 /dev/zero >"$runs/black/cifar-10-batches-bin/$file.bin"
  done
  code=0
  timeout "$(left)" "$bin/train" --model resnet110 --data-dir "$runs/black" --batch-size 50000 \
    --device cuda --precision f32 --deterministic --output-dir "$runs" --name large \
    >"$output/memory.txt" 2>"$output/memory-error.txt" || code=$?
  said=$(cat "$output/memory-error.txt")
  echo "$said"
  [[ $code == 1 && $said != *$'\n'* && $said =~ "planned for each of 1 ranks; ".*" free" ]] ||
    failed=1
  rm -rf "$runs"
fi

# sixteen ranks on one card; beside dense ones a single rank with the same images a step
if wanted workers; then
  say "workers"
  runs=$(mktemp -d)
  echo "sparsifier,images_per_s,weights" >"$output/workers.csv"
  for sparsifier in alone dense topk gaussiank gtopk dgc randk; do
    ranks=(--workers 16 --batch-size 32 --sparsifier "$sparsifier")
    [[ $sparsifier != alone ]] || ranks=(--workers 1 --batch-size 512 --sparsifier dense)
    timeout "$(left)" "$bin/train" --model resnet20 --dataset shapes --device cuda "${ranks[@]}" \
      --max-steps 40 --eval-every 0 \
      --output-dir "$runs" --name "$sparsifier" >"$output/workers-$sparsifier.txt" 2>&1 || failed=1
    sed -n 's/.*"\(images_per_s\|weights_hash\)": "\{0,1\}\([^",]*\).*/\2/p' \
      "$runs/$sparsifier/summary.json" 2>/dev/null | paste -sd, |
      sed "s/^/$sparsifier,/" >>"$output/workers.csv" || true  # what failed is known
  done
  cat "$output/workers.csv"
  rm -rf "$runs"
fi

if wanted comm; then
  say "comm"
  for ranks in 4 16; do
    timeout "$(left)" "$bin/bench" comm --device cuda --workers "$ranks" -b 64K -e 128M -f 16 \
      --csv "$output/comm-$ranks.csv" 2>&1 | tee -a "$output/comm.txt" || failed=1
  done
fi

if wanted select; then
  say "select"
  for d in 269722 14728266 25557032 138357544; do
    timeout "$(left)" "$bin/bench" select --device cuda --d "$d" \
      --csv "$output/select-$d.csv" 2>&1 | tee -a "$output/select.txt" || failed=1
  done
  timeout "$(left)" "$python" scripts/bench_select_vs_torch.py --device cuda --repeat 50 \
    --bench "$bin/bench" 2>&1 | tee -a "$output/select.txt" || true
fi

if wanted bench; then
  say "bench"
  for setup in "resnet20 128" "vgg16 128" "resnet20 32" \
    "resnet50 256 --image-size 224 --classes 1000 --precisions bf16"; do
    read -r model batch more <<<"$setup"
    # shellcheck disable=SC2086  # several words
    timeout "$(left)" "$python" scripts/bench_vs_pytorch.py --device cuda --bench "$bin/bench" \
      --python "$python" --models "$model" --batch-size "$batch" --steps 256 $more \
      --output "$output/bench-$model-$batch.json" --csv "$output/bench.csv" 2>&1 |
      tee -a "$output/bench.txt" || true
  done
fi

if wanted workers || wanted select || wanted bench; then
  say "limits"
  "$python" scripts/gpu_limits.py "$output" "$only" || failed=1
fi

if wanted results; then
  say "results"
  timeout "$(left)" scripts/results_gpu.sh "${data:?results wants --data}" "$output/results" \
    "$bin" 2>&1 | tee -a "$output/results.txt" || failed=1
fi

if wanted links; then
  say "links"
  timeout "$(left)" "$python" scripts/results_links.py -b "$bin" card 2>&1 |
    tee "$output/links.txt" || failed=1
fi
say "report in $output"
exit "$failed"
