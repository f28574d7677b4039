#!/usr/bin/env bash
# A test that fails on one rank: the test program ends, fails and names the rank and the test.
set -u
program=$TW_BUILD/bin/test_mpi
[ -x "$program" ] || { echo "skipped: built without MPI"; exit 77; }

mpirun=$(sed -n 's/^MPIEXEC_EXECUTABLE:.*=//p' "$TW_BUILD/CMakeCache.txt")
export ASAN_OPTIONS=detect_leaks=0  # of MPI libraries
output=$(TW_FAIL_ON_RANK_1=1 timeout -k 1 60 "$mpirun" -n 2 "$program" \
         --gtest_filter='FailedTest.*' 2>&1 </dev/null)
code=$?
line='^rank 1: FailedTest.FailsOnRank1: .*cpp:'
[ "$code" = 1 ] && grep -q "$line" <<<"$output" && exit 0
echo "exit code $code, expected 1 and a line that names rank 1"
echo "$output"
exit 1
