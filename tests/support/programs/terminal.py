#!/usr/bin/env python3
"""terminal.py [--columns N[,N...]] [--after TEXT] [--interrupt SECONDS] [--until TEXT] COMMAND...:
runs a command on a terminal of N columns and prints all that it wrote there, with `ESC` for escape
characters and `CR` for carriage returns. With several N, the width changes every half second; a
line `COLUMNS N` tells where. --interrupt presses Ctrl-C, not before the output of the TEXT of
--until. Times count from the first output, or that of the TEXT of --after. Exits with the code of
the command."""

import argparse
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time


def resize(terminal, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", default="80")
    parser.add_argument("--after", default="")
    parser.add_argument("--interrupt", type=float)
    parser.add_argument("--until", default="")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    widths = [int(text) for text in options.columns.split(",")]
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.read(0, 1)  # the size is set
        os.execvp(options.command[0], options.command)
    resize(terminal, widths[0])
    termios.tcsetattr(terminal, termios.TCSANOW, quiet(termios.tcgetattr(terminal)))
    os.write(terminal, b"\n")
    written, changed, began = [f"COLUMNS {widths.pop(0)}\n"], None, None
    while True:
        ready, _, _ = select.select([terminal], [], [], 0.1)
        now = time.monotonic()
        late = options.interrupt and began and now - began > options.interrupt
        if late and options.until in "".join(written):
            os.write(terminal, b"\x03")
            options.interrupt = None
        try:
            text = os.read(terminal, 65536).decode() if ready else ""
        except OSError:  # the command has ended
            break
        written.append(text)
        if text and not began and options.after in "".join(written):
            began = changed = now
        if widths and began and now - changed > 0.5:
            resize(terminal, widths[0])
            written.append(f"\nCOLUMNS {widths.pop(0)}\n")
            changed = now
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print("".join(written).replace("\r\n", "\n").replace("\033", "ESC").replace("\r", "CR"))
    sys.exit(code if code >= 0 else 128 - code)


def quiet(attributes):
    """Without echo of what is written to the terminal."""
    attributes[3] &= ~termios.ECHO
    return attributes


main()
