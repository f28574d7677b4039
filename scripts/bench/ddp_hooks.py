#!/usr/bin/env python3
"""ddp_hooks.py CIFAR10: seconds, bytes and losses of communication hooks in PyTorch, by hook.

Trains ResNet-20 by DistributedDataParallel on processes over gloo, on the same batches each time:
without a hook, with PyTorch's PowerSGD hook, and with thinwire.ddp.Hook. Of Thinwire's hook it
prints the seconds of selection and exchange, and what the hook takes beside them (copies, Python);
with --link also as a share of the exchange; with --train also the exchange of that program, with
the same settings. The processes share this machine's cores. Needs a Python with torch and
safetensors, and libthinwire (THINWIRE_LIBRARY).
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean, median

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/python"))
import thinwire.ddp
import torch_models
from torch_training import Batches, mean_over_ranks, on_processes, sgd, step_of, steps_of_train


class TimedHook(thinwire.ddp.Hook):
    """A hook that keeps the seconds of its last buckets, and of selection and exchange in them."""
    seconds: tuple = ()

    def take(self, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        began = time.perf_counter()
        future = super().take(bucket)
        if self.report and bucket.is_last():
            spent = self.report.seconds_select, self.report.seconds_exchange
            self.seconds = (*spent, time.perf_counter() - began - sum(spent))
        return future


def exchange_of_train(program, options, name, settings):
    """Median milliseconds."""
    more = [f"--set={key}={value}" for key, value in settings.items()]
    more += [f"--link={options.link}"] if options.link else []
    with tempfile.TemporaryDirectory() as work:
        rows = steps_of_train(program, options, name, options.steps, Path(work) / "run",
                              "--density", str(options.density), *more)
    return 1e3 * median(float(row["sec_exchange"]) for row in rows[3:])


def tenths(losses):
    """Means of the first tenth of the losses, the second, and so on."""
    n, parts = len(losses), min(10, len(losses))
    return [mean(losses[i * n // parts:(i + 1) * n // parts]) for i in range(parts)]


def work(options, name, settings, queue):
    torch.manual_seed(1)
    network = torch_models.ResNet(20)
    # in one bucket: with gloo, PyTorch's PowerSGD sends those of several in an order by chance
    model = DistributedDataParallel(network, bucket_cap_mb=1000)
    hook = None
    if name == "torch powersgd":
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=options.rank,
            start_powerSGD_iter=max(2, options.start))
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    elif name != "torch":
        hook = TimedHook(name, density=options.density, link=options.link,
                         set=settings).register(model)
    optimizer = sgd(network)
    batches = Batches(options.data, options.ranks, options.batch, 1)
    losses, steps, parts = [], [], []
    for step in range(options.steps):
        images, labels = batches(step, dist.get_rank())
        began = time.perf_counter()
        loss = step_of(model, optimizer, images, labels)
        steps.append(time.perf_counter() - began)
        if hook:
            parts.append(hook.seconds)
        losses.append(mean_over_ranks(loss))
    sent = options.ranks * mean_over_ranks(hook.bytes_sent if hook else 0)
    if dist.get_rank() == 0:
        queue.put((median(steps[3:]), [median(part) for part in zip(*parts[3:], strict=True)],
                   tenths(losses), sent / options.steps))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="a folder of CIFAR-10, binary version")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--density", type=float, default=0.01)
    parser.add_argument("--rank", type=int, default=2, help="of both PowerSGD hooks")
    parser.add_argument("--start", type=int, default=2,
                        help="steps that both PowerSGD hooks sum whole; PyTorch's needs two")
    parser.add_argument("--link", help="emulated by Thinwire's hooks, such as 100Mbit,1ms")
    parser.add_argument("--train", action="append", default=[],
                        help='a program, such as build/bin/train or "mpirun -n 4 build/bin/train"')
    parser.add_argument("--hooks", default="torch,torch powersgd,dense,powersgd,topk,gaussiank")
    options = parser.parse_args()
    print("hook            ms a step   select  exchange    rest   rest of exchange   bytes a step"
          "   loss" + "".join(f"   exchange of {program}" for program in options.train))
    curves = {}
    for name in options.hooks.split(","):
        queue = mp.get_context("fork").SimpleQueue()
        settings = ({"powersgd.rank": options.rank, "powersgd.start": options.start}
                    if name == "powersgd" else {})
        on_processes(options.ranks, work, options, name, settings, queue)
        seconds, parts, curves[name], sent = queue.get()
        cells = "".join(f"{1e3 * part:9.2f}" for part in parts) if parts else 27 * " "
        share = f"{parts[2] / parts[1]:18.3f}" if parts else 18 * " "
        of_train = "".join(f"{exchange_of_train(program, options, name, settings):14.2f}"
                           for program in options.train if parts)
        print(f"{name:15} {1e3 * seconds:9.1f}{cells}{share} {sent:14.0f}   "
              f"{curves[name][-1]:.4f}{of_train}", flush=True)
    print("\nmean loss of each tenth of the steps")
    for name, curve in curves.items():
        print(f"{name:15} " + "".join(f"{loss:8.4f}" for loss in curve))


if __name__ == "__main__":
    main()
