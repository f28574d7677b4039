"""The methods of a race: what `train --list` shows, and the variants of a JSON file."""

import dataclasses
import re
import subprocess

from runs.folder import read_json

from .. import ReproError, nearest
from . import links


@dataclasses.dataclass(frozen=True)
class Known:
    """What a `train` program knows: flags, settings, and names by kind."""
    flags: set
    settings: set
    names: dict  # "sparsifier" -> names in the order of --list

    def missing(self, options):
        """What the program lacks for these options as a text; empty if it has all."""
        for key, value in options.items():
            flag = key.replace("_", "-")
            if flag not in self.flags:
                return f"train has no --{flag}"
            if key == "set":
                unknown = [name for name in value if name not in self.settings]
                if unknown:
                    return f"train has no setting {unknown[0]}"
            if key in self.names and value not in self.names[key]:
                return f"train has no {key} {value}"
        return ""


@dataclasses.dataclass(frozen=True)
class Method:
    """A competitor: its options beyond the recipe, and the links it runs on (none named: all)."""
    name: str
    options: dict
    links: tuple = ()


def output_of(train, option):
    try:
        done = subprocess.run([train, option], capture_output=True, text=True, check=False)
    except OSError as error:
        raise ReproError(f"{train}: {error.strerror}") from None
    if done.returncode != 0:
        raise ReproError(f"{train} {option}: exit code {done.returncode}")
    return done.stdout


def known_by(train):
    """Reads `train --help` and `train --list`."""
    flags = set(re.findall(r"^\s+(?:-\w,)?--([a-z][a-z0-9-]*)", output_of(train, "--help"), re.M))
    names, settings, kind = {}, set(), ""
    for line in output_of(train, "--list").splitlines():
        if setting := re.match(r"\s+--set ([\w.]+)=", line):
            settings.add(setting.group(1))
        elif entry := re.match(r"  (\S+)", line):
            names.setdefault(kind, []).append(entry.group(1))
        else:
            kind = line.strip()
    for kind in ("sparsifier", "selector"):
        if kind not in names:
            raise ReproError(f"{train} --list names no {kind}")
    return Known(flags, settings, names)


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
    plain = {name: {"sparsifier": name} for name in known.names["sparsifier"]}
    for name in known.names["selector"]:
        plain.setdefault(name, {"sparsifier": "topk", "selector": name})
    found = {name: Method(name, options) for name, options in plain.items()}
    left_out = {}
    for name, given in variants(path).items():
        options = {**plain.get(name, {"sparsifier": name}),
                   **{key: value for key, value in given.items() if key != "links"}}
        why = known.missing(options)
        if why:
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
