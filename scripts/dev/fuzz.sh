#!/usr/bin/env bash
# fuzz.sh [SECONDS [TARGET...]]: builds the fuzzers of tests/fuzz by clang, with its address and
# undefined-behaviour sanitizers, and runs them one after the other, SECONDS each (default 600). A
# crash ends the run; build-fuzz then has its input and the log.
# Targets: jpeg record cifar safetensors config.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"

seconds=${1:-600}
shift || true
targets=("$@")
((${#targets[@]})) || targets=(jpeg record cifar safetensors config)
for target in "${targets[@]}"; do
  [[ -f tests/fuzz/${target}_fuzz.cpp ]] || die "unknown target $target"
done
clang='' newest=14  # clang 14 has no 16-bit floating-point arithmetic
for each in $(compgen -c clang++ | grep -x 'clang++\(-[0-9]*\)\?' | sort -u); do
  version=$("$each" -dumpversion)
  ((${version%%.*} <= newest)) || clang=$each newest=${version%%.*}
done
[[ -n $clang ]] ||
  die "clang 15 or later is missing (apt-get install clang-16 libomp-16-dev libclang-rt-16-dev)"

build="build-fuzz"
options=(
  -DCMAKE_BUILD_TYPE=Debug
  "-DCMAKE_CXX_FLAGS=-O1 -D_GLIBCXX_ASSERTIONS -Wno-unknown-warning-option"
  "-DSANITIZE=fuzzer-no-link,address,undefined" -DWARNINGS_AS_ERRORS=OFF
  -DWITH_MPI=OFF -DWITH_CUDA=OFF -DWITH_TESTS=OFF
  "-DCMAKE_PROJECT_thinwire_INCLUDE=$PWD/tests/fuzz/targets.cmake"
)
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
CXX=$clang cmake -G Ninja -S . -B "$build" "${options[@]}" >/dev/null
cmake --build "$build" --target pack "${targets[@]/%/_fuzz}"

# safetensors HEADER: a file with this header and eight bytes of data
safetensors() {
  printf '%b%s%8s' "\\x$(printf %02x ${#1})\\0\\0\\0\\0\\0\\0\\0" "$1" x
}

# brackets DEPTH: prints DEPTH nested empty lists
brackets() {
  head -c "$1" /dev/zero | tr '\0' '['
  head -c "$1" /dev/zero | tr '\0' ']'
}

# seed_corpus FOLDER TARGET: writes the first inputs of a fuzzer
seed_corpus() {
  local corpus=$1 target=$2
  mkdir -p "$corpus"
  case $target in
    jpeg) cp tests/data/jpeg/*.jpg "$corpus" ;;
    config)
      local config
      for config in configs/*.json configs/*-2019/*.json; do
        cp "$config" "$corpus/${config//\//.}"
      done
      printf '{"lr": %s}' "$(brackets 70)" >"$corpus/nested"
      printf -- '--model\nmlp\n--set\ngaussiank.refine=paper\n--lr=0.1\n--nesterov' >"$corpus/flags"
      ;;
    safetensors)
      local tensor='"a":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}'
      safetensors "{$tensor}" >"$corpus/one"
      safetensors "{\"__metadata__\":{\"checksum\":\"0000000000000000\"},$tensor}" \
        >"$corpus/sealed"
      safetensors "{\"a\":$(brackets 70)}" >"$corpus/nested"
      ;;
    record)
      local folder
      folder=$(mktemp -d)
      mkdir -p "$folder"/{train,val}/class
      cp tests/data/jpeg/colour.jpg "$folder/train/class"
      cp tests/data/jpeg/grayscale.jpg "$folder/val/class"
      "$build"/bin/pack --data-dir "$folder" --output "$corpus/packed" >/dev/null
      rm -r "$folder"
      ;;
  esac
}

for target in "${targets[@]}"; do
  seed_corpus "$build/corpus-$target" "$target"
  say "$target, $seconds seconds"
  (cd "$build" && "./${target}_fuzz" -max_total_time="$seconds" -max_len=300000 -timeout=20 \
    -rss_limit_mb=4096 -print_final_stats=1 "corpus-$target" 2>&1 |
    tee "$target.log" | tail -n 12)
done
