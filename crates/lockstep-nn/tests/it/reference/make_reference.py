"""Writes reference.json: what PyTorch computes for the cases that tests/it/pytorch.rs repeats.

    pip install torch numpy
    python make_reference.py

PyTorch works in double precision here, so that the file says what is right and not what one machine's
single precision came to. What goes in (inputs, parameters, gradients for the optimizers) is a multiple
of a power of two: short to write, and exactly the same number in single precision.
"""

import json
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.optim import lr_scheduler

torch.set_default_dtype(torch.float64)


def grid(random, shape, bound=1.0):
    """Random numbers in -bound..bound that are multiples of bound / 128."""
    return torch.tensor(random.integers(-128, 129, shape) * (bound / 128))


def pair(text):
    """A height and a width: `3x5`."""
    return tuple(map(int, text.split("x")))


class Residual(nn.Module):
    """Two paths from the same input, added."""

    def __init__(self, shape, body, shortcut):
        super().__init__()
        self.body, self.shape = sequential(shape, body)
        self.shortcut, _ = sequential(shape, shortcut)

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


class PixelNorm(nn.LayerNorm):
    """Layer-norm over the channels, which are not the last dimension of an image."""

    def forward(self, x):
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


class Embedding(nn.Module):
    """Tables whose rows take the place of a row's last numbers; what comes before these goes on as it is."""

    def __init__(self, tables):
        super().__init__()
        for number, (rows, width) in enumerate(tables):
            self.add_module(str(number), nn.Embedding(rows, width))

    def forward(self, x):
        tables = list(self.children())
        plain, places = x[:, : -len(tables)], x[:, -len(tables) :]
        looked_up = [
            table(place.clamp(0, table.num_embeddings - 1).long())
            for table, place in zip(tables, places.unbind(1))
        ]
        return torch.cat([plain, *looked_up], 1)


def layer(shape, spec):
    """A layer for rows of this shape (channels first), and the shape of its output."""
    if isinstance(spec, dict):
        module = Residual(shape, **spec)
        return module, module.shape
    kind, *words = spec.split()
    options = dict(word.split("=") for word in words)
    channels = shape[0]
    window = {key: pair(options[key]) for key in ("kernel", "stride", "padding") if key in options}
    match kind:
        case "linear":
            return nn.Linear(channels, int(options["out"])), (int(options["out"]),)
        case "relu":
            return nn.ReLU(), shape
        case "gelu":
            return nn.GELU(), shape
        case "leaky-relu":
            return nn.LeakyReLU(0.25), shape
        case "silu":
            return nn.SiLU(), shape
        case "sigmoid":
            return nn.Sigmoid(), shape
        case "tanh":
            return nn.Tanh(), shape
        case "layer-norm":
            return PixelNorm(channels), shape
        case "group-norm":
            return nn.GroupNorm(int(options["groups"]), channels), shape
        case "batch-norm":
            return (nn.BatchNorm2d if len(shape) == 3 else nn.BatchNorm1d)(channels), shape
        case "conv2d":
            size = (window["kernel"], window["stride"], window["padding"])
            settings = {"groups": int(options.get("groups", 1)), "bias": options["bias"] == "true"}
            module = nn.Conv2d(channels, int(options["out"]), *size, **settings)
        case "conv1d":
            size = (int(options[key]) for key in ("kernel", "stride", "padding"))
            settings = {"groups": int(options["groups"]), "bias": options["bias"] == "true"}
            module = nn.Conv1d(channels, int(options["out"]), *size, **settings)
        # A sequence is an image of one line, whose windows are one line high.
        case "max-pool" if len(shape) == 2:
            module = nn.MaxPool1d(*(size[1] for size in window.values()))
        case "avg-pool" if len(shape) == 2:
            module = nn.AvgPool1d(*(size[1] for size in window.values()))
        case "max-pool":
            module = nn.MaxPool2d(*window.values())
        case "avg-pool":
            module = nn.AvgPool2d(*window.values())
        case "global-pool":
            pool = nn.AdaptiveAvgPool1d if len(shape) == 2 else nn.AdaptiveAvgPool2d
            module = nn.Sequential(pool(1), nn.Flatten())
        case "flatten":
            module = nn.Flatten()
        case "unflatten":
            # Height and width, of which a sequence has the second alone.
            size = [side for side in pair(options["size"]) if side > 1]
            module = nn.Unflatten(1, (int(options["channels"]), *size))
        case "embedding":
            module = Embedding([pair(table) for table in options["tables"].split(",")])
    return module, tuple(module.eval()(torch.zeros(1, *shape)).shape[1:])


