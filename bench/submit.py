#!/usr/bin/env python3
"""How long `lockstep submit` takes to the first step on a running Ray cluster, and the memory of its job.

    python3 bench/submit.py --lockstep target/release/lockstep --python PYTHON_WITH_RAY

A cluster of one node is started. Then Fashion-MNIST is submitted with two workers: `submitted` is when the head has the
job, which is our own part; `command` when Ray has begun to run its command, `actors` when Ray has placed the workers,
`first_step` when that event is shown here. The first submission sends the package,
the others find it on the head. The memory is the PSS of all processes of the cluster and of the command in the middle
of a run of many epochs, less that of the cluster at rest before it: so it has the command here, the job's command, what
speaks with Ray, Ray's actors and the workers. Ray keeps idle worker processes ready; those that it adds count too.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from memory import pss

HERE = Path(__file__).resolve().parent
MARK = "LOCKSTEP_TEST_HEAD"
# Messages that say how far a job is.
STAGES = {"submitted as": "submitted", "the head starts": "command", "worker 0 on": "actors"}


def parent(pid):
    """The process that started another."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]


def held(folder, own):
    """MiB of each process of the cluster and of one more, with its command, by its id.

    Ray's processes write their titles over their environment, where the mark was: what they descend from still has it.
    """
    mark = f"{MARK}={folder}".encode()
    marked, parents = {str(own)}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[pid] = parent(pid)
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                marked.add(pid)
        except OSError:  # it has ended
            pass
    found = {}
    for pid in parents:
        above = pid
        while above in parents and above not in marked:
            above = parents[above]
        if above in marked:
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                found[pid] = (pss(pid) / 2**20, words[:100])
            except OSError:  # it has ended
                pass
    return found


def total(processes):
    return sum(mib for mib, _ in processes.values())


def submitted(options, endpoint, *more):
    """A submission, and the clock at its start."""
    command = [options.lockstep, "submit", options.job, "--to", endpoint, "--json", "--workers", "2", *more]
    started = time.perf_counter()
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True), started


def times(options, endpoint):
    """Seconds until it was submitted and until its first step."""
    process, started = submitted(options, endpoint, "--epochs", "1")
    seen = {}
    for line in process.stdout:
        event = json.loads(line)
        kind = event["event"]
        message = event.get("message", "")
        for words, name in STAGES.items():
            kind = name if words in message else kind
        seen.setdefault(kind, time.perf_counter() - started)
    assert process.wait() == 0, "the job failed"
    return seen


def memory(options, endpoint, folder):
    before = held(folder, None)
    process, _ = submitted(options, endpoint, "--epochs", "1000", "--id", "memory")
    epochs = 0
    for line in process.stdout:
        epochs += json.loads(line)["event"] == "epoch"
        if epochs == 2:
            break
    during = held(folder, process.pid)
    stop = [options.lockstep, "jobs", "stop", "memory", "--to", endpoint]
    subprocess.run(stop, check=True, stdout=subprocess.DEVNULL)
    process.stdout.read()
    process.wait()
    return before, during


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--lockstep", default="target/release/lockstep")
    arguments.add_argument("--python", required=True, help="a Python that has ray[default]")
    arguments.add_argument("--job", default=str(HERE.parent / "examples/fashion-mnist.toml"))
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    folder = tempfile.mkdtemp(prefix="lsb")
    script = HERE.parent / "crates/lockstep-testkit/servers/ray_head.py"
    programs = os.path.dirname(os.path.abspath(options.python))
    command = [options.python, str(script), "1", programs, folder]
    head = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        endpoint = json.loads(head.stdout.readline())["endpoint"]
        time.sleep(10)  # A head that has just begun is busy with itself.
        for round_ in range(options.rounds + 1):
            seen = times(options, endpoint)
            name = f"round {round_}" if round_ else "with upload"
            load = os.getloadavg()[0]
            stages = ["submitted", "command", "actors", "first_step", "result"]
            shown = ", ".join(f"{stage} {seen[stage]:.2f}" for stage in stages)
            print(f"{name:12} {shown} (load {load:.1f})", flush=True)
        time.sleep(5)
        before, during = memory(options, endpoint, folder)
        print(f"memory: {total(before):.0f} MiB at rest, {total(during) - total(before):.0f} MiB more in a run")
        for pid in sorted(during.keys() - before.keys(), key=int):
            mib, words = during[pid]
            print(f"  {mib:7.1f} {words}")
    finally:
        head.stdin.close()
        head.wait()


if __name__ == "__main__":
    sys.exit(main())
