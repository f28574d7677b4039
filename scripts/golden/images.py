#!/usr/bin/env python3
"""Writes tests/data/image/*: small image files of many kinds, and the pixels that Pillow decodes.

pillow.json has the size of each file. Of JPEG files it has parts, resized by Pillow's bilinear
filter, the reference of the decoder and the resampler; of the others the CRC-32 of all RGB bytes,
transparency laid on white. PNG files are written without Pillow, which cannot write all kinds.
Needs Pillow and numpy.
"""
import json
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

SIZE = (16, 12)  # of the resized parts
BOXES = [None, (5, 3, 45, 33), (20, 10, 30, 18)]  # whole, a shrunk part, an enlarged part
GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
         (0, 1, 1, 2)]


def picture(width, height):
    """Smooth colours with a few edges."""
    y, x = np.mgrid[0:height, 0:width]
    red = 128 + 100 * np.sin(x / 9) * np.cos(y / 13)
    green = 255 * x / width
    blue = np.where((x - width / 2) ** 2 + (y - height / 2) ** 2 < 200, 220, 40)
    return Image.fromarray(np.stack([red, green, blue], -1).astype(np.uint8))


def exif_of(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif.tobytes()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(samples, kind, depth, before=b"", interlaced=False):
    """A PNG file of (height, width, channels) integers; `before`: chunks before the pixels."""
    height, width, channels = samples.shape

    def rows(part):
        if depth < 8:
            bits = np.unpackbits(part.astype(np.uint8)[..., None], axis=-1)[..., 8 - depth:]
            packed = np.packbits(bits.reshape(part.shape[0], -1), axis=1)
        else:
            packed = part.astype(f">u{depth // 8}").reshape(part.shape[0], -1)
        return b"".join(b"\0" + row.tobytes() for row in packed)

    passes = [samples[y::dy, x::dx] for x, y, dx, dy in ADAM7] if interlaced else [samples]
    data = b"".join(rows(part) for part in passes if part.size)
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + before +
            chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))


def png_files():
    """Every kind of PNG: colour types, depths, transparency, interlacing and EXIF orientations."""
    image = picture(23, 17)
    rgb = np.asarray(image).astype(int)
    gray = np.asarray(image.convert("L")).astype(int)[..., None]
    y, x = np.mgrid[0:17, 0:23]
    alpha = (255 * (x + y) / 38).astype(int)[..., None]
    low = (37 * x + 91 * y)[..., None] % 256  # the lower eight bits of sixteen
    index = ((x + y) % 16)[..., None]
    colours = chunk(b"PLTE", bytes(range(7, 7 + 5 * 48, 5)))

    def wide(samples):
        return samples * 256 + low

    def transparent(values):
        return chunk(b"tRNS", bytes(values))

    files = {
        "gray1": png(gray // 128, GRAY, 1), "gray8": png(gray, GRAY, 8),
        "gray16": png(wide(gray), GRAY, 16),
        "gray_alpha8": png(np.concatenate([gray, alpha], -1), GRAY_ALPHA, 8),
        "gray_alpha16": png(wide(np.concatenate([gray, alpha], -1)), GRAY_ALPHA, 16),
        "gray_one_transparent": png(gray, GRAY, 8, transparent(struct.pack(">H", gray[3, 4, 0]))),
        "palette": png(index, PALETTE, 4, colours),
        "palette_transparent": png(index, PALETTE, 4, colours + transparent(range(0, 240, 20))),
        "rgb8": png(rgb, RGB, 8), "rgb16": png(wide(rgb), RGB, 16),
        "rgb_interlaced": png(rgb, RGB, 8, interlaced=True),
        "rgba8": png(np.concatenate([rgb, alpha], -1), RGBA, 8),
        "rgba16": png(wide(np.concatenate([rgb, alpha], -1)), RGBA, 16),
        "rgb_gamma": png(rgb, RGB, 8, chunk(b"gAMA", struct.pack(">I", 100000))),
    }
    for orientation in range(1, 9):
        exif = chunk(b"eXIf", exif_of(orientation).removeprefix(b"Exif\0\0"))
        files[f"upright{orientation}"] = png(rgb[:5, :7], RGB, 8, exif)
    return {f"{name}.png": data for name, data in files.items()}


def in_rgb(path):
    """The pixels as RGB: upright in the files for that, the upper eight bits of sixteen."""
    image = Image.open(path)
    if path.stem.startswith("upright"):
        image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    image = image.convert("RGBA")
    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=image.getchannel("A"))
    return white


def main():
    folder = pathlib.Path(__file__).resolve().parents[2] / "tests/data/image"
    folder.mkdir(parents=True, exist_ok=True)
    image = picture(61, 43)
    translucent = Image.merge("RGBA", (*image.split(), image.getchannel("G")))
    written = {
        "colour.jpg": (image, {"quality": 95}),
        "full_chroma.jpg": (image, {"quality": 95, "subsampling": 0}),
        "progressive.jpg": (image, {"quality": 95, "progressive": True}),
        "grayscale.jpg": (image.convert("L"), {"quality": 95}),
        "cmyk.jpg": (image.convert("CMYK"), {"quality": 95}),
        "narrow.jpg": (picture(60, 200), {"quality": 90}),
        "upright.jpg": (picture(61, 49), {"quality": 95, "exif": exif_of(6)}),
        "lossy.webp": (image, {"quality": 90}),
        "lossless.webp": (image, {"lossless": True}),
        "lossy_alpha.webp": (translucent, {"quality": 90}),
        "lossless_alpha.webp": (translucent, {"lossless": True}),
        "upright.webp": (image, {"lossless": True, "exif": exif_of(8)}),
    }
    for name, (source, options) in written.items():
        source.save(folder / name, **options)
    for name, data in png_files().items():
        (folder / name).write_bytes(data)
    seen = {}
    for path in sorted(folder.glob("*.*")):
        if path.suffix not in {".jpg", ".png", ".webp"}:
            continue
        decoded = in_rgb(path)
        seen[path.name] = {"size": decoded.size}
        if path.suffix == ".jpg":
            seen[path.name]["parts"] = []
            for box in BOXES:
                box = box or (0, 0, *decoded.size)
                resized = decoded.resize(SIZE, Image.BILINEAR, box=box)
                seen[path.name]["parts"].append(
                    {"box": box, "pixels": np.asarray(resized).ravel().tolist()})
        else:
            seen[path.name]["crc32"] = zlib.crc32(decoded.tobytes())
    text = json.dumps({"size": SIZE, "files": seen}, separators=(",", ":"))
    (folder / "pillow.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
