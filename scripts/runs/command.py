"""A command that starts `train`: its options, its run folders, and how it continues a run."""

import glob
import json
import re
from pathlib import Path

from . import ProgramFailed, UserError, folder, told_by


class Command:
    """The words of a launcher and of `train`. UserError when they do not name the run."""

    def __init__(self, words):
        self.words = list(words)
        program = next((i for i, word in enumerate(words) if Path(word).name == "train"), None)
        if program is None:
            raise UserError("no word of the command is train, or a path that ends in it")
        self.launcher, self.options = self.words[:program + 1], self.words[program + 1:]
        resumed = self.flag("resume")
        self.resumed = resumed if resumed != "auto" else None  # a run folder or checkpoint
        self.file = self.read_file()
        name = self.flag("name") or self.option("name")
        run = run_of(self.resumed).resolve().name if self.resumed else ""
        own = not self.flag("config") or re.fullmatch(re.escape(name or run) + r"(-s\d+)?", run)
        name = "" if run and own and not self.flag("name") else name  # another one makes a branch
        if not name and self.sweeps:
            name = Path(self.flag("config")).stem
        if not name and not self.resumed:
            raise UserError("the command has no --name, by which a retry finds its run")
        self.folder = (Path(self.option("output-dir") or "runs") / name if name
                       else run_of(self.resumed))

    def flag(self, name):
        """The value of an option among the words; None if it is not given."""
        found = None  # the last one counts
        for word, following in zip(self.options, [*self.options[1:], None]):
            flag, equals, value = word.partition("=")
            if flag == f"--{name}":
                found = value if equals else following
        return found

    def read_file(self):
        """The options of the file of --config, or else of the run that is continued."""
        if given := self.flag("config"):
            return folder.read_json(Path(given))
        return folder.read_json(run_of(self.resumed) / "config.json") if self.resumed else {}

    def option(self, name):
        """The value of an option by words or file; None if it is in neither."""
        value = self.flag(name)
        return self.file.get(name.replace("-", "_")) if value is None else value

    def option_or_default(self, name):
        """The same, or the default that `train` names."""
        if (value := self.option(name)) is not None:
            return value
        start = 2 if self.launcher[-2:-1] and Path(self.launcher[-2]).name == "thinwire" else 1
        for retries in (2, 1, 0):  # what kills ranks may kill this, too
            try:
                described = json.loads(told_by(*self.launcher[-start:], "--describe"))
                break
            except ProgramFailed:
                if not retries:
                    raise
        return next(o["default"] for o in described["options"] if o["name"] == name)

    @property
    def sweeps(self):
        return bool(self.file.get("sweep"))

    def folders(self):
        """The run folders that exist: one, or one for each seed and combination of a sweep."""
        name, seeds = glob.escape(self.folder.name), self.option("seeds") or []
        seeds = seeds.split(",") if isinstance(seeds, str) else seeds
        names = ([f"{name}-{key}-*" for key in self.file["sweep"]] if self.sweeps else
                 [f"{name}-s{seed}" for seed in seeds] or [name])
        return sorted({path for one in names for path in self.folder.parent.glob(one)
                       if path.is_dir()})

    @property
    def is_finished(self):
        """Whether each run of the command reached its end."""
        return {folder.Run(path).state for path in self.folders()} == {folder.FINISHED}

    def checkpoints(self):
        """The checkpoints of the run, the newest last. Their files may be damaged."""
        return sorted((path for run in self.folders() for path in run.glob("checkpoints/step-*")),
                      key=lambda path: path.name)

    def start(self, more=()):
        """The words that begin the run, or continue it from its newest checkpoint. `more` are
        options that take the place of those given."""
        more = dict(more)
        if not self.resumed and not self.sweeps:
            more.setdefault("resume", "auto")
        elif self.resumed and any(self.folder.glob("checkpoints/step-*")):
            more |= {"resume": str(self.folder), "name": None}
        return [*self.launcher, *without(self.options, more),
                *(word for name, value in more.items() if value is not None
                  for word in (f"--{name}", str(value)))]


def run_of(path):
    """The run folder of a path that --resume takes."""
    found = next((place for place in (Path(path), *Path(path).absolute().parents[:2])
                  if (place / "config.json").exists()), None)
    if not found:
        raise UserError(f"--resume: {path} is in no run folder")
    return found


def without(words, names):
    """Options without those of these names, which take a value."""
    left, skip = [], False
    for word in words:
        flag, equals, _ = word.partition("=")
        if skip:
            skip = False
        elif flag.startswith("--") and flag[2:] in names:
            skip = not equals
        else:
            left.append(word)
    return left
