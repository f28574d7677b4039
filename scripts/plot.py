#!/usr/bin/env python3
"""plot.py RUN... [-o FILE.png]: draws the curves of one or several run folders.

By epoch: validation accuracy; training loss and entries sent / k, with the points of steps.csv
between the ends of epochs. Also accuracy by bytes sent (summed over ranks), accuracy by seconds of
training, and the seconds of each phase. --group-seeds draws runs that differ only in the seed as
their mean, with a band from the lowest to the highest value.

With --advice FILE.csv, it draws the predictions of `advise --csv` instead: for each number of
ranks, how many times as fast as the best dense exchange each sparsifier is, by bandwidth.

With --confusion FILE.csv, it draws the table that `eval` writes: images by label and prediction.

With --compressors FILE.csv, it draws the table of `analyze compressors --csv`: the error of each
sparsifier on recorded gradients by the bytes that all ranks send.
"""

import importlib
import sys
from pathlib import Path

from runs import (UserError, advice, comparison, compressors, confusion, program_name, script,
                  settings, with_matplotlib)
from runs.folder import PHASES, Run
from runs.options import Parser

COLUMNS = ["epoch", "train_loss", "val_top1", "seconds", "nnz_over_k", "bytes_sent"]
COLUMNS += [f"sec_{phase}" for phase in PHASES]
# the tables that are drawn in place of runs: how they are read, and which program writes them
TABLES = {"advice": (advice.read, "advise --csv"), "confusion": (confusion.read, "eval"),
          "compressors": (compressors.read, "analyze compressors --csv")}


def opened(folder):
    """A run with its label set."""
    run = Run(folder)
    run.metrics.require(COLUMNS)
    return run


def with_points(runs):
    """The runs with at least one epoch or step; UserError if there is none."""
    empty = [run for run in runs if not len(run.metrics) and not run.optional("steps.csv")]
    if len(empty) == len(runs):
        raise UserError(f"{empty[0].metrics.path}: no epoch has been finished and no step is "
                        "recorded")
    for run in empty:
        print(f"{program_name()}: {run.folder} is left out: no step is recorded", file=sys.stderr)
    return [run for run in runs if run not in empty]


def label_of(run):
    """The label: name (sparsifier, configured density), as far as config.json has them."""
    try:
        config = run.config
    except UserError:
        return run.name
    name = config.get("name") or run.name
    kind = config.get("sparsifier", "")
    if kind and kind not in settings.WITHOUT_DENSITY and "density" in config:
        kind += f" {config['density']:g}"
    return f"{name} ({kind})" if kind and kind != name else name


def labelled(runs):
    """[(label, runs)] with each run by itself; its folder tells equal labels apart."""
    names = [label_of(run) for run in runs]
    return [(name if names.count(name) == 1 else f"{name} [{run.folder}]", [run])
            for name, run in zip(names, runs)]


def grouped(runs):
    """[(label, runs)] of groups of seeds; a line on standard error for each run left out."""
    groups = settings.groups(runs, settings.Settings(runs))
    for line in comparison.repeated(runs, groups):
        print(f"{program_name()}: {line}", file=sys.stderr)
    return [(group.label + f" ({len(group.runs)} seeds)" * (len(group.runs) > 1),
             [runs[i] for i in group.runs]) for group in groups]


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run folder with metrics.csv")
    for name, (_, program) in TABLES.items():
        parser.add_argument(f"--{name}", metavar="CSV",
                            help=f"draw a table of `{program}` instead")
    parser.add_argument("-o", "--output", type=Path,
                        help="picture (png, pdf, svg); default: curves.png, advice.png, …")
    parser.add_argument("--group-seeds", action="store_true", help="one line for all seeds")
    parser.add_argument("--title", default="", help="text above the picture")
    options = parser.parse_args()
    tables = [name for name in TABLES if getattr(options, name)]
    if tables and (options.runs or len(tables) > 1):
        beside = options.runs[0] if options.runs else f"--{tables[1]}"
        parser.error(f"--{tables[0]} draws one table and no runs; found {beside} beside it")
    if not tables and not options.runs:
        flags = " or ".join(f"--{name}" for name in TABLES)
        parser.error(f"RUN, {flags} is missing; --help lists all")
    output = options.output or Path(f"{(*tables, 'curves')[0]}.png")
    if not with_matplotlib():
        raise UserError(f"{sys.executable} has no matplotlib; on Debian: "
                        "apt-get install python3-matplotlib")
    figures = importlib.import_module("runs.figures")
    if tables:
        table = TABLES[tables[0]][0](Path(getattr(options, tables[0])))
        draw = getattr(figures, f"draw_{tables[0]}")
        figures.save(draw, table, options.title, output)
        return

    runs = with_points([opened(folder) for folder in options.runs])
    lines = grouped(runs) if options.group_seeds else labelled(runs)
    units = [figures.Unit(label, seeds, band=options.group_seeds) for label, seeds in lines]
    figures.save(figures.draw, units, options.title, output)


if __name__ == "__main__":
    script(main)
