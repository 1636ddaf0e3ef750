"""Keras tells the gang how training goes. What stands for `ray.train.tensorflow.keras`."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Union

# By way of TensorFlow: scripts that set TF_USE_LEGACY_KERAS get the older Keras, whose models take only its callbacks.
import tensorflow as tf

from ...checkpoint import Checkpoint
from ...context import get_context
from ...reporting import report

Names = Union[str, List[str]]

MODEL_FILE = "model.keras"


class ReportCheckpointCallback(tf.keras.callbacks.Callback):
    """Reports Keras's metrics at the end of each epoch, and saves the model with them.

    `checkpoint_on` and `report_metrics_on` name moments of Keras, such as "epoch_end" or "train_batch_end", or
    lists of them. `metrics` chooses: a name, a list of names, or a dict from reported to Keras's names.
    Rank 0 saves; TensorFlow keeps the same weights on every rank.
    """

    def __init__(
        self,
        checkpoint_on: Names = "epoch_end",
        report_metrics_on: Names = "epoch_end",
        metrics: Union[Names, Mapping[str, str], None] = None,
    ) -> None:
        super().__init__()
        self._checkpoint_on = _listed(checkpoint_on)
        self._report_on = _listed(report_metrics_on)
        self._metrics = metrics

    def _at(self, moment: str, logs: Optional[Mapping[str, Any]]) -> None:
        if moment in self._checkpoint_on:
            with tempfile.TemporaryDirectory() as folder:
                report(_chosen(self._metrics, logs), checkpoint=_save(self.model, folder))
        elif moment in self._report_on:
            report(_chosen(self._metrics, logs))

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._at("epoch_begin", logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._at("epoch_end", logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._at("train_batch_end", logs)

    def on_test_end(self, logs: Any = None) -> None:
        self._at("test_end", logs)

    def on_train_end(self, logs: Any = None) -> None:
        self._at("train_end", logs)


def _listed(names: Names) -> List[str]:
    return [names] if isinstance(names, str) else list(names)


def _chosen(wanted: Any, logs: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    found = dict(logs or {})
    if wanted is None:
        return found
    if isinstance(wanted, Mapping):
        return {name: found[theirs] for name, theirs in wanted.items()}
    return {name: found[name] for name in _listed(wanted)}


def _save(model: Any, folder: str) -> Checkpoint:
    # Every rank of a strategy must take part in saving; only rank 0's file is kept.
    model.save(os.path.join(folder, MODEL_FILE))
    if get_context().get_world_rank() != 0:
        os.unlink(os.path.join(folder, MODEL_FILE))
    return Checkpoint.from_directory(folder)
