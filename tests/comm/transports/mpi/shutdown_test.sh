#!/usr/bin/env bash
# Every way a run under mpirun can end: it ends, with the right exit code, on shared memory and TCP.
set -u
program=$TW_BUILD/bin/mpi_shutdown
[ -x "$program" ] || { echo "skipped: built without MPI"; exit 77; }

mpirun=$(sed -n 's/^MPIEXEC_EXECUTABLE:.*=//p' "$TW_BUILD/CMakeCache.txt")
killed=9  # of a rank that signal 9 ends
"$mpirun" --version 2>&1 | grep -qE 'Open MPI|OpenRTE' && killed=137
export OMPI_MCA_rmaps_base_oversubscribe=1  # more ranks than cores
# what MPI libraries leak is not ours
export ASAN_OPTIONS=detect_leaks=0
failed=0
# expect CODE WAY RANKS [all]: mpirun's exit code; with `all` no rank's last output may be lost
expect() {
  local wanted=$1 way=$2 ranks=$3 all=${4:-} output code
  output=$(timeout -k 1 60 "$mpirun" -n "$ranks" "$program" "$way" 2>&1 </dev/null)
  code=$?
  if [ "$code" = "$wanted" ]; then
    [ -z "$all" ] && return
    [ "$(grep -o talked <<<"$output" | wc -l)" = "$ranks" ] && return
  fi
  echo "$way, $ranks ranks, UCX_TLS=${UCX_TLS:-default}: exit code $code, expected $wanted"
  echo "$output"
  failed=1
}

# one process without mpirun, as under another launcher: its code, and not a line of MPI's
output=$("$program" all_mistaken 2>&1)
code=$?
if [ "$code" != 2 ] || [ "$output" != talked ]; then
  echo "one process alone: exit code $code, expected 2; it wrote: $output"
  failed=1
fi
for tls in default tcp,self; do
  [ "$tls" = default ] || export UCX_TLS=$tls
  # some hang only now and then
  for _ in 1 2 3 4 5; do expect 0 well 4 all; done
  expect 0 well 1 all
  expect 2 all_mistaken 4 all
  expect 2 mixed 4 all
  expect 2 one_mistaken 4
  expect 1 abort 4
  expect "$killed" killed 4
done
exit $failed
