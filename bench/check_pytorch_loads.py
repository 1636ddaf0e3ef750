#!/usr/bin/env python3
"""Checks that PyTorch loads a trained run's weights and comes to the metrics that the run reported.

    python bench/check_pytorch_loads.py RUN_FOLDER FASHION_MNIST_FOLDER

Needs torch and numpy; reads safetensors by itself, as the format is a JSON header and raw numbers.
"""

import json
import math
import struct
import sys
from pathlib import Path

import torch
from torch import nn

from fashion_mnist import load
from pytorch_networks import ResNet18


def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F32", f"{name} is {entry['dtype']}"
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        numbers = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32)
        tensors[name] = numbers.reshape(entry["shape"])
    return tensors


class Residual(nn.Module):
    """Two paths from the same input, added."""

    def __init__(self, shape, body, shortcut):
        super().__init__()
        self.body, self.shape = sequential(shape, body)
        self.shortcut, _ = sequential(shape, shortcut)

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


class Dense(nn.Linear):
    """A dense layer, for which an image is flattened."""

    def forward(self, x):
        return super().forward(x.flatten(1))


def build(shape, layer, classes):
    """A layer of model.json for inputs of this shape."""
    window = [layer[key] for key in ("kernel", "stride", "padding") if key in layer]
    match layer["kind"]:
        case "linear":
            return Dense(math.prod(shape), layer.get("out") or classes)
        case "conv2d":
            return nn.Conv2d(shape[0], layer["out"], *window, bias=layer["bias"])
        case "batch-norm":
            return (nn.BatchNorm1d if len(shape) == 1 else nn.BatchNorm2d)(shape[0])
        case "max-pool":
            return nn.MaxPool2d(*window)
        case "avg-pool":
            return nn.AvgPool2d(*window)
        case "global-pool":
            return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        case "residual":
            return Residual(shape, layer["body"], layer.get("shortcut", []))
        case "dropout":
            return nn.Dropout(layer["p"])
        case kind:
            return {"relu": nn.ReLU, "gelu": nn.GELU, "flatten": nn.Flatten}[kind]()


def sequential(shape, layers, classes=None):
    """Layers in a row, and the shape of what they make."""
    modules = []
    for layer in layers:
        modules.append(build(shape, layer, classes))
        with torch.no_grad():
            shape = tuple(modules[-1].eval()(torch.zeros(1, *shape)).shape[1:])
    return nn.Sequential(*modules), shape


class Network(nn.Module):
    """The network that model.json describes layer by layer."""

    def __init__(self, card):
        super().__init__()
        channels, height, width = shape = card["input_shape"]
        # A row of numbers is a vector, not an image of one line.
        self.shape = tuple(shape) if height > 1 else (channels * width,)
        self.layers, _ = sequential(self.shape, card["layers"], len(card["classes"]))

    def forward(self, inputs):
        return self.layers(inputs.reshape(-1, *self.shape))


def network_of(card):
    """The network of a run, with the names of its tensors."""
    if "layers" in card:
        return Network(card)
    channels, _, _ = card["input_shape"]
    return ResNet18(len(card["classes"]), card["network"]["small_stem"], channels)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    run, data = map(Path, sys.argv[1:])
    card = json.loads((run / "model/model.json").read_text())
    reported = json.loads((run / "result.json").read_text())["metrics"]

    network = network_of(card)
    weights = read_safetensors(run / "model/weights.safetensors")
    missing, unexpected = network.load_state_dict(weights, strict=False)
    # PyTorch counts batches; nothing in evaluation depends on it.
    missing = [name for name in missing if not name.endswith("num_batches_tracked")]
    assert not missing and not unexpected, f"missing {missing}, unexpected {unexpected}"

    normalise = card["normalise"] or {"mean": [0.0], "std": [1.0]}
    images, labels = map(torch.from_numpy, load(data, "test", normalise["mean"][0], normalise["std"][0]))
    images = images.reshape(-1, *card["input_shape"])
    with torch.inference_mode():
        # In parts: a convolution's activations of all of them would be gigabytes.
        scores = torch.cat([network.eval()(part) for part in images.split(500)])
    accuracy = (scores.argmax(1) == labels).double().mean().item()
    loss = nn.functional.cross_entropy(scores.double(), labels).item()
    print(f"PyTorch  accuracy {accuracy:.4f}  loss {loss:.6f}")
    print(f"Lockstep accuracy {reported['accuracy']:.4f}  loss {reported['loss']:.6f}")
    # Sums in another order may move a sample that lies on the border, and no more.
    if abs(accuracy - reported["accuracy"]) > 2 / len(labels) or abs(loss - reported["loss"]) > 1e-5:
        sys.exit("they disagree")


if __name__ == "__main__":
    main()
