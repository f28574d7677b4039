"""The tables of a race, as Markdown and CSV, and the table of accuracies that `advise` has."""

import csv
import io
import shlex
import statistics

from .. import ReproError, tables
from ..verdict import form
from . import advice, links
from .readings import UNTRAINED

DENSE = ("dense", "bsp")
# options that change only the messages of a dense sum, not what is summed
MESSAGES = ("--allreduce", "--scope", "--overlap", "--bucket-mib")
HEAD = ["method", "clock", "s to {target}", "over dense", "over dense variants", "final top-1",
        "MiB a step", "s an iteration", "seeds"]
COLUMNS = ["model", "link", "ranks", "batch_size", "method", "options", "clock", "seeds", "target",
           "reached", "seconds", "seconds_min", "seconds_max", "over_dense", "over_dense_variants",
           "top1", "top1_min", "top1_max", "mib_per_step", "seconds_per_iteration", "commit"]


def sparsifier_of(entry):
    return shlex.split(entry.label)[1]


def options_of(entry):
    """The options beyond --sparsifier NAME, as typed."""
    return shlex.join(shlex.split(entry.label)[2:])


def is_plain_dense(entry):
    return sparsifier_of(entry) in DENSE and not options_of(entry)


def is_dense_variant(entry):
    """Dense with options that change only its messages."""
    flags = advice.flags_in(shlex.split(options_of(entry)))
    return (sparsifier_of(entry) in DENSE and bool(flags)
            and all(flag in MESSAGES or (flag == "--set" and value.startswith("allreduce."))
                    for flag, value in flags))


def mean_and_band(numbers, text=form):
    band = f" ({text(min(numbers))}–{text(max(numbers))})" if len(numbers) > 1 else ""
    return text(statistics.fmean(numbers)) + band


class Ranking:
    """The entries of a link, fastest first: by seconds to the target, then by final top-1."""

    def __init__(self, entries, target):
        self.target = target
        self.entries = sorted(entries, key=self.order)
        self.dense = self.best(is_plain_dense)
        self.variant = self.best(is_dense_variant)

    def order(self, entry):
        seconds = entry.seconds(self.target)
        if seconds is not None:
            return (0, seconds, entry.method)
        if entry.trainings:
            return (1, -statistics.fmean(entry.top1), entry.method)
        return (2, entry.seconds_per_iteration, entry.method)

    def best(self, fits):
        """The fastest of these entries that reaches the target, or None."""
        return next((entry for entry in self.entries
                     if fits(entry) and entry.seconds(self.target) is not None), None)

    def ratio(self, reference, entry):
        """How many times as fast as the reference, or None."""
        seconds = entry.seconds(self.target)
        return None if None in (reference, seconds) else reference.seconds(self.target) / seconds

    def reached_text(self, entry):
        if entry.clock == UNTRAINED:
            return "–"
        found = entry.reached(self.target)
        if len(found) == len(entry.curves):
            return mean_and_band(found, lambda seconds: f"{seconds:.1f}")
        return f"never for {len(entry.curves) - len(found)} of {len(entry.curves)} seeds" \
            if found else "never"

    def line(self, entry):
        def times(reference):
            ratio = self.ratio(reference, entry)
            return "–" if ratio is None else f"{ratio:.2f}"

        return [f"`{entry.method}`", entry.clock, self.reached_text(entry), times(self.dense),
                times(self.variant),
                mean_and_band(entry.top1, lambda top1: f"{top1:.4f}") if entry.top1 else "–",
                f"{entry.mib_per_step:.4g}", f"{entry.seconds_per_iteration:.4g}",
                ", ".join(str(one.seed) for one in entry.trainings) or "–"]

    def cells(self, model, link, entry):
        """The values of COLUMNS."""
        found, top1 = entry.reached(self.target), entry.top1
        every = found if len(found) == len(entry.curves) else []
        values = [entry.seconds(self.target), min(every, default=None), max(every, default=None),
                  self.ratio(self.dense, entry), self.ratio(self.variant, entry),
                  statistics.fmean(top1) if top1 else None, min(top1, default=None),
                  max(top1, default=None), entry.mib_per_step, entry.seconds_per_iteration]
        return [model, link, entry.config["run"]["ranks"], entry.config["batch_size"],
                entry.method, entry.label, entry.clock,
                ";".join(str(one.seed) for one in entry.trainings), self.target, len(found),
                *("" if value is None else f"{value:.9g}" for value in values), entry.commit]


