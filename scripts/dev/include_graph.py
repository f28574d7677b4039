#!/usr/bin/env python3
"""include_graph.py [--check] [--output FILE]: draws which folder includes which.

Nodes are the folders of scripts/dev/include_rules.txt. An arrow A -> B means that a file of A has
an `#include "B/..."`. A folder without arrows is on level 1; any other is one level above the
highest folder that it includes. Prints the number of folders, arrows and levels and writes an SVG
(default: docs/images/layers.svg). Arrows that follow from others (A -> C beside A -> B -> C) are
counted but not drawn.

Exit code 1 when an arrow points upward (to a folder listed later in include_rules.txt), when
arrows form a circle, or, with --check, when the SVG on disk differs from the new one.
"""

import argparse
import pathlib
import re
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
BOX_HEIGHT, ROW_HEIGHT, GAP, MARGIN, LANE = 30, 84, 26, 24, 12


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


def upward(folders, arrows):
    """One line for each arrow to a folder that include_rules.txt lists later."""
    order = {folder: i for i, folder in enumerate(folders)}
    return [
        f"{where}: upward: {folder} includes {other}"
        for folder in folders
        for other, where in sorted(arrows[folder].items())
        if order[other] > order[folder]
    ]


def levels_of(folders, arrows):
    """{folder: level}, 1 at the bottom. Raises ValueError, which names a circle if there is one."""
    levels, path = {}, []

    def level(folder):
        if folder in path:
            circle = path[path.index(folder):] + [folder]
            raise ValueError("circle: " + " -> ".join(circle))
        if folder not in levels:
            path.append(folder)
            levels[folder] = 1 + max((level(other) for other in sorted(arrows[folder])), default=0)
            path.pop()
        return levels[folder]

    for folder in folders:
        level(folder)
    return levels


def without_implied(folders, arrows):
    """The arrows that no path of other arrows implies, as pairs."""
    reached = {}

    def reach(folder):
        if folder not in reached:
            reached[folder] = set(arrows[folder]).union(*(reach(o) for o in arrows[folder]))
        return reached[folder]

    return [
        (folder, other)
        for folder in folders
        for other in sorted(arrows[folder])
        if not any(other in reach(between) for between in arrows[folder])
    ]


def width_of(node):
    """Width of a folder's box, or of the lane for a bend of a long arrow (a tuple)."""
    return LANE if isinstance(node, tuple) else 7.4 * len(node) + 20


def place(levels, drawn):
    """Positions of nodes and arrows: ({node: (x, y)}, {arrow: nodes along it}, width)."""
    highest = max(levels.values())
    rows = {level: [] for level in range(1, highest + 1)}
    for folder, level in levels.items():
        rows[level].append(folder)
    chains = {}
    for arrow in drawn:
        upper, lower = arrow
        bends = [(*arrow, level) for level in range(levels[upper] - 1, levels[lower], -1)]
        for bend in bends:
            rows[bend[2]].append(bend)
        chains[arrow] = [upper, *bends, lower]
    above, below = {}, {}
    for chain in chains.values():
        for one, other in zip(chain, chain[1:]):
            below.setdefault(one, []).append(other)
            above.setdefault(other, []).append(one)

    # order: each row by the mean position of its neighbours, downward and upward in turn
    def mean_position(node, neighbours, position, default):
        found = [position[n] for n in neighbours.get(node, ())]
        return sum(found) / len(found) if found else default

    def crossings():
        total = 0
        for level in range(2, highest + 1):
            low = {node: i for i, node in enumerate(rows[level - 1])}
            ends = [i for n in rows[level] for i in sorted(low[o] for o in below.get(n, ()))]
            total += sum(a > b for i, a in enumerate(ends) for b in ends[i + 1:])
        return total

    best, least = {level: list(row) for level, row in rows.items()}, crossings()
    for sweep in range(24):
        down = sweep % 2 == 0
        for level in (range(highest - 1, 0, -1) if down else range(2, highest + 1)):
            fixed = rows[level + 1 if down else level - 1]
            position = {node: i / max(1, len(fixed) - 1) for i, node in enumerate(fixed)}
            own = {node: i / max(1, len(rows[level]) - 1) for i, node in enumerate(rows[level])}
            side = above if down else below
            rows[level].sort(key=lambda n: mean_position(n, side, position, own[n]))
        if crossings() < least:
            best, least = {level: list(row) for level, row in rows.items()}, crossings()
    rows = best

    # x: towards the mean of all neighbours, as far as the row's order and gaps allow
    x = {}
    for row in rows.values():
        at = 0.0
        for node in row:
            x[node] = at + width_of(node) / 2
            at += width_of(node) + GAP
        for node in row:
            x[node] -= at / 2
    for _ in range(200):
        for row in rows.values():
            wish = {}
            for node in row:
                near = [x[n] for n in above.get(node, []) + below.get(node, [])]
                wish[node] = (x[node] + 2 * sum(near) / len(near)) / 3 if near else x[node]
            spread(row, wish, x)
    left = min(x[n] - width_of(n) / 2 for n in x)
    right = max(x[n] + width_of(n) / 2 for n in x)
    centres = {}
    for level, row in rows.items():
        y = MARGIN + (highest - level) * ROW_HEIGHT + BOX_HEIGHT / 2
        for node in row:
            centres[node] = (x[node] - left + MARGIN + 30, y)
    return centres, chains, right - left + 2 * MARGIN + 30


