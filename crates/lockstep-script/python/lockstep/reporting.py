"""How training goes: metrics and checkpoints out, the newest checkpoint back in."""

from __future__ import annotations

import os
from typing import Any, Mapping, Optional

from . import session
from .checkpoint import Checkpoint
from .errors import LockstepError


def report(
    metrics: Mapping[str, Any],
    checkpoint: Optional[Checkpoint] = None,
    checkpoint_dir_name: Optional[str] = None,
    timeout_s: Optional[float] = None,
    **upload_options: Any,
) -> None:
    """Tells the gang how training goes, and keeps a checkpoint if one is given.

    Without a checkpoint it returns at once and waits for nobody. With one it waits until every rank has made
    as many reports as this one; the files of all ranks that gave a checkpoint become one, whole or not at all.
    When it returns, the folder may be deleted.

    It gives up after `timeout_s` seconds, by default the gang's own deadline, with a `GangTimeout` that names
    the ranks which did not come. The run's metrics are those of rank 0.

    `checkpoint_dir_name` and Ray's options of uploading are accepted and change nothing: checkpoints are
    numbered, and the gang uploads them while training goes on.
    """
    del checkpoint_dir_name, upload_options
    folder = None
    if checkpoint is not None:
        if not hasattr(checkpoint, "path"):
            raise TypeError(f"checkpoint must be Checkpoint.from_directory(...), not {type(checkpoint).__name__}")
        folder = os.path.abspath(checkpoint.path)
        if not os.path.isdir(folder):
            raise LockstepError(f"the checkpoint's folder {folder} is not there: report it before it is deleted")
    session.current().report(metrics, folder, timeout_s)


def get_checkpoint() -> Optional[Checkpoint]:
    """The newest whole checkpoint of this run, to go on from; None at the beginning. For reading only."""
    path = session.current().checkpoint
    return Checkpoint(path) if path else None
