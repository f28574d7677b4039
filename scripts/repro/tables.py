"""The table of a claim, as Markdown and CSV, and the files that hold those of several."""

import csv
import re

from runs import build, output
from runs.kept import read_json
from runs.tables import as_csv, markdown

from . import verdict
from .comparable import left_out_rows, machine_text
from .values import text, theirs_text


def lines_of(plan, results):
    """(head, lines) of what was measured: label, ours, theirs."""
    head = ["row", *(plan.claim.measures or ["ours"]), "theirs"]
    left_out = left_out_rows(results).keys()
    lines = [[line.label, *(text(None if value.of_seconds and value.rows & left_out
                                 else value.numbers(results)) for value in line.values),
              theirs_text(line.theirs) or "–"] for line in plan.lines]
    return head, lines


def rules_of(plan, results):
    """(head, lines) of the rules and their outcomes."""
    head = ["rule", "ours", "required", "theirs", "outcome", "basis"]
    lines = []
    for rule in plan.rules:
        numbers, outcome = verdict.judge(rule, plan, results)
        lines.append([rule.text, text(numbers), verdict.band_text(rule),
                      theirs_text(rule.theirs) or "–", outcome,
                      verdict.basis_of(rule, plan) or "–"])
    return head, lines


def origin(results):
    """Machine, commit, compiler and seeds of the finished results."""
    done = [result for each in results.values() for result in each if result.finished]
    if not done:
        return "No run is finished."
    def distinct(texts):
        return "; ".join(dict.fromkeys(texts))

    machines = distinct(machine_text(result.notes["machine"]) for result in done)
    builds = [build.of_notes(result.notes) for result in done]
    commits = distinct(one["commit"] + f" ({one['date']})" * (one["date"] != "unknown")
                       for one in builds)
    compilers = distinct(one["compiler"] for one in builds)
    held_out = distinct(f" Validation: {size:,} training images, held out."
                        for result in done if (size := result.notes["options"].get("val_size")))
    seeds = sorted({result.seed for result in done if result.seed is not None})
    return (f"Machine: {machines}. Commit: {commits}. Compiler: {compilers}. "
            f"Seeds: {', '.join(map(str, seeds)) or 'none needed'}.{held_out}")


def left_out_text(results):
    """At most one sentence: the rows whose seconds are left out, by the reason."""
    rows = {}
    for row, why in left_out_rows(results).items():
        rows.setdefault(why, []).append(f"`{row}`")
    each = "; ".join(f"{', '.join(names)} ({why})" for why, names in rows.items())
    return [f"Seconds left out: {each}."] if each else []


def runs_of(results):
    """(head, lines): where each training ran, if they differ in it; else None."""
    lines = [[result.row.label, str(result.seed), machine_text(result.notes["machine"]),
              build.of_notes(result.notes)["commit"],
              (read_json(result.folder / "config.json") or {}).get("precision", "–")]
             for each in results.values() for result in each
             if result.row.seeded and result.finished]
    differ = len({tuple(line[2:]) for line in lines}) > 1
    return (["run", "seed", "machine", "commit", "precision"], lines) if differ else None


def document(plan, results):
    """The table of a claim as Markdown."""
    claim = plan.claim
    found, reason = verdict.verdict(plan, results)
    parts = [f"## {claim.id}: {claim.title}", f"Claim: {claim.text} ({claim.source})",
             f"**{found}** at scale `{plan.scale}`: {reason}."]
    parts += [note for note in (claim.note, plan.note) if note]
    if claim.theirs:
        parts.append(f"Theirs: {claim.theirs}.")
    if plan.tested:
        parts += [origin(results), markdown(*lines_of(plan, results))]
        values = [value for line in plan.lines for value in line.values]
        if any(value.of_seconds for value in [*values, *(rule.value for rule in plan.rules)]):
            parts += left_out_text(results)
    parts.append(markdown(*rules_of(plan, results)))
    if plan.tested and (table := runs_of(results)):
        parts.append(markdown(*table))
    return "\n\n".join(parts) + "\n"


def rows_of(plan, results):
    """The same as rows of cells, a head first: a row per cell of the table and per rule."""
    rows = [["claim", "scale", "kind", "row", "measure", "ours", "required", "theirs", "outcome"]]
    first = [plan.claim.id, plan.scale]
    if plan.tested:
        head, lines = lines_of(plan, results)
        rows += [[*first, "line", label, measure, value, "", theirs, ""]
                 for label, *values, theirs in lines for measure, value in zip(head[1:], values)]
        rows.append([*first, "origin", origin(results), "", "", "", "", ""])
    rows += [[*first, "rule", text, "", ours, required, theirs, outcome]
             for text, ours, required, theirs, outcome, _ in rules_of(plan, results)[1]]
    rows.append([*first, "verdict", "", "", "", "", "", verdict.verdict(plan, results)[0]])
    return rows


def write(folder, name, text, rows):
    """Puts a table into tables.md and tables.csv of a folder, in place of that of the same name.
    `text` begins with `## NAME: `, and NAME is the first cell of the rows below the head."""
    folder.mkdir(parents=True, exist_ok=True)
    pages, cells = folder / "tables.md", folder / "tables.csv"
    old = pages.read_text() if pages.exists() else ""
    texts = {part.partition(":")[0]: f"## {part.rstrip()}\n"
             for part in re.split("^## ", old, flags=re.M)[1:]} | {name: text}
    output.write(pages, "\n".join(texts[one] for one in sorted(texts)).encode())
    head, *lines = rows
    others = list(csv.reader(cells.read_text().splitlines())) if cells.exists() else []
    lines += [row for row in others[1:] if row[0] != name]
    output.write(cells, as_csv([head, *sorted(lines, key=lambda row: row[0])]).encode())


def overview(plans, results):
    """One line per claim: its verdict."""
    lines = [[name, plan.claim.title, *verdict.verdict(plan, results[name])]
             for name, plan in plans.items()]
    return markdown(["claim", "title", "verdict", "reason"], lines)
