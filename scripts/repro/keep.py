"""Copies the small files of finished results, to keep them with the figures drawn from them.

A result that was kept counts as finished: `--output-dir FOLDER` shows it, and never runs it again.
"""

import json
import shutil

from . import ReproError, runs

FILES = ("metrics.csv", "distributions.csv", "histograms.csv", "residual_histograms.csv",
         "summary.json", "records.json", "steps.csv")
SMALL = 2**17  # bytes; the steps of a whole training are more
# of the JSON files, paths and times of the machine that ran it
OF_ONE_MACHINE = {"repro.json": ("command", "starts"), "config.json": ("data_dir", "output_dir")}


def keep(output, target):
    """Copies every finished result below `output` to the same place below `target`.

    Returns the folders, relative to `output`.
    """
    if not output.is_dir():
        raise ReproError(f"--output-dir {output} does not exist")
    kept = []
    for notes in sorted(output.rglob("repro.json")):
        folder = notes.parent
        seeded = (folder / "metrics.csv").exists()
        if seeded and not runs.trained(folder):
            continue
        if not seeded and not (folder / "records.json").exists():
            continue
        if seeded:
            runs.records_of_training(folder)
        place = target / folder.relative_to(output)
        place.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            if (folder / name).exists() and (folder / name).stat().st_size < SMALL:
                shutil.copyfile(folder / name, place / name)
        for name, private in OF_ONE_MACHINE.items():
            if (folder / name).exists():
                content = json.loads((folder / name).read_text())
                runs.write(place / name, {key: value for key, value in content.items()
                                          if key not in private})
        kept.append(folder.relative_to(output))
    return kept
