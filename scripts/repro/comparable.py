"""Whose seconds may be compared: methods that ran on one machine, at one steady speed."""

import collections
import dataclasses
import itertools
import statistics

APART = 0.2  # of the median of forward and backward; beyond it a machine was busy, or idle


@dataclasses.dataclass(frozen=True)
class Speed:
    """Where a run was timed, and its seconds of forward and backward a step."""
    machine: str
    compute: float
    slowest: float = 1  # those of its slowest epoch over those of its fastest


def machine_text(machine):
    return f"{machine['cpu']}, {machine['cores']} cores, GPU: {machine['gpu']}"


def compute_of(lines, steps):
    """Seconds of forward and backward a step, from the lines of a table of so many steps."""
    return sum(line["sec_forward"] + line["sec_backward"] for line in lines) / max(1, steps)


def speed(notes, lines, steps, steps_of_lines=()):
    """The Speed of a run, from the lines of a table of so many steps, and of epochs if it is given
    how many each has."""
    each = [compute_of([line], own) for line, own in zip(lines, steps_of_lines)]
    slowest = max(each) / min(each) if each and min(each) else 1
    return Speed(machine_text(notes["machine"]), compute_of(lines, steps), slowest)


def left_out_rows(results):
    """{row: why its seconds are not compared} of the finished trainings of a claim; the rows of
    each network by themselves."""
    groups, reasons = collections.defaultdict(dict), {}
    for name, each in results.items():
        if speeds := [one.speed for one in each if one.row.seeded and one.finished]:
            groups[each[0].row.resolved.get("model")][name] = speeds
    for group in groups.values():
        found = {name: f"its slowest epoch computed for {slowest:.3g} times its fastest"
                 for name, speeds in group.items()
                 if (slowest := max(one.slowest for one in speeds)) > 1 + APART}
        found |= left_out({name: group[name] for name in group if name not in found})
        if len(group) - len(found) == 1 < len(group):
            found |= {name: "no other row compares" for name in group if name not in found}
        reasons |= found
    return reasons


def usual_compute(speeds):
    """{machine: median seconds of forward and backward a step of the runs on it}"""
    found = collections.defaultdict(list)
    for one in speeds:
        found[one.machine].append(one.compute)
    return {machine: statistics.median(each) for machine, each in found.items()}


def left_out(speeds_of, usual=None, apart=APART):
    """{method: why its seconds are not compared with those of the others}, from {method: speeds of
    its runs}. `usual` are seconds of forward and backward by machine (default: usual_compute); more
    than the part `apart` beyond them, or as far below, is another speed."""
    reasons, groups = {}, collections.defaultdict(list)
    for method, speeds in speeds_of.items():
        machines = {one.machine for one in speeds}
        if len(machines) > 1:
            reasons[method] = "its runs are from several machines"
        else:
            groups[machines.pop()].append(method)
    if not groups:
        return reasons
    most = max(groups, key=lambda machine: len(groups[machine]))
    reasons |= {method: f"ran on {machine}; most ran on {most}"
                for machine, methods in groups.items() if machine != most for method in methods}
    compared = {method: speeds_of[method] for method in groups[most]}
    middle = (usual or usual_compute(itertools.chain(*compared.values())))[most]
    for method, speeds in compared.items():
        worst = max((one.compute for one in speeds), key=lambda one: abs(one - middle))
        if abs(worst - middle) > apart * middle:
            reasons[method] = (f"forward and backward took {worst:.3g} s a step; the median is "
                               f"{middle:.3g} s")
    return reasons