def sequential(shape, specs):
    layers = []
    for spec in specs:
        module, shape = layer(shape, spec)
        layers.append(module)
    return nn.Sequential(*layers), shape


class Stack(nn.Module):
    """Layers in a row, with the names that Lockstep gives their tensors."""

    def __init__(self, shape, specs):
        super().__init__()
        self.layers, (self.classes,) = sequential(shape, specs)

    def forward(self, x):
        return self.layers(x)


def unit_gain(weight):
    """The power of two that lets a layer's output be about as large as its input."""
    return 2.0 ** round(np.log2(3 / weight[0].numel()) / 2)


def channels_last(shape):
    """Height, width and channels, as Lockstep has them; a vector is an image of one pixel."""
    channels, *size = shape
    return [*(size or [1, 1]), channels]


def keep_off_the_kink(_relu, inputs):
    """Rounding must not decide on which side of a ReLU's kink a number lies."""
    assert inputs[0].abs().min() > 1e-5, "choose another seed"


def model(name, inputs, specs, rows, seed, batch=None, bound=2.0):
    """One training step and one evaluation of a lane of `rows` rows, in -bound..bound, out of a batch of `batch`."""
    batch = batch or rows
    random = np.random.default_rng(seed)
    shape = (inputs,) if isinstance(inputs, int) else inputs
    stack = Stack(shape, specs)
    for module in stack.modules():
        if isinstance(module, (nn.ReLU, nn.LeakyReLU)):
            module.register_forward_pre_hook(keep_off_the_kink)
    with torch.no_grad():
        for key, tensor in stack.state_dict().items():
            if key.endswith("num_batches_tracked"):
                continue
            # Weights of about unit gain keep the softmax from saturating and gradients from vanishing.
            gain = 2.0 if tensor.dim() == 1 else unit_gain(tensor)
            tensor.copy_(grid(random, tensor.shape, gain))
            # Variances are positive.
            if key.endswith("running_var"):
                tensor.copy_(tensor.abs() + 0.5)
    x = grid(random, (rows, *shape), bound)
    labels = torch.tensor(random.integers(0, stack.classes, rows))
    before = {key: tensor.clone() for key, tensor in stack.state_dict().items()}

    stack.eval()
    logits = stack(x)
    evaluated = {
        "loss": nn.functional.cross_entropy(logits, labels, reduction="sum"),
        "correct": int((logits.argmax(1) == labels).sum()),
    }
    stack.train()
    logits = stack(x)
    loss = nn.functional.cross_entropy(logits, labels, reduction="sum")
    (loss / batch).backward()
    statistics = {
        key: tensor for key, tensor in stack.state_dict().items() if ".running_" in key
    }
    return {
        "name": name,
        "layers": specs,
        "batch": batch,
        "input": channels_last(shape),
        "inputs": x.movedim(1, -1),
        "labels": labels,
        "state": {k: v for k, v in before.items() if not k.endswith("tracked")},
        "trained": {"loss": loss, "correct": int((logits.argmax(1) == labels).sum())},
        "evaluated": evaluated,
        "gradients": {key: p.grad for key, p in stack.named_parameters()},
        "statistics": statistics,
    }


