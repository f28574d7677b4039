#!/usr/bin/env python3
"""compare_selections.py CHECKPOINT CHECKPOINT: compares the entries that two runs sent.

An element of the residual is zero if it was sent, or if its gradient is zero. The script compares
these elements of two checkpoints (step-.../ folders), rank by rank. Run both for one step with the
same seed. Gradients differ by rounding errors, so entries near the threshold may differ. Exit code
1 when more than 1 % of a rank's entries differ, 2 after an error.
"""
import array
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from runs import UserError, script

MOST = 0.01


def zeros(path):
    """Indices at which the tensor `residual` of a safetensors file is zero."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    length = int.from_bytes(data[:8], "little")
    try:
        begin, end = json.loads(data[8:8 + length])["residual"]["data_offsets"]
        values = array.array("f", data[8 + length:][begin:end])
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path}: no safetensors file with a residual") from None
    if 4 * len(values) != end - begin:
        raise UserError(f"{path}: the residual is cut off")
    return {i for i, value in enumerate(values) if value == 0}


def main():
    if len(sys.argv) != 3:
        raise UserError("usage: compare_selections.py CHECKPOINT CHECKPOINT")
    first, second = map(Path, sys.argv[1:])
    ranks = sorted(path.name for path in first.glob("rank-*.safetensors"))
    for folder in (first, second):
        if not any(folder.glob("rank-*.safetensors")):
            raise UserError(f"{folder} has no rank-*.safetensors; expected that of a checkpoint")
    if ranks != sorted(path.name for path in second.glob("rank-*.safetensors")):
        raise UserError(f"{first} and {second} have different numbers of ranks")
    bad = False
    pairs = [(zeros(first / rank), zeros(second / rank)) for rank in ranks]
    for rank, (one, other) in zip(ranks, pairs):
        most = max(len(one), len(other))
        moved = len(one ^ other) / 2
        bad |= most == 0 or moved > MOST * most
        print(f"{rank.split('.')[0]}: {len(one)} and {len(other)} zeros, "
              f"{len(one & other)} in common")
    return bad


if __name__ == "__main__":
    script(main)
