#!/usr/bin/env python3
"""Makes JPEG files that are as hard to decode as photos: 500 x 375, quality 90, 40 to 60 kB.

    python3 bench/make_pictures.py FOLDER --count 500

Needs numpy and Pillow. Detail at every scale (as photos have), light that falls off, shapes with edges, grain.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

WIDTH, HEIGHT, QUALITY = 500, 375, 90


def clouds(rng, width, height):
    """Noise of all scales, the coarser the stronger."""
    field = np.zeros((height, width))
    for octave in range(1, 8):
        cells = 2**octave
        coarse = rng.normal(size=(cells * 3 // 4 + 1, cells + 1)).astype(np.float32)
        layer = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        field += np.asarray(layer) / cells**0.9
    return field / np.abs(field).max()


def picture(seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH] / WIDTH
    light = 1 - 0.6 * np.hypot(x - rng.uniform(0, 1), y - rng.uniform(0, 0.75))
    base, other = rng.uniform(40, 215, (2, 3))
    mix = 0.5 + 0.5 * clouds(rng, WIDTH, HEIGHT)[..., None]
    pixels = base * mix + other * (1 - mix)
    for _ in range(rng.integers(4, 9)):
        # An ellipse with a texture of its own.
        centre, size, turn = rng.uniform(0, 1, 2), rng.uniform(0.04, 0.25, 2), rng.uniform(0, np.pi)
        u = (x - centre[0]) * np.cos(turn) + (y - centre[1] * 0.75) * np.sin(turn)
        v = (y - centre[1] * 0.75) * np.cos(turn) - (x - centre[0]) * np.sin(turn)
        inside = (u / size[0]) ** 2 + (v / size[1]) ** 2 < 1
        texture = 1 + 0.35 * clouds(rng, WIDTH, HEIGHT)[..., None]
        pixels[inside] = (rng.uniform(20, 235, 3) * texture)[inside]
    grain = rng.normal(0, rng.uniform(3, 6), (HEIGHT, WIDTH, 1)) + rng.normal(0, 1.5, (HEIGHT, WIDTH, 3))
    pixels = pixels * light[..., None] + grain
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--count", type=int, default=500)
    options = arguments.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for seed in range(options.count):
        picture(seed).save(options.folder / f"{seed:04}.jpg", quality=QUALITY)


if __name__ == "__main__":
    main()
