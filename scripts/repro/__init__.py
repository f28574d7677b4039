"""The modules of scripts/repro.py: claims, programs, results, verdicts, tables and figures."""

import os
from pathlib import Path

from runs import UserError, nearest  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("THINWIRE_BIN") or ROOT / "build" / "bin")  # programs
SCALES = ("quick", "short", "paper")


class ReproError(UserError):
    """A wrong option, claim file or result; ends the script with one line and exit code 2."""
