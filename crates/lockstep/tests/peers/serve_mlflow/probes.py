"""Asks a server, with MLflow's own client, everything that people do with models: each question is a probe, and what
failed is said as JSON. Works the same against MLflow's own server."""

import json
import os
import sys
import tempfile
import traceback
import warnings

import mlflow
import numpy as np
import pandas as pd
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from sklearn.linear_model import LogisticRegression

warnings.filterwarnings("ignore")
mlflow.set_tracking_uri(sys.argv[1])
client = MlflowClient()
failed, passed = {}, []
X = np.array([[0.0, 1.0], [1.0, 0.0], [0.2, 0.9], [0.9, 0.1]])
y = np.array([0, 1, 0, 1])
frame = pd.DataFrame(X, columns=["a", "b"])
it = {}


def probe(ask):
    try:
        ask()
        passed.append(ask.__name__)
    except Exception as error:  # noqa: BLE001
        failed[ask.__name__] = f"{type(error).__name__}: {error}"[:400]
        if os.environ.get("TRACE"):
            traceback.print_exc()


def refused(code, ask):
    try:
        ask()
    except MlflowException as error:
        assert error.error_code == code, error
        return
    raise AssertionError(f"was not refused with {code}")


def trained():
    return LogisticRegression().fit(frame, y)


# Logged models.


@probe
def logs_a_model_in_a_run():
    mlflow.set_experiment("models")
    with mlflow.start_run() as run:
        it["run"] = run.info.run_id
        it["logged"] = mlflow.sklearn.log_model(trained(), name="classifier", input_example=frame, params={"c": 1})


@probe
def a_logged_model_is_loaded_by_its_uri():
    loaded = mlflow.pyfunc.load_model(it["logged"].model_uri)
    assert (loaded.predict(frame) == y).all()


@probe
def a_logged_model_is_loaded_with_its_own_library():
    assert (mlflow.sklearn.load_model(it["logged"].model_uri).predict(frame) == y).all()


@probe
def a_logged_model_is_loaded_by_the_name_within_its_run():
    assert (mlflow.pyfunc.load_model(f"runs:/{it['run']}/classifier").predict(frame) == y).all()


@probe
def a_logged_model_is_got():
    model = mlflow.get_logged_model(it["logged"].model_id)
    assert (model.name, model.status, model.source_run_id) == ("classifier", "READY", it["run"]), model
    assert model.params == {"c": "1"}, model.params


@probe
def a_run_says_which_models_it_made():
    outputs = client.get_run(it["run"]).outputs.model_outputs
    assert [output.model_id for output in outputs] == [it["logged"].model_id]


@probe
def the_files_of_a_run_are_those_that_are_not_its_models():
    assert [entry.path for entry in client.list_artifacts(it["run"])] == []


@probe
def the_files_of_a_logged_model_are_listed():
    files = [entry.path for entry in client.list_logged_model_artifacts(it["logged"].model_id)]
    assert "MLmodel" in files and "requirements.txt" in files, files


@probe
def a_file_of_a_logged_model_is_downloaded():
    where = mlflow.get_logged_model(it["logged"].model_id).artifact_location
    path = mlflow.artifacts.download_artifacts(f"{where}/MLmodel")
    assert "sklearn" in open(path).read()


@probe
def metrics_are_linked_to_a_model():
    with mlflow.start_run(run_id=it["run"]):
        mlflow.log_metric("accuracy", 0.5, step=1, model_id=it["logged"].model_id)
        mlflow.log_metrics({"accuracy": 0.75, "f1": 0.25}, step=2, model_id=it["logged"].model_id)
    metrics = {metric.key: metric.value for metric in mlflow.get_logged_model(it["logged"].model_id).metrics}
    assert metrics["accuracy"] in (0.5, 0.75) and metrics["f1"] == 0.25, metrics


