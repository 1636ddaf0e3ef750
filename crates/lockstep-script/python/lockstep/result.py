"""What `trainer.fit()` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence

from .checkpoint import Checkpoint

MODEL = "model"
"""The folder of a run that holds the files of its best checkpoint."""


@dataclass
class Result:
    """How a training ended: the last metrics that rank 0 reported, the newest checkpoint, the run's folder."""

    metrics: Optional[Dict[str, Any]] = None
    checkpoint: Optional[Checkpoint] = None
    path: Optional[str] = None
    error: Optional[Exception] = None
    reports: List[Dict[str, Any]] = field(default_factory=list, repr=False)
    """The metrics of all reports of rank 0, in their order."""
    return_value: Any = field(default=None, repr=False)
    """What the loop returned, where it ran in this process."""

    @property
    def metrics_dataframe(self) -> Any:
        """All reports as a pandas table; without pandas, as a list of dicts."""
        try:
            import pandas
        except ImportError:
            return self.reports
        return pandas.DataFrame(self.reports)

    def to_json(self) -> Dict[str, Any]:
        """This result as JSON has it, for a process that is started later."""
        checkpoint = self.checkpoint.path if self.checkpoint else None
        return {"metrics": self.metrics, "checkpoint": checkpoint, "path": self.path}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Result":
        """What `to_json` made."""
        checkpoint = found.get("checkpoint")
        return cls(found.get("metrics"), Checkpoint(checkpoint) if checkpoint else None, found.get("path"))

    @classmethod
    def from_events(cls, events: Sequence[Mapping[str, Any]]) -> "Result":
        """What the events of a run say, of which the last is its `result`."""
        reported = [event for event in events if event["event"] == "reported"]
        last = events[-1] if events and events[-1]["event"] == "result" else {}
        path = last.get("run_dir")
        # The files of the best checkpoint; of the newest, if nothing says which is the best.
        model = f"{path}/{MODEL}"
        has_model = path is not None and any(event.get("checkpoint") for event in reported)
        return cls(
            metrics=last.get("reported"),
            checkpoint=Checkpoint(model) if has_model else None,
            path=path,
            # One that comes again after a failure has its number again, and the later one counts.
            reports=list({event.get("report"): event.get("metrics") or {} for event in reported}.values()),
        )
