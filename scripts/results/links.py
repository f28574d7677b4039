#!/usr/bin/env python3
"""Measures exchanges on slow links, compares them with the cost model, prints Markdown tables.

usage: links.py [-b BUILD/bin] [--data-dir DIR] [--keep FILE] TABLE...

    exchanges    time of an exchange of 25.6 M parameters on 1 Gbit/s, P = 4 on the real clock and
                 P = 4, 8, 16 on a simulated clock; time of additions on this machine
    broadcast    linear_pipeline, recursive_halving and binomial_tree: broadcast of 100 MB on 1 and
                 10 Gbit/s, simulated clock, P = 2 and 8
    blocks       broadcast by linear_pipeline with several block sizes, P = 8, and the formula
    scale        exchanges of 64, 256 and 1,024 ranks on a simulated clock beside the cost model, on
                 1 Gbit/s, racks with a shared uplink, and the internet
    namespaces   collectives and sparse exchanges over real TCP in four network namespaces, and
                 MPI's own collectives (root; scripts/bench/netns_bench.sh lists requirements)
    training     seconds per iteration of every sparsifier, trained on emulated links, and the
                 prediction of `advise` (half an hour on an otherwise idle machine); on the
                 CIFAR-10 in --data-dir or on generated images
    card         seconds per iteration of sixteen workers on one GPU with emulated links, and
                 ratios between sparsifiers, ours and the papers'
"""

import json
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from repro import BIN, ROOT
from repro.programs import of_link, read_csv
from runs import Fault, ProgramFailed, UserError, build, script, tables, told_by
from runs.options import Parser

PARAMETERS = 25_600_000


def table(head, rows):
    """Prints a Markdown table."""
    print(tables.markdown(head, [list(map(str, row)) for row in rows]) + "\n", flush=True)


class Bench:
    """Runs `bench comm` and returns the rows of its CSV file."""

    def __init__(self, binaries):
        self.program = binaries / "bench"
        self.additions = ""  # the last call's line on gamma and merge

    def __call__(self, *options, before=()):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.csv"
            told = told_by(*before, self.program, "comm", "--csv", path, *options)
            self.additions = next(line for line in told.splitlines() if "additions here" in line)
            return read_csv(path)

    def emulated(self, ranks, link, size, *options):
        return self("--workers", ranks, "--link", link, "-b", size, "-e", size, "-w", 2, *options)

    def simulated(self, ranks, link, size, *options):
        return self.emulated(ranks, link, size, "--simulated-clock", "-n", 1, *options)


def exchanges(bench):
    """Measured and predicted times, and the ratios that the papers compare."""
    rows, seconds = [], {}
    kinds = [("allreduce", "ring"), ("allreduce", "linear_pipeline"), ("sparse", "allgather"),
             ("sparse", "gtopk"), ("sparse", "oktopk")]
    for ranks, clock in ((4, "real"), (4, "simulated"), (8, "simulated"), (16, "simulated")):
        measure = bench.simulated if clock == "simulated" else bench.emulated
        for collective, algorithm in kinds:
            if clock == "real" and collective == "sparse":
                continue  # clearing a sum of 100 MB takes longer than the messages
            # a dense collective also with messages in bf16
            for row in measure(ranks, "1Gbit,0.4ms", 4 * PARAMETERS, "--collective", collective,
                               "--implementation", algorithm):
                took, model = row["seconds"], row["model_seconds"]
                seconds[ranks, row["algorithm"]] = took
                rows.append((ranks, clock, f"{collective} {row['algorithm']}", f"{1e3 * took:.2f}",
                             f"{1e3 * model:.2f}", f"{took / model:.3f}"))
    print(f"{PARAMETERS} parameters, density 0.001, 1 Gbit/s, 0.4 ms; {bench.additions}\n")
    table(("P", "clock", "exchange", "ms", "model ms", "ratio"), rows)
    pairs = (("ring", "allgather", ".0f"), ("ring bf16", "allgather", ".0f"),
             ("allgather", "gtopk", ".2f"), ("ring", "gtopk", ".0f"), ("ring bf16", "gtopk", ".0f"))
    table(("P", "dense ring : topk", "dense ring bf16 : topk", "topk : gtopk", "dense ring : gtopk",
           "dense ring bf16 : gtopk"),
          [(p, *(format(seconds[p, one] / seconds[p, other], form) for one, other, form in pairs))
           for p in (4, 8, 16)])


