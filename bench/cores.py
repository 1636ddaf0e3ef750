#!/usr/bin/env python3
"""Every core of a machine: Lockstep's threads and workers beside PyTorch's and onnxruntime's threads.

    python3 bench/cores.py --lockstep PATH [--clip-rate PATH] [--cores 1,2,4,8,16] [--minutes 8] [--json FILE]

Trains the networks of bench/train.py on random numbers, on 1, 2, 4 and so on cores: one worker with so many threads,
so many workers with one thread, and PyTorch with so many threads (eager, channels last, fused SGD). What is measured
takes turns, core count by core count, and the best of the turns counts: a machine that others use gives a few quiet
moments. With --clip-rate, an example of lockstep-nn (`cargo build --release -p lockstep-nn --example clip_rate`), the
image encoder of CLIP ViT-B/32 and EfficientNet-Lite0 are timed too, the first beside onnxruntime. Nothing is downloaded.

It needs Python 3 with PyTorch and NumPy, and onnxruntime for the encoders; no compiler. Prints one table, and writes all
figures as JSON.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from pathlib import Path

import synthetic
from machine import machine
from report import aligned, figure

JOB = """
name = "cores-{name}"
[data]
{data}
val_split = 0.0
[model]
kind = "{kind}"
{model}
[train]
epochs = {epochs}
batch = {batch}
lanes = {lanes}
workers = {workers}
threads = {threads}
device = "{device}"
optimizer = {{ kind = "sgd", lr = 1e-3, momentum = 0.9 }}
[checkpoint]
every = "none"
[run]
store = "{store}"
"""

# A network of bench/pytorch_networks.py: its batch, the side and the channels of its images (one row of 784 numbers is a
# picture of one channel), keys of [model], and steps of an epoch on one core.
Part = namedtuple("Part", "name kind batch side channels model steps")
PARTS = [
    Part("MLP, batch 32", "mlp", 32, 28, 1, "hidden = [512, 512]\ndropout = 0.25", 400),
    Part("MLP, batch 128", "mlp", 128, 28, 1, "hidden = [512, 512]\ndropout = 0.25", 150),
    Part("MLP, batch 512", "mlp", 512, 28, 1, "hidden = [512, 512]\ndropout = 0.25", 40),
    Part("CIFAR CNN, batch 64", "cnn", 64, 32, 3, "", 12),
    Part("ResNet-18, 224 x 224, batch 16", "resnet18", 16, 224, 3, "", 2),
]
# Seconds that a measurement of steps takes at least.
SECONDS = 1.5


def write_data(folder, part):
    """Images of a part as IDX files, enough for an epoch; returns both paths."""
    samples = part.batch * part.steps
    if part.channels == 3:
        return synthetic.write(folder, part.kind, samples, part.side, part.side)
    return synthetic.write_grey(folder, f"{part.kind}-{part.batch}", samples, part.side, part.side)


class Lockstep:
    """The program, with a cache and a store that are thrown away."""

    def __init__(self, binary, folder, device="cpu"):
        self.binary, self.folder, self.device = Path(binary).resolve(), folder, device
        self.environment = {**os.environ, "LOCKSTEP_CACHE": str(folder / "cache")}
        self.environment.pop("LOCKSTEP_CORES", None)

    def steps_per_s(self, part, data, workers, threads, lanes, seconds, *words):
        """Steps a second, by the time of the steps alone; `words` go behind the command."""
        rate = self.known.get((part.name, workers, threads)) if hasattr(self, "known") else None
        epochs = 2 if rate is None else max(2, round(rate * seconds / part.steps))
        images, labels = data
        text = JOB.format(
            name=part.kind, kind=part.kind, model=part.model, batch=part.batch, lanes=lanes,
            data=f'train = {{ images = "{images}", labels = "{labels}" }}', workers=workers, threads=threads,
            epochs=epochs, store=self.folder / "runs", device=self.device,
        )  # fmt: skip
        job = self.folder / "job.toml"
        job.write_text(text)
        command = [self.binary, "run", job, "--json", *words]
        done = subprocess.run(
            list(map(str, command)), env=self.environment, stdout=subprocess.PIPE, text=True
        )
        events = [json.loads(line) for line in done.stdout.splitlines()]
        result = events[-1]
        if result.get("status") != "succeeded":
            raise RuntimeError(f"{part.name} on {workers} x {threads}: {result.get('error')}")
        # The epochs after the first, which touches memory for the first time.
        epochs = [event["samples_per_s"] for event in events if event["event"] == "epoch"][1:]
        return max(epochs) / part.batch


def torch_steps(kind, batch, side, channels, threads, seconds):
    """Run in a process of its own: PyTorch's steps a second on so many threads."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch
    from pytorch_networks import NETWORKS

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = NETWORKS[kind]().train()
    if kind == "mlp":
        inputs = torch.randn(batch, side * side)
    else:
        model = model.to(memory_format=torch.channels_last)
        inputs = torch.randn(batch, channels, side, side).contiguous(memory_format=torch.channels_last)
    targets = torch.arange(batch) % 10
    loss_of = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
    best, began, steps, since = 0.0, None, 0, None
    warm = time.perf_counter()
    while True:
        optimizer.zero_grad()
        loss_of(model(inputs), targets).backward()
        optimizer.step()
        now = time.perf_counter()
        if began is None:
            # A step or some tenths of a second to warm up.
            if now - warm > min(0.3, seconds / 4):
                began, since, steps = now, now, 0
            continue
        steps += 1
        if now - since > seconds / 4 or now - began > seconds:
            best, since, steps = max(best, steps / (now - since)), now, 0
        if now - began > seconds:
            return best


