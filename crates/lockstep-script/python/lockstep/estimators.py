"""Estimators of scikit-learn's kind: `LockstepClassifier` and `LockstepRegressor` in `cross_val_score` and `Pipeline`.

A fit is a run of the program. Its folder is a temporary one that lives as long as the estimator; what is pickled or copied
takes the model's files along.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from . import frames, inference
from .errors import LockstepError
from .jobs import Job, RunResult, run

try:
    import numpy
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import assert_all_finite, check_consistent_length
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError as error:
    raise LockstepError(
        "LockstepClassifier and LockstepRegressor need scikit-learn 1.6 or later: pip install -U scikit-learn"
    ) from error

NETWORK = {"kind": "mlp"}
"""The model where none is named."""
TREES = "xgboost"
LABEL = "target"
"""The column of what is predicted, unless the table has one of this name."""
LEFT_BEHIND = ("checkpoints", "logs")
"""Parts of a run's folder that no model needs, and that a copy of an estimator does without."""


class KeptRun:
    """A folder of runs that lives as long as this does, and that a pickle holds as bytes."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lockstep-fit-")
        self.name = ""

    @property
    def store(self) -> str:
        """The folder."""
        return self._folder.name

    @property
    def run_dir(self) -> str:
        """The run in it."""
        return os.path.join(self.store, self.name)

    def __getstate__(self) -> Dict[str, Any]:
        top = Path(self.run_dir)
        files = [path for path in sorted(top.rglob("*")) if path.is_file()]
        kept = [path for path in files if path.relative_to(top).parts[0] not in LEFT_BEHIND]
        return {"name": self.name, "files": {str(path.relative_to(top)): path.read_bytes() for path in kept}}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self.name = state["name"]
        for name, content in state["files"].items():
            path = Path(self.run_dir) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


class _Estimator(BaseEstimator):
    """What the two have in common. Settings are those of the job file; `settings` has any further keys of it."""

    def __init__(
        self,
        *,
        model: Optional[Mapping[str, Any]] = None,
        epochs: int = 100,
        batch: int = 32,
        lr: float = 1e-3,
        workers: int = 1,
        random_state: int = 0,
        settings: Optional[Mapping[str, Any]] = None,
        quiet: bool = True,
    ) -> None:
        self.model = model
        self.epochs = epochs
        self.batch = batch
        self.lr = lr
        self.workers = workers
        self.random_state = random_state
        self.settings = settings
        self.quiet = quiet

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _checked(self, X: Any, reset: bool) -> Any:
        """What is given as a table: frames as they are, with words, dates and gaps, and arrays as columns of numbers."""
        if frames.library(X) is not None:
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        numbers = validate_data(self, X, reset=reset, ensure_all_finite="allow-nan")
        return {f"x{at}": column for at, column in enumerate(numbers.T)}

    def _fit(self, X: Any, y: Any, label_type: Optional[str] = None) -> None:
        """Trains on a table and the labels of its rows."""
        label = LABEL
        while label in names_of(X):
            label += "_"
        model = dict(self.model or NETWORK)
        train: Dict[str, Any] = {"seed": int(self.random_state or 0), "workers": self.workers}
        data: Dict[str, Any] = {}
        if model.get("kind") != TREES:
            train.update(epochs=self.epochs, batch=self.batch, optimizer={"kind": "adamw", "lr": self.lr})
            data["standardise"] = True
        kept = KeptRun()
        with frames.Files() as files:
            kind, path = files.write(with_column(X, label, y), "train")
            data["train"] = {kind: path, "label": label, "types": label_type and {label: label_type}}
            # Nobody goes on with a fit, so it needs no checkpoints.
            parts = {"run": {"store": kept.store}, "checkpoint": {"every": "none"}}
            job = Job(parts, name="fit", data=data, model=model, train=train)
            self._result = run(job, quiet=self.quiet, **dict(self.settings or {}))
        kept.name = str(self._result.run)
        self._kept = kept
        self._label = label

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_kept")

    @property
    def result_(self) -> RunResult:
        """The run of the fit, which `lockstep.run` would return. Its folder goes when this estimator goes."""
        check_is_fitted(self)
        return dataclasses.replace(self._result, run_dir=self._kept.run_dir)

    def _said(self, X: Any, probabilities: bool = False) -> Mapping[str, Any]:
        """What the model says, by column."""
        check_is_fitted(self)
        table = self._checked(X, reset=False)
        with frames.Files() as files:
            path = files.write(table, "data")[1]
            return inference.predict_as(frames.COLUMNS, self._kept.run_dir, path, probabilities=probabilities)


class LockstepClassifier(ClassifierMixin, _Estimator):
    """Learns classes. `model` is the table of a job file, such as `{"kind": "xgboost", "rounds": 50}`."""

    def fit(self, X: Any, y: Any) -> "LockstepClassifier":
        """Trains on a data frame or an array, and the class of each of its rows."""
        table = self._checked(X, reset=True)
        y = labels_of(y, table)
        check_classification_targets(y)
        self.classes_, codes = numpy.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"there is only one class in y, {self.classes_[0]!r}; a classifier needs two")
        names = [str(one) for one in self.classes_]
        # Two classes may look alike as words, and a word may be one of those that stand for a gap.
        apart = len(set(names)) == len(names) and all(name.strip() for name in names)
        self._names = names if apart else [str(code) for code in range(len(names))]
        self._fit(table, numpy.asarray(self._names, dtype=object)[codes], "category")
        return self

    def predict(self, X: Any) -> Any:
        """The most probable class of each row."""
        said = self._said(X)["predicted"]
        number = {name: code for code, name in enumerate(self._names)}
        return self.classes_[[number[str(name)] for name in said]]

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class for each row, in the order of `classes_`."""
        said = self._said(X, probabilities=True)
        share = numpy.column_stack([numpy.asarray(said[f"probability_{name}"], dtype=float) for name in self._names])
        # Written in single precision, they are not one to the last digit.
        return share / share.sum(axis=1, keepdims=True)


class LockstepRegressor(RegressorMixin, _Estimator):
    """Learns numbers. `model` is the table of a job file, such as `{"kind": "xgboost", "rounds": 50}`."""

    def fit(self, X: Any, y: Any) -> "LockstepRegressor":
        """Trains on a data frame or an array, and the number of each of its rows."""
        table = self._checked(X, reset=True)
        self._fit(table, labels_of(y, table).astype(float), "number")
        return self

    def predict(self, X: Any) -> Any:
        """The number of each row."""
        said = self._said(X)
        return numpy.asarray(said[f"predicted_{self._label}"], dtype=float)


def labels_of(y: Any, table: Any) -> Any:
    """Labels as one array, as many as the table has rows."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = column_or_1d(y, warn=True)
    if y.dtype.kind in "fc":
        assert_all_finite(y, input_name="y")
    check_consistent_length(y, next(iter(table.values())) if isinstance(table, dict) else table)
    return y


def names_of(table: Any) -> List[str]:
    """The names of a table's columns."""
    names = getattr(table, "column_names", None) or getattr(table, "columns", None)
    return [str(name) for name in (table if names is None else names)]


def with_column(table: Any, name: str, cells: Any) -> Any:
    """A table with one more column. The others are not copied."""
    kind = frames.library(table)
    if kind == frames.PANDAS:
        return table.assign(**{name: cells})
    if kind == frames.POLARS:
        import polars

        return table.with_columns(polars.Series(name, cells.tolist()))
    if kind == frames.PYARROW:
        import pyarrow

        return table.append_column(name, pyarrow.array(cells))
    return {**table, name: cells}
