"""PyTorch's steps a second on the benchmark's jobs, run by bench/train.py in an environment that has it.

The baseline is as fast as PyTorch goes on a job: the whole set is normalised tensors in memory, a batch is
one index_select, nothing is read back from a step, images are channels_last, and of eager mode,
torch.compile and SGD's three implementations those that are the fastest on this machine are used. One
thread a process.
"""

import argparse
import json
import os
import tempfile
import time
from functools import partial

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import numpy
import torch
from torch import nn

import fashion_mnist
from pytorch_networks import NETWORKS

SGD = {"for-loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
WARM_UP, TRIAL = 50, 100
WINDOW_S = 0.1


def load(options):
    """All inputs and labels: Fashion-MNIST's rows, or the images of an IDX file, channels last."""
    if options.network == "mlp":
        return map(torch.from_numpy, fashion_mnist.load(options.data, "train"))
    raw = numpy.fromfile(options.data, numpy.uint8)
    shape = raw[4:20].view(">u4").astype(int)
    pixels = torch.from_numpy(raw[20:].reshape(shape)).permute(0, 3, 1, 2)
    images = pixels.float().div_(255).sub_(0.5).div_(0.25)
    return images.contiguous(memory_format=torch.channels_last), torch.arange(len(images)) % 10


def batches(images, labels, batch, rank, workers):
    """This rank's share of every batch, epoch after epoch."""
    share = batch // workers
    while True:
        order = torch.randperm(len(labels))
        for start in range(0, len(order) - batch + 1, batch):
            rows = order[start + rank * share : start + (rank + 1) * share]
            yield images.index_select(0, rows), labels.index_select(0, rows)


def rates(model, optimizer, source, steps, precision):
    """Steps a second in windows of so many steps."""
    in_precision = partial(torch.autocast, "cpu", torch.bfloat16, enabled=precision == "bf16")
    loss_of = nn.CrossEntropyLoss()
    found, began, done = [], time.time(), 0
    for number in range(steps):
        inputs, targets = next(source)
        optimizer.zero_grad()
        with in_precision():
            loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        done, now = done + 1, time.time()
        if now - began >= WINDOW_S or number + 1 == steps:
            found.append(done / (now - began))
            began, done = now, 0
    return found[:-1] or found


def measure(rank, workers, meeting, options):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = NETWORKS[options.network]().train()
    if options.network != "mlp":
        model = model.to(memory_format=torch.channels_last)
    if workers > 1:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{meeting}", rank=rank, world_size=workers
        )
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    source = batches(*load(options), options.batch, rank, workers)
    modes = {"eager": model}
    if "compile" in options.modes:
        modes["compiled"] = torch.compile(model)
    optimizers = {
        name: torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, **how) for name, how in SGD.items()
    }
    warm_up, trial = (max(2, min(count, options.steps // 4)) for count in (WARM_UP, TRIAL))
    trials = {}
    for mode, module in modes.items():
        for name, optimizer in optimizers.items():
            rates(module, optimizer, source, warm_up, options.precision)
            found = rates(module, optimizer, source, trial, options.precision)
            trials[mode, name] = max(found)
    choice = [max(trials, key=trials.get)]
    if workers > 1:
        torch.distributed.broadcast_object_list(choice)
        torch.distributed.barrier()
    mode, name = choice[0]
    found = rates(modes[mode], optimizers[name], source, options.steps, options.precision)
    if workers > 1:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()
    if rank == 0:
        figures = {
            "steps_per_s": found,
            "settings": f"{mode}, SGD {name}",
            "trials": {f"{mode}, SGD {name}": rate for (mode, name), rate in trials.items()},
            "versions": {"torch": torch.__version__, "numpy": numpy.__version__},
        }
        print(json.dumps(figures), flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("network", choices=NETWORKS)
    arguments.add_argument("data", help="Fashion-MNIST's folder, or an IDX file of images")
    arguments.add_argument("--batch", type=int, required=True, help="global batch")
    arguments.add_argument("--workers", type=int, default=1)
    arguments.add_argument("--steps", type=int, default=600)
    arguments.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    arguments.add_argument("--modes", nargs="+", choices=("eager", "compile"), default=["eager"])
    options = arguments.parse_args()
    if options.workers == 1:
        measure(0, 1, None, options)
        return
    with tempfile.TemporaryDirectory() as folder:
        arguments = (options.workers, f"{folder}/meeting", options)
        torch.multiprocessing.spawn(measure, arguments, nprocs=options.workers)


if __name__ == "__main__":
    main()
