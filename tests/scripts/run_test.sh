#!/usr/bin/env bash
# thinwire run: faults of ranks, launchers and disks end with the bits of a run left alone; errors
# that a retry does not cure end it; progress begins the count anew; hosts that do not answer are
# left out, and a step keeps its images.
# shellcheck source=scripts/lib/common.sh
. scripts/lib/common.sh
# shellcheck source=tests/support/programs/said.sh
. tests/support/programs/said.sh
bin=$(realpath "${TW_BUILD:-build}/bin")
export THINWIRE_BIN=$bin
options=(--model mlp --dataset shapes --batch-size 8 --epochs 100 --max-steps 600 --lr 0.01
  --checkpoint-steps 60 --keep-checkpoints 0 --eval-every never --threads-per-rank 1 --quiet
  --output-dir "$work/runs")

# a launcher: faulty FAULT TIMES RUN COMMAND... is COMMAND, with a fault in its first starts:
# rank, launcher: SIGKILL when RUN has a new checkpoint; early: at once; disk: full; hung: goes on
# without a look at the end of its process; unborn: ends by SIGTERM with 0, before it has a process
cat >"$work/faulty" <<'FAULTY'
#!/usr/bin/env bash
fault=$1 times=$2 run=$3
shift 3
echo start >>"$run.starts"
(($(wc -l <"$run.starts") > times)) && exec "$@"
newest() { ls "$run/checkpoints" 2>/dev/null | tail -n 1; }
before=$(newest)
strike() {
  until [[ $(newest) != "$before" ]]; do sleep 0.01; done
  rank=$(pgrep -x train -P "$(pgrep -d , -P $$)" | tail -n 1)  # of mpirun; else this process
  [[ $fault == rank && $rank ]] || rank=$$
  kill -KILL "$rank"
}
case $fault in
  disk) ulimit -f 8 ;;
  early) kill -KILL $$ ;;
  unborn) trap "exit 0" TERM; mkdir -p "$run.x/checkpoints/step-0"; while sleep 0.1; do :; done ;;
  hung) exec python3 -c 'import subprocess, time
child = subprocess.Popen("true")  # held: Python waits for the end of one that it lets go
time.sleep(100)' ;;
  rank | launcher) strike & ;;
esac
exec "$@"
FAULTY
chmod +x "$work/faulty"

# run CODE NAME STARTS OPTIONS... -- COMMAND...: the exit code of thinwire run and how often it
# started the command, by the lines of faulty
run() {
  local wanted=$1 name=$2 starts=$3 code=0
  shift 3
  scripts/thinwire run --backoff 0 "$@" --name "$name" "${options[@]}" >"$work/said" 2>&1 || code=$?
  [[ $code == "$wanted" && $(wc -l <"$work/runs/$name.starts") == "$starts" ]] && return
  echo "$name: expected exit code $wanted after $starts starts; got $code after:"
  cat "$work/runs/$name.starts" "$work/said"
  exit 1
}
same_bits() {
  same_weights "$work/runs/$1" "$work/runs/alone" || { echo "$1: other bits" && exit 1; }
}
faulty() { echo "$work/faulty" "$1" "$2" "$work/runs/$3"; }
mkdir "$work/runs"
threads=("$bin/train" --workers 2)

"${threads[@]}" --name alone "${options[@]}"

# two faults, each after a new checkpoint, take one retry each; two at once are too many
read -ra launcher <<<"$(faulty rank 2 killed)"
run 0 killed 3 --retries 1 -- "${launcher[@]}" "${threads[@]}"
same_bits killed
grep -q ': start 1$' "$work/runs/killed/run.log"
expect "$work/said" 'start 1 ended after '
grep -q ': start 3 ended after .* with exit code 0: finished$' "$work/runs/killed/run.log"
expect "$work/runs/killed/run.log" 'with exit code 137 (SIGKILL); retry 1 of 1 in 0 s'
expect "$work/runs/killed/run.log" ' after the end, newest is step-0'
read -ra launcher <<<"$(faulty early 3 early)"
run 137 early 2 --retries 1 -- "${launcher[@]}" "${threads[@]}"
expect "$work/said" 'with exit code 137 (SIGKILL): retries without a new checkpoint: 1'

