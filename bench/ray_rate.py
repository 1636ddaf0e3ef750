#!/usr/bin/env python3
"""How many pictures a second Ray Data decodes, resizes, crops and normalises, on two cores.

Two ways that its users would write, of which the faster counts: `read_images` and then a map of arrays, and
`read_binary_files` and then a map that decodes. Both do what pillow_rate.py does. Ray is started and its workers are
warm before the clock runs; the clock stops when the last batch has arrived.
"""

import argparse
import json
import logging
import time
from pathlib import Path

import numpy as np
import ray
from PIL import Image
from pillow_rate import normalised, shrunk, transform

BATCH = 32


def of_bytes(batch):
    return {"pixels": np.stack([transform(data) for data in batch["bytes"]])}


def of_arrays(batch):
    return {"pixels": np.stack([normalised(shrunk(Image.fromarray(pixels))) for pixels in batch["image"]])}


def by_bytes(paths):
    return ray.data.read_binary_files(paths).map_batches(of_bytes, batch_size=BATCH)


def by_arrays(paths):
    return ray.data.read_images(paths, mode="RGB").map_batches(of_arrays, batch_size=BATCH)


def rate(pipeline, paths):
    start, done = time.perf_counter(), 0
    for batch in pipeline(paths).iter_batches(batch_size=BATCH):
        done += len(batch["pixels"])
    assert done == len(paths), f"{done} of {len(paths)} pictures came out"
    return done / (time.perf_counter() - start)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--seconds", type=float, default=5)
    options = arguments.parse_args()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    paths = [str(path) for path in sorted(options.folder.iterdir())]
    rates = {}
    for pipeline in [by_bytes, by_arrays]:
        warm = rate(pipeline, paths[:200])
        # As many as it does in the time, twice the folder at least, so that starting a pipeline counts for little.
        many = max(2, round(warm * options.seconds / len(paths)))
        rates[pipeline.__name__] = rate(pipeline, paths * many)
    ray.shutdown()
    figures = {"images_per_s": max(rates.values()), "ways": rates, "versions": {"Ray": ray.__version__}}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
