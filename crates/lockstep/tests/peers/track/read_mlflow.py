"""Reads a run back through MLflow's own client: read_mlflow.py SERVER EXPERIMENT."""

import json
import os
import sys
import tempfile

import mlflow
from mlflow import MlflowClient

server, experiment = sys.argv[1], sys.argv[2]
mlflow.set_tracking_uri(server)
client = MlflowClient()
found = client.get_experiment_by_name(experiment)
runs = client.search_runs([found.experiment_id]) if found else []
said = {"runs": []}
for run in runs:
    run_id = run.info.run_id
    history = {
        key: [[point.step, point.value] for point in client.get_metric_history(run_id, key)]
        for key in run.data.metrics
    }
    files = {}

    def walk(path):
        for entry in client.list_artifacts(run_id, path):
            if entry.is_dir:
                walk(entry.path)
            else:
                files[entry.path] = entry.file_size

    walk(None)
    with tempfile.TemporaryDirectory() as folder:
        job = client.download_artifacts(run_id, "job.toml", folder) if "job.toml" in files else None
        job = open(job).read() if job else None
    models = []
    for output in run.outputs.model_outputs if run.outputs else []:
        model = client.get_logged_model(output.model_id)
        models.append(
            {
                "id": model.model_id,
                "name": model.name,
                "status": str(model.status),
                "tags": model.tags,
                "metrics": {metric.key: metric.value for metric in model.metrics or []},
                "step": output.step,
            }
        )
    said["runs"].append(
        {
            "id": run_id,
            "name": run.info.run_name,
            "status": run.info.status,
            "params": run.data.params,
            "tags": run.data.tags,
            "history": history,
            "files": files,
            "job": job,
            "inputs": [
                {
                    "name": entry.dataset.name,
                    "digest": entry.dataset.digest,
                    "source": entry.dataset.source,
                    "profile": entry.dataset.profile,
                    "tags": {tag.key: tag.value for tag in entry.tags},
                }
                for entry in run.inputs.dataset_inputs
            ],
            "models": models,
        }
    )
print(json.dumps(said))
