"""Random pixels as a pair of IDX files: for speed, one picture is as good as another."""

import random
import struct


def write(folder, name, samples, height, width, classes=10):
    """Writes colour images and their labels, and returns the two paths."""
    source = random.Random(0)
    images, labels = folder / f"{name}-images-idx4-ubyte", folder / f"{name}-labels-idx1-ubyte"
    with images.open("wb") as file:
        file.write(struct.pack(">4B4I", 0, 0, 8, 4, samples, height, width, 3))
        for _ in range(samples):
            file.write(source.randbytes(height * width * 3))
    header = struct.pack(">4BI", 0, 0, 8, 1, samples)
    labels.write_bytes(header + bytes(sample % classes for sample in range(samples)))
    return images, labels
