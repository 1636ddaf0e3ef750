"""The precision "fixed16" beside single precision, and beside PyTorch in bfloat16: one process each."""

from functools import partial

from bars import at_least
from images import job
from lockstep_runs import Lockstep
from neighbours import Group
from pytorch_runs import PyTorch

# The batch, PyTorch's steps, and how many times as fast as f32 and as PyTorch a network should be.
MLP = {128: (600, 2.5, 3), 512: (300, 3, 2.5)}
CNN = {64: (40, 1.7, 1.8)}
RESNET = {16: (6, 2.8, 1.3)}


class Fixed16:
    title = "fixed16"

    def __init__(self, place, _options):
        mlp = place.root / "examples/fashion-mnist.toml"
        images = partial(job, place.scratch)
        cnn, cnn_images = images("cnn", 64 * 40, 32)
        resnet, resnet_images = images("resnet18", 16 * 6, 224)

        def network(name, path, data, epochs, cases):
            ours = Lockstep(place.binary, path, place.cache, place.scratch, epochs)
            theirs = PyTorch(place.python, name, data, place.cache, compiled=name != "mlp")
            return ours, theirs, cases

        fashion = place.cache / "datasets/fashion-mnist"
        self.networks = {
            "MLP": network("mlp", mlp, fashion, 1, MLP),
            "CNN": network("cnn", cnn, cnn_images, 2, CNN),
            "ResNet-18": network("resnet18", resnet, resnet_images, 2, RESNET),
        }
        self.lockstep, self.pytorch, _ = self.networks["MLP"]
        for _, theirs, _ in self.networks.values():
            theirs.settings = self.pytorch.settings

    def groups(self):
        """What runs beside what."""
        for name, (ours, theirs, cases) in self.networks.items():
            for batch, (steps, _, _) in cases.items():
                yield Group(1, {
                    f"{name} batch {batch}, PyTorch bf16": partial(theirs.steps_per_s, batch, 1, steps, "bf16"),
                    f"{name} batch {batch}, f32": partial(ours.steps_per_s, batch, 1),
                    f"{name} batch {batch}, fixed16": partial(ours.steps_per_s, batch, 1, "fixed16"),
                })

    def extras(self):
        return {}

    def bars(self, ratio, _extras):
        found = []
        for name, (_, _, cases) in self.networks.items():
            for batch, (_, faster, than_theirs) in cases.items():
                what = f"{name} batch {batch}"
                of = partial(ratio, f"{what}, fixed16")
                found.append(at_least(f"{what}: fixed16 / f32", of(f"{what}, f32"), faster))
                found.append(at_least(f"{what}: fixed16 / PyTorch bf16", of(f"{what}, PyTorch bf16"), than_theirs))
        return found

    notes = """The jobs are those of the other parts, with `train.precision = "fixed16"` and without. PyTorch computes in bfloat16 under
`torch.autocast`."""
