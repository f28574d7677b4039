"""race_runs.py FOLDER "METHOD SECONDS COMPUTE MACHINE [EPOCH [OPTIONS]]"...: finished runs of a
race without a link, ten epochs of 100 steps each.

A run reaches 80 % after SECONDS, at the end of EPOCH (default 10); a step takes COMPUTE seconds of
forward and backward. OPTIONS as typed after `--sparsifier` (default: METHOD).
"""

import csv
import json
import sys
from pathlib import Path

EPOCHS, STEPS = 10, 100


def write(folder, method, seconds, compute, machine, at="10", label=""):
    folder = folder / "lenet" / "none" / f"{method}-s1"
    folder.mkdir(parents=True)
    words, each = (label or method).split(), float(seconds) / int(at)
    local = int(words[words.index("--local-steps") + 1]) if "--local-steps" in words else 1
    epochs = [{"epoch": epoch, "density": 0.001, "train_loss": 1, "seconds": each,
               "val_top1": 0.07 * epoch if epoch < int(at) else 0.8 if epoch == int(at) else 0.81,
               "sec_forward": float(compute) * STEPS / 4,
               "sec_backward": float(compute) * STEPS * 3 / 4} for epoch in range(1, EPOCHS + 1)]
    with open(folder / "metrics.csv", "w", encoding="utf-8") as file:
        table = csv.DictWriter(file, epochs[0])
        table.writeheader()
        table.writerows(epochs)
    config = {"model": "lenet", "dataset": "shapes", "density": 0.001, "batch_size": 32,
              "precision": "f32", "threads_per_rank": 1, "local_steps": local, "epochs": EPOCHS,
              "max_steps": 0, "overlap": False, "run": {"ranks": 4},
              "set": {"allreduce.collective": "ring", "allreduce.values": "f32"}}
    files = {"config": config, "summary": {"stopped": False},
             "records": [{"val_top1": 0.81, "steps": EPOCHS * STEPS, "mib_per_step": 2,
                          "train_seconds": each * EPOCHS, "steps_of_epochs": [STEPS] * EPOCHS}],
             "repro": {"label": " ".join(["--sparsifier", *words]), "options": {"seed": 1},
                       "versions": "thinwire\ncommit abc",
                       "machine": {"cpu": machine, "cores": 2, "gpu": "none"}}}
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


for text in sys.argv[2:]:
    write(Path(sys.argv[1]), *text.split(" ", 5))
