"""Random pixels as a pair of IDX files: for speed, one picture is as good as another."""

import math
import random
import struct


def write(folder, name, samples, height, width, classes=10):
    """Writes colour images and their labels, and returns the two paths."""
    return _write(folder, name, (samples, height, width, 3), classes)


def write_grey(folder, name, samples, height, width, classes=10):
    """Writes grey images and their labels, and returns the two paths."""
    return _write(folder, name, (samples, height, width), classes)


def _write(folder, name, shape, classes):
    source = random.Random(0)
    samples, *sides = shape
    images = folder / f"{name}-images-idx{len(shape)}-ubyte"
    labels = folder / f"{name}-labels-idx1-ubyte"
    with images.open("wb") as file:
        file.write(struct.pack(f">4B{len(shape)}I", 0, 0, 8, len(shape), *shape))
        for _ in range(samples):
            file.write(source.randbytes(math.prod(sides)))
    header = struct.pack(">4BI", 0, 0, 8, 1, samples)
    labels.write_bytes(header + bytes(sample % classes for sample in range(samples)))
    return images, labels
