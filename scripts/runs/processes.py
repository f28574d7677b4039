"""Programs in the background: their ranks, signals to them, and their end within a limit."""

import contextlib
import ctypes
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

LATE = 124  # the exit code of a program that had to be killed, as that of timeout
PR_SET_CHILD_SUBREAPER = 36
GONE = 15  # seconds between the end of a launcher and that of the last process below it, at most


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


def adopt():
    """Makes this process the parent of those below it whose parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_children():
    """Kills what is left below this process, and waits for its end."""
    send(children(os.getpid()))
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def is_rank(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "train"
    except OSError:
        return False


def send(pids, number=signal.SIGKILL):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), number)


class Started:
    """A program in the background, and the processes that belong to it. Its output goes to the file
    `log`, or to where that of this process goes."""

    def __init__(self, command, log=None, environment=None):
        self.log = Path(log or os.devnull)
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(
                list(map(str, command)), env=environment, stdin=subprocess.DEVNULL,
                stdout=output if log else None, stderr=subprocess.STDOUT if log else None,
                start_new_session=True)
        self.pid, self.below = self.process.pid, []

    def running(self):
        return self.process.poll() is None

    def wait(self):
        """The exit code. Kills a launcher that does not take note of the end of the processes below
        it, as that of MPICH at times on a full disk, GONE seconds after the last of them."""
        last = time.monotonic() + GONE
        while self.running():
            states = [state_of(pid) for pid in children(os.getpid()) if pid != self.pid]
            if not states or any(state not in "XZ" for state in states):
                last = time.monotonic() + GONE
            elif time.monotonic() > last:
                send([self.pid])
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
        return self.process.returncode

    def ranks(self):
        """The processes of the ranks, in their order; just one if they are threads."""
        self.below = children(self.pid) or self.below
        return sorted(filter(is_rank, self.below)) or [self.pid]

    def left(self):
        return [pid for pid in self.below if state_of(pid) not in "XZ"]

    def end(self, limit):
        """Exit code, and what is wrong about the end as lines; kills what runs after the limit."""
        wrong = []
        try:
            code = self.process.wait(limit)
            last = time.monotonic() + GONE
            while self.left() and time.monotonic() < last:
                time.sleep(0.02)
            if left := self.left():
                wrong.append(f"processes {left} are left {GONE} s after the end")
        except subprocess.TimeoutExpired:
            code = LATE
            wrong.append(f"still runs after {limit} s: {self.output()[-300:]}")
            send([*children(self.pid), self.pid])
        send(self.left())
        self.process.wait()
        return code, wrong

    def output(self):
        return self.log.read_text(errors="replace")


def run(command, environment, limit=120):
    """Runs a program to its end: exit code and output."""
    with tempfile.NamedTemporaryFile() as log:
        started = Started(command, log.name, environment)
        return started.end(limit)[0], started.output()


def succeed(command, environment):
    """Ends the script if a run without a fault fails."""
    code, output = run(command, environment)
    if code != 0:
        raise SystemExit(f"a run without faults ends with {code}: {output}")
