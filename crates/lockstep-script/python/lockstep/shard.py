"""This rank's share of a data set, read and decoded by the worker, as batches of arrays."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Union

from . import columns, session
from .errors import GangEnded, NotInGang, Refused
from .slots import Read, Slots

if TYPE_CHECKING:
    import numpy

Batch = Dict[str, "numpy.ndarray"]
Change = Callable[[Any], Any]

TRAINING_SET = "train"
"""The set whose samples are shuffled anew each epoch, unless the script says otherwise."""


class DatasetShard:
    """What this rank reads of a data set. Each iteration is one epoch.

    In an epoch every sample goes to exactly one rank. The first iteration after a restart goes on where the
    checkpoint was.
    """

    def __init__(self, name: str, facts: Dict[str, Any], changes: Sequence[Change] = ()) -> None:
        self.name = name
        self._facts = facts
        self._changes = list(changes)

    @property
    def columns(self) -> List[str]:
        """The names of the columns, as the worker reads them."""
        return [column["name"] if isinstance(column, dict) else column for column in self._facts["columns"]]

    @property
    def classes(self) -> List[str]:
        """The names of the classes by number; empty where others are predicted."""
        return list(self._facts.get("classes") or [])

    def count(self) -> int:
        """How many samples the whole set has, over all ranks."""
        return int(self._facts["samples"])

    def iter_batches(
        self,
        *,
        batch_size: Optional[int] = None,
        batch_format: Optional[str] = "numpy",
        drop_last: bool = False,
        prefetch_batches: int = 1,
        shuffle: Optional[bool] = None,
        local_shuffle_buffer_size: Optional[int] = None,
        local_shuffle_seed: Optional[int] = None,
    ) -> "Batches":
        """Batches of this rank, as `{column: array}`; with `batch_format="pyarrow"` as Arrow tables, with "pandas"
        as pandas'.

        Arrays and tables look into the worker's memory without a copy, and are valid as long as they are held. Arrays
        may be changed. `batch_size` is of this rank, by default the job's `train.batch`. `shuffle` is by default on
        for the set `train` and off for others; the order is a function of the run's seed and the epoch. Ray's local
        shuffle is that of the whole set here.
        """
        del local_shuffle_seed
        if shuffle is None:
            shuffle = self.name == TRAINING_SET or local_shuffle_buffer_size is not None
        if batch_format not in (None, "default", "numpy", "pyarrow", "pandas"):
            raise Refused(f'batch_format is "numpy", "pyarrow" or "pandas", not {batch_format!r}')
        request = {
            "name": self.name,
            "batch": batch_size if batch_size is not None else session.current().facts.batch,
            "shuffle": bool(shuffle),
            "drop_last": bool(drop_last),
            "prefetch": max(int(prefetch_batches), 1),
        }
        if batch_format == "pyarrow" and not self._changes:
            return Batches(request, read=columns.table)
        # Functions of the script take and give arrays.
        form = {"pandas": [_as_pandas], "pyarrow": [columns.table_of]}.get(batch_format or "", [])
        return Batches(request, [*self._changes, *form])

    def iter_rows(self) -> Iterator[Dict[str, Any]]:
        """The samples one by one."""
        for batch in self.iter_batches():
            for row in range(len(next(iter(batch.values())))):
                yield {name: values[row] for name, values in batch.items()}

    def iter_torch_batches(
        self,
        *,
        dtypes: Any = None,
        device: Any = "auto",
        collate_fn: Optional[Callable[[Batch], Any]] = None,
        pin_memory: bool = False,
        **iteration: Any,
    ) -> Iterable[Any]:
        """Batches as PyTorch's tensors, on this rank's device. All other options are those of `iter_batches`."""
        from .frameworks import torch_batches

        return torch_batches(self.iter_batches(**iteration), dtypes, device, collate_fn, pin_memory)

    def to_tf(
        self,
        feature_columns: Union[str, List[str]],
        label_columns: Union[str, List[str]],
        *,
        feature_type_spec: Any = None,
        label_type_spec: Any = None,
        additional_type_spec: Any = None,
        **iteration: Any,
    ) -> Any:
        """A `tf.data.Dataset` of `(features, labels)`. Lists of columns become dicts. Types are known here, whatever
        Ray's `..._type_spec` say; all other options are those of `iter_batches`."""
        from .frameworks import tf_dataset

        del feature_type_spec, label_type_spec, additional_type_spec
        return tf_dataset(self.iter_batches(**iteration), self._facts["columns"], feature_columns, label_columns)

    def __repr__(self) -> str:
        return f"DatasetShard({self.name!r}, {self.count()} samples, columns {self.columns})"


class Batches:
    """An epoch's batches each time that it is iterated."""

    def __init__(
        self, request: Dict[str, Any], changes: Sequence[Change] = (), read: Read = columns.arrays
    ) -> None:
        self._request = request
        self._changes = changes
        self._read = read

    @property
    def changed(self) -> bool:
        """Whether functions of the script change the batches."""
        return bool(self._changes)

    def __iter__(self) -> Iterator[Any]:
        connection = session.current().data_connection()
        opened = connection.request("shard", **self._request)
        iterator = opened["iterator"]
        slots = Slots(opened["path"], opened["slot_bytes"], opened["columns"])
        try:
            while True:
                answer = connection.request("next", iterator=iterator, free=slots.take_free())
                if answer.get("end"):
                    break
                batch = slots.batch(answer["slot"], answer["rows"], self._read)
                for change in self._changes:
                    batch = change(batch)
                yield batch
                # Let go before the next is asked for: else its slot would be in use for one batch longer.
                del batch
        finally:
            slots.close()
            # Also of one that was broken off. A gang that has ended needs no word.
            with contextlib.suppress(GangEnded):
                connection.request("close", iterator=iterator)


def _as_pandas(batch: Batch) -> Any:
    import pandas

    # A cell of a table holds one thing: rows of more than one number become arrays of their own.
    return pandas.DataFrame({name: values if values.ndim == 1 else list(values) for name, values in batch.items()})



def get_dataset_shard(dataset_name: Optional[str] = None) -> DatasetShard:
    """This rank's share of a data set of the job, such as `get_dataset_shard("train")`."""
    from .data import changes_of

    name = dataset_name or TRAINING_SET
    current = session.current()
    if not current.in_gang:
        raise NotInGang(
            f'get_dataset_shard("{name}") needs the program that reads the data. Write a job file, with the data, '
            "and run it with `lockstep run job.toml`:\n"
            f'    name = "mine"\n    data.{name} = "fashion-mnist:train"\n'
            '    train = { command = ["python3", "SCRIPT"], workers = 2 }'
        )
    if name not in current.datasets:
        known = ", ".join(sorted(current.datasets)) or "none"
        raise Refused(f"there is no data set {name!r} in this job; it has: {known}")
    return DatasetShard(name, current.datasets[name], changes_of(name))
