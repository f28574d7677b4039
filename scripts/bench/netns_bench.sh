#!/usr/bin/env bash
# Runs a program under mpirun on a slow network on one machine. Each node is a network namespace; tc
# limits its link to a rate. Messages use the kernel's TCP. Needs root, mpirun (MPICH), ip and tc.
#
#   sudo scripts/bench/netns_bench.sh [-n NODES] [-p RANKS_PER_NODE] [-r RATE] [-s NODE=RATE]
#                                     [-b BURST] PROGRAM
#   sudo scripts/bench/netns_bench.sh -n 4 -r 1gbit build/bin/bench comm -b 4M -e 4M
#   sudo scripts/bench/netns_bench.sh -n 4 -r 1gbit --compare build/bin/bench comm -b 4M -e 4M
#
# -s gives a node, counted from 0, a rate of its own.
# --compare runs `bench comm ...` twice and prints both: over these links, and over emulated links
# (--link) with the measured latency and the rate less the headers of Ethernet, IP and TCP.
# Without PROGRAM it only reports whether such a network can be created here.
# The links add no latency to that of the kernel (no netem). The first BURST bytes after a pause
# pass at full speed: measure long messages, in loops without pauses.
set -eu

nodes=4 ranks_per_node=1 rate=1gbit slow_node='' slow_rate='' burst=256kb compare=''
while [ $# -gt 0 ]; do
  case $1 in
    -n) nodes=$2; shift 2 ;;
    -p) ranks_per_node=$2; shift 2 ;;
    -r) rate=$2; shift 2 ;;
    -s) slow_node=${2%%=*} slow_rate=${2#*=}; shift 2 ;;
    -b) burst=$2; shift 2 ;;
    --compare) compare=yes; shift ;;
    -h | --help) sed -n '2,16s/^# \{0,1\}//p' "$0"; exit ;;
    --) shift; break ;;
    -*) echo "netns_bench: unknown option $1 (try --help)" >&2; exit 2 ;;
    *) break ;;
  esac
done
if ! { [ "$nodes" -ge 1 ] && [ "$nodes" -le 200 ]; } 2>/dev/null; then
  echo "netns_bench: -n is $nodes; expected 1 to 200 nodes" >&2
  exit 2
fi

if [ -n "$slow_node$slow_rate" ]; then
  if [ "$slow_rate" = "$slow_node" ] ||
    ! { [ "$slow_node" -ge 0 ] && [ "$slow_node" -lt "$nodes" ]; } 2>/dev/null; then
    echo "netns_bench: -s is $slow_node=$slow_rate; expected NODE=RATE, NODE below $nodes" >&2
    exit 2
  fi
fi

missing() { echo "netns_bench: skipped: $1" >&2; exit 77; }
[ "$(id -u)" = 0 ] || missing "network namespaces need root"
for tool in ip tc mpirun; do
  command -v "$tool" >/dev/null || missing "$tool is missing (packages iproute2 and mpich)"
done

# unique names, so that two instances can run at once
id=$$
bridge=twbr$((id % 100000))
space() { echo "tw$id-$1"; }
# an unused network: the third byte from the process id
net=10.213.$((id % 250))

child=
clean() {
  local i
  [ -z "$child" ] || kill "$child" 2>/dev/null || true
  for i in $(seq 1 "$nodes"); do
    ip netns pids "$(space "$i")" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
    ip netns del "$(space "$i")" 2>/dev/null || true  # also deletes its end of the pair
    ip link del "twv$i-$((id % 100000))" 2>/dev/null || true
  done
  ip link del "$bridge" 2>/dev/null || true
  rm -rf "$files"
}
files=$(mktemp -d)
launcher=$files/launcher
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

rate_of() { if [ "$(($1 - 1))" = "$slow_node" ]; then echo "$slow_rate"; else echo "$rate"; fi; }
shape() {
  local i=$1
  shift
  "$@" root tbf rate "$(rate_of "$i")" burst "$burst" latency 50ms
}
ip link add "$bridge" type bridge 2>/dev/null || missing "this kernel cannot create bridges here"
ip addr add "$net.254/24" dev "$bridge"
ip link set "$bridge" up
hosts=
for i in $(seq 1 "$nodes"); do
  outer=twv$i-$((id % 100000))
  ip netns add "$(space "$i")" || missing "this kernel cannot create network namespaces here"
  ip link add "$outer" type veth peer name eth0 netns "$(space "$i")"
  ip link set "$outer" master "$bridge" up
  ip -n "$(space "$i")" addr add "$net.$i/24" dev eth0
  ip -n "$(space "$i")" link set eth0 up
  ip -n "$(space "$i")" link set lo up
  # incoming and outgoing traffic of the node
  shape "$i" tc qdisc replace dev "$outer" || missing "tc has no tbf here"
  shape "$i" ip netns exec "$(space "$i")" tc qdisc replace dev eth0
  hosts=$hosts${hosts:+,}$net.$i
done
[ $# -gt 0 ] || { echo "netns_bench: $nodes nodes at $rate can be created here"; exit 0; }

# replaces ssh: the last byte of the address selects the namespace
cat >"$launcher" <<LAUNCH
#!/usr/bin/env bash
while [ "\${1#-}" != "\$1" ]; do shift; done
node=\${1##*.}; shift
exec ip netns exec tw$id-\$node bash -c "\$*"
LAUNCH
chmod +x "$launcher"
# eager messages: with rendezvous, the small control messages would queue after the data
ranks=$((nodes * ranks_per_node))
over_these_links() {
  mpirun -launcher ssh -launcher-exec "$launcher" -iface "$bridge" -hosts "$hosts" \
    -ppn "$ranks_per_node" -genv UCX_TLS tcp,self -genv UCX_NET_DEVICES eth0 \
    -genv UCX_RNDV_THRESH inf -n "$ranks" "$@" &
  child=$!  # in the background, so that the shell handles a signal at once
  wait "$child"
  child=
}
if [ -z "$compare" ]; then
  over_these_links "$@"
  exit
fi

over_these_links "$@" --csv "$files/real.csv" >"$files/real.txt"
cat "$files/real.txt"
latency=$(sed -n 's/.*alpha \([0-9.]*\) us.*/\1/p' "$files/real.txt" | head -n 1)
# 1448 of 1514 bytes of a frame are payload
link_of() {
  awk -v rate="$1" -v latency="$latency" 'BEGIN {
    unit = tolower(rate); sub(/^[0-9.]+/, "", unit)
    name["bit"] = "bit"; name["kbit"] = "kbit"; name["mbit"] = "Mbit"; name["gbit"] = "Gbit"
    print rate * 1448 / 1514 name[unit] "," latency "us" }'
}
slow=
[ -z "$slow_node" ] || slow="\"$slow_node\": {\"link\": \"$(link_of "$slow_rate")\"}"
echo "{\"link\": \"$(link_of "$rate")\", \"ranks_per_node\": $ranks_per_node, \"nodes\": {$slow}}" \
  >"$files/links.json"
echo
"$@" --workers "$ranks" --link "$files/links.json" --csv "$files/link.csv"
printf '\n%-10s %-8s %12s %12s %12s %8s\n' collective by bytes "real ms" "emulated ms" ratio
awk -F, 'FNR == 1 { next }
  NR == FNR { real[$1, $2, $5] = $6; next }
  ($1, $2, $5) in real {
    printf "%-10s %-8s %12d %12.2f %12.2f %8.2f\n", $1, $2, $5, 1e3 * real[$1, $2, $5], 1e3 * $6,
      $6 / real[$1, $2, $5] }' "$files/real.csv" "$files/link.csv"
