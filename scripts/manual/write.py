#!/usr/bin/env python3
"""write.py --bin FOLDER --output FOLDER: writes manual pages and completions of `thinwire`.

The build calls it after the programs, whose option tables it reads. Output: thinwire.1 and a page
for each command, thinwire.bash, _thinwire (zsh) and thinwire.fish.
"""

import argparse
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from manual import bash, commands, fish, man, zsh
from runs import told_by


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True, help="programs")
    parser.add_argument("--output", type=Path, required=True, help="folder")
    options = parser.parse_args()
    version = told_by(options.bin / "train", "--version").split()[1]
    known = commands.load(options.bin)
    files = man.pages(known, version)
    files |= {"thinwire.bash": bash.script(known), "_thinwire": zsh.script(known),
              "thinwire.fish": fish.script(known)}
    options.output.mkdir(parents=True, exist_ok=True)
    for old in options.output.iterdir():
        old.unlink()  # of a command that is gone
    for name, text in files.items():
        (options.output / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
