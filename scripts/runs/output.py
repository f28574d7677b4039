"""Files that a user names, as by `-o`."""

import contextlib
import errno
import os
import re
import stat
from pathlib import Path

from . import Fault, UserError

# what is wrong with a name; all else that fails is a fault of the disk
MISTAKES = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS,
            errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG)
# how files of a kind begin (no JPEG is ours); those of other kinds begin like the new one
KINDS = {"PNG": rb"(?s)\x89PNG.*Matplotlib", "JPG": rb"(?!)", "JPEG": rb"(?!)",
         "SVG": rb"<\?xml|<svg", "HTML": rb"(?i)<!doctype html|<html",
         "CSV": rb"[^\0-\x1f<{[][^\0-\x1f]*,", "safetensors": rb"(?s).{5}\0\0\0\{"}


def refused(error, path=None):
    """The UserError or Fault of an OSError; it names the path."""
    kind = UserError if error.errno in MISTAKES else Fault
    return kind(f"{path or error.filename}: {error.strerror}")


def check_kind(path, kind, data):
    """UserError for a file that is of another kind than the one to write, by its first bytes."""
    if kind and os.path.isfile(path):
        with open(path, "rb") as file:
            start = file.read(1000)
        if start and not re.match(KINDS.get(kind, re.escape(data[:3])), start):
            raise UserError(f"{path} exists and is no {kind} file of Thinwire: name another file")


def write(path, data, kind=None):
    """Writes bytes, not over a file of another `kind`. A regular file is whole, or as it was; a
    link to it stays; a device or pipe is written in place. UserError or Fault names the path."""
    try:
        check_kind(path, kind, data)
        if in_place(path):
            with open(path, "wb") as file:
                file.write(data)
        else:
            replace(Path(os.path.realpath(path)), data)
    except OSError as error:
        raise refused(error, path) from None


def in_place(path):
    """Whether a path leads to something that is no regular file, such as a device."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def replace(path, data):
    """Writes a file under another name in the same folder and renames it to `path`."""
    fresh = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        with open(fresh, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    finally:
        with contextlib.suppress(OSError):  # the first error counts
            fresh.unlink(missing_ok=True)
