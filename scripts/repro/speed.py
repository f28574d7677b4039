"""The speed of a training run on this machine, from a few steps in a temporary folder."""

import dataclasses
import functools
import statistics
import subprocess
import tempfile
from pathlib import Path

from . import ROOT, programs

STEPS = 8
FIRST = 3  # steps that include warm-up of caches and threads
LIMIT = 20  # seconds, after which the program ends with its step


@functools.cache
def seconds_per_step(words):
    """The median of a few steps of a command, or None if it fails or ends no step in time."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([*words, "--output-dir", folder, "--name", "speed"], cwd=ROOT,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
        table = Path(folder) / "speed" / "steps.csv"
        steps = [line["seconds"] for line in programs.read_csv(table)] if table.exists() else []
    return statistics.median(steps[FIRST:] or steps[-1:]) if steps else None


def images_per_s(row, settings):
    """Images per second of a training row without its validation, or None."""
    options = {**row.options, "max_steps": STEPS, "eval_every": "never"}
    words = programs.command(dataclasses.replace(row, options=options), settings)
    seconds = seconds_per_step(tuple(words))
    resolved = row.resolved
    images = resolved.get("workers", 1) * resolved.get("batch_size", 32)
    return images / seconds if seconds else None
