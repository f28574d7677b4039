"""The options of a script."""

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from . import UserError, nearest, nearest_is, program_name
from .tables import is_number

# messages of argparse
MESSAGES = (("^the following arguments are required: (.*)", r"\1 is missing; --help lists all"),
            ("^unrecognized arguments: (.*)", r'unexpected argument "\1"'),
            ("^argument (?:-./)?", ""),
            ("expected one argument$", "needs a value"),
            ("^(.*): needs", r"\1 needs"),
            ("invalid (?:int|float) value: '(.*)'$", r"expected a number; found \1"))


def one_of(kind, names):
    """A type of arguments that may be repeated: one of these names."""
    def name_of(text):
        if text not in names:
            raise UserError(f"unknown {kind} {text}{nearest(text, names)}")
        return text
    return name_of


def at_least(least):
    """A type of arguments that are whole numbers."""
    def whole(text):
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number from {least}; found {text}")
        return int(text)
    return whole


class Parser(argparse.ArgumentParser):
    """Answers a wrong option as the programs do: one line with the nearest flag, and exit code 2.
    An option with one value may be given once. Help names the script as the user called it."""

    def __init__(self, **given):
        given.setdefault("prog", program_name())
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **given)
        file = re.escape(os.path.basename(sys.argv[0]))
        self.description = re.sub(f"(?m)^( *){file} ", rf"\1{self.prog} ", self.description or "")

    def parse_args(self, args=None, namespace=None):
        """Words without a flag may stand between options, as in `run --scale short A1`, unless one
        is `--`. --describe prints the options as JSON, for manual pages and completions."""
        if args is None and sys.argv[1:] == ["--describe"]:
            print(json.dumps(self.described()))
            sys.exit()
        words = sys.argv[1:] if args is None else args
        if self._subparsers or "--" in words:
            return super().parse_args(args, namespace)
        self.check_flags(words)
        return self.parse_intermixed_args(args, namespace)

    def parse_known_args(self, args=None, namespace=None):
        self.check_flags(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def described(self):
        """What --describe of a program says, with `metavar` in place of `kind`."""
        text = (self.description or "").partition("\n")[2].strip("\n")
        told: dict[str, Any] = {"text": text, "options": []}
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                helps = action._choices_actions  # noqa: SLF001
                phrases = {one.dest: one.help or "" for one in helps}
                told["subcommands"] = [
                    {"name": name, "description": phrases.get(name, ""), **one.described()}
                    for name, one in action.choices.items()]
            elif not isinstance(action, argparse._HelpAction):  # noqa: SLF001
                told["options"].append(described(action))
        return told

    def check_flags(self, words):
        """UserError for the first flag that is unknown or repeated, before anything else that is
        wrong. Flags behind a subcommand are checked by its parser."""
        if self._subparsers:
            return
        seen = set()
        for word in words:
            if word == "--":
                return
            if not word.startswith("-") or word == "-" or is_number(word):  # such as -1
                continue
            action = self.action_of(word)
            if not action:
                self.unknown(word.partition("=")[0])
            if action in seen:
                raise UserError(f"{action.option_strings[-1]} is given twice")
            if isinstance(action, argparse._StoreAction):  # noqa: SLF001
                seen.add(action)

    def action_of(self, word):
        """The option that a word sets: by its name, by the start of the name, or by a letter."""
        known = self._option_string_actions
        flag = word.partition("=")[0]
        if flag in known:
            return known[flag]
        if not flag.startswith("--"):
            return known.get(flag[:2])
        return next((known[name] for name in known if name.startswith(flag)), None)

    def unknown(self, flag):
        names = [name for name in self._option_string_actions if name.startswith("--")]
        near = nearest_is(flag, names) if flag.startswith("--") else ""
        raise UserError(f"unknown flag {flag}{near}; --help lists all")

    def error(self, message):
        """Raises UserError for a message of argparse, in the words of the programs."""
        choice = re.search(r"^argument (.*): invalid choice: '(.*)' \(choose from (.*)\)$", message)
        if choice:
            name, value, known = choice.groups()
            what = next(action.dest for action in self._actions
                        if name in (action.metavar, action.dest, "/".join(action.option_strings)))
            known = known.replace("'", "").split(", ")
            raise UserError(f"unknown {what} {value}{nearest(value, known)}")
        for pattern, words in MESSAGES:
            message = re.sub(pattern, words, message)
        raise UserError(message)


def described(action):
    """An option or argument of argparse."""
    flags = sorted(action.option_strings, key=lambda flag: flag.startswith("--"))
    name = flags[-1].lstrip("-") if flags else action.dest
    metavar = action.metavar or action.dest.upper()
    if flags and (action.type is Path or metavar == "CSV"):
        metavar = "FILE"
    return {"name": name, "group": "Options", "positional": not flags, "default": "",
            "help": (action.help or "").replace("%(default)s", str(action.default))
                                       .replace("%%", "%"),
            "letter": flags[0][1:] if len(flags) > 1 else "",
            "metavar": metavar + {"+": "...", "*": "..."}.get(action.nargs, "") * (not flags),
            "takes_value": action.nargs != 0, "required": bool(flags) and action.required,
            "choices": list(map(str, action.choices or ())), "suggestions": []}
