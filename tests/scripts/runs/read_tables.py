#!/usr/bin/env python3
"""read_tables.py FOLDER: pandas and DuckDB read the tables of the folder's runs without options:
the same columns, none without a name, all of numbers. DuckDB takes those without a value for
text. Both read the results that the repository keeps."""

import re
import sys
from pathlib import Path

import duckdb
import pandas

NUMBERS = ("BIGINT", "DOUBLE")


def check(path):
    frame = pandas.read_csv(path)
    assert len(frame) and not [name for name in frame if name.startswith("Unnamed")], path
    found = duckdb.sql(f"SELECT * FROM '{path}'")
    assert found.columns == list(frame.columns), (path, found.columns)
    for name, kind in zip(found.columns, map(str, found.types)):
        assert pandas.api.types.is_numeric_dtype(frame[name]), (path, name)
        assert kind in NUMBERS or frame[name].isna().all(), (path, name, kind)
    print(path.parent.name, path.name, len(frame), "rows,", len(frame.columns), "columns")


def check_kept(folder):
    """The files of kept results: both programs find the last top-1 of each training in two."""
    runs = pandas.read_json(folder / "runs.jsonl", lines=True, precise_float=True)
    wanted = {run: summary["val_top1"] for run, summary in
              runs.set_index("run")["summary"].dropna().items()}
    last = pandas.read_csv(folder / "epochs.csv").groupby("run")["val_top1"].last()
    last = last.astype(object).where(last.notna(), None)  # of trainings without a validation
    assert len(wanted) > 50 and last.to_dict() == wanted, folder
    found = duckdb.sql(f"SELECT run, summary.val_top1 FROM '{folder}/runs.jsonl' "
                       "WHERE summary IS NOT NULL").fetchall()
    assert dict(found) == wanted, folder
    assert set(pandas.read_csv(folder / "steps.csv.xz")["run"]) < wanted.keys(), folder


def main():
    folder = Path(sys.argv[1])
    tables = sorted(folder.glob("*/*.csv"))
    assert len(tables) == 10, tables
    for path in tables:
        check(path)
    compared = pandas.read_csv(folder / "compare.csv")
    assert list(compared["run"]) == ["eval-1", "eval-never"], compared
    # the names of columns need no quotes
    bins = duckdb.sql(f"SELECT low, high, count FROM '{folder}/eval-1/histograms.csv' "
                      "WHERE low >= high OR count <= 0")
    assert not bins.fetchall()
    # the query of the documentation reads several runs, of which one was stopped in its first epoch
    rows = (folder / "eval-1" / "metrics.csv").read_text().splitlines(keepends=True)
    (folder / "stopped").mkdir()
    (folder / "stopped" / "metrics.csv").write_text(rows[0])
    query = re.search(r'duckdb -c "(.*?)"', Path("docs/report.md").read_text(), re.S)[1]
    told = duckdb.sql(query.replace("runs/", f"{folder}/")).fetchall()
    assert len(told) == len(rows), told
    values = [top1 for path, _, top1 in told if "/eval-1/" in path]
    assert len(values) == len(rows) - 1 and all(0 <= top1 <= 1 for top1 in values), told
    for kept in map(Path, ("docs/results/repro", "docs/results/race")):
        check_kept(kept)


if __name__ == "__main__":
    main()
