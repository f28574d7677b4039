#!/usr/bin/env python3
"""Sets the line numbers of the links in docs/tour.md.

A link followed by a name, as in [`a.cpp`](../a.cpp): `f`, gets the line at which a.cpp defines f.
"""
import argparse
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "tour.md"
LINK = re.compile(r"\]\(([^)#]+)(?:#L\d+)?\)(:\s+`([^`]+)`)")


def line_of(name, path):
    """The line, from 1, that defines `name`: Class::function, a function or a type."""
    qualified, last = re.escape(name), re.escape(name.split("::")[-1])
    patterns = [
        rf"^\S.*\b{qualified}\(",  # a function outside of its class
        rf"^(class|struct) {last}\b",
        rf"^\S.*::{last}\(",
        rf"\b{last}\(",
    ]
    lines = path.read_text().splitlines()
    for pattern in patterns:
        for number, line in enumerate(lines, 1):
            if re.search(pattern, line) and not line.lstrip().startswith("//"):
                return number
    sys.exit(f"{PAGE.name}: {path} does not define {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true",
                        help="fail if a line differs; write nothing")
    args = parser.parse_args()
    text = PAGE.read_text()

    def numbered(match):
        target, behind, name = match.groups()
        return f"]({target}#L{line_of(name, PAGE.parent / target)}){behind}"

    updated = LINK.sub(numbered, text)
    if updated == text:
        return 0
    if args.check:
        print("docs/tour.md: line numbers have changed; run scripts/dev/tour_lines.py")
        return 1
    PAGE.write_text(updated)
    return 0


if __name__ == "__main__":
    sys.exit(main())
