"""Lockstep's side of the benchmark: runs of the real job, timed by what `--json` reports."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

SAMPLE_S = 0.02


class Lockstep:
    """The binary with a job, and a cache and a store of its own."""

    def __init__(self, binary, job, cache, scratch):
        self.binary, self.job = Path(binary).resolve(), job
        self.store, self.decoded = scratch / "runs", scratch / "decoded"
        (scratch / "datasets").symlink_to(cache / "datasets")
        self.environment = {**os.environ, "LOCKSTEP_CACHE": str(scratch)}

    def version(self):
        command = [self.binary, "--version"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]

    def start(self, batch, workers, *options):
        command = [self.binary, "run", self.job, "--json", "--epochs", 1, *options]
        settings = {"train.batch": batch, "train.workers": workers, "train.lanes": workers}
        for key, value in {**settings, "run.store": self.store}.items():
            command += ["--set", f"{key}={value}"]
        return subprocess.Popen(
            list(map(str, command)), env=self.environment, stdout=subprocess.PIPE, text=True
        )

    def finish(self, run):
        """The result of a run, which must have succeeded."""
        result = json.loads(run.communicate()[0].splitlines()[-1])
        if result["status"] != "succeeded":
            raise RuntimeError(f"{self.binary} failed: {result['error']}")
        shutil.rmtree(result["run_dir"])
        return result

    def steps_per_s(self, batch, workers):
        """Optimizer steps a second over an epoch, as many lanes as workers."""
        result = self.finish(self.start(batch, workers, "--quiet"))
        return result["timing"]["samples_per_s"] / batch

    def two_at_once(self, batch):
        """Steps a second of each of two runs that know nothing of each other."""
        runs = [self.start(batch, 1, "--quiet") for _ in range(2)]
        return sum(self.finish(run)["timing"]["samples_per_s"] / batch for run in runs) / 2

    def first_step(self, decoded):
        """Seconds to the first step of a two-worker run: as reported, and seen from outside."""
        if not decoded:
            shutil.rmtree(self.decoded, ignore_errors=True)
        began = time.perf_counter()
        run = self.start(32, 2)
        for line in run.stdout:
            event = json.loads(line)
            if event["event"] == "first_step":
                outside = time.perf_counter() - began
                run.send_signal(signal.SIGINT)
                run.communicate()
                return {"reported": event["seconds"], "outside": outside}
        raise RuntimeError(f"{self.binary} ended before its first step")

    def peak_pss(self):
        """The most memory of a two-worker run that begins from the gzipped files, in bytes."""
        shutil.rmtree(self.decoded, ignore_errors=True)
        run = self.start(32, 2, "--quiet")
        peak = 0
        while run.poll() is None:
            peak = max(peak, sum(map(pss, [run.pid, *children(run.pid)])))
            time.sleep(SAMPLE_S)
        self.finish(run)
        return peak


def children(pid):
    """Ids of a process's children."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:  # the thread has ended
            pass
    return found


def pss(pid):
    """A process's proportional set size in bytes; 0 once it has ended."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
