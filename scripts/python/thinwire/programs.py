"""The programs of an installation by pip, which lie beside this file."""

import os
import sys
from pathlib import Path


def main():
    """Becomes the program of the name that it is called by."""
    program = str(Path(__file__).parent / "bin" / Path(sys.argv[0]).name)
    os.execv(program, [program, *sys.argv[1:]])
