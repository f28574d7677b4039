"""Thinwire's exchanges inside PyTorch: a communication hook of DistributedDataParallel, and local
steps around any optimizer.

    model = DistributedDataParallel(network)
    hook = thinwire.ddp.Hook("gaussiank", density=0.001).register(model)
"""

import contextlib
import ctypes
import datetime
import struct

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from .library import TIMEOUT, Group, Reducer
from .reader import Fault, UserError

__all__ = ["Hook", "LocalSteps"]
HEADER = 8  # bytes in front of a message: its length, or ~r: rank r of the group is lost
FAREWELL = datetime.timedelta(seconds=2)  # for the others to hear of a lost rank


class Peers:
    """Sends bytes between the ranks of a torch.distributed group by gloo, one message for each:
    the receiver knows the most bytes, the header says how many there are."""

    def __init__(self, group):
        self.group = group
        self.ranks = dist.get_process_group_ranks(group)
        self.rank = dist.get_rank(group)
        self.buffers = {}

    def buffer(self, use, length):
        if self.buffers.get(use, torch.empty(0)).numel() < length:
            self.buffers[use] = torch.empty(length, dtype=torch.uint8)
        return self.buffers[use][:length]

    def exchange(self, to, out, out_bytes, source, into, room, seconds):
        limit = datetime.timedelta(seconds=seconds) if seconds else None
        works = []
        if to >= 0:
            message = self.buffer("out", HEADER + out_bytes)
            ctypes.memmove(message.data_ptr(), struct.pack("<q", out_bytes), HEADER)
            ctypes.memmove(message.data_ptr() + HEADER, out, out_bytes)
            works.append((to, dist.isend(message, self.ranks[to], self.group)))
        if source >= 0:
            message = self.buffer("in", HEADER + room)
            works.append((source, dist.irecv(message, self.ranks[source], self.group)))
        for peer, work in works:
            try:
                work.wait(limit) if limit else work.wait()
            except RuntimeError as error:
                self.fail(peer, str(error).splitlines()[0])
        if source < 0:
            return 0
        length, = struct.unpack("<q", ctypes.string_at(message.data_ptr(), HEADER))
        if length < 0:
            self.fail(~length, f"says rank {self.ranks[source]}")
        ctypes.memmove(into, message.data_ptr() + HEADER, length)
        return length

    def fail(self, lost, why):
        """Tells the ranks that wait for this one which rank is lost."""
        others = [rank for i, rank in enumerate(self.ranks) if i not in (lost, self.rank)]
        with contextlib.suppress(RuntimeError):
            message = torch.tensor([~lost])
            for work in [dist.isend(message, rank, self.group) for rank in others]:
                work.wait(FAREWELL)
        raise Fault(f"rank {self.ranks[lost]} is lost: {why}")


