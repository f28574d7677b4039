#!/usr/bin/env python3
"""compare_ddp.py TRAIN CIFAR10: trains ResNet-20 by `train` and by PyTorch with thinwire.ddp.Hook.

Both begin with the same weights and take the same batches: the order and the crops of `train` are
drawn again here. Prints for each sparsifier how many entries of the first updates are the same, how
far losses and weights are apart, and the bytes sent. Exit code 1 where they are farther apart than
rounding explains: the bound is the distance of two runs of PyTorch whose first weights differ by
rounding. Needs a Python with torch and safetensors, and libthinwire (THINWIRE_LIBRARY).
"""

import argparse
import csv
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors.torch import load_file, save_file
from torch.nn.parallel import DistributedDataParallel

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/bench"), str(ROOT / "scripts/python")]
import thinwire.ddp
import torch_models

SHUFFLE, AUGMENT = 2, 3  # Purpose in engine/core/rng.h
RATE, MOMENTUM, DENSITY = 0.05, 0.9, 0.01
MEAN, DEVIATION = (0.491, 0.482, 0.447), (0.247, 0.243, 0.262)  # data/cifar/cifar10.cpp


def philox(seed, purpose, epoch, ids):
    """The four words of each id, as engine/core/rng.h draws them."""
    ids = np.asarray(ids, dtype=np.uint64)
    low = np.uint64(0xFFFFFFFF)
    x = [np.zeros_like(ids), np.full_like(ids, epoch), ids & low, ids >> np.uint64(32)]
    keys = [seed & 0xFFFFFFFF, (seed >> 32) ^ (purpose << 24)]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * x[0], np.uint64(0xCD9E8D57) * x[2]
        x = [(b >> np.uint64(32)) ^ x[1] ^ np.uint64(keys[0]), b & low,
             (a >> np.uint64(32)) ^ x[3] ^ np.uint64(keys[1]), a & low]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return x


def below(words, n):
    return (words * np.asarray(n, dtype=np.uint64)) >> np.uint64(32)


class Batches:
    """The batches of a rank of `train`: CIFAR-10 in the binary version."""

    def __init__(self, folder, ranks, batch, seed):
        files = sorted(Path(folder).glob("data_batch_*.bin"))
        rows = np.concatenate([np.fromfile(file, np.uint8).reshape(-1, 3073) for file in files])
        self.labels = torch.tensor(rows[:, 0].astype(np.int64))
        self.images = rows[:, 1:].reshape(-1, 3, 32, 32)
        self.ranks, self.batch, self.seed = ranks, batch, seed
        self.per_epoch = len(rows) // (ranks * batch)
        self.epoch = None

    def start(self, epoch):
        n = len(self.labels)
        self.epoch, self.order = epoch, np.arange(n)
        draws = below(philox(self.seed, SHUFFLE, epoch, np.arange(n + 1))[0], np.arange(n + 1))
        for i in range(n, 1, -1):
            j = int(draws[i])
            self.order[[i - 1, j]] = self.order[[j, i - 1]]
        words = philox(self.seed, AUGMENT, epoch, np.arange(n))
        self.dy, self.dx = (below(word, 9).astype(int) for word in words[:2])
        self.flip = words[2] & np.uint64(1)

    def __call__(self, step, rank):
        epoch, number = divmod(step, self.per_epoch)
        if epoch != self.epoch:
            self.start(epoch)
        first = (number * self.ranks + rank) * self.batch
        ids = self.order[first:first + self.batch]
        out = np.empty((len(ids), 3, 32, 32), np.float32)
        for i, image in enumerate(ids):
            padded = np.pad(self.images[image], ((0, 0), (4, 4), (4, 4)))
            y, x = self.dy[image], self.dx[image]
            crop = padded[:, y:y + 32, x:x + 32]
            out[i] = crop[:, :, ::-1] if self.flip[image] else crop
        mean, deviation = (np.reshape(values, (3, 1, 1)) for values in (MEAN, DEVIATION))
        return torch.tensor((out / 255 - mean) / deviation, dtype=torch.float32), self.labels[ids]


