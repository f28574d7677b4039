"""Checks of thinwire.ddp: a small network on processes of torch.distributed, over gloo."""

import json
import os
import socket
import subprocess
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

import thinwire
import thinwire.ddp

RANKS = 3


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Linear(20, 30), torch.nn.Tanh(), torch.nn.Linear(30, 30), torch.nn.Tanh(),
        torch.nn.Linear(30, 5))


def batch(rank, step):
    draw = np.random.default_rng(100 * step + rank)
    return (torch.tensor(draw.normal(size=(8, 20)), dtype=torch.float32),
            torch.tensor(draw.integers(0, 5, size=8)))


def loss_of(model, rank, step):
    images, labels = batch(rank, step)
    return torch.nn.functional.cross_entropy(model(images), labels)


def flat(tensors):
    return torch.cat([tensor.detach().flatten() for tensor in tensors])


class Training:
    """SGD of the network on this rank, with a hook or, without arguments, as DDP does it."""

    def __init__(self, *arguments, bucket_mib=25, momentum=0.9, **options):
        self.model = DistributedDataParallel(network(), bucket_cap_mb=bucket_mib)
        self.hook = None
        if arguments:
            self.hook = thinwire.ddp.Hook(*arguments, **options).register(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=momentum)
        self.steps = 0

    def run(self, steps):
        for _ in range(steps):
            self.optimizer.zero_grad()
            loss_of(self.model, dist.get_rank(), self.steps).backward()
            self.optimizer.step()
            self.steps += 1
        return self

    def values(self):
        return flat(self.model.parameters())


def same_on_all(values):
    every = [torch.empty_like(values) for _ in range(RANKS)]
    dist.all_gather(every, values)
    return all(torch.equal(one, values) for one in every)


def check_dense(_rank):
    plain, hooked = Training().run(5).values(), Training("dense").run(5).values()
    torch.testing.assert_close(hooked, plain, rtol=1e-5, atol=1e-6)
    assert same_on_all(hooked)


def check_types_and_layouts_change_nothing(rank):
    """PowerSGD, which reads shapes: the same mean of gradients in f32, f64 and channels last."""
    means = []
    for kind in ({}, {"dtype": torch.float64}, {"memory_format": torch.channels_last}):
        torch.manual_seed(1)
        model = DistributedDataParallel(torch.nn.Conv2d(3, 8, 3).to(**kind))
        thinwire.ddp.Hook("powersgd", set={"powersgd.rank": 1}).register(model)
        images = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(rank)).to(**kind)
        model(images).pow(2).sum().backward()
        means.append(flat([p.grad for p in model.parameters()]).float())
    for mean in means[1:]:
        torch.testing.assert_close(mean, means[0], rtol=1e-4, atol=1e-4)


def check_topk_beside_numpy(_rank):
    """Three ranks' gradients, residuals and selections worked out here."""
    training = Training("topk", density=0.02, momentum=0)
    model, d = network(), training.values().numel()
    k = int(0.02 * d)
    residuals = np.zeros((RANKS, d), dtype=np.float32)
    for step in range(6):
        training.run(1)
        total = np.zeros(d, dtype=np.float32)
        for rank in range(RANKS):
            model.zero_grad()
            loss_of(model, rank, step).backward()
            residuals[rank] += flat([p.grad for p in model.parameters()]).numpy()
            chosen = np.argsort(-np.abs(residuals[rank]), kind="stable")[:k]
            total[chosen] += residuals[rank][chosen]
            residuals[rank][chosen] = 0
        mean = torch.tensor(total / RANKS)
        with torch.no_grad():
            offset = 0
            for p in model.parameters():
                p -= 0.1 * mean[offset:offset + p.numel()].view_as(p)
                offset += p.numel()
        torch.testing.assert_close(training.values(), flat(model.parameters()), rtol=1e-5,
                                   atol=1e-6)
    report = training.hook.report
    assert report.entries == k, (report.entries, k)
    assert report.bytes_sent > 8 * k


def check_buckets_change_nothing(_rank):
    few, many = (Training("gaussiank", density=0.05, bucket_mib=mib).run(8).values()
                 for mib in (25, 0.001))
    assert torch.equal(few, many)


class CountingHook(thinwire.ddp.Hook):
    """Counts the buckets that it takes."""
    taken = 0

    def take(self, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        self.taken += 1
        return super().take(bucket)


def check_a_subclass_takes_the_buckets(_rank):
    model = DistributedDataParallel(network())
    hook = CountingHook("dense").register(model)
    loss_of(model, dist.get_rank(), 0).backward()
    assert hook.taken == 1, hook.taken


def check_every_sparsifier(_rank):
    described = json.loads(subprocess.check_output([sys.argv[1], "--describe"]))
    names, = (option["suggestions"] for option in described["options"]
              if option["name"] == "sparsifier")
    assert len(names) > 10
    for name in names:
        for scope in ("model", "layer"):
            training = Training(name, density=0.1, scope=scope).run(4)
            assert same_on_all(training.values()), (name, scope)
            assert torch.isfinite(training.values()).all(), (name, scope)


def check_state(_rank):
    through = Training("topk", density=0.02, warmup=[0.5]).run(6)
    begun = Training("topk", density=0.02, warmup=[0.5]).run(3)
    resumed = Training("topk", density=0.02, warmup=[0.5])
    resumed.model.load_state_dict(begun.model.state_dict())
    resumed.optimizer.load_state_dict(begun.optimizer.state_dict())
    resumed.hook.load_state_dict(begun.hook.state_dict())
    resumed.steps = 3
    assert torch.equal(resumed.run(3).values(), through.values())
    assert through.hook.bytes_sent > 0


def check_warmup(_rank):
    training = Training("topk", density=0.02, warmup=[0.5])
    training.run(1)
    many = training.hook.report.entries
    training.hook.set_epoch(1)
    training.run(1)
    assert many > 20 * training.hook.report.entries


def check_warmup_of_local_steps(rank):
    model = network()
    local = thinwire.ddp.LocalSteps(model, torch.optim.SGD(model.parameters(), lr=0.1), 1, "topk",
                                    density=0.02, warmup=[0.5])
    entries = []
    for epoch in (0, 1):
        local.set_epoch(epoch)
        local.zero_grad()
        loss_of(model, rank, epoch).backward()
        local.step()
        entries.append(local.report.entries)
    assert entries[0] > 20 * entries[1], entries
    assert local.bytes_sent > 0


def check_threads_stay(_rank):
    """The threads of PyTorch are those of its user."""
    torch.set_num_threads(2)
    Training("topk").run(2)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)


