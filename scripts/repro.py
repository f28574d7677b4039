#!/usr/bin/env python3
"""Reproduces the tables and figures of the papers and judges their claims.

    repro.py list                       claims and the scales they have
    repro.py run CLAIM|PAPER|all        runs what is missing, writes tables and figures
    repro.py show                       prints the tables of the results that exist

Results lie in OUTPUT_DIR/SCALE/CLAIM/ROW-sSEED, tables and figures in OUTPUT_DIR/SCALE/tables.
docs/repro.md describes scales and verdicts, configs/repro/README.md the claim files.
"""

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

from repro import ROOT, SCALES, ReproError, nearest
from repro import claims, estimate, programs, runs, session, tables
from runs import UserError

SYSTEM_PYTHON = "/usr/bin/python3"  # Debian's matplotlib belongs to Debian's python


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", metavar="list|run|show")
    parser.add_argument("what", nargs="?", metavar="CLAIM|PAPER|all", help="for run and show")
    parser.add_argument("--scale", default="quick", help="quick, short or paper (default: quick)")
    parser.add_argument("--seeds", help="for training (default: 1 at quick, else 1,2,3)")
    parser.add_argument("--data-dir", default="", help="folder of CIFAR-10 or ImageNet")
    parser.add_argument("--launcher", default="threads", metavar="threads|'mpirun -n {P}'",
                        help="ranks of train: threads, or a command that starts P processes")
    parser.add_argument("--device", default="", help="passed to train and bench")
    parser.add_argument("--claims", type=Path, default=ROOT / "configs" / "repro",
                        help="folder of claim files")
    parser.add_argument("--bin", type=Path, default=ROOT / "build" / "bin", help="programs")
    parser.add_argument("--output-dir", type=Path, default=Path("runs") / "repro")
    parser.add_argument("--dry-run", action="store_true", help="print steps, bytes and seconds")
    parser.add_argument("--images-per-s", type=float, default=0,
                        help="throughput for the estimates of --dry-run")
    given = parser.parse_args()
    for name, value, known in (("action", given.action, ("list", "run", "show")),
                               ("scale", given.scale, SCALES)):
        if value not in known:
            raise ReproError(f"unknown {name} {value}{nearest(value, known)}")
    return given


def settings_of(given):
    """The parsed options with seeds, absolute paths, machine and versions."""
    text = given.seeds or ("1" if given.scale == "quick" else "1,2,3")
    try:
        given.seeds = [int(seed) for seed in text.split(",")]
    except ValueError:
        raise ReproError(f"--seeds is {text}; expected numbers such as 1,2,3") from None
    if len(set(given.seeds)) < len(given.seeds) or min(given.seeds) < 0:
        raise ReproError(f"--seeds is {text}; expected different numbers, none negative")
    if given.data_dir:
        given.data_dir = str(Path(given.data_dir).resolve())
        if not Path(given.data_dir).exists():
            raise ReproError(f"--data-dir {given.data_dir} does not exist")
    given.output, given.bin = given.output_dir.resolve(), given.bin.resolve()
    if given.action == "run":
        for name in ("train", "bench", "advise", "analyze"):
            if not os.access(given.bin / name, os.X_OK):
                raise ReproError(f"{given.bin / name} is missing; scripts/build.sh builds it")
        given.versions = subprocess.run([given.bin / "train", "--version"], text=True,
                                        capture_output=True, check=False).stdout.strip()
        given.machine = runs.machine()
    return given


def run(given):
    known = claims.load(given.claims)
    if given.action == "list":
        every = {scale: claims.plans(known, scale) for scale in SCALES}
        print(tables.markdown(["claim", "paper", "title", "scales"], [
            [name, claim.paper, claim["title"],
             ", ".join(scale for scale in SCALES if every[scale][name].tested)]
            for name, claim in known.items()]))
        return 0
    if given.action == "run" and not given.what:
        raise ReproError("run what? a claim, a paper or all; repro.py list names them")
    settings = settings_of(given)
    names = claims.chosen(known, given.what or "all")
    plans = claims.plans(known, given.scale)
    chosen = {name: plans[name] for name in names}
    results = {name: {row.name: runs.results_of(row, settings) for row in plan.rows.values()}
               for name, plan in chosen.items()}
    if given.action == "show":
        print("\n".join(tables.document(plan, results[name]) for name, plan in chosen.items()))
        print(tables.overview(chosen, results))
        return 0
    if given.what in known and (missing := programs.missing_data(chosen[given.what], settings)):
        raise ReproError(missing)
    if given.dry_run:
        print(estimate.report(chosen, results, settings))
        return 0
    failures = session.run_missing(chosen, results, settings)
    print("\n" + tables.overview(chosen, results))
    print(f"\ntables and figures: {settings.output / settings.scale / 'tables'}")
    return 1 if failures else 0


def main():
    if (importlib.util.find_spec("matplotlib") is None and os.path.exists(SYSTEM_PYTHON)
            and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON)):
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
    def stop(number, _frame):
        raise runs.Interrupted(number)

    # while a program runs, runs.follow passes these on to it
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        return run(options())
    except UserError as error:
        print(f"repro.py: {error}", file=sys.stderr)
        return 2
    except runs.Interrupted as stop:
        name = signal.Signals(stop.args[0]).name
        print(f"repro.py: ended by {name}; the same command continues", file=sys.stderr)
        return 128 + stop.args[0]


if __name__ == "__main__":
    sys.exit(main())
