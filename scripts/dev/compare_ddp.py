#!/usr/bin/env python3
"""compare_ddp.py TRAIN CIFAR10: trains ResNet-20 by `train` and by PyTorch with thinwire.ddp.Hook.

Both begin with the same weights and take the same batches: the order and the crops of `train` are
drawn again here. The hook gets the elements of a convolution in the order of `train`, on which
samples and random factors depend. Prints for each sparsifier how many entries of the first updates
are the same, how far losses and weights are apart, and the bytes sent. Exit code 1 where they are
farther apart than rounding explains: the bound is the distance of two runs of PyTorch whose first
weights differ by rounding. Needs a Python with torch and safetensors, and libthinwire
(THINWIRE_LIBRARY).
"""

import argparse
import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch.nn.parallel import DistributedDataParallel

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/bench"), str(ROOT / "scripts/python")]
import thinwire.ddp
import torch_models
from torch_training import (DECAY, MOMENTUM, RATE, Batches, mean_over_ranks, on_processes, sgd,
                            step_of)

DENSITY = 0.01


class MeanInOrder(thinwire.ddp.Mean):
    """Has the elements of a convolution in the order of `train`: the input channels last."""

    def __init__(self, named, *arguments):
        super().__init__([(name, in_order(p)) for name, p in named], *arguments)

    def __call__(self, tensors):
        return super().__call__([in_order(tensor) for tensor in tensors])


def in_order(tensor):
    return tensor.permute(0, 2, 3, 1) if tensor.ndim == 4 else tensor


def decay_with_momentum(optimizer, momentum):
    """Moves the weight decay to velocities of its own, as `train` has it beside a momentum before
    the selection."""
    pairs = []
    for group in optimizer.param_groups:
        decay, group["weight_decay"] = group["weight_decay"], 0
        pairs += [(p, decay, torch.zeros_like(p)) for p in group["params"] if decay]

    def add(*_):
        with torch.no_grad():
            for p, decay, velocity in pairs:
                velocity.mul_(momentum).add_(p, alpha=decay)
                p.grad.add_(velocity)

    optimizer.register_step_pre_hook(add)


def train_in_torch(options, recipe, result):
    """A process of the PyTorch run."""
    network = torch_models.ResNet(20)
    state = load_file(options.weights)
    if recipe["noise"]:
        torch.manual_seed(1)
        state = {name: value * (1 + 1e-7 * torch.randn_like(value)) if value.ndim > 1 else value
                 for name, value in state.items()}
    network.load_state_dict(state, strict=False)
    model = DistributedDataParallel(network)
    # momentum before the selection belongs to the hook
    before = recipe["sparsifier"] == "dgc"
    of_hook = {"momentum": recipe["momentum"]} if before else {}
    thinwire.ddp.Mean = MeanInOrder
    hook = thinwire.ddp.Hook(recipe["sparsifier"], density=DENSITY, **of_hook).register(model)
    optimizer = sgd(network, 0 if before else recipe["momentum"], recipe["decay"])
    if before:
        decay_with_momentum(optimizer, recipe["momentum"])
    batches = Batches(options.data, options.ranks, options.batch, 1)
    losses, weights = [], [parameters_of(dict(network.named_parameters()))]
    for step in range(recipe["steps"]):
        loss = step_of(model, optimizer, *batches(step, dist.get_rank()))
        weights = [*weights[-3:], parameters_of(dict(network.named_parameters()))]
        losses.append(mean_over_ranks(loss))
    sent = options.ranks * mean_over_ranks(hook.bytes_sent)
    if dist.get_rank() == 0:
        torch.save((losses, weights, sent), result)


def by_torch(options, **recipe):
    """Losses by step, the weights around the last three steps, bytes sent by all ranks."""
    result = options.work / "torch.pt"
    on_processes(options.ranks, train_in_torch, options, {"noise": False, **recipe}, result)
    return torch.load(result)


