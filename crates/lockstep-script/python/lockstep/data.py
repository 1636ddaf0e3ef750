"""Data sets as a script describes them: where they are, and functions that change their batches.

The worker reads and decodes; nothing is read here. Functions given to `map_batches` run in the script's own
process, on each batch as it comes.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .errors import Refused

Source = Union[str, Mapping[str, Any]]
Settings = Dict[str, Dict[str, Any]]
Change = Callable[[Dict[str, Any]], Dict[str, Any]]

NAMES = ("train", "val", "test")
"""The sets that a job can have."""

ANONYMOUS = "://anonymous@"
"""Ray's way to say in a URL that no keys are needed."""


class Dataset:
    """A data set: what `data.train` takes in a job file, and functions that change its batches."""

    def __init__(self, source: Source, settings: Optional[Settings] = None, changes: Sequence[Change] = ()) -> None:
        self.source = source
        self.settings = settings or {}
        self.changes = list(changes)

    def map_batches(
        self,
        fn: Callable[..., Dict[str, Any]],
        *,
        fn_args: Sequence[Any] = (),
        fn_kwargs: Optional[Mapping[str, Any]] = None,
        **placement: Any,
    ) -> "Dataset":
        """The same data with every batch changed by a function of `{column: array}`.

        It runs in each rank, batch by batch, as the script iterates. Ray's options of where and in what sizes
        are accepted and change nothing.
        """
        del placement
        if isinstance(fn, type):
            raise Refused(f"map_batches takes a function here, not the class {fn.__name__}: give an object of it")
        named = dict(fn_kwargs or {})
        return Dataset(self.source, self.settings, [*self.changes, lambda batch: fn(batch, *fn_args, **named)])

    def __repr__(self) -> str:
        return f"Dataset({self.source!r})"


def read_images(paths: Union[str, "os.PathLike[str]"], *, size: Any = None, **options: Any) -> Dataset:
    """A folder of pictures, here or in a bucket, whose folders are the classes. `size` is (height, width)."""
    del options
    path, settings = _one(paths)
    if size is not None:
        height, width = (int(side) for side in size)
        settings["data"] = {"transform": {"resize": min(height, width), "crop": [height, width]}}
    return Dataset({"pictures": path}, settings)


def read_parquet(paths: Union[str, "os.PathLike[str]"], **columns: Any) -> Dataset:
    """A Parquet file or a folder of them. `features`, `label` and `path` name columns, as in a job file."""
    path, settings = _one(paths)
    return Dataset({"parquet": path, **columns}, settings)


def read_csv(paths: Union[str, "os.PathLike[str]"], **columns: Any) -> Dataset:
    """A CSV file. `features`, `label` and `delimiter` are as in a job file."""
    path, settings = _one(paths)
    return Dataset({"csv": path, **columns}, settings)


def _one(paths: Any) -> Tuple[str, Settings]:
    """The path, and the tables of a job file that it needs."""
    if isinstance(paths, (list, tuple)):
        if len(paths) != 1:
            raise Refused("one path is needed: put the files into one folder")
        paths = paths[0]
    path = os.fspath(paths)
    if ANONYMOUS in path:
        return path.replace(ANONYMOUS, "://"), {"storage": {"anonymous": True}}
    return (path if "://" in path else os.path.abspath(os.path.expanduser(path))), {}


_given: Dict[str, Dataset] = {}


def give(datasets: Optional[Mapping[str, Union[Dataset, Source]]]) -> None:
    """Makes the functions of these data sets those that `get_dataset_shard` applies."""
    _given.clear()
    for name, dataset in (datasets or {}).items():
        _given[name] = dataset if isinstance(dataset, Dataset) else Dataset(dataset)


def changes_of(name: str) -> List[Change]:
    """The functions that change the batches of a data set."""
    return _given[name].changes if name in _given else []


def job_tables(datasets: Optional[Mapping[str, Union[Dataset, Source]]]) -> Dict[str, Dict[str, Any]]:
    """These data sets as tables of a job file: `[data]`, and others that they need."""
    tables: Dict[str, Dict[str, Any]] = {}
    for name, dataset in (datasets or {}).items():
        if name not in NAMES:
            raise Refused(f"a data set is called {', '.join(NAMES)}, not {name!r}")
        if not isinstance(dataset, (Dataset, str, Mapping)):
            raise Refused(
                f"the data set {name!r} is a {type(dataset).__name__}: give what data.train takes in a job file, such "
                'as "fashion-mnist:train", or one of lockstep.data.read_images, read_parquet, read_csv'
            )
        known = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
        tables.setdefault("data", {})[name] = known.source
        for table, keys in known.settings.items():
            tables.setdefault(table, {}).update(keys)
    return tables
