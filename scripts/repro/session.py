"""Runs what is missing; writes the table and the figure of a claim."""

import sys
from pathlib import Path

from runs import ProgramFailed

from . import programs, tables


def write_outputs(plan, results, settings, draw):
    """Writes table and figure of a claim."""
    name = plan.claim.id
    tables.write(settings.tables, name, tables.document(plan, results),
                 tables.rows_of(plan, results))
    if plan.tested and draw:
        draw(plan, results, settings.tables / name)


def say_no_figures():
    print(f"{script()}: no figures: matplotlib is missing (apt-get install python3-matplotlib)",
          file=sys.stderr)


def drawer():
    """The function that draws a claim's figure; None without matplotlib."""
    try:
        from . import figures
    except ImportError:
        say_no_figures()
        return None
    return figures.save


def script():
    """The name of the running script."""
    return Path(sys.argv[0]).name


def run_missing(chosen, results, settings, outputs):
    """Runs what is not finished; returns the number of failures.

    After the results of a plan, outputs(name) writes what is made of them.
    """
    for name in chosen:
        for each in results[name].values():
            for result in each:
                result.check_options()
    failures, done = 0, set()
    for name, plan in chosen.items():
        skipped = programs.missing_data(plan, settings)
        if skipped:
            print(f"{name}: {skipped}")
        for each in results[name].values():
            for result in each if not skipped else ():
                if result.finished or result.folder in done:
                    continue
                done.add(result.folder)
                print(f"{name}: {result.folder.relative_to(settings.output)}", flush=True)
                try:
                    result.run()
                except ProgramFailed as error:
                    failures += 1
                    print(f"{script()}: {error}", file=sys.stderr)
        outputs(name)
    return failures
