"""Copies the small files of finished results, to keep them with the figures drawn from them.

A result that was kept counts as finished: `--output-dir FOLDER` shows it, and never runs it again.
"""

import json

from . import ReproError, runs

FILES = ("metrics.csv", "distributions.csv", "histograms.csv", "residual_histograms.csv",
         "summary.json", "records.json", "steps.csv")
SMALL = 2**17  # bytes; the steps of a whole training are more
# of the JSON files, paths and times of the machine that ran it
OF_ONE_MACHINE = {"config.json": ("data_dir", "output_dir"), "repro.json": ("command", "starts")}


def copies(folder):
    """The small files of a result, by name, as they are kept."""
    files = {name: (folder / name).read_text() for name in FILES
             if (folder / name).exists() and (folder / name).stat().st_size < SMALL}
    for name, private in OF_ONE_MACHINE.items():
        if (folder / name).exists():
            content = json.loads((folder / name).read_text())
            files[name] = runs.json_text({key: value for key, value in content.items()
                                          if key not in private})
    return files


def keep_file(text, path):
    """Writes a file that is not there yet, whole or not at all. Returns whether it has `text`."""
    if path.exists():
        return path.read_text() == text
    path.parent.mkdir(parents=True, exist_ok=True)
    runs.write_text(path, text)
    return True


def not_copied(name, place):
    return f"{name}: not copied, {place} has another result; remove it first"


def keep(output, target):
    """Copies every finished result below `output` to the same place below `target`.

    A result that is kept there already is never replaced by another. Returns a line for each
    result: its folder, relative to `output`, and whether another one is kept.
    """
    if not output.is_dir():
        raise ReproError(f"--output-dir {output} does not exist")
    lines = []
    for notes in sorted(output.rglob("repro.json")):
        folder = notes.parent
        seeded = (folder / "metrics.csv").exists()
        if seeded and not runs.trained(folder):
            continue
        if not seeded and not (folder / "records.json").exists():
            continue
        if seeded:
            runs.records_of_training(folder)
        name = folder.relative_to(output)
        place = target / name
        files = copies(folder)
        if (place / "repro.json").exists():
            same = files == copies(place)
        else:  # up to the first that differs; repro.json, which marks a result, comes last
            same = all(keep_file(text, place / file) for file, text in files.items())
        lines.append(str(name) if same else not_copied(name, place))
    return lines
