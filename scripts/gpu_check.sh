#!/usr/bin/env bash
# gpu_check.sh [--bundle FOLDER|ARCHIVE] [--output FOLDER] [--minutes N] [--python PYTHON]
#              [--only PART,...] [--data FOLDER]
# Runs all checks that need a GPU, within N minutes (default 9). Builds the programs, or unpacks a
# bundle of scripts/bundle.sh. Uses no network.
# PARTs: tests, train, workers, select, comm, bench, sanitize (default: these, in this order). Each
# command of a part gets a share of the remaining time.
# Additional PARTs: results (scripts/results/gpu.sh with the data sets in FOLDER) and links
# (links.py card). They take several calls; a call with the same --output continues them.
# Writes the output and tables of each part to the folder gpu-report (or --output), and the same as
# one archive beside it. Exit code 1 when a test, the sanitizer or a limit failed.
here=$PWD  # --bundle, --output and --data are relative to it
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

bundle='' output='' minutes=9 python=python3 data=''
only=tests,train,workers,select,comm,bench,sanitize
known=$only,results,links
while (($#)); do
  (($# > 1)) || die "$1 is unknown, or its value is missing"
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
for part in ${only//,/ }; do
  [[ ,$known, == *,$part,* ]] || die "unknown part $part; the parts are $known"
done
deadline=$((SECONDS + minutes * 60))
left() { echo $((deadline > SECONDS + 1 ? deadline - SECONDS : 1)); }
# within PERCENT COMMAND...: runs the command and kills it after this share of the remaining time
within() {
  local percent=$1
  shift
  timeout -k 10 $(($(left) * percent / 100 + 1)) "$@"
}
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

# run_tests NAME COMMAND...: runs a test program and adds a row to tests.csv
run_tests() {
  local name=$1 log code=0 start=$SECONDS
  shift
  log=$output/tests-$name.txt
  within 40 "$@" >"$log" 2>&1 || code=$?
  local passed bad skipped
  passed=$(grep -c '^\[       OK' "$log" || true)
  bad=$(grep -c '^\[  FAILED  \] .*)$' "$log" || true)
  skipped=$(grep -c '^\[  SKIPPED \] .*)$' "$log" || true)
  echo "$name,$passed,$bad,$skipped,$code,$((SECONDS - start))" >>"$output/tests.csv"
  # without a GPU all tests are skipped, which counts as a failure
  ((code == 0 && passed > 0)) || failed=1
}

if wanted tests; then
  say "tests"
  echo "suite,passed,failed,skipped,exit_code,seconds" >"$output/tests.csv"
  for test in "$bin"/test_*_cuda; do run_tests "$(basename "$test")" "$test"; done
  if command -v mpirun >/dev/null && [[ -x $bin/test_mpi ]]; then
    run_tests test_mpi mpirun -n 2 "$bin/test_mpi" --gtest_filter='DeviceMemory*'
  fi
  column -s, -t "$output/tests.csv" 2>/dev/null || cat "$output/tests.csv"
fi

# compares the first losses of CPU and GPU; two deterministic GPU runs must give the same bits
if wanted train; then
  say "train"
  runs=$(mktemp -d)
  # learning rate 0.001: the losses of two CPUs with different vector widths differ by less than
  # 0.02 % after 20 steps; at 0.02 they differ by 1.5 %
  first_losses() {
    local name=$1
    shift
    within 60 "$bin/train" --model resnet20 --dataset shapes --max-steps 20 \
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
  # relative difference to the CPU in each step: at most 1e-3 in f32, 5e-2 in bf16
  awk -F, 'function off(a, b) { return (a > b ? a - b : b - a) / b }
    NR > 1 && (off($4, $2) > 1e-3 || off($6, $2) > 5e-2) { print "losses differ: " $0; bad = 1 }
    END { exit bad || NR < 21 }' "$output/losses.csv" || failed=1
  # in the first step, CPU and GPU send the same entries
  for sparsifier in topk gaussiank; do
    for device in cpu cuda; do
      within 60 "$bin/train" --model resnet20 --dataset shapes --batch-size 32 --workers 4 \
        --precision f32 --sparsifier "$sparsifier" --max-steps 1 --eval-every 0 \
        --device "$device" --output-dir "$runs" --name "first-$sparsifier-$device" \
        >"$output/train-first-$sparsifier-$device.txt" 2>&1 || failed=1
    done
    "$python" scripts/dev/compare_selections.py \
      "$runs/first-$sparsifier-"{cpu,cuda}/checkpoints/step-00000001 2>&1 |
      sed "s/^/$sparsifier, first step: /" | tee -a "$output/selections.txt" || failed=1
  done

  # a run stopped by a signal and resumed gives the bits of an uninterrupted run
  resumes() {
    local name=$1 pid
    shift
    local long=("$bin/train" --model resnet20 --dataset shapes --epochs 1000 --eval-every 0
      --device cuda --precision bf16 --deterministic --output-dir "$runs" --resume auto "$@")
    within 30 "${long[@]}" --name "$name" >"$output/train-$name.txt" 2>&1 || failed=1
    # timeout --foreground passes the signal on only once
    timeout -k 10 --foreground "$(left)" "${long[@]}" --name "$name-cut" \
      >"$output/train-$name-cut.txt" 2>&1 &
    pid=$!
    until [[ $(wc -l 2>/dev/null <"$runs/$name-cut/steps.csv") -gt 1 ]] ||
      ! kill -0 "$pid" 2>/dev/null; do
      sleep 0.1
    done
    kill -TERM "$pid" || true
    wait "$pid" || true
    grep -qs '"stopped": true' "$runs/$name-cut/summary.json" || failed=1
    within 30 "${long[@]}" --name "$name-cut" >>"$output/train-$name-cut.txt" 2>&1 || failed=1
    [[ -n $(weights "$name") && $(weights "$name") == "$(weights "$name-cut")" ]] || failed=1
    echo "$name: $(weights "$name"), resumed $(weights "$name-cut")" | tee -a "$output/resumed.txt"
  }
  resumes whole --batch-size 64 --max-steps 5000
  resumes ranks --batch-size 16 --workers 4 --sparsifier gaussiank --max-steps 500

  # a batch of 50,000 black images needs more memory than any GPU has: the error is one line with
  # the planned and the free memory (--deterministic: convolutions of that size are not timed)
  mkdir -p "$runs/black/cifar-10-batches-bin"
  for file in data_batch_{1..5} test_batch; do
    head -c 30730000 /dev/zero >"$runs/black/cifar-10-batches-bin/$file.bin"
  done
  code=0
  within 60 "$bin/train" --model resnet110 --data-dir "$runs/black" --batch-size 50000 \
    --device cuda --precision f32 --deterministic --output-dir "$runs" --name large \
    >"$output/memory.txt" 2>"$output/memory-error.txt" || code=$?
  said=$(cat "$output/memory-error.txt")
  echo "$said"
  [[ $code == 1 && $said != *$'\n'* && $said =~ "planned for each of 1 ranks; ".*" free" ]] ||
    failed=1
  rm -rf "$runs"
fi

# seconds per step of sixteen ranks on one GPU, and of one rank with the same images per step;
# without the first steps, which record graphs and raise the clock rate
if wanted workers; then
  say "workers"
  runs=$(mktemp -d)
  images=(--dataset shapes)
  [[ -z $data ]] || images=(--dataset cifar10 --data-dir "$data")
  echo "model,sparsifier,seconds_per_step" >"$output/workers.csv"
  for model in resnet20 vgg16; do
    for sparsifier in alone dense topk gaussiank gtopk dgc randk; do
      ranks=(--workers 16 --batch-size 32 --sparsifier "$sparsifier")
      [[ $sparsifier != alone ]] || ranks=(--workers 1 --batch-size 512 --sparsifier dense)
      within 20 "$bin/train" --model "$model" "${images[@]}" --device cuda "${ranks[@]}" \
        --density 0.001 --density-warmup '' --epochs 1000 --max-steps 150 --eval-every 0 \
        --output-dir "$runs" --name "$model-$sparsifier" \
        >"$output/workers-$model-$sparsifier.txt" 2>&1 || failed=1
      awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }
        NR > 70 { print $at["seconds"] }' "$runs/$model-$sparsifier/steps.csv" 2>/dev/null |
        sort -g | awk -v row="$model,$sparsifier" '{ all[NR] = $1 }
          END { if (NR > 0) print row "," all[int((NR + 1) / 2)] }' >>"$output/workers.csv" ||
        true  # the failure is already counted
    done
  done
  cat "$output/workers.csv"
  rm -rf "$runs"
fi

if wanted select; then
  say "select"
  for d in 269722 14728266 25557032 138357544; do
    within 60 "$bin/bench" select --device cuda --d "$d" \
      --csv "$output/select-$d.csv" 2>&1 | tee -a "$output/select.txt" || failed=1
  done
  within 60 "$python" scripts/bench/select_vs_torch.py --device cuda --repeat 50 \
    --bench "$bin/bench" 2>&1 | tee -a "$output/select.txt" || failed=1
fi

if wanted comm; then
  say "comm"
  for ranks in 4 16; do
    within 60 "$bin/bench" comm --device cuda --workers "$ranks" -b 64K -e 128M -f 16 \
      --csv "$output/comm-$ranks.csv" 2>&1 | tee -a "$output/comm.txt" || failed=1
  done
fi

if wanted bench; then
  say "bench"
  for setup in "resnet20 128 256 5" "resnet20 32 256 5" "vgg16 128 256 5" \
    "resnet50 256 64 3 --image-size 224 --classes 1000"; do
    read -r model batch steps rounds more <<<"$setup"
    # shellcheck disable=SC2086  # several words
    within 50 "$python" scripts/bench/vs_pytorch.py --device cuda --bench "$bin/bench" \
      --python "$python" --models "$model" --batch-size "$batch" --steps "$steps" \
      --rounds "$rounds" --precisions bf16 $more --output "$output/bench-$model-$batch.json" \
      --csv "$output/bench.csv" 2>&1 | tee -a "$output/bench.txt" || failed=1
  done
fi

# tests of ops, selection and messages, without the slow ones; SyncSgdOnGpu.ReportsANaN runs one
# step of every sparsifier on two ranks
if wanted sanitize; then
  say "sanitize"
  echo "suite,tool,errors,exit_code,seconds" >"$output/sanitize.csv"
  for suite in engine sparsify comm; do
    for tool in memcheck racecheck; do
      options=()
      # libraries may try a call that fails and then use another one
      [[ $tool == racecheck ]] || options=(--report-api-errors no)
      code=0 start=$SECONDS log=$output/sanitize-$suite-$tool.txt
      # only the project's kernels; checks of library kernels are slow
      within 40 compute-sanitizer --tool "$tool" --error-exitcode 9 \
        --kernel-name kernel_substring=tw "${options[@]}" "$bin/test_${suite}_cuda" \
        --gtest_filter='-*MatchesASumInDouble*:*GivesTheSumsAndResidualsOfTheCpu*' \
        >"$log" 2>&1 || code=$?
      errors=$(grep -oE 'SUMMARY: [0-9]+ (error|hazard)' "$log" | grep -oE '[0-9]+' || echo -)
      echo "$suite,$tool,$errors,$code,$((SECONDS - start))" >>"$output/sanitize.csv"
      ((code == 0)) || failed=1
    done
  done
  cat "$output/sanitize.csv"
fi

if wanted workers || wanted select || wanted bench; then
  say "limits"
  "$python" scripts/dev/gpu_limits.py "$output" "$only" || failed=1
fi

if wanted results; then
  say "results"
  within 95 scripts/results/gpu.sh "${data:?part results needs --data}" "$output/results" \
    "$bin" 2>&1 | tee -a "$output/results.txt" || failed=1
fi

if wanted links; then
  say "links"
  within 95 "$python" scripts/results/links.py -b "$bin" --keep "$output/links.json" card 2>&1 |
    tee "$output/links.txt" || failed=1
fi
tar -C "$(dirname "$output")" -czf "$output.tar.gz" "$(basename "$output")"
say "report in $output and $output.tar.gz"
exit "$failed"
