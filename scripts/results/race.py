#!/usr/bin/env python3
"""Races methods over slow links, by the seconds of training until an accuracy is reached.

    race.py run              trains what is missing, asks advise, writes tables and figures
    race.py show             writes and prints the tables of the runs that exist
    race.py draw FILE.png    draws a few methods on one link
    race.py accuracy FILE    writes the final accuracies without a link as a table for advise
    race.py keep --to FOLDER keeps finished runs in a few files

A method is a sparsifier or a selector of `train --list`, or a variant in
configs/race/variants.json. Runs lie in OUTPUT_DIR/MODEL/LINK/METHOD-sSEED, tables and figures in
OUTPUT_DIR/tables. docs/race.md describes how to read them.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from runs import ProgramFailed, kept, output
from runs.folder import read_json
from runs.tables import as_csv
from repro import BIN, ROOT, ReproError, comparable, estimate, nearest, programs, script
from repro.race import advice, links, methods
from repro.race import ranking, readings, rows, tables
from repro.tables import write as write_table

LINKS = ("100Mbit,1ms", "1Gbit,0.4ms", links.NONE)


def options():
    parser = script.Parser(description=__doc__)
    actions = parser.add_subparsers(dest="action", metavar="run|show|draw|accuracy|keep",
                                    required=True)
    run = actions.add_parser("run", help="train what is missing, write tables and figures")
    run.add_argument("--methods", metavar="A,B", help="default: every one that the program knows")
    run.add_argument("--link", action="append", metavar="RATE,LATENCY|none",
                     help=f"may be repeated (default: {'; '.join(LINKS)})")
    run.add_argument("--clock", default=readings.MEASURED, metavar="measured|iterations",
                     help="measured: train on every link. iterations: train without a link, and "
                          "measure the seconds of an iteration on each link in short runs")
    run.add_argument("--no-training", action="store_true",
                     help="with --clock iterations: only the short runs")
    run.add_argument("--again", action="store_true",
                     help="also run again what is finished, but whose seconds are left out")
    run.add_argument("--model", default="", help="default: that of the recipe")
    run.add_argument("--epochs", type=int, help="default: those of the recipe")
    run.add_argument("--ranks", type=int, default=4, help="default: 4")
    run.add_argument("--config", type=Path, default=ROOT / "configs" / "resnet20-cifar10.json",
                     help="the recipe of all methods")
    run.add_argument("--bn-stats", default="recompute", metavar="VALUE",
                     help="of train, for validation (default: recompute; the kept runs: average)")
    run.add_argument("--variants", type=Path, default=ROOT / "configs" / "race" / "variants.json",
                     help="methods with options of their own")
    script.add_options(run, Path("runs") / "race", "default: 1")
    show = actions.add_parser("show", help="write and print the tables of the runs that exist")
    show.add_argument("-b", "--bin", type=Path, default=BIN,
                      help="folder of advise, for questions without a kept answer")
    drawing = actions.add_parser("draw", help="draw a few methods on one link")
    drawing.add_argument("file", type=Path, metavar="FILE.png")
    drawing.add_argument("--link", required=True, metavar="RATE,LATENCY|none")
    drawing.add_argument("--methods", required=True, metavar="A,B")
    of_advise = actions.add_parser("accuracy", help="write the table of accuracies for advise")
    of_advise.add_argument("file", type=Path, metavar="FILE.csv")
    keeping = actions.add_parser("keep", help="keep finished runs in a few files")
    script.add_keep_options(keeping)
    keeping.add_argument("--output-dir", type=Path, default=Path("runs") / "race")
    for one in (show, drawing, of_advise):
        one.add_argument("--output-dir", type=Path, default=Path("runs") / "race")
        one.add_argument("--model", default="", help="default: all that have runs")
    for one in (run, show):
        one.add_argument("--tables", type=Path,
                         help="folder of tables and figures (default: OUTPUT_DIR/tables)")
    for one in (run, show, drawing):
        one.add_argument("--target", type=float, default=0.8, help="top-1 (default: 0.8)")
    return parser.parse_args()


def settings_of(given):
    """The parsed options of `run` with absolute paths; checks them."""
    if given.clock not in (readings.MEASURED, readings.ITERATIONS):
        raise ReproError(f"--clock is {given.clock}; expected measured or iterations")
    if given.no_training and given.clock != readings.ITERATIONS:
        raise ReproError("--no-training needs --clock iterations")
    for name in ("ranks", "epochs"):
        if getattr(given, name) is not None and getattr(given, name) < 1:
            raise ReproError(f"--{name} is {getattr(given, name)}; expected at least 1")
    given.link = list(dict.fromkeys(given.link or LINKS))
    for link in given.link:
        links.parse(link)
    given.config = given.config.resolve()
    recipe = read_json(given.config)
    given = script.resolve(given, "1")
    script.need(["train"], given)
    given.results = given.output / (given.model or recipe.get("model", "resnet20"))
    return given


def start(given):
    settings = settings_of(given)
    found, left_out = methods.all_of(methods.known_by(settings.bin / "train"), settings.variants)
    wanted = methods.chosen(settings.methods, found, left_out)
    for name, why in ({} if settings.methods else left_out).items():
        print(f"{name} is left out: {why}")
    stages, results = rows.plan(wanted, settings)
    every = script.checked(results)
    if settings.again:
        run_again(every, settings)
    for each in results.values():
        if missing := programs.missing_data(each, settings):
            raise ReproError(missing)
    if settings.dry_run:
        print(estimate.report(stages, results, settings))
        return 0
    check_commands(every, settings)
    failures = script.run_missing(stages, results, settings, lambda name: None)
    show(settings, [settings.results])
    return 1 if failures else 0


def run_again(results, settings):
    """Marks the results whose seconds are left out, where this machine is that of the others."""
    here, folders = comparable.machine_text(settings.machine), set()
    for link, heat in readings.race(settings.results).items():
        order = ranking.Ranking(heat, settings.target)
        machines = {one.machine for entry in order.compared for one in entry.speeds}
        if order.left_out and machines and here not in machines:
            print(f"{links.title(link)}: nothing runs again: this machine is {here}, that of the "
                  f"runs that are compared is {', '.join(machines)}")
            continue
        folders |= {folder for entry in order.entries if entry.method in order.left_out
                    for folder in entry.folders}
    for result in results:
        result.again = result.folder in folders


def check_commands(results, settings):
    """Tries the command of each method that is not finished, before hours of training."""
    tried = set()
    for result in results:
        if result.row.label not in tried and not result.finished:
            tried.add(result.row.label)
            estimate.dry_run(tuple(programs.command(result.row, settings)))


def sections_of(folder, settings):
    """[(link, ranking, what advise says, why it says nothing)] of the folder of a model."""
    sections = []
    for link, heat in readings.race(folder).items():
        advised, failed = None, ""
        if heat.entries:
            try:
                advised = advice.for_link(heat.folder, link, heat.entries, settings)
            except ProgramFailed as error:
                failed = f"{error}"
        sections.append((link, ranking.Ranking(heat, settings.target), advised, failed))
    return sections


def show(settings, folders):
    """Writes and prints the tables of these folders; draws their figures."""
    figures = script.drawing("repro.race.figures")
    out = settings.tables or settings.output / "tables"
    for folder in folders:
        sections = sections_of(folder, settings)
        text = tables.document(folder.name, sections, settings.target)
        write_table(out, folder.name, text, tables.rows_of(folder.name, sections))
        if figures:
            figures.save(folder.name, sections, out / folder.name)
        print(text)
    print(f"tables and figures: {out}")


def folders_of(given):
    """The folders of models with runs."""
    given.output = given.output_dir.resolve()
    models = {path.relative_to(given.output).parts[0] for path in kept.results(given.output)}
    found = models & {given.model} if given.model else models
    if not found:
        raise ReproError(f"no runs {f'of {given.model} ' if given.model else ''}in {given.output}")
    return [given.output / model for model in sorted(found)]


def draw(given):
    """Draws some methods of one model on one link."""
    try:
        from repro.race import figures  # needs matplotlib
    except ImportError:
        raise ReproError("draw needs matplotlib") from None
    if len(folders := folders_of(given)) > 1:
        raise ReproError(f"--model is one of {', '.join(one.name for one in folders)}")
    if given.file.suffix != ".png":
        raise ReproError(f"{given.file}: expected FILE.png, beside which FILE.svg is written")
    if given.link not in (race := readings.race(folders[0])):
        raise ReproError(f"no runs on {given.link}{nearest(given.link, race)}")
    found = {entry.method: entry
             for entry in ranking.Ranking(race[given.link], given.target).compared if entry.curves}
    chosen = given.methods.split(",")
    for name in chosen:
        if name not in found:
            raise ReproError(f"no comparable runs of {name} on {given.link}{nearest(name, found)}")
    figures.save_chosen(given.link, [found[name] for name in chosen], given.target,
                        given.file.with_suffix(""))
    print(given.file)
    return 0


def write_accuracy(given):
    lines, left_out = [], []
    for folder in folders_of(given):
        if links.NONE not in (race := readings.race(folder)):
            left_out.append(f"{folder.name}: no training without a link")
            continue
        more, others = advice.accuracies_of(race[links.NONE].entries)
        lines += more
        left_out += others
    for text in left_out:
        print(f"left out: {text}")
    if not lines:
        raise ReproError(f"no whole training without a link in {given.output}")
    output.write(given.file, as_csv([advice.ACCURACIES, *lines]).encode(), "CSV")
    print(f"{len(lines)} rows: {given.file}")
    return 0


def run():
    given = options()
    if given.action == "keep":
        return script.keep(given)
    if given.action != "accuracy" and not 0 < given.target <= 1:
        raise ReproError(f"--target is {given.target:g}; expected a fraction such as 0.8")
    if given.action == "run":
        return start(given)
    if given.action == "accuracy":
        return write_accuracy(given)
    if given.action == "draw":
        return draw(given)
    given.bin = given.bin.resolve()
    show(given, folders_of(given))
    return 0


if __name__ == "__main__":
    sys.exit(script.main(run))
