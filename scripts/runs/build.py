"""The build of a program and the CPU of the machine, from what the program prints for --version."""

import re
import subprocess

LINES = {"commit": r"^commit (\S+)", "date": r"^date (\S+)", "compiler": r"^((?:GCC|Clang) .+)",
         "cpu": r"^CPU (.+)"}


def of_text(versions):
    """{commit, date, compiler, cpu}; older programs print no date and no CPU."""
    found = {name: re.search(text, versions, flags=re.M) for name, text in LINES.items()}
    return {name: one.group(1) if one else "unknown" for name, one in found.items()}


def of_program(program):
    done = subprocess.run([str(program), "--version"], text=True, capture_output=True, check=False)
    return of_text(done.stdout)


def line(build):
    """All of it as a sentence."""
    return (f"Commit: {build['commit']} ({build['date']}). Compiler: {build['compiler']}. "
            f"CPU: {build['cpu']}.")
