"""What stands for `ray.air` in older scripts."""

from ..configs import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
from ..result import Result

__all__ = ["CheckpointConfig", "FailureConfig", "Result", "RunConfig", "ScalingConfig"]
