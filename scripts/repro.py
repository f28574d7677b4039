#!/usr/bin/env python3
"""Reproduces the tables and figures of the papers and judges their claims.

    repro.py list                       claims and the scales they have
    repro.py run CLAIM|PAPER|all        runs what is missing, writes tables and figures
    repro.py show                       prints the tables of the results that exist
    repro.py keep --to FOLDER           keeps finished results in a few files

Results lie in OUTPUT_DIR/SCALE/CLAIM/ROW-sSEED, tables and figures in OUTPUT_DIR/SCALE/tables.
docs/repro.md describes scales and verdicts, configs/repro/README.md the files of claims.
"""

import sys
from pathlib import Path

from repro import ROOT, SCALES, ReproError
from repro import claims, estimate, programs, runs, script, tables
from runs import kept

ACTIONS = ("list", "run", "show", "keep")


def options():
    parser = script.Parser(description=__doc__)
    parser.add_argument("action", metavar="list|run|show|keep", choices=ACTIONS)
    parser.add_argument("what", nargs="?", metavar="CLAIM|PAPER|all", help="for run and show")
    parser.add_argument("--scale", default="quick", metavar="SCALE", choices=SCALES,
                        help="quick, short or paper (default: quick)")
    parser.add_argument("--claims", type=Path, default=ROOT / "configs" / "repro",
                        help="folder of claim files")
    script.add_keep_options(parser)
    parser.add_argument("--tables", type=Path,
                        help="for run: the folder of tables and figures (default: that above)")
    parser.add_argument("--rows", metavar="ROW,...",
                        help="for run: only these rows of each claim, in the order of the claim")
    script.add_options(parser, Path("runs") / "repro",
                       "for training (default: 1 at quick, else 1,2,3)")
    return parser.parse_args()


def settings_of(given):
    """The parsed options with seeds, absolute paths and machine."""
    settings = script.resolve(given, "1" if given.scale == "quick" else "1,2,3")
    settings.results = settings.output / settings.scale
    settings.tables = settings.tables or settings.results / "tables"
    return settings


def run(given):
    known = claims.load(given.claims)
    if given.action == "list":
        every = {scale: claims.plans(known, scale) for scale in SCALES}
        print(tables.markdown(["claim", "paper", "title", "scales"], [
            [name, claim.paper, claim.title,
             ", ".join(scale for scale in SCALES if every[scale][name].tested)]
            for name, claim in known.items()]))
        return 0
    if given.action == "keep":
        return script.keep(given)
    if given.action == "run" and not given.what:
        raise ReproError("run what? a claim, a paper or all; repro.py list names them")
    settings = settings_of(given)
    if given.action == "show" and not any(kept.results(settings.output / one) for one in SCALES):
        raise ReproError(f"no runs in {settings.output}")
    plans = claims.plans(known, given.scale)
    chosen = {name: plans[name] for name in claims.chosen(known, given.what or "all")}
    results = {name: {row.name: runs.results_of(row, settings) for row in plan.rows.values()}
               for name, plan in chosen.items()}
    script.checked(results)
    if given.action == "show":
        print("\n".join(tables.document(plan, results[name]) for name, plan in chosen.items()))
        print(tables.overview(chosen, results))
        return 0
    wanted = claims.with_rows(chosen, results, given.rows)
    if given.what in known and (missing := programs.missing_data(wanted[given.what], settings)):
        raise ReproError(missing)
    script.need({one.row.program.split()[0] for each in wanted.values()
                 for one in programs.unfinished(each)}, settings)
    if given.dry_run:
        print(estimate.report(chosen, wanted, settings))
        return 0
    settings.tables.mkdir(parents=True, exist_ok=True)
    figures = script.drawing("repro.figures")

    def write_outputs(name):
        both = chosen[name], results[name]
        tables.write(settings.tables, name, tables.document(*both), tables.rows_of(*both))
        if chosen[name].tested and figures:
            figures.save(*both, settings.tables / name)

    failures = script.run_missing(chosen, wanted, settings, write_outputs)
    print("\n" + tables.overview(chosen, results))
    print(f"\ntables and figures: {settings.tables}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(script.main(lambda: run(options())))
