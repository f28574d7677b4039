#!/usr/bin/env python3
"""soak.py [--steps N] [--train PROGRAM] [--output FOLDER] [-- FLAGS OF TRAIN]: a long run of LeNet.

It has four ranks and is watched from outside: memory, descriptors and threads of the process must
stay flat, and its folder must not grow beyond its tables. Prints a row per sample and the figures
at the end. Exit code 1 when something grows or the run fails. The first fifth of the run is
warm-up; afterwards resident memory may grow by 2 % or 4 MiB, descriptors and threads not at all.
"""

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runs import script
from runs.options import Parser
from runs.processes import Started

PAGE_KIB = 4
WARM_UP = 0.2
MEMORY_SHARE, MEMORY_KIB = 0.02, 4096


def sample(pid):
    """(resident KiB, open descriptors, threads) of a process; None after its end."""
    proc = Path(f"/proc/{pid}")
    try:
        resident = int((proc / "statm").read_text().split()[1]) * PAGE_KIB
        descriptors = len(list((proc / "fd").iterdir()))
        threads = len(list((proc / "task").iterdir()))
    except (OSError, IndexError):
        return None
    return (resident, descriptors, threads) if resident else None


def rows_of(table):
    """Rows of a table without its header; 0 before it exists."""
    if not table.exists():
        return 0
    with table.open("rb") as lines:
        return max(0, sum(1 for _ in lines) - 1)


def watch(started, table, steps):
    """Samples the program until it ends: a list of (step, resident, descriptors, threads)."""
    samples, pause = [], 0.2
    print(f"{'step':>8} {'resident MiB':>13} {'descriptors':>12} {'threads':>8}")
    while started.running():
        now = sample(started.pid)
        step = rows_of(table)
        if now and step:
            samples.append((step, *now))
            print(f"{step:>8} {now[0] / 1024:>13.1f} {now[1]:>12} {now[2]:>8}", flush=True)
        time.sleep(pause)
        pause = min(20.0, pause * 1.3) if steps > 5000 else 0.2
    return samples


def growth(samples, steps):
    """What grew between the end of the warm-up and the end of the run: a list of lines."""
    # after the last step the process frees its memory
    later = [row for row in samples if WARM_UP * steps <= row[0] < steps]
    if len(later) < 3:
        return ["too few samples after the warm-up"]
    # the least of a third ignores what a checkpoint or a validation takes for a moment
    third = max(1, len(later) // 3)
    first, last = ([min(row[i] for row in part) for i in (1, 2, 3)]
                   for part in (later[:third], later[-third:]))
    wrong = []
    if last[0] > first[0] + max(MEMORY_KIB, MEMORY_SHARE * first[0]):
        wrong.append(f"resident memory grew from {first[0]} to {last[0]} KiB")
    for name, before, after in zip(("descriptors", "threads"), first[1:], last[1:]):
        if after > before:
            wrong.append(f"{name} grew from {before} to {after}")
    return wrong


def folder_figures(folder, steps):
    """Prints the sizes of the run folder; returns what is not bounded."""
    table, wrong = folder / "steps.csv", []
    rows, size = rows_of(table), table.stat().st_size
    kept = sorted(path.name for path in (folder / "checkpoints").iterdir())
    held = sum(p.stat().st_size for p in (folder / "checkpoints").rglob("*") if p.is_file())
    print(f"steps.csv: {rows} rows, {size / 2**20:.2f} MiB, {size / max(1, rows):.0f} bytes a row")
    print(f"checkpoints: {len(kept)} ({', '.join(kept)}), {held / 2**20:.2f} MiB")
    if rows != steps:
        wrong.append(f"steps.csv has {rows} rows; expected {steps}")
    if len(kept) > 2:
        wrong.append(f"{len(kept)} checkpoints are left; expected at most 2")
    return wrong


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--train", default="build/bin/train")
    parser.add_argument("--output", help="folder of the run; default: a temporary one")
    parser.add_argument("flags", nargs="*", help="after --: further flags of train")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        output = Path(args.output or temporary)
        folder = output / "soak"
        start = time.monotonic()
        started = Started(
            [args.train, "--model", "lenet", "--workers", 4, "--threads-per-rank", 1,
             "--sparsifier", "topk", "--density", 0.01, "--batch-size", 1, "--epochs", 1_000_000,
             "--max-steps", args.steps, "--eval-every", "never",
             "--checkpoint-steps", max(1, args.steps // 100),
             "--output-dir", output, "--name", "soak", *args.flags], output / "soak.out")
        samples = watch(started, folder / "steps.csv", args.steps)
        seconds = time.monotonic() - start
        code, _ = started.end(1)
        if code != 0:
            print(f"train ended with {code}:\n{started.output()[-2000:]}")
            return 1
        print(f"{args.steps} steps in {seconds:.0f} s")
        wrong = folder_figures(folder, args.steps) + growth(samples, args.steps)
    for line in wrong:
        print(f"not flat: {line}")
    if not wrong:
        print("flat: memory, descriptors and threads; tables and checkpoints are bounded")
    return 1 if wrong else 0


if __name__ == "__main__":
    script(main)