def models():
    deep = ["linear out=37", "batch-norm", "relu", "linear out=19", "batch-norm", "relu"]
    deep += ["linear out=23", "batch-norm", "relu", "linear out=5"]
    return [
        model("one linear layer", 6, ["linear out=4"], rows=5, seed=1),
        model("a hidden layer", 9, ["linear out=11", "relu", "linear out=3"], rows=8, seed=2),
        model(
            "a normalised hidden layer",
            7,
            ["linear out=10", "batch-norm", "relu", "linear out=4"],
            rows=6,
            seed=3,
        ),
        model("three hidden layers of odd sizes", 13, deep, rows=7, seed=4),
        model("one row", 8, ["linear out=5", "relu", "linear out=3"], rows=1, seed=5),
        model(
            "a lane of a larger batch",
            8,
            ["linear out=9", "relu", "linear out=6"],
            rows=5,
            seed=6,
            batch=12,
        ),
        model(
            "layers that act on the input",
            12,
            ["batch-norm", "linear out=17", "linear out=4"],
            rows=9,
            seed=7,
        ),
        model("a rectified input", 12, ["relu", "linear out=4"], rows=4, seed=11),
        model("many inputs", 600, ["linear out=3"], rows=3, seed=8),
        model(
            "more rows than a tile",
            3,
            ["linear out=35", "batch-norm", "relu", "linear out=33"],
            rows=41,
            seed=9,
        ),
        *images(),
        *further_layers(),
    ]


def further_layers():
    """Other activations, normalisation within a row, and convolutions in groups."""
    head = ["flatten", "linear out=3"]
    depthwise = conv2d(6, "3x3", padding="1x1") + " groups=6"
    vectors = ["linear out=7", "leaky-relu", "linear out=6", "silu", "linear out=5", "tanh"]
    return [
        model("activations of vectors", 9, [*vectors, "linear out=3"], rows=4, seed=40),
        model(
            "activations of images",
            (2, 3, 4),
            [conv2d(3, "1x1"), "sigmoid", conv2d(2, "2x2"), "silu", *head],
            rows=2,
            seed=41,
        ),
        model(
            "layer-norm of vectors",
            8,
            ["layer-norm", "linear out=7", "layer-norm", "tanh", "linear out=3"],
            rows=4,
            seed=42,
        ),
        model(
            "layer-norm of pixels",
            (3, 4, 3),
            [conv2d(5, "2x2"), "layer-norm", "gelu", *head],
            rows=2,
            seed=43,
        ),
        model(
            "group-norm",
            (4, 3, 5),
            ["group-norm groups=2", conv2d(6, "3x3", padding="1x1"), "group-norm groups=3", *head],
            rows=3,
            seed=44,
        ),
        model("group-norm of vectors", 6, ["group-norm groups=2", "linear out=3"], rows=4, seed=45),
        model(
            "a depthwise convolution",
            (3, 5, 6),
            [conv2d(6, "1x1"), depthwise, "leaky-relu", *head],
            rows=2,
            seed=46,
        ),
        model(
            "a convolution in groups",
            (4, 6, 5),
            [conv2d(6, "3x2", "2x1", "1x0", bias="false") + " groups=2", "silu", *head],
            rows=2,
            seed=47,
        ),
    ]


def window(kind, kernel, stride="1x1", padding="0x0"):
    return f"{kind} kernel={kernel} stride={stride} padding={padding}"


def conv2d(out, kernel, stride="1x1", padding="0x0", bias="true"):
    return f"{window('conv2d', kernel, stride, padding)} out={out} bias={bias}"


def conv1d(out, kernel, stride=1, padding=0, groups=1, bias=True):
    size = f"kernel={kernel} stride={stride} padding={padding}"
    return f"conv1d out={out} {size} groups={groups} bias={str(bias).lower()}"


