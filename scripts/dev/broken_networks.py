#!/usr/bin/env python3
"""broken_networks.py [--train PROGRAM] [--timeout S] [CASE...]: training while the network breaks.

Each rank is a host of its own: a namespace whose only link ends in a switch in user space
(lossy_switch.py), which loses, delays and cuts off frames. A case breaks the network at a step of
the run. A run that the network lets live must end with the weights of a run left alone; any other
must end within the timeout, in one line that names a rank, with no rank left on any host, and then
resume to these weights. Prints a row per case. Exit code 1 when a case fails, 77 when namespaces
cannot be made here.

Needs root and MPICH's mpirun. All namespaces and addresses are the script's own; it removes them.
"""

import contextlib
import os
import re
import subprocess
import time

from faults.hosts import opened
from faults.job import weights_hash
from runs import script
from runs.options import Parser, one_of
from runs.processes import LATE, Started

STEPS, RANKS = 60, 3


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
        hosts = ["-hosts", ",".join(self.network.addresses), "-ppn", 1, "-n", RANKS]
        train = [self.program, *self.flags, "--name", name, *more]
        return Started(self.network.mpirun(*hosts, *train), self.folder / f"{name}.out")

    def end(self, started, limit):
        """Exit code and moment; LATE also if a rank is left a while later, which is then killed."""
        started.below = started.ranks()
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.process.wait(limit)
        moment = time.monotonic()
        code, wrong = started.end(0)
        for node in self.network.hosts:
            self.network.kill_host(node)
        return LATE if wrong else code, moment

    def wait_for_step(self, name, step):
        while not (self.folder / name / f"checkpoints/step-{step:08}").exists():
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
    started = trainer.start(name)
    trainer.wait_for_step(name, 10)
    start = time.monotonic()
    break_network(trainer.network)
    code, moment = trainer.end(started, 600 if lives else trainer.timeout + 15)
    seconds = moment - start
    output = started.output()
    trainer.network.heal()
    if lives:
        good, result = code == 0, "the same weights"
    else:
        line = line_of(output)
        resumed, _ = trainer.end(trainer.start(name, "--resume", "auto"), 600)
        good = (code not in (0, LATE) and seconds < trainer.timeout + 5 and "rank" in line
                and resumed == 0)
        result = f"{line[:110]}; resumed: {resumed}"
    good = good and weights_hash(trainer.folder / name) == expected
    print(f"{case:<24} {seconds:>6.1f} s  exit {code!s:<4}  {'ok  ' if good else 'FAIL'}  {result}",
          flush=True)
    if not good:
        print(output[-1500:])
    return good


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("--train", default="build/bin/train")
    parser.add_argument("--timeout", type=float, default=10)
    parser.add_argument("cases", nargs="*", metavar="CASE", type=one_of("case", CASES),
                        help=", ".join(CASES).replace("%", "%%"))
    args = parser.parse_args()
    with opened(RANKS) as (network, folder):
        trainer = Trainer(args, network, folder)
        alone = trainer.start("alone")
        if code := trainer.end(alone, 300)[0]:
            print(f"the run left alone ended with {code}:\n{alone.output()}")
            return 1
        expected = weights_hash(folder / "alone")
        return 0 if all([run_case(case, trainer, expected) for case in args.cases or CASES]) else 1


if __name__ == "__main__":
    script(main)
