#!/usr/bin/env bash
# gpu_check.sh with a bundle of programs that never end: each group of parts ends in its time and
# leaves its report as an archive, with what had finished; so does a call that is stopped.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*" && exit 1; }

# a bundle of scripts/bundle.sh, of programs that do nothing
mkdir -p "$work/build/bin" "$work/toolkit/bin"
for name in train bench test_engine_cuda test_sparsify_cuda; do
  cp /bin/true "$work/build/bin/$name"
done
scripts/bundle.sh "$work/build" "$work/bundle" >/dev/null
tar -tf "$work/bundle.tar.xz" | grep -x bundle/bin/train >/dev/null || fail "no program is packed"

# env.sh finds the tools of the toolkit
cp /bin/true "$work/toolkit/bin/compute-sanitizer"
(
  export CUDA_HOME=$work/toolkit
  # shellcheck source=/dev/null
  . "$work/bundle/env.sh"
  [[ $(command -v compute-sanitizer) == "$work/toolkit/bin/compute-sanitizer" ]]
) || fail "env.sh does not find compute-sanitizer"

# now with programs that never end, except where a line says so; stubborn ones need a kill
program() {
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$1"
  chmod +x "$1"
}
stubborn='trap "" TERM; echo $$ >>'"$work/pids"'; while :; do sleep 1; done'
hangs='exec sleep 1000'
bin=$work/bundle/bin
program "$bin/test_engine_cuda" 'echo "[       OK ] A.B (1 ms)"'
program "$bin/test_sparsify_cuda" "$stubborn"
program "$bin/train" "$hangs"
program "$work/toolkit/bin/compute-sanitizer" "$stubborn"
program "$bin/bench" "case \$1 in
  --version) ;;
  --describe)
    echo '{\"build\": {\"commit\": \"1\", \"date\": \"2\", \"compiler\": \"3\", \"cpu\": \"4\"}}' ;;
  step) echo '{\"images_per_s\": 5, \"graph_launches_per_step\": 1, \"host_syncs_per_step\": 0}' ;;
  *) $stubborn ;;
esac"
# a driver and an import of PyTorch that hang
program "$work/toolkit/bin/nvidia-smi" "$hangs"
# PyTorch: the first mode is measured, its next one is compiled for ever
program "$work/python" "case \$1 in
  -c)
    [[ \$2 != *PyTorch* ]] || $hangs
    echo 2.0 ;;
  *torch_step.py)
    echo ready
    [[ \$* != *--compile* ]] || $hangs
    while read -r; do echo '{\"images_per_s\": 4}'; done ;;
  *) exec python3 \"\$@\" ;;
esac"

# check NAME OPTION...: gpu_check.sh with the bundle
check() {
  local name=$1
  shift
  CUDA_HOME=$work/toolkit exec scripts/gpu_check.sh --bundle "$work/bundle" \
    --output "$work/$name" --python "$work/python" "$@" >"$work/$name.txt" 2>&1
}
# timed NAME OPTION...: the same with 15 s; leaves seconds and exit code
timed() {
  local code=0
  (check "$@" --minutes 0.25) || code=$?
  echo "$SECONDS" >"$work/$1.seconds"
  echo "$code" >"$work/$1.code"
}
SECONDS=0
timed tests --only tests,train &
timed select --only select,workers,comm &
timed bench --only bench --setup resnet20 &
timed sanitize --only sanitize &
check stopped --only sanitize &
stopped=$!
sleep 4
kill -TERM "$stopped"
code=0
wait "$stopped" || code=$?
[[ $code == 143 && -f $work/stopped.tar.gz ]] || fail "stopped: exit code $code"
((SECONDS < 12)) || fail "stopped after $SECONDS s"
wait

limit=23  # 15 s, and what a busy machine takes to start processes
for name in tests select bench sanitize; do
  seconds=$(cat "$work/$name.seconds")
  ((seconds <= limit)) || fail "$name: $seconds s"
  [[ $(cat "$work/$name.code") != 0 ]] || fail "$name: programs that never end passed"
  [[ -f $work/$name.tar.gz ]] || { cat "$work/$name.txt" && fail "$name: no archive"; }
done

# from_archive NAME FILE
from_archive() { tar -xOf "$work/$1.tar.gz" "$1/$2"; }
# has NAME FILE PATTERN
has() { from_archive "$1" "$2" | grep "$3" >/dev/null; }
has tests tests.csv '^test_engine_cuda,1,0,0,0,' || fail "a test that passed"
has tests tests.csv '^test_sparsify_cuda,0,0,0,137,' || fail "a killed test"
from_archive bench bench-resnet20-128.json | python3 -c '
import json, sys
modes = [entry["mode"] for entry in json.load(sys.stdin)]
sys.exit(modes != ["thinwire bf16", "torch bf16 channels_last graph"])' || fail "not every mode"
! tar -tf "$work/bench.tar.gz" | grep vgg16 >/dev/null || fail "a setup that was not asked for"
has bench machine.txt '^nvidia-smi: exit code 124' || fail "nvidia-smi is not stopped"
has bench machine.txt 'python: exit code 124' || fail "the import of PyTorch is not stopped"
has bench limits.csv 'resnet20, batch 128.*,yes' || fail "the limits of a setup"
! has bench limits.csv vgg16 || fail "limits of another setup"
[[ $(from_archive sanitize sanitize.csv | wc -l) == 7 ]] || fail "a suite has no time"

# nothing goes on; an ended process may still be listed as a zombie
while read -r pid; do
  [[ $(ps -o stat= -p "$pid" || true) != [!Z]* ]] || fail "process $pid is left"
done <"$work/pids"
