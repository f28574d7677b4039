"""The sentences of a link: who wins, and whom `advise` names."""

import math
import shlex

from ..comparable import machine_text
from . import reasons


def listed(methods):
    return ", ".join(f"`{method}`" for method in methods)


def rivals_text(ranking):
    """Whom nobody can compare with the first one, by the reason."""
    by_reason = {}
    for method, why in ranking.rivals.items():
        by_reason.setdefault(why, []).append(method)
    return "; ".join(f"{listed(methods)} ({why})" for why, methods in by_reason.items())


def winner_text(ranking):
    target = f"{100 * ranking.target:g} %"
    if len(ranking.compared) < 2:
        return ("No winner is named, as there are fewer than two methods whose seconds may be "
                "compared.")
    if first := ranking.first:
        trained = [entry for entry in ranking.compared if entry.trainings]
        text = f"`{first.method}` " + ("wins" if ranking.winner else
                                       f"is the fastest of {len(trained)} methods")
        text += f": {target} after {ranking.seconds(first):.1f} s"
        dense, best = ranking.dense, ranking.best_dense
        if best not in (None, first):
            text += (f", {ranking.ratio(best, first):.2f} times as fast as the best dense "
                     f"exchange, `{best.method}`")
        if dense not in (None, first, best):
            text += f", and {ranking.ratio(dense, first):.2f} times as fast as `{dense.method}`"
        near = [entry.method for entry in ranking.compared if entry is not first and
                (ranking.seconds(entry) or math.inf) <= (1 + reasons.NEAR) * ranking.seconds(first)]
        if near:
            text += f"; not more than {100 * reasons.NEAR:g} % behind: {listed(near)}"
        if not ranking.winner:
            text += f". No winner is named without its rivals: {rivals_text(ranking)}"
        return text + "."
    if ranking.compared[0].trainings:
        return f"No method reaches {target} with every seed."
    first = fastest_iteration(ranking)
    return (f"Nothing is trained; `{first.method}` has the fastest iteration: "
            f"{first.seconds_per_iteration:.4g} s.")


def fastest_iteration(ranking):
    return min(ranking.compared, key=lambda entry: entry.seconds_per_iteration)


def first_of(ranking):
    """The fastest method, or without trainings that with the fastest iteration; or None."""
    if len(ranking.compared) < 2 or ranking.compared[0].trainings:
        return ranking.first
    return fastest_iteration(ranking)


def place_of(named, ranking):
    """(what became of the method that `advise` names, whether a reason is due)."""
    first, target = first_of(ranking), f"{100 * ranking.target:g} %"
    if named is None:
        return ", which did not race", True
    if named is ranking.first:
        return (", the winner" if ranking.winner else ", the fastest of them"), False
    text = f" (`{named.method}`)"
    if named.method in ranking.left_out:
        return f"{text}, whose seconds are left out", True
    if first is None or named is first:
        return text, False
    if first is ranking.first:
        ours, theirs = ranking.seconds(first), ranking.seconds(named)
        if not named.trainings:
            return f"{text}, which is not trained", True
        if theirs is None:
            return f"{text}, which does not reach {target} with every seed", True
    else:
        ours, theirs = first.seconds_per_iteration, named.seconds_per_iteration
    return (f"{text}: {theirs:.4g} s, {100 * (theirs / ours - 1):.1f} % slower than "
            f"`{first.method}`", theirs > (1 + reasons.NEAR) * ours)


def advised_text(ranking, advised):
    if advised is None:
        return "`advise` was not asked."
    if not advised.flags:
        return "`advise` recommends nothing."
    text, due = place_of(advised.named, ranking)
    text = f"`advise` names `{shlex.join(advised.flags)}`{text}."
    if due and (first := first_of(ranking)):
        reason = reasons.why(first, advised.named, advised.answers, ranking.target)
        text += f" Why: {reason}." * bool(reason)
    machine = machine_text(advised.answer.machine)
    if all(one.machine != machine for entry in ranking.compared for one in entry.speeds):
        text += f" It measured another machine than the runs: {machine}."
    if any(answer.busy for answer in advised.answers):
        text += " It measured a busy machine, so its answer is not kept."
    return text


def of_link(ranking, advised):
    """advised: an advice.Advised, or None."""
    if not ranking.entries:
        return "No run is finished."
    return f"{winner_text(ranking)} {advised_text(ranking, advised)}"
