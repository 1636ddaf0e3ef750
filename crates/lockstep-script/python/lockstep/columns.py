"""The columns of a batch, as they lie in the worker's memory: as NumPy's arrays, or as an Arrow table.

Memory is laid out as Arrow's arrays are. So nothing is copied of numbers, nor, with pyarrow, of texts and lists;
NumPy has no texts of its own, so there each becomes a `str`. What is missing from a column is null in Arrow; in
NumPy it is NaN (whole numbers become `float64` then), NaT in times, and `None` in everything else.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Dict, Sequence

from .errors import Refused

if TYPE_CHECKING:
    import numpy
    import pyarrow

Column = Dict[str, Any]
"""What the worker says of a column: name, dtype, shape and offset; of tables also cell, ends and valid."""

SINGLE = "single"


def arrays(buffer: Any, columns: Sequence[Column], rows: int) -> "Dict[str, numpy.ndarray]":
    """The columns as arrays that look into the buffer."""
    return {column["name"]: _array(buffer, column, rows) for column in columns}


def table(buffer: Any, columns: Sequence[Column], rows: int) -> "pyarrow.Table":
    """The columns as an Arrow table that looks into the buffer."""
    pyarrow = _pyarrow()
    made = [_arrow(pyarrow, buffer, column, rows) for column in columns]
    return pyarrow.table(made, names=[column["name"] for column in columns])


def table_of(batch: "Dict[str, numpy.ndarray]") -> "pyarrow.Table":
    """Arrays as an Arrow table: what a function of the script has made of a batch."""
    pyarrow = _pyarrow()

    def of(values: Any) -> Any:
        values = getattr(values, "values", values)
        if getattr(values, "ndim", 1) == 1:
            return pyarrow.array(values)
        flat = pyarrow.array(values.reshape(-1))
        return pyarrow.FixedSizeListArray.from_arrays(flat, math.prod(values.shape[1:]))

    return pyarrow.table({name: of(values) for name, values in batch.items()})


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise Refused('batch_format="pyarrow" needs pyarrow in the script\'s Python: pip install pyarrow') from error
    return pyarrow


def _numbers(buffer: Any, dtype: Any, count: int, offset: int) -> "numpy.ndarray":
    import numpy

    return numpy.frombuffer(buffer, dtype, count, offset)


def _array(buffer: Any, column: Column, rows: int) -> "numpy.ndarray":
    import numpy

    cell = column.get("cell", SINGLE)
    if column.get("ends") is None:
        shape = (rows, *column["shape"])
        values = _numbers(buffer, column["dtype"], math.prod(shape), column["offset"]).reshape(shape)
    else:
        ends = _numbers(buffer, "int32", rows + 1, column["ends"])
        flat = _numbers(buffer, column["dtype"], int(ends[-1]), column["offset"])
        values = numpy.empty(rows, object)
        if cell == "list":
            for row in range(rows):
                values[row] = flat[ends[row] : ends[row + 1]]
        else:
            raw, places = flat.tobytes(), ends.tolist()
            for row in range(rows):
                part = raw[places[row] : places[row + 1]]
                values[row] = part.decode() if cell == "text" else part
    if column.get("valid") is None:
        return values
    bits = _numbers(buffer, "uint8", -(-rows // 8), column["valid"])
    return _without(values, numpy.unpackbits(bits, count=rows, bitorder="little") == 0)


def _without(values: "numpy.ndarray", missing: "numpy.ndarray") -> "numpy.ndarray":
    """A copy in which missing cells say so."""
    import numpy

    # All batches of a column are of one type, also those from which nothing is missing.
    if values.dtype.kind in "iub":
        values = values.astype(object if values.dtype.kind == "b" else "float64")
    elif missing.any():
        values = values.copy()
    nothing = {"f": numpy.nan, "M": numpy.datetime64("NaT")}
    values[missing] = nothing.get(values.dtype.kind)
    return values


def _arrow(pyarrow: Any, buffer: Any, column: Column, rows: int) -> Any:
    import numpy

    whole = pyarrow.py_buffer(buffer)
    dtype = numpy.dtype(column["dtype"])
    width = math.prod(column["shape"])

    def part(offset: int, size: int) -> Any:
        return whole.slice(offset, size)

    valid = column.get("valid")
    there = None if valid is None else part(valid, -(-rows // 8))

    def numbers(count: int, there: Any) -> Any:
        if dtype.kind == "b":
            # Arrow keeps bits, and the worker bytes.
            values = _numbers(buffer, dtype, count, column["offset"])
            mask = None if there is None else _numbers(there, "uint8", there.size, 0)
            mask = None if mask is None else numpy.unpackbits(mask, count=count, bitorder="little") == 0
            return pyarrow.array(values, mask=mask)
        values = part(column["offset"], count * dtype.itemsize)
        return pyarrow.Array.from_buffers(pyarrow.from_numpy_dtype(dtype), count, [there, values])

    if column.get("ends") is None:
        if not column["shape"]:
            return numbers(rows, there)
        return pyarrow.FixedSizeListArray.from_arrays(numbers(rows * width, None), width)
    ends = part(column["ends"], 4 * (rows + 1))
    count = int(_numbers(buffer, "int32", rows + 1, column["ends"])[-1])
    if column["cell"] == "list":
        values = numbers(count, None)
        kind = pyarrow.list_(values.type)
        return pyarrow.Array.from_buffers(kind, rows, [there, ends], children=[values])
    kind = pyarrow.string() if column["cell"] == "text" else pyarrow.binary()
    return pyarrow.Array.from_buffers(kind, rows, [there, ends, part(column["offset"], count)])