def broadcast(bench):
    rows = []
    for link in ("1Gbit,0.4ms", "10Gbit,0.4ms"):
        two, eight = ({row["algorithm"]: row["seconds"] for row in bench.simulated(
            ranks, link, 100_000_000, "--collective", "broadcast")} for ranks in (2, 8))
        rows += [(link, name, f"{two[name]:.4f}", f"{eight[name]:.4f}",
                  f"{eight[name] / two['linear_pipeline']:.3f}",
                  f"{eight[name] / eight['linear_pipeline']:.2f}")
                 for name in ("linear_pipeline", "recursive_halving", "binomial_tree")]
    print("Broadcast of 100 MB, simulated clock; time at P = 8 / time of linear_pipeline\n")
    table(("link", "by", "P = 2, s", "P = 8, s", "ratio, P = 2", "ratio, P = 8"), rows)


def blocks(bench):
    """Times with block sizes around that of the formula, which `auto` takes."""
    alpha, beta, ranks, elements = 4e-4, 3.2e-8, 8, 25_000_000
    best = (elements * alpha / ((ranks - 2) * beta)) ** 0.5
    rows = []
    for factor in (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16):
        row = bench.simulated(ranks, "1Gbit,0.4ms", 4 * elements, "--collective", "broadcast",
                              "--implementation", "linear_pipeline", "--set",
                              f"linear_pipeline.block={round(best * factor)}")[0]
        rows.append((round(best * factor), f"{factor:g}", f"{row['seconds']:.4f}"))
    print("Broadcast of 100 MB by linear_pipeline, P = 8, 1 Gbit/s, 0.4 ms; "
          f"block of the formula: {best:.0f}\n")
    table(("block, elements", "block / formula", "seconds"), rows)


RACKS_OF = 32  # nodes; their uplink has the rate of ten of them


def scale(bench):
    """Seconds at up to 1,024 ranks, which are threads of one process, and what they cost here."""
    size, density = "256K", 0.0025
    racks = [{"first": first, "last": first + RACKS_OF - 1, "link": "10Gbit,0.01ms"}
             for first in range(0, 1024, RACKS_OF)]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "racks.json"
        tree.write_text(json.dumps({"link": "1Gbit,0.4ms", "racks": racks}), encoding="utf-8")
        links = {"1 Gbit/s, 0.4 ms": "1Gbit,0.4ms", "racks": tree,
                 "100 Mbit/s, 50 ms": "100Mbit,50ms"}
        for name, link in links.items():
            rows = []
            for ranks in (64, 256, 1024):
                dense = ["recursive_halving", "binomial_tree", "linear_pipeline", "ring"]
                sparse = ["allgather", "exact", "gtopk", "scalecom"]
                sparse += ["oktopk"] * (ranks < 1024)  # which then takes over 24 GiB
                low_rank = ["quantized", "powersgd"]
                for collective, algorithm in [*(("allreduce", one) for one in dense),
                                              *(("sparse", one) for one in sparse),
                                              *(("low_rank", one) for one in low_rank)]:
                    began = time.monotonic()
                    row = bench("--workers", ranks, "--link", link, "-b", size, "-e", size,
                                "--simulated-clock", "-n", 1, "-w", 1, "--density", density,
                                "--collective", collective, "--implementation", algorithm,
                                "--comm-timeout", 0)[0]
                    took, model = row["seconds"], row["model_seconds"]
                    rows.append((ranks, algorithm, f"{1e3 * took:.2f}", f"{1e3 * model:.2f}",
                                 f"{took / model:.2f}", f"{time.monotonic() - began:.1f}"))
            print(f"{size} bytes a rank, density {density}, {name}\n")
            table(("P", "exchange", "simulated, ms", "model, ms", "ratio", "s to simulate"), rows)
    gigabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"at most {gigabytes:.1f} GiB of memory\n")


