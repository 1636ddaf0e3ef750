#!/usr/bin/env python3
"""What tracking costs: the Fashion-MNIST job with and without it, by turns.

    python3 bench/tracking.py --lockstep target/release/lockstep --python PYTHON_WITH_MLFLOW [--turns 10] [--epochs 10]

With it means: a real MLflow server on this machine over loopback (parameters, metrics, files, checkpoints, the model,
registered), TensorBoard's event files, and the index of the store; without it only the run's folder and its index. The
server runs all the time. What is compared is the whole command, from its start to its end (`wall`), and the time from the
first step to the last (`train`). The order within a turn changes from turn to turn, so that what changes slowly on the
machine meets both alike; the figure is the median of the turns' ratios. On a machine whose speed changes by more than
what is measured, two parts of the cost say more: `end`, from the end of the last epoch to the end of the command, and
`server`, the processor time that MLflow's own processes took meanwhile, which here share the cores with training.
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

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "crates/lockstep-testkit/servers/mlflow_server.py"


def cpu_seconds(group):
    """The processor time of all processes of a process group so far."""
    ticks = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def run(program, job, store, settings, server=None):
    """The seconds of one run: of the whole command, of training, of its end, and of the server meanwhile."""
    before = cpu_seconds(server) if server else 0.0
    words = [program, "run", job, "--json", "--set", f"run.store={store}"]
    for setting in settings:
        words += ["--set", setting]
    began = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True)
    wall = time.perf_counter() - began
    ended = time.time()
    took = cpu_seconds(server) - before if server else 0.0
    if done.returncode != 0:
        sys.exit(done.stderr)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    warnings = [event["message"] for event in events if event["event"] == "warning"]
    if warnings:
        sys.exit(f"the run was not tracked as it should: {warnings}")
    result = events[-1]
    record = [json.loads(line) for line in open(Path(result["run_dir"]) / "events.jsonl")]
    last = max(event["time"] for event in record if event["event"] == "epoch")
    return {
        "wall": wall, "train": result["timing"]["train_s"], "end": ended - last, "server": took,
        "hash": result["weights_sha256"],
    }


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("--lockstep", required=True, type=os.path.abspath)
    words.add_argument("--python", required=True, type=os.path.abspath)
    words.add_argument("--turns", type=int, default=10)
    words.add_argument("--epochs", type=int, default=10)
    args = words.parse_args()
    job = str(ROOT / "examples/fashion-mnist.toml")
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [args.python, SERVER, f"{folder}/mlflow", "0"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        address = json.loads(server.stdout.readline())["endpoint"]
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        group = int(children[0])
        epochs = f"train.epochs={args.epochs}"
        kinds = {
            "without": [epochs, 'track.mlflow="none"'],
            "with": [
                epochs, f'track.mlflow="{address}"', 'track.register="fashion"', 'track.alias="champion"',
                "track.tensorboard=true",
            ],
        }
        run(args.lockstep, job, f"{folder}/first", ["train.epochs=1", 'track.mlflow="none"'])
        ratios = {"wall": [], "train": []}
        parts = {"end": [], "server": []}
        for turn in range(args.turns):
            order = list(kinds) if turn % 2 == 0 else list(kinds)[::-1]
            found = {kind: run(args.lockstep, job, f"{folder}/runs", kinds[kind], group) for kind in order}
            assert found["with"]["hash"] == found["without"]["hash"], "tracking changed the weights"
            for what in ratios:
                ratios[what].append(found["with"][what] / found["without"][what])
            for what in parts:
                parts[what].append(found["with"][what] - found["without"][what])
            shown = {
                kind: {what: round(found[kind][what], 3) for what in [*ratios, *parts]} for kind in kinds
            }
            print(f"turn {turn + 1}: {json.dumps(shown)}", flush=True)
        for what, values in ratios.items():
            values.sort()
            middle = statistics.median(values)
            print(
                f"{what}: {100 * (middle - 1):+.2f} % in the median of {len(values)} turns "
                f"({100 * (values[0] - 1):+.2f} to {100 * (values[-1] - 1):+.2f} %)"
            )
        for what, values in parts.items():
            values.sort()
            middle = statistics.median(values)
            print(f"{what}: {middle:+.3f} s in the median ({values[0]:+.3f} to {values[-1]:+.3f} s)")
        server.stdin.close()
        server.wait()


if __name__ == "__main__":
    main()
