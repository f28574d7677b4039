#!/usr/bin/env python3
"""vs_pytorch.py: compares our training images/s with PyTorch's on this machine.

Our modes and PyTorch's alternate, so that a slow minute of the machine affects all of them. Each
measurement is a process of its own, except for PyTorch on a GPU, which compiles once per mode. The
table shows the median of the rounds. Each of our precisions is compared with PyTorch's fastest mode
of the same precision, and with its fastest mode of all. On a CPU, each mode of PyTorch also runs
with an allocator that keeps freed memory, and the table has both ratios. With --device cuda,
PyTorch runs the modes that may be fastest: channels_last, eager and compiled with max-autotune, op
by op and as one CUDA graph. Our step on a GPU includes the augmentation of its batches.

A mode that fails is reported and left out; the exit code is then 1.

The column `floor` is our images/s if a step took only the lower bound of its time that
`bench step --floor` prints, so it is an upper bound. In that bound, convolutions, matrix products
and the update run at the rates that the same process measured on the machine, and everything else
takes no time.
"""

import contextlib
import csv
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from runs import UserError, build, output, script
from runs.options import Parser
from runs.tables import as_csv

COLUMNS = ("model", "batch", "mode", "images_per_s", "spread", "rounds", "floor",
           "launches_per_step", "syncs_per_step")
PRECISIONS = {"cpu": ["f32", "bf16"], "cuda": ["tf32", "bf16"]}
MODES = {
    "torch f32": ["--precision", "f32"],
    "torch f32 channels_last": ["--precision", "f32", "--channels-last"],
    "torch bf16": ["--precision", "bf16"],
    "torch bf16 channels_last": ["--precision", "bf16", "--channels-last"],
}
CUDA_MODES = {
    f"torch {precision} channels_last{name}":
        ["--precision", precision, "--channels-last", "--device", "cuda", *flags]
    for precision in PRECISIONS["cuda"]
    for name, flags in {" graph": ["--graph"], " compiled": ["--compile"],
                        " compiled graph": ["--compile", "--graph"]}.items()
}


class Failed(Exception):
    """A measurement failed; the others continue."""


