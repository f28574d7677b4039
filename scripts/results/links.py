#!/usr/bin/env python3
"""Measures exchanges on slow links beside the cost model, and prints Markdown tables.

usage: links.py [-b BUILD/bin] [--data-dir DIR] [--keep FILE] TABLE...

    exchanges    seconds of an exchange of 25.6 M parameters, 1 Gbit/s, P = 4 on the real clock,
                 P = 4, 8, 16 on a simulated one; and what additions take on this machine
    broadcast    LP, BE and MST, 100 MB, 1 and 10 Gbit/s, simulated clock, P = 2 and 8
    blocks       LP's broadcast over its block size, P = 8, beside the formula
    namespaces   the same exchanges over real TCP in four network namespaces, and LP beside
                 MPI's own broadcast (root; scripts/bench/netns_bench.sh says what it needs)
    training     seconds an iteration of every algorithm, trained on emulated links, beside what
                 `advise` predicts (half an hour; wants a machine that does nothing else), on the
                 CIFAR-10 in --data-dir or on generated images
    card         seconds an iteration of sixteen workers on one GPU, on emulated links, and the
                 ratios that the papers name, beside theirs
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARAMETERS = 25_600_000


def run(*command):
    """Runs a command; its mistakes are ours."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def table(head, rows):
    """Prints a Markdown table."""
    for cells in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(str(cell) for cell in cells) + " |")
    print(flush=True)


