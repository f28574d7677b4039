#!/usr/bin/env python3
"""nights.py [--faults N] [--seed K] [KIND...]: random faults under `thinwire run`.

Four ranks on two hosts, which are network namespaces, train on a small disk. In a night, one to
five faults of the KINDs (default: all) strike at random moments, also while the run starts again.
It must end with the weights of a run left alone; with `nan`, its loss diverges, with exit code 4;
with `unplug`, host 1 stays away, and the run goes on on the ranks of host 2, with weights that are
not compared. `term` comes when the run makes checkpoints, and must end it with code 3 or 0. Prints
a line for each fault, with the seconds until a new checkpoint. Exit code 1: a night ended in
another way, or left processes behind; 77: namespaces or disks cannot be made here. Needs root and
MPICH's mpirun.
"""

import contextlib
import os
import random
import shlex
import shutil
import signal
import time
from pathlib import Path

from faults import SOURCE
from faults.hosts import inside, opened
from faults.job import weights_hash
from runs import script
from runs.options import Parser, one_of
from runs.processes import Started, children, send, succeed

SLOTS, TIMEOUT, LIMIT = 2, 8, 300  # ranks of a host; seconds for a message, and for an end
OPTIONS = ["--model", "lenet", "--dataset", "shapes", "--batch-size", 2, "--epochs", 100,
           "--max-steps", 600, "--checkpoint-steps", 20, "--eval-every", "never", "--sparsifier",
           "topk", "--density", 0.05, "--threads-per-rank", 1, "--comm-timeout", TIMEOUT]
LASTING = ("unplug", "nan")  # what a night ends with; never both in one


