#!/usr/bin/env bash
# Kernels contain no traps: nvcc silently generates one for a function that device code cannot call,
# or that takes the address of a constant of the host. The emulator runs such code.
set -euo pipefail
build=${TW_BUILD:?}
if ! command -v nvcc >/dev/null || ! compgen -G "$build/unity/*.cu" >/dev/null; then
  echo "skipped: this build has no CUDA code"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# traps FILE: the lines of a .cu file's PTX that are traps, and the kernels that have them
traps() {
  nvcc -std=c++20 -I. -DFMT_USE_CONSTEXPR=1 --expt-relaxed-constexpr -diag-suppress=20208 \
    -arch=compute_90 -ptx "$1" -o "$scratch/out.ptx"
  awk '/\.entry/ {kernel = $0} /^\ttrap;/ {print kernel}' "$scratch/out.ptx"
}

# the test finds one
cat >"$scratch/planted.cu" <<'CU'
#include <algorithm>
inline constexpr int most = 7;
constexpr int limited(int x) { return std::min(x, most); }
__global__ void planted(int* x) { *x = limited(*x); }
CU
[[ $(traps "$scratch/planted.cu") == *planted* ]] || { echo "a planted trap is not found"; exit 1; }

found=0
for file in "$build"/unity/*.cu; do
  text=$(traps "$file")
  [[ -z $text ]] || { echo "$file: $text"; found=1; }
done
exit $found
