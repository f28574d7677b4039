#!/usr/bin/env python3
"""compare_ddp.py TRAIN CIFAR10: trains ResNet-20 by `train` and by PyTorch with thinwire.ddp.Hook.

Both begin with the same weights and take the same batches: the order and the crops of `train` are
drawn again here. The hook gets the elements of a convolution in the order of `train`, on which
samples and random factors depend. Prints for each sparsifier the share of changed entries that both
change, by step without momentum; how far losses and weights are apart, and bytes, after ten steps
at a low rate; and after a training at the usual one, in which rounding grows to what sparsifiers
differ by. In brackets are two runs of PyTorch whose first weights differ by rounding. Exit code 1
where that explains less, or where, as a control, it explains the ten steps of another sparsifier.
Needs a Python with torch and safetensors, and libthinwire (THINWIRE_LIBRARY).
"""

import argparse
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
                            step_of, steps_of_train)

DENSITY = 0.01
FIRST, SLOW = 10, 1e-4  # steps and a rate over which rounding stays small


class MeanInOrder(thinwire.ddp.Mean):
    """Has the elements of a convolution in the order of `train`: the input channels last."""

    def __init__(self, named, *arguments, **options):
        super().__init__([(name, in_order(p)) for name, p in named], *arguments, **options)

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


