#!/usr/bin/env python3
"""Prints a Markdown table of finished runs.

usage: table.py RUN_FOLDER...
"""
import json
import sys
from pathlib import Path

COLUMNS = ("run", "model", "sparsifier", "P", "batch", "precision", "epochs", "seed", "val top-1",
           "images/s", "MiB sent per step", "nnz/k", "weights")


def row(folder):
    """The cells of one run folder."""
    config = json.loads((folder / "config.json").read_text())
    summary = json.loads((folder / "summary.json").read_text())
    mib_per_step = summary["bytes_sent"] / max(1, summary["steps"]) / 2**20
    return (folder.name, config["model"], config["sparsifier"], config["run"]["ranks"],
            config["batch_size"], config["precision"], summary["epochs"], summary["seed"],
            "-" if summary["val_top1"] is None else f"{summary['val_top1']:.4f}",
            f"{summary['images_per_s']:.0f}", f"{mib_per_step:.4f}",
            f"{summary['nnz_over_k']:.3f}", summary["weights_hash"][:8])


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    rows = []
    for name in sys.argv[1:]:
        try:
            rows.append(row(Path(name)))
        except (OSError, KeyError, json.JSONDecodeError) as error:
            sys.exit(f"error: {name} is not a finished run: {error}")
    for cells in (COLUMNS, ["---"] * len(COLUMNS), *rows):
        print("| " + " | ".join(str(cell) for cell in cells) + " |")


if __name__ == "__main__":
    main()
