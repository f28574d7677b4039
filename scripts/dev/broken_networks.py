#!/usr/bin/env python3
"""Trains over real TCP between network namespaces while the network breaks in different ways.

  sudo scripts/dev/broken_networks.py [--train PROGRAM] [--timeout S] [CASE...]

Each rank is a host of its own: a namespace whose only link ends in a switch in user space
(lossy_switch.py), which loses, delays and cuts off frames. A case breaks the network at a step of
the run. A run that the network lets live must end with the weights of a run left alone; any other
must end within the timeout, in one line that names a rank, and then resume to these weights.
Prints a row per case. Exit code 1 when a case fails, 77 when namespaces cannot be made here.

Needs root and MPICH's mpirun. All namespaces and addresses are the script's own; it removes them.
"""
import argparse
import ctypes
import fcntl
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

RANKS = 3
STEPS = 60
ID = os.getpid() % 100_000
HERE = pathlib.Path(__file__).resolve().parent
HEAD = RANKS + 1  # the host of mpirun
# SIOCETHTOOL, and its commands that turn off checksums and segmentation by the hardware: frames
# must be complete when they leave a host
ETHTOOL, OFFLOADS = 0x8946, (0x17, 0x1F, 0x24, 0x26, 0x2C)
NEW_NETWORK = 0x40000000


def space(node):
    return f"tw{ID}-{node}"


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, text=True)


def inside(node, *words):
    return ["ip", "netns", "exec", space(node), *map(str, words)]


