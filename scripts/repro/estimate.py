"""What a run would take: steps and bytes from `train --dry-run`, seconds from earlier results or
from a few steps."""

import dataclasses
import functools
import json
import shlex
import subprocess
import tempfile
from pathlib import Path

from runs import ProgramFailed, told_by
from runs.kept import read_json, results

from . import ROOT, ReproError, programs
from .runs import trained

STEPS = 8  # of a training whose speed is measured
LIMIT = 20  # seconds, after which it ends with its step


@functools.cache
def dry_run(words):
    """The plan of a command, as configs/schema/plan.json describes it."""
    try:
        return json.loads(told_by(*words, "--json", "--dry-run", cwd=ROOT))
    except ProgramFailed as error:
        raise ReproError(error) from None


def plan_of(row, settings):
    """The plan of a training run without its link, which changes neither steps nor bytes."""
    words = programs.command(row, settings)
    if "--link" in words:
        at = words.index("--link")
        del words[at:at + 2]
    return dry_run(tuple(words))


@functools.cache
def measured(words):
    """Seconds of a step of a command, which trains in a temporary folder, or None if it fails or
    ends no step in time."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([*words, "--output-dir", folder, "--name", "speed"], cwd=ROOT,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
        table = Path(folder) / "speed" / "steps.csv"
        steps = programs.read_csv(table) if table.exists() else []
    return programs.seconds_per_step(steps) if steps else None


def seconds(result, steps, images, settings):
    """Seconds of a result, from other seeds of its row: the fewest, as these ran beside the fewest
    other programs. Else from the given throughput, else from that of a few steps, or None."""
    name = result.row.home[-1]
    others = [read_json(folder / "repro.json") or {}
              for folder in results(result.folder.parent, f"{name}-s[0-9]*") if trained(folder)]
    known = [notes["seconds"] for notes in others if notes.get("seconds")]
    if known:
        return min(known)
    if settings.images_per_s:
        return images / settings.images_per_s
    options = {**result.row.options, "max_steps": STEPS, "eval_every": "never"}
    each = measured(tuple(programs.command(dataclasses.replace(result.row, options=options),
                                           settings)))
    return steps * each if each else None


def from_here(words):
    """A command that runs in ROOT, with the path of its recipe from the current folder."""
    return [str(ROOT / word) if Path.cwd() != ROOT and word.endswith(".json") else word
            for word in words]


def line(result, settings):
    """(text, bytes, seconds) of a result that is not finished."""
    row = result.row
    told = shlex.join(from_here(programs.command(row, settings)))
    head = "/".join(row.home) + (f" seed {result.seed}" if row.seeded else "")
    if not row.seeded:
        return f"{head}: seconds unknown\n    {told}", 0, None
    plan = plan_of(row, settings)
    epochs, steps, sent = plan["epochs"], plan["steps"], plan["bytes_sent"]
    images = steps * plan["ranks"] * plan["batch_size"] * plan["accumulate"]
    known = seconds(result, steps, images, settings)
    time = f"about {known:.0f} s" if known else "seconds unknown"
    return (f"{head}: P = {row.resolved.get('workers', 1)}, {epochs} epoch{'s' * (epochs != 1)}, "
            f"{steps} steps, {sent / 2**20:,.1f} MiB sent, {time}\n    {told}"), sent, known


def report(chosen, results, settings):
    """What `run` would start, with the totals."""
    parts, every = [], {}
    for name in chosen:
        if skipped := programs.missing_data(results[name], settings):
            parts.append(f"{name}: {skipped}")
        else:
            every |= {result.folder: result for each in results[name].values() for result in each}
    missing = [result for result in every.values() if not result.finished]
    lines = [line(result, settings) for result in missing]
    unknown = sum(time is None for _, _, time in lines)
    training = any(time is None and result.row.seeded
                   for result, (_, _, time) in zip(missing, lines))
    parts += [text for text, _, _ in lines]
    parts.append(f"{len(every) - len(missing)} results finished, {len(missing)} to run: "
                 f"{sum(sent for _, sent, _ in lines) / 2**20:,.1f} MiB sent, "
                 f"{sum(time or 0 for _, _, time in lines):.0f} s and the time of "
                 f"{unknown} results that is unknown"
                 + (" (--images-per-s estimates that of training)" if training else ""))
    return "\n".join(parts)
