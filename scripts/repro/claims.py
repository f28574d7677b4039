"""The claims of a folder, and what they run at a scale.

A claim is a function with the decorator `claim` in a Python file. It fills a Plan with rows (one
configuration of a program each), lines of the table, rules of the verdict and panels of the figure.
configs/repro/README.md shows how one is written.
"""

import dataclasses
import json
import runpy
import traceback
from pathlib import Path

from runs import UserError
from runs.folder import read_json

from . import ROOT, SCALES, ReproError, nearest, values

LONG = ("short", "paper")  # scales whose accuracies are judged
PROGRAMS = ("train", "bench comm", "bench select", "bench torch", "advise", "analyze theory")
FIGURES = ("panels", "histograms", "ratios")
# columns of the table of a training
TRAINING = ("val_top1", "val_loss", "train_loss", "mib_per_step", "train_seconds")
# generated images instead of CIFAR-10, and LeNet-5 on these, for the scale quick
SHAPES = {"dataset": "shapes", "lr_milestones": [], "warmup_epochs": 1,
          "density_warmup": [0.015625], "lr_schedule": "constant"}
LENET = {**SHAPES, "model": "lenet", "lr": 0.01}
UNJUDGED = ("Generated images instead of CIFAR-10 and a few epochs: the accuracies say nothing "
            "about the claim.")
LABELS = {"train_loss": ("Training loss", "loss"), "val_top1": ("Validation top-1", "top-1"),
          "epoch": ("", "epoch"), "+bytes_sent": (" by bytes", "bytes sent, all ranks"),
          "+seconds": (" by time", "seconds of training")}


@dataclasses.dataclass(frozen=True)
class Row:
    """One configuration of a program; `home` is the claim and row that own its results."""
    name: str
    label: str
    program: str
    config: str
    options: dict     # as given: those that differ from the recipe
    resolved: dict    # the recipe with these options
    home: tuple = ()
    theirs: object = ""  # a published text or number

    @property
    def key(self):
        return json.dumps([self.program, self.resolved], sort_keys=True)

    @property
    def seeded(self):
        return self.program == "train"

    def value(self, column, **where):
        """The Value of a column; `where` are cells of its line in the program's table."""
        return values.measured(self.name, column, where)


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of the table: a value for each of its columns."""
    label: str
    values: tuple
    theirs: object


@dataclasses.dataclass(frozen=True)
class Rule:
    """A band that a value must be in; `why` says where the band comes from."""
    text: str
    value: values.Value
    least: float | None
    most: float | None
    theirs: object
    why: str
    scales: tuple


@dataclasses.dataclass(frozen=True)
class Curve:
    """A curve of a panel: lines of the records of some rows, those with the cells in `where`; or
    published points {x: y}. `y` replaces the column of the panel."""
    label: str
    rows: tuple = ()
    where: dict = dataclasses.field(default_factory=dict)
    points: dict | None = None
    y: str = ""
    style: str = ""
    colour: int | None = None


@dataclasses.dataclass(frozen=True)
class Panel:
    """A panel of the figure. `x` and `y` are columns, `+seconds` is a running sum; `log` names the
    logarithmic axes; `file` is a table in the run folder instead of the records; relative: to the
    first point of a curve; stacked: a bar at each text of x, of the shares of the curves."""
    title: str
    x: str
    y: str
    xlabel: str
    ylabel: str
    curves: tuple
    log: str = ""
    file: str = ""
    relative: bool = False
    stacked: bool = False


class Scale:
    """A note on a scale, and options of all rows at this scale."""

    def __init__(self, note="", **options):
        self.note, self.options = note, options


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim; `fill` is its function, `note` the docstring of that."""
    id: str
    paper: str
    title: str
    text: str
    source: str
    scales: dict
    measures: tuple  # columns of a table with a line for each row
    theirs: str      # where the published numbers were read
    figure: str
    fill: object

    @property
    def note(self):
        return " ".join((self.fill.__doc__ or "").split())


def claim(name, paper, title, text, source, scales, *, measures=(), theirs="", figure="panels"):
    """Makes a claim of a function that fills a Plan."""
    known("scale", scales, SCALES)
    known("figure", [figure], FIGURES)
    return lambda fill: Claim(name, paper, title, text, source, scales, tuple(measures), theirs,
                              figure, fill)


def known(kind, names, every):
    for name in names:
        if name not in every:
            raise ReproError(f"unknown {kind} {name}{nearest(name, every)}")


def merged(base, more):
    """base with the keys of more; `set` is merged key by key."""
    result = base | more
    if "set" in base and "set" in more:
        result["set"] = base["set"] | more["set"]
    return result


def row_of(where, name, given, program="train", label=None, config="", home=(), theirs=""):
    """A row with the given options; `config` is a recipe, relative to configs/."""
    recipe = {}
    if config:
        try:
            recipe = read_json(ROOT / "configs" / config)
        except UserError as error:
            raise ReproError(f"{where}: {error}") from None
        given = {key: value for key, value in given.items() if recipe.get(key) != value}
    return Row(name, label or name, program, config, given, merged(recipe, given), home, theirs)


