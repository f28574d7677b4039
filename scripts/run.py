#!/usr/bin/env python3
"""run.py [--retries N] [OPTIONS] -- LAUNCHER... train [OPTIONS OF TRAIN]: trains without a person.

Starts the command and, when a rank, a host or the launcher dies, starts it again from the newest
whole checkpoint, as `--resume auto` does; the first start continues a run of that --name, too. The
launcher is any: mpirun, srun, or none with --workers. A start that made a checkpoint begins the
count of retries anew: --retries is the most without progress. What happened is in run.log of the
run folder and in lines on standard error.

  run.py -- thinwire train --workers 4 --name night
  run.py --hosts hosts -- mpirun -f {hostfile} -n {ranks} thinwire train --name night

With --hosts, {ranks} and {hostfile} in the command stand for the slots of the hosts that answer and
for a file of their lines. A step keeps its number of images: fewer ranks take more, by --batch-size
and --accumulate. Where that number cannot be divided, a line says what the step and the rate are.

Exit code: that of train, or 128 and the number of the signal that ended it. 0: finished; 2: wrong
options or files; 3: stopped by a signal, which is passed on; 4: numbers that are not finite. These
are not tried again. docs/reliability.md lists the others.
"""

import contextlib
import fcntl
import os
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path

from runs import Fault, UserError, folder, hosts, processes, program_name, script
from runs.command import Command
from runs.options import Parser, at_least
from runs.output import replace

FINAL = {0: "finished", 2: "wrong options or files",
         3: "stopped by a signal; the same command goes on", 4: "numbers that are not finite"}
SIGNALS = {base + number: f" ({number.name})" for number in signal.Signals
           for base in (0, 128) if max(FINAL) - base < number < 32}  # 0: MPICH's mpirun, of a rank
PROBE = "ssh -o BatchMode=yes -o ConnectTimeout=5 {host} true"
MOST_PAUSE = 600  # seconds
UNLOCK = 120  # seconds within which ranks on other machines must have left the run folder


class Stop:
    """Signals to this process, passed on to the program that it runs."""

    def __init__(self):
        self.asked, self.started = False, None
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as by nohup
                signal.signal(number, self.handle)

    def handle(self, number, frame):
        self.asked = True
        self.forward()

    def forward(self):
        """As SIGTERM, of which launchers tell the ranks."""
        if self.asked and self.started:
            self.started.process.send_signal(signal.SIGTERM)

    def run(self, words):
        """Runs a program to its end, with nothing left of it: its code, as a shell has it."""
        try:
            self.started = processes.Started(words)
        except OSError as error:
            raise UserError(f"{words[0]}: {error.strerror}") from None
        self.forward()  # a signal may have come before
        code = self.started.wait()
        self.started = None
        processes.end_children()
        return code if code >= 0 else 128 - code

    def pause(self, seconds, needed=lambda: True):
        """Waits so long, or until it is not needed, or a signal."""
        last = time.monotonic() + seconds
        while not self.asked and needed() and (left := last - time.monotonic()) > 0:
            time.sleep(min(0.1, left))


