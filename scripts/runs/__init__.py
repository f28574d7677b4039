"""Run folders that `train` writes: reading, comparing, drawing.

tables.py reads CSV files, folder.py one run, settings.py what differs between runs, measures.py
the results of a run, comparison.py the table of both; page.py writes the report. live.py follows a
run that is written, picture.py draws it as text.
"""

import difflib
import os
import sys


class UserError(Exception):
    """A wrong option or file; ends a script with one line and exit code 2."""


def nearest(name, known):
    """'; did you mean X?' for a name that is not among the known ones, or a list of these."""
    found = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f"; did you mean {found[0]}?" if found else f"; known: {', '.join(map(str, known))}"


def write_whole(path, write):
    """Calls `write` for a file in the folder of `path` and renames it to `path`, which is therefore
    whole, or as it was; UserError names it."""
    fresh = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        write(fresh)
        with open(fresh, "rb") as file:
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    finally:
        try:
            fresh.unlink(missing_ok=True)
        except OSError:
            pass  # the first error counts


def script(name, main):
    """Ends the process with main()'s code, or with one line and 2 for an error of the user."""
    try:
        sys.exit(main())
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # `| head` has read enough
        sys.stderr.close()
        sys.exit(1)