class Plan:
    """A claim at a scale; without rows and lines where it is not tested."""

    def __init__(self, claim, scale):
        self.claim, self.scale = claim, scale
        self.tested = scale in claim.scales
        at_scale = claim.scales.get(scale, Scale())
        self.note, self.options = at_scale.note, at_scale.options
        self.rows, self.lines, self.rules, self.panels, self.columns = {}, [], [], [], 3
        claim.fill(self)
        for row in self.rows.values() if claim.measures else ():
            self.lines.append(Line(row.label, tuple(map(row.value, claim.measures)), row.theirs))
        self.lines = [line for line in self.lines
                      if all(value.rows <= self.rows.keys() for value in line.values)]
        if not self.panels:
            self.curves("epoch", "+bytes_sent", "+seconds")
        if not self.rules:
            raise ReproError(f"{claim.id} has no rule")
        for row in {row for rule in self.rules if self.applies(rule) for row in rule.value.rows}:
            if row not in self.rows:
                raise ReproError(f"no row {row} at scale {scale}{nearest(row, self.rows)}")

    def row(self, name, program="train", *, config="", label=None, theirs="", scales=SCALES,
            **options):
        """Adds a row at these scales. Options have the keys of the program's flags, and replace
        those of the scale; both replace those of the recipe."""
        known("program", [program], PROGRAMS)
        known("scale", scales, SCALES)
        row = row_of(f"{self.claim.id}: {name}", name, merged(self.options, options), program,
                     label, config, theirs=theirs)
        if self.tested and self.scale in scales:
            self.rows[name] = row
        return row

    def line(self, label, value, theirs=""):
        """Adds a line to the table, if this scale has its rows."""
        self.lines.append(Line(label, (value,), theirs))

    def rule(self, text, value, least=None, most=None, *, why, theirs="", scales=SCALES):
        """Adds a rule for these scales."""
        known("scale", scales, SCALES)
        if least is None and most is None:
            raise ReproError(f"{text}: neither least nor most")
        if None not in (least, most) and least > most:
            raise ReproError(f"{text}: least is {least}, above most, {most}")
        self.rules.append(Rule(text, value, least, most, theirs, why, scales))

    def panel(self, *given, **more):
        """Adds a Panel."""
        self.panels.append(Panel(*given, **more))

    def curves(self, *columns):
        """Adds panels of loss and top-1 over these columns of metrics.csv, a curve for each row."""
        self.columns = len(columns)
        curves = tuple(Curve(row.label, (row,)) for row in self.rows.values())
        for y in ("train_loss", "val_top1"):
            for x in columns:
                self.panel(LABELS[y][0] + LABELS[x][0], x, y, LABELS[x][1], LABELS[y][1], curves,
                           file="metrics.csv")

    def applies(self, rule):
        """Whether a rule is for this scale."""
        return self.tested and self.scale in rule.scales


def guarded(path, call, *given):
    """call(*given), which is code of a claim file; an error in it is one line."""
    try:
        return call(*given)
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
                 if frame.filename == path]
        where = Path(path).name + (f", line {lines[-1]}" if lines else "")
        kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
        raise ReproError(f"{where}: {kind}{error}") from None


def load(folder):
    """All claims of a folder by name, in the order of their names."""
    found = {}
    for path in sorted(folder.glob("*.py")):
        module = guarded(str(path), runpy.run_path, str(path))
        found |= {one.id: one for one in module.values() if isinstance(one, Claim)}
    if not found:
        raise ReproError(f"no claims in {folder}")
    return {name: found[name] for name in sorted(found)}


def plans(claims, scale):
    """The plans of all claims at a scale. The first row with given options owns their results."""
    homes, result = {}, {}
    for name, one in claims.items():
        plan = result[name] = guarded(one.fill.__code__.co_filename, Plan, one, scale)
        for row in plan.rows.values():
            homes.setdefault(row.key, (name, row.name))
        plan.rows = {key: dataclasses.replace(row, home=homes[row.key])
                     for key, row in plan.rows.items()}
    return result


def chosen(claims, what):
    """The names of the claims that `what` names: a claim, a paper or all."""
    papers = {claim.paper for claim in claims.values()}
    found = [name for name, claim in claims.items() if what in ("all", name, claim.paper)]
    if not found:
        raise ReproError(f"unknown claim {what}{nearest(what, [*claims, *sorted(papers), 'all'])}")
    return found


def with_rows(plans, results, rows):
    """The results of the named rows of some plans; `rows` is a list with commas, None for all."""
    if rows is None:
        return results
    named = rows.split(",")
    known("row", named, list(dict.fromkeys(row for plan in plans.values() for row in plan.rows)))
    return {name: {row: each for row, each in of_claim.items() if row in named}
            for name, of_claim in results.items()}
