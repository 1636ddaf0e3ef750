"""PyTorch in a gang: the process group, the device, the model and the data loader.

What stands for `ray.train.torch`. PyTorch is imported when something here is called.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from .. import session
from ..context import get_context
from ..errors import LockstepError
from ..trainer import DataParallelTrainer
from .loader import PreparedLoader, with_distributed_sampler

if TYPE_CHECKING:
    import torch

MASTER_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")

_use_gpu: Optional[bool] = None
"""What ScalingConfig(use_gpu=...) said; None without a trainer, which means: if there is one."""

_made_group = False


def get_devices() -> "List[torch.device]":
    """The devices of this rank: its GPU, or the CPU."""
    import torch

    if _use_gpu is False or not torch.cuda.is_available():
        return [torch.device("cpu")]
    # Where each process sees one GPU alone, that is number 0; where it sees all, its local rank is its number.
    count = torch.cuda.device_count()
    return [torch.device("cuda", get_context().get_local_rank() % count)]


def get_device() -> "torch.device":
    """The device of this rank: its GPU, or the CPU."""
    return get_devices()[0]


def init_process_group(backend: Optional[str] = None, timeout_s: Optional[float] = None) -> None:
    """Joins PyTorch's process group, unless that is done already or this process is alone.

    `prepare_model` and `TorchTrainer` do it by themselves. The backend is NCCL where every rank of this machine has
    a GPU of its own, else Gloo.
    """
    global _made_group
    import torch
    import torch.distributed as distributed

    if get_context().get_world_size() == 1 or distributed.is_initialized():
        return
    missing = [name for name in MASTER_VARIABLES if name not in os.environ]
    if missing:
        raise LockstepError(f"{', '.join(missing)} not set: was the environment of `lockstep launch` cleared?")
    device = get_device()
    if backend is None:
        alone = device.type == "cuda" and torch.cuda.device_count() in (1, get_context().get_local_world_size())
        backend = "nccl" if alone and distributed.is_nccl_available() else "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)
    seconds = timeout_s or session.current().facts.timeout_s
    limits = {"timeout": timedelta(seconds=seconds)} if seconds else {}
    distributed.init_process_group(backend, init_method="env://", **limits)
    _made_group = True


def prepare_model(
    model: "torch.nn.Module",
    move_to_device: "Union[bool, torch.device]" = True,
    parallel_strategy: Optional[str] = "ddp",
    parallel_strategy_kwargs: Optional[Dict[str, Any]] = None,
    *,
    wrap_ddp: bool = True,
    ddp_kwargs: Optional[Dict[str, Any]] = None,
) -> "torch.nn.Module":
    """The model on this rank's device, wrapped so that gradients are averaged over all ranks.

    `parallel_strategy` is "ddp", "fsdp" or None. `wrap_ddp` and `ddp_kwargs` are Ray's older names. Alone the model
    is moved to the device and is else as it was.
    """
    import torch

    if parallel_strategy not in ("ddp", "fsdp", None):
        raise ValueError(f'parallel_strategy is "ddp", "fsdp" or None, not {parallel_strategy!r}')
    device = move_to_device if isinstance(move_to_device, torch.device) else get_device()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if move_to_device:
        model = model.to(device)
    if get_context().get_world_size() == 1 or parallel_strategy is None or not wrap_ddp:
        return model
    init_process_group()
    options = {**(ddp_kwargs or {}), **(parallel_strategy_kwargs or {})}
    if parallel_strategy == "fsdp":
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel(model, **options)
    if device.type == "cuda":
        options = {"device_ids": [device], "output_device": device, **options}
    return torch.nn.parallel.DistributedDataParallel(model, **options)


def prepare_data_loader(
    data_loader: "torch.utils.data.DataLoader",
    add_dist_sampler: bool = True,
    move_to_device: bool = True,
    auto_transfer: bool = True,
) -> Any:
    """The loader with this rank's share of the data, whose batches are on this rank's device.

    A loader that shuffles shuffles anew in each epoch, also where the script does not call
    `loader.sampler.set_epoch(epoch)`; where it does, its number counts. The order depends on the run's seed.
    """
    facts = session.current().facts
    if add_dist_sampler and facts.world_size > 1:
        data_loader = with_distributed_sampler(data_loader, facts.rank, facts.world_size, facts.seed)
    return PreparedLoader(data_loader, get_device() if move_to_device else None, auto_transfer)


def move(item: Any, device: Any) -> Any:
    """Tensors in lists, tuples and dicts, moved to a device; other things as they are."""
    if isinstance(item, Mapping):
        return {name: move(inner, device) for name, inner in item.items()}
    if isinstance(item, tuple):
        moved = [move(inner, device) for inner in item]
        # A named tuple takes its parts one by one.
        return type(item)(*moved) if hasattr(item, "_fields") else tuple(moved)
    if isinstance(item, list):
        return [move(inner, device) for inner in item]
    return item.to(device, non_blocking=True) if hasattr(item, "to") else item


def enable_reproducibility(seed: int = 0) -> None:
    """Seeds PyTorch, Python and NumPy, and makes PyTorch use algorithms that give the same bits again."""
    import random

    import numpy
    import torch

    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    # Without it the deterministic algorithms of CUDA refuse to work.
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"


class TorchConfig:
    """How the process group is made: `backend` is "nccl", "gloo" or None, `timeout_s` its deadline."""

    def __init__(self, backend: Optional[str] = None, init_method: str = "env", timeout_s: Optional[float] = None):
        del init_method
        self.backend = backend
        self.timeout_s = timeout_s


class TorchTrainer(DataParallelTrainer):
    """Runs a function in every process of a gang that PyTorch joins; see `lockstep.trainer`."""

    def __init__(self, *args: Any, torch_config: Optional[TorchConfig] = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.torch_config = torch_config or TorchConfig()

    def setup(self) -> None:
        global _use_gpu
        _use_gpu = bool(self.scaling_config.use_gpu)
        init_process_group(self.torch_config.backend, self.torch_config.timeout_s)

    def teardown(self) -> None:
        global _made_group, _use_gpu
        _use_gpu = None
        if _made_group:
            import torch.distributed as distributed

            _made_group = False
            if distributed.is_initialized():
                distributed.destroy_process_group()
