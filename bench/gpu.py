#!/usr/bin/env python3
"""Whole jobs on the GPU of this machine, beside PyTorch on the same GPU.

    python3 bench/gpu.py --lockstep PATH [--encoder-speed PATH] [--rounds 2] [--only NAME] [--json FILE]

Trains the networks of bench/train.py on random numbers. PyTorch is measured at its best: a step is one CUDA graph, SGD is
fused, images are `channels_last`, the batch lies on the GPU; in fp32, with tf32, and under bf16 autocast. Ours is what the
job says of its epochs, all of whose batches are gathered. They take turns, and the best of each counts. Nothing is
downloaded; it needs Python 3 with PyTorch and NumPy. `--modes fp32` leaves out the others. With --encoder-speed, an example of
lockstep-cuda (`cargo build --release -p lockstep-cuda --example encoder_speed`), the encoders are measured too, in pictures a
second.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cores import Lockstep, Part, write_data
from machine import machine
from report import aligned, figure

MLP = "hidden = [512, 512]\ndropout = 0.25"
PARTS = [
    Part("MLP, batch 32", "mlp", 32, 28, 1, MLP, 1875),
    Part("MLP, batch 128", "mlp", 128, 28, 1, MLP, 468),
    Part("MLP, batch 1024", "mlp", 1024, 28, 1, MLP, 58),
    Part("head, batch 128", "head", 128, 24, 1, "hidden = 256\ndropout = 0.25", 200),
    Part("CIFAR CNN, batch 128", "cnn", 128, 32, 3, "", 100),
    Part("CIFAR CNN, batch 512", "cnn", 512, 32, 3, "", 30),
    Part("ResNet-18, 224 x 224, batch 64", "resnet18", 64, 224, 3, "", 12),
    Part("ResNet-18, 224 x 224, batch 256", "resnet18", 256, 224, 3, "", 4),
]
# Encoders, and pictures that are encoded at a time.
ENCODERS = [("CLIP ViT-B/32, batch 64", "clip", 64), ("EfficientNet-Lite0, batch 64", "lite0", 64)]
MODES = ["fp32", "tf32", "bf16"]
SECONDS = 1.0


def head():
    """The network of `kind = "head"` on rows of 24 x 24 numbers."""
    from torch import nn

    return nn.Sequential(
        nn.Linear(576, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(0.25), nn.Linear(256, 10)
    )


def torch_steps(part, mode):
    """Run in a process of its own: PyTorch's steps a second."""
    import torch
    from pytorch_networks import NETWORKS

    allowed = mode == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    torch.backends.cudnn.benchmark = True
    model = {**NETWORKS, "head": head}[part.kind]().to("cuda").train()
    if part.channels == 1:
        inputs = torch.rand(part.batch, part.side**2, device="cuda")
    else:
        model = model.to(memory_format=torch.channels_last)
        inputs = torch.rand(part.batch, part.channels, part.side, part.side, device="cuda")
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    targets = torch.randint(10, (part.batch,), device="cuda")
    loss_of = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=False)
        with torch.autocast("cuda", torch.bfloat16, enabled=mode == "bf16"):
            loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()

    return calls_a_second(step)


def torch_pictures(kind, batch, mode):
    """Run in a process of its own: PyTorch's pictures a second of an encoder. Pictures come and vectors go as ours do."""
    import torch
    from pytorch_encoders import ENCODERS as networks

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = mode == "tf32"
    torch.backends.cudnn.benchmark = True
    model = networks[kind]().to("cuda").eval().to(memory_format=torch.channels_last)
    pixels = torch.rand(batch, 3, 224, 224).contiguous(memory_format=torch.channels_last).pin_memory()
    inputs = torch.empty_like(pixels, device="cuda")
    answers = torch.empty(model(inputs).shape).pin_memory()

    def encode():
        inputs.copy_(pixels, non_blocking=True)
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, enabled=mode == "bf16"):
            answers.copy_(model(inputs), non_blocking=True)

    return batch * calls_a_second(encode)