def train_in_torch(options, noise, sparsifier, steps, momentum, rate, result):
    """A process of the PyTorch run."""
    network = torch_models.ResNet(20)
    state = load_file(options.weights)
    if noise:
        torch.manual_seed(1)
        state = {name: value * (1 + 1e-7 * torch.randn_like(value)) if value.ndim > 1 else value
                 for name, value in state.items()}
    network.load_state_dict(state, strict=False)
    model = DistributedDataParallel(network)
    # momentum before the selection belongs to the hook
    before = sparsifier == "dgc"
    of_hook = {"momentum": momentum} if before else {}
    thinwire.ddp.Mean = MeanInOrder
    hook = thinwire.ddp.Hook(sparsifier, density=DENSITY, **of_hook).register(model)
    optimizer = sgd(network, 0 if before else momentum, DECAY if momentum else 0, rate)
    if before:
        decay_with_momentum(optimizer, momentum)
    batches = Batches(options.data, options.ranks, options.batch, 1)
    losses, weights = [], [parameters_of(dict(network.named_parameters()))]
    for step in range(steps):
        losses.append(mean_over_ranks(
            step_of(model, optimizer, *batches(step, dist.get_rank()))))
        if (step + 1) % (steps // FIRST) == 0:
            weights.append(parameters_of(dict(network.named_parameters())))
    sent = options.ranks * mean_over_ranks(hook.bytes_sent)
    if dist.get_rank() == 0:
        torch.save((losses, weights, sent), result)


def by_torch(options, noise, *recipe):
    """Losses by step, the weights before and after each tenth of the steps, bytes of all ranks."""
    result = options.work / "torch.pt"
    on_processes(options.ranks, train_in_torch, options, noise, *recipe, result)
    return torch.load(result)


def by_train(options, sparsifier, steps, momentum, rate):
    """The same by `train`."""
    folder = options.work / f"{sparsifier}-{momentum}-{rate}"
    rows = steps_of_train(
        options.train, options, sparsifier, steps, folder, "--density", str(DENSITY), "--lr",
        str(rate), "--momentum", str(momentum), "--weight-decay", str(DECAY if momentum else 0),
        "--pretrained", options.weights, "--checkpoint-steps", str(steps // FIRST),
        "--keep-checkpoints", str(FIRST))
    files = sorted((folder / "checkpoints").glob("step-*/model.safetensors"))
    return ([float(row["train_loss"]) for row in rows],
            [parameters_of(load_file(file)) for file in [options.weights, *files]],
            sum(float(row["bytes_sent"]) for row in rows))


def parameters_of(state):
    """The trained tensors as one vector, by name."""
    names = sorted(name for name in state if "running" not in name and "tracked" not in name)
    return torch.cat([state[name].detach().flatten() for name in names])


def shared_entries(run, other):
    """By step, the share of the changed entries that both runs change."""
    shares = []
    for step in range(1, len(run[1])):
        one, two = (weights[step] != weights[step - 1] for _, weights, _ in (run, other))
        shares.append(((one & two).sum() / (one | two).sum()).item())
    return np.array(shares)


def distance(run, other):
    """Mean distance of the losses of the last steps; of the weights, as a part of their way."""
    tail = -max(10, len(run[0]) // 10)
    losses = np.abs(np.subtract(run[0][tail:], other[0][tail:])).mean()
    way = torch.norm(other[1][-1] - other[1][0])
    return np.array([losses, (torch.norm(run[1][-1] - other[1][-1]) / way).item()])


def is_far(apart, noise):
    return apart[0] > 5 * noise[0] + 1e-6 or apart[1] > 2 * noise[1] + 1e-3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train", help="the program train")
    parser.add_argument("data", help="a folder of CIFAR-10, binary version")
    parser.add_argument("--steps", type=int, default=200, help="at the usual rate; default: 200")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sparsifiers", default="dense,topk,gaussiank,gtopk,dgc,powersgd,oktopk")
    options = parser.parse_args()
    sparsifiers = options.sparsifiers.split(",")
    if len(sparsifiers) < 2 or options.steps < FIRST or options.steps % FIRST:
        parser.error(f"expected two --sparsifiers or more, and --steps a multiple of {FIRST}")
    print(f"| sparsifier | entries of steps 1, 2, 3, {FIRST} | loss | weights | bytes: hook, train "
          f"| loss of {options.steps} steps | weights |")
    far, slow = False, {}
    with tempfile.TemporaryDirectory() as work:
        options.work = Path(work)
        options.weights = options.work / "first.safetensors"
        torch.manual_seed(1)
        save_file(torch_models.ResNet(20).state_dict(), options.weights)
        for name in sparsifiers:
            plain, slow[name], usual = (
                (by_torch(options, False, name, *recipe), by_torch(options, True, name, *recipe),
                 by_train(options, name, *recipe))
                for recipe in ((FIRST, 0, SLOW), (FIRST, MOMENTUM, SLOW),
                               (options.steps, MOMENTUM, RATE)))
            rounding, shares = (shared_entries(plain[0], run) for run in plain[1:])
            # rounding changes how many entries a threshold lets pass, if it passes any number
            sent = [run[2] for run in slow[name]]
            bad = (1 - shares > 2 * (1 - rounding) + 2e-3).any() or shares[0] < 0.99 or (
                abs(sent[2] - sent[0]) > (5e-3 * sent[0] if sent[1] != sent[0] else 0))
            row = [name, ", ".join(f"{shares[i]:.4f} ({rounding[i]:.4f})"
                                   for i in (0, 1, 2, FIRST - 1))]
            for ours, noisy, theirs in (slow[name], usual):
                noise, apart = distance(noisy, ours), distance(theirs, ours)
                bad = bad or is_far(apart, noise)
                row += [f"{apart[i]:.2g} ({noise[i]:.2g})" for i in (0, 1)]
            row.insert(4, f"{sent[0]:,.0f}, {sent[2]:,.0f}")
            print(f"| {' | '.join(row)} |{' far apart' if bad else ''}", flush=True)
            far = far or bad
    print("| sparsifier | nearest other | loss | weights |")
    for name, (ours, noisy, theirs) in slow.items():
        noise = distance(noisy, ours)
        others = {other: distance(runs[0], theirs) for other, runs in slow.items() if other != name}
        nearest = min(others, key=lambda other: others[other][1])
        near = [other for other in others if not is_far(others[other], noise)]
        print(f"| {name} | {nearest} | {others[nearest][0]:.2g} | {others[nearest][1]:.2g} |"
              f"{' not told from ' + ', '.join(near) if near else ''}")
        far = far or near
    sys.exit(bool(far))


if __name__ == "__main__":
    main()
