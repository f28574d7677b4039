"""The rows of a race: trainings on each link, and short runs that measure seconds an iteration.

A training is MODEL/LINK/METHOD-sSEED, a short run MODEL/LINK/iterations/METHOD/DENSITY-sSEED.
"""

import dataclasses
import math
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


class ShortRun(runs.Result):
    """A short run. That of the last density tells whether the method has densities at all."""

    def __init__(self, row, seed, settings, first):
        super().__init__(row, seed, settings)
        self.first = first

    @property
    def finished(self):
        if super().finished:
            return True
        if self.first is None or not self.first.finished:
            return False
        used, asked = (steps_of(self.first.folder)[0]["density"],
                       self.first.row.resolved["density"])
        return not math.isclose(used, asked, rel_tol=1e-6)


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
    """The rows of a method at each density of its epochs, the last density first."""
    whole = training(method, link, given)
    told = estimate.plan_of(whole, given)
    early = told["density_warmup"][:whole.resolved.get("epochs", 10)]
    return [row(method, link, given,
                (links.folder(link), "iterations", method.name, f"{density:g}"),
                {"density": density, "density_warmup": [], "max_steps": SHORT_STEPS}.items())
            for density in dict.fromkeys([told["density"], *early])]


def plan(methods, given):
    """(stages by name, results by stage and row) of what `run` is to run."""
    stages, results = {}, {}

    def add(stage, results_of):
        stages[stage.name] = stage
        results[stage.name] = {name: results_of(one) for name, one in stage.rows.items()}

    by_iterations = given.clock == "iterations"
    short = [link for link in given.link if link != links.NONE or given.no_training]
    for link in short if by_iterations else ():
        stage, firsts = Stage(f"seconds an iteration, {links.title(link)}", {}), {}
        for method in methods:
            if not on(method, link):
                continue
            first = None
            for one in short_rows(method, link, given):
                stage.rows[one.name] = one
                firsts[one.name] = ShortRun(one, given.seeds[0], given, first)
                first = first or firsts[one.name]
        add(stage, lambda one, firsts=firsts: [firsts[one.name]])
    if not given.no_training:
        for link in [links.NONE] if by_iterations else given.link:
            add(trainings(methods, link, given), lambda one: runs.results_of(one, given))
    return stages, results
