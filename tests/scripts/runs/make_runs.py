#!/usr/bin/env python3
"""make_runs.py FOLDER [STEPS]: writes run folders as `train` does, with made-up numbers.

Two sparsifiers with three seeds each (topk-s1 … gaussiank-s3), `dense` on a slow link, and
`stopped`, which a signal ended after two of four epochs. Each epoch has STEPS / 4 steps; `stopped`
validated every second epoch only, and one of its losses is not finite. gaussiank-s1 has gradient
distributions and predictions.
"""

import json
import random
import sys
from pathlib import Path

EPOCHS = 4
PHASES = ["data", "forward", "backward", "select", "exchange", "update"]
STEP_HEAD = ("step,epoch,lr,density,train_loss,train_top1,images,seconds,nnz_over_k,bytes_sent,"
             + ",".join(f"sec_{phase}" for phase in PHASES) + ",sec_wait")
EPOCH_HEAD = ("epoch,lr,density,train_loss,train_top1,val_loss,val_top1,val_top5,images_per_s,"
              "seconds,nnz_over_k,bytes_sent," + ",".join(f"sec_{phase}" for phase in PHASES)
              + ",sec_wait")
CONFIG = {"model": "mlp", "dataset": "shapes", "batch_size": 32, "sparsifier": "topk",
          "density": 0.01, "density_warmup": [0.04], "overlap": False, "epochs": EPOCHS, "lr": 0.01,
          "seed": 1, "link": "", "transport": "auto", "eval_every": 1, "output_dir": "runs"}


def density_of(config, epoch):
    """The density of an epoch, after the warm-up."""
    if config["sparsifier"] == "dense":
        return 1
    return (config["density_warmup"] + [config["density"]] * EPOCHS)[epoch - 1]


def steps_of(draw, steps, bytes_per_step, config):
    """Rows of steps.csv as lists of numbers."""
    rows = []
    for step in range(1, steps + 1):
        epoch = 1 + (step - 1) * EPOCHS // steps
        phases = [round(draw.uniform(0.001, 0.01), 6) for _ in PHASES]
        wait = round(phases[4] * draw.random(), 6)
        loss = round(2.3 * 0.999 ** step + 0.2 * draw.random(), 6)
        rows.append([step, epoch, 0.01, density_of(config, epoch), loss, round(draw.random(), 6),
                     64, round(sum(phases) + 0.001, 6), round(draw.uniform(0.9, 1.4), 6),
                     bytes_per_step, *phases, wait])
    return rows


def epochs_of(draw, steps, done, eval_every):
    """Rows of metrics.csv; empty cells are ""."""
    rows = []
    for epoch in range(1, done + 1):
        own = [row for row in steps if row[1] == epoch]
        seconds = sum(row[7] for row in own)
        val = ([round(2 / epoch, 6), round(0.2 * epoch + 0.1 * draw.random(), 6),
                round(0.5 + 0.1 * epoch, 6)] if epoch % eval_every == 0 else ["", "", ""])
        rows.append([epoch, 0.01, own[0][3], sum(row[4] for row in own) / len(own), 0.5, *val,
                     round(64 * len(own) / seconds, 1), round(seconds, 6),
                     sum(row[8] for row in own) / len(own), sum(row[9] for row in own),
                     *(round(sum(row[i] for row in own), 6) for i in range(10, 17))])
    return rows


def table(path, head, rows):
    path.write_text("".join(f"{line}\n" for line in [head, *(",".join(map(str, row))
                                                             for row in rows)]))


def make(folder, steps, options, bytes_per_step, stopped=False):
    draw = random.Random(folder.name)
    (folder / "checkpoints").mkdir(parents=True)
    config = {**CONFIG, "name": folder.name, **options,
              "set": {"gtopk.rotate": "false"}, "run": {"thinwire": "0.2.0", "ranks": 2,
                                                        "transport": "threads"}}
    (folder / "config.json").write_text(json.dumps(config))
    rows = steps_of(draw, steps, bytes_per_step, config)
    done = EPOCHS // 2 if stopped else EPOCHS
    if stopped:  # in its third epoch; one loss is not finite
        rows = rows[:steps * 5 // 8]
        rows[steps * 9 // 16][4] = "nan"
    epochs = epochs_of(draw, rows, done, config["eval_every"])
    table(folder / "steps.csv", STEP_HEAD, rows)
    table(folder / "metrics.csv", EPOCH_HEAD, epochs)
    seconds = sum(row[7] for row in rows)
    (folder / "summary.json").write_text(json.dumps({
        "val_top1": epochs[-1][6], "stopped": stopped, "epochs": done, "steps": len(rows),
        "train_seconds": seconds, "images_per_s": 64 * len(rows) / seconds,
        "bytes_sent": sum(row[9] for row in rows),
        "nnz_over_k": sum(row[8] * row[3] for row in rows) / sum(row[3] for row in rows),
        "seed": config["seed"]}))


def add_extras(folder):
    """Gradient distributions and predictions."""
    table(folder / "distributions.csv",
          "epoch,steps,mean,std,kurtosis,left_topk,left_randk,bound",
          [[epoch, 8, 1e-5, 0.01, 9.5, 0.8, 0.98, 0.97] for epoch in (1, 2)])
    table(folder / "histograms.csv", "epoch,low,high,count", [
        [epoch, *edges, count] for epoch in (1, 2)
        for *edges, count in [(-0.25, -0.125, 1), (-0.125, -0.0625, 4), (0, 0.0625, 2),
                              (0.0625, 0.125, 6), (0.125, 0.25, 3)]])
    head = ("sparsifier,collective,local_steps,ranks,at_link,gbit_per_s,iteration_seconds,"
            "iteration_low,iteration_high,exchange_seconds,efficiency,speedup,speedup_low,"
            "speedup_high,break_even_gbit,break_even_low,break_even_high,top1_points")
    table(folder / "advice.csv", head, [
        [name, collective, 1, ranks, at_link, gbit, seconds, seconds * 0.9, seconds * 1.1, 0.01,
         0.5, speed, speed * 0.9, speed * 1.1, "", "", "", ""]
        for ranks in (4, 8)
        for name, collective, gain in (("dense", "ring", 0), ("dense", "linear_pipeline", -0.2),
                                       ("topk", "", 1))
        for at_link, gbit in ((1, 1), (0, 0.1), (0, 1), (0, 10))
        for speed in [1 + gain / gbit / ranks] for seconds in [0.1 / speed]])


def main():
    top, steps = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1600
    for kind, size in (("topk", 1000), ("gaussiank", 1500)):
        for seed in (1, 2, 3):
            make(top / f"{kind}-s{seed}", steps, {"sparsifier": kind, "seed": seed}, size)
    make(top / "dense", steps, {"sparsifier": "dense", "link": "100Mbit,1ms"}, 100000)
    make(top / "stopped", steps, {"density": 0.001, "eval_every": 2}, 100, stopped=True)
    add_extras(top / "gaussiank-s1")


if __name__ == "__main__":
    main()
