#!/usr/bin/env python3
"""report.py RUN... [-o report.html]: writes a page that compares run folders.

The page needs no network: settings that differ, curves with a choice of axes, seconds by phase,
entries sent, gradient distributions (`train --analyze-every`) and predictions: tables of
`advise --csv` in the run folders, or given by --advice. docs/report.md describes it.
Exit code 2: a folder or file is missing or broken; 1: the disk takes no page. Then no page is
written.
"""

from pathlib import Path

from runs import output, page, program_name, script
from runs.folder import Run
from runs.options import Parser


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folder")
    parser.add_argument("-o", "--output", type=Path, default=Path("report.html"), metavar="FILE")
    parser.add_argument("--title", default="", help="headline (default: the number of runs)")
    parser.add_argument("--advice", action="append", type=Path, default=[], metavar="CSV",
                        help="predictions of `advise --csv`; can be repeated")
    options = parser.parse_args()
    runs = [Run(folder) for folder in options.runs]
    text = page.render(page.data_of(runs, options.title, options.advice))
    output.write(options.output, text.encode(), "HTML")
    print(f"{program_name()}: {options.output}")


if __name__ == "__main__":
    script(main)
