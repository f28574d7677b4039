#!/usr/bin/env bash
# Every way a run under mpirun can end: it ends, with the right exit code, on shared memory and TCP.
set -u
program=$TW_BUILD/bin/mpi_shutdown
[ -x "$program" ] || { echo "skipped: built without MPI"; exit 77; }

mpirun=$(sed -n 's/^MPIEXEC_EXECUTABLE:.*=//p' "$TW_BUILD/CMakeCache.txt")
killed=9  # of a rank that signal 9 ends
[[ $("$mpirun" --version 2>&1) =~ Open\ MPI|OpenRTE ]] && killed=137
export OMPI_MCA_rmaps_base_oversubscribe=1  # more ranks than cores
# what MPI libraries leak is not ours
export ASAN_OPTIONS=detect_leaks=0
failed=0
# expect CODE ERRORS WAY RANKS [all]: mpirun's exit code and the lines of errors, when the test's
# own program ends and when run_program() does; with `all` no rank's last output may be lost
expect() {
  local wanted=$1 errors=$2 way=$3 ranks=$4 all=${5:-} output code as
  for as in "" program; do
    output=$(timeout -k 1 60 "$mpirun" -n "$ranks" "$program" "$way" $as 2>&1 </dev/null)
    code=$?
    if [ "$code" = "$wanted" ] && [ "$(grep -o '\[test\]' <<<"$output" | wc -l)" = "$errors" ]; then
      [ -z "$all" ] && continue
      [ "$(grep -o talked <<<"$output" | wc -l)" = "$ranks" ] && continue
    fi
    echo "$way $as, $ranks ranks, UCX_TLS=${UCX_TLS:-default}: exit code $code, expected $wanted"
    echo "with $errors lines of errors:"
    echo "$output"
    failed=1
  done
}

# one process without mpirun, as under another launcher: its code, and not a line of MPI's
output=$("$program" all_mistaken 2>&1)
code=$?
if [ "$code" != 2 ] || [ "$output" != $'talked\n[test] a mistake on all ranks' ]; then
  echo "one process alone: exit code $code, expected 2; it wrote: $output"
  failed=1
fi
# ranks that are done do not wait for ever for a frozen one
output=$(timeout -k 1 20 "$mpirun" -n 3 "$program" frozen program 2>&1 </dev/null)
code=$?
line='^error: \[mpi\] rank [01] has waited 1 s at the end for rank 2$'
if [ "$code" != 1 ] || ! grep -q "$line" <<<"$output"; then
  echo "a frozen rank at the end: exit code $code, expected 1; it wrote: $output"
  failed=1
fi
for tls in default tcp,self; do
  [ "$tls" = default ] || export UCX_TLS=$tls
  # some hang only now and then
  for _ in 1 2 3 4 5; do expect 0 0 well 4 all; done
  expect 0 0 well 1 all
  expect 2 1 all_mistaken 4 all
  expect 4 1 all_faulty 4 all
  expect 4 2 mixed 4 all
  expect 2 1 one_mistaken 4
  expect 4 1 one_faulty 4
  expect 4 1 last_faulty 4 all
  expect 0 0 all_in_sweep 4 all
  expect 1 1 one_in_sweep 4
  expect 1 0 abort 4
  expect "$killed" 0 killed 4
done
exit $failed