def verdict(ranking, advised):
    """The sentences of a link: who wins, and whom `advise` names; advised: flags, None or ''."""
    if not ranking.entries:
        return "No run is finished."
    first, target = ranking.entries[0], f"{100 * ranking.target:g} %"
    seconds = first.seconds(ranking.target)
    if seconds is not None:
        text = f"`{first.method}` wins: {target} after {seconds:.1f} s"
        ratios = [f"{ranking.ratio(best, first):.2f} times as fast as the best {kind}, "
                  f"`{best.method}`"
                  for kind, best in (("dense row", ranking.dense),
                                     ("dense variant", ranking.variant))
                  if best not in (None, first)]
        text += "".join(f", {ratio}" for ratio in ratios[:1]) + \
            "".join(f", and {ratio}" for ratio in ratios[1:]) + "."
    elif first.trainings:
        text = f"No method reaches {target} with every seed."
    else:
        first = min(ranking.entries, key=lambda entry: entry.seconds_per_iteration)
        seconds = first.seconds_per_iteration
        text = f"Nothing is trained; `{first.method}` has the fastest iteration: {seconds:.4g} s."
    if not advised:
        return text + (" `advise` was not asked." if advised == "" else
                       " `advise` recommends nothing.")
    text += f" `advise` names `{shlex.join(advised)}`"
    named = advice.method_of(advised, ranking.entries)
    if named is None:
        return text + ", which did not race."
    if named is first:
        return text + ", the winner." if seconds is not None else text + "."
    theirs = named.seconds(ranking.target) if first.trainings else named.seconds_per_iteration
    if seconds is None or theirs is None:
        return text + f" (`{named.method}`), which does not reach {target} with every seed."
    return (text + f" (`{named.method}`): {theirs:.4g} s, "
            f"{100 * (theirs / seconds - 1):.1f} % slower than the winner.")


def document(model, sections, target):
    """Markdown; sections are (link, ranking, advised, missing)."""
    every = [training for _, ranking, _, _ in sections for entry in ranking.entries
             for training in entry.trainings]
    parts = [f"## {model}: seconds to a validation top-1 of {100 * target:g} %"]
    if every:
        parts.append(tables.origin({"": every}))
    head = [cell.format(target=f"{100 * target:g} %") for cell in HEAD]
    for link, ranking, advised, missing in sections:
        parts += [f"### {links.title(link)}", verdict(ranking, advised)]
        if ranking.entries:
            parts.append(tables.markdown(head, [ranking.line(one) for one in ranking.entries]))
        if missing:
            parts.append("Left out: " + "; ".join(missing) + ".")
    return "\n\n".join(parts) + "\n"


def csv_of(head, lines):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([head, *lines])
    return out.getvalue()


def csv_text(model, sections):
    return csv_of(COLUMNS, [ranking.cells(model, link, entry)
                            for link, ranking, _, _ in sections for entry in ranking.entries])


ACCURACY = ["sparsifier", "options", "model", "dataset", "ranks", "batch_size", "density", "epochs",
            "seeds", "top1", "dense_top1", "commit"]


def options_for_advise(entry):
    """The options of the table of accuracies, in which the density has a column of its own."""
    words = shlex.split(options_of(entry))
    if "--density" in words:
        at = words.index("--density")
        del words[at:at + 2]
    return shlex.join(words)


def accuracy_lines(entries):
    """The lines of ACCURACY of the trainings without a link, and texts on what has no line."""
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
                f"{statistics.fmean(theirs[one.seed] for one in both):.6g}", entry.commit])
    return lines, left_out
