"""What `advise` recommends for a link, which method of a race that is, and the table of accuracies
that it reads, from the trainings without a link.

It is asked once for each batch size, precision, local steps and density of the methods. The answers
are kept in advise.json of the link's folder, except those that it measured on a busy machine.
"""

import dataclasses
import shlex
import statistics
import tempfile
from pathlib import Path

from runs import told_by
from runs.kept import ADVICE, read_json

from .. import ReproError, programs, runs
from . import links
from .methods import flags_in, flags_of, is_dense, of_messages, options_of, sparsifier_of

MAX_LOSS = 2  # points of top-1 that a recommended method may have lost to dense
KEYS = ("batch_size", "precision", "threads_per_rank", "local_steps")
ACCURACIES = ["sparsifier", "options", "model", "dataset", "ranks", "batch_size", "density",
              "epochs", "seeds", "top1", "dense_top1", "commit", "images", "curve"]
DENSITIES = ("--density", "--density-warmup")  # a method and what advise names have the same


@dataclasses.dataclass
class Answer:
    """What `advise` says to a question; predictions are those at the link and its ranks."""
    options: dict
    machine: dict
    predictions: list

    @property
    def busy(self):
        return any(one["busy"] for one in self.predictions)

    @property
    def flags(self):
        """The recommended flags, `--sparsifier NAME` first."""
        return self.predictions[0]["recommended"].split()

    @property
    def gain(self):
        """How many times as fast as the best dense exchange the recommended one is."""
        flags = dict(flags_in(self.flags))
        local = flags.get("--local-steps", "1")
        return max((one["speedup"] for one in self.predictions
                    if one["sparsifier"] == flags["--sparsifier"]
                    and f"{one['local_steps']:g}" == local), default=1)

    def fits(self, entry):
        """Whether it is about this method."""
        return all(self.options[key] == entry.config[key] for key in KEYS) and (
            is_dense(entry) or self.options["density"] == entry.config["density"])


@dataclasses.dataclass
class Advised:
    """The answers of a link; `flags` of the best one, and the method that it names."""
    answers: list
    entries: list

    def __post_init__(self):
        recommending = [answer for answer in self.answers if answer.flags]
        self.answer = max(recommending, key=lambda one: one.gain, default=None)
        self.flags = self.answer and self.answer.flags
        self.named = self.answer and method_of(self.flags, [
            entry for entry in self.entries
            if is_dense(entry) or entry.config["density"] == self.answer.options["density"]])


def method_of(advised, entries):
    """The entry with the most of the advised flags and no other, or None.

    It may lack flags that change only the messages of a dense sum.
    """
    wanted = {flag for flag in flags_in(advised) if flag[0] not in DENSITIES}
    fitting = []
    for entry in entries:
        flags = {flag for flag in flags_of(entry) if flag[0] not in DENSITIES}
        if flags <= wanted and all(map(of_messages, wanted - flags)):
            fitting.append((len(flags), entry))
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


def questions(entries, link):
    """The options of `advise` that cover these methods, each once."""
    found = []
    for entry in sorted(entries, key=is_dense):  # dense ones have no density of their own
        config, ranks = entry.config, entry.config["run"]["ranks"]
        options = {"model": config["model"], "workers": ranks, "ranks": ranks,
                   **{key: config[key] for key in KEYS}, "density": config["density"],
                   "max_loss": MAX_LOSS}
        if link != links.NONE:
            options["link"] = link
        alike = [one for one in found if one | {"density": options["density"]} == options]
        if options not in found and not (alike and is_dense(entry)):
            found.append(options)
    return sorted(found, key=lambda one: (one["local_steps"], one["density"]))


def ask(options, settings):
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "advise.csv"
        told_by(settings.bin / "advise", *programs.flags(options), "--csv", table)
        predictions = [line for line in programs.of_link(table)
                       if line["ranks"] == options["ranks"]]
    return Answer(options, runs.machine(), predictions)


def for_link(folder, link, entries, settings):
    """What `advise` says on these methods, from the folder of the link or asked; None without."""
    kept = [Answer(**one) for one in read_json(folder / ADVICE) or () if "lines" not in one]
    answers = []
    for options in questions(entries, link):
        answer = next((one for one in kept if one.options == options), None)
        if not answer and (settings.bin / "advise").exists():
            answer = ask(options, settings)
            if not answer.busy:
                kept.append(answer)
                folder.mkdir(parents=True, exist_ok=True)  # none of kept results
                runs.write(folder / ADVICE, [dataclasses.asdict(one) for one in kept])
        if answer:
            answers.append(answer)
    return Advised(answers, entries) if answers else None


def options_for_advise(entry):
    """The options of the table of accuracies, which has a column for the density; the warm-up to it
    is part of the recipe, as advise knows none."""
    words = shlex.split(options_of(entry))
    for flag in DENSITIES:
        if flag in words:
            at = words.index(flag)
            del words[at:at + 2]
    return shlex.join(words)


def accuracies_of(entries):
    """The lines of the table of accuracies, of trainings without a link; texts on what has none."""
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
                f"{statistics.fmean(theirs[one.seed] for one in both):.6g}", entry.build["commit"],
                *curve_of(both)])
    return lines, left_out


def curve_of(trainings):
    """Images of an epoch, and the mean top-1 after each; empty where one was not validated."""
    config = trainings[0].config
    tops = [[epoch["val_top1"] for epoch in one.epochs] for one in trainings]
    if not all(isinstance(top1, float) for of_one in tops for top1 in of_one):
        return ["", ""]
    images = trainings[0].steps[0] * config["batch_size"] * config["run"]["ranks"]
    means = (statistics.fmean(of_epoch) for of_epoch in zip(*tops, strict=True))
    return [images, ";".join(f"{mean:.4f}" for mean in means)]
