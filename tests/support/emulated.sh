# For scripts that test a program on the GPU that a CPU plays (tests/emulator): skips where there is
# none. $emulated has the programs; $work is a folder that goes away at the end.
# shellcheck shell=bash
set -euo pipefail
emulated=$TW_BUILD/emulated
if [[ ! -x $emulated/train ]]; then
  echo "skipped: the emulator comes with builds with CUDA"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