@probe
def metrics_of_a_data_set_are_linked_to_a_model():
    data = mlflow.data.from_pandas(frame, name="held out")
    with mlflow.start_run(run_id=it["run"]):
        mlflow.log_metric("loss", 0.1, dataset=data, model_id=it["logged"].model_id)
    metrics = mlflow.get_logged_model(it["logged"].model_id).metrics
    assert [metric.dataset_name for metric in metrics if metric.key == "loss"] == ["held out"]


@probe
def tags_of_a_logged_model_are_set_and_removed():
    mlflow.set_logged_model_tags(it["logged"].model_id, {"stage": "try", "team": "vision"})
    mlflow.delete_logged_model_tag(it["logged"].model_id, "stage")
    tags = mlflow.get_logged_model(it["logged"].model_id).tags
    assert tags.get("team") == "vision" and "stage" not in tags, tags


@probe
def params_of_a_logged_model_are_added():
    mlflow.log_model_params({"depth": "3"}, it["logged"].model_id)
    assert mlflow.get_logged_model(it["logged"].model_id).params["depth"] == "3"


@probe
def logged_models_are_searched_by_name():
    found = mlflow.search_logged_models(filter_string="name = 'classifier'", output_format="list")
    assert [model.model_id for model in found] == [it["logged"].model_id]


@probe
def logged_models_are_searched_by_run_metric_param_and_tag():
    for filter_string in [
        f"source_run_id = '{it['run']}'",
        "metrics.f1 > 0.2",
        "params.c = '1'",
        "tags.team = 'vision'",
        "creation_timestamp > 0",
    ]:
        found = mlflow.search_logged_models(filter_string=filter_string, output_format="list")
        assert len(found) == 1, (filter_string, found)


@probe
def logged_models_are_ordered_and_paged():
    for number in range(3):
        mlflow.initialize_logged_model(name=f"many-{number}")
    names = [
        model.name
        for model in mlflow.search_logged_models(
            filter_string="name LIKE 'many-%'",
            order_by=[{"field_name": "name", "ascending": False}],
            output_format="list",
        )
    ]
    assert names == ["many-2", "many-1", "many-0"], names
    ids = client.search_experiments(filter_string="name = 'models'")
    first = client.search_logged_models([ids[0].experiment_id], max_results=2)
    rest = client.search_logged_models([ids[0].experiment_id], max_results=10, page_token=first.token)
    assert (len(first), len(rest)) == (2, 2)


@probe
def search_of_logged_models_is_a_table():
    assert len(mlflow.search_logged_models(filter_string="name = 'classifier'")) == 1


@probe
def an_external_model_is_made_and_finished():
    model = mlflow.create_external_model(name="elsewhere", model_type="agent")
    assert mlflow.finalize_logged_model(model.model_id, "READY").status == "READY"
    assert mlflow.get_logged_model(model.model_id).model_type == "agent"


@probe
def the_last_logged_model_is_known():
    assert mlflow.last_logged_model().model_id


@probe
def a_logged_model_is_deleted():
    model = mlflow.initialize_logged_model(name="short-lived")
    client.delete_logged_model(model.model_id)
    found = mlflow.search_logged_models(filter_string="name = 'short-lived'", output_format="list")
    assert found == [], found


@probe
def a_logged_model_that_is_not_there_is_refused():
    refused("RESOURCE_DOES_NOT_EXIST", lambda: client.get_logged_model("m-00000000000000000000000000000000"))


@probe
def a_model_is_logged_without_a_run():
    info = mlflow.sklearn.log_model(trained(), name="alone")
    assert (mlflow.pyfunc.load_model(info.model_uri).predict(frame) == y).all()


@probe
def a_python_function_is_a_model():
    class Twice(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input, params=None):
            return model_input * 2

    with mlflow.start_run():
        info = mlflow.pyfunc.log_model(name="twice", python_model=Twice())
    assert mlflow.pyfunc.load_model(info.model_uri).predict(frame)["a"].tolist() == [0.0, 2.0, 0.4, 1.8]


