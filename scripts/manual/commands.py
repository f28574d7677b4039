"""The commands of scripts/thinwire with their options.

Programs describe their options themselves (--describe); those of scripts are read from argparse.
"""

import argparse
import dataclasses
import json
import re
import runpy
import subprocess
import sys
import types
from pathlib import Path

from runs.options import Parser

SCRIPTS = Path(__file__).resolve().parents[1]


@dataclasses.dataclass
class Option:
    name: str  # without dashes
    help: str
    group: str = "Options"
    letter: str = ""
    value: str = ""  # what the value is; empty: the flag takes none
    default: str = ""
    words: tuple = ()  # values to offer
    required: bool = False

    @property
    def flags(self):
        return [f"-{self.letter}"] * bool(self.letter) + [f"--{self.name}"]

    @property
    def takes_file(self):
        return self.value == "FILE"


@dataclasses.dataclass
class Command:
    name: str
    help: str
    options: list = dataclasses.field(default_factory=list)
    subcommands: list = dataclasses.field(default_factory=list)
    arguments: str = ""  # such as RUN...
    words: tuple = ()  # for the first argument
    text: str = ""  # more about it

    @property
    def groups(self):
        """[(group, options)] in the order of the first option of each."""
        names = dict.fromkeys(option.group for option in self.options)
        return [(name, [o for o in self.options if o.group == name]) for name in names]


HELP = Option("help", "print the options and exit", "General", letter="h")
VERSION = Option("version", "print the versions of this build and exit", "General")


def table():
    """[(command, file, phrase)] of scripts/thinwire."""
    rows = re.findall(r"^([a-z0-9-]+) +\| (\S+) +\| (.+)$", (SCRIPTS / "thinwire").read_text(),
                      flags=re.M)
    return [(name, file, phrase.replace("'\\''", "'")) for name, file, phrase in rows]


# options of the programs that take a text which is not a path: what manuals and completions call it
TEXTS = {"freeze": "NAME,...", "implementation": "NAME", "link": "RATE,LATENCY", "name": "NAME",
         "tensor": "NAME"}


def of_table(described):
    """The options that a program's option table describes."""
    options = []
    for one in described["options"]:
        words = tuple(one["choices"] or one["suggestions"])
        text = "LIST"
        if one["kind"].startswith("a text"):
            text = "WORD" if words else TEXTS.get(one["name"], "FILE")
        kind = {"an integer": "N", "a number": "X", "NAME.KEY=VALUE": "NAME.KEY=VALUE"}.get(
            one["kind"], text)
        options.append(Option(one["name"], one["help"], one["group"], one.get("letter", ""),
                              kind if one["takes_value"] else "", one["default"], words,
                              one["required"]))
    return options


def of_program(name, phrase, path):
    told = subprocess.run([path, "--describe"], check=True, capture_output=True, text=True).stdout
    described = json.loads(told)
    if "subcommands" in described:
        return Command(name, phrase, [HELP, VERSION], [
            Command(sub["name"], sub["description"], [*of_table(sub), HELP, VERSION])
            for sub in described["subcommands"]])
    arguments = " ".join(one["name"].upper() for one in described["options"] if one["positional"])
    return Command(name, phrase, [*of_table(described), HELP, VERSION], arguments=arguments)


def quote(text):
    """A word of a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


class Found(Exception):
    """Carries the parser of a script."""


def parser_of(path):
    """The parser that a script makes. Its imports of matplotlib find an empty module."""
    def stop(parser, *_args, **_kwargs):
        raise Found(parser)

    absent = [name for name in ("matplotlib", "matplotlib.pyplot", "matplotlib.ticker")
              if name not in sys.modules]
    for name in absent:
        sys.modules[name] = Anything(name)
    sys.path.insert(0, str(path.parent))
    before = [(kind, kind.parse_args) for kind in (argparse.ArgumentParser, Parser)]
    for kind, _ in before:
        kind.parse_args = stop
    try:
        script = runpy.run_path(str(path), run_name="described")
        (script.get("options") or script["main"])()
    except Found as found:
        return found.args[0]
    finally:
        for kind, parse_args in before:
            kind.parse_args = parse_args
        sys.path.pop(0)
        for name in absent:
            del sys.modules[name]
    raise ValueError(f"{path} has no parser")


class Anything(types.ModuleType):
    """A module in which every name exists."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def of_action(action):
    long = [flag[2:] for flag in action.option_strings if flag.startswith("--")]
    short = [flag[1:] for flag in action.option_strings if not flag.startswith("--")]
    if isinstance(action, argparse._HelpAction):  # noqa: SLF001
        return HELP
    words = tuple(map(str, action.choices or ()))
    value = ""
    if action.nargs != 0:
        metavar = action.metavar or long[0].upper().replace("-", "_")
        is_file = action.type is Path or metavar in ("FILE", "CSV")
        value = "WORD" if words else "FILE" if is_file else metavar
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    return Option(long[0], text, "Options", short[0] if short else "", value, words=words,
                  required=action.required)


def of_parser(name, phrase, parser):
    command = Command(name, phrase, text=(parser.description or "").partition("\n")[2].strip("\n"))
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            phrases = {one.dest: one.help or "" for one in action._choices_actions}  # noqa: SLF001
            command.subcommands = [of_parser(sub, phrases.get(sub, ""), one)
                                   for sub, one in action.choices.items()]
        elif action.option_strings:
            command.options.append(of_action(action))
        else:
            word = action.metavar or action.dest.upper()
            several = {"+": "...", "*": "..."}.get(action.nargs, "")
            command.words += tuple(action.choices or ())
            command.arguments += f"{' ' * bool(command.arguments)}{word}{several}"
    return command


def load(programs):
    """All commands; `programs` is the folder of the C++ programs."""
    commands = []
    for name, file, phrase in table():
        path = Path(file)
        if path.suffix == ".py":
            commands.append(of_parser(name, phrase, parser_of(SCRIPTS / path)))
        elif path.suffix:
            commands.append(Command(name, phrase, [HELP], arguments="FOLDER"))
        else:
            commands.append(of_program(name, phrase, programs / path))
    return commands
