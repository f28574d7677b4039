#!/usr/bin/env python3
"""storm.py [--faults N] [--seconds S] [--seed K]: random faults in training runs.

A case is a short run (sparsifier, model, transport, ranks, threads, device) that is killed, frozen
or stopped one to three times, at a random call that concerns the disk or at a random time, and
resumed each time: by --resume auto, from its folder or from a checkpoint. It may be a branch, which
continues a checkpoint of another run. One rank of several under mpirun may be frozen for good; the
others must then end with a line that names it. At the end, weights, rows of both tables and the
files left behind must be those of a run left alone, and no process may be left. A failure is shrunk
to a smaller case that fails, too, and printed as a command that repeats it. The same seed gives the
same cases. Needs the target disk_faults of the build.

Exit code 1: a case failed.
"""

import os
import random
import shlex
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from faults import SOURCE, journal
from faults.job import Job, Outcome, preload, write_images
from faults.signals import KINDS, PATIENCE, Fault
from runs import script
from runs.options import Parser
from runs.processes import Started, run, succeed

ALGORITHMS = {
    **{name: name for name in ("dense", "topk", "gtopk", "dgc", "oktopk", "powersgd")},
    **{name: name for name in ("gaussiank", "hierarchical", "scalecom")},
    "overlap": "topk --overlap --scope layer",
    "local": "topk --local-steps 3",
}
# what a branch does otherwise than the run that it continues, which ends after four steps
BRANCH = ("--lr", "0.02", "--max-steps", "0")
RESUMES = ["auto", "folder", "newest", "oldest"]  # newest, oldest: a checkpoint


def named(rank, code, output):
    """Whether the end of a job tells that `rank` is frozen. Before MPI has started nobody knows
    which rank is missing, and the code may be that of a rank that mpirun killed."""
    return code == 1 and f"rank {rank}" in output or code != 0 and "in MPI_Init for" in output


@dataclass(frozen=True)
class Case:
    """algorithm/model/transport/ranks/threads/device[/branch]/fault>resume[/fault>resume...]"""

    algorithm: str
    model: str
    transport: str
    ranks: int
    threads: int
    device: str
    branch: bool
    faults: tuple  # of (Fault, resume)

    def __str__(self):
        parts = [self.algorithm, self.model, self.transport, self.ranks, self.threads, self.device]
        parts += ["branch"] if self.branch else []
        return "/".join([*map(str, parts), *(f"{f}>{resume}" for f, resume in self.faults)])

    @staticmethod
    def parse(text):
        algorithm, model, transport, ranks, threads, device, *faults = text.split("/")
        branch = faults[:1] == ["branch"]
        pairs = [fault.split(">") for fault in faults[branch:]]
        chain = tuple((Fault.parse(fault), resume) for fault, resume in pairs)
        return Case(algorithm, model, transport, int(ranks), int(threads), device, branch, chain)

    def job(self, storm):
        sparsifier, *options = ALGORITHMS[self.algorithm].split()
        options += BRANCH if self.branch else ()
        return Job(storm.build, storm.folder / "data", sparsifier, self.transport, self.ranks,
                   self.threads, self.device, self.model, tuple(options))


@dataclass
class Reference:
    """A run left alone."""

    outcome: Outcome
    seconds: float
    calls: list


