#!/usr/bin/env python3
"""Gangs of several hosts with several workers each come to the weights of one worker, whoever is killed or leaves.

Every host is a network namespace (see bench/scale.py), and every worker a pod of its own in it. For each shape of gang and
each disturbance a small job is trained, and its hash is compared with that of one worker on this machine. Needs root
and iproute2; `make bench-hosts` runs it.
"""

import argparse
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import report
from machine import machine
from scale import PREFIX, Network

SAMPLES, SIDE = 1003, 6
# How many workers each host has, and lanes in all: as many as workers, and others, that fill subtrees and do not.
SHAPES = [([1, 1], 2), ([2, 2], 4), ([2, 2], 8), ([3, 1], 5), ([2, 1, 2], 5), ([4, 4], 8), ([2, 2, 2], 6), ([4, 3, 2, 1], 12)]
JOB = """
name = "hosts"
[data]
train = {{ images = "images", labels = "labels" }}
val_split = 0.2
[model]
kind = "mlp"
hidden = [24, 16]
dropout = 0.25
[train]
epochs = {epochs}
batch = 32
optimizer = {{ kind = "sgd", lr = 0.05, momentum = 0.9 }}
workers = {workers}
lanes = {lanes}
[gang]
lease_s = 5
[run]
store = "runs"
"""


def write_token(folder):
    token = folder / "token"
    token.write_text("5a" * 32)
    token.chmod(0o400)


def write_set(folder):
    dice = random.Random(7)
    pixels = bytes(dice.randrange(256) for _ in range(SAMPLES * SIDE * SIDE))
    (folder / "images").write_bytes(struct.pack(">BBBBIII", 0, 0, 8, 3, SAMPLES, SIDE, SIDE) + pixels)
    (folder / "labels").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, SAMPLES) + bytes(i % 10 for i in range(SAMPLES)))
    write_token(folder)


class Pods:
    """The pods of one run: each starts again when it ended and may be."""

    def __init__(self, binary, folder, run, workers_of, cache=None, sleep_ms=5):
        self.binary, self.folder, self.run = binary, folder, run
        self.cache, self.sleep_ms = cache or folder / "cache", sleep_ms
        self.hosts = [host for host, workers in enumerate(workers_of) for _ in range(workers)]
        self.pods = {index: self.start(index) for index in range(len(self.hosts))}
        self.workers, self.is_tree = {}, False
        self.over = threading.Event()
        threading.Thread(target=self.again, daemon=True).start()

    def start(self, index):
        address = f"10.77.0.{self.hosts[index] + 1}"
        environment = {
            **os.environ,
            "JOB_COMPLETION_INDEX": str(index),
            "LOCKSTEP_RUN": self.run,
            "LOCKSTEP_COORDINATOR": "10.77.0.1:7474",
            "LOCKSTEP_POD_ADDRESS": address,
            "LOCKSTEP_TOKEN_FILE": str(self.folder / "token"),
            "LOCKSTEP_CACHE": str(self.cache),
            "LOCKSTEP_FAILPOINTS": f"step.begin=sleep:{self.sleep_ms}",
        }
        # `ip netns exec` would give each pod files of its own, and then none shares memory with another.
        space = f"/run/netns/{PREFIX}-{self.hosts[index]}"
        command = ["nsenter", f"--net={space}", self.binary, "pod", "job.toml"]
        out = subprocess.PIPE if index == 0 else subprocess.DEVNULL
        log = open(self.folder / f"log-{self.run}-{index}", "a")
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=out, stderr=log, text=True)

    def again(self):
        """Starts pods again that ended and may be, as a cluster does."""
        while not self.over.wait(0.05):
            for index, pod in self.pods.items():
                if index > 0 and pod.poll() not in (None, 0, 78):
                    self.pods[index] = self.start(index)

    def disturb(self, how, dice):
        index = dice.randrange(1, len(self.hosts))
        if how == "worker killed":
            os.kill(self.workers[index], signal.SIGKILL)
        elif how == "host killed":
            self.pods[index].kill()
        elif how == "host drained":
            self.pods[index].terminate()

    def result(self, how, dice):
        """The run's result, disturbed after every other epoch."""
        epochs = 0
        for line in self.pods[0].stdout:
            event = json.loads(line)
            if event["event"] == "worker":
                self.workers[event["rank"]] = event["pid"]
            if event["event"] == "epoch":
                epochs += 1
                if epochs % 2 == 1 and how != "nothing":
                    self.disturb(how, dice)
            if event["event"] == "hosts":
                found = sorted(map(sorted, event["hosts"]))
                expected = [[i for i, host in enumerate(self.hosts) if host == of] for of in sorted(set(self.hosts))]
                self.is_tree = found == expected
            if event["event"] == "result":
                assert self.is_tree or len(set(self.hosts)) == len(self.hosts), "workers of a host did not find each other"
                return event
        raise RuntimeError(f"index 0 of {self.run} ended without a result")

    def end(self):
        self.over.set()
        for pod in self.pods.values():
            try:
                pod.wait(20)
            except subprocess.TimeoutExpired:
                pod.kill()


def alone(binary, folder):
    """The hash of one worker on this machine."""
    command = [binary, "run", "job.toml", "--workers", "1", "--json"]
    environment = {**os.environ, "LOCKSTEP_CACHE": str(folder / "cache")}
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])["weights_sha256"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--lockstep", type=Path, required=True)
    arguments.add_argument("--epochs", type=int, default=6)
    arguments.add_argument("--shapes", type=int, default=len(SHAPES), help="so many of them, from the first (all)")
    options = arguments.parse_args()
    if os.geteuid() != 0:
        sys.exit("network namespaces are made by root: run it as root")
    binary, dice = str(options.lockstep.resolve()), random.Random(1)
    disturbances = ["nothing", "worker killed", "host killed", "host drained"]
    rows = [["workers of hosts", "lanes", "disturbed by", "restarts", "resizes", "steps repeated", "goodput", "same weights"]]
    failed = False
    for workers_of, lanes in SHAPES[: options.shapes]:
        with tempfile.TemporaryDirectory() as scratch, Network(len(workers_of), 1000):
            folder = Path(scratch)
            write_set(folder)
            job = JOB.format(epochs=options.epochs, workers=sum(workers_of), lanes=lanes)
            (folder / "job.toml").write_text(job)
            expected = alone(binary, folder)
            for number, how in enumerate(disturbances):
                pods = Pods(binary, folder, f"run-{number}", workers_of)
                begin = time.monotonic()
                result = pods.result(how, dice)
                pods.end()
                same = result["weights_sha256"] == expected
                failed |= not same
                row = [" + ".join(map(str, workers_of)), lanes, how, result["restarts"], result["resizes"]]
                row += [result["steps_repeated"], f"{result.get('goodput') or 0:.3f}", "yes" if same else "NO"]
                rows.append(list(map(str, row)))
                print(*rows[-1], f"{time.monotonic() - begin:.1f} s", result["error"] or "", file=sys.stderr)
    print(f"{report.markdown(rows)}\n\n{machine()}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
