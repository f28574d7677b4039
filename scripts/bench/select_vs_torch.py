#!/usr/bin/env python3
"""Compares selection with error feedback with torch.topk: `bench select`, then PyTorch.

  scripts/bench/select_vs_torch.py [--bench build/bin/bench] [--device cpu|cuda] [--threads N]
                                   [--d N] [--density R]

The PyTorch step does the same work with PyTorch's operations: e += g, topk of |e|, gather of the
values, clearing of the residual.
"""
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from runs.options import Parser


def draw(name, d):
    """A vector of d numbers from the distribution of that name."""
    torch.manual_seed(1)
    samplers = {
        "gaussian": torch.distributions.Normal(0.0, 1.0),
        "laplace": torch.distributions.Laplace(0.0, 1.0),
        "t3": torch.distributions.StudentT(3.0),
    }
    return samplers[name].sample((d,))


def step(g, e, k):
    """One selection with error feedback; returns the indices and values that would be sent."""
    e += g
    indices = torch.topk(e.abs(), k, sorted=False).indices
    values = e[indices]
    e[indices] = 0
    return indices, values


def milliseconds(g, k, repeat):
    """Median of `repeat` steps after two warm-up steps; each starts from the same residual."""
    wait = torch.cuda.synchronize if g.is_cuda else lambda: None
    times = []
    e = torch.empty_like(g)
    for _ in range(repeat + 2):
        e.copy_(g)
        wait()
        start = time.perf_counter()
        step(g, e, k)
        wait()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[2:])


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("--bench", default=ROOT / "build/bin/bench")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--d", type=int, default=25_557_032)
    parser.add_argument("--density", type=float, default=0.001)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    k = max(1, int(args.density * args.d))
    for name in ("gaussian", "laplace", "t3"):
        subprocess.run(
            [args.bench, "select", "--distribution", name, "--d", str(args.d),
             "--density", str(args.density), "--threads-per-rank", str(args.threads),
             "--device", args.device],
            check=True)
        g = (draw(name, args.d) / 2).to(args.device)
        print(f"{'torch.topk step':<24} {name:<10} {milliseconds(g, k, args.repeat):8.3f}"
              f"   (PyTorch {torch.__version__}, {args.device}, {args.threads} threads)\n",
              flush=True)


if __name__ == "__main__":
    main()
