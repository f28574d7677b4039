"""torch_step.py: times PyTorch's training step on one fixed batch and prints one JSON line.

A step is zero_grad, forward, cross-entropy, backward, SGD with momentum and weight decay: what
`bench step` times. Run by bench_vs_pytorch.py, one process a measurement.
"""

import argparse
import contextlib
import json
import resource
import time

import torch
from torch.nn import functional as F

import torch_models


def peak_rss_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    imported = peak_rss_mib()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="resnet20")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    model = torch_models.build(options.model).train()
    images = torch.randn(options.batch_size, 3, 32, 32)
    labels = torch.randint(0, 10, (options.batch_size,))
    if options.channels_last:
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    sgd = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    if options.compile:
        model = torch.compile(model)

    def step():
        sgd.zero_grad(set_to_none=True)
        bf16 = options.precision == "bf16"
        with torch.autocast("cpu", torch.bfloat16) if bf16 else contextlib.nullcontext():
            loss = F.cross_entropy(model(images), labels)
        loss.backward()
        sgd.step()

    for _ in range(options.warmup):
        step()
    start = time.perf_counter()
    for _ in range(options.steps):
        step()
    seconds = time.perf_counter() - start
    print(json.dumps({
        "images_per_s": options.batch_size * options.steps / seconds,
        "peak_rss_mib": peak_rss_mib(),
        "imported_rss_mib": imported,
        "version": torch.__version__,
    }))


if __name__ == "__main__":
    main()
