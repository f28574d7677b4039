#!/usr/bin/env python3
"""compare.py RUN...: a table of run folders: the settings that differ, and the results.

Settings that all runs share are left out. --group-seeds makes one row of the runs that differ only
in the seed, with mean ± standard deviation of those that are finished. Of runs with equal settings
and seed, the finished one that was written last counts; a line on standard error names the others.
Exit code 2: a folder or file is missing or broken.
"""

import sys

from runs import comparison, program_name, script, settings
from runs.folder import Run
from runs.options import Parser


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folder")
    parser.add_argument("--group-seeds", action="store_true", help="one row for all seeds")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print CSV, numbers with nine digits")
    form.add_argument("--markdown", action="store_true", help="print a Markdown table")
    options = parser.parse_args()
    runs = [Run(folder) for folder in options.runs]
    known = settings.Settings(runs)
    groups = settings.groups(runs, known) if options.group_seeds else []
    table = (comparison.by_group(runs, known, groups) if options.group_seeds
             else comparison.by_run(runs, known))
    if options.csv:
        print(table.csv(), end="")
    elif options.markdown:
        print(table.markdown(), end="")
    else:
        print(table.plain(comparison.output_columns()), end="")
        if known.partial:
            print(f"\nin some runs only, from another version: {', '.join(known.partial)}")
    for line in comparison.repeated(runs, groups):
        print(f"{program_name()}: {line}", file=sys.stderr)


if __name__ == "__main__":
    script(main)
