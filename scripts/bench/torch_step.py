"""torch_step.py: times PyTorch's training step on one fixed batch and prints one JSON line.

A step is zero_grad, forward, cross-entropy, backward, SGD with momentum and weight decay: what
`bench step` times, which takes the median of the steps, too. vs_pytorch.py runs this script. On a
GPU, --graph captures the whole step as one CUDA graph, and --compile uses max-autotune.
"""

import argparse
import contextlib
import json
import resource
import statistics
import sys
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
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--serve", action="store_true",
                        help="once ready, measure again for every line on standard input")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    options = parser.parse_args()

    cuda = options.device == "cuda"
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
    model = torch_models.build(options.model, options.classes).train().to(options.device)
    side, batch = options.image_size, options.batch_size
    images = torch.randn(batch, 3, side, side, device=options.device)
    labels = torch.randint(0, options.classes, (batch,), device=options.device)
    if options.channels_last:
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    sgd = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4,
                          **({"fused": True} if cuda else {}))
    if options.compile:
        tuned = "max-autotune-no-cudagraphs" if options.graph else "max-autotune"
        model = torch.compile(model, mode=tuned if cuda else None)

    def step():
        sgd.zero_grad(set_to_none=True)  # backward allocates them again, in the graph's memory pool
        bf16 = options.precision == "bf16"
        with torch.autocast(options.device, torch.bfloat16) if bf16 else contextlib.nullcontext():
            loss = F.cross_entropy(model(images), labels)
        loss.backward()
        sgd.step()

    one_step = captured(step, options.warmup) if options.graph else step
    for _ in range(options.warmup):
        one_step()

    def measure():
        seconds = statistics.median((gpu_seconds if cuda else cpu_seconds)(one_step, options.steps))
        result = {
            "images_per_s": options.batch_size / seconds,
            "peak_rss_mib": peak_rss_mib(),
            "imported_rss_mib": imported,
            "version": torch.__version__,
        }
        if cuda:
            result["peak_device_mib"] = torch.cuda.max_memory_allocated() / 2**20
        print(json.dumps(result), flush=True)

    if not options.serve:
        measure()
        return
    print("ready", flush=True)
    for _ in sys.stdin:
        measure()


def cpu_seconds(step, count):
    """Seconds of each of so many steps."""
    times = [time.perf_counter()]
    for _ in range(count):
        step()
        times.append(time.perf_counter())
    return [after - before for before, after in zip(times, times[1:])]


def gpu_seconds(step, count):
    """The same on the GPU, whose queue stays filled."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    torch.cuda.synchronize()
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) / 1e3 for before, after in zip(marks, marks[1:])]


def captured(step, warmup):
    """The step as one CUDA graph, after a warm-up on a side stream (see PyTorch's manual)."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(max(3, warmup)):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


if __name__ == "__main__":
    main()