def spread(row, wish, x):
    """Sets x of a row as near to `wish` as its order and gaps allow. Neighbours that would overlap
    form a block at the mean of their wished positions."""
    blocks = []  # [nodes, offsets from the block's first centre, first centre]
    for node in row:
        blocks.append([[node], [0.0], wish[node]])
        while len(blocks) > 1:
            one, two = blocks[-2], blocks[-1]
            apart = (width_of(one[0][-1]) + width_of(two[0][0])) / 2 + GAP
            start = one[1][-1] + apart
            if one[2] + start <= two[2]:
                break
            nodes = one[0] + two[0]
            offsets = one[1] + [start + o for o in two[1]]
            first = sum(wish[n] - o for n, o in zip(nodes, offsets)) / len(nodes)
            blocks[-2:] = [[nodes, offsets, first]]
    for nodes, offsets, first in blocks:
        for node, offset in zip(nodes, offsets):
            x[node] = first + offset


def curve(points):
    """A smooth line through points, vertical at each of them."""
    text = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        middle = (y0 + y1) / 2
        text += f" C{x0:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}"
    return text


def draw(folders, arrows, levels):
    """The SVG's text."""
    drawn = without_implied(folders, arrows)
    centres, chains, width = place(levels, drawn)
    highest = max(levels.values())
    height = 2 * MARGIN + (highest - 1) * ROW_HEIGHT + BOX_HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"'
        ' font-family="monospace" font-size="12">',
        "<title>Which folder includes which</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for level in range(1, highest + 1):
        y = MARGIN + (highest - level) * ROW_HEIGHT + BOX_HEIGHT / 2
        lines.append(f'<text x="{MARGIN}" y="{y + 4:.1f}" fill="#999">{level}</text>')
    # spread the ends of lines along the edge of a box
    out_ends, in_ends = {}, {}
    for (upper, lower), chain in chains.items():
        out_ends.setdefault(upper, []).append((centres[chain[1]][0], lower))
        in_ends.setdefault(lower, []).append((centres[chain[-2]][0], upper))

    def port(ends, node, key):
        order = [name for _, name in sorted(ends[node])]
        share = (order.index(key) + 1) / (len(order) + 1) - 0.5
        return centres[node][0] + share * (width_of(node) - 12)

    for (upper, lower), chain in sorted(chains.items()):
        points = [(port(out_ends, upper, lower), centres[upper][1] + BOX_HEIGHT / 2)]
        for bend in chain[1:-1]:
            x, y = centres[bend]
            points += [(x, y - BOX_HEIGHT / 2), (x, y + BOX_HEIGHT / 2)]
        points.append((port(in_ends, lower, upper), centres[lower][1] - BOX_HEIGHT / 2))
        lines.append(
            f'<path d="{curve(points)}" fill="none" stroke="#777" stroke-width="1.1"'
            ' marker-end="url(#tip)"/>'
        )
    for folder in folders:
        x, y = centres[folder]
        wide = width_of(folder)
        colour = COLOURS.get(folder.split("/")[0], "#eeeeee")
        lines.append(
            f'<rect x="{x - wide / 2:.1f}" y="{y - BOX_HEIGHT / 2:.1f}" width="{wide:.1f}"'
            f' height="{BOX_HEIGHT}" rx="5" fill="{colour}" stroke="#666"/>'
        )
        lines.append(
            f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="#111">{folder}</text>'
        )
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description="Draws which folder includes which.")
    parser.add_argument("--check", action="store_true", help="compare with the SVG, write nothing")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/images/layers.svg")
    args = parser.parse_args()

    folders = read_folders()
    arrows = read_arrows(folders)
    problems = upward(folders, arrows)
    levels = {}
    try:
        levels = levels_of(folders, arrows)
    except ValueError as error:
        problems.append(str(error))
    if problems:
        print("\n".join(problems))
        return 1
    count = sum(map(len, arrows.values()))
    print(f"{len(folders)} folders, {count} arrows, {max(levels.values())} levels")
    svg = draw(folders, arrows, levels)
    if args.check:
        if not args.output.exists() or args.output.read_text() != svg:
            print(f"{args.output}: not current; run scripts/dev/include_graph.py")
            return 1
        return 0
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(svg)
    return 0


if __name__ == "__main__":
    sys.exit(main())