@probe
def a_model_is_saved_under_artifacts_as_before():
    with mlflow.start_run() as run:
        it["old_run"] = run.info.run_id
        with tempfile.TemporaryDirectory() as folder:
            mlflow.sklearn.save_model(trained(), os.path.join(folder, "model"))
            mlflow.log_artifacts(os.path.join(folder, "model"), "model")
    assert (mlflow.pyfunc.load_model(f"runs:/{run.info.run_id}/model").predict(frame) == y).all()


# Registered models.


@probe
def a_model_is_registered_by_its_uri():
    version = mlflow.register_model(it["logged"].model_uri, "digits", tags={"by": "hand"})
    assert (version.name, str(version.version), version.status) == ("digits", "1", "READY"), version
    assert version.run_id == it["run"], version


@probe
def a_model_is_registered_while_it_is_logged():
    with mlflow.start_run():
        mlflow.sklearn.log_model(trained(), name="second", registered_model_name="digits")
    assert str(client.get_model_version("digits", "2").version) == "2"


@probe
def files_of_a_run_are_registered():
    version = mlflow.register_model(f"runs:/{it['old_run']}/model", "digits")
    assert str(version.version) == "3"


@probe
def registered_models_are_loaded_by_number():
    for number in (1, 2, 3):
        assert (mlflow.pyfunc.load_model(f"models:/digits/{number}").predict(frame) == y).all(), number


@probe
def the_latest_version_is_loaded():
    assert (mlflow.pyfunc.load_model("models:/digits/latest").predict(frame) == y).all()


@probe
def an_alias_is_set_and_its_version_loaded():
    client.set_registered_model_alias("digits", "champion", "2")
    assert str(client.get_model_version_by_alias("digits", "champion").version) == "2"
    assert (mlflow.pyfunc.load_model("models:/digits@champion").predict(frame) == y).all()
    assert client.get_registered_model("digits").aliases == {"champion": "2"}
    assert client.get_model_version("digits", "2").aliases == ["champion"]


@probe
def an_alias_moves_and_is_taken_away():
    client.set_registered_model_alias("digits", "champion", "1")
    assert str(client.get_model_version_by_alias("digits", "champion").version) == "1"
    client.set_registered_model_alias("digits", "old", "1")
    client.delete_registered_model_alias("digits", "old")
    assert "old" not in client.get_registered_model("digits").aliases


@probe
def an_alias_that_is_not_there_is_refused():
    try:
        client.get_model_version_by_alias("digits", "nobody")
    except MlflowException as error:
        assert error.error_code in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"), error
    else:
        raise AssertionError("there is no such alias")


@probe
def a_registered_model_is_made_described_and_found():
    made = client.create_registered_model("empty", tags={"team": "vision"}, description="nothing yet")
    assert made.name == "empty" and made.description == "nothing yet" and made.tags == {"team": "vision"}
    client.update_registered_model("empty", description="still nothing")
    assert client.get_registered_model("empty").description == "still nothing"
    assert client.get_registered_model("empty").creation_timestamp > 0


@probe
def a_registered_model_is_made_once():
    refused("RESOURCE_ALREADY_EXISTS", lambda: client.create_registered_model("empty"))


@probe
def a_registered_model_that_is_not_there_is_refused():
    refused("RESOURCE_DOES_NOT_EXIST", lambda: client.get_registered_model("none"))
    refused("RESOURCE_DOES_NOT_EXIST", lambda: client.get_model_version("digits", "99"))


@probe
def tags_of_a_registered_model():
    client.set_registered_model_tag("digits", "task", "classification")
    client.set_registered_model_tag("digits", "gone", "x")
    client.delete_registered_model_tag("digits", "gone")
    tags = client.get_registered_model("digits").tags
    assert tags.get("task") == "classification" and "gone" not in tags, tags


