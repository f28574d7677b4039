"""Scenarios of disk_faults.py: what is run with a fault, and what must hold afterwards."""

import shutil
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

from faults import SOURCE, journal
from faults.job import Outcome
from runs.processes import run, succeed

MESSAGES = {
    "EIO": "Input/output error",
    "ENOSPC": "No space left on device",
    "EDQUOT": "Disk quota exceeded",
    "EINTR": "Interrupted system call",
}


@dataclass
class Result:
    """The call that was hit, and what was wrong."""

    call: str = "?"
    path: str = ""
    wrong: list = field(default_factory=list)


class Scenario:
    """A command that writes below a folder. Subclasses prepare the folder and check it."""

    keeps_state = False  # whether a power cut must not lose what was there

    def __init__(self, job, library, folder, arguments):
        self.job, self.library, self.folder, self.seed = job, library, folder, arguments.seed
        self.planted = {"TW_DISK_NO_SYNC": 1} if arguments.no_sync else {}
        self.start = folder / "start"  # what is on the disk before the command
        self.start.mkdir(parents=True)
        self.prepare()
        whole = self.fresh("whole")
        succeed(self.command(whole), self.shim(whole, TW_DISK_JOURNAL=folder / "journal"))
        self.calls = journal.read(folder / "journal")
        self.expect(whole)

    def prepare(self):
        """Writes self.start."""

    def command(self, disk):
        raise NotImplementedError

    def expect(self, whole):
        """Takes the outcome without a fault."""

    def check_after(self, disk, result, code=1, made=()):
        """What is wrong after the command, as lines."""
        raise NotImplementedError

    def fresh(self, name):
        """A new copy of the start; the command writes below it."""
        folder = self.folder / name / "disk"
        shutil.rmtree(folder.parent, ignore_errors=True)
        shutil.copytree(self.start, folder)
        return folder

    def shim(self, disk, **variables):
        return self.job.environment(
            LD_PRELOAD=self.library, TW_DISK_FOLDER=disk, **self.planted, **variables
        )

    def check(self, number, fault):
        disk = self.fresh(f"{number}-{fault}")
        try:
            if fault == "cut":
                return self.check_cut(number, disk)
            return self.check_fault(number, fault, disk)
        finally:
            shutil.rmtree(disk.parent)

    def check_fault(self, number, fault, disk):
        log = disk.parent / "journal"
        what = f"{number}+:{fault[:-1]}" if fault.endswith("+") else f"{number}:{fault}"
        shim = self.shim(disk, TW_DISK_FAULT=what, TW_DISK_JOURNAL=log)
        code, output = run(self.command(disk), shim)
        made = journal.read(log) if log.exists() else []
        hit = next((call for call in made if call.name.startswith("!")), None)
        result = Result()
        if hit is None:  # the ranks wrote in another order, and less
            result.call = "none"
        else:
            result.call, result.path = hit.name[1:], str(Path(hit.path).relative_to(disk))
        if fault == "kill":
            result.wrong = self.check_after(disk, result, code, made)
            return result
        harmless = hit is None or fault in ("EINTR", "short") or self.may_ignore(hit)
        lines = [line for line in output.splitlines() if self.says_error(line)]
        if code == 0:
            if not harmless:
                result.wrong.append("exit code 0, and the fault is lost")
        elif code != 1 and not (code == 2 and "cannot read" in output):
            result.wrong.append(f"exit code {code}: {output[-300:]}")
        elif fault == "short":
            result.wrong.append(f"a short write ends the program: {lines}")
        elif len(lines) != 1:
            result.wrong.append(f"{len(lines)} lines of error: {lines}")
        elif MESSAGES[fault.rstrip("+")] not in lines[0]:
            result.wrong.append(f"the line does not name the fault: {lines[0]}")
        result.wrong += self.check_after(disk, result, code, made)
        return result

    def says_error(self, line):
        return "error" in line.lower()

    def may_ignore(self, hit):
        """Whether the program may go on as if nothing had happened."""
        return False

    def check_cut(self, number, disk):
        state = journal.Disk(self.folder / "whole/disk")
        state.load(self.start)
        made = [call for call in self.calls if call.number < number]
        for call in made:
            state.apply(call)
        shutil.rmtree(disk)
        state.write_cut(disk, f"{self.seed}-{number}")
        hit = next(call for call in self.calls if call.number == number)
        result = Result(hit.name, str(Path(hit.path).relative_to(self.folder / "whole/disk")))
        result.wrong = self.check_after(disk, result, 1, made)
        return result


