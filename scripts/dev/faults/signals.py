"""A training run that is sent signals at a given moment."""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 60  # seconds within which a run with a fault must have ended
GONE = 15  # seconds within which no process may be left after that

# the signals of each kind, in turn
KINDS: dict[str, list] = {
    "kill": [signal.SIGKILL],
    "pause": [signal.SIGSTOP, 0.3, signal.SIGCONT],
    "term": [signal.SIGTERM],
    "terms": [signal.SIGTERM, signal.SIGTERM],
    "term-term": [signal.SIGTERM, 0.02, signal.SIGTERM],
    "term-kill": [signal.SIGTERM, 0.02, signal.SIGKILL],
    "freeze": [signal.SIGSTOP],  # for good: one of several processes
}


@dataclass(frozen=True)
class Fault:
    """`kind` for `target` (all, launcher, or a rank) at `moment`: c57, the 57th call of rank 0 that
    concerns the disk, or t0.4, at that share of the seconds of a run without a fault."""

    kind: str
    target: str
    moment: str

    def __str__(self):
        return f"{self.kind}.{self.target}@{self.moment}"

    @staticmethod
    def parse(text):
        kind, rest = text.split(".", 1)
        target, moment = rest.split("@")
        if kind not in KINDS:
            raise ValueError(f"unknown fault {kind}; known: {', '.join(KINDS)}")
        return Fault(kind, target, moment)


def state_of(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "X"


def children(pid):
    """The processes below `pid`, the oldest first."""
    found = []
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return found
    for child in map(int, below):
        found += [child, *children(child)]
    return found


def is_rank(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "train"
    except OSError:
        return False


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Started:
    """A run in the background, and the processes that belong to it."""

    def __init__(self, command, environment, log):
        self.log = Path(log)
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.below = []

    def running(self):
        return self.process.poll() is None

    def ranks(self):
        """The processes of the ranks, in their order; just one if they are threads."""
        self.below = children(self.process.pid) or self.below
        ranks = [pid for pid in self.below if is_rank(pid)]
        return sorted(ranks) if ranks else [self.process.pid]

    def targets(self, target):
        ranks = self.ranks()
        if target == "launcher":
            return [self.process.pid]
        return ranks if target == "all" else [ranks[int(target) % len(ranks)]]

    def wait_for(self, fault, seconds):
        """Waits for the moment of the fault; False when the run ends before."""
        start = time.monotonic()
        while self.running() and time.monotonic() - start < PATIENCE:
            if fault.moment[0] == "t" and time.monotonic() - start >= seconds * float(
                fault.moment[1:]
            ):
                # the launcher is not frozen
                if fault.kind != "freeze" or any(map(is_rank, self.ranks())):
                    return True
            if fault.moment[0] == "c" and any(state_of(pid) == "T" for pid in self.ranks()):
                return True
            time.sleep(0.003)
        return False

    def strike(self, fault):
        targets = self.targets(fault.target)
        stopped = [pid for pid in self.ranks() if state_of(pid) == "T"]
        for step in KINDS[fault.kind]:
            if isinstance(step, float):
                time.sleep(step)
                continue
            for pid in targets:
                send(pid, step)
            for pid in stopped:  # by the shim, at the moment of the fault
                if step != signal.SIGSTOP or (fault.kind == "freeze" and pid not in targets):
                    send(pid, signal.SIGCONT)

    def end(self):
        """Exit code, and what is wrong about the end."""
        wrong = []
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            code = 124
            wrong.append(f"still runs after {PATIENCE} s: {self.output()[-300:]}")
        start = time.monotonic()
        while time.monotonic() - start < GONE and any(state_of(p) not in "XZ" for p in self.below):
            if code == 124:
                break
            time.sleep(0.02)
        left = [pid for pid in self.below if state_of(pid) not in "XZ"]
        if left and not wrong:
            wrong.append(f"processes {left} are left {GONE} s after the end")
        for pid in [*left, *([self.process.pid] if code == 124 else [])]:
            send(pid, signal.SIGKILL)
        self.process.wait()
        return code, wrong

    def output(self):
        return self.log.read_text(errors="replace")
