"""Results of many runs in a few files, which `repro.py keep` and `race.py keep` write.

A line of runs.jsonl has the path of a run, its repro.json, its config, its summary, and what
records.json adds to that. A table such as epochs.csv has the rows of all runs, behind a column
`run`. They stand for the folders that they are made of: the functions here read such a file as if
it were FOLDER/short/A1/dense-s1/metrics.csv. A result that has a folder hides the kept one.
"""

import csv
import functools
import io
import json
import lzma

from . import UserError, output, tables

RUNS = "runs.jsonl"
MARK = "repro.json"  # each folder of a result has one
ADVICE = "advise.json"  # what `advise` said on the results below a folder
PARTS = ("config", "summary", "records")  # the other JSON files of a folder, keys of a line
# the file of a folder, and that of all folders
FILES = {"metrics.csv": "epochs.csv", "steps.csv": "steps.csv.xz", ADVICE: "advise.jsonl",
         **{f"{name}.csv": f"{name}.csv"
            for name in ("distributions", "histograms", "residual_histograms")}}
MOST_STEPS = 1000  # those of longer runs are not kept
# of repro.json and config.json, paths and times of the machine that ran it
OF_ONE_MACHINE = ("command", "starts", "data_dir", "output_dir")


def text_of(path):
    data = path.read_bytes()
    return (lzma.decompress(data) if path.suffix == ".xz" else data).decode()


@functools.cache
def known(path):
    """{run: its rows} of a kept file, each an object; empty without the file."""
    rows_of = {}
    try:
        text = text_of(path)
        rows = (map(json.loads, text.splitlines()) if path.suffix == ".jsonl"
                else csv.DictReader(io.StringIO(text), strict=True))
        for row in rows:
            if not isinstance(row, dict) or "run" not in row:
                raise ValueError("a row without a run")
            if path.suffix != ".jsonl" and (None in row or None in row.values()):
                raise ValueError(f"a row of {row['run']} has more or fewer cells than the header")
            rows_of.setdefault(row.pop("run"), []).append(row)
    except FileNotFoundError:
        pass
    except (OSError, ValueError, EOFError, lzma.LZMAError, csv.Error) as error:
        raise UserError(f"{path}: {error}") from None
    return rows_of


def place_of(folder):
    """(folder of kept files, path below it) of a folder, or None."""
    root = next((one for one in (folder, *folder.parents) if (one / RUNS).is_file()), None)
    return root and (root, folder.relative_to(root).as_posix())


def lookup(path):
    """What is kept of a file: an object, a list or a Table. None if there is nothing, or the file
    itself."""
    hidden = path.exists() or (path.parent / MARK).exists()
    if hidden or not (place := place_of(path.parent)):
        return None
    root, run = place
    if path.name in FILES:
        rows = known(root / FILES[path.name]).get(run)
        return (tables.Table(path, list(rows[0]), [list(row.values()) for row in rows])
                if rows and path.suffix == ".csv" else rows)
    line = known(root / RUNS).get(run, [{}])[0]
    if path.name == MARK:
        return {key: value for key, value in line.items() if key not in PARTS} or None
    value = line.get(path.stem) if path.stem in PARTS else None
    if path.stem == "records" and value is not None:
        return [{**line.get("summary", {}), **record} for record in value]
    return value


def exists(path):
    return path.exists() or lookup(path) is not None


def read_table(path):
    return tables.read(path) if (table := lookup(path)) is None else table


def read_json(path):
    """The value in a JSON file; None if there is none."""
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{path}: not a regular file")
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else lookup(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # numbers and nesting beyond Python's limits, too
        raise UserError(f"{path}: not JSON: {str(error)[:100]}") from None


def below(folder):
    """The paths of kept results at a path, or below it."""
    root, _ = place_of(folder) or (None, "")
    return [root / run for run in known(root / RUNS) if (root / run).is_relative_to(folder)
            ] if root else []


def results(folder, pattern="**"):
    """The paths of results below a folder, also of kept ones, in order; `**` is any path."""
    return sorted({path.parent for path in folder.glob(f"{pattern}/{MARK}")} | {
        path for path in below(folder) if pattern == "**" or (
            path.match(pattern) and len(path.relative_to(folder).parts) == pattern.count("/") + 1)})


def public(value):
    return {key: one for key, one in value.items() if key not in OF_ONE_MACHINE}


def entry(folder):
    """{kept file: rows} of the folder of a result, or of what `advise` said."""
    rows_of = {}
    if notes := read_json(folder / MARK):
        config, summary, records = (read_json(folder / f"{part}.json") for part in PARTS)
        line = {**public(notes), "config": config and public(config), "summary": summary,
                "records": records and [
                    {key: value for key, value in record.items() if key not in (summary or {})}
                    for record in records]}
        rows_of[RUNS] = [{key: value for key, value in line.items() if value is not None}]
    for name, file in FILES.items():
        if name.endswith(".json"):
            rows_of[file] = read_json(folder / name)
        elif exists(folder / name):
            table = read_table(folder / name)
            if file != FILES["steps.csv"] or len(table) <= MOST_STEPS:
                rows_of[file] = [dict(zip(table.names, row)) for row in table.rows]
    return {file: rows for file, rows in rows_of.items() if rows}


def filled(rows_of):
    """Rows without empty cells, which a table has that has more columns."""
    return {file: [{key: value for key, value in row.items() if value != ""} for row in rows]
            for file, rows in rows_of.items()}


def add(entries, target, replace):
    """Adds {run: entry()} to the kept files in a folder. Returns the runs of which another result
    is kept, which stays unless `replace`."""
    every = {file: dict(known(target / file)) for file in (*FILES.values(), RUNS)}  # RUNS last
    others = []
    for run, new in entries.items():
        old = {file: rows[run] for file, rows in every.items() if run in rows}
        if replace or not old.keys() & {RUNS, FILES[ADVICE]}:  # or only begun
            for file, rows in every.items():
                rows.pop(run, None)
                rows |= {run: new[file]} if file in new else {}
        elif filled(old) != filled(new):
            others.append(run)
    target.mkdir(parents=True, exist_ok=True)
    for file, rows in every.items():
        if rows or (target / file).exists():
            write(target / file, [{"run": run, **row} for run in sorted(rows) for row in rows[run]])
    return others


def write(path, rows):
    """Writes a kept file, whole or not at all, unless it has these rows."""
    columns = dict.fromkeys(key for row in rows for key in row)
    text = ("".join(json.dumps(row) + "\n" for row in rows) if path.suffix == ".jsonl" else
            tables.as_csv([columns, *([row.get(key, "") for key in columns] for row in rows)]))
    if not path.exists() or text_of(path) != text:
        data = text.encode()
        output.write(path, lzma.compress(data) if path.suffix == ".xz" else data)
        known.cache_clear()
