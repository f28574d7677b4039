#!/usr/bin/env python3
"""run_onnx.py FOLDER: runs every ONNX file of the folder with the input of example.safetensors and
compares the logits. Exit code 1: an error is larger than 1e-4 of the largest logit."""
import pathlib
import sys

import numpy
import onnx
import onnxruntime
from safetensors.numpy import load_file

folder = pathlib.Path(sys.argv[1])
example = load_file(folder / "example.safetensors")
largest = abs(example["logits"]).max()
failed = largest == 0
for path in sorted(folder.glob("*.onnx")):
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for images in (len(example["input"]), 1):
        (logits,) = session.run(["logits"], {"input": example["input"][:images]})
        error = abs(numpy.asarray(logits) - example["logits"][:images]).max() / largest
        print(f"{path.name}: {images} images, relative error {error:.1e}")
        failed |= not error <= 1e-4
sys.exit(int(failed))
