#!/usr/bin/env python3
"""Boosted trees: one worker against two, exact against XGBoost's own, and Ray Train, by turns. `make bench-trees`.

A table of 1,000,000 rows of 28 numbers, depth 6, 100 rounds. Every turn runs each of them once, one after the other, and
gives ratios; the median of the turns is reported. What is compared:

- `train`: the time from the first round to the last, by what each says itself;
- `wall`: the whole command, from its start to its end, a model on the disk and an evaluation included;
- `memory`: the largest sum of proportional set sizes of the processes that do the work, from a run of its own: looking
  takes time from what is looked at. `own` is the same without pages of files, which the system can take back.

XGBoost and Ray lie in a virtual environment in the cache, made on the first run (about 1 GB).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import machine
from memory import children

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("LOCKSTEP_CACHE") or ROOT / ".cache").resolve()
PEERS = ROOT / "bench/trees_peers.py"
PACKAGES = ["ray[train]==2.60.0", "xgboost-cpu", "pyarrow", "pandas", "numpy"]
JOB = """
name = "trees"
[data]
train = {{ parquet = "{folder}/train.parquet", label = "label" }}
test = {{ parquet = "{folder}/test.parquet", label = "label" }}
[model]
kind = "xgboost"
rounds = {rounds}
depth = 6
eta = 0.1
subsample = {subsample}
base_score = 0.5
[run]
store = "{folder}/runs"
[train]
threads = 1
"""


def python():
    """A Python that has XGBoost and Ray."""
    folder = CACHE / "peers/trees"
    if not (folder / "ready").exists():
        print("making an environment with Ray and XGBoost (about 1 GB)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin/pip", "install", "--quiet", *PACKAGES], check=True)
        (folder / "ready").touch()
    return folder / "bin/python"


def family(pid):
    found = children(pid)
    return [pid, *[below for child in found for below in family(child)]]


def ran(words, environment=None, look=lambda pid: None):
    """Runs a command, while which its process is looked at: its output, and the seconds it took."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(words, stdout=out, stderr=err, text=True, env={**os.environ, **(environment or {})})
        while process.poll() is None:
            look(process.pid)
            time.sleep(0.02)
        wall = time.perf_counter() - begin
        out.seek(0), err.seek(0)
        if process.returncode != 0:
            sys.exit(f"{words}: {err.read()[-3000:]}")
        return out.read(), wall


class Peak:
    """The largest memory of a process and those that it started, in MiB."""

    def __init__(self):
        self.memory = self.own = 0

    def look(self, pid):
        found = [memory(one) for one in family(pid)]
        self.memory = max(self.memory, sum(each["Pss"] for each in found) / 1024)
        self.own = max(self.own, sum(each["Pss_Anon"] + each["Pss_Shmem"] for each in found) / 1024)


def memory(pid):
    """What the system says of a process's memory, in KiB; zeros once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        lines = []
    said = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return {"Pss": 0, "Pss_Anon": 0, "Pss_Shmem": 0, **said}


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.python = args, folder, python()
        self.library = next((CACHE / "peers/trees").glob("lib/python*/site-packages/xgboost/lib/libxgboost.so"))
        self.look = lambda pid: None
        self.job = Path(folder, "job.toml")
        self.job.write_text(JOB.format(folder=folder, rounds=args.rounds, subsample=1.0))

    def lockstep(self, workers, *settings):
        words = [self.args.lockstep, "run", self.job, "--json", "--workers", str(workers)]
        for setting in settings:
            words += ["--set", setting]
        out, wall = ran(words, {"LOCKSTEP_XGBOOST": str(self.library)}, self.look)
        result = json.loads(out.splitlines()[-1])
        return {
            "train": result["timing"]["train_s"], "wall": wall,
            "hash": result["weights_sha256"], "auc": result["evaluation"]["auc"],
        }

    def peer(self, part, **settings):
        given = {"depth": 6, "eta": 0.1, "rounds": self.args.rounds, "seed": 0, "subsample": 1.0, **settings}
        out, wall = ran([self.python, PEERS, part, self.folder, json.dumps(given)], look=self.look)
        # Ray writes lines of its own, also at its end.
        said = json.loads([line for line in out.splitlines() if line.startswith("{")][-1])
        return {"train": said["train_s"], "wall": wall, "auc": said["auc"]}

    def peak(self, run):
        """The memory that a run takes."""
        peak = Peak()
        self.look = peak.look
        run()
        self.look = lambda pid: None
        return {"memory": round(peak.memory, 1), "own": round(peak.own, 1)}


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("--lockstep", type=os.path.abspath, default=ROOT / "target/release/lockstep")
    words.add_argument("--rows", type=int, default=1_000_000)
    words.add_argument("--rounds", type=int, default=100)
    words.add_argument("--turns", type=int, default=3)
    words.add_argument("--seeds", type=int, default=3, help="seeds of the comparison of AUC, with a sample of 0.7")
    args = words.parse_args()
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        bench = Bench(args, folder)
        subprocess.run([bench.python, PEERS, "data", folder, str(args.rows)], check=True, stdout=subprocess.DEVNULL)
        kinds = {
            "one worker": lambda: bench.lockstep(1),
            "two workers": lambda: bench.lockstep(2),
            "two workers, exact = false": lambda: bench.lockstep(2, "model.exact=false"),
            "XGBoost, one thread": lambda: bench.peer("single", threads=1),
            "XGBoost, two threads": lambda: bench.peer("single", threads=2),
            "Ray Train, two workers": lambda: bench.peer("ray", workers=2),
        }
        bench.lockstep(1)  # decodes the table, once
        turns = []
        for number in range(args.turns):
            turns.append({})
            for name, run in kinds.items():
                found = turns[-1][name] = run()
                shown = {key: round(value, 4) for key, value in found.items() if key != "hash"}
                print(f"turn {number + 1}: {name}: {shown}", file=sys.stderr, flush=True)
        hashes = {turn[name]["hash"] for turn in turns for name in ["one worker", "two workers"]}
        assert len(hashes) == 1, f"one worker and two came to other trees: {hashes}"

        def ratio(what, above, below):
            found = sorted(turn[above][what] / turn[below][what] for turn in turns)
            return [round(value, 3) for value in (statistics.median(found), found[0], found[-1])]

        peaks = {name: bench.peak(kinds[name]) for name in list(kinds)[:4]}
        print(f"memory: {peaks}", file=sys.stderr, flush=True)
        aucs = []
        for seed in range(args.seeds):
            ours = bench.lockstep(2, "model.subsample=0.7", f"train.seed={seed}")["auc"]
            aucs.append([ours, bench.peer("single", threads=2, seed=seed, subsample=0.7)["auc"]])
        raw = args.rows * 28 * 4 / 2**20
        one, two = peaks["one worker"], peaks["two workers"]
        report = {
            "machine": machine(), "rows": args.rows, "rounds": args.rounds, "turns": turns,
            "speedup of two workers (median, least, most)": ratio("train", "one worker", "two workers"),
            "whole job against Ray Train": ratio("wall", "two workers", "Ray Train, two workers"),
            "exact against exact = false": ratio("train", "two workers", "two workers, exact = false"),
            "training against XGBoost with two threads": ratio("train", "two workers", "XGBoost, two threads"),
            "memory in MiB": peaks,
            "memory of two workers against one": round(two["memory"] / one["memory"], 2),
            "memory of two workers against the raw size": round(two["memory"] / raw, 2),
            "the same without pages of files": round(two["own"] / raw, 2),
            "auc by seed, ours and XGBoost's": aucs,
            "difference of the means": round(statistics.mean(a - b for a, b in aucs), 5),
        }
        print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
