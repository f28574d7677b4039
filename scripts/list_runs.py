#!/usr/bin/env python3
"""list_runs.py [FOLDER...]: lists the runs below folders (default: runs).

A line has the state, the finished epochs, the last and the best top-1, the name and the folder.
States: finished; stopped (by a signal); running; waiting (for a retry by `thinwire run`);
unfinished (killed); broken (a file cannot be read; the reason follows).
Keys of --where and --sort are the options in config.json (`density`, `gtopk.rotate`), the columns
of compare.py (`val_top1`, `state`) and the numbers and texts in summary.json (`weights_hash`).
Exit code 2: a folder is missing or no run has a key.
"""

from pathlib import Path

from runs import UserError, conditions, folder, measures, nearest, script, settings
from runs.comparison import Comparison
from runs.options import Parser

COLUMNS = ("state", "epochs_done", "val_top1", "best_top1", "name", "folder")


def cell(value):
    """Numbers as they are, other settings as text."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if value is None or plain else settings.text(value)


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--where", action="append", default=[], metavar="KEY=VALUE",
                        help="only runs for which this holds; also != < <= > >=; all, if repeated")
    parser.add_argument("--sort", metavar="KEY", help="order by this key (default: folder)")
    parser.add_argument("--reverse", action="store_true", help="largest first")
    parser.add_argument("--csv", action="store_true", help="print CSV, numbers with nine digits")
    options = parser.parse_args()
    wanted = [conditions.Condition(words) for words in options.where]
    paths = [path for top in options.folders or [Path("runs")] for path in folder.below(top)]
    runs = [measures.with_settings(folder.Run(path)) for path in paths]
    keys = {key for values in runs for key in values}
    order = options.sort and options.sort.replace("-", "_")
    for key in [condition.key for condition in wanted] + [order] * bool(order):
        if runs and key not in keys:
            raise UserError(f"no run has the key {key}{nearest(key, sorted(keys))}")
    chosen = [values for values in runs if all(condition.holds(values) for condition in wanted)]
    if order:
        chosen = conditions.ordered(chosen, order, options.reverse)
    # then the keys that were asked for, and what is wrong with a broken run
    names = list(dict.fromkeys([*COLUMNS, *(condition.key for condition in wanted),
                                *[order] * bool(order), "reason"]))
    names = [name for name in names if name in COLUMNS or any(name in run for run in chosen)]
    table = Comparison(names, [[values.get(name, "") if name == "reason" else
                                cell(values.get(name)) for name in names] for values in chosen])
    print(table.csv() if options.csv else table.plain(), end="")


if __name__ == "__main__":
    script(main)
