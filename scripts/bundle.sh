#!/usr/bin/env bash
# bundle.sh [BUILD [OUTPUT]]: makes a folder whose programs run on another machine of the same kind
# without an installation. OUTPUT/bin has the programs and tests of BUILD (default: build),
# OUTPUT/lib their libraries; the files that tests and benchmarks read are included, too. Replaces
# OUTPUT (default: bundle) and writes the same as one file, OUTPUT.tar.xz.
# The C and C++ libraries and NVIDIA's are not included. The other machine uses its own, from its
# CUDA toolkit or from Python wheels. `. OUTPUT/env.sh` sets the search paths.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

build=$(path_of "${1:-$PWD/build}") output=$(path_of "${2:-$PWD/bundle}")
[[ -x $build/bin/train ]] || die "$build/bin/train is missing; scripts/build.sh builds it"

rm -rf "$output" "$output.tar.xz"
mkdir -p "$output/bin" "$output/lib" "$output/tests/models"
for program in "$build"/bin/*; do
  [[ -f $program && -x $program ]] && strip -o "$output/bin/$(basename "$program")" "$program"
done

libraries() { ldd "$output"/bin/* | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u; }
system='/(ld-linux|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s)[-.]'
nvidia='/(libcu|libcudnn|libcublas|libnccl|libnv)'
mapfile -t needed < <(libraries | grep -vE "$system|$nvidia")
((${#needed[@]} == 0)) || cp -L "${needed[@]}" "$output/lib"
cp -r scripts configs "$output"
cp -r tests/models/golden "$output/tests/models"

cat >"$output/env.sh" <<'ENV'
# Sets the search paths of the bundle's libraries and NVIDIA's. PYTHON names the interpreter whose
# wheels contain NVIDIA's libraries (default: python3), CUDA_HOME the CUDA toolkit (default:
# /usr/local/cuda).
bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
wheels=$("${PYTHON:-python3}" -c 'import glob, sys
print(":".join(d for p in sys.path for d in sorted(glob.glob(p + "/nvidia/*/lib"))))' \
  2>/dev/null) || wheels=
export TW_SOURCE=$bundle
toolkit=${CUDA_HOME:-/usr/local/cuda}
export PATH=$bundle/bin:$PATH:$toolkit/bin:$toolkit/compute-sanitizer
export LD_LIBRARY_PATH=$bundle/lib:$wheels:$toolkit/lib64:${LD_LIBRARY_PATH:-}
ENV
# programs share most of their code: the dictionary of -9 reaches from one to the next; more threads
# would cut the archive into parts that share nothing
XZ_OPT='-T1 -9' tar -C "$(dirname "$output")" -cJf "$output.tar.xz" "$(basename "$output")"
say "$output ($(du -sh "$output" | cut -f1)), $output.tar.xz ($(du -sh "$output.tar.xz" | cut -f1))"