def find_python(wanted):
    """The interpreter that was asked for, or the first that can import torch."""
    for python in [wanted] if wanted else [sys.executable, "python3", "/usr/bin/python3"]:
        try:
            done = subprocess.run([python, "-c", "import torch; print(torch.__version__)"],
                                  capture_output=True, text=True, check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return python, done.stdout.strip()
    raise UserError(f"no torch in {wanted or 'any python3'}; name an interpreter that has it with "
                    "--python")


def measure(command, threads):
    """Runs one measurement and returns the JSON of its last line."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          check=False, env=environment)
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        text = f"{' '.join(map(str, command))}: exit code {done.returncode}: {last}"
        raise Failed(text) from None


class Server:
    """A process of torch_step.py --serve, which measures once per line of its input."""

    def __init__(self, command):
        self.command = [str(part) for part in command] + ["--serve"]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.line("ready")

    def line(self, wanted):
        """The next line that starts with `wanted`."""
        for line in self.process.stdout:
            if line.startswith(wanted):
                return line
        raise Failed(f"{' '.join(self.command)}: exit code {self.process.wait()}")

    def measure(self):
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"{' '.join(self.command)}: exit code {self.process.wait()}") from None
        return json.loads(self.line("{"))

    def close(self):
        with contextlib.suppress(BrokenPipeError):  # the process has failed
            self.process.stdin.close()
        self.process.wait()


class Subject:
    """One way to train one model: its command and the measurements so far."""

    def __init__(self, name, precision, command):
        self.name, self.precision, self.command = name, precision, command
        self.on_gpu = "cuda" in command
        self.results = []
        self.failed = False

    def speed(self):
        return statistics.median(result["images_per_s"] for result in self.results)

    def has_floor(self):
        """Whether all results have a lower bound of the step's time; only ours do."""
        return all("floor_ms" in result for result in self.results)

    def floor(self):
        """Images/s at the lower bound of the step's time."""
        return statistics.median(result["images_per_s"] * result["ms_step"] / result["floor_ms"]
                                 for result in self.results)

    def per_step(self, what):
        """A count per step; None except for our steps on a GPU."""
        counts = [result.get(f"{what}_per_step") for result in self.results]
        return None if None in counts else statistics.median(counts)

    def spread(self):
        speeds = [result["images_per_s"] for result in self.results]
        return (max(speeds) - min(speeds)) / self.speed()

    def peak(self):
        """Peak MiB: of GPU memory on a GPU, else of resident memory."""
        return statistics.median(
            result.get("peak_device_mib", result.get("planned_mib", 0)) if self.on_gpu
            else result["peak_rss_mib"] for result in self.results)

    def beyond_import(self):
        """Peak MiB without the memory of importing the framework; 0 on a GPU."""
        return statistics.median(
            0 if self.on_gpu else r["peak_rss_mib"] - r.get("imported_rss_mib", 0)
            for r in self.results)


# glibc's allocator as it is, and told never to return memory to the system
KEEPING = " keeping memory"
ALLOCATORS = {"": [], KEEPING: ["env", "MALLOC_MMAP_MAX_=0", f"MALLOC_TRIM_THRESHOLD_={2**62}"]}


def subjects(model, options, python):
    common = ["--model", model, "--batch-size", options.batch_size,
              "--steps", options.steps, "--image-size", options.image_size,
              "--classes", options.classes]
    device = ["--device", "cuda"] if options.device == "cuda" else []
    ours = [Subject(f"thinwire {precision}", precision,
                    [options.bench, "step", "--floor", "--precision", precision,
                     "--threads-per-rank", options.threads, *device, *common])
            for precision in options.precisions]
    modes = {name: flags for name, flags in (CUDA_MODES if device else MODES).items()
             if flags[1] in options.precisions}
    if options.compile and not device:
        modes |= {f"{name} compiled": flags + ["--compile"] for name, flags in modes.items()}
    step = ROOT / "scripts/bench/torch_step.py"
    theirs = [Subject(name + ending, flags[1],
                      [*before, python, step, "--threads", options.threads, *flags, *common])
              for ending, before in ALLOCATORS.items() if not ending or not device
              for name, flags in modes.items()]
    return ours, theirs


def fastest(theirs, precision, wanted):
    """The fastest mode of PyTorch with a wanted name, of the same precision if there is one."""
    modes = [mode for mode in theirs if wanted(mode.name)]
    return max([mode for mode in modes if mode.precision == precision] or modes, key=Subject.speed,
               default=None)


def ratio(subject, mode):
    """`1.99 (f32 channels_last)`; without a mode `-`."""
    if not mode:
        return "-"
    name = mode.name.removeprefix("torch ").removesuffix(KEEPING)
    return f"{subject.speed() / mode.speed():.2f} ({name})"


def report(model, ours, theirs):
    """Prints all modes, then one line per precision with the ratios."""
    print(f"\n{model}\n  {'mode':<40}{'images/s':>10}{'spread':>8}{'peak MiB':>10}"
          f"{'w/o import':>12}")
    for subject in ours + theirs:
        print(f"  {subject.name:<40}{subject.speed():>10.0f}{subject.spread():>8.0%}"
              f"{subject.peak():>10.0f}{subject.beyond_import():>12.0f}")
    print(f"  {'ours':<8}{'images/s':>10}{'/ best same precision':>34}"
          f"{'/ the same keeping memory':>34}{'/ best of all':>15}{'floor':>8}{'of it':>7}"
          f"{'peak/peak':>11}")
    for subject in ours:
        installed, keeping = (
            fastest(theirs, subject.precision, lambda name, kept=kept: (KEEPING in name) == kept)
            for kept in (False, True))
        print(f"  {subject.precision:<8}{subject.speed():>10.0f}{ratio(subject, installed):>34}"
              f"{ratio(subject, keeping):>34}"
              f"{subject.speed() / max(map(Subject.speed, theirs)):>15.2f}{subject.floor():>8.0f}"
              f"{subject.speed() / subject.floor():>7.2f}"
              f"{subject.peak() / (installed or keeping).peak():>11.2f}")
        if subject.on_gpu:
            print(f"  {'':<8}{subject.per_step('graph_launches'):g} graph launches and "
                  f"{subject.per_step('host_syncs'):g} waits of the host per step")


def measurements(model, all_subjects, origin):
    """The measurements of a model so far, for --output."""
    return [{"model": model, "mode": s.name, "results": s.results, **origin}
            for s in all_subjects if s.results]


def rows_of(path, origin):
    """The rows of the table that exists, which must have these columns, or the header of a new
    one."""
    head = [*COLUMNS, *origin]
    rows = list(csv.reader(path.read_text().splitlines())) if path.exists() else [head]
    if rows[0] != head:
        raise UserError(f"{path} has other columns; name a new file")
    return rows


def write_csv(options, model, all_subjects, origin):
    """Adds medians and spreads to the table."""
    rows = rows_of(options.csv, origin)
    for s in all_subjects:
        known = [s.floor() if s.has_floor() else None,
                 s.per_step("graph_launches"), s.per_step("host_syncs")]
        rows.append([model, options.batch_size, s.name, f"{s.speed():.1f}", f"{s.spread():.3f}",
                     len(s.results), *("" if x is None else f"{x:.6g}" for x in known),
                     *(text.replace(",", " ") for text in origin.values())])
    output.write(options.csv, as_csv(rows).encode())


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("--python", help="interpreter that has torch; default: the first found")
    parser.add_argument("--bench", default=ROOT / "build/bin/bench", help="our bench program")
    parser.add_argument("--models", nargs="+", default=["resnet20", "vgg16"], metavar="MODEL")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--image-size", type=int, default=32,
                        help="side; for torchvision's networks 224")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precisions", nargs="+", choices=["f32", "tf32", "bf16"],
                        metavar="PRECISION", help="f32 or, on a GPU, tf32; bf16 (default: both)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10, help="timed steps per measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--compile", action="store_true", help="also torch.compile each mode")
    parser.add_argument("--csv", type=Path, help="append one row per mode to this table")
    parser.add_argument("--output", help="write all measurements here, as JSON")
    options = parser.parse_args()
    if not Path(options.bench).exists():
        raise UserError(f"{options.bench} does not exist; scripts/build.sh builds it")
    options.precisions = options.precisions or PRECISIONS[options.device]
    unknown = set(options.precisions) - set(PRECISIONS[options.device])
    if unknown:
        raise UserError(f"precision {unknown.pop()} is not one of {PRECISIONS[options.device]}")
    python, version = find_python(options.python)
    built = build.of_program(options.bench)
    origin = built | {"torch": version}
    if options.csv:
        rows_of(options.csv, origin)
    print(build.line(built))
    print(f"PyTorch {version}, {options.device}, batch {options.batch_size}, "
          f"{options.threads} threads, median of {options.rounds} rounds of {options.steps} steps",
          flush=True)

    everything, failed = [], False
    for model in options.models:
        ours, theirs = subjects(model, options, python)
        servers = {}
        for done in range(options.rounds):
            for subject in [s for s in ours + theirs if not s.failed]:
                try:
                    if subject.on_gpu and subject in theirs and subject.name not in servers:
                        servers[subject.name] = Server(subject.command)
                    server = servers.get(subject.name)
                    subject.results.append(server.measure() if server else
                                           measure(subject.command, options.threads))
                except Failed as error:
                    print(f"{subject.name}: left out: {error}", file=sys.stderr, flush=True)
                    subject.failed = failed = True
                if options.output:  # after each mode, so that an interruption loses little
                    found = everything + measurements(model, ours + theirs, origin)
                    output.write(options.output, f"{json.dumps(found, indent=1)}\n".encode())
            print(f"  {model}: round {done + 1} of {options.rounds}", file=sys.stderr, flush=True)
        for server in servers.values():
            server.close()
        ours, theirs = ([s for s in all_of if s.results] for all_of in (ours, theirs))
        if ours and theirs:
            report(model, ours, theirs)
        if options.csv:
            write_csv(options, model, ours + theirs, origin)
        everything += measurements(model, ours + theirs, origin)
    return failed


if __name__ == "__main__":
    script(main)
