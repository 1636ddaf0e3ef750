"""Trainers, with Ray Train's names: a function that every process of a gang runs.

Ray sends the function to its workers. Here the script itself is run again, once in every process of the gang,
and each calls the function when it comes to `fit()`. So there are three cases:

- The script was started plainly. `fit()` writes a job that starts this script as a gang, runs it, and returns
  the result.
- The script was started by that `fit()`. There `fit()` calls the function, and then the process ends: what
  follows in the script is for the process that the user started.
- The script was started by hand with `lockstep launch`. There `fit()` calls the function and returns, on every rank.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional

from . import data, program, session
from .checkpoint import Checkpoint
from .configs import RunConfig, ScalingConfig
from .display import Lines
from .errors import LockstepError, RunFailed
from .jobs import Job
from .result import Result

FIT_VARIABLE = "LOCKSTEP_FIT"
"""Tells a process of a gang which call of `fit()` started it, and what earlier ones returned."""

NAME_LENGTH = 50
"""Letters of a script's name that its runs are named after."""

_calls = 0
_results: List[Result] = []


class DataParallelTrainer:
    """Runs a function in every process of a gang."""

    def __init__(
        self,
        train_loop_per_worker: Callable[..., Any],
        *,
        train_loop_config: Optional[Dict[str, Any]] = None,
        scaling_config: Optional[ScalingConfig] = None,
        run_config: Optional[RunConfig] = None,
        datasets: Optional[Mapping[str, Any]] = None,
        **ignored: Any,
    ) -> None:
        del ignored
        self.train_loop_per_worker = train_loop_per_worker
        self.train_loop_config = train_loop_config
        self.scaling_config = scaling_config or ScalingConfig()
        self.run_config = run_config or RunConfig()
        self.datasets = datasets

    def fit(self) -> Result:
        """Trains, and returns the last metrics, the newest checkpoint and the run's folder.

        Raises `RunFailed` with the words of the process that failed first.
        """
        global _calls
        _calls += 1
        started_by = os.environ.get(FIT_VARIABLE)
        if session.in_gang():
            return self._fit_as_child(json.loads(started_by)) if started_by else self._loop()
        if self.scaling_config.num_workers == 0:
            session.replace(session.AloneSession(self.run_config.storage_path))
            return self._loop()
        result = self._launch()
        _results.append(result)
        return result

    def setup(self) -> None:
        """What a framework needs before the loop begins."""

    def teardown(self) -> None:
        """What a framework needs after the loop has ended."""

    def _fit_as_child(self, started_by: Dict[str, Any]) -> Result:
        if _calls < started_by["number"]:
            # An earlier call of the same script: its result is known.
            return Result.from_json(started_by["before"][_calls - 1])
        self._loop()
        sys.stdout.flush()
        sys.exit(0)

    def _loop(self) -> Result:
        data.give(self.datasets)
        current = session.current()
        wanted, size = self.scaling_config.num_workers, current.facts.world_size
        if current.in_gang and current.facts.rank == 0 and isinstance(wanted, int) and wanted not in (0, size):
            note = f"note: the gang has {size} workers, and num_workers={wanted} is passed over"
            print(note, file=sys.stderr)
        self.setup()
        try:
            returned = self._call()
        finally:
            self.teardown()
        checkpoint = Checkpoint(current.checkpoint) if current.checkpoint else None
        metrics, path = current.last_metrics, current.facts.run_dir
        return Result(metrics=metrics, checkpoint=checkpoint, path=path, return_value=returned)

    def _call(self) -> Any:
        loop = self.train_loop_per_worker
        # As in Ray: a loop may take the config or leave it out.
        takes_config = len(inspect.signature(loop).parameters) > 0
        return loop(self.train_loop_config or {}) if takes_config else loop()

    def _launch(self) -> Result:
        # What the loop prints belongs to the script's own output.
        display = Lines(logs=sys.stdout)
        try:
            with self.job().file() as path:
                code, events, words = program.follow(["run", path, "--json"], display.event)
        finally:
            display.close()
        last = events[-1] if events and events[-1]["event"] == "result" else {}
        result = Result.from_events(events)
        if last.get("status") != "succeeded":
            result.error = RunFailed(last.get("error") or words or f"the gang ended with {code}", result)
            raise result.error
        return result

    def job(self) -> Job:
        """The job that starts this script as a gang."""
        run, command = self.run_config, script()
        store = os.path.expanduser(os.fspath(run.storage_path)) if run.storage_path else None
        before = [result.to_json() for result in _results]
        given = (run.worker_runtime_env or {}).get("env_vars") or {}
        env = {**given, FIT_VARIABLE: json.dumps({"number": _calls, "before": before})}
        tables: Dict[str, Any] = {
            "name": run.name or name_of(command),
            "train": {"command": command, "workers": self.scaling_config.workers(), "env": env},
            "run": {"store": store},
            "resources": self.scaling_config.resources(),
            "checkpoint": run.checkpoint_config.table() if run.checkpoint_config else {},
            "recover": run.failure_config.table() if run.failure_config else {},
            **data.job_tables(self.datasets),
        }
        found = {name: item for name, item in tables.items() if not _is_empty(item)}
        return Job(found)


def _is_empty(table: Any) -> bool:
    return isinstance(table, dict) and all(item is None for item in table.values())


def name_of(command: List[str]) -> str:
    """What runs of a command are called: its script's or module's name, as far as a job's name may have its letters."""
    word = command[2] if command[1] == "-m" else os.path.splitext(os.path.basename(command[1]))[0]
    name = re.sub(r"[^A-Za-z0-9]+", "-", word)[:NAME_LENGTH].strip("-")
    return name or "script"


def script() -> List[str]:
    """The command that starts this very script again."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name not in ("__main__", "builtins"):
        module = spec.parent if spec.name.endswith(".__main__") else spec.name
        return [sys.executable, "-m", module, *sys.argv[1:]]
    path = getattr(main, "__file__", None)
    if path is None or not os.path.isfile(path):
        raise LockstepError(
            "fit() starts the script again in every process of the gang, and this is no script but a notebook or a "
            "console: write the code into a file and run that, or give ScalingConfig(num_workers=0) to train here"
        )
    return [sys.executable, os.path.abspath(path), *sys.argv[1:]]