def read_csv(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Bench:
    """`bench comm`, whose CSV comes back as a list of rows."""

    def __init__(self, binaries):
        self.program = binaries / "bench"
        self.additions = ""  # what the last call told of gamma and merge

    def __call__(self, *options, before=()):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.csv"
            told = run(*before, self.program, "comm", "--csv", path, *options)
            self.additions = next(line for line in told.splitlines() if "additions here" in line)
            return read_csv(path)

    def emulated(self, ranks, link, size, *options):
        return self("--workers", ranks, "--link", link, "-b", size, "-e", size, "-w", 2, *options)

    def simulated(self, ranks, link, size, *options):
        return self.emulated(ranks, link, size, "--simulated-clock", "-n", 1, *options)


def ratio(row):
    return float(row["seconds"]) / float(row["model_seconds"])


def exchanges(bench):
    """Line by line: measured, predicted, and the ratios the papers speak of."""
    rows, seconds = [], {}
    kinds = [("allreduce", "ring"), ("allreduce", "lp"), ("sparse", "allgather"),
             ("sparse", "gtopk"), ("sparse", "oktopk")]
    for ranks, clock in ((4, "real"), (4, "simulated"), (8, "simulated"), (16, "simulated")):
        measure = bench.simulated if clock == "simulated" else bench.emulated
        for collective, algorithm in kinds:
            if clock == "real" and collective == "sparse":
                continue  # clearing a sum of 100 MB takes longer than the wire
            row = measure(ranks, "1Gbit,0.4ms", 4 * PARAMETERS, "--collective", collective,
                          "--implementation", algorithm)[0]
            seconds[ranks, algorithm] = float(row["seconds"])
            rows.append((ranks, clock, f"{collective} {algorithm}",
                         f"{1e3 * float(row['seconds']):.2f}",
                         f"{1e3 * float(row['model_seconds']):.2f}", f"{ratio(row):.3f}"))
    print(f"{PARAMETERS} parameters, density 0.001, 1 Gbit/s, 0.4 ms; {bench.additions}\n")
    table(("P", "clock", "exchange", "ms", "model ms", "ratio"), rows)
    table(("P", "dense ring : topk", "topk : gtopk", "dense ring : gtopk"),
          [(p, f"{seconds[p, 'ring'] / seconds[p, 'allgather']:.0f}",
            f"{seconds[p, 'allgather'] / seconds[p, 'gtopk']:.2f}",
            f"{seconds[p, 'ring'] / seconds[p, 'gtopk']:.0f}") for p in (4, 8, 16)])


def broadcast(bench):
    rows = []
    for link in ("1Gbit,0.4ms", "10Gbit,0.4ms"):
        two = {row["algorithm"]: float(row["seconds"]) for row in
               bench.simulated(2, link, 100_000_000, "--collective", "broadcast")}
        eight = {row["algorithm"]: float(row["seconds"]) for row in
                 bench.simulated(8, link, 100_000_000, "--collective", "broadcast")}
        rows += [(link, name, f"{two[name]:.4f}", f"{eight[name]:.4f}",
                  f"{eight[name] / two['linear_pipeline']:.3f}",
                  f"{eight[name] / eight['linear_pipeline']:.2f}")
                 for name in ("linear_pipeline", "recursive_halving", "binomial_tree")]
    print("Broadcast of 100 MB, simulated clock\n")
    table(("link", "by", "P = 2, s", "P = 8, s", "over lp at P = 2", "over lp at P = 8"), rows)


def blocks(bench):
    """The U: blocks around the formula's, which `auto` takes."""
    alpha, beta, ranks, elements = 4e-4, 3.2e-8, 8, 25_000_000
    best = (elements * alpha / ((ranks - 2) * beta)) ** 0.5
    rows = []
    for factor in (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16):
        row = bench.simulated(ranks, "1Gbit,0.4ms", 4 * elements, "--collective", "broadcast",
                              "--implementation", "lp",
                              "--set", f"lp.block={round(best * factor)}")[0]
        rows.append((round(best * factor), f"{factor:g}", f"{float(row['seconds']):.4f}"))
    print(f"LP broadcast of 100 MB to 7 others, 1 Gbit/s, 0.4 ms; by the formula {best:.0f}\n")
    table(("block, elements", "of the formula's", "seconds"), rows)


def namespaces(bench):
    nodes = [ROOT / "scripts/bench/netns_bench.sh", "-n", 4, "-r", "1gbit"]
    # of 1514 bytes on the wire 1448 are payload; the kernel's latency is about this
    link = f"{1000 * 1448 / 1514:.1f}Mbit,0.05ms"
    rows = []
    # Long messages beside the burst that tc lets pass after a pause. Those of a sparse exchange are
    # no longer than 256 kB, and a tree pauses: they get half the burst, the least at which tc still
    # keeps to the rate (ring shows it). Short vectors, so that zeroing and summing takes little.
    for collective, algorithm, size, calls, burst in (
            ("allreduce", "ring", "64M", 2, "256kb"), ("allreduce", "lp", "64M", 2, "256kb"),
            ("allreduce", "be", "64M", 2, "256kb"), ("allreduce", "mst", "64M", 2, "256kb"),
            ("allreduce", "ring", "64M", 2, "128kb"), ("sparse", "allgather", "1M", 100, "128kb"),
            ("sparse", "gtopk", "1M", 100, "128kb")):
        what = ("-b", size, "-e", size, "--density", 0.1, "--collective", collective,
                "--implementation", algorithm, "-w", 1)
        real = bench(*what, "-n", 5, "-c", calls, before=[*nodes, "-b", burst])[0]
        model = bench(*what, "-n", 1, "--workers", 4, "--link", link, "--simulated-clock")[0]
        rows.append((f"{collective} {algorithm}", real["wire_bytes"], burst,
                     f"{1e3 * float(real['seconds']):.1f}",
                     f"{1e3 * float(model['seconds']):.1f}",
                     f"{float(real['seconds']) / float(model['seconds']):.2f}"))
    print(f"Four network namespaces at 1 Gbit/s, TCP, beside simulated links of {link}\n")
    table(("exchange", "bytes on the wire", "burst", "ms", "simulated ms", "ratio"), rows)

    native = {}
    for row in bench("-b", "1M", "-e", "64M", "-f", 8, "-n", 5, "-w", 1, "--collective", "all",
                     before=nodes):
        native.setdefault((row["collective"], row["bytes"]), {})[row["algorithm"]] = row["seconds"]
    names = ("linear_pipeline", "recursive_halving", "binomial_tree", "ring", "vendor")
    table(("collective", "bytes", *(f"{name}, ms" for name in names), "vendor : linear_pipeline"),
          [(what, size, *(f"{1e3 * float(by[name]):.1f}" if name in by else "" for name in names),
            f"{float(by['vendor']) / float(by['linear_pipeline']):.2f}")
           for (what, size), by in native.items() if "vendor" in by])


def one_training(options, model, ranks, link, algorithm, collective, steps=15, more=()):
    """Median seconds of an iteration, and of the exchange in it once all ranks have met."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--sparsifier", algorithm] + (["--allreduce", collective] if collective else [])
        if algorithm == "hierarchical":  # the nodes that advise reckons with: links inside are free
            flags += ["--ranks-per-node", 4]
        flags += (["--dataset", "cifar10", "--data-dir", options.data_dir] if options.data_dir
                  else ["--dataset", "shapes"])
        run(options.binaries / "train", "--model", model, "--workers", ranks, "--link", link,
            "--batch-size", 32, "--density", 0.001, "--density-warmup", "", "--epochs", 1,
            "--max-steps", steps, "--eval-every", 1000, "--output-dir", folder, "--name", "run",
            "--measure-wait", *flags, *more)
        rows = read_csv(Path(folder) / "run" / "steps.csv")[3:]
        return (statistics.median(float(row["seconds"]) for row in rows),
                statistics.median(float(row["sec_exchange"]) - float(row["sec_wait"])
                                  for row in rows))


def training(options):
    rows_in_all, iterations, exchanged = 0, 0, 0
    for model in ("resnet20", "vgg16"):
        for ranks, link in ((4, "1Gbit,0.4ms"), (8, "1Gbit,0.4ms"), (4, "10Gbit,0.4ms")):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "advice.csv"
                run(options.binaries / "advise", "--model", model, "--workers", ranks, "--link",
                    link, "--ranks", ranks, "--batch-size", 32, "--steps", 15, "--csv", path)
                advice = read_csv(path)
            rows = []
            for known in advice:
                measured, exchange = one_training(options, model, ranks, link,
                                                  known["sparsifier"], known["collective"])
                predicted = float(known["iteration_seconds"])
                wire = float(known["exchange_seconds"])
                rows_in_all += 1
                iterations += abs(measured / predicted - 1) > 0.2
                exchanged += abs(exchange / wire - 1) > 0.3
                rows.append((known["sparsifier"], known["collective"], f"{measured:.4f}",
                             f"{predicted:.4f}", f"{measured / predicted:.2f}",
                             f"{1e3 * exchange:.2f}", f"{1e3 * wire:.2f}",
                             f"{exchange / wire:.2f}"))
            print(f"{model}, P = {ranks}, {link}, 32 images a rank\n")
            table(("sparsifier", "by", "s an iteration", "advised", "ratio", "exchange ms",
                   "advised", "ratio"), rows)
    print(f"of {rows_in_all} rows: iteration more than 20 % from the advice in {iterations}, "
          f"exchange more than 30 % in {exchanged}")


# what the papers say of dense : it, topk : it, dgc : it
PAPERS = {"gaussiank": "up to 2.33, 3.63, 1.51 (16 GPUs, 10 Gbit/s)",
          "gtopk": "2.7-12, 1.1-1.7, - (scaling efficiency, 32 GPUs, 1 Gbit/s)"}


def card(options):
    """Sixteen workers on one GPU, beside what the papers' ratios compare."""
    ranks = 16
    algorithms = ("dense", "bsp", "topk", "gaussiank", "gtopk", "dgc", "randk", "trimmed",
                  "redsync", "oktopk", "hierarchical")
    missing = False
    known = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
    for model in ("resnet20", "vgg16"):
        for link in ("1Gbit,0.4ms", "10Gbit,0.4ms"):
            taken = {}
            for name in algorithms:
                key = f"{model} {link} {name}"
                if key not in known:
                    try:
                        known[key] = one_training(options, model, ranks, link, name, None, steps=20,
                                                  more=("--device", "cuda"))
                    except SystemExit as error:
                        print(error, file=sys.stderr)
                        missing = True
                        continue
                    if options.keep:
                        options.keep.write_text(json.dumps(known, indent=1) + "\n")
                taken[name] = known[key]
            rows = [(name, f"{whole:.4f}", f"{1e3 * exchange:.2f}",
                     *(f"{taken[other][0] / whole:.2f}" if other in taken else "-"
                       for other in ("dense", "topk", "dgc")),
                     PAPERS.get(name, "-"))
                    for name, (whole, exchange) in taken.items()]
            print(f"{model}, {ranks} workers on one GPU, {link}, 32 images a rank\n")
            table(("sparsifier", "s an iteration", "exchange ms", "dense : it", "topk : it",
                   "dgc : it", "papers"), rows)
    if missing:
        sys.exit("error: some are missing; what was said of them stands above")


def main():
    tables = {"exchanges": exchanges, "broadcast": broadcast, "blocks": blocks,
              "namespaces": namespaces, "training": training, "card": card}
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-b", "--binaries", type=Path, default=ROOT / "build" / "bin")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--keep", type=Path, metavar="FILE",
                        help="what `card` measures goes there, and is not measured again")
    parser.add_argument("tables", nargs="+", choices=list(tables), metavar="TABLE")
    options = parser.parse_args()
    for name in options.tables:
        tables[name](options if name in ("training", "card") else Bench(options.binaries))


if __name__ == "__main__":
    main()
