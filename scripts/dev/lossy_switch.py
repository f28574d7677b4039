#!/usr/bin/env python3
"""lossy_switch.py PORT...: a network switch in user space, for network namespaces.

Forwards Ethernet frames between the interfaces PORT... of its namespace. Frames can be lost,
delayed and cut off, which needs no netem in the kernel. Reads a command per line, answers `ok`:

  loss SHARE JITTER   loses this share of all frames, and delays each by up to JITTER seconds
  down PORT           forwards nothing from and to PORT;  up PORT: forwards again
  reset PORT          ends every TCP connection of PORT, as a router that has lost its state does
  counts              answers `FORWARDED LOST` instead of ok

broken_networks.py starts it. Needs root. Ends with its input.
"""
import heapq
import random
import selectors
import socket
import struct
import sys
import time

ALL_PROTOCOLS, TCP, RST_ACK = 3, 6, 0x14


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def reset_after(frame):
    """A frame that resets the TCP connection of `frame` at its receiver; None for other frames."""
    if len(frame) < 54 or frame[12:14] != b"\x08\0" or frame[23] != TCP:
        return None
    header = (frame[14] & 15) * 4
    at = 14 + header
    source, target, sequence, acknowledged, offset = struct.unpack("!HHIIB", frame[at:at + 13])
    length = int.from_bytes(frame[16:18], "big") - header - (offset >> 4) * 4
    after = (sequence + length) & 0xFFFFFFFF
    ends = frame[26:34]
    tcp = struct.pack("!HHIIBBHHH", source, target, after, acknowledged, 5 << 4, RST_ACK, 0, 0, 0)
    total = checksum(ends + struct.pack("!BBH", 0, TCP, len(tcp)) + tcp)
    tcp = tcp[:16] + struct.pack("!H", total) + tcp[18:]
    packet = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, TCP, 0) + ends
    packet = packet[:10] + struct.pack("!H", checksum(packet)) + packet[12:]
    return frame[:14] + packet + tcp


class Switch:
    """Ports, learned addresses, and the faults that the commands ask for."""

    def __init__(self, names):
        self.ports = {}
        for name in names:
            port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
            port.bind((name, 0))
            port.setblocking(False)
            self.ports[name] = port
        self.home = {}  # hardware address: port
        self.down, self.resetting = set(), set()
        self.loss, self.jitter = 0.0, 0.0
        self.random = random.Random(1)
        self.waiting, self.number = [], 0
        self.forwarded = self.lost = 0

    def arrive(self, name):
        """Takes the frames that wait at a port."""
        while True:
            try:
                frame, where = self.ports[name].recvfrom(65536)
            except BlockingIOError:
                return
            except OSError:
                return  # the interface is gone
            if where[2] == socket.PACKET_OUTGOING:
                continue
            self.home[frame[6:12]] = name
            to = self.home.get(frame[:6])
            for target in [to] if to else [port for port in self.ports if port != name]:
                self.pass_on(name, target, frame)

    def pass_on(self, name, target, frame):
        if {name, target} & self.down or self.random.random() < self.loss:
            self.lost += 1
            return
        if {name, target} & self.resetting and (reset := reset_after(frame)):
            frame = reset
        self.forwarded += 1
        self.number += 1
        delay = self.random.random() * self.jitter
        heapq.heappush(self.waiting, (time.monotonic() + delay, self.number, target, frame))

    def deliver(self):
        """Sends the frames that are due; returns the seconds until the next one, or None."""
        while self.waiting:
            due, _, target, frame = self.waiting[0]
            if (wait := due - time.monotonic()) > 0:
                return wait
            heapq.heappop(self.waiting)
            try:
                self.ports[target].send(frame)
            except OSError:
                self.lost += 1  # the receiver is gone or its queue is full
        return None

    def command(self, words):
        """Does what a line asks for; returns the answer."""
        if words[0] == "loss":
            self.loss, self.jitter = float(words[1]), float(words[2])
        elif words[0] == "down":
            self.down.add(words[1])
        elif words[0] == "up":
            self.down.discard(words[1])
            self.resetting.discard(words[1])
        elif words[0] == "reset":
            self.resetting.add(words[1])
        elif words[0] == "counts":
            return f"{self.forwarded} {self.lost}"
        else:
            return f"unknown command {words[0]}"
        return "ok"

    def run(self):
        selector = selectors.DefaultSelector()
        for name, port in self.ports.items():
            selector.register(port, selectors.EVENT_READ, name)
        selector.register(sys.stdin, selectors.EVENT_READ, None)
        print("ready", flush=True)
        while True:
            for key, _ in selector.select(self.deliver()):
                if key.data is not None:
                    self.arrive(key.data)
                    continue
                line = sys.stdin.readline()
                if not line:
                    return
                print(self.command(line.split()), flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        sys.exit(0 if len(sys.argv) > 1 else 2)
    Switch(sys.argv[1:]).run()