class Mean:
    """The mean over the ranks of tensors with names, and what it took."""

    def __init__(self, named, sparsifier, density, warmup, group, link, timeout, options,
                 of_model=None):
        self.density, self.warmup = density, tuple(warmup)
        self.steps = self.epoch = self.bytes_sent = 0
        self.seconds = 0.0  # of all exchanges so far, without selections and copies
        for name, tensor in named:
            if not tensor.is_floating_point():
                raise UserError(f"{name} is {tensor.dtype}; expected real numbers")
        ranks = dist.get_process_group_ranks(group or of_model or dist.group.WORLD)
        # NCCL has no messages of host memory, and those of a model's own group may be in its way
        given = group and dist.get_backend(group) == "gloo"
        own = group if given else dist.new_group(ranks, backend="gloo",
                                                 use_local_synchronization=True)
        self.peers = Peers(own)
        self.group = Group(self.peers.rank, len(ranks), self.peers.exchange, link, timeout)
        shapes = [(name, tuple(tensor.shape)) for name, tensor in named]
        self.reducer = Reducer(self.group, shapes, {"sparsifier": sparsifier, **options})
        for one in (density, *self.warmup):
            self.reducer.bytes(one)  # refuses a wrong one: DDP does not survive an error in a step

    def __call__(self, tensors):
        """Replaces the tensors, in the order of their names, by their mean. The Report."""
        host = [tensor if tensor.is_cpu and tensor.dtype is torch.float32 and tensor.is_contiguous()
                else tensor.detach().to("cpu", torch.float32).contiguous() for tensor in tensors]
        warm = self.epoch < len(self.warmup)
        density = self.warmup[self.epoch] if warm else self.density
        addresses = [tensor.data_ptr() for tensor in host]
        report = self.reducer.step(addresses, self.steps, density, warm)
        for tensor, mean in zip(tensors, host, strict=True):
            if tensor is not mean:
                tensor.copy_(mean)
        self.steps += 1
        self.bytes_sent += report.bytes_sent
        self.seconds += report.seconds_exchange
        return report

    def state_dict(self):
        state = torch.frombuffer(bytearray(self.reducer.save()), dtype=torch.uint8)
        return {"reducer": state, "steps": self.steps, "epoch": self.epoch,
                "bytes_sent": self.bytes_sent}

    def load_state_dict(self, state):
        self.reducer.load(state["reducer"].cpu().numpy().tobytes())
        self.steps, self.epoch = state["steps"], state["epoch"]
        self.bytes_sent = state.get("bytes_sent", 0)


class Exchanging:
    """What Hook and LocalSteps have of their `mean`."""
    mean: Mean

    def set_epoch(self, epoch):
        """The epoch that begins, from 0, for warmup."""
        self.mean.epoch = epoch

    @property
    def bytes_sent(self):
        """Payload bytes that this rank has sent."""
        return self.mean.bytes_sent

    def seconds(self, link):
        """Predicted seconds of an exchange on a link such as "1Gbit,0.1ms"."""
        return self.mean.reducer.seconds(link, self.mean.density)


