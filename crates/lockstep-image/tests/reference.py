#!/usr/bin/env python3
"""Makes tests/pictures: small pictures of every kind, and what Pillow makes of them.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install pillow==13.0.0 numpy==2.4.6 opencv-python-headless
    /tmp/venv/bin/python crates/lockstep-image/tests/reference.py

`decoded/NAME.rgb` holds the pixels of `NAME` by `ImageOps.exif_transpose(im).convert("RGB")`; `index.json` says their
width and height, and which transforms of `photo.png` are in `resized/`. The tests read nothing else, so they need
neither Python nor Pillow.
"""

import io
import json
import shutil
import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageFilter, ImageOps

HERE = Path(__file__).resolve().parent / "pictures"
FILTERS = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "nearest": Image.Resampling.NEAREST,
}


def photo(width, height, seed=0):
    """Gradients, shapes with edges, and a little noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    channels = []
    for channel in range(3):
        a, b, c = rng.uniform(0.5, 3, 3)
        channels.append(128 + 80 * np.sin(a * x / width * 3 + c) * np.cos(b * y / height * 3))
    pixels = np.stack(channels, axis=-1)
    for _ in range(6):
        cx, cy, r = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(0.05, 0.25) * width
        pixels[(x - cx) ** 2 + (y - cy) ** 2 < r * r] = rng.uniform(0, 255, 3)
    pixels += rng.normal(0, 4, pixels.shape)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8), "RGB")


def saved(image, format, **options):
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def sampled(image, name):
    """Chroma sampled in ways that Pillow does not write."""
    factor = getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{name}")
    options = [cv2.IMWRITE_JPEG_QUALITY, 90, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, factor]
    return cv2.imencode(".jpg", np.asarray(image)[..., ::-1], options)[1].tobytes()


def transform_named(jpeg, transform):
    """Another colour transform in Adobe's segment."""
    place = jpeg.index(b"Adobe") + 11
    return jpeg[:place] + bytes([transform]) + jpeg[place + 1 :]


def oriented(value):
    exif = Image.Exif()
    exif[0x0112] = value
    return exif


def bmp(width, height, bits, rows, compression=0, palette=b"", header=40, extra=b"", colours=0):
    """A BMP of any kind, byte by byte: Pillow writes only a few."""
    start = 14 + header + len(extra) + len(palette)
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, compression, len(rows), 0, 0, colours, 0)
        info += b"\0" * (header - 40)
    return struct.pack("<2sIHHI", b"BM", start + len(rows), 0, 0, start) + info + extra + palette + rows


def padded(rows):
    return b"".join(row + b"\0" * (-len(row) % 4) for row in rows)


def bmps(image):
    """Kinds that Pillow reads and does not write."""
    width, height = image.size
    pixels = np.asarray(image)[::-1].astype(np.uint32)
    red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    masks = struct.pack("<III", 0xF800, 0x07E0, 0x001F)
    high = ((red >> 3) << 11 | (green >> 2) << 5 | blue >> 3).astype("<u2")
    yield "rgb565.bmp", bmp(width, height, 16, padded(row.tobytes() for row in high), 3, extra=masks)
    fifteen = ((red >> 3) << 10 | (green >> 3) << 5 | blue >> 3).astype("<u2")
    yield "rgb555.bmp", bmp(width, height, 16, padded(row.tobytes() for row in fifteen))
    long = (red << 16 | green << 8 | blue | 0x80000000).astype("<u4")
    yield "rgb32.bmp", bmp(width, height, 32, long.tobytes())
    bgr = np.stack([blue, green, red], axis=-1).astype(np.uint8)
    yield "top-down.bmp", bmp(width, -height, 24, padded(row.tobytes() for row in bgr[::-1]))
    yield "os2.bmp", bmp(width, height, 24, padded(row.tobytes() for row in bgr), header=12)
    few = image.quantize(16)
    colours = bytes(few.getpalette()[: 16 * 3])
    quads = b"".join(colours[i + 2 : i + 3] + colours[i + 1 : i + 2] + colours[i : i + 1] + b"\0" for i in range(0, 48, 3))
    places = np.asarray(few)[::-1]
    nibbles = [bytes(int(a) << 4 | int(b) for a, b in zip(row[::2], list(row[1::2]) + [0])) for row in places]
    yield "palette4.bmp", bmp(width, height, 4, padded(nibbles), palette=quads, colours=16)


