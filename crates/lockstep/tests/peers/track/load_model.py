"""Loads a registered model and predicts: load_model.py SERVER MODEL-URI ROWS, a file of JSON with flat rows."""

import json
import sys

import mlflow
import numpy
from mlflow.models import Model

server, uri, rows = sys.argv[1:4]
mlflow.set_tracking_uri(server)
model = mlflow.pyfunc.load_model(uri)
rows = numpy.asarray(json.load(open(rows)), dtype=numpy.float32)
signature = model.metadata.signature
rows = rows.reshape(signature.inputs.inputs[0].shape)
said = model.predict(rows)
path = mlflow.artifacts.download_artifacts(uri)
example = Model.load(path).load_input_example(path)
of_example = model.predict(example.astype(numpy.float32))
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
