"""Asks a server of the Open Inference Protocol with Triton's client, and prints what it said of each row."""

import csv
import json
import sys

import numpy
from tritonclient.http import InferenceServerClient, InferInput

address, table = sys.argv[1:]
client = InferenceServerClient(address)
with open(table) as file:
    rows = list(csv.DictReader(file))


def ask(binary):
    columns = {
        "date": ("BYTES", numpy.array([row["date"] for row in rows], dtype=object)),
        "region": ("BYTES", numpy.array([row["region"] for row in rows], dtype=object)),
        "organic": ("BOOL", numpy.array([row["organic"] == "true" for row in rows])),
        "volume": ("FP64", numpy.array([float(row["volume"] or "nan") for row in rows])),
    }
    inputs = []
    for name, (datatype, values) in columns.items():
        one = InferInput(name, [len(rows)], datatype)
        one.set_data_from_numpy(values, binary_data=binary)
        inputs.append(one)
    said = client.infer("avocados", inputs).as_numpy("predicted")
    # Each is written as short as single precision allows, as a JSON of predictions has it.
    return [float(str(price)) for price in said[:, 0]]


print(
    json.dumps(
        {
            "ready": [
                client.is_server_live(),
                client.is_server_ready(),
                client.is_model_ready("avocados", "1"),
            ],
            "inputs": [one["name"] for one in client.get_model_metadata("avocados")["inputs"]],
            "json": ask(False),
            "binary": ask(True),
        }
    )
)
