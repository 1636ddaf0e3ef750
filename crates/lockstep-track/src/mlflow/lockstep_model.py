"""Loads a model of Lockstep's in Python. Needs numpy and onnxruntime alone.

MLflow calls `_load_pyfunc`; without MLflow, `Model("model.onnx").predict(rows)` does the same.
"""

import json
import os

import numpy
import onnxruntime


class Model:
    """A network that takes samples as they are stored: bytes as 0 to 255, columns of a table as numbers."""

    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(
            path, options, providers=["CPUExecutionProvider"]
        )
        self.input = self.session.get_inputs()[0]
        self.outputs = [output.name for output in self.session.get_outputs()]
        notes = self.session.get_modelmeta().custom_metadata_map
        self.classes = json.loads(notes.get("lockstep.classes", "[]"))

    def predict(self, rows, params=None):
        """What the network says of each row, by name: `class` and `probabilities`, or `values`.

        `rows` is an array or a table of numbers; each row may be flat.
        """
        if hasattr(rows, "to_numpy"):
            rows = rows.to_numpy()
        rows = numpy.asarray(rows, dtype=numpy.float32)
        shape = [size if isinstance(size, int) else -1 for size in self.input.shape]
        rows = rows.reshape([-1] + shape[1:])
        found = self.session.run(self.outputs, {self.input.name: rows})
        return dict(zip(self.outputs, found))


def _load_pyfunc(path):
    if os.path.isdir(path):
        path = os.path.join(path, "model.onnx")
    return Model(path)
