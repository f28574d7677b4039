"""Why `advise` does not name the winner of a link."""

import statistics

from .advice import MAX_LOSS
from .methods import flags_of, is_dense, of_messages, sparsifier_of
from .readings import crossing

CONSIDERED = ("--sparsifier", "--local-steps", "--density", "--density-warmup")
NEAR = 0.1  # of the seconds; methods nearer than this are not told apart
NEVER = ("randk", "exact", "hierarchical")  # never recommended (docs/advise.md)


def others(entry):
    """The options of a method that `advise` does not consider, as typed."""
    return " ".join(" ".join(filter(None, flag)) for flag in sorted(flags_of(entry))
                    if flag[0] not in CONSIDERED and not of_messages(flag))


def predicted(entry, answers):
    """The prediction of a method, or None."""
    name, config = sparsifier_of(entry), entry.config
    collective = config["set"]["allreduce.collective"]
    if config["set"]["allreduce.values"] != "f32":
        collective += f" {config['set']['allreduce.values']}"
    collective += " overlap" * config["overlap"]
    found = [one for answer in answers if answer.fits(entry) for one in answer.predictions
             if one["sparsifier"] == name and one["local_steps"] == config["local_steps"]
             and (name != "dense" or one["collective"] == collective)]
    return min(found, key=lambda one: one["iteration_seconds"], default=None)


def excluded(entry, answers):
    """Why `advise` may not recommend a method; empty if it may."""
    name, local = sparsifier_of(entry), entry.config["local_steps"]
    if options := others(entry):
        return f"`advise` does not consider `{options}`"
    if name in NEVER:
        return f"`advise` never recommends `{name}`"
    if (found := predicted(entry, answers)) is None:
        return f"`advise` does not consider `{entry.method}`"
    if is_dense(entry) and local == 1:
        return ""
    points = found["top1_points"]
    if points == "":
        known = name == "topk" and local == 1  # recommended without
        return "" if known else f"its table has no accuracy of `{entry.method}`"
    if -points > MAX_LOSS:
        return (f"its table has `{entry.method}` {-points:.1f} points below dense, more than "
                f"--max-loss {MAX_LOSS}")
    return ""


def until(entry, target):
    """(epochs, seconds of an iteration) until the target, means over the seeds."""
    epochs, steps = ([crossing(training.curve(each(training)), target)
                      for training in entry.trainings]
                     for each in (lambda one: [1] * len(one.epochs), lambda one: one.steps))
    return statistics.fmean(epochs), entry.seconds(target) / statistics.fmean(steps)


def of_iterations(methods, foreseen, measured):
    """How the predicted seconds of an iteration of two methods differ from the measured ones."""
    if None in foreseen:
        return ""
    ours, theirs = (one["iteration_seconds"] for one in foreseen)
    text = ("its gain is too uncertain" if theirs > (1 + NEAR) * ours else
            "the prediction of seconds is wrong")
    first, named = methods
    return (f"{text}: for an iteration of `{named}` it predicts {theirs:.3g} s, measured are "
            f"{measured[1]:.3g} s; for one of `{first}` {ours:.3g} s, measured are "
            f"{measured[0]:.3g} s")


def why(first, named, answers, target):
    """Why `advise` names another method than the first one; named: None if that did not race."""
    if text := excluded(first, answers):
        return text
    if named is None:
        return ""
    both = (first, named)
    measured = [entry.seconds_per_iteration for entry in both]
    if all(entry.seconds(target) is not None for entry in both):
        (ours, measured[0]), (theirs, measured[1]) = (until(entry, target) for entry in both)
        if theirs / ours > measured[1] / measured[0]:
            return (f"`{first.method}` needs {ours:.3g} epochs and `{named.method}` {theirs:.3g}, "
                    "which it does not predict")
    return of_iterations([entry.method for entry in both],
                         [predicted(entry, answers) for entry in both], measured)
