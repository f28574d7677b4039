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

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

WHOLE = 64  # tensors up to this size are kept whole
PROJECTIONS = 32
SAMPLES = 8
BATCH = 4
TRIALS = 400
STEPS = {"resnet20": 8, "vgg16": 3}
STATISTICS_STEPS, STATISTICS_RATES = 50, (0.0, 0.0002)  # larger rates amplify rounding
MEAN, DEVIATION = (0.491, 0.482, 0.447), (0.247, 0.243, 0.262)


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


# ---- the models, under the usual names ----

class TooClose(Exception):
    """A batch has an activation closer to a kink than the best batch so far."""


class Distance:
    """Records the smallest distance of an activation to a kink, if `wanted`."""

    wanted, least, known = False, 0.0, 0.0

    @classmethod
    def note(cls, distances):
        cls.least = min(cls.least, float(distances.min()))
        if cls.least <= cls.known:
            raise TooClose


def relu(x):
    if Distance.wanted:
        Distance.note(x.abs())
    return F.relu(x)


def max_pool(x):
    """2x2, after a ReLU: a maximum of zero passes no gradient, so its ties do not matter."""
    if Distance.wanted:
        n, c, h, w = x.shape
        windows = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(3, 4).reshape(-1, 4)
        top = windows.sort(1, descending=True).values
        Distance.note((top[:, 0] - top[:, 1])[top[:, 0] > 0])
    return F.max_pool2d(x, 2)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.extra = stride, outputs - inputs

    def forward(self, x):
        y = self.bn2(self.conv2(relu(self.bn1(self.conv1(x)))))
        if self.stride != 1:
            x = x[:, :, :: self.stride, :: self.stride]
            x = F.pad(x, (0, 0, 0, 0) + (self.extra // 2,) * 2)
        return relu(y + x)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        for stage, (inputs, outputs) in enumerate(((16, 16), (16, 32), (32, 64)), 1):
            blocks = [Block(inputs, outputs, 1 if stage == 1 else 2)]
            blocks += [Block(outputs, outputs, 1) for _ in range(2)]
            setattr(self, f"layer{stage}", nn.Sequential(*blocks))
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.forward = function


class VGG16(nn.Module):
    def __init__(self):
        super().__init__()
        features, inputs = [], 3
        for outputs, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
            for _ in range(count):
                conv = nn.Conv2d(inputs, outputs, 3, padding=1)
                features += [conv, nn.BatchNorm2d(outputs), Function(relu)]
                inputs = outputs
            features.append(Function(max_pool))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Linear(512, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


MODELS: dict[str, type[nn.Module]] = {"resnet20": ResNet20, "vgg16": VGG16}


def network(name, dtype):
    model = MODELS[name]().to(dtype)
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
    best, Distance.known, Distance.wanted = 0, 0.0, True
    for trial in range(TRIALS):
        Distance.least = float("inf")
        try:
            with torch.no_grad():
                model(batch_tensors(torch.float32, trial)[0])
            best, Distance.known = trial, Distance.least
        except TooClose:
            pass
    Distance.wanted = False
    print(f"{name}: batch {best} keeps {Distance.known:.1e} from every kink")
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
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("models", nargs="*", metavar="model",
                        help="resnet20, vgg16, statistics (default all)")
    parser.add_argument("--output-dir", type=pathlib.Path, default=root / "tests/models/golden")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.models or [*MODELS, "statistics"]:
        write(arguments.output_dir / f"{name}.json", golden(name))


if __name__ == "__main__":
    main()