def images():
    """Layers of images, alone and together, on shapes that nothing divides."""
    head = ["flatten", "linear out=3"]
    same = {"kernel": "3x3", "padding": "1x1"}
    body = [conv2d(3, **same, bias="false"), "batch-norm", "relu", conv2d(3, **same), "batch-norm"]
    halving = [conv2d(5, **same, stride="2x2", bias="false"), "batch-norm", "relu"]
    halving += [conv2d(5, **same, bias="false"), "batch-norm"]
    project = [conv2d(5, "1x1", "2x2", bias="false"), "batch-norm"]
    return [
        model("a convolution", (3, 5, 6), [conv2d(4, "3x3"), *head], rows=2, seed=20),
        model("a padded convolution", (2, 4, 4), [conv2d(3, **same), *head], rows=3, seed=21),
        model(
            "a convolution without bias, its stride not dividing",
            (3, 8, 7),
            [conv2d(5, "3x3", "2x3", "1x0", bias="false"), *head],
            rows=2,
            seed=22,
        ),
        model(
            "a kernel that is not square, on its side",
            (2, 6, 5),
            [conv2d(3, "2x5", "1x2", "0x2"), "gelu", conv2d(2, "5x1", padding="1x0"), *head],
            rows=2,
            seed=23,
        ),
        model("a pointwise convolution", (5, 3, 3), [conv2d(4, "1x1"), *head], rows=1, seed=24),
        model(
            "one pixel, and a kernel that is mostly margin",
            (3, 1, 1),
            [conv2d(4, **same), "relu", conv2d(5, "5x5", padding="2x2"), *head],
            rows=3,
            seed=25,
        ),
        model(
            "more channels than pixels",
            (17, 1, 2),
            [conv2d(9, "2x2", padding="1x1"), "relu", *head],
            rows=1,
            seed=26,
        ),
        model(
            "a large kernel with a large stride",
            (3, 13, 15),
            [conv2d(2, "7x7", "2x2", "3x3", bias="false"), "batch-norm", "relu", *head],
            rows=1,
            seed=27,
        ),
        # Multiples of 1/64 are equal now and then: the first one has to win.
        model("max-pool", (3, 7, 6), [window("max-pool", "2x2", "2x2"), *head], rows=3, seed=28),
        model(
            "max-pool with windows that overlap",
            (2, 7, 8),
            [conv2d(5, **same), window("max-pool", "3x3", "2x2", "1x1"), *head],
            rows=2,
            seed=29,
        ),
        model("avg-pool", (3, 5, 7), [window("avg-pool", "2x3", "2x2"), *head], rows=1, seed=30),
        model(
            "avg-pool with a margin",
            (2, 6, 7),
            [conv2d(3, "1x1"), window("avg-pool", "3x3", "2x2", "1x1"), *head],
            rows=2,
            seed=31,
        ),
        model(
            "global pool",
            (2, 5, 3),
            [conv2d(6, **same), "relu", "global-pool", "linear out=4"],
            rows=3,
            seed=32,
        ),
        model(
            "batch-norm of images",
            (3, 4, 5),
            ["batch-norm", conv2d(4, **same), "batch-norm", "relu", *head],
            rows=2,
            seed=33,
        ),
        model(
            "batch-norm of one image",
            (2, 3, 3),
            [conv2d(3, **same), "batch-norm", "gelu", *head],
            rows=1,
            seed=34,
        ),
        model("gelu of vectors", 9, ["linear out=7", "gelu", "linear out=3"], rows=4, seed=35),
        model("flattened pixels", (3, 4, 2), head, rows=2, seed=36),
        model(
            "a residual block",
            (3, 4, 5),
            [{"body": body, "shortcut": []}, "relu", *head],
            rows=2,
            seed=37,
        ),
        model(
            "a residual block that halves and projects",
            (3, 5, 4),
            [{"body": halving, "shortcut": project}, "relu", "global-pool", "linear out=3"],
            rows=3,
            seed=38,
        ),
        model(
            "residual blocks within one another",
            (2, 3, 3),
            [
                conv2d(3, **same),
                {"body": [{"body": body, "shortcut": []}, "relu", conv2d(3, "1x1")], "shortcut": []},
                *head,
            ],
            rows=2,
            seed=39,
        ),
        model(
            "convolutions of sequences",
            24,
            [
                "unflatten channels=2 size=1x12",
                conv1d(4, 3, padding=1),
                "batch-norm",
                "relu",
                window("max-pool", "1x2", "1x2"),
                conv1d(6, 3, stride=2, padding=1, groups=2, bias=False),
                "gelu",
                *head,
            ],
            rows=3,
            seed=40,
        ),
        model(
            "means of sequences",
            30,
            ["unflatten channels=3 size=1x10", window("avg-pool", "1x3", "1x2"), conv1d(5, 2), "global-pool", "linear out=3"],
            rows=2,
            seed=41,
        ),
        model(
            "vectors as images",
            24,
            ["unflatten channels=2 size=3x4", conv2d(3, **same), *head],
            rows=2,
            seed=42,
        ),
        model(
            "vectors of categories",
            5,
            ["embedding tables=6x3,9x2", "linear out=7", "tanh", "linear out=3"],
            rows=12,
            seed=43,
            bound=8.0,
        ),
    ]


