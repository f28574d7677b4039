"""Files that a user names, as by `-o`."""

import contextlib
import errno
import os
import stat
from pathlib import Path

from . import Fault, UserError

# what is wrong with a name; all else that fails is a fault of the disk
MISTAKES = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS,
            errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG)


def refused(error, path=None):
    """The UserError or Fault of an OSError; it names the path."""
    kind = UserError if error.errno in MISTAKES else Fault
    return kind(f"{path or error.filename}: {error.strerror}")


def write(path, data):
    """Writes bytes. A regular file is whole, or as it was, and a symbolic link to it stays; a
    device or a pipe is written in place. UserError or Fault names the path."""
    try:
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
