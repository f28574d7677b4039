"""Run folders that `train` writes: reading, comparing, drawing.

tables.py reads CSV files, folder.py one run, kept.py the few files of many, settings.py what
differs between runs, measures.py the results of a run, comparison.py the table of both; page.py
writes the report. live.py follows a run that is written, picture.py draws it as text. options.py
parses options, output.py writes a file that a user names, build.py reads what a program says of
its build. processes.py starts and ends programs, command.py reads one that starts `train`, hosts.py
finds the hosts for it.
"""

import difflib
import importlib.util
import io
import os
import shlex
import subprocess
import sys

SYSTEM_PYTHON = "/usr/bin/python3"


class UserError(Exception):
    """A wrong option or file; ends a script with one line and exit code 2."""


class Fault(Exception):
    """What fails through no mistake of the user, as on a full disk; one line and exit code 1."""


class ProgramFailed(Fault):
    """A program ended with an error."""


def told_by(*words, **how):
    """What a program prints. ProgramFailed has its last line, UserError is about one that does not
    start."""
    words = list(map(str, words))
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, **how)
    except OSError as error:
        raise UserError(f"{words[0]}: {error.strerror}") from None
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise ProgramFailed(f"{shlex.join(words)}: exit code {done.returncode}: {lines[-1]}")
    return done.stdout


def nearest(name, known):
    """'; did you mean X?' for a name that is not among the known ones, or a list of these, of the
    five most similar ones if that is long."""
    known = list(map(str, known))
    found = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    if found:
        return f"; did you mean {found[0]}?"
    if sum(map(len, known)) <= 200:
        return f"; known: {', '.join(known)}"
    return f"; nearest are {', '.join(difflib.get_close_matches(str(name), known, n=5, cutoff=0))}"


def nearest_is(name, known, folder=""):
    """`; nearest is X`, the most similar of the names in a folder, as the programs say; or ''."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"; nearest is {os.path.join(folder, near[0])}" if near else ""


def program_name(file=None):
    """What the user called: `thinwire plot`, or the name of the script. scripts/thinwire becomes
    the script and keeps its process number; a process that the script starts has another."""
    process, _, name = os.environ.get("THINWIRE_NAME", "").partition(" ")
    return name if process == str(os.getpid()) else file or os.path.basename(sys.argv[0])


def with_matplotlib():
    """Whether matplotlib is there. Debian's belongs to Debian's python, while another one, or a
    virtual environment, may be the first on the PATH: then that one starts the script again."""
    if importlib.util.find_spec("matplotlib"):
        return True
    own = os.path.realpath(sys.executable) == os.path.realpath(SYSTEM_PYTHON)
    if os.path.exists(SYSTEM_PYTHON) and not (own and sys.prefix == sys.base_prefix):
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
    return False


class Output(io.FileIO):
    """Standard output. Its errors are no OSError: argparse hides that, others take it for an error
    of the file that they read."""

    class Error(Exception):
        pass

    def write(self, data):
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Output.Error(error.strerror) from None


def exit_code(name, main):
    """main()'s code, after its output is written; after one line 2 for an error of the user, and 1
    for a fault, such as a standard output that takes no more. `name` is that of the script."""
    name = program_name(name)
    if sys.stdout:  # it is open
        by_line = bool(sys.stdout.line_buffering or sys.stdout.write_through)
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(Output(1, "wb", closefd=False)),
                                      sys.stdout.encoding, sys.stdout.errors,
                                      line_buffering=by_line)
    try:
        try:
            return main()
        except (UserError, Fault) as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1 if isinstance(error, Fault) else 2
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except BrokenPipeError:  # `| head` has read enough
        pass
    except Output.Error as error:
        print(f"{name}: cannot write to standard output: {error}", file=sys.stderr)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is buffered
    return 1


def script(main):
    """Ends the process with main()'s code, or with one line for an error."""
    sys.exit(exit_code(None, main))
