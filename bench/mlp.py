"""The Fashion-MNIST job, examples/fashion-mnist.toml: speed, starts and memory."""

from functools import partial
from statistics import median

from bars import at_least, below
from lockstep_runs import Lockstep
from neighbours import Group
from pytorch_runs import PyTorch

BATCHES = (32, 128)


class Mlp:
    title = "A dense network"

    def __init__(self, place, options):
        job = place.root / "examples/fashion-mnist.toml"
        self.lockstep = Lockstep(place.binary, job, place.cache, place.scratch)
        self.pytorch = PyTorch(place.python, "mlp", place.cache / "datasets/fashion-mnist", place.cache)
        self.steps, self.starts = options.steps, options.starts

    def groups(self):
        """What runs beside what."""
        ours, theirs = self.lockstep.steps_per_s, self.pytorch.steps_per_s
        for batch in BATCHES:
            half = batch // 2
            two = f"two workers, batch {batch}"
            yield Group(1, {
                f"PyTorch one process, batch {batch}": partial(theirs, batch, 1, self.steps),
                f"one worker, batch {batch}": partial(ours, batch, 1),
                two: partial(ours, batch, 2),
                f"PyTorch DDP two processes, batch {batch}": partial(theirs, batch, 2, self.steps),
            })
            yield Group(10, {
                f"one worker, batch {half}": partial(ours, half, 1),
                two: partial(ours, batch, 2),
                f"two runs at once, batch {half} each": partial(self.lockstep.two_at_once, half),
            })

    def extras(self):
        """What is measured once, after the rounds."""
        warm = [self.lockstep.first_step(decoded=True) for _ in range(self.starts)]
        cold = [self.lockstep.first_step(decoded=False) for _ in range(self.starts)]
        return {
            "start, decoded cache (s)": median(start["reported"] for start in warm),
            "start, decoded cache, from outside (s)": median(start["outside"] for start in warm),
            "start, gzipped files (s)": median(start["reported"] for start in cold),
            "start, gzipped files, from outside (s)": median(start["outside"] for start in cold),
            "peak memory of a two-worker run (MiB)": self.lockstep.peak_pss(32, 2),
        }

    @staticmethod
    def bars(ratio, extras):
        alone, ddp = "PyTorch one process, batch 32", "PyTorch DDP two processes, batch 32"

        def faster(what, ours, theirs, target):
            return at_least(what, ratio(ours, theirs), target)

        one, two, pair = "one worker, batch", "two workers, batch", "two runs at once, batch"
        return [
            below("start to first step, gzipped files", extras["start, gzipped files (s)"], 0.5, "s"),
            below("start to first step, decoded cache", extras["start, decoded cache (s)"], 0.15, "s"),
            faster("one worker / PyTorch, batch 32", f"{one} 32", alone, 1.8),
            faster("two workers / PyTorch one process, batch 32", f"{two} 32", alone, 2.2),
            faster("two workers / PyTorch DDP two processes, batch 32", f"{two} 32", ddp, 4),
            faster("two workers / no-communication limit, batch 32", f"{two} 32", f"{one} 16", 0.75),
            faster("two workers / no-communication limit, batch 128", f"{two} 128", f"{one} 64", 0.9),
            faster("two workers / two runs at once, batch 32", f"{two} 32", f"{pair} 16 each", 0.75),
            faster("two workers / two runs at once, batch 128", f"{two} 128", f"{pair} 64 each", 0.9),
            below("peak memory of a two-worker run", extras["peak memory of a two-worker run (MiB)"], 300, "MiB"),
        ]

    notes = """The job is `examples/fashion-mnist.toml`: an MLP 784-512-512-10 with ReLU and dropout 0.25, SGD 1e-3 with momentum 0.9,
on Fashion-MNIST.

The no-communication limit is the speed of two workers if the exchange cost nothing. It is measured in two ways. One
worker with half the batch, alone on the machine, assumes that each of two busy cores is as fast as one core beside an
idle one. Two such runs at the same time, which exchange nothing and never wait for each other, show what the two cores
of this machine can give. Starts are those of two-worker runs with a warm page cache."""
