#!/usr/bin/env python3
"""Converts weights: torchvision -> train --pretrained -> Thinwire checkpoint -> PyTorch.

For each model, every tensor must have the same bits afterwards, and load_state_dict must accept it.
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
    """A data set of two classes with one JPEG each, for models of 224 x 224 images."""
    for half in ("train", "val"):
        for label in range(2):
            path = folder / half / f"class{label}"
            path.mkdir(parents=True)
            Image.new("RGB", (64, 64), (90 + 90 * label,) * 3).save(path / "one.jpg")


def random_state(model):
    """Random weights and statistics, which differ from all initial values."""
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
         "--epochs", "0", "--eval-every", "never", "--output-dir", folder, "--name", name,
         "--precision", "f32"],
        check=True, stdout=subprocess.DEVNULL)
    back = load_file(folder / name / "checkpoints/step-00000000/model.safetensors")
    model.load_state_dict(back)  # strict: refuses missing and unexpected tensors
    for key, value in theirs.items():
        if value.is_floating_point() and not torch.equal(value, back[key]):
            sys.exit(f"{name}: {key} has other bits after the conversion")
    print(f"{name}: {len(back)} tensors have the same bits; load_state_dict accepts them")


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
