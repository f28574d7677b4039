#!/usr/bin/env python3
"""Writes tests/data/image/*: small JPEG files of several kinds, and the pixels that Pillow decodes.

pillow.json has parts of each file, resized by Pillow's bilinear filter. They are the reference of
the decoder and the resampler. Needs Pillow and numpy.
"""
import json
import pathlib

import numpy as np
from PIL import Image

SIZE = (16, 12)  # of the resized parts
BOXES = [None, (5, 3, 45, 33), (20, 10, 30, 18)]  # whole, a shrunk part, an enlarged part


def picture(width, height):
    """Smooth colours with a few edges."""
    y, x = np.mgrid[0:height, 0:width]
    red = 128 + 100 * np.sin(x / 9) * np.cos(y / 13)
    green = 255 * x / width
    blue = np.where((x - width / 2) ** 2 + (y - height / 2) ** 2 < 200, 220, 40)
    return Image.fromarray(np.stack([red, green, blue], -1).astype(np.uint8))


def main():
    folder = pathlib.Path(__file__).resolve().parents[2] / "tests/data/image"
    folder.mkdir(parents=True, exist_ok=True)
    image = picture(61, 43)
    files = {
        "colour": (image, {"quality": 95}),
        "full_chroma": (image, {"quality": 95, "subsampling": 0}),
        "progressive": (image, {"quality": 95, "progressive": True}),
        "grayscale": (image.convert("L"), {"quality": 95}),
        "cmyk": (image.convert("CMYK"), {"quality": 95}),
        "narrow": (picture(60, 200), {"quality": 90}),
    }
    seen = {}
    for name, (source, options) in files.items():
        path = folder / f"{name}.jpg"
        source.save(path, "JPEG", **options)
        decoded = Image.open(path).convert("RGB")
        parts = []
        for box in BOXES:
            box = box or (0, 0, *decoded.size)
            resized = decoded.resize(SIZE, Image.BILINEAR, box=box)
            parts.append({"box": box, "pixels": np.asarray(resized).ravel().tolist()})
        seen[name] = {"size": decoded.size, "parts": parts}
    text = json.dumps({"size": SIZE, "files": seen}, separators=(",", ":"))
    (folder / "pillow.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
