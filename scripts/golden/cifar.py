#!/usr/bin/env python3
"""Writes tests/models/golden/<model>.json: PyTorch's loss and gradients of first steps, by batch.

Weights and batches come from an integer hash of (name, index), which the C++ test computes, too.
The reference is PyTorch in float64. The file has all values of a small tensor. Of a large tensor it
has samples and projections on random sign vectors, whose rms estimates the norm of a difference. It
also has the errors of PyTorch's own steps in float32 and in bfloat16 autocast.

The gradient of ReLU is discontinuous at zero, that of max pooling where the two largest values of a
window are equal. Both are called kinks here. If an activation is within rounding
error of a kink, two correct programs may differ by the whole gradient of an element. The first
batch is therefore the one, of many, whose activations stay farthest from any kink. In bfloat16
such differences cannot be avoided. Errors are averaged over this and further, unselected batches.

tests/models/golden/statistics.json has the running statistics of ResNet-20's batch norms after 50
steps of SGD: of one process, and the mean over four that average their gradients.

usage: cifar.py [--output-dir DIR] [resnet20 vgg16 statistics]
"""
import argparse
import json
import pathlib
import sys

import numpy as np
import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/bench"))
import torch_models

WHOLE = 64  # tensors up to this size are kept whole
PROJECTIONS = 32
SAMPLES = 8
BATCH = 4
TRIALS = 400
STEPS = {"resnet20": 8, "vgg16": 3}
STATISTICS_STEPS, STATISTICS_RATES = 50, (0.0, 0.0002)  # larger rates amplify rounding
MEAN, DEVIATION = torch_models.CIFAR10_MEAN, torch_models.CIFAR10_DEVIATION


# ---- the formula shared with tests/models/golden_test.cpp ----

def fnv1a(text):
    value = 2166136261
    for byte in text.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def hash_words(name, count, salt=0):
    """One 32-bit word per index: murmur3's finaliser of index and name."""
    with np.errstate(over="ignore"):
        x = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9)
        x ^= np.uint32((fnv1a(name) + salt * 0x85EBCA6B) & 0xFFFFFFFF)
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
        return x ^ (x >> np.uint32(16))


def unit(name, count):
    """Uniform numbers in [-1, 1), exact in float32."""
    return (hash_words(name, count) >> np.uint32(8)).astype(np.float64) * 2.0**-23 - 1.0


def parameter_value(name, shape):
    """He-uniform matrices and kernels; vectors within 0.2 of 0 (scales, variances: of 1)."""
    shape = tuple(shape)
    u = unit(name, int(np.prod(shape)))
    if len(shape) > 1:
        values = u * (6.0 / np.prod(shape[1:])) ** 0.5
    else:
        values = u * 0.2 + (1.0 if name.endswith((".weight", ".running_var")) else 0.0)
    return values.astype(np.float32).reshape(shape)


