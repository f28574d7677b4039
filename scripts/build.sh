#!/usr/bin/env bash
# build.sh [PRESET [TARGET...]]: configures and builds; installs nothing.
# Presets: release (default; programs in build/bin), debug, asan, tsan.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

preset=${1:-release}
command -v cmake >/dev/null || die "cmake is missing; scripts/install_deps.sh installs it"
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
fi

cmake --preset "$preset"
cmake --build --preset "$preset" ${2:+--target "${@:2}"}
