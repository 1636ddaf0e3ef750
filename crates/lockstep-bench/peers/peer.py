"""Trains a job of Lockstep in PyTorch, so that both can be compared: peer.py SPEC.json, one line of JSON at the end.

SPEC names the peer:
- torch-threads: one process with as many threads as there are workers;
- torch-ddp: DistributedDataParallel over gloo, one process a worker and one thread each;
- ray-train: the same loop in Ray Train's TorchTrainer.

The rest of SPEC is the job: its layers as Python writes their modules, the optimizer, the schedule, and the samples as plain
files of numbers. PyTorch is made as fast as its documents say: the whole set is in memory, a batch is one index_select,
images are channels_last, the optimizer is the fused one where there is one, gradients are views into DDP's buckets, and
nothing is read back from a step.
"""

import json
import math
import os
import sys
import tempfile
import time


def stack(layers, torch, nn):
    """The modules of layers: those of torch.nn, and these. Widths of inputs are found when the first samples pass."""

    class Residual(nn.Module):
        def __init__(self, body, shortcut):
            super().__init__()
            self.body, self.shortcut = body, shortcut

        def forward(self, x):
            return self.body(x) + self.shortcut(x)

    class BatchNorm(nn.Module):
        """Of vectors or images, whichever comes."""

        def __init__(self):
            super().__init__()
            self.norm = None

        def forward(self, x):
            if self.norm is None:
                self.norm = (nn.BatchNorm2d if x.dim() == 4 else nn.BatchNorm1d)(x.shape[1])
            return self.norm(x)

    class PixelNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = None

        def forward(self, x):
            if self.norm is None:
                self.norm = nn.LayerNorm(x.shape[1])
            return self.norm(x.movedim(1, -1)).movedim(-1, 1)

    class GroupNorm(nn.Module):
        def __init__(self, groups):
            super().__init__()
            self.groups, self.norm = groups, None

        def forward(self, x):
            if self.norm is None:
                self.norm = nn.GroupNorm(self.groups, x.shape[1])
            return self.norm(x)

    class Linear(nn.Module):
        def __init__(self, out):
            super().__init__()
            self.linear = nn.LazyLinear(out)

        def forward(self, x):
            return self.linear(x.flatten(1))

    class Embedding(nn.Module):
        """Rows of tables in place of the last numbers; what comes before these goes on as it is."""

        def __init__(self, tables):
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(*table) for table in tables)

        def forward(self, x):
            count = len(self.tables)
            places = x[:, -count:].long().unbind(1)
            return torch.cat([x[:, :-count], *(table(place) for table, place in zip(self.tables, places))], 1)

    names = dict(locals())
    return nn.Sequential(*(eval(layer, names) for layer in layers))


def load(torch, numpy, spec, found):
    """Samples and what is right of them. Where no layer looks at images, they are vectors from the beginning."""
    channels, height, width = spec["shape"]
    x = numpy.memmap(found["samples"], numpy.float32, "r", shape=(found["count"], height, width, channels))
    x = torch.from_numpy(numpy.array(x)).permute(0, 3, 1, 2)
    if (height, width) == (1, 1) or spec["layers"][0].startswith(("Linear(", "nn.Flatten(", "nn.Unflatten(")):
        x = x.flatten(1).contiguous()
    y = numpy.fromfile(found["labels"], numpy.uint32).astype(numpy.int64)
    return x, torch.from_numpy(y)


def rate(spec, step, steps_per_epoch):
    """The learning rate of a step, counted from 0."""
    schedule, lr = spec["schedule"], spec["optimizer"]["lr"]
    warmup = schedule.get("warmup_steps", 0)
    if step < warmup:
        return lr * (step + 1) / warmup
    if schedule["kind"] == "step":
        return lr * schedule["gamma"] ** (step // steps_per_epoch // schedule["every_epochs"])
    if schedule["kind"] == "cosine":
        least = schedule.get("min_lr", 0.0)
        steps = schedule.get("steps") or steps_per_epoch * spec["epochs"]
        done = min(1.0, (step - warmup) / max(1, steps - warmup))
        return least + (lr - least) * (1 + math.cos(math.pi * done)) / 2
    return lr


def optimizer(spec, model, torch):
    wanted = {key: value for key, value in spec["optimizer"].items() if key != "kind"}
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop}
    kind = kinds[spec["optimizer"]["kind"]]
    try:
        return kind(model.parameters(), **wanted, fused=True)
    except (RuntimeError, TypeError):
        return kind(model.parameters(), **wanted, foreach=True)


