"""Gloo's side of bench/collective.py: processes that all-reduce one gradient, again and again.

Each line on standard input is a number of steps; each is answered with one line of JSON, as
crates/lockstep-gang/examples/collective_rate answers. PyTorch reduces a gradient whole or in buckets of 25 MiB,
as DDP does; the first line of output says which is faster here and is used.
"""

import json
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

BUCKET = 25 * 2**20 // 4


def steps(tensor, gradient, count, bucket):
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(count):
        # A sum takes the gradient's place, so each step writes a new one there, as the backward pass does.
        tensor.copy_(gradient)
        if bucket is None:
            dist.all_reduce(tensor)
        else:
            for work in [dist.all_reduce(part, async_op=True) for part in tensor.split(bucket)]:
                work.wait()
    return time.perf_counter() - begin


def slowest(seconds):
    """The longest time of all ranks."""
    longest = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    return longest.item()


def rank_main(rank, workers, numbers, meeting, orders, answers):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=workers)
    gradient, tensor = torch.full((numbers,), rank + 1.0), torch.zeros(numbers)
    times = {}
    for bucket in [None, BUCKET] if numbers > BUCKET else [None]:
        steps(tensor, gradient, 2, bucket)
        times[bucket] = min(slowest(steps(tensor, gradient, 3, bucket)) for _ in range(3))
    bucket = min(times, key=times.get)
    answers.put("whole" if bucket is None else "in buckets of 25 MiB")
    while count := orders.get():
        answers.put(steps(tensor, gradient, count, bucket))
        assert bool((tensor == workers * (workers + 1) / 2).all()), "a wrong sum"
    dist.destroy_process_group()


def main():
    workers, numbers = map(int, sys.argv[1:])
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    context = processes.get_context("spawn")
    orders = [context.SimpleQueue() for _ in range(workers)]
    answers = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(target=rank_main, args=(rank, workers, numbers, f"{folder}/meet", order, answers))
            for rank, order in enumerate(orders)
        ]
        for rank in ranks:
            rank.start()
        how = {answers.get() for _ in ranks}
        print(json.dumps({"torch": torch.__version__, "reduces": how.pop()}), flush=True)
        for line in sys.stdin:
            for order in orders:
                order.put(int(line))
            print(json.dumps({"seconds": max(answers.get() for _ in ranks)}), flush=True)
        for order in orders:
            order.put(0)
        for rank in ranks:
            rank.join()


if __name__ == "__main__":
    main()
