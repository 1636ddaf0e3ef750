"""Loads a registered model and predicts: load_model.py SERVER MODEL-URI ROWS, a file of JSON with flat rows."""

import json
import sys

import mlflow
import numpy
from mlflow.models import Model

server, uri, rows = sys.argv[1:4]
mlflow.set_tracking_uri(server)
model = mlflow.pyfunc.load_model(uri)
signature = model.metadata.signature
path = mlflow.artifacts.download_artifacts(uri)
example = Model.load(path).load_input_example(path)
rows = numpy.asarray(json.load(open(rows)), dtype=numpy.uint8).reshape([-1, *example.shape[1:]])
said = model.predict(rows)
of_numbers = model.predict(rows.astype(numpy.float32))
assert all((of_numbers[name] == said[name]).all() for name in said)
of_example = model.predict(example)
served = mlflow.models.validate_serving_input(uri, open(f"{path}/serving_input_example.json").read())
assert all((served[name] == of_example[name]).all() for name in of_example)
heavy = [name for name in ("torch", "tensorflow") if name in sys.modules]
print(
    json.dumps(
        {
            "class": said["class"].tolist(),
            "probabilities": said["probabilities"].tolist(),
            "inputs": str(signature.inputs),
            "outputs": str(signature.outputs),
            "example": list(example.shape),
            "of_example": of_example["probabilities"].tolist(),
            "heavy": heavy,
        }
    )
)