class Train(Scenario):
    """A run; afterwards --resume auto must end it as if nothing had happened."""

    keeps_state = True
    flags: tuple[str, ...] = ("--tensorboard",)

    def command(self, disk):
        return self.job.command(disk / "runs", "a", *self.flags)

    def expect(self, whole):
        self.expected = Outcome.of(whole / "runs/a")

    def saved_step(self, made):
        """The step of the last checkpoint that was whole, and on the disk, after these calls."""
        step, renamed = 0, 0
        for call in made:
            name = Path(call.to).name
            if call.name == "rename" and name.startswith("step-") and name[5:].isdigit():
                renamed = int(name[5:])
            if call.name == "fsync" and Path(call.path).name == "checkpoints":
                step = max(step, renamed)
        return step

    def check_after(self, disk, result, code=1, made=()):
        wrong = []
        if code != 0:
            code, output = self.job.run(disk / "runs", "a", *self.flags, "--resume", "auto")
            if code != 0:
                return [f"--resume auto ends with {code}: {output[-300:]}"]
            step, saved = 0, self.saved_step(made)
            for line in output.splitlines():
                if line.startswith("resuming"):
                    step = int(line.split(" at step ")[1].split(":")[0])
            if step < saved:
                wrong.append(f"resumed at step {step}, though the checkpoint of {saved} was whole")
        return wrong + self.expected.differences(Outcome.of(disk / "runs/a"))


class Limit(Train):
    """A run that ends within an epoch, and keeps one checkpoint and the best."""

    flags = ("--max-steps", "8", "--keep-best", "--keep-checkpoints", "1")

    def may_ignore(self, hit):
        return hit.name == "!link"  # the file is copied then


class Resume(Train):
    """A finished run that is resumed from an older checkpoint."""

    def prepare(self):
        succeed(super().command(self.start), self.job.environment())

    def command(self, disk):
        checkpoint = disk / "runs/a/checkpoints/step-00000008"
        return [part for part in self.job.command(
                    disk / "runs", "a", *self.flags, "--resume", str(checkpoint))
                if part not in ("--name", "a")]


class Program(Scenario):
    """A program that writes one file: whole or not at all."""

    file = "out"
    repeats = True  # the same bytes each time

    def expect(self, whole):
        self.expected = (whole / self.file).read_bytes()

    def check_after(self, disk, result, code=1, made=()):
        wrong = []
        target = disk / self.file
        if target.exists():
            content = target.read_bytes()
            same = content == self.expected
            if self.repeats and not same:
                wrong.append(f"{self.file} has {len(content)} of {len(self.expected)} bytes")
        elif code == 0:
            wrong.append(f"{self.file} is missing")
        left = sorted(p.name for p in disk.iterdir() if p != target)
        if left and not self.cannot_remove(made):
            wrong.append(f"left behind: {left}")
        code, output = run(self.command(disk), self.job.environment())
        if code != 0:
            wrong.append(f"the next run ends with {code}: {output[-300:]}")
        return wrong

    @staticmethod
    def cannot_remove(made):
        return any(call.name == "!unlink" for call in made)


class Pack(Program):
    def command(self, disk):
        return [self.job.program("pack"), str(self.job.data), "--output", str(disk / self.file)]


class Bench(Program):
    repeats = False  # times

    def command(self, disk):
        return [self.job.program("bench"), "comm", "--workers", "2", "--collective", "allreduce",
                "--max-bytes", "4K", "--iterations", "2", "--csv", str(disk / self.file)]


class Analyze(Program):
    file = "out.npy"

    def prepare(self):
        save = struct.pack("<4000f", *range(4000))
        head = "{'descr': '<f4', 'fortran_order': False, 'shape': (4000,), }".ljust(117) + "\n"
        self.input = self.folder / "in.npy"
        self.input.write_bytes(b"\x93NUMPY\x01\x00v\x00" + head.encode() + save)

    def command(self, disk):
        return [self.job.program("analyze"), "select", "--input", str(self.input), "--output",
                str(disk / self.file)]


class Plot(Program):
    file = "out.png"

    def says_error(self, line):
        return line.startswith("plot.py: ") and line != f"plot.py: {self.file}"

    def prepare(self):
        succeed(self.job.command(self.folder / "runs", "a"), self.job.environment())

    def command(self, disk):
        return [sys.executable, str(SOURCE / "scripts/plot.py"), str(self.folder / "runs/a"),
                "-o", str(disk / self.file)]


SCENARIOS = {one.__name__.lower(): one
             for one in (Train, Limit, Resume, Pack, Bench, Analyze, Plot)}
