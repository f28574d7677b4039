#!/usr/bin/env bash
# Every relative link in docs/ and in each README.md leads to a file, and behind a `#` to a heading.
# Where names follow a link, as in [`path`](target): `Class::function`, the target contains the last
# part of each name.
set -euo pipefail
python3 - <<'PY'
import pathlib
import re
import sys

failed = 0
top = "apps comm configs data engine layers models scripts sparsify tests".split()
pages = [pathlib.Path("README.md"), *sorted(pathlib.Path("docs").glob("*.md"))]
for folder in top:
    pages += sorted(pathlib.Path(folder).rglob("README.md"))
names_behind = r"((?::\s+`[^`]+`(?:(?:,|\s+or|\s+and)\s+`[^`]+`)*)?)"
link = re.compile(r"\[[^\]]*\]\(([^)#:\s]*)(?:#([^)]*))?\)" + names_behind)
names_checked = 0


def anchors(path):
    """The anchors that GitHub makes of the headings of a page; one that repeats has a number."""
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
    found = []
    for heading in re.findall(r"^#+ (.*)", text, flags=re.M):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.append(f"{anchor}-{found.count(anchor)}" if anchor in found else anchor)
    return found


for page in pages:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target, anchor, names in link.findall(text):
        path = page.parent / target if target else page
        if not path.exists():
            print(f"{page}: link to {target}: no such file")
            failed = 1
            continue
        if anchor and path.suffix == ".md" and anchor not in anchors(path):
            print(f"{page}: link to {target}#{anchor}: no such heading")
            failed = 1
        for name in re.findall(r"`([^`]+)`", names):
            last = re.split(r"::|\.", name)[-1]
            names_checked += 1
            if not re.search(rf"\b{re.escape(last)}\b", path.read_text()):
                print(f"{page}: {target} does not contain {name}")
                failed = 1
print(f"{names_checked} names found")
sys.exit(failed or names_checked < 20)
PY
