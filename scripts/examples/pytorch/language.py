"""What lstm.py and gpt.py share: the text, the methods of exchange, the training loop.

Text: the 31,102 verses of the King James Bible of Debian (apt-get install bible-kjv; bible -f
gen1:1-rev22:21 | cut -d " " -f 2- >bible.txt), or any other, a paragraph a line. A tenth of its
blocks of 100 lines is for validation; the vocabulary is that of the rest. Both depend on nothing
but the text.

Each method is a hook of thinwire.ddp, PyTorch's own hook, or local steps. The CSV has a row for
each validation: perplexity, bytes sent by all ranks, and the seconds that training would have
taken on --link: the CPU time of a rank's own thread, and the predicted seconds of the exchange.
The two whole sums at the start of PowerSGD are in the bytes, not in the seconds. draw.py draws it.
--record writes the gradients of each rank in the last step for `analyze compressors`.
"""

import argparse
import collections
import contextlib
import csv
import math
import random
import re
import socket
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from torch_powersgd import TorchPowerSgd

import thinwire
import thinwire.ddp

VOCABULARY = 10_000
METHODS: dict[str, dict] = {  # arguments of the hook; every: of local steps
    "dense": {"sparsifier": "dense"},
    "dense-bf16": {"sparsifier": "dense", "set": {"allreduce.values": "bf16"}},
    "topk": {"sparsifier": "topk"},
    "topk-layer": {"sparsifier": "topk", "scope": "layer"},
    "gaussiank": {"sparsifier": "gaussiank"},
    "gtopk": {"sparsifier": "gtopk"},
    "powersgd": {"sparsifier": "powersgd", "set": {"powersgd.rank": 4, "powersgd.start": 2}},
    "torch-powersgd": {},
    "topk-local4": {"sparsifier": "topk", "every": 4},
}


def tokens_of(file):
    """Training and validation tokens as tensors."""
    lines = [re.findall(r"[a-z']+|[^\sa-z']", line)
             for line in file.read_text(encoding="utf-8", errors="replace").lower().splitlines()]
    blocks = [[word for line in lines[i:i + 100] for word in [*line, "<end>"]]
              for i in range(0, len(lines), 100)]
    random.Random(1).shuffle(blocks)
    held = max(1, len(blocks) // 10)
    counts = collections.Counter(word for block in blocks[held:] for word in block)
    number = {word: i for i, (word, _) in enumerate(counts.most_common(VOCABULARY - 1), 1)}
    valid, train = ([number.get(word, 0) for block in part for word in block]
                    for part in (blocks[:held], blocks[held:]))
    return torch.tensor(train), torch.tensor(valid)


def windows(tokens, length, order):
    """Inputs and targets that begin at the positions `order`, [len(order), length]."""
    rows = torch.stack([tokens[i:i + length + 1] for i in order])
    return rows[:, :-1], rows[:, 1:]


def perplexity(network, tokens, length):
    with torch.no_grad():
        starts = range(0, len(tokens) - length - 1, length)
        losses = [loss_of(network, *windows(tokens, length, starts[i:i + 16])).item()
                  for i in range(0, len(starts), 16)]
    return math.exp(sum(losses) / len(losses))


def loss_of(network, inputs, targets):
    return torch.nn.functional.cross_entropy(network(inputs).flatten(0, 1), targets.flatten())


def exchange_of(method, network, optimizer, options):
    """The model to train, what makes a step, and what counts bytes and seconds."""
    arguments = {"density": options.density, **METHODS[method]}
    if every := arguments.pop("every", None):
        local = thinwire.ddp.LocalSteps(network, optimizer, every, **arguments)
        return network, local, local, every
    # in one bucket: with gloo, PyTorch's PowerSGD sends those of several in an order by chance
    model = DistributedDataParallel(network, bucket_cap_mb=1000)
    if method == "torch-powersgd":
        return model, optimizer, TorchPowerSgd(model, optimizer, METHODS["powersgd"]["set"]), 1
    return model, optimizer, thinwire.ddp.Hook(**arguments).register(model), 1


def train(rank, port, options, make_network, make_optimizer, method, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=options.ranks)
    torch.manual_seed(seed)
    network = make_network(options.length)
    optimizer = make_optimizer(network.parameters())
    model, stepper, exchange, every = exchange_of(method, network, optimizer, options)
    text, valid = options.tokens
    draw = random.Random(1000 * seed + rank)
    exchange_seconds, computed = exchange.seconds(options.link) / every, 0.0
    for step in range(1, options.steps + 1):
        order = [draw.randrange(len(text) - options.length - 1) for _ in range(options.batch)]
        inputs, targets = windows(text, options.length, order)
        stepper.zero_grad()
        if options.record and step == options.steps:
            with getattr(model, "no_sync", contextlib.nullcontext)():
                loss_of(model, inputs, targets).backward()
            thinwire.record(network, step, options.record, rank, options.ranks)
        began = time.thread_time()
        stepper.zero_grad()
        loss_of(model, inputs, targets).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), options.clip)
        stepper.step()
        computed += time.thread_time() - began
        if step % options.every == 0 or step == options.steps:
            sent = torch.tensor(exchange.bytes_sent, dtype=torch.float64)
            dist.all_reduce(sent)
            if rank == 0:
                row = [method, seed, step, f"{perplexity(network, valid, options.length):.3f}",
                       f"{sent.item():.0f}", f"{computed + step * exchange_seconds:.2f}"]
                with options.csv.open("a", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerow(row)
                print(*row, flush=True)
            dist.barrier()
    dist.destroy_process_group()


def numbers(text):
    return [int(number) for number in text.split(",")]


def main(description, make_network, make_optimizer, **defaults):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("text", type=Path, help="a text file, a paragraph a line")
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated")
    parser.add_argument("--seeds", type=numbers, default=[1], help="comma-separated")
    parser.add_argument("--link", default="100Mbit,1ms")
    parser.add_argument("--csv", type=Path, default=Path("language.csv"))
    parser.add_argument("--record", metavar="FOLDER")
    defaults = {"ranks": 4, "steps": 1000, "every": 100, "density": 0.01, **defaults}
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help=f"default: {value}")
    options = parser.parse_args()
    for name in defaults:
        if not 0 < getattr(options, name) <= (1 if name == "density" else math.inf):
            parser.error(f"--{name} {getattr(options, name)} is out of range")
    methods = options.methods.split(",")
    if unknown := set(methods) - METHODS.keys():
        parser.error(f"--methods: no {', '.join(sorted(unknown))}; there are {', '.join(METHODS)}")
    try:
        options.tokens = text, valid = tokens_of(options.text)
        if min(map(len, options.tokens)) < options.length + 2:
            parser.error(f"{options.text} is too short for windows of {options.length} words")
        if not options.csv.exists():
            options.csv.write_text("method,seed,step,perplexity,bytes,seconds\n", encoding="utf-8")
    except OSError as error:
        parser.error(str(error))
    counts = 1 + torch.bincount(text, minlength=VOCABULARY)
    print("perplexity of the words' frequencies:",
          f"{math.exp(-torch.log(counts / counts.sum())[valid].mean()):.1f}")
    for seed in options.seeds:
        for method in methods:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            try:
                mp.start_processes(
                    train, (port, options, make_network, make_optimizer, method, seed),
                    options.ranks, start_method="fork")
            except mp.ProcessRaisedException as error:
                _, wrong_input, reason = str(error).rpartition("UserError: ")
                if not wrong_input:
                    raise
                parser.error(reason.strip())
