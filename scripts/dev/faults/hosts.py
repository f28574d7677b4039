"""Hosts on one machine: network namespaces whose links end in a switch in user space."""

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from faults import SOURCE
from runs import program_name
from runs.processes import children, send

ID = os.getpid() % 100_000
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
            with contextlib.suppress(OSError):  # the kernel has no such offload
                fcntl.ioctl(control, ETHTOOL, request)
    os._exit(0)


class Network:
    """The hosts, the switch between them, and the launcher that stands in for ssh."""

    def __init__(self, folder, hosts):
        self.switch, self.launcher = None, folder / "launcher"
        self.hosts, self.head = range(1, hosts + 1), hosts + 1  # head: the host of mpirun
        self.nodes = range(1, hosts + 2)
        self.addresses = [f"10.213.77.{node}" for node in self.hosts]

    def open(self):
        """CalledProcessError or OSError if this machine cannot; close() is due also then."""
        ip("netns", "add", space("switch"))
        for node in self.nodes:
            ip("netns", "add", space(node))
            ip("link", "add", f"p{node}", "netns", space("switch"), "type", "veth", "peer", "name",
               "eth0", "netns", space(node))
            ip("-n", space("switch"), "link", "set", f"p{node}", "promisc", "on", "up")
            ip("-n", space(node), "addr", "add", f"10.213.77.{node}/24", "dev", "eth0")
            ip("-n", space(node), "link", "set", "eth0", "up")
            ip("-n", space(node), "link", "set", "lo", "up")
            complete_frames(node)
        for node in self.nodes:
            self.wait_for_link(node)
        ports = [f"p{node}" for node in self.nodes]
        self.switch = subprocess.Popen(
            inside("switch", sys.executable, SOURCE / "scripts/dev/lossy_switch.py", *ports),
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.switch.stdout.readline() != "ready\n":
            raise OSError("the switch does not start")
        self.launcher.write_text("#!/usr/bin/env bash\n"
                                 'while [ "${1#-}" != "$1" ]; do shift; done\n'
                                 "node=${1##*.}\n"
                                 # a host that is there refuses the connection at once
                                 "said=$(LC_ALL=C timeout 5 bash -c \"</dev/tcp/$1/9\" 2>&1)\n"
                                 '[[ $said == *refused* ]] || exit 255\n'
                                 "shift\n"
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
        for node in self.nodes:
            self.tell(f"up p{node}")

    def kill_host(self, node):
        send(subprocess.run(["ip", "netns", "pids", space(node)], capture_output=True, text=True,
                            check=False).stdout.split())

    def mpirun(self, *words):
        """The words of mpirun, which starts ranks on the hosts that `words` name."""
        return inside(self.head, "mpirun", "-launcher", "ssh", "-launcher-exec", self.launcher,
                      "-iface", "eth0", "-genv", "UCX_TLS", "tcp,self", "-genv",
                      "UCX_NET_DEVICES", "eth0", *words)

    def close(self):
        for node in [*self.nodes, "switch"]:
            self.kill_host(node)
            subprocess.run(["ip", "netns", "del", space(node)], check=False, capture_output=True)
        if self.switch:
            self.switch.wait()


@contextlib.contextmanager
def opened(hosts):
    """A network, and a folder on a small disk. Ends the script with exit code 77 where these cannot
    be made."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as name:
        network, disk = Network(Path(name), hosts), Path(name) / "disk"
        try:
            try:
                network.open()
                disk.mkdir()
                subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", disk], check=True,
                               capture_output=True)
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"{program_name()}: skipped: {error}", file=sys.stderr)
                sys.exit(77)
            yield network, disk
        finally:
            send(children(os.getpid()))
            network.close()
            subprocess.run(["umount", "-l", disk], check=False, capture_output=True)
