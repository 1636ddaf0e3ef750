"""Loads a model of Lockstep's in Python: what MLflow calls, and what works without MLflow too.

`load("data")` gives a model whose `predict` takes samples as they are stored. A model of a table, which has a file
`table.json`, takes a pandas DataFrame with the table's own columns and gives one; all others take an array, and give
arrays by name. Networks need numpy and onnxruntime, trees numpy and xgboost, and tables pandas too.
"""

import json
import os

import numpy


class Network:
    """A network in `model.onnx`, with all that is done to samples before it."""

    def __init__(self, folder):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        path = os.path.join(folder, "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.outputs = [output.name for output in self.session.get_outputs()]

    def predict(self, rows, params=None):
        """What the network says of each sample, by name: `class` and `probabilities`, or `values`.

        `rows` is an array or a table of numbers, such as bytes from 0 to 255; each sample may be flat.
        """
        if hasattr(rows, "to_numpy"):
            rows = rows.to_numpy()
        (taken,) = self.session.get_inputs()
        shape = [size if isinstance(size, int) else -1 for size in taken.shape]
        rows = numpy.asarray(rows).astype(numpy.float32).reshape([-1] + shape[1:])
        return dict(zip(self.outputs, self.session.run(self.outputs, {taken.name: rows})))

    def of_columns(self, columns):
        """The numbers that are said of each row, and the place of its class where there are classes.

        `columns` has for each column its name, what it holds and its cells.
        """
        fed = {name: reader.for_onnx(cells) for name, reader, cells in columns}
        numbers, *rest = self.session.run(self.outputs, fed)
        return numbers, (rest[0] if rest else None)


class Trees:
    """Boosted trees in `model.ubj`, as XGBoost wrote them."""

    def __init__(self, folder, objective):
        import xgboost

        self.matrix = xgboost.DMatrix
        self.booster = xgboost.Booster(model_file=os.path.join(folder, "model.ubj"))
        self.objective = objective

    def predict(self, rows, params=None):
        """What the trees say of rows of numbers: their margins, as XGBoost calls them."""
        rows = numpy.asarray(rows, dtype=numpy.float32)
        matrix = self.matrix(
            rows,
            missing=numpy.nan,
            feature_names=self.booster.feature_names,
            feature_types=self.booster.feature_types,
        )
        margins = self.booster.predict(matrix, output_margin=True)
        return margins.reshape(len(rows), -1)

    def of_columns(self, columns):
        """As `Network.of_columns`."""
        rows = [numbers for _, reader, cells in columns for numbers in reader.numbers(cells)]
        margins = self.predict(numpy.stack(rows, axis=1)).astype(numpy.float64)
        if self.objective == "binary:logistic":
            margins = numpy.hstack([numpy.zeros_like(margins), margins])
        elif self.objective != "multi:softprob":
            has_log = self.objective in ("count:poisson", "reg:gamma")
            return numpy.exp(margins) if has_log else margins, None
        shares = numpy.exp(margins - margins.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True), margins.argmax(axis=1)


class Table:
    """A model of a table: takes its columns by their names, with words, dates and gaps as they are."""

    def __init__(self, folder, known):
        from lockstep_cells import ColumnReader

        self.readers = [ColumnReader(column, known["gaps"]) for column in known["columns"]]
        self.task, self.names = known["task"], known["names"]
        self.positive, self.threshold = known.get("positive"), known.get("threshold")
        objective = known.get("objective")
        self.model = Trees(folder, objective) if objective else Network(folder)

    def predict(self, rows, params=None):
        """What the model says of each row of a DataFrame, as a DataFrame with the same index.

        Classes: `predicted`, `probability`, and `probability_CLASS` of each class. Numbers and labels:
        `predicted_NAME` of each; that of a label is its probability. Columns may be in any order, and others are ignored.
        """
        import pandas

        if not isinstance(rows, pandas.DataFrame):
            rows = pandas.DataFrame(rows)
        missing = [reader.name for reader in self.readers if reader.name not in rows.columns]
        if missing:
            raise ValueError("the table has no column " + ", ".join(f"`{name}`" for name in missing))
        if not len(rows):
            return self.answer(pandas, numpy.zeros((0, len(self.names))), numpy.zeros(0, int), rows.index)
        columns = [(reader.name, reader, rows[reader.name]) for reader in self.readers]
        numbers, classes = self.model.of_columns(columns)
        return self.answer(pandas, numbers, classes, rows.index)

    def answer(self, pandas, numbers, classes, index):
        numbers = numpy.asarray(numbers, dtype=numpy.float64)
        if self.task != "classes":
            said = {f"predicted_{name}": numbers[:, at] for at, name in enumerate(self.names)}
            return pandas.DataFrame(said, index=index)
        if self.positive is not None:
            is_positive = numbers[:, self.positive] >= self.threshold
            classes = numpy.where(is_positive, self.positive, 1 - self.positive)
        said = {
            "predicted": [self.names[place] for place in classes],
            "probability": numbers[numpy.arange(len(numbers)), classes],
        }
        said.update((f"probability_{name}", numbers[:, at]) for at, name in enumerate(self.names))
        return pandas.DataFrame(said, index=index)


def load(folder):
    """The model in a folder: that of a table if there is a `table.json`, else a network of arrays."""
    try:
        with open(os.path.join(folder, "table.json"), encoding="utf-8") as file:
            known = json.load(file)
    except FileNotFoundError:
        return Network(folder)
    return Table(folder, known)


def _load_pyfunc(path):
    return load(path)