def calls_a_second(step):
    """How often a second a graph of the GPU's work is done."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(11):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    best, done, began = 0.0, 0, time.perf_counter()
    since = began
    while since - began < SECONDS:
        for _ in range(10):
            graph.replay()
        torch.cuda.synchronize()
        done, now = done + 10, time.perf_counter()
        if now - since > SECONDS / 5:
            best, done, since = max(best, done / (now - since)), 0, now
    return best


def ours(lockstep, part, data, lanes=1, *words):
    """Steps a second of a whole job."""
    return lockstep.steps_per_s(part, data, 1, 1, lanes, SECONDS, *words)


def our_pictures(program, kind, batch):
    """Pictures a second of an encoder, whose vectors must have the processor's bits."""
    said = json.loads(subprocess.check_output([program, kind, str(batch), str(SECONDS)]))
    if not said["same"]:
        raise RuntimeError("vectors have other bits than the processor's")
    return said["rate"]


def measure_all(rows, name, keys, rounds):
    """Measures in turns, and keeps the best of each."""
    row = rows[name] = {}
    for _ in range(rounds):
        for key, measure in keys.items():
            try:
                row[key] = max(row.get(key, 0.0), measure())
            except (RuntimeError, subprocess.CalledProcessError, json.JSONDecodeError) as error:
                print(f"{name}, {key}: {error}", file=sys.stderr)
    print(name, row, file=sys.stderr, flush=True)


def write(path, rows):
    """Keeps what was measured so far."""
    if path:
        path.write_text(json.dumps({"machine": machine(), "per_s": rows}, indent=1))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments.add_argument("--lockstep", help="the program")
    arguments.add_argument("--encoder-speed", help="the example of lockstep-cuda")
    arguments.add_argument("--rounds", type=int, default=2)
    arguments.add_argument("--only", default="", help="parts whose names have this in them")
    arguments.add_argument("--modes", default=",".join(MODES), help="of PyTorch; empty measures ours alone")
    arguments.add_argument("--json", type=Path, help="where all figures go")
    options = arguments.parse_args()
    if options.one:
        name, mode = options.one
        for encoder, kind, batch in ENCODERS:
            if encoder == name:
                return print(json.dumps(torch_pictures(kind, batch, mode)))
        (part,) = (part for part in PARTS if part.name == name)
        return print(json.dumps(torch_steps(part, mode)))
    rows = {}

    def beside(name):
        """PyTorch in its modes."""
        command = [sys.executable, __file__, "--one", name]
        modes = filter(None, options.modes.split(","))
        return {mode: lambda mode=mode: json.loads(subprocess.check_output([*command, mode])) for mode in modes}

    with tempfile.TemporaryDirectory() as folder:
        lockstep = Lockstep(options.lockstep, Path(folder), "cuda")
        for part in (part for part in PARTS if options.only in part.name):
            data = write_data(Path(folder), part)

            def rate(lanes, *words, part=part, data=data):
                known = getattr(lockstep, "known", {})
                # The first time says how many epochs fill a second.
                for _ in range(1 if (part.name, 1, 1) in known else 2):
                    found = ours(lockstep, part, data, lanes, *words)
                    lockstep.known = known = {**known, (part.name, 1, 1): found}
                return found

            keys = {"ours": lambda: rate(1), "fixed16": lambda: rate(1, "--set", "train.precision=fixed16")}
            if "MLP" in part.name:
                keys["two lanes"] = lambda: rate(2)
            measure_all(rows, part.name, {**keys, **beside(part.name)}, options.rounds)
            write(options.json, rows)
            for file in data:
                Path(file).unlink()
    for name, kind, batch in ENCODERS if options.encoder_speed else []:
        if options.only in name:
            own = {"ours": lambda: our_pictures(options.encoder_speed, kind, batch)}
            measure_all(rows, name, {**own, **beside(name)}, options.rounds)
            write(options.json, rows)
    keys = ["ours", "fixed16", "two lanes", *MODES]
    lines = [["", *keys, "ours / fp32"]]
    for name, row in rows.items():
        ratio = f"{row['ours'] / row['fp32']:.2f}" if row.get("fp32") and row.get("ours") else ""
        lines.append([name, *(figure(row[key]) if key in row else "" for key in keys), ratio])
    print(aligned(lines))
    print(f"\n{machine()}; best of {options.rounds} rounds")


if __name__ == "__main__":
    main()