def onnx_rate(path, threads, seconds, batch=16, side=224):
    """Run in a process of its own: pictures a second of an ONNX model in onnxruntime."""
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (asked,) = session.get_inputs()
    channels_last = asked.shape[-1] == 3
    shape = (batch, side, side, 3) if channels_last else (batch, 3, side, side)
    kind = numpy.uint8 if "uint8" in asked.type else numpy.float32
    pixels = numpy.random.default_rng(0).integers(0, 256, shape).astype(kind)
    session.run(None, {asked.name: pixels})
    best, began = 0.0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        since = time.perf_counter()
        session.run(None, {asked.name: pixels})
        best = max(best, batch / (time.perf_counter() - since))
    return best


def apart(*words):
    """Calls this script again for one measurement."""
    command = [sys.executable, __file__, "--one", *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def encoders(options, folder, counts, rows):
    """Pictures a second of the encoders."""
    from clip import write_model

    model = folder / "clip"
    write_model(model)
    onnx = folder / "clip.onnx"
    export = [options.lockstep, "export", "--encoder", model, "--onnx", onnx, "--floats"]
    exported = subprocess.run(list(map(str, export)), stdout=subprocess.DEVNULL)
    for kind, path, peer in (("clip", model, onnx), ("lite0", "-", None)):
        name = {"clip": "CLIP ViT-B/32", "lite0": "EfficientNet-Lite0"}[kind]
        for count in counts:
            row = rows.setdefault(name, {}).setdefault(count, {})
            command = [options.clip_rate, kind, path, 16, 2 * SECONDS, count]
            done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True)
            row["threads"] = max(row.get("threads", 0.0), json.loads(done.stdout)["rate"])
            if peer is not None and exported.returncode == 0:
                found = apart("onnx", peer, count, 2 * SECONDS)
                row["peer"] = max(row.get("peer", 0.0), found)


def trains(options, folder, counts, rows, part):
    """One turn of a network on all numbers of cores."""
    data = write_data(folder, part)
    lockstep = Lockstep(options.lockstep, folder)
    lockstep.known = options.known
    for count in counts:
        row = rows.setdefault(part.name, {}).setdefault(count, {})

        def keep(key, rate):
            row[key] = max(row.get(key, 0.0), rate)

        def ours(key, workers, threads, lanes):
            rate = lockstep.steps_per_s(part, data, workers, threads, lanes, SECONDS)
            options.known[part.name, workers, threads] = rate
            keep(key, rate)

        ours("threads", 1, count, 1)
        # Batch-norm needs two rows a lane.
        lanes = min(count, part.batch // 2)
        if count > 1:
            ours("workers", lanes, 1, lanes)
        if count >= 4:
            ours("both", 2, count // 2, lanes)
        keep("peer", apart("torch", part.kind, part.batch, part.side, part.channels, count, SECONDS))


def table(rows):
    head = ["", "cores", "threads", "workers", "2 workers", "peer", "best / peer", "gain"]
    lines = [head]
    for name, by_count in rows.items():
        first = by_count[min(by_count)]
        peer_best = max((row.get("peer", 0.0) for row in by_count.values()), default=0.0)
        for count, row in sorted(by_count.items()):
            own = max(row.get(key, 0.0) for key in ("threads", "workers", "both"))
            cells = [figure(row[key]) if key in row else "" for key in ("threads", "workers", "both", "peer")]
            ratio = f"{own / row['peer']:.2f}" if row.get("peer") else ""
            lines.append([name, str(count), *cells, ratio, f"{own / first['threads']:.2f}"])
            name = ""
        own_best = max(
            max(row.get(key, 0.0) for key in ("threads", "workers", "both")) for row in by_count.values()
        )
        if peer_best:
            lines.append(["", "best", figure(own_best), "", "", figure(peer_best), f"{own_best / peer_best:.2f}", ""])
    return aligned(lines)


def one(words):
    """One measurement in this process."""
    kind, *words = words
    if kind == "torch":
        network, *numbers, seconds = words
        return torch_steps(network, *map(int, numbers), float(seconds))
    path, threads, seconds = words
    return onnx_rate(path, int(threads), float(seconds))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    arguments.add_argument("--lockstep", help="the program")
    arguments.add_argument("--clip-rate", help="the example clip_rate; without it no encoder is timed")
    arguments.add_argument("--cores", help="numbers of cores, such as 1,2,4")
    arguments.add_argument("--only", help="parts whose names have this in them")
    arguments.add_argument("--minutes", type=float, default=8, help="turns begin for so long; one is always done")
    arguments.add_argument("--json", type=Path, help="where all figures go")
    options = arguments.parse_args()
    if options.one:
        print(json.dumps(one(options.one)))
        return
    usable = len(os.sched_getaffinity(0))
    chosen = options.cores.split(",") if options.cores else ["1", "2", "4", "8", "16"]
    counts = [count for count in map(int, chosen) if count <= usable]
    end = time.monotonic() + 60 * options.minutes
    options.known, rows, turns = {}, {}, 0
    parts = [part for part in PARTS if not options.only or options.only in part.name]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        longest = 0.0
        while turns == 0 or time.monotonic() + longest < end:
            began = time.monotonic()
            for part in parts:
                print(f"turn {turns + 1}: {part.name}", file=sys.stderr)
                trains(options, folder, counts, rows, part)
            if options.clip_rate and (not options.only or options.only in "encoders"):
                print(f"turn {turns + 1}: encoders", file=sys.stderr)
                encoders(options, folder, counts, rows)
            longest, turns = max(longest, time.monotonic() - began), turns + 1
    found = {"machine": machine(), "turns": turns, "per_s": rows}
    print(table(rows))
    where = found["machine"]
    print(f"\n{where['cpu']}, {where['cores']} cores, load {where['load']:.1f}, {where['date']}; best of {turns} turns")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
