#!/usr/bin/env python3
"""How fast ranks exchange gradients, beside PyTorch's gloo, on loopback.

All configurations of a gang are processes that are started once and then take turns, each a fraction of a second;
see bench/neighbours.py. `make bench-collective` runs it.

The rate is bytes of gradient a second: the size of the gradient, which every rank has one of, by the time from the
moment at which all ranks begin until the slowest has the sum of all.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import neighbours
import report
from bars import at_least
from machine import machine
from pytorch_runs import python_with_pytorch

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("LOCKSTEP_CACHE") or ROOT / ".cache").resolve()
# Numbers in a gradient: the MLP of the Fashion-MNIST example, and a hundred million bytes.
SIZES = {"2.7 MB": 669_706, "100 MB": 25_000_000}
TRANSPORTS = {"plain TCP": "tcp", "encrypted TCP": "encrypted", "shared memory": "shm"}
# The same bytes through the same sockets, and nothing else: what any exchange over TCP has to take.
SOCKETS = "sockets alone"
BARS = {"plain TCP": 2, "shared memory": 5}
# How long a turn of one configuration should take, about.
TURN = 0.25


class Gang:
    """Processes that do steps when they are told to."""

    def __init__(self, command, numbers, greets=False):
        self.run = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.bytes = 4 * numbers
        self.greeting = json.loads(self.run.stdout.readline()) if greets else {}
        # The first steps take the page faults; then as many as make a turn.
        self.steps = 3
        self.answer()
        self.steps = max(2, round(self.steps * TURN / self.answer()["seconds"]))

    def answer(self):
        print(self.steps, file=self.run.stdin, flush=True)
        return json.loads(self.run.stdout.readline())

    def rates(self):
        """Megabytes a second of one turn."""
        return [self.steps * self.bytes / self.answer()["seconds"] / 1e6]

    def close(self):
        self.run.stdin.close()
        self.run.wait()


def measure(example, python, size, workers, rounds):
    """The rates of all configurations of one size and number of workers, as a group, and gloo's settings."""
    numbers = SIZES[size]
    gangs = {"gloo": Gang([python, Path(__file__).with_name("gloo_rate.py"), workers, numbers], numbers, True)}
    gangs[SOCKETS] = Gang([sys.executable, Path(__file__).with_name("loopback_rate.py"), workers, numbers], numbers)
    for name, transport in TRANSPORTS.items():
        gangs[name] = Gang([example, transport, workers, numbers], numbers)
    group = neighbours.Group(1, {name: gang.rates for name, gang in gangs.items()})
    for _ in range(rounds):
        group.round()
    for gang in gangs.values():
        gang.close()
    return group, gangs["gloo"].greeting


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--example", type=Path, default=ROOT / "target/release/examples/collective_rate")
    arguments.add_argument("--rounds", type=int, default=25, help="turns of each configuration (25)")
    arguments.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    arguments.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    options = arguments.parse_args()
    python = python_with_pytorch(CACHE)
    compared = [SOCKETS, *TRANSPORTS]
    rows = [["gradient, processes", "gloo", *compared, *(f"{name} / gloo" for name in compared)]]
    bars, settings, turns, versions = [], {}, {}, {}
    for size in options.sizes:
        for workers in options.workers:
            case = f"{size}, {workers}"
            print(f"{case} processes: {options.rounds} turns", file=sys.stderr)
            group, greeting = measure(options.example, python, size, workers, options.rounds)
            versions["torch"], settings[case], turns[case] = greeting["torch"], greeting["reduces"], group.rates
            rates = neighbours.rates([group])
            ratios = {name: neighbours.ratio([group], name, "gloo") for name in compared}
            rows.append([case, *(f"{rate:,.0f}" for rate in rates.values())])
            rows[-1] += [f"{r.median:.2f} ({r.quartiles[0]:.2f} to {r.quartiles[1]:.2f})" for r in ratios.values()]
            for name, target in BARS.items():
                bars.append(at_least(f"{name} / gloo, {case} processes", ratios[name], target))
    found = {"machine": machine(), "versions": versions, "gloo": settings, "bars": bars, "turns": turns}
    print(f"\nmegabytes of gradient a second (PyTorch {versions['torch']})\n\n{report.markdown(rows)}\n")
    print(report.markdown(report.bar_rows(found)))
    results = ROOT / "bench/results/collective.json"
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps(found, indent=2) + "\n")
    print(f"\n{found['machine']}\nall figures: {results}")


if __name__ == "__main__":
    main()
