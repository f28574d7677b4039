"""The rows of a race: trainings on each link, and short runs that measure seconds an iteration.

A training is MODEL/LINK/METHOD-sSEED, a short run MODEL/LINK/iterations/METHOD/DENSITY-sSEED.
"""

import dataclasses
import shlex

from .. import ReproError, estimate, programs, runs
from ..claims import row_of
from . import links

SHORT_STEPS = 64
LEFT_OUT = 16  # first steps of a short run; they and the other 48 are whole rounds of local steps


@dataclasses.dataclass
class Stage:
    """Rows that run one after the other, by name."""
    name: str
    rows: dict


def steps_of(folder):
    """The lines of steps.csv."""
    lines = programs.read_csv(folder / "steps.csv")
    if not lines:
        raise ReproError(f"{folder / 'steps.csv'} holds no step")
    return lines


def common(given):
    """The options of all rows that differ from the recipe."""
    options = {"workers": given.ranks}
    if given.model:
        options["model"] = given.model
    if given.epochs is not None:
        options["epochs"] = given.epochs
    return options


def text_of(options):
    """Options of a method as typed, the sparsifier first."""
    rest = {key: value for key, value in options.items() if key != "sparsifier"}
    return shlex.join(programs.flags({"sparsifier": options["sparsifier"], **rest}))


def row(method, link, given, home, more=()):
    options = {**common(given), **method.options, **dict(more)}
    if link != links.NONE:
        options["link"] = link
    made = row_of(method.name, "/".join(home), options, home=home,
                  label=text_of(method.options), config=str(given.config))
    for key, kind, expected in (("epochs", int, "a number"), ("density", (int, float), "a number"),
                                ("density_warmup", (list, str), "a list, auto or none"),
                                ("set", dict, "an object")):
        if key in made.resolved and not isinstance(made.resolved[key], kind):
            raise ReproError(f"{method.name}: {key} is {made.resolved[key]!r}; expected {expected}")
    return made


def on(method, link):
    """Whether a method runs on a link."""
    return not method.links or link in method.links


def training(method, link, given):
    # kept runs that validated with the average, the default of train, have no such option
    statistics = {} if given.bn_stats == "average" else {"bn_stats": given.bn_stats}
    return row(method, link, given, (links.folder(link), method.name), statistics.items())


def trainings(methods, link, given):
    rows = [training(method, link, given) for method in methods if on(method, link)]
    return Stage(link, {one.name: one for one in rows})


def short_rows(method, link, given):
    """The rows of a method at each density of its epochs, the last density first; at one density if
    it selects nothing."""
    whole = training(method, link, given)
    told = estimate.plan_of(whole, given)
    early = told["density_warmup"][:told["epochs"]] if told["selector"] else []
    return [row(method, link, given,
                (links.folder(link), "iterations", method.name, f"{density:g}"),
                {"density": density, "density_warmup": [], "max_steps": SHORT_STEPS}.items())
            for density in dict.fromkeys([told["density"], *early])]


def plan(methods, given):
    """(stages by name, results by stage and row) of what `run` is to run."""
    stages, by_iterations = [], given.clock == "iterations"
    short = [link for link in given.link if link != links.NONE or given.no_training]
    for link in short if by_iterations else ():
        rows = [one for method in methods if on(method, link)
                for one in short_rows(method, link, given)]
        stages.append((Stage(f"seconds an iteration, {links.title(link)}",
                             {one.name: one for one in rows}), given.seeds[:1]))
    if not given.no_training:
        stages += [(trainings(methods, link, given), given.seeds)
                   for link in ([links.NONE] if by_iterations else given.link)]
    results = {stage.name: {name: [runs.Result(one, seed, given) for seed in seeds]
                            for name, one in stage.rows.items()} for stage, seeds in stages}
    return {stage.name: stage for stage, _ in stages}, results
