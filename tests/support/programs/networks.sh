# shellcheck shell=bash disable=SC2034
# Sourced by tests of mpirun in network namespaces, which it skips; $work is removed at the end.
bin=$TW_BUILD/bin
export THINWIRE_CACHE=$TW_BUILD/test-data
skip() { echo "skipped: $1" && exit 77; }
command -v ip >/dev/null || skip "ip is missing (package iproute2)"
grep -q TW_WITH_MPI "$TW_BUILD/compile_commands.json" || skip "built without MPI"
[[ $(mpirun --version 2>/dev/null) == *HYDRA* ]] || skip "mpirun is not that of MPICH"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
