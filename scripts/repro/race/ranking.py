"""The order of the entries of a link."""

import statistics

from ..comparable import left_out
from .methods import is_dense_exchange, is_plain_dense


# the compute of a run is not counted; beyond this part of the usual one, its other seconds are
# those of a busy machine, too
APART = 0.5


class Ranking:
    """The entries of a link, fastest first: by seconds to the target, then by final top-1.

    `left_out` says why the seconds of a method are not compared; such an entry has none here.
    """

    def __init__(self, heat, target):
        self.target, self.unfinished, self.compute = target, heat.unfinished, heat.compute
        self.left_out = left_out({entry.method: entry.speeds for entry in heat.entries},
                                 heat.compute, APART)
        self.entries = sorted(heat.entries, key=self.order)
        self.compared = [entry for entry in self.entries if entry.method not in self.left_out]
        self.dense = self.best(is_plain_dense)
        self.best_dense = self.best(is_dense_exchange)

    @property
    def first(self):
        """The fastest of at least two entries that are compared, or None."""
        if len(self.compared) < 2 or self.seconds(self.compared[0]) is None:
            return None
        return self.compared[0]

    @property
    def rivals(self):
        """{method: why nobody knows whether it is faster} of those that may reach the target."""
        found = {entry.method: "seconds left out" for entry in self.entries
                 if entry.method in self.left_out and entry.seconds(self.target) is not None}
        found |= {entry.method: "not trained" for entry in self.compared if not entry.trainings}
        return found | self.unfinished

    @property
    def winner(self):
        """The first one if it has no rivals, or None."""
        return None if self.rivals else self.first

    def seconds(self, entry):
        """Seconds to the target, or None."""
        return None if entry.method in self.left_out else entry.seconds(self.target)

    def per_iteration(self, entry):
        """Seconds of an iteration, or None."""
        return None if entry.method in self.left_out else entry.seconds_per_iteration

    def order(self, entry):
        seconds = self.seconds(entry)
        if seconds is not None:
            return (0, seconds, entry.method)
        if entry.trainings:
            return (1, -statistics.fmean(entry.top1), entry.method)
        return (2, entry.seconds_per_iteration, entry.method)

    def best(self, fits):
        """The fastest of these entries that reaches the target, or None."""
        return next((entry for entry in self.entries
                     if fits(entry) and self.seconds(entry) is not None), None)

    def ratio(self, reference, entry):
        """How many times as fast as the reference, or None."""
        seconds = self.seconds(entry)
        return None if None in (reference, seconds) else self.seconds(reference) / seconds