def namespaces(bench):
    nodes = [ROOT / "scripts/bench/netns_bench.sh", "-n", 4, "-r", "1gbit"]
    # 1448 of 1514 bytes of a frame are payload; the kernel's latency is about 0.05 ms
    link = f"{1000 * 1448 / 1514:.1f}Mbit,0.05ms"
    rows = []
    # After a pause, tc lets `burst` bytes pass at full speed, so messages must be much longer.
    # Messages of sparse exchanges have at most 256 kB, and links pause in a tree. Sparse exchanges
    # therefore run with half the burst, the smallest at which tc reaches its rate (see ring), and
    # with short vectors, so that clearing and summing them takes little time.
    for collective, algorithm, size, calls, burst in (
            ("allreduce", "ring", "64M", 2, "256kb"),
            ("allreduce", "linear_pipeline", "64M", 2, "256kb"),
            ("allreduce", "recursive_halving", "64M", 2, "256kb"),
            ("allreduce", "binomial_tree", "64M", 2, "256kb"),
            ("allreduce", "ring", "64M", 2, "128kb"), ("sparse", "allgather", "1M", 100, "128kb"),
            ("sparse", "gtopk", "1M", 100, "128kb")):
        what = ("-b", size, "-e", size, "--density", 0.1, "--collective", collective,
                "--implementation", algorithm, "-w", 1)
        real = bench(*what, "-n", 5, "-c", calls, before=[*nodes, "-b", burst])[0]
        model = bench(*what, "-n", 1, "--workers", 4, "--link", link, "--simulated-clock")[0]
        rows.append((f"{collective} {algorithm}", f"{real['wire_bytes']:.0f}", burst,
                     f"{1e3 * real['seconds']:.1f}", f"{1e3 * model['seconds']:.1f}",
                     f"{real['seconds'] / model['seconds']:.2f}"))
    print(f"Four network namespaces at 1 Gbit/s, TCP, and simulated links of {link}\n")
    table(("exchange", "bytes on the wire", "burst", "ms", "simulated ms", "ratio"), rows)

    native = {}
    for row in bench("-b", "1M", "-e", "64M", "-f", 8, "-n", 5, "-w", 1, "--collective", "all",
                     before=nodes):
        native.setdefault((row["collective"], row["bytes"]), {})[row["algorithm"]] = row["seconds"]
    names = ("linear_pipeline", "recursive_halving", "binomial_tree", "ring", "vendor")
    table(("collective", "bytes", *(f"{name}, ms" for name in names), "vendor : linear_pipeline"),
          [(what, f"{size:.0f}",
            *(f"{1e3 * by[name]:.1f}" if name in by else "" for name in names),
            f"{by['vendor'] / by['linear_pipeline']:.2f}")
           for (what, size), by in native.items() if "vendor" in by])


def flags_of(collective):
    """The flags of a dense exchange named as by `advise`, e.g. `ring bf16 overlap`."""
    name, *rest = collective.split() or [""]
    flags = ["--allreduce", name] if name else []
    for word in rest:
        flags += (["--scope", "layer", "--overlap"] if word == "overlap"
                  else ["--set", f"allreduce.values={word}"])
    return flags


