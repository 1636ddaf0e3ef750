#!/usr/bin/env python3
"""Lockstep and PyTorch side by side on one machine, on the Fashion-MNIST job.

Everything is measured in one run, in alternating rounds, so that a machine that slows down slows both
down. Figures are medians over the rounds; ratios are ratios of medians. `make bench-train` runs it.

PyTorch lives in a virtual environment in the cache folder, made on the first run (some gigabytes);
LOCKSTEP_BENCH_PYTHON=/path/to/python names another one that has torch and numpy.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import lockstep_runs
import report

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("LOCKSTEP_CACHE") or ROOT / ".cache").resolve()
PACKAGES = ["torch==2.15.0", "numpy==2.4.6"]
BATCHES = (32, 128)


def pytorch_python():
    """The Python that has PyTorch; installs it if need be."""
    chosen = os.environ.get("LOCKSTEP_BENCH_PYTHON")
    if chosen:
        return chosen
    folder = CACHE / "bench-venv"
    python, done = folder / "bin/python", folder / "installed"
    if not done.exists() or done.read_text() != " ".join(PACKAGES):
        print(f"installing {' '.join(PACKAGES)} into {folder} (once)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        done.write_text(" ".join(PACKAGES))
    return str(python)


def pytorch(python, batch, workers, steps):
    """PyTorch's steps a second, and the settings that were the fastest."""
    command = [python, ROOT / "bench/pytorch_steps.py", CACHE / "datasets/fashion-mnist"]
    command += ["--batch", batch, "--workers", workers, "--steps", steps]
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure_round(lockstep, python, steps):
    """One round: every configuration once, each batch size's side by side."""
    figures, settings = {}, {}
    for batch in BATCHES:
        half = batch // 2
        single = pytorch(python, batch, 1, steps)
        figures[f"lockstep one worker, batch {batch}"] = lockstep.steps_per_s(batch, 1)
        figures[f"lockstep two workers, batch {batch}"] = lockstep.steps_per_s(batch, 2)
        figures[f"lockstep one worker, batch {half}"] = lockstep.steps_per_s(half, 1)
        figures[f"lockstep two runs at once, batch {half} each"] = lockstep.two_at_once(half)
        double = pytorch(python, batch, 2, steps)
        figures[f"pytorch one process, batch {batch}"] = single["steps_per_s"]
        figures[f"pytorch ddp two processes, batch {batch}"] = double["steps_per_s"]
        settings[f"one process, batch {batch}"] = single["settings"]
        settings[f"ddp, batch {batch}"] = double["settings"]
        versions = single["versions"]
    return figures, settings, versions


def measure(lockstep, python, rounds, steps, starts):
    rows, settings, versions = [], {}, {}
    for number in range(1, rounds + 1):
        print(f"round {number} of {rounds}", file=sys.stderr)
        figures, settings, versions = measure_round(lockstep, python, steps)
        rows.append(figures)
    print("starts and memory", file=sys.stderr)
    warm = [lockstep.first_step(decoded=True) for _ in range(starts)]
    cold = [lockstep.first_step(decoded=False) for _ in range(starts)]
    return {
        "steps_per_s": {name: median(row[name] for row in rows) for name in rows[0]},
        "rounds": rows,
        "pytorch_settings": settings,
        "versions": {**versions, "lockstep": lockstep.version()},
        "start_s": {
            "decoded": median(start["reported"] for start in warm),
            "decoded, from outside": median(start["outside"] for start in warm),
            "gzipped": median(start["reported"] for start in cold),
            "gzipped, from outside": median(start["outside"] for start in cold),
        },
        "peak_pss_mib": lockstep.peak_pss() / 2**20,
    }


def machine():
    """Where and when this was measured."""
    words = dict.fromkeys(["model name"], platform.machine())
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() in words:
            words[key.strip()] = value.strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": words["model name"],
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory),
        "system": f"{platform.system()} {platform.release()}",
        "load_before": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%d"),
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--lockstep", type=Path, default=ROOT / "target/release/lockstep")
    arguments.add_argument("--rounds", type=int, default=3, help="alternating rounds (3)")
    arguments.add_argument("--steps", type=int, default=600, help="timed PyTorch steps (600)")
    arguments.add_argument("--starts", type=int, default=5, help="starts to take the median of (5)")
    arguments.add_argument("--write-docs", action="store_true", help="write docs/benchmarks.md")
    options = arguments.parse_args()
    if not options.lockstep.exists():
        sys.exit(f"{options.lockstep} is missing: run `make bench-train`, which builds it")
    if not (CACHE / "datasets/fashion-mnist").is_dir():
        sys.exit(f"no Fashion-MNIST in {CACHE}: run `make bench-train`, which brings it")

    found = {"machine": machine()}
    python = pytorch_python()
    # A cache of its own: its decoded data may be deleted while other runs go on.
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="bench-") as scratch:
        job = ROOT / "examples/fashion-mnist.toml"
        lockstep = lockstep_runs.Lockstep(options.lockstep, job, CACHE, Path(scratch))
        found |= measure(lockstep, python, options.rounds, options.steps, options.starts)
    found["bars"] = report.bars(found)

    results = ROOT / "bench/results/train.json"
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps(found, indent=2) + "\n")
    print(report.text(found))
    print(f"\nall figures: {results}")
    if options.write_docs:
        page = ROOT / "docs/benchmarks.md"
        page.write_text(report.page(found, options))
        print(f"written: {page}")


if __name__ == "__main__":
    main()
