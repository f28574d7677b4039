#!/usr/bin/env python3
"""fuzz_mutants.py [--check] [TARGET...]: whether each fuzzer finds a defect in its code.

For each target one line of its parser is changed in a copy of the file, mostly a bound that is
taken out. The target is built with that copy and runs for at most a minute, from the inputs of
fuzz.sh, which builds the unchanged code first. Prints what it found and after how long. Exit code 1
when a mutant survives, 2 when a line to change is no longer in its file. Sources and
build-fuzz/TARGET_fuzz stay as they are. --check only looks for the lines.
"""
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import time

from faults import SOURCE as ROOT
from runs import UserError, script
from runs.options import Parser, one_of

SECONDS = 60
BUILD = ROOT / "build-fuzz"

# target: file, text in it, what it becomes
MUTANTS = {
    "block": ("sparsify/encoding/sparse_codec.cpp",
              "if (!packed && index_bytes != n * sizeof(uint32_t)) damaged();", ""),
    "bootstrap": ("comm/transports/length_prefixed.cpp",
                  "check<Fault>(bytes <= in.size(),", "check<Fault>(bytes <= SIZE_MAX,"),
    "checkpoint": ("apps/train/checkpoint.cpp", "check(values.size() == length,", "check(true,"),
    "cifar": ("data/cifar/cifar_binary.cpp", "check(label < files.classes,", "check(true,"),
    "config": ("apps/common/options.cpp", "if (!option.fits(value)) {",
               "if (!option.fits(value) && value.is_null()) {"),
    "csv": ("engine/io/csv.cpp", "error != std::errc{} || ", ""),
    "exchange": ("sparsify/exchanges/scalecom.cpp",
                 "check<Fault>(ascend_below(mine.index_span(), d),", "check<Fault>(d > 0,"),
    "export": ("apps/common/trained_network.cpp",
               "} catch (const nlohmann::json::exception& error) {",
               "} catch (const nlohmann::json::out_of_range& error) {"),
    "image": ("data/image/jpeg.cpp", "if (pixels_.size() < stride * rows)",
              "if (pixels_.empty())"),
    "library": ("apps/library/reducer.cpp", "check(value.is_object(),",
                "check<Fault>(value.is_object(),"),
    "link": ("comm/link/topology.cpp", "value.is_number_integer() && value", "value"),
    "npy": ("apps/common/npy.cpp", "check(bytes.size() - begin == count * sizeof(float),",
            "check(bytes.size() - begin <= count * sizeof(float),"),
    "record": ("data/imagenet/record_file.cpp",
               "sample.bytes <= header.index_offset - sample.offset &&", ""),
    "rice": ("sparsify/encoding/rice.cpp", "if (next + gap >= d) return false;", ""),
    "safetensors": ("engine/io/safetensors.cpp", "&& offsets[1] <= size,", "&& size > 0,"),
    "start": ("apps/common/rank_utils.cpp", "check<Fault>(length <= kMostBlock,",
              "check<Fault>(length <= SIZE_MAX,"),
    "tuning_cache": ("apps/train/tuning_cache.cpp",
                     "} catch (const nlohmann::json::exception& error) {",
                     "} catch (const nlohmann::json::out_of_range& error) {"),
}


def mutate(target):
    """The path of the changed file and its new text."""
    name, old, new = MUTANTS[target]
    text = (ROOT / name).read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise UserError(f"{name} has {text.count(old)} times: {old}")
    return ROOT / name, text.replace(old, new)


def unit_of(source):
    """The file that is compiled for `source`: itself, or one that includes it."""
    include = f'#include "{source}"'
    for unit in BUILD.rglob("Unity/*.cxx"):
        if include in unit.read_text(encoding="utf-8"):
            return unit
    return source


def build(target, work):
    """Builds the mutant of a target in the folder `work`; returns the program."""
    source, text = mutate(target)
    copy = work / source.name
    copy.write_text(text, encoding="utf-8")
    overlay = work / "overlay.yaml"
    overlay.write_text('{"version": 0, "roots": [{"type": "file", '
                       f'"name": "{source}", "external-contents": "{copy}"}}]}}')
    commands = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", f"{target}_fuzz"],
                              check=True, text=True, capture_output=True).stdout.splitlines()
    unit = str(unit_of(source))
    compile_line = next((line for line in commands if re.search(rf"-c {re.escape(unit)}$", line)),
                        None)
    if compile_line is None:
        raise UserError(f"no command compiles {unit}; run scripts/dev/fuzz.sh 0 first")
    words = shlex.split(compile_line)
    words = words[next(i for i, word in enumerate(words) if "clang++" in word):]  # without ccache
    at = words.index("-o") + 1
    old_object, words[at] = words[at], str(work / "mutant.o")
    subprocess.run([*words, "-ivfsoverlay", str(overlay)], cwd=BUILD, check=True)
    program = work / f"{target}_mutant"
    link = commands[-1].replace(f" {old_object} ", f" {work / 'mutant.o'} ")
    link = re.sub(rf"-o \S*{target}_fuzz\b", f"-o {program}", link)
    subprocess.run(link, cwd=BUILD, check=True, shell=True)
    return program


def finding(log):
    """The line that says what a fuzzer found."""
    lines = [line for line in log.splitlines()
             if line.startswith("SUMMARY:") or "runtime error" in line
             or "terminate called" in line or "libFuzzer: " in line]
    return lines[0].strip().replace(str(ROOT) + "/", "") if lines else "no summary"


def hunt(target):
    """Whether the fuzzer finds the mutant; prints one row."""
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        program = build(target, work)
        corpus = work / "corpus"
        shutil.copytree(BUILD / f"corpus-{target}", corpus)
        start = time.monotonic()
        ended = subprocess.run(
            [program, f"-max_total_time={SECONDS}", "-seed=1", "-timeout=20", "-rss_limit_mb=2048",
             "-max_len=300000", "-print_final_stats=0", str(corpus)], cwd=work, text=True,
            errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        seconds = time.monotonic() - start
    found = ended.returncode != 0
    what = finding(ended.stdout) if found else "SURVIVED"
    print(f"{target:<13} {MUTANTS[target][0]:<37} {seconds:>5.1f} s  {what}", flush=True)
    return found


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", type=one_of("target", MUTANTS))
    parser.add_argument("--check", action="store_true", help="only look for the lines to change")
    options = parser.parse_args()
    targets = options.targets or sorted(MUTANTS)
    every = {path.name.removesuffix("_fuzz.cpp") for path in ROOT.glob("tests/fuzz/*_fuzz.cpp")}
    if missing := sorted(every - MUTANTS.keys()):
        raise UserError(f"no mutant for {', '.join(missing)}")
    for target in targets:  # before the first of them runs
        mutate(target)
    if options.check:
        return 0
    subprocess.run([ROOT / "scripts/dev/fuzz.sh", "0", *targets], check=True, cwd=ROOT,
                   stdout=subprocess.DEVNULL)
    return 0 if all([hunt(target) for target in targets]) else 1


if __name__ == "__main__":
    script(main)
