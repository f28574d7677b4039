#!/usr/bin/env python3
"""include_graph.py [--check] [--output FILE]: draws which folder includes which, with Graphviz.

Nodes are the folders of scripts/dev/include_rules.txt. An arrow A -> B means that a file of A has
an `#include "B/..."`. Prints the number of folders and arrows and writes an SVG (default:
docs/images/layers.svg). Arrows that follow from others (A -> C beside A -> B -> C) are counted but
not drawn.

Exit code 1 and a line for each include that include_rules.txt does not allow, for a folder that is
listed before one that it may include, and, with --check, when the SVG lacks an arrow or has another
one. Where each folder includes only those above it, arrows form no circle.
"""

import argparse
import graphlib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "scripts/dev/include_rules.txt"
SUFFIXES = {".cpp", ".h", ".cu", ".cuh"}
COLOURS = {  # by top-level folder
    "engine": "#dbe7f5",
    "layers": "#e3dcf3",
    "models": "#e3dcf3",
    "data": "#f7e8c9",
    "comm": "#d8efdc",
    "sparsify": "#f9dcd5",
    "apps": "#e7e7e7",
}
STYLE = ('bgcolor="white"; node [shape=box, style="rounded,filled", fontname="monospace", '
         'fontsize=12, color="#666666"]; edge [color="#777777", arrowsize=0.7]')


def read_rules():
    """{folder: those that it may include}, lower folders first, and what is wrong with it."""
    rules, problems = {}, []
    for line in RULES.read_text().splitlines():
        folder, colon, allowed = line.partition(":")
        if colon and not line.startswith("#"):
            rules[folder] = set(allowed.split())
            problems += [f"{RULES.relative_to(ROOT)}: include: {folder} stands before {other}"
                         for other in sorted(rules[folder] - rules.keys())]
    return rules, problems


def read_arrows(rules):
    """{folder: included folders} and a line for each include that is not allowed."""
    include = re.compile(r'#include "([a-z_0-9/]+)/[a-z_0-9]+\.h')
    arrows, problems = {folder: set() for folder in rules}, []
    for path in sorted(path for area in COLOURS for path in (ROOT / area).rglob("*")
                       if path.suffix in SUFFIXES):
        name = path.relative_to(ROOT)
        folder = name.parent.as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = include.match(line)
            if not found or found[1] == folder:
                continue
            if folder not in rules:
                problems.append(f"{name}: include: {folder} has no row in include_rules.txt")
                break
            if found[1] in rules[folder]:
                arrows[folder].add(found[1])
            else:
                problems.append(f"{name}:{number}: include: {folder} may not include {found[1]}")
    return arrows, problems


def without_implied(arrows):
    """The arrows, as pairs, that no path of others implies."""
    reached = {}
    for folder in graphlib.TopologicalSorter(arrows).static_order():  # included folders first
        reached[folder] = arrows[folder].union(*(reached[other] for other in arrows[folder]))
    return {(folder, other) for folder in arrows for other in arrows[folder]
            if not any(other in reached[between] for between in arrows[folder])}


def drawn_in(svg):
    """The arrows of a picture, from the titles that Graphviz gives them."""
    return set(re.findall(r"<title>(\S+?)&#45;&gt;(\S+?)</title>", svg))


def draw(folders, drawn, path):
    nodes = [f'"{one}" [fillcolor="{COLOURS[one.split("/")[0]]}"]' for one in folders]
    edges = [f'"{folder}" -> "{other}"' for folder, other in sorted(drawn)]
    graph = f"digraph {{ {STYLE}\n" + "\n".join(nodes + edges) + "\n}\n"
    try:
        subprocess.run(["dot", "-Tsvg", "-o", path], input=graph, text=True, check=True)
    except FileNotFoundError:
        sys.exit("include_graph.py: dot is missing; apt-get install graphviz")


def main():
    parser = argparse.ArgumentParser(description="Draws which folder includes which.")
    parser.add_argument("--check", action="store_true", help="compare with the SVG, write nothing")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/images/layers.svg")
    args = parser.parse_args()

    rules, problems = read_rules()
    arrows, wrong = read_arrows(rules)
    if problems + wrong:
        print("\n".join(problems + wrong))
        return 1
    drawn = without_implied(arrows)
    if not args.check:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        draw(rules, drawn, args.output)
        print(f"{len(rules)} folders, {sum(map(len, arrows.values()))} arrows")
    elif not args.output.exists() or drawn_in(args.output.read_text()) != drawn:
        print(f"{args.output.relative_to(ROOT)}: include: run scripts/dev/include_graph.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