def parameter_groups(network, weight_decay):
    """Weight decay as in `train`: not on batch norm and biases."""
    parameters = list(network.parameters())
    return [{"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
            {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0}]


def train_in_torch(rank, port, options, recipe, result):
    """A process of the PyTorch run."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=options.ranks)
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
    hook = thinwire.ddp.Hook(recipe["sparsifier"], density=DENSITY, **of_hook).register(model)
    optimizer = torch.optim.SGD(parameter_groups(network, recipe["decay"]), lr=RATE,
                                momentum=0 if before else recipe["momentum"])
    batches = Batches(options.data, options.ranks, options.batch, 1)
    losses, weights = [], []
    for step in range(recipe["steps"]):
        images, labels = batches(step, rank)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        weights = [*weights[-2:], parameters_of(dict(network.named_parameters()))]
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / options.ranks)
    sent = torch.tensor(hook.bytes_sent)
    dist.all_reduce(sent)
    if rank == 0:
        torch.save((losses, weights, sent.item()), result)
    dist.destroy_process_group()


def by_torch(options, **recipe):
    """Losses by step, the weights after the last three steps, bytes sent by all ranks."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    result = options.work / "torch.pt"
    mp.start_processes(train_in_torch, (port, options, {"noise": False, **recipe}, result),
                       options.ranks, start_method="fork")
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
         "--eval-every", "never", "--checkpoint-steps", "1", "--keep-checkpoints", "3",
         "--output-dir", options.work, "--name", name, "--quiet"],
        check=True, stdout=subprocess.DEVNULL)
    with open(options.work / name / "steps.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    checkpoints = sorted((options.work / name / "checkpoints").glob("step-*"))
    return ([float(row["train_loss"]) for row in rows],
            [parameters_of(load_file(one / "model.safetensors")) for one in checkpoints],
            sum(float(row["bytes_sent"]) for row in rows))


def parameters_of(state):
    """The trained tensors as one vector, by name."""
    names = sorted(name for name in state if "running" not in name and "tracked" not in name)
    return torch.cat([state[name].detach().flatten() for name in names])


def shared_entries(first, weights, others):
    """By step, the share of the changed entries that both runs change."""
    shares = []
    for before, after in zip(((first, first), *zip(weights, others, strict=True)),
                             zip(weights, others, strict=True), strict=False):
        one, other = (now != then for then, now in zip(before, after, strict=True))
        shares.append(((one & other).sum() / (one | other).sum()).item())
    return shares


def distance(run, other):
    """Mean distance of the losses of the last tenth of the steps, relative distance of weights."""
    tail = -max(1, len(run[0]) // 10)
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
    print("sparsifier   same entries of steps 1, 2, 3   loss: torch, train, apart (rounding)   "
          "weights apart (rounding)   bytes")
    far = False
    with tempfile.TemporaryDirectory() as work:
        options.work = Path(work)
        options.weights = options.work / "first.safetensors"
        torch.manual_seed(1)
        network = torch_models.ResNet(20)
        save_file(network.state_dict(), options.weights)
        first = parameters_of(dict(network.named_parameters()))
        for sparsifier in options.sparsifiers.split(","):
            plain = {"sparsifier": sparsifier, "steps": 3, "momentum": 0, "decay": 0}
            begun, by_them = by_torch(options, **plain), by_train(options, **plain)
            shares = shared_entries(first, begun[1], by_them[1])
            # later, rounding changes how many entries a threshold lets pass
            same_bytes = abs(begun[2] - by_them[2]) <= 0.02 * by_them[2]
            recipe = {"sparsifier": sparsifier, "steps": options.steps, "momentum": MOMENTUM,
                      "decay": 1e-4}
            ours, theirs = by_torch(options, **recipe), by_train(options, **recipe)
            noise = distance(by_torch(options, noise=True, **recipe), ours)
            apart = distance(theirs, ours)
            bad = shares[0] < 0.99 or apart[0] > 5 * noise[0] + 1e-3 or not same_bytes
            far = far or bad
            print(f"{sparsifier:12} {shares[0]:.4f} {shares[1]:.4f} {shares[2]:.4f}   "
                  f"{ours[0][-1]:.4f} {theirs[0][-1]:.4f} {apart[0]:.5f} ({noise[0]:.5f})   "
                  f"{apart[1]:.2e} ({noise[1]:.2e})   {ours[2]:.0f} {theirs[2]:.0f}"
                  f"{'   far apart' if bad else ''}", flush=True)
    sys.exit(far)


if __name__ == "__main__":
    main()
