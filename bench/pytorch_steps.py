"""PyTorch's steps a second on the Fashion-MNIST job, run by bench/train.py in an environment that has it.

The baseline is as fast as eager PyTorch goes on this job: the whole set is normalised tensors in memory,
a batch is one index_select, nothing is read back from a step, and of SGD's three implementations the
fastest on this machine is used. One thread a process.
"""

import argparse
import json
import os
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import numpy
import torch
from torch import nn

from fashion_mnist import load

SGD = {"for-loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
WARM_UP, TRIAL = 50, 100


def mlp():
    return nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.25),
        nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.25),
        nn.Linear(512, 10),
    )  # fmt: skip


def batches(images, labels, batch, rank, workers):
    """This rank's share of every batch, epoch after epoch."""
    share = batch // workers
    while True:
        order = torch.randperm(len(labels))
        for start in range(0, len(order) - batch + 1, batch):
            rows = order[start + rank * share : start + (rank + 1) * share]
            yield images.index_select(0, rows), labels.index_select(0, rows)


def time_steps(model, optimizer, source, steps):
    """Seconds that so many steps take."""
    loss_of = nn.CrossEntropyLoss()
    began = time.perf_counter()
    for _ in range(steps):
        inputs, targets = next(source)
        optimizer.zero_grad()
        loss_of(model(inputs), targets).backward()
        optimizer.step()
    return time.perf_counter() - began


def measure(rank, workers, meeting, options):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = mlp().train()
    if workers > 1:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{meeting}", rank=rank, world_size=workers
        )
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    source = batches(*map(torch.from_numpy, load(options.data, "train")), options.batch, rank, workers)
    optimizers = {
        name: torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, **how) for name, how in SGD.items()
    }
    trials = {}
    for name, optimizer in optimizers.items():
        time_steps(model, optimizer, source, min(WARM_UP, options.steps))
        trials[name] = time_steps(model, optimizer, source, min(TRIAL, options.steps))
    choice = [min(trials, key=trials.get)]
    if workers > 1:
        torch.distributed.broadcast_object_list(choice)
        torch.distributed.barrier()
    seconds = time_steps(model, optimizers[choice[0]], source, options.steps)
    if workers > 1:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()
    if rank == 0:
        versions = {"torch": torch.__version__, "numpy": numpy.__version__}
        settings = f"eager, SGD {choice[0]}"
        figures = {"steps_per_s": options.steps / seconds, "settings": settings, "versions": versions}
        print(json.dumps(figures), flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("data", help="the folder of Fashion-MNIST's gzipped IDX files")
    arguments.add_argument("--batch", type=int, required=True, help="global batch")
    arguments.add_argument("--workers", type=int, default=1)
    arguments.add_argument("--steps", type=int, default=600)
    options = arguments.parse_args()
    if options.workers == 1:
        measure(0, 1, None, options)
        return
    with tempfile.TemporaryDirectory() as folder:
        arguments = (options.workers, f"{folder}/meeting", options)
        torch.multiprocessing.spawn(measure, arguments, nprocs=options.workers)


if __name__ == "__main__":
    main()
