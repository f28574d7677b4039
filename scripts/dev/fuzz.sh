#!/usr/bin/env bash
# fuzz.sh [SECONDS [TARGET...]]: builds the fuzzers of tests/fuzz by clang, with its address and
# undefined-behaviour sanitizers, and runs one on each core, SECONDS each (default 600; 0: only
# builds them and writes their first inputs). A crash ends the run; build-fuzz then has its input
# and the log. Without TARGET all of tests/fuzz/*_fuzz.cpp run.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"

seconds=${1:-600}
shift || true
targets=("$@")
if ((${#targets[@]} == 0)); then
  for each in tests/fuzz/*_fuzz.cpp; do
    targets+=("$(basename "$each" _fuzz.cpp)")
  done
fi
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
command -v ccache >/dev/null && export CMAKE_CXX_COMPILER_LAUNCHER=ccache
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

# bytes VALUE... : prints bytes, each as two hexadecimal digits
bytes() {
  local byte
  for byte in "$@"; do printf '%b' "\\x$byte"; done
}

# empty_block: a message to a ScriptedCommunicator: its length of 24 bytes plus 32, the
# length of a block, and a block that has only the control word of a finite gradient
empty_block() {
  bytes 38 00 10 00 00 00 00 00 00 00 ff ff ff ff ff ff ff ff 00 00 00 00 00 00 00 00
}

# seed_corpus FOLDER TARGET: writes the first inputs of a fuzzer
seed_corpus() {
  local corpus=$1 target=$2
  mkdir -p "$corpus"
  case $target in
    image)
      cp tests/data/image/*.{jpg,png,webp} "$corpus"
      # after the marker of a frame, its length and precision: a height and a width of 65,280
      LC_ALL=C sed 's/\(\xff\xc0...\)..../\1\xff\x00\xff\x00/' tests/data/image/colour.jpg \
        >"$corpus/huge"
      ;;
    config)
      local config
      for config in configs/*.json configs/*-2019/*.json; do
        cp "$config" "$corpus/${config//\//.}"
      done
      printf '{"lr": %s}' "$(brackets 70)" >"$corpus/nested"
      printf '{"precision": 3, "lr": "0.1"}' >"$corpus/types"
      printf -- '--model\nmlp\n--set\ngaussiank.refine=paper\n--lr=0.1\n--nesterov' >"$corpus/flags"
      ;;
    safetensors)
      local tensor='"a":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}'
      safetensors "{$tensor}" >"$corpus/one"
      safetensors "{\"__metadata__\":{\"checksum\":\"0000000000000000\"},$tensor}" \
        >"$corpus/sealed"
      safetensors "{\"a\":$(brackets 70)}" >"$corpus/nested"
      tensor='"a":{"data_offsets":[0,80000],"dtype":"F32","shape":[20000]}'
      safetensors "{$tensor}" >"$corpus/beyond"
      ;;
    exchange) TW_FUZZ_SEEDS=$corpus "$build/exchange_fuzz" ;;
    block)
      # two entries, in f32 and in bf16
      local word=(ff ff ff ff ff ff ff ff 00 00 00 00 00 00 00 00)
      bytes 00 e8 03 "${word[@]}" 01 00 00 00 02 00 00 00 00 00 80 3f 00 00 80 3f >"$corpus/plain"
      bytes 02 e8 03 "${word[@]}" 01 00 00 00 02 00 00 00 80 3f 80 3f >"$corpus/halves"
      bytes 03 e8 03 "${word[@]}" 01 00 00 80 25 00 00 80 3f >"$corpus/packed"
      ;;
    start)
      local which
      for which in 00 01 02 03; do
        { bytes 00 "$which"; empty_block; } >"$corpus/$which"
      done
      ;;
    bootstrap)
      { bytes 00; head -c 200 /dev/zero; } >"$corpus/places"
      { bytes 01; for _ in 1 2 3; do empty_block; done; } >"$corpus/messages"
      ;;
    checkpoint)  # momentum, and the residual, with a row more
      bytes 02 01 00 03 01 >"$corpus/momentum"
      bytes 01 02 00 03 01 >"$corpus/residual"
      ;;
    library)
      printf '{"sparsifier": "oktopk", "scope": "layer", "set": {"wire.values": "bf16"}}\n\0\1x' \
        >"$corpus/layer"
      printf '{"sparsifier": "dgc", "momentum": 0.5, "set": [1]}' >"$corpus/types"
      ;;
    npy)
      local array="{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
      {
        bytes 93; printf NUMPY; bytes 01 00 "$(printf %02x ${#array})" 00
        printf '%s%8s' "$array" x
      } >"$corpus/array"
      ;;
    export)
      printf '%s\n' '{"config":{"model":"lenet"}}' '[32,32,3]' \
        '{"mean":[0.5,0.5,0.5],"deviation":[0.2,0.2,0.2]}' >"$corpus/metadata"
      printf '%s\n' '{"config":{"model":"lenet"}}' '[32.5,"3",1e30]' '{"mean":0.5}' >"$corpus/types"
      ;;
    link) sed -n '/^{"link"/,/}$/p' docs/links.md >"$corpus/all" ;;
    tuning_cache) printf '{"conv a": "1 2", "conv b": "3"}' >"$corpus/cache" ;;
    csv) printf '\x0149,0.1,1,2,3\n50,0.1\n51,0.1\n5' >"$corpus/rows" ;;
    record)
      local folder
      folder=$(mktemp -d)
      mkdir -p "$folder"/{train,val}/class
      cp tests/data/image/colour.jpg "$folder/train/class"
      cp tests/data/image/grayscale.jpg "$folder/val/class"
      "$build"/bin/pack --data-dir "$folder" --output "$corpus/packed" >/dev/null
      rm -r "$folder"
      ;;
  esac
}

# fuzz TARGET: runs a fuzzer; prints the end of its log
fuzz() {
  local log=$build/$1.log code=0
  (cd "$build" && "./${1}_fuzz" -max_total_time="$seconds" -max_len=300000 -timeout=20 \
    -rss_limit_mb=4096 -print_final_stats=1 "corpus-$1") >"$log" 2>&1 || code=$?
  say "$1, $seconds seconds: $( ((code == 0)) && echo clean || echo "code $code")"
  tail -n 12 "$log"
  return "$code"
}

trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
for target in "${targets[@]}"; do
  seed_corpus "$build/corpus-$target" "$target"
  ((seconds > 0)) || continue
  while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n; done
  fuzz "$target" &
done
while [[ -n $(jobs -p) ]]; do wait -n; done
