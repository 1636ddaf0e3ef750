"""What stands for `ray.train`: `from lockstep import train` in place of `from ray import train`.

`lockstep.train.torch` and `lockstep.train.tensorflow` need their framework only when something of them is called.
"""

from __future__ import annotations

from .. import collective
from ..checkpoint import Checkpoint
from ..configs import CheckpointConfig, DataConfig, FailureConfig, RunConfig, ScalingConfig, SyncConfig
from ..context import TrainContext, get_context
from ..errors import TrainingFailedError
from ..reporting import get_checkpoint, report
from ..result import Result
from ..shard import get_dataset_shard
from ..trainer import DataParallelTrainer
from . import tensorflow, torch

__all__ = [
    "Checkpoint",
    "CheckpointConfig",
    "DataConfig",
    "DataParallelTrainer",
    "FailureConfig",
    "Result",
    "RunConfig",
    "ScalingConfig",
    "SyncConfig",
    "TrainContext",
    "TrainingFailedError",
    "collective",
    "get_checkpoint",
    "get_context",
    "get_dataset_shard",
    "report",
    "tensorflow",
    "torch",
]
