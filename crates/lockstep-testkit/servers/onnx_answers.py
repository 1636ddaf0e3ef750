"""What onnxruntime says of samples: `onnx_answers.py MODEL SAMPLES`, where SAMPLES is a file of float32, or one of JSON
with the columns of a table by their names, in which dates are ISO's text and gaps are null.

Prints one JSON object: `inputs` and `outputs` (name, type, shape), `metadata`, `opset`, and `answers`, the numbers of
each output. The model must pass ONNX's own checker, and say the same of one sample alone as of it among others.
"""

import json
import sys

import numpy
import onnx
import onnxruntime

model, samples = sys.argv[1:]
loaded = onnx.load(model)
onnx.checker.check_model(loaded, full_check=True)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def column(cells, kind):
    """The cells of a column as the input of this type, as people have them in numpy."""
    if kind == "tensor(string)":
        return numpy.array([cell or "" for cell in cells], dtype=object)
    if kind == "tensor(int64)":
        return numpy.array(cells, dtype="datetime64[s]").astype(numpy.int64)
    return numpy.array(cells, dtype=numpy.float32)


taken = session.get_inputs()
if samples.endswith(".json"):
    columns = json.load(open(samples))
    fed = {port.name: column(columns[port.name], port.type) for port in taken}
else:
    (one,) = taken
    batch = numpy.fromfile(samples, dtype="<f4").reshape([-1, *one.shape[1:]])
    fed = {one.name: batch.astype(numpy.uint8) if one.type == "tensor(uint8)" else batch}
answers = session.run(None, fed)
for of_all, of_one in zip(answers, session.run(None, {name: cells[:1] for name, cells in fed.items()})):
    if of_one.dtype == object:
        assert of_all[:1] == of_one
        continue
    largest = max(1, numpy.abs(of_one).max())
    assert numpy.allclose(of_all[:1], of_one, rtol=0, atol=1e-5 * largest), (of_all[:1], of_one)
port = lambda port: {"name": port.name, "type": port.type, "shape": port.shape}
print(
    json.dumps(
        {
            "inputs": [port(one) for one in taken],
            "outputs": [port(output) for output in session.get_outputs()],
            "metadata": session.get_modelmeta().custom_metadata_map,
            "opset": loaded.opset_import[0].version,
            "answers": {
                output.name: (answer if answer.dtype == object else answer.astype(float)).tolist()
                for output, answer in zip(session.get_outputs(), answers)
            },
        }
    )
)