def one_training(options, model, ranks, link, algorithm, collective, steps=15, more=()):
    """Median seconds of an iteration, and of its exchange after a barrier."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--sparsifier", algorithm, *flags_of(collective)]
        if algorithm == "hierarchical":  # nodes of four ranks, as advise assumes
            flags += ["--ranks-per-node", 4]
        flags += (["--dataset", "cifar10", "--data-dir", options.data_dir] if options.data_dir
                  else ["--dataset", "shapes"])
        told_by(options.binaries / "train", "--model", model, "--workers", ranks, "--link", link,
                "--batch-size", 32, "--density", 0.001, "--density-warmup", "", "--epochs", 1,
                "--max-steps", steps, "--eval-every", 1000, "--output-dir", folder, "--name", "run",
                "--measure-wait", *flags, *more)
        rows = read_csv(Path(folder) / "run" / "steps.csv")[3:]
        return (statistics.median(row["seconds"] for row in rows),
                statistics.median(row["sec_exchange"] - row["sec_wait"] for row in rows))


def training(options):
    rows_in_all, iterations, exchanged = 0, 0, 0
    for model in ("resnet20", "vgg16"):
        for ranks, link in ((4, "1Gbit,0.4ms"), (8, "1Gbit,0.4ms"), (4, "10Gbit,0.4ms")):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "advice.csv"
                told_by(options.binaries / "advise", "--model", model, "--workers", ranks, "--link",
                        link, "--ranks", ranks, "--batch-size", 32, "--rounds", 15, "--csv", path)
                advice = of_link(path)
            rows = []
            for known in advice:
                measured, exchange = one_training(options, model, ranks, link,
                                                  known["sparsifier"], known["collective"])
                predicted, wire = known["iteration_seconds"], known["exchange_seconds"]
                rows_in_all += 1
                iterations += abs(measured / predicted - 1) > 0.2
                exchanged += abs(exchange / wire - 1) > 0.3
                rows.append((known["sparsifier"], known["collective"], f"{measured:.4f}",
                             f"{predicted:.4f}", f"{measured / predicted:.2f}",
                             f"{1e3 * exchange:.2f}", f"{1e3 * wire:.2f}",
                             f"{exchange / wire:.2f}"))
            print(f"{model}, P = {ranks}, {link}, 32 images per rank\n")
            table(("sparsifier", "collective", "s per iteration", "predicted", "ratio",
                   "exchange ms", "predicted", "ratio"), rows)
    print(f"of {rows_in_all} rows, {iterations} iterations differ from the prediction by more than "
          f"20 %, {exchanged} exchanges by more than 30 %")


# ratios of the papers: dense, topk and dgc to the sparsifier
PAPERS = {"gaussiank": "up to 2.33, 3.63, 1.51 (16 GPUs, 10 Gbit/s)",
          "gtopk": "2.7-12, 1.1-1.7, - (scaling efficiency, 32 GPUs, 1 Gbit/s)"}


def card(options):
    """Sixteen workers on one GPU: times, and ratios as in the papers."""
    ranks = 16
    algorithms = ("dense", "dense bf16", "bsp", "topk", "gaussiank", "gtopk", "dgc", "randk",
                  "trimmed", "redsync", "oktopk", "hierarchical")
    missing = False
    here = build.line(build.of_program(options.binaries / "bench"))
    known = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
    if known.setdefault("build", here) != here:
        raise UserError(f"the measurements in {options.keep} are of another build or machine: "
                        f"{known['build']} This is {here}")
    for model in ("resnet20", "vgg16"):
        for link in ("1Gbit,0.4ms", "10Gbit,0.4ms"):
            taken = {}
            for name in algorithms:
                key = f"{model} {link} {name}"
                if key not in known:
                    try:
                        algorithm, *values = name.split()
                        known[key] = one_training(
                            options, model, ranks, link, algorithm,
                            " ".join(["ring", *values]) if values else "", steps=20,
                            more=("--device", "cuda"))
                    except ProgramFailed as error:
                        print(error, file=sys.stderr)
                        missing = True
                        continue
                    if options.keep:
                        options.keep.write_text(json.dumps(known, indent=1) + "\n")
                taken[name] = known[key]
            rows = [(name, f"{whole:.4f}", f"{1e3 * exchange:.2f}",
                     *(f"{taken[other][0] / whole:.2f}" if other in taken else "-"
                       for other in ("dense", "dense bf16", "topk", "dgc")),
                     PAPERS.get(name, "-"))
                    for name, (whole, exchange) in taken.items()]
            print(f"{model}, {ranks} workers on one GPU, {link}, 32 images per rank. "
                  "The papers' ratios are of other settings: the largest over networks of CIFAR-10 "
                  "and ImageNet, with 64 to 256 images per rank (gtopk)\n")
            table(("sparsifier", "s per iteration", "exchange ms", "dense : this",
                   "dense bf16 : this", "topk : this", "dgc : this",
                   "papers, other networks and batches"), rows)
    if missing:
        raise Fault("some runs failed; their errors are above")


TABLES = {"exchanges": exchanges, "broadcast": broadcast, "blocks": blocks, "scale": scale,
          "namespaces": namespaces, "training": training, "card": card}


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("-b", "--binaries", type=Path, default=BIN)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--keep", type=Path, metavar="FILE",
                        help="stores the measurements of `card`; a second call skips those in it")
    parser.add_argument("tables", nargs="+", choices=list(TABLES), metavar="TABLE")
    options = parser.parse_args()
    print(f"{build.line(build.of_program(options.binaries / 'bench'))}\n")
    for name in options.tables:
        TABLES[name](options if name in ("training", "card") else Bench(options.binaries))


if __name__ == "__main__":
    script(main)
