"""What `advise` recommends for a link, and which method of a race that is."""

import re
import subprocess

from .. import programs, runs
from . import links
from .labels import flags_in, flags_of


def recommended(text, ranks):
    """The recommended flags for a number of ranks, `--sparsifier NAME` first; None without any."""
    lines = [line for line in text.splitlines()
             if "--sparsifier " in line or "stay dense" in line.lower()]
    # a line may begin with the ranks that it is for
    for_ranks = {line: re.match(r"(\d+)(?: to (\d+))? ranks?\b", line) for line in lines}
    fitting = [line for line, found in for_ranks.items()
               if found and int(found[1]) <= ranks <= int(found[2] or found[1])]
    fitting = fitting or [line for line, found in for_ranks.items() if not found]
    if not fitting:
        return None
    if "--sparsifier " not in fitting[-1]:
        return ["--sparsifier", "dense"]
    return words(fitting[-1][fitting[-1].index("--sparsifier "):])


def words(text):
    """The flags and values at the start of a text."""
    found = []
    for word in text.split():
        bare = word.strip("`").rstrip(";.,:)`")
        if not word.strip("`").startswith("--") and (not found or not found[-1].startswith("--")):
            break
        found.append(bare)
        if bare != word.strip("`"):
            break
    return found


def method_of(advised, entries):
    """The entry with the most of the advised flags and no other, or None."""
    wanted = flags_in(advised)
    fitting = [(len(flags), entry) for entry in entries
               if (flags := flags_of(entry)) <= wanted]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


def text_for(folder, link, config, settings):
    """The output of `advise`, from advise.txt of the link's folder or a new call; '' without."""
    path = folder / "advise.txt"
    if path.exists():
        return path.read_text()
    if not (settings.bin / "advise").exists():
        return ""
    ranks = config["run"]["ranks"]
    options = {"model": config["model"], "workers": ranks, "ranks": ranks,
               "batch_size": config["batch_size"], "density": config["density"]}
    if link != links.NONE:
        options["link"] = link
    command = [str(settings.bin / "advise"), *programs.flags(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise runs.ProgramFailed(f"{' '.join(command)}: {lines[-1]}")
    path.write_text(done.stdout)
    return done.stdout