class Night:
    """A run under `thinwire run`, with faults that are drawn from `draw`."""

    def __init__(self, train, network, folder, draw, lasting):
        self.network, self.folder, self.draw = network, folder, draw
        self.starts, self.wrong = [], []  # also those that SIGTERM ended; what was wrong at an end
        hosts = folder.with_suffix(".hosts")
        hosts.write_text("".join(f"{address}:{SLOTS}\n" for address in network.addresses))
        probe = shlex.join(map(str, inside(network.head, network.launcher, "{host}", "true")))
        self.command = [
            SOURCE / "scripts/thinwire", "run", "--retries", 20, "--backoff", 0.2, "--hosts", hosts,
            "--min-ranks", SLOTS if lasting == "unplug" else 2 * SLOTS, "--probe", probe, "--",
            *network.mpirun("-f", "{hostfile}", "-n", "{ranks}"), train, *OPTIONS, "--output-dir",
            folder.parent, "--name", folder.name, "--lr", 1e9 if lasting == "nan" else 0.01]
        self.start()

    def start(self):
        more = {"TMPDIR": str(self.folder.parent), "THINWIRE_START_TIMEOUT": "10"}
        log = self.folder.with_suffix(f".{len(self.starts)}.out")
        self.started = Started(self.command, log, os.environ | more)
        self.starts.append(self.started)

    def end(self):
        """The exit code at the end, which must come in time and leave no process behind."""
        code, wrong = self.started.end(LIMIT)
        self.wrong += wrong
        return code

    def saved(self):
        return sorted(self.folder.glob("checkpoints/step-*"))

    def wait(self, seconds):
        """Waits so long for a new checkpoint, or for the end; whether there is one."""
        last, before = time.monotonic() + seconds, set(self.saved())
        while self.started.running() and time.monotonic() < last:
            if set(self.saved()) - before:
                return True
            time.sleep(0.02)
        return False

    def to_rank(self, *signals):
        """Signals, and pauses of so many seconds, to a rank; IndexError if there is none."""
        rank = self.draw.choice([pid for pid in self.started.ranks() if pid != self.started.pid])
        for each in signals:
            time.sleep(each) if isinstance(each, float) else send([rank], each)

    def damage(self):
        """Cuts a file of the newest of several checkpoints."""
        self.to_rank(signal.SIGKILL)
        file = self.draw.choice(sorted(self.saved()[1:][-1].iterdir()))
        os.truncate(file, file.stat().st_size // 2)

    def fill_disk(self):
        ballast = self.folder.parent / "ballast"
        with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        time.sleep(self.draw.uniform(0.5, 4))
        ballast.unlink()

    def break_link(self, how, seconds):
        port = f"p{self.draw.choice(self.network.nodes)}"
        self.network.tell(f"{how} {port}")
        time.sleep(seconds)
        self.network.tell(f"up {port}")

    def stop(self):
        """As the limit of a job, which is then given once more. Two new checkpoints come
        first: what another fault has hit ends with the code of that fault."""
        if self.wait(LIMIT) and self.wait(LIMIT):
            send([self.started.pid], signal.SIGTERM)
        code = self.end()
        if code == 3:
            self.start()
        elif code not in (0, 4):  # 4 is judged at the end of the night
            self.wrong.append(f"exit code {code} where SIGTERM was due")

    def spend(self, faults):
        """Lets faults strike; how many did, and the exit code of the run."""
        time.sleep(self.draw.uniform(0, 5))
        struck = 0
        for kind in faults:
            start = time.monotonic()
            with contextlib.suppress(IndexError, OSError):  # there is nothing to hit
                KINDS[kind](self)
                struck, seconds = struck + 1, time.monotonic() - start
                on = self.wait(self.draw.choice([LIMIT, self.draw.uniform(0, 3)]))
                print(f"{self.folder.name}: {kind} for {seconds:.1f} s" + on *
                      f", a new checkpoint after {time.monotonic() - start:.1f} s", flush=True)
        return struck, self.end()

    def output(self):
        return "".join(started.output()[-4000:] for started in self.starts)


KINDS = {
    "kill": lambda night: night.to_rank(signal.SIGKILL),
    "freeze": lambda night: night.to_rank(signal.SIGSTOP),
    "pause": lambda night: night.to_rank(signal.SIGSTOP, 1.0, signal.SIGCONT),
    "launcher": lambda night: send(children(night.started.pid)[:1]),
    "host": lambda night: night.network.kill_host(night.draw.choice(night.network.hosts)),
    "damage": Night.damage,
    "disk": Night.fill_disk,
    "link": lambda night: night.break_link("down", night.draw.choice([1, 2 * TIMEOUT])),
    "reset": lambda night: night.break_link("reset", 1),
    "term": Night.stop,
    "unplug": lambda night: night.network.tell("down p1"),
    "nan": lambda night: None,
}


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("--train", default=SOURCE / "build/bin/train", type=Path)
    parser.add_argument("--faults", type=int, default=100, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults (default: %(default)s)")
    parser.add_argument("kinds", nargs="*", metavar="KIND", type=one_of("fault", KINDS),
                        help=", ".join(KINDS))
    args = parser.parse_args()
    draw, train = random.Random(args.seed), args.train.absolute()
    struck = nights = failed = 0
    with opened(2) as (network, disk):
        alone = [train, "--workers", 2 * SLOTS, *OPTIONS, "--lr", 0.01, "--output-dir", disk]
        succeed([*map(str, alone), "--name", "alone"], None)
        expected = weights_hash(disk / "alone")
        while struck < args.faults:
            nights += 1
            faults = draw.choices(args.kinds or list(KINDS), k=draw.randint(1, 5))
            lasting = next((kind for kind in faults if kind in LASTING), "")
            faults = [kind for kind in faults if kind == lasting or kind not in LASTING]
            night = Night(train, network, disk / f"night-{nights}", draw, lasting)
            number, code = night.spend(faults)
            struck += number
            network.heal()
            weights = weights_hash(night.folder)
            good = not night.wrong and (
                code == 4 if lasting == "nan" else
                code == 0 and (lasting == "unplug" or weights == expected))
            failed += not good
            shutil.rmtree(night.folder, ignore_errors=True)
            print(f"{night.folder.name}: {'ok' if good else 'FAIL'}, exit code {code}, weights "
                  f"{weights}" + (not good) * f"; {'; '.join(night.wrong)}\n{night.output()}",
                  flush=True)
    print(f"seed {args.seed}: {struck} faults in {nights} nights, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    script(main)
