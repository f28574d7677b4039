"""The page of report.py: one HTML file with its data, style and script."""

import datetime
import html
import json
import re
from pathlib import Path

from . import UserError, advice, comparison, confusion, curves, folder, settings

PARTS = Path(__file__).parent / "page"
SCRIPTS = ("format", "scale", "export", "table", "chart", "bars", "cursor", "series", "sections",
           "distribution", "confusion", "predictions", "controls", "main")
NOTES = {folder.STOPPED: "stopped by a signal", folder.RUNNING: "still running",
         folder.WAITING: "starts again", folder.UNFINISHED: "ended without a summary"}


def table_data(table):
    return {"names": table.names, "rows": table.cells(), "csv": table.csv()}


def pairs(values):
    """{key: value} as a table."""
    return table_data(comparison.Comparison(
        ["setting", "value"], [[key, settings.text(value)] for key, value in values.items()]))


def notes(runs):
    """A sentence for each run that is not finished."""
    return [f"{name}: {NOTES[run.state]} after {run.epochs} of {run.config.get('epochs', '?')} "
            "epochs." for name, run in zip(comparison.names_of(runs), runs)
            if run.state in NOTES]


def confused(run):
    """The table of `eval` in a run, with the shares that colour it; None if there is none."""
    path = run.folder / confusion.FILE
    if not path.exists():
        return None
    names, counts = confusion.read(path)
    summary = path.with_name("summary.json")
    images = folder.read_json(summary).get("data", "") if summary.exists() else ""
    rows = [[name, *map("{:.0f}".format, row)] for name, row in zip(names, counts)]
    return {"names": ["label", *names], "rows": rows, "shares": confusion.shares(counts),
            "images": images, "csv": path.read_text(encoding="utf-8")}


def prediction(path):
    """The curves and the values at the link of one table of `advise --csv`."""
    columns = (*advice.SPEEDUPS, *advice.SECONDS)
    panels, links = advice.read(path, columns)
    return {"file": path.name, "columns": columns, "ranks": [
        {"ranks": ranks, "curves": [{"label": label, "rows": rows}
                                    for label, rows in advice.merge(lines)],
         "at_link": [{"label": label, "row": row}
                     for label, row in links.get(ranks, {}).items()]}
        for ranks, lines in sorted(panels.items())]}


def of_seeds(runs):
    """What is drawn for several seeds."""
    return {"curves": {name: curves.merged([run["curves"][name] for run in runs])
                       for name in runs[0]["curves"]},
            "phases": curves.mean_phases([run["phases"] for run in runs])} if len(runs) > 1 else {}


def data_of(runs, title, advice_files):
    """Everything that the page shows."""
    known = settings.Settings(runs)
    groups = settings.groups(runs, known)
    names = comparison.names_of(runs)
    described: list = [None] * len(runs)
    widths = []
    for number, group in enumerate(groups):
        width = curves.bin_width([runs[i] for i in group.runs])
        widths.append(width)
        for i in [*group.runs, *group.repeated]:
            run = runs[i]
            described[i] = {"name": names[i], "folder": str(run.folder), "state": run.state,
                            "group": number, "seed": known.values[i].get("seed"),
                            "link": known.values[i].get("link"), "curves": curves.of(run, width),
                            "phases": curves.phases(run),
                            "distribution": curves.distribution(run),
                            "confusion": confused(run)}
    files = [*advice_files, *(path for run in runs for path in advice.found_in(run.folder))]
    count = f"{len(runs)} run" + "s" * (len(runs) > 1)
    return {"title": title or count,
            "made": datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
            "runs": described, "most_points": curves.MOST_POINTS,
            "notes": notes(runs) + [f"{line}." for line in comparison.repeated(runs, groups)],
            "groups": [{"label": group.label, "runs": group.runs, "bin": width,
                        **of_seeds([described[i] for i in group.runs])}
                       for group, width in zip(groups, widths)],
            "tables": {"runs": table_data(comparison.by_run(runs, known)),
                       "groups": table_data(comparison.by_group(runs, known, groups)),
                       "common": pairs(known.common), "partial": pairs(known.partial)},
            "advice": [prediction(path) for path in dict.fromkeys(files)]}


def render(data):
    """The text of the page."""
    def part(name):
        return (PARTS / name).read_text(encoding="utf-8")

    # a tag inside the data would end its element
    try:
        packed = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise UserError("a time in metrics.csv or a prediction is not finite") from None
    packed = packed.replace("<", "\\u003c")
    content = {"title": html.escape(data["title"]), "style": part("style.css"), "data": packed,
               "script": "\n".join(part(f"{name}.js") for name in SCRIPTS)}
    return re.sub("@(" + "|".join(content) + ")@", lambda found: content[found.group(1)],
                  part("page.html"))
