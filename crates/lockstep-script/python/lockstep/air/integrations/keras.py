"""What stands for `ray.air.integrations.keras` in older scripts."""

from ...train.tensorflow.keras import ReportCheckpointCallback

__all__ = ["ReportCheckpointCallback"]