def by_train(options, sparsifier, steps, momentum, decay):
    """The same by `train`."""
    name = f"{sparsifier}-{steps}-{momentum}"
    subprocess.run(
        [options.train, "--model", "resnet20", "--dataset", "cifar10", "--data-dir", options.data,
         "--workers", str(options.ranks), "--batch-size", str(options.batch), "--precision", "f32",
         "--threads-per-rank", "1", "--sparsifier", sparsifier, "--density", str(DENSITY),
         "--density-warmup", "none", "--lr", str(RATE), "--lr-schedule", "constant",
         "--warmup-epochs", "0", "--momentum", str(momentum), "--weight-decay", str(decay),
         "--pretrained", options.weights, "--epochs", "99", "--max-steps", str(steps),
         "--eval-every", "never", "--checkpoint-steps", "1", "--keep-checkpoints", "4",
         "--output-dir", options.work, "--name", name, "--quiet"],
        check=True, stdout=subprocess.DEVNULL)
    with open(options.work / name / "steps.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    files = sorted((options.work / name / "checkpoints").glob("step-*/model.safetensors"))
    return ([float(row["train_loss"]) for row in rows],
            [parameters_of(load_file(file)) for file in [options.weights, *files][-4:]],
            sum(float(row["bytes_sent"]) for row in rows))


def parameters_of(state):
    """The trained tensors as one vector, by name."""
    names = sorted(name for name in state if "running" not in name and "tracked" not in name)
    return torch.cat([state[name].detach().flatten() for name in names])


def shared_entries(weights, others):
    """By step, the share of the changed entries that both runs change."""
    shares = []
    for step in range(1, len(weights)):
        one, other = (run[step] != run[step - 1] for run in (weights, others))
        shares.append(((one & other).sum() / (one | other).sum()).item())
    return shares


def distance(run, other):
    """Mean distance of the losses of the last steps, relative distance of the weights."""
    tail = -max(10, len(run[0]) // 10)
    losses = np.abs(np.subtract(run[0][tail:], other[0][tail:])).mean()
    return losses, (torch.norm(run[1][-1] - other[1][-1]) / torch.norm(other[1][-1])).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train", help="the program train")
    parser.add_argument("data", help="a folder of CIFAR-10, binary version")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--sparsifiers", default="dense,topk,gaussiank,gtopk,dgc,powersgd,oktopk")
    options = parser.parse_args()
    print("sparsifier   same entries of steps 1, 2, 3 (rounding)   "
          "loss: torch, train, apart (rounding)   weights apart (rounding)   bytes")
    far = False
    with tempfile.TemporaryDirectory() as work:
        options.work = Path(work)
        options.weights = options.work / "first.safetensors"
        torch.manual_seed(1)
        network = torch_models.ResNet(20)
        save_file(network.state_dict(), options.weights)
        for sparsifier in options.sparsifiers.split(","):
            plain = {"sparsifier": sparsifier, "steps": 3, "momentum": 0, "decay": 0}
            begun, by_them = by_torch(options, **plain), by_train(options, **plain)
            shares = shared_entries(begun[1], by_them[1])
            rounding = shared_entries(begun[1], by_torch(options, noise=True, **plain)[1])
            # later, rounding changes how many entries a threshold lets pass
            same_bytes = abs(begun[2] - by_them[2]) <= 0.02 * by_them[2]
            recipe = {"sparsifier": sparsifier, "steps": options.steps, "momentum": MOMENTUM,
                      "decay": DECAY}
            ours, theirs = by_torch(options, **recipe), by_train(options, **recipe)
            noise = distance(by_torch(options, noise=True, **recipe), ours)
            apart = distance(theirs, ours)
            bad = (shares[0] < 0.99 or not same_bytes or apart[1] > 2 * noise[1] or
                   apart[0] > 5 * noise[0] + 1e-3)
            far = far or bad
            same = "".join(f" {share:.4f} ({noisy:.4f})"
                           for share, noisy in zip(shares, rounding, strict=True))
            print(f"{sparsifier:12}{same}   "
                  f"{ours[0][-1]:.4f} {theirs[0][-1]:.4f} {apart[0]:.5f} ({noise[0]:.5f})   "
                  f"{apart[1]:.2e} ({noise[1]:.2e})   {ours[2]:.0f} {theirs[2]:.0f}"
                  f"{'   far apart' if bad else ''}", flush=True)
    sys.exit(far)


if __name__ == "__main__":
    main()
