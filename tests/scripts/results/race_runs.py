"""race_runs.py FOLDER "METHOD SECONDS COMPUTE MACHINE [EPOCH [OPTIONS]]"...: finished runs of a
race without a link, ten epochs of 100 steps each, the first at density 0.01.

A run reaches 80 % after SECONDS, at the end of EPOCH (default 10); a step takes COMPUTE seconds of
forward and backward. OPTIONS as typed after `--sparsifier` (default: METHOD). LINK/METHOD/DENSITY
in place of METHOD is a short run on a link: its steps take SECONDS, the first 16 a minute.
"""

import csv
import json
import sys
from pathlib import Path

EPOCHS, STEPS = 10, 100


def write_csv(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)


def write(folder, method, seconds, compute, machine, at="10", label=""):
    link, density = "", 0.001
    if "/" in method:
        link, method, density = method.split("/")
    seconds, compute, density = float(seconds), float(compute), float(density)
    folder = folder / "lenet" / (link.replace(",", "-") or "none")
    folder /= f"iterations/{method}/{density:g}-s1" if link else f"{method}-s1"
    folder.mkdir(parents=True)
    words, each = (label or method).split(), seconds / int(at)
    local = int(words[words.index("--local-steps") + 1]) if "--local-steps" in words else 1
    phases = {"sec_forward": compute / 4, "sec_backward": compute * 3 / 4}
    if link:
        write_csv(folder / "steps.csv", [{"step": step, "density": density, **phases,
                                          "seconds": 60 if step <= 16 else seconds}
                                         for step in range(1, 65)])
    write_csv(folder / "metrics.csv", [
        {"epoch": epoch, "density": 0.01 if epoch == 1 else 0.001, "train_loss": 1,
         "seconds": each, "val_top1": 0.07 * epoch if epoch < int(at) else
         0.8 if epoch == int(at) else 0.81, **{key: STEPS * one for key, one in phases.items()}}
        for epoch in range(1, EPOCHS + 1)])
    config = {"model": "lenet", "dataset": "shapes", "density": density, "batch_size": 32,
              "precision": "f32", "threads_per_rank": 1, "local_steps": local, "epochs": EPOCHS,
              "max_steps": 0, "overlap": False, "run": {"ranks": 4},
              "set": {"allreduce.collective": "ring", "allreduce.values": "f32"}}
    files = {"config": config, "summary": {"stopped": False},
             "records": [{"val_top1": 0.81, "steps": EPOCHS * STEPS, "mib_per_step": 2,
                          "train_seconds": each * EPOCHS, "steps_of_epochs": [STEPS] * EPOCHS}],
             "repro": {"label": " ".join(["--sparsifier", *words]),
                       "options": {"seed": 1, **({"link": link} if link else {})},
                       "build": {"commit": "abc", "date": "unknown", "compiler": "unknown",
                                 "cpu": "unknown"},
                       "machine": {"cpu": machine, "cores": 2, "gpu": "none"}}}
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


for text in sys.argv[2:]:
    write(Path(sys.argv[1]), *text.split(" ", 5))
