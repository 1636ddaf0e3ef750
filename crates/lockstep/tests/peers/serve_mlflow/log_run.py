"""Does with MLflow's own client what scripts do with it, and says what comes back as JSON."""

import json
import math
import os
import sys
import tempfile
import threading

import mlflow
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

said = {}
mlflow.set_tracking_uri(sys.argv[1])
client = MlflowClient()

experiment = mlflow.create_experiment("digits & co", tags={"team": "vision"})
mlflow.set_experiment("digits & co")
said["experiment"] = mlflow.get_experiment_by_name("digits & co").experiment_id == experiment
said["no_experiment"] = mlflow.get_experiment_by_name("none")
said["experiments"] = sorted(e.name for e in mlflow.search_experiments(filter_string="name LIKE 'digits%'"))

with mlflow.start_run(run_name="first", description="the one with the right labels") as run:
    mlflow.log_param("lr", 1e-05)
    mlflow.log_params({"optimizer.kind": "adam", "epochs": 3})
    for step in range(100):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    mlflow.log_metrics({"val/accuracy": 0.5, "val/f1": 0.25}, step=50)
    mlflow.log_metrics({"val/accuracy": 0.75, "odd": math.nan, "far": math.inf}, step=99)
    mlflow.set_tag("good", "yes")
    mlflow.set_tags({"paper": "figure 3", "mlflow.custom": "x"})
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a file.txt")
        with open(path, "w") as file:
            file.write("words")
        mlflow.log_artifact(path)
        mlflow.log_artifacts(folder, artifact_path="many/files")
    mlflow.log_dict({"a": [1, 2]}, "conf/a.json")
    mlflow.log_text("<script>alert(1)</script>", "page.html")
    with mlflow.start_run(run_name="inner", nested=True) as inner:
        mlflow.log_metric("loss", 7.0)
    threads = [
        threading.Thread(target=lambda n=n: [client.log_metric(run.info.run_id, f"thread{n}", i, step=i) for i in range(20)])
        for n in range(4)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

run_id = run.info.run_id
said["run_id"], said["inner_id"] = run_id, inner.info.run_id
found = mlflow.get_run(run_id)
said["status"] = found.info.status
said["name"] = found.info.run_name
said["params"] = found.data.params
said["metrics"] = {key: value if math.isfinite(value) else str(value) for key, value in found.data.metrics.items()}
said["tags"] = {key: value for key, value in found.data.tags.items() if not key.startswith("mlflow.")}
said["note"] = found.data.tags.get("mlflow.note.content")
said["custom"] = found.data.tags.get("mlflow.custom")
said["user"] = bool(found.data.tags.get("mlflow.user"))
said["parent"] = mlflow.get_run(inner.info.run_id).data.tags["mlflow.parentRunId"] == run_id
history = client.get_metric_history(run_id, "loss")
said["history"] = [[point.step, point.value] for point in history[:3]] + [len(history)]
said["artifacts"] = sorted(file.path for file in client.list_artifacts(run_id))
said["inner_artifacts"] = sorted(file.path for file in client.list_artifacts(run_id, "many/files"))
said["text"] = mlflow.artifacts.load_text(f"runs:/{run_id}/page.html")
said["dict"] = mlflow.artifacts.load_dict(f"runs:/{run_id}/conf/a.json")

second = None
with mlflow.start_run(run_name="second") as second:
    mlflow.log_param("lr", "0.1")
    mlflow.log_metric("loss", 0.5)


def names(filter_string, **more):
    table = mlflow.search_runs(experiment_names=["digits & co"], filter_string=filter_string, **more)
    return list(table["tags.mlflow.runName"]) if len(table) else []


said["search"] = {
    "metric": names("metrics.loss < 0.1"),
    "param": names("params.lr = '0.1'"),
    "like": names("params.`optimizer.kind` LIKE 'ad%'"),
    "tag": names("tags.good = 'yes' and attributes.status = 'FINISHED'"),
    "ordered": names("", order_by=["metrics.loss DESC"]),
    "one": names("", order_by=["metrics.loss ASC"], max_results=1),
    "children": names(f"tags.mlflow.parentRunId = '{run_id}'"),
}


def refused(call):
    try:
        call()
    except MlflowException as error:
        return error.error_code
    return None


said["refused"] = {
    "changed_param": refused(lambda: client.log_param(run_id, "lr", "2")),
    "no_run": refused(lambda: client.get_run("none")),
    "bad_filter": refused(lambda: mlflow.search_runs(experiment_names=["digits & co"], filter_string="metrics.loss <")),
    "same_name": refused(lambda: mlflow.create_experiment("digits & co")),
    "model": refused(lambda: client.rename_registered_model("none", "other")),
}

try:
    with mlflow.start_run(run_name="broken") as broken:
        mlflow.log_metric("loss", 1.0)
        raise ValueError("on purpose")
except ValueError:
    pass
said["broken"] = mlflow.get_run(broken.info.run_id).info.status
with mlflow.start_run(run_id=second.info.run_id):
    mlflow.log_metric("loss", 0.4, step=1)
said["again"] = mlflow.get_run(second.info.run_id).data.metrics["loss"]
client.delete_run(second.info.run_id)
said["deleted"] = names("")
client.restore_run(second.info.run_id)
said["restored"] = len(names(""))
said["open_id"] = client.create_run(experiment, run_name="open").info.run_id
client.log_batch(said["open_id"], metrics=[mlflow.entities.Metric("loss", 0.1 * n, 1000 * n, n) for n in range(1000)])
with mlflow.start_run(run_name="dataset"):
    import numpy

    mlflow.log_input(mlflow.data.from_numpy(numpy.zeros((4, 2)), name="zeros"), context="train")
    said["inputs"] = [i.dataset.name for i in mlflow.get_run(mlflow.active_run().info.run_id).inputs.dataset_inputs]
print(json.dumps(said))