def losses():
    """Cross-entropy of weighted and smoothed classes: the mean of a batch, and its gradient by the scores."""
    random = np.random.default_rng(50)
    scores = grid(random, (7, 4), 4.0)
    labels = torch.tensor(random.integers(0, 4, 7))
    weights = torch.tensor([0.5, 1.0, 4.0, 0.25])
    cases = []
    for weight, smoothing in [(weights, 0.0), (None, 0.125), (weights, 0.125)]:
        x = scores.clone().requires_grad_()
        loss = nn.functional.cross_entropy(x, labels, weight, label_smoothing=smoothing)
        loss.backward()
        cases.append(
            {
                "outputs": 4,
                "scores": scores,
                "labels": labels,
                "weights": [] if weight is None else weight,
                "smoothing": smoothing,
                "loss": loss,
                "gradient": x.grad,
            }
        )
    return cases


def other_losses():
    """The other losses of numbers and classes: the mean of a batch, and its gradient by the scores."""
    random = np.random.default_rng(51)
    scores = grid(random, (7, 4), 4.0)
    numbers = grid(random, (7, 4), 4.0)
    labels = torch.tensor(random.integers(0, 4, 7))

    def quantile(x):
        return torch.maximum(0.9 * (numbers - x), 0.1 * (x - numbers)).mean()

    def focal(x):
        p = x.softmax(1)[torch.arange(7), labels]
        return (-((1 - p) ** 2.5) * p.log()).mean()

    cases = []
    for name, loss_of in [
        ("mae", lambda x: nn.functional.l1_loss(x, numbers)),
        ("huber", lambda x: nn.functional.huber_loss(x, numbers, delta=1.25)),
        ("quantile", quantile),
        ("focal", focal),
    ]:
        x = scores.clone().requires_grad_()
        loss = loss_of(x)
        loss.backward()
        cases.append(
            {
                "name": name,
                "outputs": 4,
                "scores": scores,
                "numbers": numbers,
                "labels": labels,
                "loss": loss,
                "gradient": x.grad,
            }
        )
    return cases


def hashed(name, shape):
    """Numbers in -1..1 that Lockstep's test makes too, so that whole networks need not be stored."""
    seed = 0x811C9DC5
    for byte in name.encode():
        seed = (seed ^ byte) * 0x01000193 % 2**32
    x = np.arange(np.prod(shape), dtype=np.uint32) + np.uint32(seed)
    for shift, factor in [(16, 0x7FEB352D), (15, 0x846CA68B)]:
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    x = (x ^ (x >> np.uint32(16))) >> np.uint32(16)
    return torch.tensor(x.astype(np.float64) / 2**15 - 1).reshape(shape)