class Storm:
    def __init__(self, build, folder):
        self.build, self.folder, self.library = build, folder, preload(build)
        self.references, self.bases, self.lock, self.number = {}, {}, threading.Lock(), 0
        self.hits = Counter()
        write_images(folder / "data")

    def base_of(self, job):
        """The checkpoint that a branch continues: that of four steps without its options."""
        output = self.folder / f"base-{len(self.bases)}"
        if job not in self.bases:
            base = replace(job, options=job.options[: -len(BRANCH)])
            succeed(base.command(output, "base", "--max-steps", "4"), base.environment())
            self.bases[job] = next(output.glob("base/checkpoints/step-*"))
        return self.bases[job]

    def first_command(self, case, job, output):
        """The command that starts a case."""
        more = ("--resume", str(self.base_of(job))) if case.branch else ()
        return job.command(output, "a", *more)

    def reference(self, case):
        job = case.job(self)
        with self.lock:
            if job not in self.references:
                output = self.folder / f"whole-{len(self.references)}"
                command = self.first_command(case, job, output)
                start = time.monotonic()
                succeed(command, job.environment(**self.shim(output, TW_DISK_RANK="0",
                        TW_DISK_JOURNAL=f"{output}.journal")))
                calls = journal.read(f"{output}.journal")
                if job.transport == "mpirun":  # those of rank 0; each rank counts for itself
                    calls = [c for c in calls if "/rank-" not in c.path or "/rank-0" in c.path]
                seconds = time.monotonic() - start
                self.references[job] = Reference(Outcome.of(output / "a"), seconds, calls)
                os.remove(f"{output}.journal")
            return self.references[job]

    def shim(self, output, **variables):
        return {"LD_PRELOAD": self.library, "TW_DISK_FOLDER": output, **variables}

    def check(self, case):
        """What differs after the faults of the case."""
        job = case.job(self)
        whole = self.reference(case)
        with self.lock:
            self.number += 1
            output = self.folder / f"case-{self.number}"
        try:
            return self.run_chain(case, job, whole, output)
        finally:
            shutil.rmtree(output, ignore_errors=True)

    def run_chain(self, case, job, whole, output):
        first = self.first_command(case, job, output)
        command, wrong = first, []
        for number, (fault, resume) in enumerate(case.faults):
            output.mkdir(exist_ok=True)
            variables = {}
            if fault.moment[0] == "c":
                variables = self.shim(output, TW_DISK_RANK="0",
                                      TW_DISK_FAULT=f"{fault.moment[1:]}:stop")
            started = Started(command, output / f"log-{number}", job.environment(**variables))
            struck = fault.wait(started, whole.seconds)
            if struck:
                fault.strike(started)
                with self.lock:
                    self.hits[case.transport, fault.kind] += 1
            code, late = started.end(PATIENCE)
            wrong += [f"{fault}: {line}" for line in late]
            # before the handlers are there, SIGTERM ends the program as it ends any other
            prepared = "writing to" in started.output()
            expected = {"pause": {0}, "term": {0, 3}}.get(fault.kind, {code})
            if not late and prepared and code not in expected:
                wrong.append(f"{fault}: exit code {code}: {started.output()[-300:]}")
            told = named(fault.target, code, started.output())
            if fault.kind == "freeze" and struck and not told:
                wrong.append(f"{fault}: exit code {code}: {started.output()[-300:]}")
            # a branch without its first checkpoint asks for the same command again
            begun = not case.branch or any((output / "a/checkpoints").glob("step-*"))
            command = self.resume(job, output, resume) if begun else first
        code, text = run(command, job.environment())
        if code != 0:
            return [*wrong, f"the resumed run ends with {code}: {text[-400:]}"]
        return wrong + whole.outcome.differences(Outcome.of(output / "a"))

    @staticmethod
    def resume(job, output, how):
        """The command that continues; auto if there is no checkpoint yet."""
        saved = sorted((output / "a/checkpoints").glob("step-*"))
        if how == "auto" or not saved:
            return job.command(output, "a", "--resume", "auto")
        place = {"folder": output / "a", "newest": saved[-1], "oldest": saved[0]}[how]
        command = job.command(output, "a", "--resume", str(place))
        at = command.index("--name")
        return command[:at] + command[at + 2 :]

    def draw(self, draw, devices, transports):
        """A random case."""
        device = draw.choice(devices)
        transport = draw.choice(transports) if device == "cpu" else "threads"
        case = Case(
            draw.choice(list(ALGORITHMS)), draw.choice(["lenet", "lenet", "lenet", "resnet20"]),
            transport, draw.choice([1, 2, 2, 3, 4]), draw.choice([1, 1, 1, 2]), device,
            draw.random() < 0.2, ())
        if case.algorithm == "overlap" and device == "cuda":
            case = replace(case, algorithm="topk")
        calls = self.reference(case).calls
        saving = [c.number for c in calls if ".part" in c.path] or [1]
        last = [c.number for c in calls if c.path.endswith("metrics.csv")] or [1]
        faults = []
        for _ in range(draw.choice([1, 1, 2, 3])):
            moment = draw.choice([
                f"t{draw.uniform(0, 1.1):.3f}",
                f"t{draw.uniform(0, 0.4):.3f}",  # while the program prepares
                f"c{draw.choice(calls).number}",
                f"c{draw.choice(saving)}",
                f"c{draw.randint(last[-1], calls[-1].number)}"])  # the end of the last epoch
            target = draw.choice(["all", "launcher", str(draw.randrange(case.ranks))])
            kind = draw.choice(["kill", "kill", *KINDS])
            if kind == "freeze":
                if case.transport != "mpirun" or case.ranks == 1:
                    kind = "kill"
                target = str(draw.randrange(case.ranks))
            faults.append((Fault(kind, target, moment), draw.choice(RESUMES)))
        return replace(case, faults=tuple(faults))

    def shrink(self, case):
        """A smaller case that fails as well."""
        for smaller in simpler(case):
            if self.check(smaller):
                return self.shrink(smaller)
        return case


