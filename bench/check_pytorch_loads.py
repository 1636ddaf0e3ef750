#!/usr/bin/env python3
"""Checks that PyTorch loads a trained run's weights and comes to the metrics that the run reported.

    python bench/check_pytorch_loads.py RUN_FOLDER FASHION_MNIST_FOLDER

Needs torch and numpy; reads safetensors by itself, as the format is a JSON header and raw numbers.
"""

import json
import struct
import sys
from pathlib import Path

import torch
from torch import nn

from fashion_mnist import load


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


class Network(nn.Module):
    """The network that model.json describes."""

    def __init__(self, card):
        super().__init__()
        channels, height, width = card["input_shape"]
        features = channels * height * width
        layers = []
        for layer in card["layers"]:
            if layer["kind"] == "linear":
                outputs = layer.get("out", len(card["classes"]))
                layers.append(nn.Linear(features, outputs))
                features = outputs
            elif layer["kind"] == "batch-norm":
                layers.append(nn.BatchNorm1d(features))
            elif layer["kind"] == "dropout":
                layers.append(nn.Dropout(layer["p"]))
            else:
                layers.append({"relu": nn.ReLU}[layer["kind"]]())
        self.layers = nn.Sequential(*layers)

    def forward(self, inputs):
        return self.layers(inputs)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    run, data = map(Path, sys.argv[1:])
    card = json.loads((run / "model/model.json").read_text())
    reported = json.loads((run / "result.json").read_text())["metrics"]

    network = Network(card)
    weights = read_safetensors(run / "model/weights.safetensors")
    missing, unexpected = network.load_state_dict(weights, strict=False)
    # PyTorch counts batches; nothing in evaluation depends on it.
    missing = [name for name in missing if not name.endswith("num_batches_tracked")]
    assert not missing and not unexpected, f"missing {missing}, unexpected {unexpected}"

    normalise = card["normalise"] or {"mean": [0.0], "std": [1.0]}
    images, labels = map(torch.from_numpy, load(data, "test", normalise["mean"][0], normalise["std"][0]))
    with torch.inference_mode():
        scores = network.eval()(images)
    accuracy = (scores.argmax(1) == labels).double().mean().item()
    loss = nn.functional.cross_entropy(scores.double(), labels).item()
    print(f"PyTorch  accuracy {accuracy:.4f}  loss {loss:.6f}")
    print(f"Lockstep accuracy {reported['accuracy']:.4f}  loss {reported['loss']:.6f}")
    # Sums in another order may move a sample that lies on the border, and no more.
    if abs(accuracy - reported["accuracy"]) > 2 / len(labels) or abs(loss - reported["loss"]) > 1e-5:
        sys.exit("they disagree")


if __name__ == "__main__":
    main()
