#!/usr/bin/env python3
"""What predictions over HTTP cost: `lockstep serve-model` beside `mlflow models serve`, by turns.

    python3 bench/serve_model.py --lockstep target/release/lockstep [--python PYTHON_WITH_MLFLOW] [--seconds 8]

Two models are served: the network of the Fashion-MNIST example, on one picture of 784 pixels a request, and a network on
a table like that of the avocado prices (dates, regions, truths, numbers; made here), on one row a request. MLflow serves
the same network of pictures by the folder that `lockstep models register` writes for it (ONNX). Of the table it serves a
pipeline of scikit-learn's with a network of the same layers: what Lockstep writes as ONNX takes encoded rows. It has as
many workers as there are cores. 1, 16 and 64 clients each send a request, wait for the answer, and send the next one.
They are one process, in turns of the two servers, so that both have the same company on the machine. Without `--python`,
MLflow lies in a virtual environment in the cache, made on the first run (about 1 GB).
"""

import argparse
import json
import os
import random
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import machine

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ["mlflow==3.17.2", "onnxruntime"]
CLIENTS = [1, 16, 64]
WARM_UP = 1.0

TABLE_JOB = """
name = "avocados"

[data]
train = { csv = "avocados.csv", label = "price" }

[model]
kind = "mlp"
hidden = [64, 32]

[train]
epochs = 2
batch = 64
optimizer = { kind = "adamw" }

[run]
store = "runs"
"""

SKLEARN = """
import sys
import mlflow, pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

def parts(frame):
    days = pd.to_datetime(frame["date"])
    return pd.DataFrame({"y": days.dt.year, "m": days.dt.month, "d": days.dt.day, "w": days.dt.day_of_week})

frame = pd.read_csv(sys.argv[1])
rows = frame.drop(columns="price")
columns = ColumnTransformer([
    ("date", make_pipeline(FunctionTransformer(parts), StandardScaler()), ["date"]),
    ("region", OneHotEncoder(handle_unknown="ignore"), ["region"]),
    ("numbers", StandardScaler(), ["organic", "volume", "bags", "large"]),
])
model = make_pipeline(columns, MLPRegressor(hidden_layer_sizes=(64, 32), max_iter=20))
model.fit(rows, frame["price"])
mlflow.sklearn.save_model(model, sys.argv[2], serialization_format="cloudpickle", input_example=rows[:1])
"""


def table(path, rows=4000):
    """A table like that of the avocado prices; returns one of its rows without what is predicted."""
    chosen = random.Random(7)
    regions = [f"region {number:02}" for number in range(54)]
    lines = ["date,region,organic,volume,bags,large,price"]
    for _ in range(rows):
        date = f"20{chosen.randrange(15, 19)}-{chosen.randrange(1, 13):02}-{chosen.randrange(1, 29):02}"
        volume, bags = chosen.random() * 1e5, chosen.random() * 1e4
        organic = chosen.randrange(2)
        price = 1 + organic / 2 + chosen.random() / 4
        lines.append(f"{date},{chosen.choice(regions)},{organic},{volume:.2f},{bags:.2f},{bags / 3:.2f},{price:.2f}")
    path.write_text("\n".join(lines) + "\n")
    names, first = lines[0].split(",")[:-1], lines[1].split(",")[:-1]
    return names, [first[0], first[1], int(first[2])] + [float(cell) for cell in first[3:]]


def succeed(words, **options):
    done = subprocess.run(words, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{words}: {done.stdout}\n{done.stderr}")
    return done.stdout


def python_with_mlflow():
    """A Python that has MLflow, in the cache."""
    folder = Path(os.environ.get("LOCKSTEP_CACHE", ROOT / ".cache")) / "bench-serving"
    if not (folder / "done").exists():
        print("making an environment with MLflow (about 1 GB)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin/pip", "install", "--quiet", *PACKAGES], check=True)
        (folder / "done").touch()
    return str(folder / "bin/python")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request(port, body):
    body = json.dumps(body).encode()
    head = f"POST /invocations HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


class Client:
    """A connection that sends the same request again and again."""

    def __init__(self, port, request):
        self.request = request
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answer = b""
        self.began = 0.0

    def send(self):
        self.answer = b""
        self.began = time.perf_counter()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        self.socket.sendall(self.request)

    def receive(self):
        """Takes what came; how long the request took, if that was all of the answer."""
        came = self.socket.recv(1 << 16)
        # A server that sends its answer in two pieces must not wait for the system's late acknowledgement.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        if not came:
            sys.exit("the server closed a connection")
        self.answer += came
        head, found, body = self.answer.partition(b"\r\n\r\n")
        if not found:
            return None
        if not head.startswith(b"HTTP/1.1 200"):
            sys.exit(f"refused: {self.answer[:2000]}")
        lines = head.lower().split(b"\r\n")
        length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
        return time.perf_counter() - self.began if len(body) >= length else None