def simpler(case):
    if len(case.faults) > 1:
        for i in range(len(case.faults)):
            yield replace(case, faults=case.faults[:i] + case.faults[i + 1 :])
    for change in (
        {"transport": "threads"}, {"ranks": 1}, {"ranks": 2}, {"algorithm": "dense"},
        {"model": "lenet"}, {"threads": 1}, {"branch": False},
        {"faults": tuple((fault, "auto") for fault, _ in case.faults)},
    ):
        smaller = replace(case, **change)
        freezes = any(fault.kind == "freeze" for fault, _ in smaller.faults)
        if freezes and (smaller.transport == "threads" or smaller.ranks == 1):
            continue  # nobody is left to notice
        if smaller != case and smaller.ranks <= case.ranks:
            yield smaller


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("--build", type=Path, default=SOURCE / "build", help="build folder")
    parser.add_argument("--faults", type=int, default=100, help="how many faults")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time")
    parser.add_argument("--seed", type=int, default=None, help="default: a random one, printed")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--devices", default="cpu", help="cpu, cuda or cpu,cuda")
    parser.add_argument("--transports", default="threads,mpirun", help="threads, mpirun or both")
    parser.add_argument("--case", help="one case, as a failure prints it")
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    transports = [t for t in arguments.transports.split(",") if t != "mpirun" or shutil.which(t)]
    draw, start, cases, failed = random.Random(seed), time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory(prefix="storm-") as folder:
        storm = Storm(arguments.build, Path(folder).resolve())
        if arguments.case:
            wrong = storm.check(Case.parse(arguments.case))
            print("\n".join(wrong) or "no difference")
            return 1 if wrong else 0

        with ThreadPoolExecutor(arguments.jobs) as pool:
            while (sum(storm.hits.values()) < arguments.faults
                   and time.monotonic() - start < arguments.seconds):
                drawn = [storm.draw(draw, arguments.devices.split(","), transports)
                         for _ in range(arguments.jobs)]
                for case, wrong in zip(drawn, pool.map(storm.check, drawn)):
                    cases += 1
                    if not wrong:
                        continue
                    failed += 1
                    print(f"{case}\n  " + "\n  ".join(wrong))
                    small = storm.shrink(case)
                    print(f"  repeat: scripts/dev/storm.py --case {shlex.quote(str(small))}")
                    sys.stdout.flush()
        hits = sorted(storm.hits.items())
        kinds = ", ".join(f"{n} {kind} ({where})" for (where, kind), n in hits)
        print(f"seed {seed}: {sum(storm.hits.values())} faults in {cases} cases of "
              f"{len(storm.references)} runs, {time.monotonic() - start:.0f} s, {failed} failed\n"
              f"{kinds}")
    return 1 if failed else 0


if __name__ == "__main__":
    script(main)
