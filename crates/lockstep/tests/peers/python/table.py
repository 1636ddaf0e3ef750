"""A small table with numbers, words, days and gaps, which a small network learns."""

import numpy
import pandas

random = numpy.random.default_rng(7)
ROWS = 120
table = pandas.DataFrame(
    {
        "a": random.random(ROWS),
        "b": random.random(ROWS),
        "town": random.choice(["Bonn", "Ulm"], ROWS),
        "day": pandas.date_range("2024-01-01", periods=ROWS),
    }
)
table.loc[::11, "b"] = numpy.nan
table["kind"] = numpy.where(table["a"] > 0.5, "high", "low")
FEATURES = ["a", "b", "town", "day"]
MODEL = {"kind": "mlp", "hidden": [8]}
TRAIN = {"epochs": 4, "batch": 16, "optimizer": {"kind": "adam", "lr": 0.02}}