def batch_of(count, trial, size, classes):
    """NHWC bytes with large-scale structure, and labels."""
    blocks = (hash_words("images.blocks", count * 4 * 4 * 3, trial) % 192).reshape(count, 4, 4, 3)
    blocks = blocks.repeat(size // 4, 1).repeat(size // 4, 2)
    noise = (hash_words("images.noise", blocks.size, trial) % 64).reshape(blocks.shape)
    labels = hash_words("labels", count, trial) % classes
    return (blocks + noise).astype(np.uint8), labels.astype(np.int64)


def short(values):
    """Values rounded to nine digits; the tests compare fewer."""
    return [float(f"{value:.9g}") for value in values]


def projections(name, values):
    """Sums of the values with random signs: bit j of a word per element gives sign j."""
    words, result = hash_words(name, values.size), []
    for bit in range(PROJECTIONS):
        signs = 1.0 - 2.0 * ((words >> np.uint32(bit)) & np.uint32(1)).astype(np.float64)
        result.append(signs @ values)
    return short(result)


def kept(name, values):
    """What the test compares: all values, or projections and samples."""
    if values.size <= WHOLE:
        return {"values": short(values)}
    indices = hash_words(name + ".samples", SAMPLES) % values.size
    return {"projections": projections(name + ".signs", values), "samples": short(values[indices])}


# ---- the models are those of scripts/bench ----

class TooClose(Exception):
    """A batch has an activation closer to a kink than the best batch so far."""


class Kinks(TorchFunctionMode):
    """Records the smallest distance of an activation to a kink; TooClose unless above `known`."""

    def __init__(self, known):
        super().__init__()
        self.known, self.least = known, float("inf")

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is F.relu:
            self.note(args[0].abs())
        if function is torch.max_pool2d:  # 2x2, after a ReLU: ties at zero pass no gradient
            n, c, h, w = args[0].shape
            windows = args[0].reshape(n, c, h // 2, 2, w // 2, 2).transpose(3, 4).reshape(-1, 4)
            top = windows.sort(1, descending=True).values
            self.note((top[:, 0] - top[:, 1])[top[:, 0] > 0])
        return function(*args, **(kwargs or {}))

    def note(self, distances):
        self.least = min(self.least, float(distances.min()))
        if self.least <= self.known:
            raise TooClose


def network(name, dtype):
    model = torch_models.build(name).to(dtype)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(parameter_value(key, parameter.shape)))
    return model


def batch_tensors(dtype, trial, count=BATCH, size=32, classes=10):
    """Normalised images in PyTorch's layout, and labels."""
    images, labels = batch_of(count, trial, size, classes)
    x = torch.from_numpy(images).to(dtype) / 255
    x = (x - torch.tensor(MEAN, dtype=dtype)) / torch.tensor(DEVIATION, dtype=dtype)
    return x.permute(0, 3, 1, 2), torch.from_numpy(labels)


def choose_batch(name):
    """Number of the batch with the largest distance between a kink and its closest activation."""
    model = network(name, torch.float32)
    best, known = 0, 0.0
    for trial in range(TRIALS):
        try:
            with torch.no_grad(), Kinks(known) as kinks:
                model(batch_tensors(torch.float32, trial)[0])
            best, known = trial, kinks.least
        except TooClose:
            pass
    print(f"{name}: batch {best} keeps {known:.1e} from every kink")
    return best


def step_of(model, x, labels, autocast=False):
    """Loss and gradients, float64 arrays by name."""
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        loss = F.cross_entropy(model(x), labels)
    loss.backward()
    gradients = {k: p.grad.double().numpy().ravel() for k, p in model.named_parameters()}
    return float(loss.detach()), gradients


def first_step(name, trial, dtype, autocast=False):
    x, labels = batch_tensors(dtype, trial)
    return step_of(network(name, dtype), x, labels, autocast)


def golden_step(name, trial):
    loss, reference = first_step(name, trial, torch.float64)
    loss32, gradients32 = first_step(name, trial, torch.float32)
    loss16, gradients16 = first_step(name, trial, torch.float32, autocast=True)
    tensors = {}
    for key, values in reference.items():
        norms = (values, gradients32[key] - values, gradients16[key] - values)
        norm, f32_error, autocast_error = short(np.linalg.norm(v) for v in norms)
        tensors[key] = {"size": values.size, "norm": norm, "f32_error": f32_error,
                        "autocast_error": autocast_error, **kept(key, values)}
    return {"trial": trial, "loss": loss, "f32_loss": loss32, "autocast_loss": loss16,
            "tensors": tensors}


def statistics_after_steps(ranks, rate):
    """Means over ranks of the running statistics; in step t, rank r has batch t * ranks + r."""
    networks = [network("resnet20", torch.float64) for _ in range(ranks)]
    for step in range(STATISTICS_STEPS):
        for rank, model in enumerate(networks):
            model.zero_grad()
            x, labels = batch_tensors(torch.float64, step * ranks + rank)
            F.cross_entropy(model(x), labels).backward()
        with torch.no_grad():
            for copies in zip(*(model.parameters() for model in networks)):
                gradient = sum(p.grad for p in copies) / ranks
                for p in copies:
                    p -= rate * gradient
    buffers = [dict(model.named_buffers()) for model in networks]
    return {name: short((sum(b[name] for b in buffers) / ranks).numpy())
            for name in buffers[0] if not name.endswith("num_batches_tracked")}


def golden_statistics():
    runs = [{"ranks": ranks, "rate": rate, "statistics": statistics_after_steps(ranks, rate)}
            for rate in STATISTICS_RATES for ranks in (1, 4)]
    return {"model": "resnet20", "torch": torch.__version__, "batch": BATCH, "mean": MEAN,
            "deviation": DEVIATION, "steps": STATISTICS_STEPS, "runs": runs}


def golden(name):
    if name == "statistics":
        return golden_statistics()
    trials = [choose_batch(name)] + [TRIALS + i for i in range(1, STEPS[name])]
    return {"model": name, "torch": torch.__version__, "batch": BATCH, "mean": MEAN,
            "deviation": DEVIATION, "steps": [golden_step(name, t) for t in trials]}


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, separators=(",", ":")) + "\n")
    print(f"{path}: {path.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="model",
                        help="resnet20, vgg16, statistics (default all)")
    parser.add_argument("--output-dir", type=pathlib.Path, default=ROOT / "tests/models/golden")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.models or [*STEPS, "statistics"]:
        write(arguments.output_dir / f"{name}.json", golden(name))


if __name__ == "__main__":
    main()
