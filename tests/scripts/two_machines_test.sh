#!/usr/bin/env bash
# Four ranks on two machines, started by mpirun over ssh, have the bits of four threads. The
# machines are network namespaces with an sshd each, host names of their own and a key of the test.
# shellcheck source=scripts/lib/common.sh
. scripts/lib/common.sh
build=$(realpath "${TW_BUILD:-build}")
grep -q TW_WITH_MPI "$build/compile_commands.json" || skip "built without MPI"
[[ $(mpirun --version 2>&1) == *HYDRA* ]] || skip "mpirun is not that of MPICH"
[[ $(id -u) == 0 ]] || skip "network namespaces need root"
for tool in ip sshd ssh ssh-keygen unshare; do
  command -v "$tool" >/dev/null || PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null ||
    skip "$tool is missing (packages iproute2, openssh-server, util-linux)"
done
PATH=$PATH:/usr/sbin
work=$(mktemp -d)
id=$((RANDOM % 200))
net=10.214.$id
clean() {
  for i in 1 2; do
    ip netns pids "twm$id-$i" 2>/dev/null | xargs -r kill 2>/dev/null || true
    ip netns del "twm$id-$i" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap clean EXIT

scripts/examples/two_machines.sh --help | grep -q IFACE
HYDRA_LAUNCHER_EXEC=false BIN=$build/bin scripts/examples/two_machines.sh --dry-run \
  a.invalid,b.invalid 3 --model lenet --output-dir "$work" >"$work/plan"
started="$build/bin/train --model lenet --output-dir $work "
grep -qxF "mpirun -launcher ssh -hosts a.invalid\\,b.invalid -ppn 2 -n 3 $started" "$work/plan"
grep -q '^3 ranks x' "$work/plan"

# what is missing is one line and exit code 2, before mpirun waits for it
refused() {
  local text=$1 code=0
  shift
  env "$@" scripts/examples/two_machines.sh nowhere.invalid,host 2 >"$work/said" 2>&1 || code=$?
  [[ $code == 2 ]] && tail -n 1 "$work/said" | grep -qF "$text" && return
  echo "expected exit code 2 and: $text; got $code and:" && cat "$work/said" && exit 1
}
refused "two_machines.sh: $work/train is missing" BIN="$work"
refused 'two_machines.sh: ssh nowhere.invalid fails' BIN="$build/bin" HYDRA_LAUNCHER_EXEC=false

ip netns add "twm$id-1" 2>/dev/null || skip "this kernel cannot create network namespaces here"
ip netns add "twm$id-2"
ip link add eth0 netns "twm$id-1" type veth peer name eth0 netns "twm$id-2" ||
  skip "this kernel cannot create a pair of network devices here"
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
ssh-keygen -q -t ed25519 -N '' -f "$work/host_key"
mkdir -p /run/sshd
for i in 1 2; do
  ip -n "twm$id-$i" addr add "$net.$i/24" dev eth0
  ip -n "twm$id-$i" link set eth0 up
  ip -n "twm$id-$i" link set lo up
  cat >"$work/sshd_$i" <<CONFIG
ListenAddress $net.$i
HostKey $work/host_key
AuthorizedKeysFile $work/key.pub
StrictModes no
PermitRootLogin prohibit-password
UsePAM no
PidFile none
CONFIG
  # a machine has a host name of its own, too
  ip netns exec "twm$id-$i" unshare --uts sh -c "hostname machine$i && exec $(command -v sshd) -D \
    -f $work/sshd_$i -E $work/sshd_log_$i" &
done
# mpirun calls ssh by the path that it is given
cat >"$work/ssh" <<SSH
#!/bin/sh
exec $(command -v ssh) -F none -i $work/key -o StrictHostKeyChecking=no -o LogLevel=ERROR \\
  -o UserKnownHostsFile=/dev/null "\$@"
SSH
chmod +x "$work/ssh"
for i in 1 2; do
  for _ in $(seq 50); do
    ip netns exec "twm$id-1" "$work/ssh" "$net.$i" true 2>/dev/null && continue 2
    sleep 0.1
  done
  echo "no ssh to machine $i" && cat "$work"/sshd_log_* && exit 1
done

options=(--model lenet --dataset shapes --max-steps 5 --epochs 1 --threads-per-rank 1
  --output-dir "$work/runs" --sparsifier topk)
"$build/bin/train" --workers 4 --name threads "${options[@]}" >"$work/log"
cat >"$work/on_machine_1" <<'RUN'
#!/bin/sh
hostname machine1 && exec "$@"
RUN
chmod +x "$work/on_machine_1"
HYDRA_LAUNCHER_EXEC=$work/ssh IFACE=eth0 BIN=$build/bin \
  ip netns exec "twm$id-1" unshare --uts "$work/on_machine_1" \
  scripts/examples/two_machines.sh "$net.1,$net.2" 4 --name ssh "${options[@]}" \
  >"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}
# both machines had ranks
[[ $(grep -c 'Accepted publickey' "$work/sshd_log_2") -ge 3 ]] || {
  echo "no rank on machine 2" && exit 1
}
same_weights "$work"/runs/{ssh,threads} || { echo "other bits than threads" && exit 1; }
