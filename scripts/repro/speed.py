"""The speed of a training run on this machine, from a few steps in a temporary folder."""

import dataclasses
import functools
import subprocess
import tempfile
from pathlib import Path

from . import ROOT, programs

STEPS = 8
LIMIT = 20  # seconds, after which the program ends with its step


@functools.cache
def measured(words):
    """Seconds of a step of a command, or None if it fails or ends no step in time."""
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


def seconds_per_step(row, settings):
    """That of a training row, or None."""
    options = {**row.options, "max_steps": STEPS, "eval_every": "never"}
    return measured(tuple(programs.command(dataclasses.replace(row, options=options), settings)))
