"""`keep`: finished results in a few files, which lie beside the figures drawn from them.

A result that was kept counts as finished: `--output-dir FOLDER` shows it, and never runs it again.
"""

from pathlib import Path

from runs import kept

from . import ReproError, runs


def add_options(parser):
    """Those besides --output-dir."""
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="for keep: that of the files")
    parser.add_argument("--replace", action="store_true",
                        help="for keep: also replace other results that are kept")


def keep(given):
    """Adds the finished results below --output-dir, and what `advise` said on them, to the kept
    ones. Prints a line for each, and says which have another result already."""
    if not given.to:
        raise ReproError("keep where? --to names a folder")
    output = given.output_dir
    if not output.is_dir():
        raise ReproError(f"--output-dir {output} does not exist")
    done = [folder for folder in kept.results(output) if runs.finished(folder)]
    asked = {parent for folder in done for parent in folder.parents
             if parent.is_relative_to(output) and kept.exists(parent / kept.ADVICE)}
    for folder in done:
        runs.records_of(folder)
    entries = {folder.relative_to(output).as_posix(): kept.entry(folder)
               for folder in sorted({*done, *asked})}
    others = kept.add(entries, given.to, given.replace)
    for run in entries:
        print(run + f": not kept, {given.to} has another result; --replace replaces it"
              * (run in others))
    return 0
