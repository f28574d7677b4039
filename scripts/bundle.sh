#!/usr/bin/env bash
# bundle.sh [BUILD [OUTPUT]]: a folder that runs on another machine of the same kind without
# installing anything: programs and tests of BUILD (default: build) in OUTPUT/bin, the libraries
# they need in OUTPUT/lib, and what tests and benchmarks read. OUTPUT (default: bundle) is replaced;
# OUTPUT.tar.xz is the same in one file.
# Left out are the libraries of C and C++, which are older here than there, and NVIDIA's: the
# machine's own are used, those from its toolkit or from Python wheels. `. OUTPUT/env.sh` makes
# them known.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

build=${1:-build} output=${2:-bundle}
[[ -x $build/bin/train ]] || die "there is no $build/bin/train; scripts/build.sh makes it"

rm -rf "$output" "$output.tar.xz"
mkdir -p "$output/bin" "$output/lib" "$output/tests/models"
for program in "$build"/bin/*; do
  [[ -f $program && -x $program ]] && strip -o "$output/bin/$(basename "$program")" "$program"
done

libraries() { ldd "$output"/bin/* | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u; }
system='/(ld-linux|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s)[-.]'
nvidia='/(libcu|libcudnn|libcublas|libnccl|libnv)'
mapfile -t needed < <(libraries | grep -vE "$system|$nvidia")
cp -L "${needed[@]}" "$output/lib"
cp -r scripts configs "$output"
cp -r tests/models/golden "$output/tests/models"

cat >"$output/env.sh" <<'ENV'
# Makes the bundle's libraries and NVIDIA's known to the programs in bin. PYTHON names the
# interpreter whose wheels have NVIDIA's, if it is not python3.
bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
wheels=$("${PYTHON:-python3}" -c 'import glob, sys
print(":".join(d for p in sys.path for d in sorted(glob.glob(p + "/nvidia/*/lib"))))' \
  2>/dev/null) || wheels=
export TW_SOURCE=$bundle
export PATH=$bundle/bin:$PATH
export LD_LIBRARY_PATH=$bundle/lib:$wheels:/usr/local/cuda/lib64:${LD_LIBRARY_PATH:-}
ENV
XZ_OPT='-T0 -3' tar -C "$(dirname "$output")" -cJf "$output.tar.xz" "$(basename "$output")"
say "$output ($(du -sh "$output" | cut -f1)), $output.tar.xz ($(du -sh "$output.tar.xz" | cut -f1))"
