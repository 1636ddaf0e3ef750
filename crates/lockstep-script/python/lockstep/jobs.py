"""Jobs from Python: `lockstep.run("job.toml")` and `lockstep.Job(...).run()` start the program and follow it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

from . import program, toml
from .display import display_for
from .errors import RunFailed
from .program import Event


@dataclass
class RunResult:
    """How a run ended, and what it came to."""

    status: str
    run: Optional[str]
    run_dir: Optional[str]
    metrics: Optional[Dict[str, float]]
    """What the kept weights came to on the test set, such as `loss` and `accuracy`. Of a job without a test set, what they
    came to on validation data, by the whole names: `val.loss`, `val.accuracy`."""
    weights_sha256: Optional[str]
    best_epoch: Optional[int]
    timing: Dict[str, float]
    result: Event = field(repr=False)
    """The whole `result` event; docs/run-folder.md says what is in it."""
    events: List[Event] = field(repr=False)
    """All events but logs and progress."""

    @property
    def epochs(self) -> List[Dict[str, Any]]:
        """What each epoch came to, flat: `train.loss`, `val.loss`, `test.accuracy` and so on."""
        return [flat_epoch(event) for event in self.events if event["event"] == "epoch"]

    @property
    def curves(self) -> Any:
        """The epochs as a pandas table with one row an epoch; without pandas, as a list of dicts."""
        try:
            import pandas
        except ImportError:
            return self.epochs
        return pandas.DataFrame(self.epochs)


def flat_epoch(event: Event) -> Dict[str, Any]:
    """An `epoch` event without its tables within tables."""
    flat: Dict[str, Any] = {}
    for name, item in event.items():
        if name == "event":
            continue
        if name in ("train", "val", "test"):
            flat.update({f"{name}.{metric}": number for metric, number in (item or {}).items()})
        else:
            flat[name] = item
    return flat


def run(
    job: Union[str, "os.PathLike[str]", "Job"],
    *,
    workers: Optional[int] = None,
    epochs: Optional[int] = None,
    name: Optional[str] = None,
    resume: Union[bool, str, None] = None,
    quiet: bool = False,
    arguments: Optional[List[str]] = None,
    **settings: Any,
) -> RunResult:
    """Trains a job, shows how it goes, and returns what it came to.

    `settings` are keys of the job file, such as `**{"train.batch": 64}`. `resume=True` goes on with the job's
    newest run, `resume="runs/NAME"` with that one. `arguments` are further ones of `lockstep run`. In a notebook
    the curve is drawn as it grows; elsewhere each epoch is a line on standard error, unless `quiet`.

    Raises `RunFailed` with the words of what went wrong.
    """
    if isinstance(job, Job):
        options: Dict[str, Any] = dict(workers=workers, epochs=epochs, name=name, resume=resume, quiet=quiet)
        return job.run(arguments=arguments, **options, **settings)
    command = ["run", os.fspath(job), "--json"]
    for option, given in (("--workers", workers), ("--epochs", epochs), ("--name", name)):
        if given is not None:
            command += [option, str(given)]
    if resume:
        command += ["--resume"] if resume is True else ["--resume", os.fspath(resume)]
    for key, item in settings.items():
        command += ["--set", f"{key}={toml.value(item)}"]
    return _follow([*command, *(arguments or [])], quiet)


def _follow(command: List[str], quiet: bool) -> RunResult:
    display = display_for(quiet)
    try:
        code, events, words = program.follow(command, display.event)
    finally:
        display.close()
    last = events[-1] if events and events[-1]["event"] == "result" else None
    if last is None:
        raise RunFailed(words or f"`lockstep {' '.join(command)}` ended with {code} and said nothing")
    result = RunResult(
        status=last["status"],
        run=last.get("run"),
        run_dir=last.get("run_dir"),
        metrics=last.get("metrics") or _validated(last.get("val")),
        weights_sha256=last.get("weights_sha256"),
        best_epoch=last.get("best_epoch"),
        timing=last.get("timing") or {},
        result=last,
        events=events,
    )
    if result.status != "succeeded":
        raise RunFailed(last.get("error") or words or f"the run was {result.status}", result)
    return result


def _validated(metrics: Optional[Dict[str, float]]) -> Optional[Dict[str, float]]:
    """Metrics of validation data, by names that nobody takes for those of a test set."""
    return metrics and {f"val.{name}": number for name, number in metrics.items()}


class Job:
    """A job as Python's dicts, with the keys of the job file: `Job(name="x", data={...}, train={...})`."""

    def __init__(self, config: Optional[Mapping[str, Any]] = None, **tables: Any) -> None:
        self.config: Dict[str, Any] = {**(config or {}), **tables}

    def toml(self) -> str:
        """The job file."""
        return toml.document(self.config)

    def write(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the job file, to be run by the program. Relative paths in it are relative to it."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.toml())

    @contextlib.contextmanager
    def file(self) -> Iterator[str]:
        """A job file for a while, in the current folder: a job's relative paths are relative to its file."""
        handle, path = tempfile.mkstemp(prefix=".lockstep-job-", suffix=".toml", dir=".")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(self.toml())
            yield path
        finally:
            os.unlink(path)

    def run(self, **options: Any) -> RunResult:
        """Trains the job; options are those of `lockstep.run`. Relative paths are relative to the current folder."""
        with self.file() as path:
            return run(path, **options)

    def __repr__(self) -> str:
        return f"Job({self.config!r})"
