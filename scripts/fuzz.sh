#!/usr/bin/env bash
# fuzz.sh [SECONDS [TARGET...]]: runs the fuzzers of tests/fuzz, SECONDS each (default 600), built
# by clang with its address and undefined-behaviour sanitizers. A crash ends it; what caused it lies
# in build-fuzz. Targets: jpeg record cifar safetensors config.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

seconds=${1:-600}
shift || true
targets=("$@")
((${#targets[@]})) || targets=(jpeg record cifar safetensors config)
command -v clang++ >/dev/null || die "clang++ is missing (apt-get install clang)"

build="build-fuzz"
mkdir -p "$build"
sanitizers=address,undefined
flags=(-std=c++20 -O1 -g -I. "-fsanitize=fuzzer-no-link,$sanitizers" -Wno-unknown-pragmas
  -fno-sanitize-recover=all -DTW_SANITIZED -DTW_VERSION='"fuzz"' -DFMT_HEADER_ONLY)

# the few files each target needs
base=(engine/dtype.cpp engine/file.cpp engine/hash.cpp engine/json.cpp engine/settings.cpp
  engine/shape.cpp engine/tensor.cpp)
photographs=(data/augment.cpp data/augment_photograph.cpp data/resample.cpp data/decode.cpp)
declare -A sources=(
  [jpeg]="${photographs[*]}"
  [record]="data/record_file.cpp data/dataset.cpp ${photographs[*]}"
  [cifar]="data/cifar_binary.cpp data/dataset.cpp ${photographs[*]}"
  [safetensors]="engine/safetensors.cpp"
  [config]="apps/support/options.cpp"
)

object() { echo "$build/$(tr / . <<<"$1").o"; }

# what a target starts from
seed_corpus() {
  local corpus=$1 target=$2
  mkdir -p "$corpus"
  case $target in
    jpeg) cp tests/data/jpeg/*.jpg "$corpus" ;;
    config) cp configs/*.json configs/*/*.json "$corpus" ;;
    safetensors)
      local header='{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
      printf '%b' "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0" >"$corpus/one"
      printf '%s%8s' "$header" x >>"$corpus/one"
      ;;
    record)
      if [[ -x build/bin/pack ]]; then
        local folder
        folder=$(mktemp -d)
        mkdir -p "$folder"/{train,val}/class
        cp tests/data/jpeg/colour.jpg "$folder/train/class"
        cp tests/data/jpeg/grayscale.jpg "$folder/val/class"
        build/bin/pack --data-dir "$folder" --output "$corpus/packed" >/dev/null
        rm -r "$folder"
      fi
      ;;
  esac
}

for target in "${targets[@]}"; do
  [[ -n ${sources[$target]:-} ]] || die "unknown target $target; known: ${!sources[*]}"
  read -ra files <<<"${sources[$target]} ${base[*]} tests/fuzz/${target}_fuzz.cpp"
  objects=()
  for file in "${files[@]}"; do
    out=$(object "$file")
    [[ $out -nt $file ]] || clang++ "${flags[@]}" -c "$file" -o "$out"
    objects+=("$out")
  done
  clang++ "-fsanitize=fuzzer,$sanitizers" "${objects[@]}" -ljpeg -o "$build/fuzz_$target"
  seed_corpus "$build/corpus-$target" "$target"
  say "$target, $seconds seconds"
  (cd "$build" && ./"fuzz_$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 \
    -print_final_stats=1 "corpus-$target" 2>&1 | tail -n 12)
done
