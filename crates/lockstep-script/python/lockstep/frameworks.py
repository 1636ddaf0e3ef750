"""Batches as PyTorch's and TensorFlow's own types. Both are imported only when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Sequence, Union

from .errors import Refused

if TYPE_CHECKING:
    from .shard import Batches


def torch_batches(
    batches: "Batches",
    dtypes: Any,
    device: Any,
    collate: Optional[Callable[[Dict[str, Any]], Any]],
    pin_memory: bool,
) -> "TorchBatches":
    """Batches as tensors on a device; `"auto"` is this rank's."""
    from .train.torch import get_device

    return TorchBatches(batches, dtypes, get_device() if device == "auto" else device, collate, pin_memory)


class TorchBatches:
    """An epoch's batches as tensors, each time that it is iterated."""

    def __init__(self, batches: "Batches", dtypes: Any, device: Any, collate: Any, pin_memory: bool) -> None:
        self._batches = batches
        self._dtypes = dtypes
        self._device = device
        self._collate = collate
        self._pin = pin_memory

    def __iter__(self) -> Iterator[Any]:
        from .train.torch import move

        for batch in self._batches:
            if self._collate is not None:
                made = self._collate(batch)
            else:
                made = {name: self._tensor(name, values) for name, values in batch.items()}
            yield move(made, self._device) if self._device is not None else made
            # As in `Batches`: what is held here keeps a slot in use.
            del batch, made

    def _tensor(self, name: str, values: Any) -> Any:
        import numpy
        import torch

        if getattr(values, "dtype", None) is not None and values.dtype.kind not in "biuf":
            raise Refused(
                f"the column {name!r} holds what PyTorch has no tensors of (texts, times, or lists of several "
                "lengths): drop it or make numbers of it with collate_fn, or in map_batches"
            )
        # On a CPU this looks into the same memory. A function of the script may have made a list of arrays.
        tensor = torch.from_numpy(values if isinstance(values, numpy.ndarray) else numpy.stack(values))
        wanted = self._dtypes.get(name) if isinstance(self._dtypes, dict) else self._dtypes
        if wanted is not None:
            tensor = tensor.to(wanted)
        return tensor.pin_memory() if self._pin else tensor


def tf_dataset(
    batches: "Batches",
    columns: Sequence[Dict[str, Any]],
    features: Union[str, List[str]],
    labels: Union[str, List[str]],
) -> Any:
    """A `tf.data.Dataset` of `(features, labels)`. TensorFlow copies each batch into its own memory."""
    import tensorflow as tf

    if batches.changed:
        raise Refused("to_tf cannot know the types after map_batches: use to_tf(...).map(...) of TensorFlow instead")
    known = {column["name"]: column for column in columns}

    def spec(name: str) -> Any:
        if name not in known:
            raise Refused(f"there is no column {name!r}; there are: {', '.join(known)}")
        column = known[name]
        if column.get("ends") is not None and column["cell"] == "list" or column["dtype"].startswith("datetime"):
            raise Refused(f"the column {name!r} holds what TensorFlow has no tensors of: use iter_batches")
        if column.get("ends") is not None:
            return tf.TensorSpec((None,), tf.string)
        # Whole numbers with gaps come as float64, with NaN.
        gaps = column.get("valid") is not None and column["dtype"].startswith(("int", "uint"))
        return tf.TensorSpec((None, *column["shape"]), tf.as_dtype("float64" if gaps else column["dtype"]))

    def choose(names: Union[str, List[str]], of: Callable[[str], Any]) -> Any:
        return of(names) if isinstance(names, str) else {name: of(name) for name in names}

    def generate() -> Iterator[Any]:
        for batch in batches:
            yield choose(features, batch.__getitem__), choose(labels, batch.__getitem__)

    dataset = tf.data.Dataset.from_generator(
        generate, output_signature=(choose(features, spec), choose(labels, spec))
    )
    return without_sharding(dataset)


def without_sharding(dataset: Any) -> Any:
    """The data set with TensorFlow's own division among workers off: each rank has its share already."""
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options)