class BasicBlock(nn.Module):
    """torchvision's, with its names."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = nn.Sequential()
        if stride != 1 or inputs != width:
            convolution = nn.Conv2d(inputs, width, 1, stride, bias=False)
            self.downsample = nn.Sequential(convolution, nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn1(self.conv1(x)).relu()
        return (self.bn2(self.conv2(y)) + self.downsample(x)).relu()


class ResNet18(nn.Module):
    """torchvision's, with its names, as narrow as asked for."""

    def __init__(self, width, small_stem, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, *((3, 1, 1) if small_stem else (7, 2, 3)), bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.Identity() if small_stem else nn.MaxPool2d(3, 2, 1)
        inputs = width
        for number in range(1, 5):
            outputs = width * 2 ** (number - 1)
            first = BasicBlock(inputs, outputs, 1 if number == 1 else 2)
            stage = nn.Sequential(first, BasicBlock(outputs, outputs, 1))
            self.add_module(f"layer{number}", stage)
            inputs = outputs
        self.fc = nn.Linear(inputs, classes)
        self.classes = classes

    def forward(self, x):
        x = self.maxpool(self.bn1(self.conv1(x)).relu())
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return self.fc(x.mean((2, 3)))


def curve(name, network, shape, rows, steps, rate, **settings):
    """The loss before each of some steps of SGD on the same rows, and after them, evaluated."""
    with torch.no_grad():
        for key, tensor in network.state_dict().items():
            if key.endswith("num_batches_tracked"):
                continue
            numbers = hashed(key, tensor.shape)
            if tensor.dim() > 1:
                tensor.copy_(numbers * unit_gain(tensor))
            else:
                tensor.copy_(numbers / 4 + (key.endswith(("weight", "var"))))
    x = hashed("inputs", (rows, *shape[1:], shape[0])).movedim(-1, 1)
    labels = torch.arange(rows) % network.classes
    sgd = torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9, weight_decay=0.01)
    network.train()
    losses = []
    for _ in range(steps):
        sgd.zero_grad()
        loss = nn.functional.cross_entropy(network(x), labels)
        losses.append(loss.detach())
        loss.backward()
        sgd.step()
    network.eval()
    evaluated = nn.functional.cross_entropy(network(x), labels)
    return {
        "name": name,
        **settings,
        "input": channels_last(shape),
        "rows": rows,
        "rate": rate,
        "losses": torch.stack(losses),
        "evaluated": evaluated,
    }


def curves():
    block = [conv2d("{0}", "3x3", padding="1x1"), "batch-norm", "relu"]
    pool = window("max-pool", "2x2", "2x2")
    cnn = [part.format(width) for width in (8, 12, 16) for part in (*block, *block, pool)]
    cnn += ["flatten", "linear out=24", "relu", "linear out=10"]
    return [
        curve("a small CNN", Stack((3, 12, 12), cnn), (3, 12, 12), 12, 8, 0.0625, layers=cnn),
        curve(
            "a narrow ResNet-18",
            ResNet18(4, False, 7),
            (3, 45, 40),
            5,
            6,
            0.03125,
            resnet18={"width": 4, "small_stem": False, "classes": 7},
        ),
        curve(
            "a narrow ResNet-18 for small images",
            ResNet18(4, True, 10),
            (3, 12, 12),
            8,
            6,
            0.03125,
            resnet18={"width": 4, "small_stem": True, "classes": 10},
        ),
    ]


def optimizer(kind, **settings):
    """Five steps on given gradients, at a rate that changes."""
    random = np.random.default_rng(10)
    start = grid(random, 17, 4.0)
    gradients = grid(random, (5, 17), 2.0)
    gradients[:, 3] = 0.0
    rates = [0.25, 0.125, 0.125, 0.5, 0.0625]
    parameter = nn.Parameter(start.clone())
    steps = getattr(torch.optim, kind)([parameter], lr=1.0, **settings)
    after = []
    for rate, gradient in zip(rates, gradients):
        steps.param_groups[0]["lr"] = rate
        parameter.grad = gradient.clone()
        steps.step()
        after.append(parameter.detach().clone())
    return {
        "kind": kind,
        **settings,
        "start": start,
        "rates": torch.tensor(rates),
        "gradients": gradients,
        "after": torch.stack(after),
    }


def optimizers():
    betas = {"betas": [0.9, 0.999], "eps": 1e-8}
    # An epsilon of this size shows where it is added.
    coarse = {"betas": [0.75, 0.875], "eps": 0.125}
    return [
        optimizer("SGD", momentum=0.0, nesterov=False, weight_decay=0.0),
        optimizer("SGD", momentum=0.0, nesterov=False, weight_decay=0.1),
        optimizer("SGD", momentum=0.9, nesterov=False, weight_decay=0.0),
        optimizer("SGD", momentum=0.9, nesterov=False, weight_decay=0.1),
        optimizer("SGD", momentum=0.9, nesterov=True, weight_decay=0.0),
        optimizer("SGD", momentum=0.9, nesterov=True, weight_decay=0.1),
        optimizer("Adam", **betas, weight_decay=0.0),
        optimizer("Adam", **coarse, weight_decay=0.1),
        optimizer("AdamW", **betas, weight_decay=0.1),
        optimizer("AdamW", **coarse, weight_decay=0.1),
        optimizer("RMSprop", alpha=0.99, eps=1e-8, momentum=0.0, weight_decay=0.0),
        optimizer("RMSprop", alpha=0.75, eps=0.125, momentum=0.9, weight_decay=0.1),
    ]


