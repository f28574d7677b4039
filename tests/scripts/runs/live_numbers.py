"""live_numbers.py FOLDER: checks runs/live.py and runs/picture.py with a made-up run in FOLDER."""

import fcntl
import json
import os
import shutil
import sys
from pathlib import Path

from runs import folder, live, picture

HEAD = "step,epoch,train_loss,train_top1,images,seconds,bytes_sent,sec_exchange"


def row(step, seconds=0.5):
    """One of a step; ten make an epoch."""
    epoch = (step - 1) // 10 + 1
    return f"{step},{epoch},{4 / epoch},{epoch / 8},64,{seconds},{2**20},{seconds / 4}\n"


def check_growing(path):
    """Only complete rows count; a file that was replaced or cut is read again."""
    table = live.Growing(path, ("step", "seconds"))
    table.refresh()
    assert len(table) == 0
    path.write_text(f"{HEAD}\n{row(1)}{row(2)[:7]}")
    table.refresh()
    assert list(table.columns["step"]) == [1]
    with open(path, "a", encoding="utf-8") as file:
        file.write(row(2)[7:])
    table.refresh()
    assert list(table.columns["step"]) == [1, 2]
    other = path.with_suffix(".new")  # longer, with the same start
    other.write_text(f"{HEAD}\n{row(1, 0.75)}{row(2, 0.75)}{row(3, 0.75)}")
    os.replace(other, path)
    table.refresh()
    assert list(table.columns["seconds"]) == [0.75] * 3, table.columns
    path.write_text(f"{HEAD}\n{row(7)}")
    table.refresh()
    assert list(table.columns["step"]) == [7]


def check_numbers(run):
    """Means of the last steps, totals of the run."""
    live.on_own_disk = lambda path: False
    config = {"epochs": 4, "max_steps": 0, "run": {"ranks": 2, "steps_per_epoch": 10}}
    (run / "config.json").write_text(json.dumps(config))
    steps = "".join(row(step, 3 if step <= 10 else 0.5) for step in range(1, 31))
    (run / "steps.csv").write_text(f"{HEAD}\n{steps}")
    (run / "metrics.csv").write_text("epoch,val_top1\n1,0.25\n2,0.75\n3,0.5\n")
    one = live.Live(run)
    assert one.state == folder.RUNNING, one.state
    assert (one.step, one.epoch, one.total_steps) == (30, 3, 40)
    found = " | ".join(text for _, text in picture.numbers(one))
    expected = ("loss 1.6667 | top-1 0.312 | val 0.5000 (best 0.7500) | 0.5 s/step | "
                "25 % exchange | 2.0 MiB/s | 128 images/s | ETA 0:05")
    assert found == expected, found
    lines = picture.block(one, 200, picture.PLAIN)
    assert lines[0] == "run  running  epoch 3/4  30/40 steps", lines[0]
    assert lines[1] == f"|{'#' * 45}{'.' * 15}|", lines[1]
    # from the first loss to the last, the greatest mark to the least
    assert lines[3] == "loss      " + "@" * 10 + "-" * 10 + "_" * 10 + " 4 -> 1.333", lines[3]
    (run / "config.json").write_text(json.dumps(config | {"run": {"steps_per_epoch": 20}}))
    one.refresh()
    assert one.total_steps == 20 + 2 * 20, "its second epoch ended after step 20, on other ranks"
    (run / "config.json").write_text(json.dumps(config | {"max_steps": 32}))
    one.refresh()
    assert one.total_steps == 32
    assert picture.numbers(one)[-1][1] == "ETA 0:01"
    shutil.rmtree(run)
    one.refresh()
    assert (one.state, one.broken) == ("broken", f"{run}: not a folder"), one.broken


def check_lock(run):
    """A run that loses its lock has ended, as has one without a lock on a disk of this machine; on
    another, one without a lock runs as long as it writes."""
    run.mkdir()
    (run / "config.json").write_text(json.dumps({"epochs": 4}))
    (run / "steps.csv").write_text(f"{HEAD}\n{row(1)}")
    (run / "metrics.csv").write_text("epoch,val_top1\n")
    live.on_own_disk = lambda path: False
    without = live.Live(run)
    assert without.state == folder.RUNNING, "another machine, whose lock is not seen, may write it"
    live.on_own_disk = lambda path: True
    killed = live.Live(run)
    assert killed.state == folder.UNFINISHED, "a lock would be seen"
    live.on_own_disk = lambda path: False
    lock = os.open(run, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    one = live.Live(run)
    assert one.state == folder.RUNNING, one.state
    os.close(lock)
    one.refresh()
    without.refresh()
    assert (one.state, without.state) == (folder.UNFINISHED, folder.RUNNING), one.state
    shutil.rmtree(run)


def check_fit():
    """Parts of lower rank have precedence and stay in their order."""
    parts = [(1, "second"), (0, "first"), (2, "third")]
    assert picture.fit(parts, 80, "name") == "name  second  first  third"
    assert picture.fit(parts, 19, "name") == "name  second  first"
    assert picture.fit(parts, 18, "name") == "name  first  third"
    assert picture.fit(parts, 12, "name") == "name  first"
    assert picture.shortened("resnet20", 8) == "resnet20"
    assert picture.shortened("resnet20-gtopk", 8) == "resnet.."


if __name__ == "__main__":
    made = Path(sys.argv[1]) / "run"
    made.mkdir()
    check_growing(made / "steps.csv")
    check_numbers(made)
    check_lock(made)
    check_fit()
