"""The methods of a race: what a `train` program offers, and the variants of a JSON file; what the
options of a method, as typed, say."""

import dataclasses
import json
import re
import shlex

from runs import told_by
from runs.folder import read_json
from runs.settings import DENSE

from .. import ReproError, nearest
from . import links

NAMES = ("model", "sparsifier", "selector", "exchange")  # options whose values are known names
# options that change only the messages of a dense sum, not what is summed
MESSAGES = ("--allreduce", "--scope", "--overlap", "--bucket-mib")


@dataclasses.dataclass(frozen=True)
class Method:
    """A competitor: its options beyond the recipe, and the links it runs on (none named: all)."""
    name: str
    options: dict
    links: tuple = ()


def known_by(train):
    """{flag of a `train` program: the names that it takes}; those of `set` are settings."""
    return {one["name"]: [word.partition("=")[0] for word in one["suggestions"]]
            for one in json.loads(told_by(train, "--describe"))["options"]}


def missing(known, options):
    """What a program lacks for these options as a text; empty if it has all."""
    for key, value in options.items():
        flag = key.replace("_", "-")
        if flag not in known:
            return f"train has no --{flag}"
        names = value if key == "set" else [value] if key in NAMES else []
        for name in names:
            if name not in known[flag]:
                return f"train has no {'setting' if key == 'set' else key} {name}"
    return ""


def variants(path):
    """The objects of a JSON file: name -> options, with the keys of recipes, and `links`."""
    read = read_json(path)
    for name, options in read.items():
        if not re.fullmatch(r"[\w.+-]+", name):
            raise ReproError(f"{path}: {name!r} is no name; expected letters, digits and .+-_")
        if not isinstance(options, dict) or not isinstance(options.get("set", {}), dict):
            raise ReproError(f"{path}: {name}: options and their `set` must be objects")
        if not isinstance(options.get("links", []), list):
            raise ReproError(f"{path}: {name}: links must be a list such as [\"none\"]")
        for link in options.get("links", []):
            links.parse(str(link))
    return read


def all_of(known, path):
    """({name: Method}, {name: why it is left out}) of a program and a file of variants."""
    plain = {name: {"sparsifier": name} for name in known["sparsifier"]}
    for name in known["selector"]:
        plain.setdefault(name, {"sparsifier": "topk", "selector": name})
    found = {name: Method(name, options) for name, options in plain.items()}
    left_out = {}
    for name, given in variants(path).items():
        options = {**plain.get(name, {"sparsifier": name}),
                   **{key: value for key, value in given.items() if key != "links"}}
        if why := missing(known, options):
            found.pop(name, None)
            left_out[name] = why
        else:
            found[name] = Method(name, options, tuple(given.get("links", ())))
    return found, left_out


def chosen(text, found, left_out):
    """The methods that --methods names; all if it names none."""
    names = list(dict.fromkeys(text.split(","))) if text else list(found)
    for name in names:
        if name in left_out:
            raise ReproError(f"--methods: {name}: {left_out[name]}")
        if name not in found:
            raise ReproError(f"unknown method {name}{nearest(name, found)}")
    return [found[name] for name in names]


def flags_in(words):
    """{(flag, value)} of a list of words; a switch has the value ''."""
    found = set()
    for i, word in enumerate(words):
        if word.startswith("--"):
            value = words[i + 1] if i + 1 < len(words) else ""
            found.add((word, "" if value.startswith("--") else value))
    return found


def flags_of(entry):
    return flags_in(shlex.split(entry.label))


def sparsifier_of(entry):
    return shlex.split(entry.label)[1]


def options_of(entry):
    """The options beyond --sparsifier NAME, as typed."""
    return shlex.join(shlex.split(entry.label)[2:])


def of_messages(flag):
    """Whether a flag with its value changes only the messages of a dense sum."""
    name, value = flag
    return name in MESSAGES or (name == "--set" and value.startswith("allreduce."))


def is_dense(entry):
    return sparsifier_of(entry) in DENSE


def is_plain_dense(entry):
    return is_dense(entry) and not options_of(entry)


def is_dense_exchange(entry):
    """Dense without options, or with options that change only its messages."""
    return is_dense(entry) and all(map(of_messages, flags_in(shlex.split(options_of(entry)))))
