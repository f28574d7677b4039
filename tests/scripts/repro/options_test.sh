#!/usr/bin/env bash
# The programs accept the options of every row of every claim, at every scale. Training is not run
# but planned; vectors are short, and nothing is measured.
set -euo pipefail
PYTHONPATH=scripts PYTHONDONTWRITEBYTECODE=1 python3 - "$TW_BUILD/bin" <<'PY'
import dataclasses
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from repro import SCALES, claims, programs

# instead of the claim's own: real data that is not here, long vectors, measurements
SHORT = {"train": {"dataset": "shapes", "val_size": 0},
         "bench comm": {"min_bytes": 4096, "max_bytes": 4096},
         "bench select": {"d": 4096, "iterations": 1},
         "advise": {"simulate": True, "compute": 1, "select": 0},
         "analyze theory": {}}
settings = SimpleNamespace(bin=Path(sys.argv[1]), launcher="threads", device="", data_dir="",
                           val_size=None)
known = claims.load(Path("configs/repro"))
help_texts, failures, commands = {}, 0, {}
for scale in SCALES:
    for name, plan in claims.plans(known, scale).items():
        for row in plan.rows.values():
            if row.program == programs.TORCH:  # needs PyTorch; select_vs_torch_test.sh runs it
                continue
            options = row.options | SHORT[row.program]
            if row.program == "advise":
                options.pop("workers", None)  # measures with them
            elif (model := row.resolved.get("model", "")).endswith("_imagenet"):
                options["model"] = model.removesuffix("_imagenet")  # generated images are small
            elif model == "alexnet":  # needs images of 224
                options["model"] = "lenet"
            words = programs.command(dataclasses.replace(row, options=options), settings)
            if row.program == "train":
                words.append("--dry-run")
            commands.setdefault(tuple(words), (f"{name}/{row.name} at {scale}", row))
assert len(commands) > 100, len(commands)

with tempfile.TemporaryDirectory() as folder:
    for words, (name, row) in commands.items():
        program = row.program
        if program not in help_texts:
            help_texts[program] = subprocess.run(
                [settings.bin / program.split()[0], *program.split()[1:], "--help"],
                capture_output=True, text=True, check=True).stdout
        for flag in (word for word in programs.flags(row.options) if word.startswith("--")):
            flag = flag.removesuffix("=false")
            if not re.search(rf"{flag}\b", help_texts[program]):
                failures += 1
                print(f"{name}: {program} has no {flag}")
        done = subprocess.run(words, capture_output=True, text=True, check=False,
                              env=os.environ | {"THINWIRE_CACHE": folder})
        if done.returncode != 0:
            failures += 1
            print(f"{name}: {' '.join(map(str, words))}\n{done.stdout[-300:]}{done.stderr}")
print(f"{len(commands)} commands, {failures} failures")
sys.exit(failures > 0)
PY
