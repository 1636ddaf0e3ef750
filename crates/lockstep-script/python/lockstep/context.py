"""Who this process is, with Ray Train's names."""

from __future__ import annotations

from typing import Any, Dict, Optional

from . import session


class TrainContext:
    """Answers who this process is in its gang. Alone, it is rank 0 of 1."""

    def get_world_size(self) -> int:
        """How many processes train together."""
        return session.current().facts.world_size

    def get_world_rank(self) -> int:
        """The number of this process among all, from 0."""
        return session.current().facts.rank

    def get_local_rank(self) -> int:
        """The number of this process among those on its machine, from 0."""
        return session.current().facts.local_rank

    def get_local_world_size(self) -> int:
        """How many processes of the gang are on this machine."""
        return session.current().facts.local_world_size

    def get_node_rank(self) -> int:
        """The number of this machine among those of the gang, from 0."""
        return session.current().facts.node_rank

    def get_experiment_name(self) -> str:
        """The name of the job."""
        return session.current().facts.experiment

    def get_trial_name(self) -> str:
        """The run's name. Ray has trials of an experiment, Lockstep runs of a job."""
        return session.current().facts.run

    def get_trial_id(self) -> str:
        """The run's name once more: it is unique."""
        return session.current().facts.run

    def get_trial_dir(self) -> Optional[str]:
        """The run's folder, or none for a process without a gang."""
        return session.current().facts.run_dir

    def get_restarts(self) -> int:
        """How often the gang has begun again because a process was lost."""
        return session.current().facts.restarts

    def get_seed(self) -> int:
        """The run's seed."""
        return session.current().facts.seed

    def get_metadata(self) -> Dict[str, Any]:
        """Always empty; Ray's scripts may ask for it."""
        return {}


def get_context() -> TrainContext:
    """Who this process is: `get_context().get_world_rank()` and others."""
    return TrainContext()