class Journal:
    """Lines on standard error and in run.log, as soon as there is one: then those before it are its
    first. Locks run.log, which tells that the run goes on."""

    def __init__(self, command):
        self.command, self.waiting, self.log = command, [], None

    def line(self, text):
        with contextlib.suppress(AttributeError, OSError):  # it is closed, or its disk is full
            os.write(sys.stderr.fileno(), f"{program_name()}: {text}\n".encode())
        self.waiting.append(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {program_name()}: {text}\n")
        with contextlib.suppress(OSError):
            for path in [run / "run.log" for run in self.command.folders()[-1:]]:
                if self.waiting[1:] and path.exists() and not (self.log or in_use(self.command)):
                    replace(path, "".join(self.waiting[:-1]).encode() + path.read_bytes())
                    del self.waiting[:-1]
                self.log = open(path, "ab", buffering=0)  # noqa: SIM115
                self.log.write("".join(self.waiting).encode())
                self.waiting.clear()
                fcntl.flock(self.log, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Places:
    """The hosts of --hosts, and what the command is on those that answer."""

    def __init__(self, options, command, journal):
        self.options, self.command, self.journal = options, command, journal
        self.all = hosts.read(options.hosts) if options.hosts else []
        self.file = None
        if not self.all:
            return
        for place in ("{ranks}", "{hostfile}"):
            if not any(place in word for word in command.words):
                raise UserError(f"--hosts: the command lacks {place}")
        self.ranks = sum(host.slots for host in self.all)
        self.batch, self.micro_batches = (
            int(command.option_or_default(name)) for name in ("batch-size", "accumulate"))
        self.file = tempfile.NamedTemporaryFile("w", suffix=".hosts")  # noqa: SIM115

    def words(self):
        """The command on the hosts that answer; Fault if these are too few."""
        if not self.all:
            return self.command.start()
        there, gone = hosts.probed(self.all, self.options.probe)
        ranks = sum(host.slots for host in there)
        if gone:
            self.journal.line(f"no answer: {', '.join(host.name for host in gone)}; left are "
                              f"{ranks} of {self.ranks} ranks")
        if ranks < max(1, self.options.min_ranks):
            raise Fault(f"{ranks} ranks are left; --min-ranks is {self.options.min_ranks}")
        Path(self.file.name).write_text("".join(f"{host.line}\n" for host in there), "utf-8")
        return [word.replace("{ranks}", str(ranks)).replace("{hostfile}", self.file.name)
                for word in self.command.start(self.sizes(ranks))]

    def sizes(self, ranks):
        """The options that keep the images of a step."""
        if ranks == self.ranks:
            return {}
        images = self.batch * self.micro_batches * self.ranks
        batch, micro_batches = hosts.spread(images, self.batch, ranks)
        now = batch * micro_batches * ranks
        same = "as before" if now == images else f"not {images}, which {ranks} ranks cannot share"
        rate = "the rate stays"
        before, after = self.ranks * self.micro_batches, ranks * micro_batches
        if before != after and self.command.option("lr-scaling") == "linear":
            rate = f"--lr-scaling linear makes the rate {after / before:.3g} times as high"
        self.journal.line(f"{ranks} ranks: --batch-size {batch} --accumulate {micro_batches}, "
                          f"{now} images a step, {same}; {rate}")
        return {"batch-size": batch, "accumulate": micro_batches}


def in_use(command):
    """Whether a process trains into a folder of the run."""
    with contextlib.suppress(UserError):  # the folder is gone
        return any(map(folder.locked, command.folders()))
    return False


def attempt(command, places, stop, journal, again):
    """One start: its exit code, which is 1 where the hosts are too few or a run goes on."""
    try:
        if again and in_use(command):
            raise Fault("a process of another machine is still in the run folder")
        words = places.words()
    except (Fault, OSError) as error:
        journal.line(str(error))
        return 1
    return stop.run(words)


def supervise(options, command):
    """Starts the command until it ends with a code that a retry does not change."""
    stop, journal = Stop(), Journal(command)
    places = Places(options, command, journal)
    failures = number = 0
    journal.line("start 1")
    while True:
        number += 1
        before, began = set(command.checkpoints()), time.monotonic()
        code = attempt(command, places, stop, journal, number > 1)
        if code == 0 and stop.asked and not command.is_finished:
            code = 3  # mpirun, before it has ranks
        ended = time.monotonic()
        progress = bool(set(command.checkpoints()) - before)
        failures = 1 if progress else failures + 1
        what = (f"start {number} ended after {ended - began:.1f} s with exit code {code}"
                f"{SIGNALS.get(code, '')}")
        if code in FINAL or stop.asked or failures > options.retries:
            why = FINAL.get(code, "" if stop.asked else
                            f"retries without a new checkpoint: {failures - 1}")
            journal.line(f"{what}{': ' * bool(why)}{why}")
            return code
        pause = min(options.backoff * 2 ** (failures - 1), MOST_PAUSE)
        journal.line(f"{what}; retry {failures} of {options.retries} in {pause:g} s")
        stop.pause(pause)
        stop.pause(UNLOCK, lambda: in_use(command))
        if stop.asked:
            journal.line("stopped by a signal between two starts")
            return 3
        newest = command.checkpoints()[-1:]
        # if that one is damaged, train takes an older one
        journal.line(f"start {number + 1}, {time.monotonic() - ended:.1f} s after the end, "
                     + (f"newest is {newest[0].name}" if newest else "from the beginning"))


class RunParser(Parser):
    def unknown(self, flag):
        if "--" not in sys.argv:
            raise UserError(f"unknown flag {flag}; -- is missing before the command to start")
        super().unknown(flag)


def main():
    parser = RunParser(description=__doc__,
                       usage="%(prog)s [OPTIONS] -- LAUNCHER... train [OPTIONS OF TRAIN]")
    parser.add_argument("--retries", type=at_least(0), default=3, metavar="N",
                        help="most retries without a new checkpoint (default: %(default)s)")
    parser.add_argument("--backoff", type=float, default=10, metavar="SECONDS",
                        help="time before a retry, doubled for each without a new checkpoint, at "
                             f"most {MOST_PAUSE} (default: %(default)s)")
    parser.add_argument("--hosts", type=Path, metavar="FILE",
                        help="hosts: lines host, host:slots or host slots=N; those that do not "
                             "answer are left out")
    parser.add_argument("--min-ranks", type=at_least(0), default=1, metavar="M",
                        help="do not start on fewer ranks (default: %(default)s)")
    parser.add_argument("--probe", default=PROBE, metavar="COMMAND",
                        help="succeeds for a {host} that answers (default: %(default)s)")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="what starts train")
    options = parser.parse_args()
    if not 0 <= options.backoff <= MOST_PAUSE:
        raise UserError(f"--backoff is {options.backoff:g}; expected 0 to {MOST_PAUSE}")
    processes.adopt()
    os.environ["THINWIRE_RUN"] = f"{program_name()} {shlex.join(sys.argv[1:])}"
    return supervise(options, Command(options.command))


if __name__ == "__main__":
    script(main)