def measure(port, request, clients, seconds):
    """Requests a second, and the median and 99th percentile of their milliseconds."""
    chosen = selectors.EpollSelector()
    for _ in range(clients):
        client = Client(port, request)
        chosen.register(client.socket, selectors.EVENT_READ, client)
        client.send()
    took, begin = [], time.perf_counter() + WARM_UP
    while (now := time.perf_counter()) < begin + seconds:
        for key, _ in chosen.select(1.0):
            if (one := key.data.receive()) is not None:
                if now >= begin:
                    took.append(one)
                key.data.send()
    for key in list(chosen.get_map().values()):
        key.data.socket.close()
    chosen.close()
    cuts = statistics.quantiles(took, n=100) if len(took) > 1 else took * 99
    return {
        "per_second": round(len(took) / seconds, 1),
        "p50_ms": round(cuts[49] * 1000, 3),
        "p99_ms": round(cuts[98] * 1000, 3),
    }


def wait_for(port, process, log):
    until = time.time() + 180
    while time.time() < until:
        if process.poll() is not None:
            sys.exit(f"{process.args} ended before it was ready:\n{log.read_text()[-3000:]}")
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as ping:
                ping.sendall(f"GET /ping HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
                if b"200" in ping.recv(100):
                    return
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit("a server was not ready within 180 s")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--lockstep", required=True)
    arguments.add_argument("--python")
    arguments.add_argument("--seconds", type=float, default=8.0)
    given = arguments.parse_args()
    given.python = given.python or python_with_mlflow()
    lockstep = str(Path(given.lockstep).resolve())
    workers = len(os.sched_getaffinity(0))
    results = {"machine": machine(), "mlflow_workers": workers, "seconds": given.seconds, "served": {}}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        names, row = table(folder / "avocados.csv")
        (folder / "table.toml").write_text(TABLE_JOB)
        fashion = ROOT / "examples/fashion-mnist.toml"
        fashion = [lockstep, "run", str(fashion), "--set", f"run.store={folder / 'runs'}", "--set", "train.epochs=1"]
        for job, name in ((fashion, "fashion"), ([lockstep, "run", "table.toml"], "avocados")):
            lines = succeed(job + ["--json"], cwd=folder)
            run = json.loads(lines.splitlines()[-1])["run"]
            succeed([lockstep, "models", "register", name, run, "--alias", "champion"], cwd=folder)
        (folder / "sklearn_model.py").write_text(SKLEARN)
        succeed([given.python, "sklearn_model.py", "avocados.csv", "sklearn"], cwd=folder)
        exported = next((folder / "runs/models/fashion/files").glob("*/mlflow"))
        pixels = [random.Random(1).randrange(256) for _ in range(784)]
        shape = json.loads(succeed([given.python, "-c", SHAPE, str(exported)]).splitlines()[-1])
        tables = {"dataframe_split": {"columns": names, "data": [row]}}
        for name, ours, theirs, body, their_body in (
            ("fashion", "fashion@champion", exported, {"inputs": [pixels]}, {"inputs": nested(pixels, shape)}),
            ("avocados", "avocados@champion", folder / "sklearn", tables, tables),
        ):
            ports = [free_port(), free_port()]
            # MLflow calls uvicorn by its name.
            path = f"{Path(given.python).parent}:{os.environ['PATH']}"
            environment = dict(os.environ, PATH=path, MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
            mlflow = [given.python, "-m", "mlflow", "models", "serve", "--model-uri", str(theirs), "--env-manager", "local"]
            commands = {
                "lockstep": [lockstep, "serve-model", ours, "--port", str(ports[0])],
                "mlflow": mlflow + ["--port", str(ports[1]), "--workers", str(workers)],
            }
            started = {}
            for who, words in commands.items():
                with open(folder / f"{who}.log", "w") as log:
                    options = {"stdout": log, "stderr": log, "cwd": folder, "env": environment}
                    started[who] = subprocess.Popen(words, start_new_session=True, **options)
            try:
                served = results["served"][name] = {}
                bodies = {"lockstep": body, "mlflow": their_body}
                for who, port in zip(started, ports):
                    wait_for(port, started[who], folder / f"{who}.log")
                for clients in CLIENTS:
                    figures = {
                        who: measure(port, request(port, bodies[who]), clients, given.seconds)
                        for who, port in zip(started, ports)
                    }
                    figures["times"] = round(figures["lockstep"]["per_second"] / figures["mlflow"]["per_second"], 1)
                    served[clients] = figures
                    print(name, clients, json.dumps(figures), file=sys.stderr)
            finally:
                for process in started.values():
                    if process.poll() is None:
                        os.killpg(process.pid, 15)
                        process.wait()
    print(json.dumps(results, indent=2))


# The shape of the input that an exported model names.
SHAPE = """
import json, sys, mlflow
schema = mlflow.models.Model.load(sys.argv[1]).get_input_schema()
print(json.dumps(list(schema.inputs[0].shape) if schema and schema.is_tensor_spec() else [-1, 784]))
"""


def nested(values, shape):
    """The values as lists of a shape, whose first side is that of one row."""
    for side in reversed(shape[1:]):
        values = [values[at : at + side] for at in range(0, len(values), side)]
    return values


if __name__ == "__main__":
    main()
