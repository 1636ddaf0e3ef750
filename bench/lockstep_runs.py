"""Lockstep's side of the benchmark: runs of real jobs, timed by what `--json` reports."""

import json
import os
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from memory import peak_pss


def per_step(rates, batch):
    if not rates:
        raise RuntimeError(f"an epoch at batch {batch} is too short to be measured; give it more samples")
    return [rate / batch for rate in rates]


class Lockstep:
    """The binary with a job, and a cache and a store of its own."""

    def __init__(self, binary, job, cache, scratch, epochs=1):
        self.binary, self.job, self.epochs = Path(binary).resolve(), job, epochs
        self.store, self.decoded = scratch / "runs", scratch / "decoded"
        datasets = scratch / "datasets"
        if not datasets.is_symlink():
            datasets.symlink_to(cache / "datasets")
        self.environment = {**os.environ, "LOCKSTEP_CACHE": str(scratch)}

    def version(self):
        command = [self.binary, "--version"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]

    def start(self, batch, workers, precision="f32"):
        command = [self.binary, "run", self.job, "--json", "--epochs", self.epochs]
        settings = {"train.batch": batch, "train.workers": workers, "train.lanes": workers}
        if precision != "f32":
            settings["train.precision"] = precision
        for key, value in {**settings, "run.store": self.store}.items():
            command += ["--set", f"{key}={value}"]
        return subprocess.Popen(
            list(map(str, command)), env=self.environment, stdout=subprocess.PIPE, text=True
        )

    def finish(self, run):
        """Samples a second in every window of the last epoch of a run, which must have succeeded."""
        events = [json.loads(line) for line in run.stdout]
        run.wait()
        result = events[-1]
        if result["status"] != "succeeded":
            raise RuntimeError(f"{self.binary} failed: {result['error']}")
        shutil.rmtree(result["run_dir"])
        windows = [event for event in events if event["event"] == "progress" and event["rank"] == 0]
        rates = [event["samples_per_s"] for event in windows if event["epoch"] == self.epochs]
        # The first has the start of the epoch in it, the last may be short.
        return rates[1:-1]

    def steps_per_s(self, batch, workers, precision="f32"):
        """Optimizer steps a second in windows of the last epoch, as many lanes as workers."""
        return per_step(self.finish(self.start(batch, workers, precision)), batch)

    def two_at_once(self, batch):
        """The same of two runs that know nothing of each other."""
        runs = [self.start(batch, 1) for _ in range(2)]
        with ThreadPoolExecutor() as threads:
            return [rate for found in threads.map(self.finish, runs) for rate in per_step(found, batch)]

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

    def peak_pss(self, batch, workers):
        """The most memory of a run that begins from the files as they came, in MiB."""
        shutil.rmtree(self.decoded, ignore_errors=True)
        run = self.start(batch, workers)
        peak = peak_pss(run)
        self.finish(run)
        return peak
