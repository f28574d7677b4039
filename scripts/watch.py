#!/usr/bin/env python3
"""watch.py [RUN...]: shows how runs go on that another terminal or machine started.

RUN is a run folder, also on a shared disk, or a folder with runs (default: runs), of which those
that run now are shown. Waits for the first one; ends when none runs any more, or with Ctrl-C; the
runs go on. Prints the picture once if standard output is not a terminal. The time to the end is
that of the training steps, without validation.
Exit code 2: a folder is missing.
"""

import math
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from runs import live, picture, script
from runs.options import Parser

ENTER, LEAVE = "\033[?1049h\033[?25l", "\033[?25h\033[?1049l"  # another screen without a cursor
PATIENCE = 10  # seconds without a run before the end: the next seed may begin


def drawn(options, runs):
    """The lines of a picture."""
    width, height = shutil.get_terminal_size()
    if options.once or not sys.stdout.isatty():
        height = sys.maxsize
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    marks = picture.BLOCKS if unicode else picture.PLAIN
    folders = ", ".join(map(str, options.runs))
    return (picture.lines(runs, width, height - 1, marks) or
            [f"no run is running in {folders}; --all shows the others"])


def pause(seconds):
    """Waits; ends early when the size of the terminal changes."""
    signal.sigtimedwait([signal.SIGWINCH], seconds)


def look(options, runs):
    """The runs with what was written since, and new ones."""
    for one in runs:
        one.refresh()
    known = {one.path for one in runs}
    new = [live.Live(path) for path in live.find(options.runs, options.all) if path not in known]
    return runs + [one for one in new if one.runs or options.all or one.path in options.runs]


def follow(options):
    """Redraws the picture until nothing runs; returns its last lines."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
    runs, seen = look(options, []), time.monotonic()
    patience = 0 if runs else math.inf
    sys.stdout.write(ENTER)
    try:
        while True:
            lines = drawn(options, runs)
            sys.stdout.write("\033[H" + "".join(f"{line}\033[K\n" for line in lines) + "\033[J")
            sys.stdout.flush()
            if any(one.runs for one in runs):
                seen = time.monotonic()
                patience = PATIENCE
            elif time.monotonic() - seen >= patience:
                return lines
            pause(options.every)
            runs = look(options, runs)
    except KeyboardInterrupt:
        return lines
    finally:
        sys.stdout.write(LEAVE)
        sys.stdout.flush()


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, default=[Path("runs")], metavar="RUN")
    parser.add_argument("--all", action="store_true", help="also runs that have ended")
    parser.add_argument("--once", action="store_true", help="print the picture once")
    parser.add_argument("--every", type=float, default=1, metavar="SECONDS",
                        help="time between two looks (default: %(default)s)")
    options = parser.parse_args()
    if options.once or not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        lines = drawn(options, look(options, []))
    else:
        lines = follow(options)
    print("\n".join(lines))


if __name__ == "__main__":
    script(main)