def train(spec, rank, workers, distribute):
    """The training of one process; what rank 0 measured."""
    import numpy
    import torch
    from torch import nn

    torch.set_num_threads(spec["workers"] if spec["peer"] == "torch-threads" else 1)
    torch.manual_seed(spec["seed"])
    x, y = load(torch, numpy, spec, spec["train"])
    test = spec["test"] and load(torch, numpy, spec, spec["test"])
    model = stack(spec["layers"], torch, nn)
    with torch.no_grad():
        # Once through, so that every layer knows its width; in evaluation, so that nothing is counted.
        model.eval()(x[:2])
    if x.dim() == 4:
        model = model.to(memory_format=torch.channels_last)
    model = distribute(model.train())
    steps = optimizer(spec, model, torch)
    loss_of = nn.CrossEntropyLoss(label_smoothing=spec["label_smoothing"])
    batch, count = spec["batch"], len(y)
    per_epoch = math.ceil(count / batch)
    epochs, began, first, stepping, number = [], time.time(), None, 0.0, 0
    for epoch in range(1, spec["epochs"] + 1):
        order = torch.randperm(count, generator=torch.Generator().manual_seed(spec["seed"] * 1000 + epoch))
        from_here = time.time()
        for start in range(0, count, batch):
            rows = order[start : start + batch]
            if len(rows) < 2 * workers or number == spec["max_steps"]:
                break
            rows = rows[len(rows) * rank // workers : len(rows) * (rank + 1) // workers]
            for group in steps.param_groups:
                group["lr"] = rate(spec, number, per_epoch)
            steps.zero_grad()
            loss_of(model(x.index_select(0, rows)), y.index_select(0, rows)).backward()
            if spec["clip_norm"]:
                nn.utils.clip_grad_norm_(model.parameters(), spec["clip_norm"])
            steps.step()
            number += 1
            first = first or time.time()
        stepping += time.time() - from_here
        point = {"epoch": epoch, "accuracy": None, "loss": None}
        if test:
            right, loss = measure(torch, nn, model, test, rank, workers)
            point.update(accuracy=right / len(test[1]), loss=loss / len(test[1]))
        epochs.append({**point, "seconds": time.time() - began})
    return {
        "training_s": time.time() - began,
        "start_s": first - spec["started"],
        "samples_per_s": count * spec["epochs"] / stepping,
        "epochs": epochs,
        "parameters": sum(one.numel() for one in model.parameters()),
        "versions": {"torch": torch.__version__, "python": sys.version.split()[0]},
    }


def measure(torch, nn, model, test, rank, workers):
    """How many of the test set are right, and the sum of the losses; each process looks at its share."""
    x, y = (part[len(test[1]) * rank // workers : len(test[1]) * (rank + 1) // workers] for part in test)
    sums = torch.zeros(2, dtype=torch.float64)
    model.eval()
    with torch.inference_mode():
        for start in range(0, len(y), 1000):
            scores, right = model(x[start : start + 1000]), y[start : start + 1000]
            sums[0] += (scores.argmax(1) == right).sum()
            sums[1] += nn.functional.cross_entropy(scores, right, reduction="sum")
    model.train()
    if workers > 1:
        torch.distributed.all_reduce(sums)
    return sums.tolist()


def ddp_rank(rank, spec, meeting):
    import torch
    from torch.nn.parallel import DistributedDataParallel

    workers = spec["workers"]
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=workers)
    measured = train(spec, rank, workers, lambda model: DistributedDataParallel(model, gradient_as_bucket_view=True))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    if rank == 0:
        tell(spec, measured)


def ray_loop(spec):
    import ray.train
    import ray.train.torch

    context = ray.train.get_context()
    rank, workers = context.get_world_rank(), context.get_world_size()
    measured = train(spec, rank, workers, ray.train.torch.prepare_model)
    if rank == 0:
        tell(spec, measured)


def tell(spec, measured):
    with open(spec["answer"], "w") as answer:
        json.dump(measured, answer)


def main():
    with open(sys.argv[1]) as file:
        spec = json.load(file)
    workers = spec["workers"]
    os.environ["OMP_NUM_THREADS"] = str(workers if spec["peer"] == "torch-threads" else 1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if spec["peer"] == "ray-train":
        os.environ["RAY_TRAIN_V2_ENABLED"] = "1"
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        import ray
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer

        ray.init(num_cpus=max(workers, os.cpu_count()) + 1, include_dashboard=False, log_to_driver=False)
        with tempfile.TemporaryDirectory() as folder:
            TorchTrainer(
                ray_loop, train_loop_config=spec, scaling_config=ScalingConfig(num_workers=workers),
                run_config=RunConfig(storage_path=folder),
            ).fit()
        ray.shutdown()
    elif spec["peer"] == "torch-ddp" and workers > 1:
        import torch

        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(ddp_rank, (spec, f"{folder}/meeting"), nprocs=workers)
    else:
        tell(spec, train(spec, 0, 1, lambda model: model))


if __name__ == "__main__":
    main()
