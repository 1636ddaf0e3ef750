#!/usr/bin/env python3
"""How long a job on a large set stands still after a worker was killed.

Makes a set of the given size (5 GB unless told otherwise) in a folder of its own, trains on two workers, kills one of
them in the middle with SIGKILL, and prints what the run's result says was lost. `make bench-recovery` runs it.
"""

import argparse
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIDE = 32
SAMPLE = 3 * SIDE * SIDE
JOB = f"""
name = "large"
[data]
train = {{ images = "images", labels = "labels" }}
[model]
kind = "mlp"
hidden = [16]
[train]
epochs = 1
batch = 64
optimizer = {{ kind = "sgd", lr = 0.001 }}
workers = 2
[checkpoint]
every = "200 steps"
[run]
store = "runs"
"""


def write_set(folder, samples):
    block = os.urandom(SAMPLE * 1024)
    with open(folder / "images", "wb") as file:
        file.write(struct.pack(">BBBBIIII", 0, 0, 8, 4, samples, SIDE, SIDE, 3))
        for begin in range(0, samples, 1024):
            file.write(block[: SAMPLE * min(1024, samples - begin)])
    with open(folder / "labels", "wb") as file:
        file.write(struct.pack(">BBBBI", 0, 0, 8, 1, samples))
        file.write(bytes(number % 10 for number in range(samples)))


def train_and_kill(binary, folder, steps_before):
    """The run's events, after its second worker was killed once when so many steps were done."""
    environment = {**os.environ, "LOCKSTEP_CACHE": str(folder / "cache")}
    command = [binary, "run", str(folder / "job.toml"), "--json"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder)
    victim, events, stop_at = None, [], None
    for line in run.stdout:
        event = json.loads(line)
        event["heard"] = time.monotonic()
        events.append(event)
        if event["event"] == "worker" and event["rank"] == 1 and victim is None:
            victim = event["pid"]
        if event["event"] == "progress" and victim and event["step"] >= steps_before:
            os.kill(victim, signal.SIGKILL)
            victim = 0
        if event["event"] == "restart":
            stop_at = time.monotonic() + 5
        if stop_at and time.monotonic() > stop_at:
            run.send_signal(signal.SIGINT)
            stop_at = None
    run.wait()
    return events


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--lockstep", required=True)
    arguments.add_argument("--gigabytes", type=float, default=5.0)
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    binary = str(Path(options.lockstep).resolve())
    with tempfile.TemporaryDirectory(dir=os.environ.get("LOCKSTEP_CACHE")) as scratch:
        folder = Path(scratch)
        samples = int(options.gigabytes * 1e9 / SAMPLE)
        print(f"writing {samples} samples of {SAMPLE} bytes", file=sys.stderr)
        write_set(folder, samples)
        (folder / "job.toml").write_text(JOB)
        for number in range(1, options.rounds + 1):
            result = train_and_kill(binary, folder, 500)[-1]
            if result["event"] != "result" or result["restarts"] != 1:
                sys.exit(f"the run did not recover: {result}")
            lost, repeated = result["seconds_lost"], result["steps_repeated"]
            begun = result["timing"]["start_to_first_step_s"]
            print(f"run {number}: {lost:.2f} s lost, {repeated} steps repeated; first step after {begun:.2f} s")


if __name__ == "__main__":
    main()
