"""What the model of a run says of a table, and how good that is: `result.predict(frame)`, `result.evaluate(frame)`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Union

from . import frames, program, toml
from .errors import RunFailed
from .frames import Files

Data = Union[str, "os.PathLike[str]", Mapping[str, Any], Any]
"""A table of pandas, polars or pyarrow, a path, or a set as a job file has it."""


@dataclass
class Evaluation:
    """How good a model is on a set. Tables are pandas', or lists of dicts without pandas."""

    metrics: Dict[str, float]
    """The numbers of the whole set, such as `loss`, `accuracy`, `macro.f1`, or `mse` and `r2`."""
    classes: Any = field(repr=False)
    """Precision, recall, F1 and the number of samples of each class; of numbers, the errors of each column."""
    confusion: Any = field(repr=False)
    """How often each class (a row) was taken for each (a column); None where there are no classes."""
    mistakes: Any = field(repr=False)
    """The worst mistakes, with their rows."""
    raw: Dict[str, Any] = field(repr=False)
    """All of it, as evaluation.json has it: docs/evaluation.md."""


def predict(run: str, data: Optional[Data], *, probabilities: bool = False, workers: Optional[int] = None) -> Any:
    """What the model of a run says of each sample, in the order of the data, as a table of the library that `data` is
    of; of a path, as one of pandas', or as a list of dicts without pandas."""
    kind = frames.library(data) or frames.usual()
    said = predict_as(kind, run, data, probabilities=probabilities, workers=workers)
    if kind == frames.PANDAS and frames.library(data) == kind and len(said) == len(data):
        # Rows are named as those that they are about, so that the two can be joined.
        said.index = data.index
    return said


def predict_as(
    kind: Optional[str], run: str, data: Optional[Data], *, probabilities: bool = False, workers: Optional[int] = None
) -> Any:
    """The same as a table of this library."""
    with Files() as files:
        out = files.path(f"predictions{frames.ending(kind)}")
        arguments = ["predict", run, *_named(data, files), "--out", out]
        if probabilities:
            arguments.append("--probabilities")
        _output([*arguments, *_of_workers(workers)], data)
        return frames.read(out, kind)


def evaluate(run: str, data: Optional[Data], *, workers: Optional[int] = None) -> Evaluation:
    """How good the model of a run is on a set that has labels, or on the test set of the run's job."""
    with Files() as files:
        said = _output(["evaluate", run, *_named(data, files), "--json", *_of_workers(workers)], data)
    return evaluation_of(json.loads(said))


def evaluation_of(raw: Dict[str, Any]) -> Evaluation:
    """What evaluation.json says, as tables."""
    kind = frames.usual()
    metrics = {name: value for name, value in raw.items() if _is_number(value)}
    for name, averages in raw.items():
        if isinstance(averages, Mapping):
            # Those of the job's own are called as the job calls them.
            prefix = "" if name == "metrics" else f"{name}."
            metrics.update({f"{prefix}{inner}": value for inner, value in averages.items() if _is_number(value)})
    classes = raw.get("classes") or raw.get("columns") or []
    counts = raw.get("confusion")
    confusion = None
    if counts is not None:
        names = [entry["class"] for entry in classes]
        confusion = frames.of_rows([dict(zip(names, row)) for row in counts], kind)
        if kind is not None:
            confusion.index = names
    mistakes = raw.get("mistakes") or raw.get("misses") or []
    return Evaluation(metrics, frames.of_rows(classes, kind), confusion, frames.of_rows(mistakes, kind), raw)


def _output(arguments: List[str], data: Optional[Data]) -> str:
    """What the program prints. Without data it looks for the sets of the run's job, and frames of those are gone."""
    try:
        return program.output(arguments)
    except RunFailed as failed:
        if data is None and frames.PREFIX in str(failed):
            raise RunFailed("a set of this run was a data frame, which is not kept: give the samples as `data`") from failed
        raise


def _named(data: Optional[Data], files: Files) -> List[str]:
    """The arguments that name a set."""
    if data is None:
        return []
    if frames.library(data) is not None:
        # By its path alone: then it is read as the training table was, with its label and its types.
        return ["--data", files.write(data, "data")[1]]
    if isinstance(data, Mapping):
        return ["--data", toml.value(files.placed(data, "data"))]
    many = data if isinstance(data, (list, tuple)) else [data]
    return ["--data", *(os.fspath(one) for one in many)]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _of_workers(workers: Optional[int]) -> List[str]:
    return [] if workers is None else ["--workers", str(workers)]
