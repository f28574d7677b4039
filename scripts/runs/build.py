"""The build of a program and the CPU of the machine."""

import json
import re

from . import told_by

LINES = {"commit": r"^commit (\S+)", "date": r"^date (\S+)", "compiler": r"^((?:GCC|Clang) .+)",
         "cpu": r"^CPU (.+)"}


def of_notes(notes):
    """{commit, date, compiler, cpu} of a result of repro. Those of version 0.3.0 and older have
    what programs print for --version, some without date and CPU."""
    if "build" in notes:
        return notes["build"]
    versions = notes["versions"]
    found = {name: re.search(text, versions, flags=re.M) for name, text in LINES.items()}
    return {name: one.group(1) if one else "unknown" for name, one in found.items()}


def of_program(program):
    """The same of a program, of what it tells of itself for --describe."""
    return json.loads(told_by(program, "--describe"))["build"]


def line(build):
    """All of it as a sentence."""
    return (f"Commit: {build['commit']} ({build['date']}). Compiler: {build['compiler']}. "
            f"CPU: {build['cpu']}.")
