"""CLIP ViT-B/32, images a second: our encoder beside onnxruntime, one thread each, then two processes.

    python3 bench/clip.py [--batch 16] [--rounds 3] [--seconds 5] [--json FILE]

Makes a model of the real size with random weights (350 MB) and an environment with onnxruntime in the cache folder
($LOCKSTEP_CACHE, else ~/.cache/lockstep), builds the example `clip_rate`, checks that both programs give the same
embeddings, and lets them take turns. EfficientNet-Lite0 is timed too, without a peer.
"""

import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("LOCKSTEP_CACHE") or pathlib.Path.home() / ".cache/lockstep")
PACKAGES = ["numpy", "onnx", "onnxruntime"]
HIDDEN, INNER, LAYERS, HEADS, PATCH, SIDE, WIDTH = 768, 3072, 12, 12, 32, 224, 512
TOKENS = (SIDE // PATCH) ** 2 + 1


def environment():
    """A Python with onnxruntime, and this script run by it."""
    python = CACHE / "onnxruntime-venv/bin/python"
    if not python.exists():
        print("making an environment with onnxruntime", file=sys.stderr)
        venv.create(python.parent.parent, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def weights():
    """Random weights by Hugging Face's names."""
    import numpy

    random = numpy.random.default_rng(5)

    def matrix(*shape):
        inputs = numpy.prod(shape[1:])
        return (random.standard_normal(shape) / inputs**0.5).astype(numpy.float32)

    def vector(width, middle=0.0):
        return (middle + 0.1 * random.standard_normal(width)).astype(numpy.float32)

    tensors = {
        "vision_model.embeddings.class_embedding": vector(HIDDEN),
        "vision_model.embeddings.patch_embedding.weight": matrix(HIDDEN, 3, PATCH, PATCH),
        "vision_model.embeddings.position_embedding.weight": matrix(TOKENS, HIDDEN),
        "visual_projection.weight": matrix(WIDTH, HIDDEN),
    }
    norms = ["vision_model.pre_layrnorm", "vision_model.post_layernorm"]
    for i in range(LAYERS):
        layer = f"vision_model.encoder.layers.{i}"
        norms += [f"{layer}.layer_norm1", f"{layer}.layer_norm2"]
        shapes = {f"self_attn.{name}_proj": (HIDDEN, HIDDEN) for name in ("q", "k", "v", "out")}
        shapes |= {"mlp.fc1": (INNER, HIDDEN), "mlp.fc2": (HIDDEN, INNER)}
        for name, shape in shapes.items():
            tensors[f"{layer}.{name}.weight"] = matrix(*shape)
            tensors[f"{layer}.{name}.bias"] = vector(shape[0])
    for name in norms:
        tensors[f"{name}.weight"] = vector(HIDDEN, 1.0)
        tensors[f"{name}.bias"] = vector(HIDDEN)
    return tensors


class Graph:
    """An ONNX graph in the making: the operations that PyTorch's exporter writes for this model."""

    def __init__(self, tensors):
        self.tensors, self.nodes, self.constants = tensors, [], {}

    def node(self, operation, *inputs, **attributes):
        from onnx import helper

        name = f"{operation}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, array):
        name = f"constant_{len(self.constants)}"
        self.constants[name] = array
        return name

    def scalar(self, number):
        import numpy

        return self.constant(numpy.array(number, dtype=numpy.int64))

    def dense(self, x, name, bias=True):
        product = self.node("MatMul", x, self.constant(self.tensors[f"{name}.weight"].T.copy()))
        return self.node("Add", product, self.constant(self.tensors[f"{name}.bias"])) if bias else product

    def norm(self, x, name):
        scale, shift = (self.constant(self.tensors[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.node("LayerNormalization", x, scale, shift, epsilon=1e-5, axis=-1)


def onnx_model(tensors, path):
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    graph = Graph(tensors)
    ints = lambda *numbers: graph.constant(numpy.array(numbers, dtype=numpy.int64))
    patches = graph.node("Conv", "pixels", graph.constant(tensors["vision_model.embeddings.patch_embedding.weight"]),
                         kernel_shape=[PATCH, PATCH], strides=[PATCH, PATCH])
    patches = graph.node("Reshape", patches, ints(0, HIDDEN, TOKENS - 1))
    patches = graph.node("Transpose", patches, perm=[0, 2, 1])
    rows = graph.node("Shape", "pixels", start=0, end=1)
    shape = graph.node("Concat", rows, ints(1, HIDDEN), axis=0)
    first = graph.node("Expand", graph.constant(tensors["vision_model.embeddings.class_embedding"].reshape(1, 1, HIDDEN)),
                       shape)
    x = graph.node("Concat", first, patches, axis=1)
    x = graph.node("Add", x, graph.constant(tensors["vision_model.embeddings.position_embedding.weight"][None]))
    x = graph.norm(x, "vision_model.pre_layrnorm")
    width = HIDDEN // HEADS
    for i in range(LAYERS):
        layer = f"vision_model.encoder.layers.{i}"
        y = graph.norm(x, f"{layer}.layer_norm1")
        parts = []
        for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            part = graph.dense(y, f"{layer}.self_attn.{name}_proj")
            part = graph.node("Reshape", part, ints(0, TOKENS, HEADS, width))
            parts.append(graph.node("Transpose", part, perm=order))
        scores = graph.node("MatMul", parts[0], parts[1])
        scores = graph.node("Mul", scores, graph.constant(numpy.float32(width**-0.5)))
        mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), parts[2])
        mixed = graph.node("Reshape", graph.node("Transpose", mixed, perm=[0, 2, 1, 3]), ints(0, TOKENS, HIDDEN))
        x = graph.node("Add", x, graph.dense(mixed, f"{layer}.self_attn.out_proj"))
        y = graph.dense(graph.norm(x, f"{layer}.layer_norm2"), f"{layer}.mlp.fc1")
        slope = graph.node("Sigmoid", graph.node("Mul", y, graph.constant(numpy.float32(1.702))))
        y = graph.dense(graph.node("Mul", y, slope), f"{layer}.mlp.fc2")
        x = graph.node("Add", x, y)
    x = graph.node("Gather", x, graph.scalar(0), axis=1)
    x = graph.norm(x, "vision_model.post_layernorm")
    out = graph.dense(x, "visual_projection", bias=False)
    made = helper.make_graph(
        graph.nodes, "clip",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["rows", 3, SIDE, SIDE])],
        [helper.make_tensor_value_info(out, TensorProto.FLOAT, ["rows", WIDTH])],
        [numpy_helper.from_array(numpy.asarray(array), name) for name, array in graph.constants.items()])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


def write_model(folder):
    """A folder with a model of random weights, and these."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors, header, end = weights(), {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(array.tobytes())
    (folder / "config.json").write_text(json.dumps({"model_type": "clip_vision_model"}))
    return tensors


def make_model():
    """The model's folder, made if it is not there."""

    folder = CACHE / "clip-vit-b-32-random"
    if not (folder / "ready").exists():
        print("making a model of the real size", file=sys.stderr)
        onnx_model(write_model(folder), folder / "model.onnx")
        (folder / "ready").touch()
    return folder


def pixels(rows):
    """Pictures that both programs make by the same formula, channels innermost."""
    import numpy

    places = numpy.arange(rows * SIDE * SIDE * 3, dtype=numpy.uint32)
    return ((places * numpy.uint32(2654435761) >> 24).astype(numpy.float32) - 127) / 128


def onnxruntime_rate(folder, batch, seconds):
    """Runs onnxruntime on one thread; prints images a second and the first embedding."""
    import time

    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    images = pixels(batch).reshape(batch, SIDE, SIDE, 3).transpose(0, 3, 1, 2).copy()
    first = session.run(None, {"pixels": images})[0][0]
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        session.run(None, {"pixels": images})
        done += batch
    rate = done / (time.perf_counter() - start)
    print(json.dumps({"rate": rate, "first": first.tolist()}))


def together(commands):
    """Runs commands at the same time; the sum of their rates, and the first one's embedding."""
    running = [subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE) for command in commands]
    said = []
    for process in running:
        text, _ = process.communicate()
        if process.returncode:
            sys.exit(f"{process.args} failed")
        said.append(json.loads(text))
    return sum(one["rate"] for one in said), said[0].get("first")