def complete_frames(node):
    """Turns off the offloads of a host's link, in a child that has entered its namespace."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    with open(f"/run/netns/{space(node)}", "rb") as network:
        ctypes.CDLL(None).setns(network.fileno(), NEW_NETWORK)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in OFFLOADS:
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sP8x", b"eth0", ctypes.addressof(value))
            try:
                fcntl.ioctl(control, ETHTOOL, request)
            except OSError:
                pass  # the kernel has no such offload
    os._exit(0)


class Network:
    """The hosts, the switch between them, and the launcher that stands in for ssh."""

    def __init__(self, folder):
        self.switch, self.launcher = None, folder / "launcher"

    def open(self):
        """CalledProcessError or OSError if this machine cannot; close() is due also then."""
        ip("netns", "add", space("switch"))
        for node in range(1, HEAD + 1):
            ip("netns", "add", space(node))
            ip("link", "add", f"p{node}", "netns", space("switch"), "type", "veth", "peer", "name",
               "eth0", "netns", space(node))
            ip("-n", space("switch"), "link", "set", f"p{node}", "promisc", "on", "up")
            ip("-n", space(node), "addr", "add", f"10.213.77.{node}/24", "dev", "eth0")
            ip("-n", space(node), "link", "set", "eth0", "up")
            ip("-n", space(node), "link", "set", "lo", "up")
            complete_frames(node)
        for node in range(1, HEAD + 1):
            self.wait_for_link(node)
        ports = [f"p{node}" for node in range(1, HEAD + 1)]
        self.switch = subprocess.Popen(
            inside("switch", sys.executable, HERE / "lossy_switch.py", *ports), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.switch.stdout.readline() != "ready\n":
            raise OSError("the switch does not start")
        self.launcher.write_text("#!/usr/bin/env bash\n"
                                 'while [ "${1#-}" != "$1" ]; do shift; done\n'
                                 "node=${1##*.}; shift\n"
                                 f'exec ip netns exec tw{ID}-$node bash -c "$*"\n')
        self.launcher.chmod(0o755)

    def wait_for_link(self, node):
        """The kernel reports a new link a moment after both of its ends are up."""
        state = ["ip", "-n", space(node), "link", "show", "eth0"]
        for _ in range(200):
            if "state UP" in subprocess.run(state, check=True, capture_output=True,
                                            text=True).stdout:
                return
            time.sleep(0.05)
        raise OSError(f"the link of host {node} does not come up")

    def tell(self, command):
        self.switch.stdin.write(command + "\n")
        self.switch.stdin.flush()
        return self.switch.stdout.readline().strip()

    def heal(self):
        self.tell("loss 0 0")
        for node in range(1, HEAD + 1):
            self.tell(f"up p{node}")

    def kill_host(self, node, number=signal.SIGKILL):
        pids = subprocess.run(["ip", "netns", "pids", space(node)], capture_output=True, text=True,
                              check=False).stdout.split()
        for pid in pids:
            try:
                os.kill(int(pid), number)
            except ProcessLookupError:
                pass

    def command(self, program, flags):
        hosts = ",".join(f"10.213.77.{node}" for node in range(1, RANKS + 1))
        return inside(HEAD, "mpirun", "-launcher", "ssh", "-launcher-exec", self.launcher, "-iface",
                      "eth0", "-hosts", hosts, "-ppn", 1, "-genv", "UCX_TLS", "tcp,self", "-genv",
                      "UCX_NET_DEVICES", "eth0", "-n", RANKS, program, *flags)

    def close(self):
        for node in [*range(1, HEAD + 1), "switch"]:
            self.kill_host(node)
            subprocess.run(["ip", "netns", "del", space(node)], check=False, capture_output=True)
        if self.switch:
            self.switch.wait()


def down_and_up(network):
    network.tell("down p2")
    time.sleep(3)
    network.tell("up p2")


def vanish(network):
    network.tell("down p3")  # first, so that nobody hears of the end of its processes
    network.kill_host(3)


# name: what breaks the network, whether the run must live
CASES = {
    "nothing": (lambda network: None, True),
    "link down for 3 s": (down_and_up, True),
    "5 % loss, 200 ms jitter": (lambda network: network.tell("loss 0.05 0.2"), True),
    "link down": (lambda network: network.tell("down p2"), False),
    "connections reset": (lambda network: network.tell("reset p2"), False),
    "host vanishes": (vanish, False),
}


class Trainer:
    """Starts train on all hosts and waits for its end."""

    def __init__(self, args, network, folder):
        self.network, self.folder, self.timeout = network, folder, args.timeout
        self.flags = ["--model", "lenet", "--batch-size", 2, "--max-steps", STEPS, "--val-size", 64,
                      "--sparsifier", "topk", "--density", 0.01, "--threads-per-rank", 1,
                      "--eval-every", "never", "--checkpoint-steps", 10, "--comm-timeout",
                      args.timeout, "--output-dir", folder]
        self.program = os.path.abspath(args.train)

    def start(self, name, *more):
        out = (self.folder / f"{name}.out").open("w")
        return subprocess.Popen(self.network.command(self.program,
                                                     [*self.flags, "--name", name, *more]),
                                stdout=out, stderr=subprocess.STDOUT, start_new_session=True)

    def end(self, process, name, limit):
        """(exit code or None if it had to be killed, what it printed)"""
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for node in range(1, RANKS + 1):
            self.network.kill_host(node)
        return code, (self.folder / f"{name}.out").read_text(errors="replace")

    def hash_of(self, name):
        summary = self.folder / name / "summary.json"
        return json.loads(summary.read_text())["weights_hash"] if summary.exists() else None

    def wait_for_step(self, name, step):
        table = self.folder / name / "checkpoints"
        while not any(table.glob(f"step-{step:08}")):
            time.sleep(0.05)


def line_of(output):
    """The line that tells why a run ended, without what the launcher adds."""
    lines = re.findall(r"(?:error: |UCX +ERROR |\[[a-z/-]+\] rank ).*", output)
    told = [line for line in lines if "rank" in line]
    return (told or lines or [output.strip().splitlines()[-1] if output.strip() else "nothing"])[0]


def run_case(case, trainer, expected):
    """Prints the row of a case; returns whether it holds."""
    break_network, lives = CASES[case]
    name = re.sub(r"\W+", "-", case)
    process = trainer.start(name)
    trainer.wait_for_step(name, 10)
    start = time.monotonic()
    break_network(trainer.network)
    code, output = trainer.end(process, name, 600 if lives else trainer.timeout + 15)
    seconds = time.monotonic() - start
    trainer.network.heal()
    if lives:
        good, result = code == 0 and trainer.hash_of(name) == expected, "the same weights"
    else:
        line = line_of(output)
        again = trainer.start(name, "--resume", "auto")
        resumed, _ = trainer.end(again, name, 600)
        good = (code not in (0, None) and seconds < trainer.timeout + 5 and "rank" in line
                and resumed == 0 and trainer.hash_of(name) == expected)
        result = f"{line[:110]}; resumed: {resumed}"
    print(f"{case:<24} {seconds:>6.1f} s  exit {code!s:<4}  {'ok  ' if good else 'FAIL'}  {result}",
          flush=True)
    if not good:
        print(output[-1500:])
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", default="build/bin/train")
    parser.add_argument("--timeout", type=float, default=10)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    args = parser.parse_args()
    if unknown := [case for case in args.cases if case not in CASES]:
        parser.error(f"unknown case {unknown[0]}")
    if os.geteuid() != 0:
        print("broken_networks: skipped: network namespaces need root", file=sys.stderr)
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        network = Network(folder)
        try:
            try:
                network.open()
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"broken_networks: skipped: {error}", file=sys.stderr)
                return 77
            trainer = Trainer(args, network, folder)
            code, output = trainer.end(trainer.start("alone"), "alone", 300)
            if code != 0:
                print(f"the run left alone ended with {code}:\n{output}")
                return 1
            expected = trainer.hash_of("alone")
            return 0 if all([run_case(case, trainer, expected)
                             for case in args.cases or CASES]) else 1
        finally:
            network.close()


if __name__ == "__main__":
    sys.exit(main())
