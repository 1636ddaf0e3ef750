"""What onnxruntime says of samples: `onnx_answers.py MODEL SAMPLES`, where SAMPLES is a file of float32.

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
(taken,) = session.get_inputs()
batch = numpy.fromfile(samples, dtype="<f4").reshape([-1, *taken.shape[1:]])
answers = session.run(None, {taken.name: batch})
for of_all, of_one in zip(answers, session.run(None, {taken.name: batch[:1]})):
    largest = max(1, numpy.abs(of_one).max())
    assert numpy.allclose(of_all[:1], of_one, rtol=0, atol=1e-5 * largest), (of_all[:1], of_one)
port = lambda port: {"name": port.name, "type": port.type, "shape": port.shape}
print(
    json.dumps(
        {
            "inputs": [port(taken)],
            "outputs": [port(output) for output in session.get_outputs()],
            "metadata": session.get_modelmeta().custom_metadata_map,
            "opset": loaded.opset_import[0].version,
            "answers": {
                output.name: answer.astype(float).tolist() for output, answer in zip(session.get_outputs(), answers)
            },
        }
    )
)
