"""The links of a race: RATE,LATENCY as for `train --link`, or none."""

import math
import re

from .. import ReproError

NONE = "none"
RATES = {"bit": 1, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9}
LATENCIES = {"us": 1e-6, "ms": 1e-3, "s": 1}


def parse(link):
    """(bits per second, seconds) of a link; none is the fastest."""
    if link == NONE:
        return math.inf, 0
    found = re.fullmatch(r"([\d.]+)(k?bit|[MG]bit),([\d.]+)(us|ms|s)", link)
    try:
        rate, unit, latency, of_time = found.groups()
        return float(rate) * RATES[unit], float(latency) * LATENCIES[of_time]
    except (AttributeError, ValueError):
        raise ReproError(f"link {link}: expected RATE,LATENCY such as 1Gbit,0.4ms, or "
                         "none") from None


def folder(link):
    """The name of the folder of a link."""
    parse(link)
    return link.replace(",", "-")


def title(link):
    return "without a link" if link == NONE else link
