"""TensorFlow in a gang. What stands for `ray.train.tensorflow`.

The worker sets TF_CONFIG, which `tf.distribute.MultiWorkerMirroredStrategy` reads, and asks TensorFlow for Keras 2,
since Keras 3 does not train with it. TensorFlow is imported when something here is called.
"""

from __future__ import annotations

from typing import Any

from ...frameworks import without_sharding
from ...trainer import DataParallelTrainer

__all__ = ["TensorflowTrainer", "prepare_dataset_shard"]


def prepare_dataset_shard(tf_dataset_shard: Any) -> Any:
    """The `tf.data.Dataset` with TensorFlow's own division among workers off: each rank has its share already."""
    return without_sharding(tf_dataset_shard)


class TensorflowTrainer(DataParallelTrainer):
    """Runs a function in every process of a gang that TensorFlow joins; see `lockstep.trainer`."""
