#!/usr/bin/env bash
# gpu_check.sh [--bundle FOLDER|ARCHIVE] [--output FOLDER] [--minutes N] [--python PYTHON]
#              [--only PART,...] [--setup SETUP,...] [--data FOLDER]
# Runs all checks that need a GPU, within N minutes (default 8, enough for a few parts). Builds the
# programs before that, or unpacks a bundle of scripts/bundle.sh. Uses no network.
# PARTs: tests, train, workers, select, comm, bench, sanitize (default: these, in this order). The
# time is divided among the parts, and that of a part among its commands. What one leaves unused
# goes to those that follow; a command is killed at the end of its share.
# SETUPs of the part bench: resnet20, vgg16, resnet20-32, resnet50 (default: all). One call each
# gives torch.compile enough time.
# Additional PARTs: results (scripts/results/gpu.sh with the data sets in FOLDER) and links
# (links.py card). They take several calls; a call with the same --output continues them.
# Writes the output and tables of each part to the folder gpu-report (or --output) and, at the end
# or when it is stopped, the same as one archive beside it. Exit code 1 when a test, the sanitizer
# or a limit failed.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

bundle='' output='' minutes=8 python=python3 data=''
only=tests,train,workers,select,comm,bench,sanitize
known=$only,results,links
setups=resnet20,vgg16,resnet20-32,resnet50
known_setups=$setups
while (($#)); do
  (($# > 1)) || die "$1 is unknown, or its value is missing"
  case $1 in
    --bundle) bundle=$(realpath -e -- "$(path_of "$2")") || die "no bundle $2" ;;
    --output) output=$(path_of "$2") ;;
    --minutes) minutes=$2 ;;
    --python) python=$2 ;;
    --only) only=$2 ;;
    --setup) setups=$2 ;;
    --data) data=$(realpath -e -- "$(path_of "$2")") || die "no folder $2" ;;
    *) die "unknown option $1" ;;
  esac
  shift 2
