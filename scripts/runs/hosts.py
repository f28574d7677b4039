"""The hosts of a run: which answer, and how the images of a step are spread over their ranks."""

import contextlib
import re
import shlex
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from . import UserError

LIMIT = 20  # seconds for the answer of a host


@dataclass(frozen=True)
class Host:
    name: str
    slots: int
    line: str

    def answers(self, probe):
        """Whether the command `probe` succeeds for it; this machine needs none."""
        if self.name in ("localhost", "127.0.0.1", socket.gethostname()):
            return True
        words = [word.replace("{host}", self.name) for word in probe]
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=LIMIT, check=False).returncode == 0
        return False


def read(path):
    """The hosts of a file with lines `host`, `host:slots` or `host slots=N`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    found = []
    for number, line in enumerate((line.partition("#")[0].strip() for line in lines), 1):
        parts = re.fullmatch(r"([^\s:]+)(?::(\d+)|\s+slots=(\d+))?", line)
        if line and not parts:
            raise UserError(f"{path}, line {number}: expected host, host:slots or host slots=N; "
                            f"found {line}")
        if parts:
            name, colon, slots = parts.groups()
            found.append(Host(name, int(colon or slots or 1), line))
    if not found:
        raise UserError(f"{path} names no host")
    return found


def probed(hosts, probe):
    """(hosts that answer, the others)."""
    words = shlex.split(probe)
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda host: host.answers(words), hosts))
    return ([host for host, answer in zip(hosts, answers) if answer],
            [host for host, answer in zip(hosts, answers) if not answer])


def spread(images, batch, ranks):
    """(images of a micro-batch, micro-batches of a step) of each rank for a step of about `images`
    images: as many, where they divide, and no micro-batch larger than `batch`."""
    each = max(1, images // ranks)
    # a micro-batch of less than a quarter of `batch` would be slow
    exact = [count for count in range(1, each + 1) if each % count == 0 and each // count <= batch]
    if images % ranks == 0 and exact[0] * batch <= 4 * each:
        return each // exact[0], exact[0]
    count = -(-each // batch)
    return each // count, count
