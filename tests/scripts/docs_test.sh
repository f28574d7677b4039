#!/usr/bin/env bash
# Every relative link in docs/ and in each README.md leads to a file. Where names follow a link, as
# in [`path`](target): `Class::function`, the target contains the last part of each name.
# Each folder of code has a README that says which file to read first, what the folder may include
# and how to add to it.
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
link = re.compile(r"\[[^\]]*\]\(([^)#:\s]+)(?:#[^)]*)?\)" + names_behind)
names_checked = 0
for page in pages:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target, names in link.findall(text):
        path = page.parent / target
        if not path.exists():
            print(f"{page}: link to {target}: no such file")
            failed = 1
            continue
        for name in re.findall(r"`([^`]+)`", names):
            last = re.split(r"::|\.", name)[-1]
            names_checked += 1
            if not re.search(rf"\b{re.escape(last)}\b", path.read_text()):
                print(f"{page}: {target} does not contain {name}")
                failed = 1

# a sentence that begins with each of these words
begin = r"(?:^|(?<=[.:|]\s)|(?<=\n\n))"
parts = {
    "Read `FILE` first": r"Read\s+`([^`]+)`\s+first\b",
    "May include": r"May\s+include\b",
    "To add": r"To\s+add\b",
}
rules = pathlib.Path("scripts/dev/include_rules.txt").read_text()
readmes = {pathlib.Path(row) / "README.md" for row in re.findall(r"^([a-z/]+):", rules, flags=re.M)}
for area in top:
    if area not in ("configs", "scripts"):
        readmes |= {pathlib.Path(area) / "README.md", *pathlib.Path(area).rglob("README.md")}
for readme in sorted(readmes):
    text = readme.read_text() if readme.exists() else ""
    for name, pattern in parts.items():
        found = re.search(begin + pattern, text)
        if not found:
            print(f"{readme}: no sentence that begins with: {name}")
            failed = 1
        elif found.groups() and not (readme.parent / found.group(1)).is_file():
            print(f"{readme}: {found.group(1)}, the file to read first: no such file")
            failed = 1
# and names the folders of its row
for row in re.findall(r"^([a-z/]+:.*)", rules, flags=re.M):
    folder, allowed = row.split(":")
    text = (pathlib.Path(folder) / "README.md").read_text()
    sentence = re.search(begin + r"(May\s+include\b[^;]*?[;.]\s)", text)
    named = set(re.findall(r"`([a-z/]+)/?`", sentence.group(1))) if sentence else set()
    if sentence and "include_rules.txt" not in sentence.group(1) and named != set(allowed.split()):
        print(f"{folder}/README.md: may include {allowed}, but names {sorted(named)}")
        failed = 1
print(f"{names_checked} names found, {len(readmes)} folders checked")
sys.exit(failed or names_checked < 20 or len(readmes) < 30)
PY
