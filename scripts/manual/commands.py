"""The commands of scripts/thinwire with their options.

Programs and scripts describe their options themselves (--describe).
"""

import dataclasses
import json
import re
from pathlib import Path

from runs import told_by

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
KINDS = {"an integer": "N", "a number": "X", "NAME.KEY=VALUE": "NAME.KEY=VALUE"}


def of_table(described):
    """The options that an option table describes."""
    options = []
    for one in described["options"]:
        if one["positional"] and "metavar" in one:
            continue  # in a program it is a flag, too
        words = tuple(one["choices"] or one["suggestions"])
        value = one.get("metavar", "")
        if value:
            value = "WORD" if words else value
        elif one["kind"].startswith("a text"):
            value = "WORD" if words else TEXTS.get(one["name"], "FILE")
        else:
            value = KINDS.get(one["kind"], "LIST")
        options.append(Option(one["name"], one["help"], one["group"], one.get("letter", ""),
                              value if one["takes_value"] else "", one["default"], words,
                              one["required"]))
    return options


def described_by(path):
    """What a program or script says of its options; scripts in it have the names of commands."""
    told = told_by(path, "--describe")
    for name, file, _ in table():
        if file.endswith(".py"):
            told = re.sub(rf"\b{re.escape(Path(file).name)}\b", f"thinwire {name}", told)
    return json.loads(told)


def of_description(name, phrase, told, own):
    """A command; `own`: the options that every such command has."""
    arguments = [one for one in told["options"] if one["positional"]]
    return Command(
        name, phrase, [*of_table(told), *own], text=told.get("text", ""),
        arguments=" ".join(one.get("metavar") or one["name"].upper() for one in arguments),
        words=tuple(word for one in arguments for word in one["choices"]))


def load_one(name, phrase, path, own):
    told = described_by(path)
    command = of_description(name, phrase, {"options": [], **told}, own)
    command.subcommands = [of_description(sub["name"], sub["description"], sub, own)
                           for sub in told.get("subcommands", ())]
    return command


def quote(text):
    """A word of a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def load(programs):
    """All commands; `programs` is the folder of the C++ programs."""
    commands = []
    for name, file, phrase in table():
        path = Path(file)
        if path.suffix == ".py":
            commands.append(load_one(name, phrase, SCRIPTS / path, [HELP]))
        elif path.suffix:
            commands.append(Command(name, phrase, [HELP], arguments="FOLDER"))
        else:
            commands.append(load_one(name, phrase, programs / path, [HELP, VERSION]))
    return commands