read -ra launcher <<<"$(faulty disk 1 disk)"
run 0 disk 2 --retries 1 -- "${launcher[@]}" "${threads[@]}"
same_bits disk
expect "$work/runs/disk/run.log" 'with exit code 1; retry 1 of 1'

# standard error is a file on the full disk
read -ra launcher <<<"$(faulty rank 1 unheard)"
scripts/thinwire run --backoff 0 -- "${launcher[@]}" "${threads[@]}" --name unheard \
  "${options[@]}" >/dev/null 2>/dev/full
same_bits unheard
expect "$work/runs/unheard/run.log" 'retry 1 of 3'

# until it starts again, the run waits; its log begins with the first start
read -ra launcher <<<"$(faulty rank 1 waits)"
scripts/thinwire run --backoff 3 -- "${launcher[@]}" "${threads[@]}" --name waits "${options[@]}" \
  >"$work/said" 2>&1 &
until grep -qs 'retry 1 of 3' "$work/runs/waits/run.log"; do sleep 0.1; done
scripts/list_runs.py "$work/runs" >"$work/list"
wait $!
grep -q '^waiting .* waits ' "$work/list"
same_bits waits
head -n 1 "$work/runs/waits/run.log" | grep -q 'start 1$'
scripts/list_runs.py "$work/runs" | grep -q '^finished .* waits '

# a process of another machine is in the folder for longer than UNLOCK
mkdir "$work/runs/held" && : >"$work/said"
flock "$work/runs/held" timeout 60 \
  bash -c "until grep -q 'still in the run folder' $work/said; do sleep 0.1; done" &
read -ra launcher <<<"$(faulty early 1 held)"
PYTHONPATH=scripts python3 -c 'import run; run.UNLOCK = 0; run.script(run.main)' --backoff 1 -- \
  "${launcher[@]}" "${threads[@]}" --name held "${options[@]}" >"$work/said" 2>&1 ||
  { echo "held: exit code $?" && cat "$work/said" && exit 1; }
same_bits held
expect "$work/said" 'a process of another machine is still in the run folder'

read -ra launcher <<<"$(faulty hung 1 hung)"
PYTHONPATH=scripts python3 -c 'import run; run.processes.GONE = 2; run.script(run.main)' \
  --backoff 0 -- "${launcher[@]}" "${threads[@]}" --name hung "${options[@]}" >"$work/said" 2>&1
same_bits hung
expect "$work/said" 'with exit code 137 (SIGKILL); retry 1 of 3'

# what a retry does not cure
read -ra launcher <<<"$(faulty none 0 wrong)"
run 2 wrong 1 -- "${launcher[@]}" "${threads[@]}" --density 2
read -ra launcher <<<"$(faulty none 0 far)"
options=("${options[@]/0.01/1e9}")
run 4 far 1 -- "${launcher[@]}" "${threads[@]}"
options=("${options[@]/1e9/0.01}")
expect "$work/said" 'numbers that are not finite'

# a signal is passed on; the same command continues the run, or begins one that never began
for name in term unborn; do
  read -ra launcher <<<"$(faulty "$name" 1 "$name")"
  scripts/thinwire run -- "${launcher[@]}" "${threads[@]}" --name "$name" "${options[@]}" \
    >"$work/said" 2>&1 &
  until compgen -G "$work/runs/$name*/checkpoints/step-*" >/dev/null; do sleep 0.01; done
  kill -TERM $!
  code=0
  wait $! || code=$?
  [[ $code == 3 ]] || { echo "after SIGTERM: exit code $code" && cat "$work/said" && exit 1; }
  run 0 "$name" 2 -- "${launcher[@]}" "${threads[@]}"
  same_bits "$name"
done

refuses 'unknown flag -n; -- is missing before the command' scripts/thinwire run mpirun -n 2 train
refuses 'the command has no --name' scripts/thinwire run -- train --workers 2
refuses 'no word of the command is train' scripts/thinwire run -- mpirun -n 2
refuses 'the command lacks {hostfile}' \
  scripts/thinwire run --hosts <(echo a) -- mpirun -n '{ranks}' train --name a
refuses 'line 2: expected host, host:slots or host slots=N; found b c' \
  scripts/thinwire run --hosts <(printf 'a\nb c\n') -- train --name '{ranks}'

