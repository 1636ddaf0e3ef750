"""Lockstep: data-parallel training in one binary, and what a training script needs of it.

Within a script: `lockstep.report(metrics, checkpoint=...)`, `lockstep.get_checkpoint()`,
`lockstep.get_context()`, `lockstep.get_dataset_shard("train")`, `lockstep.train.torch.prepare_model(model)`.
From Python: `lockstep.run("job.toml")`, `lockstep.Job(...).run()`, `lockstep.load("latest")`, `lockstep.tune(...)`, and
`lockstep.LockstepClassifier()` in a pipeline of scikit-learn's.

Names follow Ray Train's, so that a script moves over by changing its imports; `lockstep.train` stands for
`ray.train`. A script that is started without a gang is rank 0 of 1.
"""

from __future__ import annotations

from typing import Any

from . import collective, data, train
from .checkpoint import Checkpoint
from .context import TrainContext, get_context
from .errors import (
    GangEnded,
    GangTimeout,
    LockstepError,
    NotInGang,
    ProgramNotFound,
    Refused,
    RunFailed,
    TrainingFailedError,
)
from .inference import Evaluation
from .jobs import Job, RunResult, load, run
from .reporting import get_checkpoint, report
from .session import in_gang
from .shard import DatasetShard, get_dataset_shard
from .tuning import Tuning, tune
from .version import VERSION as __version__

__all__ = [
    "Checkpoint",
    "DatasetShard",
    "Evaluation",
    "GangEnded",
    "GangTimeout",
    "Job",
    "LockstepError",
    "NotInGang",
    "ProgramNotFound",
    "Refused",
    "RunFailed",
    "RunResult",
    "TrainContext",
    "TrainingFailedError",
    "Tuning",
    "__version__",
    "collective",
    "data",
    "get_checkpoint",
    "get_context",
    "get_dataset_shard",
    "in_gang",
    "init",
    "is_initialized",
    "load",
    "report",
    "run",
    "shutdown",
    "train",
    "tune",
]


def __getattr__(name: str) -> Any:
    """The estimators, which need scikit-learn: it is imported when the first of them is asked for."""
    if name in ("LockstepClassifier", "LockstepRegressor"):
        from . import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def init(*args: Any, **options: Any) -> None:
    """Does nothing: there is no cluster to connect to before a gang starts. For scripts that call `ray.init()`."""


def shutdown(*args: Any, **options: Any) -> None:
    """Does nothing; see `init`."""


def is_initialized() -> bool:
    """Always true; see `init`."""
    return True
