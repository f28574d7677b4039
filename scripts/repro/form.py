"""The form of a claim file: which keys its objects have, and what is behind them."""

from . import SCALES, ReproError, nearest

PROGRAMS = ("train", "bench comm", "bench select", "advise", "analyze theory")
FIGURES = ("curves", "histograms", "ratios", "panels")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def names(value):
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def settings(value):
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def options(value):
    return isinstance(value, dict) and settings(value.get("set", {}))


def objects(of):
    return lambda value: isinstance(value, dict) and all(map(of, value.values()))


# what a value must be, in words
KINDS = {
    "a text": lambda value: isinstance(value, str),
    "a number": is_number,
    "true or false": lambda value: isinstance(value, bool),
    "an object": lambda value: isinstance(value, dict),
    "a list": lambda value: isinstance(value, list),
    "a list of names": names,
    "a list, not empty": lambda value: isinstance(value, list) and value,
    "an object of lists": objects(lambda one: isinstance(one, list)),
    "options, with set an object of texts": options,
    "options by program": objects(options),
    "an object or a number": lambda value: is_number(value) or isinstance(value, dict),
    "a text, a number or an object": lambda value: is_number(value)
                                     or isinstance(value, (str, dict)),
}
# the keys of each kind of object; `!` marks a required one
TERMS = {"value!": "an object or a number", "minus": "an object or a number",
         "over": "an object or a number", "theirs": "a text, a number or an object",
         "each": "a list of names"}
KEYS = {
    "claim": {"id!": "a text", "paper!": "a text", "title!": "a text", "claim!": "a text",
              "source!": "a text", "scales!": "an object", "rows!": "an object", "note": "a text",
              "each": "an object of lists", "measures": "a list of names", "lines": "a list",
              "rules!": "a list, not empty", "published": "an object", "figure!": "an object"},
    "row": {"program": "a text", "config": "a text",
            "options": "options, with set an object of texts", "label": "a text", "use": "a text",
            "each": "a list of names", "theirs": "a text, a number or an object",
            "scales": "a list of names"},
    "scale": {"options": "options by program", "each": "an object of lists", "note": "a text"},
    "line": {"label!": "a text", **TERMS},
    "rule": {"text!": "a text", **TERMS, "least": "a number", "most": "a number", "why!": "a text",
             "scales": "a list of names"},
    "term": {"row": "a text", "where": "an object", "measure": "a text", "published": "a list"},
    "figure": {"kind!": "a text", "panels": "a list", "columns": "a number"},
    "panel": {"title!": "a text", "x!": "a text", "y!": "a text", "xlabel!": "a text",
              "ylabel!": "a text", "series!": "a list, not empty", "log": "a text",
              "file": "a text", "relative": "true or false"},
    "series": {"rows": "a text", "where": "an object", "label": "a text", "by": "a text",
               "y": "a text", "style": "a text", "colour": "a number", "published": "a list"},
}


def check(where, kind, value):
    """Rejects what is no object of this kind: unknown or missing keys, or wrong values."""
    if not isinstance(value, dict):
        raise ReproError(f"{where}: a {kind} must be an object, not {value!r}")
    known = {key.rstrip("!"): what for key, what in KEYS[kind].items()}
    for key in value:
        if key not in known:
            raise ReproError(f"{where}: unknown key {key} of a {kind}{nearest(key, known)}")
    for key in KEYS[kind]:
        if key.endswith("!") and key[:-1] not in value:
            raise ReproError(f"{where}: a {kind} without {key[:-1]}")
    for key, one in value.items():
        if not KINDS[known[key]](one):
            raise ReproError(f"{where}: {key} is {one!r}; expected {known[key]}")
    for scale in value["scales"] if kind in ("claim", "row", "rule") and "scales" in value else ():
        if scale not in SCALES:
            raise ReproError(f"{where}: unknown scale {scale}{nearest(scale, SCALES)}")


def check_claim(where, claim):
    """Rejects a file whose claim, scales or figure are not of their form."""
    check(where, "claim", claim)
    for scale, value in claim["scales"].items():
        check(f"{where}: {scale}", "scale", value)
    figure = claim["figure"]
    check(where, "figure", figure)
    if figure["kind"] not in FIGURES:
        raise ReproError(f"{where}: unknown kind of figure {figure['kind']}"
                         f"{nearest(figure['kind'], FIGURES)}")
    if figure["kind"] == "panels" and not figure.get("panels"):
        raise ReproError(f"{where}: a figure of panels without panels")
    for panel in figure.get("panels", []):
        check(where, "panel", panel)
        for series in panel["series"]:
            check(where, "series", series)


def check_term(where, term):
    """Rejects a term that is neither a measure of a row nor a published value."""
    check(where, "term", term)
    if "published" not in term and not {"row", "measure"} <= term.keys():
        raise ReproError(f"{where}: {term}: expected row and measure, or published")


def check_rule(where, rule):
    """Rejects a rule without a band, or with one that nothing is in."""
    if "least" not in rule and "most" not in rule:
        raise ReproError(f"{where}: {rule['text']}: neither least nor most")
    if {"least", "most"} <= rule.keys() and rule["least"] > rule["most"]:
        raise ReproError(f"{where}: {rule['text']}: least is {rule['least']}, above most, "
                         f"{rule['most']}")