def agreement(a, b):
    import numpy

    a, b = numpy.array(a), numpy.array(b)
    return float(a @ b / (numpy.linalg.norm(a) * numpy.linalg.norm(b))), float(abs(a - b).max())


def compare(options):
    folder = make_model()
    program = pathlib.Path(options.program)
    batch, seconds = str(options.batch), str(options.seconds)
    ours = [program, "clip", folder, batch, seconds]
    theirs = [sys.executable, __file__, "--onnxruntime", folder, "--batch", batch, "--seconds", seconds]
    rates = {}
    for _ in range(options.rounds):
        for workers in (1, 2):
            for name, command in (("lockstep", ours), ("onnxruntime", theirs)):
                rate, first = together([command] * workers)
                rates.setdefault((name, workers), []).append(rate)
                if name == "lockstep":
                    embedding = first
                else:
                    cosine, error = agreement(embedding, first)
    lite = [together([[program, "lite0", "-", batch, seconds]] * workers)[0] for workers in (1, 2)]
    medians = {key: statistics.median(found) for key, found in rates.items()}
    print(f"same embedding: cosine {cosine:.9f}, largest difference {error:.1e}\n")
    print(f"CLIP ViT-B/32, batch {batch}, images/s, median of {options.rounds} (range)")
    for workers, label in ((1, "one thread"), (2, "two processes of one thread")):
        row = [f"{medians[name, workers]:6.2f} ({min(rates[name, workers]):.2f}-{max(rates[name, workers]):.2f})"
               for name in ("lockstep", "onnxruntime")]
        ratio = medians["lockstep", workers] / medians["onnxruntime", workers]
        print(f"  {label:28} lockstep {row[0]}   onnxruntime {row[1]}   ratio {ratio:.2f}")
    alone = medians["onnxruntime", 1]
    print(f"  two of ours against one of theirs: {medians['lockstep', 2] / alone:.2f}; "
          f"two of ours against one of ours: {medians['lockstep', 2] / medians['lockstep', 1]:.2f}")
    print(f"EfficientNet-Lite0, batch {batch}: {lite[0]:.1f} images/s, two processes {lite[1]:.1f}")
    if options.json:
        found = {f"{name}_{workers}": rate for (name, workers), rate in medians.items()}
        found |= {"cosine": cosine, "error": error, "lite0_1": lite[0], "lite0_2": lite[1]}
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--json")
    parser.add_argument("--program", help="the built example clip_rate, if it is not to be built")
    parser.add_argument("--prepare", action="store_true", help="make environment, model and program, and stop")
    parser.add_argument("--onnxruntime", help=argparse.SUPPRESS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.onnxruntime:
        return onnxruntime_rate(pathlib.Path(options.onnxruntime), options.batch, options.seconds)
    if options.inside:
        return make_model() if options.prepare else compare(options)
    if not options.program:
        subprocess.run(["cargo", "build", "--release", "-p", "lockstep-nn", "--example", "clip_rate"], cwd=ROOT, check=True)
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
        options.program = target / "release/examples/clip_rate"
    command = [environment(), __file__, "--inside", "--program", options.program, *sys.argv[1:]]
    sys.exit(subprocess.run([str(part) for part in command]).returncode)


if __name__ == "__main__":
    main()
