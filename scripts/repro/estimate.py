"""What a run would take: steps and bytes from `train --dry-run`, seconds from earlier results."""

import functools
import re
import shlex
import subprocess

from . import ROOT, ReproError, programs
from .runs import read_json

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


@functools.cache
def dry_run(words):
    """(training images, bytes that all ranks send at a time, "step" or "exchange") of a command."""
    done = subprocess.run([*words, "--dry-run"], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    images = re.search(r"\((\d+) training images\)", done.stdout)
    sent = re.search(r"([\d.]+) (\w+) sent per (step|exchange)", done.stdout)
    if done.returncode != 0 or not images or not sent:
        text = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise ReproError(f"{' '.join(words)} --dry-run: {text[-1]}")
    return int(images.group(1)), float(sent.group(1)) * UNITS[sent.group(2)], sent.group(3)


def of_training(row, settings):
    """(epochs, steps, bytes, images) of a training run."""
    options = row.resolved
    ranks, epochs = options.get("workers", 1), options.get("epochs", 10)
    density = options.get("density", 0.001)
    # every option but the densities, which differ between epochs
    base = programs.command(row, settings)
    warmup = programs.density_warmup(options)[:epochs]
    each, total, steps = {}, 0, 0
    for epoch in range(epochs):
        rho = warmup[epoch] if epoch < len(warmup) else density
        if rho not in each:
            each[rho] = dry_run((*base, "--density", str(rho), "--density-warmup", ""))
        images, sent, time = each[rho]
        more = images // (ranks * options.get("batch_size", 32))
        if options.get("max_steps"):
            more = min(more, options["max_steps"] - steps)
        steps += more
        # local steps: an exchange after several steps and at the end of an epoch
        total += sent * (-(-more // options.get("local_steps", 1)) if time == "exchange" else more)
    return epochs, steps, total, steps * ranks * options.get("batch_size", 32)


def seconds(result, images, rate):
    """Seconds of a result of the same row with another seed, or at a given rate; else None."""
    name = result.row.home[-1]
    for other in result.folder.parent.glob(f"{name}-s*/summary.json"):
        notes = read_json(other.with_name("repro.json"))
        if notes and notes.get("seconds"):
            return notes["seconds"]
    return images / rate if rate else None


def line(result, settings):
    """(text, bytes, seconds) of a result that is not finished."""
    row = result.row
    told = shlex.join(programs.command(row, settings))
    head = "/".join(row.home) + (f" seed {result.seed}" if row.seeded else "")
    if not row.seeded:
        return f"{head}: seconds unknown\n    {told}", 0, None
    epochs, steps, sent, images = of_training(row, settings)
    known = seconds(result, images, settings.images_per_s)
    time = f"about {known:.0f} s" if known else "seconds unknown"
    return (f"{head}: P = {row.resolved.get('workers', 1)}, {epochs} epochs, {steps} steps, "
            f"{sent / 2**20:,.1f} MiB sent, {time}\n    {told}"), sent, known


def report(chosen, results, settings):
    """What `run` would start, with the totals."""
    parts, every = [], {}
    for name, plan in chosen.items():
        skipped = programs.missing_data(plan, settings)
        if skipped:
            parts.append(f"{name}: {skipped}")
            continue
        every |= {result.folder: result for each in results[name].values() for result in each}
    todo = [result for result in every.values() if not result.finished]
    lines = [line(result, settings) for result in todo]
    unknown = sum(time is None for _, _, time in lines)
    parts += [text for text, _, _ in lines]
    parts.append(f"{len(every) - len(todo)} results finished, {len(todo)} to run: "
                 f"{sum(sent for _, sent, _ in lines) / 2**20:,.1f} MiB sent, "
                 f"{sum(time or 0 for _, _, time in lines):.0f} s and the time of "
                 f"{unknown} results that is unknown")
    return "\n".join(parts)