PYTHONPATH=scripts python3 -B - "$work/commands" <<'PY'
import fcntl, os, sys
from pathlib import Path
from run import Journal
from runs.command import Command

runs = Path(sys.argv[1])
for name in ("night-s1", "night-s2", "night-gpu"):
    (runs / name).mkdir(parents=True)
to = ["--output-dir", sys.argv[1]]
seeds = Command(["train", "--name", "day", "--name", "night", "--seeds", "1,2", *to])
assert [path.name for path in seeds.folders()] == ["night-s1", "night-s2"], seeds.folders()
# a name in the file of --config makes a branch, unless it is that of the run
for name, folder in (("night", "night-s1"), ("night-s1", "night-s1"), ("branch", "branch")):
    (runs / "c.json").write_text(f'{{"name": "{name}", "output_dir": "{runs}"}}')
    (runs / "night-s1/config.json").write_text("{}")
    command = Command(["train", "--config", str(runs / "c.json"), "--resume",
                       str(seeds.folders()[0])])
    assert command.folder == runs / folder, (name, command.folder)
# a run that another process trains keeps its log
fcntl.flock(os.open(runs / "night-gpu", os.O_RDONLY), fcntl.LOCK_EX)
with open(runs / "night-gpu/run.log", "a") as log:
    print("epoch 1", file=log, flush=True)
    Journal(Command(["train", "--name", "night-gpu", *to])).line("start 1")
    print("epoch 2", file=log)
lines = (runs / "night-gpu/run.log").read_text().splitlines()
assert lines[0] == "epoch 1" and lines[-1] == "epoch 2" and len(lines) == 3, lines
PY

# images, largest micro-batch, ranks: micro-batch and their number of each rank
PYTHONPATH=scripts python3 - <<'PY'
from runs.hosts import spread
for given, wanted in (((128, 32, 4), (32, 1)), ((128, 32, 2), (32, 2)), ((96, 32, 1), (32, 3)),
                      ((192, 32, 4), (24, 2)), ((128, 32, 3), (21, 2)), ((4, 1, 3), (1, 1)),
                      ((122, 32, 2), (30, 2)), ((2, 1, 4), (1, 1))):
    assert spread(*given) == wanted, (given, spread(*given), wanted)
PY

grep -q TW_WITH_MPI "$TW_BUILD/compile_commands.json" &&
  [[ $(mpirun --version 2>&1) == *HYDRA* ]] || exit 0
for fault in rank launcher; do
  read -ra launcher <<<"$(faulty "$fault" 1 "mpi-$fault")"
  run 0 "mpi-$fault" 2 --retries 1 -- "${launcher[@]}" mpirun -n 2 "$bin/train"
  same_bits "mpi-$fault"
  expect "$work/runs/mpi-$fault/run.log" 'after a kill: thinwire run --backoff 0 --retries 1 -- '
done

# two of four ranks are left, with twice the micro-batches
printf 'localhost:2\nghost:2\n' >"$work/hosts"
read -ra launcher <<<"$(faulty none 0 hosts)"
on_hosts=(--hosts "$work/hosts" --probe 'test {host} != ghost')
mkdir "$work/bin"
cat >"$work/bin/train" <<TRAIN
#!/usr/bin/env bash
# is killed once when it is asked for its options
[[ \$1 == --describe && ! -e $work/asked ]] && touch "$work/asked" && kill -KILL \$\$
exec "$bin/train" "\$@"
TRAIN
chmod +x "$work/bin/train"
mpirun=(mpirun -f '{hostfile}' -n '{ranks}' "$work/bin/train")
options=("${options[@]/600/5}")
run 0 hosts 1 "${on_hosts[@]}" -- "${launcher[@]}" "${mpirun[@]}"
expect "$work/said" 'no answer: ghost; left are 2 of 4 ranks'
expect "$work/said" \
  '2 ranks: --batch-size 8 --accumulate 2, 32 images a step, as before; the rate stays'
expect "$work/runs/hosts/config.json" '"ranks": 2'
expect "$work/runs/hosts/config.json" '"accumulate": 2'
touch "$work/runs/few.starts"
run 1 few 0 "${on_hosts[@]}" --min-ranks 3 --retries 1 -- "${mpirun[@]}"
expect "$work/said" '2 ranks are left; --min-ranks is 3'
