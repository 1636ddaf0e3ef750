#!/usr/bin/env python3
"""Pictures into a training script: `get_dataset_shard` beside Ray Data and a PyTorch DataLoader, on two cores.

500 x 375 JPEG files become batches of 64 normalised pictures of 224 x 224 in the script's memory. Lockstep's time is that
of the whole command, from its start to the end of the first epoch, with an empty cache: starting the gang, decoding, and
starting Python and NumPy count. The DataLoader has two workers, Ray Data two processors; their time begins when their
imports are done and ends with the last batch of an epoch. All take turns. `make bench-shards` runs it.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bars import at_least
from machine import machine
from neighbours import Ratio
from pictures import last_line, python_with_ray
from pytorch_runs import python_with_pytorch
from report import aligned, bar_rows

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("LOCKSTEP_CACHE") or ROOT / ".cache").resolve()
DRAWN, COPIES, BATCH = 500, 4, 64

SCRIPT = f"""
import time
from lockstep import train
shard = train.get_dataset_shard("train")
for epoch in range(2):
    begin, done, waits = time.perf_counter(), 0, []
    batches = iter(shard.iter_batches(batch_size={BATCH}, prefetch_batches=2))
    while True:
        before = time.perf_counter()
        batch = next(batches, None)
        if batch is None:
            break
        waits.append(time.perf_counter() - before)
        done += len(batch["image"])
        if epoch == 1:
            time.sleep(0.1)  # So that the next is ready: what is left is handing it over.
    train.report({{"images": done, "seconds": time.perf_counter() - begin, "handover_s": sorted(waits)[len(waits) // 2]}})
"""

LOADER = f"""
import json, sys, time
from pathlib import Path
import torch
from PIL import Image
from pillow_rate import transform

class Pictures(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.paths = sorted(Path(folder).rglob("*.jpg"))
    def __len__(self):
        return len(self.paths)
    def __getitem__(self, index):
        return torch.from_numpy(transform(self.paths[index].read_bytes())), 0

torch.set_num_threads(1)
loader = torch.utils.data.DataLoader(Pictures(sys.argv[1]), batch_size={BATCH}, shuffle=True, num_workers=2)
begin, done = time.perf_counter(), 0
for pictures, labels in loader:
    done += len(pictures)
print(json.dumps({{"images_per_s": done / (time.perf_counter() - begin), "versions": {{"PyTorch": torch.__version__}}}}))
"""


def pictures(python):
    """The folder of pictures, all of one class, each several times: drawing them takes long."""
    folder = CACHE / f"pictures-500x375-{DRAWN}x{COPIES}"
    if not folder.exists():
        print(f"drawing {DRAWN} pictures into {folder} (once)", file=sys.stderr)
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        subprocess.run([python, ROOT / "bench/make_pictures.py", partial / "one", "--count", str(DRAWN)], check=True)
        for path in sorted((partial / "one").iterdir()):
            for copy in range(1, COPIES):
                shutil.copyfile(path, path.with_name(f"{path.stem}-{copy}{path.suffix}"))
        partial.rename(folder)
    return folder


def lockstep(program, python, folder):
    """Images a second of the first epoch with an empty cache, and how long handing over a batch takes."""
    with tempfile.TemporaryDirectory() as place:
        Path(place, "train.py").write_text(SCRIPT)
        job = {"python": str(python), "folder": str(folder)}
        Path(place, "job.toml").write_text(
            'name = "shards"\n[data]\n'
            f"train = {json.dumps(job['folder'])}\ntransform = {{ resize = 224, crop = 224 }}\n"
            "normalise = { mean = [0.485, 0.456, 0.406], std = [0.229, 0.224, 0.225] }\n"
            f"[train]\ncommand = [{json.dumps(job['python'])}, \"train.py\"]\n"
        )
        environment = {**os.environ, "LOCKSTEP_CACHE": str(Path(place, "cache"))}
        begin = time.perf_counter()
        run = subprocess.Popen(
            [program, "run", "job.toml", "--json"], cwd=place, env=environment, stdout=subprocess.PIPE, text=True
        )
        reports = []
        for line in run.stdout:
            event = json.loads(line)
            if event["event"] == "reported":
                reports.append((time.perf_counter() - begin, event["metrics"]))
        if run.wait() != 0:
            sys.exit("lockstep failed")
    (first, metrics), (_, second) = reports
    return metrics["images"] / first, second["handover_s"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--lockstep", type=Path, default=ROOT / "target/release/lockstep")
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    ray, torch = python_with_ray(CACHE), python_with_pytorch(CACHE)
    folder = pictures(ray)
    # Pillow lies beside Ray, PyTorch elsewhere.
    pillow = last_line([ray, "-c", "import json, PIL; print(json.dumps(PIL.__path__[0]))"])
    environment = {**os.environ, "PYTHONPATH": f"{Path(__file__).parent}:{Path(pillow).parent}"}
    rows, handovers, versions = [], [], {}
    for number in range(1, options.rounds + 1):
        print(f"round {number} of {options.rounds}", file=sys.stderr)
        rate, handover = lockstep(options.lockstep.resolve(), ray, folder)
        loader = subprocess.run(
            [torch, "-c", LOADER, folder], env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
        loader = json.loads(loader.stdout.splitlines()[-1])
        of_ray = last_line([ray, ROOT / "bench/ray_rate.py", folder / "one", "--seconds", "4"])
        versions |= {**loader["versions"], **of_ray["versions"]}
        handovers.append(handover)
        rows.append({"Lockstep": rate, "DataLoader": loader["images_per_s"], "Ray Data": of_ray["images_per_s"]})
    speed = {name: median(row[name] for row in rows) for name in rows[0]}
    ratios = {peer: [row["Lockstep"] / row[peer] for row in rows] for peer in ("Ray Data", "DataLoader")}
    ratios = {peer: Ratio(median(all), (min(all), max(all))) for peer, all in ratios.items()}
    bars = [
        at_least("Lockstep / Ray Data", ratios["Ray Data"], 3),
        at_least("Lockstep / DataLoader with two workers", ratios["DataLoader"], 1.5),
    ]
    found = {"images_per_s": speed, "bars": bars}
    print(aligned([["way", "images/s"], *([name, f"{rate:.0f}"] for name, rate in speed.items())]))
    print(aligned(bar_rows(found)))
    print(f"a batch of {BATCH} x 224 x 224 x 3 is handed over in {median(handovers) * 1000:.2f} ms; {machine()}; {versions}")


if __name__ == "__main__":
    main()
