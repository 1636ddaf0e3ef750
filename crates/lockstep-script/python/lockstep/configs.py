"""What a trainer is told, with Ray Train's names. What has no meaning here is accepted and passed over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple, Union

WITHOUT_END = 1_000_000
"""Restarts that Ray's -1 comes to."""


@dataclass
class ScalingConfig:
    """How many processes train, and on what."""

    num_workers: Union[int, Tuple[int, int]] = 1
    """Processes of the gang; 0 runs the loop in this process. A pair says how few and how many there may be."""
    use_gpu: Union[bool, int] = False
    """Whether each process takes a GPU."""
    resources_per_worker: Optional[Dict[str, float]] = None
    placement_strategy: str = "PACK"
    accelerator_type: Optional[str] = None
    trainer_resources: Optional[Dict[str, float]] = None
    use_tpu: bool = False
    topology: Optional[str] = None
    label_selector: Any = None
    elastic_resize_monitor_interval_s: float = 60.0

    def workers(self) -> Union[int, Dict[str, int]]:
        """`train.workers` of the job file."""
        if isinstance(self.num_workers, int):
            return self.num_workers
        least, most = self.num_workers
        return {"min": least, "max": most}

    def resources(self) -> Dict[str, Any]:
        """`[resources]` of the job file."""
        named = self.resources_per_worker or {}
        gpus = named.get("GPU", 1 if self.use_gpu else None)
        place = self.placement_strategy.lower().replace("_", "-")
        # What it does not know, such as STRICT_PACK, is as its default.
        known = place if place in ("spread", "strict-spread") else None
        return {"cpus": named.get("CPU"), "gpus": gpus, "place": known}


@dataclass
class CheckpointConfig:
    """Which checkpoints stay."""

    num_to_keep: Optional[int] = None
    checkpoint_score_attribute: Optional[str] = None
    checkpoint_score_order: str = "max"
    checkpoint_frequency: Optional[int] = None
    checkpoint_at_end: Optional[bool] = None

    def table(self) -> Dict[str, Any]:
        """`[checkpoint]` of the job file."""
        best = self.checkpoint_score_attribute
        return {"keep": self.num_to_keep, "best": best, "mode": self.checkpoint_score_order if best else None}


@dataclass
class FailureConfig:
    """How often a run begins again when a process is lost."""

    max_failures: int = 0
    """-1 means without end."""
    fail_fast: Any = False

    def table(self) -> Dict[str, Any]:
        """`[recover]` of the job file."""
        return {"max_restarts": self.max_failures if self.max_failures >= 0 else WITHOUT_END}


@dataclass
class RunConfig:
    """The run's name, and where it is kept."""

    name: Optional[str] = None
    storage_path: Optional[str] = None
    """The folder or bucket in which the run makes a folder of its own."""
    failure_config: Optional[FailureConfig] = None
    checkpoint_config: Optional[CheckpointConfig] = None
    storage_filesystem: Any = None
    callbacks: Any = None
    sync_config: Any = None
    verbose: Any = None
    stop: Any = None
    log_to_file: Any = False
    worker_runtime_env: Any = None
    logging_config: Any = None


@dataclass
class DataConfig:
    """Ray's division of data sets among processes. Here every set is divided among all."""

    datasets_to_split: Any = "all"
    options: Dict[str, Any] = field(default_factory=dict)


# Named in scripts' signatures; what they say is passed over.
SyncConfig = DataConfig
