"""The settings of runs: what differs between them, and which differ only in the seed."""

from .folder import FINISHED

# of the folder, not of the training; and what follows from other settings
IDENTITY = ("name", "output_dir", "steps_per_epoch", "branched_from", "workers")
BUILD = ("commit", "date", "cpu")  # runs that differ in nothing else are alike
# labels of groups use these first, and tables have them before the results
TELLING = ("sparsifier", "density", "selector", "exchange", "model", "dataset", "ranks",
           "batch_size", "lr", "link", "precision", "seed")

DENSE = ("dense", "bsp")  # sparsifiers that send the gradient as it is
WITHOUT_DENSITY = (*DENSE, "powersgd", "quantized")
LONGEST = 60  # label of a group


def flat(config):
    """config.json as one level: `set` by its dotted names, `run` by its names, or `run.NAME` where
    an option has the same name."""
    values = {key: value for key, value in config.items() if not isinstance(value, dict)}
    values |= config.get("set", {})
    for key, value in config.get("run", {}).items():
        values[f"run.{key}" if key in values else key] = value
    values.setdefault("changes", [])  # by resumes; older versions do not record them
    return values


def text(value):
    """A setting as one writes it on a command line; a change by a resume as a sentence."""
    if isinstance(value, dict):
        if {"step", "text"} <= value.keys():
            return f"step {value['step']}: {value['text']}"
        return "; ".join(f"{key} {text(part)}" for key, part in value.items()) or "none"
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return ",".join(map(text, value)) or "none"
    return str(value) or "none"


class Settings:
    """The settings of several runs.

    differing: keys with several values; common: {key: value} that all runs have; partial: {key:
    value} that only some runs have (other versions of the program), with one value.
    """

    def __init__(self, runs):
        self.values = [flat(run.config) for run in runs]
        self.differing, self.common, self.partial = [], {}, {}
        for key in dict.fromkeys(key for values in self.values for key in values):
            if key in IDENTITY:
                continue
            found = [values[key] for values in self.values if key in values]
            if any(value != found[0] for value in found):
                self.differing.append(key)
            elif len(found) == len(runs):
                self.common[key] = found[0]
            else:
                self.partial[key] = found[0]
        rank = {key: i for i, key in enumerate(TELLING)}
        self.differing.sort(key=lambda key: rank.get(key, len(rank)))

    def split(self):
        """Differing keys: those that a table has before the results, and the others."""
        return ([key for key in self.differing if key in TELLING],
                [key for key in self.differing if key not in TELLING])


class Group:
    """Runs that differ only in the seed, by their numbers. `repeated` has those whose seed another
    run of the group has, too: {number: that run}."""

    def __init__(self):
        self.runs, self.seeds, self.label, self.repeated = [], [], "", {}

    def count_seeds_once(self, runs):
        """Of the runs with one seed, keeps the finished one that was written last."""
        seeds = dict(zip(self.runs, self.seeds))
        kept = {}
        for number in sorted(self.runs, key=lambda i: (runs[i].state == FINISHED, runs[i].written)):
            kept[seeds[number]] = number
        # without a seed, runs are not known to be equal
        self.repeated = {number: kept[seed] for number, seed in seeds.items()
                         if seed is not None and kept[seed] != number}
        self.runs = [number for number in self.runs if number not in self.repeated]
        self.seeds = [seeds[number] for number in self.runs]


def groups(runs, settings):
    """The groups of runs in the order of their first run, with labels that differ."""
    found, firsts = {}, []
    for i, values in enumerate(settings.values):
        same = {key: value for key, value in values.items()
                if key not in (*IDENTITY, *BUILD, "seed")}
        group = found.setdefault(repr(sorted(same.items())), Group())
        if not group.runs:
            firsts.append(values)
        group.runs.append(i)
        group.seeds.append(values.get("seed"))
    every = list(found.values())
    for group in every:
        group.count_seeds_once(runs)
    for group, label in zip(every, labels([runs[group.runs[0]] for group in every], firsts,
                                          settings.differing)):
        group.label = label
    return every


def labels(runs, firsts, differing):
    """Texts that differ for groups with these first runs and settings: the settings that tell them
    apart, the same ones for each group, or else the names or the paths of the runs. A density that
    is not used is left out unless nothing else differs."""
    every = ["sparsifier", *(key for key in differing if key != "sparsifier")]
    used = telling(range(len(firsts)), firsts, every)
    keys = [key for key in every if key in used]
    for without in (("density",), ()):
        names = [", ".join(filter(None, [
            part(key, values) for key in keys
            if key not in without or values.get("sparsifier") not in WITHOUT_DENSITY]))
                 for values in firsts]
        if len(set(names)) == len(names) and all(names) and max(map(len, names)) <= LONGEST:
            return names
    names = [run.name for run in runs]
    return names if len(set(names)) == len(names) else [str(run.folder) for run in runs]


def telling(chosen, firsts, keys):
    """The first keys that tell the chosen groups apart, and `sparsifier`."""
    for i, key in enumerate(keys):
        classes = {}
        for number in chosen:
            classes.setdefault(part(key, firsts[number]), []).append(number)
        if key != "seed" and len(classes) > 1:
            return {"sparsifier", key}.union(*(telling(members, firsts, keys[i + 1:])
                                               for members in classes.values()))
    return {"sparsifier"}


def part(key, values):
    """A setting in a label, with its name where the value does not speak for itself."""
    if key not in values:
        return ""
    plain = key in ("sparsifier", "model", "dataset", "precision")
    return text(values[key]) if plain else f"{key.replace('_', ' ')} {text(values[key])}"
