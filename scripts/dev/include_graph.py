#!/usr/bin/env python3
"""include_graph.py [--check] [--output FILE]: draws which folder includes which, with Graphviz.

Nodes are the folders of scripts/dev/include_rules.txt. An arrow A -> B means that a file of A has
an `#include "B/..."`. Prints the number of folders and arrows and writes an SVG (default:
docs/images/layers.svg). Arrows that follow from others (A -> C beside A -> B -> C) are counted but
not drawn.

Exit code 1 when an arrow points upward (to a folder listed later in include_rules.txt), when
arrows form a circle, or, with --check, when the SVG on disk lacks an arrow or has another one.
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


def read_folders():
    """The folders of include_rules.txt, in the order of the file: lower ones first."""
    lines = RULES.read_text().splitlines()
    return [line.split(":")[0] for line in lines if ":" in line and not line.startswith("#")]


def read_arrows(folders):
    """{folder: {included folder: one file and line that includes it}}"""
    include = re.compile(r'#include "([a-z_0-9/]+)/[a-z_0-9]+\.h')
    known = set(folders)
    arrows = {folder: {} for folder in folders}
    for folder in folders:
        for path in sorted((ROOT / folder).iterdir()):
            if path.suffix not in SUFFIXES:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = include.match(line)
                if match and match[1] in known and match[1] != folder:
                    where = f"{path.relative_to(ROOT)}:{number}"
                    arrows[folder].setdefault(match[1], where)
    return arrows


def problems_of(folders, arrows):
    """One line for each arrow to a folder that include_rules.txt lists later, and for a circle."""
    order = {folder: i for i, folder in enumerate(folders)}
    problems = [f"{where}: upward: {folder} includes {other}"
                for folder in folders
                for other, where in sorted(arrows[folder].items())
                if order[other] > order[folder]]
    try:
        graphlib.TopologicalSorter(arrows).prepare()
    except graphlib.CycleError as error:
        problems.append("circle: " + " -> ".join(reversed(error.args[1])))
    return problems


def without_implied(arrows):
    """The arrows, as pairs, that no path of others implies."""
    reached = {}
    for folder in graphlib.TopologicalSorter(arrows).static_order():  # included folders first
        reached[folder] = set(arrows[folder]).union(*(reached[other] for other in arrows[folder]))
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

    folders = read_folders()
    arrows = read_arrows(folders)
    problems = problems_of(folders, arrows)
    if problems:
        print("\n".join(problems))
        return 1
    print(f"{len(folders)} folders, {sum(map(len, arrows.values()))} arrows")
    drawn = without_implied(arrows)
    if not args.check:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        draw(folders, drawn, args.output)
    elif not args.output.exists() or drawn_in(args.output.read_text()) != drawn:
        print(f"{args.output}: not current; run scripts/dev/include_graph.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
