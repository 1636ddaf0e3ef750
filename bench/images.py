"""Convolutional networks on random pixels: the CIFAR CNN at 32x32 and ResNet-18 at 224x224."""

from functools import partial

import synthetic
from bars import at_least, below
from lockstep_runs import Lockstep
from neighbours import Group
from pytorch_runs import PyTorch

JOB = """
name = "bench-{network}"
[data]
train = {{ images = "{images}", labels = "{labels}" }}
val_split = 0.0
normalise = {{ mean = [0.5, 0.5, 0.5], std = [0.25, 0.25, 0.25] }}
[model]
kind = "{network}"
[train]
batch = 64
optimizer = {{ kind = "sgd", lr = 1e-3, momentum = 0.9 }}
"""


def job(folder, network, samples, side):
    """Writes a job and its data; returns the job's and the images' paths."""
    images, labels = synthetic.write(folder, f"{network}-{samples}", samples, side, side)
    path = folder / f"{network}-{samples}.toml"
    path.write_text(JOB.format(network=network, images=images, labels=labels))
    return path, images


class Images:
    """A network on images of one size, against PyTorch."""

    # Two epochs: the first touches memory for the first time, as PyTorch's warm-up does.
    EPOCHS = 2

    def __init__(self, place, network, samples, side):
        self.place = place
        path, images = job(place.scratch, network, samples, side)
        self.lockstep = Lockstep(place.binary, path, place.cache, place.scratch, self.EPOCHS)
        self.pytorch = PyTorch(place.python, network, images, place.cache, compiled=True)


class Cnn(Images):
    title = "The CIFAR CNN"
    BATCHES = (64, 128)
    STEPS = 40

    def __init__(self, place, _options):
        super().__init__(place, "cnn", samples=64 * self.STEPS, side=32)

    def groups(self):
        """What runs beside what."""
        ours, theirs = self.lockstep.steps_per_s, self.pytorch.steps_per_s
        for batch in self.BATCHES:
            half = batch // 2
            one = f"one worker, batch {batch}"
            yield Group(1, {
                f"PyTorch one process, batch {batch}": partial(theirs, batch, 1, self.STEPS),
                one: partial(ours, batch, 1),
                f"PyTorch DDP two processes, batch {batch}": partial(theirs, batch, 2, self.STEPS),
            })
            yield Group(4, {
                one: partial(ours, batch, 1),
                f"two workers, batch {batch}": partial(ours, batch, 2),
                f"two runs at once, batch {half} each": partial(self.lockstep.two_at_once, half),
            })

    def extras(self):
        # Few samples, so that it is training that fills memory and not PyTorch's copy of the data.
        path, images = job(self.place.scratch, "cnn", samples=1024, side=32)
        ours = Lockstep(self.place.binary, path, self.place.cache, self.place.scratch)
        theirs = PyTorch(self.place.python, "cnn", images, self.place.cache)
        return {
            "peak memory at batch 128 (MiB)": ours.peak_pss(128, 1),
            "PyTorch's peak memory at batch 128 (MiB)": theirs.peak_pss(128, 8),
        }

    @classmethod
    def bars(cls, ratio, extras):
        found = []
        for batch in cls.BATCHES:
            one, two = f"one worker, batch {batch}", f"two workers, batch {batch}"
            theirs = f"PyTorch one process, batch {batch}"
            found.append(at_least(f"one worker / PyTorch, batch {batch}", ratio(one, theirs), 1.3))
            found.append(at_least(f"two workers / one, batch {batch}", ratio(two, one), 1.85))
        memory = extras["peak memory at batch 128 (MiB)"]
        limit = round(extras["PyTorch's peak memory at batch 128 (MiB)"])
        found.append(below("peak memory at batch 128, PyTorch's in comparison", memory, limit, "MiB"))
        return found

    @classmethod
    def limits(cls, ratio):
        """How many times one worker two processes are that do not communicate."""
        pair, one = "two runs at once, batch {} each", "one worker, batch {}"
        limits = {batch: ratio(pair.format(batch // 2), one.format(batch)) for batch in cls.BATCHES}
        return {batch: limit.median for batch, limit in limits.items()}

    notes = """The job is `kind = "cnn"`: three blocks of conv-bn-relu-conv-bn-relu-maxpool-dropout with 32, 64 and 128 channels, a
dense layer of 128, on random pixels of 32x32x3; SGD with momentum. Two runs at once with half the batch each exchange
nothing. Their speed together is the most that two workers could reach."""


class ResNet(Images):
    title = "ResNet-18 at 224x224"
    BATCH, STEPS = 16, 6

    def __init__(self, place, _options):
        super().__init__(place, "resnet18", samples=self.BATCH * self.STEPS, side=224)

    def groups(self):
        """What runs beside what."""
        theirs = partial(self.pytorch.steps_per_s, self.BATCH, 1, self.STEPS)
        yield Group(1, {
            f"PyTorch one process, batch {self.BATCH}": theirs,
            f"one worker, batch {self.BATCH}": partial(self.lockstep.steps_per_s, self.BATCH, 1),
        })

    def extras(self):
        return {}

    @classmethod
    def bars(cls, ratio, _extras):
        ours, theirs = f"one worker, batch {cls.BATCH}", f"PyTorch one process, batch {cls.BATCH}"
        return [at_least(f"one worker / PyTorch, batch {cls.BATCH}", ratio(ours, theirs), 1.0)]

    notes = """The job is `kind = "resnet18"`, torchvision's network, on random pixels of 224x224x3; SGD with momentum."""
