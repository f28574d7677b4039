#!/usr/bin/env python3
"""Compares selection with error feedback with PyTorch: `bench select`, then torch.topk and a sort.

  scripts/bench/select_vs_torch.py [--device cpu|cuda] [--d N] [--density R] [--csv FILE]

The PyTorch steps do the same work with PyTorch's operations: e += g, topk or sort of |e|, gather of
the values, clearing of the residual. They and `e += g` alone take turns. The table of --csv has
the lines of `bench select`, too.
"""
import csv
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from runs.options import Parser
from runs.tables import as_csv

SAMPLERS = {"gaussian": torch.distributions.Normal(0.0, 1.0),
            "laplace": torch.distributions.Laplace(0.0, 1.0),
            "t3": torch.distributions.StudentT(3.0)}
SELECTIONS = {"torch.topk": lambda x, k: torch.topk(x, k, sorted=False).indices,
              "torch.sort": lambda x, k: torch.sort(x, descending=True).indices[:k]}


def step(g, e, k, selection):
    """One selection with error feedback; returns the indices and values that would be sent."""
    e += g
    indices = selection(e.abs(), k)
    values = e[indices]
    e[indices] = 0
    return indices, values


def seconds(g, k, repeat):
    """{step: its seconds in each round}; two rounds more come first. Each starts from the same
    residual."""
    wait = torch.cuda.synchronize if g.is_cuda else lambda: None
    e = torch.empty_like(g)
    calls = {"torch e += g": lambda: e.add_(g)} | {
        name: partial(step, g, e, k, selection) for name, selection in SELECTIONS.items()}
    times = {name: [] for name in calls}
    for _ in range(repeat + 2):
        for name, call in calls.items():
            e.copy_(g)
            wait()
            start = time.perf_counter()
            call()
            wait()
            times[name].append(time.perf_counter() - start)
    return {name: each[2:] for name, each in times.items()}


def compare(name, args, table):
    """Prints the times for a distribution; returns the lines of the table of `bench select`, and
    those of PyTorch."""
    subprocess.run([args.bench, "select", "--distribution", name, "--d", str(args.d),
                    "--density", str(args.density), "--threads-per-rank", str(args.threads),
                    "--device", args.device, "--csv", table], check=True)
    lines = list(csv.DictReader(Path(table).read_text().splitlines()))
    torch.manual_seed(1)
    g = (SAMPLERS[name].sample((args.d,)) / 2).to(args.device)
    times = seconds(g, max(1, int(args.density * args.d)), args.repeat)
    for label, each in times.items():
        of_add = statistics.median(a / b for a, b in zip(each, times["torch e += g"]))
        print(f"{label:<24} {name:<10} {1e3 * statistics.median(each):8.3f} "
              f"{1e3 * min(each):8.3f} {'-':>7} {of_add:9.2f}   (PyTorch {torch.__version__})",
              flush=True)
        lines.append(lines[0] | {
            "selector": label, "seconds": statistics.median(each), "best_seconds": min(each),
            "gb_s": "", "of_add": of_add, "nnz_over_k": 1, "torch": torch.__version__})
    return lines


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("--bench", default=ROOT / "build/bin/bench")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--d", type=int, default=25_557_032)
    parser.add_argument("--density", type=float, default=0.001)
    parser.add_argument("--distribution", choices=[*SAMPLERS, "all"], default="all")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--csv", help="also write the table to this file")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name in SAMPLERS if args.distribution == "all" else [args.distribution]:
            lines += compare(name, args, f"{folder}/select.csv")
    if args.csv:
        names = [*lines[0], "torch"]
        cells = [[line.get(name, "") for name in names] for line in lines]
        Path(args.csv).write_text(as_csv([names, *cells]))


if __name__ == "__main__":
    main()
