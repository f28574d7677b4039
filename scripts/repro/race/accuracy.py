"""The table of accuracies that `advise` reads, from the trainings without a link."""

import shlex
import statistics

from .. import ReproError
from .labels import options_of, sparsifier_of

COLUMNS = ["sparsifier", "options", "model", "dataset", "ranks", "batch_size", "density", "epochs",
           "seeds", "top1", "dense_top1", "commit"]


def options_for_advise(entry):
    """The options of the table of accuracies, which has a column for the density; the warm-up to it
    is part of the recipe, as advise knows none."""
    words = shlex.split(options_of(entry))
    for flag in ("--density", "--density-warmup"):
        if flag in words:
            at = words.index(flag)
            del words[at:at + 2]
    return shlex.join(words)


def lines_of(entries):
    """The lines of the trainings without a link, and texts on what has no line."""
    dense = next((entry for entry in entries if entry.label == "--sparsifier dense"), None)
    if dense is None:
        raise ReproError("no training of dense without a link is finished")
    theirs = {one.seed: one.record["val_top1"] for one in dense.trainings}
    lines, left_out = [], []
    for entry in sorted(entries, key=lambda entry: entry.label):
        both = [one for one in entry.trainings if one.seed in theirs]
        config = entry.config
        if "," in options_of(entry):  # the reader in advise knows no quotes
            left_out.append(f"{entry.method}: its options have a comma")
        elif not both:
            left_out.append(f"{entry.method}: dense has no training with its seeds")
        elif config["max_steps"] or config["run"]["ranks"] != dense.config["run"]["ranks"] or \
                config["batch_size"] != dense.config["batch_size"]:
            left_out.append(f"{entry.method}: max_steps, ranks or batch size differ from a "
                            "whole training of dense")
        else:
            lines.append([
                sparsifier_of(entry), options_for_advise(entry), config["model"], config["dataset"],
                config["run"]["ranks"], config["batch_size"], f"{config['density']:g}",
                config["epochs"], ";".join(str(one.seed) for one in both),
                f"{statistics.fmean(one.record['val_top1'] for one in both):.6g}",
                f"{statistics.fmean(theirs[one.seed] for one in both):.6g}", entry.build["commit"]])
    return lines, left_out
