"""Trainings of PyTorch beside `train`: the same batches of CIFAR-10, processes that exchange."""

import csv
import socket
import subprocess
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch_models import CIFAR10_DEVIATION, CIFAR10_MEAN

SHUFFLE, AUGMENT = 2, 3  # Purpose in engine/core/rng.h
RATE, MOMENTUM, DECAY = 0.05, 0.9, 1e-4


def philox(counter, key):
    """The four words of Philox4x32-10 over columns of counters (Salmon et al., SC 2011)."""
    x = [np.asarray(word, dtype=np.uint64) for word in np.broadcast_arrays(*counter)]
    low, k = np.uint64(0xFFFFFFFF), [np.uint64(word) for word in key]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * x[0], np.uint64(0xCD9E8D57) * x[2]
        x = [(b >> np.uint64(32)) ^ x[1] ^ k[0], b & low,
             (a >> np.uint64(32)) ^ x[3] ^ k[1], a & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return x


def words_of(seed, purpose, epoch, ids):
    """The four words of each id, as engine/core/rng.h draws them."""
    return philox((0, epoch, ids & 0xFFFFFFFF, ids >> 32),
                  (seed & 0xFFFFFFFF, (seed >> 32) ^ (purpose << 24)))


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
        draws = below(words_of(self.seed, SHUFFLE, epoch, np.arange(n + 1))[0], np.arange(n + 1))
        for i in range(n, 1, -1):
            j = int(draws[i])
            self.order[[i - 1, j]] = self.order[[j, i - 1]]
        words = words_of(self.seed, AUGMENT, epoch, np.arange(n))
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
        mean, deviation = (np.reshape(values, (3, 1, 1)) for values in
                           (CIFAR10_MEAN, CIFAR10_DEVIATION))
        return torch.tensor((out / 255 - mean) / deviation, dtype=torch.float32), self.labels[ids]


def sgd(network, momentum=MOMENTUM, decay=DECAY, rate=RATE):
    """SGD as in `train`: without weight decay of batch norm and biases."""
    parameters = list(network.parameters())
    groups = [{"params": [p for p in parameters if p.ndim > 1], "weight_decay": decay},
              {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0}]
    return torch.optim.SGD(groups, lr=rate, momentum=momentum)


def mean_over_ranks(value):
    """The mean over the ranks of a number."""
    total = torch.tensor(float(value))
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def step_of(model, optimizer, images, labels):
    """A step of SGD; the loss."""
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def steps_of_train(program, options, sparsifier, steps, folder, *more):
    """The rows of steps.csv of a run of `train` in a new folder. A program such as
    "mpirun -n 4 build/bin/train" has processes as ranks, one without a launcher threads."""
    subprocess.run(
        [*program.split(), "--model", "resnet20", "--dataset", "cifar10", "--data-dir",
         options.data, "--workers", "0" if " " in program else str(options.ranks), "--batch-size",
         str(options.batch), "--precision", "f32", "--threads-per-rank", "1", "--sparsifier",
         sparsifier, "--density-warmup", "none", "--lr-schedule", "constant", "--warmup-epochs",
         "0", "--epochs", "99", "--max-steps", str(steps), "--eval-every", "never",
         "--output-dir", folder.parent, "--name", folder.name, "--quiet", *more],
        check=True, stdout=subprocess.DEVNULL)
    with open(folder / "steps.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def begin(work, rank, port, ranks, arguments):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=ranks)
    work(*arguments)
    dist.destroy_process_group()


def on_processes(ranks, work, *arguments):
    """Runs work(*arguments) on so many processes of one group of gloo, a thread each."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.start_processes(lambda rank: begin(work, rank, port, ranks, arguments), nprocs=ranks,
                       start_method="fork")