@probe
def registered_models_are_searched():
    assert {"digits", "empty"} <= {model.name for model in client.search_registered_models()}
    for filter_string in ["name = 'digits'", "name LIKE 'dig%'", "name ILIKE 'DIG%'", "tags.task = 'classification'"]:
        names = [model.name for model in client.search_registered_models(filter_string)]
        assert names == ["digits"], (filter_string, names)


@probe
def registered_models_are_ordered_and_paged():
    names = [model.name for model in client.search_registered_models(order_by=["name DESC"])]
    assert names == sorted(names, reverse=True) and len(names) >= 2, names
    first = client.search_registered_models(max_results=1, order_by=["name ASC", "last_updated_timestamp DESC"])
    second = client.search_registered_models(max_results=1, order_by=["name ASC", "last_updated_timestamp DESC"], page_token=first.token)
    assert first[0].name < second[0].name


@probe
def versions_are_searched():
    for filter_string, wanted in [
        ("name = 'digits'", {"1", "2", "3"}),
        (f"run_id = '{it['run']}'", {"1"}),
        ("name = 'digits' AND version_number > 1", {"2", "3"}),
        ("tags.by = 'hand'", {"1"}),
        ("name LIKE 'dig%'", {"1", "2", "3"}),
        (f"run_id IN ('{it['run']}', 'other')", {"1"}),
    ]:
        found = {str(version.version) for version in client.search_model_versions(filter_string)}
        assert found == wanted, (filter_string, found)


@probe
def versions_are_ordered_and_paged():
    numbers = [str(v.version) for v in client.search_model_versions("name = 'digits'", order_by=["version_number ASC"])]
    assert numbers == ["1", "2", "3"], numbers
    first = client.search_model_versions("name = 'digits'", max_results=2, order_by=["version_number DESC"])
    rest = client.search_model_versions("name = 'digits'", max_results=2, order_by=["version_number DESC"], page_token=first.token)
    assert [str(v.version) for v in first] + [str(v.version) for v in rest] == ["3", "2", "1"]


@probe
def top_level_searches_are_lists():
    assert len(mlflow.search_model_versions(filter_string="name = 'digits'")) == 3
    assert "digits" in [model.name for model in mlflow.search_registered_models()]


@probe
def a_version_is_described_and_tagged():
    client.update_model_version("digits", "1", description="the first")
    client.set_model_version_tag("digits", "1", "checked", "yes")
    client.set_model_version_tag("digits", "1", "gone", "x")
    client.delete_model_version_tag("digits", "1", "gone")
    version = client.get_model_version("digits", "1")
    assert version.description == "the first" and version.tags == {"by": "hand", "checked": "yes"}, version.tags


@probe
def a_version_is_tagged_by_its_stage_or_alias():
    client.set_model_version_tag("digits", version="1", key="k", value="v")
    assert client.get_model_version_by_alias("digits", "champion").tags["k"] == "v"


@probe
def a_version_says_where_its_files_are():
    uri = client.get_model_version_download_uri("digits", "1")
    assert uri, uri
    path = mlflow.artifacts.download_artifacts("models:/digits/1")
    assert os.path.exists(os.path.join(path, "MLmodel"))


@probe
def stages_as_before():
    client.transition_model_version_stage("digits", "1", "Staging")
    client.transition_model_version_stage("digits", "2", "Staging", archive_existing_versions=True)
    assert client.get_model_version("digits", "1").current_stage == "Archived"
    latest = {v.current_stage: str(v.version) for v in client.get_latest_versions("digits")}
    assert latest == {"Archived": "1", "Staging": "2", "None": "3"}, latest
    assert [str(v.version) for v in client.get_latest_versions("digits", ["Staging"])] == ["2"]
    assert (mlflow.pyfunc.load_model("models:/digits/Staging").predict(frame) == y).all()


@probe
def a_version_is_copied_to_another_model():
    copied = client.copy_model_version("models:/digits/1", "copied")
    assert (copied.name, str(copied.version)) == ("copied", "1")
    assert (mlflow.pyfunc.load_model("models:/copied/1").predict(frame) == y).all()


