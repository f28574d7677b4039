"""Signals to a training run at a given moment."""

import signal
import time
from dataclasses import dataclass

from runs.processes import is_rank, send, state_of

PATIENCE = 60  # seconds within which a run with a fault must have ended

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

    def is_due(self, started, share):
        """Whether its moment has come; `share` is that of the seconds that have passed."""
        if self.moment[0] == "c":
            return any(state_of(pid) == "T" for pid in started.ranks())
        # the launcher is not frozen
        return share >= float(self.moment[1:]) and (
            self.kind != "freeze" or any(map(is_rank, started.ranks())))

    def wait(self, started, seconds):
        """Waits for the moment, of a run that takes so long; False when the run ends before."""
        start = time.monotonic()
        while started.running() and (passed := time.monotonic() - start) < PATIENCE:
            if self.is_due(started, passed / seconds):
                return True
            time.sleep(0.003)
        return False

    def strike(self, started):
        ranks = started.ranks()
        targets = ([started.pid] if self.target == "launcher" else ranks if self.target == "all"
                   else [ranks[int(self.target) % len(ranks)]])
        stopped = [pid for pid in ranks if state_of(pid) == "T"]  # by the shim, at this moment
        for step in KINDS[self.kind]:
            if isinstance(step, float):
                time.sleep(step)
                continue
            send(targets, step)
            if step != signal.SIGSTOP:
                send(stopped, signal.SIGCONT)
            elif self.kind == "freeze":
                send(set(stopped) - set(targets), signal.SIGCONT)
