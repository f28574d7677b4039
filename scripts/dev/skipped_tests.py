#!/usr/bin/env python3
"""Counts the tests that a run of ctest skipped, by reason, and names those that should have run.

  scripts/dev/skipped_tests.py JUNIT BUILD

JUNIT is what ctest --output-junit wrote, with a large --test-output-size-passed; BUILD is the build
folder. A test should have run if what its reason says is missing is here, or if the reason is not
in the list below. Tests of GoogleTest count one by one, a script as one.
"""
import collections
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

# a reason -> a command that succeeds where the need of the test is met; None: no need, by design
REASONS = {
    r"no usable GPU|no GPU is usable|no CUDA device": "nvidia-smi -L | grep -q GPU",
    r"want as many GPUs": None,
    r"THINWIRE_DATA": '[ -n "${THINWIRE_DATA:-}" ]',
    r"built without MPI": 'grep -q TW_WITH_MPI "$BUILD/compile_commands.json"',
    r"mpirun is not": "mpirun --version | grep -q HYDRA",
    r"no CUDA code": 'grep -q TW_WITH_CUDA "$BUILD/compile_commands.json"',
    r"no CUDA emulator": '[ -x "$BUILD/emulated/train" ]',
    r"sanitizer": 'grep -q "^SANITIZE:[A-Z]*=$" "$BUILD/CMakeCache.txt"',
    r"no matplotlib": "python3 -c 'import matplotlib' || /usr/bin/python3 -c 'import matplotlib'",
    r"package tensorboard": "python3 -c 'import tensorboard'",
    r"package jsonschema": "python3 -c 'import jsonschema'",
    r"no Python with pandas":
        "for p in $PYTHON python3 /usr/bin/python3; do $p -c 'import pandas' && exit; done; false",
    r"has no pandas": "$PYTHON -c 'import pandas, duckdb'",
    r"has no tensorboard": "$PYTHON -c 'import tensorboard, mlflow, wandb'",
    r"python3 has no PyTorch": "python3 -c 'import torch'",
    r"no PyTorch": "$PYTHON -c 'import torch'",
    r"no pkg-config": "command -v pkg-config",
    r"has no onnx": "$PYTHON -c 'import onnx, onnxruntime, safetensors'",
    r"has no torchvision": "$PYTHON -c 'import torchvision, safetensors, PIL'",
    r"needs Chromium": "command -v chromium chromium-browser google-chrome",
    r"needs? root": '[ "$(id -u)" = 0 ]',
    r"is missing \(package": "command -v ip && command -v sshd && command -v unshare",
    r"namespaces|pair of network devices": None,
    r"needs /proc": "[ -d /proc/self/fd ]",
    r"build id|takes the emulator minutes|the emulator takes 20 s|slow in the emulator": None,
    r"not emulated": None,
    r"no fused multiply-add with THINWIRE_CPU": None,
    r"no fused multiply-add": 'grep -q "^flags.* fma " /proc/cpuinfo',
    r"ends the run|this is its transport|for ranks of mpirun|needs mpirun|one rank does not": None,
    r"vendor needs no|messages of vendor|nothing that NCCL needs is missing": None,
}


def skips(case):
    """The pairs (test, reason) of an entry of ctest."""
    output = case.findtext("system-out") or ""
    found = re.findall(r": Skipped\n(.*)\n(?:.*\n)*?\[  SKIPPED \] ([^\s,]+)", output)
    if found or case.find("skipped") is None:
        return [(name, reason) for reason, name in found]
    lines = [line for line in output.splitlines() if line.strip()]
    reason = lines[-1] if lines else "no reason given"
    return [(case.get("name"), re.sub(r"^(\[  SKIPPED \]|(\w+: )?skipped:) ", "", reason))]


def is_met(command, build):
    python = os.environ.get("THINWIRE_PYTHON", "python3")
    return command is not None and subprocess.run(
        ["bash", "-c", command], env={**os.environ, "BUILD": build, "PYTHON": python}, check=False,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def main():
    if len(sys.argv) != 3 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    junit, build = sys.argv[1:]
    tests = collections.defaultdict(list)
    for case in xml.etree.ElementTree.parse(junit).iter("testcase"):
        for name, reason in skips(case):
            tests[reason].append(name)
    print(f"{sum(map(len, tests.values()))} tests were skipped")
    for reason, names in sorted(tests.items(), key=lambda item: -len(item[1])):
        known = [need for pattern, need in REASONS.items() if re.search(pattern, reason)]
        unexpected = not known or is_met(known[0], build)
        print(f"{len(names):6}  {reason}")
        if unexpected:
            why = "which is here" if known else "not a known reason"
            print(f"        unexpected, {why}: {' '.join(names)}")


if __name__ == "__main__":
    main()
