#!/usr/bin/env python3
"""Lockstep and PyTorch side by side on one machine.

Everything is measured in one run, what is compared in turns, and in windows of about a tenth of a second; see
bench/neighbours.py. `make bench-train` runs it.

PyTorch lives in a virtual environment in the cache folder, made on the first run (some gigabytes);
LOCKSTEP_BENCH_PYTHON=/path/to/python names another one that has torch and numpy.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import namedtuple
from functools import partial
from pathlib import Path

import neighbours
import report
from fixed16 import Fixed16
from images import Cnn, ResNet
from machine import machine
from mlp import Mlp
from pytorch_runs import python_with_pytorch

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("LOCKSTEP_CACHE") or ROOT / ".cache").resolve()
PARTS = {"mlp": Mlp, "cnn": Cnn, "resnet": ResNet, "fixed16": Fixed16}

Place = namedtuple("Place", "root binary python cache scratch")


def measure(part, rounds):
    groups = list(part.groups())
    for number in range(1, rounds + 1):
        print(f"{part.title}: round {number} of {rounds}", file=sys.stderr)
        for group in groups:
            group.round()
    ratio = partial(neighbours.ratio, groups)
    print(f"{part.title}: what is measured once", file=sys.stderr)
    extras = part.extras()
    return {
        "machine": machine(),
        "steps_per_s": neighbours.rates(groups),
        "turns": [group.rates for group in groups],
        "extras": extras,
        "limits": part.limits(ratio) if hasattr(part, "limits") else {},
        "bars": part.bars(ratio, extras),
        "pytorch_settings": part.pytorch.settings,
        "versions": {**part.pytorch.versions, "lockstep": part.lockstep.version()},
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--lockstep", type=Path, default=ROOT / "target/release/lockstep")
    arguments.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure")
    arguments.add_argument("--rounds", type=int, default=3, help="alternating rounds (3)")
    arguments.add_argument("--steps", type=int, default=600, help="timed PyTorch steps of the MLP (600)")
    arguments.add_argument("--starts", type=int, default=5, help="starts to take the median of (5)")
    arguments.add_argument("--write-docs", action="store_true", help="write docs/benchmarks.md")
    options = arguments.parse_args()
    if not options.lockstep.exists():
        sys.exit(f"{options.lockstep} is missing: run `make bench-train`, which builds it")
    if {"mlp", "fixed16"} & {*options.only} and not (CACHE / "datasets/fashion-mnist").is_dir():
        sys.exit(f"no Fashion-MNIST in {CACHE}: run `make bench-train`, which brings it")

    results = ROOT / "bench/results/train.json"
    results.parent.mkdir(exist_ok=True)
    # What is not measured now stays as it was, with its date.
    found = json.loads(results.read_text()) if results.exists() else {}
    found = {name: part for name, part in found.items() if name in PARTS}
    python = python_with_pytorch(CACHE)
    CACHE.mkdir(exist_ok=True)
    # A cache of its own: its decoded data may be deleted while other runs go on.
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="bench-") as scratch:
        place = Place(ROOT, options.lockstep, python, CACHE, Path(scratch))
        for name in options.only:
            part = PARTS[name](place, options)
            found[name] = {"rounds_taken": options.rounds, **measure(part, options.rounds)}
            results.write_text(json.dumps(found, indent=2) + "\n")
            print(report.text(part.title, found[name]), flush=True)
    print(f"\nall figures: {results}")
    if options.write_docs:
        page = ROOT / "docs/benchmarks.md"
        parts = [(PARTS[name], found[name]) for name in PARTS if name in found]
        page.write_text(report.page(parts, report.kept(page.read_text())))
        print(f"written: {page}")


if __name__ == "__main__":
    main()
