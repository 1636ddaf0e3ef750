#!/usr/bin/env python3
"""A worker or a host is killed again and again while an MLP learns Fashion-MNIST: what is done twice, and what time is lost.

One after the other: workers of one machine (`lockstep run`), and three hosts with a worker each, which are network namespaces
(see bench/scale.py). Every few seconds one is killed by SIGKILL: on hosts a worker, a host, and the worker beside the
coordinator by turns. The weights must be those of a run that nobody disturbs. Every step waits some milliseconds more, as if it
had more to compute, so that the two cores of a small machine are not what is measured. Needs root and iproute2.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import report
from hosts import Pods, write_token
from machine import machine
from scale import Network

JOB = """
name = "losses"
[data]
train = "fashion-mnist:train"
test = "fashion-mnist:test"
[model]
kind = "mlp"
hidden = [512, 512]
[train]
epochs = {epochs}
batch = 256
optimizer = {{ kind = "sgd", lr = 0.05, momentum = 0.9 }}
workers = 3
lanes = 3
[recover]
copies = "{copies}"
max_restarts = 10000
[gang]
lease_s = 5
[run]
store = "runs"
"""


# Of an epoch of 60,000 samples.
STEPS = 235


class Killer:
    """Kills by turns, as long as a run lasts."""

    def __init__(self, every, kills):
        self.every, self.kills = every, kills
        self.count, self.over = 0, threading.Event()
        self.thread = threading.Thread(target=self.kill, daemon=True)
        self.thread.start()

    def kill(self):
        while not self.over.wait(self.every):
            # One that was just lost, and is not back yet, is not there to be killed.
            try:
                self.kills[self.count % len(self.kills)]()
                self.count += 1
            except (KeyError, ProcessLookupError):
                pass

    def end(self):
        self.over.set()
        self.thread.join()


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def events_of(lines, workers, first_step):
    """The result of a run whose events are these. Notes the processes of its workers, and when it has begun."""
    for line in lines:
        event = json.loads(line)
        if event["event"] == "worker":
            workers[event["rank"]] = event["pid"]
        if event["event"] == "first_step":
            first_step.set()
        if event["event"] == "result":
            return event
    raise RuntimeError("a run ended without a result")


class Bench:
    """Runs of one job in a folder."""

    def __init__(self, options, folder):
        self.options, self.folder, self.runs = options, folder, 0
        self.binary = str(options.lockstep.resolve())
        self.environment = {
            **os.environ,
            "LOCKSTEP_CACHE": str(options.cache),
            "LOCKSTEP_FAILPOINTS": f"step.begin=sleep:{options.sleep_ms}",
        }

    def write_job(self, epochs):
        (self.folder / "job.toml").write_text(JOB.format(epochs=epochs, copies=self.options.copies))

    def undisturbed_weights(self):
        """Those of one worker that never waits."""
        command = [self.binary, "run", "job.toml", "--json", "--workers", "1", "--set", 'recover.copies="off"']
        environment = {**self.environment, "LOCKSTEP_FAILPOINTS": ""}
        done = subprocess.run(command, cwd=self.folder, env=environment, check=True, capture_output=True, text=True)
        return json.loads(done.stdout.splitlines()[-1])["weights_sha256"]

    def on_one_machine(self, disturbed):
        command = [self.binary, "run", "job.toml", "--json"]
        out = {"stdout": subprocess.PIPE, "text": True, "cwd": self.folder, "env": self.environment}
        run = subprocess.Popen(command, **out)
        workers, begun = {}, threading.Event()
        kills = [lambda rank=rank: kill(workers[rank]) for rank in (1, 0, 2)]
        return self.watch(lambda: events_of(run.stdout, workers, begun), begun, kills if disturbed else [])

    def on_hosts(self, disturbed):
        self.runs += 1
        pods = Pods(self.binary, self.folder, f"losses-{self.runs}", [1, 1, 1], self.options.cache, self.options.sleep_ms)
        begun = threading.Event()
        kills = [lambda: kill(pods.workers[1]), lambda: pods.pods[2].kill(), lambda: kill(pods.workers[0])]
        try:
            result = lambda: events_of(pods.pods[0].stdout, pods.workers, begun)
            return self.watch(result, begun, kills if disturbed else [])
        finally:
            pods.end()

    def watch(self, result, begun, kills):
        """A run's result and how often it was disturbed, which begins with its first step."""
        killers = []

        def disturb():
            begun.wait()
            killers.append(Killer(self.options.every, kills))

        if kills:
            threading.Thread(target=disturb, daemon=True).start()
        ended = result()
        for killer in killers:
            killer.end()
        return ended, sum(killer.count for killer in killers)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--lockstep", type=Path, required=True)
    arguments.add_argument("--cache", type=Path, default=os.environ.get("LOCKSTEP_CACHE", ".cache"))
    arguments.add_argument("--seconds", type=float, default=600, help="about how long each run takes (600)")
    arguments.add_argument("--every", type=float, default=10, help="seconds from one kill to the next (10)")
    arguments.add_argument("--sleep-ms", type=int, default=10, help="milliseconds that each step waits (10)")
    arguments.add_argument("--only", choices=["one machine", "three hosts"], help="one of the two")
    arguments.add_argument("--copies", default="every-step", help="recover.copies of the job (every-step)")
    options = arguments.parse_args()
    options.cache = options.cache.resolve()
    if os.geteuid() != 0:
        sys.exit("network namespaces are made by root: run it as root")
    rows = [["where", "seconds", "kills", "restarts", "steps", "steps repeated", "goodput", "same weights"]]
    failed = False
    with tempfile.TemporaryDirectory() as scratch, Network(3, 1000):
        folder = Path(scratch)
        write_token(folder)
        bench = Bench(options, folder)
        for where, run in [("one machine", bench.on_one_machine), ("three hosts", bench.on_hosts)]:
            if options.only not in (None, where):
                continue
            bench.write_job(2)
            begin = time.monotonic()
            run(False)
            epochs = max(2, round(options.seconds / (time.monotonic() - begin) * 2))
            bench.write_job(epochs)
            begin = time.monotonic()
            result, kills = run(True)
            seconds = time.monotonic() - begin
            same = result["weights_sha256"] == bench.undisturbed_weights()
            failed |= not same
            row = [where, f"{seconds:.0f}", kills, result["restarts"], epochs * STEPS, result["steps_repeated"]]
            row += [f"{result.get('goodput') or 0:.3f}", "yes" if same else "NO"]
            rows.append(list(map(str, row)))
            print(*rows[-1], result["error"] or "", file=sys.stderr)
    print(f"{report.markdown(rows)}\n\n{machine()}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
