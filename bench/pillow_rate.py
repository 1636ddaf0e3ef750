#!/usr/bin/env python3
"""How many pictures a second Pillow and numpy decode, resize, crop and normalise, in one thread.

The same transform as `decode_rate` of lockstep-image: torchvision's Resize(224), CenterCrop(224), normalised by
ImageNet's numbers. Files are in memory, and all of them are gone through again and again.
"""

import argparse
import io
import json
import time
from pathlib import Path

import numpy as np
import PIL
from PIL import Image

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)
SIDE = 224


def transform(data):
    return normalised(shrunk(Image.open(io.BytesIO(data)).convert("RGB")))


def shrunk(image):
    """The shorter side resized, the middle cut out."""
    width, height = image.size
    longer = int(SIDE * max(width, height) / min(width, height))
    size = (SIDE, longer) if width <= height else (longer, SIDE)
    image = image.resize(size, Image.Resampling.BILINEAR)
    left, top = round((size[0] - SIDE) / 2), round((size[1] - SIDE) / 2)
    return image.crop((left, top, left + SIDE, top + SIDE))


def normalised(image):
    pixels = np.asarray(image, np.float32)
    pixels = pixels / np.float32(255)
    pixels -= MEAN
    pixels /= STD
    return pixels


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--seconds", type=float, default=5)
    options = arguments.parse_args()
    files = [path.read_bytes() for path in sorted(options.folder.iterdir())]
    for data in files[:50]:
        transform(data)
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < options.seconds:
        for data in files:
            transform(data)
        done += len(files)
    rate = done / (time.perf_counter() - start)
    print(json.dumps({"images_per_s": rate, "versions": {"Pillow": PIL.__version__, "numpy": np.__version__}}))


if __name__ == "__main__":
    main()
