"""The sentences of a link: who wins, and whom `advise` names."""

import shlex

from . import advice


def winner_text(ranking):
    target = f"{100 * ranking.target:g} %"
    if len(ranking.compared) < 2:
        return ("No winner is named, as there are fewer than two methods whose seconds may be "
                "compared.")
    if first := ranking.winner:
        text = f"`{first.method}` wins: {target} after {ranking.seconds(first):.1f} s"
        ratios = [f"{ranking.ratio(best, first):.2f} times as fast as the best {kind}, "
                  f"`{best.method}`"
                  for kind, best in (("dense row", ranking.dense),
                                     ("dense variant", ranking.variant))
                  if best not in (None, first)]
        return text + "".join(f", {ratio}" for ratio in ratios[:1]) + \
            "".join(f", and {ratio}" for ratio in ratios[1:]) + "."
    if ranking.compared[0].trainings:
        return f"No method reaches {target} with every seed."
    first = fastest_iteration(ranking)
    return (f"Nothing is trained; `{first.method}` has the fastest iteration: "
            f"{first.seconds_per_iteration:.4g} s.")


def fastest_iteration(ranking):
    return min(ranking.compared, key=lambda entry: entry.seconds_per_iteration)


def advised_text(ranking, advised):
    """advised: flags, None or ''."""
    if not advised:
        return "`advise` was not asked." if advised == "" else "`advise` recommends nothing."
    text = f"`advise` names `{shlex.join(advised)}`"
    named = advice.method_of(advised, ranking.entries)
    if named is None:
        return text + ", which did not race."
    if named is ranking.winner:
        return text + ", the winner."
    text += f" (`{named.method}`)"
    if named.method in ranking.left_out:
        return text + ", whose seconds are left out."
    if not (ranking.winner or named.trainings):
        first = fastest_iteration(ranking)
        theirs, ours = named.seconds_per_iteration, first.seconds_per_iteration
        return text + f": {theirs:.4g} s, {100 * (theirs / ours - 1):.1f} % slower."
    theirs = ranking.seconds(named)
    if theirs is None:
        return text + f", which does not reach {100 * ranking.target:g} % with every seed."
    if not ranking.winner:
        return text + "."
    slower = theirs / ranking.seconds(ranking.winner) - 1
    return text + f": {theirs:.4g} s, {100 * slower:.1f} % slower than the winner."


def of_link(ranking, advised):
    if not ranking.entries:
        return "No run is finished."
    return f"{winner_text(ranking)} {advised_text(ranking, advised)}"
