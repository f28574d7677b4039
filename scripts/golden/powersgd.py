#!/usr/bin/env python3
"""Writes tests/sparsify/golden/powersgd.json: steps of PyTorch's PowerSGD communication hook.

Two processes call torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook for three steps on one
bucket of matrices and a vector, with error feedback and a warm start, for each rank of the factors.
The gradients come from the integer hash of (name, index) in cifar.py, which the C++ test computes,
too. The file has the random Q of the first step, the mean of each step, and the last residual of
the last process. Tensors are compressed if that saves elements (min_compression_rate 1, as in
Thinwire).
"""
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as hook

from cifar import ROOT, unit, write
from torch_training import on_processes

SHAPES = [(9, 11), (3,), (5, 4), (2, 3, 7)]
FACTORS = [1, 2, 4]
PROCESSES = 2
STEPS = 3


class Bucket:
    """The part of torch.distributed.GradBucket that the hook reads."""

    def __init__(self, flat):
        self.flat = flat

    def index(self):
        return 0

    def buffer(self):
        return self.flat

    def gradients(self):
        sizes = [int(np.prod(shape)) for shape in SHAPES]
        return [part.view(shape) for part, shape in zip(self.flat.split(sizes), SHAPES)]

    def is_last(self):
        return True

    is_the_last_bucket_to_allreduce = is_last


def compressed(rank):
    """The matrices whose factors have fewer elements than they have."""
    def saves(shape):
        n, m = shape[0], int(np.prod(shape[1:]))
        return (n + m) * min(rank, n, m) < n * m
    return [shape for shape in SHAPES if saves(shape)]


def gradient(process, step):
    size = sum(int(np.prod(shape)) for shape in SHAPES)
    return torch.from_numpy(unit(f"powersgd.{process}.{step}", size).astype(np.float32))


def run(results):
    process = dist.get_rank()
    for rank in FACTORS:
        state = hook.PowerSGDState(process_group=None, matrix_approximation_rank=rank,
                                   start_powerSGD_iter=2, min_compression_rate=1)
        state.iter = state.start_powerSGD_iter
        first, steps = [], []
        for step in range(STEPS):
            flat = gradient(process, step)
            if step == 0:
                # what the hook draws for Q, before it makes the columns orthonormal
                keep = hook._orthogonalize

                def record(matrices, *args, **kwargs):
                    if len(first) < len(compressed(rank)):
                        first.append(matrices.clone())
                    return keep(matrices, *args, **kwargs)

                hook._orthogonalize = record
            mean = hook.powerSGD_hook(state, Bucket(flat)).wait()
            mean = mean[0] if isinstance(mean, list) else mean
            if step == 0:
                hook._orthogonalize = keep
            steps.append((mean.clone(), state.error_dict[0].clone()))
        torch.save((first, steps), f"{results}/{rank}-{process}")


def rounded(values):
    return [float(f"{x:.7g}") for x in values.flatten().tolist()]


def main():
    golden = {"torch": torch.__version__, "shapes": SHAPES, "factors": {}}
    with tempfile.TemporaryDirectory() as folder:
        on_processes(PROCESSES, run, folder)
        for rank in FACTORS:
            results = [torch.load(f"{folder}/{rank}-{p}") for p in range(PROCESSES)]
            first, steps = results[0]
            golden["factors"][str(rank)] = {
                # column after column, as Thinwire stores Q
                "q": [rounded(matrix[0].T) for matrix in first],
                "means": [rounded(mean) for mean, _ in steps],
                "residual": rounded(results[-1][1][-1][1])}
    write(ROOT / "tests/sparsify/golden/powersgd.json", golden)


if __name__ == "__main__":
    main()
