"""Jobs from Python: `lockstep.run("job.toml")` and `lockstep.Job(...).run()` start the program and follow it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

from . import frames, inference, program, toml
from .display import display_for
from .errors import RunFailed
from .frames import Files
from .inference import Data, Evaluation
from .program import Event

EVENTS = "events.jsonl"
"""The file of a run's folder that has its events."""


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
        return frames.of_rows(self.epochs, frames.usual())

    def predict(
        self, data: Optional[Data] = None, *, probabilities: bool = False, workers: Optional[int] = None
    ) -> Any:
        """What the model says of each row, as a table of the library that `data` is of.

        `data` is a table of pandas, polars or pyarrow, a path, or a set as a job file has it; without it, the test set
        of the job. Paths give a pandas table, or a list of dicts without pandas. docs/evaluation.md names the columns.
        """
        return inference.predict(self._model(), data, probabilities=probabilities, workers=workers)

    def evaluate(self, data: Optional[Data] = None, *, workers: Optional[int] = None) -> Evaluation:
        """How good the model is on a set that has labels; without one, on the test set of the job."""
        return inference.evaluate(self._model(), data, workers=workers)

    def _model(self) -> str:
        if self.run_dir is None:
            raise RunFailed("there is no run to take the model of", self)
        return self.run_dir


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
    with Files() as files, placed(job, files) as path:
        command = ["run", path, "--json"]
        for option, given in (("--workers", workers), ("--epochs", epochs), ("--name", name)):
            if given is not None:
                command += [option, str(given)]
        if resume:
            command += ["--resume"] if resume is True else ["--resume", os.fspath(resume)]
        for key, item in files.placed(settings).items():
            command += ["--set", f"{key}={toml.value(item)}"]
        return _follow([*command, *(arguments or [])], quiet)


def load(run: Union[str, "os.PathLike[str]"], *, store: Union[str, "os.PathLike[str]", None] = None) -> RunResult:
    """A run that was trained before, here or elsewhere: its folder, or its name in the store or a part of it.

    The store is a folder or a URL such as `s3://bucket/runs`; without it, the folder `runs`, or what LOCKSTEP_STORE
    names. Of a run in a bucket, there are no events and so no curves.
    """
    named = os.fspath(run)
    arguments = ["runs", "show", named, "--json"]
    if store is not None:
        arguments += ["--store", os.fspath(store)]
    about = json.loads(program.output(arguments))
    folder = named
    if not os.path.isdir(named) and "://" not in named:
        folder = f"{os.fspath(store or os.environ.get('LOCKSTEP_STORE') or 'runs')}/{about['run']}"
    result = about.get("result") or {"status": about["status"], "run": about["run"]}
    return _result({**result, "run_dir": folder}, _events(folder))


def _events(folder: str) -> List[Event]:
    path = os.path.join(folder, EVENTS)
    if not os.path.isfile(path):
        return []
    with open(path, encoding="utf-8") as file:
        events = [json.loads(line) for line in file if line.endswith("\n")]
    return [event for event in events if event["event"] not in ("log", "progress", "embedding")]


def _follow(command: List[str], quiet: bool) -> RunResult:
    display = display_for(quiet)
    try:
        code, events, words = program.follow(command, display.event)
    finally:
        display.close()
    last = events[-1] if events and events[-1]["event"] == "result" else None
    if last is None:
        raise RunFailed(words or f"`lockstep {' '.join(command)}` ended with {code} and said nothing")
    result = _result(last, events)
    if result.status != "succeeded":
        raise RunFailed(last.get("error") or words or f"the run was {result.status}", result)
    return result


def _result(last: Event, events: List[Event]) -> RunResult:
    return RunResult(
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


def _validated(metrics: Optional[Dict[str, float]]) -> Optional[Dict[str, float]]:
    """Metrics of validation data, by names that nobody takes for those of a test set."""
    return metrics and {f"val.{name}": number for name, number in metrics.items()}


class Job:
    """A job as Python's dicts, with the keys of the job file: `Job(name="x", data={...}, train={...})`.

    A set may be a table of pandas, polars or pyarrow, or have one as its `frame`:
    `data={"train": {"frame": houses, "label": "price"}}`.
    """

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
    def file(self, files: Optional[Files] = None) -> Iterator[str]:
        """A job file for a while, in the current folder: a job's relative paths are relative to its file. Its tables
        become some of `files`."""
        text = self.toml() if files is None else toml.document(files.placed(self.config))
        handle, path = tempfile.mkstemp(prefix=".lockstep-job-", suffix=".toml", dir=".")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            yield path
        finally:
            os.unlink(path)

    def run(self, **options: Any) -> RunResult:
        """Trains the job; options are those of `lockstep.run`. Relative paths are relative to the current folder."""
        return run(self, **options)

    def __repr__(self) -> str:
        return f"Job({self.config!r})"


@contextlib.contextmanager
def placed(job: Union[str, "os.PathLike[str]", Job], files: Files) -> Iterator[str]:
    """The path of a job's file, which is there for a while if the job is Python's."""
    if isinstance(job, Job):
        with job.file(files) as path:
            yield path
    else:
        yield os.fspath(job)
