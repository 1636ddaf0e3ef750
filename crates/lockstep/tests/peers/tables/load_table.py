"""Loads a model of a table with MLflow and predicts the rows of a data frame in all forms that people have them in.

load_table.py SERVER MODEL-URI TRAIN.csv NEW.csv SAID.jsonl PACKAGES: SAID is what `lockstep predict` says of NEW, and
PACKAGES a folder that has XGBoost.
"""

import json
import sys

import mlflow
import pandas
from mlflow.models import Model

server, uri, train, new, said, packages = sys.argv[1:]
sys.path.append(packages)
mlflow.set_tracking_uri(server)
model = mlflow.pyfunc.load_model(uri)
frame = pandas.read_csv(new)
expected = [json.loads(line) for line in open(said)]
off = 0.0


def held(answer, lines, index):
    """Holds an answer against what `predict` says of the same rows."""
    global off
    assert list(answer.index) == list(index), answer
    for (_, row), line in zip(answer.iterrows(), lines, strict=True):
        if "probabilities" in line:
            assert row["predicted"] == line["predicted"], (row, line)
            pairs = [(row["probability"], line["probability"])]
            pairs += [(row[f"probability_{name}"], value) for name, value in line["probabilities"].items()]
            off = max([off, *(abs(a - b) for a, b in pairs)])
        else:
            for name, value in line["predicted"].items():
                off = max(off, abs(row[f"predicted_{name}"] - value) / max(1, abs(value)))


def refused(rows):
    try:
        model.predict(rows)
    except Exception as error:
        return str(error)


held(model.predict(frame), expected, frame.index)
turned = frame[frame.columns[::-1]].assign(more="nobody asked")
held(model.predict(turned), expected, frame.index)
dates = frame.assign(sold=pandas.to_datetime(frame.sold, dayfirst=True), seen=pandas.to_datetime(frame.seen))
assert dates.sold.dtype.kind == "M", dates.dtypes
held(model.predict(dates), expected, frame.index)
days = dates.assign(sold=[None if pandas.isna(day) else day.date() for day in dates.sold], new=frame.new == "yes")
held(model.predict(days), expected, frame.index)
as_text = pandas.read_csv(new, dtype=str, keep_default_na=False)
held(model.predict(as_text), expected, frame.index)
odd = frame[::2]
held(model.predict(odd), expected[::2], odd.index)
for row in range(len(frame)):
    # One row, whose whole numbers are such, and whose gaps are None.
    cells = {name: None if pandas.isna(cell) else cell for name, cell in frame.iloc[row].items()}
    if cells["rooms"] is not None:
        cells["rooms"] = int(cells["rooms"])
    held(model.predict(pandas.DataFrame([cells])), [expected[row]], [0])

path = mlflow.artifacts.download_artifacts(uri)
loaded = Model.load(path)
example = loaded.load_input_example(path)
assert len(model.predict(example)) == 1
trained = pandas.read_csv(train)
trained = trained.assign(
    sold=pandas.to_datetime(trained.sold, dayfirst=True).dt.strftime("%Y-%m-%d"), new=trained.new == "yes"
)
# Days and times are in one form there; those of `met` and `opens` are in others in the table.
wanted = example.iloc[0].drop(["met", "opens"]).to_dict()
is_row = trained.apply(lambda row: all(str(row[name]) == str(cell) for name, cell in wanted.items()), axis=1)
served = mlflow.models.validate_serving_input(uri, open(f"{path}/serving_input_example.json").read())
assert served.equals(model.predict(example)), served
outputs = [output.name for output in loaded.signature.outputs.inputs]
assert outputs == list(model.predict(frame).columns), outputs
print(
    json.dumps(
        {
            "off": off,
            "inputs": {
                column.name: getattr(column.type, "name", str(column.type).lower())
                for column in loaded.signature.inputs.inputs
            },
            "missing": refused(frame.drop(columns="town")),
            "wrong": refused(frame.assign(area="large")),
            "example": {name: str(cell) for name, cell in wanted.items()},
            "example_is_a_row": bool(is_row.any()),
        }
    )
)
