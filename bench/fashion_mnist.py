"""Fashion-MNIST as arrays, read from its gzipped IDX files with numpy."""

import gzip
from pathlib import Path

import numpy

MEAN, STD = 0.28604, 0.32025
PREFIX = {"train": "train", "test": "t10k"}


def load(folder, split, mean=MEAN, std=STD):
    """The images as normalised float32 of shape (n, 784), and the labels as int64."""
    images = read(Path(folder) / f"{PREFIX[split]}-images-idx3-ubyte.gz", header=16)
    labels = read(Path(folder) / f"{PREFIX[split]}-labels-idx1-ubyte.gz", header=8)
    pixels = images.reshape(len(labels), -1).astype(numpy.float32) / numpy.float32(255)
    return (pixels - numpy.float32(mean)) / numpy.float32(std), labels.astype(numpy.int64)


def read(path, header):
    return numpy.frombuffer(gzip.decompress(path.read_bytes()), numpy.uint8, offset=header)