class Hook(Exchanging):
    """Exchanges the gradients of a DistributedDataParallel model by a sparsifier of Thinwire.

    sparsifier, density: as of `train`. warmup: densities of the first epochs; the caller says
    set_epoch(). group: a torch.distributed group, by default that of the model. Unless it is given
    and one of gloo, messages go over a gloo group of the same ranks that register() makes. link:
    emulates a link such as "100Mbit,1ms". timeout: seconds that a rank waits for another one.
    options: scope, momentum, seed, set={"wire.values": "bf16"} and the others of thinwire.h.

    The selection is made from the whole gradient, when its last bucket is there. The residual is
    that of each parameter, whatever the buckets are. Momentum belongs to the optimizer, unless the
    sparsifier applies it before the selection, as dgc does: then momentum= is given here, and the
    optimizer has none. DDP leaves the gradient of a parameter alone that no rank used in a step;
    what of its residual is sent in that step is lost.
    """

    def __init__(self, sparsifier, density=0.001, warmup=(), group=None, link=None, timeout=TIMEOUT,
                 **options):
        self.arguments = (sparsifier, density, warmup, group, link, timeout, options)
        self.report = None
        self.waiting: list = []

    def register(self, model):
        """Becomes the hook of the model, a DistributedDataParallel. Collective."""
        if not isinstance(model, DistributedDataParallel):
            raise UserError(f"a hook of {type(model).__name__}; expected DistributedDataParallel")
        for name, module in model.module.named_modules():
            if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and module.sparse:
                raise UserError(f"{name} has sparse=True; expected dense gradients")
        named = [(name, p) for name, p in model.module.named_parameters() if p.requires_grad]
        self.order = {id(p): i for i, (_, p) in enumerate(named)}
        # a bucket has a gradient in the order of its parameter in memory, if that has no gaps
        self.strides = {id(p): p.stride() for _, p in named
                        if not p.is_contiguous() and torch.empty_like(p).stride() == p.stride()}
        self.mean = Mean(named, *self.arguments, of_model=model.process_group)
        model.register_comm_hook(self, type(self).take)
        return self

    def take(self, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        """A bucket of gradients; its future is the mean, when the last bucket has come."""
        future = torch.futures.Future()
        self.waiting.append((bucket, future))
        if bucket.is_last():
            buckets, self.waiting = self.waiting, []
            gradients = [None] * len(self.order)
            for one, _ in buckets:
                for parameter, gradient in zip(one.parameters(), one.gradients(), strict=True):
                    if stride := self.strides.get(id(parameter)):
                        gradient = gradient.as_strided(gradient.size(), stride)
                    gradients[self.order[id(parameter)]] = gradient
            self.report = self.mean(gradients)
            for one, done in buckets:
                done.set_result(one.buffer())
        return future

    def state_dict(self):
        """The state of this rank, such as the residual; each rank saves its own."""
        return self.mean.state_dict()

    def load_state_dict(self, state):
        """Continues from the state of the same rank of as many ranks, parameters and options.
        After an error in a step, such as NonFinite, only a new DistributedDataParallel with a new
        Hook can do so."""
        self.mean.load_state_dict(state)


class LocalSteps(Exchanging):
    """Local SGD: every rank takes `every` steps of its own optimizer; then the change of the
    parameters is exchanged by a sparsifier and applied by SGD with Nesterov momentum (DiLoCo, with
    outer_lr and outer_momentum). The model is not wrapped by DistributedDataParallel. It begins
    with the parameters and buffers of the first rank; later, buffers such as the statistics of
    batch norm are each rank's own. Other arguments are those of Hook."""

    def __init__(self, model, optimizer, every, sparsifier, density=0.001, outer_lr=1.0,
                 outer_momentum=0.0, warmup=(), group=None, link=None, timeout=TIMEOUT, **options):
        if every < 1 or every != int(every):
            raise UserError(f"LocalSteps: every = {every}; expected a whole number from 1")
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self.optimizer, self.every, self.taken = optimizer, every, 0
        self.parameters = [p for _, p in named]
        self.mean = Mean(named, sparsifier, density, warmup, group, link, timeout, options)
        with torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                first = tensor.detach().cpu().contiguous()
                dist.broadcast(first.flatten().view(torch.uint8), self.mean.peers.ranks[0],
                               self.mean.peers.group)
                tensor.copy_(first)
        self.anchor = [p.detach().clone() for p in self.parameters]
        self.outer = torch.optim.SGD(self.anchor, lr=outer_lr, momentum=outer_momentum,
                                     nesterov=outer_momentum > 0)
        self.report = None

    def zero_grad(self, set_to_none=True):
        self.optimizer.zero_grad(set_to_none)

    def step(self):
        """A step of the optimizer, and after `every` of them an exchange. Collective then."""
        self.optimizer.step()
        self.taken += 1
        if self.taken % self.every == 0:
            self.exchange()

    @torch.no_grad()
    def exchange(self):
        """Exchanges what the local steps have changed. Collective."""
        for anchor, parameter in zip(self.anchor, self.parameters, strict=True):
            anchor.grad = anchor - parameter
        self.report = self.mean([anchor.grad for anchor in self.anchor])
        self.outer.step()
        for anchor, parameter in zip(self.anchor, self.parameters, strict=True):
            parameter.copy_(anchor)

    def state_dict(self):
        """The state of this rank: of the optimizer, the outer step and the reducer."""
        return {"taken": self.taken, "anchor": self.anchor,
                "optimizer": self.optimizer.state_dict(), "outer": self.outer.state_dict(),
                "mean": self.mean.state_dict()}

    def load_state_dict(self, state):
        self.taken = state["taken"]
        with torch.no_grad():
            for anchor, saved in zip(self.anchor, state["anchor"], strict=True):
                anchor.copy_(saved)
        self.optimizer.load_state_dict(state["optimizer"])
        self.outer.load_state_dict(state["outer"])
        self.mean.load_state_dict(state["mean"])
