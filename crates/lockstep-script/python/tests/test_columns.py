"""Columns of tables: as arrays and as Arrow tables that look into one buffer."""

import ctypes
import struct
import unittest

import numpy

from lockstep import columns

try:
    import pyarrow
except ImportError:
    pyarrow = None

ROWS = 3


def column(name, dtype, offset, cell="single", shape=(), ends=None, valid=None):
    """A column as the worker describes it."""
    return {
        "name": name, "dtype": dtype, "cell": cell, "shape": list(shape), "offset": offset, "ends": ends, "valid": valid,
    }  # fmt: skip


def batch():
    """A buffer with three rows, and what it holds."""
    parts = {
        0: struct.pack("=3q", 1, 2, 3),
        64: struct.pack("=6f", *range(6)),
        128: "aüc".encode(),
        192: struct.pack("=4i", 0, 1, 1, 4),
        256: struct.pack("=3d", 0.5, 0.0, 2.5),
        320: bytes([0b101]),
        384: bytes([1, 0, 1]),
        448: struct.pack("=3h", 7, 8, 9),
        512: struct.pack("=4i", 0, 2, 2, 3),
        576: struct.pack("=3q", 0, 1, 86_400_000),
    }
    buffer = (ctypes.c_char * 640)()
    for offset, content in parts.items():
        ctypes.memmove(ctypes.addressof(buffer) + offset, content, len(content))
    about = [
        column("whole", "int64", 0),
        column("vector", "float32", 64, "list", [2]),
        column("text", "uint8", 128, "text", ends=192),
        column("gap", "float64", 256, valid=320),
        column("flag", "bool", 384),
        column("list", "int16", 448, "list", ends=512),
        column("time", "datetime64[ms]", 576),
        column("count", "int64", 0, valid=320),
        column("maybe", "uint8", 128, "text", ends=192, valid=320),
        column("choice", "bool", 384, valid=320),
    ]
    return buffer, about


class Columns(unittest.TestCase):
    def test_arrays_look_into_the_buffer_and_say_what_is_missing(self):
        buffer, about = batch()
        made = columns.arrays(buffer, about, ROWS)
        self.assertEqual(made["whole"].tolist(), [1, 2, 3])
        self.assertEqual((made["vector"].dtype, made["vector"].tolist()), ("float32", [[0, 1], [2, 3], [4, 5]]))
        self.assertEqual(made["text"].tolist(), ["a", "", "üc"])
        numpy.testing.assert_array_equal(made["gap"], [0.5, numpy.nan, 2.5])
        numpy.testing.assert_array_equal(made["count"], [1, numpy.nan, 3])
        self.assertEqual(made["flag"].tolist(), [True, False, True])
        self.assertEqual([part.tolist() for part in made["list"]], [[7, 8], [], [9]])
        self.assertEqual(str(made["time"][2]), "1970-01-02T00:00:00.000")
        self.assertEqual(made["maybe"].tolist(), ["a", None, "üc"])
        self.assertEqual(made["choice"].tolist(), [True, None, True])
        numpy.frombuffer(buffer, "int64", 3)[0] = 42
        self.assertEqual(made["whole"][0], 42)

    @unittest.skipIf(pyarrow is None, "without pyarrow")
    def test_tables_look_into_the_buffer_and_say_what_is_missing(self):
        buffer, about = batch()
        made = columns.table(buffer, about, ROWS)
        made.validate(full=True)
        self.assertEqual(made["whole"].to_pylist(), [1, 2, 3])
        self.assertEqual(made["vector"].to_pylist(), [[0, 1], [2, 3], [4, 5]])
        self.assertEqual(made["text"].to_pylist(), ["a", "", "üc"])
        self.assertEqual(made["gap"].to_pylist(), [0.5, None, 2.5])
        self.assertEqual((made["count"].type, made["count"].to_pylist()), (pyarrow.int64(), [1, None, 3]))
        self.assertEqual(made["flag"].to_pylist(), [True, False, True])
        self.assertEqual(made["list"].to_pylist(), [[7, 8], [], [9]])
        self.assertEqual(made["maybe"].to_pylist(), ["a", None, "üc"])
        self.assertEqual(made["choice"].to_pylist(), [True, None, True])
        self.assertEqual(made["time"].type, pyarrow.timestamp("ms"))
        for name in ("whole", "text", "list"):
            inside = made[name].chunk(0).buffers()[-1].address - ctypes.addressof(buffer)
            self.assertTrue(0 <= inside < len(buffer), name)

    @unittest.skipIf(pyarrow is None, "without pyarrow")
    def test_arrays_of_a_function_become_a_table(self):
        made = columns.table_of({"x": numpy.arange(3), "v": numpy.zeros((3, 2), "float32")})
        self.assertEqual((made.num_rows, made["v"].type), (3, pyarrow.list_(pyarrow.float32(), 2)))


if __name__ == "__main__":
    unittest.main()
