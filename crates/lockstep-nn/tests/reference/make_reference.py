"""Writes reference.json: what PyTorch computes for the cases that tests/pytorch.rs repeats.

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


class Stack(nn.Module):
    """Layers in a row, with the names that Lockstep gives their tensors."""

    def __init__(self, inputs, specs):
        super().__init__()
        layers, width = [], inputs
        for spec in specs:
            match spec.split():
                case ["linear", outputs]:
                    layers.append(nn.Linear(width, int(outputs)))
                    width = int(outputs)
                case ["relu"]:
                    layers.append(nn.ReLU())
                case ["batch-norm"]:
                    layers.append(nn.BatchNorm1d(width))
        self.layers = nn.Sequential(*layers)
        self.classes = width

    def forward(self, x):
        for layer in self.layers:
            if isinstance(layer, nn.ReLU):
                # Rounding must not decide on which side of the kink a number lies.
                assert x.abs().min() > 1e-5, "choose another seed"
            x = layer(x)
        return x


def model(name, inputs, specs, rows, seed, batch=None):
    """One training step and one evaluation of a lane of `rows` rows out of a batch of `batch`."""
    batch = batch or rows
    random = np.random.default_rng(seed)
    stack = Stack(inputs, specs)
    with torch.no_grad():
        for key, tensor in stack.state_dict().items():
            if key.endswith("num_batches_tracked"):
                continue
            # Weights of about unit gain keep the softmax from saturating and gradients from vanishing.
            gain = 2.0 if tensor.dim() == 1 else 2.0 ** round(np.log2(3 / tensor.shape[1]) / 2)
            tensor.copy_(grid(random, tensor.shape, gain))
            # Variances are positive.
            if key.endswith("running_var"):
                tensor.copy_(tensor.abs() + 0.5)
    x = grid(random, (rows, inputs), 2.0)
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
        "inputs": x,
        "labels": labels,
        "state": {k: v for k, v in before.items() if not k.endswith("tracked")},
        "trained": {"loss": loss, "correct": int((logits.argmax(1) == labels).sum())},
        "evaluated": evaluated,
        "gradients": {key: p.grad for key, p in stack.named_parameters()},
        "statistics": statistics,
    }


def models():
    deep = ["linear 37", "batch-norm", "relu", "linear 19", "batch-norm", "relu"]
    deep += ["linear 23", "batch-norm", "relu", "linear 5"]
    return [
        model("one linear layer", 6, ["linear 4"], rows=5, seed=1),
        model("a hidden layer", 9, ["linear 11", "relu", "linear 3"], rows=8, seed=2),
        model(
            "a normalised hidden layer",
            7,
            ["linear 10", "batch-norm", "relu", "linear 4"],
            rows=6,
            seed=3,
        ),
        model("three hidden layers of odd sizes", 13, deep, rows=7, seed=4),
        model("one row", 8, ["linear 5", "relu", "linear 3"], rows=1, seed=5),
        model(
            "a lane of a larger batch",
            8,
            ["linear 9", "relu", "linear 6"],
            rows=5,
            seed=6,
            batch=12,
        ),
        model(
            "layers that act on the input",
            12,
            ["batch-norm", "linear 17", "linear 4"],
            rows=9,
            seed=7,
        ),
        model("a rectified input", 12, ["relu", "linear 4"], rows=4, seed=11),
        model("many inputs", 600, ["linear 3"], rows=3, seed=8),
        model(
            "more rows than a tile",
            3,
            ["linear 35", "batch-norm", "relu", "linear 33"],
            rows=41,
            seed=9,
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
    ]


def schedule(base, make, count, warmup=0, **settings):
    """The rates of the first `count` steps, with PyTorch's scheduler called once a step."""
    trained = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=base)
    scheduler = make(trained)
    rates = []
    for _ in range(count):
        rates.append(trained.param_groups[0]["lr"])
        trained.step()
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
    parts = {"models": models(), "optimizers": optimizers(), "schedules": schedules()}
    body = ",\n".join(f"{json.dumps(name)}: {lines(cases)}" for name, cases in parts.items())
    path = Path(__file__).with_name("reference.json")
    path.write_text("{\n" + body + "\n}\n")
    print(f"{path}: {path.stat().st_size:,} bytes, PyTorch {torch.__version__}")
