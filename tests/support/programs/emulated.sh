# For scripts that test a program in the CUDA emulator (tests/emulator); skips in builds without it.
# $emulated is the folder of the programs; $work is a temporary folder, removed at the end.
# shellcheck shell=bash
set -euo pipefail
emulated=$TW_BUILD/emulated
if [[ ! -x $emulated/train ]]; then
  echo "skipped: this build has no CUDA emulator"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
