#!/usr/bin/env python3
"""Checks weights on their way: torchvision -> train --pretrained -> our checkpoint -> PyTorch.

For each model, every tensor must return bit for bit, and load_state_dict must accept it.
Needs torch, torchvision, safetensors and Pillow.

usage: check_weights.py [--train build/bin/train] [resnet18 alexnet vgg11_bn ...]
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
import torchvision
from PIL import Image
from safetensors.torch import load_file, save_file


def write_images(folder):
    """Two tiny classes: a data set that 224 x 224 models accept."""
    for half in ("train", "val"):
        for label in range(2):
            path = folder / half / f"class{label}"
            path.mkdir(parents=True)
            Image.new("RGB", (64, 64), (90 + 90 * label,) * 3).save(path / "one.jpg")


def random_state(model):
    """Other values than any program starts with, statistics included."""
    generator = torch.Generator().manual_seed(1)
    return {key: torch.randn(value.shape, generator=generator).abs()
            if value.is_floating_point() else value for key, value in model.state_dict().items()}


def check(name, train, folder):
    model = torchvision.models.get_model(name, weights=None)
    theirs = random_state(model)
    save_file({k: v.contiguous() for k, v in theirs.items()}, folder / "theirs.safetensors")
    ours = name if name.startswith(("resnet", "alexnet")) else f"{name}_imagenet"
    subprocess.run(
        [train, "--model", ours, "--classes", "1000", "--dataset", "imagefolder", "--data-dir",
         folder / "data", "--batch-size", "1", "--pretrained", folder / "theirs.safetensors",
         "--epochs", "0", "--output-dir", folder, "--name", name, "--precision", "f32"],
        check=True, stdout=subprocess.DEVNULL)
    back = load_file(folder / name / "checkpoints/step-00000000/model.safetensors")
    model.load_state_dict(back)  # strict: no tensor missing, none too many
    for key, value in theirs.items():
        if value.is_floating_point() and not torch.equal(value, back[key]):
            sys.exit(f"{name}: {key} did not come back as it was")
    print(f"{name}: {len(back)} tensors came back bit for bit, load_state_dict took them")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="default: resnet18 resnet50 alexnet vgg11_bn")
    parser.add_argument("--train", default="build/bin/train", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_images(folder / "data")
        for model in arguments.models or ["resnet18", "resnet50", "alexnet", "vgg11_bn"]:
            check(model, arguments.train.resolve(), folder)


if __name__ == "__main__":
    main()
