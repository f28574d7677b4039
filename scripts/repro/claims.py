"""Reads the claim files of configs/repro and expands them for a scale.

A claim has rows (one configuration of a program each), lines of its table, rules of its verdict and
a figure. configs/repro/README.md describes the format.
"""

import dataclasses
import itertools
import json

from runs import UserError
from runs.folder import read_json

from . import ROOT, SCALES, ReproError, form, nearest


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

    @property
    def key(self):
        return json.dumps([self.program, self.resolved], sort_keys=True)

    @property
    def seeded(self):
        return self.program == "train"


def filled(value, names):
    """A copy of a JSON value in which {name} is replaced in every text; {name} alone is a value."""
    if isinstance(value, str):
        if value[1:-1] in names and value == "{" + value[1:-1] + "}":
            return names[value[1:-1]]  # not its text
        for name, text in names.items():
            value = value.replace("{" + name + "}", str(text))
        return value
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    if isinstance(value, dict):
        return {filled(key, names): filled(item, names) for key, item in value.items()}
    return value


def expanded(item, lists):
    """The copies of an object with "each": [names], one per combination of their values."""
    names = item.get("each", [])
    plain = {key: value for key, value in item.items() if key != "each"}
    for values in itertools.product(*(lists[name] for name in names)):
        yield filled(plain, dict(zip(names, values)))


def merged(base, more):
    """base with the keys of more; `set` is merged key by key."""
    result = dict(base)
    for key, value in more.items():
        if key == "set":
            result["set"] = {**result.get("set", {}), **value}
        else:
            result[key] = value
    return result


def row_of(where, name, given, program="train", label=None, config="", home=()):
    """A row with the given options; `config` is a recipe, relative to configs/."""
    recipe = {}
    if config:
        try:
            recipe = read_json(ROOT / "configs" / config)
        except UserError as error:
            raise ReproError(f"{where}: {error}") from None
        given = {key: value for key, value in given.items() if recipe.get(key) != value}
    return Row(name, label or name, program, config, given, merged(recipe, given), home)


class Claim:
    """One claim file."""

    def __init__(self, path):
        self.path = path
        try:
            self.json = json.loads(path.read_text())
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ReproError(f"{path.name}: {error}") from None
        form.check_claim(path.name, self.json)
        self.id, self.paper = self.json["id"], self.json["paper"]
        if self.id != path.stem:
            raise ReproError(f"{path.name}: id is {self.id}; expected {path.stem}")
        self.published = self.json.get("published", {})

    def __getitem__(self, key):
        return self.json.get(key)


class Plan:
    """A claim at a scale: rows by name, lines, rules. `users` are claims that use its rows."""

    def __init__(self, claim, scale, claims, users=()):
        self.claim, self.scale, self.users = claim, scale, (*users, claim.id)
        self.tested = scale in claim["scales"]
        settings = claim["scales"].get(scale, {})
        self.note = settings.get("note", "")
        self.lists = {**(claim["each"] or {}), **settings.get("each", {})}
        self.rows, others = {}, set()  # others: rows that this scale lacks
        for key, item in claim["rows"].items() if self.tested else ():
            form.check(f"{claim.path.name}: {key}", "row", item)
            for one in expanded({**item, "name": key}, self._lists_of(key, item)):
                if scale not in item.get("scales", SCALES):
                    others.add(one["name"])
                    continue
                row = self._row(one, settings.get("options", {}), claims)
                self.rows[row.name] = row
        lines = [one for item in claim["lines"] or [] for one in self._expand("line", item)]
        self.lines = [line for line in lines if not others & named_rows(line)]
        self.rules = [one for item in claim["rules"] for one in self._expand("rule", item)]
        if not lines and claim["measures"]:
            self.lines = [self._line_of(row) for row in self.rows.values()]
        if self.tested:
            self._check_terms()

    def _lists_of(self, name, item):
        for key in item.get("each", []):
            if key not in self.lists:
                raise ReproError(f"{self.claim.path.name}: {name}: no list named {key}"
                                 f"{nearest(key, self.lists)}")
        return self.lists

    def _expand(self, kind, item):
        form.check(self.claim.path.name, kind, item)
        return list(expanded(item, self._lists_of(kind, item)))

    def _row(self, item, options, claims):
        where = f"{self.claim.path.name}: {item['name']}"
        if "use" in item:
            other, _, name = item["use"].partition("/")
            if other not in claims:
                raise ReproError(f"{where}: no claim {other}{nearest(other, claims)}")
            if other in self.users:
                raise ReproError(f"{where}: rows use each other: {', '.join((*self.users, other))}")
            rows = Plan(claims[other], self.scale, claims, self.users).rows
            if name not in rows:
                raise ReproError(f"{where}: {other} has no row {name}{nearest(name, rows)}")
            return dataclasses.replace(rows[name], name=item["name"],
                                       label=item.get("label", rows[name].label))
        program = item.get("program", "train")
        if program not in form.PROGRAMS:
            raise ReproError(f"{where}: unknown program {program}{nearest(program, form.PROGRAMS)}")
        # options of the scale come before those of the row
        given = merged(options.get(program, {}), item.get("options", {}))
        return row_of(where, item["name"], given, program=program, label=item.get("label"),
                      config=item.get("config", ""))

    def _line_of(self, row):
        source = self.claim["rows"].get(row.name, {})  # rows with "each" have no published value
        return {"label": row.label, "theirs": source.get("theirs", ""),
                "values": [{"value": {"row": row.name, "measure": measure}}
                           for measure in self.claim["measures"]]}

    def _check_terms(self):
        """Every rule and line that applies at this scale names existing rows."""
        for rule in self.rules:
            form.check_rule(self.claim.path.name, rule)
        for item in self.rules + self.lines:
            for term in terms(item):
                form.check_term(self.claim.path.name, term)
                if "row" in term and self.applies(item) and term["row"] not in self.rows:
                    raise ReproError(f"{self.claim.path.name}: no row {term['row']} at scale "
                                     f"{self.scale}{nearest(term['row'], self.rows)}")

    def applies(self, item):
        """Whether a rule (or a line, which always does) is for this scale."""
        return self.tested and self.scale in item.get("scales", SCALES)


def terms(item):
    """The terms of a rule or a line, published ones included."""
    found = [term for value in item.get("values", [item]) for key in ("value", "minus", "over")
             if isinstance(term := value.get(key), dict)]
    theirs = item.get("theirs")
    if isinstance(theirs, dict):
        found += terms(theirs) if "value" in theirs else [theirs]
    return found


def named_rows(item):
    return {term["row"] for term in terms(item) if "row" in term}


def load(folder):
    """All claims of a folder by name, in the order of their names."""
    claims = {path.stem: Claim(path)
              for path in sorted(folder.glob("*.json"), key=lambda path: path.stem)}
    if not claims:
        raise ReproError(f"no claim files in {folder}")
    return claims


def plans(claims, scale):
    """The plans of all claims at a scale. The first row with given options owns their results."""
    homes, result = {}, {}
    for name, claim in claims.items():
        plan = result[name] = Plan(claim, scale, claims)
        for row in plan.rows.values():
            if "use" not in claim["rows"].get(row.name, {}):
                homes.setdefault(row.key, (name, row.name))
    for plan in result.values():
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
    named, known = rows.split(","), {row for plan in plans.values() for row in plan.rows}
    for row in named:
        if row not in known:
            raise ReproError(f"unknown row {row}{nearest(row, known)}")
    return {name: {row: each for row, each in of_claim.items() if row in named}
            for name, of_claim in results.items()}
