"""Gradients of any PyTorch network in files, for `analyze compressors` and `bench select --from`.

    loss.backward()
    thinwire.record(model, step, "gradients", rank=rank, ranks=ranks)
"""

import json
from pathlib import Path

from .reader import output, safetensors

__all__ = ["record"]


def flat(tensor):
    return (tensor.to_dense() if tensor.is_sparse else tensor).detach().cpu().float().flatten()


def record(model, step, folder, rank=0, ranks=1, residual=None, sparsifier="", density=1.0):
    """Writes FOLDER/step-00000100-rank-0.safetensors, as `train --save-gradients` does; returns
    its path.

    The gradients g are those of `p.grad` of the parameters that need one, in their order; 0 where
    there is none. With DistributedDataParallel they are those of this rank inside
    `model.no_sync()`, else the mean of all. residual: {name: tensor} of what this rank has not
    sent; the file then also has u, the sum of both. step counts from 1. sparsifier, density: of
    the training, as a note. ValueError where the residual does not fit, no parameter has a
    gradient, or step or rank is none.
    """
    if not isinstance(step, int) or step < 1 or not 0 <= rank < ranks:
        raise ValueError(f"record: step {step} of rank {rank} of {ranks}; steps count from 1")
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if all(p.grad is None for _, p in named):
        raise ValueError("record: no parameter has a gradient")
    vectors = {"g": [flat(p.new_zeros(p.shape) if p.grad is None else p.grad) for _, p in named]}
    if residual is not None:
        shapes = {name: p.shape for name, p in named}
        if {name: e.shape for name, e in residual.items()} != shapes:
            raise ValueError("record: residual has other names or shapes than the parameters")
        vectors["u"] = [g + flat(residual[name])
                        for g, (name, _) in zip(vectors["g"], named, strict=True)]
    d = sum(p.numel() for _, p in named)
    metadata = {"step": step, "rank": rank, "ranks": ranks, "sparsifier": sparsifier,
                "density": density,
                "tensors": json.dumps([[name, list(p.shape)] for name, p in named])}
    header = safetensors.header([(name, "F32", [d], 4 * d) for name in vectors], metadata)
    path = Path(folder) / f"step-{step:08}-rank-{rank}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    elements = (tensor.numpy().tobytes() for tensors in vectors.values() for tensor in tensors)
    output.write(path, b"".join([header, *elements]))
    return path
