"""A stand-in for the program `lockstep`: a run of a network is told, one of a script is a gang of stand-ins."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, List


def say(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)


def run(arguments: List[str]) -> int:
    job = Path(arguments[0]).read_text(encoding="utf-8")
    if "command = " in job:
        return launch(job)
    Path("seen.json").write_text(json.dumps({"arguments": arguments, "job": job}))
    if "broken" in job:
        print("error: job.toml: unknown key broken", file=sys.stderr)
        return 2
    say("started", run="job-1", run_dir="/runs/job-1", workers=2, epochs=2)
    if "forever" in job:
        wait_for_interrupt()
    if "failing" in job:
        say("result", status="failed", run="job-1", run_dir="/runs/job-1", metrics=None, error="worker 1 was killed")
        return 1
    print("this line is no event")
    for epoch in (1, 2):
        say("progress", epoch=epoch, step=5, steps=10, loss=1.0, samples_per_s=100.0, rank=0)
        test = {"loss": 1 / epoch, "accuracy": 0.5 + epoch / 10}
        say("epoch", epoch=epoch, step=10 * epoch, train={"loss": 2 / epoch}, val=None, test=test, seconds=0.1, best=True)
    metrics = {"loss": 0.5, "accuracy": 0.7}
    # Without a test set, there is nothing but validation.
    measured = {"metrics": None, "val": metrics} if "val_split" in job else {"metrics": metrics}
    last = {**measured, "weights_sha256": "abc", "best_epoch": 2, "error": None}
    say("result", status="succeeded", run="job-1", run_dir="/runs/job-1", timing={"total_s": 1.0}, **last)
    return 0


def wait_for_interrupt() -> None:
    def stopped(*_: Any) -> None:
        Path("stopped").write_text("in good order")
        sys.exit(130)

    signal.signal(signal.SIGINT, stopped)
    Path("waiting").write_text("")
    time.sleep(60)


def free_ports(count: int) -> List[int]:
    """Ports that nobody has, for the frameworks to meet at."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def launch(job: str) -> int:
    from worker import Gang

    Path("launched.toml").write_text(job)
    # Enough of TOML for what the package writes: a key and a value of JSON on a line.
    keys = dict(line.split(" = ", 1) for line in job.splitlines() if " = " in line)
    command, size = json.loads(keys["command"]), int(keys["workers"])
    fit = json.loads(keys["LOCKSTEP_FIT"])
    gang = Gang(size)
    ports = free_ports(size + 1)
    workers = [f"127.0.0.1:{port}" for port in ports[1:]]
    processes = []
    for rank in range(size):
        task = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
        variables = {
            **os.environ,
            "LOCKSTEP_SOCKET": gang.path(rank),
            "LOCKSTEP_FIT": fit,
            "RANK": str(rank),
            "WORLD_SIZE": str(size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(ports[0]),
            "TF_CONFIG": json.dumps(task),
            "TF_USE_LEGACY_KERAS": "1",
        }
        processes.append(subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True))
    for rank, process in enumerate(processes):
        for line in process.communicate()[0].splitlines():
            say("log", rank=rank, line=line)
    reports = [entry for entry in gang.reports if entry["rank"] == 0]
    for number, entry in enumerate(reports, 1):
        say("reported", report=number, metrics=entry["metrics"], checkpoint=entry["checkpoint"] is not None)
    failed = [rank for rank, process in enumerate(processes) if process.returncode != 0]
    gang.end()
    error = f"rank {failed[0]} ended with {processes[failed[0]].returncode}" if failed else None
    status = "failed" if failed else "succeeded"
    last = reports[-1]["metrics"] if reports else None
    say("result", status=status, run="job-1", run_dir=str(gang.folder), metrics=None, reported=last, error=error)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[2:]))
