#!/usr/bin/env python3
"""Takes a ResNet-18 from PyTorch to Lockstep and back, and compares what both make of the same images.

    python bench/check_resnet18.py target/release/lockstep

Needs torch. Uses torchvision's network where that is installed, else one of the same names defined here.
Images are noise in CIFAR-10's binary format; nothing is fetched.
"""

import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]
TOLERANCE = 1e-4

JOB = """
name = "resnet18"

[data]
train = {{ cifar = ["train.bin"] }}
test = {{ cifar = ["test.bin"] }}
normalise = {{ mean = {mean}, std = {std} }}

[model]
kind = "resnet18"
small_stem = {small_stem}
weights = "before.safetensors"

[train]
epochs = 1
batch = 16
optimizer = {{ kind = "sgd", lr = {lr} }}

[run]
store = "runs"
"""


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class ResNet18(nn.Module):
    """torchvision's, as far as names and arithmetic go."""

    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inputs = 64
        for stage, outputs in enumerate([64, 128, 256, 512], 1):
            blocks = [Block(inputs, outputs, 1 if stage == 1 else 2), Block(outputs, outputs, 1)]
            setattr(self, f"layer{stage}", nn.Sequential(*blocks))
            inputs = outputs
        self.fc = nn.Linear(512, num_classes)

    def forward(self, x):
        x = self.maxpool(self.bn1(self.conv1(x)).relu())
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def network(classes, small_stem):
    try:
        from torchvision.models import resnet18
    except ImportError:
        resnet18 = ResNet18
    made = resnet18(num_classes=classes)
    if small_stem:
        made.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        made.maxpool = nn.Identity()
    return made


def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        numbers = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32)
        tensors[name] = numbers.reshape(entry["shape"])
    return tensors


def write_safetensors(path, tensors):
    kinds = {torch.float32: "F32", torch.int64: "I64"}
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().numpy().tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": kinds[tensor.dtype], "shape": list(tensor.shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_images(path, count, classes):
    labels = torch.randint(classes, (count, 1), dtype=torch.uint8)
    labels[:classes, 0] = torch.arange(classes)
    pixels = torch.randint(256, (count, 3 * 32 * 32), dtype=torch.uint8)
    pixels[:, :1024] //= 1 + labels
    path.write_bytes(torch.cat([labels, pixels], 1).numpy().tobytes())
    mean, std = (torch.tensor(x).reshape(3, 1, 1) for x in (MEAN, STD))
    return (pixels.reshape(-1, 3, 32, 32) / 255 - mean) / std, labels[:, 0].long()


def check(lockstep, folder, small_stem, classes_before, lr):
    """One way there and back; what PyTorch makes of the result must be what Lockstep reported."""
    torch.manual_seed(1)
    before = network(classes_before, small_stem)
    with torch.no_grad():  # Statistics that are not those of a network nobody has trained.
        for module in before.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.uniform_(-0.2, 0.2)
                module.running_var.uniform_(0.5, 1.5)
    write_safetensors(folder / "before.safetensors", before.state_dict())
    write_images(folder / "train.bin", 64, 10)
    images, labels = write_images(folder / "test.bin", 64, 10)
    words = {"mean": MEAN, "std": STD, "small_stem": str(small_stem).lower(), "lr": lr}
    (folder / "job.toml").write_text(JOB.format(**words))
    command = [lockstep, "run", folder / "job.toml", "--json"]
    environment = {"LOCKSTEP_CACHE": str(folder / "cache")}
    lines = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    result = json.loads(lines.splitlines()[-1])

    after = network(10, small_stem)
    weights = read_safetensors(Path(result["run_dir"]) / "model/weights.safetensors")
    missing, unexpected = after.load_state_dict(weights, strict=False)
    assert not unexpected and all(name.endswith("num_batches_tracked") for name in missing)
    with torch.inference_mode():
        loss = nn.functional.cross_entropy(after.eval()(images).double(), labels).item()
    reported = result["metrics"]["loss"]
    kept = [name for name, _ in before.named_parameters() if classes_before == 10 or "fc" not in name]
    # A rate of 1e-30 moves only what is exactly 0.
    same = all((before.state_dict()[name] - weights[name]).abs().max() < 1e-20 for name in kept)
    print(
        f"small_stem={small_stem!s:5} classes {classes_before:4} -> 10, lr {lr:g}: "
        f"loss by PyTorch {loss:.6f}, by Lockstep {reported:.6f}; "
        f"parameters {'as they were' if same else 'trained'}"
    )
    assert same == (lr < 1e-20), "parameters that came in must be those that were given"
    assert abs(loss - reported) <= TOLERANCE * max(1.0, abs(loss)), "they disagree"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    lockstep = Path(sys.argv[1]).resolve()
    for case in [(False, 10, 1e-30), (False, 1000, 1e-30), (False, 1000, 0.01), (True, 10, 0.01)]:
        with tempfile.TemporaryDirectory() as folder:
            check(lockstep, Path(folder), *case)
    print("PyTorch and Lockstep agree both ways")


if __name__ == "__main__":
    main()
