#!/usr/bin/env python3
"""Writes tests/models/golden/imagenet*.json: torchvision's logits and gradients at 224 x 224.

Weights, statistics and batch come from the integer hash of cifar.py. The reference is
PyTorch in float64. Every model has a hash of all names and shapes, and the logits in evaluation.
Some have loss and all gradients of a training step, with the dropout masks of Thinwire.

Among millions of activations some are within rounding error of zero before a ReLU, and two correct
programs may then differ by the whole gradient of an element. Gradients are therefore taken with
batch norms that keep every channel well above or well below zero. In max pooling such elements
remain: windows whose two largest values are equal within rounding. `tie_error` is the norm by which
a gradient changes when all of them pass their gradient to the second largest value; it is left out
where it is 0. Needs torchvision.

usage: imagenet.py [logits] [resnet18 resnet50 vgg11_bn_imagenet]
"""
import sys

import numpy as np
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

import cifar
from cifar import DEVIATION, MEAN, hash_words, kept, parameter_value, short, unit
from torch_training import philox

FOLDER = cifar.ROOT / "tests/models/golden"
BATCH = 2
SEED, STEP = 7, 3  # of the dropout masks
RESNETS = [f"resnet{depth}" for depth in (18, 34, 50, 101, 152)]
VGGS = [f"vgg{depth}{norm}" for depth in (11, 13, 16, 19) for norm in ("", "_bn")]
# our name -> torchvision's
MODELS = {name: name for name in RESNETS + ["alexnet"]} | {f"{n}_imagenet": n for n in VGGS}
GRADIENTS = ["resnet18", "resnet50", "vgg11_bn_imagenet"]


class Dropout(nn.Module):
    """engine/ops/dropout.h: element i is kept when its uniform number reaches the rate."""

    def __init__(self, stream, rate=0.5):
        super().__init__()
        self.stream, self.rate = stream, rate

    def forward(self, x):
        if not self.training:
            return x
        blocks = np.arange((x.numel() + 3) // 4)
        words = np.stack(philox((blocks, self.stream, STEP, 0), (SEED, 4 << 24)), axis=-1)
        words = words.ravel()[: x.numel()]
        keep = (words >> np.uint64(8)).astype(np.float64) * 2.0**-24 >= self.rate
        mask = torch.from_numpy(keep.reshape(tuple(x.shape))).to(x.dtype)
        return x * mask / (1 - self.rate)


class MaxPool(nn.Module):
    """Max pooling; with `second`, close windows have the second largest value."""

    CLOSE = 1.5e-6  # three times the rms error of these values, about 1, in float32
    second = False

    def __init__(self, pool):
        super().__init__()
        self.size, self.stride, self.padding = pool.kernel_size, pool.stride, pool.padding

    def forward(self, x):
        windows = F.pad(x, (self.padding,) * 4, value=-torch.inf)
        for dimension in (2, 3):
            windows = windows.unfold(dimension, self.size, self.stride)
        first, second = windows.flatten(4).topk(2).values.unbind(-1)
        close = (first > 0) & (first - second < self.CLOSE)
        return torch.where(close, second, first) if MaxPool.second else first


def steady_value(key, shape, names):
    """Batch norms: scale about 0.15, bias 1 or -1; 1 or -10 where a shortcut is added."""
    prefix, _, kind = key.rpartition(".")
    if f"{prefix}.running_mean" not in names:
        return parameter_value(key, shape)
    count = shape[0]
    if kind == "weight":
        return (0.15 + 0.03 * unit(key, count)).astype(np.float32)
    if prefix.endswith("downsample.1"):
        return np.full(count, 0.5, np.float32)
    join = "bn3" if "layer1.0.bn3.bias" in names else "bn2"
    low = -10.0 if prefix.startswith("layer") and prefix.endswith(join) else -1.0
    return np.where(hash_words(key, count) % 4 == 0, 1.0, low).astype(np.float32)


def network(name, dtype, steady=False):
    model = torchvision.models.get_model(MODELS[name], weights=None).to(dtype)
    stream = 0
    for i, layer in enumerate(getattr(model, "classifier", [])):
        if isinstance(layer, nn.Dropout):
            model.classifier[i] = Dropout(stream)
            stream += 1
    for parent in list(model.modules()):
        for key, layer in parent.named_children():
            if isinstance(layer, nn.MaxPool2d):
                setattr(parent, key, MaxPool(layer))
    with torch.no_grad():
        state = model.state_dict()
        for key, value in state.items():
            if key.endswith("num_batches_tracked"):
                continue
            if steady and key.endswith(("weight", "bias")):
                values = steady_value(key, value.shape, state)
            else:
                values = parameter_value(key, value.shape)
            value.copy_(torch.from_numpy(values))
    return model


def batch(dtype):
    return cifar.batch_tensors(dtype, 0, BATCH, 224, 1000)


def layout(model):
    """FNV-1a of lines `name (shape)`: all parameters, then all statistics."""
    statistics = [(k, v) for k, v in model.named_buffers() if not k.endswith("tracked")]
    rows = [f"{key} ({', '.join(map(str, value.shape))})\n"
            for key, value in [*model.named_parameters(), *statistics]]
    value = 0xCBF29CE484222325
    for byte in "".join(rows).encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def logits(name):
    model = network(name, torch.float64).eval()
    with torch.no_grad():
        values = model(batch(torch.float64)[0]).numpy().ravel()
    parameters = sum(p.numel() for p in model.parameters())
    return {"parameters": parameters, "layout": layout(model),
            "norm": short([np.linalg.norm(values)])[0], **kept("logits", values)}


def first_step(name, dtype):
    return cifar.step_of(network(name, dtype, steady=True).train(), *batch(dtype))


def gradients(name):
    loss, reference = first_step(name, torch.float64)
    gradients32 = first_step(name, torch.float32)[1]
    MaxPool.second = True
    others = first_step(name, torch.float64)[1]
    MaxPool.second = False
    largest = max(np.linalg.norm(v) for v in reference.values())
    tensors, worst = {}, 0.0
    for key, values in reference.items():
        norm, error, tie_error = short(
            np.linalg.norm(v) for v in (values, gradients32[key] - values, others[key] - values))
        tensors[key] = {"size": values.size, "norm": norm, "f32_error": error, **kept(key, values)}
        if norm > 1e-6 * largest:  # exact gradient of a bias before a batch norm: 0
            worst = max(worst, error / norm)
            if tie_error > 1e-6 * norm:
                tensors[key]["tie_error"] = tie_error
    print(f"{name}: PyTorch's own float32 gradients are off by up to {worst:.1e}")
    return {"model": name, "loss": loss, "tensors": tensors}


def main():
    torch.set_num_threads(1)
    wanted = sys.argv[1:] or ["logits", *GRADIENTS]
    if "logits" in wanted:
        cifar.write(FOLDER / "imagenet.json", {
            "torch": torch.__version__, "torchvision": torchvision.__version__, "batch": BATCH,
            "mean": MEAN, "deviation": DEVIATION, "models": {m: logits(m) for m in MODELS}})
    for name in GRADIENTS:
        if name in wanted:
            cifar.write(FOLDER / f"{name}.json", gradients(name))


if __name__ == "__main__":
    main()