done
[[ $minutes =~ ^[0-9]+(\.[0-9]+)?$ ]] || die "--minutes is $minutes; it is a number"
for part in ${only//,/ }; do
  [[ ,$known, == *,$part,* ]] || die "unknown part $part; the parts are $known"
done
for setup in ${setups//,/ }; do
  [[ ,$known_setups, == *,$setup,* ]] || die "unknown setup $setup; the setups are $known_setups"
done
output=${output:-$PWD/gpu-report}
mkdir -p "$output"
failed=0 running='' temporary=$(mktemp -d)

# packs the report, also when a part ended the script or a signal stops it
# shellcheck disable=SC2317  # the trap calls it
finish() {
  local code=$?
  trap - EXIT
  [[ -z $running ]] || kill "$running" 2>/dev/null || true
  rm -rf "$temporary"
  tar -C "$(dirname "$output")" -czf "$output.tar.gz" "$(basename "$output")"
  say "report in $output and $output.tar.gz"
  exit "$code"
}
trap finish EXIT
trap 'exit 143' TERM INT HUP

if [[ -f $bundle ]]; then
  tar -C "$temporary" -xf "$bundle"
  bundle=$(echo "$temporary"/*)
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

# 5 s are kept for the kill of the last command and for packing
deadline=$((SECONDS + $(awk "BEGIN { print int(60 * $minutes) - 5 }")))
declare -A weight=([tests]=4 [train]=4 [workers]=5 [select]=3 [comm]=2 [bench]=8 [sanitize]=5
  [results]=8 [links]=8)
weights=0  # of the parts that are left
for part in ${only//,/ }; do ((weights += weight[$part])); done
part_end=0 commands=0

wanted() { [[ ,$only, == *,$1,* ]]; }
# begin PART COMMANDS: gives the part its share of the remaining time
begin() {
  say "$1"
  part_end=$((SECONDS + (deadline - SECONDS) * weight[$1] / weights))
  ((weights -= weight[$1])) || true
  commands=$2
}
# share: sets `limit` to the seconds of the next command; fails when none are left
share() {
  limit=$(((part_end - SECONDS) / (commands > 1 ? commands : 1)))
  commands=$((commands - 1))
  ((limit > 0)) || { echo "no time is left"; return 124; }
}
# within COMMAND...: runs a command for its share of the part's time at most
within() {
  local limit
  share || return
  timed "$limit" "$@"
}
# timed SECONDS COMMAND...
timed() {
  local code=0
  timeout -k 3 "$@" &
  running=$!
  wait "$running" || code=$?
  running=''
  return "$code"
}

# a driver or a PyTorch that hangs must leave most of the time to the parts
briefly() { timed $(((deadline - SECONDS) / 16 + 1)) "$@" 2>&1 || echo "$1: exit code $?"; }
{
  briefly nvidia-smi
  nvcc --version 2>&1 | tail -n 2 || true
  briefly "$python" -c 'import torch; print("PyTorch", torch.__version__, torch.version.cuda)'
} >"$output/machine.txt"

# run_tests NAME COMMAND...: runs a test program and adds a row to tests.csv
run_tests() {
  local name=$1 log code=0 start=$SECONDS
  shift
  log=$output/tests-$name.txt
  within "$@" >"$log" 2>&1 || code=$?
  local passed bad skipped
  passed=$(grep -c '^\[       OK' "$log" || true)
  bad=$(grep -c '^\[  FAILED  \] .*)$' "$log" || true)
  skipped=$(grep -c '^\[  SKIPPED \] .*)$' "$log" || true)
  echo "$name,$passed,$bad,$skipped,$code,$((SECONDS - start))" >>"$output/tests.csv"
  # without a GPU all tests are skipped, which counts as a failure
  ((code == 0 && passed > 0)) || failed=1
}

if wanted tests; then
  programs=("$bin"/test_*_cuda)
  begin tests $((${#programs[@]} + 1))
  echo "suite,passed,failed,skipped,exit_code,seconds" >"$output/tests.csv"
  for test in "${programs[@]}"; do run_tests "$(basename "$test")" "$test"; done
  # the bundle's programs need MPICH; another MPI's mpirun would start each as a run of its own
  if [[ -x $bin/test_mpi && $(mpirun --version 2>/dev/null) == *HYDRA* ]]; then
    run_tests test_mpi mpirun -n 2 "$bin/test_mpi" --gtest_filter='DeviceMemory*'
  fi
  column -s, -t "$output/tests.csv" 2>/dev/null || cat "$output/tests.csv"
fi

# compares the first losses of CPU and GPU; two deterministic GPU runs must give the same bits
if wanted train; then
  begin train 16
  runs=$temporary/train
  # learning rate 0.001: the losses of two CPUs with different vector widths differ by less than
  # 0.02 % after 20 steps; at 0.02 they differ by 1.5 %
  first_losses() {
    local name=$1
    shift
    within "$bin/train" --model resnet20 --dataset shapes --max-steps 20 \
      --batch-size 64 --lr 0.001 --output-dir "$runs" --name "$name" "$@" \
      >"$output/train-$name.txt" 2>&1 || failed=1
    cut -d, -f1,5 "$runs/$name/steps.csv" >"$output/losses-$name.csv" 2>/dev/null || true
  }
  first_losses cpu-f32 --device cpu --precision f32
  first_losses gpu-f32 --device cuda --precision f32
  first_losses gpu-bf16 --device cuda --precision bf16
  first_losses gpu-a --device cuda --precision bf16 --deterministic
  first_losses gpu-b --device cuda --precision bf16 --deterministic
  same_weights "$runs/gpu-a" "$runs/gpu-b" || failed=1
  paste -d, "$output"/losses-{cpu-f32,gpu-f32,gpu-bf16}.csv | tee "$output/losses.csv" | tail -n 3
  # relative difference to the CPU in each step: at most 1e-3 in f32, 5e-2 in bf16
  awk -F, 'function off(a, b) { return (a > b ? a - b : b - a) / b }
    NR > 1 && (off($4, $2) > 1e-3 || off($6, $2) > 5e-2) { print "losses differ: " $0; bad = 1 }
    END { exit bad || NR < 21 }' "$output/losses.csv" || failed=1
  # in the first step, CPU and GPU send the same entries
  for sparsifier in topk gaussiank; do
    for device in cpu cuda; do
      within "$bin/train" --model resnet20 --dataset shapes --batch-size 32 --workers 4 \
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
    local name=$1 pid limit
    shift
    local long=("$bin/train" --model resnet20 --dataset shapes --epochs 1000 --eval-every 0
      --device cuda --precision bf16 --deterministic --output-dir "$runs" --resume auto "$@")
    within "${long[@]}" --name "$name" >"$output/train-$name.txt" 2>&1 || failed=1
    share || { failed=1; return 0; }
    # timeout --foreground passes the signal on only once
    timeout -k 3 --foreground "$limit" "${long[@]}" --name "$name-cut" \
      >"$output/train-$name-cut.txt" 2>&1 &
    pid=$! running=$!
    until [[ $(wc -l 2>/dev/null <"$runs/$name-cut/steps.csv") -gt 1 ]] ||
      ! kill -0 "$pid" 2>/dev/null; do
      sleep 0.1
    done
    kill -TERM "$pid" || true
    wait "$pid" || true
    running=''
    [[ $(result "$runs/$name-cut" stopped) == True ]] || failed=1
    within "${long[@]}" --name "$name-cut" >>"$output/train-$name-cut.txt" 2>&1 || failed=1
    same_weights "$runs/$name" "$runs/$name-cut" || failed=1
    echo "$name: $(result "$runs/$name" weights_hash), resumed" \
      "$(result "$runs/$name-cut" weights_hash)" | tee -a "$output/resumed.txt"
  }
  resumes whole --batch-size 64 --max-steps 5000
  resumes ranks --batch-size 16 --workers 4 --sparsifier gaussiank --max-steps 500

  # a batch of 50,000 black images needs more memory than any GPU has: the error is one line with
  # the planned and the free memory (--deterministic: convolutions of that size run only once)
  mkdir -p "$runs/black/cifar-10-batches-bin"
  for file in data_batch_{1..5} test_batch; do
    head -c 30730000 /dev/zero >"$runs/black/cifar-10-batches-bin/$file.bin"
  done
  code=0
  within "$bin/train" --model resnet110 --data-dir "$runs/black" --batch-size 50000 \
    --device cuda --precision f32 --deterministic --output-dir "$runs" --name large \
    >"$output/memory.txt" 2>"$output/memory-error.txt" || code=$?
  said=$(cat "$output/memory-error.txt")
  echo "$said"
  [[ $code == 1 && $said != *$'\n'* && $said =~ "planned for each of 1 ranks; ".*" free" ]] ||
    failed=1
fi

# seconds per step of sixteen ranks on one GPU, and of one rank with the same images per step;
# without the first steps, which record graphs and raise the clock rate
if wanted workers; then
  begin workers 14
  runs=$temporary/workers
  images=(--dataset shapes)
  [[ -z $data ]] || images=(--dataset cifar10 --data-dir "$data")
  echo "model,sparsifier,seconds_per_step" >"$output/workers.csv"
  for model in resnet20 vgg16; do
    for sparsifier in alone dense topk gaussiank gtopk dgc randk; do
      ranks=(--workers 16 --batch-size 32 --sparsifier "$sparsifier")
      [[ $sparsifier != alone ]] || ranks=(--workers 1 --batch-size 512 --sparsifier dense)
      within "$bin/train" --model "$model" "${images[@]}" --device cuda "${ranks[@]}" \
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
fi

if wanted select; then
  begin select 5
  threads=(--threads-per-rank "$(nproc)")  # the host draws the vectors
  for d in 25557032 269722 14728266 138357544; do
    vectors=(--d "$d")
    [[ $d == 25557032 ]] || vectors+=(--distribution gaussian)
    within "$bin/bench" select --device cuda "${vectors[@]}" "${threads[@]}" \
      --csv "$output/select-$d.csv" >>"$output/select.txt" 2>&1 || failed=1
  done
  within "$python" scripts/bench/select_vs_torch.py --device cuda --repeat 50 \
    --threads "$(nproc)" --bench "$bin/bench" >>"$output/select.txt" 2>&1 || failed=1
  cat "$output/select.txt"
fi

if wanted comm; then
  begin comm 2
  for ranks in 4 16; do
    within "$bin/bench" comm --device cuda --workers "$ranks" -b 64K -e 128M -f 16 \
      --csv "$output/comm-$ranks.csv" >>"$output/comm.txt" 2>&1 || failed=1
  done
  cat "$output/comm.txt"
fi

if wanted bench; then
  # model, batch size, steps, rounds and other options
  declare -A setup_of=([resnet20]="resnet20 128 256 5" [resnet20-32]="resnet20 32 256 5"
    [vgg16]="vgg16 128 256 5" [resnet50]="resnet50 256 64 3 --image-size 224 --classes 1000")
  read -ra list <<<"${setups//,/ }"
  begin bench ${#list[@]}
  for setup in "${list[@]}"; do
    read -r model batch steps rounds more <<<"${setup_of[$setup]}"
    # shellcheck disable=SC2086  # several words
    within "$python" scripts/bench/vs_pytorch.py --device cuda --bench "$bin/bench" \
      --python "$python" --models "$model" --batch-size "$batch" --steps "$steps" \
      --rounds "$rounds" --precisions bf16 $more --output "$output/bench-$model-$batch.json" \
      --csv "$output/bench.csv" >>"$output/bench.txt" 2>&1 || failed=1
  done
  cat "$output/bench.txt"
fi

# tests of ops, selection and messages, without the slow ones; SyncSgdOnGpu.ReportsANaN runs one
# step of every sparsifier on two ranks
if wanted sanitize; then
  begin sanitize 6
  echo "suite,tool,errors,exit_code,seconds" >"$output/sanitize.csv"
  for suite in engine sparsify comm; do
    for tool in memcheck racecheck; do
      options=()
      # libraries may try a call that fails and then use another one
      [[ $tool == racecheck ]] || options=(--report-api-errors no)
      code=0 start=$SECONDS log=$output/sanitize-$suite-$tool.txt
      # only the project's kernels; checks of library kernels are slow
      within compute-sanitizer --tool "$tool" --error-exitcode 9 \
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
  "$python" scripts/dev/gpu_limits.py "$output" "$only" "$setups" || failed=1
fi

if wanted results; then
  begin results 1
  within scripts/results/gpu.sh "${data:?part results needs --data}" "$output/results" "$bin" \
    >>"$output/results.txt" 2>&1 || failed=1
  cat "$output/results.txt"
fi

if wanted links; then
  begin links 1
  within "$python" scripts/results/links.py -b "$bin" --keep "$output/links.json" card \
    >"$output/links.txt" 2>&1 || failed=1
  cat "$output/links.txt"
fi
exit "$failed"