@probe
def a_version_of_files_elsewhere_is_registered():
    client.create_registered_model("bucket")
    version = client.create_model_version("bucket", "s3://somewhere/model")
    assert version.source == "s3://somewhere/model"
    assert client.get_model_version_download_uri("bucket", "1") == "s3://somewhere/model"


@probe
def a_version_outlives_what_it_was_made_from():
    with mlflow.start_run():
        info = mlflow.sklearn.log_model(trained(), name="gone", registered_model_name="outlives")
    assert (mlflow.pyfunc.load_model("models:/outlives/1").predict(frame) == y).all()
    if "--own" in sys.argv:
        client.delete_logged_model(info.model_id)
        assert (mlflow.sklearn.load_model("models:/outlives/1").predict(frame) == y).all()


@probe
def a_version_is_deleted_and_its_number_not_given_again():
    client.delete_model_version("digits", "3")
    refused("RESOURCE_DOES_NOT_EXIST", lambda: client.get_model_version("digits", "3"))
    assert len(client.search_model_versions("name = 'digits'")) == 2


@probe
def a_registered_model_is_deleted():
    client.delete_registered_model("empty")
    refused("RESOURCE_DOES_NOT_EXIST", lambda: client.get_registered_model("empty"))


@probe
def a_version_of_no_model_is_refused():
    refused("RESOURCE_DOES_NOT_EXIST", lambda: client.create_model_version("none", "s3://somewhere"))


@probe
def evaluation_logs_what_a_model_is_worth():
    data = frame.assign(label=y)
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(
            it["logged"].model_uri, data, targets="label", model_type="classifier",
            evaluator_config={"log_model_explainability": False, "log_explainer": False},
        )
    assert client.get_run(run.info.run_id).data.metrics["accuracy_score"] == result.metrics["accuracy_score"]


# Around them.


@probe
def webhooks_are_none():
    assert list(client.list_webhooks()) == []


@probe
def a_prompt_is_registered_loaded_and_found():
    mlflow.genai.register_prompt(name="greeting", template="Hello {{name}}", commit_message="first")
    prompt = mlflow.genai.load_prompt("prompts:/greeting/1")
    assert prompt.format(name="Anna") == "Hello Anna"
    mlflow.genai.set_prompt_alias("greeting", "best", 1)
    assert mlflow.genai.load_prompt("prompts:/greeting@best").template == "Hello {{name}}"
    assert [prompt.name for prompt in mlflow.genai.search_prompts()] == ["greeting"]
    mlflow.genai.register_prompt(name="long", template="words " * 10_000)
    assert len(mlflow.genai.load_prompt("prompts:/long/1").template) == 60_000
    assert "greeting" not in [model.name for model in client.search_registered_models()]


@probe
def a_traced_function_still_answers():
    @mlflow.trace
    def twice(x):
        return 2 * x

    assert twice(21) == 42
    mlflow.flush_trace_async_logging(terminate=False)


@probe
def no_traces_are_an_empty_list():
    if "--own" in sys.argv:
        assert mlflow.search_traces(return_type="list") == []


@probe
def autolog_of_scikit_learn_keeps_metrics_params_and_the_model():
    mlflow.sklearn.autolog(log_datasets=True)
    with mlflow.start_run() as run:
        LogisticRegression(C=0.5).fit(frame, y)
    mlflow.sklearn.autolog(disable=True)
    found = client.get_run(run.info.run_id)
    assert found.data.params["C"] == "0.5", found.data.params
    assert "training_accuracy_score" in found.data.metrics, found.data.metrics
    assert found.outputs.model_outputs, found.outputs
    model = found.outputs.model_outputs[0].model_id
    assert (mlflow.pyfunc.load_model(f"models:/{model}").predict(frame) == y).all()
    names = [entry.path for entry in client.list_artifacts(run.info.run_id)]
    assert "estimator.html" in names, names


print(json.dumps({"passed": len(passed), "failed": failed}))
