"""Checks of thinwire.record(): the gradients of a network of PyTorch, and the numbers that
`analyze compressors` has of them beside NumPy's."""

import csv
import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from thinwire.record import record

RANKS, DENSITY = 3, 0.05
analyze, folder = sys.argv[1], Path(sys.argv[2])


def gradient_of(rank):
    """A network of which one parameter is frozen and one has no gradient."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Conv1d(2, 4, 3), torch.nn.Flatten(),
                                torch.nn.Linear(32, 10))
    model.register_parameter("unused", torch.nn.Parameter(torch.ones(2, 2, 1, 1, 1)))
    model[0].bias.requires_grad_(False)
    model(torch.randn(8, 2, 10, generator=torch.Generator().manual_seed(rank))).square() \
        .mean().backward()
    return model


def read(path):
    """(metadata, {name: vector}) of a safetensors file."""
    data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__")
    return metadata, {name: np.frombuffer(data[8 + length:][slice(*entry["data_offsets"])], "<f4")
                      for name, entry in header.items()}


def top(u, k):
    """u with its k largest magnitudes alone, of equal ones those of the lower indices."""
    kept = np.zeros_like(u)
    chosen = np.argsort(-np.abs(u), kind="stable")[:k]
    kept[chosen] = u[chosen]
    return kept


paths, us = [], []
for rank in range(RANKS):
    model = gradient_of(rank)
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    draw = torch.Generator().manual_seed(10 + rank)
    residual = {name: torch.randn(p.shape, generator=draw) / 10 for name, p in named.items()}
    paths.append(record(model, 100, folder / "gradients", rank, RANKS, residual, "topk", DENSITY))
    metadata, vectors = read(paths[-1])
    g = np.concatenate([(np.zeros(p.shape) if p.grad is None else p.grad.numpy()).ravel()
                        for p in named.values()]).astype("f4")
    e = np.concatenate([residual[name].numpy().ravel() for name in named])
    assert np.array_equal(vectors["g"], g) and np.array_equal(vectors["u"], g + e)
    assert [name for name, _ in json.loads(metadata["tensors"])] == list(named)
    assert ["unused", [2, 2, 1, 1, 1]] in json.loads(metadata["tensors"])
    assert metadata["rank"] == str(rank) and metadata["step"] == "100"
    us.append(g + e)
assert paths[0].name == "step-00000100-rank-0.safetensors"
assert {path.name for path in paths[0].parent.iterdir()} == {path.name for path in paths}
for text, arguments, options in [
        ("names or shapes", (model, 1), {"residual": {"unused": residual["unused"]}}),
        ("step 0 of", (model, 0), {}), ("step 1.5 of", (model, 1.5), {}),
        ("rank 3 of 2", (model, 1), {"rank": 3, "ranks": 2}),
        ("has a gradient", (torch.nn.Linear(2, 2), 1), {})]:
    try:
        record(*arguments, folder / "wrong", **options)
        sys.exit(f"taken: {text}")
    except ValueError as error:
        assert text in str(error), error
assert not (folder / "wrong").exists()
words = torch.nn.Embedding(5, 2, sparse=True)
words(torch.tensor([3, 3])).sum().backward()
assert read(record(words, 1, folder / "sparse"))[1]["g"].tolist() == [0] * 6 + [2, 2, 0, 0]


def rows_of(*words):
    subprocess.run([analyze, "compressors", *words, "--csv", folder / "table.csv"], check=True,
                   stdout=subprocess.DEVNULL)
    with open(folder / "table.csv", encoding="utf-8") as file:
        return {row["sparsifier"]: row for row in csv.DictReader(file)}


def near(text, value):
    assert abs(float(text) - value) <= 2e-5 * abs(value) + 1e-6, (text, value)


us = np.array(us, dtype="f8")
k = int(DENSITY * us.shape[1])
sent = np.array([top(u, k) for u in us])
rows = rows_of(*paths, "--density", str(DENSITY))
near(rows["topk"]["error"], np.linalg.norm((us - sent).mean(0)) / np.linalg.norm(us.mean(0)))
near(rows["topk"]["contraction"],
     np.mean([np.sum((u - s) ** 2) / np.sum(u ** 2) for u, s in zip(us, sent)]))
near(rows["topk"]["overlap"], np.any(sent != 0, axis=0).sum() / (sent != 0).sum())
near(rows["topk"]["bound_random"], 1 - k / us.shape[1])
near(rows["topk"]["bound_bell"], (1 - k / us.shape[1]) ** 2)
near(rows["dense"]["error"], 0)
assert rows["topk"]["k"] == str(k) and rows["dense"]["contraction"] == ""

# random entries: the mean of 1 - k / d over the draws of seeds
draws = [float(rows_of(paths[0], "--density", str(DENSITY), "--sparsifiers", "randk", "--seed",
                       str(seed), "--iterations", "1")["randk"]["contraction"])
         for seed in range(40)]
error = np.std(draws, ddof=1) / np.sqrt(len(draws))
assert abs(np.mean(draws) - (1 - k / us.shape[1])) < 4 * error, (np.mean(draws), error)
