"""Fashion-MNIST with PyTorch: Ray Train's tutorial as it is after its imports were changed.

    pip install torch torchvision tqdm
    python examples/scripts/fashion_mnist_pytorch.py --workers 2

The loop is plain PyTorch. Four lines know of the gang, and they are marked. `fit()` starts this script once in each
process of a gang; `lockstep launch --workers 2 -- python examples/scripts/fashion_mnist_pytorch.py` does the same.

torchvision downloads the data into `~/data`. Where `lockstep data get fashion-mnist` has brought it already, that is
used instead.
"""

import argparse
import gzip
import os
from pathlib import Path

import lockstep.train  # was: import ray.train
import torch
from lockstep.train import ScalingConfig  # was: from ray.train import ScalingConfig
from lockstep.train.torch import TorchTrainer  # was: from ray.train.torch import TorchTrainer
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms
from tqdm import tqdm

MEAN, DEVIATION = 0.28604, 0.32025


def use_brought_data(root):
    """Unpacks the files that `lockstep data get fashion-mnist` brought to where torchvision looks for them."""
    cache = Path(os.environ.get("LOCKSTEP_CACHE", Path.home() / ".cache" / "lockstep"))
    raw = Path(root, "FashionMNIST", "raw")
    for file in cache.glob("datasets/fashion-mnist/*-ubyte.gz"):
        raw.mkdir(parents=True, exist_ok=True)
        if not (raw / file.stem).exists():
            (raw / file.stem).write_bytes(gzip.decompress(file.read_bytes()))


def get_dataloaders(root, batch_size, limit):
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((MEAN,), (DEVIATION,))])
    sets = []
    for train in (True, False):
        dataset = datasets.FashionMNIST(root, train=train, download=True, transform=transform)
        sets.append(Subset(dataset, range(limit)) if limit else dataset)
    return DataLoader(sets[0], batch_size=batch_size, shuffle=True), DataLoader(sets[1], batch_size=batch_size)


def make_network():
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(28 * 28, 512),
        nn.ReLU(),
        nn.Dropout(0.25),
        nn.Linear(512, 512),
        nn.ReLU(),
        nn.Dropout(0.25),
        nn.Linear(512, 10),
    )


def train_func_per_worker(config):
    lockstep.train.torch.enable_reproducibility()
    # One process of each machine brings the data, the others wait for it.
    if lockstep.train.get_context().get_local_rank() == 0:
        use_brought_data(config["root"])
        get_dataloaders(config["root"], 1, None)
    lockstep.train.collective.barrier(timeout_s=600)
    train_loader, test_loader = get_dataloaders(config["root"], config["batch_size_per_worker"], config["limit"])

    # [1] Each process its share of the data.
    train_loader = lockstep.train.torch.prepare_data_loader(train_loader)
    test_loader = lockstep.train.torch.prepare_data_loader(test_loader)

    # [2] Gradients are averaged over all processes.
    model = lockstep.train.torch.prepare_model(make_network())

    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)

    for epoch in range(config["epochs"]):
        if lockstep.train.get_context().get_world_size() > 1:
            train_loader.sampler.set_epoch(epoch)

        model.train()
        for images, labels in tqdm(train_loader, desc=f"Train Epoch {epoch}", mininterval=5):
            loss = loss_fn(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        model.eval()
        test_loss, correct, total = 0.0, 0, 0
        with torch.no_grad():
            for images, labels in test_loader:
                predicted = model(images)
                test_loss += loss_fn(predicted, labels).item()
                correct += (predicted.argmax(1) == labels).sum().item()
                total += len(labels)

        # [3] How it goes. The run's metrics are those of rank 0, of its share of the test set.
        lockstep.train.report(metrics={"loss": test_loss / len(test_loader), "accuracy": correct / total})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=32, help="over all workers")
    parser.add_argument("--data", default="~/data", help="where torchvision keeps its data")
    parser.add_argument("--limit", type=int, help="train and test on so many pictures only")
    parser.add_argument("--use-gpu", action="store_true")
    options = parser.parse_args()

    config = {
        "lr": 1e-3,
        "epochs": options.epochs,
        "batch_size_per_worker": options.batch_size // max(options.workers, 1),
        "root": os.path.expanduser(options.data),
        "limit": options.limit,
    }
    # [4] The gang.
    trainer = TorchTrainer(
        train_loop_per_worker=train_func_per_worker,
        train_loop_config=config,
        scaling_config=ScalingConfig(num_workers=options.workers, use_gpu=options.use_gpu),
    )
    result = trainer.fit()
    print(f"Training result: {result}")


if __name__ == "__main__":
    main()
