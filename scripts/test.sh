#!/usr/bin/env bash
# test.sh [--preset NAME | --all] [CTEST_OPTION...]: installs missing packages, builds and tests.
#   --preset  release (default), debug, asan or tsan
#   --all     release, asan and tsan, builds without CUDA and without MPI, each fuzzer for 60 s, and
#             the wheel of `pip install .`
# With --all, unless THINWIRE_PYTHON is set, build-python gets PyTorch and others from PyPI. With
# THINWIRE_DATA=DIR, tests that need the data in DIR/cifar-10-batches-bin run, too. Ends with the
# number of skipped tests by reason, and names those that should have run.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

presets=(release)
plain_builds=()
case ${1:-} in
  --preset)
    presets=("${2:?test.sh: --preset needs a name}")
    shift 2
    ;;
  --all)
    presets=(asan tsan release)
    plain_builds=(WITH_CUDA WITH_MPI)
    export TW_STORM_SECONDS=60
    shift
    ;;
esac

scripts/install_deps.sh

for option in "${plain_builds[@]}"; do
  say "build with $option=OFF"
  build=build-${option,,}-off
  quietly cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DCMAKE_UNITY_BUILD=OFF -D"$option"=OFF
  quietly cmake --build "$build"
done

if ((${#plain_builds[@]} > 0)); then
  scripts/install_deps.sh clang-16 libomp-16-dev libclang-rt-16-dev
  scripts/dev/fuzz.sh 60
  scripts/dev/check_wheel.sh || (($? == 77))
  if [[ -z ${THINWIRE_PYTHON:-} ]]; then
    say "packages of Python"
    if why=$(environment build-python torch torchvision safetensors pandas duckdb onnx onnxruntime \
      tensorboard mlflow wandb 2>&1); then
      export THINWIRE_PYTHON=$PWD/build-python/bin/python
    else
      echo "no PyTorch, tests that need it are skipped: ${why##*$'\n'}"
    fi
  fi
fi

results=$(mktemp)
trap 'rm "$results"' EXIT
for preset in "${presets[@]}"; do
  say "build and test: $preset"
  scripts/build.sh "$preset"
  ctest --preset "$preset" -j "$(nproc)" --output-junit "$results" \
    --test-output-size-passed 100000000 "$@" || {
    # run failed tests again, alone, so that the log ends with their output
    say "failed tests, second run: $preset"
    ctest --preset "$preset" --rerun-failed || true
    die "$preset: tests failed; the output of their second run is above"
  }
  build=build
  [[ $preset == release ]] || build=build-$preset
  [[ ! -s $results ]] || scripts/dev/skipped_tests.py "$results" "$build"
done