def check_local_steps(rank):
    """Dense, every=3: the mean of what three steps alone give, from the values of rank 0."""
    model = network()
    if rank > 0:
        with torch.no_grad():
            model[0].weight.add_(rank)
    local = thinwire.ddp.LocalSteps(
        model, torch.optim.SGD(model.parameters(), lr=0.1), 3, "dense")
    for step in range(3):
        local.zero_grad()
        loss_of(model, rank, step).backward()
        local.step()
    alone = network()
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        loss_of(alone, rank, step).backward()
        optimizer.step()
    mean = flat(alone.parameters())
    dist.all_reduce(mean)
    torch.testing.assert_close(flat(model.parameters()), mean / RANKS, rtol=1e-5, atol=1e-6)
    assert same_on_all(flat(model.parameters()))


def check_group_of_the_model(rank):
    """Ranks 0 and 1 train one network, rank 2 another one."""
    groups = [dist.new_group(ranks) for ranks in ((0, 1), (2,))]
    means = []
    for hooked in (False, True):
        model = DistributedDataParallel(network(), process_group=groups[rank == 2])
        if hooked:
            thinwire.ddp.Hook("dense").register(model)
        loss_of(model, rank, 0).backward()
        means.append(flat([p.grad for p in model.parameters()]))
    torch.testing.assert_close(means[1], means[0], rtol=1e-5, atol=1e-6)


def check_nan(rank):
    """NaN names its rank; the state of before goes on in a new DDP with a new hook."""
    training = Training("topk", momentum=0).run(2)
    saved, values = training.hook.state_dict(), training.values()
    expected = training.run(1).values()
    with torch.no_grad():
        training.model.module[2].weight[0, 0] = float("nan") if rank == 1 else 0
    try:
        training.run(1)
    except thinwire.NonFinite as error:
        assert "rank 1" in str(error), error
    else:
        raise AssertionError("no error")
    again = Training("topk", momentum=0)
    again.hook.load_state_dict(saved)
    torch.nn.utils.vector_to_parameters(values, again.model.parameters())
    again.steps = 2
    assert again.hook.bytes_sent == saved["bytes_sent"] > 0
    assert torch.equal(again.run(1).values(), expected)


def refused(text, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except thinwire.UserError as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)


def check_wrong_arguments(_rank):
    refused('nearest is "topk"', Training, "topkk")
    refused('nearest is "scope"', Training, "topk", scop="layer")
    refused("momentum before", Training, "topk", nesterov=True)
    refused("link", Training, "topk", link="fast")
    refused("a density of 2", Training, "topk", density=2)
    refused("a density of 5", Training, "topk", warmup=[5])
    refused("expected DistributedDataParallel", thinwire.ddp.Hook("topk").register, network())
    refused("weight is torch.complex64", thinwire.ddp.Hook("topk").register,
            DistributedDataParallel(torch.nn.Linear(2, 2, dtype=torch.complex64)))
    sparse = torch.nn.Sequential(torch.nn.Embedding(9, 2, sparse=True))
    refused("0 has sparse=True", thinwire.ddp.Hook("topk").register,
            DistributedDataParallel(sparse))
    model = network()
    refused("every = 1.5", thinwire.ddp.LocalSteps, model,
            torch.optim.SGD(model.parameters(), lr=0.1), 1.5, "topk")


def check_lost_rank(rank):
    """The last check: rank 2 ends without a word; the others name it within the limit."""
    training = Training("topk", timeout=20).run(3)
    first = training.hook.report
    assert training.run(1).hook.report is not first
    if rank == 2:
        os._exit(0)
    began = time.monotonic()
    try:
        training.run(1)
    except thinwire.Fault as error:
        assert "rank 2 is lost: " in str(error), error
    else:
        raise AssertionError("no error")
    assert time.monotonic() - began < 60


CHECKS = [check_dense, check_types_and_layouts_change_nothing, check_topk_beside_numpy,
          check_buckets_change_nothing, check_a_subclass_takes_the_buckets, check_every_sparsifier,
          check_state, check_warmup, check_warmup_of_local_steps, check_threads_stay,
          check_local_steps, check_group_of_the_model, check_nan, check_wrong_arguments,
          check_lost_rank]


def work(rank, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=RANKS)
    for check in CHECKS:
        began = time.monotonic()
        check(rank)
        if rank == 0:
            print(f"{check.__name__}: {time.monotonic() - began:.1f} s", flush=True)
    os._exit(0)  # the group lacks a rank


def main():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = [mp.get_context("fork").Process(target=work, args=(rank, port))
                 for rank in range(RANKS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
        if process.exitcode is None:
            process.kill()
    codes = [process.exitcode for process in processes]
    sys.exit(0 if codes == [0] * RANKS else f"exit codes {codes}")


if __name__ == "__main__":
    main()
