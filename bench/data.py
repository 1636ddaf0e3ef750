#!/usr/bin/env python3
"""Lockstep's way from files to numbers beside Pillow and Ray Data, on one machine.

Everything is measured in one run, in alternating rounds, so that a machine that slows down slows all of them down.
Figures are medians over the rounds; ratios are ratios of medians. `make bench-data` runs it.

Pillow and Ray live in a virtual environment in the cache folder, made on the first run;
LOCKSTEP_DATA_PYTHON=/path/to/python names another one that has ray[data], pillow and numpy.
"""

import argparse
import json
import os
import sys
from collections import namedtuple
from pathlib import Path
from statistics import median

from bars import Bar
from machine import machine
from pictures import Pictures, python_with_ray
from report import aligned, bar_rows

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("LOCKSTEP_CACHE") or ROOT / ".cache").resolve()

# A part has a title, round() -> {configuration: images a second}, bars(speed), and versions after a round.
PARTS = {"pictures": Pictures}

Place = namedtuple("Place", "root target python cache")


def measure(part, rounds):
    rows = []
    for number in range(1, rounds + 1):
        print(f"{part.title}: round {number} of {rounds}", file=sys.stderr)
        rows.append(part.round())
    speed = {name: median(row[name] for row in rows) for name in rows[0]}
    return {
        "machine": machine(),
        "rounds": rows,
        "images_per_s": speed,
        "bars": part.bars(speed),
        "versions": part.versions,
    }


def text(title, found):
    """One part for the terminal."""
    rows = [["configuration", "images/s", "of all rounds"]]
    for name, speed in found["images_per_s"].items():
        every = [row[name] for row in found["rounds"]]
        rows.append([name, f"{speed:.0f}", f"{min(every):.0f} to {max(every):.0f}"])
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    host = found["machine"]
    where = f"{host['cpu']}, {host['cores']} cores, load {host['load']:.1f}, {host['date']}; {versions}"
    return "\n\n".join([f"\n{title}", aligned(rows), aligned(bar_rows(found)), where])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--target", type=Path, default=ROOT / "target", help="cargo's target folder")
    arguments.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure")
    arguments.add_argument("--rounds", type=int, default=3, help="alternating rounds (3)")
    arguments.add_argument("--seconds", type=float, default=4, help="of every measurement (4)")
    options = arguments.parse_args()

    results = ROOT / "bench/results/data.json"
    results.parent.mkdir(exist_ok=True)
    # What is not measured now stays as it was, with its date.
    found = json.loads(results.read_text()) if results.exists() else {}
    place = Place(ROOT, options.target.resolve(), python_with_ray(CACHE), CACHE)
    missed = []
    for name in options.only:
        part = PARTS[name](place, options)
        found[name] = {"rounds_taken": options.rounds, **measure(part, options.rounds)}
        results.write_text(json.dumps(found, indent=2) + "\n")
        print(text(part.title, found[name]), flush=True)
        missed += [bar.what for bar in map(Bar._make, found[name]["bars"]) if not bar.good]
    print(f"\nall figures: {results}")
    if missed:
        print(f"below the bar: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
