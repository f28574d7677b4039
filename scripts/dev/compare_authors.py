#!/usr/bin/env python3
"""compare_authors.py FOLDER [ANALYZE]: compares `gaussiank` with the authors' code.

FOLDER holds compression.py of hclhkbu/GaussianK-SGD, ANALYZE is the program (build/bin/analyze).
Both select from the same 20 vectors in four steps, with the residual that the authors' code
carries. Their code takes mean and deviation in f32, so an entry as near to the threshold as f32
rounds may differ. Exit code 1 when any other entry does, 2 after an error. Needs torch and scipy.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

SIZES_DENSITIES = ((10_007, 0.001), (100_003, 0.01), (272_474, 0.001), (1_000_000, 0.001),
                   (3_000_017, 0.004))


def fail(text):
    print(f"compare_authors.py: {text}", file=sys.stderr)
    sys.exit(2)


try:
    import numpy as np
    if len(sys.argv) not in (2, 3):
        fail("usage: compare_authors.py FOLDER [ANALYZE]")
    sys.path.insert(0, sys.argv[1])
    import torch
    from compression import GaussianCompressor
except ImportError as missing:
    fail(missing)


def gaussian(random, d):
    return random.standard_normal(d)


def laplace(random, d):
    return random.laplace(size=d)


def student(random, d):
    return random.standard_t(3, size=d)


def layers(random, d):
    """50 layers of different scales."""
    return random.standard_normal(d) * np.repeat(10 ** random.uniform(-3, 1, 50), -(-d // 50))[:d]


def selected(analyze, u, density, folder):
    """The indices that `gaussiank` selects from u."""
    np.save(folder / "u.npy", u)
    words = [analyze, "select", "--input", folder / "u.npy", "--selector", "gaussiank",
             "--density", str(density), "--output", folder / "i.npy"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        fail((done.stderr or done.stdout).strip())
    return np.load(folder / "i.npy")


def compare(analyze, folder):
    """Prints selections that differ; returns how many entries rounding does not explain."""
    equal = far = 0
    for vector in range(20):
        draw = (gaussian, laplace, student, layers)[vector % 4]
        d, density = SIZES_DENSITIES[vector // 4]
        random, name = np.random.default_rng(vector), str(vector)
        residual = np.zeros(d, np.float32)
        for step in range(4):
            gradient = draw(random, d).astype(np.float32)
            u = residual + gradient
            _, theirs, _ = GaussianCompressor.compress(torch.from_numpy(gradient), name,
                                                       ratio=density)
            ours = selected(analyze, u, density, folder)
            odd = np.abs(u[np.setxor1d(theirs.numpy(), ours)])
            equal += len(odd) == 0
            # of the entries above the threshold the least is about the threshold
            least = np.abs(u[ours]).min(initial=np.inf)
            far += np.count_nonzero(np.abs(odd - least) > 1e-5 * least)
            if len(odd):
                print(f"vector {vector} ({draw.__name__}, d = {d}), step {step}: "
                      f"{len(odd)} of {len(ours)} entries differ")
            residual = GaussianCompressor.residuals[name].numpy().copy()
    print(f"{equal} of 80 selections are equal, {far} entries differ by more than rounding")
    return far


def main():
    root = Path(__file__).resolve().parents[2]
    analyze = Path(sys.argv[2] if len(sys.argv) > 2 else root / "build/bin/analyze")
    if not analyze.exists():
        fail(f"{analyze} is missing; scripts/build.sh builds it")
    with tempfile.TemporaryDirectory() as folder:
        return compare(analyze, Path(folder)) > 0


if __name__ == "__main__":
    sys.exit(main())