def schedule(base, make, count, warmup=0, **settings):
    """The rates of the first `count` steps, with PyTorch's scheduler called once a step."""
    trained = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=base)
    scheduler = make(trained)
    rates = []
    for _ in range(count):
        rates.append(trained.param_groups[0]["lr"])
        trained.step()
        if len(rates) < count:
            scheduler.step()
    return {"base": base, "warmup": warmup, **settings, "rates": torch.tensor(rates)}


def schedules():
    def climb(trained, warmup):
        return lr_scheduler.LinearLR(trained, 1 / warmup, total_iters=warmup - 1)

    def climb_then_fall(trained):
        # The cosine is made first: a scheduler sets the rate as it is made, and the climb begins.
        fall = lr_scheduler.CosineAnnealingLR(trained, T_max=8, eta_min=0.05)
        return lr_scheduler.SequentialLR(trained, [climb(trained, 4), fall], milestones=[4])

    # PyTorch's cosine climbs again after its last step, ours stays: the cases end there.
    return [
        schedule(0.5, lambda o: lr_scheduler.ConstantLR(o, 1.0), 3, kind="Constant"),
        schedule(
            0.8,
            lambda o: lr_scheduler.StepLR(o, 3, gamma=0.3),
            14,
            kind="Step",
            every=3,
            gamma=0.3,
        ),
        schedule(
            0.7,
            lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=11, eta_min=0.02),
            12,
            kind="Cosine",
            steps=11,
            min=0.02,
        ),
        schedule(
            0.75,
            lambda o: lr_scheduler.OneCycleLR(o, 0.75, 12, pct_start=0.25, cycle_momentum=False),
            12,
            kind="OneCycle",
            steps=12,
            pct_start=0.25,
            div_factor=25.0,
            final_div_factor=1e4,
        ),
        schedule(
            0.75,
            lambda o: lr_scheduler.OneCycleLR(
                o,
                0.75,
                9,
                pct_start=0.3,
                div_factor=5.0,
                final_div_factor=8.0,
                cycle_momentum=False,
            ),
            9,
            kind="OneCycle",
            steps=9,
            pct_start=0.3,
            div_factor=5.0,
            final_div_factor=8.0,
        ),
        schedule(0.9, lambda o: climb(o, 5), 9, warmup=5, kind="Constant"),
        schedule(0.6, climb_then_fall, 13, warmup=4, kind="Cosine", steps=12, min=0.05),
    ]


def plain(value):
    """Tensors as flat lists of short numbers."""
    match value:
        case torch.Tensor() if value.dim() == 0:
            return plain(value.item())
        case torch.Tensor():
            return [plain(x) for x in value.flatten().tolist()]
        case dict():
            return {key: plain(x) for key, x in value.items()}
        case list():
            return [plain(x) for x in value]
        case float():
            # What goes in stays as it is; of what comes out, seven digits are enough, and what is only
            # the rounding of a zero differs between machines.
            if value * 2**20 % 1 == 0:
                return value
            return float(f"{value:.7g}") if abs(value) > 1e-12 else 0.0
        case _:
            return value


def lines(cases):
    """One line a case: a change shows which cases it touched."""
    return "[\n" + ",\n".join(json.dumps(plain(case)) for case in cases) + "\n]"


if __name__ == "__main__":
    parts = {"models": models(), "curves": curves()}
    parts |= {"losses": losses(), "other_losses": other_losses(), "optimizers": optimizers(), "schedules": schedules()}
    body = ",\n".join(f"{json.dumps(name)}: {lines(cases)}" for name, cases in parts.items())
    path = Path(__file__).with_name("reference.json")
    path.write_text("{\n" + body + "\n}\n")
    print(f"{path}: {path.stat().st_size:,} bytes, PyTorch {torch.__version__}")
