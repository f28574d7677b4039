#!/usr/bin/env bash
# build.sh [-DOPTION=VALUE...] [PRESET [TARGET...]]: configures and builds; installs nothing.
# Presets: release (default; programs in build/bin), debug, asan, tsan.
# Prints one line of progress on a terminal, otherwise one for each quarter of the build, and the
# errors if it fails. Builds no tests without GoogleTest or with -DWITH_TESTS=OFF.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

options=()
while [[ ${1:-} == -D?* ]]; do
  options+=("$1")
  shift
done
preset=${1:-release}
command -v cmake >/dev/null || die "cmake is missing; scripts/install_deps.sh installs it"
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
  # ccache needs this to cache files that use a precompiled header
  export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
fi

tests=ON
echo '#include <gtest/gtest.h>' | c++ -E -x c++ - >/dev/null 2>&1 || tests=OFF
quietly cmake --preset "$preset" -D "WITH_TESTS=$tests" "${options[@]}" ||
  die "cmake --preset $preset failed"
build=(cmake --build --preset "$preset" ${2:+--target "${@:2}"})
if [[ -t 1 ]]; then
  "${build[@]}"  # ninja updates a single line
else
  quietly "${build[@]}" || die "the $preset build failed"
fi
echo "built preset $preset in $SECONDS s"
