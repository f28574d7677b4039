#!/usr/bin/env python3
"""data_vs_torchvision.py DIR: compares our JPEG loader with torchvision's and with limits.

DIR has train/<class>/*.JPEG and val/... Our side is `bench data`, which also times decoding and
resizing whole images on as many threads. torchvision's side is ImageFolder, RandomResizedCrop,
RandomHorizontalFlip and a DataLoader with as many workers: once with pixels left as bytes, like
ours, and once converted to floats and normalised, as in most training scripts. Our loader is
compared with the faster of these two. All alternate on the same cores. Each round prints its
ratios. Their medians, and the growth of memory over five epochs, are compared with limits. Exit
code 1: a limit is missed. Needs torch and torchvision.
"""

import json
import os
import statistics
import sys
import time
from pathlib import Path

import torch
import torchvision
from torchvision.transforms import v2

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from runs import UserError, script, told_by
from runs.options import Parser, at_least

BYTES = [v2.PILToTensor()]
FLOATS = [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True),
          v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
LEAST = {"folder / bare loop": 0.9, "folder / best torchvision": 2.0, "records / folder": 1.0}
EPOCHS, MOST_GROWTH = 5, 1.05  # of memory: caches and heaps vary a little


def pin(threads):
    """Restricts this process and its children to as many cores as threads are compared."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, cores)
    return cores


def torchvision_epochs(options, last):
    """A function that reads one epoch and returns its images/s; workers stay from call to call."""
    transform = v2.Compose([v2.RandomResizedCrop(options.image_size), v2.RandomHorizontalFlip(),
                            *last])
    images = torchvision.datasets.ImageFolder(options.dir / "train", transform)
    loader = torch.utils.data.DataLoader(images, options.batch_size, shuffle=True, drop_last=True,
                                         num_workers=options.threads, persistent_workers=True)

    def epoch():
        start, count = time.perf_counter(), 0
        for batch, _ in loader:
            count += len(batch)
        return count / (time.perf_counter() - start)
    return epoch


def ours(options, epochs):
    records = ["--records", options.records] if options.records else []
    return json.loads(told_by(
        options.bench, "data", "--data-dir", options.dir, "--threads-per-rank", options.threads,
        "--batch-size", options.batch_size, "--image-size", options.image_size, "--epochs", epochs,
        *records))


def measure(options, peers):
    """Images/s of all loaders, measured one after the other."""
    result = ours(options, 1)
    speeds = {"folder": result["folder_images_per_s"], "bare loop": result["bare_images_per_s"]}
    if options.records:
        speeds["records"] = result["records_images_per_s"]
    return speeds | {name: epoch() for name, epoch in peers.items()}


def ratios(speeds, peers):
    found = {"folder / bare loop": speeds["folder"] / speeds["bare loop"],
             "folder / best torchvision": speeds["folder"] / max(speeds[name] for name in peers)}
    if "records" in speeds:
        found["records / folder"] = speeds["records"] / speeds["folder"]
    return found


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("dir", type=Path, metavar="DIR")
    parser.add_argument("--records", help="record file that pack wrote from DIR")
    parser.add_argument("--bench", default=ROOT / "build/bin/bench", help="our bench program")
    parser.add_argument("--threads", type=at_least(1), default=2)
    parser.add_argument("--batch-size", type=at_least(1), default=32)
    parser.add_argument("--image-size", type=at_least(1), default=224)
    parser.add_argument("--rounds", type=at_least(1), default=5)
    options = parser.parse_args()
    if not (options.dir / "train").is_dir():
        raise UserError(f"{options.dir / 'train'} is not a folder")

    cores = pin(options.threads)
    peers = {"torchvision, bytes": torchvision_epochs(options, BYTES),
             "torchvision, floats": torchvision_epochs(options, FLOATS)}
    print(f"torchvision {torchvision.__version__}; {options.threads} threads on cores {cores}; "
          "images/s", flush=True)
    rounds = []
    for number in range(options.rounds + 1):
        speeds = measure(options, peers)
        if number == 0:  # warm-up: starts torchvision's workers and fills caches
            continue
        rounds.append(ratios(speeds, peers))
        print(f"round {number}: " + "; ".join(f"{name} {v:.1f}" for name, v in speeds.items()))
        print("  " + "; ".join(f"{name} {v:.2f}" for name, v in rounds[-1].items()), flush=True)

    met = True
    print(f"median of {options.rounds} rounds")
    for name in rounds[0]:
        median = statistics.median(each[name] for each in rounds)
        met &= median >= LEAST[name]
        print(f"  {name:<28}{median:>6.2f}  at least {LEAST[name]:.2f}"
              f"{'' if median >= LEAST[name] else ': missed'}", flush=True)
    memory = ours(options, EPOCHS)["rss_mib_by_epoch"]
    growth = memory[-1] / memory[0]
    met &= growth <= MOST_GROWTH
    print(f"  memory over {EPOCHS} epochs{growth:>15.2f}  at most {MOST_GROWTH:.2f}"
          f"{'' if growth <= MOST_GROWTH else ': missed'}")
    return 0 if met else 1


if __name__ == "__main__":
    script(main)
