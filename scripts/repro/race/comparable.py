"""Whose seconds may be compared: methods that ran on one machine, at one speed of computation."""

import collections
import dataclasses
import statistics

from .. import tables

APART = 0.2  # of the median of forward and backward; beyond it a machine was busy, or idle


@dataclasses.dataclass(frozen=True)
class Speed:
    """Where a run was timed, and its seconds of forward and backward a step."""
    machine: str
    compute: float


def compute_of(lines, steps):
    """Seconds of forward and backward a step, from the lines of a table of so many steps."""
    return sum(line["sec_forward"] + line["sec_backward"] for line in lines) / max(1, steps)


def speed(notes, lines, steps):
    return Speed(tables.machine_text(notes["machine"]), compute_of(lines, steps))


def left_out(entries):
    """{method: why its seconds are not compared with those of the others}."""
    reasons, groups = {}, collections.defaultdict(list)
    for entry in entries:
        machines = {one.machine for one in entry.speeds}
        if len(machines) > 1:
            reasons[entry.method] = "its runs are from several machines"
        else:
            groups[machines.pop()].append(entry)
    if not groups:
        return reasons
    most = max(groups, key=lambda machine: len(groups[machine]))
    for machine, others in groups.items():
        if machine != most:
            reasons |= {entry.method: f"ran on {machine}; most ran on {most}" for entry in others}
    usual = statistics.median(one.compute for entry in groups[most] for one in entry.speeds)
    for entry in groups[most]:
        worst = max((one.compute for one in entry.speeds), key=lambda one: abs(one - usual))
        if abs(worst - usual) > APART * usual:
            reasons[entry.method] = (f"forward and backward took {worst:.3g} s a step; the median "
                                     f"is {usual:.3g} s")
    return reasons
