#!/usr/bin/env python3
"""bench_data_vs_torchvision.py DIR: images/s of our loader of photographs beside torchvision's.

DIR holds train/<class>/*.JPEG and val/... Ours is `bench data`, which also times a bare decoding
loop; torchvision's is ImageFolder, RandomResizedCrop, RandomHorizontalFlip and a DataLoader with as
many workers as ours has threads, once with pixels left as bytes, as ours leaves them, and once
with ToTensor and Normalize, as most training scripts have it. They take turns; shown is the median
of the rounds. Needs torch and torchvision.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
import torchvision
from torchvision.transforms import v2

ROOT = Path(__file__).resolve().parent.parent
BYTES = [v2.PILToTensor()]
FLOATS = [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True),
          v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]


def torchvision_epochs(folder, options, last):
    """A function that reads one epoch and returns its images/s; workers stay from call to call."""
    transform = v2.Compose([v2.RandomResizedCrop(options.image_size), v2.RandomHorizontalFlip(),
                            *last])
    images = torchvision.datasets.ImageFolder(folder, transform)
    loader = torch.utils.data.DataLoader(images, options.batch_size, shuffle=True, drop_last=True,
                                         num_workers=options.threads, persistent_workers=True)

    def epoch():
        start, count = time.perf_counter(), 0
        for batch, _ in loader:
            count += len(batch)
        return count / (time.perf_counter() - start)
    return epoch


def ours(options):
    command = [options.bench, "data", "--data-dir", options.dir, "--threads", options.threads,
               "--batch-size", options.batch_size, "--image-size", options.image_size,
               "--epochs", 1, *(["--records", options.records] if options.records else [])]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=Path, metavar="DIR")
    parser.add_argument("--records", help="the record file made of DIR, if there is one")
    parser.add_argument("--bench", default=ROOT / "build/bin/bench", help="our bench program")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    peers = {"torchvision, bytes": torchvision_epochs(options.dir / "train", options, BYTES),
             "torchvision, floats": torchvision_epochs(options.dir / "train", options, FLOATS)}
    speeds = {name: [] for name in ("ours, folder", "ours, records", "bare loop, one thread", *peers)}
    for done in range(-1, options.rounds):
        result = ours(options)
        found = {"ours, folder": result["folder_images_per_s"],
                 "ours, records": result.get("records_images_per_s"),
                 "bare loop, one thread": result["bare_images_per_s_one_thread"],
                 **{name: epoch() for name, epoch in peers.items()}}
        for name, speed in found.items():
            if done >= 0 and speed:
                speeds[name].append(speed)
        print(f"round {done + 1} of {options.rounds}", file=sys.stderr)
    medians = {name: statistics.median(all_) for name, all_ in speeds.items() if all_}
    print(f"torchvision {torchvision.__version__}, {options.threads} threads, median of "
          f"{options.rounds} rounds, images/s")
    for name, speed in medians.items():
        print(f"  {name:<24}{speed:>8.1f}   ours / this {medians['ours, folder'] / speed:.2f}")


if __name__ == "__main__":
    main()
