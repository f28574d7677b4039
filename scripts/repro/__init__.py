"""The modules of scripts/repro.py: claims, programs, results, verdicts, tables and figures."""

import difflib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCALES = ("quick", "short", "paper")


class ReproError(Exception):
    """A wrong option, claim file or result; ends the script with one line and exit code 2."""


def nearest(name, known):
    """'; did you mean X?' for a name that is not among the known ones, or a list of these."""
    found = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f"; did you mean {found[0]}?" if found else f"; known: {', '.join(map(str, known))}"
