#!/usr/bin/env python3
"""disk_faults.py [SCENARIO...] [--sample N]: makes every call fail by which a short run writes.

For each open, write, truncate, fsync, rename, mkdir, unlink and link of a run of 12 steps with four
checkpoints, and for each fault (EIO, ENOSPC, EDQUOT, EINTR, a short write; EIO and ENOSPC also for
all later calls; SIGKILL or a power cut before the call), the run must end with one line of error,
and --resume auto must then give the bits, rows and files of a run without faults. The programs
pack, bench, analyze and plot must end with one line and leave no part of a file. Prints a table of
calls and faults.

Scenarios: train, limit (ends within an epoch), resume (from an older checkpoint), pack, bench,
analyze, plot; default all. --sample N takes N random cases of each, --faults some of the faults.
Two defects can be planted, which must be found: the fault `lost`, a write that does nothing and
succeeds, and --no-sync, where fsync does nothing. --only CASE repeats one case, as a failure prints
it. Exit code 1: a case failed.
"""

import random
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from faults import SOURCE
from faults.disks import SCENARIOS
from faults.job import Job, preload, write_images
from runs import script
from runs.comparison import aligned
from runs.options import Parser, one_of

ERRORS = ["EIO", "ENOSPC", "EDQUOT", "EINTR", "EIO+", "ENOSPC+"]
FAULTS = [*ERRORS, "short", "kill", "cut", "lost"]
CALLS = ["open", "write", "truncate", "fsync", "rename", "mkdir", "unlink", "link"]


def possible(call, fault, scenario):
    if fault in ("short", "lost"):
        return call.name == "write"
    return fault not in ("kill", "cut") or scenario.keeps_state


def cases_of(scenario, arguments):
    """All (number of the call, fault) of a scenario, or a sample of them."""
    cases = [(call.number, fault) for call in scenario.calls
             for fault in arguments.faults.split(",") if possible(call, fault, scenario)]
    if arguments.sample:
        draw = random.Random(arguments.seed)
        cases = draw.sample(cases, min(arguments.sample, len(cases)))
    return cases


def print_table(done, failed):
    columns = [fault for fault in FAULTS if any(done[name, fault] for name in CALLS)]
    rows = [["call", *columns]]
    for name in CALLS:
        cells = [(done[name, fault], failed[name, fault]) for fault in columns]
        rows.append([name, *(f"{n} ({bad} bad)" if bad else str(n or "") for n, bad in cells)])
    print("\n".join(["", *aligned(rows, [True] + [False] * len(columns))]))
    print(f"{sum(done.values())} cases, {sum(failed.values())} failed")


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO",
                        type=one_of("scenario", SCENARIOS))
    parser.add_argument("--build", default=SOURCE / "build", help="build folder")
    parser.add_argument("--sample", type=int, default=0, help="cases of each scenario; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="of the sample and of power cuts")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--only", metavar="CASE", help="one case: SCENARIO:CALL:FAULT")
    parser.add_argument("--faults", default=",".join(FAULTS[:-1]), metavar="FAULT,...")
    parser.add_argument("--no-sync", action="store_true", help="a planted defect: no fsync")
    arguments = parser.parse_args()
    names = arguments.scenarios or list(SCENARIOS)
    if arguments.only:
        name, number, fault = arguments.only.split(":")
        names = [name]

    done, failed = Counter(), Counter()
    with tempfile.TemporaryDirectory(prefix="disk-faults-") as folder:
        folder = Path(folder).resolve()
        write_images(folder / "data")
        job = Job(arguments.build, folder / "data", options=("--val-size", "0"))
        for name in names:
            scenario = SCENARIOS[name](job, preload(arguments.build), folder / name, arguments)
            cases = [(int(number), fault)] if arguments.only else cases_of(scenario, arguments)
            with ThreadPoolExecutor(arguments.jobs) as pool:
                for case, result in zip(cases, pool.map(lambda c: scenario.check(*c), cases)):
                    done[result.call, case[1]] += 1
                    failed[result.call, case[1]] += bool(result.wrong)
                    for line in result.wrong:
                        print(f"{name}:{case[0]}:{case[1]} ({result.call} {result.path}): {line}")
                    sys.stdout.flush()
            print(f"{name}: {len(scenario.calls)} calls, {len(cases)} cases")
    print_table(done, failed)
    return 1 if sum(failed.values()) else 0


if __name__ == "__main__":
    script(main)