def pictures():
    """Names and bytes."""
    image = photo(37, 27)
    gray = image.convert("L")
    alpha = image.copy()
    alpha.putalpha(Image.fromarray((np.arange(27 * 37) % 256).astype(np.uint8).reshape(27, 37)))
    cmyk = image.convert("CMYK")

    yield "baseline.jpg", saved(image, "JPEG", quality=90, subsampling="4:4:4")
    for name in ["4:2:2", "4:2:0"]:
        yield f"sampled-{name.replace(':', '')}.jpg", saved(image, "JPEG", quality=90, subsampling=name)
    for name in ["411", "440"]:
        yield f"sampled-{name}.jpg", sampled(image, name)
    yield "progressive.jpg", saved(image, "JPEG", quality=90, progressive=True)
    yield "restarts.jpg", saved(image, "JPEG", quality=90, restart_marker_rows=1)
    yield "gray.jpg", saved(gray, "JPEG", quality=90)
    yield "gray-progressive.jpg", saved(gray, "JPEG", quality=90, progressive=True)
    yield "rgb.jpg", saved(image, "JPEG", quality=90, keep_rgb=True)
    yield "cmyk.jpg", saved(cmyk, "JPEG", quality=90)
    # The same numbers read as luma, chroma and black: Pillow writes no YCCK.
    yield "ycck.jpg", transform_named(saved(cmyk, "JPEG", quality=90), 2)
    # Below five pixels libjpeg repeats sampled chroma instead of interpolating it.
    yield "thin.jpg", saved(photo(3, 40), "JPEG", quality=90, subsampling="4:4:4")
    yield "tall.jpg", saved(photo(40, 176), "JPEG", quality=90)
    wide = photo(133, 50)
    yield "wide-420.jpg", saved(wide, "JPEG", quality=90)
    yield "wide-progressive.jpg", saved(wide, "JPEG", quality=90, progressive=True)
    yield "one.jpg", saved(photo(1, 1), "JPEG", quality=90)
    for value in range(1, 9):
        yield f"turned-{value}.jpg", saved(image, "JPEG", quality=90, exif=oriented(value))
    yield "trailer.jpg", saved(image, "JPEG", quality=90) + b"a trailer of some camera"

    yield "rgb.png", saved(image, "PNG")
    yield "rgba.png", saved(alpha, "PNG")
    yield "gray.png", saved(gray, "PNG")
    yield "gray-alpha.png", saved(alpha.convert("LA"), "PNG")
    yield "palette.png", saved(image.quantize(64), "PNG")
    yield "palette-2.png", saved(image.quantize(4), "PNG")
    yield "bits.png", saved(image.convert("1"), "PNG")
    clear = image.quantize(64)
    clear.info["transparency"] = 3
    yield "palette-clear.png", saved(clear, "PNG", transparency=3)
    yield "turned.png", saved(image, "PNG", exif=oriented(6))
    deep = np.random.default_rng(1).integers(0, 65536, (27, 37, 3)).astype(">u2")
    yield "rgb16.png", png16(deep)
    yield "interlaced.png", interlaced(np.asarray(image))
    yield "animated.png", saved(image, "PNG", save_all=True, append_images=[photo(37, 27, 5)])

    yield "lossy.webp", saved(image, "WEBP", quality=90)
    yield "lossless.webp", saved(image, "WEBP", lossless=True)
    yield "lossy-alpha.webp", saved(alpha, "WEBP", quality=90, exact=True)
    yield "lossless-alpha.webp", saved(alpha, "WEBP", lossless=True, exact=True)
    yield "turned.webp", saved(image, "WEBP", lossless=True, exif=oriented(8))
    yield "animated.webp", saved(image, "WEBP", lossless=True, save_all=True, append_images=[photo(37, 27, 5)])

    yield "rgb24.bmp", saved(image, "BMP")
    yield "palette8.bmp", saved(image.quantize(200), "BMP")
    yield "bits.bmp", saved(image.convert("1"), "BMP")
    yield "gray.bmp", saved(gray, "BMP")
    yield from bmps(image)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png16(pixels):
    """RGB of 16 bits, which Pillow cannot write."""
    height, width, _ = pixels.shape
    raw = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    chunks = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(raw)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def interlaced(pixels):
    """Adam7's seven passes, which Pillow cannot write."""
    height, width, _ = pixels.shape
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    raw = b""
    for left, top, across, down in passes:
        for row in pixels[top::down, left::across]:
            raw += b"\0" + row.tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1)
    chunks = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(raw)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def decoded(data):
    return ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")


def transforms(image):
    """Resize of the shorter side and centre crop as torchvision does them, in Pillow alone."""
    width, height = image.size
    for name, filter in FILTERS.items():
        for side, crop in [(32, (32, 32)), (40, (24, 36)), (150, (150, 150))]:
            short, long = min(width, height), max(width, height)
            longer = int(side * long / short)
            size = (side, longer) if width <= height else (longer, side)
            small = image.resize(size, filter)
            left, top = int(round((size[0] - crop[1]) / 2.0)), int(round((size[1] - crop[0]) / 2.0))
            part = small.crop((left, top, left + crop[1], top + crop[0]))
            yield {"filter": name, "resize": side, "crop": list(crop)}, part


def main():
    shutil.rmtree(HERE, ignore_errors=True)
    for folder in ["decoded", "resized"]:
        (HERE / folder).mkdir(parents=True)
    index = {"pillow": Image.__version__, "decoded": {}, "resized": {}}
    for name, data in pictures():
        (HERE / name).write_bytes(data)
        image = decoded(data)
        (HERE / "decoded" / f"{name}.rgb").write_bytes(image.tobytes())
        index["decoded"][name] = image.size
    image = photo(133, 100).filter(ImageFilter.SHARPEN)
    (HERE / "photo.png").write_bytes(saved(image, "PNG"))
    for number, (transform, part) in enumerate(transforms(image)):
        name = f"{number}-{transform['filter']}.rgb"
        (HERE / "resized" / name).write_bytes(part.tobytes())
        index["resized"][name] = transform
    (HERE / "index.json").write_text(json.dumps(index, indent=1) + "\n")


if __name__ == "__main__":
    main()
